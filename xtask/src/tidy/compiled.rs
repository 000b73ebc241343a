//! Nothing compiled is committed: BPF programs, too, are built from source.

use std::io::Read;

use anyhow::{Context, Result};

use super::Finding;
use crate::step::root;

/// How ELF objects, archives and LLVM bitcode begin.
const MAGICS: [&[u8]; 3] = [b"\x7fELF", b"!<arch>\n", b"BC\xc0\xde"];

/// Names every file that a compiler made.
pub fn check(files: &[String], findings: &mut Vec<Finding>) -> Result<()> {
    for path in files {
        let mut start = Vec::new();
        std::fs::File::open(root().join(path))
            .and_then(|file| file.take(8).read_to_end(&mut start))
            .with_context(|| path.clone())?;
        if is_compiled(&start) {
            findings.push(format!("{path}: compiled; build it from source instead"));
        }
    }
    Ok(())
}

fn is_compiled(start: &[u8]) -> bool {
    MAGICS.iter().any(|magic| start.starts_with(magic))
}

#[cfg(test)]
mod tests {
    use super::is_compiled;

    #[test]
    fn an_object_is_told_from_a_text() {
        assert!(is_compiled(b"\x7fELF\x02\x01\x01\0"));
        assert!(!is_compiled(b"BC is a province"));
        assert!(!is_compiled(b""));
    }
}

//! The files that the rules are about.

use std::process::Command;

use anyhow::{Context, Result};

use crate::step::{output_of, root};

/// A text file of the tree.
pub struct Source {
    /// From the root, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The part of the name after the last dot, or the whole name.
    pub fn kind(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.rsplit('.').next().unwrap_or(name)
    }
}

/// Every file that is tracked or could be: what git does not ignore.
pub fn files() -> Result<Vec<String>> {
    let flags = [
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ];
    let list = output_of(Command::new("git").current_dir(root()).args(flags))?;
    let mut paths: Vec<String> = list
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The text files that people write. Expected outputs and test data are as their makers left them.
pub fn read(files: &[String]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in files {
        let data = path.ends_with(".snap") || path.ends_with(".lock") || path == "LICENSE";
        if data
            || path
                .split('/')
                .any(|part| matches!(part, "testdata" | "snapshots"))
        {
            continue;
        }
        let bytes = std::fs::read(root().join(path)).with_context(|| path.clone())?;
        if let Ok(text) = String::from_utf8(bytes) {
            let path = path.clone();
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

/// A source for the tests of rules.
#[cfg(test)]
pub fn source(path: &str, text: &str) -> Source {
    Source {
        path: path.into(),
        text: text.into(),
    }
}

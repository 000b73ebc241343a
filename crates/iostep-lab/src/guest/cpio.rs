//! Archives that the kernel unpacks as its first root: cpio's "new ASCII" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).

use std::io::{self, Write};

const MAGIC: &str = "070701";
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const ALIGNMENT: usize = 4;

/// An archive being written. What it holds belongs to root.
pub(super) struct Archive<W> {
    out: W,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub fn new(out: W) -> Archive<W> {
        Archive { out, entries: 0 }
    }

    /// A directory that everybody may enter. Its parent must have come before.
    pub fn directory(&mut self, name: &str) -> io::Result<()> {
        self.entry(name, DIRECTORY | 0o755, &[])
    }

    pub fn file(&mut self, name: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.entry(name, FILE | permissions, content)
    }

    /// Writes the end.
    pub fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.out)
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let bytes = u32::try_from(content.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "4 GiB are too long"))?;
        let (inode, links, name_bytes) = (self.entries, 1, name.len() as u32 + 1);
        self.entries += 1;
        let mut header = String::from(MAGIC);
        // Inode, mode, owner, group, links, time, bytes, device, its own device, name, checksum.
        for field in [
            inode, mode, 0, 0, links, 0, bytes, 0, 0, 0, 0, name_bytes, 0,
        ] {
            header.push_str(&format!("{field:08x}"));
        }
        header.push_str(name);
        header.push('\0');
        self.padded(header.as_bytes())?;
        self.padded(content)
    }

    fn padded(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        let padding = bytes.len().next_multiple_of(ALIGNMENT) - bytes.len();
        self.out.write_all(&[0; ALIGNMENT][..padding])
    }
}

#[cfg(test)]
mod tests {
    use super::super::architecture::Architecture;
    use super::super::busybox;
    use super::*;
    use std::path::Path;
    use std::process::{Command, Stdio};

    fn archive() -> Vec<u8> {
        let mut archive = Archive::new(Vec::new());
        archive.directory("bin").expect("memory takes all");
        for (name, content) in [("bin/a", "x"), ("bin/ab", "four"), ("empty", "")] {
            let written = archive.file(name, 0o755, content.as_bytes());
            written.expect("memory takes all");
        }
        archive.finish().expect("memory takes all")
    }

    #[test]
    fn every_header_begins_at_a_multiple_of_four() {
        let bytes = archive();
        let headers = bytes.windows(6).enumerate();
        let found: Vec<usize> = headers
            .filter(|(_, window)| window == b"070701")
            .map(|(at, _)| at)
            .collect();
        assert_eq!(found.len(), 5, "four entries and the end");
        assert!(found.iter().all(|at| at % 4 == 0), "{found:?}");
        assert_eq!(bytes.len() % 4, 0);
    }

    /// busybox reads the format with code of its own.
    #[test]
    fn another_program_unpacks_what_was_packed() {
        let busybox =
            busybox::find(Path::new("/"), Architecture::HOST).expect("scripts/setup installs it");
        let target = tempfile::tempdir().expect("a directory");
        let mut child = Command::new(busybox)
            .args(["cpio", "-i"])
            .current_dir(target.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("busybox runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(&archive()).expect("it reads");
        drop(stdin);
        assert!(child.wait().expect("it ends").success());
        let read = |name| std::fs::read_to_string(target.path().join(name)).expect("unpacked");
        assert_eq!(
            [read("bin/a"), read("bin/ab"), read("empty")],
            ["x", "four", ""]
        );
    }
}

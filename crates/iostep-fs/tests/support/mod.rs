//! Images made by e2fsprogs, and what e2fsprogs says about them.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod truth;

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// An image in a directory that goes away with it.
pub struct Image {
    directory: TempDir,
}

impl Image {
    /// An empty file of `size_bytes`.
    pub fn empty(size_bytes: u64) -> Image {
        let image = Image {
            directory: tempfile::tempdir().expect("a temporary directory"),
        };
        File::create(image.path())
            .and_then(|file| file.set_len(size_bytes))
            .expect("an empty image");
        image
    }

    /// A filesystem made by mke2fs and filled with [`populate`]d files, two of them in pieces and
    /// one preallocated and never written.
    pub fn ext4(kind: &str, options: &[&str], size_bytes: u64) -> Image {
        let image = Image::empty(size_bytes);
        let tree = image.directory.path().join("tree");
        populate(&tree);
        let mut mke2fs = Command::new("mke2fs");
        mke2fs.args(["-q", "-F", "-t", kind]).args(options);
        // The hash of directory names must not change from run to run.
        mke2fs.args(["-E", "hash_seed=7f2b6e6c-6a5b-4d2f-9d39-0c8d4f0d1f11"]);
        run(mke2fs.arg("-d").arg(&tree).arg(image.path()), "");
        std::fs::remove_dir_all(&tree).expect("remove the source tree");
        image.debugfs_write(&fragmenting(kind));
        image
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    pub fn open(&self) -> File {
        File::open(self.path()).expect("open the image")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).expect("read the image")
    }

    /// What `debugfs -R request` prints.
    pub fn debugfs(&self, request: &str) -> String {
        run(
            Command::new("debugfs")
                .args(["-R", request])
                .arg(self.path()),
            "",
        )
    }

    /// Runs requests, one a line, in one debugfs.
    pub fn debugfs_all(&self, requests: &str) -> String {
        run(
            Command::new("debugfs").args(["-f", "-"]).arg(self.path()),
            requests,
        )
    }

    pub fn debugfs_write(&self, requests: &str) {
        run(
            Command::new("debugfs")
                .args(["-w", "-f", "-"])
                .arg(self.path()),
            requests,
        );
    }

    pub fn dumpe2fs(&self) -> String {
        run(Command::new("dumpe2fs").arg(self.path()), "")
    }
}

/// The number behind a label of dumpe2fs.
pub fn field(text: &str, label: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(label));
    let number = line.and_then(|line| line.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no number behind {label}"))
}

pub fn run(command: &mut Command, input: &str) -> String {
    let name = format!("{command:?}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{name}: {error}; install e2fsprogs"));
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(input.as_bytes()).expect("write requests");
    drop(stdin);
    let output = child.wait_with_output().expect("wait");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Small files, a long name, a directory large enough for an index, a file large enough for
/// indirect blocks, links, and what has no blocks.
fn populate(tree: &Path) {
    let directory = |name: &str| std::fs::create_dir_all(tree.join(name)).expect("a directory");
    let file = |name: &str, bytes: usize| {
        std::fs::write(tree.join(name), vec![0xA5; bytes]).expect("a file");
    };
    directory("big");
    directory("deep/er/still");
    directory("many");
    directory("small");
    file("hello", 6);
    file("empty", 0);
    file("big/preallocated", 0);
    file("big/pieces", 0);
    file("big/others", 0);
    write_sparse(&tree.join("big/sparse"));
    file("deep/er/still/here", 5000);
    file("big/indirect", 900_000);
    for n in 0..400 {
        file(
            &format!("many/a file with a rather long name, number {n}"),
            1,
        );
        file(&format!("small/{n}"), n * 20);
    }
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, tree.join(name)).expect("a symbolic link");
    };
    link("hello", "fast link");
    link(&"x".repeat(100), "slow link");
    std::fs::hard_link(tree.join("hello"), tree.join("deep/hard")).expect("a hard link");
}

/// Puts two files' blocks beside each other in turn, so that each has more extents than an inode
/// or one tree block has room for, and gives one file attributes that its inode has no room for.
fn fragmenting(kind: &str) -> String {
    let mut requests = String::new();
    for n in 0..600 {
        requests += &format!("fallocate /big/pieces {0} {0}\n", n * 2);
        requests += &format!("fallocate /big/others {0} {0}\n", n * 2);
    }
    requests += &format!("ea_set /big/sparse user.long {}\n", "v".repeat(700));
    if kind == "ext4" {
        // Fills some holes of a written file, and makes one whole file that was never written.
        requests += "fallocate /big/sparse 0 40\nfallocate /big/preallocated 0 99\n";
    }
    requests
}

/// Every second 4 KiB is a hole.
fn write_sparse(path: &Path) {
    use std::os::unix::fs::FileExt;
    let file = File::create(path).expect("a file");
    for n in 0..100 {
        file.write_all_at(&[0x5A; 4096], n * 8192).expect("write");
    }
}

/// A source that counts what is read of it.
pub struct Counting {
    file: File,
    read_bytes: std::cell::Cell<u64>,
}

impl Counting {
    pub fn over(file: File) -> Counting {
        Counting {
            file,
            read_bytes: std::cell::Cell::new(0),
        }
    }

    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }
}

impl iostep_fs::ReadAt for Counting {
    fn read_exact_at(&self, offset_bytes: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.read_bytes
            .set(self.read_bytes.get() + buffer.len() as u64);
        iostep_fs::ReadAt::read_exact_at(&self.file, offset_bytes, buffer)
    }

    fn size_bytes(&self) -> std::io::Result<u64> {
        self.file.size_bytes()
    }
}

//! One process of the workload: its files, its blocks, its sync calls, and the record of them.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::Context;
use iostep_kernel_tests::clock::{self, Moment};
use iostep_kernel_tests::facts;
use iostep_kernel_tests::stamp::{BLOCK_BYTES, Stamp};
use iostep_model::SyncKind;
use iostep_model::printable::path_text;

use crate::system;

/// A process at work.
pub struct Run {
    facts: facts::Process,
    root: PathBuf,
    facts_dir: PathBuf,
    /// The number of the first file; other processes of the same mode use it to find a shared one.
    pub first_id: u32,
    next_id: u32,
    sequence: u64,
    /// `IOSTEP_COMPRESSIBLE` asks for it.
    compressible: bool,
    /// Set to false by modes whose processes overlap.
    pub alone: bool,
}

/// An open file whose blocks are stamped.
pub struct Target {
    /// Its number in the stamps.
    pub id: u32,
    pub file: File,
    pub path: PathBuf,
}

impl Run {
    /// Names the process after the mode and starts the clocks.
    pub fn begin(mode: &str, root: &Path, facts: &Path, first_id: u32) -> anyhow::Result<Run> {
        let comm: String = format!("w-{mode}").chars().take(15).collect();
        rustix::thread::set_name(&std::ffi::CString::new(comm.as_str())?)?;
        Ok(Run {
            facts: facts::Process {
                mode: mode.to_owned(),
                pid: std::process::id(),
                comm,
                began: Moment::now(),
                bytes: 0,
                files: Vec::new(),
                syncs: Vec::new(),
            },
            root: root.to_owned(),
            facts_dir: facts.to_owned(),
            first_id,
            next_id: first_id,
            sequence: 0,
            compressible: std::env::var_os("IOSTEP_COMPRESSIBLE").is_some(),
            alone: true,
        })
    }

    /// Writes down what was done.
    pub fn end(self) -> anyhow::Result<()> {
        let name = format!("{}-{}.json", self.facts.mode, self.facts.pid);
        let path = self.facts_dir.join(name);
        let text = serde_json::to_vec_pretty(&self.facts)?;
        std::fs::write(&path, text).with_context(|| format!("{}: cannot write", path.display()))
    }

    /// The mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The mode's own directory, made if it is missing.
    pub fn dir(&self) -> io::Result<PathBuf> {
        let dir = self.root.join(self.facts.mode.trim_end_matches("-part"));
        std::fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Makes a file of the mode's directory, for reading and writing, with more `open(2)` flags.
    pub fn create(&mut self, name: impl AsRef<OsStr>, flags: i32) -> anyhow::Result<Target> {
        let path = self.dir()?.join(name.as_ref());
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options
            .custom_flags(flags)
            .open(&path)
            .with_context(|| format!("{}: cannot create", path.display()))?;
        let id = self.next_id;
        self.adopt(id, file, path)
    }

    /// Takes a file that another process of the mode has made under the number `id`.
    pub fn open(&mut self, id: u32, path: &Path) -> anyhow::Result<Target> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        self.adopt(id, file, path.to_owned())
    }

    fn adopt(&mut self, id: u32, file: File, path: PathBuf) -> anyhow::Result<Target> {
        self.next_id = self.next_id.max(id + 1);
        self.facts.files.push(facts::File {
            id,
            inode: file.metadata()?.ino(),
            generation: system::generation(&file).ok(),
            paths: vec![self.below_root(&path)],
            deleted: false,
        });
        Ok(Target { id, file, path })
    }

    fn below_root(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        format!("/{}", path_text(relative.as_os_str().as_bytes()))
    }

    /// Notes one more name of a file.
    pub fn also_named(&mut self, id: u32, path: &Path) {
        let name = self.below_root(path);
        if let Some(file) = self.facts.files.iter_mut().find(|f| f.id == id) {
            file.paths.push(name);
        }
    }

    /// Notes that a file's last name is gone.
    pub fn deleted(&mut self, id: u32) {
        if let Some(file) = self.facts.files.iter_mut().find(|f| f.id == id) {
            file.deleted = true;
        }
    }

    /// The next version of a block of a file.
    pub fn block(&mut self, id: u32, index: u64) -> [u8; BLOCK_BYTES] {
        self.sequence += 1;
        self.facts.bytes += BLOCK_BYTES as u64;
        let stamp = Stamp {
            file_id: id,
            pid: self.facts.pid,
            index,
            sequence: self.sequence,
        };
        match self.compressible {
            true => stamp.encode_compressible(),
            false => stamp.encode(),
        }
    }

    /// The next versions of neighbouring blocks, aligned for direct I/O.
    pub fn blocks(&mut self, id: u32, first: u64, count: usize) -> Aligned {
        let mut buffer = Aligned::new(count * BLOCK_BYTES);
        for (index, block) in (first..).zip(buffer.bytes_mut().chunks_exact_mut(BLOCK_BYTES)) {
            block.copy_from_slice(&self.block(id, index));
        }
        buffer
    }

    /// Writes the next version of a block with `pwrite(2)`.
    pub fn write(&mut self, target: &Target, index: u64) -> io::Result<()> {
        let block = self.block(target.id, index);
        target.file.write_all_at(&block, index * BLOCK_BYTES as u64)
    }

    /// Makes a sync call, or a write that is one, and notes it.
    pub fn sync(
        &mut self,
        kind: SyncKind,
        id: Option<u32>,
        call: impl FnOnce() -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let (enter_wall_ns, enter_ns) = (clock::coarse_wall_ns(), clock::mono_ns());
        let result = call();
        let (exit_ns, exit_wall_ns) = (clock::mono_ns(), clock::coarse_wall_ns());
        let errno = result.as_ref().err().and_then(io::Error::raw_os_error);
        self.facts.syncs.push(facts::Sync {
            kind,
            file_id: id,
            file_bytes: None,
            sequence: self.sequence,
            enter_ns,
            exit_ns,
            coarse_wall_ns: (enter_wall_ns, exit_wall_ns),
            result: errno.map_or(0, |e| -i64::from(e)),
            alone: self.alone,
        });
        if self.alone {
            clock::let_the_coarse_clock_pass();
        }
        Ok(result?)
    }

    /// `fsync(2)`.
    pub fn fsync(&mut self, target: &Target) -> anyhow::Result<()> {
        let file_bytes = target.file.metadata()?.len();
        self.sync(SyncKind::Fsync, Some(target.id), || target.file.sync_all())?;
        self.note_length(file_bytes);
        Ok(())
    }

    fn note_length(&mut self, file_bytes: u64) {
        if let Some(sync) = self.facts.syncs.last_mut() {
            sync.file_bytes = Some(file_bytes);
        }
    }

    /// `fdatasync(2)`.
    pub fn fdatasync(&mut self, target: &Target) -> anyhow::Result<()> {
        self.sync(SyncKind::Fdatasync, Some(target.id), || {
            target.file.sync_data()
        })
    }

    /// Starts another process of this mode, with file numbers of its own.
    pub fn start_part(&self, part: &str, first_id: u32) -> io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .arg("mode")
            .arg(part)
            .args([&self.root, &self.facts_dir])
            .arg(first_id.to_string())
            .spawn()
    }
}

/// Waits for processes; each must succeed.
pub fn wait_for(parts: Vec<Child>) -> anyhow::Result<()> {
    for mut part in parts {
        let status = part.wait()?;
        anyhow::ensure!(status.success(), "a part of the workload: {status}");
    }
    Ok(())
}

/// Memory that direct I/O accepts: it begins at a multiple of [`BLOCK_BYTES`].
pub struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Aligned {
        let memory = vec![0; length + BLOCK_BYTES];
        let start = memory.as_ptr().align_offset(BLOCK_BYTES);
        Aligned {
            memory,
            start,
            length,
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

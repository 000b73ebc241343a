//! What was there before the first call.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;

use iostep_model::replay::Prepared;
use iostep_model::syscall::{
    Content, InitialFile, InitialKind, OpenFlags, PathId, Recording, kept,
};
use rustix::fs::{Advice, AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::Watch;
use super::root::{RecordedPath, Root, permissions};
use super::transfer::Buffer;
use crate::error::{Error, Result};

/// Bytes written at once.
const PIECE_BYTES: u64 = 1 << 20;
/// Permissions of a file of which they are not known.
const DEFAULT_MODE: u32 = 0o644;
/// Space that is left free.
const SPARE_BYTES: u64 = 1 << 20;

/// Makes the initial state; durable, and not in the page cache.
pub(super) fn make(
    recording: &Recording,
    root: &Root,
    kept_data: Option<&Path>,
    watch: &Watch,
) -> Result<Prepared> {
    check_space(recording, root)?;
    let mut maker = Maker {
        recording,
        root,
        kept_data,
        watch,
        buffer: Buffer::new(PIECE_BYTES, u64::MAX),
        prepared: Prepared::default(),
    };
    let of_kind = |wanted: fn(&InitialKind) -> bool| {
        recording
            .initial
            .iter()
            .filter(move |file| wanted(&file.kind))
    };
    for file in of_kind(|kind| *kind == InitialKind::Directory) {
        maker.directories(file.path, true)?;
    }
    for file in of_kind(|kind| matches!(kind, InitialKind::File { .. })) {
        maker.file(file)?;
    }
    for file in of_kind(|kind| {
        use InitialKind as K;
        matches!(kind, K::Fifo | K::Socket | K::Device)
    }) {
        maker.other(file)?;
    }
    // Links come when what they may name is there.
    for file in of_kind(|kind| matches!(kind, InitialKind::Symlink { .. })) {
        maker.symbolic_link(file)?;
    }
    for file in of_kind(|kind| matches!(kind, InitialKind::HardLink { .. })) {
        maker.hard_link(file)?;
    }
    let synced = root.sync();
    synced.map_err(|errno| Error::io(root.name(), "sync")(errno.into()))?;
    maker.drop_caches();
    Ok(maker.prepared)
}

fn check_space(recording: &Recording, root: &Root) -> Result<()> {
    let data = recording.initial.iter().map(|file| match &file.kind {
        InitialKind::File { size, content } => match content {
            Content::Hole => 0,
            Content::Sparse(data) => *data.min(size),
            Content::Data | Content::Kept(_) => *size,
        },
        _ => 0,
    });
    let wanted = data.fold(SPARE_BYTES, u64::saturating_add);
    let free = root.free_bytes();
    let free = free.map_err(|errno| Error::io(root.name(), "look at")(errno.into()))?;
    if wanted <= free {
        return Ok(());
    }
    Err(Error::Refused {
        what: format!(
            "{}: the recording's files take {wanted} bytes, {free} are free",
            root.name().display()
        ),
        hint: "choose a larger filesystem with --to".into(),
    })
}

struct Maker<'a> {
    recording: &'a Recording,
    root: &'a Root,
    kept_data: Option<&'a Path>,
    watch: &'a Watch,
    buffer: Buffer,
    prepared: Prepared,
}

impl Maker<'_> {
    /// Makes a path's directories, its last name too if it is one itself.
    fn directories(&mut self, path: PathId, itself: bool) -> Result<()> {
        let bytes = self.recording.paths.get(path);
        let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut ends: Vec<usize> = slashes.map(|(at, _)| at).filter(|at| *at > 0).collect();
        if itself {
            ends.push(bytes.len());
        }
        for end in ends {
            let Some(place) = RecordedPath::new(&bytes[..end]) else {
                continue;
            };
            let made = self.root.parent(&place).and_then(|(directory, name)| {
                rustix::fs::mkdirat(&directory, name, Mode::from_bits_truncate(0o755))
            });
            match made {
                Ok(()) => self.prepared.directories += 1,
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(self.failed(&bytes[..end], "make the directory", errno)),
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &InitialFile) -> Result<()> {
        let InitialKind::File { size, content } = &file.kind else {
            return Ok(());
        };
        self.directories(file.path, false)?;
        let path = self.recording.paths.get(file.path);
        let place = self.place(file.path)?;
        let flags = OpenFlags::O_WRONLY
            .with(OpenFlags::O_CREAT)
            .with(OpenFlags::O_EXCL);
        // Whoever replays may read and write it.
        let mode = file.mode.unwrap_or(DEFAULT_MODE) | 0o600;
        let opened = match self.root.open_file(&place.whole, flags, mode) {
            // The same file by two spellings of its path.
            Err(Errno::EXIST) => return Ok(()),
            Err(errno) => return Err(self.failed(path, "make the file", errno)),
            Ok(opened) => opened,
        };
        let mut opened = File::from(opened);
        match content {
            Content::Hole => opened.set_len(*size),
            Content::Sparse(data) => self
                .fill(&mut opened, *data.min(size))
                .and_then(|()| opened.set_len(*size)),
            Content::Data => self.fill(&mut opened, *size),
            Content::Kept(number) => self.copy_kept(&mut opened, *number, *size),
        }
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => Error::Interrupted,
            _ => Error::Io {
                path: String::from_utf8_lossy(path).into_owned().into(),
                what: "make the file".into(),
                reason: error.to_string(),
            },
        })?;
        if file.mode.is_some() {
            // The umask took some away.
            let set = rustix::fs::fchmod(&opened, permissions(mode));
            set.map_err(|errno| self.failed(path, "set the permissions of the file", errno))?;
        }
        self.prepared.files += 1;
        Ok(())
    }

    /// A FIFO or a socket. An empty file stands for a device, of which a replay makes none.
    fn other(&mut self, file: &InitialFile) -> Result<()> {
        self.directories(file.path, false)?;
        let path = self.recording.paths.get(file.path);
        let kind = match file.kind {
            InitialKind::Fifo => FileType::Fifo,
            InitialKind::Socket => FileType::Socket,
            _ => FileType::RegularFile,
        };
        let made = self
            .root
            .parent(&self.place(file.path)?)
            .and_then(|(directory, name)| {
                rustix::fs::mknodat(&directory, name, kind, permissions(DEFAULT_MODE), 0)
            });
        match made {
            Ok(()) => self.prepared.files += 1,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed(path, "make what is no file", errno)),
        }
        Ok(())
    }

    fn fill(&mut self, file: &mut File, size: u64) -> std::io::Result<()> {
        let mut rest = size;
        while rest > 0 {
            let piece = rest.min(PIECE_BYTES);
            file.write_all(&self.buffer.source()[..piece as usize])?;
            rest -= piece;
            self.wrote(piece)?;
        }
        Ok(())
    }

    fn wrote(&mut self, bytes: u64) -> std::io::Result<()> {
        self.prepared.bytes += bytes;
        self.watch
            .prepared_bytes
            .fetch_add(bytes, Ordering::Relaxed);
        if self.watch.interrupted.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        Ok(())
    }

    /// Content that was recorded; incompressible bytes behind its end, if it is shorter.
    fn copy_kept(&mut self, file: &mut File, number: u32, size: u64) -> std::io::Result<()> {
        let directory = self.kept_data.ok_or_else(|| {
            std::io::Error::other("its content is not beside the recording (NAME.data)")
        })?;
        let kept = kept::open(directory, number).map_err(std::io::Error::other)?;
        let mut kept = kept.take(size);
        let mut piece = vec![0; PIECE_BYTES as usize];
        loop {
            let read = kept.read(&mut piece)?;
            if read == 0 {
                break;
            }
            file.write_all(&piece[..read])?;
            self.wrote(read as u64)?;
        }
        self.fill(file, kept.limit())
    }

    fn symbolic_link(&mut self, file: &InitialFile) -> Result<()> {
        let InitialKind::Symlink { content } = file.kind else {
            return Ok(());
        };
        self.directories(file.path, false)?;
        let path = self.recording.paths.get(file.path);
        let content = self.recording.paths.get(content);
        let made = self
            .root
            .parent(&self.place(file.path)?)
            .and_then(|(directory, name)| rustix::fs::symlinkat(content, &directory, name));
        self.linked(path, made)
    }

    fn hard_link(&mut self, file: &InitialFile) -> Result<()> {
        let InitialKind::HardLink { of } = file.kind else {
            return Ok(());
        };
        self.directories(file.path, false)?;
        let path = self.recording.paths.get(file.path);
        let (of, to) = (self.place(of)?, self.place(file.path)?);
        let made = self.root.parent(&of).and_then(|(from, old)| {
            let (to, new) = self.root.parent(&to)?;
            rustix::fs::linkat(&from, old, &to, new, AtFlags::empty())
        });
        self.linked(path, made)
    }

    fn linked(&mut self, path: &[u8], made: std::result::Result<(), Errno>) -> Result<()> {
        match made {
            Ok(()) => self.prepared.links += 1,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(self.failed(path, "make the link", errno)),
        }
        Ok(())
    }

    fn place(&self, path: PathId) -> Result<RecordedPath> {
        let bytes = self.recording.paths.get(path);
        RecordedPath::new(bytes).ok_or_else(|| self.failed(bytes, "use the path", Errno::INVAL))
    }

    /// A replay begins with nothing in the page cache.
    fn drop_caches(&self) {
        for file in &self.recording.initial {
            if !matches!(file.kind, InitialKind::File { .. }) {
                continue;
            }
            let Some(place) = RecordedPath::new(self.recording.paths.get(file.path)) else {
                continue;
            };
            if let Ok(opened) = self.root.open_file(&place.whole, OpenFlags::NONE, 0) {
                let _ = rustix::fs::fadvise(opened.as_fd(), 0, None, Advice::DontNeed);
            }
        }
    }

    fn failed(&self, path: &[u8], what: &str, errno: Errno) -> Error {
        Error::Io {
            path: String::from_utf8_lossy(path).into_owned().into(),
            what: what.into(),
            reason: format!(
                "{} (in {})",
                std::io::Error::from(errno),
                self.root.name().display()
            ),
        }
    }
}

//! From a stopped thread to a record: what the BPF recorder's programs do in the kernel.
//!
//! Arguments are read as the call begins, since it may change or unmap them; only what it answers
//! is read as it ends. So a file that an open makes or cuts is looked at before.

use std::fs;
use std::mem::offset_of;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use iostep_model::syscall::Syscall;
use iostep_model::syscall::constants::FICLONERANGE;

use super::tracee::{self, Call};
use crate::syscalls::aio;
use crate::syscalls::file_data::FileData;
use crate::syscalls::received;
use crate::syscalls::record::{self, Record, TEXT_BYTES};
use crate::syscalls::table::{self, Entry, Layout, Shape};

/// Strings are read up to the end of a page: the next one may not be there. No Linux has smaller
/// ones.
const PAGE_BYTES: u64 = 4096;
/// `UIO_MAXIOV` (include/uapi/linux/uio.h): the kernel refuses more.
const MAX_VECTORS: u64 = 1024;
const VECTOR_BYTES: usize = 16;
/// As bpf/aio.bpf.h has it.
const MAX_SUBMITTED: u64 = 4096;
/// `struct iocb` and `struct io_event` (include/uapi/linux/aio_abi.h), and its commands with vectors.
const IOCB_BYTES: usize = 64;
const EVENT_BYTES: u64 = 32;
const IOCB_CMD_PREADV: u64 = 7;
const IOCB_CMD_PWRITEV: u64 = 8;
/// The argument of statx that it fills.
const STATX_ARGUMENT: usize = 4;
/// `STATX_BASIC_STATS` (include/uapi/linux/stat.h).
const BASIC_STATS: u64 = 0x7ff;
/// Room for `SCM_MAX_FD` (include/net/scm.h) descriptors and other messages.
const MAX_CONTROL_BYTES: usize = 4096;
/// `FMODE_CREATED` (include/linux/fs.h), by which a record says that an open made its file.
const CREATED: u64 = 1 << 20;

/// A call under way.
#[derive(Debug)]
pub(super) struct Begun {
    /// `CLOCK_MONOTONIC` in nanoseconds when the thread went on into the kernel.
    pub(super) start_ns: u64,
    /// As in a record.
    pub(super) number: u16,
    /// Told by a note already.
    pub(super) told: bool,
    entry: Option<&'static Entry>,
    word: [u64; 10],
    text: [Vec<u8>; 2],
    flags: u8,
    before: Before,
    /// The clone's flags, where they were changed for the call.
    flags_before: Option<u64>,
    /// Requests that io_submit hands in.
    submitted: Vec<[u64; 6]>,
}

/// What was at a path before an open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nobody looked: the open changes nothing.
    Unknown,
    /// Nothing.
    Absent,
    /// Something of this size, bytes.
    Size(u64),
}

impl Begun {
    /// A call of another calling convention, or one that changes the thread's name: no arguments.
    pub(super) fn plain(number: u16) -> Begun {
        Begun {
            start_ns: 0,
            number,
            told: false,
            entry: None,
            word: [0; 10],
            text: Default::default(),
            flags: 0,
            before: Before::Unknown,
            flags_before: None,
            submitted: Vec::new(),
        }
    }

    /// True for clone and its kin.
    pub(super) fn is_fork(&self) -> bool {
        self.entry.is_some_and(|entry| entry.shape == Shape::Fork)
    }

    /// The descriptors that a call which returned `result` got from another process; none if it is
    /// no such call.
    pub(super) fn received(&self, tid: u32, result: i64) -> Option<Vec<i32>> {
        let worked = result >= 0;
        match self.entry?.shape {
            Shape::Receive if worked => Some(self.in_messages(tid)),
            Shape::Take if worked => Some(vec![result as i32]),
            Shape::Receive | Shape::Take => Some(Vec::new()),
            _ => None,
        }
    }

    /// What came with a message: `struct msghdr`, in which the kernel has put the length of all
    /// control messages.
    fn in_messages(&self, tid: u32) -> Vec<i32> {
        let field = |at| word(tid, self.word[1].wrapping_add(at)).unwrap_or(0);
        let length = usize::try_from(field(40)).unwrap_or(usize::MAX);
        let mut control = vec![0; length.min(MAX_CONTROL_BYTES)];
        let read = tracee::read(tid, field(32), &mut control);
        received::descriptors(&control[..read])
    }

    /// Requests of io_submit (`struct iocb`, include/uapi/linux/aio_abi.h).
    fn read_requests(&mut self, tid: u32) {
        for index in 0..self.word[1].min(MAX_SUBMITTED) {
            let Some(address) = word(tid, self.word[2].wrapping_add(8 * index)) else {
                break;
            };
            let mut request = [0; IOCB_BYTES];
            if tracee::read(tid, address, &mut request) < IOCB_BYTES {
                self.submitted.push([aio::LOST, 0, 0, 0, address, 0]);
                continue;
            }
            let field = |at: usize| from_bytes(&request[at..at + 8]);
            let (rw_flags, command) = (field(8) >> 32, field(16) & 0xffff);
            let (descriptor, bytes, offset) = (field(16) >> 32, field(32), field(40));
            let (mut size, mut buffers) = (bytes, 1);
            if matches!(command, IOCB_CMD_PREADV | IOCB_CMD_PWRITEV) {
                buffers = bytes & u64::from(u32::MAX);
                size = sum_of_vectors(tid, field(24), bytes).unwrap_or(0);
            }
            let more = buffers | rw_flags << 32;
            let request = [command, descriptor, offset, size, address, more];
            self.submitted.push(request);
        }
    }

    /// The records of requests that were handed in.
    pub(super) fn submitted(&self, tid: u32, mut each: impl FnMut(&Record<'_>)) {
        for request in &self.submitted {
            let mut word = [0; 10];
            word[..6].copy_from_slice(request);
            each(&Record {
                start_ns: self.start_ns,
                duration_ns: 0,
                result: 0,
                tid,
                number: record::SUBMITTED,
                flags: 0,
                word,
                text: [b""; 2],
            });
        }
    }

    /// Context, address and result of each request that io_getevents told the end of; none if the
    /// call is another.
    pub(super) fn completed(&self, tid: u32, result: i64) -> Option<Vec<[u64; 3]>> {
        self.entry.filter(|entry| entry.shape == Shape::Complete)?;
        let count = u64::try_from(result).unwrap_or(0).min(MAX_SUBMITTED);
        let events = (0..count).map_while(|index| {
            let at = self.word[3].wrapping_add(EVENT_BYTES * index);
            let request = word(tid, at.wrapping_add(8))?;
            Some([self.word[0], request, word(tid, at.wrapping_add(16))?])
        });
        Some(events.collect())
    }

    /// The flags of clone, clone3, fork or vfork (include/uapi/linux/sched.h).
    pub(super) fn clone_flags(&self, tid: u32) -> u64 {
        match i64::from(self.number) {
            libc::SYS_clone => self.word[0],
            libc::SYS_clone3 => word(tid, self.word[0]).unwrap_or(0),
            _ => 0,
        }
    }

    /// Takes away that a clone asks for an untraced child (`CLONE_UNTRACED`), for the call's time.
    pub(super) fn trace_child(&mut self, tid: u32) {
        if !self.is_fork() {
            return;
        }
        let flags = self.clone_flags(tid);
        let untraced = libc::CLONE_UNTRACED as u64;
        if flags & untraced != 0 && self.set_clone_flags(tid, flags & !untraced) {
            self.flags_before = Some(flags);
        }
    }

    /// Gives the program back what [`Begun::trace_child`] took.
    pub(super) fn restore(&self, tid: u32) {
        if let Some(flags) = self.flags_before {
            self.set_clone_flags(tid, flags);
        }
    }

    fn set_clone_flags(&self, tid: u32, flags: u64) -> bool {
        let set = match i64::from(self.number) {
            libc::SYS_clone3 => tracee::set_word(tid, self.word[0], flags),
            // There the first argument's register is that of the result, which is there already.
            libc::SYS_clone if cfg!(target_arch = "aarch64") && self.flags_before.is_some() => {
                return true;
            }
            libc::SYS_clone => tracee::set_first_argument(tid, flags),
            _ => return false,
        };
        set.is_ok()
    }

    /// The record of a call that returned `result`.
    pub(super) fn ended(self, tid: u32, end_ns: u64, result: i64, each: impl FnOnce(&Record<'_>)) {
        self.record(tid, end_ns, result, 0, each);
    }

    /// The record of a call that never returned.
    pub(super) fn unfinished(self, tid: u32, end_ns: u64, each: impl FnOnce(&Record<'_>)) {
        self.record(tid, end_ns, -1, record::UNFINISHED, each);
    }

    fn record(
        &self,
        tid: u32,
        end_ns: u64,
        result: i64,
        flags: u8,
        each: impl FnOnce(&Record<'_>),
    ) {
        each(&Record {
            start_ns: self.start_ns,
            duration_ns: end_ns.saturating_sub(self.start_ns),
            result,
            tid,
            number: self.number,
            flags: self.flags | flags,
            word: self.word,
            text: [&self.text[0], &self.text[1]],
        });
    }

    fn lost(&mut self, flag: u8) {
        self.flags |= flag;
    }

    /// What bpf/wire.h has in the extra words, as far as the program passes it.
    fn read_arguments(&mut self, tid: u32, layout: Layout) {
        let ([first, second], extra) = (layout.texts, layout.extra);
        let texts = [(first, record::TEXT_1_LOST), (second, record::TEXT_2_LOST)];
        let passed = match extra {
            table::ANSWERED | table::STAT => 1,
            _ => 2,
        };
        for (index, (argument, lost)) in texts.into_iter().enumerate().take(passed) {
            let Some(address) = argument.map(|argument| self.word[argument as usize]) else {
                continue;
            };
            if address != 0 && !text(tid, address, &mut self.text[index]) {
                self.lost(lost);
            }
        }
        match extra {
            table::VECTORS => self.sum_vectors(tid),
            table::LOCK => self.read_lock(tid),
            table::SUBMITTED => self.read_requests(tid),
            table::CLONE_RANGE if self.word[1] as u32 == FICLONERANGE => {
                for part in 0..4 {
                    match word(tid, self.word[2].wrapping_add(8 * part)) {
                        Some(value) => self.word[6 + part as usize] = value,
                        None => self.lost(record::EXTRA_LOST),
                    }
                }
            }
            table::OPEN_HOW => {
                let address = self.word[2];
                let how = [address, address.wrapping_add(8)].map(|at| word(tid, at));
                match how {
                    [Some(flags), Some(mode)] => [self.word[2], self.word[3]] = [flags, mode],
                    _ => self.lost(record::EXTRA_LOST),
                }
            }
            _ => {}
        }
    }

    fn sum_vectors(&mut self, tid: u32) {
        match sum_of_vectors(tid, self.word[1], self.word[2]) {
            Some(sum) => self.word[6] = sum,
            None => self.lost(record::EXTRA_LOST),
        }
    }

    /// `struct flock`, and what its origin is now (include/uapi/asm-generic/fcntl.h).
    fn read_lock(&mut self, tid: u32) {
        if !matches!(self.word[1], 5..=7 | 36..=38) {
            return;
        }
        let mut bytes = [0; 24];
        if tracee::read(tid, self.word[2], &mut bytes) < bytes.len() {
            self.lost(record::EXTRA_LOST);
            return;
        }
        let kind = from_bytes(&bytes[..8]) & 0xffff_ffff;
        self.word[6..9].copy_from_slice(&[
            kind,
            from_bytes(&bytes[8..16]),
            from_bytes(&bytes[16..]),
        ]);
        let link = descriptor(tid, self.word[0]);
        self.word[9] = match (kind >> 16) as u32 as i32 {
            libc::SEEK_CUR => position(tid, self.word[0]),
            libc::SEEK_END => fs::metadata(link).map_or(0, |file| file.size()),
            _ => 0,
        };
    }

    /// What the call answered in memory, and which file it opened.
    pub(super) fn read_answer(&mut self, tid: u32, result: i64, data: Option<&mut FileData>) {
        let Some(layout) = self.entry.map(|entry| entry.layout) else {
            return;
        };
        let mut read = |index: usize, argument: usize| {
            let address = self.word[argument];
            match word(tid, address) {
                Some(value) => self.word[index] = value,
                None if address != 0 => self.flags |= record::EXTRA_LOST,
                None => {}
            }
        };
        match layout.extra {
            table::PAIR_AT_0 if result >= 0 => read(6, 0),
            table::PAIR_AT_3 if result >= 0 => read(6, 3),
            table::OFFSETS => {
                read(6, 1);
                read(7, 3);
            }
            table::OFFSET_AT_2 => read(6, 2),
            table::ANSWERED => self.read_answered(tid, layout, result),
            table::STAT if result >= 0 => self.read_stat(tid, layout),
            table::OPENED | table::OPEN_HOW if result >= 0 => {
                self.see(tid, result as u64, data);
            }
            _ => {}
        }
    }

    /// A text that the call wrote, as long as its result says.
    fn read_answered(&mut self, tid: u32, layout: Layout, result: i64) {
        let (Some(argument), Ok(length)) = (layout.texts[1], usize::try_from(result)) else {
            return;
        };
        let mut text = vec![0; length.min(TEXT_BYTES)];
        if tracee::read(tid, self.word[argument as usize], &mut text) == text.len() {
            self.text[1] = text;
        } else {
            self.lost(record::TEXT_2_LOST);
        }
    }

    /// What the stat family answered.
    fn read_stat(&mut self, tid: u32, layout: Layout) {
        let Some(argument) = layout.texts[1].map(|argument| argument as usize) else {
            return;
        };
        let mut bytes = [0; size_of::<libc::statx>()];
        let extended = argument == STATX_ARGUMENT;
        let length = match extended {
            true => bytes.len(),
            false => size_of::<libc::stat>(),
        };
        if tracee::read(tid, self.word[argument], &mut bytes[..length]) < length {
            return;
        }
        let number = |at: usize, length: usize| {
            let mut number = [0; 8];
            number[..length].copy_from_slice(&bytes[at..at + length]);
            u64::from_le_bytes(number)
        };
        macro_rules! field {
            ($of:ident $field:ident $type:ty) => {
                number(offset_of!(libc::$of, $field), size_of::<$type>())
            };
        }
        let [names, device, mode, inode, size, blocks] = match extended {
            true if field!(statx stx_mask u32) & BASIC_STATS != BASIC_STATS => return,
            true => {
                let major = field!(statx stx_dev_major u32) as u32;
                let minor = field!(statx stx_dev_minor u32) as u32;
                [
                    field!(statx stx_nlink u32),
                    rustix::fs::makedev(major, minor),
                    field!(statx stx_mode u16),
                    field!(statx stx_ino u64),
                    field!(statx stx_size u64),
                    field!(statx stx_blocks u64),
                ]
            }
            false => [
                field!(stat st_nlink libc::nlink_t),
                field!(stat st_dev u64),
                field!(stat st_mode u32),
                field!(stat st_ino u64),
                field!(stat st_size u64),
                field!(stat st_blocks u64),
            ],
        };
        self.flags |= record::SEEN;
        let device_and_mode = mode << 32 | device & u64::from(u32::MAX);
        self.word[5..].copy_from_slice(&[names, device_and_mode, inode, size, blocks]);
    }

    /// The file of a descriptor that the call gave.
    fn see(&mut self, tid: u32, number: u64, data: Option<&mut FileData>) {
        let link = descriptor(tid, number);
        let (Ok(file), Ok(filesystem)) = (fs::metadata(&link), rustix::fs::statfs(&link)) else {
            return;
        };
        let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        // The kernel's own numbering: MKDEV of include/linux/kdev_t.h.
        let device = u64::from(major << 20 | minor & 0xf_ffff);
        let (size, created) = match self.before {
            Before::Unknown => (file.size(), 0),
            Before::Absent => (0, CREATED),
            Before::Size(size) => (size, 0),
        };
        if let (Some(data), Before::Absent) = (data, self.before) {
            data.made(&file);
        }
        self.flags |= record::SEEN;
        let filesystem = u64::from(filesystem.f_type as u32);
        // Which open file it is, is not known.
        self.word[5] = 0;
        self.word[6..].copy_from_slice(&[
            u64::from(file.mode()) << 32 | device,
            file.ino(),
            size,
            created << 32 | filesystem,
        ]);
    }

    /// Looks at the file that an open may make or cut; at every file if its data is kept.
    fn look_before(&mut self, tid: u32, shape: Shape, data: Option<&mut FileData>) {
        let flags = match shape {
            Shape::Call(Syscall::Open) => self.word[1],
            Shape::Call(Syscall::Openat | Syscall::Openat2) => self.word[2],
            Shape::Call(Syscall::Creat) => libc::O_CREAT as u64,
            _ => return,
        };
        let has = |flag: libc::c_int| flags & flag as u64 == flag as u64;
        let changes = has(libc::O_CREAT) || has(libc::O_TRUNC);
        if self.text[0].is_empty() || has(libc::O_PATH) || !(changes || data.is_some()) {
            return;
        }
        if has(libc::O_TMPFILE) {
            // The path is that of the directory.
            self.before = Before::Absent;
            return;
        }
        let directory = match shape {
            Shape::Call(Syscall::Openat | Syscall::Openat2) => self.word[0] as u32 as i32,
            _ => libc::AT_FDCWD,
        };
        let path = path_of(tid, directory, &self.text[0]);
        let found = match has(libc::O_NOFOLLOW) {
            false => fs::metadata(&path),
            true => fs::symlink_metadata(&path),
        };
        if let (Some(data), Ok(found)) = (data, &found) {
            data.keep(&path, found);
        }
        if !changes {
            return;
        }
        self.before = match found {
            Ok(file) => Before::Size(file.size()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Before::Absent,
            Err(_) => Before::Unknown,
        };
    }
}

/// What of a call is to be recorded, read from a thread that is about to make it. None: nothing.
pub(super) fn begin(tid: u32, call: &Call, data: Option<&mut FileData>) -> Option<Begun> {
    let number = u16::try_from(call.number).ok()?;
    let entry = table::by_number(number)?;
    if entry.layout.extra == table::MAPPED && call.arguments[3] & libc::MAP_ANONYMOUS as u64 != 0 {
        return None;
    }
    let mut begun = Begun {
        entry: Some(entry),
        ..Begun::plain(number)
    };
    begun.word[..6].copy_from_slice(&call.arguments);
    begun.read_arguments(tid, entry.layout);
    begun.look_before(tid, entry.shape, data);
    Some(begun)
}

/// A thread's name in two words, as a record has it.
pub(super) fn name(tid: u32) -> [u64; 2] {
    let name = fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
    let mut bytes = [0; 16];
    // Longer than TASK_COMM_LEN is no name of a thread.
    for (to, from) in bytes
        .iter_mut()
        .zip(name.iter().take_while(|byte| **byte != b'\n'))
    {
        *to = *from;
    }
    [from_bytes(&bytes[..8]), from_bytes(&bytes[8..])]
}

/// Where a thread finds a path. An absolute symbolic link leads out of a changed root here.
fn path_of(tid: u32, directory: i32, text: &[u8]) -> PathBuf {
    let text = Path::new(OsStr::from_bytes(text));
    if let Some(own) = of_itself(tid, text) {
        return own;
    }
    let base = match (text.strip_prefix("/"), directory) {
        (Ok(below), _) => return PathBuf::from(format!("/proc/{tid}/root")).join(below),
        (Err(_), libc::AT_FDCWD) => PathBuf::from(format!("/proc/{tid}/cwd")),
        (Err(_), number) => PathBuf::from(format!("/proc/{tid}/fd/{number}")),
    };
    base.join(text)
}

/// What /proc says of the thread that asks: here the recorder would be that.
fn of_itself(tid: u32, text: &Path) -> Option<PathBuf> {
    const OTHER_NAMES: [(&str, &str); 6] = [
        ("/proc/thread-self", ""),
        ("/proc/self", ""),
        ("/dev/fd", "fd"),
        ("/dev/stdin", "fd/0"),
        ("/dev/stdout", "fd/1"),
        ("/dev/stderr", "fd/2"),
    ];
    let mut names = OTHER_NAMES.iter();
    names.find_map(|(name, is)| {
        let below = text.strip_prefix(name).ok()?;
        let own = Path::new("/proc").join(tid.to_string()).join(is);
        Some(match below.as_os_str().is_empty() {
            true => own,
            false => own.join(below),
        })
    })
}

fn descriptor(tid: u32, number: u64) -> PathBuf {
    PathBuf::from(format!("/proc/{tid}/fd/{}", number as u32 as i32))
}

fn position(tid: u32, number: u64) -> u64 {
    let info = fs::read_to_string(format!("/proc/{tid}/fdinfo/{}", number as u32 as i32));
    let info = info.unwrap_or_default();
    let position = info.lines().find_map(|line| line.strip_prefix("pos:"));
    position
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(0)
}

/// Puts a string into `bytes`, without its NUL, and no more than a record takes of it. False if it
/// could not be read.
fn text(tid: u32, address: u64, bytes: &mut Vec<u8>) -> bool {
    let mut chunk = [0; PAGE_BYTES as usize];
    while bytes.len() < TEXT_BYTES {
        let at = address.wrapping_add(bytes.len() as u64);
        let wanted = (PAGE_BYTES - at % PAGE_BYTES).min((TEXT_BYTES - bytes.len()) as u64) as usize;
        let read = tracee::read(tid, at, &mut chunk[..wanted]);
        let end = chunk[..read].iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&chunk[..end.unwrap_or(read)]);
        if end.is_some() {
            return true;
        }
        if read < wanted {
            return false;
        }
    }
    true
}

/// The lengths of so many `struct iovec`.
fn sum_of_vectors(tid: u32, address: u64, count: u64) -> Option<u64> {
    let mut bytes = vec![0; count.min(MAX_VECTORS) as usize * VECTOR_BYTES];
    if tracee::read(tid, address, &mut bytes) < bytes.len() {
        return None;
    }
    let vectors = bytes.chunks_exact(VECTOR_BYTES);
    let lengths = vectors.map(|vector| from_bytes(&vector[8..]));
    Some(lengths.fold(0, u64::wrapping_add))
}

fn word(tid: u32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    let whole = address != 0 && tracee::read(tid, address, &mut bytes) == bytes.len();
    whole.then(|| u64::from_ne_bytes(bytes))
}

/// Eight bytes.
fn from_bytes(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

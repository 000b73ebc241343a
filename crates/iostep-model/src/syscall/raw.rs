//! System calls as a recorder or a foreign trace sees them, before descriptors and paths are
//! followed.
//!
//! Whoever makes these knows nothing of files: it says what the call's arguments were. Events of
//! one source come in the order in which the calls *ended*; the tracker of `iostep-calls` needs no
//! more, since a descriptor exists when the call that made it has returned.
//!
//! Every event is counted once in the ledger but for notes, which stand for no line or call of the
//! source: [`Action::Name`], [`Action::LinkSays`], [`Action::Tells`], [`Action::KnownAs`],
//! [`Action::Renumbered`], and an [`Action::Clone`] with an empty name, which says that a thread
//! belongs to a process.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::operation::Operation;
use super::recording::{Content, Errno};
use super::{OpenFlags, Syscall};

/// `AT_FDCWD` (include/uapi/linux/fcntl.h).
pub const CURRENT_DIRECTORY: i32 = -100;

/// A thing that a thread did.
#[derive(Clone, Debug)]
pub struct Event<'a> {
    /// The thread's number on the recorded machine.
    pub tid: u32,
    /// When the call began, since the recording's start.
    pub start_ns: u64,
    /// How long it took; none where the source does not say or it never returned.
    pub duration_ns: Option<u64>,
    /// What it asked for.
    pub action: Action<'a>,
    /// How it ended.
    pub returned: Returned,
    /// What the recorder saw of the file itself, apart from the call.
    pub seen: Option<Seen>,
}

/// What a call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// A number, 0 or more; a descriptor where the call makes one, an address for mmap.
    Value(u64),
    /// An error.
    Failed(Errno),
    /// It never returned.
    Unfinished,
    /// The source does not say (MobiGen's scripts).
    Unknown,
}

/// What is known of the file of a call, as it was before it: by a recorder with a look into the
/// kernel, or because the call is one that asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Device and inode: the identity by which hard links are found. None if the source does not say.
    pub identity: Option<(u64, u64)>,
    /// How many names it has, if that is told.
    #[serde(default)]
    pub names: Option<u64>,
    /// What it was; `Absent` if the call made it.
    pub kind: SeenKind,
    /// Its permissions, where they are told.
    #[serde(default)]
    pub mode: Option<u32>,
    /// What tells open files apart while they are open; 0 if that is not known.
    pub open_file: u64,
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeenKind {
    /// Nothing was there.
    Absent,
    /// Something, of a type that is not told.
    Something,
    /// A regular file.
    File {
        /// Bytes, if told.
        size: Option<u64>,
        /// What it held.
        content: Content,
    },
    Directory,
    /// A symbolic link, whose words are not told.
    Symlink {
        /// How long they are.
        bytes: u64,
    },
    Fifo,
    Socket,
    /// A character or block device.
    Device,
}

impl SeenKind {
    /// What `st_mode`, `st_size` and `st_blocks` of stat(2) say; each is none if it is not told.
    pub fn of_stat(mode: u32, size: Option<u64>, blocks: Option<u64>) -> SeenKind {
        match mode & libc::S_IFMT {
            libc::S_IFREG => SeenKind::File {
                size,
                content: match (size, blocks) {
                    (Some(size), Some(blocks)) => Content::in_blocks(size, blocks),
                    _ => Content::Data,
                },
            },
            libc::S_IFDIR => SeenKind::Directory,
            libc::S_IFLNK => SeenKind::Symlink {
                bytes: size.unwrap_or(0),
            },
            libc::S_IFIFO => SeenKind::Fifo,
            libc::S_IFSOCK => SeenKind::Socket,
            libc::S_IFCHR | libc::S_IFBLK => SeenKind::Device,
            _ => SeenKind::Something,
        }
    }
}

/// A descriptor of the calling process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor<'a> {
    pub number: i32,
    /// What it is, where the source says so beside the number (strace -y, a look into /proc).
    pub known: Option<Known<'a>>,
}

impl Descriptor<'_> {
    /// A number about which the source says nothing more.
    pub fn number(number: i32) -> Descriptor<'static> {
        Descriptor {
            number,
            known: None,
        }
    }
}

/// What a descriptor points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    pub kind: DescriptorKind,
    /// Its path, where it has one.
    pub path: Option<Cow<'a, [u8]>>,
}

/// What a descriptor can point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DescriptorKind {
    /// A regular file.
    File,
    Directory,
    /// A file whose type the source does not tell.
    SomeFile,
    /// A pipe or FIFO.
    Pipe,
    Socket,
    /// A character or block device, terminals included.
    Device,
    /// eventfd, epoll, timerfd, signalfd, inotify, pidfd and the like.
    Event,
    /// memfd, and files of ashmem.
    Memory,
    /// An io_uring.
    Uring,
    /// A file of /proc, /sys or another filesystem without data.
    Kernel,
}

impl DescriptorKind {
    /// True for what a recording keeps.
    pub fn is_kept(self) -> bool {
        use DescriptorKind as K;
        matches!(self, K::File | K::Directory | K::SomeFile)
    }
}

/// A path as the program wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path<'a> {
    /// The directory that a relative path starts at; none: the current one. One with the number
    /// [`CURRENT_DIRECTORY`] says where that is.
    pub directory: Option<Descriptor<'a>>,
    /// The bytes, unescaped. Empty with `AT_EMPTY_PATH`: the directory's own file.
    pub text: Cow<'a, [u8]>,
    /// The source cut it off.
    pub truncated: bool,
}

/// A request of io_submit (`struct iocb`, include/uapi/linux/aio_abi.h).
#[derive(Clone, Debug)]
pub struct AioRequest<'a> {
    pub key: AioKey,
    /// What it asks for, or why it is left out.
    pub what: Result<(Syscall, Operation<Descriptor<'a>, Path<'a>>), &'static str>,
}

/// What tells requests of io_submit apart while they are under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AioKey {
    /// The address of its `struct iocb`; 0 where the source does not say it.
    pub address: u64,
    /// The program's own word, which need not tell them apart.
    pub data: u64,
}

/// The end of a request of io_submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AioEnd {
    pub key: AioKey,
    /// As a call returns it: a negative error number if it failed.
    pub result: i64,
}

impl AioRequest<'_> {
    /// What a command (`IOCB_CMD_`) asks of a file. `size`: bytes of all buffers.
    pub fn of(
        command: u32,
        handle: Descriptor<'_>,
        (offset, size, buffers, flags): (i64, u64, u32, u32),
    ) -> Option<(Syscall, Operation<Descriptor<'_>, Path<'_>>)> {
        let syscall = match command {
            0 => Syscall::AioPread,
            1 => Syscall::AioPwrite,
            2 => return Some((Syscall::AioFsync, Operation::Sync { handle })),
            3 => return Some((Syscall::AioFdsync, Operation::Sync { handle })),
            7 => Syscall::AioPreadv,
            8 => Syscall::AioPwritev,
            _ => return None,
        };
        let operation = Operation::Transfer {
            direction: syscall.direction(),
            handle,
            size,
            offset: Some(offset),
            buffers,
            flags,
        };
        Some((syscall, operation))
    }
}

/// What a thread did, in the words of the source.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// A call that is an operation on files and changes no table of descriptors but by its result
    /// (open) or by closing one (close).
    Operation(Syscall, Operation<Descriptor<'a>, Path<'a>>),
    /// dup, dup2, dup3, `F_DUPFD`. The new descriptor is the result.
    Duplicate {
        syscall: Syscall,
        /// The old descriptor.
        from: Descriptor<'a>,
        /// Closed by exec.
        close_on_exec: bool,
    },
    CloseRange {
        /// The first number.
        first: u32,
        /// The last number.
        last: u32,
        /// `CLOSE_RANGE_CLOEXEC`: they are closed by exec only.
        on_exec_only: bool,
    },
    /// `F_SETFD`, `FIOCLEX`, `FIONCLEX`.
    CloseOnExec {
        of: Descriptor<'a>,
        /// Closed by exec.
        on: bool,
    },
    /// munmap, by address.
    Unmap {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// mremap, by address. The new address is the result.
    Remap {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
        /// Bytes that are mapped afterwards.
        new_size: u64,
    },
    /// msync, by address.
    SyncMap {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
        /// `MS_` flags.
        flags: u32,
    },
    /// io_submit: as many of the requests as it returned are under way.
    Submit {
        /// Of io_setup.
        context: u64,
        requests: Vec<AioRequest<'a>>,
    },
    /// io_getevents and its kin, io_destroy: requests that are complete.
    Complete {
        /// The call's name; a note without one.
        name: Cow<'a, str>,
        context: u64,
        ends: Vec<AioEnd>,
        /// All others of the context too; nobody is told how they ended.
        all: bool,
    },
    /// A call that made descriptors of something that is no file: pipe, socket, accept, eventfd.
    MakeOther {
        /// The call's name.
        name: Cow<'a, str>,
        kind: DescriptorKind,
        /// Their numbers, if the call succeeded.
        descriptors: Vec<i32>,
        /// Closed by exec.
        close_on_exec: bool,
    },
    /// A descriptor that was open when the recording began, or came from another process.
    Present {
        number: i32,
        /// What it points to.
        is: Known<'a>,
        /// Flags it was opened with.
        flags: OpenFlags,
        /// The file's own position.
        position: i64,
        /// Descriptors with the same number here, not 0, share one open file (kcmp(2),
        /// [`Seen::open_file`]).
        same_as: u64,
        /// It came from another process: through a socket, or by pidfd_getfd.
        received: bool,
    },
    /// chdir, fchdir.
    ChangeDirectory(Path<'a>),
    /// chroot.
    ChangeRoot(Path<'a>),
    /// A new thread or process.
    Clone {
        /// The call's name.
        name: Cow<'a, str>,
        /// Its number.
        child: u32,
        /// A thread of the same process.
        thread: bool,
        /// It has the same table of descriptors, not a copy (`CLONE_FILES`).
        shares_descriptors: bool,
        /// It has the same current directory, not a copy (`CLONE_FS`).
        shares_directory: bool,
    },
    /// A successful exec: descriptors marked so are closed, other threads are gone.
    Execute {
        /// The new name of the thread.
        name: Cow<'a, str>,
    },
    /// A thread's name, told apart from a call.
    Name(Cow<'a, str>),
    /// What a symbolic link said, told apart from the call that read it, and before it.
    LinkSays {
        /// The link.
        path: Path<'a>,
        content: Cow<'a, [u8]>,
    },
    /// The thread's number in its own PID namespace, by which paths in /proc name it there.
    KnownAs(u32),
    /// The thread was told under another number until now: a clone returned that of another PID
    /// namespace.
    Renumbered {
        /// The number before.
        from: u32,
    },
    /// What a file was, told apart from a call and before it: an entry of a directory that was listed.
    Tells {
        /// The file.
        path: Path<'a>,
        seen: Seen,
    },
    /// A thread ended.
    Exit {
        /// All threads of its process with it.
        process: bool,
    },
    /// Something that is not kept, for a reason that the source itself knows.
    LeftOut {
        /// The call's name, or what the line was.
        name: Cow<'a, str>,
        /// Why, as it will stand in the ledger.
        reason: &'static str,
    },
    /// A line of a text that says something and is no call itself: half of one, a thread's name. It
    /// is kept in the ledger, by this reason.
    Counted { reason: &'static str },
}

//! Which system calls are recorded, and what their arguments are.

use iostep_model::syscall::raw::DescriptorKind;
use iostep_model::syscall::{Direction, Syscall};

/// A call that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number on this architecture.
    pub number: i64,
    /// Its name.
    pub name: &'static str,
    /// Its arguments.
    pub shape: Shape,
}

/// What the arguments of a call are. `at`: the first one is a directory's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Path, flags, mode.
    Open {
        /// See above.
        at: bool,
    },
    /// Path, mode.
    Creat,
    /// Directory, path, `struct open_how`, its size.
    OpenHow,
    /// Descriptor.
    Close,
    /// First, last, flags.
    CloseRange,
    /// Old, and for dup2 and dup3 new, flags.
    Duplicate,
    /// Descriptor, command, argument.
    Fcntl,
    /// Descriptor, operation.
    Flock,
    /// Descriptor; buffer and size, or vectors and count; offset; flags.
    Transfer {
        /// To or from the file.
        direction: Direction,
        /// Several buffers.
        vectors: bool,
        /// With an offset.
        offset: bool,
    },
    /// Descriptor, offset, whence.
    Seek,
    /// Path, size.
    Truncate,
    /// Descriptor, size.
    TruncateOpen,
    /// Descriptor, mode, offset, size.
    Allocate,
    /// Descriptor.
    Sync,
    /// Nothing.
    SyncAll,
    /// Descriptor, offset, size, flags.
    SyncRange,
    /// Address, size, flags.
    SyncMap,
    /// Address, size, protection, flags, descriptor, offset.
    Map,
    /// Address, size.
    Unmap,
    /// Address, size, new size, flags, new address.
    Remap,
    /// Old and new path, flags.
    Rename {
        /// Each path has its own directory.
        at: bool,
    },
    /// Old and new path, flags.
    Link {
        /// Each path has its own directory.
        at: bool,
    },
    /// Content, directory, path.
    Symlink {
        /// See above.
        at: bool,
    },
    /// Path, flags.
    Unlink {
        /// See above.
        at: bool,
    },
    /// Path.
    RemoveDirectory,
    /// Path, mode.
    MakeDirectory {
        /// See above.
        at: bool,
    },
    /// Path, buffer.
    Stat {
        /// False for lstat.
        follow: bool,
    },
    /// Descriptor, buffer.
    StatOpen,
    /// Directory, path, buffer, flags.
    StatAt,
    /// Directory, path, flags, mask, buffer.
    Statx,
    /// Path.
    StatFilesystem,
    /// Descriptor.
    StatFilesystemOpen,
    /// Path, mode, flags.
    Access {
        /// See above.
        at: bool,
    },
    /// Path, buffer, size.
    ReadLink {
        /// See above.
        at: bool,
    },
    /// Descriptor, buffer, size.
    ReadDirectory,
    /// Path, mode.
    SetMode {
        /// See above.
        at: bool,
    },
    /// Descriptor, mode.
    SetModeOpen,
    /// Path, user, group.
    SetOwner {
        /// See above.
        at: bool,
    },
    /// Descriptor, user, group.
    SetOwnerOpen,
    /// Path; none with a directory: that itself.
    SetTimes {
        /// See above.
        at: bool,
    },
    /// Descriptor, request, argument.
    Control,
    /// Descriptor, offset, size, advice.
    Advise,
    /// Descriptor, offset, size.
    ReadAhead,
    /// Target, source, offset, size.
    SendFile,
    /// Source, offset, target, offset, size, flags.
    CopyRange,
    /// Path.
    ChangeDirectory,
    /// Descriptor.
    ChangeDirectoryOpen,
    /// Two descriptors at this argument, of this kind.
    Pair {
        /// 0 or 3.
        at: usize,
        /// What they are.
        kind: DescriptorKind,
    },
    /// Gives a descriptor of what is no file.
    Make(DescriptorKind),
    /// Socket, `struct msghdr`, flags. Descriptors come with messages.
    Receive,
    /// Gives a descriptor of another process.
    Take,
    /// clone and its kin.
    Fork,
    /// Not kept, for this reason.
    LeftOut(&'static str),
}

/// Bits of a call's class: `CLASS_` and `enum wire_extra` of bpf/wire.h.
const TEXT_1: u32 = 4;
const TEXT_2: u32 = 8;
const EXTRA: u32 = 12;
const KNOWN: u32 = 1 << 31;
pub(super) const OPENED: u32 = 1;
pub(super) const VECTORS: u32 = 2;
pub(super) const LOCK: u32 = 3;
pub(super) const PAIR_AT_0: u32 = 4;
pub(super) const PAIR_AT_3: u32 = 5;
pub(super) const OFFSETS: u32 = 6;
pub(super) const OFFSET_AT_2: u32 = 7;
pub(super) const OPEN_HOW: u32 = 8;
pub(super) const MAPPED: u32 = 9;
pub(super) const FORK: u32 = 10;
pub(super) const ANSWERED: u32 = 11;
pub(super) const MESSAGE: u32 = 12;
pub(super) const RECEIVED: u32 = 13;

impl Shape {
    /// Which arguments are strings, and what else is read from memory.
    pub(super) fn memory(self) -> (Option<u32>, Option<u32>, u32) {
        use Shape as S;
        let path = |at: bool| Some(u32::from(at));
        match self {
            S::Open { at } => (path(at), None, OPENED),
            S::Creat => (Some(0), None, OPENED),
            S::OpenHow => (Some(1), None, OPEN_HOW),
            S::Rename { at: false } | S::Link { at: false } => (Some(0), Some(1), 0),
            S::Rename { at: true } | S::Link { at: true } => (Some(1), Some(3), 0),
            S::Symlink { at } => (Some(0), Some(1 + u32::from(at)), 0),
            S::Truncate
            | S::RemoveDirectory
            | S::Stat { .. }
            | S::StatFilesystem
            | S::ChangeDirectory => (Some(0), None, 0),
            S::StatAt | S::Statx => (Some(1), None, 0),
            S::Unlink { at }
            | S::MakeDirectory { at }
            | S::Access { at }
            | S::SetMode { at }
            | S::SetOwner { at }
            | S::SetTimes { at } => (path(at), None, 0),
            S::ReadLink { at } => (path(at), Some(1 + u32::from(at)), ANSWERED),
            S::Fcntl => (None, None, LOCK),
            S::Transfer { vectors: true, .. } => (None, None, VECTORS),
            S::Map => (None, None, MAPPED),
            S::SendFile => (None, None, OFFSET_AT_2),
            S::CopyRange => (None, None, OFFSETS),
            S::Pair { at: 0, .. } => (None, None, PAIR_AT_0),
            S::Pair { .. } => (None, None, PAIR_AT_3),
            S::Receive => (None, None, MESSAGE),
            S::Take => (None, None, RECEIVED),
            S::Fork => (None, None, FORK),
            _ => (None, None, 0),
        }
    }

    /// How many words of a record say everything.
    fn words(self) -> u32 {
        use Shape as S;
        match self {
            S::Fcntl | S::SendFile | S::CopyRange | S::Pair { .. } => 10,
            S::Transfer { vectors: true, .. } => 7,
            S::Map => 6,
            S::Transfer { offset: true, .. } | S::Allocate | S::SyncRange | S::Advise => 4,
            _ => 3,
        }
    }

    /// What the programs of the BPF recorder do with such a call.
    pub fn class(self) -> u32 {
        let (first, second, extra) = self.memory();
        let text = |argument: Option<u32>| argument.map_or(0, |argument| argument + 1);
        KNOWN | extra << EXTRA | text(second) << TEXT_2 | text(first) << TEXT_1 | self.words()
    }
}

/// The call of a number on this architecture, and what a recording calls it: nothing if it is only
/// followed.
pub fn by_number(number: u16) -> Option<(&'static Entry, Option<Syscall>)> {
    type Known = Option<(&'static Entry, Option<Syscall>)>;
    static INDEX: std::sync::LazyLock<Vec<Known>> = std::sync::LazyLock::new(|| {
        let mut index = vec![None; CALLS];
        for entry in entries() {
            index[entry.number as usize] = Some((entry, entry.name.parse().ok()));
        }
        index
    });
    *INDEX.get(usize::from(number))?
}

/// `WIRE_CALLS` of bpf/wire.h.
pub const CALLS: usize = 512;

/// Every call that is recorded.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    EVERYWHERE.iter().chain(OLD)
}

macro_rules! calls {
    ($($call:ident $name:literal $shape:expr;)*) => {
        &[$(Entry { number: libc::$call, name: $name, shape: $shape },)*]
    };
}

const fn transfer(direction: Direction, vectors: bool, offset: bool) -> Shape {
    Shape::Transfer {
        direction,
        vectors,
        offset,
    }
}

use DescriptorKind as K;
use Direction::{Read, Write};
use Shape as S;

const EXTENDED_ATTRIBUTE: Shape = Shape::LeftOut("extended attribute");

#[rustfmt::skip]
const EVERYWHERE: &[Entry] = calls! {
    SYS_openat "openat" S::Open { at: true };
    SYS_openat2 "openat2" S::OpenHow;
    SYS_close "close" S::Close;
    SYS_close_range "close_range" S::CloseRange;
    SYS_dup "dup" S::Duplicate;
    SYS_dup3 "dup3" S::Duplicate;
    SYS_fcntl "fcntl" S::Fcntl;
    SYS_flock "flock" S::Flock;
    SYS_read "read" transfer(Read, false, false);
    SYS_write "write" transfer(Write, false, false);
    SYS_pread64 "pread64" transfer(Read, false, true);
    SYS_pwrite64 "pwrite64" transfer(Write, false, true);
    SYS_readv "readv" transfer(Read, true, false);
    SYS_writev "writev" transfer(Write, true, false);
    SYS_preadv "preadv" transfer(Read, true, true);
    SYS_pwritev "pwritev" transfer(Write, true, true);
    SYS_preadv2 "preadv2" transfer(Read, true, true);
    SYS_pwritev2 "pwritev2" transfer(Write, true, true);
    SYS_lseek "lseek" S::Seek;
    SYS_truncate "truncate" S::Truncate;
    SYS_ftruncate "ftruncate" S::TruncateOpen;
    SYS_fallocate "fallocate" S::Allocate;
    SYS_fsync "fsync" S::Sync;
    SYS_fdatasync "fdatasync" S::Sync;
    SYS_sync "sync" S::SyncAll;
    SYS_syncfs "syncfs" S::Sync;
    SYS_sync_file_range "sync_file_range" S::SyncRange;
    SYS_msync "msync" S::SyncMap;
    SYS_mmap "mmap" S::Map;
    SYS_munmap "munmap" S::Unmap;
    SYS_mremap "mremap" S::Remap;
    SYS_renameat "renameat" S::Rename { at: true };
    SYS_renameat2 "renameat2" S::Rename { at: true };
    SYS_linkat "linkat" S::Link { at: true };
    SYS_symlinkat "symlinkat" S::Symlink { at: true };
    SYS_unlinkat "unlinkat" S::Unlink { at: true };
    SYS_mkdirat "mkdirat" S::MakeDirectory { at: true };
    SYS_fstat "fstat" S::StatOpen;
    SYS_newfstatat "newfstatat" S::StatAt;
    SYS_statx "statx" S::Statx;
    SYS_statfs "statfs" S::StatFilesystem;
    SYS_fstatfs "fstatfs" S::StatFilesystemOpen;
    SYS_faccessat "faccessat" S::Access { at: true };
    SYS_faccessat2 "faccessat2" S::Access { at: true };
    SYS_readlinkat "readlinkat" S::ReadLink { at: true };
    SYS_getdents64 "getdents64" S::ReadDirectory;
    SYS_fchmod "fchmod" S::SetModeOpen;
    SYS_fchmodat "fchmodat" S::SetMode { at: true };
    SYS_fchown "fchown" S::SetOwnerOpen;
    SYS_fchownat "fchownat" S::SetOwner { at: true };
    SYS_utimensat "utimensat" S::SetTimes { at: true };
    SYS_ioctl "ioctl" S::Control;
    SYS_fadvise64 "fadvise64" S::Advise;
    SYS_readahead "readahead" S::ReadAhead;
    SYS_sendfile "sendfile" S::SendFile;
    SYS_copy_file_range "copy_file_range" S::CopyRange;
    SYS_chdir "chdir" S::ChangeDirectory;
    SYS_fchdir "fchdir" S::ChangeDirectoryOpen;
    SYS_pipe2 "pipe2" S::Pair { at: 0, kind: K::Pipe };
    SYS_socketpair "socketpair" S::Pair { at: 3, kind: K::Socket };
    SYS_socket "socket" S::Make(K::Socket);
    SYS_accept "accept" S::Make(K::Socket);
    SYS_accept4 "accept4" S::Make(K::Socket);
    SYS_eventfd2 "eventfd2" S::Make(K::Event);
    SYS_epoll_create1 "epoll_create1" S::Make(K::Event);
    SYS_timerfd_create "timerfd_create" S::Make(K::Event);
    SYS_signalfd4 "signalfd4" S::Make(K::Event);
    SYS_inotify_init1 "inotify_init1" S::Make(K::Event);
    SYS_fanotify_init "fanotify_init" S::Make(K::Event);
    SYS_pidfd_open "pidfd_open" S::Make(K::Event);
    SYS_perf_event_open "perf_event_open" S::Make(K::Event);
    SYS_bpf "bpf" S::Make(K::Event);
    SYS_userfaultfd "userfaultfd" S::Make(K::Event);
    SYS_memfd_create "memfd_create" S::Make(K::Memory);
    SYS_io_uring_setup "io_uring_setup" S::Make(K::Uring);
    SYS_recvmsg "recvmsg" S::Receive;
    SYS_pidfd_getfd "pidfd_getfd" S::Take;
    SYS_clone "clone" S::Fork;
    SYS_clone3 "clone3" S::Fork;
    SYS_splice "splice" S::LeftOut("data through a pipe");
    SYS_io_submit "io_submit" S::LeftOut("request of io_submit");
    SYS_io_uring_enter "io_uring_enter" S::LeftOut("io_uring");
    SYS_mknodat "mknodat" S::LeftOut("node");
    SYS_setxattr "setxattr" EXTENDED_ATTRIBUTE;
    SYS_lsetxattr "lsetxattr" EXTENDED_ATTRIBUTE;
    SYS_fsetxattr "fsetxattr" EXTENDED_ATTRIBUTE;
    SYS_getxattr "getxattr" EXTENDED_ATTRIBUTE;
    SYS_lgetxattr "lgetxattr" EXTENDED_ATTRIBUTE;
    SYS_fgetxattr "fgetxattr" EXTENDED_ATTRIBUTE;
    SYS_listxattr "listxattr" EXTENDED_ATTRIBUTE;
    SYS_llistxattr "llistxattr" EXTENDED_ATTRIBUTE;
    SYS_flistxattr "flistxattr" EXTENDED_ATTRIBUTE;
    SYS_removexattr "removexattr" EXTENDED_ATTRIBUTE;
    SYS_lremovexattr "lremovexattr" EXTENDED_ATTRIBUTE;
    SYS_fremovexattr "fremovexattr" EXTENDED_ATTRIBUTE;
};

/// What younger architectures lack (include/uapi/asm-generic/unistd.h).
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD: &[Entry] = calls! {
    SYS_open "open" S::Open { at: false };
    SYS_creat "creat" S::Creat;
    SYS_dup2 "dup2" S::Duplicate;
    SYS_rename "rename" S::Rename { at: false };
    SYS_link "link" S::Link { at: false };
    SYS_symlink "symlink" S::Symlink { at: false };
    SYS_unlink "unlink" S::Unlink { at: false };
    SYS_rmdir "rmdir" S::RemoveDirectory;
    SYS_mkdir "mkdir" S::MakeDirectory { at: false };
    SYS_stat "stat" S::Stat { follow: true };
    SYS_lstat "lstat" S::Stat { follow: false };
    SYS_access "access" S::Access { at: false };
    SYS_readlink "readlink" S::ReadLink { at: false };
    SYS_getdents "getdents" S::ReadDirectory;
    SYS_chmod "chmod" S::SetMode { at: false };
    SYS_chown "chown" S::SetOwner { at: false };
    SYS_lchown "lchown" S::SetOwner { at: false };
    SYS_utime "utime" S::SetTimes { at: false };
    SYS_utimes "utimes" S::SetTimes { at: false };
    SYS_futimesat "futimesat" S::SetTimes { at: true };
    SYS_pipe "pipe" S::Pair { at: 0, kind: K::Pipe };
    SYS_eventfd "eventfd" S::Make(K::Event);
    SYS_epoll_create "epoll_create" S::Make(K::Event);
    SYS_signalfd "signalfd" S::Make(K::Event);
    SYS_inotify_init "inotify_init" S::Make(K::Event);
    SYS_fork "fork" S::Fork;
    SYS_vfork "vfork" S::Fork;
    SYS_mknod "mknod" S::LeftOut("node");
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[Entry] = &[];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_there_once_and_has_room_in_the_programs_table() {
        let mut numbers: Vec<i64> = entries().map(|entry| entry.number).collect();
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert!(
            numbers
                .iter()
                .all(|number| (0..CALLS as i64).contains(number))
        );
    }

    #[test]
    fn every_call_that_a_recording_knows_is_recorded() {
        for entry in entries() {
            let only_followed = matches!(
                entry.shape,
                S::ChangeDirectory
                    | S::ChangeDirectoryOpen
                    | S::Pair { .. }
                    | S::Make(_)
                    | S::Receive
                    | S::Take
                    | S::Fork
                    | S::LeftOut(_)
            );
            let known = by_number(entry.number as u16).and_then(|(_, syscall)| syscall);
            assert!(known.is_some() || only_followed, "{}", entry.name);
        }
    }
}

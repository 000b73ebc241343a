//! The table of system calls: name, number, operation and arguments of each, once.
//!
//! A row is `Call = "name" "other names of strace's" [number]: operation arguments;`. The number is
//! libc's, behind `old` where younger architectures lack the call
//! (include/uapi/asm-generic/unistd.h). The operation is what the call's line in a trace holds, if
//! its words do not tell another ([`super::text`]). The arguments are the operation's fields, each
//! with the method of [`super::Arguments`] that reads it and which argument it is, from 0; or `=` and
//! the method that reads all. The BPF programs' classes, the recorder's and strace's decoding and
//! the trace's text are derived from it.

use super::operation::{Direction, OperationKind};
use crate::names::named;
use Direction::{Read, Write};

macro_rules! number {
    () => {
        None
    };
    (old $number:ident) => {{
        #[cfg(target_arch = "x86_64")]
        let number = Some(libc::$number);
        #[cfg(not(target_arch = "x86_64"))]
        let number = None;
        number
    }};
    ($number:ident) => {
        Some(libc::$number)
    };
}

#[rustfmt::skip]
macro_rules! calls {
    ($define:ident) => {
        $define! {
            Open = "open" "open64" [old SYS_open]: Open { path: path(0), flags: open_flags(1), mode: open_mode(2) };
            Openat = "openat" "openat64" [SYS_openat]: Open { path: path_at(0), flags: open_flags(2), mode: open_mode(3) };
            Openat2 = "openat2" [SYS_openat2]: Open { path: path_at(0), flags: how_flags(2), mode: how_mode(2) };
            Creat = "creat" [old SYS_creat]: Open { path: path(0), flags: is(CREAT), mode: creat_mode(1) };
            Close = "close" [SYS_close]: Close { handle: descriptor(0) };
            CloseRange = "close_range" [SYS_close_range]: CloseMany = close_range();
            Dup = "dup" [SYS_dup]: Duplicate = duplicate(Syscall::Dup);
            Dup2 = "dup2" [old SYS_dup2]: Duplicate = duplicate(Syscall::Dup2);
            Dup3 = "dup3" [SYS_dup3]: Duplicate = duplicate(Syscall::Dup3);
            Fcntl = "fcntl" "fcntl64" [SYS_fcntl]: Duplicate = fcntl();
            Flock = "flock" [SYS_flock]: Lock { handle: descriptor(0), kind: is(LockKind::Whole), lock: lock(1), wait: waits(1), offset: is(0), size: is(0) };
            Read = "read" [SYS_read]: Transfer { direction: is(Read), handle: descriptor(0), size: size(2), buffers: is(1), offset: is(None), flags: is(0) };
            Write = "write" [SYS_write]: Transfer { direction: is(Write), handle: descriptor(0), size: size(2), buffers: is(1), offset: is(None), flags: is(0) };
            Pread64 = "pread64" "pread" [SYS_pread64]: Transfer { offset: offset(3), direction: is(Read), handle: descriptor(0), size: size(2), buffers: is(1), flags: is(0) };
            Pwrite64 = "pwrite64" "pwrite" [SYS_pwrite64]: Transfer { offset: offset(3), direction: is(Write), handle: descriptor(0), size: size(2), buffers: is(1), flags: is(0) };
            Readv = "readv" [SYS_readv]: Transfer { buffers: buffers(2), size: vector(1), direction: is(Read), handle: descriptor(0), offset: is(None), flags: is(0) };
            Writev = "writev" [SYS_writev]: Transfer { buffers: buffers(2), size: vector(1), direction: is(Write), handle: descriptor(0), offset: is(None), flags: is(0) };
            Preadv = "preadv" [SYS_preadv]: Transfer { buffers: buffers(2), size: vector(1), offset: offset(3), direction: is(Read), handle: descriptor(0), flags: is(0) };
            Pwritev = "pwritev" [SYS_pwritev]: Transfer { buffers: buffers(2), size: vector(1), offset: offset(3), direction: is(Write), handle: descriptor(0), flags: is(0) };
            Preadv2 = "preadv2" [SYS_preadv2]: Transfer { buffers: buffers(2), size: vector(1), offset: own_or_offset(3), direction: is(Read), handle: descriptor(0), flags: transfer_flags(4) };
            Pwritev2 = "pwritev2" [SYS_pwritev2]: Transfer { buffers: buffers(2), size: vector(1), offset: own_or_offset(3), direction: is(Write), handle: descriptor(0), flags: transfer_flags(4) };
            Lseek = "lseek" [SYS_lseek]: Seek { handle: descriptor(0), offset: number(1), whence: whence(2) };
            Truncate = "truncate" "truncate64" [SYS_truncate]: Truncate { target: named(0), size: number(1) };
            Ftruncate = "ftruncate" "ftruncate64" [SYS_ftruncate]: Truncate { target: opened(0), size: number(1) };
            Fallocate = "fallocate" [SYS_fallocate]: Allocate { handle: descriptor(0), mode: flags(1, FALLOCATE), offset: number(2), size: number(3) };
            Fsync = "fsync" [SYS_fsync]: Sync { handle: descriptor(0) };
            Fdatasync = "fdatasync" [SYS_fdatasync]: Sync { handle: descriptor(0) };
            Sync = "sync" [SYS_sync]: SyncAll {};
            Syncfs = "syncfs" [SYS_syncfs]: Sync { handle: descriptor(0) };
            SyncFileRange = "sync_file_range" [SYS_sync_file_range]: SyncRange { handle: descriptor(0), offset: number(1), size: number(2), flags: flags(3, SYNC_FILE_RANGE) };
            Msync = "msync" [SYS_msync]: SyncMap = sync_map();
            Mmap = "mmap" "mmap2" "old_mmap" [SYS_mmap]: Map { handle: mapped(4), offset: map_offset(5), size: size(1), protection: flags(2, PROTECTION), flags: flags(3, MAP) };
            Munmap = "munmap" [SYS_munmap]: Unmap = unmap();
            Mremap = "mremap" [SYS_mremap]: Remap = remap();
            Rename = "rename" [old SYS_rename]: Rename { from: path(0), to: path(1), flags: is(0) };
            Renameat = "renameat" [SYS_renameat]: Rename { from: path_at(0), to: path_at(2), flags: is(0) };
            Renameat2 = "renameat2" [SYS_renameat2]: Rename { from: path_at(0), to: path_at(2), flags: late_flags(4, RENAME) };
            Link = "link" [old SYS_link]: Link { from: named(0), to: path(1), flags: is(0) };
            Linkat = "linkat" [SYS_linkat]: Link { from: linked(0, 4), to: path_at(2), flags: flags(4, AT) };
            Symlink = "symlink" [old SYS_symlink]: Symlink { content: path(0), path: path(1) };
            Symlinkat = "symlinkat" [SYS_symlinkat]: Symlink { content: path(0), path: path_at(1) };
            Unlink = "unlink" [old SYS_unlink]: Unlink { path: path(0) };
            Unlinkat = "unlinkat" [SYS_unlinkat]: Unlink = unlink_at();
            Mkdir = "mkdir" [old SYS_mkdir]: MakeDirectory { path: path(0), mode: flags(1, MODE) };
            Mkdirat = "mkdirat" [SYS_mkdirat]: MakeDirectory { path: path_at(0), mode: flags(2, MODE) };
            Mknod = "mknod" [old SYS_mknod]: MakeNode { path: path(0), mode: flags(1, MODE) };
            Mknodat = "mknodat" [SYS_mknodat]: MakeNode { path: path_at(0), mode: flags(2, MODE) };
            Rmdir = "rmdir" [old SYS_rmdir]: RemoveDirectory { path: path(0) };
            Stat = "stat" "stat64" "oldstat" [old SYS_stat]: Stat { target: named(0), follow: is(true) };
            Lstat = "lstat" "lstat64" "oldlstat" [old SYS_lstat]: Stat { target: named(0), follow: is(false) };
            Fstat = "fstat" "fstat64" "oldfstat" [SYS_fstat]: Stat { target: opened(0), follow: is(true) };
            Newfstatat = "newfstatat" "fstatat64" "fstatat" [SYS_newfstatat]: Stat { follow: follows(3), target: target_with(3) };
            Statx = "statx" [SYS_statx]: Stat { follow: follows(2), target: target_with(2) };
            Statfs = "statfs" "statfs64" [SYS_statfs]: StatFilesystem { target: named(0) };
            Fstatfs = "fstatfs" "fstatfs64" [SYS_fstatfs]: StatFilesystem { target: opened(0) };
            Access = "access" [old SYS_access]: Access { target: named(0), mode: flags(1, ACCESS) };
            Faccessat = "faccessat" [SYS_faccessat]: Access { target: named_at(0), mode: flags(2, ACCESS) };
            Faccessat2 = "faccessat2" [SYS_faccessat2]: Access { target: named_at(0), mode: flags(2, ACCESS) };
            Readlink = "readlink" [old SYS_readlink]: ReadLink { path: path(0), size: answer(2) };
            Readlinkat = "readlinkat" [SYS_readlinkat]: ReadLink { path: path_or_directory(0, None), size: answer(3) };
            Getdents = "getdents" [old SYS_getdents]: ReadDirectory { handle: descriptor(0), size: size(2) };
            Getdents64 = "getdents64" [SYS_getdents64]: ReadDirectory { handle: descriptor(0), size: size(2) };
            Chmod = "chmod" [old SYS_chmod]: SetMode { target: named(0), mode: flags(1, MODE) };
            Fchmod = "fchmod" [SYS_fchmod]: SetMode { target: opened(0), mode: flags(1, MODE) };
            Fchmodat = "fchmodat" [SYS_fchmodat]: SetMode { target: named_at(0), mode: flags(2, MODE) };
            Chown = "chown" "chown32" [old SYS_chown]: SetOwner { target: named(0), user: id(1), group: id(2) };
            Fchown = "fchown" "fchown32" [SYS_fchown]: SetOwner { target: opened(0), user: id(1), group: id(2) };
            Lchown = "lchown" "lchown32" [old SYS_lchown]: SetOwner { target: named(0), user: id(1), group: id(2) };
            Fchownat = "fchownat" [SYS_fchownat]: SetOwner { target: target_with(4), user: id(2), group: id(3) };
            Utime = "utime" [old SYS_utime]: SetTimes { target: named(0) };
            Utimes = "utimes" [old SYS_utimes]: SetTimes { target: named(0) };
            Futimesat = "futimesat" [old SYS_futimesat]: SetTimes { target: timed(3) };
            Utimensat = "utimensat" "utimensat_time64" [SYS_utimensat]: SetTimes { target: timed(3) };
            Ioctl = "ioctl" [SYS_ioctl]: Control = control();
            Fadvise64 = "fadvise64" "fadvise64_64" [SYS_fadvise64]: Advise { handle: descriptor(0), offset: number(1), size: number(2), advice: flags(3, ADVICE) };
            Readahead = "readahead" [SYS_readahead]: Advise { handle: descriptor(0), offset: number(1), size: number(2), advice: is(WILL_NEED) };
            Sendfile = "sendfile" "sendfile64" [SYS_sendfile]: Copy { from: descriptor(1), from_offset: offset_at(2), to: descriptor(0), to_offset: is(None), size: size(3) };
            CopyFileRange = "copy_file_range" [SYS_copy_file_range]: Copy { from: descriptor(0), from_offset: offset_at(1), to: descriptor(2), to_offset: offset_at(3), size: size(4) };
            Splice = "splice" [SYS_splice]: Copy { from: descriptor(0), from_offset: offset_at(1), to: descriptor(2), to_offset: offset_at(3), size: size(4) };
            UringRead = "io_uring_read" []: Transfer;
            UringWrite = "io_uring_write" []: Transfer;
            UringReadv = "io_uring_readv" []: Transfer;
            UringWritev = "io_uring_writev" []: Transfer;
            UringFsync = "io_uring_fsync" []: Sync;
            UringFdatasync = "io_uring_fdatasync" []: Sync;
            UringSyncFileRange = "io_uring_sync_file_range" []: SyncRange;
            UringFallocate = "io_uring_fallocate" []: Allocate;
            UringFtruncate = "io_uring_ftruncate" []: Truncate;
            UringFadvise = "io_uring_fadvise" []: Advise;
            UringOpenat = "io_uring_openat" []: Open;
            UringClose = "io_uring_close" []: Close;
            UringStatx = "io_uring_statx" []: Stat;
            UringRenameat = "io_uring_renameat" []: Rename;
            UringLinkat = "io_uring_linkat" []: Link;
            UringSymlinkat = "io_uring_symlinkat" []: Symlink;
            UringUnlinkat = "io_uring_unlinkat" []: Unlink;
            UringMkdirat = "io_uring_mkdirat" []: MakeDirectory;
            UringOther = "io_uring_other" []: Other;
            AioPread = "io_submit_pread" []: Transfer;
            AioPwrite = "io_submit_pwrite" []: Transfer;
            AioPreadv = "io_submit_preadv" []: Transfer;
            AioPwritev = "io_submit_pwritev" []: Transfer;
            AioFsync = "io_submit_fsync" []: Sync;
            AioFdsync = "io_submit_fdsync" []: Sync;
            /// What sendfile or splice moved from a file to a pipe, a socket or a device, or from there
            /// to a file.
            SendfileRead = "sendfile_read" []: Transfer;
            SendfileWrite = "sendfile_write" []: Transfer;
            SpliceRead = "splice_read" []: Transfer;
            SpliceWrite = "splice_write" []: Transfer;
            /// No call: a file that was open before the recording began, or whose opening the source
            /// does not have, with [`super::Operation::Open`]; then its position, with
            /// [`super::Operation::Seek`].
            Present = "present" []: Duplicate;
            Clone = "clone" []: Inherit;
            Execve = "execve" []: CloseMany;
            Exit = "exit" []: CloseMany;
        }
    };
}
pub(super) use calls;

macro_rules! define {
    ($($(#[$about:meta])* $call:ident = $name:literal $($other:literal)* [$($number:tt)*]:
        $operation:ident $(= $all:ident $all_arguments:tt)? $({ $($fields:tt)* })?;)+) => {
        /// A system call that touches files, by its name on 64-bit Linux, and what goes with one:
        /// requests of io_uring and io_submit, and what fork, exec and exit do to descriptors.
        #[allow(missing_docs, reason = "the names are those of the system calls")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Syscall {
            $($(#[$about])* $call,)+
        }

        named!(Syscall, "system call", $($call = $name),+);

        impl Syscall {
            /// The names that strace has for it, on 32-bit machines and older kernels too.
            pub fn names(self) -> &'static [&'static str] {
                match self {
                    $(Syscall::$call => &[$name $(, $other)*],)+
                }
            }

            /// Its number on this architecture, if it has one.
            pub fn number(self) -> Option<i64> {
                match self {
                    $(Syscall::$call => number!($($number)*),)+
                }
            }

            /// What it asks for, as a rule.
            pub fn operation(self) -> OperationKind {
                match self {
                    $(Syscall::$call => OperationKind::$operation,)+
                }
            }
        }
    };
}

calls!(define);

impl Syscall {
    /// Which way a call of the read and write families moves data.
    pub fn direction(self) -> Direction {
        use Syscall as S;
        match self {
            S::Write | S::Pwrite64 | S::Writev | S::Pwritev | S::Pwritev2 => Write,
            S::UringWrite | S::UringWritev | S::AioPwrite | S::AioPwritev => Write,
            S::SendfileWrite | S::SpliceWrite => Write,
            _ => Read,
        }
    }
}

//! Flags and constants by their names.

/// Names of one argument's values, as on x86 and arm.
pub type Names = &'static [(&'static str, u32)];

/// include/uapi/linux/fcntl.h.
pub const AT: Names = &[
    ("AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW),
    ("AT_REMOVEDIR", AT_REMOVEDIR),
    ("AT_EACCESS", 0x200),
    ("AT_SYMLINK_FOLLOW", AT_SYMLINK_FOLLOW),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", AT_EMPTY_PATH),
    ("AT_STATX_SYNC_AS_STAT", 0),
    ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_DONT_SYNC", 0x4000),
    ("AT_RECURSIVE", 0x8000),
];
/// `AT_SYMLINK_NOFOLLOW`.
pub const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
/// `AT_REMOVEDIR`.
pub const AT_REMOVEDIR: u32 = 0x200;
/// `AT_SYMLINK_FOLLOW`.
pub const AT_SYMLINK_FOLLOW: u32 = 0x400;
/// `AT_EMPTY_PATH`.
pub const AT_EMPTY_PATH: u32 = 0x1000;

/// include/uapi/linux/fs.h.
pub const RWF: Names = &[
    ("RWF_HIPRI", 0x1),
    ("RWF_DSYNC", 0x2),
    ("RWF_SYNC", 0x4),
    ("RWF_NOWAIT", 0x8),
    ("RWF_APPEND", 0x10),
    ("RWF_NOAPPEND", 0x20),
    ("RWF_ATOMIC", 0x40),
    ("RWF_DONTCACHE", 0x80),
];

/// include/uapi/linux/fs.h.
pub const RENAME: Names = &[
    ("RENAME_NOREPLACE", 1),
    ("RENAME_EXCHANGE", 2),
    ("RENAME_WHITEOUT", 4),
];

/// include/uapi/linux/falloc.h.
pub const FALLOCATE: Names = &[
    ("FALLOC_FL_KEEP_SIZE", 0x1),
    ("FALLOC_FL_PUNCH_HOLE", 0x2),
    ("FALLOC_FL_NO_HIDE_STALE", 0x4),
    ("FALLOC_FL_COLLAPSE_RANGE", 0x8),
    ("FALLOC_FL_ZERO_RANGE", 0x10),
    ("FALLOC_FL_INSERT_RANGE", 0x20),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40),
    ("FALLOC_FL_WRITE_ZEROES", 0x80),
];

/// include/uapi/linux/fs.h.
pub const SYNC_FILE_RANGE: Names = &[
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("SYNC_FILE_RANGE_WRITE_AND_WAIT", 7),
];

/// include/uapi/linux/fadvise.h.
pub const ADVICE: Names = &[
    ("POSIX_FADV_NORMAL", 0),
    ("POSIX_FADV_RANDOM", 1),
    ("POSIX_FADV_SEQUENTIAL", 2),
    ("POSIX_FADV_WILLNEED", WILL_NEED),
    ("POSIX_FADV_DONTNEED", 4),
    ("POSIX_FADV_NOREUSE", 5),
];
/// `WILL_NEED`.
pub const WILL_NEED: u32 = 3;

/// access(2).
pub const ACCESS: Names = &[("F_OK", 0), ("X_OK", 1), ("W_OK", 2), ("R_OK", 4)];

/// lseek(2).
pub const WHENCE: Names = &[
    ("SEEK_SET", 0),
    ("SEEK_CUR", 1),
    ("SEEK_END", 2),
    ("SEEK_DATA", 3),
    ("SEEK_HOLE", 4),
];

/// include/uapi/asm-generic/mman-common.h.
pub const PROTECTION: Names = &[
    ("PROT_NONE", 0),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
    ("PROT_EXEC", 4),
    ("PROT_SEM", 8),
    ("PROT_GROWSDOWN", 0x0100_0000),
    ("PROT_GROWSUP", 0x0200_0000),
];

/// include/uapi/linux/mman.h, asm-generic/mman-common.h, asm-generic/mman.h.
pub const MAP: Names = &[
    ("MAP_FILE", 0),
    ("MAP_SHARED", 0x1),
    ("MAP_PRIVATE", 0x2),
    ("MAP_SHARED_VALIDATE", 0x3),
    ("MAP_FIXED", 0x10),
    ("MAP_ANONYMOUS", 0x20),
    ("MAP_ANON", 0x20),
    ("MAP_32BIT", 0x40),
    ("MAP_GROWSDOWN", 0x100),
    ("MAP_DENYWRITE", 0x800),
    ("MAP_EXECUTABLE", 0x1000),
    ("MAP_LOCKED", 0x2000),
    ("MAP_NORESERVE", 0x4000),
    ("MAP_POPULATE", 0x8000),
    ("MAP_NONBLOCK", 0x10000),
    ("MAP_STACK", 0x20000),
    ("MAP_HUGETLB", 0x40000),
    ("MAP_SYNC", 0x80000),
    ("MAP_FIXED_NOREPLACE", 0x10_0000),
    ("MAP_UNINITIALIZED", 0x400_0000),
];

/// include/uapi/asm-generic/mman-common.h.
pub const MSYNC: Names = &[("MS_ASYNC", 1), ("MS_INVALIDATE", 2), ("MS_SYNC", 4)];

/// flock(2): include/uapi/asm-generic/fcntl.h.
pub const FLOCK: Names = &[
    ("LOCK_SH", 1),
    ("LOCK_EX", 2),
    ("LOCK_NB", LOCK_NB),
    ("LOCK_UN", 8),
];
/// `LOCK_NB`.
pub const LOCK_NB: u32 = 4;

/// Commands of fcntl(2): include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h.
pub const FCNTL: Names = &[
    ("F_DUPFD", 0),
    ("F_GETFD", 1),
    ("F_SETFD", 2),
    ("F_GETFL", 3),
    ("F_SETFL", 4),
    ("F_GETLK", 5),
    ("F_SETLK", 6),
    ("F_SETLKW", 7),
    ("F_GETLK64", 12),
    ("F_SETLK64", 13),
    ("F_SETLKW64", 14),
    ("F_OFD_GETLK", 36),
    ("F_OFD_SETLK", 37),
    ("F_OFD_SETLKW", 38),
    ("F_DUPFD_CLOEXEC", 1030),
];

/// Locks of fcntl(2): include/uapi/asm-generic/fcntl.h.
pub const LOCK: Names = &[("F_RDLCK", 0), ("F_WRLCK", F_WRLCK), ("F_UNLCK", 2)];
/// `F_WRLCK`.
pub const F_WRLCK: u32 = 1;

/// Of mkdir, chmod, open and stat.
pub const MODE: Names = &[
    ("S_ISUID", 0o4000),
    ("S_ISGID", 0o2000),
    ("S_ISVTX", 0o1000),
    ("S_IFSOCK", 0o140_000),
    ("S_IFLNK", 0o120_000),
    ("S_IFREG", 0o100_000),
    ("S_IFBLK", 0o060_000),
    ("S_IFDIR", 0o040_000),
    ("S_IFCHR", 0o020_000),
    ("S_IFIFO", 0o010_000),
    ("S_IRWXU", 0o700),
    ("S_IRUSR", 0o400),
    ("S_IWUSR", 0o200),
    ("S_IXUSR", 0o100),
];

/// close_range(2): include/uapi/linux/close_range.h.
pub const CLOSE_RANGE: Names = &[
    ("CLOSE_RANGE_UNSHARE", 2),
    ("CLOSE_RANGE_CLOEXEC", CLOSE_RANGE_CLOEXEC),
];
/// `CLOSE_RANGE_CLOEXEC`.
pub const CLOSE_RANGE_CLOEXEC: u32 = 4;

/// `FIOCLEX`.
pub const FIOCLEX: u32 = 0x5451;
/// `FIONCLEX`.
pub const FIONCLEX: u32 = 0x5450;

/// What io_submit's requests ask for: `IOCB_CMD_` (include/uapi/linux/aio_abi.h). POLL and NOOP touch no
/// file.
pub const IOCB_COMMAND: Names = &[
    ("IOCB_CMD_PREAD", 0),
    ("IOCB_CMD_PWRITE", 1),
    ("IOCB_CMD_FSYNC", 2),
    ("IOCB_CMD_FDSYNC", 3),
    ("IOCB_CMD_POLL", 5),
    ("IOCB_CMD_NOOP", 6),
    ("IOCB_CMD_PREADV", 7),
    ("IOCB_CMD_PWRITEV", 8),
];
/// `FICLONE` (include/uapi/linux/fs.h): all blocks of another file.
pub const FICLONE: u32 = 0x4004_9409;
/// `FICLONERANGE`: blocks of another file, as a `struct file_clone_range` says.
pub const FICLONERANGE: u32 = 0x4020_940d;

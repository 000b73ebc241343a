//! Flags and constants by their names.

use iostep_model::syscall::OpenFlags;

use super::value;

/// Names of one argument's values, as on x86 and arm.
pub(super) type Names = &'static [(&'static str, u32)];

/// Values joined by `|`, each a name or a number. A number with the names in a comment behind it
/// (-X verbose) is taken by the number. None if a name is not known.
pub(super) fn flags(text: &[u8], names: Names) -> Option<u32> {
    if text
        .first()
        .is_some_and(|b| b.is_ascii_digit() || *b == b'-')
        && !text.contains(&b'|')
    {
        return value::number32(text);
    }
    let mut flags = 0;
    let parts = uncommented(text).split(|byte| *byte == b'|');
    // strace 6.1 writes statx's flags as `|0x900` with -X raw.
    for part in parts.filter(|part| !part.is_empty()) {
        flags |= one(part.trim_ascii(), names)?;
    }
    Some(flags)
}

fn one(word: &[u8], names: Names) -> Option<u32> {
    if word
        .first()
        .is_some_and(|b| b.is_ascii_digit() || *b == b'-')
    {
        return value::number32(word);
    }
    let found = names.iter().find(|(name, _)| name.as_bytes() == word);
    found.map(|(_, value)| *value)
}

/// Values as [`flags`] reads them: names joined by `|`, then what has none.
pub(super) fn display(value: u32, names: Names) -> String {
    let mut rest = value;
    let mut words = Vec::new();
    for (name, flag) in names {
        if flag.is_power_of_two() && rest & flag != 0 {
            words.push((*name).to_owned());
            rest &= !flag;
        }
    }
    if rest != 0 {
        words.push(format!("{rest:#x}"));
    }
    if words.is_empty() {
        let zero = names.iter().find(|(_, flag)| *flag == 0);
        return zero.map_or("0", |(name, _)| name).to_owned();
    }
    words.join("|")
}

/// The text before a comment.
fn uncommented(text: &[u8]) -> &[u8] {
    match memchr::memmem::find(text, b"/*") {
        Some(comment) => &text[..comment],
        None => text,
    }
}

/// Flags of open. Numbers are taken for those of this architecture.
pub(super) fn open(text: &[u8]) -> Option<OpenFlags> {
    let mut flags = OpenFlags::NONE;
    for part in uncommented(text).split(|byte| *byte == b'|') {
        let part = part.trim_ascii();
        flags = flags.with(match part {
            b"O_RDONLY" | b"O_ACCMODE" => OpenFlags::NONE,
            b"O_NDELAY" => OpenFlags::O_NONBLOCK,
            b"FASYNC" => OpenFlags::O_ASYNC,
            b"__O_SYNC" => OpenFlags::O_SYNC,
            b"__O_TMPFILE" => OpenFlags::O_TMPFILE,
            _ if part.first().is_some_and(u8::is_ascii_digit) => {
                OpenFlags::from_native(value::number32(part)? as i32).0
            }
            _ => {
                let mut names = OpenFlags::NAMES.iter();
                names.find(|(name, _)| name.as_bytes() == part)?.1
            }
        });
    }
    Some(flags)
}

/// include/uapi/linux/fcntl.h.
pub(super) const AT: Names = &[
    ("AT_SYMLINK_NOFOLLOW", AT_SYMLINK_NOFOLLOW),
    ("AT_REMOVEDIR", AT_REMOVEDIR),
    ("AT_EACCESS", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_EMPTY_PATH", AT_EMPTY_PATH),
    ("AT_STATX_SYNC_AS_STAT", 0),
    ("AT_STATX_FORCE_SYNC", 0x2000),
    ("AT_STATX_DONT_SYNC", 0x4000),
    ("AT_RECURSIVE", 0x8000),
];
pub(super) const AT_SYMLINK_NOFOLLOW: u32 = 0x100;
pub(super) const AT_REMOVEDIR: u32 = 0x200;
pub(super) const AT_EMPTY_PATH: u32 = 0x1000;

/// include/uapi/linux/fs.h.
pub(super) const RWF: Names = &[
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
pub(super) const RENAME: Names = &[
    ("RENAME_NOREPLACE", 1),
    ("RENAME_EXCHANGE", 2),
    ("RENAME_WHITEOUT", 4),
];

/// include/uapi/linux/falloc.h.
pub(super) const FALLOCATE: Names = &[
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
pub(super) const SYNC_FILE_RANGE: Names = &[
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("SYNC_FILE_RANGE_WRITE_AND_WAIT", 7),
];

/// include/uapi/linux/fadvise.h.
pub(super) const ADVICE: Names = &[
    ("POSIX_FADV_NORMAL", 0),
    ("POSIX_FADV_RANDOM", 1),
    ("POSIX_FADV_SEQUENTIAL", 2),
    ("POSIX_FADV_WILLNEED", WILL_NEED),
    ("POSIX_FADV_DONTNEED", 4),
    ("POSIX_FADV_NOREUSE", 5),
];
pub(super) const WILL_NEED: u32 = 3;

/// access(2).
pub(super) const ACCESS: Names = &[("F_OK", 0), ("X_OK", 1), ("W_OK", 2), ("R_OK", 4)];

/// lseek(2).
pub(super) const WHENCE: Names = &[
    ("SEEK_SET", 0),
    ("SEEK_CUR", 1),
    ("SEEK_END", 2),
    ("SEEK_DATA", 3),
    ("SEEK_HOLE", 4),
];

/// include/uapi/asm-generic/mman-common.h.
pub(super) const PROTECTION: Names = &[
    ("PROT_NONE", 0),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
    ("PROT_EXEC", 4),
    ("PROT_SEM", 8),
    ("PROT_GROWSDOWN", 0x0100_0000),
    ("PROT_GROWSUP", 0x0200_0000),
];

/// include/uapi/linux/mman.h, asm-generic/mman-common.h, asm-generic/mman.h.
pub(super) const MAP: Names = &[
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
pub(super) const MSYNC: Names = &[("MS_ASYNC", 1), ("MS_INVALIDATE", 2), ("MS_SYNC", 4)];

/// flock(2): include/uapi/asm-generic/fcntl.h.
pub(super) const FLOCK: Names = &[
    ("LOCK_SH", 1),
    ("LOCK_EX", 2),
    ("LOCK_NB", LOCK_NB),
    ("LOCK_UN", 8),
];
pub(super) const LOCK_NB: u32 = 4;

/// Commands of fcntl(2): include/uapi/asm-generic/fcntl.h, include/uapi/linux/fcntl.h.
pub(super) const FCNTL: Names = &[
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
pub(super) const LOCK: Names = &[("F_RDLCK", 0), ("F_WRLCK", F_WRLCK), ("F_UNLCK", 2)];
pub(super) const F_WRLCK: u32 = 1;

/// Of mkdir, chmod and open.
pub(super) const MODE: Names = &[
    ("S_ISUID", 0o4000),
    ("S_ISGID", 0o2000),
    ("S_ISVTX", 0o1000),
    ("S_IFREG", 0o100_000),
    ("S_IRWXU", 0o700),
    ("S_IRUSR", 0o400),
    ("S_IWUSR", 0o200),
    ("S_IXUSR", 0o100),
];

/// clone(2): include/uapi/linux/sched.h. Signals and other flags do not matter here.
pub(super) const CLONE_FS: u32 = 0x200;
pub(super) const CLONE_FILES: u32 = 0x400;
pub(super) const CLONE_THREAD: u32 = 0x10000;

/// The flags of clone of which something depends; others are skipped.
pub(super) fn clone(text: &[u8]) -> u32 {
    let mut flags = 0;
    for part in uncommented(text).split(|byte| *byte == b'|') {
        flags |= match part.trim_ascii() {
            b"CLONE_FS" => CLONE_FS,
            b"CLONE_FILES" => CLONE_FILES,
            b"CLONE_THREAD" => CLONE_THREAD,
            number => value::number32(number).unwrap_or(0),
        };
    }
    flags
}

/// close_range(2): include/uapi/linux/close_range.h.
pub(super) const CLOSE_RANGE: Names = &[
    ("CLOSE_RANGE_UNSHARE", 2),
    ("CLOSE_RANGE_CLOEXEC", CLOSE_RANGE_CLOEXEC),
];
pub(super) const CLOSE_RANGE_CLOEXEC: u32 = 4;

/// Requests of ioctl that programs make of files: include/uapi/asm-generic/ioctls.h,
/// include/uapi/linux/fs.h, fiemap.h, btrfs.h (clones).
pub(super) const IOCTL: Names = &[
    ("TCGETS", 0x5401),
    ("TCSETS", 0x5402),
    ("TIOCGWINSZ", 0x5413),
    ("FIONREAD", 0x541b),
    ("FIONBIO", 0x5421),
    ("FIONCLEX", FIONCLEX),
    ("FIOCLEX", FIOCLEX),
    ("FIOASYNC", 0x5452),
    ("FIOQSIZE", 0x5460),
    ("TCGETS2", 0x802c_542a),
    ("FIBMAP", 1),
    ("FIGETBSZ", 2),
    ("FIFREEZE", 0xc004_5877),
    ("FITHAW", 0xc004_5878),
    ("FITRIM", 0xc018_5879),
    ("FICLONE", 0x4004_9409),
    ("BTRFS_IOC_CLONE", 0x4004_9409),
    ("FICLONERANGE", 0x4020_940d),
    ("BTRFS_IOC_CLONE_RANGE", 0x4020_940d),
    ("FIDEDUPERANGE", 0xc018_9436),
    ("FS_IOC_FIEMAP", 0xc020_660b),
    ("FS_IOC_GETFLAGS", 0x8008_6601),
    ("FS_IOC_SETFLAGS", 0x4008_6602),
    ("FS_IOC_GETVERSION", 0x8008_7601),
    ("FS_IOC_FSGETXATTR", 0x801c_581f),
    ("FS_IOC_FSSETXATTR", 0x401c_5820),
    ("FS_IOC_GETFSLABEL", 0x8100_9431),
    ("BLKGETSIZE64", 0x8008_1272),
    ("BLKSSZGET", 0x1268),
    ("BLKDISCARD", 0x1277),
    ("BLKFLSBUF", 0x1261),
];
pub(super) const FIOCLEX: u32 = 0x5451;
pub(super) const FIONCLEX: u32 = 0x5450;

/// The direction bits of a request's number: include/uapi/asm-generic/ioctl.h.
pub(super) const IOC: Names = &[("_IOC_NONE", 0), ("_IOC_WRITE", 1), ("_IOC_READ", 2)];

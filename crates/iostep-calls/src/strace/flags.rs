//! Flags and constants by their names.

use iostep_model::syscall::OpenFlags;
pub(super) use iostep_model::syscall::constants::*;

use super::value;

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
    ("FICLONE", FICLONE),
    ("BTRFS_IOC_CLONE", FICLONE),
    ("FICLONERANGE", FICLONERANGE),
    ("BTRFS_IOC_CLONE_RANGE", FICLONERANGE),
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

/// The direction bits of a request's number: include/uapi/asm-generic/ioctl.h.
pub(super) const IOC: Names = &[("_IOC_NONE", 0), ("_IOC_WRITE", 1), ("_IOC_READ", 2)];

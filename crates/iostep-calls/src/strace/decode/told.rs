//! What a call's answer says of a file: the structure of stat and its relatives, a directory's
//! entries.

use std::borrow::Cow;

use iostep_model::syscall::Content;
use iostep_model::syscall::raw::{Descriptor, Path, Returned, Seen, SeenKind};

use crate::strace::split::Call;
use crate::strace::{flags, value};

/// Permissions of `st_mode`.
const PERMISSIONS: u32 = 0o7777;

/// What stat, statx and others answered; none for other calls, and for those that failed.
pub(in crate::strace) fn seen(call: &Call<'_>) -> Option<Seen> {
    if !matches!(call.returned, Returned::Value(_)) {
        return None;
    }
    let ends = [&b"stat"[..], b"stat64", b"statat", b"statat64", b"statx"];
    let is_filesystem = call.name.ends_with(b"statfs") || call.name.ends_with(b"statfs64");
    if is_filesystem || !ends.iter().any(|end| call.name.ends_with(end)) {
        return None;
    }
    let answer = (1..call.count())
        .rev()
        .filter_map(|at| call.argument(at).ok())
        .find(|argument| argument.starts_with(b"{"))?;
    // statx's names begin with `stx_`, those of stat with `st_`.
    let field = |name: &str| {
        let [plain, extended] = ["st_", "stx_"].map(|start| [start, name].concat());
        value::field(answer, plain.as_bytes()).or(value::field(answer, extended.as_bytes()))
    };
    let number = |name| value::number(field(name)?).and_then(|number| u64::try_from(number).ok());
    let mode = flags::flags(field("mode")?, flags::MODE)?;
    Some(Seen {
        identity: device(answer).zip(number("ino")),
        names: number("nlink"),
        kind: SeenKind::of_stat(mode, number("size"), number("blocks")),
        mode: Some(mode & PERMISSIONS),
        open_file: 0,
    })
}

/// `st_dev=makedev(0xfe, 0)`, or `stx_dev_major=254, stx_dev_minor=0`. Any number that is the same for
/// the same device does.
fn device(answer: &[u8]) -> Option<u64> {
    let pair = |major: &[u8], minor: &[u8]| {
        let [major, minor] = [major, minor].map(|text| value::number(text.trim_ascii()));
        Some((major? as u64) << 32 | minor? as u64 & u64::from(u32::MAX))
    };
    if let Some(begin) = memchr::memmem::find(answer, b"st_dev=makedev(") {
        let numbers = answer[begin..].strip_prefix(b"st_dev=makedev(")?;
        let numbers = &numbers[..memchr::memchr(b')', numbers)?];
        let comma = memchr::memchr(b',', numbers)?;
        return pair(&numbers[..comma], &numbers[comma + 1..]);
    }
    let [major, minor] = [&b"stx_dev_major"[..], b"stx_dev_minor"].map(|n| value::field(answer, n));
    pair(major?, minor?)
}

/// The entries that getdents answered, with their types, where strace was told to write them (`-v`).
pub(in crate::strace) fn entries<'a>(call: &Call<'a>) -> Vec<(Path<'a>, Seen)> {
    let worked = matches!(call.returned, Returned::Value(1..));
    let lists = matches!(call.name, b"getdents" | b"getdents64");
    let (Ok(directory), Ok(list)) = (call.argument(0), call.argument(1)) else {
        return Vec::new();
    };
    let (Some(directory), true) = (value::descriptor(directory), worked && lists) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = memchr::memmem::find(&list[at..], b"d_name=\"") {
        let begin = at + begin + b"d_name=".len();
        let Some(end) = value::skip_string(list, begin) else {
            break;
        };
        let name = value::unescape(&list[begin + 1..end - 1]);
        // The type is before the name in getdents64, and behind it in getdents.
        let before = &list[at..begin];
        let behind = memchr::memchr(b'}', &list[end..]).map_or(end, |length| end + length);
        let kind = value::field(before, b"d_type").or(value::field(&list[end..behind], b"d_type"));
        at = behind;
        if *name != *b"." && *name != *b".." && !list[end..].starts_with(b"...") {
            found.push((entry(&directory, name), told(kind)));
        }
    }
    found
}

fn entry<'a>(directory: &Descriptor<'a>, name: Cow<'a, [u8]>) -> Path<'a> {
    Path {
        directory: Some(directory.clone()),
        text: name,
        truncated: false,
    }
}

fn told(kind: Option<&[u8]>) -> Seen {
    let kind = match kind.unwrap_or_default() {
        b"DT_REG" => SeenKind::File {
            size: None,
            content: Content::Data,
        },
        b"DT_DIR" => SeenKind::Directory,
        b"DT_LNK" => SeenKind::Symlink { bytes: 0 },
        b"DT_FIFO" => SeenKind::Fifo,
        b"DT_SOCK" => SeenKind::Socket,
        b"DT_CHR" | b"DT_BLK" => SeenKind::Device,
        _ => SeenKind::Something,
    };
    Seen {
        identity: None,
        names: None,
        kind,
        mode: None,
        open_file: 0,
    }
}

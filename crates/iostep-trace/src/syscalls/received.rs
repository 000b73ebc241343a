//! Descriptors that come from another process: with a message through a socket (`SCM_RIGHTS`,
//! unix(7)), or taken by pidfd_getfd.
//!
//! The kernel's programs say which open file it is and of what kind, but not its path; /proc says
//! that while the descriptor is open.

use std::borrow::Cow;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use iostep_model::syscall::OpenFlags;
use iostep_model::syscall::raw::{Action, Known, Seen};

use super::files;
use super::record::{RECEIVED, Record, SEEN};

/// include/linux/socket.h and include/uapi/asm-generic/socket.h.
const SCM_RIGHTS: i32 = 1;
const SOL_SOCKET: i32 = 1;
/// `struct cmsghdr`: its length with the data, level, type.
const HEAD_BYTES: usize = 16;

/// What a record says.
pub(super) fn told<'a>(record: &Record<'a>) -> (Action<'a>, Option<Seen>) {
    let (kind, seen) = files::received(record, record.word[3]);
    let path = record.text[0];
    let action = Action::Present {
        number: record.result as i32,
        is: Known {
            kind,
            path: (!path.is_empty() && kind.is_kept()).then_some(Cow::Borrowed(path)),
        },
        flags: OpenFlags::from_native(record.word[0] as i32).0,
        position: record.word[1] as i64,
        same_as: record.word[2],
        received: true,
    };
    (action, seen)
}

/// The record with the path, if it lacks one and the descriptor is still there. None otherwise.
pub(super) fn with_path(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = Record::parse(bytes).filter(|record| record.number == RECEIVED)?;
    let link = link(record.tid, record.result as i32);
    let found = fs::metadata(&link).ok()?;
    let same = found.ino() == record.word[7] && device(&found) == record.word[6] as u32;
    let path = path(&link, &found).filter(|_| same)?;
    let text = [&path[..], b""];
    Some(Record { text, ..record }.bytes())
}

/// The record of a descriptor of a stopped thread; none if it is not there.
pub(super) fn found(tid: u32, number: i32, now_ns: u64) -> Option<(PathBuf, Metadata, Vec<u8>)> {
    let link = link(tid, number);
    let found = fs::metadata(&link).ok()?;
    let filesystem = rustix::fs::statfs(&link).map_or(0, |answer| answer.f_type as u32);
    let info = fs::read_to_string(format!("/proc/{tid}/fdinfo/{number}")).ok()?;
    let field = |name| {
        let mut lines = info.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let mut word = [0; 10];
    word[0] = u64::from_str_radix(field("flags:")?, 8).ok()?;
    word[1] = field("pos:")?.parse().ok()?;
    word[3] = found.nlink();
    word[6] = u64::from(found.mode()) << 32 | u64::from(device(&found));
    word[7] = found.ino();
    word[8] = found.size();
    word[9] = u64::from(filesystem);
    let path = path(&link, &found).unwrap_or_default();
    let record = Record {
        start_ns: now_ns,
        duration_ns: 0,
        result: number.into(),
        tid,
        number: RECEIVED,
        flags: SEEN,
        word,
        text: [&path, b""],
    };
    let bytes = record.bytes();
    Some((link, found, bytes))
}

/// The descriptors in control messages, as recvmsg leaves them.
pub(super) fn descriptors(mut control: &[u8]) -> Vec<i32> {
    let mut all = Vec::new();
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_ne_bytes);
    while let Some((head, _)) = control.split_at_checked(HEAD_BYTES) {
        let length = head[..8].try_into().map_or(0, u64::from_ne_bytes);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some(data) = control.get(HEAD_BYTES..length) else {
            break;
        };
        if (number(&head[8..12]), number(&head[12..])) == (SOL_SOCKET, SCM_RIGHTS) {
            all.extend(data.chunks_exact(4).map(number));
        }
        control = control
            .get(length.next_multiple_of(8)..)
            .unwrap_or_default();
    }
    all
}

fn link(tid: u32, number: i32) -> PathBuf {
    PathBuf::from(format!("/proc/{tid}/fd/{number}"))
}

/// In the kernel's own numbering: MKDEV of include/linux/kdev_t.h.
fn device(found: &Metadata) -> u32 {
    rustix::fs::major(found.dev()) << 20 | rustix::fs::minor(found.dev()) & 0xf_ffff
}

/// The path of a file that has one.
fn path(link: &PathBuf, found: &Metadata) -> Option<Vec<u8>> {
    let path = fs::read_link(link).ok()?.into_os_string().into_vec();
    (path.starts_with(b"/") && found.nlink() > 0).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: i32, data: &[u8]) -> Vec<u8> {
        let length = (HEAD_BYTES + data.len()) as u64;
        let head = [SOL_SOCKET, kind].map(i32::to_ne_bytes).concat();
        let mut bytes = [&length.to_ne_bytes()[..], &head, data].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0xaa);
        bytes
    }

    #[test]
    fn descriptors_are_found_among_other_messages() {
        let data = |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let (first, second): (Vec<u8>, Vec<u8>) = (data(&[5, 6, 7]), data(&[9]));
        let control = [
            message(2, &[1; 12]),
            message(1, &first),
            message(1, &second),
        ]
        .concat();
        assert_eq!(descriptors(&control), [5, 6, 7, 9]);
        for length in 0..control.len() {
            assert!(descriptors(&control[..length]).len() <= 4);
        }
    }

    #[test]
    fn lengths_that_cannot_be_end_the_list() {
        for length in [0, 15, 17, u64::MAX] {
            let mut control = message(1, &[1; 8]);
            control[..8].copy_from_slice(&length.to_ne_bytes());
            control.truncate(HEAD_BYTES);
            assert_eq!(descriptors(&control), [0; 0], "{length}");
        }
    }
}

//! Requests of io_uring: what bpf/uring.bpf.h read of them, and what that means.

use std::collections::HashMap;

use iostep_model::syscall::raw::{Action, Descriptor, DescriptorKind};
use iostep_model::syscall::{OpenFlags, Operation as O, Syscall};

use super::action::{self, UNREADABLE};
use super::files;
use super::programs::types::wire_request as Flag;
use super::record::{self, Record};

const REGISTERED: u64 = Flag::REQUEST_REGISTERED.0 as u64;
const LOST: u64 = Flag::REQUEST_LOST.0 as u64;
const REFUSED: u64 = Flag::REQUEST_REFUSED.0 as u64;
pub(super) const SILENT: u64 = Flag::REQUEST_SILENT.0 as u64;
pub(super) const UNSEEN: u64 = Flag::REQUEST_UNSEEN.0 as u64;

/// `IORING_FSYNC_DATASYNC` (include/uapi/linux/io_uring.h).
const DATA_ONLY: u32 = 1;
/// What becomes of what a request makes: the ring's own table, which no descriptor stands for.
const TO_REGISTERED: &str = "request of io_uring for its own table";

/// `enum io_uring_op` (include/uapi/linux/io_uring.h).
mod code {
    pub(super) const READV: u32 = 1;
    pub(super) const WRITEV: u32 = 2;
    pub(super) const FSYNC: u32 = 3;
    pub(super) const READ_FIXED: u32 = 4;
    pub(super) const WRITE_FIXED: u32 = 5;
    pub(super) const SYNC_FILE_RANGE: u32 = 8;
    pub(super) const ACCEPT: u32 = 13;
    pub(super) const FALLOCATE: u32 = 17;
    pub(super) const OPENAT: u32 = 18;
    pub(super) const CLOSE: u32 = 19;
    pub(super) const STATX: u32 = 21;
    pub(super) const READ: u32 = 22;
    pub(super) const WRITE: u32 = 23;
    pub(super) const FADVISE: u32 = 24;
    pub(super) const OPENAT2: u32 = 28;
    pub(super) const SPLICE: u32 = 30;
    pub(super) const RENAMEAT: u32 = 35;
    pub(super) const UNLINKAT: u32 = 36;
    pub(super) const MKDIRAT: u32 = 37;
    pub(super) const SYMLINKAT: u32 = 38;
    pub(super) const LINKAT: u32 = 39;
    pub(super) const SOCKET: u32 = 45;
    pub(super) const FTRUNCATE: u32 = 55;
    pub(super) const READV_FIXED: u32 = 60;
    pub(super) const WRITEV_FIXED: u32 = 61;
}

/// True for a request whose names come apart.
fn has_names(record: &Record<'_>) -> bool {
    use code::*;
    matches!(
        record.word[0] as u32,
        OPENAT | OPENAT2 | STATX | RENAMEAT | UNLINKAT | MKDIRAT | SYMLINKAT | LINKAT
    )
}

/// Names that wait for their requests: by thread and beginning.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<(u32, u64), Vec<u8>>);

impl Names {
    /// Takes the record of a request's names.
    pub(super) fn add(&mut self, record: &Record<'_>, bytes: &[u8]) {
        let key = (record.tid, record.start_ns);
        self.0.insert(key, bytes.to_vec());
    }

    /// The names of a request that has some.
    pub(super) fn take(&mut self, record: &Record<'_>) -> Option<Vec<u8>> {
        if record.number != record::REQUEST || !has_names(record) {
            return None;
        }
        self.0.remove(&(record.tid, record.start_ns))
    }
}

/// Puts names into their request. Without them it says too little.
pub(super) fn named<'a>(record: Record<'a>, names: Option<&'a [u8]>) -> Record<'a> {
    if record.number != record::REQUEST || !has_names(&record) {
        return record;
    }
    match names.and_then(Record::parse) {
        Some(names) => Record {
            text: names.text,
            flags: record.flags | names.flags,
            ..record
        },
        None => Record {
            flags: record.flags | record::EXTRA_LOST,
            ..record
        },
    }
}

fn left_out(reason: &'static str) -> Action<'static> {
    Action::LeftOut {
        name: "io_uring".into(),
        reason,
    }
}

/// What a request asked for.
pub(super) fn asked<'a>(record: &Record<'a>) -> Action<'a> {
    let flags = record.word[4];
    let code = record.word[0] as u32;
    if flags & UNSEEN != 0 {
        return left_out("request of io_uring, which ptrace does not see");
    }
    if flags & REFUSED != 0 {
        return left_out("request of io_uring that the kernel refused");
    }
    if flags & REGISTERED != 0 {
        return left_out("request of io_uring on a registered file without a descriptor");
    }
    if flags & LOST != 0 || record.has(record::EXTRA_LOST) {
        return left_out(UNREADABLE);
    }
    if matches!(code, code::ACCEPT | code::SOCKET) {
        return Action::MakeOther {
            name: "io_uring".into(),
            kind: DescriptorKind::Socket,
            descriptors: i32::try_from(record.result)
                .into_iter()
                .filter(|n| *n >= 0)
                .collect(),
            close_on_exec: false,
        };
    }
    if code == code::SPLICE {
        let handle = Descriptor::number(record.word[1] as i32);
        return Action::Operation(Syscall::UringOther, O::Other { handle, code });
    }
    transfer(record, code)
        .or_else(|| like_call(record, code))
        .unwrap_or_else(|| left_out("other request of io_uring"))
}

fn transfer(record: &Record<'_>, code: u32) -> Option<Action<'static>> {
    let syscall = match code {
        code::READ | code::READ_FIXED => Syscall::UringRead,
        code::WRITE | code::WRITE_FIXED => Syscall::UringWrite,
        code::READV | code::READV_FIXED => Syscall::UringReadv,
        code::WRITEV | code::WRITEV_FIXED => Syscall::UringWritev,
        _ => return None,
    };
    let [number, offset, size, more] = [1, 2, 3, 5].map(|at| record.word[at]);
    let operation = O::Transfer {
        direction: syscall.direction(),
        handle: Descriptor::number(number as i32),
        // A buffer that the ring chose has a length of its own (IOSQE_BUFFER_SELECT).
        size: size.max(u64::try_from(record.result).unwrap_or(0)),
        buffers: more as u32,
        offset: (offset != u64::MAX).then_some(offset as i64),
        flags: (more >> 32) as u32,
    };
    Some(Action::Operation(syscall, operation))
}

/// A request that is like a call: as what it is kept, that call, and its arguments.
fn like(record: &Record<'_>, code: u32) -> Option<(Syscall, Syscall, [u64; 5])> {
    use Syscall as S;
    let [first, second, third, more] = [1, 2, 3, 5].map(|at| record.word[at]);
    let (low, high) = (more & u64::from(u32::MAX), more >> 32);
    Some(match code {
        code::FSYNC if high as u32 & DATA_ONLY != 0 => {
            (S::UringFdatasync, S::Fdatasync, [first, 0, 0, 0, 0])
        }
        code::FSYNC => (S::UringFsync, S::Fsync, [first, 0, 0, 0, 0]),
        code::SYNC_FILE_RANGE => {
            let words = [first, second, third, high, 0];
            (S::UringSyncFileRange, S::SyncFileRange, words)
        }
        code::FALLOCATE => (
            S::UringFallocate,
            S::Fallocate,
            [first, low, second, third, 0],
        ),
        code::FTRUNCATE => (S::UringFtruncate, S::Ftruncate, [first, second, 0, 0, 0]),
        code::FADVISE => (
            S::UringFadvise,
            S::Fadvise64,
            [first, second, third, low, 0],
        ),
        code::CLOSE => (S::UringClose, S::Close, [first, 0, 0, 0, 0]),
        code::OPENAT | code::OPENAT2 => (S::UringOpenat, S::Openat, [first, 0, second, third, 0]),
        code::STATX => (S::UringStatx, S::Statx, [first, 0, second, 0, 0]),
        code::RENAMEAT => (S::UringRenameat, S::Renameat2, [first, 0, second, 0, third]),
        code::LINKAT => (S::UringLinkat, S::Linkat, [first, 0, second, 0, third]),
        code::SYMLINKAT => (S::UringSymlinkat, S::Symlinkat, [0, second, 0, 0, 0]),
        code::UNLINKAT => (S::UringUnlinkat, S::Unlinkat, [first, 0, second, 0, 0]),
        code::MKDIRAT => (S::UringMkdirat, S::Mkdirat, [first, 0, second, 0, 0]),
        _ => return None,
    })
}

fn like_call<'a>(record: &Record<'a>, code: u32) -> Option<Action<'a>> {
    let (kept_as, syscall, words) = like(record, code)?;
    let (opens, more) = (syscall == Syscall::Openat, record.word[5]);
    if more != 0 && (opens || code == code::CLOSE) {
        return Some(left_out(TO_REGISTERED));
    }
    let other = opens.then(|| files::no_file(record, "io_uring", record.word[2]));
    if let Some(other) = other.flatten() {
        return Some(other);
    }
    let mut call = *record;
    call.word[..5].copy_from_slice(&words);
    Some(match action::call(&call, syscall) {
        // io_uring adds O_LARGEFILE itself (`force_o_largefile`, io_uring/openclose.c).
        Ok(Action::Operation(_, O::Open { path, flags, mode })) => {
            let flags = flags.without(OpenFlags::O_LARGEFILE);
            Action::Operation(kept_as, O::Open { path, flags, mode })
        }
        Ok(Action::Operation(_, operation)) => Action::Operation(kept_as, operation),
        Ok(other) => other,
        Err(reason) => left_out(reason),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(code: u32, words: [u64; 5]) -> Record<'static> {
        let mut word = [0; 10];
        word[0] = u64::from(code);
        word[1..6].copy_from_slice(&words);
        Record {
            start_ns: 1000,
            duration_ns: 7,
            result: 0,
            tid: 5,
            number: record::REQUEST,
            flags: 0,
            word,
            text: [b""; 2],
        }
    }

    /// The bytes of a request's names.
    fn names(of: &Record<'_>, text: [&'static [u8]; 2]) -> Vec<u8> {
        let number = record::REQUEST_NAMES;
        Record {
            number,
            text,
            word: [0; 10],
            ..*of
        }
        .bytes()
    }

    #[test]
    fn a_request_gets_the_names_that_came_before_it() {
        let at = libc::AT_FDCWD as u32 as u64;
        let rename = request(code::RENAMEAT, [at, 9, 1, 0, 0]);
        let told = names(&rename, [b"old", b"new"]);
        let mut waiting = Names::default();
        waiting.add(&Record::parse(&told).expect("a record"), &told);
        let later = Record {
            start_ns: 2000,
            ..rename
        };
        assert_eq!(waiting.take(&later), None, "of another request");
        let told = waiting.take(&rename);
        let whole = named(rename, told.as_deref());
        let Action::Operation(syscall, O::Rename { from, to, flags }) = asked(&whole) else {
            panic!("{:?}", asked(&whole));
        };
        assert_eq!((syscall, flags), (Syscall::UringRenameat, 1));
        assert_eq!((&*from.text, from.directory), (&b"old"[..], None));
        assert_eq!(
            (&*to.text, to.directory.map(|d| d.number)),
            (&b"new"[..], Some(9))
        );
        assert_eq!(waiting.take(&rename), None, "they are its own");
    }

    #[test]
    fn without_its_names_a_request_is_left_out() {
        let mkdir = named(request(code::MKDIRAT, [3, 0o755, 0, 0, 0]), None);
        let Action::LeftOut { reason, .. } = asked(&mkdir) else {
            panic!("{:?}", asked(&mkdir));
        };
        assert_eq!(reason, UNREADABLE);
    }

    #[test]
    fn each_request_is_one_call_or_left_out_for_a_reason() {
        let words = [3, 100, 200, 0, 1];
        for code in 0..70 {
            let record = request(code, words);
            let text = names(&record, [b"first", b"second"]);
            let record = named(record, has_names(&record).then_some(&text));
            match asked(&record) {
                Action::Operation(syscall, _) => {
                    assert!(syscall.name().starts_with("io_uring_"), "{code}: {syscall}");
                }
                Action::LeftOut { reason, .. } => assert!(reason.contains("io_uring"), "{code}"),
                Action::MakeOther { .. } => assert!([code::ACCEPT, code::SOCKET].contains(&code)),
                other => panic!("{code}: {other:?}"),
            }
        }
        for (flags, why) in [
            (REGISTERED, "registered file without a descriptor"),
            (REFUSED, "refused"),
            (UNSEEN, "ptrace"),
        ] {
            let record = request(code::READ, [3, 0, 10, flags, 1]);
            let Action::LeftOut { reason, .. } = asked(&record) else {
                panic!("{flags}");
            };
            assert!(reason.contains(why), "{reason}");
        }
    }

    #[test]
    fn a_sync_of_data_is_told_from_a_whole_one() {
        let syscall = |flags: u64| match asked(&request(code::FSYNC, [3, 0, 0, 0, flags << 32])) {
            Action::Operation(syscall, O::Sync { .. }) => syscall,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            [syscall(0), syscall(1)],
            [Syscall::UringFsync, Syscall::UringFdatasync]
        );
    }
}

//! Requests of io_uring.

use iostep_model::syscall::raw::{Action, Descriptor, Path};
use iostep_model::syscall::{Direction, Operation, Syscall};

use super::record::Record;

/// `enum wire_request` of bpf/wire.h.
const REGISTERED: u64 = 1;
const LOST: u64 = 2;

/// `enum io_uring_op` (include/uapi/linux/io_uring.h).
mod code {
    pub(super) const READV: u32 = 1;
    pub(super) const WRITEV: u32 = 2;
    pub(super) const FSYNC: u32 = 3;
    pub(super) const READ_FIXED: u32 = 4;
    pub(super) const WRITE_FIXED: u32 = 5;
    pub(super) const SYNC_FILE_RANGE: u32 = 8;
    pub(super) const FALLOCATE: u32 = 17;
    pub(super) const CLOSE: u32 = 19;
    pub(super) const READ: u32 = 22;
    pub(super) const WRITE: u32 = 23;
    pub(super) const FADVISE: u32 = 24;
    pub(super) const SPLICE: u32 = 30;
    pub(super) const FTRUNCATE: u32 = 55;
    /// What names its file by a path: openat, statx, openat2, renameat, unlinkat, mkdirat,
    /// symlinkat, linkat.
    pub(super) const WITH_PATH: [u32; 8] = [18, 21, 28, 35, 36, 37, 38, 39];
}

/// What a request asked for.
pub(super) fn action<'a>(record: &Record<'a>) -> Action<'a> {
    let [opcode, number, offset, size, flags, buffers] =
        [0, 1, 2, 3, 4, 5].map(|at| record.word[at]);
    let left_out = |reason| Action::LeftOut {
        name: "io_uring".into(),
        reason,
    };
    if flags & REGISTERED != 0 {
        return left_out("request of io_uring on a registered file");
    }
    if flags & LOST != 0 {
        return left_out("arguments could not be read");
    }
    let handle = Descriptor::number(number as i32);
    let code = opcode as u32;
    let transfer = |syscall, direction| {
        let operation: Operation<Descriptor<'a>, Path<'a>> = Operation::Transfer {
            direction,
            handle: handle.clone(),
            size,
            buffers: buffers as u32,
            offset: (offset != u64::MAX).then_some(offset as i64),
            flags: 0,
        };
        Action::Operation(syscall, operation)
    };
    let offset = offset as i64;
    match code {
        code::READ | code::READ_FIXED => transfer(Syscall::UringRead, Direction::Read),
        code::WRITE | code::WRITE_FIXED => transfer(Syscall::UringWrite, Direction::Write),
        code::READV => transfer(Syscall::UringReadv, Direction::Read),
        code::WRITEV => transfer(Syscall::UringWritev, Direction::Write),
        code::FSYNC => Action::Operation(Syscall::UringFsync, Operation::Sync { handle }),
        code::SYNC_FILE_RANGE => Action::Operation(
            Syscall::UringSyncFileRange,
            Operation::SyncRange {
                handle,
                offset,
                size: size as i64,
                flags: (buffers >> 32) as u32,
            },
        ),
        code::FALLOCATE => Action::Operation(
            Syscall::UringFallocate,
            Operation::Allocate {
                handle,
                mode: buffers as u32,
                offset,
                size: size as i64,
            },
        ),
        code::CLOSE => Action::Operation(Syscall::UringClose, Operation::Close { handle }),
        code::FADVISE | code::SPLICE | code::FTRUNCATE => {
            Action::Operation(Syscall::UringOther, Operation::Other { handle, code })
        }
        other if code::WITH_PATH.contains(&other) => left_out("request of io_uring with a path"),
        _ => left_out("other request of io_uring"),
    }
}

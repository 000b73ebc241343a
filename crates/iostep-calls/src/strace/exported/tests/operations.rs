//! Every operation with any numbers, and the calls that it can be of.

use iostep_model::syscall::Operation as O;
use iostep_model::syscall::Syscall as S;
use iostep_model::syscall::{
    Direction, HandleId, LockKind, OpenFlags, Paths, Syscall, Target, ThreadId, Whence,
};

use super::{Op, Seed};

type Kinds = Vec<(&'static [Syscall], Op)>;

fn open_flags(seed: &Seed) -> OpenFlags {
    // O_WRONLY and O_RDWR are not both.
    OpenFlags((seed.flags % (1 << OpenFlags::NAMES.len())) & !2)
}

pub(super) fn all(seed: &Seed, paths: &mut Paths) -> Kinds {
    let mut kinds = by_path(seed, paths);
    kinds.extend(by_handle(seed));
    kinds.extend(transfers(seed));
    for whence in Whence::ALL {
        let (handle, offset, whence) = (seed.handle, seed.offset, *whence);
        kinds.push((
            &[S::Lseek],
            O::Seek {
                handle,
                offset,
                whence,
            },
        ));
    }
    kinds
}

/// Reads and writes, and what names more than one file.
#[rustfmt::skip]
fn transfers(seed: &Seed) -> Kinds {
    let &Seed { handle: h, other: g, number, offset, size, flags, yes, .. } = seed;
    let (read, write) = (Direction::Read, Direction::Write);
    let transfer = |direction, offset, buffers, flags| {
        O::Transfer { direction, handle: h, size, buffers, offset, flags }
    };
    let (none, at, either) = (None, Some(offset), yes.then_some(offset));
    vec![
        (&[S::Read, S::UringRead], transfer(read, none, 1, 0)),
        (&[S::Write], transfer(write, none, 1, 0)),
        (&[S::Pread64, S::UringRead], transfer(read, at, 1, 0)),
        (&[S::Pwrite64], transfer(write, at, 1, 0)),
        (&[S::Readv], transfer(read, none, number % 40, 0)),
        (&[S::Preadv], transfer(read, at, number % 40, 0)),
        (&[S::Pwritev], transfer(write, at, number % 40, 0)),
        (&[S::Preadv2], transfer(read, either, number % 40, flags)),
        (&[S::Pwritev2], transfer(write, either, number % 40, flags & 0xff)),
        (&[S::Exit, S::CloseRange, S::Execve], O::CloseMany { handles: [h, g].into() }),
        (&[S::Dup, S::Dup2, S::Dup3, S::Fcntl, S::Present], O::Duplicate { handle: h, replaces: yes.then_some(g) }),
        (&[S::Clone], O::Inherit { child: ThreadId(2), handles: [h].into() }),
        (&[S::Sendfile], O::Copy { from: h, from_offset: either, to: g, to_offset: None, size }),
        (&[S::CopyFileRange], O::Copy { from: h, from_offset: None, to: g, to_offset: at, size }),
    ]
}

#[rustfmt::skip]
fn by_handle(seed: &Seed) -> Kinds {
    let &Seed { handle: h, number, offset, size, flags, yes, .. } = seed;
    let file = Target::<HandleId, _>::Handle(h);
    let mode = flags & 0o7777;
    let lock = |kind, lock, wait| O::Lock { handle: h, kind, lock, wait, offset, size: 7 };
    vec![
        (&[S::Close, S::UringClose], O::Close { handle: h }),
        (&[S::Ftruncate], O::Truncate { target: file, size: offset }),
        (&[S::Fallocate, S::UringFallocate], O::Allocate { handle: h, mode: flags & 0x7f, offset, size: offset }),
        (&[S::Fsync, S::Fdatasync, S::Syncfs, S::UringFsync], O::Sync { handle: h }),
        (&[S::Sync], O::SyncAll),
        (&[S::SyncFileRange], O::SyncRange { handle: h, offset, size: 1, flags: number }),
        (&[S::Mmap], O::Map { handle: h, offset, size, protection: flags & 7, flags: number }),
        (&[S::Munmap], O::Unmap { handle: h, offset, size }),
        (&[S::Mremap], O::Remap { handle: h, offset, size, new_size: u64::from(number) }),
        (&[S::Msync], O::SyncMap { handle: h, offset, size, flags }),
        (&[S::Fstat], O::Stat { target: file, follow: true }),
        (&[S::Fstatfs], O::StatFilesystem { target: file }),
        (&[S::Getdents, S::Getdents64], O::ReadDirectory { handle: h, size }),
        (&[S::Fchmod], O::SetMode { target: file, mode }),
        (&[S::Fchown, S::Fchownat], O::SetOwner { target: file, user: number as i32, group: -1 }),
        (&[S::Futimesat, S::Utimensat], O::SetTimes { target: file }),
        (&[S::Fadvise64], O::Advise { handle: h, offset, size: 4, advice: number % 6 }),
        (&[S::Readahead], O::Advise { handle: h, offset, size: 4, advice: 3 }),
        (&[S::Flock], O::Lock { handle: h, kind: LockKind::Whole, lock: 2, wait: yes, offset: 0, size: 0 }),
        (&[S::Fcntl], lock(LockKind::Process, number % 3, yes)),
        (&[S::Fcntl], lock(LockKind::Description, number % 3, yes)),
        (&[S::Fcntl], lock(LockKind::Query, 1 - number % 2, false)),
        (&[S::Fcntl], O::StatusFlags { handle: h, set: yes.then_some(open_flags(seed)) }),
        (&[S::Ioctl], O::Control { handle: h, request: number }),
        (&[S::UringOther], O::Other { handle: h, code: 40 }),
    ]
}

#[rustfmt::skip]
fn by_path(seed: &Seed, paths: &mut Paths) -> Kinds {
    let &Seed { handle, number, offset, size, flags, yes, .. } = seed;
    let (from, to) = (paths.intern(&seed.from), paths.intern(&seed.to));
    let (file, path) = (Target::Handle(handle), Target::Path(from));
    let mode = flags & 0o7777;
    vec![
        (&[S::Open, S::Openat, S::Openat2, S::Creat, S::UringOpenat, S::Present], O::Open { path: from, flags: open_flags(seed), mode }),
        (&[S::Truncate], O::Truncate { target: path, size: offset }),
        (&[S::Rename, S::Renameat], O::Rename { from, to, flags: 0 }),
        (&[S::Renameat2], O::Rename { from, to, flags }),
        (&[S::Link], O::Link { from, to, flags: 0 }),
        (&[S::Linkat], O::Link { from, to, flags }),
        (&[S::Symlink, S::Symlinkat], O::Symlink { content: to, path: from }),
        (&[S::Unlink, S::Unlinkat], O::Unlink { path: from }),
        (&[S::Mkdir, S::Mkdirat], O::MakeDirectory { path: from, mode }),
        (&[S::Rmdir, S::Unlinkat], O::RemoveDirectory { path: from }),
        (&[S::Newfstatat, S::Statx], O::Stat { target: if yes { file } else { path }, follow: number % 2 == 0 }),
        (&[S::Stat], O::Stat { target: path, follow: true }),
        (&[S::Lstat], O::Stat { target: path, follow: false }),
        (&[S::Statfs], O::StatFilesystem { target: path }),
        (&[S::Access, S::Faccessat, S::Faccessat2], O::Access { path: from, mode: number % 8 }),
        (&[S::Readlink, S::Readlinkat], O::ReadLink { path: from, size }),
        (&[S::Chmod, S::Fchmodat], O::SetMode { target: path, mode }),
        (&[S::Chown, S::Lchown, S::Fchownat], O::SetOwner { target: path, user: number as i32, group: -1 }),
        (&[S::Utime, S::Utimes, S::Futimesat, S::Utimensat], O::SetTimes { target: path }),
    ]
}

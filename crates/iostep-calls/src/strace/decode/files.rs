//! Calls that name their file by a path.

use std::borrow::Cow;

use iostep_model::syscall::raw::{Action, CURRENT_DIRECTORY, Descriptor, Path, Returned};
use iostep_model::syscall::{OpenFlags, Operation, Syscall, Target};

use super::{Decoded, Named};
use crate::strace::{flags, split, value};

type Call<'c, 'a> = Named<'c, 'a>;
type FileTarget<'a> = Target<Descriptor<'a>, Path<'a>>;

pub(super) fn open<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path(0)?;
    open_with(call, path, 1)
}

pub(super) fn openat<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path_at(0)?;
    open_with(call, path, 2)
}

fn open_with<'a>(call: &Call<'_, 'a>, path: Path<'a>, index: usize) -> Decoded<'a> {
    let flags = flags::open(call.call.argument(index)?).ok_or(call.unreadable())?;
    let mode = call.late_flags(index + 1, flags::MODE)?;
    call.is(Operation::Open { path, flags, mode })
}

/// `openat2(AT_FDCWD, "x", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24)`.
pub(super) fn openat2<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path_at(0)?;
    let how = call.call.argument(2)?;
    let flags = value::field(how, b"flags").and_then(flags::open);
    let mode = value::field(how, b"mode").and_then(|mode| flags::flags(mode, flags::MODE));
    call.is(Operation::Open {
        path,
        flags: flags.ok_or(call.unreadable())?,
        mode: mode.unwrap_or(0),
    })
}

pub(super) fn creat<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let flags = OpenFlags::O_WRONLY
        .with(OpenFlags::O_CREAT)
        .with(OpenFlags::O_TRUNC);
    call.is(Operation::Open {
        path: call.path(0)?,
        flags,
        mode: call.flags(1, flags::MODE)?,
    })
}

pub(super) fn truncate<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Truncate {
        target: Target::Path(call.path(0)?),
        size: call.number(1)?,
    })
}

pub(super) fn rename<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Rename {
        from: call.path(0)?,
        to: call.path(1)?,
        flags: 0,
    })
}

pub(super) fn rename_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Rename {
        from: call.path_at(0)?,
        to: call.path_at(2)?,
        flags: call.late_flags(4, flags::RENAME)?,
    })
}

pub(super) fn link<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Link {
        from: call.path(0)?,
        to: call.path(1)?,
        flags: 0,
    })
}

pub(super) fn link_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Link {
        from: call.path_at(0)?,
        to: call.path_at(2)?,
        flags: call.flags(4, flags::AT)?,
    })
}

/// symlink, and symlinkat with its directory between the two texts.
pub(super) fn symlink<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let content = call.path(0)?;
    let path = match call.syscall {
        Syscall::Symlinkat => call.path_at(1)?,
        _ => call.path(1)?,
    };
    call.is(Operation::Symlink { content, path })
}

pub(super) fn unlink<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path(0)?;
    call.is(Operation::Unlink { path })
}

pub(super) fn unlink_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path_at(0)?;
    let flags = call.flags(2, flags::AT)?;
    call.is(match flags & flags::AT_REMOVEDIR {
        0 => Operation::Unlink { path },
        _ => Operation::RemoveDirectory { path },
    })
}

pub(super) fn make_directory<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let (path, next) = either_path(call)?;
    let mode = call.flags(next, flags::MODE)?;
    call.is(Operation::MakeDirectory { path, mode })
}

pub(super) fn remove_directory<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path(0)?;
    call.is(Operation::RemoveDirectory { path })
}

pub(super) fn stat<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Stat {
        target: Target::Path(call.path(0)?),
        follow: call.syscall == Syscall::Stat,
    })
}

pub(super) fn stat_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    stat_with(call, 3)
}

pub(super) fn statx<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    stat_with(call, 2)
}

fn stat_with<'a>(call: &Call<'_, 'a>, index: usize) -> Decoded<'a> {
    let flags = call.flags(index, flags::AT)?;
    call.is(Operation::Stat {
        target: target_at(call, flags)?,
        follow: flags & flags::AT_SYMLINK_NOFOLLOW == 0,
    })
}

/// The file of a call with a directory: that itself with `AT_EMPTY_PATH`, or without a path at all,
/// which is how the C library's futimens calls utimensat.
fn target_at<'a>(call: &Call<'_, 'a>, flags: u32) -> Result<FileTarget<'a>, &'static str> {
    let directory = call.descriptor(0)?;
    let itself =
        call.is_null(1) || flags & flags::AT_EMPTY_PATH != 0 && call.call.argument(1)? == b"\"\"";
    if itself && directory.number != CURRENT_DIRECTORY {
        return Ok(Target::Handle(directory));
    }
    let mut path = call.path_at(0)?;
    if itself && path.text.is_empty() {
        path.text = Cow::Borrowed(b".");
    }
    Ok(Target::Path(path))
}

pub(super) fn stat_filesystem<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let target = Target::Path(call.path(0)?);
    call.is(Operation::StatFilesystem { target })
}

pub(super) fn access<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Access {
        path: call.path(0)?,
        mode: call.flags(1, flags::ACCESS)?,
    })
}

pub(super) fn access_at<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.is(Operation::Access {
        path: call.path_at(0)?,
        mode: call.flags(2, flags::ACCESS)?,
    })
}

pub(super) fn read_link<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let (path, next) = either_path(call)?;
    let size = call.size(next + 1)?;
    call.is(Operation::ReadLink { path, size })
}

/// What the link said that a readlink read, if the text and the program's buffer have all of it.
pub(in crate::strace) fn link_says<'a>(call: &mut split::Call<'a>) -> Option<Action<'a>> {
    let syscall = match call.name {
        b"readlink" => Syscall::Readlink,
        b"readlinkat" => Syscall::Readlinkat,
        _ => return None,
    };
    let Returned::Value(length) = call.returned else {
        return None;
    };
    let call = Named { syscall, call };
    let (path, next) = either_path(&call).ok()?;
    let content = value::text(call.call.argument(next).ok()?)?;
    let whole = !content.truncated && content.bytes.len() as u64 == length;
    let room = call.size(next + 1).ok()? > length;
    (whole && room && length > 0).then_some(Action::LinkSays {
        path,
        content: content.bytes,
    })
}

pub(super) fn set_mode<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let (path, next) = either_path(call)?;
    call.is(Operation::SetMode {
        target: Target::Path(path),
        mode: call.flags(next, flags::MODE)?,
    })
}

pub(super) fn set_owner<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let at = call.syscall == Syscall::Fchownat;
    let (target, next) = match at {
        true => (target_at(call, call.flags(4, flags::AT)?)?, 2),
        false => (Target::Path(call.path(0)?), 1),
    };
    call.is(Operation::SetOwner {
        target,
        user: call.number(next)? as i32,
        group: call.number(next + 1)? as i32,
    })
}

pub(super) fn set_times<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let target = match call.syscall {
        Syscall::Utimensat => target_at(call, call.late_flags(3, flags::AT)?)?,
        Syscall::Futimesat => target_at(call, 0)?,
        _ => Target::Path(call.path(0)?),
    };
    call.is(Operation::SetTimes { target })
}

/// The path of a call that has a directory before it in its newer form; then the next argument.
fn either_path<'a>(call: &Call<'_, 'a>) -> Result<(Path<'a>, usize), &'static str> {
    match call.syscall {
        Syscall::Mkdirat | Syscall::Readlinkat | Syscall::Fchmodat => Ok((call.path_at(0)?, 2)),
        _ => Ok((call.path(0)?, 1)),
    }
}

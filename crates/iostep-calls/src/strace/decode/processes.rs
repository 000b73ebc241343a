//! Calls that change processes and where they are.

use std::borrow::Cow;

use iostep_model::syscall::raw::{Action, Path, Returned};

use super::{Decoded, Named, OTHER_FILE_CALL};
use crate::strace::{flags, split, value};

type Call<'c, 'a> = Named<'c, 'a>;

/// A thread's name is at most this long (`TASK_COMM_LEN`, include/linux/sched.h).
const NAME_BYTES: usize = 15;

pub(super) fn change_directory<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    call.path(0).map(Action::ChangeDirectory)
}

pub(super) fn change_directory_to<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    Ok(Action::ChangeDirectory(Path {
        directory: Some(call.descriptor(0)?),
        text: Cow::Borrowed(b""),
        truncated: false,
    }))
}

/// What getcwd says is as good as a chdir there.
pub(super) fn current_directory<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let path = call.path(0).map_err(|_| OTHER_FILE_CALL)?;
    match path.text.starts_with(b"/") && matches!(call.call.returned, Returned::Value(_)) {
        true => Ok(Action::ChangeDirectory(path)),
        false => Err(OTHER_FILE_CALL),
    }
}

pub(super) fn clone<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    let child = match call.call.returned {
        Returned::Value(child) => u32::try_from(child).map_err(|_| call.unreadable())?,
        // It made nothing, or nobody knows what.
        _ => 0,
    };
    if child == 0 {
        return Err("failed clone");
    }
    Ok(child_of(call.call, child))
}

/// The child of a call of clone or one of its relatives.
pub(in crate::strace) fn child_of<'a>(call: &split::Call<'a>, child: u32) -> Action<'a> {
    let flags = call.field(b"flags").map_or(0, flags::clone);
    Action::Clone {
        name: String::from_utf8_lossy(call.name),
        child,
        thread: flags & flags::CLONE_THREAD != 0,
        shares_descriptors: flags & flags::CLONE_FILES != 0,
        shares_directory: flags & flags::CLONE_FS != 0,
    }
}

pub(super) fn execute<'a>(call: &mut Call<'_, 'a>) -> Decoded<'a> {
    if !matches!(call.call.returned, Returned::Value(_)) {
        return Err("failed exec");
    }
    let path = call
        .call
        .argument(usize::from(call.call.name == b"execveat"));
    let path = path.ok().and_then(value::text);
    let bytes = path.map(|path| path.bytes).unwrap_or_default();
    let name = bytes.rsplit(|byte| *byte == b'/').next();
    let name = name.unwrap_or_default();
    let name = &name[..name.len().min(NAME_BYTES)];
    Ok(Action::Execute {
        name: String::from_utf8_lossy(name).into_owned().into(),
    })
}

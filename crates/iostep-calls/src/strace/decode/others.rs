//! Calls that change processes and where they are, and those that make descriptors of no files.

use std::borrow::Cow;

use iostep_model::syscall::Arguments;
use iostep_model::syscall::raw::{Action, DescriptorKind, Path, Returned};

use super::{Decoded, OTHER_FILE_CALL, Text};
use crate::strace::split::Call;
use crate::strace::{flags, value};

/// A thread's name is at most this long (`TASK_COMM_LEN`, include/linux/sched.h).
const NAME_BYTES: usize = 15;

pub(super) fn change_directory<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    Text(call).path(0).map(Action::ChangeDirectory)
}

pub(super) fn change_root<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    Text(call).path(0).map(Action::ChangeRoot)
}

pub(super) fn change_directory_to<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    Ok(Action::ChangeDirectory(Path {
        directory: Some(Text(call).descriptor(0)?),
        text: Cow::Borrowed(b""),
        truncated: false,
    }))
}

/// What getcwd says is as good as a chdir there.
pub(super) fn current_directory<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    let path = Text(call).path(0).map_err(|_| OTHER_FILE_CALL)?;
    match path.text.starts_with(b"/") && matches!(call.returned, Returned::Value(_)) {
        true => Ok(Action::ChangeDirectory(path)),
        false => Err(OTHER_FILE_CALL),
    }
}

pub(super) fn clone<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    let child = match call.returned {
        Returned::Value(_) if call.translated.is_some() => call.translated.unwrap_or(0),
        Returned::Value(child) => u32::try_from(child).map_err(|_| Text(call).unreadable())?,
        // It made nothing, or nobody knows what.
        _ => 0,
    };
    if child == 0 {
        return Err("failed clone");
    }
    Ok(child_of(call, child))
}

/// The child of a call of clone or one of its relatives.
pub(in crate::strace) fn child_of<'a>(call: &Call<'a>, child: u32) -> Action<'a> {
    let flags = call.field(b"flags").map_or(0, flags::clone);
    Action::Clone {
        name: String::from_utf8_lossy(call.name),
        child,
        thread: flags & flags::CLONE_THREAD != 0,
        shares_descriptors: flags & flags::CLONE_FILES != 0,
        shares_directory: flags & flags::CLONE_FS != 0,
    }
}

pub(super) fn execute<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    if !matches!(call.returned, Returned::Value(_)) {
        return Err("failed exec");
    }
    let path = call.argument(usize::from(call.name == b"execveat"));
    let path = path.ok().and_then(value::text);
    let bytes = path.map(|path| path.bytes).unwrap_or_default();
    let name = bytes.rsplit(|byte| *byte == b'/').next();
    let name = name.unwrap_or_default();
    let name = &name[..name.len().min(NAME_BYTES)];
    Ok(Action::Execute {
        name: String::from_utf8_lossy(name).into_owned().into(),
    })
}

/// pipe, socket, eventfd and so on: the new descriptors are in brackets or are the result.
pub(super) fn make_other<'a>(call: &Call<'a>, kind: DescriptorKind) -> Decoded<'a> {
    let mut descriptors = Vec::new();
    let mut close_on_exec = false;
    let in_brackets = matches!(call.name, b"pipe" | b"pipe2" | b"socketpair");
    for index in 0..call.count() {
        let argument = call.argument(index)?;
        close_on_exec |= memchr::memmem::find(argument, b"CLOEXEC").is_some();
        if let Some(list) = argument.strip_prefix(b"[").filter(|_| in_brackets) {
            let list = list.strip_suffix(b"]").unwrap_or(list);
            let numbers = list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
            descriptors.extend(numbers.filter_map(value::descriptor).map(|d| d.number));
        }
    }
    if let Returned::Value(number) = call.returned {
        if !in_brackets {
            descriptors.push(number as i32);
        }
    } else {
        descriptors.clear();
    }
    Ok(Action::MakeOther {
        name: String::from_utf8_lossy(call.name),
        kind,
        descriptors,
        close_on_exec,
    })
}

//! What a device mapper device is made of, as its table says (include/uapi/linux/dm-ioctl.h).

use std::fs::File;
use std::path::Path;

use rustix::ioctl::{self, Updater, opcode};

use crate::error::{Error, Result};

/// Where the kernel takes the ioctls, by udev and on Android (system/core/libdm).
const CONTROLS: [&str; 2] = ["/dev/mapper/control", "/dev/device-mapper"];
/// `DM_STATUS_TABLE_FLAG`: the table, not the targets' state.
const TABLE_FLAG: u32 = 1 << 4;
/// `DM_BUFFER_FULL_FLAG`: there was more to tell.
const BUFFER_FULL_FLAG: u32 = 1 << 8;
/// Room for the table: a line is some hundred bytes.
const TABLE_BYTES: usize = 64 << 10;

/// `struct dm_ioctl`, and behind it what the kernel answers.
#[repr(C)]
struct Request {
    version: [u32; 3],
    data_size: u32,
    data_start: u32,
    target_count: u32,
    open_count: i32,
    flags: u32,
    event_nr: u32,
    padding: u32,
    dev: u64,
    name: [u8; 128],
    uuid: [u8; 129],
    data: [u8; 7],
    answer: [u8; TABLE_BYTES],
}

/// What a `dm_ioctl` takes without the answer, which is what its number is made of.
#[repr(C)]
struct Head {
    _bytes: [u64; 39],
}

/// `struct dm_target_spec`: bytes before the target's type, of the type, and in all.
const TYPE_AT: usize = 24;
const TYPE_BYTES: usize = 16;
const SPEC_BYTES: usize = TYPE_AT + TYPE_BYTES;

/// The types of a device's targets, in the order of its sectors: `linear`, `striped`, `crypt`, ...
///
/// `number` is as user space has it (`st_rdev`).
/// Errors: `Io` without the right to ask or without device mapper; `Unsupported` for a table that
/// cannot be read.
pub(crate) fn target_types(number: u64) -> Result<Vec<String>> {
    let [usual, android] = CONTROLS.map(Path::new);
    let path = match !usual.exists() && android.exists() {
        true => android,
        false => usual,
    };
    let control = File::options()
        .read(true)
        .write(true)
        .open(path)
        .map_err(Error::io(path, "open"))?;
    let mut request = Box::new(Request {
        version: [4, 0, 0],
        data_size: size_of::<Request>() as u32,
        data_start: std::mem::offset_of!(Request, answer) as u32,
        target_count: 0,
        open_count: 0,
        flags: TABLE_FLAG,
        event_nr: 0,
        padding: 0,
        dev: number,
        name: [0; 128],
        uuid: [0; 129],
        data: [0; 7],
        answer: [0; TABLE_BYTES],
    });
    const TABLE_STATUS: ioctl::Opcode = opcode::read_write::<Head>(0xfd, 12);
    // SAFETY: the kernel reads and writes at most `data_size` bytes, which is the size of what
    // the reference points to; every content of its fields is valid.
    unsafe {
        ioctl::ioctl(
            &control,
            Updater::<TABLE_STATUS, Request>::new(&mut request),
        )
    }
    .map_err(Error::io(path, "read the table of a device through"))?;
    if request.flags & BUFFER_FULL_FLAG != 0 {
        return Err(Error::unsupported(
            path.display(),
            "the device's table is too long",
        ));
    }
    Ok(types(&request.answer, request.target_count))
}

/// Specifications follow each other; `next` of each counts from the answer's start.
fn types(answer: &[u8], count: u32) -> Vec<String> {
    let mut all = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let Some(spec) = answer.get(at..at + SPEC_BYTES) else {
            break;
        };
        let name = &spec[TYPE_AT..];
        let end = name.iter().position(|b| *b == 0).unwrap_or(TYPE_BYTES);
        all.push(String::from_utf8_lossy(&name[..end]).into_owned());
        let next = u32::from_ne_bytes([spec[20], spec[21], spec[22], spec[23]]) as usize;
        if next <= at {
            break;
        }
        at = next;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_has_the_kernels_layout() {
        assert_eq!(size_of::<Head>(), 312);
        assert_eq!(std::mem::offset_of!(Request, dev), 40);
        assert_eq!(std::mem::offset_of!(Request, answer), 312);
    }

    #[test]
    fn each_specification_says_where_the_next_one_is() {
        let spec = |name: &str, next: u32| {
            let mut spec = vec![0; SPEC_BYTES];
            spec[20..24].copy_from_slice(&next.to_ne_bytes());
            spec[TYPE_AT..TYPE_AT + name.len()].copy_from_slice(name.as_bytes());
            spec
        };
        let mut answer = spec("linear", 56);
        answer.resize(56, b'x');
        answer.extend(spec("crypt", 112));
        assert_eq!(types(&answer, 2), ["linear", "crypt"]);
        // Cut short, or telling of itself.
        assert_eq!(types(&answer[..60], 2), ["linear"]);
        assert_eq!(types(&spec("linear", 0), 3), ["linear"]);
    }
}

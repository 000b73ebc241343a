//! Requests of io_submit, as strace's src/aio.c writes them.
//!
//! `{aio_data=0x7f.., aio_rw_flags=RWF_DSYNC, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=6,
//! aio_buf="...", aio_nbytes=4096, aio_offset=0}`; before strace 4.18 `{data=0x7f.., pwrite, fildes=6,
//! str="...", nbytes=4096, offset=0}`. Where a request lies is not among it.

use iostep_model::syscall::Arguments;
use iostep_model::syscall::raw::{Action, AioEnd, AioKey, AioRequest, Descriptor, Returned};

use super::arguments::vector_bytes;
use super::{Decoded, Text};
use crate::strace::split::Call;
use crate::strace::{flags, value};

/// Commands by the names of older versions.
const OLD_COMMANDS: [(&[u8], u32); 6] = [
    (b"pread", 0),
    (b"pwrite", 1),
    (b"fsync", 2),
    (b"fdsync", 3),
    (b"preadv", 7),
    (b"pwritev", 8),
];

pub(super) fn submit<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    let text = Text(call);
    let context = text.size(0)?;
    let requests = elements(call.argument(2)?).into_iter().map(request);
    Ok(Action::Submit {
        context,
        requests: requests.collect(),
    })
}

pub(super) fn complete<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    let context = Text(call).size(0)?;
    let ends = match call.returned {
        Returned::Value(_) => elements(call.argument(3)?),
        _ => Vec::new(),
    };
    Ok(Action::Complete {
        name: String::from_utf8_lossy(call.name),
        context,
        ends: ends.into_iter().filter_map(end).collect(),
        all: false,
    })
}

/// io_destroy waits for all.
pub(super) fn destroy<'a>(call: &mut Call<'a>) -> Decoded<'a> {
    Ok(Action::Complete {
        name: String::from_utf8_lossy(call.name),
        context: Text(call).size(0)?,
        ends: Vec::new(),
        all: matches!(call.returned, Returned::Value(_)),
    })
}

/// The structures of an array, each with its brackets.
fn elements(array: &[u8]) -> Vec<&[u8]> {
    let mut elements = Vec::new();
    let (mut at, mut depth, mut begin) = (0, 0_usize, 0);
    while let Some(byte) = array.get(at) {
        match byte {
            b'"' => match value::skip_string(array, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => break,
            },
            b'<' if at > 0 && array[at - 1].is_ascii_digit() => {
                match value::skip_known(array, at) {
                    Some(end) => {
                        at = end;
                        continue;
                    }
                    None => break,
                }
            }
            b'{' => {
                if depth == 0 {
                    begin = at;
                }
                depth += 1;
            }
            b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    elements.push(&array[begin..=at]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    elements
}

/// The parts of a structure: each with its name, if it has one.
fn parts(structure: &[u8]) -> Vec<(&[u8], &[u8])> {
    let inside = structure.strip_prefix(b"{").unwrap_or(structure);
    let inside = inside.strip_suffix(b"}").unwrap_or(inside);
    let (mut at, mut depth, mut begin) = (0, 0_usize, 0);
    let mut ranges = Vec::new();
    while let Some(byte) = inside.get(at) {
        match byte {
            b'"' => {
                at = value::skip_string(inside, at).unwrap_or(inside.len());
                continue;
            }
            b'<' if at > 0 && inside[at - 1].is_ascii_digit() => {
                at = value::skip_known(inside, at).unwrap_or(inside.len());
                continue;
            }
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                ranges.push(begin..at);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    ranges.push(begin..inside.len());
    let named = ranges.into_iter().map(|range| {
        let part = inside[range].trim_ascii();
        let name = part
            .iter()
            .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_');
        let name = &part[..name.count()];
        match part[name.len()..].strip_prefix(b"=") {
            Some(value) => (name.strip_prefix(b"aio_").unwrap_or(name), value),
            None => (&b""[..], part),
        }
    });
    named.collect()
}

fn request(structure: &[u8]) -> AioRequest<'_> {
    let parts = parts(structure);
    let field = |name: &[u8]| {
        let mut named = parts.iter().filter(|(of, _)| *of == name);
        named.next().map(|(_, value)| *value)
    };
    let number = |name: &[u8]| field(name).and_then(value::number);
    let key = AioKey {
        address: 0,
        data: number(b"data").unwrap_or(0) as u64,
    };
    let what = asked(&parts, &field, &number).ok_or("request of io_submit that cannot be read");
    let what = what.and_then(|(command, handle, how)| {
        AioRequest::of(command, handle, how).ok_or("other request of io_submit")
    });
    AioRequest { key, what }
}

type Asked<'a> = (u32, Descriptor<'a>, (i64, u64, u32, u32));

fn asked<'a>(
    parts: &[(&'a [u8], &'a [u8])],
    field: &dyn Fn(&[u8]) -> Option<&'a [u8]>,
    number: &dyn Fn(&[u8]) -> Option<i64>,
) -> Option<Asked<'a>> {
    let command = match field(b"lio_opcode") {
        Some(name) => flags::flags(name, flags::IOCB_COMMAND)?,
        None => {
            let mut words = parts.iter().filter(|(name, _)| name.is_empty());
            words.find_map(|(_, word)| {
                let mut old = OLD_COMMANDS.iter();
                old.find(|(name, _)| name == word)
                    .map(|(_, command)| *command)
            })?
        }
    };
    let handle = value::descriptor(field(b"fildes").or_else(|| field(b"filedes"))?)?;
    let rw_flags = field(b"rw_flags").map_or(Some(0), |text| flags::flags(text, flags::RWF))?;
    let vector = field(b"buf").or_else(|| field(b"iovec"));
    let vector = vector.filter(|text| text.starts_with(b"["));
    let bytes = number(b"nbytes");
    let (size, buffers) = match (vector, bytes) {
        (Some(vector), bytes) => {
            let count = memchr::memchr_iter(b'{', vector).count() as i64;
            (vector_bytes(vector).0, bytes.unwrap_or(count))
        }
        (None, bytes) => (bytes.unwrap_or(0) as u64, 1),
    };
    let offset = number(b"offset").unwrap_or(0);
    let buffers = u32::try_from(buffers).unwrap_or(1);
    Some((command, handle, (offset, size, buffers, rw_flags)))
}

/// `{data=0, obj=0x55adac4358c8, res=4096, res2=0}`.
fn end(structure: &[u8]) -> Option<AioEnd> {
    let number = |name| value::field(structure, name).and_then(value::number);
    Some(AioEnd {
        key: AioKey {
            address: 0,
            data: number(b"data")? as u64,
        },
        result: number(b"res")?,
    })
}

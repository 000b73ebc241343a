//! Values in strace's notation.

use std::borrow::Cow;

use iostep_model::syscall::raw::{CURRENT_DIRECTORY, Descriptor, DescriptorKind, Known};

use super::prefix::is_context;

/// Where the quoted text ends that begins at `at`; none if it does not.
pub(super) fn skip_string(text: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Where the remark of -y ends that begins at `at` with `<`. The `>` of `a->b` and of
/// `</dev/null<char 1:3>>` are inside. A path's own `<` and `>` are escaped since strace 4.10.
pub(super) fn skip_known(text: &[u8], at: usize) -> Option<usize> {
    let is_path = matches!(text.get(at + 1), Some(b'/' | b'\\'));
    let mut from = at + 1;
    loop {
        let end = from + memchr::memchr2(b'>', b'"', text.get(from..)?)?;
        from = end + 1;
        if text[end] == b'"' {
            if !is_path {
                from = skip_string(text, end)?;
            }
            continue;
        }
        if !is_path && text[end - 1] == b'-' {
            continue;
        }
        let nested = text.get(end + 1) == Some(&b'>') && device(&text[at..end]).is_some();
        return Some(end + 1 + usize::from(nested));
    }
}

/// Where in a name the device's numbers begin that -yy puts behind it.
fn device(name: &[u8]) -> Option<usize> {
    let mut marks = [&b"<char "[..], b"<block "].into_iter();
    marks.find_map(|mark| memchr::memmem::find(name, mark))
}

/// What is behind `name=`, up to the next `,` or bracket. `name` begins a word.
pub(super) fn field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&text[from..], name) {
        let at = from + found;
        from = at + 1;
        let begins = at == 0 || !(text[at - 1].is_ascii_alphanumeric() || text[at - 1] == b'_');
        if let Some(value) = text[at + name.len()..].strip_prefix(b"=")
            && begins
        {
            let end = value.iter().position(|b| matches!(b, b',' | b'}' | b']'));
            return Some(value[..end.unwrap_or(value.len())].trim_ascii());
        }
    }
    None
}

/// A number in decimal, hexadecimal or octal. A comment behind it (-X verbose) and the brackets of
/// what a call gave back are skipped; of `[0] => [5]` it is the first.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (base, digits) = match digits {
        [b'0', b'x' | b'X', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (8, rest),
        _ => (10, digits),
    };
    let mut value = 0_u64;
    let mut used = 0;
    for digit in digits.iter().map_while(|b| char::from(*b).to_digit(base)) {
        value = value
            .checked_mul(u64::from(base))?
            .checked_add(u64::from(digit))?;
        used += 1;
    }
    match digits.get(used) {
        _ if used == 0 => return None,
        None | Some(b' ' | b']' | b'/' | b'<' | b'|' | b')') => {}
        Some(_) => return None,
    }
    // The largest numbers are negative ones that strace wrote without their sign.
    match negative {
        true => Some((value as i64).wrapping_neg()),
        false => Some(value as i64),
    }
}

/// A number of 32 bits, signed or not.
pub(super) fn number32(text: &[u8]) -> Option<u32> {
    let number = number(text)?;
    let fits = (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&number);
    fits.then_some(number as u32)
}

/// A text, and whether strace cut it off.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    pub(super) truncated: bool,
}

/// A quoted text; none if the argument is a pointer.
pub(super) fn text(argument: &[u8]) -> Option<Text<'_>> {
    let end = match argument.first() {
        Some(b'"') => skip_string(argument, 0)?,
        _ => return None,
    };
    Some(Text {
        bytes: unescape(&argument[1..end - 1]),
        truncated: argument[end..].starts_with(b"..."),
    })
}

/// Undoes the escapes of strace's `string_quote` (src/util.c): `\n` and so on, octal of one to
/// three digits, hexadecimal of two.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else {
        return Cow::Borrowed(text);
    };
    let mut bytes = text[..first].to_vec();
    let mut rest = text[first..].iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(escape) = rest.next() else { break };
        bytes.push(match escape {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'x' => {
                let mut value = 0;
                for _ in 0..2 {
                    let digit = rest.peek().and_then(|b| char::from(*b).to_digit(16));
                    let Some(digit) = digit else { break };
                    value = value << 4 | digit as u8;
                    rest.next();
                }
                value
            }
            b'0'..=b'7' => {
                let mut value = escape - b'0';
                for _ in 0..2 {
                    let Some(digit @ b'0'..=b'7') = rest.peek().copied() else {
                        break;
                    };
                    value = value << 3 | (digit - b'0');
                    rest.next();
                }
                value
            }
            other => other,
        });
    }
    Cow::Owned(bytes)
}

/// A descriptor, with what -y or -yy says of it.
pub(super) fn descriptor(argument: &[u8]) -> Option<Descriptor<'_>> {
    let (number, remark) = if let Some(rest) = argument.strip_prefix(b"AT_FDCWD") {
        (CURRENT_DIRECTORY, rest)
    } else {
        let bytes = argument.iter().position(|byte| *byte == b'<');
        let (digits, rest) = argument.split_at(bytes.unwrap_or(argument.len()));
        (number32(digits)? as i32, rest)
    };
    let known = match remark.first() {
        Some(b'<') => Some(known(remark)?),
        _ => None,
    };
    Some(Descriptor { number, known })
}

/// What stands in the `<>` behind a descriptor. With -xx the name is escaped as a whole.
fn known(remark: &[u8]) -> Option<Known<'_>> {
    let end = skip_known(remark, 0)?;
    let inside = &remark[1..end - 1];
    let device = inside.ends_with(b">").then(|| device(inside)).flatten();
    let name = &inside[..device.unwrap_or(inside.len())];
    let name = without_context(name);
    // Older versions have it inside.
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let name = unescape(name);
    let kind = kind(&name, device.is_some());
    let path = name.starts_with(b"/").then_some(name);
    Some(Known { kind, path })
}

/// A name without the security context behind it (--secontext).
fn without_context(name: &[u8]) -> &[u8] {
    let inside = name.strip_suffix(b"]");
    let begin = inside.and_then(|inside| memchr::memmem::rfind(inside, b" ["));
    match (inside, begin) {
        (Some(inside), Some(begin)) if is_context(&inside[begin + 2..]) => &name[..begin],
        _ => name,
    }
}

/// What a name in `<>` is of.
fn kind(name: &[u8], is_device: bool) -> DescriptorKind {
    match name {
        _ if is_device => DescriptorKind::Device,
        _ if name.starts_with(b"/memfd:") => DescriptorKind::Memory,
        [b'/', ..] => DescriptorKind::SomeFile,
        _ if name.starts_with(b"pipe:") => DescriptorKind::Pipe,
        _ if name.starts_with(b"anon_inode:[io_uring]") => DescriptorKind::Uring,
        _ if name.starts_with(b"anon_inode:") => DescriptorKind::Event,
        _ if name.starts_with(b"mnt:") || name.starts_with(b"net:") => DescriptorKind::Kernel,
        _ if name.starts_with(b"socket:") => DescriptorKind::Socket,
        // TCP, UNIX, NETLINK and so on.
        [b'A'..=b'Z', ..] => DescriptorKind::Socket,
        _ => DescriptorKind::Event,
    }
}

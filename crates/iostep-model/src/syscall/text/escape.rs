//! Bytes in quotes.

use std::fmt::Write;

use crate::printable::is_printable;

/// Appends `bytes` in quotes. Valid UTF-8 stays as it is but for quotes, backslashes and what is
/// not printable, so that a terminal shows the text and obeys none of it.
pub fn quote(bytes: &[u8], out: &mut String) {
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                c if !is_printable(c) => {
                    let mut utf8 = [0; 4];
                    hex(c.encode_utf8(&mut utf8).as_bytes(), out);
                }
                c => out.push(c),
            }
        }
        hex(chunk.invalid(), out);
    }
    out.push('"');
}

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// The bytes of a quoted text, quotes included in `text`. Octal escapes, as strace writes them, are
/// read too. None if it is not one whole quoted text.
pub fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte == b'"' {
            return None;
        }
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'a' => 0x07,
            b'b' => 0x08,
            b'e' => 0x1b,
            b'x' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(next) = rest.next_if(|b| matches!(b, b'0'..=b'7')) else {
                        break;
                    };
                    value = value * 8 + u32::from(next - b'0');
                }
                u8::try_from(value).ok()?
            }
            other @ (b'"' | b'\\') => other,
            _ => return None,
        });
    }
    Some(bytes)
}

//! What a line is, behind who and when.

use super::prefix::skip_blanks;
use super::split::name_bytes;

/// A line's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// `name(...`: a call or its first half.
    Call(&'a [u8]),
    /// `<... name resumed>...`: the name and what follows.
    Resumed(&'a [u8], &'a [u8]),
    /// `+++ exited with 0 +++`, `+++ killed by SIGKILL +++`.
    Ended,
    /// `+++ superseded by execve in pid N +++`: that thread goes on under this one's number.
    Superseded(u32),
    /// `Process N attached`.
    Attached(u32),
    /// A line that is about no call, and what it is.
    Other(&'static str),
    /// None of strace's; or the rest of a line that a message tore.
    Unreadable(&'a [u8]),
}

/// Tells what a line is.
pub(super) fn body(text: &[u8]) -> Body<'_> {
    match text.first() {
        None => Body::Other("empty line"),
        Some(b'<') => resumed(text).unwrap_or(Body::Unreadable(text)),
        Some(b'+') => ended(text).unwrap_or(Body::Unreadable(text)),
        Some(b'-') if text.starts_with(b"--- ") => Body::Other("signal"),
        Some(b'>') if text.starts_with(b"> ") => Body::Other("stack frame"),
        Some(b'|') if text.starts_with(b"| ") => Body::Other("dump of data"),
        Some(b'[') if text.starts_with(b"[ Process PID=") => Body::Other("message of strace"),
        _ => match text.strip_prefix(b"strace: ") {
            Some(message) => message_of(skip_blanks(message)),
            None if text.starts_with(b"Process ") => message_of(text),
            None if text.get(name_bytes(text)) == Some(&b'(') => Body::Call(text),
            None => Body::Unreadable(text),
        },
    }
}

fn resumed(text: &[u8]) -> Option<Body<'_>> {
    let rest = text.strip_prefix(b"<... ")?;
    let name = &rest[..name_bytes(rest)];
    let rest = rest[name.len()..].strip_prefix(b" resumed>")?;
    Some(Body::Resumed(name, rest))
}

fn ended(text: &[u8]) -> Option<Body<'_>> {
    let rest = text.strip_prefix(b"+++ ")?;
    if let Some(by) = rest.strip_prefix(b"superseded by execve in pid ") {
        return Some(Body::Superseded(thread(by)?));
    }
    let ended = rest.starts_with(b"exited with ") || rest.starts_with(b"killed by ");
    ended.then_some(Body::Ended)
}

/// A line's beginning, if strace's message that it follows a new thread stands at the end, as it
/// does where both go to a terminal; and that thread.
pub(super) fn torn(text: &[u8]) -> Option<(&[u8], u32)> {
    let begin = text.strip_suffix(b" attached")?;
    let at = memchr::memmem::rfind(begin, b"Process ")?;
    let child = thread(&begin[at + b"Process ".len()..])?;
    let begin = &begin[..at];
    Some((begin.strip_suffix(b"strace: ").unwrap_or(begin), child))
}

fn message_of(message: &[u8]) -> Body<'_> {
    let attached = message.strip_prefix(b"Process ").and_then(|rest| {
        let child = thread(rest)?;
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        rest[digits..].starts_with(b" attached").then_some(child)
    });
    match attached {
        Some(child) => Body::Attached(child),
        None => Body::Other("message of strace"),
    }
}

/// The thread's number that a text begins with.
fn thread(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}

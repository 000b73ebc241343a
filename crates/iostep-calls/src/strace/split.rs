//! The parts of a call's text: name, arguments, result.

use iostep_model::syscall::Errno;
use iostep_model::syscall::raw::Returned;

use super::prefix::{seconds, skip_blanks};
use super::value;

/// More arguments than any call has; further ones are not looked at.
const MAX_ARGUMENTS: usize = 12;
pub(super) const CANNOT_BE_READ: &str = "cannot be read";
/// The call never ended, and strace writes some arguments only then.
pub(super) const CUT_OFF: &str = "arguments cut off";

/// A call, in pieces of its text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub(super) name: &'a [u8],
    pub(super) arguments: [&'a [u8]; MAX_ARGUMENTS],
    count: usize,
    pub(super) returned: Returned,
    /// What the number that it returned is in strace's PID namespace, where it says so.
    pub(super) translated: Option<u32>,
    pub(super) duration_ns: Option<u64>,
    /// The text ends with `<unfinished ...>`: the rest comes in another line, or never.
    pub(super) goes_on: bool,
}

impl<'a> Call<'a> {
    /// An argument, without blanks around it.
    ///
    /// Errors: why it is not there.
    pub(super) fn argument(&self, index: usize) -> Result<&'a [u8], &'static str> {
        match self.arguments[..self.count].get(index) {
            Some(text) => Ok(text),
            None if self.returned == Returned::Unfinished => Err(CUT_OFF),
            None => Err(CANNOT_BE_READ),
        }
    }

    /// How many arguments there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What is behind `name=` in any argument, up to the next `,`.
    pub(super) fn field(&self, name: &[u8]) -> Option<&'a [u8]> {
        let arguments = self.arguments[..self.count].iter();
        arguments
            .filter_map(|argument| value::field(argument, name))
            .next()
    }

    fn push(&mut self, argument: &'a [u8]) {
        if let Some(slot) = self.arguments.get_mut(self.count) {
            *slot = argument.trim_ascii();
            self.count += 1;
        }
    }
}

/// Bytes at which something in an argument begins or ends.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let special = b"\"(){}[]<,/";
    let mut at = 0;
    while at < special.len() {
        table[special[at] as usize] = true;
        at += 1;
    }
    table
};

/// Splits a call; none if the text is none.
pub(super) fn call(text: &[u8]) -> Option<Call<'_>> {
    let name = &text[..name_bytes(text)];
    if name.is_empty() || text.get(name.len()) != Some(&b'(') {
        return None;
    }
    let mut call = Call {
        name,
        arguments: [&[]; MAX_ARGUMENTS],
        count: 0,
        returned: Returned::Unfinished,
        translated: None,
        duration_ns: None,
        goes_on: false,
    };
    let end = arguments(text, name.len() + 1, &mut call)?;
    let rest = skip_blanks(&text[end..]);
    if call.goes_on && rest.is_empty() {
        return Some(call);
    }
    call.goes_on = false;
    let rest = rest.strip_prefix(b")").unwrap_or(rest);
    outcome(skip_blanks(rest).strip_prefix(b"=")?, &mut call)?;
    Some(call)
}

/// How long the name is that a text begins with, bytes.
pub(super) fn name_bytes(text: &[u8]) -> usize {
    let name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    text.iter().take_while(name).count()
}

/// Finds the arguments from `from` on. Gives where the text goes on behind them; none if it stops.
fn arguments<'a>(text: &'a [u8], from: usize, call: &mut Call<'a>) -> Option<usize> {
    let (mut at, mut begin, mut depth) = (from, from, 0_usize);
    loop {
        while !SPECIAL[usize::from(*text.get(at)?)] {
            at += 1;
        }
        match text[at] {
            b'"' => at = value::skip_string(text, at)?,
            b'/' if text.get(at + 1) == Some(&b'*') => {
                at += 2 + memchr::memmem::find(&text[at + 2..], b"*/")? + 2;
            }
            b'<' => match angle(text, at)? {
                Angle::Skip(end) => at = end,
                Angle::GoesOn(end) => {
                    let last = text[begin..at].trim_ascii();
                    if !last.is_empty() {
                        call.push(last.strip_suffix(b",").unwrap_or(last));
                    }
                    call.goes_on = true;
                    return Some(end);
                }
            },
            b'(' | b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b')' if depth == 0 => {
                if call.count > 0 || !text[begin..at].trim_ascii().is_empty() {
                    call.push(&text[begin..at]);
                }
                return Some(at + 1);
            }
            b')' | b'}' | b']' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b',' if depth == 0 => {
                call.push(&text[begin..at]);
                at += 1;
                begin = at;
            }
            _ => at += 1,
        }
    }
}

/// What a `<` begins.
enum Angle {
    /// Something of an argument that ends here.
    Skip(usize),
    /// The call goes on in another line; this one does here.
    GoesOn(usize),
}

fn angle(text: &[u8], at: usize) -> Option<Angle> {
    let rest = &text[at..];
    for stop in [
        &b"<unfinished ..."[..],
        b"<detached ...",
        b"<no return ...",
        b"<pid changed to ",
        b"<ptrace(",
    ] {
        if rest.starts_with(stop) {
            return Some(Angle::GoesOn(at + memchr::memchr(b'>', rest)? + 1));
        }
    }
    if rest.starts_with(b"<... ") {
        // restart_syscall(<... resuming interrupted read ...>)
        return Some(Angle::Skip(at + memchr::memmem::find(rest, b"...>")? + 4));
    }
    let before = at.checked_sub(1).map_or(b' ', |before| text[before]);
    // 1<<CAP_CHOWN
    if text.get(at + 1) == Some(&b'<') {
        return Some(Angle::Skip(at + 2));
    }
    match before.is_ascii_alphanumeric() || before == b'/' {
        true => Some(Angle::Skip(value::skip_known(text, at)?)),
        false => Some(Angle::Skip(at + 1)),
    }
}

/// How long a call took, as the end of its text says; none if it does not.
pub(super) fn duration(text: &[u8]) -> Option<u64> {
    let begin = memchr::memrchr(b'<', text)?;
    seconds(text[begin + 1..].strip_suffix(b">")?)
}

/// Reads what follows the `=`.
fn outcome(text: &[u8], call: &mut Call<'_>) -> Option<()> {
    let mut text = text.trim_ascii();
    if let Some(took_ns) = duration(text) {
        call.duration_ns = Some(took_ns);
        let begin = memchr::memrchr(b'<', text).unwrap_or(text.len());
        text = text[..begin].trim_ascii_end();
    }
    let blank = text.iter().position(|b| matches!(b, b' ' | b'<'));
    let (number, remark) = text.split_at(blank.unwrap_or(text.len()));
    let remark = skip_blanks(remark);
    call.returned = match number {
        b"?" if remark.starts_with(b"E") => failed(remark),
        b"?" => Returned::Unfinished,
        b"-1" if remark.starts_with(b"E") => failed(remark),
        b"-1" => Returned::Unknown,
        // A negative number without a name: an error number in -X raw.
        _ if number.starts_with(b"-") => match value::number(number)? {
            errno @ -4095..=-2 => Returned::Failed(Errno(-errno as i32)),
            _ => Returned::Unknown,
        },
        _ => Returned::Value(value::number(number)? as u64),
    };
    call.translated = translation(remark);
    Some(())
}

/// `/* 501 in strace's PID NS */`, behind a thread's name with --decode-pids=comm.
fn translation(remark: &[u8]) -> Option<u32> {
    let inside = remark.strip_suffix(b" in strace's PID NS */")?;
    let begin = memchr::memmem::rfind(inside, b"/* ")?;
    value::number32(&inside[begin + 3..])
}

/// `ENOENT (No such file or directory)`.
fn failed(remark: &[u8]) -> Returned {
    let name = std::str::from_utf8(&remark[..name_bytes(remark)]).unwrap_or_default();
    match Errno::from_name(name) {
        Some(errno) => Returned::Failed(errno),
        None => Returned::Unknown,
    }
}

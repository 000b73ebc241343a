//! What stands before a call: who, and when.
//!
//! strace's `printleader` (src/strace.c) writes them: `[pid N] ` to a terminal, `N ` to a file,
//! either with the thread's name in `<>` (`--decode-pids=comm`); then the time, in the form of `-t`
//! (`HH:MM:SS`), `-tt` (with a fraction), `-ttt` (seconds since 1970) or `-r` (seconds since the line
//! before), or of two of them: `HH:MM:SS (+     0.000012)`; then numbers in brackets (`-n`, `-i`), and
//! the thread's security context in such (`--secontext`).

pub(super) const SECOND_NS: u64 = 1_000_000_000;
/// A number alone is a time from here on and a thread below: threads are numbered up to 4194304
/// (`PID_MAX_LIMIT`, include/linux/threads.h), and 1973 is long ago.
const FIRST_TIME_SECONDS: u64 = 100_000_000;

/// When a line was written, nanoseconds, and what that is exact to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) ns: u64,
    pub(super) since: Since,
    pub(super) resolution_ns: u64,
}

/// What a time counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Midnight,
    Year1970,
    LineBefore,
}

/// What stands before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) tid: Option<u32>,
    pub(super) time: Option<Time>,
}

/// Splits a line. None if a number in it is too large.
pub(super) fn split(line: &[u8]) -> Option<(Prefix, &[u8])> {
    let mut prefix = Prefix::default();
    let mut rest = skip_blanks(line);
    if let Some(inner) = rest.strip_prefix(b"[pid") {
        let inner = skip_blanks(inner);
        let (tid, after) = leading(inner)?;
        prefix.tid = Some(u32::try_from(tid?).ok()?);
        let after = skip_name(after);
        rest = skip_blanks(after.strip_prefix(b"]")?);
    }
    rest = skip_contexts(rest);
    while let Some((number, after)) = leading(rest) {
        let number = number?;
        match after.first() {
            Some(b':') => {
                let (time, after) = of_day(number, after)?;
                prefix.time.get_or_insert(time);
                rest = skip_blanks(after);
            }
            Some(b'.') => {
                let (fraction, resolution_ns, after) = fraction(after);
                let since = match number >= FIRST_TIME_SECONDS {
                    true => Since::Year1970,
                    false => Since::LineBefore,
                };
                prefix.time.get_or_insert(Time {
                    ns: number.checked_mul(SECOND_NS)?.checked_add(fraction)?,
                    since,
                    resolution_ns,
                });
                rest = skip_blanks(after);
            }
            Some(b' ' | b'<') if prefix.tid.is_none() && number < FIRST_TIME_SECONDS => {
                prefix.tid = Some(u32::try_from(number).ok()?);
                rest = skip_blanks(skip_name(after));
            }
            Some(b' ') if prefix.time.is_none() => {
                prefix.time = Some(Time {
                    ns: number.checked_mul(SECOND_NS)?,
                    since: Since::Year1970,
                    resolution_ns: SECOND_NS,
                });
                rest = skip_blanks(after);
            }
            _ => break,
        }
        if let Some(after) = rest.strip_prefix(b"(+") {
            let end = after.iter().position(|byte| *byte == b')')?;
            rest = skip_blanks(&after[end + 1..]);
        }
        rest = skip_contexts(rest);
    }
    while let Some(after) = skip_number(rest) {
        rest = skip_contexts(skip_blanks(after));
    }
    Some((prefix, rest))
}

/// A security context, or such (--secontext).
fn skip_contexts(text: &[u8]) -> &[u8] {
    let inside = text.strip_prefix(b"[");
    let end = inside.and_then(|inside| memchr::memchr(b']', inside));
    match (inside, end) {
        (Some(inside), Some(end)) if is_context(&inside[..end]) => skip_blanks(&inside[end + 1..]),
        _ => text,
    }
}

/// True for `user:role:type`, with or without a level behind it, and with `full,mismatch` also
/// `one!!other` (src/selinux.c). With --secontext=type it is the type alone, which could be anything
/// else but for its ending.
pub(super) fn is_context(text: &[u8]) -> bool {
    let parts = text.iter().filter(|byte| **byte == b':').count();
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"_:.,-!".contains(b);
    let name = |text: &[u8]| text.ends_with(b"_t") && !text.contains(&b' ');
    text.iter().all(plain) && (parts >= 2 || name(text))
}

/// The call's number (`-n`) or the program's address (`-i`) in brackets.
fn skip_number(text: &[u8]) -> Option<&[u8]> {
    let inside = text.strip_prefix(b"[")?;
    let (number, after) = inside.split_at(memchr::memchr(b']', inside)?);
    let digit = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'?' | b' ');
    let after = after.strip_prefix(b"] ")?;
    number.iter().all(digit).then_some(after)
}

pub(super) fn skip_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().take_while(|byte| **byte == b' ').count();
    &text[blanks..]
}

/// `<name>` behind a thread's number.
fn skip_name(text: &[u8]) -> &[u8] {
    match text.first() {
        Some(b'<') => match memchr::memchr(b'>', text) {
            Some(end) => &text[end + 1..],
            None => text,
        },
        _ => text,
    }
}

/// The decimal number that a text begins with, none inside if it is too large.
fn leading(text: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let value = text[..digits].iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    Some((value, &text[digits..]))
}

/// `:MM:SS` with or without a fraction.
fn of_day(hours: u64, text: &[u8]) -> Option<(Time, &[u8])> {
    let (minutes, text) = leading(text.strip_prefix(b":")?)?;
    let (seconds, text) = leading(text.strip_prefix(b":")?)?;
    let (minutes, seconds) = (minutes?, seconds?);
    if hours > 24 || minutes > 60 || seconds > 60 {
        return None;
    }
    let (fraction, resolution_ns, text) = fraction(text);
    let ns = ((hours * 60 + minutes) * 60 + seconds) * SECOND_NS + fraction;
    let time = Time {
        ns,
        since: Since::Midnight,
        resolution_ns,
    };
    Some((time, text))
}

/// `.` and digits, as nanoseconds, and what the last digit is worth.
fn fraction(text: &[u8]) -> (u64, u64, &[u8]) {
    let Some(digits) = text.strip_prefix(b".") else {
        return (0, SECOND_NS, text);
    };
    let (mut ns, mut worth, mut used) = (0, SECOND_NS, 0);
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        used += 1;
        if worth > 1 {
            worth /= 10;
            ns += u64::from(digit - b'0') * worth;
        }
    }
    (ns, worth, &digits[used..])
}

/// Seconds with a fraction, as `-T` writes them, in nanoseconds; none if the text is none.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let (whole, rest) = leading(text)?;
    let (fraction, _, rest) = fraction(rest);
    let whole = whole?.checked_mul(SECOND_NS)?;
    rest.is_empty()
        .then(|| whole.checked_add(fraction))
        .flatten()
}

//! Texts with the program's own output between: `strace COMMAND 2>&1`, or a terminal's.
//!
//! The output of a write comes when strace has written that call's arguments and not yet its
//! result: `write(1, "hello\n", 6hello`, then `) = 6` on the next line. Output that ends without a
//! newline stands before whatever strace writes next.

use super::prefix::{self, Prefix, skip_blanks};
use super::split;
use super::value;

/// Places in a line at which one of strace's may begin that are tried.
const MOST_PLACES: usize = 64;

/// A write whose own output is in its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Torn<'t> {
    /// The descriptor, as it stands there.
    descriptor: &'t [u8],
    size: &'t [u8],
    /// `) = 6`, if it is in the same line.
    pub(super) end: Option<&'t [u8]>,
}

impl Torn<'_> {
    /// The call as strace would have written it. `end`: from its bracket on.
    pub(super) fn whole(&self, end: &[u8]) -> Vec<u8> {
        // Digits of the output may stand behind the size: what was done is at least as true.
        let done = end[1..].trim_ascii_start().strip_prefix(b"=");
        let done = done.map(skip_blanks).unwrap_or_default();
        let digits = done.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let size = if digits > 0 {
            &done[..digits]
        } else {
            self.size
        };
        [b"write(", self.descriptor, b", \"\"..., ", size, end].concat()
    }

    /// Its first half.
    pub(super) fn half(&self) -> Vec<u8> {
        [
            b"write(",
            self.descriptor,
            b", \"\"..., ",
            self.size,
            b" <unfinished ...>",
        ]
        .concat()
    }
}

/// A write that its own output tore, or put something behind its size.
pub(super) fn torn(text: &[u8]) -> Option<Torn<'_>> {
    let arguments = text.strip_prefix(b"write(")?;
    let comma = match memchr::memchr2(b'<', b',', arguments)? {
        at if arguments[at] == b'<' => {
            let end = value::skip_known(arguments, at)?;
            end + memchr::memchr(b',', &arguments[end..])?
        }
        at => at,
    };
    let descriptor = &arguments[..comma];
    value::descriptor(descriptor)?;
    let data = skip_blanks(&arguments[comma + 1..]);
    let end = match data.first()? {
        b'"' => value::skip_string(data, 0)?,
        _ => return None,
    };
    let rest = data[end..].strip_prefix(b"...").unwrap_or(&data[end..]);
    let size = skip_blanks(rest.strip_prefix(b",")?);
    let digits = size.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (size, output) = size.split_at(digits);
    if size.is_empty() || output.starts_with(b")") || output.starts_with(b" <unfinished") {
        return None;
    }
    let end = end_of_call(output);
    Some(Torn {
        descriptor,
        size,
        end,
    })
}

/// The end of a call at the end of a line, from its bracket on: `) = 6`, `)   = -1 EPIPE (Broken pipe)`.
pub(super) fn end_of_call(line: &[u8]) -> Option<&[u8]> {
    let brackets = memchr::memrchr_iter(b')', line);
    let mut ends = brackets.take(MOST_PLACES).map(|at| &line[at..]);
    ends.find(|end| {
        skip_blanks(&end[1..]).starts_with(b"= ")
            && split::call(&[b"write(", *end].concat()).is_some_and(|call| !call.goes_on)
    })
}

/// True for the end of a line that goes on elsewhere.
pub(super) fn goes_on(line: &[u8]) -> bool {
    line.ends_with(b"<unfinished ...>")
}

/// A line of strace's behind output that had no newline. `like`: what other lines have before the
/// call; `known`: true for the name of a call.
pub(super) fn behind_output<'l>(
    line: &'l [u8],
    like: Prefix,
    known: &dyn Fn(&[u8]) -> bool,
) -> Option<(Prefix, &'l [u8])> {
    let bare = (like.tid, like.time) == (None, None);
    let (mut found, mut places, mut last) = (None, 0, b' ');
    for (at, here) in line.iter().copied().enumerate() {
        let word = here.is_ascii_alphabetic() && !last.is_ascii_alphanumeric() && last != b'_';
        let number = here.is_ascii_digit() && !last.is_ascii_digit();
        last = here;
        let begins = match bare {
            true => word,
            false => at > 0 && (number || line[at..].starts_with(b"[pid ")),
        };
        if !begins {
            continue;
        }
        places += 1;
        if places > MOST_PLACES {
            break;
        }
        let rest = &line[at..];
        let behind = match bare {
            true => name_at_end(rest, known).map(|text| (Prefix::default(), text)),
            false => prefix::split(rest).filter(|(prefix, text)| {
                // To a terminal, numbers come with the second thread.
                let alike = (prefix.tid.is_some() || like.tid.is_none())
                    && prefix.time.is_some() == like.time.is_some();
                alike && known(&text[..split::name_bytes(text)])
            }),
        };
        // Output may end in a number: the last that fits is the thread's.
        found = behind.filter(|(_, text)| is_call(text)).or(found);
    }
    found
}

fn is_call(text: &[u8]) -> bool {
    split::call(text).is_some_and(|call| call.count() > 0)
}

/// Calls whose names end in those of others.
const LONG_NAMES: [&[u8]; 3] = [b"process_vm_readv", b"process_vm_writev", b"ustat"];

/// The longest name of a call that a text's first word ends in, and what follows.
fn name_at_end<'t>(text: &'t [u8], known: &dyn Fn(&[u8]) -> bool) -> Option<&'t [u8]> {
    let word = &text[..split::name_bytes(text)];
    if text.get(word.len()) != Some(&b'(') || LONG_NAMES.contains(&word) {
        return None;
    }
    let mut begins = 0..word.len();
    begins.find(|at| known(&word[*at..])).map(|at| &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_with_its_output_behind_it_is_whole_again() {
        for (line, whole) in [
            ("write(1, \"a\\n\", 2a", None),
            (
                "write(1, \"ok \", 3ok ) = 3",
                Some("write(1, \"\"..., 3) = 3"),
            ),
            (
                "write(1</x,y>, \"it\"..., 40it\"s (x) = 3)   = 40 <0.1>",
                Some("write(1</x,y>, \"\"..., 40)   = 40 <0.1>"),
            ),
            ("write(2, \"7\", 17) = 1", Some("write(2, \"\"..., 1) = 1")),
        ] {
            let torn = torn(line.as_bytes());
            match (&torn, whole) {
                // Nothing tells that the 7 is output.
                (None, _) => assert!(line.contains("17"), "{line}"),
                (Some(torn), None) => assert_eq!(torn.end, None),
                (Some(torn), Some(whole)) => {
                    let end = torn.end.expect("an end");
                    assert_eq!(String::from_utf8_lossy(&torn.whole(end)), whole);
                }
            }
        }
    }

    #[test]
    fn calls_that_are_whole_are_left_alone() {
        for line in [
            "write(1, \"a\", 1) = 1",
            "write(1, 0x7f, 1) = 1",
            "read(1, \"a\", 1b",
        ] {
            assert_eq!(torn(line.as_bytes()), None, "{line}");
        }
    }
}

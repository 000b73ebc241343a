//! Text from outside on its way to a person: it neither steers a terminal nor hides or turns around
//! what is written. This is the one home of that rule.
//!
//! What is not printable becomes visible, as in Rust's strings: `\n`, `\t`, `\r`, `\x1b`,
//! `\u{202e}`. So two names that differ still look different. A backslash stays one, so that text
//! of printable characters is as it was, and text that went through once is not changed again.
//!
//! Names are bytes to the kernel, and text to everything that is told of them: [`name_text`] is the
//! home of that rule.

use std::borrow::Cow;
use std::io::{self, Write};

/// The byte order mark that editors put before UTF-8. It is no part of the text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// True for a character that a terminal or a page shows where it stands, and as itself.
///
/// False for what a terminal obeys (C0, DEL, C1), what orders text anew (Unicode's bidirectional
/// controls), what breaks a line, and what is not seen at all (zero-width characters, blank
/// fillers, tags), as the two variants of a name with and without it look the same.
pub fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter,
            '\u{ad}'
            | '\u{61c}'
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// A name that the kernel gave (of a file, a thread, a control group) as text, so that two that
/// differ still do.
///
/// A name that is UTF-8 is as it is. In any other, each byte that is no part of a character becomes
/// `\xff`, and each backslash two. So they are in a name that is UTF-8 too, if it could be taken for
/// one with such bytes: those escapes are of 80 to ff, as in systemd's units `\x2d` is none.
pub fn name_text(name: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(name)
        && !has_escape(text)
    {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(name.len() + 16);
    for chunk in name.utf8_chunks() {
        shown.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// A path: each of its names as [`name_text`] has it.
pub fn path_text(path: &[u8]) -> String {
    let names: Vec<String> = path.split(|byte| *byte == b'/').map(name_text).collect();
    names.join("/")
}

/// True for text in which somebody could read a byte that is no part of a character.
fn has_escape(text: &str) -> bool {
    text.match_indices("\\x").any(|(at, _)| {
        let digits = &text.as_bytes()[at + 2..];
        let is_low = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        matches!(digits, [b'8' | b'9' | b'a'..=b'f', second, ..] if is_low(second))
    })
}

/// A text from outside as a part of a line.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, is_printable)
}

/// The first `most` characters of a text from outside, as a part of a line.
pub fn excerpt(text: &str, most: usize) -> String {
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(end, _)| end);
    printable(&text[..end]).into_owned()
}

/// Says a line on standard error, whatever is in it.
pub fn say(text: &str) {
    let line = format!("{}\n", printable(text));
    // Nobody is left who could be told.
    let _ = Screen::lines(io::stderr().lock(), false).write_all(line.as_bytes());
}

/// Text of several lines: as [`printable()`], but its line breaks stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |letter| letter == '\n' || is_printable(letter))
}

fn replaced(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if stays(letter) => shown.push(letter),
            '\n' | '\t' | '\r' => shown.extend(letter.escape_default()),
            '\0'..='\x7f' => shown.push_str(&format!("\\x{:02x}", u32::from(letter))),
            _ => shown.extend(letter.escape_unicode()),
        }
    }
    shown.into()
}

/// What is written to a terminal, whatever wrote it: the last fence behind [`printable()`].
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Lines; with colours, the sequences that set them pass too.
    Lines { colour: bool },
    /// JSON, whose strings have escapes of their own: it stays the same data.
    Json,
}

impl<W: Write> Screen<W> {
    /// For lines of text. Each write is whole characters, as those of `write!` are.
    pub fn lines(out: W, colour: bool) -> Screen<W> {
        let content = Content::Lines { colour };
        Screen { out, content }
    }

    /// For JSON. Each write is whole characters, as those of `serde_json` are.
    pub fn json(out: W) -> Screen<W> {
        let content = Content::Json;
        Screen { out, content }
    }

    fn pass(&mut self, text: &str) -> io::Result<()> {
        match self.content {
            Content::Json => self.out.write_all(json(text).as_bytes()),
            Content::Lines { colour: false } => {
                self.out.write_all(printable_lines(text).as_bytes())
            }
            Content::Lines { colour: true } => {
                let mut rest = text;
                while let Some(start) = rest.find('\x1b') {
                    let (before, after) = rest.split_at(start);
                    let length = colour_bytes(after);
                    self.out.write_all(printable_lines(before).as_bytes())?;
                    let (own, others) = after.split_at(length.unwrap_or(1));
                    match length {
                        Some(_) => self.out.write_all(own.as_bytes())?,
                        None => self.out.write_all(printable(own).as_bytes())?,
                    }
                    rest = others;
                }
                self.out.write_all(printable_lines(rest).as_bytes())
            }
        }
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for chunk in bytes.utf8_chunks() {
            self.pass(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(self.out, "\\x{byte:02x}")?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The length of the sequence that sets colours (ECMA-48, SGR) at the start of a text.
fn colour_bytes(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\x1b[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner[end..].starts_with('m').then_some(2 + end + 1)
}

/// Outside of strings JSON has no character but printable ones and blanks, so this stays JSON.
fn json(text: &str) -> Cow<'_, str> {
    let stays = |letter: char| letter == '\n' || is_printable(letter);
    if text.chars().all(stays) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if stays(letter) {
            shown.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            shown.push_str(&format!("\\u{unit:04x}"));
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_hides_or_turns_text_is_visible() {
        for (text, expected) in [
            ("a\u{1b}[31mb\n\t\r\0", "a\\x1b[31mb\\n\\t\\r\\x00"),
            ("\u{7f}\u{9b}2J", "\\x7f\\u{9b}2J"),
            ("a\u{202e}cod.\u{2066}b", "a\\u{202e}cod.\\u{2066}b"),
            ("\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
            (
                "\u{2028}\u{2029}\u{200b}\u{feff}",
                "\\u{2028}\\u{2029}\\u{200b}\\u{feff}",
            ),
            ("\u{3164}\u{e0041}", "\\u{3164}\\u{e0041}"),
        ] {
            assert_eq!(printable(text), expected);
            assert_eq!(printable(&printable(text)), expected, "only once");
        }
    }

    #[test]
    fn names_that_are_no_text_differ_and_those_that_are_stay() {
        for (name, expected) in [
            (&b"app.db"[..], "app.db"),
            (
                "h\u{e4}h? C:\\new\n\u{1b}".as_bytes(),
                "h\u{e4}h? C:\\new\n\u{1b}",
            ),
            (b"dev-disk\\x2dby.slice", "dev-disk\\x2dby.slice"),
            (b"n\xff", "n\\xff"),
            (b"n\xfe", "n\\xfe"),
            (b"n\\xff", "n\\\\xff"),
            (b"n\\\xff", "n\\\\\\xff"),
            (b"n\\\\xff", "n\\\\\\\\xff"),
            (b"n\\xFF", "n\\xFF"),
            (b"\xc3", "\\xc3"),
            (b"\xc3\xa4\xff", "\u{e4}\\xff"),
        ] {
            assert_eq!(name_text(name), expected, "{name:?}");
        }
        assert_eq!(path_text(b"/a\\b/n\xff/"), "/a\\b/n\\xff/");
    }

    proptest::proptest! {
        #[test]
        fn two_names_that_differ_are_two_texts(
            one in hostile_name(), other in hostile_name(),
        ) {
            let texts = [name_text(&one), name_text(&other)];
            proptest::prop_assert_eq!(one == other, texts[0] == texts[1], "{:?}", texts);
        }
    }

    /// Of few letters, so that texts meet.
    fn hostile_name() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
        let letters = proptest::sample::select(&b"\\xff8\xff\xc3\xa4"[..]);
        proptest::collection::vec(letters, 0..7)
    }

    #[test]
    fn other_text_is_not_touched() {
        for text in ["", "häh? C:\\n 漢字 e\u{301} שלום", "…µ→"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(printable_lines("a\nb\u{85}"), "a\nb\\u{85}");
    }

    #[test]
    fn an_excerpt_counts_characters_of_the_text() {
        assert_eq!(excerpt("äb\nc", 3), "äb\\n");
        assert_eq!(excerpt("äb", 3), "äb");
    }

    fn screen(text: &str, colour: bool) -> String {
        let mut out = Vec::new();
        write!(Screen::lines(&mut out, colour), "{text}").expect("a vector takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn only_colours_pass_and_only_where_there_are_some() {
        let text = "\x1b[1;31mno\x1b[0m \x1b[2J\x1b]0;x\x07\x1b[31\nend\x1b";
        assert_eq!(
            screen(text, true),
            "\x1b[1;31mno\x1b[0m \\x1b[2J\\x1b]0;x\\x07\\x1b[31\nend\\x1b"
        );
        assert_eq!(screen("\x1b[1mx\x1b[0m", false), "\\x1b[1mx\\x1b[0m");
    }

    #[test]
    fn bytes_that_are_no_text_are_visible() {
        let mut out = Vec::new();
        let written = Screen::lines(&mut out, true).write(b"a\xff\n");
        assert_eq!(written.expect("a vector takes it"), 3);
        assert_eq!(out, b"a\\xff\n");
    }

    #[test]
    fn json_stays_the_same_data() {
        let hostile = "\u{202e}\u{9b}\u{7f}\n\"\u{e0041}é";
        let mut out = Vec::new();
        serde_json::to_writer_pretty(Screen::json(&mut out), &[hostile]).expect("JSON");
        let text = String::from_utf8(out).expect("text");
        assert!(text.chars().all(|c| c == '\n' || is_printable(c)), "{text}");
        let back: Vec<String> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, [hostile]);
    }
}

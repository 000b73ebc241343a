//! The end of what a guest wrote to its console.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::thread::JoinHandle;

use iostep_model::printable::excerpt;

/// A panic with its registers and its stack.
const LINES: usize = 50;
const LINE_CHARACTERS: usize = 200;

/// How the kernel begins to tell what it died of.
const CAUSES: [&str; 3] = ["Kernel panic", "BUG:", "Oops:"];

/// The last lines of a guest's console, at most 50.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console(VecDeque<String>);

impl Console {
    /// The lines, the last one last.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The line that says what the kernel died of, or the last one.
    pub fn cause(&self) -> Option<&str> {
        let is_cause = |line: &&str| CAUSES.iter().any(|cause| line.contains(cause));
        self.lines().find(is_cause).or_else(|| self.lines().last())
    }

    fn push(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        if self.0.len() == LINES {
            self.0.pop_front();
        }
        self.0.push_back(excerpt(text, LINE_CHARACTERS));
    }

    /// Everything up to the end; what a line has beyond its limit is dropped as it comes.
    fn read(mut from: impl Read) -> Console {
        let mut console = Console::default();
        let (mut line, mut buffer) = (Vec::new(), [0; 4096]);
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            for byte in &buffer[..read] {
                match byte {
                    b'\n' => console.push(&std::mem::take(&mut line)),
                    _ if line.len() < 4 * LINE_CHARACTERS => line.push(*byte),
                    _ => {}
                }
            }
        }
        console.push(&line);
        console
    }

    /// Reads until every writer is gone, in a thread of its own.
    pub(crate) fn reader(from: impl Read + Send + 'static) -> JoinHandle<Console> {
        std::thread::spawn(move || Console::read(from))
    }
}

impl fmt::Display for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("; its console is empty");
        }
        f.write_str("; its console ended with:")?;
        self.lines().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept() {
        let text: String = (0..80).map(|n| format!("line {n}\r\n")).collect();
        let console = Console::read(text.as_bytes());
        let lines: Vec<&str> = console.lines().collect();
        assert_eq!(lines.len(), LINES);
        assert_eq!((lines[0], lines[49]), ("line 30", "line 79"));
        assert_eq!(console.cause(), Some("line 79"));
    }

    #[test]
    fn a_panic_is_told_of_before_what_comes_after_it() {
        let text = "[ 1.0] Kernel panic - not syncing: no init\n[ 1.0] Call Trace:\n";
        let console = Console::read(text.as_bytes());
        let expected = "[ 1.0] Kernel panic - not syncing: no init";
        assert_eq!(console.cause(), Some(expected));
        assert_eq!(Console::default().cause(), None);
    }

    #[test]
    fn what_is_no_text_and_what_never_ends_does_no_harm() {
        let mut bytes = vec![b'x'; 1 << 20];
        bytes.extend(b"\n\n\x1b[2J\xff after\nno newline");
        let console = Console::read(bytes.as_slice());
        let lines: Vec<&str> = console.lines().collect();
        assert_eq!(lines[0].len(), LINE_CHARACTERS);
        assert_eq!(lines[1..], ["\\x1b[2J\u{fffd} after", "no newline"]);
        assert!(console.to_string().ends_with("\n    no newline"));
    }
}

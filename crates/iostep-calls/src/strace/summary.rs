//! The table that `strace -C` writes behind the calls.
//!
//! Source: strace's src/count.c, `call_summary_pers`.

/// Where in such a table the text is.
#[derive(Debug, Default)]
pub(super) struct Summary {
    inside: bool,
}

impl Summary {
    /// True if a line is of the table.
    pub(super) fn has(&mut self, line: &[u8]) -> bool {
        if is_head(line) {
            self.inside = true;
            return true;
        }
        if line.starts_with(b"System call usage summary for ") {
            return true;
        }
        self.inside = self.inside && is_row(line);
        self.inside
    }
}

/// `% time     seconds  usecs/call     calls    errors syscall`, or, with `-U`, other columns.
fn is_head(line: &[u8]) -> bool {
    const COLUMNS: [&[u8]; 4] = [b"time", b"seconds", b"usecs/call", b"calls"];
    let mut words = words(line);
    let named = words.clone().any(|word| word == b"syscall");
    named && words.any(|word| COLUMNS.contains(&word)) && !line.contains(&b'(')
}

/// ` 32.24    0.018342         458        40           wait4`, and lines of dashes.
fn is_row(line: &[u8]) -> bool {
    let mut columns = words(line);
    let is_name = |word: &[u8]| {
        let mut bytes = word.iter();
        bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let is_column =
        |word: &[u8]| is_name(word) || word.iter().all(|byte| b"0123456789.-".contains(byte));
    let several = columns.clone().nth(1).is_some();
    let names = columns
        .clone()
        .filter(|word| word.first().is_some_and(u8::is_ascii_alphabetic));
    several && columns.all(is_column) && names.count() <= 1
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(|byte| *byte == b' ')
        .filter(|word| !word.is_empty())
}

//! What libbpf says while it works: nothing on the terminal, its last lines in the error.

use std::sync::Mutex;

use libbpf_rs::{PrintLevel, set_print};

use crate::error::{Error, Result};

/// The verifier's log is long, and its reason is at the end.
const KEPT_LINES: usize = 6;

/// libbpf has one print function for the whole process.
static SAID: Mutex<String> = Mutex::new(String::new());

fn keep(_level: PrintLevel, text: String) {
    if let Ok(mut said) = SAID.lock() {
        said.push_str(&text);
    }
}

/// Runs `work` and adds libbpf's last lines to its error.
pub(crate) fn listen<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    if let Ok(mut said) = SAID.lock() {
        said.clear();
    }
    let before = set_print(Some((PrintLevel::Warn, keep)));
    let result = work();
    set_print(before);
    result.map_err(|error| match error {
        Error::Kernel { what, reason } => Error::Kernel {
            what,
            reason: format!("{reason}{}", last_words()),
        },
        other => other,
    })
}

/// All that was said during the last [`listen`].
pub(crate) fn said() -> String {
    SAID.lock().map(|said| said.clone()).unwrap_or_default()
}

fn last_words() -> String {
    let said = said();
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(KEPT_LINES)..];
    last.iter().map(|line| format!("; {line}")).collect()
}

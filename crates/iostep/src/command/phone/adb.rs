//! The program adb, which reaches the phone. Its shell gets one line of text for the phone's sh
//! (`shell_v2` of the Android Open Source Project, packages/modules/adb/SERVICES.TXT), so that every
//! word is quoted here.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use anyhow::{Context, anyhow, bail};
use std::os::unix::process::CommandExt;

/// adb, and which phone it is to talk to.
pub struct Adb {
    serial: Option<String>,
}

/// How a command becomes root on the phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// adb's shell is root, as after `adb root`.
    Shell,
    /// `su -c COMMAND`, as of Magisk and KernelSU.
    SuC,
    /// `su 0 COMMAND …`, as of builds for engineers.
    Su0,
}

impl Adb {
    pub fn new(serial: Option<String>) -> Adb {
        Adb { serial }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("adb");
        if let Some(serial) = &self.serial {
            command.args(["-s", serial]);
        }
        command.stdin(Stdio::null());
        // Ctrl-C is for the program on the phone, which adb would leave behind.
        command.process_group(0);
        command
    }

    /// Runs a line of sh on the phone, and waits for it.
    ///
    /// Errors: there is no adb.
    pub fn shell(&self, line: &str) -> anyhow::Result<Output> {
        let mut command = self.command();
        let output = command.args(["shell", "-T", line]).output();
        output.map_err(cannot_start)
    }

    /// Starts a line of sh on the phone. What it says on standard error comes through a pipe; its
    /// standard output does not matter.
    ///
    /// Errors: there is no adb.
    pub fn start(&self, line: &str) -> anyhow::Result<Child> {
        let mut command = self.command();
        command
            .args(["shell", "-T", line])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command.spawn().map_err(cannot_start)
    }

    /// Copies a file to the phone.
    ///
    /// Errors: there is no adb, or it fails.
    pub fn push(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        let mut command = self.command();
        done(command.arg("push").arg(from).arg(to))
    }

    /// Copies one file from the phone.
    ///
    /// Errors: there is no adb, or it fails.
    pub fn pull(&self, from: &str, to: &Path) -> anyhow::Result<()> {
        let mut command = self.command();
        done(command.arg("pull").arg(from).arg(to))
    }
}

fn done(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().map_err(cannot_start)?;
    match output.status.success() {
        true => Ok(()),
        // Debian's adb says on standard output what it has against a file.
        false => bail!(
            "adb: {}",
            said(&[&output.stderr[..], &output.stdout].concat())
        ),
    }
}

fn cannot_start(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no adb; install it, as with apt install adb"),
        _ => anyhow!(error).context("adb: cannot run it"),
    }
}

/// What adb or the phone said last, in a line.
pub fn said(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().map(str::trim);
    let last = lines.rfind(|line| !line.is_empty());
    last.unwrap_or("it failed without a word").to_owned()
}

/// A word for sh, which changes nothing in it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words as a line for sh.
pub fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

impl Root {
    /// A line that root runs.
    pub fn line(self, line: &str) -> String {
        match self {
            Root::Shell => line.to_owned(),
            Root::SuC => format!("su -c {}", quoted(line)),
            Root::Su0 => format!("su 0 sh -c {}", quoted(line)),
        }
    }
}

/// A directory on the phone that no line of sh takes for something else, and that nobody removes by
/// mistake: absolute, below another one, of letters, digits and `._-` alone.
///
/// Errors: another name.
pub fn directory(text: &str) -> anyhow::Result<String> {
    let path = text.strip_prefix('/').context("name it from / on")?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let parts: Vec<&str> = path.split('/').collect();
    let is_plain = |part: &&str| is_plain_name(part.strip_prefix('.').unwrap_or(part));
    if parts.len() < 2 || !parts.iter().all(is_plain) {
        bail!("name a directory below another one, of letters, digits and ._- alone");
    }
    Ok(format!("/{path}"))
}

/// True for a name of letters, digits and `._-` that begins with a letter or a digit, as iostep's own
/// files have: it leads nowhere, and is no option.
pub fn is_plain_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.bytes().all(is_plain)
        && name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sh_reads_every_word_as_it_is() {
        let words = [
            "a b",
            "it's",
            "$(reboot)",
            "",
            "-x",
            "`id`",
            "\"",
            "a\nb",
            "*",
            "\\",
            "'",
        ];
        let script = format!("printf '%s\\0' {}", line(words));
        for line in [
            script.clone(),
            format!("sh -c {}", quoted(&script)),
            format!("sh -c {}", quoted(&format!("sh -c {}", quoted(&script)))),
        ] {
            let output = Command::new("sh").args(["-c", &line]).output().expect("sh");
            let read = String::from_utf8(output.stdout).expect("UTF-8");
            assert_eq!(read.split('\0').collect::<Vec<_>>()[..words.len()], words);
        }
    }

    #[test]
    fn a_directory_has_a_name_that_can_be_removed() {
        let good = [
            "/data/local/tmp",
            "/data/local/tmp/iostep-1.0/",
            "/data/.hidden",
            "/sdcard/x",
        ];
        for name in good {
            assert_eq!(directory(name).expect(name), name.trim_end_matches('/'));
        }
        for name in [
            "",
            "/",
            "/data",
            "/data/",
            "data/local",
            "/data/../etc",
            "/data//x",
            "/data/-rf",
            "/data/a b",
            "/data/$HOME",
            "/data/x;y",
            "/data/é",
            "/data/.",
            "/data/...",
        ] {
            assert!(directory(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_last_line_is_what_was_said() {
        assert_eq!(said(b"a\r\nadb: error: no\r\n\r\n"), "adb: error: no");
        assert_eq!(said(b""), "it failed without a word");
    }
}

//! The program adb, which reaches the phone. Its shell gets one line of text for the phone's sh
//! (`shell_v2` of the Android Open Source Project, packages/modules/adb/SERVICES.TXT), so that every
//! word is quoted here. adb ends with status 0 when it loses the phone: what a line came to is known
//! by a mark that the phone prints after it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use crate::error::bad_input;
use crate::interrupt::Interrupt;
use crate::shell::quoted;

/// What begins a line that is ours, whatever else a phone's shell prints.
pub const MARK: &str = "iostep-phone:";
/// Longer than any answer, or what adb has to say.
const MOST_ANSWER_BYTES: u64 = 4 << 20;
/// adb has four hexadecimal digits for the length of a line and the service's name.
const MOST_LINE_BYTES: usize = 65_000;
pub const INTERVAL: Duration = Duration::from_millis(20);
/// For what a phone that answers does at once, and nobody can interrupt.
const PATIENCE: Duration = Duration::from_secs(10);

/// adb, and which phone it is to talk to.
pub struct Adb {
    serial: Option<String>,
    pub interrupt: Interrupt,
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

/// What a line came to on the phone.
pub struct Answer {
    /// The exit status; `None` if the phone was lost before.
    pub status: Option<u8>,
    pub output: String,
    /// What adb or the phone has to say, in a line.
    pub said: String,
}

impl Answer {
    pub fn succeeded(&self) -> bool {
        self.status == Some(0)
    }
}

/// How long something may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// A signal, after which it is ended.
    Interrupt,
    /// A moment, signal or not.
    Soon,
}

impl Adb {
    /// Errors: signals cannot be caught.
    pub fn new(serial: Option<String>) -> anyhow::Result<Adb> {
        let interrupt = Interrupt::install()?;
        Ok(Adb { serial, interrupt })
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

    fn shell_command(&self, line: &str) -> anyhow::Result<Command> {
        let line = format!("{line}; echo {MARK}status=$?");
        if line.len() > MOST_LINE_BYTES {
            return Err(bad_input(anyhow!("the arguments are too long for adb")));
        }
        let mut command = self.command();
        command.args(["shell", "-T", &line]);
        Ok(command)
    }

    /// Runs a line of sh on the phone, and waits for it or a signal.
    ///
    /// Errors: there is no adb; a signal; an answer without end.
    pub fn shell(&self, line: &str) -> anyhow::Result<Answer> {
        self.answer(line, Until::Interrupt)
    }

    /// The same for what is done at once, signal or not.
    ///
    /// Errors: there is no adb; it is not done.
    pub fn shell_soon(&self, line: &str) -> anyhow::Result<Answer> {
        self.answer(line, Until::Soon)
    }

    fn answer(&self, line: &str, until: Until) -> anyhow::Result<Answer> {
        let mut command = self.shell_command(line)?;
        let (_, output, said) = self.run(command.stdout(Stdio::piped()), until, read)?;
        Ok(Answer {
            status: status_in(&output),
            said: message(&said, &output),
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }

    /// Starts a line of sh on the phone. Its standard output, which has the mark, and its standard error
    /// come through pipes.
    ///
    /// Errors: there is no adb.
    pub fn start(&self, line: &str) -> anyhow::Result<Child> {
        let mut command = self.shell_command(line)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(cannot_start)
    }

    /// Copies a file to the phone.
    ///
    /// Errors: there is no adb; it fails; a signal.
    pub fn push(&self, from: &Path, to: &str) -> anyhow::Result<()> {
        let mut command = self.command();
        command.arg("push").arg(from).arg(to).stdout(Stdio::piped());
        let (succeeded, output, said) = self.run(&mut command, Until::Interrupt, read)?;
        match succeeded {
            true => Ok(()),
            false => bail!("adb: {}", message(&said, &output)),
        }
    }

    /// Copies one file's content from the phone, which has no say in where it goes.
    ///
    /// Errors: there is no adb; the phone fails or is lost; other bytes come than the file has; they
    /// cannot be written; a signal.
    pub fn read(&self, from: &str, to: File) -> anyhow::Result<()> {
        let size = self.size(from)?;
        let mut command = self.command();
        let line = format!("cat {} && echo {MARK}status=0 >&2", quoted(from));
        command.args(["shell", "-T", &line]).stdout(Stdio::piped());
        // Not by adb, which says nothing of a disk that is full.
        let copy = |pipe: Option<ChildStdout>, is_too_long: &AtomicBool| {
            let mut to = &to;
            let copied = pipe.map_or(Ok(0), |pipe| io::copy(&mut pipe.take(size + 1), &mut to));
            let is_more = copied.as_ref().is_ok_and(|bytes| *bytes > size);
            is_too_long.fetch_or(is_more, Ordering::Relaxed);
            copied
        };
        let (_, copied, said) = self.run(&mut command, Until::Interrupt, copy)?;
        let copied = copied.context("cannot write what comes from the phone")?;
        match status_in(&said) {
            Some(0) if copied == size => to.sync_all().context("cannot write it to the disk"),
            Some(0) => bail!("{from} on the phone has {size} bytes, and {copied} came"),
            _ => bail!("{from} on the phone: {}", message(&said, b"")),
        }
    }

    /// Bytes of a file on the phone.
    fn size(&self, file: &str) -> anyhow::Result<u64> {
        let answer = self.shell(&format!("wc -c <{}", quoted(file)))?;
        let size = answer.output.lines().find_map(|it| it.trim().parse().ok());
        match size.filter(|_| answer.succeeded()) {
            Some(size) => Ok(size),
            None => bail!("{file} on the phone: {}", answer.said),
        }
    }

    /// True if it succeeded; what `take` made of what it printed, and what it said.
    fn run<T: Send>(
        &self,
        command: &mut Command,
        until: Until,
        take: impl FnOnce(Option<ChildStdout>, &AtomicBool) -> T + Send,
    ) -> anyhow::Result<(bool, T, Vec<u8>)> {
        let child = command.stderr(Stdio::piped()).spawn();
        let mut child = child.map_err(cannot_start)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let is_too_long = AtomicBool::new(false);
        thread::scope(|scope| {
            let output = scope.spawn(|| take(stdout, &is_too_long));
            let said = scope.spawn(|| read(stderr, &is_too_long));
            let ended = self.wait(&mut child, until, &is_too_long);
            if ended.is_err() {
                end(&mut child);
            }
            let (output, said) = (output.join(), said.join());
            let lost = |_| anyhow!("adb: its answer was lost");
            Ok((ended?, output.map_err(lost)?, said.map_err(lost)?))
        })
    }

    fn wait(&self, child: &mut Child, until: Until, cut: &AtomicBool) -> anyhow::Result<bool> {
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().context("adb")? {
                return Ok(status.success());
            }
            match until {
                Until::Interrupt if self.interrupt.came() => bail!("interrupted"),
                Until::Soon if began.elapsed() > PATIENCE => bail!("the phone does not answer"),
                _ if cut.load(Ordering::Relaxed) => bail!("the phone's answer has no end"),
                _ => thread::sleep(INTERVAL),
            }
        }
    }
}

/// Reads a pipe to its end, or as long as an answer may be.
fn read(pipe: Option<impl Read>, is_too_long: &AtomicBool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What cannot be read was not said.
        let _ = pipe.take(MOST_ANSWER_BYTES).read_to_end(&mut bytes);
    }
    if bytes.len() as u64 == MOST_ANSWER_BYTES {
        is_too_long.store(true, Ordering::Relaxed);
    }
    bytes
}

/// Ends adb, whatever it does.
pub fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

fn cannot_start(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no adb; install it, as with apt install adb"),
        _ => anyhow!("adb: cannot run it: {error}"),
    }
}

/// What a line came to, by its mark.
pub fn status_in(output: &[u8]) -> Option<u8> {
    let text = String::from_utf8_lossy(output);
    let mut lines = text.lines().rev().map(str::trim);
    lines.find_map(|line| {
        line.strip_prefix(MARK)?
            .strip_prefix("status=")?
            .parse()
            .ok()
    })
}

/// The line that says why: the last with an error, else the last that there is.
fn message(stderr: &[u8], stdout: &[u8]) -> String {
    let texts = [stdout, stderr].map(String::from_utf8_lossy);
    let lines = texts.iter().flat_map(|text| text.lines().map(str::trim));
    let all: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with(MARK))
        .collect();
    let error = all.iter().rfind(|line| line.contains("error:"));
    match error.or(all.last()) {
        Some(line) if line.contains("more than one device") => {
            format!("{line}; name one with --serial")
        }
        Some(line) => (*line).to_owned(),
        None => "the connection to it was lost".to_owned(),
    }
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
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphanumeric()) && bytes.all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::line;

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
            "/data/tmp/iostep-1.0/",
            "/sdcard/x",
            "/data/.hidden",
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
    fn the_line_that_says_why_is_found() {
        assert_eq!(
            message(b"a\r\nadb: error: no\r\n\r\nhint\n", b"1 file\n"),
            "adb: error: no"
        );
        assert_eq!(message(b"a\nb\n", b"c\n"), "b");
        assert_eq!(message(b"", b"c\niostep-phone:status=1\n"), "c");
        assert_eq!(message(b"", b""), "the connection to it was lost");
        let two = message(b"error: more than one device/emulator\n", b"");
        assert!(two.ends_with("name one with --serial"), "{two}");
    }

    #[test]
    fn a_status_is_known_by_its_mark() {
        assert_eq!(status_in(b"x\niostep-phone:status=3\r\nBye\n"), Some(3));
        assert_eq!(status_in(b"iostep-phone:status="), None);
        assert_eq!(status_in(b"status=0"), None);
    }
}

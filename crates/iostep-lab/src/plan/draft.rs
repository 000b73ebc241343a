//! The values of one combination, and the workload's arguments that they make.

use std::path::Path;

use iostep_model::lab::{Filesystem, Switches, WorkloadKind};
use iostep_model::units;
use twox_hash::XxHash64;

use super::shown_line;
use crate::matrix::{Choice, Problem, shown};
use crate::recording;

/// Keys of a block that are not flags of the workload.
pub const OWN_KEYS: [&str; 16] = [
    "filesystem",
    "switches",
    "workload",
    "recording",
    "command",
    "env",
    "turns",
    "label",
    "device-size",
    "mkfs-options",
    "mount-options",
    "trace",
    "pattern",
    "cpu-load",
    "repeat",
    "name",
];
/// Flags that are the lab's own to set.
const NOT_ALLOWED: [&str; 13] = [
    "json",
    "csv",
    "quiet",
    "output",
    "submit",
    "html",
    "seconds",
    "log",
    "help",
    "keep",
    "reuse",
    "destroy-data",
    "to",
];
/// What every filesystem takes, and many times what a cell writes.
const DEVICE_BYTES: u64 = 1 << 30;
const MAX_DEVICE_BYTES: u64 = 1 << 50;
const MAX_REPEAT: u64 = 10_000;
const MAX_CPU_LOAD: u64 = 1024;
/// A picture of more operations cannot be read.
const MAX_PATTERN: u64 = 1000;
/// What is longer is no recording that a cell would replay.
const MAX_RECORDING_BYTES: u64 = 1 << 30;

/// The values of one combination.
pub(super) struct Draft<'a> {
    pub filesystem: Filesystem,
    pub switches: Switches,
    pub workload: WorkloadKind,
    recording: Option<String>,
    command: Option<String>,
    pub environment: Vec<String>,
    pub turns: String,
    pub device_bytes: u64,
    pub mkfs_options: Vec<String>,
    pub mount_options: String,
    pub trace: bool,
    pub pattern: u32,
    pub cpu_load: u32,
    pub repeat: u32,
    flags: Vec<&'a Choice>,
}

impl<'a> Draft<'a> {
    pub fn of(chosen: &'a [Choice]) -> Result<Draft<'a>, Problem> {
        let value = |key: &str| {
            let found = chosen.iter().find(|choice| choice.key == key);
            found.map(|choice| choice.text.as_str())
        };
        let flags: Vec<&Choice> = chosen
            .iter()
            .filter(|choice| !OWN_KEYS.contains(&&*choice.key))
            .collect();
        if let Some(choice) = flags.iter().find(|c| NOT_ALLOWED.contains(&&*c.key)) {
            return Err((
                format!("{}: no setting of a cell", choice.key),
                "leave it out",
            ));
        }
        let device_bytes = match value("device-size") {
            None => DEVICE_BYTES,
            Some(text) => bytes("device-size", text)?,
        };
        let draft = Draft {
            filesystem: named("filesystem", value("filesystem"))?,
            switches: parsed("switches", value("switches").unwrap_or_default())?,
            workload: named("workload", value("workload"))?,
            recording: value("recording").map(str::to_owned),
            command: value("command").map(str::to_owned),
            environment: environment(value("env").unwrap_or_default())?,
            turns: value("turns").unwrap_or_default().to_owned(),
            device_bytes,
            mkfs_options: words(value("mkfs-options").unwrap_or_default()),
            mount_options: value("mount-options").unwrap_or_default().to_owned(),
            trace: truth("trace", value("trace"))?,
            pattern: number("pattern", value("pattern"), 0, 0..=MAX_PATTERN)?,
            cpu_load: number("cpu-load", value("cpu-load"), 0, 0..=MAX_CPU_LOAD)?,
            repeat: number("repeat", value("repeat"), 1, 1..=MAX_REPEAT)?,
            flags,
        };
        if draft.pattern > 0 && !draft.trace {
            let what = "pattern: nothing is traced".to_owned();
            return Err((what, "write trace = true"));
        }
        if draft.trace && draft.workload == WorkloadKind::Command {
            let what = "trace: a command is not traced".to_owned();
            return Err((what, "leave it out; iostep trace records any command"));
        }
        Ok(draft)
    }

    /// The workload's arguments without its place, and a number for what a recording holds, or for
    /// a program's name.
    pub fn arguments(&self, directory: &Path) -> Result<(Vec<String>, u64), Problem> {
        let flags = self
            .flags
            .iter()
            .filter_map(|choice| choice.argument.clone());
        let mut arguments: Vec<String> = flags.collect();
        if self.recording.is_some() && self.workload != WorkloadKind::Replay {
            let what = "recording: only a replay has one".to_owned();
            return Err((what, "write workload = \"replay\""));
        }
        if self.command.is_some() && self.workload != WorkloadKind::Command {
            let what = "command: another workload is asked for".to_owned();
            return Err((what, "write workload = \"command\""));
        }
        match self.workload {
            WorkloadKind::Sqlite => self.sqlite(&mut arguments)?,
            WorkloadKind::File => self.file(&mut arguments)?,
            WorkloadKind::Replay => {
                let (path, content) = self.recording(directory)?;
                arguments.insert(0, path);
                return Ok((arguments, content));
            }
            WorkloadKind::Command => return self.command(directory, arguments),
        }
        Ok((arguments, 0))
    }

    fn has(&self, key: &str) -> bool {
        self.flags.iter().any(|choice| choice.key == key)
    }

    /// W and waldio are journal modes; F is the absence of `--fsync`, which waldio does not take.
    fn sqlite(&self, arguments: &mut Vec<String>) -> Result<(), Problem> {
        let journal = match (self.switches.wal, self.switches.waldio) {
            (true, true) => {
                let what = "switches: W and waldio are two journal modes".to_owned();
                return Err((what, "choose one"));
            }
            (true, false) => Some("wal"),
            (false, true) => Some("waldio"),
            (false, false) => None,
        };
        if let Some(journal) = journal {
            arguments.retain(|argument| !argument.starts_with("--journal="));
            arguments.push(format!("--journal={journal}"));
        }
        if self.has("batch-atomic") {
            let what = "batch-atomic: switch A says it".to_owned();
            return Err((what, "leave batch-atomic out"));
        }
        if self.switches.batch_atomic {
            arguments.push("--batch-atomic".into());
        }
        if self.has("fsync") {
            let what = "fsync: switch F says whether fdatasync is called".to_owned();
            return Err((what, "leave fsync out"));
        }
        let waldio = arguments
            .iter()
            .any(|argument| argument.eq_ignore_ascii_case("--journal=waldio"));
        if !self.switches.fdatasync && !waldio {
            arguments.push("--fsync".into());
        }
        Ok(())
    }

    fn file(&self, arguments: &mut Vec<String>) -> Result<(), Problem> {
        match (self.has("sync"), self.switches.fdatasync) {
            (true, true) => {
                let what = "sync: switch F says it, too".to_owned();
                return Err((what, "leave one of them out"));
            }
            (true, false) => {}
            (false, true) => arguments.push("--sync=fdatasync".into()),
            (false, false) => arguments.push("--sync=fsync".into()),
        }
        if self.switches.polled {
            arguments.push("--polled".into());
            if !self.has("transfer") {
                arguments.push("--transfer=direct".into());
            }
        }
        Ok(())
    }

    /// The program, its own arguments, and flags. A program without a slash is looked for where the
    /// shell would, any other beside the lab.
    fn command(&self, directory: &Path, flags: Vec<String>) -> Result<(Vec<String>, u64), Problem> {
        let hint = "write a program and its arguments in command";
        let mut words = words(self.command.as_deref().unwrap_or_default());
        let program = words.first_mut();
        let program = program.ok_or(("command: missing".to_owned(), hint))?;
        let content = XxHash64::oneshot(0, program.as_bytes());
        if program.contains('/') {
            let bad = |error: std::io::Error| (format!("command: {error}"), hint);
            let path = std::path::absolute(directory.join(&*program)).map_err(bad)?;
            *program = path.to_string_lossy().into_owned();
        }
        words.extend(flags);
        Ok((words, content))
    }

    fn recording(&self, directory: &Path) -> Result<(String, u64), Problem> {
        let hint = "name the file of iostep record in recording";
        let name = self
            .recording
            .as_deref()
            .ok_or(("recording: missing".to_owned(), hint))?;
        if let Some(builtin) = recording::builtin_name(name) {
            let found = recording::builtin(builtin).ok_or_else(|| {
                let what = format!("recording: {}: not built in", shown(name));
                (what, "choose builtin:timeline, or a file of iostep record")
            })?;
            return Ok((name.to_owned(), XxHash64::oneshot(0, found.content)));
        }
        let path = directory.join(name);
        let bad = |error: std::io::Error| (format!("recording: {}: {error}", shown(name)), hint);
        let path = std::path::absolute(path).map_err(bad)?;
        let metadata = std::fs::metadata(&path).map_err(bad)?;
        // A device or a pipe may never end.
        if !metadata.is_file() || metadata.len() > MAX_RECORDING_BYTES {
            let what = format!("recording: {}: no file of at most 1 GiB", shown(name));
            return Err((what, hint));
        }
        let content = XxHash64::oneshot(0, &std::fs::read(&path).map_err(bad)?);
        Ok((path.to_string_lossy().into_owned(), content))
    }
}

fn named<T: std::str::FromStr<Err: std::fmt::Display>>(
    key: &str,
    text: Option<&str>,
) -> Result<T, Problem> {
    match text {
        Some(text) => parsed(key, text),
        None => Err((
            format!("{key}: missing"),
            "write it in the block or in [defaults]",
        )),
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    key: &str,
    text: &str,
) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| {
        let error = shown_line(&error.to_string());
        (format!("{key}: {error}"), "correct the value")
    })
}

fn truth(key: &str, text: Option<&str>) -> Result<bool, Problem> {
    match text {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err((
            format!("{key}: neither true nor false"),
            "write one of them",
        )),
    }
}

fn number(
    key: &str,
    text: Option<&str>,
    default: u32,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u32, Problem> {
    let Some(text) = text else {
        return Ok(default);
    };
    let number = text.parse().ok().filter(|number| range.contains(number));
    number
        .and_then(|number| u32::try_from(number).ok())
        .ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let what = format!("{key}: {}: no number from {least} to {most}", shown(text));
            (what, "correct the value")
        })
}

fn bytes(key: &str, text: &str) -> Result<u64, Problem> {
    let found = units::parse_bytes(text).ok();
    found
        .filter(|bytes| (1..=MAX_DEVICE_BYTES).contains(bytes))
        .ok_or_else(|| {
            (
                format!("{key}: {}: no size", shown(text)),
                "write it as 512MiB",
            )
        })
}

fn environment(text: &str) -> Result<Vec<String>, Problem> {
    let words = words(text);
    match words
        .iter()
        .find(|word| word.find('=').is_none_or(|at| at == 0))
    {
        None => Ok(words),
        Some(word) => {
            let what = format!("env: {}: no NAME=value", shown(word));
            Err((what, "write variables with blanks between them"))
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

//! A command in a guest, as if it ran here: what it prints comes out, and its status is ours.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use indicatif::ProgressBar;
use iostep_lab::guest::{self, Command, Exit, Options, Output, Status};

use crate::terminal::say;

/// The administrators' tools, which `sudo` may not have on its path.
const TOOLS: &str = "/usr/local/sbin:/usr/sbin:/sbin";
/// A shell reports a command that a signal ended so.
const SIGNALLED: u8 = 128;

/// Runs a command in a guest, and lets what it prints out here. The last line says what the guest was.
///
/// Errors: those of [`guest::run`].
pub fn pass_on(
    options: &Options,
    command: &Command,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    let wait = Wait::begin();
    let mut output = Output {
        stdout: &mut wait.before(io::stdout()),
        stderr: &mut wait.before(io::stderr()),
    };
    let ended = guest::run(options, command, &mut output, stop);
    wait.end();
    let exit = ended?;
    say!("iostep: {}", described(&exit));
    Ok(status(exit.status))
}

/// What a login of root would have, and what was asked for.
pub fn environment(wanted: &[String]) -> Vec<(OsString, OsString)> {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let mut path = own;
    path.push(":");
    path.push(TOOLS);
    let mut all = vec![
        ("PATH".into(), path),
        ("HOME".into(), "/root".into()),
        ("USER".into(), "root".into()),
        ("LANG".into(), "C.UTF-8".into()),
    ];
    for setting in wanted {
        match setting.split_once('=') {
            Some((name, value)) => all.push((name.into(), value.into())),
            None => all.extend(std::env::var_os(setting).map(|value| (setting.into(), value))),
        }
    }
    all
}

pub fn status(status: Status) -> ExitCode {
    ExitCode::from(match status {
        Status::Exited(status) => status,
        Status::Killed(signal) => SIGNALLED.saturating_add(signal),
    })
}

fn described(exit: &Exit) -> String {
    let processor = match exit.emulated {
        true => "emulated: times are not those of hardware",
        false => "on KVM",
    };
    let (boot, run) = (exit.boot.as_secs_f64(), exit.run.as_secs_f64());
    let restarts = match exit.restarts {
        0 => String::new(),
        1 => "; started again once, since it had fallen silent".into(),
        times => format!("; started again {times} times, since it had fallen silent"),
    };
    format!(
        "Linux {} in a guest, {processor}; up in {boot:.1} s, ran {run:.1} s{restarts}",
        exit.kernel
    )
}

/// A sign of life while the guest comes up; gone before the command prints anything.
struct Wait(ProgressBar);

impl Wait {
    fn begin() -> Wait {
        if !io::stderr().is_terminal() {
            return Wait(ProgressBar::hidden());
        }
        let bar = ProgressBar::new_spinner().with_message("the guest is coming up");
        bar.enable_steady_tick(Duration::from_millis(200));
        Wait(bar)
    }

    fn before<W: io::Write>(&self, to: W) -> After<W> {
        After {
            wait: self.0.clone(),
            to,
        }
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// Output that ends the wait.
struct After<W> {
    wait: ProgressBar,
    to: W,
}

impl<W: io::Write> io::Write for After<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait.finish_and_clear();
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

//! `iostep bench` as a process of its own: one that is measured without what this one did before.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context;
use iostep_lab::child::{self, Ended};

use crate::interrupt::Interrupt;

/// Runs `iostep bench` with these arguments; the result goes to the file `output`. A signal is
/// handed on, and the kernel ends the process if this one dies.
///
/// Errors: it cannot be started or waited for.
pub fn run<A: AsRef<OsStr>>(
    arguments: &[A],
    output: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<Ended> {
    let mut output_flag = OsString::from("--output=");
    output_flag.push(output);
    let mut command = Command::new(std::env::current_exe().context("cannot find iostep itself")?);
    command
        .arg("bench")
        .args(arguments)
        .args([OsString::from("--quiet"), output_flag])
        .stdout(Stdio::null());
    child::run(&mut command, interrupt.flag(), None).context("cannot run iostep bench")
}

//! Two lanes: what runs in guests, beside what runs on this machine. They share nothing but the
//! processors, and a guest keeps one of them busy.

use std::fs::File;
use std::io::{Seek, Write};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::Context;

use crate::case::Case;

/// Set for the process of the second lane.
const SECOND: &str = "IOSTEP_GUESTS_ONLY";

/// This process's part of the tests.
pub struct Lanes {
    part: Part,
}

enum Part {
    /// No lanes: as arguments select.
    All,
    /// Those on this machine, and another process.
    First { second: Child, output: File },
    /// Those in guests.
    Second,
}

impl Lanes {
    /// Starts the second lane if all tests are to run. Call it before temporary files have their
    /// place: each lane has its own.
    ///
    /// Errors: this program cannot be started again.
    pub fn start() -> anyhow::Result<Lanes> {
        let part = if std::env::var_os(SECOND).is_some() {
            Part::Second
        } else if std::env::args_os().len() > 1 || is_in_guest() {
            Part::All
        } else {
            let output = tempfile::tempfile()?;
            let second = Command::new(std::env::current_exe()?)
                .env(SECOND, "1")
                .stdin(Stdio::null())
                .stdout(output.try_clone()?)
                .stderr(output.try_clone()?)
                .spawn()
                .context("cannot start the lane of guests")?;
            Part::First { second, output }
        };
        Ok(Lanes { part })
    }

    /// True if this process runs the test.
    pub fn has(&self, case: &Case) -> bool {
        match self.part {
            Part::All => true,
            Part::First { .. } => !case.is_in_guest(),
            Part::Second => case.is_in_guest(),
        }
    }

    /// Waits for the other lane, and prints what it printed. `None` if there is none.
    ///
    /// Errors: it cannot be waited for, or its output cannot be copied.
    pub fn finish(self) -> anyhow::Result<Option<ExitStatus>> {
        let Part::First {
            mut second,
            mut output,
        } = self.part
        else {
            return Ok(None);
        };
        let status = second.wait()?;
        println!("\nin guests, meanwhile:");
        output.rewind()?;
        std::io::copy(&mut output, &mut std::io::stdout())?;
        std::io::stdout().flush()?;
        Ok(Some(status))
    }
}

fn is_in_guest() -> bool {
    std::env::var_os("IOSTEP_GUEST").is_some()
}

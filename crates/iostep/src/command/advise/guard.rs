//! `iostep __mount-guard`: the process that sets a mount option, and takes it back when whoever
//! started it is done with it, or dead.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use super::mounted::Mounted;
use crate::error::describe;
use crate::interrupt::Interrupt;

/// Its name as a command.
pub const COMMAND: &str = "__mount-guard";
/// What it says once the option is set; what else it says is why it is not.
pub const READY: &str = "ready";

/// It waits for the end of standard input.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The root of the mount
    root: PathBuf,
    /// The mount's name for people
    name: PathBuf,
    /// The option to set
    option: String,
    /// The option that is in force, and is so again at the end
    undo: String,
}

/// Sets the option, says so, waits, and takes it back.
///
/// Errors: it cannot be taken back.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Neither a terminal nor a service that ends may end this before it is done.
    let _ignored = Interrupt::install()?;
    rustix::process::setsid().context("cannot leave the terminal")?;
    let begun = begin(args).and_then(|mounted| match mounted.set(&args.option) {
        Ok(()) => Ok(mounted),
        // What went wrong half-way is undone too.
        Err(error) if mounted.check_in_force(&args.undo).is_err() => {
            say(&describe(&error));
            Ok(mounted)
        }
        Err(error) => Err(error),
    });
    let mounted = match begun {
        Ok(mounted) => mounted,
        Err(error) => {
            say(&describe(&error));
            return Ok(ExitCode::SUCCESS);
        }
    };
    say(READY);
    // Until its end, whatever else goes wrong with it.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    mounted.set(&args.undo).with_context(|| {
        let name = args.name.display();
        format!(
            "{name}: cannot take the mount option back; do it with: mount -o remount,{} {name}",
            args.undo
        )
    })?;
    Ok(ExitCode::SUCCESS)
}

fn begin(args: &Args) -> anyhow::Result<Mounted> {
    let mounted = Mounted::open(&args.root)?;
    mounted.lock()?;
    // Somebody else may have changed it since it was read.
    mounted.check_in_force(&args.undo)?;
    Ok(mounted)
}

/// Tells whoever started this, if they live.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

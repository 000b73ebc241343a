//! Where a copy of the database is explained: on a filesystem of its own, or in a guest.

use std::fs;
use std::path::Path;

use anyhow::Context;
use iostep_lab::storage::{DeviceSource, Mounted};
use iostep_load::script::{copy, copy_unshared, log_of};
use iostep_model::directory::Temporary;
use iostep_model::lab::{Filesystem, Storage};

use super::Args;
use super::drive::{self, Plan};
use super::run::{Explained, explain};
use crate::command::bench::filesystem_like;
use crate::command::elsewhere::{self, Guest};
use crate::interrupt::Interrupt;

/// Room for the filesystem itself and for journals, beside the copies of the database.
const LEAST_BYTES: u64 = 512 << 20;
/// One to start from, one to work on, and a log that holds all of it.
const COPIES: u64 = 3;
/// The script, beside the copy.
const SCRIPT: &str = ".iostep-script.sql";

/// Where the copy lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Place {
    /// Beside the database, so on its filesystem
    Here,
    /// On a new filesystem on a loop device, which nobody else uses
    Loop,
    /// The same in a guest under QEMU, which needs no rights
    Guest,
}

/// Explains a plan on a copy on a new filesystem.
///
/// To be called before any other thread is started.
///
/// Errors: those of [`Mounted::make`], [`copy`] and [`explain`].
pub fn on_own_filesystem(
    mut plan: Plan,
    args: &Args,
    interrupt: &Interrupt,
) -> anyhow::Result<Explained> {
    let storage = Storage {
        filesystem: args.fs.unwrap_or_else(|| like(&plan.database)),
        external_journal: false,
        mkfs_options: Vec::new(),
        mount_options: String::new(),
        device_bytes: room(&plan.database),
    };
    iostep_lab::enter_private_mounts()?;
    let images = std::env::temp_dir();
    let mounted = Mounted::make(&storage, DeviceSource::Images(&images), false)?;
    let root = mounted.root();
    plan.database = match args.unshared {
        true => copy_unshared(&plan.database, root)?,
        false => copy(&plan.database, root, plan.timeout, interrupt.flag())?,
    };
    plan.disposable.push(root.to_owned());
    explain(&plan, interrupt)
}

/// What a guest runs: this command, on a copy that it can read wherever the database lies.
///
/// Errors: those of [`copy`] and [`Guest::add_result`]; no room for the copy.
pub fn guest(args: &Args, plan: &Plan, interrupt: &Interrupt) -> anyhow::Result<Guest> {
    let filesystem = args.fs.unwrap_or_else(|| like(&plan.database));
    let brought = Temporary::new(&std::env::temp_dir(), drive::PREFIX)?;
    let name = brought.directory().name();
    let copied = copy(&plan.database, name, plan.timeout, interrupt.flag())?;
    let mut words = elsewhere::words(["explain", "--unshared", "--on", "loop", "--fs"]);
    words.push(filesystem.name().into());
    if !plan.modes.is_empty() {
        let modes: Vec<&str> = plan.modes.iter().map(|mode| mode.name()).collect();
        words.extend(elsewhere::words(["--journal", &modes.join(",")]));
    }
    if let Some(synchronous) = plan.synchronous {
        words.extend(elsewhere::words(["--sync", synchronous.name()]));
    }
    let flags = [
        ("--cold-cache", args.cold_cache),
        ("--cold", args.cold),
        ("--json", args.json),
        ("--allow-loss", args.allow_loss),
    ];
    let wanted = flags.into_iter().filter(|(_, is_wanted)| *is_wanted);
    words.extend(wanted.map(|(flag, _)| flag.into()));
    // A word of a command has 128 KiB at most, a script may have more.
    let script = name.join(SCRIPT);
    fs::write(&script, &plan.script).context("cannot copy the script")?;
    words.extend(["--file".into(), script.into()]);
    let mut guest = Guest {
        words,
        results: Vec::new(),
        brought: Some(brought),
        filesystem: filesystem.kind().name(),
        file_bytes: room(&plan.database),
    };
    if let Some(page) = &args.html {
        guest.add_result("--html", page)?;
    }
    guest.words.extend(["--".into(), copied.into()]);
    Ok(guest)
}

fn like(database: &Path) -> Filesystem {
    filesystem_like(database.parent().unwrap_or(Path::new("/")))
}

fn room(database: &Path) -> u64 {
    let lengths =
        [database, &log_of(database)].map(|path| fs::metadata(path).map_or(0, |f| f.len()));
    let bytes = lengths.iter().sum::<u64>();
    LEAST_BYTES + COPIES * bytes.next_multiple_of(1 << 20)
}

//! What can be wrong before anything is done.

use std::path::Path;

use iostep_lab::environment::On;
use iostep_lab::storage::JOURNAL_BYTES;
use iostep_lab::{Error, GivenDevice, builtin};
use iostep_model::lab::{Cell, WorkloadKind};

use super::Args;
use crate::command::bench;

/// Looks at the places that the arguments name. Nothing is written.
///
/// Errors: `Usage` for a device that must not be overwritten or cannot hold these cells, for flags
/// that do not go together, for a page whose directory is not there, and for programs of a lab that
/// somebody else may have written.
pub fn check(args: &Args, on: &On, cells: &[Cell]) -> anyhow::Result<()> {
    commands(args, cells)?;
    if let Some(path) = &args.html {
        bench::check_parent(path)?;
    }
    match (on, &args.journal_device) {
        (On::Device(device), journal) => devices(args, device, journal.as_deref(), cells),
        (_, None) => Ok(()),
        (_, Some(journal)) => Err(Error::Usage {
            what: format!("--journal-device {}: no --on device", journal.display()),
            hint: "name the device of the filesystem with --on".into(),
        }
        .into()),
    }
}

/// A lab is text, and so is the `lab.json` of results that came from elsewhere: neither runs
/// programs, often as root, unless that is meant.
fn commands(args: &Args, cells: &[Cell]) -> anyhow::Result<()> {
    let is_own =
        |cell: &&Cell| cell.workload.kind == WorkloadKind::Command || !cell.environment.is_empty();
    let Some(cell) = cells.iter().find(is_own) else {
        return Ok(());
    };
    if args.allow_commands || builtin::find(&args.lab).is_some() {
        return Ok(());
    }
    let program = match cell.workload.kind {
        WorkloadKind::Command => cell.workload.arguments.join(" "),
        _ => cell.environment.join(" "),
    };
    Err(Error::Usage {
        what: format!("{}: it would run programs of its own: {program}", args.lab),
        hint: "pass --allow-commands if you know them".into(),
    }
    .into())
}

fn devices(
    args: &Args,
    device: &Path,
    journal: Option<&Path>,
    cells: &[Cell],
) -> anyhow::Result<()> {
    if !args.destroy_data {
        return Err(Error::Usage {
            what: format!(
                "{}: every cell would destroy what it holds",
                device.display()
            ),
            hint: "pass --destroy-data if that is meant".into(),
        }
        .into());
    }
    let largest = cells.iter().map(|cell| cell.storage.device_bytes).max();
    let first = GivenDevice::take(device)?;
    first.check_holds(largest.unwrap_or(0))?;
    if let Some(journal) = journal {
        let second = GivenDevice::take(journal)?;
        first.check_apart(&second)?;
        second.check_holds(JOURNAL_BYTES)?;
    }
    Ok(())
}

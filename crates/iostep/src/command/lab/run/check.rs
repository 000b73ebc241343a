//! What can be wrong before anything is done.

use std::path::Path;

use iostep_lab::environment::On;
use iostep_lab::storage::JOURNAL_BYTES;
use iostep_lab::{Error, GivenDevice};
use iostep_model::lab::Cell;

use super::Args;
use crate::command::bench;

/// Looks at the places that the arguments name. Nothing is written.
///
/// Errors: `Usage` for a device that must not be overwritten or cannot hold these cells, for flags
/// that do not go together, and for a page whose directory is not there.
pub fn check(args: &Args, on: &On, cells: &[Cell]) -> anyhow::Result<()> {
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

//! `iostep phone status`: what a phone can do.

use std::process::ExitCode;

use iostep_model::printable;
use iostep_report::quantity::bytes;

use super::PhoneArgs;
use super::adb::{Adb, Root};
use super::device::{self, Device};
use crate::terminal;

/// Say what the phone can do.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(adb: &Adb, phone: &PhoneArgs, args: &Args) -> anyhow::Result<ExitCode> {
    let device = device::ask(adb, &phone.directory, true)?;
    match args.json {
        true => terminal::print_json(&terminal::json(&device))?,
        false => terminal::print(&text(&device, &phone.directory))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn text(device: &Device, directory: &str) -> String {
    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "not told".into());
    let root = match device.root {
        Some(Root::Shell) => "adb's shell is root",
        Some(Root::SuC) => "by su -c",
        Some(Root::Su0) => "by su 0",
        None => "none: bench alone runs",
    };
    let traces = match (device.root, device.has_btf) {
        (None, _) => "no: they need root",
        (Some(_), true) => "by BPF",
        (Some(_), false) => "trace by tracefs, record by ptrace: the kernel has no BTF",
    };
    let lines = [
        ("phone", device.name()),
        ("Android", known(&device.android)),
        (
            "kernel",
            format!("{} ({})", known(&device.kernel), device.machine),
        ),
        ("root", root.to_owned()),
        ("trace, record", traces.to_owned()),
        (
            "program",
            match &device.program {
                Some(version) => format!("{directory}/iostep, {version}"),
                None => format!("none in {directory}; name one with --program"),
            },
        ),
        (
            "free there",
            device.free_bytes.map_or("not told".into(), bytes),
        ),
    ];
    lines
        .iter()
        .map(|(name, value)| format!("{name:13}  {}\n", printable(value)))
        .collect()
}

//! `iostep doctor`: what this machine allows.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::Context;
use iostep_analyze::doctor::{Ability, Checkup, Made, SCHEMA_VERSION, Seen};
use iostep_analyze::report::doctor::document;
use iostep_lab::environment::kernel_mounts;
use iostep_lab::guest;
use iostep_lab::{LoopImage, MADE, enter_private_mounts, image, mkfs};
use iostep_load::environment::here;
use iostep_model::disk::{self, Disk};
use iostep_model::filesystem::Kind;
use iostep_report::document::Detail;
use iostep_trace::{bpf, mounts};
use rustix::process::geteuid;

use crate::error::describe;
use crate::terminal;
use crate::version;

/// Say what this machine allows, and what to do about the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep doctor
  iostep doctor --json

Nothing is changed. Run it as the user who runs iostep: root may do more.
Exit status: 0, whatever works.
docs/doctor.md explains the lines.")]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    // Before any thread is started, as it asks.
    let private = enter_private_mounts();
    let root = Path::new("/");
    let checkup = Checkup {
        schema_version: SCHEMA_VERSION,
        iostep: match version::COMMIT {
            Some(commit) => format!("{} ({commit})", version::NUMBER),
            None => version::NUMBER.to_owned(),
        },
        host: here(root).host,
        user: geteuid().as_raw(),
        abilities: vec![
            of_result("trace", bpf::check_trace()),
            of_result("record", bpf::check_record()),
            by_ptrace()?,
            of_result(
                "demo, explain, lab run and bench --on loop here",
                private.and_then(|()| loop_device()),
            ),
            in_a_guest(),
        ],
        filesystems: MADE.map(made).into(),
        mounts: mounts::of_devices()?.into_iter().map(seen).collect(),
        disks: disks(),
    };
    if args.json {
        terminal::print_json(&terminal::json(&checkup))?;
    } else {
        terminal::print(&document(&checkup).text(Detail::Full, terminal::style()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn of_result<E: Into<anyhow::Error>>(what: &'static str, result: Result<(), E>) -> Ability {
    let note = result.err().map(|error| describe(&error.into()));
    Ability {
        what,
        works: note.is_none(),
        note,
    }
}

/// A recording of a command that does nothing: who may trace another process, only a try tells.
fn by_ptrace() -> anyhow::Result<Ability> {
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let tried = Command::new(&program)
        .args(["record", "--via", "ptrace", "-o"])
        .arg(directory.path().join("doctor.calls"))
        .arg("--")
        .args([program.as_os_str(), "--version".as_ref()])
        .stdin(Stdio::null())
        .output()
        .context("cannot run the program itself")?;
    let said = String::from_utf8_lossy(&tried.stderr);
    let reason = said.lines().last().unwrap_or("it fails without a word");
    let what = "record --via ptrace, replay of it";
    Ok(Ability {
        what,
        works: tried.status.success(),
        note: (!tried.status.success()).then(|| iostep_model::printable::excerpt(reason, 300)),
    })
}

/// A small image on a loop device, which is gone again at the end.
fn loop_device() -> iostep_lab::Result<()> {
    let options = image::Options {
        bytes: 1 << 20,
        ..image::Options::default()
    };
    LoopImage::create(&options).map(drop)
}

fn in_a_guest() -> Ability {
    let what = "lab guest, and in a guest what does not work here";
    let mut ability = of_result(what, guest::check_prerequisites(&guest::Options::default()));
    if ability.works && !guest::is_accelerated() {
        let way =
            "slowly, by emulation, since /dev/kvm cannot be used: bytes and counts are the same";
        ability.note = Some(way.to_owned());
    }
    ability
}

fn made(kind: Kind) -> Made {
    let (mkfs, mkfs_missing) = match mkfs::installed(kind) {
        Ok(version) => (Some(version), None),
        Err(error) => (None, Some(describe(&error.into()))),
    };
    Made {
        name: kind.name(),
        mounts: kernel_mounts(kind),
        mkfs,
        mkfs_missing,
    }
}

fn seen(mount: mounts::OfDevice) -> Seen {
    Seen {
        is_known: Kind::of_mount(&mount.kind).is_some(),
        point: mount.point,
        kind: mount.kind,
        source: mount.source,
    }
}

/// The hardware: not what is built upon it, and no memory.
fn disks() -> Vec<Disk> {
    let found = std::fs::read_dir("/sys/block").into_iter().flatten();
    let devices = found.flatten().map(|entry| entry.path());
    let below = devices.map(|device| disk::below(Path::new("/"), &device));
    // Whatever is built upon another is not alone.
    let lowest = below.filter(|found| found.len() == 1);
    let all = lowest.flat_map(|found| disk::disks(&found));
    let is_hardware = |disk: &Disk| {
        let is_memory = ["ram", "zram"]
            .iter()
            .any(|word| disk.name.starts_with(word));
        !is_memory && disk.capacity_bytes.is_some_and(|bytes| bytes > 0)
    };
    let mut disks: Vec<Disk> = all.filter(is_hardware).collect();
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks
}

//! `iostep demo`: the journaling of journal on a filesystem of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use iostep_analyze::report;
use iostep_lab::image::Options;
use iostep_lab::mkfs::named;
use iostep_lab::{Kind, LoopImage, Mount, enter_private_mounts, mkfs, tool};
use iostep_load::script::{Database, Driver, Settings};
use iostep_model::lab::Filesystem;
use iostep_model::pragma::{Journal, Synchronous};
use iostep_model::printable;
use iostep_report::document::Detail;

use super::elsewhere::{self, Guest};
use super::explain::{Explained, On, Plan, child_command, explain};
use crate::interrupt::Interrupt;
use crate::terminal;

/// ATC'15 section 3: one record of 100 bytes into an empty table.
const TABLE: &str = "CREATE TABLE records (value TEXT)";
const RECORD_BYTES: usize = 100;
const IMAGE_BYTES: u64 = 256 << 20;
const REPORT: &str = "demo-report.html";

/// Where the filesystem is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Place {
    /// On this machine
    Here,
    /// In a guest under QEMU, which needs no rights
    Guest,
}

/// Show the journaling of journal: one 100-byte insert under every journal mode of SQLite.
///
/// Makes an ext4 image in memory or a temporary file, runs ATC'15 table 1 on it, and takes
/// everything down again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  iostep demo --keep report.html

Needs root, or else runs in a guest. Nothing is left behind but the report.")]
pub struct Args {
    /// Where to write the report
    #[arg(long, value_name = "FILE", default_value = REPORT)]
    keep: PathBuf,

    /// Filesystem to make: ext4, xfs, btrfs, f2fs, nilfs2, fat32
    #[arg(long, value_name = "KIND", default_value = "ext4", value_parser = named)]
    fs: Kind,

    /// Where: here or guest [default: here, or in a guest if this machine does not let iostep]
    #[arg(long, value_name = "PLACE", hide_possible_values = true)]
    on: Option<Place>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    terminal::check_results(args.json, [&args.keep])?;
    let guest = |_: &Interrupt| guest(&args);
    match args.on {
        Some(Place::Here) => here(&args),
        Some(Place::Guest) => elsewhere::in_a_guest(guest),
        None => elsewhere::here_or_in_a_guest(|| here(&args), guest),
    }
}

fn guest(args: &Args) -> anyhow::Result<Guest> {
    let mut guest = Guest {
        words: elsewhere::words(["demo", "--on", "here", "--fs", name(args.fs)]),
        results: Vec::new(),
        brought: None,
        filesystem: args.fs.name(),
        file_bytes: 0,
    };
    guest.add_result("--keep", &args.keep)?;
    guest.words.extend(args.json.then(|| "--json".into()));
    Ok(guest)
}

/// What [`named`] reads.
fn name(kind: Kind) -> &'static str {
    let mut all = Filesystem::ALL.iter();
    let found = all.find(|filesystem| filesystem.kind() == kind);
    found.map_or(kind.name(), |filesystem| filesystem.name())
}

fn here(args: &Args) -> anyhow::Result<ExitCode> {
    // Before any thread is started: only what comes later is inside.
    enter_private_mounts()?;
    let interrupt = Interrupt::install()?;
    let explained = on_own_filesystem(args.fs, &interrupt)?;
    explained.write_html(&args.keep)?;
    let (json, text) = (|| explained.json(), || summary(&explained, &args.keep));
    terminal::print_either([&args.keep], args.json, json, text)?;
    Ok(explained.exit_code(false))
}

fn on_own_filesystem(kind: Kind, interrupt: &Interrupt) -> anyhow::Result<Explained> {
    let image = LoopImage::create(&Options {
        bytes: IMAGE_BYTES.max(tool(kind).smallest_bytes),
        ..Options::default()
    })?;
    mkfs(kind, &image, mkfs_options(kind))?;
    let mount = Mount::new(kind, &image, "")?;
    let database = mount.path().join("app.db");
    make_table(&database, interrupt.flag())?;
    let plan = Plan {
        database,
        script: format!(
            "INSERT INTO records VALUES ('{}')",
            "x".repeat(RECORD_BYTES)
        ),
        modes: Journal::ALL.to_vec(),
        synchronous: Some(Synchronous::Full),
        warm_up: true,
        cold_cache: false,
        timeout: Duration::ZERO,
        on: On::Copy,
        disposable: vec![mount.path().to_owned()],
    };
    explain(&plan, interrupt)
}

/// The papers' block size; mkfs.ext4 would choose 1 KB for an image as small as this one.
fn mkfs_options(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Ext4 => &["-b", "4096"],
        _ => &[],
    }
}

fn make_table(path: &Path, interrupted: &AtomicBool) -> anyhow::Result<()> {
    let command: Command = child_command()?;
    let mut driver = Driver::start(command, interrupted)?;
    driver.open(&Database {
        path: path.to_owned(),
        settings: Settings {
            create: true,
            ..Settings::default()
        },
    })?;
    driver.load(TABLE)?;
    driver.step()?.context("the table was not made")?;
    driver.close()?;
    Ok(())
}

fn summary(explained: &Explained, page: &Path) -> String {
    let title = format!("One {RECORD_BYTES}-byte insert into an empty table");
    let document = report::explain::comparison(title, &explained.explanation);
    let text = document.text(Detail::Full, terminal::style());
    let page = std::path::absolute(page).unwrap_or_else(|_| page.to_owned());
    format!("{text}report: {}\n", printable(&page.display().to_string()))
}

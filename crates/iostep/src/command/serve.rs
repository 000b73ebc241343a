//! `iostep serve`: a server of results, and what its operator does with them.

mod decide;
mod export;
mod lake;
mod list;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::anyhow;
use iostep_model::hex;
use iostep_model::printable;
use iostep_model::units;
use iostep_serve::api::{Limits, MOST_SENT_BYTES, Patience};
use iostep_serve::store::{Outcome, Store};
use iostep_serve::upload::Id;
use iostep_serve::{log, server};
use sd_notify::NotifyState;

use crate::error::bad_input;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Collect results of many devices, and rank them.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  iostep serve --data results
  iostep serve --data results --listen 0.0.0.0:7370 --per-address 600
  iostep serve --data results --lake /srv/lake
  iostep serve list --data results --state invalid
  iostep serve delist --data results 3f5a... --reason 'a forged clock'
  iostep serve backup --data results copy.db

Exit status: 0 done, 1 failed, 2 bad usage.
docs/serve.md explains the API, what is checked, and what is kept."
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Directory of the results; made if it is not there, for its owner alone
    #[arg(long, value_name = "DIR", required = true)]
    data: Option<PathBuf>,

    /// Where connections are taken: an address and a port, 0 for any port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7370")]
    listen: SocketAddr,

    /// Uploads of one address in a minute
    #[arg(long, value_name = "N", default_value_t = 120,
          value_parser = clap::value_parser!(u32).range(1..))]
    per_address: u32,

    /// Uploads of one installation in a minute
    #[arg(long, value_name = "N", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..))]
    per_installation: u32,

    /// Pages, and requests for results, of one address in a minute
    #[arg(long, value_name = "N", default_value_t = 600,
          value_parser = clap::value_parser!(u32).range(1..))]
    questions_per_address: u32,

    /// Bytes that one address may upload in a day, as they are sent
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = bytes_per_day)]
    bytes_per_day: u64,

    /// Take a request's address from the last one of X-Forwarded-For
    #[arg(long)]
    behind_proxy: bool,

    /// Put valid results into this lake, at the start and each midnight of UTC; made if it is not
    /// there
    #[arg(long, value_name = "LAKE")]
    lake: Option<PathBuf>,

    /// Print JSON: the URL, once connections are taken
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Name the results that are kept, the newest first
    List(list::ListArgs),
    /// Show a result
    Show(list::ShowArgs),
    /// Doubt a result: it is shown and not ranked
    Quarantine(decide::ReasonArgs),
    /// Take a result out of the rankings for good; it stays to be seen
    Delist(decide::ReasonArgs),
    /// Let a result count again
    Restore(decide::RestoreArgs),
    /// Write all results as lines of JSON
    Export(export::ExportArgs),
    /// Copy the store while it is used, to a plain SQLite database
    Backup(export::BackupArgs),
    /// Put the valid results that a lake has not got into it
    Lake(lake::LakeArgs),
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command {
        None => serve(&args),
        Some(Command::List(args)) => list::list(&args),
        Some(Command::Show(args)) => list::show(&args),
        Some(Command::Quarantine(args)) => decide::quarantine(&args),
        Some(Command::Delist(args)) => decide::delist(&args),
        Some(Command::Restore(args)) => decide::restore(&args),
        Some(Command::Export(args)) => export::export(&args),
        Some(Command::Backup(args)) => export::back_up(&args),
        Some(Command::Lake(args)) => lake::put(&args),
    }
}

fn serve(args: &Args) -> anyhow::Result<ExitCode> {
    let data = args.data.as_deref().unwrap_or(Path::new("."));
    let store = Store::create(data).map_err(unfit)?;
    let interrupt = Interrupt::install()?;
    let lake = args.lake.as_deref();
    let lake = lake
        .map(|path| lake::of_store(path, &store, false))
        .transpose()
        // A disk that is not mounted yet is no bad usage: whoever starts servers tries again.
        .map_err(|error| anyhow!("{error:#}"))?;
    let limits = Limits {
        per_address: args.per_address,
        per_installation: args.per_installation,
        questions_per_address: args.questions_per_address,
        bytes_per_day: args.bytes_per_day,
        behind_proxy: args.behind_proxy,
        patience: Patience::default(),
    };
    let mut printed = Ok(());
    let has_ended = AtomicBool::new(false);
    let stop = || interrupt.came() || has_ended.load(Ordering::Relaxed);
    let served = thread::scope(|scope| {
        let _ends = Ends(&has_ended);
        server::run(
            &store,
            args.listen,
            limits,
            || interrupt.came(),
            |address| {
                let url = format!("http://{address}");
                log::line(&format!("listening at {url}"));
                tell_service_manager(&[NotifyState::Ready]);
                if args.json {
                    printed = terminal::print_json(&serde_json::json!({ "url": url }).to_string());
                }
                // Not before it is known that no other server has the store.
                if let Some(lake) = &lake {
                    scope.spawn(|| lake::each_night(&store, lake, &stop));
                }
            },
        )
    });
    tell_service_manager(&[NotifyState::Stopping]);
    // The same for a server that still has the store.
    served?;
    log::line("ended: all that was acknowledged is kept");
    printed?;
    Ok(ExitCode::SUCCESS)
}

/// Tells systemd, if it has started this and waits for that.
fn tell_service_manager(state: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(state) {
        log::line(&format!("error: cannot tell the service manager: {error}"));
    }
}

/// Says so when the server ends, however it does.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A directory that is no store, or one of somebody else, is the user's to mend.
fn unfit(error: iostep_serve::Error) -> anyhow::Error {
    match error {
        iostep_serve::Error::Refused { .. } => bad_input(error),
        error => error.into(),
    }
}

/// A store that is there.
///
/// Errors, of bad usage: there is none.
fn open(data: &Path) -> anyhow::Result<Store> {
    Store::open(data).map_err(|error| match &error {
        iostep_serve::Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => {
            let path = path.display();
            bad_input(anyhow!(
                "{path}: there is no store of results; name the directory that iostep serve has"
            ))
        }
        _ => unfit(error),
    })
}

/// Errors, of bad usage: a file that is to be written would lie among those of the store.
fn expect_elsewhere(file: &Path, store: &Store) -> anyhow::Result<()> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Of one that is not there is told by whoever writes.
    let directory = directory.canonicalize().unwrap_or_default();
    if store.database().parent() != Some(&*directory) {
        return Ok(());
    }
    let file = file.display();
    Err(bad_input(anyhow!(
        "{file}: it would lie in the store's own directory; name a file elsewhere"
    )))
}

/// Errors: it is no size, or the longest upload is longer.
fn bytes_per_day(text: &str) -> Result<u64, String> {
    let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
    match bytes >= MOST_SENT_BYTES as u64 {
        true => Ok(bytes),
        false => Err(format!(
            "one upload may have {MOST_SENT_BYTES} bytes; allow as many at least"
        )),
    }
}

/// The name of a result, as an argument.
fn id(text: &str) -> Result<Id, String> {
    let found = hex::decode(text);
    found.ok_or_else(|| format!("{text}: a result is named by 64 digits 0-9a-f"))
}

/// Errors, of bad usage: there is no such result.
fn expect_done(outcome: Outcome, id: &Id) -> anyhow::Result<()> {
    match outcome {
        Outcome::Done => Ok(()),
        _ => Err(missing(id)),
    }
}

fn missing(id: &Id) -> anyhow::Error {
    let id = hex::encode(id);
    bad_input(anyhow!(
        "{id}: there is no such result; iostep serve list names them"
    ))
}

/// A line for people, of text from outside.
fn line(text: &str) -> String {
    printable(text).into_owned() + "\n"
}

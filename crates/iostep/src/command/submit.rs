//! `iostep submit`: brings results to a server.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use iostep_lab::results;
use iostep_model::printable;
use iostep_serve::api::MOST_BYTES;
use iostep_serve::client::{self, Accepted, Client, Fault};
use iostep_serve::upload;

use crate::error::{bad_input, describe};
use crate::input::{self, Kind};
use crate::shell::shown;
use crate::terminal::{self, say};

/// A file with its indents and its summary is longer than what is sent of it.
const MOST_READ_BYTES: u64 = 64 << 20;
/// A server that takes one a minute of everybody has taken the next by then.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// HTTP's word for who sends too often, and for a server that has no room or no time.
const TOO_OFTEN: u16 = 429;
const UNAVAILABLE: u16 = 503;

/// Bring results of bench to a server.
///
/// What is sent is what was measured and on which kind of hardware, without names and paths, and the
/// public key of this installation, which is made at the first time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  iostep submit wal.json delete.json --to http://results.example:7370
  iostep submit lab-results --to http://results.example:7370
  iostep submit --to http://results.example:7370 --take-back ID --token TOKEN

https needs a proxy on this machine that speaks it, as stunnel.
Exit status: 0 all are kept, 1 one is not, 2 bad usage.
docs/submit.md explains it.")]
pub struct Args {
    /// Results of iostep bench -o, or directories of iostep lab run
    #[arg(value_name = "RESULT", required_unless_present = "take_back")]
    results: Vec<PathBuf>,

    /// The server
    #[arg(long, value_name = "URL")]
    to: String,

    /// This installation's key [default: iostep/key where settings are kept]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Take back a result that was brought from here, by its name
    #[arg(
        long,
        value_name = "ID",
        requires = "token",
        conflicts_with = "results"
    )]
    take_back: Option<String>,

    /// What the server said takes it back
    #[arg(long, value_name = "TOKEN", requires = "take_back")]
    token: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (texts, mut all_kept) = texts(&args.results)?;
    let client = client(&args.to, args.key.as_deref())?;
    if let (Some(id), Some(token)) = (&args.take_back, &args.token) {
        return take_back(&client, id, token, args.json);
    }
    let wait = |pause| {
        std::thread::sleep(pause);
        true
    };
    let mut kept = Vec::new();
    let mut end = Ok(());
    for (path, text) in &texts {
        match submit(&client, text, &wait) {
            Ok(accepted) => {
                if !args.json {
                    terminal::print(&lines(path, &accepted))?;
                }
                kept.push(json(path, &accepted));
            }
            Err(fault) if may_be_taken_later(&fault) => {
                end = Err(fault);
                break;
            }
            Err(fault) => {
                all_kept = false;
                say!("iostep: {}: {fault}", path.display());
            }
        }
    }
    if args.json {
        terminal::print_json(&terminal::json(&kept))?;
    }
    end?;
    Ok(ExitCode::from(u8::from(!all_kept)))
}

/// What is sent of each file.
type Texts = Vec<(PathBuf, Vec<u8>)>;

/// What is sent of the results that were named, by file, and of the labs among them; and whether that
/// is all of it: what a lab has and cannot be sent is said, and the rest is sent all the same.
///
/// Errors: a file that was named is no result; a lab has none.
fn texts(named: &[PathBuf]) -> anyhow::Result<(Texts, bool)> {
    let mut texts = Texts::new();
    let mut is_all = true;
    for path in named {
        if input::expect(path, &[Kind::Bench, Kind::Lab])? != Kind::Lab {
            texts.push((path.clone(), read(path)?));
            continue;
        }
        let own = results::bench_files(path)?;
        if own.is_empty() {
            let shown = path.display();
            return Err(bad_input(anyhow!(
                "{shown}: no cell of it has a result of iostep bench to send: a cell of iostep bench \
                 alone has, but for one that an earlier iostep measured; docs/lab.md says more"
            )));
        }
        for path in own {
            match read(&path) {
                Ok(text) => texts.push((path, text)),
                Err(error) => {
                    is_all = false;
                    say!("iostep: {}", describe(&error));
                }
            }
        }
    }
    Ok((texts, is_all))
}

/// Sends a result. Where the server says that it is too often, `wait` waits and says whether to go on.
fn submit(
    client: &Client,
    text: &[u8],
    wait: &dyn Fn(Duration) -> bool,
) -> Result<Accepted, Fault> {
    let mut pause = Duration::from_secs(1);
    loop {
        let answer = client.submit(text);
        let is_too_often =
            matches!(answer, Err(Fault::Refused { status, .. }) if status == TOO_OFTEN);
        if !is_too_often || pause > LONGEST_PAUSE || !wait(pause) {
            return answer;
        }
        pause *= 2;
    }
}

/// True where it is not the result that is refused, so that the next one would not be taken either.
fn may_be_taken_later(fault: &Fault) -> bool {
    match fault {
        Fault::Usage(_) => false,
        Fault::Unreachable { .. } => true,
        Fault::Refused { status, .. } => [TOO_OFTEN, UNAVAILABLE].contains(status),
    }
}

/// Errors: those of the key; of bad usage, if the URL is none that can be sent to.
fn client(url: &str, key: Option<&Path>) -> anyhow::Result<Client> {
    let path = match key {
        Some(path) => path.to_owned(),
        None => default_key()?,
    };
    Client::new(url, client::key(&path)?).map_err(bad_input)
}

/// A server that a result goes to as soon as it is measured.
pub struct Destination {
    url: String,
    client: Client,
}

impl Destination {
    /// Errors: those of a command line with this URL, before anything is measured.
    pub fn new(url: &str) -> anyhow::Result<Destination> {
        Ok(Destination {
            url: url.to_owned(),
            client: client(url, None)?,
        })
    }

    /// Sends the text of a result, and says on standard error what became of it.
    ///
    /// Errors: the server is away or refuses it; the result's file, if it is one, is as it was.
    pub fn send(&self, file: &Path, result: &[u8]) -> anyhow::Result<()> {
        let hint = || {
            let name = file.display();
            match file.is_file() {
                true => format!(
                    "{name}: not sent; iostep submit {} --to {} sends it later",
                    shown(&file.to_string_lossy()),
                    shown(&self.url)
                ),
                false => format!("not sent, and {name} keeps nothing that could be sent later"),
            }
        };
        let text = to_send(file, result)?;
        let accepted = self.client.submit(&text).with_context(hint)?;
        tell(file, &accepted);
        Ok(())
    }

    /// The server, as the user named it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends one of many results, and says on standard error what became of it. Where the server
    /// says that it is too often, `wait` waits and says whether to go on. The inner error is why
    /// this one is not taken.
    ///
    /// Errors: the server is away, or takes none now.
    pub fn bring(
        &self,
        file: &Path,
        wait: &dyn Fn(Duration) -> bool,
    ) -> anyhow::Result<Result<(), String>> {
        let text = match read(file) {
            Ok(text) => text,
            Err(error) => return Ok(Err(describe(&error))),
        };
        match submit(&self.client, &text, wait) {
            Ok(accepted) => tell(file, &accepted),
            Err(fault) if may_be_taken_later(&fault) => return Err(fault.into()),
            Err(fault) => return Ok(Err(format!("{}: {fault}", file.display()))),
        }
        Ok(Ok(()))
    }

    /// Says of a result that was not whole that no server is to have it.
    pub fn refuse(&self, file: &Path) {
        let (file, url) = (file.display(), printable(&self.url));
        say!("iostep: {file}: it is not complete, so it was not sent to {url}");
    }
}

fn take_back(client: &Client, id: &str, token: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    client.remove(id, token)?;
    match as_json {
        true => terminal::print_json(&serde_json::json!({ "taken_back": id }).to_string())?,
        false => terminal::print(&format!("{} is taken back\n", printable(id)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What of a result is sent: no paths, nor anything else that a server would not keep.
///
/// Errors, of bad usage: it is none, or too long for a server.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    input::expect(path, &[Kind::Bench])?;
    let shown = path.display();
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| format!("{shown}: cannot open"))?;
    file.take(MOST_READ_BYTES)
        .read_to_end(&mut text)
        .with_context(|| format!("{shown}: cannot read"))?;
    to_send(path, &text)
}

fn to_send(path: &Path, result: &[u8]) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let text =
        upload::to_send(result).map_err(|refusal| bad_input(anyhow!("{shown}: {refusal}")))?;
    if text.len() > MOST_BYTES {
        return Err(bad_input(anyhow!(
            "{shown}: more than {MOST_BYTES} bytes, which no server takes; measure fewer runs"
        )));
    }
    Ok(text)
}

/// `$XDG_CONFIG_HOME/iostep/key`, or the same below `~/.config`.
///
/// Errors, of bad usage: neither is known.
fn default_key() -> anyhow::Result<PathBuf> {
    let place = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let settings = place("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(place("HOME")?).join(".config")));
    let settings = settings
        .ok_or_else(|| bad_input(anyhow!("no HOME to keep a key in; name a file with --key")))?;
    Ok(settings.join("iostep/key"))
}

/// Says it on standard error.
fn tell(path: &Path, accepted: &Accepted) {
    for line in lines(path, accepted).lines() {
        say!("{line}");
    }
}

fn lines(path: &Path, accepted: &Accepted) -> String {
    let what = match accepted.created {
        true => "kept",
        false => "was there already",
    };
    let mut lines = vec![format!(
        "{}: {what} as {}, {}",
        path.display(),
        accepted.id,
        accepted.state
    )];
    lines.extend(
        accepted
            .reasons
            .iter()
            .map(|reason| format!("  not ranked: {}", reason.text)),
    );
    if let Some(token) = &accepted.delete_token {
        lines.push(format!("  token that takes it back: {token}"));
    }
    let shown = lines.iter().map(|line| printable(line));
    shown.map(|line| line.into_owned() + "\n").collect()
}

fn json(path: &Path, accepted: &Accepted) -> serde_json::Value {
    serde_json::json!({
        "file": path.display().to_string(),
        "id": accepted.id,
        "created": accepted.created,
        "state": accepted.state,
        "reasons": accepted.reasons,
        "test": accepted.test,
        "delete_token": accepted.delete_token,
    })
}

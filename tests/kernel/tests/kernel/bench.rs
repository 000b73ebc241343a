//! `iostep bench` beside what the kernel, the filesystem, strace and sqlite3 say about the same
//! run.

mod content;
mod counted;
mod database;
mod failing;
mod figures;
mod interrupted;
mod others;
mod results;
mod shown;
mod system_calls;
mod trespass;
mod verify;
mod waldio;

use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep::{self, Outcome, Running};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount};
use iostep_model::bench::{Document, Latency, Run, Step};
use rustix::process::{Pid, Signal};

use crate::bad_input::TempMount;
use crate::case::Case;

pub use self::database::sqlite3;

/// Every test of `iostep bench`.
pub fn cases() -> Vec<Case> {
    let mut all = content::cases();
    all.extend(counted::cases());
    all.extend(database::cases());
    all.extend(failing::cases());
    all.extend(figures::cases());
    all.extend(interrupted::cases());
    all.extend(others::cases());
    all.extend(results::cases());
    all.extend(shown::cases());
    all.extend(system_calls::cases());
    all.extend(trespass::cases());
    all.extend(verify::cases());
    all.extend(waldio::cases());
    all.into_iter().map(|case| case.about("bench")).collect()
}

/// What a test in a tmpfs of its own needs.
const TMPFS: &[Requirement] = &[Requirement::Root, Requirement::Filesystem("tmpfs")];

/// What a test on a bare loop device needs.
const DEVICE: &[Requirement] = &[Requirement::Root, Requirement::Loop];

/// What a test with a [`Fixture`] needs, with programs of its own.
fn ground_needs(kind: Kind, programs: &[&'static str]) -> Vec<Requirement> {
    let mut all = [DEVICE, &[Requirement::Filesystem(kind.name())]].concat();
    all.push(Requirement::Program(iostep_lab::tool(kind).program));
    all.extend(programs.iter().map(|p| Requirement::Program(p)));
    all
}

/// A loop device whose image is in memory.
pub struct Disk {
    // Before its memory: fields are dropped in order.
    pub image: LoopImage,
    memory: TempMount,
}

impl Disk {
    /// One of `bytes`, in as much memory as `memory` says, in tmpfs's words.
    pub fn new(bytes: u64, memory: &str) -> anyhow::Result<Disk> {
        let memory = TempMount::new("tmpfs", &format!("size={memory}"))?;
        let image = LoopImage::create(&Options {
            bytes,
            directory: Some(memory.path().to_owned()),
            ..Options::default()
        })?;
        Ok(Disk { image, memory })
    }

    /// Cuts the image to `bytes`: what lies behind cannot be read any more.
    pub fn cut(&self, bytes: u64) -> anyhow::Result<()> {
        // The image has no name, but this process has it open.
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let link = entry?.path();
            let is_it =
                std::fs::read_link(&link).is_ok_and(|to| to.starts_with(self.memory.path()));
            if is_it {
                std::fs::File::options()
                    .write(true)
                    .open(link)?
                    .set_len(bytes)?;
                return Ok(());
            }
        }
        anyhow::bail!("the image is not open")
    }

    fn path(&self) -> &Path {
        self.image.device()
    }
}

/// A filesystem on such a device.
struct Fixture {
    mount: Mount,
    disk: Disk,
}

impl Fixture {
    fn new(kind: Kind) -> anyhow::Result<Fixture> {
        Fixture::with(
            kind,
            iostep_lab::tool(kind).smallest_bytes.max(64 << 20),
            "",
        )
    }

    fn with(kind: Kind, bytes: u64, options: &str) -> anyhow::Result<Fixture> {
        let disk = Disk::new(bytes, "100%")?;
        iostep_lab::mkfs(kind, &disk.image, iostep_lab::tool(kind).at_once)?;
        let mount = Mount::new(kind, &disk.image, options)?;
        Ok(Fixture { mount, disk })
    }

    fn root(&self) -> &Path {
        self.mount.path()
    }
}

/// The command line of `iostep bench WORKLOAD TARGET FLAGS`, one word per flag.
fn words(workload: &str, target: &Path, flags: &str) -> Vec<PathBuf> {
    let mut words = ["bench", workload].map(PathBuf::from).to_vec();
    words.push(target.to_owned());
    words.extend(flags.split_whitespace().map(PathBuf::from));
    words
}

/// Runs `iostep bench`, whatever comes of it.
fn attempt(workload: &str, target: &Path, flags: &str) -> anyhow::Result<Outcome> {
    iostep::run(words(workload, target, flags))
}

/// Starts `iostep bench --json`, and returns when its threads are at work.
fn start(workload: &str, target: &Path, flags: &str) -> anyhow::Result<Running> {
    let mut words = words(workload, target, flags);
    words.push("--json".into());
    let running = Running::start(words)?;
    let is_at_work = || has_thread(running.pid(), "load-0");
    if let Err(error) = wait_for(&running, "the threads", is_at_work) {
        running.signal(Signal::KILL)?;
        return Err(error.context(running.finish()?.stderr));
    }
    Ok(running)
}

/// Waits for something that happens while the command runs.
pub fn wait_for(
    running: &Running,
    what: &str,
    mut ready: impl FnMut() -> bool,
) -> anyhow::Result<()> {
    let mut ended = false;
    crate::faults::wait_until(what, || {
        // In this order: it may be ready and end in between.
        let over = has_ended(running.pid());
        ready() || {
            ended = over;
            over
        }
    })?;
    anyhow::ensure!(!ended, "it ended before {what}");
    Ok(())
}

fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    // The state follows the name, which is in parentheses.
    stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|s| s.starts_with(" Z")))
}

fn threads_named(pid: Pid, name: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().filter_map(Result::ok);
    let has_name = |thread: &std::fs::DirEntry| {
        let comm = std::fs::read_to_string(thread.path().join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == name)
    };
    let named = threads.filter(has_name);
    named
        .filter_map(|t| t.file_name().into_string().ok())
        .collect()
}

fn has_thread(pid: Pid, name: &str) -> bool {
    !threads_named(pid, name).is_empty()
}

/// Runs `iostep bench --json`, which must succeed.
fn measure(workload: &str, target: &Path, flags: &str) -> anyhow::Result<Document> {
    let outcome = attempt(workload, target, &format!("{flags} --json"))?;
    document(&outcome.success().with_context(|| flags.to_owned())?)
}

/// What `--json` printed.
fn document(outcome: &Outcome) -> anyhow::Result<Document> {
    Document::parse(Path::new("standard output"), outcome.stdout.as_bytes())
        .with_context(|| format!("stderr: {}", outcome.stderr))
}

fn only_run(document: &Document) -> anyhow::Result<&Run> {
    match document.runs.as_slice() {
        [run] => Ok(run),
        other => anyhow::bail!("{} runs", other.len()),
    }
}

/// A run without its histograms, for messages.
fn brief(run: &Run) -> String {
    format!(
        "{:?}, {} operations, {} bytes, {:?}, {:?}",
        run.state, run.operations, run.bytes, run.device, run.failures
    )
}

/// How often a step was timed.
fn count(run: &Run, step: Step) -> u64 {
    let found = run.latencies.iter().find(|latency| latency.step == step);
    found.map_or(0, |Latency { histogram, .. }| histogram.count())
}

/// Everything below the directory that bench works in, sorted; none if there is no such.
fn work_files(target: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(target.join("iostep-bench"));
    let entries = entries.into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Fails if anything of bench is left in a directory.
fn ensure_removed(target: &Path) -> anyhow::Result<()> {
    let own = target.join("iostep-bench");
    let left = work_files(target);
    anyhow::ensure!(!own.exists(), "{} is left with {left:?}", own.display());
    Ok(())
}

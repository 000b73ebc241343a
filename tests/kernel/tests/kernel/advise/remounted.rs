//! What `--remount` sets is taken back, whoever dies.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep::binary;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Kind, Mount};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::{advice, attempt, ext4, needs, number, row, words};
use crate::case::Case;
use crate::faults::wait_until;
use crate::stage::Stage;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut tuned = needs();
    tuned.push(Requirement::Program("tune2fs"));
    vec![
        Case::new(
            "a remount without barriers flushes nothing and is taken back",
            needs(),
            remount,
        ),
        Case::new(
            "a mount without barriers stays one and is offered none",
            needs(),
            without_barriers,
        ),
        Case::new(
            "what tune2fs set is in force, and stays so",
            tuned,
            filesystems_own,
        ),
        Case::new(
            "a mount option is taken back after SIGKILL at any moment",
            needs(),
            killed,
        ),
        Case::new(
            "a mount option is taken back after Ctrl-C",
            needs(),
            interrupted,
        ),
        Case::new(
            "a mount option is taken back if what does that is killed",
            needs(),
            guard_killed,
        ),
        Case::new(
            "a mount option is taken back if that is killed at any moment",
            needs(),
            guard_killed_at_any_moment,
        ),
        Case::new(
            "an option is taken back below what was mounted over it",
            needs(),
            mounted_over,
        ),
    ]
}

/// Runs of some hundred milliseconds with the option, and others without it.
const FLAGS: &str =
    "--rounds 2 --time 1 --candidates mount-barrier=0 --remount --journal wal --json";

/// The line of mountinfo of what is mounted there with a block device.
pub fn line(point: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    let point = point.to_string_lossy();
    let of_point = |line: &&str| line.split(' ').nth(4) == Some(&point) && line.contains(" /dev/");
    Ok(text.lines().find(of_point).context("not mounted")?.into())
}

pub fn ensure_line(point: &Path, before: &str) -> anyhow::Result<()> {
    let now = line(point)?;
    anyhow::ensure!(now == before, "{before} became {now}");
    Ok(())
}

fn remount() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    let found = advice(
        stage.root(),
        "--candidates mount-barrier=0 --remount --journal wal",
    )?;
    ensure_line(stage.root(), &before)?;
    let flushes = number(row(&found, "mount-barrier=0")?, "flushes")?;
    let present = number(row(&found, "present")?, "flushes")?;
    println!("    {flushes} flushes a commit, with barriers {present}");
    anyhow::ensure!(flushes < 0.1 && present > 0.9);
    let loss = &row(&found, "mount-barrier=0")?["durability"]["power_loss"];
    anyhow::ensure!(
        loss == "filesystem" && found["recommended"].is_null(),
        "{loss}"
    );
    Ok(())
}

/// Without barriers and with discards: only the discards can be left out.
fn only_discards_are_offered(point: &Path) -> anyhow::Result<()> {
    let before = line(point)?;
    let barriers = "--candidates mount-barrier=0 --remount";
    attempt(point, barriers)?.refused(&[2], "mount-barrier=0: no candidate here")?;
    let found = advice(
        point,
        "--candidates mount-nodiscard --remount --journal wal",
    )?;
    let row = row(&found, "mount-nodiscard")?;
    anyhow::ensure!(row["state"]["kind"] == "measured", "{row}");
    anyhow::ensure!(row["setting"]["mount"]["undo"] == "discard", "{row}");
    anyhow::ensure!(number(row, "flushes")? < 0.1, "{row}");
    ensure_line(point, &before)
}

fn without_barriers() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "nobarrier,discard")?;
    only_discards_are_offered(stage.root())
}

fn filesystems_own() -> anyhow::Result<()> {
    let image = LoopImage::create(&Options {
        bytes: 512 << 20,
        ..Options::default()
    })?;
    iostep_lab::mkfs(Kind::Ext4, &image, iostep_lab::tool(Kind::Ext4).at_once)?;
    let tuned = Command::new("tune2fs")
        .args(["-o", "nobarrier,discard"])
        .arg(image.device())
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(tuned.success(), "tune2fs: {tuned}");
    let mount = Mount::new(Kind::Ext4, &image, "")?;
    let shown = line(mount.path())?;
    anyhow::ensure!(!shown.contains("barrier"), "mountinfo tells it: {shown}");
    only_discards_are_offered(mount.path())
}

/// A run in a process group of its own, which is ended with this value.
pub struct Group(Child);

impl Group {
    fn start(target: &Path) -> anyhow::Result<Group> {
        Group::start_with(words(target, FLAGS))
    }

    pub fn start_with(words: Vec<PathBuf>) -> anyhow::Result<Group> {
        let child = Command::new(binary()?)
            .args(words)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Group(child))
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        Ok(kill_process_group(Pid::from_child(&self.0), signal)?)
    }

    /// How many processes it has started that have not been waited for.
    fn children(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0.id()));
        let of_tasks = tasks.into_iter().flatten().flatten().map(|task| {
            let children = std::fs::read_to_string(task.path().join("children"));
            children.unwrap_or_default().split_whitespace().count()
        });
        of_tasks.sum()
    }

    /// The exit status; nothing after a signal.
    pub fn finish(&mut self) -> anyhow::Result<Option<i32>> {
        wait_until("its end", || !matches!(self.0.try_wait(), Ok(None)))?;
        Ok(self.0.wait()?.code())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing happens to one that has ended and was waited for.
        if let Ok(None) = self.0.try_wait() {
            let _ = self.signal(Signal::KILL);
            let _ = self.0.wait();
        }
    }
}

fn until_set(point: &Path, before: &str) -> anyhow::Result<()> {
    wait_until("the option", || {
        line(point).is_ok_and(|now| now != before && now.contains("nobarrier"))
    })
}

pub fn ensure_back(point: &Path, before: &str) -> anyhow::Result<()> {
    wait_until("the option to be taken back", || {
        line(point).is_ok_and(|now| now == before)
    })?;
    wait_until("the end of what does that", || guards(point).is_empty())
}

/// Processes that take options of a mount back.
fn guards(point: &Path) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_guard = |path: &PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&&b"__mount-guard"[..]) && words.contains(&point.as_os_str().as_bytes())
    };
    let paths = all.map(|entry| entry.path()).filter(is_guard);
    let pids = paths.filter_map(|path| path.file_name()?.to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).collect()
}

fn killed() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    for round in 0..24u64 {
        let mut running = Group::start(stage.root())?;
        match round % 2 {
            0 => until_set(stage.root(), &before)?,
            // Also before it, at it, and when it is taken back.
            _ => std::thread::sleep(Duration::from_millis(round * 60)),
        }
        std::thread::sleep(Duration::from_millis(round * 7 % 40));
        running.signal(Signal::KILL)?;
        running.finish()?;
        ensure_back(stage.root(), &before)?;
    }
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut running = Group::start(stage.root())?;
        until_set(stage.root(), &before)?;
        running.signal(signal)?;
        anyhow::ensure!(running.finish()? == Some(1));
        // Not a moment later: whoever looks at the exit status may mount it elsewhere.
        ensure_line(stage.root(), &before)?;
        ensure_back(stage.root(), &before)?;
    }
    Ok(())
}

fn guard_killed() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    let mut running = Group::start(stage.root())?;
    // Beside the guard, what is measured: the option is set, and whoever waited for it knows.
    wait_until("a run with the option", || running.children() == 2)?;
    let found = guards(stage.root());
    anyhow::ensure!(found.len() == 1, "{found:?}");
    kill_process(found[0], Signal::KILL)?;
    let ended = running.finish()?;
    anyhow::ensure!(ended == Some(0), "exit status {ended:?}");
    ensure_line(stage.root(), &before)
}

/// Before it says that the option is set, the candidate has no figures; later it does not matter.
fn guard_killed_at_any_moment() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    let mut statuses = Vec::new();
    for round in 0..8u64 {
        let mut running = Group::start(stage.root())?;
        let mut guard = None;
        wait_until("a guard", || {
            guard = guards(stage.root()).first().copied();
            guard.is_some()
        })?;
        std::thread::sleep(Duration::from_millis(round * 3));
        kill_process(guard.context("no guard")?, Signal::KILL)?;
        let ended = running.finish()?;
        anyhow::ensure!(matches!(ended, Some(0 | 1)), "exit status {ended:?}");
        statuses.extend(ended);
        ensure_line(stage.root(), &before)?;
    }
    println!("    exit statuses {statuses:?}");
    Ok(())
}

/// Memory that hides what is mounted at a directory, gone with this value.
struct Over<'a>(&'a Path);

impl Over<'_> {
    fn new(point: &Path) -> anyhow::Result<Over<'_>> {
        rustix::mount::mount("none", point, "tmpfs", MountFlags::empty(), c"size=1m")?;
        Ok(Over(point))
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, UnmountFlags::DETACH);
    }
}

fn mounted_over() -> anyhow::Result<()> {
    let stage = ext4()?;
    let before = line(stage.root())?;
    let mut running = Group::start(stage.root())?;
    until_set(stage.root(), &before)?;
    let _over = Over::new(stage.root())?;
    running.signal(Signal::KILL)?;
    running.finish()?;
    ensure_back(stage.root(), &before)
}

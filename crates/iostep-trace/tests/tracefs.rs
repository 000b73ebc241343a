//! The tracefs backend on a real kernel. Needs root; without it every test is reported as
//! ignored, with the reason, or fails if `IOSTEP_REQUIRE` asks for it.
//!
//! Ground truth: the device's counters, debugfs(8), the tracefs of the machine itself.

#[path = "../../../tests/kernel/src/demand.rs"]
mod demand;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use iostep_lab::image::Options;
use iostep_lab::{Kind, LoopImage, Mount, enter_private_mounts, mkfs};
use iostep_model::SyncKind;
use iostep_model::event::Event;
use iostep_trace::counters;
use iostep_trace::target::Target;
use iostep_trace::tracefs::{DEFAULT_BUFFER_BYTES, Tracefs};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Makes this binary record the device named here until it is killed, instead of running tests.
const HOLD: &str = "IOSTEP_TRACEFS_TEST_HOLD";
/// Makes this binary record it once, where no tracefs is mounted.
const UNMOUNTED: &str = "IOSTEP_TRACEFS_TEST_UNMOUNTED";
const INSTANCES: &str = "/sys/kernel/tracing/instances";
const PAGE: usize = 4096;

fn main() -> ExitCode {
    if let Ok(device) = std::env::var(HOLD) {
        return finish(hold(Path::new(&device)));
    }
    if let Ok(device) = std::env::var(UNMOUNTED) {
        return finish(record_unmounted(Path::new(&device)));
    }
    if let Err(failed) = see_tracefs() {
        return finish(Err(failed));
    }
    let tests = vec![
        trial("the_sums_are_those_of_the_device", sums),
        trial("a_stop_a_drop_and_a_panic_leave_nothing", leaves_nothing),
        trial(
            "whoever_has_its_files_for_a_moment_keeps_nothing",
            looked_into,
        ),
        trial("the_next_start_clears_up_after_a_kill", killed),
        trial("a_full_buffer_counts_what_it_refuses", losses),
        trial("the_trace_of_the_machine_is_left_alone", left_alone),
        trial("a_file_that_lives_for_a_moment_has_its_name", momentary),
        trial("a_renamed_file_is_told_of_under_its_new_name", renamed),
        trial("blocks_from_before_the_trace_are_known", old_blocks),
        trial("every_sync_call_is_told_of_with_its_kind", kinds),
        trial("two_recordings_keep_to_their_own_device", two_at_once),
        trial("a_recording_does_not_keep_the_filesystem_mounted", unmounts),
        trial("tracefs_need_not_be_mounted", unmounted),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

type Outcome<T = ()> = Result<T, Failed>;

/// The tests look at what the recorder leaves in tracefs. Not every machine has it mounted: then
/// it is mounted for these tests alone. Before any thread is started.
fn see_tracefs() -> Outcome {
    if Path::new(INSTANCES).exists() || !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    enter_private_mounts()?;
    let point = "/sys/kernel/tracing";
    let flags = rustix::mount::MountFlags::empty();
    Ok(rustix::mount::mount(
        "tracefs", point, "tracefs", flags, None,
    )?)
}

fn trial(name: &str, test: fn() -> Outcome) -> Trial {
    Trial::ignorable_test(name, move || {
        if rustix::process::geteuid().is_root() {
            return test().map(|()| Completion::Completed);
        }
        demand::skip(&["root"], "needs root")
    })
}

fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            eprintln!("{}", failed.message().unwrap_or("failed"));
            ExitCode::FAILURE
        }
    }
}

fn check(fact: bool, otherwise: impl ToString) -> Outcome {
    fact.then_some(())
        .ok_or_else(|| otherwise.to_string().into())
}

/// A mounted ext4 on a loop device.
struct Stage {
    mount: Mount,
    image: LoopImage,
}

impl Stage {
    fn new() -> Outcome<Stage> {
        let options = Options {
            bytes: 64 << 20,
            ..Options::default()
        };
        let image = LoopImage::create(&options)?;
        mkfs(
            Kind::Ext4,
            &image,
            &[iostep_lab::tool(Kind::Ext4).at_once, &["-b", "4096"]].concat(),
        )?;
        let mount = Mount::new(Kind::Ext4, &image, "")?;
        // What mounting left to write must not come during a recording.
        rustix::fs::syncfs(File::open(mount.path())?)?;
        Ok(Stage { mount, image })
    }

    fn record(&self) -> Outcome<Tracefs> {
        let target = Target::resolve(self.image.device())?;
        Ok(Tracefs::start(&target, DEFAULT_BUFFER_BYTES)?)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.mount.path().join(name)
    }

    /// Writes pages to a file and syncs it.
    fn write(&self, name: &str, pages: usize) -> Outcome {
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path(name))?;
        file.write_all_at(&vec![0x5a; pages * PAGE], 0)?;
        Ok(file.sync_all()?)
    }

    /// What `debugfs` says of the filesystem.
    fn debugfs(&self, request: &str) -> Outcome<String> {
        let device = self.image.device();
        let output = Command::new("debugfs")
            .args(["-R", request])
            .arg(device)
            .output()?;
        Ok(String::from_utf8(output.stdout)?)
    }
}

/// Stops a recording and returns the events of all of it.
fn stop(recording: Tracefs) -> Outcome<Vec<Event>> {
    let mut events = Vec::new();
    let lost = recording.stop(&mut |event| events.push(event))?;
    check(lost == 0, format!("{lost} events lost"))?;
    Ok(events)
}

fn instances_of(pid: u32) -> Vec<String> {
    let prefix = format!("iostep-{pid}-");
    let entries = fs::read_dir(INSTANCES).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

fn paths_of(events: &[Event], inode: u64) -> Vec<Option<String>> {
    let paths = events.iter().filter_map(|event| match event {
        Event::File(file) if file.file.inode == inode => Some(file.path.clone()),
        _ => None,
    });
    paths.collect()
}

fn sums() -> Outcome {
    let stage = Stage::new()?;
    let target = Target::resolve(stage.image.device())?;
    let mut recording = stage.record()?;
    let before = counters::read([&target])?;
    for file in 0..20 {
        stage.write(&format!("file{file}"), 1 + file * 7)?;
    }
    rustix::fs::syncfs(File::open(stage.mount.path())?)?;
    let mut bytes = (0, 0);
    let sums = recording.sums(&mut |event| match event {
        Event::Queue(queue) => bytes.0 += u64::from(queue.bytes),
        Event::Complete(completion) => bytes.1 += u64::from(completion.transfer.bytes),
        _ => {}
    })?;
    let after = counters::read([&target])?;
    stop(recording)?;
    let written = after.write.bytes - before.write.bytes;
    check(written > 20 * PAGE as u64, "the device counted nothing")?;
    check(
        sums.completed.write.bytes == written,
        format!("{sums:?}, {written} bytes"),
    )?;
    check(sums.queued.write.bytes == written, format!("{sums:?}"))?;
    check(sums.issued.write.bytes == written, format!("{sums:?}"))?;
    let ios = after.write.ios - before.write.ios;
    check(
        sums.completed.write.ios == ios,
        format!("{sums:?}, {ios} writes"),
    )?;
    let flushes = after.flush.ios - before.flush.ios;
    check(
        sums.completed.flush.ios == flushes,
        format!("{sums:?}, {flushes} flushes"),
    )?;
    let (queued, issued) = (sums.queued, sums.issued);
    check(
        queued.write.ios + sums.splits == issued.write.ios + sums.merges + empty_flushes(&sums),
        format!("{sums:?}"),
    )?;
    check(
        bytes.0 == bytes.1 && bytes.0 >= written,
        format!("{bytes:?}"),
    )
}

/// Bios without data become flushes: they complete as writes, but are never issued as such.
fn empty_flushes(sums: &iostep_trace::sums::Sums) -> u64 {
    sums.completed.write.ios - sums.issued.write.ios
}

fn leaves_nothing() -> Outcome {
    let stage = Stage::new()?;
    let pid = std::process::id();
    let mine = |before: &[String]| {
        let now = instances_of(pid);
        now.into_iter()
            .filter(|name| !before.contains(name))
            .collect::<Vec<_>>()
    };
    // Other tests of this binary record at the same time, each in an instance of its own.
    let recording = stage.record()?;
    let path = instance_of(&recording)?;
    check(path.is_dir(), "there is no instance")?;
    recording.stop(&mut |_| ())?;
    check(!path.exists(), "still there after a stop")?;
    let before = instances_of(pid);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _recording = stage.record();
        // As a panic, but without its message in the test's output.
        std::panic::resume_unwind(Box::new("on purpose"));
    }));
    check(panicked.is_err(), "it did not panic")?;
    drop(stage.record()?);
    let left = mine(&before);
    let settled = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        left.iter()
            .all(|name| !Path::new(INSTANCES).join(name).exists())
    });
    check(settled, format!("left behind: {left:?}"))
}

fn instance_of(recording: &Tracefs) -> Outcome<PathBuf> {
    let name = format!("{recording:?}");
    let name = name.split('"').find(|part| part.contains("/iostep-"));
    Ok(PathBuf::from(
        name.ok_or("the recording does not show its instance")?,
    ))
}

/// As a child of the host has them between its fork and its exec.
fn looked_into() -> Outcome {
    let recording = Stage::new()?.record()?;
    let path = instance_of(&recording)?;
    let file = File::open(path.join("tracing_on"))?;
    let look = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        drop(file);
    });
    drop(recording);
    check(!path.exists(), "still there after a drop")?;
    look.join().map_err(|_| "the look failed".into())
}

/// A recorder in a process of its own, ready to be killed.
struct Held(Child);

impl Held {
    fn kill(&mut self) -> Outcome {
        self.0.kill()?;
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for Held {
    /// A test that fails leaves no recorder behind. It may be dead already.
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn held(stage: &Stage) -> Outcome<Held> {
    let child = Command::new(std::env::current_exe()?)
        .env(HOLD, stage.image.device())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut held = Held(child);
    let stdout = held.0.stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    check(
        line.trim() == "recording",
        format!("the recorder said {line:?}"),
    )?;
    Ok(held)
}

fn hold(device: &Path) -> Outcome {
    let target = Target::resolve(device)?;
    let _recording = Tracefs::start(&target, 1 << 20)?;
    println!("recording");
    std::io::stdout().flush()?;
    loop {
        std::thread::park();
    }
}

fn killed() -> Outcome {
    let stage = Stage::new()?;
    let mut child = held(&stage)?;
    let alive = stage.record()?;
    let pid = child.0.id();
    let in_use = instances_of(pid);
    check(
        in_use.len() == 1,
        "an instance in use was removed, or there is none",
    )?;
    child.kill()?;
    check(instances_of(pid) == in_use, "the kill removed it")?;
    stage.record()?.stop(&mut |_| ())?;
    check(instances_of(pid).is_empty(), "the next start left it")?;
    stop(alive).map(drop)
}

fn losses() -> Outcome {
    let stage = Stage::new()?;
    let target = Target::resolve(stage.image.device())?;
    let recording = Tracefs::start(&target, 0)?;
    let file = File::create(stage.path("file"))?;
    for page in 0..3000 {
        file.write_all_at(&[page as u8; PAGE], page * PAGE as u64)?;
        if page % 3 == 0 {
            file.sync_data()?;
        }
    }
    let lost_before = recording.lost()?;
    let mut seen = 0;
    let lost = recording.stop(&mut |_| seen += 1)?;
    check(seen > 0, "nothing was recorded")?;
    check(
        lost >= lost_before && lost > 1000,
        format!("{lost} lost, {seen} seen"),
    )
}

fn left_alone() -> Outcome {
    let stage = Stage::new()?;
    let root = Path::new(INSTANCES).parent().ok_or("no tracefs")?;
    let files = [
        "tracing_on",
        "trace_clock",
        "buffer_size_kb",
        "set_event",
        "current_tracer",
    ];
    let look = || -> Outcome<Vec<String>> {
        let texts = files.iter().map(|file| fs::read_to_string(root.join(file)));
        Ok(texts.collect::<Result<_, _>>()?)
    };
    let before = look()?;
    let recording = stage.record()?;
    stage.write("file", 4)?;
    let during = look()?;
    stop(recording)?;
    check(
        before == during && before == look()?,
        "the machine's own trace was changed",
    )
}

fn momentary() -> Outcome {
    let stage = Stage::new()?;
    fs::create_dir(stage.path("dir"))?;
    let recording = stage.record()?;
    let mut inodes = BTreeSet::new();
    for _ in 0..5 {
        stage.write("dir/app.db-journal", 2)?;
        inodes.insert(fs::metadata(stage.path("dir/app.db-journal"))?.ino());
        fs::remove_file(stage.path("dir/app.db-journal"))?;
    }
    let events = stop(recording)?;
    check(
        inodes.len() == 1,
        "ext4 did not reuse the inode; the test shows nothing",
    )?;
    let inode = *inodes.first().ok_or("no inode")?;
    let paths = paths_of(&events, inode);
    let right = Some("/dir/app.db-journal".to_owned());
    check(
        paths.len() == 5 && paths.iter().all(|path| *path == right),
        format!("{paths:?}"),
    )?;
    let deleted: BTreeSet<u32> = events
        .iter()
        .filter_map(|event| match event {
            Event::FileDeleted { file, .. } if file.inode == inode => Some(file.generation),
            _ => None,
        })
        .collect();
    check(
        deleted.len() == 5,
        format!("{} generations went away", deleted.len()),
    )
}

fn renamed() -> Outcome {
    let stage = Stage::new()?;
    stage.write("before", 1)?;
    let inode = fs::metadata(stage.path("before"))?.ino();
    let recording = stage.record()?;
    stage.write("before", 2)?;
    fs::rename(stage.path("before"), stage.path("after"))?;
    let paths = paths_of(&stop(recording)?, inode);
    check(
        paths.last() == Some(&Some("/after".to_owned())),
        format!("{paths:?}"),
    )
}

fn old_blocks() -> Outcome {
    let stage = Stage::new()?;
    // Three pieces: debugfs would list the block of an extent tree among the file's.
    for _ in 0..3 {
        // Two files that grow in turn lie in pieces.
        for name in ["old", "other"] {
            let mut options = OpenOptions::new();
            let mut file = options.create(true).append(true).open(stage.path(name))?;
            file.write_all(&[1; 3 * PAGE])?;
            file.sync_all()?;
        }
    }
    let truth = stage.debugfs("blocks /old")?;
    let truth: Vec<u64> = truth
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    check(truth.len() == 9, format!("debugfs says {truth:?}"))?;
    let inode = fs::metadata(stage.path("old"))?.ino();
    let recording = stage.record()?;
    stage.write("old", 9)?;
    let mut told = vec![0; truth.len()];
    for event in stop(recording)? {
        if let Event::Extent(extent) = event
            && extent.inode == inode
        {
            for at in 0..u64::from(extent.fs_blocks) {
                told[(extent.file_block + at) as usize] = extent.fs_block + at;
            }
        }
    }
    check(
        told == truth,
        format!("told {told:?}, debugfs says {truth:?}"),
    )
}

fn kinds() -> Outcome {
    let stage = Stage::new()?;
    let recording = stage.record()?;
    let file = File::create(stage.path("file"))?;
    file.write_all_at(&[1; PAGE], 0)?;
    file.sync_all()?;
    file.write_all_at(&[2; PAGE], 0)?;
    file.sync_data()?;
    let mut options = OpenOptions::new();
    options.write(true);
    for flag in [libc::O_SYNC, libc::O_DSYNC] {
        let file = std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flag)
            .open(stage.path("file"))?;
        file.write_all_at(&[3; PAGE], 0)?;
    }
    rustix::fs::syncfs(&file)?;
    let events = stop(recording)?;
    let told: Vec<SyncKind> = events
        .iter()
        .filter_map(|event| match event {
            Event::SyncEnter(enter) if enter.tgid == std::process::id() => Some(enter.kind),
            _ => None,
        })
        .collect();
    let exits = events.iter().filter(|e| {
        matches!(
            e,
            Event::SyncExit {
                result: Some(0),
                ..
            }
        )
    });
    use SyncKind::{Fdatasync, Fsync, ODsync, OSync, Syncfs};
    check(
        told == [Fsync, Fdatasync, OSync, ODsync, Syncfs],
        format!("{told:?}"),
    )?;
    check(exits.count() == told.len(), "a sync call did not leave")
}

fn two_at_once() -> Outcome {
    let stages = [Stage::new()?, Stage::new()?];
    let recordings = [stages[0].record()?, stages[1].record()?];
    stages[0].write("only-here", 16)?;
    let [first, second] = recordings.map(stop);
    // ext4 reads its bitmaps ahead some seconds after the mount; nobody but the test writes.
    let written = |events: Vec<Event>| {
        let writes = events.iter().filter_map(|event| match event {
            Event::Queue(queue) if queue.operation.is_write() => Some(u64::from(queue.bytes)),
            _ => None,
        });
        writes.sum::<u64>()
    };
    let (first, second) = (written(first?), written(second?));
    check(
        first >= 16 * PAGE as u64,
        format!("the first saw {first} bytes"),
    )?;
    check(
        second == 0,
        format!("the second saw {second} bytes of the first"),
    )
}

fn unmounts() -> Outcome {
    let Stage { mount, image } = Stage::new()?;
    let mut recording = Tracefs::start(&Target::resolve(image.device())?, DEFAULT_BUFFER_BYTES)?;
    fs::write(mount.path().join("file"), b"content")?;
    recording.drain(&mut |_| ())?;
    mount.unmount()?;
    // What the unmount wrote is in the trace.
    let events = stop(recording)?;
    check(
        events.iter().any(|event| matches!(event, Event::Queue(_))),
        "no I/O was seen",
    )
}

fn unmounted() -> Outcome {
    let stage = Stage::new()?;
    let status = Command::new(std::env::current_exe()?)
        .env(UNMOUNTED, stage.image.device())
        .status()?;
    check(status.success(), status)
}

fn record_unmounted(device: &Path) -> Outcome {
    enter_private_mounts()?;
    for point in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        // One of them may not be there.
        let _ = rustix::mount::unmount(point, rustix::mount::UnmountFlags::DETACH);
    }
    check(!Path::new(INSTANCES).exists(), "tracefs is still mounted")?;
    let target = Target::resolve(device)?;
    let recording = Tracefs::start(&target, DEFAULT_BUFFER_BYTES)?;
    let mount = target.mount.ok_or("not mounted")?;
    let file = File::create(mount.point.join("file"))?;
    file.write_all_at(&[1; PAGE], 0)?;
    file.sync_all()?;
    let events = stop(recording)?;
    check(
        events.iter().any(|event| matches!(event, Event::Queue(_))),
        "no I/O was seen",
    )?;
    let left = std::env::temp_dir().join(format!("iostep-tracefs-{}", std::process::id()));
    check(!left.exists(), "the mount point was left")
}

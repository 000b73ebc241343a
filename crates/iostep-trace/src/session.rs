//! A recording: the backend in a thread of its own, the spool, and the manifest.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostep_model::event::{Event, Marker};
use iostep_model::manifest::{
    Backend, Clocks, Command, Filesystem, Manifest, SCHEMA_VERSION, State,
};
use iostep_model::spool;

use crate::bpf::{self, Probe, Sums};
use crate::counters::{self, Snapshot};
use crate::error::{Error, Result};
use crate::interrupts;
use crate::target::Target;
use crate::tracefs::{self, Tracefs};

/// How often the ring is drained and the spool handed to the kernel.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait for a moment without I/O before counting begins, and after it ends.
const QUIET_WAIT: Duration = Duration::from_secs(2);
/// How often to try for a moment at which no request completes.
const SNAPSHOT_ATTEMPTS: usize = 10_000;

/// What to record and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// The device.
    pub target: Target,
    /// The trace directory; must not exist, or be empty.
    pub directory: PathBuf,
    /// Version of the program, for the manifest.
    pub iostep_version: String,
    /// The filesystem on the device with its layout, where it is known.
    pub filesystem: Option<Filesystem>,
    /// How to take events.
    pub backend: BackendChoice,
}

/// How to take events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// BPF where the kernel has what it needs, tracefs elsewhere.
    #[default]
    Auto,
    /// BPF or nothing.
    Bpf,
    /// tracefs.
    Tracefs,
}

/// A recording under way. Dropping it without [`Session::finish`] stops the probe and leaves the
/// spool, as if the recorder had been killed.
#[derive(Debug)]
pub struct Session {
    target: Target,
    directory: PathBuf,
    manifest: Manifest,
    before: Snapshot,
    interrupts_before: interrupts::Reading,
    commands: Sender<Request>,
    reader: Option<JoinHandle<Result<()>>>,
}

enum Request {
    Mark(u64, Marker),
    Snapshot(Sender<Result<(Snapshot, u64)>>),
    Stop,
}

impl Session {
    /// Starts recording; when it returns, no I/O goes unseen.
    ///
    /// Errors: `Usage` if the directory is taken; `Unsupported`, `Kernel` or `Io` if the machine
    /// cannot do it. The directory is then as it was.
    pub fn start(options: Options) -> Result<Session> {
        let created = prepare(&options.directory)?;
        let directory = options.directory.clone();
        Session::start_in(options).inspect_err(|_| {
            // Only what start_in() may have made; a directory with anything else in it stays.
            let _ = std::fs::remove_file(directory.join(spool::FILE_NAME));
            let _ = std::fs::remove_file(directory.join(iostep_model::manifest::FILE_NAME));
            if created {
                let _ = std::fs::remove_dir(&directory);
            }
        })
    }

    fn start_in(options: Options) -> Result<Session> {
        let backend = choose(options.backend)?;
        let manifest = new_manifest(&options, backend);
        let writer = spool::Writer::create(&options.directory.join(spool::FILE_NAME))?;
        manifest.write(&options.directory)?;
        let (commands, requests) = channel();
        let (ready, started) = channel();
        let target = options.target.clone();
        let reader = std::thread::Builder::new()
            .name("iostep-reader".into())
            .spawn(move || record(backend, &target, writer, &requests, &ready))
            .map_err(Error::io("iostep-reader", "start the thread"))?;
        let mut session = Session {
            target: options.target,
            directory: options.directory,
            manifest,
            before: Snapshot::default(),
            interrupts_before: interrupts::Reading::default(),
            commands,
            reader: Some(reader),
        };
        let Ok(notes) = started.recv() else {
            session.join()?;
            return Err(dead_reader());
        };
        // Loading the programs takes a while, in which nothing is recorded.
        session.manifest.clocks = clocks();
        session.manifest.check.notes = notes;
        session.manifest.write(&session.directory)?;
        session.before = session.quiet_snapshot()?.0;
        session.interrupts_before = interrupts::read()?;
        Ok(session)
    }

    /// The device that is recorded.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where the trace is written.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Records a milestone at this moment.
    ///
    /// Errors: the reader's, if it stopped.
    pub fn mark(&mut self, marker: Marker) -> Result<()> {
        if self
            .commands
            .send(Request::Mark(mono_ns(), marker))
            .is_err()
        {
            self.join()?;
            return Err(dead_reader());
        }
        Ok(())
    }

    /// Records which command was run, and how it ended.
    pub fn set_command(&mut self, command: Command) {
        self.manifest.command = Some(command);
    }

    /// True while the reader runs; false once it failed (a full disk, say).
    pub fn is_recording(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|reader| !reader.is_finished())
    }

    /// Waits until nothing is under way, stops recording, compares the counters and writes the
    /// manifest, still in the state [`State::Recording`]: the tables come next.
    ///
    /// Errors: what stopped the reader early. Everything recorded until then is in the spool.
    pub fn finish(mut self) -> Result<Manifest> {
        let (after, lost) = self.quiet_snapshot()?;
        self.manifest.end_mono_ns = Some(mono_ns());
        let interrupts_after = interrupts::read()?;
        self.manifest.interrupts =
            interrupts::between(&self.interrupts_before, &interrupts_after, &self.target);
        let notes = std::mem::take(&mut self.manifest.check.notes);
        self.manifest.check = counters::compare(&self.before, &after, lost);
        self.manifest.check.notes = notes;
        if after.device.is_none() {
            self.manifest.check.differences.push(format!(
                "{}: the device does not count its I/O (queue/iostats is 0), so nothing can be checked",
                self.target.node().display()
            ));
        }
        // A reader that is gone already has its own reason, which join() returns.
        let _ = self.commands.send(Request::Stop);
        self.join()?;
        self.manifest.write(&self.directory)?;
        Ok(self.manifest.clone())
    }

    fn join(&mut self) -> Result<()> {
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(dead_reader()),
            None => Ok(()),
        }
    }

    /// A moment at which nothing is under way; on a device that is never idle, just a moment.
    fn quiet_snapshot(&mut self) -> Result<(Snapshot, u64)> {
        let give_up = Instant::now() + QUIET_WAIT;
        loop {
            let (reply, answer) = channel();
            let sent = self.commands.send(Request::Snapshot(reply)).is_ok();
            let (snapshot, lost) = match answer.recv() {
                Ok(snapshot) if sent => snapshot?,
                _ => {
                    self.join()?;
                    return Err(dead_reader());
                }
            };
            if snapshot.in_flight == 0 || Instant::now() >= give_up {
                return Ok((snapshot, lost));
            }
        }
    }
}

/// What the reader's thread needs of a backend besides its events.
trait Source {
    fn sums(&mut self) -> Result<Sums>;
    fn lost(&mut self) -> Result<u64>;
    /// System calls that nobody looked at.
    fn unseen_calls(&self) -> u64 {
        0
    }
}

impl Source for &Probe<'_> {
    fn sums(&mut self) -> Result<Sums> {
        Probe::sums(self)
    }
    fn lost(&mut self) -> Result<u64> {
        Probe::lost(self)
    }
    fn unseen_calls(&self) -> u64 {
        Probe::unseen_calls(self)
    }
}

/// tracefs has no sums of its own: they are made from the events, which come along.
struct Counting<'a> {
    tracefs: &'a mut Tracefs,
    writer: &'a mut spool::Writer,
}

impl Source for Counting<'_> {
    fn sums(&mut self) -> Result<Sums> {
        let mut failed = Ok(());
        let sums = self
            .tracefs
            .sums(&mut |event| append(self.writer, &event, &mut failed))?;
        failed.map(|()| sums)
    }
    fn lost(&mut self) -> Result<u64> {
        self.tracefs.lost()
    }
}

/// Keeps the first error of a callback that cannot return one.
fn append(writer: &mut spool::Writer, event: &Event, failed: &mut Result<()>) {
    if failed.is_ok() {
        *failed = writer.push(event).map_err(Error::from);
    }
}

/// Reads the device's counters at a moment at which the source's sums stand still, so that both
/// belong together: on a busy device only some attempts find one.
fn snapshot(source: &mut impl Source, target: &Target) -> Result<(Snapshot, u64)> {
    let counting = counters::counts(target);
    let mut sums = source.sums()?;
    for _ in 0..SNAPSHOT_ATTEMPTS {
        let device = counters::read(target)?;
        let in_flight = target.in_flight()?;
        let again = source.sums()?;
        if sums == again {
            let snapshot = Snapshot {
                device: counting.then_some(device),
                sums,
                in_flight,
                unseen_calls: source.unseen_calls(),
            };
            return Ok((snapshot, source.lost()?));
        }
        sums = again;
    }
    Err(Error::unsupported(
        target.node().display(),
        "it never stood still long enough to read its counters; trace a quieter moment",
    ))
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.commands.send(Request::Stop);
        let _ = self.join();
    }
}

fn dead_reader() -> Error {
    Error::unsupported("the recorder", "its thread ended before it was told to")
}

/// The backend that this machine can do.
fn choose(choice: BackendChoice) -> Result<Backend> {
    match choice {
        BackendChoice::Bpf => bpf::available().map(|()| Backend::Bpf),
        BackendChoice::Tracefs => Ok(Backend::Tracefs),
        BackendChoice::Auto if bpf::available().is_ok() => Ok(Backend::Bpf),
        BackendChoice::Auto => Ok(Backend::Tracefs),
    }
}

/// The reader's thread: owns the backend and the spool.
fn record(
    backend: Backend,
    target: &Target,
    writer: spool::Writer,
    requests: &Receiver<Request>,
    ready: &Sender<Vec<String>>,
) -> Result<()> {
    match backend {
        Backend::Tracefs => record_tracefs(target, writer, requests, ready),
        _ => record_bpf(target, writer, requests, ready),
    }
}

fn record_bpf(
    target: &Target,
    mut writer: spool::Writer,
    requests: &Receiver<Request>,
    ready: &Sender<Vec<String>>,
) -> Result<()> {
    let mut objects = bpf::objects();
    let probe = Probe::start(target, &mut objects)?;
    // The session is gone only if its thread died, and then there is nobody to tell.
    let _ = ready.send(probe.notes().to_vec());
    let writer = std::cell::RefCell::new(&mut writer);
    probe.run(
        DRAIN_INTERVAL,
        |event| Ok(writer.borrow_mut().push(&event)?),
        |mut probe| {
            let mut writer = writer.borrow_mut();
            let stop = loop {
                match requests.try_recv() {
                    Ok(Request::Mark(mono_ns, marker)) => {
                        writer.push(&Event::Marker { mono_ns, marker })?;
                    }
                    Ok(Request::Snapshot(reply)) => {
                        for event in late(probe, target)? {
                            writer.push(&event)?;
                        }
                        // Nobody waits any more if the session was dropped meanwhile.
                        let _ = reply.send(snapshot(&mut probe, target));
                    }
                    Ok(Request::Stop) | Err(TryRecvError::Disconnected) => break true,
                    Err(TryRecvError::Empty) => break false,
                }
            };
            writer.flush()?;
            Ok(stop)
        },
    )?;
    Ok(writer.borrow_mut().flush()?)
}

/// What is still to be told of an idle device.
fn late(probe: &Probe<'_>, target: &Target) -> Result<Vec<Event>> {
    if target.in_flight()? > 0 {
        return Ok(Vec::new());
    }
    probe.tell_late(target)
}

fn record_tracefs(
    target: &Target,
    mut writer: spool::Writer,
    requests: &Receiver<Request>,
    ready: &Sender<Vec<String>>,
) -> Result<()> {
    let mut tracefs = Tracefs::start(target, tracefs::DEFAULT_BUFFER_BYTES)?;
    let _ = ready.send(Vec::new());
    let mut failed = Ok(());
    loop {
        match requests.recv_timeout(DRAIN_INTERVAL) {
            Ok(Request::Mark(mono_ns, marker)) => {
                writer.push(&Event::Marker { mono_ns, marker })?;
            }
            Ok(Request::Snapshot(reply)) => {
                let mut source = Counting {
                    tracefs: &mut tracefs,
                    writer: &mut writer,
                };
                let _ = reply.send(snapshot(&mut source, target));
            }
            Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        tracefs.drain(&mut |event| append(&mut writer, &event, &mut failed))?;
        std::mem::replace(&mut failed, Ok(()))?;
        writer.flush()?;
    }
    tracefs.stop(&mut |event| append(&mut writer, &event, &mut failed))?;
    failed?;
    Ok(writer.flush()?)
}

/// Makes the directory; true if it was not there.
fn prepare(directory: &Path) -> Result<bool> {
    match std::fs::create_dir(directory) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut entries = std::fs::read_dir(directory).map_err(Error::io(directory, "list"))?;
            if entries.next().is_some() {
                return Err(Error::usage(
                    directory.display(),
                    "not empty; name a new directory with -o",
                ));
            }
            Ok(false)
        }
        Err(error) => Err(Error::io(directory, "create")(error)),
    }
}

fn new_manifest(options: &Options, backend: Backend) -> Manifest {
    let system = rustix::system::uname();
    Manifest {
        schema_version: SCHEMA_VERSION,
        iostep_version: options.iostep_version.clone(),
        state: State::Recording,
        backend,
        kernel: system.release().to_string_lossy().into_owned(),
        machine: system.machine().to_string_lossy().into_owned(),
        device: options.target.device.clone(),
        filesystem: options.filesystem.clone(),
        clocks: clocks(),
        end_mono_ns: None,
        command: None,
        tracer_tgid: std::process::id(),
        check: iostep_model::manifest::Check::default(),
        interrupts: Vec::new(),
    }
}

fn clocks() -> Clocks {
    let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Clocks {
        mono_ns: mono_ns(),
        wall_ns: nanoseconds(wall),
    }
}

/// `CLOCK_MONOTONIC` now.
pub fn mono_ns() -> u64 {
    nanoseconds(rustix::time::clock_gettime(
        rustix::time::ClockId::Monotonic,
    ))
}

fn nanoseconds(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

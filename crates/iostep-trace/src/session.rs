//! A recording: the backend in a thread of its own, the spool, and the manifest.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostep_model::clock::{mono_ns, wall_ns};
use iostep_model::directory::Directory;
use iostep_model::disk;
use iostep_model::event::{Event, Marker};
use iostep_model::host::Host;
use iostep_model::manifest::{
    Backend, Check, Clocks, Command, Counters, Filesystem, Manifest, SCHEMA_VERSION, State, Volume,
};
use iostep_model::spool;

use crate::bpf::{self, Missing, Probe};
use crate::check::{self, Ending, Snapshot, Waiting};
use crate::counters::{self, Device, Lead, Reading, Readings};
use crate::error::{Error, Result};
use crate::fault::Fault;
use crate::interrupts;
use crate::rights;
use crate::sums::Sums;
use crate::target::Target;
use crate::tracefs::{self, Tracefs};

/// How often the ring is drained and the spool handed to the kernel.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait until the sums and the device's counters stand still against each other.
const SETTLE_WAIT: Duration = Duration::from_secs(2);
/// A busy trace begins when no request from before it went to the driver for so long.
const CALM: Duration = Duration::from_millis(100);
/// How long to wait at the end until what is queued goes to the driver: at least so long, and so
/// many times as long as any other bio waited.
const DRAIN_WAIT: Duration = Duration::from_secs(2);
const DRAIN_FACTOR: u32 = 10;
/// How long a completion is merely under way before it counts as one that nobody saw.
const LATE_AFTER: Duration = Duration::from_millis(200);
/// How long no request takes but where the device stalls.
const SURELY_LATE_AFTER: Duration = Duration::from_secs(1);
/// How long completions that nobody saw may put the end off.
const LATE_WAIT: Duration = Duration::from_secs(10);
/// Readings of the counters at a time, and the time between them.
const READINGS: usize = 4;
const READING_INTERVAL: Duration = Duration::from_millis(1);
/// How many readings say where the counters stand: before the trace, nothing can be made good later.
const READINGS_BEFORE: usize = 64;
const READINGS_AFTER: usize = 16;
/// How often to try for a moment at which no request completes.
const SNAPSHOT_ATTEMPTS: usize = 10_000;

/// What to record and where.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    /// The trace directory; must not exist, or be empty.
    pub directory: PathBuf,
    /// Version of the program, for the manifest.
    pub iostep_version: String,
    /// The filesystem on the device with its layout, where it is known.
    pub filesystem: Option<Filesystem>,
    /// The same of each of the target's volumes.
    pub volumes: Vec<Option<Filesystem>>,
    /// How to take events.
    pub backend: BackendChoice,
    /// A fault to make, to see that it is found; by BPF only.
    pub fault: Option<Fault>,
}

/// How to take events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// BPF where the kernel has what it needs, tracefs elsewhere.
    #[default]
    Auto,
    /// BPF or nothing.
    Bpf,
    Tracefs,
}

/// A recording under way. Dropping it without [`Session::finish`] stops the probe and leaves the
/// spool, as if the recorder had been killed.
#[derive(Debug)]
pub struct Session {
    target: Target,
    directory: Arc<Directory>,
    created: bool,
    manifest: Manifest,
    before: Snapshot,
    interrupts_before: interrupts::Reading,
    commands: Sender<Request>,
    reader: Option<JoinHandle<Result<Recorded>>>,
}

enum Request {
    Mark(u64, Marker),
    /// What moved until now, and what still waits of that which was queued before a time.
    Look(u64, Sender<Result<Moment>>),
    /// The trace begins.
    Begin,
    /// The device counted what nobody saw.
    TellLate(Late),
    Stop,
}

/// What the device counted and nobody saw.
#[derive(Clone, Copy, Debug)]
struct Late {
    missing: Missing,
    /// Of requests that went to the driver before this,
    before_ns: u64,
    /// and, once that was waited for, of those that nothing but a stall leaves there for so long.
    certain_ns: Option<u64>,
}

/// What one look at a busy device finds.
#[derive(Debug)]
struct Moment {
    sums: Sums,
    /// Empty where the device does not count.
    readings: Vec<Reading>,
    idle: bool,
    waiting: Option<Waiting>,
    lost: u64,
    unseen_calls: u64,
}

/// What the reader's thread leaves.
#[derive(Debug)]
struct Recorded {
    ending: Ending,
    events: u64,
}

impl Session {
    /// Starts recording; when it returns, no I/O goes unseen.
    ///
    /// Errors: `Usage` if the directory is taken; `Unsupported`, `Kernel` or `Io` if the machine
    /// cannot do it. The directory is then as it was.
    pub fn start(options: Options) -> Result<Session> {
        options.target.check_followed()?;
        let (held, created) = prepare(&options.directory)?;
        let held = Arc::new(held);
        Session::start_in(options, Arc::clone(&held), created).map_err(|error| {
            discard(&held, created);
            match error {
                Error::Trace(error) => Error::Trace(held.named(error)),
                other => other,
            }
        })
    }

    /// Ends the recording and removes what it has made: for a command that could not be run.
    pub fn discard(self) {
        let (held, created) = (Arc::clone(&self.directory), self.created);
        drop(self);
        discard(&held, created);
    }

    fn start_in(options: Options, held: Arc<Directory>, created: bool) -> Result<Session> {
        let backend = choose(options.backend)?;
        let manifest = new_manifest(&options, backend);
        let writer = spool::Writer::create(&held.path().join(spool::FILE_NAME))?;
        manifest.write(&held.path())?;
        let (commands, requests) = channel();
        let (ready, started) = channel();
        let (target, fault) = (options.target.clone(), options.fault);
        let reader = std::thread::Builder::new()
            .name("iostep-reader".into())
            .spawn(move || match backend {
                Backend::Tracefs => record_tracefs(&target, writer, &requests, &ready),
                _ => record_bpf(&target, fault, writer, &requests, &ready),
            })
            .map_err(Error::io("iostep-reader", "start the thread"))?;
        let mut session = Session {
            target: options.target,
            directory: held,
            created,
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
        session.manifest.write(&session.directory.path())?;
        session.before = session.begin()?;
        session.interrupts_before = interrupts::read()?;
        Ok(session)
    }

    /// The device that is recorded.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Where the trace is written.
    pub fn directory(&self) -> &Arc<Directory> {
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

    /// Waits until what was queued goes to the driver, stops recording, compares the counters and
    /// writes the manifest, still in the state [`State::Recording`]: the tables come next.
    ///
    /// Errors: what stopped the reader early. Everything recorded until then is in the spool.
    pub fn finish(mut self) -> Result<Manifest> {
        let mut check = self.end()?;
        self.manifest.end_mono_ns = Some(mono_ns());
        disk::read_after(Path::new("/"), &mut self.manifest.disks);
        let interrupts_after = interrupts::read()?;
        self.manifest.interrupts =
            interrupts::between(&self.interrupts_before, &interrupts_after, &self.target);
        check.notes = std::mem::take(&mut self.manifest.check.notes);
        if check.device.is_none() {
            check.differences.push(format!(
                "{}: the device does not count its I/O (queue/iostats is 0), so nothing can be checked",
                self.target.node().display()
            ));
        }
        // A reader that is gone already has its own reason, which join() returns.
        let _ = self.commands.send(Request::Stop);
        if let Some(recorded) = self.join()? {
            check::compare_events(&mut check, &recorded.ending);
            check::explain(&mut check, &recorded.ending);
            check.recorded_events = Some(recorded.events);
        }
        self.manifest.check = check;
        let written = self.manifest.write(&self.directory.path());
        written.map_err(|error| self.directory.named(error))?;
        Ok(self.manifest.clone())
    }

    fn join(&mut self) -> Result<Option<Recorded>> {
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(result)) => result.map(Some).map_err(|error| match error {
                Error::Trace(error) => Error::Trace(self.directory.named(error)),
                other => other,
            }),
            Some(Err(_)) => Err(dead_reader()),
            None => Ok(None),
        }
    }

    fn look(&mut self, queued_before_ns: u64) -> Result<Moment> {
        let (reply, answer) = channel();
        let sent = self.commands.send(Request::Look(queued_before_ns, reply));
        match answer.recv() {
            Ok(moment) if sent.is_ok() => moment,
            _ => {
                self.join()?;
                Err(dead_reader())
            }
        }
    }

    /// Waits until nothing comes any more of what was queued before the programs were there, and
    /// the trace begins. That nothing is under way says too little: of a bio that waits for a tag,
    /// or of a task that was stopped with it, the device does not know yet.
    fn begin(&mut self) -> Result<Snapshot> {
        let mut readings = Readings::of_last(READINGS_BEFORE);
        let give_up = Instant::now() + SETTLE_WAIT;
        let (mut unseen, mut calm_since) = (0, Instant::now());
        loop {
            let moment = self.look(0)?;
            let now = Instant::now();
            let snapshot = snapshot(&mut readings, &moment);
            let before = moment.waiting.map_or(0, |waiting| waiting.before_bytes);
            let before = before + moment.sums.before.bytes();
            if before != unseen {
                (unseen, calm_since) = (before, now);
            }
            let is_still = moment.idle || readings.are_clear(moment.sums.late);
            let is_calm = is_still && now - calm_since >= CALM;
            if is_calm || now >= give_up {
                let _ = self.commands.send(Request::Begin);
                return Ok(snapshot);
            }
        }
    }

    /// Follows what was queued until now to the driver, and compares the counters when they stand
    /// still against each other.
    fn end(&mut self) -> Result<Check> {
        let (end_ns, end) = (mono_ns(), Instant::now());
        let mut readings = Readings::of_last(READINGS_AFTER);
        let mut last_late = (0, end);
        loop {
            let moment = self.look(end_ns)?;
            let after = snapshot(&mut readings, &moment);
            let check = check::compare(&self.before, &after, moment.lost);
            let waiting = moment.waiting.unwrap_or_default();
            let patience = Duration::from_nanos(waiting.longest_ns) * DRAIN_FACTOR;
            let is_settled = moment.idle || readings.are_clear(moment.sums.late);
            let agrees = check.device.is_none_or(|device| device == check.completed);
            if last_late.0 != check.late_completions && end.elapsed() < LATE_WAIT {
                last_late = (check.late_completions, Instant::now());
            }
            let elapsed = last_late.1.elapsed();
            let old = waiting.stuck.ios + waiting.unsure.ios;
            let may_drain = old > 0 && !after.is_hopeless() && elapsed < patience.max(DRAIN_WAIT);
            let may_settle = !(is_settled && agrees) && elapsed < SETTLE_WAIT;
            if !may_drain && !may_settle {
                return Ok(check);
            }
            if !agrees && is_settled && end.elapsed() >= LATE_AFTER {
                self.tell_late(&after, end.elapsed());
                readings = Readings::of_last(READINGS_AFTER);
            }
        }
    }

    fn tell_late(&mut self, after: &Snapshot, waited: Duration) {
        let counters = after.change(&self.before).map(Lead::missing);
        let counters = counters.unwrap_or_default();
        if counters != Counters::default() {
            let ambiguous = after.sums.ambiguous();
            let _ = self.commands.send(Request::TellLate(Late {
                missing: Missing {
                    counters,
                    ambiguous: ambiguous.since(self.before.sums.ambiguous()),
                },
                before_ns: mono_ns() - LATE_AFTER.as_nanos() as u64 / 2,
                certain_ns: (waited >= SURELY_LATE_AFTER)
                    .then(|| mono_ns() - SURELY_LATE_AFTER.as_nanos() as u64),
            }));
        }
    }
}

/// Adds a moment's readings to the others; gives where everything stands.
fn snapshot(readings: &mut Readings, moment: &Moment) -> Snapshot {
    for reading in &moment.readings {
        readings.push(*reading);
    }
    Snapshot {
        sums: moment.sums,
        lead: match moment.idle {
            true => readings.newest(),
            false => readings.lead(),
        },
        idle: moment.idle,
        waiting: moment.waiting,
        unseen_calls: moment.unseen_calls,
    }
}

/// What the reader's thread needs of a backend besides its events.
trait Source {
    fn sums(&mut self) -> Result<Sums>;
    fn lost(&mut self) -> Result<u64>;
    /// System calls that nobody looked at.
    fn unseen_calls(&self) -> Result<u64> {
        Ok(0)
    }
    /// Bios between the queue and the driver, if the backend follows them.
    fn waiting(&mut self, queued_before_ns: u64) -> Option<Waiting>;
}

impl Source for &Probe<'_> {
    fn sums(&mut self) -> Result<Sums> {
        Probe::sums(self)
    }
    fn lost(&mut self) -> Result<u64> {
        Probe::lost(self)
    }
    fn unseen_calls(&self) -> Result<u64> {
        Probe::unseen_calls(self)
    }
    fn waiting(&mut self, queued_before_ns: u64) -> Option<Waiting> {
        Probe::waiting(self, queued_before_ns)
    }
}

/// tracefs has no sums of its own: they are made from the events, which come along.
struct Counting<'a> {
    tracefs: &'a mut Tracefs,
    writer: &'a mut Spool,
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
    fn waiting(&mut self, _: u64) -> Option<Waiting> {
        None
    }
}

/// The recording's file, and how many events it has.
struct Spool {
    writer: spool::Writer,
    events: u64,
}

impl Spool {
    fn push(&mut self, event: &Event) -> Result<()> {
        self.events += 1;
        Ok(self.writer.push(event)?)
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }
}

/// Keeps the first error of a callback that cannot return one.
fn append(writer: &mut Spool, event: &Event, failed: &mut Result<()>) {
    if failed.is_ok() {
        *failed = writer.push(event);
    }
}

/// Looks at the device and the source's sums several times.
fn look(source: &mut impl Source, target: &Target, queued_before_ns: u64) -> Result<Moment> {
    let device = Device::open([target])?;
    let counting = counters::counts(target);
    let first = source.sums()?;
    let mut in_flight = target.in_flight()?;
    let mut readings = Vec::new();
    for _ in 0..READINGS {
        std::thread::sleep(READING_INTERVAL);
        let reading = read(source, target, &device)?;
        in_flight += target.in_flight()?;
        readings.extend(counting.then_some(reading));
    }
    let sums = source.sums()?;
    let waiting = source.waiting(queued_before_ns);
    let is_empty = waiting.is_none_or(|waiting| waiting.bytes == 0);
    Ok(Moment {
        sums,
        readings,
        idle: in_flight == 0 && first == sums && is_empty,
        waiting,
        lost: source.lost()?,
        unseen_calls: source.unseen_calls()?,
    })
}

/// Reads the device's counters at a moment at which nothing completes, so that both belong
/// together: on a busy device only some attempts find one.
fn read(source: &mut impl Source, target: &Target, device: &Device) -> Result<Reading> {
    let mut completed = source.sums()?.surely_ours();
    for _ in 0..SNAPSHOT_ATTEMPTS {
        let counted = device.read()?;
        let again = source.sums()?;
        let now = again.surely_ours();
        if completed == now {
            return Ok(Reading {
                completed,
                late: again.late,
                lead: Lead::of(&completed, &counted),
            });
        }
        completed = now;
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

/// The reader's thread owns the backend and the spool.
fn record_bpf(
    target: &Target,
    fault: Option<Fault>,
    writer: spool::Writer,
    requests: &Receiver<Request>,
    ready: &Sender<Vec<String>>,
) -> Result<Recorded> {
    let mut objects = bpf::objects();
    let mut probe = Probe::start(target, fault, &mut objects)?;
    rights::give_up();
    // The session is gone only if its thread died, and then there is nobody to tell.
    let _ = ready.send(probe.notes().to_vec());
    let spool = RefCell::new(Spool { writer, events: 0 });
    let mut last = Instant::now();
    let mut is_ending = false;
    probe.run(
        |event| spool.borrow_mut().push(&event),
        || {
            let request = requests.recv_timeout(DRAIN_INTERVAL.saturating_sub(last.elapsed()));
            last = Instant::now();
            request
        },
        |probe, request| {
            is_ending |= serve(probe, target, &mut spool.borrow_mut(), request)?;
            spool.borrow_mut().flush()?;
            if is_ending {
                // Where all names do not fit into the ring at once, those that do are read first.
                return probe.sweep();
            }
            probe.follow_older()?;
            probe.sweep_if_wanted()?;
            Ok(false)
        },
    )?;
    probe.stop(|event| spool.borrow_mut().push(&event))?;
    let mut spool = spool.into_inner();
    spool.flush()?;
    Ok(Recorded {
        ending: probe.ending()?,
        events: spool.events,
    })
}

/// Does what the session asked for, if it did; true if that was to stop.
fn serve(
    mut probe: &Probe<'_>,
    target: &Target,
    spool: &mut Spool,
    request: std::result::Result<Request, RecvTimeoutError>,
) -> Result<bool> {
    match request {
        Ok(Request::Mark(mono_ns, marker)) => spool.push(&Event::Marker { mono_ns, marker })?,
        Ok(Request::Look(queued_before_ns, reply)) => {
            // Nobody waits any more if the session was dropped meanwhile.
            let _ = reply.send(look(&mut probe, target, queued_before_ns));
        }
        Ok(Request::Begin) => probe.begin()?,
        Ok(Request::TellLate(late)) => {
            for event in probe.tell_late(late.missing, (late.before_ns, late.certain_ns))? {
                spool.push(&event)?;
            }
        }
        Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(true),
        Err(RecvTimeoutError::Timeout) => {}
    }
    Ok(false)
}

fn record_tracefs(
    target: &Target,
    writer: spool::Writer,
    requests: &Receiver<Request>,
    ready: &Sender<Vec<String>>,
) -> Result<Recorded> {
    let mut tracefs = Tracefs::start(target, tracefs::DEFAULT_BUFFER_BYTES)?;
    let mut spool = Spool { writer, events: 0 };
    let _ = ready.send(tracefs::notes(target));
    let mut failed = Ok(());
    loop {
        match requests.recv_timeout(DRAIN_INTERVAL) {
            Ok(Request::Mark(mono_ns, marker)) => {
                spool.push(&Event::Marker { mono_ns, marker })?;
            }
            Ok(Request::Look(queued_before_ns, reply)) => {
                let mut source = Counting {
                    tracefs: &mut tracefs,
                    writer: &mut spool,
                };
                let _ = reply.send(look(&mut source, target, queued_before_ns));
            }
            // The text of a tracepoint does not say when its request began.
            Ok(Request::Begin | Request::TellLate(_)) => {}
            Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        tracefs.drain(&mut |event| append(&mut spool, &event, &mut failed))?;
        std::mem::replace(&mut failed, Ok(()))?;
        spool.flush()?;
    }
    let sums = tracefs.sums(&mut |event| append(&mut spool, &event, &mut failed))?;
    tracefs.stop(&mut |event| append(&mut spool, &event, &mut failed))?;
    failed?;
    spool.flush()?;
    Ok(Recorded {
        ending: Ending {
            sums,
            events: None,
            skipped: Vec::new(),
        },
        events: spool.events,
    })
}

/// Makes the directory and holds it; true if it was not there.
fn prepare(path: &Path) -> Result<(Directory, bool)> {
    let (held, made) = Directory::make(path)?;
    let mut entries = std::fs::read_dir(held.path()).map_err(Error::io(path, "list"))?;
    if !made && entries.next().is_some() {
        return Err(Error::usage(
            path.display(),
            "not empty; name a new directory with -o",
        ));
    }
    Ok((held, made))
}

/// Removes only what a session may have made; a directory with anything else in it stays.
fn discard(held: &Directory, created: bool) {
    for name in [spool::FILE_NAME, iostep_model::manifest::FILE_NAME] {
        let _ = std::fs::remove_file(held.path().join(name));
    }
    if created {
        held.remove_if_empty();
    }
}

fn new_manifest(options: &Options, backend: Backend) -> Manifest {
    let mut disks = options.target.hardware();
    disk::read_before(Path::new("/"), &mut disks);
    Manifest {
        schema_version: SCHEMA_VERSION,
        iostep_version: options.iostep_version.clone(),
        state: State::Recording,
        backend,
        host: Host::running(),
        device: options.target.device.clone(),
        devices: options.target.traced_devices(),
        disks,
        filesystem: options.filesystem.clone(),
        volumes: match backend {
            Backend::Bpf => volumes(options),
            _ => Vec::new(),
        },
        clocks: clocks(),
        end_mono_ns: None,
        command: None,
        tracer_tgid: std::process::id(),
        check: Check::default(),
        interrupts: Vec::new(),
    }
}

/// What lies where; tracefs does not tell filesystems apart.
fn volumes(options: &Options) -> Vec<Volume> {
    let all = options.target.volumes.iter().zip(&options.volumes);
    all.map(|(volume, filesystem)| Volume {
        filesystem: filesystem.clone(),
        ..volume.described.clone()
    })
    .collect()
}

fn clocks() -> Clocks {
    Clocks {
        mono_ns: mono_ns(),
        wall_ns: wall_ns(),
    }
}

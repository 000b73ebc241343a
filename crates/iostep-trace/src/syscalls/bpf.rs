//! The recorder that costs least: programs in the kernel on the raw tracepoints of system calls.
//!
//! bpf/calls.bpf.c says what they hook, bpf/wire.h what they make.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iostep_model::syscall::Header;
use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};
use libbpf_rs::btf::{Btf, ReferencesType};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, OpenObject};

use super::present::Present;
use super::programs::types::{loss as Loss, wire_size as Size};
use super::programs::{CallsLinks, CallsSkel, CallsSkelBuilder, OpenCallsSkel};
use super::record::{self, Record};
use super::{Recorded, Start, Subject, received, requests, spool, table};
use crate::bpf::{
    has_tracepoint, is_preempted, per_cpu, recursion_misses, release, usable_btf, word,
};
use crate::error::{Error, Result};
use crate::libbpf_log;
use crate::rights;
use crate::ring::Ring;
use iostep_model::clock::mono_ns;

/// How often the ring is emptied. It holds 64 MiB: 600,000 calls, of which the fastest program
/// makes some 5,000 in this time.
const DRAIN_INTERVAL: Duration = Duration::from_millis(5);
const LOSSES: u32 = Loss::LOSSES.0;
const REQUEST_WORDS: usize = Size::WIRE_REQUEST_WORDS.0 as usize;

/// A recording under way. Dropping it ends it.
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<Result<Ended>>>,
}

/// What the reader's thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    records: AtomicU64,
}

/// What the reader's thread leaves.
#[derive(Debug)]
struct Ended {
    spool: spool::Writer,
    lost: u64,
}

impl Recorder {
    /// Begins to record.
    ///
    /// With [`Subject::NextChild`] the calling thread must start the process.
    ///
    /// Errors: `Kernel` with the verifier's or the loader's words, `Unsupported` without BTF, `Io`
    /// for a process that is not there. The spool is then gone.
    pub fn start(subject: Subject, spool: spool::Writer, header: Header) -> Result<Recorder> {
        let shared = Arc::new(Shared::default());
        let launcher = rustix::thread::gettid().as_raw_nonzero().get();
        let (ready, started) = channel();
        let for_reader = Arc::clone(&shared);
        let reader = std::thread::Builder::new()
            .name("iostep-record".into())
            .spawn(move || {
                let launch = Launch { subject, launcher };
                read(launch, spool, header, &for_reader, &ready)
            })
            .map_err(Error::io("iostep-record", "start the thread"))?;
        let mut recorder = Recorder {
            shared,
            reader: Some(reader),
        };
        if started.recv().is_err() {
            recorder.join()?;
            return Err(dead_reader());
        }
        Ok(recorder)
    }

    /// Records so far.
    pub fn records(&self) -> u64 {
        self.shared.records.load(Ordering::Relaxed)
    }

    /// True while the reader runs; false once it failed (a full disk, say).
    pub fn is_recording(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(|reader| !reader.is_finished())
    }

    /// Ends the recording.
    ///
    /// Errors: what stopped the reader early.
    pub fn finish(mut self) -> Result<Recorded> {
        let ended = self.join()?.ok_or_else(dead_reader)?;
        Ok(Recorded {
            spool: ended.spool.read()?,
            lost: ended.lost,
            kept: None,
        })
    }

    /// Ends the recording and forgets it: there was nothing to record.
    pub fn discard(mut self) {
        if let Ok(Some(ended)) = self.join() {
            ended.spool.discard();
        }
    }

    fn join(&mut self) -> Result<Option<Ended>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.reader.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map(Some),
            Some(Err(_)) => Err(dead_reader()),
            None => Ok(None),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Whoever did not call finish() does not want to know.
        let _ = self.join();
    }
}

fn dead_reader() -> Error {
    Error::unsupported("the recorder", "its thread ended before it was told to")
}

/// Whom to record, and which thread starts it.
#[derive(Clone, Copy, Debug)]
struct Launch {
    subject: Subject,
    launcher: i32,
}

/// The spool, until it can take no more.
struct Kept {
    spool: spool::Writer,
    failed: Option<Error>,
}

impl Kept {
    fn push(&mut self, record: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.spool.push(record).err();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.spool.flush().err();
        }
    }
}

/// The reader's thread: owns the programs and the spool.
fn read(
    launch: Launch,
    mut spool: spool::Writer,
    header: Header,
    shared: &Shared,
    ready: &Sender<()>,
) -> Result<Ended> {
    let mut object = MaybeUninit::uninit();
    let mut skel = match begin(launch, &mut object, &mut spool, header) {
        Ok(skel) => skel,
        Err(error) => {
            spool.discard();
            return Err(error);
        }
    };
    rights::give_up();
    // The owner is gone only if its thread died, and then there is nobody to tell.
    let _ = ready.send(());
    let failed = None;
    let kept = std::cell::RefCell::new(Kept { spool, failed });
    let keep = |bytes: &[u8]| {
        shared.records.fetch_add(1, Ordering::Relaxed);
        let longer = received::with_path(bytes);
        kept.borrow_mut().push(longer.as_deref().unwrap_or(bytes));
    };
    let ring = Ring::open(&skel.maps.records, keep)?;
    while !shared.stop.load(Ordering::Relaxed) && kept.borrow().failed.is_none() {
        let begun = Instant::now();
        ring.drain()?;
        kept.borrow_mut().flush();
        std::thread::sleep(DRAIN_INTERVAL.saturating_sub(begun.elapsed()));
    }
    // Nothing comes any more, so that the last look has an end.
    skel.links = CallsLinks::default();
    ring.drain()?;
    drop(ring);
    let lost = lost(&skel)?;
    let mut kept = kept.into_inner();
    for request in requests_under_way(&skel.maps.requests) {
        kept.push(&request);
    }
    let spool = kept.spool;
    kept.failed.map_or(Ok(Ended { spool, lost }), Err)
}

/// Attaches the programs, and then says what was there before.
fn begin<'object>(
    launch: Launch,
    object: &'object mut MaybeUninit<OpenObject>,
    spool: &mut spool::Writer,
    header: Header,
) -> Result<CallsSkel<'object>> {
    let mut skel = load(launch, object)?;
    skel.attach()
        .map_err(Error::kernel("attach the BPF programs"))?;
    let start = Start::now();
    let (present, since_ns) = match launch.subject {
        Subject::NextChild => (Present::inherited()?, 0),
        Subject::Process(process) => (Present::of(process)?, mono_ns()),
    };
    spool.begin(&start.beginning(header, present, since_ns))?;
    Ok(skel)
}

/// Requests of io_uring that nobody saw completing: they were under way when the recording ended,
/// or their completion was not to be told.
fn requests_under_way(requests: &dyn MapCore) -> Vec<Vec<u8>> {
    let values = requests.keys().filter_map(|key| {
        let found = requests.lookup(&key, libbpf_rs::MapFlags::ANY);
        found.ok().flatten()
    });
    values
        .filter_map(|value| request_under_way(&value))
        .collect()
}

/// `struct uring_request` of uring.bpf.h as a record.
fn request_under_way(value: &[u8]) -> Option<Vec<u8>> {
    let word = |index: usize| {
        let bytes = value.get(8 * index..8 * index + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let mut words = [0; 10];
    for (index, into) in words.iter_mut().take(REQUEST_WORDS).enumerate() {
        *into = word(2 + index)?;
    }
    let silent = words[4] & requests::SILENT != 0;
    let record = Record {
        start_ns: word(0)?,
        duration_ns: 0,
        result: 0,
        tid: u32::from_ne_bytes(value.get(8..12)?.try_into().ok()?),
        number: record::REQUEST,
        flags: [record::UNFINISHED, record::UNTOLD][usize::from(silent)],
        word: words,
        text: [b""; 2],
    };
    Some(record.bytes())
}

fn load<'object>(
    Launch { subject, launcher }: Launch,
    object: &'object mut MaybeUninit<OpenObject>,
) -> Result<CallsSkel<'object>> {
    let btf = usable_btf("--via ptrace")?;
    let mut open = CallsSkelBuilder::default()
        .open(object)
        .map_err(Error::kernel("open the BPF object"))?;
    let no_data = || Error::unsupported("the BPF object", "it has no settings");
    let settings = open.maps.rodata_data.as_mut().ok_or_else(no_data)?;
    for entry in table::entries() {
        settings.classes[entry.number as usize] = entry.layout.class();
    }
    settings.complete_has_entry = completes_with_entry(&btf);
    let variables = open.maps.bss_data.as_mut().ok_or_else(no_data)?;
    match subject {
        Subject::NextChild => variables.launching_thread = launcher,
        Subject::Process(process) => {
            variables.attached_process = i32::try_from(process).unwrap_or(i32::MAX);
        }
    }
    choose(&mut open, &btf, is_preempted(&release()));
    libbpf_log::listen(|| open.load().map_err(Error::kernel("load the BPF programs")))
}

/// Kernels without io_uring, and old ones, lack some; those that preempt no program need no second
/// copy of one.
fn choose(open: &mut OpenCallsSkel<'_>, btf: &Btf<'_>, with_copies: bool) {
    for mut program in open.open_object_mut().progs_mut() {
        let needed = is_needed(&program.name().to_string_lossy(), with_copies);
        let section = program.section().to_string_lossy().into_owned();
        let Some(name) = section.strip_prefix("tp_btf/") else {
            continue;
        };
        let usable = match name {
            // Before Linux 5.18 the request was not its first argument.
            "io_uring_submit_sqe" => arguments(btf, name) == Some(2),
            _ if name.starts_with("io_uring_") => has_tracepoint(btf, name),
            _ => true,
        };
        program.set_autoload(usable && needed);
    }
}

/// True if the tracepoint io_uring_complete has the completion's entry: the ring, the request and
/// that. Before, it had the result and more in its place.
fn completes_with_entry(btf: &Btf<'_>) -> bool {
    arguments(btf, "io_uring_complete").is_none_or(|count| count == 3)
}

/// How many arguments a tracepoint has, if it is there. Its own data, which comes before them, does
/// not count.
fn arguments(btf: &Btf<'_>, tracepoint: &str) -> Option<usize> {
    let hook = btf.type_by_name::<Typedef<'_>>(&format!("btf_trace_{tracepoint}"))?;
    let pointer = Ptr::try_from(hook.referenced_type()).ok()?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.iter().count().saturating_sub(1))
}

/// What a program is a copy of, and which one: `on_enter2`. Most have one only.
fn copy_of(program: &str) -> (&str, u32) {
    let of = program.trim_end_matches(|c: char| c.is_ascii_digit());
    (of, program[of.len()..].parse().unwrap_or(1))
}

fn is_needed(program: &str, with_copies: bool) -> bool {
    with_copies || copy_of(program).1 == 1
}

/// Records without room, tasks that could not be followed, and calls of a program that the kernel
/// skipped.
fn lost(skel: &CallsSkel<'_>) -> Result<u64> {
    let mut lost = 0;
    for reason in 0..LOSSES {
        let values = per_cpu(&skel.maps.losses, reason)?;
        lost += values.iter().map(|value| word(value, 0)).sum::<u64>();
    }
    let programs = skel.object().progs().filter(|program| program.autoload());
    let skipped = programs.map(|program| {
        let name = program.name().to_string_lossy().into_owned();
        (name, recursion_misses(program.as_fd().as_raw_fd()))
    });
    Ok(lost + skipped_by_all(skipped))
}

/// At most so many calls went by, by how often each program was skipped: a call that one copy saw is
/// not lost, so of copies the one that was skipped least often counts.
fn skipped_by_all(programs: impl Iterator<Item = (String, u64)>) -> u64 {
    let mut least = BTreeMap::new();
    for (program, times) in programs {
        let known = least.entry(copy_of(&program).0.to_owned()).or_insert(times);
        *known = times.min(*known);
    }
    least.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_one_copy_saw_is_not_lost() {
        let skipped = |programs: &[(&str, u64)]| {
            let programs = programs.iter();
            skipped_by_all(programs.map(|(name, times)| ((*name).to_owned(), *times)))
        };
        let copies = [("on_enter1", 7), ("on_enter2", 1), ("on_enter3", 0)];
        assert_eq!(skipped(&copies), 0);
        let others = [("on_exit1", 5), ("on_exit2", 2), ("on_fork", 3)];
        assert_eq!(skipped(&others), 2 + 3);
        assert_eq!(skipped(&[("on_enter1", 7)]), 7);
    }

    #[test]
    fn calls_have_copies_where_a_kernel_may_preempt_them() {
        let mut object = MaybeUninit::uninit();
        let open = CallsSkelBuilder::default()
            .open(&mut object)
            .expect("the object that was built");
        let needed = |with_copies: bool, of: &str| {
            let programs = open.open_object().progs();
            let names = programs.map(|program| program.name().to_string_lossy().into_owned());
            let names = names.filter(|name| copy_of(name).0 == of && is_needed(name, with_copies));
            names.collect::<Vec<_>>()
        };
        assert_eq!(needed(false, "on_enter"), ["on_enter1"]);
        assert_eq!(
            needed(true, "on_exit"),
            ["on_exit1", "on_exit2", "on_exit3"]
        );
        assert_eq!(needed(true, "on_fork"), ["on_fork"]);
    }
}

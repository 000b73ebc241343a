//! The BPF backend: loads the programs of `iostep.bpf.c`, attaches them and drains their ring.
//!
//! Hooks and what they tell are listed at the top of that file; `wire.h` has the records. A
//! tracepoint that the running kernel does not have is left out: xfs or btrfs may not be there.

mod choice;
mod decode;
mod flags;
mod late;
mod memory_map;
mod older;
mod renames;
mod symbols;
mod tracepoints;
mod usable;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;

use iostep_model::event::{Event, Io};
use iostep_model::manifest::{Counters, Holds, Totals};
use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject};

use crate::check::{Ending, Waiting};
use crate::error::{Error, Result};
use crate::fault::{Fault, FaultKind, Point};
use crate::ledger::{Ledger, Old};
use crate::libbpf_log;
use crate::rights::check_rights;
use crate::ring::Ring;
use crate::stack::Layer;
use crate::sums::Sums;
use crate::target::Target;
pub(crate) use choice::is_preempted;
use choice::{COUNTING, Choice, Role, looks_at_calls, role_of};
use decode::Decoder;
pub(crate) use late::Missing;
use late::Pending;
use memory_map::Bases;
use older::Older;
use renames::{NAMING_CALLS, Swept};
use symbols::Symbols;
use tracepoints::of_modules;
use usable::INSTEAD;
pub use usable::{available, check_record, check_trace};
pub(crate) use usable::{has_tracepoint, usable_btf};

#[allow(
    clippy::all,
    clippy::too_many_lines,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used
)]
mod programs {
    include!(concat!(env!("OUT_DIR"), "/iostep.skel.rs"));
}

use programs::types::{
    device_role as DeviceRole, end_io_kind as EndIo, wire_counter as SumCounter,
    wire_fault as WireFault, wire_group as SumGroup, wire_point as SumPoint, wire_sums,
};
use programs::{IostepSkel, IostepSkelBuilder, OpenIostepSkel};

/// How many slots of the map of requests at the driver are read at once.
const PENDING_BATCH: u32 = 1 << 12;

/// `bi_end_io` functions and what they say of the bio.
const END_IO_KINDS: [(&str, EndIo); 24] = [
    ("iomap_dio_bio_end_io", EndIo::END_IO_IOMAP_DIRECT),
    ("end_bio_bh_io_sync", EndIo::END_IO_BUFFER_HEAD),
    // By Linux 7.2 the completion of a buffer is its bio's own.
    ("bh_end_read", EndIo::END_IO_BUFFER_HEAD),
    ("bh_end_write", EndIo::END_IO_BUFFER_HEAD),
    ("bh_end_async_read", EndIo::END_IO_BUFFER_HEAD),
    ("bh_end_async_write", EndIo::END_IO_BUFFER_HEAD),
    ("ext4_end_bitmap_read", EndIo::END_IO_BUFFER_HEAD),
    ("journal_end_buffer_io_sync", EndIo::END_IO_BUFFER_HEAD),
    ("ext4_end_buffer_io_sync", EndIo::END_IO_BUFFER_HEAD),
    ("xlog_bio_end_io", EndIo::END_IO_XFS_LOG),
    ("xfs_buf_bio_end_io", EndIo::END_IO_XFS_BUFFER),
    ("btrfs_simple_end_io", EndIo::END_IO_BTRFS),
    ("btrfs_clone_write_end_io", EndIo::END_IO_BTRFS_COPY),
    ("btrfs_orig_write_end_io", EndIo::END_IO_BTRFS),
    ("btrfs_raid56_end_io", EndIo::END_IO_BTRFS),
    ("btrfs_end_super_write", EndIo::END_IO_BTRFS_SUPERBLOCK),
    ("blkdev_bio_end_io", EndIo::END_IO_DEVICE_DIRECT),
    ("blkdev_bio_end_io_async", EndIo::END_IO_DEVICE_DIRECT),
    ("submit_bio_wait_endio", EndIo::END_IO_WAIT),
    ("bio_wait_end_io", EndIo::END_IO_WAIT),
    ("dio_bio_end_io", EndIo::END_IO_DIO),
    ("dio_bio_end_aio", EndIo::END_IO_DIO),
    ("iomap_dio_simple_end_io", EndIo::END_IO_IOMAP_SIMPLE),
    ("blk_crypto_fallback_encrypt_endio", EndIo::END_IO_ENCRYPTED),
];

/// `PROGRAM_NAME_BYTES` of `entries.bpf.h`.
const PROGRAM_NAME_BYTES: usize = 32;

/// How often it is asked what was missed, and after what time again.
const MISS_READINGS: usize = 5;
const MISS_INTERVAL: Duration = Duration::from_millis(2);

/// Programs whose events add up to the device's counters.
const BALANCED: [&str; 4] = ["on_bio_queue", "on_issue", "on_requeue", "on_complete"];

const OTHER_SYMBOLS: [&str; 5] = [
    CHAIN,
    "vmemmap_base",
    "page_offset_base",
    "iomap_dio_simple_pool",
    BOUNCE,
];
/// Ends a bio that was split off another.
const CHAIN: &str = "bio_chain_endio";
/// Came with the bios of direct I/O that are counted after they were submitted
/// (`iomap_dio_bio_iter_one`, fs/iomap/direct-io.c, Linux 7.0), which is seen in no type.
const BOUNCE: &str = "bio_iov_iter_bounce";

/// The sums of all CPUs.
fn sums_of(all: &[wire_sums]) -> Sums {
    let groups = SumGroup::GROUP_NONE.0 as usize + 1;
    let total = |point: SumPoint, group: SumGroup| {
        let at = point.0 as usize * groups + group.0 as usize;
        let of = all.iter().map(|sums| sums.of[at]);
        of.fold(Totals::default(), |total, sum| Totals {
            ios: total.ios + sum.ios,
            bytes: total.bytes + sum.bytes,
        })
    };
    let counters = |point| Counters {
        read: total(point, SumGroup::GROUP_READ),
        write: total(point, SumGroup::GROUP_WRITE),
        discard: total(point, SumGroup::GROUP_DISCARD),
        flush: total(point, SumGroup::GROUP_FLUSH),
    };
    let count = |counter: SumCounter| all.iter().map(|s| s.counters[counter.0 as usize]).sum();
    Sums {
        queued: counters(SumPoint::POINT_QUEUED),
        issued: counters(SumPoint::POINT_ISSUED).since(counters(SumPoint::POINT_REQUEUED)),
        completed: counters(SumPoint::POINT_COMPLETED).and(counters(SumPoint::POINT_LATE)),
        before: counters(SumPoint::POINT_BEFORE),
        late_of_before: counters(SumPoint::POINT_LATE_OF_BEFORE),
        perhaps_others: Counters::default(),
        unissued: counters(SumPoint::POINT_UNISSUED),
        uneven: counters(SumPoint::POINT_UNEVEN),
        merges: count(SumCounter::COUNTER_MERGES),
        splits: count(SumCounter::COUNTER_SPLITS),
        late: count(SumCounter::COUNTER_LATE),
    }
}

/// The attached programs. Dropping it detaches and unloads them; so does the kernel when the
/// process dies.
pub struct Probe<'object> {
    skel: Box<IostepSkel<'object>>,
    flags: flags::KernelFlags,
    decoder: RefCell<Decoder>,
    /// What [`Probe::tell_late`] told.
    told: Cell<Late>,
    /// When the trace began, once it did.
    began_ns: Cell<u64>,
    swept: Cell<Swept>,
    /// While bios from before the programs may come.
    older: RefCell<Option<Older>>,
    notes: Vec<String>,
}

/// Places for libbpf's data: as many attempts to load the programs.
pub type Objects = [MaybeUninit<OpenObject>; 12];

/// Empty ones.
pub fn objects() -> Objects {
    std::array::from_fn(|_| MaybeUninit::uninit())
}

/// Completions that no program saw.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    completed: Counters,
    of_before: Counters,
    count: u64,
}

impl<'object> Probe<'object> {
    /// Loads and attaches the programs for one device. Events flow from here on.
    ///
    /// `objects` are only places for libbpf's data, one for each attempt: an object is loaded whole
    /// or not at all, so a program that this kernel refuses is left out of the next.
    ///
    /// Errors: `Refused` if a program is refused that it cannot be done without; `Kernel` with the
    /// loader's words; `Unsupported` without BTF, or without the rights.
    pub fn start(
        target: &Target,
        fault: Option<Fault>,
        objects: &'object mut Objects,
    ) -> Result<Probe<'object>> {
        // Without CAP_PERFMON it is the verifier that refuses, and blames the program.
        check_rights("load BPF programs")?;
        let btf = usable_btf(INSTEAD)?;
        let symbols = Symbols::read(&symbol_names())?;
        let mut choice = Choice::new(
            &target.filesystem_kinds(),
            !target.volumes.is_empty(),
            &release(),
        );
        let bases = memory_map::fixed();
        let addresses = (&symbols, bases);
        let mut skel = load(target, &btf, addresses, &mut choice, fault, objects)?;
        for (name, kind) in END_IO_KINDS {
            for address in symbols.all(name) {
                skel.maps
                    .end_io_kinds
                    .update(&address.to_ne_bytes(), &kind.0.to_ne_bytes(), MapFlags::ANY)
                    .map_err(Error::kernel("fill a BPF map"))?;
            }
        }
        for number in target.volume_numbers().into_keys() {
            let number = number.to_ne_bytes();
            let updated = skel
                .maps
                .volume_numbers
                .update(&number, &number, MapFlags::ANY);
            updated.map_err(Error::kernel("fill a BPF map"))?;
        }
        fill_entries(&mut skel)?;
        skel.attach()
            .map_err(Error::kernel("attach the BPF programs"))?;
        let older = Older::follow(&mut skel.links);
        let flags = flags::KernelFlags::read(&btf);
        let waited_for_from_ns = older::wait_for_bios(&skel.maps.data_waited_for)?;
        let disks = target.layers.iter().map(|layer| layer.traced.is_disk());
        let disks = disks.collect();
        let volumes = target.volume_numbers();
        let ledger = target
            .has_requests()
            .then(|| Ledger::since(waited_for_from_ns));
        let mut notes = choice.notes(&release());
        notes.extend(memory_map::note(bases, &release()));
        Ok(Probe {
            skel: Box::new(skel),
            flags,
            decoder: RefCell::new(Decoder::new(flags, (disks, volumes), ledger, fault)),
            told: Cell::new(Late::default()),
            began_ns: Cell::new(u64::MAX),
            swept: Cell::new(Swept::now(Duration::ZERO)),
            older: RefCell::new(Some(older)),
            notes,
        })
    }

    /// What this kernel does not let the programs tell, a sentence each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Hands every event to `emit` until `stop` says so. By turns, `wait` gives what to do and
    /// takes the time until then, all that is in the ring is read, and `stop` does it: what it
    /// sees is not older than what it was asked for.
    ///
    /// Errors: `Kernel`, and the first error of `emit`, after which nothing more is emitted.
    pub fn run<Wanted>(
        &self,
        mut emit: impl FnMut(Event) -> Result<()>,
        mut wait: impl FnMut() -> Wanted,
        mut stop: impl FnMut(&Self, Wanted) -> Result<bool>,
    ) -> Result<()> {
        let failed = RefCell::new(None);
        let ring = Ring::open(&self.skel.maps.events, |bytes| {
            if failed.borrow().is_none() {
                let result = self.decoder.borrow_mut().decode(bytes, &mut emit);
                if let Err(error) = result {
                    *failed.borrow_mut() = Some(error);
                }
            }
        })?;
        loop {
            let wanted = wait();
            ring.drain()?;
            if let Some(error) = failed.borrow_mut().take() {
                return Err(error);
            }
            if stop(self, wanted)? {
                return Ok(());
            }
        }
    }

    /// Detaches the programs and hands out what they told until then. What they summed stands
    /// still from here on.
    ///
    /// Errors: `Kernel`, and the first error of `emit`.
    pub fn stop(&mut self, mut emit: impl FnMut(Event) -> Result<()>) -> Result<()> {
        *self.older.borrow_mut() = None;
        self.skel.links = programs::IostepLinks::default();
        let mut failed = Ok(());
        let decoder = &self.decoder;
        let ring = Ring::open(&self.skel.maps.events, |bytes| {
            if failed.is_ok() {
                failed = decoder.borrow_mut().decode(bytes, &mut emit);
            }
        })?;
        let drained = ring.drain();
        drop(ring);
        drained?;
        failed
    }

    /// Tells the programs that the trace has begun: a request that is made from now on has bios
    /// that were all seen.
    ///
    /// Errors: `Kernel`.
    pub fn begin(&self) -> Result<()> {
        let now_ns = iostep_model::clock::mono_ns();
        self.decoder.borrow_mut().begin(now_ns);
        self.began_ns.set(now_ns);
        let map = &self.skel.maps.data_began;
        map.update(&0u32.to_ne_bytes(), &now_ns.to_ne_bytes(), MapFlags::ANY)
            .map_err(Error::kernel("write a BPF map"))
    }

    /// Ends what is done for bios from before the programs, once none is left.
    ///
    /// Errors: `Kernel`.
    pub fn follow_older(&self) -> Result<()> {
        let mut older = self.older.borrow_mut();
        if !older.as_mut().is_some_and(Older::is_over) {
            return Ok(());
        }
        *older = None;
        let map = &self.skel.maps.data_older;
        map.update(&0u32.to_ne_bytes(), &0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(Error::kernel("write a BPF map"))
    }

    /// Bios between the queue and the driver; `None` for a device of bios.
    pub(crate) fn waiting(&self, queued_before_ns: u64) -> Option<Waiting> {
        let decoder = self.decoder.borrow();
        decoder.ledger().map(|ledger| {
            let Old { stuck, unsure } =
                ledger.old(queued_before_ns, iostep_model::clock::mono_ns());
            Waiting {
                stuck,
                unsure,
                bytes: ledger.waiting_bytes(),
                unqueued: ledger.unqueued(),
                before_bytes: ledger.before_bytes(),
                longest_ns: ledger.longest_wait_ns(),
            }
        })
    }

    /// What the programs summed, and what the events handed out add up to.
    ///
    /// Errors: `Kernel`.
    pub(crate) fn ending(&self) -> Result<Ending> {
        Ok(Ending {
            sums: self.own_sums()?,
            events: self.decoder.borrow().ledger().map(Ledger::events),
            skipped: self.skipped()?,
        })
    }

    /// The programs' own sums so far, and what `tell_late` added to them.
    ///
    /// Errors: `Kernel`.
    pub fn sums(&self) -> Result<Sums> {
        let mut sums = self.own_sums()?;
        let told = self.told.get();
        sums.completed = sums.completed.and(told.completed);
        sums.late_of_before = sums.late_of_before.and(told.of_before);
        sums.late += told.count;
        Ok(sums)
    }

    fn own_sums(&self) -> Result<Sums> {
        let values = per_cpu(&self.skel.maps.sums, 0)?;
        let all: Result<Vec<wire_sums>> = values.iter().map(|v| decode::read(v)).collect();
        Ok(sums_of(&all?))
    }

    /// Completions that no program saw, of requests that went to the driver before `before_ns`,
    /// if they are what the device counted and nobody saw: all, or the oldest of those before
    /// `certain_ns`. Of bios that only flush, nothing is told
    /// but their number: they have no slot.
    ///
    /// See `requests.bpf.h` for how they come about. Their time is now, which is too late.
    /// Errors: `Kernel`.
    pub(crate) fn tell_late(
        &self,
        missing: Missing,
        (before_ns, certain_ns): (u64, Option<u64>),
    ) -> Result<Vec<Event>> {
        let mut pending = self.pending_before(before_ns)?;
        pending.sort_by_key(|request| request.issue_ns);
        let mut decoder = self.decoder.borrow_mut();
        let flushes = decoder.ledger().map_or(0, |l| l.flushes_over(before_ns));
        let began_ns = self.began_ns.get();
        let times = (began_ns, certain_ns);
        let Some(found) = late::unseen(&pending, flushes as u64, times, missing) else {
            return Ok(Vec::new());
        };
        pending.truncate(found.requests);
        let mut free = 0;
        for request in &pending {
            // A program told it meanwhile: what is left is told the next time.
            if !self.still_is(request)? {
                break;
            }
            let empty = [0; size_of::<programs::types::wire_pending>()];
            let map = &self.skel.maps.pending;
            let updated = map.update(&request.slot, &empty, MapFlags::ANY);
            updated.map_err(Error::kernel("write a BPF map"))?;
            free += 1;
        }
        let empty = if free == pending.len() {
            found.empty
        } else {
            0
        };
        pending.truncate(free);
        decoder.forget_flushes(empty as usize, before_ns);
        let mut told = self.told.get();
        let [mut completed, of_before] = late::sums(&pending, began_ns);
        completed.write.ios += empty;
        told.completed = told.completed.and(completed);
        told.of_before = told.of_before.and(of_before);
        told.count += free as u64 + empty;
        self.told.set(told);
        let events = pending
            .into_iter()
            .map(|late| Event::on(late.device, Io::Complete(late.completion)));
        Ok(events.collect())
    }

    fn pending_before(&self, before_ns: u64) -> Result<Vec<Pending>> {
        let map = &self.skel.maps.pending;
        let slots = map.lookup_batch(PENDING_BATCH, MapFlags::ANY, MapFlags::ANY);
        let slots = slots.map_err(Error::kernel("read a BPF map"))?;
        let pending = slots.filter_map(|(slot, bytes)| {
            let (device, issue_ns, completion) = decode::pending(&bytes, self.flags)?;
            Some(Pending {
                slot,
                bytes,
                device,
                issue_ns,
                completion,
            })
        });
        let old = pending.filter(|request| request.issue_ns < before_ns);
        Ok(old.collect())
    }

    /// True if a slot still is what was read of it: no program told it meanwhile.
    fn still_is(&self, pending: &Pending) -> Result<bool> {
        let now = self.skel.maps.pending.lookup(&pending.slot, MapFlags::ANY);
        let now = now.map_err(Error::kernel("read a BPF map"))?;
        Ok(now.as_ref() == Some(&pending.bytes))
    }

    /// Events that found no room, pieces of bios that were not understood, and calls of a
    /// program that the kernel skipped because it was running already, but for
    /// [`Probe::unseen_calls`].
    ///
    /// Not the calls of those whose events all have to balance: such a call may concern another
    /// device, and one of this device that is missing is found.
    ///
    /// Errors: `Kernel`.
    pub fn lost(&self) -> Result<u64> {
        let mut lost = 0;
        for reason in 0..2 {
            let values = per_cpu(&self.skel.maps.lost, reason)?;
            lost += values.iter().map(|value| word(value, 0)).sum::<u64>();
        }
        let skipped = self.skipped()?;
        let skipped = skipped
            .iter()
            .filter(|(name, _)| !BALANCED.contains(&name.as_str()));
        Ok(lost + skipped.map(|(_, times)| times).sum::<u64>())
    }

    /// Programs that the kernel did not run because they ran already, but for those that look at
    /// system calls, and how often. Since Linux 7.0 a task can be preempted in any tracepoint.
    fn skipped(&self) -> Result<Vec<(String, u64)>> {
        let mut all = self.misses()?;
        all.retain(|(name, _)| !looks_at_calls(name));
        Ok(all)
    }

    /// How often a program was running already when it was called; where it has entries, how often
    /// the first of them was and no other led to it.
    ///
    /// Errors: `Kernel`.
    fn misses(&self) -> Result<Vec<(String, u64)>> {
        let mut all = Vec::new();
        for program in self.skel.object().progs() {
            let name = program.name().to_string_lossy().into_owned();
            let (of, role) = role_of(&name);
            let is_first = role == Role::Itself || name.ends_with("_entry1");
            if !program.autoload() || !is_first || COUNTING.contains(&of) {
                continue;
            }
            let mut missed = u64::MAX;
            for _ in 0..MISS_READINGS {
                let times = recursion_misses(program.as_fd().as_raw_fd());
                missed = missed.min(times.saturating_sub(self.led(of)?));
                if missed == 0 {
                    break;
                }
                // An event may be between the first entry and the next.
                std::thread::sleep(MISS_INTERVAL);
            }
            if missed > 0 {
                all.push((of.to_owned(), missed));
            }
        }
        Ok(all)
    }

    /// How often an entry behind the first led to a program.
    fn led(&self, program: &str) -> Result<u64> {
        let mut key = [0; PROGRAM_NAME_BYTES];
        key[..program.len()].copy_from_slice(program.as_bytes());
        let times = self.skel.maps.led.lookup(&key, MapFlags::ANY);
        let times = times.map_err(Error::kernel("read a BPF map"))?;
        Ok(times.map_or(0, |times| word(&times, 0)))
    }

    /// System calls that no program looked at. Since Linux 6.13 the tracepoints of system calls may
    /// be preempted ("tracing: Allow system call tracepoints to handle page faults"), and a thread
    /// that gets the processor meanwhile finds the program running. A sync call among them is known
    /// by the filesystem's own tracepoint still.
    ///
    /// Errors: `Kernel`.
    pub fn unseen_calls(&self) -> Result<u64> {
        let misses = self.misses()?;
        let of_calls = misses.iter().filter(|(name, _)| looks_at_calls(name));
        Ok(of_calls.map(|(_, times)| times).sum())
    }
}

fn configure(
    open: &mut OpenIostepSkel<'_>,
    target: &Target,
    (symbols, bases): (&Symbols, Option<Bases>),
    fault: Option<Fault>,
) -> Result<()> {
    let settings = open
        .maps
        .rodata_data
        .as_mut()
        .ok_or_else(|| Error::unsupported("the BPF object", "it has no settings"))?;
    settings.device_count = target.layers.len() as u32;
    settings.is_layered = u32::from(target.is_layered());
    settings.has_volumes = u32::from(!target.volumes.is_empty());
    for (at, layer) in target.layers.iter().enumerate() {
        settings.device_numbers[at] = layer.number.kernel_number();
        settings.device_disks[at] = layer.disk.kernel_number();
        settings.device_roles[at] = roles(layer);
    }
    settings.vmemmap_base_address = symbols.one("vmemmap_base");
    settings.page_offset_base_address = symbols.one("page_offset_base");
    if let Some(bases) = bases {
        settings.vmemmap_base_fixed = bases.vmemmap;
        settings.page_offset_base_fixed = bases.linear;
    }
    settings.page_shift = rustix::param::page_size().ilog2();
    settings.jbd2_end_io = symbols.one("journal_end_buffer_io_sync");
    settings.simple_direct_pool = symbols.one("iomap_dio_simple_pool");
    settings.direct_counts_later = u32::from(symbols.one(BOUNCE) != 0);
    settings.chain_end_io = symbols.one(CHAIN);
    settings.fast_commit_end_io = symbols.one("ext4_end_buffer_io_sync");
    settings.nr_fsync = libc::SYS_fsync as i32;
    settings.nr_fdatasync = libc::SYS_fdatasync as i32;
    settings.nr_sync = libc::SYS_sync as i32;
    settings.nr_syncfs = libc::SYS_syncfs as i32;
    settings.nr_sync_file_range = libc::SYS_sync_file_range as i32;
    settings.nr_write = libc::SYS_write as i32;
    settings.nr_pwrite64 = libc::SYS_pwrite64 as i32;
    settings.nr_writev = libc::SYS_writev as i32;
    settings.nr_pwritev = libc::SYS_pwritev as i32;
    settings.nr_pwritev2 = libc::SYS_pwritev2 as i32;
    settings.nr_ioctl = libc::SYS_ioctl as i32;
    settings.nr_msync = libc::SYS_msync as i32;
    settings.nr_linkat = libc::SYS_linkat as i32;
    for (call, paths) in NAMING_CALLS {
        if let Some(at) = settings.naming_calls.get_mut(call as usize) {
            *at = paths;
        }
    }
    if let Some(fault) = fault {
        settings.fault_point = match fault.point {
            Point::Queue => SumPoint::POINT_QUEUED.0,
            Point::Issue => SumPoint::POINT_ISSUED.0,
            Point::Complete => SumPoint::POINT_COMPLETED.0,
        };
        settings.fault_kind = match fault.kind {
            FaultKind::Skip => WireFault::FAULT_SKIP.0,
            FaultKind::Twice => WireFault::FAULT_TWICE.0,
            FaultKind::Byte => WireFault::FAULT_BYTE.0,
            FaultKind::Lose => WireFault::FAULT_NONE.0,
        };
        settings.fault_number = fault.number;
    }
    Ok(())
}

/// The roles of a device, as bits.
fn roles(layer: &Layer) -> u32 {
    let roles = [
        (!layer.is_partition(), DeviceRole::DEVICE_WHOLE),
        (
            layer.traced.holds != Holds::Devices,
            DeviceRole::DEVICE_HOLDS,
        ),
        (layer.traced.is_disk(), DeviceRole::DEVICE_DISK),
    ];
    let has = roles.iter().filter(|(has, _)| *has);
    has.fold(0, |bits, (_, role)| bits | role.0)
}

/// What the programs cannot ask the kernel's types for by themselves.
fn set_kernel_bits(open: &mut OpenIostepSkel<'_>, btf: &Btf<'_>) {
    if let Some(settings) = open.maps.rodata_data.as_mut() {
        settings.flush_sequence_bit = flags::flush_sequence_bit(btf);
    }
}

fn symbol_names() -> Vec<&'static str> {
    let ends = END_IO_KINDS.iter().map(|(name, _)| *name);
    ends.chain(OTHER_SYMBOLS).collect()
}

/// `uname -r`.
pub(crate) fn release() -> String {
    let system = rustix::system::uname();
    system.release().to_string_lossy().into_owned()
}

/// Loads all programs that this device is served by and that this kernel takes.
fn load<'object>(
    target: &Target,
    btf: &Btf<'_>,
    addresses: (&Symbols, Option<Bases>),
    choice: &mut Choice,
    fault: Option<Fault>,
    objects: &'object mut Objects,
) -> Result<IostepSkel<'object>> {
    for object in objects {
        let mut open = IostepSkelBuilder::default()
            .open(object)
            .map_err(Error::kernel("open the BPF object"))?;
        configure(&mut open, target, addresses, fault)?;
        set_kernel_bits(&mut open, btf);
        if let Some(settings) = open.maps.rodata_data.as_mut() {
            settings.is_preempted = u32::from(choice.is_preempted());
            settings.fsync_is_silent = u32::from(choice.has_silent());
        }
        find_absent(&open, btf, choice);
        for mut program in open.open_object_mut().progs_mut() {
            let name = program.name().to_string_lossy().into_owned();
            let idle = role_of(&name).0 == "on_remap" && !target.is_layered();
            program.set_autoload(choice.takes(&name) && !idle);
            program.set_autoattach(role_of(&name).1 != Role::Behind);
        }
        match libbpf_log::listen(|| open.load().map_err(Error::kernel("load the BPF programs"))) {
            Ok(skel) => return Ok(skel),
            Err(error) => choice.leave_out(error, &libbpf_log::said(), &release())?,
        }
    }
    Err(Error::unsupported(
        format!("Linux {}", release()),
        "it refuses most of the BPF programs; use --backend tracefs",
    ))
}

/// Puts each program that is called by entries behind them.
fn fill_entries(skel: &mut IostepSkel<'_>) -> Result<()> {
    let programs = skel.object().progs().filter(|program| program.autoload());
    let behind: BTreeMap<String, RawFd> = programs
        .filter_map(|program| {
            let name = program.name().to_string_lossy().into_owned();
            let (of, role) = role_of(&name);
            (role == Role::Behind).then(|| (format!("{of}_program"), program.as_fd().as_raw_fd()))
        })
        .collect();
    for map in skel.object_mut().maps_mut() {
        let Some(fd) = behind.get(&*map.name().to_string_lossy()) else {
            continue;
        };
        map.update(&0u32.to_ne_bytes(), &fd.to_ne_bytes(), MapFlags::ANY)
            .map_err(Error::kernel("fill a BPF map"))?;
    }
    Ok(())
}

/// Finds the programs whose tracepoint this kernel, or a module that is loaded, does not have.
fn find_absent(open: &OpenIostepSkel<'_>, btf: &Btf<'_>, choice: &mut Choice) {
    let of_modules = of_modules();
    for program in open.open_object().progs() {
        let section = program.section().to_string_lossy().into_owned();
        let Some(name) = section.strip_prefix("tp_btf/") else {
            continue;
        };
        let there = has_tracepoint(btf, name) || of_modules.contains(name);
        if !there && !name.starts_with("sys_") {
            choice.set_absent(&program.name().to_string_lossy());
        }
    }
}

/// How often the kernel skipped a program because it was running on that CPU already
/// (`bpf_prog_show_fdinfo`, kernel/bpf/syscall.c; 0 before Linux 5.12).
pub(crate) fn recursion_misses(fd: RawFd) -> u64 {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("recursion_misses:"))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

pub(crate) fn per_cpu(map: &impl MapCore, index: u32) -> Result<Vec<Vec<u8>>> {
    let values = map
        .lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(Error::kernel("read a BPF map"))?;
    Ok(values.unwrap_or_default())
}

pub(crate) fn word(bytes: &[u8], index: usize) -> u64 {
    let bytes = bytes.get(index * 8..index * 8 + 8);
    bytes.map_or(0, |b| {
        u64::from_ne_bytes(b.try_into().expect("eight bytes"))
    })
}

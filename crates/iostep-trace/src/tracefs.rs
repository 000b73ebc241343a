//! The backend for kernels without BTF: tracepoints through a private tracefs instance.
//!
//! tracefs shows what each tracepoint prints and nothing behind it, so a bio's pages stay
//! unknown: [`Event::Queue`] has one segment of unknown content. Instead, ext4's own events tell
//! where each part of a file lies ([`Event::Extent`]) and who wrote it ([`Event::Dirty`]); the
//! analysis joins them by block number and time. docs/backend-tracefs.md compares the two
//! backends.
//!
//! Nothing of the machine's other tracing is touched: the instance has its own buffers, events
//! and filters, is named after this process, and goes with [`Tracefs`]. One that a killed
//! process left behind is removed at the next start.

mod files;
mod flush;
mod format;
mod function;
mod handle;
mod hooks;
mod inspect;
mod instance;
mod log;
mod mount;
mod names;
mod needs;
mod processes;
mod ring;
mod scope;
mod seen;
mod sums;
mod syncs;
mod translate;
mod writes;

use iostep_model::event::Event;

use crate::error::{Error, Result};
use crate::sums::Sums;
use crate::target::Target;
use crate::tracefs::files::Files;
use crate::tracefs::hooks::Decoders;
use crate::tracefs::instance::Instance;
use crate::tracefs::log::Log;
use crate::tracefs::needs::Needs;
use crate::tracefs::processes::Processes;
use crate::tracefs::scope::Scope;
use crate::tracefs::translate::{Record, Translator};
use iostep_model::clock::mono_ns;

/// Ring buffer of all CPUs together, by default. Each CPU has its part, and I/O rarely spreads
/// evenly.
pub const DEFAULT_BUFFER_BYTES: u64 = 128 << 20;

/// An event younger than this may still be on its way into another CPU's buffer.
const SETTLE_NS: u64 = 2_000_000;

/// A recording through tracefs.
#[derive(Debug)]
pub struct Tracefs {
    instance: Instance,
    decoders: Decoders,
    translator: Translator,
    /// Decoded, but too young to be sure of their order.
    young: Vec<Record>,
    damaged_pages: u64,
}

/// What a trace of a target by tracefs does not tell, a sentence each.
pub fn notes(target: &Target) -> Vec<String> {
    let parts = target.volumes.len();
    let is_whole = parts > 0;
    let note = is_whole.then(|| {
        format!(
            "not known: what is of which filesystem, and whose; tracefs sees {} with its {parts} \
             partitions as one device; name one of them, or trace with BPF",
            target.title()
        )
    });
    note.into_iter().collect()
}

impl Tracefs {
    /// Starts recording `target`, with `buffer_bytes` of ring buffer for all CPUs together.
    ///
    /// Errors: `Io` if tracefs cannot be reached (not root) or an instance cannot be made;
    /// `Unsupported` if this kernel lacks the block layer's tracepoints.
    pub fn start(target: &Target, buffer_bytes: u64) -> Result<Tracefs> {
        if target.has_several() {
            return Err(Error::unsupported(
                target.title(),
                "it has several devices, or devices below it, which tracefs cannot follow; trace it \
                 with BPF",
            ));
        }
        let scope = Scope::of(target);
        let instance = Instance::create(buffer_bytes)?;
        let decoders = Decoders::enable(&instance, &scope)?;
        let files = Files::new(scope.mount_point.clone(), scope.filesystem(), mono_ns());
        instance.record(true)?;
        // With recording on: whoever comes or goes during the scan is in the records.
        let processes = Processes::scan();
        let partition = scope.is_partition();
        let needs = Needs::new(function::code_of("ext4_dirty_inode"));
        let kinds = decoders.syscalls;
        let log = scope.filesystem().and_then(|_| {
            let start_sector = target.device.start_sector;
            Log::find(target.node(), start_sector)
        });
        let translator = Translator::new(processes, files, needs, log, kinds, partition);
        Ok(Tracefs {
            instance,
            decoders,
            translator,
            young: Vec::new(),
            damaged_pages: 0,
        })
    }

    /// Takes what was recorded since the last call, in the order of time; call it every 100 ms.
    ///
    /// Three kinds of event carry a time before those already given: extents that a file had
    /// before the trace (the time of [`Tracefs::start`]), the start of a `sync` or `syncfs` that
    /// turned out to concern this filesystem, and the first name of a file.
    ///
    /// Errors: `Io`.
    pub fn drain(&mut self, emit: &mut dyn FnMut(Event)) -> Result<()> {
        let settled_ns = mono_ns().saturating_sub(SETTLE_NS);
        self.take(settled_ns, emit)
    }

    fn take(&mut self, until_ns: u64, emit: &mut dyn FnMut(Event)) -> Result<()> {
        let mut records = std::mem::take(&mut self.young);
        let (decoders, damaged_pages) = (&self.decoders, &mut self.damaged_pages);
        self.instance.read_pages(&mut |_cpu, shape, page| {
            let mut page = shape.records(page);
            for (mono_ns, record) in page.by_ref() {
                let decoded = decoders.decode(record);
                records.extend(decoded.map(|(pid, seen)| (mono_ns, pid, seen)));
            }
            *damaged_pages += u64::from(page.damaged);
        })?;
        // Each CPU's records are sorted already; the sort merges these runs.
        records.sort_by_key(|(mono_ns, ..)| *mono_ns);
        let young = records.partition_point(|(mono_ns, ..)| *mono_ns < until_ns);
        self.young = records.split_off(young);
        self.translator.batch(records, emit);
        Ok(())
    }

    /// Sums over everything recorded until now, after handing it to `emit`.
    ///
    /// Errors: `Io`.
    pub fn sums(&mut self, emit: &mut dyn FnMut(Event)) -> Result<Sums> {
        self.take(u64::MAX, emit)?;
        Ok(self.translator.sums())
    }

    /// How many events found no room so far, or lay in a page that could not be read (counted
    /// as one).
    ///
    /// Errors: `Io`.
    pub fn lost(&self) -> Result<u64> {
        Ok(self.instance.lost()? + self.damaged_pages)
    }

    /// Stops recording, takes the rest, and removes the instance. Returns how many events were
    /// lost.
    ///
    /// Errors: `Io`.
    pub fn stop(mut self, emit: &mut dyn FnMut(Event)) -> Result<u64> {
        self.instance.record(false)?;
        self.take(u64::MAX, emit)?;
        self.translator.finish(mono_ns(), emit);
        self.lost()
    }
}

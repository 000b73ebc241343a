//! Keeps a ring full.

use io_uring::squeue;
use iostep_model::bench::{Access, Step, Transfer};

use super::ring::{RecordTransfer, Ring, Wait};
use crate::engine::{Fault, Thread};
use crate::file::region::Region;
use crate::file::sync::{self, Fsync, Group, with_call};
use iostep_model::clock::mono_ns;

/// The last stretch before a moment is waited for awake, as [`crate::engine::sleep_until`] does.
const SPIN_NS: u64 = 100_000;

/// An operation under way.
#[derive(Clone, Debug, Default)]
struct Operation {
    /// Its number in the thread, from 1.
    sequence: u64,
    /// When it was submitted.
    begin_ns: u64,
    offset_bytes: u64,
    buffer: u32,
    done_bytes: u32,
    is_transferring: bool,
    /// The sync that follows, and when the transfer ended.
    sync: Option<(squeue::Entry, u64)>,
}

/// Whether an operation was begun.
enum Begun {
    Now,
    /// Something has to complete before.
    Later,
    Never,
}

/// What keeps the ring full.
pub struct Pump<'a> {
    region: &'a mut Region,
    ring: Ring,
    flags: i32,
    writes: bool,
    operations: Vec<Operation>,
    /// Numbers of operations that are not under way.
    free: Vec<u32>,
    /// Numbers of operations that the kernel has not been told of.
    fresh: Vec<u32>,
    group: Group,
    /// Offsets that were given out and are done or under way.
    given: u64,
    /// One that was given out too early.
    held_back: Option<u64>,
    is_over: bool,
    fault: Option<Fault>,
}

impl<'a> Pump<'a> {
    /// Works off a region by a ring that was made for it.
    pub fn new(region: &'a mut Region, ring: Ring) -> Pump<'a> {
        let job = &region.job;
        let flag = |wanted: bool, flag: i32| if wanted { flag } else { 0 };
        Pump {
            flags: sync::write_flags(job.sync)
                | flag(job.transfer == Transfer::DontCache, libc::RWF_DONTCACHE)
                | flag(job.atomic, libc::RWF_ATOMIC),
            writes: job.access.writes(),
            operations: vec![Operation::default(); job.depth as usize],
            free: (0..job.depth).rev().collect(),
            fresh: Vec::with_capacity(job.depth as usize),
            group: Group::new(job.sync_every),
            given: 0,
            held_back: None,
            is_over: false,
            fault: None,
            region,
            ring,
        }
    }

    /// Works until all is done or an operation failed; what is under way then is waited for.
    pub fn run(mut self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        loop {
            let wait = self.fill(thread);
            if self.ring.under_way() == 0 {
                break;
            }
            self.date_fresh();
            if let Err(error) = self.ring.enter(wait) {
                return Err(self.region.fault("io_uring_enter for operations", error));
            }
            let now_ns = mono_ns();
            while let Some((number, result)) = self.ring.completed() {
                if let Err(fault) = self.completed(thread, number as u32, result, now_ns) {
                    // Others may have begun since.
                    let sequence = self.operations[number as usize].sequence;
                    self.fail(Fault {
                        operation: Some(sequence),
                        ..fault
                    });
                }
            }
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => self.finish(thread),
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
        self.is_over = true;
    }

    /// Begins operations until the depth is reached, or the next one has to wait. The answer says
    /// for what to wait.
    fn fill(&mut self, thread: &mut Thread<'_>) -> Wait {
        while !self.is_over && !self.free.is_empty() {
            if self.ring.under_way() > 0 {
                if self.must_drain() {
                    return Wait::Completion;
                }
                let next_ns = thread.next_begin_ns();
                let now_ns = if next_ns == 0 { 0 } else { mono_ns() };
                if next_ns > now_ns {
                    return Wait::AtMost((next_ns - now_ns).saturating_sub(SPIN_NS));
                }
            }
            match self.begin(thread) {
                Ok(Begun::Now) => {}
                Ok(Begun::Later) => return Wait::Completion,
                Ok(Begun::Never) => self.is_over = true,
                Err(fault) => self.fail(fault),
            }
        }
        Wait::Completion
    }

    /// An append that starts over empties the file.
    fn must_drain(&self) -> bool {
        let pass = self.region.offsets.pass_operations();
        self.region.job.access == Access::Append && self.given.is_multiple_of(pass)
    }

    /// Begins the next operation.
    fn begin(&mut self, thread: &mut Thread<'_>) -> std::result::Result<Begun, Fault> {
        let offset_bytes = match self.held_back.take() {
            Some(offset_bytes) => offset_bytes,
            None => match self.region.next(thread)? {
                Some(offset_bytes) => offset_bytes,
                None => return Ok(Begun::Never),
            },
        };
        if self.collides(offset_bytes) {
            self.held_back = Some(offset_bytes);
            return Ok(Begun::Later);
        }
        self.given += 1;
        let buffer = self.ring.take_buffer(offset_bytes);
        if self.writes {
            let sequence = self.region.tally.writes + 1;
            self.ring
                .payload()
                .stamp(buffer as usize, offset_bytes, sequence);
        }
        let Some(begin_ns) = thread.begin() else {
            self.ring.give_back(buffer);
            return Ok(Begun::Never);
        };
        self.region.tally.writes += u64::from(self.writes);
        let number = self.free.pop().expect("the caller looked");
        self.operations[number as usize] = Operation {
            sequence: thread.begun(),
            begin_ns,
            offset_bytes,
            buffer,
            done_bytes: 0,
            is_transferring: true,
            sync: None,
        };
        self.fresh.push(number);
        self.transfer(number);
        Ok(Begun::Now)
    }

    /// Which of two writes to one place is the last would be anybody's guess, and what is
    /// verified is not left to that.
    fn collides(&self, offset_bytes: u64) -> bool {
        let collides =
            |other: &Operation| other.is_transferring && other.offset_bytes == offset_bytes;
        self.writes && self.region.job.measurement.verify && self.operations.iter().any(collides)
    }

    fn transfer(&mut self, number: u32) {
        let operation = &self.operations[number as usize];
        let transfer = RecordTransfer {
            writes: self.writes,
            buffer: operation.buffer,
            done_bytes: operation.done_bytes,
            offset_bytes: operation.offset_bytes,
            flags: self.flags,
        };
        self.ring.transfer(transfer, u64::from(number));
    }

    /// Several operations are submitted by one call: none of them waits for the stamping of the
    /// others.
    fn date_fresh(&mut self) {
        if self.fresh.len() > 1 {
            let now_ns = mono_ns();
            for &number in &self.fresh {
                self.operations[number as usize].begin_ns = now_ns;
            }
        }
        self.fresh.clear();
    }

    /// Takes the result of an operation's entry.
    fn completed(
        &mut self,
        thread: &mut Thread<'_>,
        number: u32,
        result: i32,
        now_ns: u64,
    ) -> std::result::Result<(), Fault> {
        let operation = &mut self.operations[number as usize];
        if result == -libc::EINTR || result == -libc::EAGAIN {
            self.go_on(number);
            return Ok(());
        }
        if let Some((_, begin_ns)) = &operation.sync {
            if result < 0 {
                let name = sync::name(self.region.job.sync);
                return Err(self.region.fault(name, reason(result)));
            }
            thread.step(Step::Sync, now_ns - begin_ns);
            self.end(thread, number, now_ns);
            return Ok(());
        }
        if result <= 0 {
            let what = if self.writes { "write" } else { "read" };
            let reason = match result {
                0 => format!("it ended after {} bytes", operation.done_bytes),
                _ => reason(result).to_string(),
            };
            return Err(self
                .region
                .record_fault(what, operation.offset_bytes, reason));
        }
        operation.done_bytes += result as u32;
        if u64::from(operation.done_bytes) < self.region.job.record_bytes {
            self.go_on(number);
            return Ok(());
        }
        self.transferred(thread, number, now_ns)
    }

    /// Submits an operation again, or its rest, unless all is over because of another.
    fn go_on(&mut self, number: u32) {
        if self.fault.is_some() {
            return;
        }
        match &self.operations[number as usize].sync {
            Some((sync, _)) => self.ring.push(sync.clone(), u64::from(number)),
            None => self.transfer(number),
        }
    }

    fn transferred(
        &mut self,
        thread: &mut Thread<'_>,
        number: u32,
        now_ns: u64,
    ) -> std::result::Result<(), Fault> {
        let job = &self.region.job;
        let operation = &mut self.operations[number as usize];
        operation.is_transferring = false;
        let step = if self.writes { Step::Write } else { Step::Read };
        thread.step(step, now_ns - operation.begin_ns);
        let due = if self.writes {
            let range = self.group.wrote(operation.offset_bytes, job.record_bytes);
            range.and_then(|range| Some((sync::entry(job.sync, &range)?, range)))
        } else {
            None
        };
        match due {
            None => self.end(thread, number, now_ns),
            // It would not be durable, so it did not succeed.
            Some(_) if self.fault.is_some() => {}
            // A polled ring takes no sync.
            Some((_, range)) if job.polled => {
                let end_ns = with_call!(job.sync, call => {
                    self.region.sync(thread, &call, range, now_ns)?
                });
                self.end(thread, number, end_ns);
            }
            Some((sync, _)) => {
                self.ring.push(sync.clone(), u64::from(number));
                operation.sync = Some((sync, now_ns));
            }
        }
        Ok(())
    }

    fn end(&mut self, thread: &mut Thread<'_>, number: u32, end_ns: u64) {
        let &Operation {
            begin_ns,
            offset_bytes,
            buffer,
            ..
        } = &self.operations[number as usize];
        thread.step(Step::Total, end_ns - begin_ns);
        thread.end(begin_ns, end_ns, self.region.job.record_bytes);
        if !self.writes && self.region.job.measurement.verify {
            let record = self.ring.payload().slot(buffer as usize);
            self.region.compare_read(record, offset_bytes);
        }
        self.ring.give_back(buffer);
        self.free.push(number);
    }

    /// Nothing is under way any more.
    fn finish(self, thread: &mut Thread<'_>) -> std::result::Result<(), Fault> {
        if !self.writes {
            return Ok(());
        }
        with_call!(self.region.job.sync, call => self.region.finish(thread, &call, self.group, &Fsync))
    }
}

fn reason(result: i32) -> std::io::Error {
    std::io::Error::from_raw_os_error(result.saturating_neg())
}

//! Bios that were queued before the programs were there: how long they may still come.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use iostep_model::clock::mono_ns;
use libbpf_rs::{Iter, Link, MapCore, MapFlags};

use super::programs::IostepLinks;
use crate::error::{Error, Result};

/// A thread can be stopped between the tracepoint and what tells that it submits: not for so long.
const AT_LEAST: Duration = Duration::from_secs(1);
/// How long a program may take from the first look at the clock to the second.
const BETWEEN_CLOCKS: Duration = Duration::from_millis(1);
/// How long it may take to tell the programs of a moment.
const TO_TELL: Duration = Duration::from_millis(20);
/// How often the threads are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// `PROC_PID_INIT_INO` of include/linux/proc_ns.h.
const FIRST_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// The programs that follow such bios, until it is dropped.
#[derive(Debug)]
pub(super) struct Older {
    _on_get_request: Option<Link>,
    /// Lists the threads that may have one; `None` where it cannot list all.
    threads: Option<Link>,
    looked: Instant,
    since: Instant,
}

/// Lets the programs remember who queues bios, and gives the moment from which each bio is waited for.
///
/// It is a little later than when they begin to: they look at the clock once for that, and once more
/// for the bio. What is queued in between and waits for its request until the trace has begun would
/// be missed; that wait would have to be a hundred times as long.
///
/// Errors: `Kernel`.
pub(super) fn wait_for_bios(map: &impl MapCore) -> Result<u64> {
    let from_ns = mono_ns() + TO_TELL.as_nanos() as u64;
    map.update(&0u32.to_ne_bytes(), &from_ns.to_ne_bytes(), MapFlags::ANY)
        .map_err(Error::kernel("write a BPF map"))?;
    Ok(from_ns.max(mono_ns()) + BETWEEN_CLOCKS.as_nanos() as u64)
}

impl Older {
    /// Takes the programs that are for nothing else. All programs are attached.
    pub(super) fn follow(links: &mut IostepLinks) -> Older {
        let now = Instant::now();
        let threads = links.list_older.take();
        Older {
            _on_get_request: links.on_get_request.take(),
            threads: threads.filter(|_| sees_all_threads()),
            looked: now,
            since: now,
        }
    }

    /// True if none is left. Where that cannot be known, none is ever: that costs two look-ups a bio.
    pub(super) fn is_over(&mut self) -> bool {
        if self.since.elapsed() < AT_LEAST || self.looked.elapsed() < INTERVAL {
            return false;
        }
        self.looked = Instant::now();
        self.threads.as_ref().is_some_and(is_empty)
    }
}

/// True if an iterator lists the threads of all PID namespaces: it lists those of its reader's.
fn sees_all_threads() -> bool {
    std::fs::metadata("/proc/self/ns/pid").is_ok_and(|it| it.ino() == FIRST_PID_NAMESPACE)
}

/// True if an iterator was read and had nothing to say.
fn is_empty(threads: &Link) -> bool {
    let iterator = Iter::new(threads);
    iterator.is_ok_and(|mut all| all.read(&mut [0; 64]).is_ok_and(|bytes| bytes == 0))
}

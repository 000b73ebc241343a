//! From events to tables: which request a bio became, whose bytes it carried, and which sync
//! call made it necessary.
//!
//! Two passes over the events. The first learns names, sync calls and commits, whose causes are
//! only known when they are over; the second follows every bio to its request.

mod btrfs;
mod causes;
mod classifiers;
mod classify;
mod dirtiers;
mod ext4;
mod extents;
mod f2fs;
mod file_type;
mod flushes;
mod homes;
mod layers;
pub mod log_image;
mod names;
mod nilfs2;
pub mod owner_map;
mod recut;
mod requests;
mod runs;
pub mod volumes;
mod waiting;
mod xfs;

use iostep_model::event::{Event, IoRef, Marker};
use iostep_model::manifest::Manifest;
use iostep_model::table::{MarkerRow, Phase, Trace};

use causes::Causes;
use classifiers::Classifiers;
use names::Names;
use requests::Requests;
use volumes::Places;

/// Turns a recording into tables.
///
/// The events are in the order of recording. Nothing is dropped: bytes that no rule explains
/// become segments of class `unknown`, and a request whose bio was not seen has one such segment.
pub fn assemble(manifest: Manifest, events: &[Event]) -> Trace {
    let names = Names::learn_at(&Places::of(&manifest), events);
    let causes = Causes::learn(&manifest, &names, events);
    let phases = Phases::learn(events);
    let mut classifier = Classifiers::new(&manifest, &names, events);
    let mut requests = Requests::new(&manifest, &names, &causes, &phases);
    for event in events {
        let Some((device, io)) = event.io() else {
            match event {
                Event::Remap(remap) => requests.remap(remap),
                _ => classifier.observe(event),
            }
            continue;
        };
        match io {
            IoRef::Queue(queue) => {
                let segments = match requests.is_ours(device) {
                    _ if !queue.operation.has_place_at(queue.sector) => Vec::new(),
                    true => classifier.segments(device, queue),
                    false => layers::foreign(queue.bytes),
                };
                requests.queue(device, queue, segments);
            }
            IoRef::Issue(transfer) => requests.issue(device, transfer),
            IoRef::Requeue(transfer) => requests.requeue(device, transfer),
            IoRef::Complete(completion) => requests.complete(device, completion),
        }
    }
    let (requests, segments) = requests.finish();
    let (syncs, commits) = causes.into_tables();
    let (files, processes) = names.into_tables();
    Trace {
        manifest,
        requests,
        segments,
        files,
        processes,
        syncs,
        commits,
        markers: markers(events),
    }
}

fn markers(events: &[Event]) -> Vec<MarkerRow> {
    let mut rows: Vec<MarkerRow> = events
        .iter()
        .filter_map(|event| match event {
            Event::Marker { mono_ns, marker } => Some(MarkerRow {
                mono_ns: *mono_ns,
                marker: marker.clone(),
            }),
            _ => None,
        })
        .collect();
    rows.sort_by_key(|row| row.mono_ns);
    rows
}

/// When the command ended and when settling began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Phases {
    command_end_ns: Option<u64>,
    settle_start_ns: Option<u64>,
}

impl Phases {
    fn learn(events: &[Event]) -> Phases {
        let mut phases = Phases::default();
        for event in events {
            let Event::Marker { mono_ns, marker } = event else {
                continue;
            };
            match marker {
                Marker::CommandEnd => phases.command_end_ns = Some(*mono_ns),
                Marker::SettleStart => phases.settle_start_ns = Some(*mono_ns),
                _ => {}
            }
        }
        phases
    }

    /// The phase of an I/O that was queued at `mono_ns`.
    pub(crate) fn at(&self, mono_ns: u64) -> Phase {
        if self.settle_start_ns.is_some_and(|start| mono_ns >= start) {
            Phase::Settle
        } else if self.command_end_ns.is_some_and(|end| mono_ns >= end) {
            Phase::After
        } else {
            Phase::Run
        }
    }
}

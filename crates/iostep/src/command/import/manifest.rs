//! The manifest of an imported trace: what can be told of a device that was never seen.

use iostep_fs::Found;
use iostep_model::event::{Completion, Event};
use iostep_model::host::Host;
use iostep_model::manifest::{
    Backend, Check, Clocks, Counters, Device, Filesystem, Holds, Manifest, SCHEMA_VERSION, State,
    Volume,
};
use iostep_model::{Flags, Operation, SECTOR_BYTES};
use iostep_trace::blkparse::{LeftOut, Recording};

use super::image::{Image, Images};
use crate::version;

/// No process of the recorded machine was iostep; 0 would be the idle task.
const NO_TRACER: u32 = u32::MAX;

/// What the text does not tell of the recorded machine.
const UNKNOWN: &str = "unknown";

/// The manifest of a recording on a filesystem, or on several.
pub(super) fn of(recording: &Recording, images: &Images) -> Manifest {
    let check = check(recording);
    let only = images.all.first().filter(|_| !images.are_several);
    let several = images.all.iter().filter(|_| images.are_several);
    Manifest {
        schema_version: SCHEMA_VERSION,
        iostep_version: version::NUMBER.to_owned(),
        state: State::Complete,
        backend: Backend::Import,
        host: Host {
            kernel: UNKNOWN.to_owned(),
            machine: UNKNOWN.to_owned(),
            ..Host::default()
        },
        devices: Vec::new(),
        disks: Vec::new(),
        device: device(recording, images, &check),
        filesystem: only.and_then(|image| image.found.as_ref()).map(filesystem),
        volumes: several.map(volume).collect(),
        clocks: Clocks {
            mono_ns: recording.start_ns,
            wall_ns: 0,
        },
        end_mono_ns: None,
        command: None,
        tracer_tgid: NO_TRACER,
        check,
        interrupts: Vec::new(),
    }
}

/// The device as far as the images reach: the only one's part of it, or all of it.
fn device(recording: &Recording, images: &Images, check: &Check) -> Device {
    let (start_bytes, size_bytes) = match images.all.first().filter(|_| !images.are_several) {
        Some(image) => (image.start_bytes, image.size_bytes),
        None => (
            0,
            images.all.iter().map(Image::end_bytes).max().unwrap_or(0),
        ),
    };
    let (major, minor) = recording.device;
    let is_fua = |event: &Event| matches!(event, Event::Issue(t) if t.flags.has(Flags::FUA));
    Device {
        name: recording
            .device_name
            .clone()
            .unwrap_or_else(|| format!("{major},{minor}")),
        major,
        minor,
        start_sector: start_bytes / SECTOR_BYTES,
        sectors: size_bytes / SECTOR_BYTES,
        // The kernel flushes only what has a cache, and passes FUA on only where it is known.
        volatile_write_cache: Some(check.issued.flush.ios > 0),
        fua: Some(recording.events.iter().any(is_fua)),
        ..Device::default()
    }
}

fn volume(image: &Image) -> Volume {
    Volume {
        name: image.name.clone(),
        title: None,
        device: 0,
        start_sector: image.start_bytes / SECTOR_BYTES,
        sectors: image.size_bytes / SECTOR_BYTES,
        holds: Holds::Filesystem,
        part_of: None,
        filesystem: image.found.as_ref().map(filesystem),
    }
}

fn filesystem(found: &Found) -> Filesystem {
    Filesystem {
        kind: found.kind.name().to_owned(),
        block_bytes: found.block_bytes,
        size_bytes: Some(found.size_bytes),
        layout: found.layout.clone(),
        ..Filesystem::default()
    }
}

/// The sums of the text. The device's own counters are not known, so nothing can disagree with
/// them; what blkparse skipped is lost.
fn check(recording: &Recording) -> Check {
    let mut check = Check {
        merges: recording.ledger.left_out(LeftOut::Merge),
        lost_events: recording.skipped,
        unrecorded: recording.unrecorded.clone(),
        ..Check::default()
    };
    for event in &recording.events {
        match event {
            Event::Queue(bio) => check.queued.add(bio.operation, bio.bytes.into()),
            Event::Issue(t) => check.issued.add(t.operation, t.bytes.into()),
            Event::Requeue(t) => subtract(&mut check.issued, t.operation, t.bytes.into()),
            Event::Complete(completion) => complete(&mut check.completed, completion),
            Event::Split { .. } => check.splits += 1,
            _ => {}
        }
    }
    let (issued, completed) = (bytes(&check.issued), bytes(&check.completed));
    check.in_flight_before_bytes = completed.saturating_sub(issued);
    check.in_flight_after_bytes = issued.saturating_sub(completed);
    check
}

fn complete(sums: &mut Counters, completion: &Completion) {
    let transfer = &completion.transfer;
    match transfer.operation == Operation::Flush || !completion.in_flush_sequence {
        true => sums.add(transfer.operation, transfer.bytes.into()),
        false => sums.add_part(transfer.operation, transfer.bytes.into()),
    }
}

fn bytes(sums: &Counters) -> u64 {
    sums.read.bytes + sums.write.bytes + sums.discard.bytes
}

fn subtract(sums: &mut Counters, operation: Operation, bytes: u64) {
    if let Some(totals) = sums.totals(operation) {
        totals.ios = totals.ios.saturating_sub(1);
        totals.bytes = totals.bytes.saturating_sub(bytes);
    }
}

//! What stands at the top of a trace's page.

use iostep_model::manifest::{Manifest, State};
use iostep_report::document::Fact;
use iostep_report::quantity::{bytes, count, duration, percent};

use crate::report::disk;
use crate::stats::Summary;

/// The few numbers that matter most.
pub(super) fn totals(summary: &Summary) -> Vec<(&'static str, String)> {
    let all = summary.all();
    let joj = &summary.joj;
    let written = joj.data_bytes + joj.journal_bytes + joj.metadata_bytes;
    let amplification = match joj.data_bytes {
        0 => "-".to_owned(),
        data => format!("{:.1}", written as f64 / data as f64),
    };
    vec![
        ("written", bytes(all.write.bytes)),
        ("read", bytes(all.read.bytes)),
        ("writes", count(all.write.requests)),
        ("reads", count(all.read.requests)),
        ("flushes", count(summary.barriers.flushes)),
        ("FUA writes", count(summary.barriers.fua_writes)),
        ("journaling of journal", percent(joj.joj_share)),
        ("written per byte of data", amplification),
        ("duration", duration(summary.overview.duration_ns)),
    ]
}

/// What was traced, and by what.
pub(super) fn facts(manifest: &Manifest) -> Vec<Fact> {
    let mut facts = vec![Fact::of("device", device(manifest))];
    facts.extend(disk::line(&manifest.disks).map(|disks| Fact::of("disk", disks)));
    facts.extend(disk::health(&manifest.disks).map(|health| Fact::of("health", health)));
    for (volume, fs) in manifest.filesystems() {
        let lies_on = volume.map_or("an image", |volume| volume.title());
        let place = match (fs.mount_point.as_str(), volume) {
            ("", _) => lies_on.to_owned(),
            (place, None) => place.to_owned(),
            (place, Some(volume)) => format!("{place}, {}", volume.title()),
        };
        facts.push(Fact::of("filesystem", format!("{} on {place}", fs.kind)));
        facts.push(Fact::of("options", &fs.options));
    }
    if manifest.filesystems().next().is_none() {
        facts.push(Fact::of("filesystem", "none found"));
    }
    let host = &manifest.host;
    let mut kernel = format!("Linux {} {}", host.kernel, host.machine);
    if let Some(build) = &host.android {
        kernel.push_str(&format!(", {}", disk::android(build)));
    }
    let state = match manifest.state {
        State::Complete => "",
        State::Recovered => ", recovered: the recorder was killed",
        State::Recording => ", not finished",
    };
    let backend = manifest.backend.name();
    let recorded = format!("{backend} by iostep {}{state}", manifest.iostep_version);
    facts.extend([Fact::of("kernel", kernel), Fact::of("recorded", recorded)]);
    facts
}

fn device(manifest: &Manifest) -> String {
    let device = &manifest.device;
    let cache = match (device.volatile_write_cache, device.fua) {
        (None, _) => "write cache unknown",
        (Some(false), _) => "no volatile write cache",
        (Some(true), Some(true)) => "volatile write cache, FUA",
        (Some(true), _) => "volatile write cache",
    };
    let blocks = device.logical_block_bytes;
    let blocks = blocks.map_or("unknown size".into(), |bytes| format!("{bytes} bytes"));
    let size = bytes(device.sectors.saturating_mul(iostep_model::SECTOR_BYTES));
    format!(
        "{} ({}:{}), {size}, blocks of {blocks}, {cache}, scheduler {}",
        manifest.device_label(),
        device.major,
        device.minor,
        device.scheduler.as_deref().unwrap_or("unknown")
    )
}

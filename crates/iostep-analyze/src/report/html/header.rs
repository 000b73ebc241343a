//! The top of the page: what was traced, and whether the numbers can be trusted.

use iostep_model::manifest::{Command, Manifest, State};

use crate::report::quantity;
use crate::stats::Summary;

/// A name and its value.
pub(super) struct Fact {
    pub name: &'static str,
    pub value: String,
}

/// What stands at the top.
pub(super) struct Header {
    pub title: String,
    pub iostep_version: String,
    /// Why the trace cannot be trusted; empty if it can.
    pub alarms: Vec<String>,
    pub facts: Vec<Fact>,
    /// The few numbers that matter most.
    pub totals: Vec<Fact>,
}

impl Header {
    pub(super) fn of(manifest: &Manifest, summary: &Summary) -> Header {
        Header {
            title: title(manifest),
            iostep_version: manifest.iostep_version.clone(),
            alarms: alarms(manifest),
            facts: facts(manifest),
            totals: totals(summary),
        }
    }
}

fn totals(summary: &Summary) -> Vec<Fact> {
    let all = summary.all();
    let joj = &summary.joj;
    let written = joj.data_bytes + joj.journal_bytes + joj.metadata_bytes;
    let amplification = (joj.data_bytes > 0).then(|| written as f64 / joj.data_bytes as f64);
    let share = quantity::percent(joj.joj_share);
    let barriers = &summary.barriers;
    [
        ("written", quantity::bytes(all.write.bytes)),
        ("read", quantity::bytes(all.read.bytes)),
        ("writes", quantity::count(all.write.requests)),
        ("reads", quantity::count(all.read.requests)),
        ("flushes", quantity::count(barriers.flushes)),
        ("FUA writes", quantity::count(barriers.fua_writes)),
        ("journaling of journal", share),
        (
            "written per byte of data",
            amplification.map_or_else(|| "-".to_owned(), |by| format!("{by:.1}")),
        ),
        ("duration", quantity::duration(summary.overview.duration_ns)),
    ]
    .into_iter()
    .map(|(name, value)| Fact { name, value })
    .collect()
}

fn title(manifest: &Manifest) -> String {
    let device = manifest.device_label();
    match &manifest.command {
        Some(command) => format!("{device}: {}", command.argv.join(" ")),
        None => device,
    }
}

fn alarms(manifest: &Manifest) -> Vec<String> {
    let check = &manifest.check;
    let mut alarms = Vec::new();
    if check.lost_events > 0 {
        alarms.push(format!("{} events were lost", check.lost_events));
    }
    alarms.extend(check.differences.iter().cloned());
    alarms
}

fn facts(manifest: &Manifest) -> Vec<Fact> {
    let mut facts = vec![Fact {
        name: "device",
        value: device(manifest),
    }];
    let mut add = |name, value| facts.push(Fact { name, value });
    match &manifest.filesystem {
        Some(fs) => {
            let place = if fs.mount_point.is_empty() {
                "an image".to_owned()
            } else {
                fs.mount_point.clone()
            };
            add("filesystem", format!("{} on {place}", fs.kind));
            add("options", fs.options.clone());
        }
        None => add("filesystem", "none found".to_owned()),
    }
    for note in &manifest.check.notes {
        add("note", note.clone());
    }
    add(
        "kernel",
        format!("Linux {} {}", manifest.kernel, manifest.machine),
    );
    if let Some(command) = &manifest.command {
        add(
            "command",
            format!("{}, {}", command.argv.join(" "), end_of(command)),
        );
    }
    add("recorded", recorded(manifest));
    add("self-check", check(manifest));
    facts
}

fn device(manifest: &Manifest) -> String {
    let device = &manifest.device;
    let cache = match (device.volatile_write_cache, device.fua) {
        (false, _) => "no volatile write cache",
        (true, false) => "volatile write cache",
        (true, true) => "volatile write cache, FUA",
    };
    let size = quantity::bytes(device.sectors.saturating_mul(iostep_model::SECTOR_BYTES));
    format!(
        "{} ({}:{}), {size}, blocks of {} bytes, {cache}, scheduler {}",
        manifest.device_label(),
        device.major,
        device.minor,
        device.logical_block_bytes,
        device.scheduler
    )
}

fn end_of(command: &Command) -> String {
    match (command.exit_status, command.signal) {
        (Some(status), _) => format!("exit status {status}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "still running at the end".to_owned(),
    }
}

fn recorded(manifest: &Manifest) -> String {
    let state = match manifest.state {
        State::Complete => "",
        State::Recovered => ", recovered: the recorder was killed",
        State::Recording => ", not finished",
    };
    format!(
        "{} by iostep {}{state}",
        manifest.backend.name(),
        manifest.iostep_version
    )
}

fn check(manifest: &Manifest) -> String {
    let check = &manifest.check;
    match (&check.device, check.passed()) {
        (_, false) => "failed, see above".to_owned(),
        (None, true) => "nothing lost; the device has no counters to compare with".to_owned(),
        (Some(_), true) => "passed: every sum equals the device's counters".to_owned(),
    }
}

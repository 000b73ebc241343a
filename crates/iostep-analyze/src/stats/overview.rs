//! What was traced, and whether the trace is whole.

use iostep_model::manifest::{Backend, Check, Manifest, State};
use iostep_model::table::Trace;
use serde::Serialize;

/// The head of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overview {
    /// Version of the iostep that took the trace.
    pub iostep_version: String,
    /// Whether the recording ended in order.
    pub state: State,
    /// How events were taken.
    pub backend: Backend,
    /// `uname -r`.
    pub kernel: String,
    /// The device's name below /dev.
    pub device: String,
    /// The device's size.
    pub device_bytes: u64,
    /// The filesystem's kind, if there is one.
    pub filesystem: Option<String>,
    pub mount_options: Option<String>,
    /// The command that was run.
    pub command: Option<Vec<String>>,
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Start of the recording, wall clock.
    pub start_wall_ns: u64,
    /// How long the recording took; where its end is not known, until the last event.
    pub duration_ns: u64,
    /// Requests in all tables, the tracer's own included.
    pub requests: u64,
    /// Requests that the device failed.
    pub failed_requests: u64,
    /// Requests that had not come back at the end.
    pub unfinished_requests: u64,
    /// True if nothing was lost and every sum agrees with the device's counters.
    pub passed: bool,
    /// Why not, in one line.
    pub complaint: Option<String>,
    /// The comparison in full.
    pub check: Check,
}

impl Overview {
    /// Looks at the manifest and at the requests' times and results.
    pub fn of(trace: &Trace) -> Overview {
        let manifest = &trace.manifest;
        let command = manifest.command.as_ref();
        let filesystem = manifest.filesystem.as_ref();
        let requests = || trace.requests.iter();
        Overview {
            iostep_version: manifest.iostep_version.clone(),
            state: manifest.state,
            backend: manifest.backend,
            kernel: manifest.host.kernel.clone(),
            device: manifest.device_label(),
            device_bytes: manifest
                .device
                .sectors
                .saturating_mul(iostep_model::SECTOR_BYTES),
            filesystem: kinds(manifest),
            mount_options: filesystem.map(|f| f.options.clone()),
            command: command.map(|c| c.argv.clone()),
            exit_status: command.and_then(|c| c.exit_status),
            signal: command.and_then(|c| c.signal),
            start_wall_ns: manifest.clocks.wall_ns,
            duration_ns: manifest
                .end_mono_ns
                .unwrap_or_else(|| last_ns(trace))
                .saturating_sub(manifest.clocks.mono_ns),
            requests: trace.requests.len() as u64,
            failed_requests: requests().filter(|r| r.status != 0).count() as u64,
            unfinished_requests: requests().filter(|r| r.complete_ns.is_none()).count() as u64,
            passed: manifest.check.passed(),
            complaint: complaint(&manifest.check),
            check: manifest.check.clone(),
        }
    }
}

/// The filesystem, or all of several.
fn kinds(manifest: &Manifest) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for (_, filesystem) in manifest.filesystems() {
        if !kinds.contains(&&filesystem.kind[..]) {
            kinds.push(&filesystem.kind);
        }
    }
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

fn last_ns(trace: &Trace) -> u64 {
    let requests = trace.requests.iter();
    let requests = requests.map(|r| r.complete_ns.unwrap_or(r.issue_ns));
    let syncs = trace.syncs.iter().map(|s| s.exit_ns.unwrap_or(s.enter_ns));
    let markers = trace.markers.iter().map(|m| m.mono_ns);
    requests.chain(syncs).chain(markers).max().unwrap_or(0)
}

/// A failed self-check in one line; nothing if it passed.
pub fn complaint(check: &Check) -> Option<String> {
    if check.passed() {
        return None;
    }
    let mut parts = Vec::new();
    match check.lost_events {
        0 => {}
        1 => parts.push("lost 1 event".to_owned()),
        lost => parts.push(format!("lost {lost} events")),
    }
    parts.extend(check.differences.iter().cloned());
    Some(parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_every_difference() {
        let mut check = Check::default();
        assert_eq!(complaint(&check), None);
        check.lost_events = 312;
        check
            .differences
            .push("device counted 40960 bytes more".into());
        let expected = "lost 312 events; device counted 40960 bytes more";
        assert_eq!(complaint(&check).as_deref(), Some(expected));
    }
}

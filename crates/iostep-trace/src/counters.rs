//! The device's own counters, and the comparison with ours.

use std::fs;

use iostep_model::SECTOR_BYTES;
use iostep_model::manifest::{Check, Counters, Totals};

use crate::bpf::Sums;
use crate::error::{Error, Result};
use crate::target::Target;

/// Reads the counters of the disk or partition.
///
/// Source: Documentation/block/stat.rst. Kernels before 5.5 have no flush fields; they read as 0.
/// Errors: `Io`; `Unsupported` if there are fewer fields than the oldest kernel had.
pub fn read(target: &Target) -> Result<Counters> {
    let path = target.sysfs.join("stat");
    let text = fs::read_to_string(&path).map_err(Error::io(&path, "read"))?;
    parse(&text)
        .ok_or_else(|| Error::unsupported(path.display(), format!("not a stat file: {text:?}")))
}

fn parse(text: &str) -> Option<Counters> {
    let fields: Vec<u64> = text
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<std::result::Result<_, _>>()
        .ok()?;
    if fields.len() < 11 {
        return None;
    }
    let field = |index: usize| fields.get(index).copied().unwrap_or(0);
    let totals = |ios: usize, sectors: usize| Totals {
        ios: field(ios),
        bytes: field(sectors).wrapping_mul(SECTOR_BYTES),
    };
    Some(Counters {
        read: totals(0, 2),
        write: totals(4, 6),
        discard: totals(11, 13),
        flush: Totals {
            ios: field(15),
            bytes: 0,
        },
    })
}

/// True if the device counts at all (`queue/iostats`).
pub fn counts(target: &Target) -> bool {
    let path = target.disk_sysfs.join("queue/iostats");
    fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

/// One moment: the device's counters and the probe's sums, with nothing between them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// From sysfs; `None` where the device does not count.
    pub device: Option<Counters>,
    /// From the probe.
    pub sums: Sums,
    /// I/Os under way.
    pub in_flight: u64,
    /// System calls that nobody looked at.
    pub unseen_calls: u64,
}

/// Compares two snapshots. Every sum of the probe must equal the device's, but for what was
/// under way at either end.
pub fn compare(before: &Snapshot, after: &Snapshot, lost_events: u64) -> Check {
    let device = after
        .device
        .zip(before.device)
        .map(|(after, before)| after.since(before));
    let mut check = Check {
        device,
        queued: after.sums.queued.since(before.sums.queued),
        issued: after.sums.issued.since(before.sums.issued),
        completed: after.sums.completed.since(before.sums.completed),
        merges: after.sums.merges - before.sums.merges,
        splits: after.sums.splits - before.sums.splits,
        late_completions: after.sums.late - before.sums.late,
        unseen_calls: after.unseen_calls - before.unseen_calls,
        lost_events,
        ..Check::default()
    };
    let quiet = before.in_flight == 0 && after.in_flight == 0;
    for (name, of) in GROUPS {
        compare_group(&mut check, name, of, quiet);
    }
    check
}

type Group = fn(&Counters) -> Totals;

const GROUPS: [(&str, Group); 3] = [
    ("read", |c| c.read),
    ("written", |c| c.write),
    ("discarded", |c| c.discard),
];

fn compare_group(check: &mut Check, name: &str, of: Group, quiet: bool) {
    let completed = of(&check.completed).bytes;
    if let Some(device) = check.device {
        let counted = of(&device).bytes;
        if counted != completed {
            check.differences.push(format!(
                "{name}: the device counted {counted} bytes, {completed} were seen to complete"
            ));
        }
    }
    for (point, sum) in [("queued", &check.queued), ("issued", &check.issued)] {
        let seen = of(sum).bytes;
        if seen == completed {
            continue;
        }
        if quiet {
            check.differences.push(format!(
                "{name}: {seen} bytes were {point}, {completed} completed"
            ));
        } else if point == "queued" {
            check.in_flight_before_bytes += completed.saturating_sub(seen);
            check.in_flight_after_bytes += seen.saturating_sub(completed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "  10 1 80 3  20 2 400 7 0 9 11  5 0 640 1  6 2\n";

    fn at(writes_bytes: u64, in_flight: u64) -> Snapshot {
        let write = Totals {
            ios: writes_bytes / 4096,
            bytes: writes_bytes,
        };
        let counters = Counters {
            write,
            ..Counters::default()
        };
        Snapshot {
            device: Some(counters),
            sums: Sums {
                queued: counters,
                issued: counters,
                completed: counters,
                ..Sums::default()
            },
            in_flight,
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_fields_of_a_stat_file_are_found() {
        let counters = parse(STAT).expect("a stat file");
        assert_eq!(counters.read.bytes, 80 * 512);
        assert_eq!(counters.write.ios, 20);
        assert_eq!(counters.discard.bytes, 640 * 512);
        assert_eq!(counters.flush.ios, 6);
        assert!(parse("1 2 3").is_none());
    }

    #[test]
    fn equal_sums_pass() {
        assert!(compare(&at(0, 0), &at(8192, 0), 0).passed());
    }

    #[test]
    fn a_byte_that_the_device_counted_and_we_did_not_is_a_difference() {
        let mut after = at(8192, 0);
        after.device = at(12288, 0).device;
        let check = compare(&at(0, 0), &after, 0);
        assert!(!check.passed());
        assert!(check.differences[0].contains("12288"), "{check:?}");
    }

    #[test]
    fn lost_events_fail_the_check() {
        assert!(!compare(&at(0, 0), &at(8192, 0), 1).passed());
    }

    #[test]
    fn what_is_under_way_at_the_end_is_no_difference() {
        let mut after = at(8192, 1);
        after.sums.queued.write.bytes += 4096;
        after.sums.issued.write.bytes += 4096;
        let check = compare(&at(0, 0), &after, 0);
        assert!(check.passed(), "{check:?}");
        assert_eq!(check.in_flight_after_bytes, 4096);
    }
}

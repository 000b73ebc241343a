//! The device's own counters, read beside the probe's sums while both move.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iostep_model::SECTOR_BYTES;
use iostep_model::manifest::{Counters, Totals};

use crate::error::{Error, Result};
use crate::target::Target;

/// The counters of the disks, open to be read often.
#[derive(Debug)]
pub struct Device {
    stats: Vec<(PathBuf, File)>,
}

impl Device {
    /// Opens the counters of the disks, or of the partitions.
    ///
    /// Errors: `Io`.
    pub fn open(target: &Target) -> Result<Device> {
        let paths = target.disks().map(|disk| disk.sysfs.join("stat"));
        let open = |path: PathBuf| match File::open(&path) {
            Ok(stat) => Ok((path, stat)),
            Err(error) => Err(Error::io(&path, "read")(error)),
        };
        let stats: Result<_> = paths.map(open).collect();
        Ok(Device { stats: stats? })
    }

    /// Reads them; of several disks, the sums.
    ///
    /// Source: Documentation/block/stat.rst. Kernels before 5.5 have no flush fields; they read
    /// as 0. Errors: `Io`; `Unsupported` if there are fewer fields than the oldest kernel had.
    pub fn read(&self) -> Result<Counters> {
        let mut all = self.stats.iter().map(|(path, stat)| read_one(path, stat));
        all.try_fold(Counters::default(), |sum, one| Ok(sum.and(one?)))
    }
}

fn read_one(path: &Path, stat: &File) -> Result<Counters> {
    let mut bytes = [0; 1024];
    let length = stat
        .read_at(&mut bytes, 0)
        .map_err(Error::io(path, "read"))?;
    let text = String::from_utf8_lossy(&bytes[..length]);
    parse(&text)
        .ok_or_else(|| Error::unsupported(path.display(), format!("not a stat file: {text:?}")))
}

/// Reads the counters of the disks once.
///
/// Errors: those of [`Device`].
pub fn read(target: &Target) -> Result<Counters> {
    Device::open(target)?.read()
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

/// True if every disk counts at all (`queue/iostats`).
pub fn counts(target: &Target) -> bool {
    target.disks().all(|disk| {
        let path = disk.disk_sysfs.join("queue/iostats");
        fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
    })
}

/// How far the probe's sum of what completed is ahead of the device's own counters, which began
/// long before it: what counts is how this changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lead([i64; 8]);

impl Lead {
    /// The lead of `completed` before what the device counted.
    pub(crate) fn of(completed: &Counters, device: &Counters) -> Lead {
        let (seen, counted) = (words(completed), words(device));
        Lead(std::array::from_fn(|index| {
            seen[index].wrapping_sub(counted[index]) as i64
        }))
    }

    /// What was added since `earlier`.
    pub(crate) fn since(self, earlier: Lead) -> Lead {
        Lead(std::array::from_fn(|index| {
            self.0[index].wrapping_sub(earlier.0[index])
        }))
    }

    /// What was seen and not counted.
    pub(crate) fn excess(self) -> Counters {
        counters(self.0.map(|word| word.max(0).unsigned_abs()))
    }

    /// What was counted and not seen.
    pub(crate) fn missing(self) -> Counters {
        counters(self.0.map(|word| word.min(0).unsigned_abs()))
    }
}

fn words(counters: &Counters) -> [u64; 8] {
    let [read, write, discard, flush] = [
        counters.read,
        counters.write,
        counters.discard,
        counters.flush,
    ];
    [
        read.ios,
        read.bytes,
        write.ios,
        write.bytes,
        discard.ios,
        discard.bytes,
        flush.ios,
        flush.bytes,
    ]
}

fn counters(words: [u64; 8]) -> Counters {
    let group = |index: usize| Totals {
        ios: words[index],
        bytes: words[index + 1],
    };
    Counters {
        read: group(0),
        write: group(2),
        discard: group(4),
        flush: group(6),
    }
}

/// One reading of both, with nothing completed in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The probe's sum of what completed.
    pub(crate) completed: Counters,
    /// How many of them were told late until then.
    pub(crate) late: u64,
    /// How far it is ahead of the device.
    pub(crate) lead: Lead,
}

/// The last readings, each with another sum.
///
/// A request passes `block_rq_complete` before the device counts its bytes, and the request
/// itself is counted when all its bios have ended (`blk_update_request`, `blk_account_io_done` of
/// block/blk-mq.c, 6.12). So a single reading may be ahead by what is just between the two; what
/// most readings say is not. What is told late moves the lead for good: older readings say nothing then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readings {
    last: VecDeque<Reading>,
}

/// How many readings settle where the sums stand.
const READINGS: usize = 16;

impl Readings {
    /// Adds a reading. With the same sum as the last one, only what the last one missed can have
    /// been counted meanwhile.
    pub(crate) fn push(&mut self, reading: Reading) {
        match self.last.back() {
            Some(last) if last.late != reading.late => self.last.clear(),
            Some(last) if last.completed == reading.completed => _ = self.last.pop_back(),
            _ => {}
        }
        if self.last.len() == READINGS {
            self.last.pop_front();
        }
        self.last.push_back(reading);
    }

    /// True if there are enough of them for a busy device, nearly all say the same, and nothing was
    /// told late since: `late` is how many are by now.
    pub(crate) fn are_clear(&self, late: u64) -> bool {
        let enough = READINGS * 3 / 4;
        let clear = |index: usize| self.most(index).is_some_and(|(_, count)| count >= enough);
        self.last.back().is_some_and(|last| last.late == late) && (0..8).all(clear)
    }

    /// The lead that most readings have; of several, the newest.
    pub(crate) fn lead(&self) -> Option<Lead> {
        let lead = |index: usize| self.most(index).map_or(0, |(value, _)| value);
        (!self.last.is_empty()).then(|| Lead(std::array::from_fn(lead)))
    }

    /// The value that a counter has in most readings, and in how many.
    fn most(&self, index: usize) -> Option<(i64, usize)> {
        let values = || self.last.iter().map(|reading| reading.lead.0[index]);
        let count = |value: i64| values().filter(|other| *other == value).count();
        let counted = values().map(|value| (value, count(value)));
        counted.max_by_key(|(_, count)| *count)
    }

    /// The newest reading's lead, as on a device that is idle.
    pub(crate) fn newest(&self) -> Option<Lead> {
        self.last.back().map(|reading| reading.lead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "  10 1 80 3  20 2 400 7 0 9 11  5 0 640 1  6 2\n";

    #[test]
    fn the_fields_of_a_stat_file_are_found() {
        let counters = parse(STAT).expect("a stat file");
        assert_eq!(counters.read.bytes, 80 * 512);
        assert_eq!(counters.write.ios, 20);
        assert_eq!(counters.discard.bytes, 640 * 512);
        assert_eq!(counters.flush.ios, 6);
        assert!(parse("1 2 3").is_none());
    }

    fn reading(completed_ios: u64, device_ios: u64) -> Reading {
        let writes = |ios: u64| Counters {
            write: Totals {
                ios,
                bytes: ios * 4096,
            },
            ..Counters::default()
        };
        let completed = writes(completed_ios);
        Reading {
            completed,
            late: 0,
            lead: Lead::of(&completed, &writes(device_ios)),
        }
    }

    #[test]
    fn what_is_between_completion_and_count_does_not_move_the_lead() {
        let mut readings = Readings::default();
        for (seen, counted) in [(1, 101), (2, 101), (3, 103), (4, 104), (6, 104)] {
            readings.push(reading(seen, counted));
        }
        assert_eq!(readings.lead(), Some(reading(0, 100).lead));
        assert!(!readings.are_clear(0));
        for seen in 10..26 {
            readings.push(reading(seen, seen + 100 - u64::from(seen % 6 == 0)));
        }
        assert!(readings.are_clear(0));
    }

    #[test]
    fn what_is_told_late_moves_the_lead() {
        let mut readings = Readings::default();
        for seen in 0..16 {
            readings.push(reading(seen, seen + 101));
        }
        assert!(readings.are_clear(0) && !readings.are_clear(1));
        let told = |seen| Reading {
            late: 1,
            ..reading(seen, seen + 100)
        };
        readings.push(told(17));
        assert_eq!(readings.lead(), Some(reading(0, 100).lead));
        assert!(!readings.are_clear(1));
        (18..30).for_each(|seen| readings.push(told(seen)));
        assert!(readings.are_clear(1));
    }

    #[test]
    fn a_reading_of_the_same_sum_replaces_the_last() {
        let mut readings = Readings::default();
        readings.push(reading(1, 100));
        readings.push(reading(1, 101));
        assert_eq!(readings.lead(), Some(reading(0, 100).lead));
        assert_eq!(readings.newest(), readings.lead());
    }

    #[test]
    fn a_change_of_the_lead_has_a_sign() {
        let missing = reading(1, 102).lead.since(reading(0, 100).lead);
        assert_eq!(missing.missing().write.bytes, 4096);
        assert_eq!(missing.excess(), Counters::default());
        let excess = reading(3, 102).lead.since(reading(0, 100).lead);
        assert_eq!(excess.excess().write.ios, 1);
    }
}

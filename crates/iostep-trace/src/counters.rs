//! The device's own counters, read beside the probe's sums while both move.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iostep_model::SECTOR_BYTES;
use iostep_model::manifest::{Counters, Totals};

use crate::error::{Error, Result};
use crate::stack::Layer;
use crate::target::Target;

/// The counters of the disks, open to be read often.
///
/// The kernel counts a flush for the whole disk alone (`blk_account_io_flush`, block/blk-flush.c,
/// since 5.5), whichever partition asked for it. So those of a partition are its whole disk's, once
/// for all its partitions.
#[derive(Debug)]
pub struct Device {
    stats: Vec<Stat>,
    /// Of the whole disks.
    flushes: Vec<Stat>,
}

#[derive(Debug)]
struct Stat {
    path: PathBuf,
    file: File,
}

impl Device {
    /// Opens the counters of all disks, or partitions, of some targets, each once.
    ///
    /// Errors: `Io`.
    pub fn open<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Result<Device> {
        let disks: Vec<&Layer> = targets.into_iter().flat_map(Target::disks).collect();
        Device::open_at(disks.iter().map(|disk| (&*disk.sysfs, &*disk.disk_sysfs)))
    }

    /// The same for directories of sysfs: a device's, and its whole disk's.
    fn open_at<'a>(directories: impl Iterator<Item = (&'a Path, &'a Path)>) -> Result<Device> {
        let (own, whole): (BTreeSet<_>, BTreeSet<_>) = directories.unzip();
        let open = |all: BTreeSet<&Path>| all.into_iter().map(Stat::open).collect::<Result<_>>();
        Ok(Device {
            stats: open(own)?,
            flushes: open(whole)?,
        })
    }

    /// Reads them; of several disks, the sums.
    ///
    /// Source: Documentation/block/stat.rst. Kernels before 5.5 have no flush fields; they read
    /// as 0. Errors: `Io`; `Unsupported` if there are fewer fields than the oldest kernel had.
    pub fn read(&self) -> Result<Counters> {
        let mut sum = Counters::default();
        for stat in &self.stats {
            sum = sum.and(Counters {
                flush: Totals::default(),
                ..stat.read()?
            });
        }
        for stat in &self.flushes {
            sum = sum.and(Counters {
                flush: stat.read()?.flush,
                ..Counters::default()
            });
        }
        Ok(sum)
    }
}

impl Device {
    /// What the whole disks counted beside these partitions of them.
    fn beside(&self) -> Result<Counters> {
        let sum = |all: &[Stat]| {
            let mut sum = Counters::default();
            for stat in all {
                sum = sum.and(stat.read()?);
            }
            Ok::<_, Error>(sum)
        };
        let own = sum(&self.stats)?;
        let beside = sum(&self.flushes)?.since(own);
        // The flushes of all are those of the whole disk, which has them already.
        Ok(Counters {
            flush: Totals::default(),
            ..beside
        })
    }
}

impl Stat {
    fn open(directory: &Path) -> Result<Stat> {
        let path = directory.join("stat");
        let file = File::open(&path).map_err(Error::io(&path, "read"))?;
        Ok(Stat { path, file })
    }

    fn read(&self) -> Result<Counters> {
        let mut bytes = [0; 1024];
        let length = self.file.read_at(&mut bytes, 0);
        let length = length.map_err(Error::io(&self.path, "read"))?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        let why = || format!("not a stat file: {text:?}");
        parse(&text).ok_or_else(|| Error::unsupported(self.path.display(), why()))
    }
}

/// Reads the counters of all disks of some targets once.
///
/// Errors: those of [`Device`].
pub fn read<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Result<Counters> {
    Device::open(targets)?.read()
}

/// What the whole disks of targets that are partitions counted beside them: 0 of everything for
/// whole disks.
///
/// Errors: those of [`Device`].
pub fn beside<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Result<Counters> {
    Device::open(targets)?.beside()
}

/// The whole disks whose flushes the kernel does not count, by their names below /dev: it counts a
/// flush as a request (`blk_account_io_flush`), and these complete bios without one.
pub fn without_flushes<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Vec<String> {
    let disks = targets.into_iter().flat_map(Target::disks);
    let uncounted = disks.filter(|disk| !has_requests(&disk.disk_sysfs));
    let name = |disk: &Layer| {
        let device = &disk.traced.device;
        device.part_of.clone().unwrap_or(device.name.clone())
    };
    let names: BTreeSet<String> = uncounted.map(name).collect();
    names.into_iter().collect()
}

/// True for a disk with queues of requests, which has a directory of them.
fn has_requests(disk_sysfs: &Path) -> bool {
    disk_sysfs.join("mq").is_dir()
}

/// The whole disks whose flushes are counted though only partitions of them are among the targets:
/// flushes that others ask for there are counted, too.
pub fn shared_disks<'a>(targets: impl IntoIterator<Item = &'a Target>) -> Vec<String> {
    let disks = targets.into_iter().flat_map(Target::disks);
    let whole = disks.filter_map(|disk| disk.traced.device.part_of.clone());
    whole.collect::<BTreeSet<_>>().into_iter().collect()
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

/// How far the probe's sum of what completed, [`Sums::surely_ours`], is ahead of the device's own
/// counters, which began long before it: what counts is how this changes.
///
/// [`Sums::surely_ours`]: crate::sums::Sums::surely_ours
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

    /// The same with more that completed.
    pub(crate) fn and(self, completed: Counters) -> Lead {
        let more = words(&completed);
        Lead(std::array::from_fn(|index| {
            self.0[index].wrapping_add(more[index] as i64)
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
    /// The probe's sum of what completed and is surely the device's.
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
/// block/blk-mq.c, 6.12). So a single reading may be ahead by what is just between the two, for as
/// long as the processor is taken from it there, and none is ever behind: the least lead is the true
/// one. What is told late moves the lead for good: older readings say nothing then.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    last: VecDeque<Reading>,
    most: usize,
}

/// How many readings with one lead settle where the sums stand.
const ENOUGH: usize = 12;

impl Readings {
    /// Keeps so many.
    pub(crate) fn of_last(most: usize) -> Readings {
        Readings {
            last: VecDeque::with_capacity(most),
            most,
        }
    }

    /// Adds a reading. With the same sum as the last one, only what the last one missed can have
    /// been counted meanwhile.
    pub(crate) fn push(&mut self, reading: Reading) {
        match self.last.back() {
            Some(last) if last.late != reading.late => self.last.clear(),
            Some(last) if last.completed == reading.completed => _ = self.last.pop_back(),
            _ => {}
        }
        if self.last.len() == self.most {
            self.last.pop_front();
        }
        self.last.push_back(reading);
    }

    /// True if there are enough of them for a busy device, enough say the same, and nothing was
    /// told late since: `late` is how many are by now.
    pub(crate) fn are_clear(&self, late: u64) -> bool {
        let clear = |index: usize| self.least(index).is_some_and(|(_, count)| count >= ENOUGH);
        self.last.back().is_some_and(|last| last.late == late) && (0..8).all(clear)
    }

    /// The least lead of all readings.
    pub(crate) fn lead(&self) -> Option<Lead> {
        let lead = |index: usize| self.least(index).map_or(0, |(value, _)| value);
        (!self.last.is_empty()).then(|| Lead(std::array::from_fn(lead)))
    }

    /// The least lead of a counter, and how many readings have it.
    fn least(&self, index: usize) -> Option<(i64, usize)> {
        let values = || self.last.iter().map(|reading| reading.lead.0[index]);
        let least = values().min()?;
        Some((least, values().filter(|value| *value == least).count()))
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

    /// A disk with two partitions: the disk's stat, and theirs, of which each counts no flush.
    #[test]
    fn flushes_of_partitions_are_their_disks_and_count_once() {
        let root = tempfile::tempdir().expect("a directory");
        let disk = root.path().join("sdx");
        let parts = ["sdx1", "sdx2"].map(|name| disk.join(name));
        let of_part = "10 1 80 3  20 2 400 7 0 9 11  5 0 640 1  0 0\n";
        for part in &parts {
            fs::create_dir_all(part).expect("made");
            fs::write(part.join("stat"), of_part).expect("written");
        }
        let of_disk = "30 1 800 3  70 2 4000 7 0 9 11  50 0 6400 1  9 2\n";
        fs::write(disk.join("stat"), of_disk).expect("written");
        let read = |parts: &[PathBuf]| {
            let both = parts.iter().map(|part| (&**part, &*disk));
            let device = Device::open_at(both).expect("opened");
            device.read().expect("read")
        };
        let one = read(&parts[..1]);
        assert_eq!((one.write.ios, one.flush.ios), (20, 9));
        let both = read(&parts);
        assert_eq!((both.write.ios, both.flush.ios), (40, 9));
        assert_eq!(both.discard.bytes, 2 * 640 * 512);
        let whole = read(std::slice::from_ref(&disk));
        assert_eq!((whole.write.ios, whole.flush.ios), (70, 9));
        let beside = |parts: &[&PathBuf]| {
            let both = parts.iter().map(|part| (&***part, &*disk));
            let device = Device::open_at(both).expect("opened");
            device.beside().expect("read").write.ios
        };
        assert_eq!(beside(&[&parts[0]]), 50);
        assert_eq!(beside(&[&parts[0], &parts[1]]), 30);
        assert_eq!(beside(&[&disk]), 0);
        assert!(!has_requests(&disk));
        fs::create_dir(disk.join("mq")).expect("made");
        assert!(has_requests(&disk));
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
        let mut readings = Readings::of_last(16);
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

    /// One of two processors is taken away from a completion for most of the readings.
    #[test]
    fn what_is_stopped_on_its_way_for_long_does_not_move_the_lead() {
        let mut readings = Readings::of_last(64);
        for seen in 0..60 {
            let stopped = (5..50).contains(&seen);
            readings.push(reading(seen, seen + 100 - u64::from(stopped)));
        }
        assert_eq!(readings.lead(), Some(reading(0, 100).lead));
        assert!(readings.are_clear(0));
    }

    #[test]
    fn what_is_told_late_moves_the_lead() {
        let mut readings = Readings::of_last(16);
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
        let mut readings = Readings::of_last(16);
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

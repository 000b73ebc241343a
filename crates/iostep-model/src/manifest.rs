//! `manifest.json`: how and on what a trace was taken.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::filesystem::Kind;
use crate::host::Host;
use crate::json;
use crate::operation::{Counter, Operation};
use crate::publish;

mod volume;

pub use volume::Volume;

/// The manifest's name inside a trace directory.
pub const FILE_NAME: &str = "manifest.json";

/// Version of the manifest and of the tables. A reader takes this and older ones.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything about a trace that is not an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`] of the writer.
    pub schema_version: u32,
    /// Version of the iostep that wrote it.
    pub iostep_version: String,
    /// Whether the recording ended in order.
    pub state: State,
    /// How events were taken.
    pub backend: Backend,
    /// What recorded it; nobody looks at its processor.
    #[serde(flatten)]
    pub host: Host,
    /// The device that was traced; where there are several, the first disk.
    pub device: Device,
    /// All devices, the disks first, where the filesystem does not simply lie on `device`: it
    /// lies on a device that is made of others, or on several. Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<TracedDevice>,
    /// The disks below them; empty where none was seen, as in an import, and in older traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// The filesystem on it, if one was found; `None` where there are several.
    pub filesystem: Option<Filesystem>,
    /// Where filesystems may lie, where it is not simply all of the devices: the partitions of a
    /// whole disk, or several devices made of it. Empty otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<Volume>,
    /// The clocks at the start.
    pub clocks: Clocks,
    /// `CLOCK_MONOTONIC` at the end, ns; `None` if the recorder was killed, and in an import.
    #[serde(default)]
    pub end_mono_ns: Option<u64>,
    /// The command that was run, if any.
    pub command: Option<Command>,
    /// Process id of the tracer, to mark its own I/O.
    pub tracer_tgid: u32,
    /// The device's counters and the tool's own, and what they say.
    pub check: Check,
    /// Interrupts while the trace ran, by source.
    pub interrupts: Vec<Interrupt>,
}

/// Whether a recording ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Events are being appended; if no tracer runs, it was killed.
    Recording,
    /// The tables are complete.
    Complete,
    /// The recorder was killed; the tables hold what it had written.
    Recovered,
}

/// How events were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// BPF programs on the kernel's tracepoints.
    Bpf,
    /// A private tracefs instance.
    Tracefs,
    /// Imported from blkparse text and an image.
    Import,
}

impl Backend {
    /// The name shown to people.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Bpf => "BPF",
            Backend::Tracefs => "tracefs",
            Backend::Import => "import",
        }
    }
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Name below /dev, `loop3` or `nvme0n1p2`.
    pub name: String,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Of a partition, the name of its whole disk below /dev.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// First sector on the whole disk; 0 unless it is a partition.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// `queue/logical_block_size`, bytes. This and the following are `None` where the kernel does
    /// not tell.
    pub logical_block_bytes: Option<u32>,
    /// `queue/physical_block_size`, bytes.
    pub physical_block_bytes: Option<u32>,
    /// `queue/write_cache`: true for "write back", where a flush means something.
    pub volatile_write_cache: Option<bool>,
    /// `queue/fua`.
    pub fua: Option<bool>,
    /// `queue/scheduler`, the chosen one.
    pub scheduler: Option<String>,
    /// `queue/rotational` of the disks below, which a loop device does not have.
    pub rotational: Option<bool>,
}

/// One of several devices of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedDevice {
    pub device: Device,
    /// What lies on the device itself.
    pub holds: Holds,
    /// What it is made of: indices into [`Manifest::devices`]; empty for a disk.
    pub made_of: Vec<u8>,
    /// How it is made of them: `LUKS`, `LVM`, `RAID1`, ...; empty for a disk.
    pub kind: String,
    /// What people call it, where that is not its name below /dev: `vg-root`.
    pub title: Option<String>,
}

impl Device {
    /// True if both are parts of one disk: they share its flushes.
    pub fn shares_a_disk_with(&self, other: &Device) -> bool {
        self.part_of.is_some() && self.part_of == other.part_of
    }

    /// True for one part of a disk. A partition that begins at the disk's first sector does not say
    /// so in what earlier versions wrote.
    pub fn is_partition(&self) -> bool {
        self.part_of.is_some() || self.start_sector > 0
    }
}

impl TracedDevice {
    /// True for a device with requests, at the bottom.
    pub fn is_disk(&self) -> bool {
        self.made_of.is_empty()
    }

    /// What people call it.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.device.name)
    }
}

/// What lies on a device itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// The traced filesystem or a part of it; or whatever is on it, if no filesystem is mounted.
    Filesystem,
    /// The traced filesystem's journal alone.
    Journal,
    /// Other devices.
    Devices,
}

/// A mounted filesystem, or one found on an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filesystem {
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// Where it is mounted; empty for an image.
    pub mount_point: String,
    /// Every place where it can be seen, that of `mount_point` first; empty for an image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountPlace>,
    /// Mount and superblock options as `/proc/self/mountinfo` has them.
    pub options: String,
    /// Block size in bytes.
    pub block_bytes: u32,
    /// How many bytes of its first device belong to it, from its beginning; `None` where that is
    /// not known, and in older traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// What the layout reserves, in filesystem blocks, sorted by `first_block`, not overlapping.
    pub layout: Vec<LayoutRange>,
}

/// A place where a filesystem, or a part of it, can be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountPlace {
    /// The directory that is seen there, from the filesystem's root: `/`, but for a bind mount or
    /// a btrfs subvolume.
    pub root: String,
    pub point: String,
}

impl MountPlace {
    /// The path of a file here, from its path below the filesystem's root; `None` if it cannot be
    /// seen here.
    fn path_of(&self, path: &str) -> Option<String> {
        let below = path.strip_prefix(self.root.trim_end_matches('/'))?;
        let path = match below.trim_start_matches('/') {
            "" => self.point.clone(),
            _ if !below.starts_with('/') => return None,
            name => format!("{}/{name}", self.point.trim_end_matches('/')),
        };
        Some(path)
    }
}

impl Filesystem {
    /// A file's path as users have it, from its path below the filesystem's root: at the mount that
    /// was traced, or else at another one. Where no mount shows the file, the path as it is.
    pub fn user_path(&self, path: &str) -> String {
        let mut places = self.mounts.iter();
        places
            .find_map(|place| place.path_of(path))
            .unwrap_or_else(|| path.to_owned())
    }
}

/// A range of filesystem blocks that the layout reserves for one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutRange {
    /// First filesystem block.
    pub first_block: u64,
    pub blocks: u64,
    /// What for. The journal's blocks are [`Class::LogOther`]; their headers tell more.
    pub class: Class,
}

/// Two readings of the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// `CLOCK_MONOTONIC`, ns: the zero of times that reports show.
    pub mono_ns: u64,
    /// `CLOCK_REALTIME`, ns since the epoch.
    pub wall_ns: u64,
}

/// The command that was run under the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its process id.
    pub pid: u32,
    /// Exit status, if it ended by itself.
    pub exit_status: Option<i32>,
    /// Signal that killed it.
    pub signal: Option<i32>,
}

/// Sums over one operation group; the groups of `/sys/block/X/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Number of I/Os.
    pub ios: u64,
    pub bytes: u64,
}

/// The device's counters, or the tool's own sums at one point of a request's way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub read: Totals,
    /// Writes, with write-zeroes and zone appends.
    pub write: Totals,
    pub discard: Totals,
    /// Flushes that the device executed; they have no bytes. Of a partition, those of its whole disk:
    /// the kernel counts none for a part of one.
    pub flush: Totals,
}

impl Counters {
    /// Counts one more I/O.
    pub fn add(&mut self, operation: Operation, bytes: u64) {
        if let Some(totals) = self.totals(operation) {
            totals.ios += 1;
            totals.bytes += bytes;
        }
    }

    /// Counts the bytes of a part of an I/O.
    pub fn add_part(&mut self, operation: Operation, bytes: u64) {
        if let Some(totals) = self.totals(operation) {
            totals.bytes += bytes;
        }
    }

    /// The sums that an operation belongs to; `None` for what is in none.
    pub fn totals(&mut self, operation: Operation) -> Option<&mut Totals> {
        match operation.counter() {
            Counter::Read => Some(&mut self.read),
            Counter::Write => Some(&mut self.write),
            Counter::Discard => Some(&mut self.discard),
            Counter::Flush => Some(&mut self.flush),
            Counter::None => None,
        }
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == Counters::default()
    }

    /// The bytes of all groups.
    pub fn bytes(self) -> u64 {
        self.read.bytes + self.write.bytes + self.discard.bytes + self.flush.bytes
    }

    /// Both together.
    pub fn and(self, other: Counters) -> Counters {
        let group = |a: Totals, b: Totals| Totals {
            ios: a.ios + b.ios,
            bytes: a.bytes + b.bytes,
        };
        Counters {
            read: group(self.read, other.read),
            write: group(self.write, other.write),
            discard: group(self.discard, other.discard),
            flush: group(self.flush, other.flush),
        }
    }

    /// What was added since `earlier`; 0 where a counter went back.
    pub fn since(self, earlier: Counters) -> Counters {
        let group = |now: Totals, then: Totals| Totals {
            ios: now.ios.saturating_sub(then.ios),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        Counters {
            read: group(self.read, earlier.read),
            write: group(self.write, earlier.write),
            discard: group(self.discard, earlier.discard),
            flush: group(self.flush, earlier.flush),
        }
    }
}

/// The comparison of what was recorded with what the device counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// `/sys/block/X/stat`, after minus before; `None` where the device does not count.
    pub device: Option<Counters>,
    /// Sums over queued bios (ios are bios).
    pub queued: Counters,
    /// Sums over issued requests, less requeued ones.
    pub issued: Counters,
    /// Sums over completions that the kernel counts.
    pub completed: Counters,
    /// Bios merged into other bios' requests.
    pub merges: u64,
    /// Bios cut in two.
    pub splits: u64,
    /// Events that found no room in the buffer.
    pub lost_events: u64,
    /// Completions that were told after the fact: nothing is missing, but the latency of these
    /// requests is an upper bound.
    #[serde(default)]
    pub late_completions: u64,
    /// Bytes under way when the trace began: complete, but never seen queued.
    pub in_flight_before_bytes: u64,
    /// Bytes under way when the trace ended: queued, but not complete.
    pub in_flight_after_bytes: u64,
    /// System calls that nobody looked at, because their thread had the processor only while
    /// another's call was looked at. A sync call among them is known by its filesystem alone.
    #[serde(default)]
    pub unseen_calls: u64,
    /// What this kernel did not let the trace tell, in words. The sums are whole all the same.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What an imported recording has no record of, and what is not known by that, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<String>,
    /// Events in the recording; `None` in traces of an older version, and where the recorder was
    /// killed.
    #[serde(default)]
    pub recorded_events: Option<u64>,
    /// What does not agree, in words; empty if everything does.
    pub differences: Vec<String>,
}

impl Check {
    /// True if nothing was lost and every sum agrees.
    pub fn passed(&self) -> bool {
        self.lost_events == 0 && self.differences.is_empty()
    }
}

/// Interrupts of one line of `/proc/interrupts`, over all CPUs, while the trace ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    /// The line's label: `24`, `LOC`, ...
    pub label: String,
    /// The line's description: chip and device names.
    pub description: String,
    pub count: u64,
    /// True for the traced device's own.
    pub of_device: bool,
}

impl Manifest {
    /// How many devices there are.
    pub fn device_count(&self) -> usize {
        self.devices.len().max(1)
    }

    /// What lies on the device with an index.
    pub fn holds(&self, device: u8) -> Holds {
        let found = self.devices.get(usize::from(device));
        found.map_or(Holds::Filesystem, |found| found.holds)
    }

    /// The device with an index; the first for one that there is not.
    pub fn device_at(&self, device: u8) -> &Device {
        let found = self.devices.get(usize::from(device));
        found.map_or(&self.device, |found| &found.device)
    }

    /// True if devices lie below the one that the filesystem is on: a sector of a request is then
    /// another one than the filesystem's.
    pub fn is_layered(&self) -> bool {
        self.devices.iter().any(|device| !device.is_disk())
    }

    /// Which filesystem it is; `None` also for one that is not known here.
    pub fn filesystem_kind(&self) -> Option<Kind> {
        Kind::of_mount(&self.filesystem.as_ref()?.kind)
    }

    /// The device that the filesystem lies on, the first of several.
    pub fn filesystem_device(&self) -> u8 {
        let mut devices = self.devices.iter();
        let found = devices.position(|device| device.holds == Holds::Filesystem);
        found.unwrap_or(0) as u8
    }

    /// Where the filesystem begins on that device, in sectors.
    pub fn filesystem_start_sector(&self) -> u64 {
        self.device_at(self.filesystem_device()).start_sector
    }

    /// The devices in words: `dm-0 (LUKS on nvme0n1p3)`, `sda and sdb`, `sda, journal on sdb`.
    pub fn device_label(&self) -> String {
        let of = |holds: Holds| -> Vec<String> {
            let chosen = self.devices.iter().filter(|device| device.holds == holds);
            chosen.map(|device| self.label_of(device)).collect()
        };
        match (of(Holds::Filesystem), of(Holds::Journal)) {
            (data, _) if data.is_empty() => self.device.name.clone(),
            (data, log) if log.is_empty() => data.join(" and "),
            (data, log) => format!("{}, journal on {}", data.join(" and "), log.join(" and ")),
        }
    }

    fn label_of(&self, device: &TracedDevice) -> String {
        match device.is_disk() {
            true => device.title().to_owned(),
            // Deeper than any stack of devices: a hostile manifest may name itself.
            false => format!("{} ({})", device.title(), self.way_down(device, 16)),
        }
    }

    /// `LVM on LUKS on nvme0n1p3`, `RAID1 on sda and sdb`.
    fn way_down(&self, device: &TracedDevice, depth: u32) -> String {
        let below: Vec<&TracedDevice> = device
            .made_of
            .iter()
            .filter_map(|index| self.devices.get(usize::from(*index)))
            .collect();
        let names: Vec<String> = match below[..] {
            [only] if !only.is_disk() && depth > 0 => vec![self.way_down(only, depth - 1)],
            _ => below
                .iter()
                .map(|device| device.title().to_owned())
                .collect(),
        };
        format!("{} on {}", device.kind, names.join(" and "))
    }

    /// Reads `dir/manifest.json`.
    ///
    /// Errors: `Io`; `Unsupported` for a newer schema; `Corrupt` for anything that is no manifest.
    pub fn read(dir: &Path) -> Result<Manifest> {
        let path = dir.join(FILE_NAME);
        let bytes = std::fs::read(&path).map_err(Error::io(&path, "read"))?;
        let text = str::from_utf8(&bytes).map_err(|e| Error::corrupt(&path, "JSON", e))?;
        json::parse(&path, text, ("trace schema", SCHEMA_VERSION))
    }

    /// Writes `dir/manifest.json`, whole or not at all.
    ///
    /// Errors: `Io`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).expect("a manifest has only JSON's types");
        publish::write_private(&dir.join(FILE_NAME), &text)
    }
}

#[cfg(test)]
mod tests;

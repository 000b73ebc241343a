//! A trace against what is known without it.

use std::collections::BTreeSet;

use iostep_model::table::{Request, Segment, Trace};
use iostep_model::{Class, Layer, SECTOR_BYTES};

use crate::facts::{Facts, Process, Sync};
use crate::image::BLOCK_SECTORS;
use crate::score::Score;
use crate::stamp::{BLOCK_BYTES, Stamp, Stamps};
use crate::truth::{self, Cause, LogBlock, Truth, inode_of};
use crate::written::Written;

/// Everything that is needed to judge a trace.
pub struct Comparison<'a> {
    trace: &'a Trace,
    written: &'a Written<'a>,
    facts: &'a Facts,
    stamps: &'a Stamps,
    truth: &'a Truth,
}

/// A sector of a stamped block.
struct StampedSector<'a> {
    stamp: &'a Stamp,
    /// Which sector of the block.
    inside: u64,
    /// Which sector of the segment that holds it.
    in_segment: u64,
}

/// What is wrong, if anything is.
type Verdict = Result<(), String>;

impl<'a> Comparison<'a> {
    /// Puts a trace beside the facts, the stamps of the image and the rest of what it tells.
    pub fn new(
        trace: &'a Trace,
        written: &'a Written<'a>,
        facts: &'a Facts,
        stamps: &'a Stamps,
        truth: &'a Truth,
    ) -> Comparison<'a> {
        Comparison {
            trace,
            written,
            facts,
            stamps,
            truth,
        }
    }

    /// Stamped bytes: inode, generation, path and offset.
    pub fn files(&self) -> Score {
        self.each_stamp(|place, _, segment| self.judge_file(place, segment))
    }

    /// Stamped bytes: the process that wrote them.
    pub fn processes(&self) -> Score {
        self.each_stamp(|place, request, segment| self.judge_process(place.stamp, request, segment))
    }

    fn each_stamp(
        &self,
        judge: impl Fn(&StampedSector<'_>, &Request, &Segment) -> Verdict,
    ) -> Score {
        let mut score = Score::default();
        for (first, sectors, found) in self.stamps.iter() {
            let stamp = &found.stamp;
            for sector in first..first + sectors {
                let inside = found.from + sector - first;
                let verdict = match self.written.get(sector) {
                    None => Err("not in the trace".to_owned()),
                    Some((request, segment)) => {
                        let in_segment = sector - segment.sector;
                        judge(
                            &StampedSector {
                                stamp,
                                inside,
                                in_segment,
                            },
                            request,
                            segment,
                        )
                    }
                };
                let fault = verdict
                    .err()
                    .map(|why| format!("{}: {why}", self.mode(stamp)));
                score.count(SECTOR_BYTES, fault, || {
                    format!("sector {sector}, {stamp:?}")
                });
            }
        }
        score
    }

    /// The directory of the file, which is named after the mode that wrote it.
    fn mode(&self, stamp: &Stamp) -> &str {
        let path = self
            .facts
            .files
            .get(&stamp.file_id)
            .and_then(|f| f.paths.first());
        path.and_then(|p| p.split('/').nth(1))
            .unwrap_or("unknown file")
    }

    fn judge_file(&self, place: &StampedSector<'_>, segment: &Segment) -> Verdict {
        let stamp = place.stamp;
        let Some(file) = self.facts.files.get(&stamp.file_id) else {
            return Err("a stamp of another run".into());
        };
        let Some(found) = segment.file.map(|f| &self.trace.files[f as usize]) else {
            return Err(format!("no file, class {}", segment.class.name()));
        };
        if found.key.inode != file.inode {
            return Err("another inode".into());
        }
        if file.generation.is_some_and(|g| g != found.key.generation) {
            return Err("another generation of the inode".into());
        }
        match &found.path {
            None => return Err("no path".into()),
            Some(path) if file.paths.contains(path) => {}
            Some(path) => return Err(format!("path {path}, expected {:?}", file.paths)),
        }
        let offset = segment.file_offset_bytes;
        let offset = offset.map(|o| o + place.in_segment * SECTOR_BYTES);
        let expected = stamp.index * BLOCK_BYTES as u64 + place.inside * SECTOR_BYTES;
        match offset {
            Some(offset) if offset == expected => Ok(()),
            Some(_) => Err("another offset in the file".into()),
            None => Err("no offset in the file".into()),
        }
    }

    fn judge_process(&self, stamp: &Stamp, request: &Request, segment: &Segment) -> Verdict {
        let Some(process) = segment.dirtier.or(request.submitter) else {
            return Err("no process".into());
        };
        let process = &self.trace.processes[process as usize];
        match process.tgid == stamp.pid {
            true => Ok(()),
            false => Err(format!("process {}", process.comm)),
        }
    }

    /// What the image says a sector is.
    fn class_at(&self, sector: u64) -> Option<Class> {
        let log = self.truth.log.get(sector);
        if self.stamps.get(sector).is_some() {
            return Some(
                match log.is_some() || self.truth.journal.get(sector).is_some() {
                    true => Class::LoggedData,
                    false => Class::FileData,
                },
            );
        }
        log.map(|l| l.class)
            .or_else(|| self.truth.classes.get(sector).copied())
    }

    /// Written bytes: their class.
    pub fn classes(&self) -> Score {
        self.each_written(|sector, segment| {
            let expected = self.class_at(sector)?;
            let (found, expected) = (segment.class.name(), expected.name());
            Some(match found == expected {
                true => Ok(()),
                false => Err(format!("{found}, expected {expected}")),
            })
        })
    }

    /// Written bytes: whether the image still tells their class. The rest was freed since.
    pub fn class_coverage(&self) -> Score {
        self.each_written(|sector, segment| {
            Some(match self.class_at(sector) {
                Some(_) => Ok(()),
                None => Err(format!("traced as {}", segment.class.name())),
            })
        })
    }

    /// Bytes of the log that a sync call made necessary: that call.
    pub fn causes(&self) -> Score {
        let syncs = self.facts.syncs();
        self.each_log_block(|block, segment| match &block.cause {
            Cause::OneOf(possible) => Some(self.judge_cause(&syncs, possible, segment)),
            _ => None,
        })
    }

    /// Stamped bytes that their writer made durable: that sync call.
    ///
    /// Those that a filesystem writes at once are left out, as direct I/O is: nothing caused them
    /// but the write.
    pub fn data_causes(&self) -> Score {
        let syncs = self.facts.syncs();
        let mut score = Score::default();
        for (first, sectors, found) in self.stamps.iter() {
            let stamp = &found.stamp;
            let mode = self.mode(stamp);
            let at_once = mode.starts_with("direct") || mode.starts_with("uring-direct");
            let Some(index) = truth::first_sync_after(&syncs, stamp).filter(|_| !at_once) else {
                continue;
            };
            let Some((_, segment)) = self.written.get(first) else {
                continue;
            };
            let possible = truth::this_or_overlapping(&syncs, index);
            let fault = self.judge_cause(&syncs, &possible, segment).err();
            score.count(sectors * SECTOR_BYTES, fault, || {
                self.describe(first, segment)
            });
        }
        score
    }

    /// Bytes of the log that no sync call made necessary: none is named.
    pub fn causeless(&self) -> Score {
        self.each_log_block(|block, segment| match (&block.cause, segment.cause) {
            (Cause::Nobody, None) => Some(Ok(())),
            (Cause::Nobody, Some(_)) => Some(Err("a sync call is named".into())),
            _ => None,
        })
    }

    /// Bytes that either side takes for the log: whether the image tells their cause.
    pub fn cause_coverage(&self) -> Score {
        self.each_written(|sector, segment| {
            let known = self.truth.log.get(sector).map(|block| &block.cause);
            match (known, segment.class.layer()) {
                (None, Layer::Journal) => Some(Err("not found in the image's log".into())),
                (None, _) => None,
                (Some(Cause::Unknown), _) => Some(Err("the image does not tell".into())),
                (Some(_), _) => Some(Ok(())),
            }
        })
    }

    /// Bytes of the log: transaction and home block.
    pub fn log_contents(&self) -> Score {
        self.each_log_block(|block, segment| {
            Some(
                match (block.commit == segment.commit, block.home == segment.home) {
                    _ if block.commit.is_none() => return None,
                    (true, true) => Ok(()),
                    (false, _) => Err(format!("{}: another commit", block.class.name())),
                    (_, false) => Err(format!("{}: another home", block.class.name())),
                },
            )
        })
    }

    /// Logged blocks: the class of their home. The copy of a stamped block is data, whatever its
    /// home was used for since.
    pub fn home_classes(&self) -> Score {
        let fs = self.trace.manifest.filesystem.as_ref();
        let sectors = fs.map_or(BLOCK_SECTORS, |f| u64::from(f.block_bytes) / SECTOR_BYTES);
        self.each_written(|sector, segment| {
            let home = self.truth.log.get(sector)?.home?;
            let expected = match self.stamps.get(sector).is_some() {
                true => Class::FileData,
                false => *self.truth.classes.get(home * sectors)?,
            };
            Some(match segment.home_class {
                Some(class) if class == expected => Ok(()),
                found => Err(format!("{found:?}, expected {expected:?}")),
            })
        })
    }

    /// btrfs tree blocks: the logical address, in both copies.
    pub fn logical_addresses(&self) -> Score {
        self.each_written(|sector, segment| {
            let expected = self.truth.logical.get(sector)?;
            Some(match segment.home {
                Some(home) if home == *expected => Ok(()),
                Some(_) => Err("another logical address".into()),
                None => Err("no logical address".into()),
            })
        })
    }

    fn each_log_block(&self, judge: impl Fn(&LogBlock, &Segment) -> Option<Verdict>) -> Score {
        self.each_written(|sector, segment| judge(self.truth.log.get(sector)?, segment))
    }

    fn each_written(&self, judge: impl Fn(u64, &Segment) -> Option<Verdict>) -> Score {
        let mut score = Score::default();
        for sector in self.written.sectors() {
            let Some((_, segment)) = self.written.get(sector) else {
                continue;
            };
            if let Some(verdict) = judge(sector, segment) {
                score.count(SECTOR_BYTES, verdict.err(), || {
                    self.describe(sector, segment)
                });
            }
        }
        score
    }

    /// A place, with what the trace says about it and what is expected of the log.
    fn describe(&self, sector: u64, segment: &Segment) -> String {
        let mut text = format!("sector {sector}, {segment:?}");
        if let Some(cause) = segment.cause {
            let row = &self.trace.syncs[cause as usize];
            let process = row.process.map(|p| self.trace.thread_name(p));
            let file = row.file.map(|f| self.trace.file_name(f));
            text += &format!("; caused by {row:?}, {process:?}, {file:?}");
        }
        if let Some(Cause::OneOf(possible)) = self.truth.log.get(sector).map(|l| &l.cause) {
            let syncs = self.facts.syncs();
            for &index in possible {
                let (process, sync) = syncs[index];
                text += &format!("; expected {:?} of process {}", sync, process.pid);
            }
        }
        text
    }

    fn judge_cause(
        &self,
        syncs: &[(&Process, &Sync)],
        possible: &[usize],
        segment: &Segment,
    ) -> Verdict {
        let modes: BTreeSet<&str> = possible.iter().map(|&i| syncs[i].0.mode.as_str()).collect();
        let Some(cause) = segment.cause else {
            return Err(format!("no cause, expected one of {modes:?}"));
        };
        match possible
            .iter()
            .any(|&index| self.is_sync(cause, syncs[index]))
        {
            true => Ok(()),
            false => Err(format!("another sync call than one of {modes:?}")),
        }
    }

    /// True if a row of the trace is this sync call.
    fn is_sync(&self, row: u32, (process, sync): (&Process, &Sync)) -> bool {
        let row = &self.trace.syncs[row as usize];
        let tgid = row.process.map(|p| self.trace.processes[p as usize].tgid);
        let inode = row.file.map(|f| self.trace.files[f as usize].key.inode);
        let called = inode_of(self.facts, sync);
        tgid == Some(process.pid)
            && row.kind == sync.kind
            && (sync.enter_ns..=sync.exit_ns).contains(&row.enter_ns)
            && (called.is_none() || called == inode)
    }

    /// Sync calls of the workload that the trace holds, with kind, process, file and result.
    /// Counted in calls, not in bytes.
    pub fn syncs(&self) -> Score {
        let mut score = Score::default();
        for call in self.facts.syncs() {
            let rows = 0..self.trace.syncs.len() as u32;
            let row = rows.into_iter().find(|row| self.is_sync(*row, call));
            let mode = &call.0.mode;
            let fault = match row.and_then(|row| self.trace.syncs[row as usize].result) {
                _ if row.is_none() => Some(format!("{mode}: {:?} is missing", call.1.kind)),
                Some(result) if (result < 0) != (call.1.result < 0) => {
                    Some(format!("{mode}: result {result}"))
                }
                _ => None,
            };
            score.count(1, fault, || format!("{:?}", call.1));
        }
        score
    }
}

//! nilfs2, as `dumpseg` sees its logs. Nothing is overwritten without a cleaner, which only
//! mount(8) starts: so every version of every block is still there.

use std::collections::BTreeMap;

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{
    Cause, LogBlock, LoggedInode, Truth, first_sync_after, first_sync_of, number_after,
    this_or_overlapping, tool,
};
use crate::facts::{Facts, Process, Sync};
use crate::image::{BLOCK_SECTORS, Image, le};
use crate::sector_map::SectorMap;
use crate::stamp::Stamp;

/// `NILFS_SEGSUM_MAGIC`, include/uapi/linux/nilfs2_ondisk.h.
const SUMMARY_MAGIC: u64 = 0x1eaf_fa11;
/// `NILFS_SS_LOGBGN`: the first of the parts of a log; `NILFS_SS_SR`: has a super root.
const BEGINS: u64 = 1;
const HAS_SUPER_ROOT: u64 = 4;
const INODE_FILE: u64 = 6;
const INODE_BYTES: usize = 128;
/// In the inode file: a block of descriptors and a bitmap come first.
const FIRST_INODE_BLOCK: u64 = 2;
const SECOND_NS: u64 = 1_000_000_000;

/// See [`Truth::read`].
pub fn read(image: &Image, facts: &Facts) -> anyhow::Result<Truth> {
    let superblock = image.read(2, 1024)?;
    anyhow::ensure!(
        1024 << le(&superblock, 20, 4) == BLOCK_SECTORS * SECTOR_BYTES,
        "only 4 KiB blocks are understood"
    );
    let device_bytes = le(&superblock, 32, 8);
    let mut truth = Truth::default();
    let second = (device_bytes / 4096 - 1) * 8;
    for sector in [0, second] {
        truth
            .classes
            .insert(sector, BLOCK_SECTORS, Class::Superblock);
    }
    let stamps = image.stamps()?;
    let logs = logs(image, le(&superblock, 24, 8), le(&superblock, 48, 4))?;
    for log in &logs {
        let cause = log.cause(image, facts, &stamps)?;
        for (block, class) in log.blocks() {
            let sector = block * BLOCK_SECTORS;
            if stamps.contains_key(&sector) {
                continue;
            }
            let entry = LogBlock {
                class,
                commit: Some(log.id),
                home: None,
                cause: cause.clone(),
            };
            truth.log.insert(sector, BLOCK_SECTORS, entry);
        }
    }
    Ok(truth)
}

/// The blocks of one file in a part of a log.
#[derive(Clone, Debug, Default)]
struct Content {
    inode: u64,
    /// Block on the device and block in the file.
    data: Vec<(u64, u64)>,
    /// B-tree nodes.
    nodes: Vec<u64>,
}

/// A partial segment: what is written in one go.
#[derive(Clone, Debug, Default)]
struct Part {
    first: u64,
    blocks: u64,
    flags: u64,
    summary_blocks: u64,
    created_s: u64,
    contents: Vec<Content>,
}

/// A log, of one part or of several in neighbouring segments.
struct Log {
    /// Where it begins, as [`iostep_model::event::Event::CommitStart`] has it.
    id: u64,
    parts: Vec<Part>,
}

/// The logs of an image, the oldest first.
fn logs(image: &Image, segments: u64, segment_blocks: u64) -> anyhow::Result<Vec<Log>> {
    let numbers: Vec<String> = (0..segments).map(|n| n.to_string()).collect();
    let path = image.path().to_string_lossy().into_owned();
    let mut arguments = vec![path.as_str()];
    let (last, rest) = numbers
        .split_last()
        .context("a filesystem without segments")?;
    arguments.extend(rest.iter().map(String::as_str));
    let text = tool("dumpseg", &arguments, last.as_ref())?;
    let mut parts = parse(&text)?;
    for (_, part) in &mut parts {
        let summary = image.read(part.first * BLOCK_SECTORS, 72)?;
        anyhow::ensure!(
            le(&summary, 8, 4) == SUMMARY_MAGIC,
            "block {}: no summary",
            part.first
        );
        part.flags = le(&summary, 14, 2);
        part.created_s = le(&summary, 24, 8);
        part.summary_blocks = le(&summary, 48, 4).div_ceil(BLOCK_SECTORS * SECTOR_BYTES);
    }
    parts.sort_by_key(|(sequence, part)| (*sequence, part.first));
    let mut logs: Vec<Log> = Vec::new();
    for (sequence, part) in parts {
        // One that is written to make room ends without a checkpoint, and the next one does not
        // begin anew (`NILFS_SC_UNCLOSED`); but only where a segment ends is a log cut in two.
        let block = in_segment(part.first, segment_blocks);
        match logs.last_mut() {
            Some(log) if part.flags & BEGINS == 0 && block == 0 => log.parts.push(part),
            _ => logs.push(Log {
                id: sequence << 32 | block,
                parts: vec![part],
            }),
        }
    }
    Ok(logs)
}

/// A block's number in its segment. The first segment is shorter: it begins after the superblock.
fn in_segment(block: u64, segment_blocks: u64) -> u64 {
    match block / segment_blocks {
        0 => block - 1,
        _ => block % segment_blocks,
    }
}

/// The partial segments in what `dumpseg` prints, with the sequence number of their segment.
fn parse(text: &str) -> anyhow::Result<Vec<(u64, Part)>> {
    let mut parts: Vec<(u64, Part)> = Vec::new();
    let mut sequence = 0;
    for line in text.lines() {
        let line = line.trim_start();
        if let Some(number) = number_after(line, "sequence number =") {
            sequence = number;
        } else if line.starts_with("partial segment") {
            let part = Part {
                first: number_after(line, "blocknr =").context("dumpseg: no blocknr")?,
                blocks: number_after(line, "nblocks =").context("dumpseg: no nblocks")?,
                ..Part::default()
            };
            parts.push((sequence, part));
        } else if line.starts_with("ino =") {
            let inode = number_after(line, "ino =").context("dumpseg: no ino")?;
            let (_, part) = parts
                .last_mut()
                .context("dumpseg: a file before all segments")?;
            part.contents.push(Content {
                inode,
                ..Content::default()
            });
        } else if let Some((place, block)) = line.rsplit_once(", blocknr =") {
            let block = number_after(block, "").context("dumpseg: no block")?;
            let content = parts
                .last_mut()
                .and_then(|(_, part)| part.contents.last_mut());
            let content = content.context("dumpseg: a block before all files")?;
            match number_after(place, "blkoff =") {
                Some(offset) if !place.contains("level =") => content.data.push((block, offset)),
                _ => content.nodes.push(block),
            }
        }
    }
    Ok(parts)
}

impl Log {
    /// Every block with its class; what is stamped is not a directory.
    fn blocks(&self) -> Vec<(u64, Class)> {
        let mut blocks = Vec::new();
        for part in &self.parts {
            let summary = part.first..part.first + part.summary_blocks;
            blocks.extend(summary.map(|block| (block, Class::SegmentSummary)));
            if part.flags & HAS_SUPER_ROOT != 0 {
                blocks.push((part.first + part.blocks - 1, Class::SuperRoot));
            }
            for content in &part.contents {
                let class = match content.inode {
                    3 => Class::AddressTranslation,
                    4 => Class::Checkpoint,
                    5 => Class::SegmentInfoTable,
                    INODE_FILE => Class::InodeTable,
                    _ => Class::Directory,
                };
                blocks.extend(content.data.iter().map(|(block, _)| (*block, class)));
                let nodes = content.nodes.iter();
                blocks.extend(nodes.map(|block| (*block, Class::IndirectBlock)));
            }
        }
        blocks
    }

    /// The sync call that it was written for: the first after the changes that it holds, if it ran
    /// when the log was made. Nothing but the write itself made a log of direct writes necessary;
    /// of what the timer brought here nothing tells.
    fn cause(
        &self,
        image: &Image,
        facts: &Facts,
        stamps: &BTreeMap<u64, Stamp>,
    ) -> anyhow::Result<Cause> {
        if self.holds_direct_writes(facts, stamps) {
            return Ok(Cause::Nobody);
        }
        let syncs = facts.syncs();
        let mut possible = self.of_stamps(&syncs, stamps);
        if possible.is_empty()
            && let Cause::OneOf(of_inodes) = first_sync_of(facts, &syncs, &self.inodes(image)?)
        {
            possible = of_inodes;
        }
        possible.retain(|index| self.was_made_during(&syncs[*index]));
        possible.sort_unstable();
        possible.dedup();
        Ok(match possible.is_empty() {
            true => Cause::Unknown,
            false => Cause::OneOf(possible),
        })
    }

    fn data(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let contents = self.parts.iter().flat_map(|part| &part.contents);
        contents.flat_map(|c| {
            c.data
                .iter()
                .map(|(block, offset)| (c.inode, *block, *offset))
        })
    }

    fn stamps<'a>(
        &'a self,
        stamps: &'a BTreeMap<u64, Stamp>,
    ) -> impl Iterator<Item = &'a Stamp> + 'a {
        self.data()
            .filter_map(|(_, block, _)| stamps.get(&(block * BLOCK_SECTORS)))
    }

    fn of_stamps(&self, syncs: &[(&Process, &Sync)], stamps: &BTreeMap<u64, Stamp>) -> Vec<usize> {
        let firsts = self
            .stamps(stamps)
            .filter_map(|s| first_sync_after(syncs, s));
        let first = firsts.min_by_key(|index| syncs[*index].1.enter_ns);
        first.map_or(Vec::new(), |index| this_or_overlapping(syncs, index))
    }

    /// Direct writes come through the page cache here, and are written out at once; those to an
    /// O_DSYNC file are sync calls.
    fn holds_direct_writes(&self, facts: &Facts, stamps: &BTreeMap<u64, Stamp>) -> bool {
        self.stamps(stamps).any(|stamp| {
            let file = facts.files.get(&stamp.file_id);
            let paths = file.map_or(&[][..], |file| &file.paths);
            let direct = [
                "/direct-4k/",
                "/direct-big/",
                "/uring-direct/",
                "/uring-sqpoll/",
            ];
            paths
                .iter()
                .any(|p| direct.iter().any(|d| p.starts_with(d)))
        })
    }

    /// The time of a log has no fractions of a second.
    fn was_made_during(&self, (_, sync): &(&Process, &Sync)) -> bool {
        let (enter, exit) = sync.coarse_wall_ns;
        let during = enter / SECOND_NS..=exit / SECOND_NS;
        self.parts
            .iter()
            .any(|part| during.contains(&part.created_s))
    }

    /// The inodes in its blocks of the inode file.
    fn inodes(&self, image: &Image) -> anyhow::Result<Vec<LoggedInode>> {
        let mut found = Vec::new();
        let tables = self
            .data()
            .filter(|(inode, _, offset)| *inode == INODE_FILE && *offset >= FIRST_INODE_BLOCK);
        for (_, block, offset) in tables {
            let bytes = image.read(block * BLOCK_SECTORS, 4096)?;
            let first = (offset - FIRST_INODE_BLOCK) * (4096 / INODE_BYTES as u64);
            for (inode, bytes) in (first..).zip(bytes.chunks_exact(INODE_BYTES)) {
                let time = |s, ns| le(bytes, s, 8) * SECOND_NS + le(bytes, ns, 4);
                if le(bytes, 50, 2) == 0 {
                    continue;
                }
                found.push(LoggedInode {
                    inode,
                    wall_ns: time(16, 32).max(time(24, 36)),
                    file_bytes: le(bytes, 8, 8),
                });
            }
        }
        Ok(found)
    }
}

/// Logs by their first block's sector: the bytes of each, in the order of writing.
///
/// Errors: no nilfs2, or `dumpseg` fails.
pub fn log_sectors(image: &Image) -> anyhow::Result<SectorMap<u64>> {
    let superblock = image.read(2, 1024)?;
    let logs = logs(image, le(&superblock, 24, 8), le(&superblock, 48, 4))?;
    let mut map = SectorMap::default();
    for log in logs {
        for part in &log.parts {
            map.insert(
                part.first * BLOCK_SECTORS,
                part.blocks * BLOCK_SECTORS,
                log.id,
            );
        }
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_from_dumpseg() {
        let text = "segment: segnum = 0
  sequence number = 7, next segnum = 1
  partial segment: blocknr = 1, nblocks = 9
    creation time = 2026-01-01 00:00:00
    nfinfo = 2
    finfo
      ino = 12, cno = 4, nblocks = 3, ndatblk = 2
        vblocknr = 9, blkoff = 5, blocknr = 2
        vblocknr = 10, blkoff = 6, blocknr = 3
        vblocknr = 11, blocknr = 4
    finfo
      ino = 3, cno = 4, nblocks = 2, ndatblk = 1
        blkoff = 2, blocknr = 5
        blkoff = 0, level = 1, blocknr = 6
";
        let parts = parse(text).expect("well formed");
        let [(7, part)] = &parts[..] else {
            panic!("{parts:?}");
        };
        assert_eq!((part.first, part.blocks), (1, 9));
        assert_eq!(part.contents[0].data, [(2, 5), (3, 6)]);
        assert_eq!(part.contents[0].nodes, [4]);
        assert_eq!(part.contents[1].data, [(5, 2)]);
        assert_eq!(part.contents[1].nodes, [6]);
    }

    #[test]
    fn the_first_segment_begins_after_the_superblock() {
        assert_eq!(in_segment(1, 2048), 0);
        assert_eq!(in_segment(2047, 2048), 2046);
        assert_eq!(in_segment(2050, 2048), 2);
    }
}

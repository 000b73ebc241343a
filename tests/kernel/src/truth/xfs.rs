//! xfs, by the magic numbers of its structures and by its log's records.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{LogBlock, LoggedInode, Truth, first_sync_of, number_after, tool};
use crate::facts::Facts;
use crate::image::{BLOCK_SECTORS, Image, be, le};
use crate::sector_map::SectorMap;

/// `XLOG_HEADER_MAGIC_NUM`, fs/xfs/libxfs/xfs_log_format.h.
const RECORD_MAGIC: u64 = 0xfeed_babe;
/// `XFS_LI_INODE`.
const ITEM_INODE: u64 = 0x123b;
/// `XFS_DINODE_MAGIC`, "IN".
const INODE_MAGIC: u64 = 0x494e;
/// `XFS_BIGTIME_EPOCH_OFFSET`, fs/xfs/libxfs/xfs_format.h: seconds from its epoch to 1970.
const BIGTIME_EPOCH_S: u64 = 1 << 31;
const SECTOR: usize = SECTOR_BYTES as usize;
/// Bytes of log per cycle word in a record header (`XLOG_HEADER_CYCLE_SIZE`).
const HEADER_COVERS_BYTES: usize = 32 * 1024;

/// See [`Truth::read`].
pub fn read(image: &Image, facts: &Facts) -> anyhow::Result<Truth> {
    let layout = Layout::read(image)?;
    let mut classes = SectorMap::default();
    image.for_each_block(|sector, block| layout.classify(sector, block, &mut classes))?;
    Ok(Truth {
        classes,
        log: log(image, &layout, facts)?,
        ..Truth::default()
    })
}

struct Layout {
    group_sectors: u64,
    log_start: u64,
    log_sectors: u64,
}

impl Layout {
    fn read(image: &Image) -> anyhow::Result<Layout> {
        let text = tool("xfs_db", &["-r", "-c", "sb 0", "-c", "p"], image.path())?;
        let field = |name: &str| {
            let line = text.lines().find(|l| l.split(" = ").next() == Some(name));
            line.and_then(|l| number_after(l, "="))
                .with_context(|| format!("xfs_db: no {name}"))
        };
        let block_sectors = field("blocksize")? / SECTOR_BYTES;
        anyhow::ensure!(
            block_sectors == BLOCK_SECTORS,
            "only 4 KiB blocks are understood"
        );
        let log = field("logstart")?;
        let group = 1 << field("agblklog")?;
        Ok(Layout {
            group_sectors: field("agblocks")? * block_sectors,
            log_start: (log / group * field("agblocks")? + log % group) * block_sectors,
            log_sectors: field("logblocks")? * block_sectors,
        })
    }

    fn in_log(&self, sector: u64) -> bool {
        (self.log_start..self.log_start + self.log_sectors).contains(&sector)
    }

    fn classify(&self, sector: u64, block: &[u8], classes: &mut SectorMap<Class>) {
        if self.in_log(sector) {
            return;
        }
        if sector.is_multiple_of(self.group_sectors) {
            for (number, header) in (0..).zip(block.chunks_exact(SECTOR).take(4)) {
                if let Some(class) = group_header(header) {
                    classes.insert(sector + number, 1, class);
                }
            }
        } else if let Some(class) = structure(block) {
            classes.insert(sector, BLOCK_SECTORS, class);
        }
    }
}

/// The four headers at the start of an allocation group, each a sector.
fn group_header(sector: &[u8]) -> Option<Class> {
    match &sector[..4] {
        b"XFSB" => Some(Class::Superblock),
        b"XAGF" | b"XAFL" => Some(Class::FreeSpaceHeader),
        b"XAGI" => Some(Class::InodeHeader),
        _ => None,
    }
}

/// Structures of the fifth version of the format, of a block each.
fn structure(block: &[u8]) -> Option<Class> {
    match &block[..4] {
        b"AB3B" | b"AB3C" | b"RMB3" | b"R3FC" => return Some(Class::FreeSpaceTree),
        b"IAB3" | b"FIB3" => return Some(Class::InodeTree),
        b"BMA3" => return Some(Class::ExtentBlock),
        b"XDB3" | b"XDD3" | b"XDF3" => return Some(Class::Directory),
        _ => {}
    }
    match (be(block, 0, 2), be(block, 8, 2)) {
        (INODE_MAGIC, _) => Some(Class::InodeTable),
        // xfs_da_blkinfo: directory leaves and nodes, attribute leaves.
        (_, 0x3df1 | 0x3dff) => Some(Class::Directory),
        (_, 0x3bee) => Some(Class::Attribute),
        _ => None,
    }
}

/// A log record.
struct Record {
    sector: u64,
    sectors: u64,
    /// Checkpoints that have a part in it.
    checkpoints: BTreeSet<u64>,
}

/// Inodes in a checkpoint.
type Changes = Vec<LoggedInode>;

fn log(image: &Image, layout: &Layout, facts: &Facts) -> anyhow::Result<SectorMap<LogBlock>> {
    let (records, changes) = records(image, layout)?;
    let syncs = facts.syncs();
    let mut log = SectorMap::default();
    for record in records {
        let held: Changes = record
            .checkpoints
            .iter()
            .flat_map(|id| changes.get(id).cloned().unwrap_or_default())
            .collect();
        let entry = LogBlock {
            class: Class::LogRecord,
            commit: None,
            home: None,
            cause: first_sync_of(facts, &syncs, &held),
        };
        log.insert(record.sector, record.sectors, entry);
    }
    Ok(log)
}

/// Every record of a log that has not wrapped around yet. Records without operations, which
/// `xlog_clear_stale_blocks` puts before the log's head at a mount, are left out.
fn records(
    image: &Image,
    layout: &Layout,
) -> anyhow::Result<(Vec<Record>, BTreeMap<u64, Changes>)> {
    let bytes = image.read(layout.log_start, layout.log_sectors as usize * SECTOR)?;
    let mut records = Vec::new();
    let mut changes: BTreeMap<u64, Changes> = BTreeMap::new();
    let mut at = 0;
    while let Some(record) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        // Only a record's first sector can begin with the magic: elsewhere the cycle stands there.
        if be(record, 0, 4) != RECORD_MAGIC {
            at += SECTOR;
            continue;
        }
        let body = (be(record, 12, 4) as usize).next_multiple_of(SECTOR);
        let headers = (be(record, 320, 4) as usize)
            .div_ceil(HEADER_COVERS_BYTES)
            .max(1);
        let length = headers * SECTOR + body;
        let record = record
            .get(..length)
            .context("a record beyond the log's end")?;
        let sector = layout.log_start + (at / SECTOR) as u64;
        at += length;
        if be(record, 40, 4) == 0 {
            continue;
        }
        let mut checkpoints = BTreeSet::new();
        for (id, inode) in items(&unpack(record, headers), be(record, 40, 4)) {
            checkpoints.insert(id);
            changes.entry(id).or_default().extend(inode);
        }
        records.push(Record {
            sector,
            sectors: (length / SECTOR) as u64,
            checkpoints,
        });
    }
    Ok((records, changes))
}

/// The content: the first word of every sector is kept in the headers (`xlog_pack_data`,
/// fs/xfs/xfs_log.c).
fn unpack(record: &[u8], headers: usize) -> Vec<u8> {
    let mut body = record[headers * SECTOR..].to_vec();
    for (number, sector) in body.chunks_exact_mut(SECTOR).enumerate() {
        let (header, word) = (number / 64, number % 64);
        let first = if header == 0 { 44 } else { 4 };
        let at = header * SECTOR + first + 4 * word;
        sector[..4].copy_from_slice(&record[at..at + 4]);
    }
    body
}

/// The checkpoint of every operation, and the inode where it logs one.
fn items(body: &[u8], operations: u64) -> Vec<(u64, Option<LoggedInode>)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut inode = None;
    for _ in 0..operations {
        let Some(header) = body.get(at..at + 12) else {
            break;
        };
        let length = be(header, 4, 4) as usize;
        let region = body.get(at + 12..at + 12 + length).unwrap_or_default();
        let core = le(region, 0, 2) == INODE_MAGIC && length >= 176;
        let change = inode.filter(|_| core).map(|inode| LoggedInode {
            inode,
            wall_ns: newest_time(region),
            file_bytes: le(region, 56, 8),
        });
        found.push((be(header, 0, 4), change));
        let names_inode = length == 56 && le(region, 0, 2) == ITEM_INODE;
        inode = names_inode.then(|| le(region, 16, 8));
        at += 12 + length;
    }
    found
}

/// `di_mtime` or `di_ctime` of a `struct xfs_log_dinode`, whichever is later; wall clock, ns.
fn newest_time(core: &[u8]) -> u64 {
    let bigtime = le(core, 40, 8).max(le(core, 48, 8));
    bigtime.saturating_sub(BIGTIME_EPOCH_S * 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_of_every_sector_comes_back_from_the_header() {
        let mut record = vec![0xee; 3 * SECTOR];
        record[44..52].copy_from_slice(b"AAAABBBB");
        let body = unpack(&record, 1);
        assert_eq!(&body[..5], b"AAAA\xee");
        assert_eq!(&body[SECTOR..SECTOR + 5], b"BBBB\xee");
    }

    #[test]
    fn a_logged_inode_is_found_with_its_time() {
        let mut format = vec![0; 56];
        format[..2].copy_from_slice(&0x123bu16.to_le_bytes());
        format[16..24].copy_from_slice(&133u64.to_le_bytes());
        let mut core = vec![0; 176];
        core[..2].copy_from_slice(&0x494eu16.to_le_bytes());
        core[48..56].copy_from_slice(&((1u64 << 31) * 1_000_000_000 + 77).to_le_bytes());
        let mut body = Vec::new();
        for region in [format, core] {
            body.extend(9u32.to_be_bytes());
            body.extend((region.len() as u32).to_be_bytes());
            body.extend([0; 4]);
            body.extend(region);
        }
        let logged = LoggedInode {
            inode: 133,
            wall_ns: 77,
            file_bytes: 0,
        };
        assert_eq!(items(&body, 2), [(9, None), (9, Some(logged))]);
    }
}

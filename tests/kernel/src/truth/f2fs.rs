//! f2fs, as its own tools see it: the areas of the superblock, whose each block of the main area is
//! (segment summaries and node address table), and the inodes that were written for an fsync.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{Cause, LogBlock, LoggedInode, Truth, first_sync_of, number_after};
use crate::facts::Facts;
use crate::image::{Image, le};

const BLOCK_BYTES: usize = 4096;
const BLOCK_SECTORS: u64 = BLOCK_BYTES as u64 / SECTOR_BYTES;
/// `struct node_footer`, include/linux/f2fs_fs.h: node id, inode, flags.
const FOOTER_OFFSET: usize = BLOCK_BYTES - 24;
/// `FSYNC_BIT_SHIFT`: recovery takes the block for an fsync's.
const FSYNC_FLAG: u64 = 1 << 1;
const S_IFDIR: u64 = 0o040_000;

/// See [`Truth::read`].
pub fn read(image: &Image, facts: &Facts) -> anyhow::Result<Truth> {
    let dump = Dump::of(image.path())?;
    let mut truth = Truth::default();
    for (first, blocks, class) in dump.areas()? {
        truth
            .classes
            .insert(first * BLOCK_SECTORS, blocks * BLOCK_SECTORS, class);
    }
    let nodes = dump.nodes();
    let directories = directories(image, &nodes)?;
    let mut fsynced = Vec::new();
    for (block, owner) in dump.owners()? {
        let sector = block * BLOCK_SECTORS;
        let inode = nodes.get(&owner.node).map(|node| node.inode);
        let class = match (owner.is_node, inode) {
            (true, _) => Class::NodeBlock,
            (false, Some(inode)) if directories.contains(&inode) => Class::Directory,
            (false, Some(_)) => Class::FileData,
            (false, None) => continue,
        };
        truth.classes.insert(sector, BLOCK_SECTORS, class);
        if owner.is_node {
            fsynced.extend(fsynced_inode(image, sector)?.map(|inode| (sector, inode)));
        }
    }
    for (sector, inode) in &fsynced {
        let entry = LogBlock {
            class: Class::NodeBlock,
            commit: None,
            home: None,
            cause: cause(facts, &fsynced, inode),
        };
        truth.log.insert(*sector, BLOCK_SECTORS, entry);
    }
    Ok(truth)
}

/// The call that an inode was written for. fdatasync writes the addresses of its blocks beside the
/// old times: of several versions with one time nothing tells which call wrote which, where calls
/// are so far apart that each change has a time of its own.
fn cause(facts: &Facts, fsynced: &[(u64, LoggedInode)], inode: &LoggedInode) -> Cause {
    let same = |other: &&(u64, LoggedInode)| {
        (other.1.inode, other.1.wall_ns) == (inode.inode, inode.wall_ns)
    };
    let syncs = facts.syncs();
    let cause = first_sync_of(facts, &syncs, &[*inode]);
    match &cause {
        Cause::OneOf(calls)
            if calls.iter().all(|call| syncs[*call].1.alone)
                && fsynced.iter().filter(same).count() > 1 =>
        {
            Cause::Unknown
        }
        _ => cause,
    }
}

/// The inode in a block that was written for an fsync of it. Other blocks of the file's index hold
/// no time, so that nothing tells for which fsync they were written.
fn fsynced_inode(image: &Image, sector: u64) -> anyhow::Result<Option<LoggedInode>> {
    let block = image.read(sector, BLOCK_BYTES)?;
    let footer = &block[FOOTER_OFFSET..];
    let (node, inode, flags) = (le(footer, 0, 4), le(footer, 4, 4), le(footer, 8, 4));
    if node != inode || flags & FSYNC_FLAG == 0 {
        return Ok(None);
    }
    // `struct f2fs_inode`: i_size, i_ctime, i_mtime, and their nanoseconds.
    let time =
        |seconds, nanoseconds| le(&block, seconds, 8) * 1_000_000_000 + le(&block, nanoseconds, 4);
    Ok(Some(LoggedInode {
        inode,
        wall_ns: time(40, 60).max(time(48, 64)),
        file_bytes: le(&block, 16, 8),
    }))
}

/// Inodes in use that are directories.
fn directories(image: &Image, nodes: &HashMap<u64, Node>) -> anyhow::Result<HashSet<u64>> {
    let mut found = HashSet::new();
    for (id, node) in nodes.iter().filter(|(id, node)| **id == node.inode) {
        let head = image.read(node.block * BLOCK_SECTORS, 8)?;
        if le(&head, 0, 2) & 0o170_000 == S_IFDIR {
            found.insert(*id);
        }
    }
    Ok(found)
}

/// A line of the node address table.
struct Node {
    inode: u64,
    block: u64,
}

/// The last owner of a block of the main area.
struct Owner {
    /// True if the block is the node itself; false if it is data that the node points to.
    is_node: bool,
    node: u64,
}

/// What `dump.f2fs` says.
struct Dump {
    superblock: String,
    address_table: String,
    summaries: String,
}

impl Dump {
    /// The program leaves its tables as files in its working directory.
    fn of(image: &Path) -> anyhow::Result<Dump> {
        let directory = tempfile::tempdir()?;
        let output = Command::new("dump.f2fs")
            .args(["-d", "1", "-n", "0~-1", "-a", "0~-1"])
            .arg(image)
            .current_dir(directory.path())
            .output()
            .context("dump.f2fs: cannot run")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        anyhow::ensure!(output.status.success(), "dump.f2fs: {text}");
        let table = |name: &str| {
            let path = directory.path().join(name);
            std::fs::read_to_string(&path).with_context(|| format!("dump.f2fs: no {name}"))
        };
        Ok(Dump {
            superblock: text,
            address_table: table("dump_nat")?,
            summaries: table("dump_ssa")?,
        })
    }

    /// A field of the superblock: `name [0x 200 : 512]`.
    fn field(&self, name: &str) -> anyhow::Result<u64> {
        let mut lines = self.superblock.lines();
        let value = lines.find_map(|line| {
            let (_, value) = line.strip_prefix(name)?.split_once(" : ")?;
            number_after(value, "")
        });
        value.with_context(|| format!("dump.f2fs: no {name}"))
    }

    /// First block, number of blocks and class of the areas before the main one.
    fn areas(&self) -> anyhow::Result<Vec<(u64, u64, Class)>> {
        let starts = [
            ("cp_blkaddr", Class::Checkpoint),
            ("sit_blkaddr", Class::SegmentInfoTable),
            ("nat_blkaddr", Class::NodeAddressTable),
            ("ssa_blkaddr", Class::SegmentSummary),
        ];
        let mut areas = vec![(0, 2, Class::Superblock)];
        for (index, (name, class)) in starts.into_iter().enumerate() {
            let next = starts.get(index + 1).map_or("main_blkaddr", |next| next.0);
            let first = self.field(name)?;
            areas.push((first, self.field(next)? - first, class));
        }
        Ok(areas)
    }

    /// The node address table, by node id.
    fn nodes(&self) -> HashMap<u64, Node> {
        let node = |line: &str| {
            let node = Node {
                inode: number_after(line, "ino:")?,
                block: number_after(line, "blkaddr:")?,
            };
            Some((number_after(line, "nid:")?, node))
        };
        self.address_table.lines().filter_map(node).collect()
    }

    /// The last owner of every block of the main area that was ever written.
    fn owners(&self) -> anyhow::Result<BTreeMap<u64, Owner>> {
        let main = self.field("main_blkaddr")?;
        let blocks = 1 << self.field("log_blocks_per_seg")?;
        let mut owners = BTreeMap::new();
        let mut segment = None;
        for line in self.summaries.lines() {
            if let Some((number, kind)) = segment_line(line) {
                segment = Some((main + number * blocks, kind));
                continue;
            }
            let Some((first, is_node)) = segment else {
                continue;
            };
            for (index, node) in entries(line).filter(|(_, node)| *node != 0) {
                owners.insert(first + index, Owner { is_node, node });
            }
        }
        Ok(owners)
    }
}

/// `segno: 1f, Current Node`: the segment, and whether it holds nodes.
fn segment_line(line: &str) -> Option<(u64, bool)> {
    let (number, kind) = line.strip_prefix("segno: ")?.split_once(", ")?;
    Some((u64::from_str_radix(number, 16).ok()?, kind.contains("Node")))
}

/// `[  0:      4][  1:      5]`: block in the segment, and its node in hexadecimal.
fn entries(line: &str) -> impl Iterator<Item = (u64, u64)> {
    line.split('[').filter_map(|entry| {
        let (index, node) = entry.split_once(']')?.0.split_once(':')?;
        let node = u64::from_str_radix(node.trim(), 16).ok()?;
        Some((index.trim().parse().ok()?, node))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump() -> Dump {
        Dump {
            superblock: "log_blocks_per_seg                       [0x       9 : 9]
cp_blkaddr                    \t\t[0x     200 : 512]
main_blkaddr                  \t\t[0x    1600 : 5632]
"
            .into(),
            address_table: "nid:    3\tino:    3\toffset:    0\tblkaddr:      5633\tpack:1\n"
                .into(),
            summaries: "Note: dump.f2fs -b blkaddr = 0x1600 + segno *  0x200 + offset


segno: 1, Current Data

[  0:      4][  1:     1f][  2:      0]


segno: 0, Node

[  0:      3]"
                .into(),
        }
    }

    #[test]
    fn blocks_of_the_main_area_have_their_owner_by_the_summaries() {
        let owners = dump().owners().expect("complete");
        let found: Vec<_> = owners
            .iter()
            .map(|(block, owner)| (*block, owner.is_node, owner.node))
            .collect();
        let expected = [(5632, true, 3), (6144, false, 4), (6145, false, 31)];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_superblock_and_the_address_table_are_read() {
        let dump = dump();
        assert_eq!(dump.field("cp_blkaddr").expect("there"), 512);
        assert!(dump.field("sit_blkaddr").is_err());
        let nodes = dump.nodes();
        assert_eq!((nodes[&3].inode, nodes[&3].block), (3, 5633));
    }
}

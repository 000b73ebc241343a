//! btrfs, by the headers of its tree blocks and by its chunk tree.

use std::collections::BTreeMap;

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{Cause, LogBlock, LoggedInode, Truth, first_sync_of, number_after, tool};
use crate::facts::Facts;
use crate::image::{Image, le};

/// `BTRFS_TREE_LOG_OBJECTID`, include/uapi/linux/btrfs_tree.h.
const TREE_LOG: u64 = -6i64 as u64;
/// `BTRFS_DATA_RELOC_TREE_OBJECTID`.
const DATA_RELOC: u64 = -9i64 as u64;
/// Bytes of `struct btrfs_header`.
const HEADER_BYTES: usize = 101;
/// Bytes of `struct btrfs_item` and of `struct btrfs_key_ptr`.
const ITEM_BYTES: usize = 25;
const POINTER_BYTES: usize = 33;
const INODE_ITEM: u8 = 1;
const ROOT_ITEM: u8 = 132;
const SUPERBLOCK_OFFSETS: [u64; 3] = [64 << 10, 64 << 20, 256 << 30];

/// See [`Truth::read`].
pub fn read(image: &Image, facts: &Facts) -> anyhow::Result<Truth> {
    let layout = Layout::read(image)?;
    let nodes = layout.nodes(image)?;
    let changes = Changes::of(&nodes);
    let sectors = layout.node_bytes / SECTOR_BYTES;
    let mut truth = Truth::default();
    for (sector, node) in &nodes {
        truth.logical.insert(*sector, sectors, node.logical());
        if node.owner() != TREE_LOG {
            if let Some(class) = class_of(node.owner()) {
                truth.classes.insert(*sector, sectors, class);
            }
            continue;
        }
        let entry = LogBlock {
            class: Class::TreeLog,
            commit: None,
            home: None,
            cause: cause_of(facts, &changes, node),
        };
        truth.log.insert(*sector, sectors, entry);
    }
    let end = image.bytes()?;
    for offset in SUPERBLOCK_OFFSETS.into_iter().filter(|o| *o < end) {
        truth
            .classes
            .insert(offset / SECTOR_BYTES, 8, Class::Superblock);
    }
    Ok(truth)
}

fn class_of(owner: u64) -> Option<Class> {
    match owner {
        1 => Some(Class::RootTree),
        2 => Some(Class::ExtentTree),
        3 => Some(Class::ChunkTree),
        4 => Some(Class::DeviceTree),
        5 | 256.. if owner < 1 << 48 => Some(Class::FilesystemTree),
        7 => Some(Class::ChecksumTree),
        9 | 11 => Some(Class::OtherTree),
        10 => Some(Class::FreeSpaceTree),
        DATA_RELOC => None,
        _ => None,
    }
}

/// A chunk: logical start, length, and where its copies lie, all in bytes.
struct Chunk {
    logical: u64,
    length: u64,
    copies: Vec<u64>,
}

struct Layout {
    node_bytes: u64,
    filesystem_id: Vec<u8>,
    chunks: Vec<Chunk>,
}

impl Layout {
    fn read(image: &Image) -> anyhow::Result<Layout> {
        let superblock = image.read(SUPERBLOCK_OFFSETS[0] / SECTOR_BYTES, 4096)?;
        anyhow::ensure!(&superblock[64..72] == b"_BHRfS_M", "no btrfs superblock");
        let arguments = ["inspect-internal", "dump-tree", "-t", "chunk"];
        let chunks = parse_chunks(&tool("btrfs", &arguments, image.path())?);
        anyhow::ensure!(!chunks.is_empty(), "btrfs dump-tree: no chunks");
        Ok(Layout {
            node_bytes: le(&superblock, 148, 4),
            filesystem_id: superblock[32..48].to_vec(),
            chunks,
        })
    }

    /// Where the copies of a logical address lie, bytes.
    fn physical(&self, logical: u64) -> Vec<u64> {
        let holds = |c: &&Chunk| (c.logical..c.logical + c.length).contains(&logical);
        self.chunks.iter().find(holds).map_or(Vec::new(), |chunk| {
            let offset = logical - chunk.logical;
            chunk.copies.iter().map(|copy| copy + offset).collect()
        })
    }

    /// Every tree block, also those that are no longer used, by its first sector. A block counts
    /// only where the chunk tree puts its logical address.
    fn nodes(&self, image: &Image) -> anyhow::Result<BTreeMap<u64, Node>> {
        let mut sectors = Vec::new();
        image.for_each_block(|sector, block| {
            let here = sector * SECTOR_BYTES;
            if block[32..48] == self.filesystem_id
                && self.physical(le(block, 48, 8)).contains(&here)
            {
                sectors.push(sector);
            }
        })?;
        let read = |sector| Ok((sector, Node(image.read(sector, self.node_bytes as usize)?)));
        sectors.into_iter().map(read).collect()
    }
}

fn parse_chunks(text: &str) -> Vec<Chunk> {
    let mut chunks: Vec<Chunk> = Vec::new();
    for line in text.lines() {
        if let Some(logical) = number_after(line, "CHUNK_ITEM") {
            chunks.push(Chunk {
                logical,
                length: 0,
                copies: Vec::new(),
            });
        } else if let Some(chunk) = chunks.last_mut() {
            if let (Some(length), true) = (number_after(line, "length"), line.contains("owner")) {
                chunk.length = length;
            } else if line.contains("stripe") && line.contains("devid") {
                chunk.copies.extend(number_after(line, "offset"));
            }
        }
    }
    chunks
}

/// A tree block.
struct Node(Vec<u8>);

impl Node {
    fn logical(&self) -> u64 {
        le(&self.0, 48, 8)
    }

    /// Logical address and generation, as pointers to it have them.
    fn address(&self) -> (u64, u64) {
        (self.logical(), le(&self.0, 80, 8))
    }

    fn owner(&self) -> u64 {
        le(&self.0, 88, 8)
    }

    fn level(&self) -> u64 {
        le(&self.0, 100, 1)
    }

    fn count(&self) -> usize {
        le(&self.0, 96, 4) as usize
    }

    /// The items of a leaf: object id, type, content.
    fn items(&self) -> impl Iterator<Item = (u64, u8, &[u8])> {
        (0..self.count()).map_while(|number| {
            let item = self
                .0
                .get(HEADER_BYTES + number * ITEM_BYTES..)?
                .get(..ITEM_BYTES)?;
            let start = HEADER_BYTES + le(item, 17, 4) as usize;
            let content = self.0.get(start..start + le(item, 21, 4) as usize)?;
            Some((le(item, 0, 8), item[8], content))
        })
    }

    /// The logical addresses and generations of the nodes below.
    fn children(&self) -> Vec<(u64, u64)> {
        let pointer = |number: usize| {
            let start = HEADER_BYTES + number * POINTER_BYTES;
            let pointer = self.0.get(start..start + POINTER_BYTES)?;
            Some((le(pointer, 17, 8), le(pointer, 25, 8)))
        };
        match self.level() {
            0 => self
                .items()
                .filter(|(_, kind, content)| *kind == ROOT_ITEM && content.len() >= 184)
                .map(|(_, _, content)| (le(content, 176, 8), le(content, 160, 8)))
                .collect(),
            _ => (0..self.count()).map_while(pointer).collect(),
        }
    }

    /// The inodes of a leaf, with the later of `ctime` and `mtime`.
    fn inodes(&self) -> Vec<LoggedInode> {
        let time = |content: &[u8], at| le(content, at, 8) * 1_000_000_000 + le(content, at + 8, 4);
        self.items()
            .filter(|(_, kind, content)| *kind == INODE_ITEM && content.len() >= 160)
            .map(|(inode, _, content)| LoggedInode {
                inode,
                wall_ns: time(content, 124).max(time(content, 136)),
                file_bytes: le(content, 16, 8),
            })
            .collect()
    }
}

/// The tree-log blocks, to look below a node, and above it.
struct Changes<'a> {
    by_address: BTreeMap<(u64, u64), &'a Node>,
    /// For each block, what the first commit of the log that holds it has.
    first_commit: BTreeMap<(u64, u64), (u64, Vec<LoggedInode>)>,
}

impl<'a> Changes<'a> {
    fn of(nodes: &'a BTreeMap<u64, Node>) -> Changes<'a> {
        let logs = nodes
            .values()
            .filter(|n| n.level() < 8 && n.owner() == TREE_LOG);
        let mut changes = Changes {
            by_address: logs.map(|n| (n.address(), n)).collect(),
            first_commit: BTreeMap::new(),
        };
        // Each commit of the log writes the leaf that has the log trees' roots.
        let tops: Vec<&Node> = changes.by_address.values().copied().collect();
        for top in tops
            .into_iter()
            .filter(|n| n.level() == 0 && !n.children().is_empty())
        {
            changes.add_commit(top);
        }
        changes
    }

    fn add_commit(&mut self, top: &Node) {
        let mut held = Held::default();
        self.look_below(top, 0, &mut held);
        let Some(newest) = held.inodes.iter().map(|l| l.wall_ns).max() else {
            return;
        };
        for block in held.blocks {
            let first = self.first_commit.entry(block);
            let first = first.or_insert_with(|| (newest, held.inodes.clone()));
            if newest < first.0 {
                *first = (newest, held.inodes.clone());
            }
        }
    }

    /// What a node and all below it hold. Nodes that have since been overwritten are missing.
    fn look_below(&self, node: &Node, depth: u32, held: &mut Held) {
        if depth > 8 {
            return;
        }
        held.blocks.push(node.address());
        if node.level() == 0 {
            held.inodes.extend(node.inodes());
        }
        for address in node.children() {
            if let Some(child) = self.by_address.get(&address) {
                self.look_below(child, depth + 1, held);
            }
        }
    }
}

#[derive(Default)]
struct Held {
    blocks: Vec<(u64, u64)>,
    inodes: Vec<LoggedInode>,
}

/// A block of the log was written by the first commit that holds it. Where an older one was
/// overwritten, the block's own inodes may tell of an earlier sync call: then it is one of both.
fn cause_of(facts: &Facts, changes: &Changes<'_>, node: &Node) -> Cause {
    let Some((_, inodes)) = changes.first_commit.get(&node.address()) else {
        return Cause::Unknown;
    };
    let syncs = facts.syncs();
    let mut held = Held::default();
    changes.look_below(node, 0, &mut held);
    let of_commit = first_sync_of(facts, &syncs, inodes);
    match (of_commit, first_sync_of(facts, &syncs, &held.inodes)) {
        (Cause::OneOf(commit), Cause::OneOf(own)) => Cause::OneOf([commit, own].concat()),
        (of_commit, _) => of_commit,
    }
}

/// Where the chunk tree of an image puts each copy of a logical address: sectors.
///
/// Errors: no btrfs, or `btrfs inspect-internal` fails.
pub fn copies(image: &Image, logical: &[u64]) -> anyhow::Result<BTreeMap<u64, Vec<u64>>> {
    let layout = Layout::read(image).context("the chunk tree")?;
    let sectors = |l: &u64| {
        layout
            .physical(*l)
            .into_iter()
            .map(|p| p / SECTOR_BYTES)
            .collect()
    };
    Ok(logical.iter().map(|l| (*l, sectors(l))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_copies_of_a_chunk_are_read_from_dump_tree() {
        let text = "\titem 2 key (FIRST_CHUNK_TREE CHUNK_ITEM 22020096) itemoff 15993 itemsize 112
\t\tlength 8388608 owner 2 stripe_len 65536 type SYSTEM|DUP
\t\t\tstripe 0 devid 1 offset 22020096
\t\t\tdev_uuid 9a8aea7e
\t\t\tstripe 1 devid 1 offset 30408704";
        let layout = Layout {
            node_bytes: 16384,
            filesystem_id: vec![0; 16],
            chunks: parse_chunks(text),
        };
        assert_eq!(layout.physical(22_020_096 + 4096), [22_024_192, 30_412_800]);
        assert!(layout.physical(22_020_096 + 8_388_608).is_empty());
    }
}

//! ext4, as e2fsprogs sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::Context;
use iostep_model::{Class, SECTOR_BYTES};

use super::{Cause, LogBlock, Truth, inode_of, number_after, syncs_at, tool};
use crate::facts::{Facts, Process, Sync};
use crate::image::{Image, be, le};

/// `JBD2_MAGIC_NUMBER`, include/linux/jbd2.h.
const JBD2_MAGIC: u64 = 0xc03b_3998;
/// `EXT4_EXT_MAGIC`, fs/ext4/ext4_extents.h.
const EXTENT_MAGIC: u64 = 0xf30a;

/// See [`Truth::read`].
pub fn read(image: &Image, facts: &Facts, asked: &[u64]) -> anyhow::Result<Truth> {
    let layout = Layout::read(image)?;
    let mut truth = Truth::default();
    for (first, last, class) in &layout.ranges {
        let sectors = (last - first + 1) * layout.block_sectors;
        truth
            .classes
            .insert(first * layout.block_sectors, sectors, *class);
    }
    for (block, class) in past_of_log(image, &layout, asked)? {
        let (sector, sectors) = (block * layout.block_sectors, layout.block_sectors);
        truth.journal.insert(sector, sectors, ());
        truth.classes.insert(sector, sectors, class);
    }
    for (block, entry) in log(image, &layout, facts)? {
        truth
            .log
            .insert(block * layout.block_sectors, layout.block_sectors, entry);
    }
    let open: BTreeSet<u64> = asked
        .iter()
        .filter(|s| truth.classes.get(**s).is_none())
        .map(|sector| sector / layout.block_sectors)
        .collect();
    for (block, class) in owners(image, &layout, &open)? {
        truth
            .classes
            .insert(block * layout.block_sectors, layout.block_sectors, class);
    }
    Ok(truth)
}

struct Layout {
    block_sectors: u64,
    /// First block, last block, class; of `dumpe2fs`.
    ranges: Vec<(u64, u64, Class)>,
    /// The journal's blocks in the order of the journal.
    journal: Vec<u64>,
    /// How many at its end are for fast commits.
    fast_commit_blocks: usize,
    /// The inodes of quotas and of the orphan file.
    system: BTreeSet<u64>,
}

impl Layout {
    fn read(image: &Image) -> anyhow::Result<Layout> {
        let text = tool("dumpe2fs", &[], image.path())?;
        let block_bytes = text
            .lines()
            .find_map(|line| number_after(line, "Block size:"))
            .context("dumpe2fs: no block size")?;
        let extents = tool("debugfs", &["-R", "dump_extents <8>"], image.path())?;
        Ok(Layout {
            block_sectors: block_bytes / SECTOR_BYTES,
            ranges: text.lines().flat_map(ranges_of_line).collect(),
            fast_commit_blocks: text
                .lines()
                .find_map(|line| number_after(line, "Fast commit length:"))
                .unwrap_or(0) as usize,
            system: text.lines().filter_map(system_inode).collect(),
            journal: extents.lines().filter_map(leaf_extent).flatten().collect(),
        })
    }
}

/// The ranges that a line of `dumpe2fs` names.
fn ranges_of_line(line: &str) -> Vec<(u64, u64, Class)> {
    const LABELS: [(&str, Class); 6] = [
        ("superblock at", Class::Superblock),
        ("Group descriptors at", Class::GroupDescriptor),
        ("Group descriptor at", Class::GroupDescriptor),
        ("Block bitmap at", Class::BlockBitmap),
        ("Inode bitmap at", Class::InodeBitmap),
        ("Inode table at", Class::InodeTable),
    ];
    LABELS
        .into_iter()
        .filter_map(|(label, class)| {
            let first = number_after(line, label)?;
            let (_, rest) = line.split_once(label)?;
            let last = number_after(rest, &format!("{first}-")).unwrap_or(first);
            Some((first, last, class))
        })
        .collect()
}

/// The inode of a file of the filesystem's own that a line of `dumpe2fs` names.
fn system_inode(line: &str) -> Option<u64> {
    const LABELS: [&str; 4] = [
        "User quota inode:",
        "Group quota inode:",
        "Project quota inode:",
        "Orphan file inode:",
    ];
    LABELS.iter().find_map(|label| number_after(line, label))
}

/// The blocks of a leaf in `debugfs dump_extents`: `level/depth entry/entries logical - logical
/// physical - physical length flags`.
fn leaf_extent(line: &str) -> Option<std::ops::RangeInclusive<u64>> {
    let spaced = line.replace(['/', '-'], " ");
    let fields: Vec<u64> = spaced
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    match fields[..] {
        [level, depth, _, _, _, _, first, last, _] if level == depth => Some(first..=last),
        _ => None,
    }
}

/// What the blocks of the log are by their own headers: `logdump` leaves out what the log has
/// wrapped over in part.
fn past_of_log(image: &Image, layout: &Layout, asked: &[u64]) -> anyhow::Result<Vec<(u64, Class)>> {
    let written: BTreeSet<u64> = asked.iter().map(|s| s / layout.block_sectors).collect();
    let mut blocks = Vec::new();
    for block in layout.journal.iter().filter(|b| written.contains(b)) {
        let head = image.read(block * layout.block_sectors, 8)?;
        let class = match (be(&head, 0, 4), be(&head, 4, 4)) {
            (JBD2_MAGIC, 1) => Class::LogDescriptor,
            (JBD2_MAGIC, 2) => Class::LogCommit,
            (JBD2_MAGIC, 5) => Class::LogRevoke,
            _ => Class::LoggedBlock,
        };
        blocks.push((*block, class));
    }
    Ok(blocks)
}

/// What the log holds: filesystem block to entry.
fn log(image: &Image, layout: &Layout, facts: &Facts) -> anyhow::Result<BTreeMap<u64, LogBlock>> {
    let text = tool("debugfs", &["-R", "logdump -O -a"], image.path())?;
    let mut entries = BTreeMap::new();
    let Some(first) = layout.journal.first() else {
        return Ok(entries);
    };
    let entry = |class, commit, home| LogBlock {
        class,
        commit,
        home,
        cause: Cause::Unknown,
    };
    let normal_blocks = layout
        .journal
        .len()
        .saturating_sub(layout.fast_commit_blocks);
    for block in &layout.journal[normal_blocks..] {
        entries.insert(*block, entry(Class::FastCommit, None, None));
    }
    entries.insert(*first, entry(Class::LogSuperblock, None, None));
    let mut commit = None;
    for line in text.lines() {
        if let Some(sequence) = number_after(line, "Found expected sequence") {
            commit = Some(sequence);
            let class = match number_after(line, ", type") {
                Some(1) => Class::LogDescriptor,
                Some(2) => Class::LogCommit,
                Some(5) => Class::LogRevoke,
                _ => continue,
            };
            if let Some(block) = layout.journal_block(number_after(line, "at block")) {
                entries.insert(block, entry(class, commit, None));
            }
        } else if let Some(home) = number_after(line, "FS block")
            && let Some(block) = layout.journal_block(number_after(line, "journal block"))
        {
            entries.insert(block, entry(Class::LoggedBlock, commit, Some(home)));
        }
    }
    find_causes(image, layout, facts, &mut entries)?;
    Ok(entries)
}

impl Layout {
    fn journal_block(&self, number: Option<u64>) -> Option<u64> {
        self.journal.get(usize::try_from(number?).ok()?).copied()
    }
}

/// A commit block holds the time at which it was made (`journal_submit_commit_record`,
/// fs/jbd2/commit.c). Of sync calls that ran together, those count whose inode is in the
/// transaction.
fn find_causes(
    image: &Image,
    layout: &Layout,
    facts: &Facts,
    entries: &mut BTreeMap<u64, LogBlock>,
) -> anyhow::Result<()> {
    let syncs = facts.syncs();
    let homes = inode_homes(image, facts)?;
    let mut causes = BTreeMap::new();
    for (block, entry) in entries.iter().filter(|(_, e)| e.class == Class::LogCommit) {
        let bytes = image.read(block * layout.block_sectors, 64)?;
        anyhow::ensure!(
            be(&bytes, 0, 4) == JBD2_MAGIC,
            "block {block}: no commit block"
        );
        let wall_ns = be(&bytes, 48, 8) * 1_000_000_000 + be(&bytes, 56, 4);
        let transaction: BTreeSet<u64> = entries
            .values()
            .filter(|e| e.commit == entry.commit)
            .filter_map(|e| e.home)
            .collect();
        let running = syncs_at(&syncs, wall_ns);
        causes.insert(
            entry.commit,
            cause_of(facts, &syncs, running, &homes, &transaction),
        );
    }
    for entry in entries.values_mut().filter(|e| e.commit.is_some()) {
        entry.cause = causes.get(&entry.commit).cloned().unwrap_or(Cause::Unknown);
    }
    Ok(())
}

fn cause_of(
    facts: &Facts,
    syncs: &[(&Process, &Sync)],
    running: Vec<usize>,
    homes: &BTreeMap<u64, u64>,
    transaction: &BTreeSet<u64>,
) -> Cause {
    match running.len() {
        0 => return Cause::Nobody,
        1 => return Cause::OneOf(running),
        _ => {}
    }
    let in_transaction = |index: &usize| {
        let inode = inode_of(facts, syncs[*index].1);
        let home = inode.and_then(|inode| homes.get(&inode));
        home.is_some_and(|home| transaction.contains(home))
    };
    let possible: Vec<usize> = running.into_iter().filter(in_transaction).collect();
    match possible.is_empty() {
        true => Cause::Unknown,
        false => Cause::OneOf(possible),
    }
}

/// The inode table block of every inode of the workload.
fn inode_homes(image: &Image, facts: &Facts) -> anyhow::Result<BTreeMap<u64, u64>> {
    let inodes: BTreeSet<u64> = facts.files.values().map(|f| f.inode).collect();
    let commands: Vec<String> = inodes.iter().map(|i| format!("imap <{i}>")).collect();
    let mut homes = BTreeMap::new();
    let mut inode = None;
    for line in debugfs_script(image, &commands)?.lines() {
        inode = match line.starts_with("Inode ") {
            true => number_after(line, "Inode"),
            false => inode,
        };
        if let (Some(inode), Some(block)) = (inode, number_after(line, "located at block")) {
            homes.insert(inode, block);
        }
    }
    Ok(homes)
}

/// The classes of blocks outside the fixed layout, from whoever owns them.
fn owners(
    image: &Image,
    layout: &Layout,
    blocks: &BTreeSet<u64>,
) -> anyhow::Result<Vec<(u64, Class)>> {
    let commands: Vec<String> = blocks.iter().map(|b| format!("icheck {b}")).collect();
    let text = debugfs_script(image, &commands)?;
    let pairs: Vec<(u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace().map_while(|f| f.parse().ok());
            Some((fields.next()?, fields.next()?))
        })
        .collect();
    let inodes = pairs.iter().map(|(_, inode)| *inode).collect();
    let (directories, indirect) = directories_and_indirect(image, inodes)?;
    let mut found = Vec::new();
    for (block, inode) in pairs {
        let head = image.read(block * layout.block_sectors, 2)?;
        let extents = le(&head, 0, 2) == EXTENT_MAGIC;
        found.push(match (directories.contains(&inode), extents, inode) {
            (_, true, _) => (block, Class::ExtentBlock),
            _ if indirect.contains(&block) => (block, Class::IndirectBlock),
            (true, _, _) => (block, Class::Directory),
            (_, _, 7) => (block, Class::GroupDescriptor),
            _ if layout.system.contains(&inode) => (block, Class::SystemFile),
            (_, _, 12..) => (block, Class::FileData),
            _ => continue,
        });
    }
    Ok(found)
}

/// Which of the inodes are directories, and the indirect blocks of them all.
fn directories_and_indirect(
    image: &Image,
    inodes: BTreeSet<u64>,
) -> anyhow::Result<(BTreeSet<u64>, BTreeSet<u64>)> {
    let commands: Vec<String> = inodes.iter().map(|i| format!("stat <{i}>")).collect();
    let text = debugfs_script(image, &commands)?;
    let directory = |line: &str| {
        let inode = number_after(line, "Inode:")?;
        line.contains("Type: directory").then_some(inode)
    };
    let directories = text.lines().filter_map(directory).collect();
    Ok((
        directories,
        text.lines().flat_map(indirect_blocks).collect(),
    ))
}

/// The indirect blocks that a line of `debugfs stat` names: `(IND):24, (DIND):1060`.
fn indirect_blocks(line: &str) -> Vec<u64> {
    let words = line.split(", ");
    words
        .filter_map(|word| number_after(word, "IND):"))
        .collect()
}

fn debugfs_script(image: &Image, commands: &[String]) -> anyhow::Result<String> {
    let mut script = tempfile::NamedTempFile::new()?;
    script.write_all(commands.join("\n").as_bytes())?;
    let path = script.path().to_string_lossy().into_owned();
    tool("debugfs", &["-f", &path], image.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_from_dumpe2fs() {
        let line = "  Primary superblock at 0, Group descriptors at 1-3";
        let expected = [(0, 0, Class::Superblock), (1, 3, Class::GroupDescriptor)];
        assert_eq!(ranges_of_line(line), expected);
        let line = "  Inode table at 657-1168 (bg #0 + 657)";
        assert_eq!(ranges_of_line(line), [(657, 1168, Class::InodeTable)]);
        let line = "  Reserved GDT blocks at 2-128";
        assert!(ranges_of_line(line).is_empty());
    }

    #[test]
    fn indirect_blocks_are_read_from_stat() {
        let line = "(0-11):12-23, (IND):24, (12-1035):25-1048, (DIND):1049, (IND):1050, ";
        assert_eq!(indirect_blocks(line), [24, 1049, 1050]);
    }

    #[test]
    fn only_leaves_of_an_extent_tree_are_content() {
        let leaf = " 0/ 0   1/  1     0 -  8191 131072 - 139263   8192 ";
        assert_eq!(leaf_extent(leaf), Some(131_072..=139_263));
        let node = " 0/ 1   1/  1     0 -  8191 131072            8192 ";
        assert_eq!(leaf_extent(node), None);
        assert_eq!(
            leaf_extent("Level Entries       Logical        Physical"),
            None
        );
    }
}

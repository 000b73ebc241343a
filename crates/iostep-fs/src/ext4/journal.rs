//! The internal journal: jbd2's log, and at its end the blocks of fast commits.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use super::Ext4;
use super::blocks::Mapping;
use crate::bytes::be32;
use crate::error::{DiskField, Result};
use crate::{ReadAt, source};

/// `JBD2_MAGIC_NUMBER` (include/linux/jbd2.h).
const MAGIC: u32 = 0xc03b_3998;
/// `s_maxlen` of `journal_superblock_t`: how many blocks the journal has.
const LENGTH_AT: usize = 0x10;
/// `s_num_fc_blks`: how many of them are for fast commits.
const FAST_BLOCKS_AT: usize = 0x54;
/// `JBD2_DEFAULT_FAST_COMMIT_BLOCKS`.
const DEFAULT_FAST_BLOCKS: u32 = 256;

impl<S: ReadAt> Ext4<S> {
    /// Puts the journal and the tree that maps it into the layout.
    ///
    /// Errors: `Io`, `Corrupt`.
    pub(super) fn push_journal(&self, layout: &mut Vec<LayoutRange>) -> Result<()> {
        let journal_inode = self.superblock().journal_inode;
        if journal_inode == 0 {
            return Ok(());
        }
        let map = self.block_map(&self.inode(journal_inode)?)?;
        let fast_start = self.fast_start(&map.mappings)?;
        for mapping in &map.mappings {
            layout.extend(parts(mapping, fast_start));
        }
        let tree_class = self.tree_class(journal_inode)?;
        layout.extend(map.tree.iter().map(|&block| LayoutRange {
            first_block: block,
            blocks: 1,
            class: tree_class,
        }));
        Ok(())
    }

    /// The block of the journal with which the fast commits begin, as `jbd2_fc_init` and
    /// `journal_load_superblock` say (fs/jbd2/journal.c); behind the last one if there are none,
    /// or nobody can say.
    fn fast_start(&self, mappings: &[Mapping]) -> Result<u64> {
        let superblock = self.superblock();
        let first = mappings.iter().find(|mapping| mapping.file_block == 0);
        let Some(first) = first.filter(|_| superblock.features.has_fast_commit()) else {
            return Ok(u64::MAX);
        };
        let place = DiskField::superblock(superblock.kind, "journal");
        let offset_bytes = superblock.offset_bytes(place, first.fs_block)?;
        let Ok(bytes) = source::read(&self.source, offset_bytes, 1024) else {
            return Ok(u64::MAX);
        };
        if be32(&bytes, 0) != MAGIC {
            return Ok(u64::MAX);
        }
        let fast_blocks = match be32(&bytes, FAST_BLOCKS_AT) {
            0 => DEFAULT_FAST_BLOCKS,
            blocks => blocks,
        };
        let start = be32(&bytes, LENGTH_AT).checked_sub(fast_blocks);
        Ok(start.map_or(u64::MAX, u64::from))
    }
}

/// A run of the journal, cut where the fast commits begin.
fn parts(mapping: &Mapping, fast_start: u64) -> impl Iterator<Item = LayoutRange> {
    let normal = fast_start
        .saturating_sub(mapping.file_block)
        .min(mapping.blocks);
    let range = |skip: u64, blocks, class| LayoutRange {
        first_block: mapping.fs_block + skip,
        blocks,
        class,
    };
    let parts = [
        range(0, normal, Class::LogOther),
        range(normal, mapping.blocks - normal, Class::FastCommit),
    ];
    parts.into_iter().filter(|part| part.blocks > 0)
}

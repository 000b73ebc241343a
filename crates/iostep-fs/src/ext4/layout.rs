//! What the filesystem reserves for itself.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

use super::{Ext4, group};
use crate::error::{DiskField, Error, Result};
use crate::{ReadAt, ranges};

impl<S: ReadAt> Ext4<S> {
    /// Superblocks, group descriptors with their reserved blocks, bitmaps, inode tables, the
    /// internal journal, and what the files of quotas and orphans have now, in filesystem blocks,
    /// sorted and without overlaps.
    ///
    /// Needs nothing beyond what `open` read but the inodes of these files and their extents.
    /// Errors: `Io`; `Corrupt`, also if two structures claim one block.
    pub fn layout(&self) -> Result<Vec<LayoutRange>> {
        let mut layout = self.reserved()?;
        self.push_system_files(&mut layout)?;
        self.in_order(layout)
    }

    /// The same without what belongs to an inode, but for the journal.
    ///
    /// Errors: as [`Ext4::layout`].
    pub(super) fn layout_without_files(&self) -> Result<Vec<LayoutRange>> {
        self.in_order(self.reserved()?)
    }

    fn reserved(&self) -> Result<Vec<LayoutRange>> {
        let mut layout = Vec::with_capacity(self.groups().len() * 3 + 16);
        for group in 0..self.superblock().groups {
            self.push_group(group, &mut layout);
        }
        self.push_journal(&mut layout)?;
        let superblock = self.superblock();
        if superblock.mmp_block != 0 {
            let place = DiskField::superblock(superblock.kind, "s_mmp_block");
            superblock.offset_bytes(place, superblock.mmp_block)?;
            layout.push(LayoutRange {
                first_block: superblock.mmp_block,
                blocks: 1,
                class: Class::OtherMetadata,
            });
        }
        Ok(layout)
    }

    /// Quotas and orphans: their blocks have no header, and begin with what may be numbers of blocks.
    fn push_system_files(&self, layout: &mut Vec<LayoutRange>) -> Result<()> {
        for inode in self.superblock().system_inodes {
            if inode == 0 {
                continue;
            }
            let map = match self.inode(inode).and_then(|inode| self.block_map(&inode)) {
                // One broken file costs the classes of its own blocks.
                Err(Error::Corrupt { .. }) => continue,
                map => map?,
            };
            layout.extend(map.mappings.iter().map(|mapping| LayoutRange {
                first_block: mapping.fs_block,
                blocks: mapping.blocks,
                class: Class::SystemFile,
            }));
        }
        Ok(())
    }

    fn in_order(&self, layout: Vec<LayoutRange>) -> Result<Vec<LayoutRange>> {
        let superblock = self.superblock();
        let place = DiskField::superblock(superblock.kind, "the layout");
        let end = layout.iter().map(|range| range.first_block + range.blocks);
        let end = end.max().unwrap_or(0);
        if end > superblock.blocks {
            return Err(place.corrupt(
                format!("{end} blocks long"),
                format!("at most {}", superblock.blocks),
            ));
        }
        ranges::sorted(layout).map_err(|overlap| {
            let classes = format!("{} and {}", overlap.first.name(), overlap.second.name());
            place
                .in_block(overlap.block)
                .corrupt(classes, "one structure")
        })
    }

    fn push_group(&self, group: u32, layout: &mut Vec<LayoutRange>) {
        let superblock = self.superblock();
        let mut push = |first_block, blocks, class| {
            layout.push(LayoutRange {
                first_block,
                blocks,
                class,
            });
        };
        let has_superblock = group::has_superblock(superblock, group);
        let mut next = superblock.group_start(group);
        if group == 0 {
            next = group::superblock_block(superblock);
        }
        if has_superblock {
            push(next, 1, Class::Superblock);
            next += 1;
        }
        let descriptors = group::descriptor_blocks_in(superblock, group);
        push(next, descriptors, Class::GroupDescriptor);
        let descriptor = &self.groups()[group as usize];
        let table_blocks = u64::from(superblock.inode_table_blocks());
        push(descriptor.block_bitmap, 1, Class::BlockBitmap);
        push(descriptor.inode_bitmap, 1, Class::InodeBitmap);
        push(descriptor.inode_table, table_blocks, Class::InodeTable);
    }
}

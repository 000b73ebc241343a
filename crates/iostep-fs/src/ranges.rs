//! Ranges of blocks that must not overlap.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

/// Two claims on one block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// The block.
    pub(crate) block: u64,
    /// Who has it.
    pub(crate) first: Class,
    /// Who wants it too.
    pub(crate) second: Class,
}

/// Sorts, drops empty ranges and joins neighbours of one class.
pub(crate) fn sorted(mut ranges: Vec<LayoutRange>) -> Result<Vec<LayoutRange>, Overlap> {
    ranges.retain(|range| range.blocks > 0);
    ranges.sort_unstable_by_key(|range| range.first_block);
    let mut joined: Vec<LayoutRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let Some(last) = joined.last_mut() else {
            joined.push(range);
            continue;
        };
        let end = last.first_block + last.blocks;
        if range.first_block < end {
            return Err(Overlap {
                block: range.first_block,
                first: last.class,
                second: range.class,
            });
        }
        if range.first_block == end && range.class == last.class {
            last.blocks += range.blocks;
        } else {
            joined.push(range);
        }
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first_block: u64, blocks: u64, class: Class) -> LayoutRange {
        LayoutRange {
            first_block,
            blocks,
            class,
        }
    }

    #[test]
    fn neighbours_of_one_class_become_one_range() {
        let ranges = vec![
            range(5, 1, Class::InodeBitmap),
            range(3, 1, Class::BlockBitmap),
            range(4, 1, Class::BlockBitmap),
            range(9, 0, Class::Superblock),
        ];
        let expected = vec![
            range(3, 2, Class::BlockBitmap),
            range(5, 1, Class::InodeBitmap),
        ];
        assert_eq!(sorted(ranges), Ok(expected));
    }

    #[test]
    fn an_overlap_is_named() {
        let ranges = vec![
            range(5, 3, Class::InodeTable),
            range(7, 1, Class::BlockBitmap),
        ];
        let overlap = sorted(ranges).expect_err("block 7 is claimed twice");
        assert_eq!(overlap.block, 7);
    }
}

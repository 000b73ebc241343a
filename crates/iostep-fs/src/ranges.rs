//! Ranges of blocks that must not overlap.

use iostep_model::Class;
use iostep_model::manifest::LayoutRange;

/// Two claims on one block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) block: u64,
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

/// What is reserved in one of two layouts: the first, and of the second what the first does not have.
/// Both are sorted and without overlaps, and so is the answer.
pub fn joined(first: &[LayoutRange], second: &[LayoutRange]) -> Vec<LayoutRange> {
    let end = |range: &LayoutRange| range.first_block.saturating_add(range.blocks);
    let mut all = first.to_vec();
    for range in second {
        let mut next = range.first_block;
        let mut push = |from: u64, to: u64| {
            all.push(LayoutRange {
                first_block: from,
                blocks: to.saturating_sub(from),
                class: range.class,
            });
        };
        let behind = first.partition_point(|known| end(known) <= next);
        for known in &first[behind..] {
            if known.first_block >= end(range) {
                break;
            }
            push(next, known.first_block);
            next = end(known);
        }
        push(next, end(range));
    }
    sorted(all).unwrap_or_else(|_| first.to_vec())
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

    #[test]
    fn of_a_second_layout_only_what_is_new_is_added() {
        let before = [
            range(0, 2, Class::Superblock),
            range(10, 5, Class::InodeTable),
            range(20, 1, Class::SystemFile),
        ];
        let after = [
            range(0, 2, Class::Superblock),
            range(8, 8, Class::SystemFile),
            range(20, 3, Class::SystemFile),
            range(30, 1, Class::BlockBitmap),
        ];
        let expected = [
            range(0, 2, Class::Superblock),
            range(8, 2, Class::SystemFile),
            range(10, 5, Class::InodeTable),
            range(15, 1, Class::SystemFile),
            range(20, 3, Class::SystemFile),
            range(30, 1, Class::BlockBitmap),
        ];
        assert_eq!(joined(&before, &after), expected);
        assert_eq!(joined(&before, &before), before);
        assert_eq!(joined(&[], &after), after);
    }
}

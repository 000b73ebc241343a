//! Whose a block is: the answer of a walk over a whole filesystem.

use iostep_model::Class;
use iostep_model::printable::path_text;

use crate::error::Error;

/// Most ranges that a map holds: 32 bytes each, so 512 MiB.
pub const MAX_RANGES: usize = 16 << 20;
/// Most errors that a map keeps; a walk that finds more gives up.
pub const MAX_PROBLEMS: usize = 1000;
/// Longest path in names: PATH_MAX is 4096 bytes.
const MAX_DEPTH: usize = 2048;

/// The owner of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// What the block is for; [`Class::Free`] if no structure and no file has it.
    pub class: Class,
    /// The file's inode number; `None` for what belongs to the filesystem as a whole.
    pub inode: Option<u64>,
    /// The file's `i_generation`; 0 without an inode.
    pub generation: u32,
    /// Where in the file, in filesystem blocks; `None` for blocks that are not its content.
    pub file_block: Option<u64>,
    /// Preallocated and never written: it reads as zeros, whatever the device holds.
    pub unwritten: bool,
    /// How many blocks from the one asked for have this owner, in the order of the file.
    pub blocks: u64,
}

/// A file in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// Inode number.
    pub inode: u64,
    /// `i_generation`.
    pub generation: u32,
    /// `i_mode`.
    pub mode: u16,
    /// `i_crtime`, ns since the epoch.
    pub birth_wall_ns: Option<i64>,
    /// The directory that names it; 0 if none does.
    parent: u64,
    /// Its name, in [`OwnerMap::names`].
    name_start: u32,
    name_bytes: u16,
}

/// Which block belongs to what.
///
/// Memory: 32 bytes a run of blocks (at most [`MAX_RANGES`] runs), 48 bytes and the name an inode
/// in use. A filesystem of a million unfragmented files takes about 100 MiB.
#[derive(Debug, Default)]
pub struct OwnerMap {
    /// Bytes of a filesystem block.
    pub block_bytes: u32,
    /// Blocks of the filesystem.
    pub blocks: u64,
    /// What could not be read; everything else is in the map.
    pub problems: Vec<Error>,
    /// Blocks that a second file claims; the map has the file whose run begins first.
    pub shared_blocks: u64,
    ranges: Vec<Range>,
    files: Vec<FileEntry>,
    names: Vec<u8>,
}

/// A run of blocks with one owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) first_block: u64,
    pub(crate) inode: u64,
    /// `NO_FILE_BLOCK` for what is not content.
    pub(crate) file_block: u64,
    pub(crate) blocks: u32,
    pub(crate) class: Class,
    pub(crate) unwritten: bool,
}

pub(crate) const NO_FILE_BLOCK: u64 = u64::MAX;

impl Range {
    fn end(&self) -> u64 {
        self.first_block + u64::from(self.blocks)
    }

    /// The part from `block` on.
    fn cut_to(mut self, block: u64) -> Range {
        let cut = block.saturating_sub(self.first_block);
        let left = u64::from(self.blocks).saturating_sub(cut);
        self.blocks = u32::try_from(left).expect("it only gets shorter");
        self.first_block += cut;
        if self.file_block != NO_FILE_BLOCK {
            self.file_block += cut;
        }
        self
    }
}

impl OwnerMap {
    /// The owner of a block, and of how many blocks from there; `None` past the filesystem's end.
    pub fn owner(&self, block: u64) -> Option<Owner> {
        if block >= self.blocks {
            return None;
        }
        let next = self.ranges.partition_point(|range| range.end() <= block);
        match self.ranges.get(next) {
            Some(range) if range.first_block <= block => Some(self.owner_of(range.cut_to(block))),
            after => Some(Owner {
                class: Class::Free,
                inode: None,
                generation: 0,
                file_block: None,
                unwritten: false,
                blocks: after.map_or(self.blocks, |range| range.first_block) - block,
            }),
        }
    }

    fn owner_of(&self, range: Range) -> Owner {
        let file = (range.inode != 0).then_some(range.inode);
        let generation = file.and_then(|inode| self.file(inode));
        Owner {
            class: range.class,
            inode: file,
            generation: generation.map_or(0, |file| file.generation),
            file_block: (range.file_block != NO_FILE_BLOCK).then_some(range.file_block),
            unwritten: range.unwritten,
            blocks: u64::from(range.blocks),
        }
    }

    /// A file in use.
    pub fn file(&self, inode: u64) -> Option<&FileEntry> {
        let at = self.files.binary_search_by_key(&inode, |file| file.inode);
        at.ok().map(|at| &self.files[at])
    }

    /// Every file in use, by inode number.
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// The path of a file from the filesystem's root, beginning with `/`; one of them, if it has
    /// several links. `None` if no directory names it. Bytes that are not UTF-8 are replaced.
    pub fn path(&self, inode: u64) -> Option<String> {
        let mut names = Vec::new();
        let mut file = self.file(inode)?;
        while file.parent != file.inode {
            if names.len() == MAX_DEPTH {
                return None;
            }
            names.push(self.name(file));
            file = self.file(file.parent)?;
        }
        let path = names
            .iter()
            .rev()
            .flat_map(|name| [&b"/"[..], name])
            .collect::<Vec<_>>()
            .concat();
        let path = path_text(&path);
        Some(if path.is_empty() {
            "/".to_owned()
        } else {
            path
        })
    }

    fn name(&self, file: &FileEntry) -> &[u8] {
        let start = file.name_start as usize;
        &self.names[start..start + usize::from(file.name_bytes)]
    }
}

/// Gathers what a walk finds.
#[derive(Debug)]
pub(crate) struct Builder {
    map: OwnerMap,
    reserved: usize,
}

impl Builder {
    /// Starts with the ranges that no file may claim.
    pub(crate) fn new(block_bytes: u32, blocks: u64, reserved: Vec<Range>) -> Builder {
        Builder {
            reserved: reserved.len(),
            map: OwnerMap {
                block_bytes,
                blocks,
                ranges: reserved,
                ..OwnerMap::default()
            },
        }
    }

    /// Adds a run; false if there is no room for more.
    #[must_use]
    pub(crate) fn push(&mut self, range: Range) -> bool {
        if self.map.ranges.len() >= MAX_RANGES {
            return false;
        }
        self.map.ranges.push(range);
        true
    }

    /// Adds a file; the caller goes by ascending inode numbers.
    pub(crate) fn push_file(
        &mut self,
        inode: u64,
        generation: u32,
        mode: u16,
        birth_wall_ns: Option<i64>,
    ) {
        self.map.files.push(FileEntry {
            inode,
            generation,
            mode,
            birth_wall_ns,
            parent: 0,
            name_start: 0,
            name_bytes: 0,
        });
    }

    /// The root is its own parent, and so ends every path.
    pub(crate) fn set_root(&mut self, inode: u64) {
        if let Some(file) = self.file_mut(inode) {
            file.parent = inode;
        }
    }

    /// Names a file; a second name for it is left out.
    pub(crate) fn name(&mut self, inode: u64, parent: u64, name: &[u8]) {
        let start = u32::try_from(self.map.names.len());
        let bytes = u16::try_from(name.len());
        let (Ok(name_start), Ok(name_bytes)) = (start, bytes) else {
            return;
        };
        match self.file_mut(inode) {
            Some(file) if file.parent == 0 => {
                file.parent = parent;
                file.name_start = name_start;
                file.name_bytes = name_bytes;
            }
            _ => return,
        }
        self.map.names.extend(name);
    }

    fn file_mut(&mut self, inode: u64) -> Option<&mut FileEntry> {
        let files = &mut self.map.files;
        let at = files.binary_search_by_key(&inode, |file| file.inode);
        at.ok().map(|at| &mut files[at])
    }

    /// Keeps an error and goes on, until there are too many.
    ///
    /// Errors: the one that is too many.
    pub(crate) fn problem(&mut self, error: Error) -> Result<(), Error> {
        if self.map.problems.len() >= MAX_PROBLEMS {
            return Err(error);
        }
        self.map.problems.push(error);
        Ok(())
    }

    /// Sorts, and cuts off what is claimed twice.
    pub(crate) fn finish(mut self) -> OwnerMap {
        let mut claimed = self.map.ranges.split_off(self.reserved);
        let mut reserved = std::mem::take(&mut self.map.ranges);
        reserved.sort_unstable_by_key(|range| range.first_block);
        claimed.sort_unstable_by_key(|range| (range.first_block, range.inode));
        self.map.shared_blocks = cut_overlaps(&mut claimed);
        self.map.ranges = without(claimed, &reserved);
        self.map.ranges.extend(reserved);
        self.map
            .ranges
            .sort_unstable_by_key(|range| range.first_block);
        self.map.ranges.shrink_to_fit();
        self.map
    }
}

/// Leaves each block to the first of the sorted ranges that has it; how many blocks were cut.
fn cut_overlaps(ranges: &mut Vec<Range>) -> u64 {
    let mut cut_blocks = 0;
    let mut free_from = 0;
    for range in ranges.iter_mut() {
        let whole = u64::from(range.blocks);
        let end = range.end();
        *range = range.cut_to(free_from);
        cut_blocks += whole - u64::from(range.blocks);
        free_from = free_from.max(end);
    }
    ranges.retain(|range| range.blocks > 0);
    cut_blocks
}

/// The parts of `ranges` that are not in `holes`; both are sorted. What the layout reserves wins
/// over a file: the resize inode, for one, claims the reserved group descriptors.
fn without(ranges: Vec<Range>, holes: &[Range]) -> Vec<Range> {
    let mut parts = Vec::with_capacity(ranges.len());
    for mut rest in ranges {
        let next = holes.partition_point(|hole| hole.end() <= rest.first_block);
        let inside = holes[next..]
            .iter()
            .take_while(|hole| hole.first_block < rest.end());
        for hole in inside.copied().collect::<Vec<_>>() {
            if hole.first_block > rest.first_block {
                let blocks = hole.first_block - rest.first_block;
                let blocks = u32::try_from(blocks).expect("shorter than the range");
                parts.push(Range { blocks, ..rest });
            }
            rest = rest.cut_to(hole.end());
        }
        if rest.blocks > 0 {
            parts.push(rest);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn content(first_block: u64, blocks: u32, inode: u64) -> Range {
        Range {
            first_block,
            inode,
            file_block: 0,
            blocks,
            class: Class::FileData,
            unwritten: false,
        }
    }

    fn reserved(first_block: u64, blocks: u32) -> Range {
        Range {
            first_block,
            inode: 0,
            file_block: NO_FILE_BLOCK,
            blocks,
            class: Class::InodeTable,
            unwritten: false,
        }
    }

    #[test]
    fn every_block_of_the_filesystem_has_an_answer_and_no_other() {
        let mut builder = Builder::new(4096, 100, vec![reserved(10, 5)]);
        assert!(builder.push(content(20, 10, 12)));
        let map = builder.finish();
        assert_eq!(map.owner(9).expect("inside").class, Class::Free);
        assert_eq!(map.owner(9).expect("inside").blocks, 1);
        assert_eq!(map.owner(12).expect("inside").class, Class::InodeTable);
        let middle = map.owner(23).expect("inside");
        assert_eq!(
            (middle.inode, middle.file_block, middle.blocks),
            (Some(12), Some(3), 7)
        );
        assert_eq!(map.owner(30).expect("inside").blocks, 70);
        assert_eq!(map.owner(100), None);
    }

    #[test]
    fn what_the_layout_reserves_is_nobodys() {
        let mut builder = Builder::new(4096, 100, vec![reserved(12, 2), reserved(16, 1)]);
        assert!(builder.push(content(10, 10, 7)));
        let map = builder.finish();
        let classes: Vec<bool> = (10..20)
            .map(|block| map.owner(block).expect("inside").class == Class::FileData)
            .collect();
        let expected = [
            true, true, false, false, true, true, false, true, true, true,
        ];
        assert_eq!(classes, expected);
        assert_eq!(map.owner(17).expect("inside").file_block, Some(7));
    }

    fn runs(blocks: u64) -> impl Strategy<Value = Vec<Range>> {
        let run = (0..blocks, 1..12u32, 11..20u64);
        prop::collection::vec(run, 0..20).prop_map(|runs| {
            runs.into_iter()
                .map(|(at, n, inode)| content(at, n, inode))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn each_block_has_the_first_that_claims_it_and_the_layout_before_all(
            claims in runs(80),
            holes in prop::collection::btree_set(0..8u64, 0..8),
        ) {
            let holes: Vec<Range> = holes.into_iter().map(|n| reserved(n * 11, 3)).collect();
            let mut builder = Builder::new(4096, 100, holes.clone());
            for claim in &claims {
                prop_assert!(builder.push(*claim));
            }
            let map = builder.finish();
            let mut sorted = claims;
            sorted.sort_by_key(|claim| (claim.first_block, claim.inode));
            let has = |range: &&Range, block| (range.first_block..range.end()).contains(&block);
            for block in 0..100 {
                let owner = map.owner(block).expect("inside");
                let hole = holes.iter().find(|hole| has(hole, block));
                let claim = sorted.iter().find(|claim| has(claim, block));
                let expected = match (hole, claim) {
                    (Some(_), _) => (Class::InodeTable, None, None),
                    (None, Some(claim)) => {
                        let file_block = block - claim.first_block;
                        (Class::FileData, Some(claim.inode), Some(file_block))
                    }
                    (None, None) => (Class::Free, None, None),
                };
                prop_assert_eq!((owner.class, owner.inode, owner.file_block), expected);
            }
        }
    }

    #[test]
    fn a_block_claimed_twice_is_counted_once_for_each_extra_claim() {
        let mut builder = Builder::new(4096, 100, Vec::new());
        assert!(builder.push(content(10, 10, 12)));
        assert!(builder.push(content(15, 10, 13)));
        let map = builder.finish();
        assert_eq!(map.shared_blocks, 5);
        assert_eq!(map.owner(19).expect("inside").inode, Some(12));
        assert_eq!(map.owner(20).expect("inside").inode, Some(13));
        assert_eq!(map.owner(20).expect("inside").file_block, Some(5));
    }
}

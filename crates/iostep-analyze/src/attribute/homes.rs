//! ext4 with data in its log: whose a block is that the log writes to its place later.
//!
//! A checkpoint writes the buffers that were logged (`jbd2_log_do_checkpoint`,
//! fs/jbd2/checkpoint.c). Most still hang on a page of their file, which then says whose they are; a
//! page that was cut off its file in the meantime says nothing any more, but the log did.

use std::ops::Range;

use iostep_model::event::{self, Content};
use iostep_model::table::Segment;
use iostep_model::{Class, Evidence};
use rustc_hash::FxHashMap;

/// The files' blocks whose newest copy in the log is not in its place yet, or was when last seen.
#[derive(Debug, Default)]
pub(super) struct Homes {
    logged: FxHashMap<u64, Segment>,
}

impl Homes {
    /// Learns from a written piece, and tells whose it is if only the log knows. `fs_block` is the
    /// piece's first block.
    pub(super) fn refine(&mut self, piece: &mut Segment, segment: &event::Segment, fs_block: u64) {
        match (&segment.content, piece.class, piece.home) {
            (_, Class::LoggedData, Some(home)) => {
                self.logged.insert(home, piece.clone());
            }
            // The block was freed, and is something else now.
            (_, Class::LoggedBlock, Some(home)) => {
                self.logged.remove(&home);
            }
            (Content::Buffer { .. }, _, _) => {
                if let Some(logged) = self.logged.get(&fs_block) {
                    *piece = in_place(logged, piece.bytes);
                }
            }
            (Content::File { .. }, ..) => self.forget(fs_block..fs_block + 1),
            _ => {}
        }
    }

    /// Blocks that belong to nobody any more, or to another file.
    pub(super) fn forget(&mut self, fs_blocks: Range<u64>) {
        if self.logged.is_empty() {
            return;
        }
        if fs_blocks.end - fs_blocks.start < self.logged.len() as u64 {
            for fs_block in fs_blocks {
                self.logged.remove(&fs_block);
            }
        } else {
            self.logged.retain(|block, _| !fs_blocks.contains(block));
        }
    }
}

/// The block that a piece of the log is a copy of.
fn in_place(logged: &Segment, bytes: u32) -> Segment {
    Segment {
        file: logged.file,
        file_offset_bytes: logged.file_offset_bytes,
        dirtier: logged.dirtier,
        dirtier_by_inode: logged.dirtier_by_inode,
        ..Segment::of(bytes, Class::FileData, Evidence::LogBuffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_model::FileKey;

    const BLOCK: u64 = 700;

    fn segment(content: Content) -> event::Segment {
        event::Segment {
            bytes: 4096,
            content,
            dirtier: None,
        }
    }

    fn log_block() -> event::Segment {
        segment(Content::JournalBlock {
            head: [0; 16],
            home_fs_block: Some(BLOCK),
            home_file: None,
            commit: Some(1),
            fast: false,
        })
    }

    fn log(homes: &mut Homes, class: Class, file: Option<u32>) {
        let mut piece = Segment {
            file,
            file_offset_bytes: Some(8192),
            dirtier: Some(5),
            home: Some(BLOCK),
            ..Segment::of(4096, class, Evidence::LogBuffer)
        };
        homes.refine(&mut piece, &log_block(), 9);
    }

    /// The class and file of a buffer that is written to the block.
    fn write(homes: &mut Homes) -> Segment {
        let mut piece = Segment::of(4096, Class::OtherMetadata, Evidence::PageCache);
        let buffer = segment(Content::Buffer { head: [0; 16] });
        homes.refine(&mut piece, &buffer, BLOCK);
        piece
    }

    #[test]
    fn a_block_in_its_place_is_what_its_newest_copy_in_the_log_was() {
        let mut homes = Homes::default();
        log(&mut homes, Class::LoggedData, Some(3));
        log(&mut homes, Class::LoggedData, Some(4));
        for _ in 0..2 {
            let piece = write(&mut homes);
            assert_eq!((piece.class, piece.file), (Class::FileData, Some(4)));
            assert_eq!(
                (piece.file_offset_bytes, piece.dirtier),
                (Some(8192), Some(5))
            );
            assert_eq!(piece.home, None);
        }
    }

    #[test]
    fn a_block_that_was_used_again_is_no_file_s_any_more() {
        let mut homes = Homes::default();
        log(&mut homes, Class::LoggedData, Some(3));
        log(&mut homes, Class::LoggedBlock, None);
        assert_eq!(write(&mut homes).class, Class::OtherMetadata);

        log(&mut homes, Class::LoggedData, Some(3));
        homes.forget(BLOCK - 1..BLOCK + 1);
        assert_eq!(write(&mut homes).class, Class::OtherMetadata);

        log(&mut homes, Class::LoggedData, Some(3));
        let file = FileKey::plain(12, 0);
        let page = segment(Content::File {
            file,
            offset_bytes: 0,
            direct: true,
        });
        let mut piece = Segment::of(4096, Class::FileData, Evidence::DirectIo);
        homes.refine(&mut piece, &page, BLOCK);
        assert_eq!(write(&mut homes).class, Class::OtherMetadata);
    }
}

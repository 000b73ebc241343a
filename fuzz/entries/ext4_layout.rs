//! The layout readers over an image of any bytes.

use iostep_fs::ext4::{self, Ext4};

/// Reads everything that can be read, as any filesystem, and asks for every kind of answer.
pub fn run(image: &[u8]) {
    let image = image.to_vec();
    let _ = iostep_fs::detect(&image);
    if let Ok(Some(found)) = iostep_fs::layout(&image) {
        let ends = found
            .layout
            .iter()
            .map(|range| range.first_block + range.blocks);
        let starts = found.layout.iter().skip(1).map(|range| range.first_block);
        assert!(
            ends.zip(starts).all(|(end, start)| end <= start),
            "the layout overlaps"
        );
    }
    let Ok(filesystem) = Ext4::open(&image) else {
        return;
    };
    for inode in [0, 1, 2, 8, 12, u32::MAX] {
        let _ = filesystem
            .inode(inode)
            .and_then(|inode| filesystem.block_map(&inode));
    }
    let Ok(map) = ext4::owners(&filesystem) else {
        return;
    };
    let mut block = 0;
    while let Some(owner) = map.owner(block) {
        assert!(owner.blocks > 0, "an answer for no block");
        block += owner.blocks;
    }
    assert_eq!(
        block, map.blocks,
        "the answers end where the filesystem ends"
    );
    for file in map.files() {
        let _ = map.path(file.inode);
    }
}

//! The FAT reader over an image of any bytes.

use iostep_fs::fat::{self, Fat};

/// Reads everything that can be read, and asks for every kind of answer.
pub fn run(image: &[u8]) {
    let image = image.to_vec();
    let Ok(filesystem) = Fat::open(&image) else {
        return;
    };
    if let Ok(layout) = filesystem.layout() {
        let ends = layout.iter().map(|range| range.first_block + range.blocks);
        let starts = layout.iter().skip(1).map(|range| range.first_block);
        assert!(
            ends.zip(starts).all(|(end, start)| end <= start),
            "the layout overlaps"
        );
    }
    let Ok(map) = fat::owners(&filesystem) else {
        return;
    };
    let mut sector = 0;
    while let Some(owner) = map.owner(sector) {
        assert!(owner.blocks > 0, "an answer for no sector");
        sector += owner.blocks;
    }
    assert_eq!(
        sector, map.blocks,
        "the answers end where the filesystem ends"
    );
    for file in map.files() {
        let _ = map.path(file.inode);
    }
}

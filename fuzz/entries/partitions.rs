//! The partition tables of an image of any bytes.

use iostep_fs::Section;
use iostep_fs::partitions::partitions;

/// Reads the table, and looks into every partition of it.
pub fn run(image: &[u8]) {
    let image = image.to_vec();
    let Ok(Some(found)) = partitions(&image) else {
        return;
    };
    for partition in found.iter().take(16) {
        assert!(partition.number > 0, "partitions count from 1");
        if let Ok(part) = Section::part(&image, partition.start_bytes, partition.size_bytes) {
            let _ = iostep_fs::layout(&part);
        }
    }
}

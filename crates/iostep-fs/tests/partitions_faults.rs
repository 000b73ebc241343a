//! The reader of partition tables over tables that are damaged.

#[path = "../../../fuzz/entries/partitions.rs"]
mod entry;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;

use mutate::{Random, damage};

/// An MBR with a logical partition, or the head of a GPT.
fn table(protective: bool) -> Vec<u8> {
    let mut disk = vec![0; 64 << 10];
    for (place, sector) in [(0, 0), (0, 40)] {
        let at = sector * 512;
        disk[at + 510] = 0x55;
        disk[at + 511] = 0xaa;
        disk[at + 446 + place * 16 + 4] = if protective { 0xee } else { 0x83 };
        disk[at + 446 + 8] = 4;
        disk[at + 446 + 12] = 8;
    }
    disk[446 + 16 + 4] = 0x05;
    disk[446 + 16 + 8] = 40;
    disk[446 + 16 + 12] = 20;
    disk[512..520].copy_from_slice(b"EFI PART");
    disk
}

#[test]
fn damaged_tables_give_an_answer_and_no_panic() {
    let mut random = Random::new(7);
    for protective in [false, true] {
        let whole = table(protective);
        for _ in 0..2000 {
            let mut disk = whole.clone();
            damage(&mut disk[..21_000], &mut random);
            disk.truncate(1 + random.below(64 << 10));
            entry::run(&disk);
        }
    }
}

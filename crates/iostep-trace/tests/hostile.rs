//! Superblocks that nobody meant: devices or none, never a panic.

#[path = "../../../fuzz/entries/f2fs_devices.rs"]
mod f2fs_devices;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;

use mutate::Random;

#[test]
fn devices_of_an_f2fs() {
    let mut sound = vec![0; iostep_trace::f2fs::SUPERBLOCK_BYTES];
    // `magic`, `log_blocksize`, `log_blocks_per_seg` and `devs` of `struct f2fs_super_block`.
    for (at, bytes) in [
        (0, &0xf2f5_2010u32.to_le_bytes()[..]),
        (16, &[12]),
        (20, &[9]),
        (2201, b"/dev/first"),
        (2201 + 68, b"/dev/second"),
    ] {
        sound[at..at + bytes.len()].copy_from_slice(bytes);
    }
    for length in 0..=sound.len() {
        f2fs_devices::run(&sound[..length]);
    }
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut bytes = sound.clone();
        mutate::damage(&mut bytes, &mut random);
        // Where the names are.
        mutate::damage(&mut bytes[2201..2201 + 8 * 68], &mut random);
        f2fs_devices::run(&bytes);
    }
}

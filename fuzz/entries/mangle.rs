//! Damage that changes the length: for text and for files without fixed places.

use crate::mutate::{Random, damage};

/// Damages `bytes`, and may cut it, repeat a part of it or swap two parts.
pub fn mangle(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    damage(&mut bytes, random);
    if bytes.is_empty() {
        return bytes;
    }
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => {
            let part = bytes[at..bytes.len().min(at + 64)].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, part);
        }
        2 => {
            bytes.drain(at..bytes.len().min(at + 1 + random.below(32)));
        }
        _ => {}
    }
    bytes
}

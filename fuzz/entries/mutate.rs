//! Deterministic damage: the same seed makes the same bytes on every machine.

/// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts a sequence.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Damages a few places of `bytes`, without changing its length.
pub fn damage(bytes: &mut [u8], random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        let width = (1 << random.below(4)).min(bytes.len() - at);
        let part = &mut bytes[at..at + width];
        match random.below(4) {
            0 => part[0] ^= 1 << random.below(8),
            1 => part.fill(0xFF),
            2 => part.fill(0),
            _ => part.fill_with(|| random.next() as u8),
        }
    }
}

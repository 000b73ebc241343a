//! Numbers without a pattern, the same for the same seed.

/// A stream of random numbers: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Random {
        Random(mix(seed) ^ mix(stream.wrapping_add(0x51_7cc1_b727_220a)))
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next number below `bound`, which is not 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills a buffer with bytes that do not compress.
    #[inline]
    pub fn fill(&mut self, buffer: &mut [u8]) {
        // Of a length that is known, so that each is a store and not a call of memcpy.
        let (chunks, rest) = buffer.as_chunks_mut::<8>();
        for chunk in chunks {
            *chunk = self.next_u64().to_le_bytes();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&self.next_u64().to_le_bytes()[..rest.len()]);
        }
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A permutation of 0..length that takes no memory: a Feistel network over the next power of
/// four, walked until it falls below the length (Black, Rogaway: Ciphers with arbitrary finite
/// domains, CT-RSA 2002).
#[derive(Clone, Debug)]
pub struct Permutation {
    length: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// Permutation number `stream` of a seed. `length` is not 0 and at most 2^62.
    pub fn new(length: u64, seed: u64, stream: u64) -> Permutation {
        let bits = u64::BITS - length.saturating_sub(1).leading_zeros();
        let mut random = Random::new(seed, stream);
        Permutation {
            length,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// Where `index`, which is below the length, goes.
    #[inline]
    pub fn at(&self, index: u64) -> u64 {
        let mut place = self.encipher(index);
        while place >= self.length {
            place = self.encipher(place);
        }
        place
    }

    #[inline]
    fn encipher(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn streams_of_a_seed_differ_and_repeat() {
        let first = |seed, stream| Random::new(seed, stream).next_u64();
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 2), first(1, 3));
        assert_ne!(first(1, 2), first(2, 2));
    }

    #[test]
    fn a_buffer_is_filled_with_the_numbers_whatever_its_length() {
        let mut random = Random::new(1, 2);
        let numbers: Vec<u8> = (0..3)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .collect();
        for length in [0, 1, 7, 8, 9, 16, 23, 24] {
            let mut buffer = vec![0; length];
            Random::new(1, 2).fill(&mut buffer);
            assert_eq!(buffer, numbers[..length]);
        }
    }

    proptest! {
        #[test]
        fn a_permutation_reaches_every_place_once(length in 1u64..3000, seed: u64) {
            let permutation = Permutation::new(length, seed, 0);
            let mut seen = vec![false; length as usize];
            for index in 0..length {
                let place = permutation.at(index) as usize;
                prop_assert!(!std::mem::replace(&mut seen[place], true));
            }
        }

        #[test]
        fn numbers_are_below_their_bound(bound in 1u64.., seed: u64) {
            let mut random = Random::new(seed, 0);
            for _ in 0..50 {
                prop_assert!(random.below(bound) < bound);
            }
        }
    }
}

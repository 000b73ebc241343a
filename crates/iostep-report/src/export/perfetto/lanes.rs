//! Tracks of one name, so many that no two slices of one overlap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// The tracks by name, and when the last slice of each ends.
#[derive(Debug)]
pub(super) struct Lanes<K>(HashMap<K, BinaryHeap<Reverse<(u64, u64)>>>);

impl<K> Default for Lanes<K> {
    fn default() -> Lanes<K> {
        Lanes(HashMap::new())
    }
}

impl<K: Hash + Eq> Lanes<K> {
    /// A track that is free from the beginning of a slice on, until its end; `None` if a new one
    /// is needed.
    pub(super) fn take(&mut self, name: K, (from_ns, to_ns): (u64, u64)) -> Option<u64> {
        let lanes = self.0.get_mut(&name)?;
        let mut first = lanes.peek_mut()?;
        let Reverse((free_ns, track)) = *first;
        (free_ns <= from_ns).then(|| {
            *first = Reverse((to_ns, track));
            track
        })
    }

    /// A new track, with its first slice.
    pub(super) fn add(&mut self, name: K, track: u64, to_ns: u64) {
        self.0
            .entry(name)
            .or_default()
            .push(Reverse((to_ns, track)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_used_again_when_its_slice_is_over() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.take("write", (0, 10)), None);
        lanes.add("write", 1, 10);
        assert_eq!(lanes.take("write", (5, 20)), None);
        lanes.add("write", 2, 20);
        assert_eq!(lanes.take("read", (30, 31)), None);
        assert_eq!(lanes.take("write", (10, 30)), Some(1));
        assert_eq!(lanes.take("write", (15, 16)), None);
        assert_eq!(lanes.take("write", (20, 20)), Some(2));
    }
}

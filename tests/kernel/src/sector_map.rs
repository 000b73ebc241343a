//! Values for runs of sectors.

use std::collections::BTreeMap;

/// A map from sectors to values; runs do not overlap.
#[derive(Clone, Debug)]
pub struct SectorMap<T> {
    runs: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for SectorMap<T> {
    fn default() -> Self {
        SectorMap {
            runs: BTreeMap::new(),
        }
    }
}

impl<T> SectorMap<T> {
    /// Gives `sectors` sectors from `first` on a value.
    pub fn insert(&mut self, first: u64, sectors: u64, value: T) {
        self.runs.insert(first, (sectors, value));
    }

    /// The value of a sector.
    pub fn get(&self, sector: u64) -> Option<&T> {
        let (first, (sectors, value)) = self.runs.range(..=sector).next_back()?;
        (sector < first + sectors).then_some(value)
    }

    /// Every run: first sector, number of sectors, value.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.runs
            .iter()
            .map(|(first, (n, value))| (*first, *n, value))
    }

    /// Number of runs.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// True if no sector has a value.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_has_the_value_of_its_run_and_none_between_runs() {
        let mut map = SectorMap::default();
        map.insert(8, 8, "first");
        map.insert(24, 1, "second");
        assert_eq!(map.get(7), None);
        assert_eq!(map.get(8), Some(&"first"));
        assert_eq!(map.get(15), Some(&"first"));
        assert_eq!(map.get(16), None);
        assert_eq!(map.get(24), Some(&"second"));
        assert_eq!(map.get(25), None);
    }
}

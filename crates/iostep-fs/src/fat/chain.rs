//! The allocation table: which cluster comes after which.

use super::boot::{BootSector, FIRST_CLUSTER, Width};
use super::field;
use crate::ReadAt;
use crate::bytes::{le16, le32};
use crate::error::{Error, Result};
use crate::source::read;

/// The table is read in pieces of this size; a multiple of every sector.
const WINDOW_BYTES: u64 = 64 << 10;
/// The first entry that ends a chain, and the one that marks a bad cluster, with 28 bits.
const END: u32 = 0x0FFF_FFF8;
const BAD: u32 = 0x0FFF_FFF7;
const FREE: u32 = 0;

/// Follows chains, and each cluster at most once: a cluster belongs to one chain, so whoever comes
/// to it again is broken. That bounds the work on hostile input by the filesystem's size.
///
/// Memory: one bit a cluster, and 64 KiB.
#[derive(Debug)]
pub(super) struct Chains<'a, S> {
    source: &'a S,
    boot: &'a BootSector,
    seen: Vec<u64>,
    window_start: u64,
    window: Vec<u8>,
}

impl<'a, S: ReadAt> Chains<'a, S> {
    pub(super) fn new(source: &'a S, boot: &'a BootSector) -> Chains<'a, S> {
        Chains {
            source,
            boot,
            seen: vec![0; boot.clusters.div_ceil(64) as usize],
            window_start: 0,
            window: Vec::new(),
        }
    }

    /// Calls `run` with the first cluster and the length of each run of neighbours of a chain.
    ///
    /// Errors: those of `run`; `Io`; `Corrupt` where the chain leads to a cluster that does not
    /// exist, that is free or bad, or that a chain has led to before. `run` has then been called
    /// for everything before the damage.
    pub(super) fn follow(
        &mut self,
        first: u32,
        mut run: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        let (mut start, mut clusters) = (first, 0);
        let mut cluster = first;
        loop {
            let next = self.take(cluster).and_then(|()| {
                clusters += 1;
                self.next(cluster)
            });
            match next {
                Ok(Some(next)) if next == cluster + 1 => cluster = next,
                Ok(Some(next)) => {
                    run(start, clusters)?;
                    (start, clusters, cluster) = (next, 0, next);
                }
                end => {
                    if clusters > 0 {
                        run(start, clusters)?;
                    }
                    return end.map(|_| ());
                }
            }
        }
    }

    fn take(&mut self, cluster: u32) -> Result<()> {
        if !self.boot.has_cluster(cluster) {
            let last = self.boot.clusters + FIRST_CLUSTER - 1;
            let expected = format!("{FIRST_CLUSTER} to {last}");
            return Err(field("cluster number").corrupt(cluster, expected));
        }
        let index = cluster - FIRST_CLUSTER;
        let (word, bit) = ((index / 64) as usize, 1 << (index % 64));
        if self.seen[word] & bit != 0 {
            return Err(field("cluster chain").corrupt(
                format!("leading to cluster {cluster} a second time"),
                "a cluster of its own",
            ));
        }
        self.seen[word] |= bit;
        Ok(())
    }

    /// The cluster after one; `None` at the chain's end.
    fn next(&mut self, cluster: u32) -> Result<Option<u32>> {
        let value = match self.boot.width {
            Width::Fat12 => {
                let pair = le16(&self.entry(u64::from(cluster) * 3 / 2, 2)?, 0);
                let value = if cluster % 2 == 1 {
                    pair >> 4
                } else {
                    pair & 0xFFF
                };
                widened(value.into(), 0xFF7, 0xFF8)
            }
            Width::Fat16 => {
                let value = le16(&self.entry(u64::from(cluster) * 2, 2)?, 0);
                widened(value.into(), 0xFFF7, 0xFFF8)
            }
            Width::Fat32 => le32(&self.entry(u64::from(cluster) * 4, 4)?, 0) & 0x0FFF_FFFF,
        };
        match value {
            END.. => Ok(None),
            FREE | BAD => {
                let found = if value == FREE { "free" } else { "bad" };
                let found = format!("{found} after cluster {cluster}");
                Err(field("cluster chain").corrupt(found, "a cluster in use"))
            }
            next => Ok(Some(next)),
        }
    }

    /// Bytes of the active copy of the table.
    fn entry(&mut self, offset_bytes: u64, bytes: usize) -> Result<Vec<u8>> {
        let mut entry = Vec::with_capacity(bytes);
        // An entry of 12 bits can lie across two windows.
        for offset_bytes in offset_bytes..offset_bytes + bytes as u64 {
            let start = offset_bytes / WINDOW_BYTES * WINDOW_BYTES;
            if self.window.is_empty() || self.window_start != start {
                self.load(start)?;
            }
            let inside = (offset_bytes - start) as usize;
            entry.push(self.window.get(inside).copied().unwrap_or(0));
        }
        Ok(entry)
    }

    fn load(&mut self, start: u64) -> Result<()> {
        let boot = self.boot;
        let sector_bytes = u64::from(boot.sector_bytes);
        let table_bytes = boot.table_sectors * sector_bytes;
        let table = boot.reserved_sectors + boot.table_sectors * u64::from(boot.active_table);
        let bytes = WINDOW_BYTES.min(table_bytes.saturating_sub(start));
        self.window = read(self.source, table * sector_bytes + start, bytes as usize)?;
        self.window_start = start;
        Ok(())
    }
}

/// Marks with fewer bits mean the same.
fn widened(value: u32, bad: u32, end: u32) -> u32 {
    match value {
        _ if value >= end => END,
        _ if value == bad => BAD,
        value => value,
    }
}

/// True for damage of a chain, after which the rest of the filesystem can be read.
pub(super) fn is_damage(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Io { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 clusters of a sector, FAT12, whose table has these entries from cluster 2 on.
    fn filesystem(entries: &[u16]) -> (BootSector, Vec<u8>) {
        let boot = BootSector {
            sector_bytes: 512,
            cluster_sectors: 1,
            reserved_sectors: 1,
            tables: 1,
            active_table: 0,
            table_sectors: 1,
            root_sectors: 1,
            root_cluster: 0,
            sectors: 19,
            clusters: 16,
            width: Width::Fat12,
            info_sector: 0,
            backup_sector: 0,
        };
        let mut image = vec![0; 19 * 512];
        for (cluster, entry) in (2..).zip(entries) {
            let at = 512 + cluster * 3 / 2;
            let both = u16::from_le_bytes([image[at], image[at + 1]]);
            let both = match cluster % 2 {
                0 => both & 0xF000 | entry,
                _ => both & 0x000F | entry << 4,
            };
            image[at..at + 2].copy_from_slice(&both.to_le_bytes());
        }
        (boot, image)
    }

    fn runs(entries: &[u16], first: u32) -> (Vec<(u32, u32)>, Option<String>) {
        let (boot, image) = filesystem(entries);
        let mut runs = Vec::new();
        let result = Chains::new(&image, &boot).follow(first, |first, clusters| {
            runs.push((first, clusters));
            Ok(())
        });
        (runs, result.err().map(|error| error.to_string()))
    }

    #[test]
    fn neighbours_are_one_run() {
        let entries = [3, 4, 7, 0, 0, 8, 0xFFF];
        assert_eq!(runs(&entries, 2), (vec![(2, 3), (7, 2)], None));
    }

    #[test]
    fn a_loop_ends_where_it_closes() {
        let (found, error) = runs(&[3, 2], 2);
        assert_eq!(found, [(2, 2)]);
        let error = error.expect("a loop");
        assert!(error.contains("cluster 2 a second time"), "{error}");
    }

    #[test]
    fn what_leads_nowhere_is_damage() {
        for (entries, expected) in [
            (&[0u16][..], "free after cluster 2"),
            (&[0xFF7], "bad after cluster 2"),
            (&[18], "is 18, expected 2 to 17"),
            (&[1], "is 1, expected 2 to 17"),
        ] {
            let (found, error) = runs(entries, 2);
            let error = error.expect("damage");
            assert_eq!(found, [(2, 1)]);
            assert!(error.contains(expected), "{error}");
        }
    }
}

//! Tables and the values in them.

use crate::engine::random::Random;

/// The table's definition, as SQLite keeps it.
pub(super) fn definition(table: u32) -> String {
    format!("CREATE TABLE t{table} (key INTEGER PRIMARY KEY, value BLOB NOT NULL)")
}

/// Which value: no two of a run are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// Number of the database over all threads.
    pub database: u64,
    pub table: u32,
    pub key: i64,
    /// Number of the transaction in its thread, from 1; 0 for what was there before.
    pub transaction: u64,
}

impl Version {
    /// Fills in the value, which does not compress.
    #[inline]
    pub fn fill(&self, seed: u64, value: &mut [u8]) {
        // Odd factors, so that neighbours in any direction have streams of their own.
        let stream = (self.key as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .wrapping_add(self.transaction.wrapping_mul(0xc2b2_ae3d_27d4_eb4f))
            .wrapping_add(u64::from(self.table).wrapping_mul(0x1656_67b1_9e37_79f9))
            .wrapping_add(self.database.wrapping_mul(0xff51_afd7_ed55_8ccd));
        Random::new(seed, stream).fill(value);
    }
}

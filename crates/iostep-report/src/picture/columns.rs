//! Tables as bytes that a page can hold and a browser can read fast.
//!
//! A column is a run of unsigned integers, stored as byte planes: the lowest byte of every row,
//! then the second byte of every row, and so on, as many planes as the greatest value needs.
//! Planes need no alignment and compress far better than whole words. All columns follow each
//! other in one raw DEFLATE stream (RFC 1951), which browsers inflate by themselves; the page
//! holds it as base64. Absent values are 0 and present ones are stored plus one, where the
//! column's name says `_or_0`. Values above 2^53 lose their lowest bits in JavaScript.

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

/// Where a column lies in the inflated stream: after all columns before it.
#[derive(Debug, Serialize)]
pub(super) struct Column {
    /// Table and column, `request.bytes`.
    pub name: &'static str,
    /// Number of values.
    pub rows: usize,
    /// Number of planes, 0 to 8.
    pub width: usize,
    /// True if each row holds the difference to the row before.
    pub delta: bool,
}

/// Columns being packed.
pub(super) struct Packer {
    directory: Vec<Column>,
    stream: DeflateEncoder<Vec<u8>>,
}

impl Packer {
    pub(super) fn new() -> Packer {
        Packer {
            directory: Vec::new(),
            // The fastest level: a million requests must not keep anyone waiting.
            stream: DeflateEncoder::new(Vec::new(), Compression::fast()),
        }
    }

    /// Adds a column.
    pub(super) fn put(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let values: Vec<u64> = values.collect();
        self.planes(name, &values, false);
    }

    /// Adds a column of ascending values. A value below the one before it is taken as equal.
    pub(super) fn put_ascending(&mut self, name: &'static str, values: impl Iterator<Item = u64>) {
        let mut last = 0;
        let step = |value: u64| {
            let step = value.saturating_sub(last);
            last += step;
            step
        };
        let values: Vec<u64> = values.map(step).collect();
        self.planes(name, &values, true);
    }

    fn planes(&mut self, name: &'static str, values: &[u64], delta: bool) {
        let greatest = values.iter().copied().max().unwrap_or(0);
        let width = (u64::BITS - greatest.leading_zeros()).div_ceil(8) as usize;
        for plane in 0..width {
            let bytes: Vec<u8> = values.iter().map(|v| v.to_le_bytes()[plane]).collect();
            self.stream
                .write_all(&bytes)
                .expect("writing to memory cannot fail");
        }
        self.directory.push(Column {
            name,
            rows: values.len(),
            width,
            delta,
        });
    }

    /// The directory and the compressed stream.
    pub(super) fn finish(self) -> (Vec<Column>, Vec<u8>) {
        let stream = self.stream.finish();
        (
            self.directory,
            stream.expect("writing to memory cannot fail"),
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    /// Reads columns back the way the page does.
    pub fn unpack(directory: &serde_json::Value, stream: &[u8]) -> BTreeMap<String, Vec<u64>> {
        let mut raw = Vec::new();
        flate2::read::DeflateDecoder::new(stream)
            .read_to_end(&mut raw)
            .expect("inflate");
        let mut rest = raw.as_slice();
        let mut columns = BTreeMap::new();
        for column in directory.as_array().expect("a list of columns") {
            let rows = column["rows"].as_u64().expect("rows") as usize;
            let mut values = vec![0u64; rows];
            for plane in 0..column["width"].as_u64().expect("width") {
                let (bytes, tail) = rest.split_at(rows);
                rest = tail;
                for (value, byte) in values.iter_mut().zip(bytes) {
                    *value |= u64::from(*byte) << (8 * plane);
                }
            }
            if column["delta"] == true {
                for row in 1..rows {
                    values[row] += values[row - 1];
                }
            }
            columns.insert(column["name"].as_str().expect("name").to_owned(), values);
        }
        assert!(rest.is_empty(), "{} bytes belong to no column", rest.len());
        columns
    }

    #[test]
    fn columns_read_back_whatever_their_width() {
        let mut packer = Packer::new();
        packer.put("zeros", [0, 0, 0].into_iter());
        packer.put("wide", [1, u64::MAX, 300].into_iter());
        packer.put_ascending("times", [7, 7, 1 << 40].into_iter());
        packer.put("none", std::iter::empty());
        let (directory, stream) = packer.finish();
        let directory = serde_json::to_value(directory).expect("JSON");
        let columns = unpack(&directory, &stream);
        assert_eq!(columns["zeros"], [0, 0, 0]);
        assert_eq!(columns["wide"], [1, u64::MAX, 300]);
        assert_eq!(columns["times"], [7, 7, 1 << 40]);
        assert!(columns["none"].is_empty());
        assert_eq!(directory[0]["width"], 0);
    }
}

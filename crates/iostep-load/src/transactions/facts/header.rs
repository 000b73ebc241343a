//! The first bytes of a database (sqlite.org/fileformat2.html, section 1.3).

use iostep_model::pragma::Journal;

/// Length of the header.
pub(super) const BYTES: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The page size of a database that is still empty.
const DEFAULT_PAGE_BYTES: u32 = 4096;

/// What the header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub page_bytes: u32,
    pub reserved_bytes: u32,
    pub journal: Journal,
}

impl Header {
    /// Reads the first bytes of a file; none are an empty database.
    ///
    /// Errors: what is wrong with them.
    pub fn parse(bytes: &[u8]) -> Result<Header, String> {
        if bytes.is_empty() {
            return Ok(Header {
                page_bytes: DEFAULT_PAGE_BYTES,
                reserved_bytes: 0,
                journal: Journal::Delete,
            });
        }
        if !bytes.starts_with(MAGIC) {
            return Err("not a SQLite database".into());
        }
        let Some(header) = bytes.get(..BYTES) else {
            return Err(format!(
                "a SQLite database that ends after {} bytes",
                bytes.len()
            ));
        };
        let page_bytes = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 65536,
            size => u32::from(size),
        };
        if page_bytes < 512 || !page_bytes.is_power_of_two() {
            return Err(format!("damaged: a page size of {page_bytes} bytes"));
        }
        Ok(Header {
            page_bytes,
            reserved_bytes: header[20].into(),
            journal: Journal::of_versions([header[18], header[19]]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(page_size: [u8; 2], versions: [u8; 2]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(page_size);
        bytes.extend(versions);
        bytes.resize(BYTES, 24);
        bytes
    }

    #[test]
    fn page_sizes_from_512_to_65536_are_read() {
        for (stored, expected) in [([2, 0], 512), ([0x10, 0], 4096), ([0, 1], 65536)] {
            let found = Header::parse(&header(stored, [1, 1])).expect("a header");
            assert_eq!((found.page_bytes, found.reserved_bytes), (expected, 24));
        }
    }

    #[test]
    fn a_log_is_written_down_and_other_modes_are_not() {
        let mode = |versions| Header::parse(&header([0x10, 0], versions)).map(|h| h.journal);
        assert_eq!(mode([2, 2]), Ok(Journal::Wal));
        assert_eq!(mode([1, 1]), Ok(Journal::Delete));
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let whole = header([0x10, 0], [1, 1]);
        for length in 1..BYTES {
            assert!(Header::parse(&whole[..length]).is_err(), "{length}");
        }
        for page_size in [[0, 0], [0, 2], [0x10, 1], [0xff, 0xff]] {
            assert!(Header::parse(&header(page_size, [1, 1])).is_err());
        }
        assert!(Header::parse(&[0; BYTES]).is_err());
        assert!(Header::parse(b"").is_ok());
    }
}

//! How many bytes a value asks SQLite to store.

use rusqlite::types::ValueRef;

/// Bytes that a value takes in a record's body: the content sizes of the serial types in the
/// database file format (sqlite.org/fileformat2.html, section 2.1). The record's header, the row
/// id, the cell's and the page's overhead are not in it, since nobody asked for them.
pub(crate) fn stored_bytes(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Null => 0,
        ValueRef::Integer(integer) => integer_bytes(integer),
        ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
    }
}

/// Serial types 1 to 6, and 8 and 9 for the constants 0 and 1.
fn integer_bytes(integer: i64) -> u64 {
    let magnitude = if integer < 0 { !integer } else { integer };
    match magnitude {
        0 | 1 if integer >= 0 => 0,
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        0x80_0000..0x8000_0000 => 4,
        0x8000_0000..0x8000_0000_0000 => 6,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SQLite itself is the judge: the payload of a row with one column is a header of two bytes
    /// and the value.
    #[test]
    fn sizes_are_those_of_the_records_that_sqlite_makes() {
        let connection = rusqlite::Connection::open_in_memory().expect("memory");
        connection
            .execute_batch("PRAGMA page_size = 4096; CREATE TABLE t (v)")
            .expect("a table");
        let mut integers = vec![0, 1, 2, -1, -2, i64::MAX, i64::MIN];
        for shift in [7, 15, 23, 31, 47, 62] {
            let edge = 1i64 << shift;
            integers.extend([edge - 1, edge, -edge, -edge - 1]);
        }
        for integer in integers {
            connection
                .execute_batch("DELETE FROM t")
                .and_then(|()| connection.execute("INSERT INTO t VALUES (?1)", [integer]))
                .expect("insert");
            let payload: i64 = connection
                .query_row("SELECT payload FROM dbstat WHERE name = 't'", [], |row| {
                    row.get(0)
                })
                .expect("statistics");
            assert_eq!(integer_bytes(integer) as i64, payload - 2, "{integer}");
        }
    }

    #[test]
    fn text_and_blobs_count_their_bytes() {
        assert_eq!(stored_bytes(ValueRef::Text("é".as_bytes())), 2);
        assert_eq!(stored_bytes(ValueRef::Blob(&[0; 100])), 100);
        assert_eq!(stored_bytes(ValueRef::Real(0.5)), 8);
        assert_eq!(stored_bytes(ValueRef::Null), 0);
    }
}

//! The `format` files of tracefs: where in a record each field lies.
//!
//! Field offsets, sizes and even presence change between kernels, so nothing about a record is
//! assumed that its own `format` file does not say. Source: Documentation/trace/events.rst,
//! section 2.2, and `f_show` in kernel/trace/trace_events.c.

use iostep_model::printable::name_text;

/// A field's place in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Length in bytes.
    pub size: usize,
    /// True if the kernel's type is signed.
    pub signed: bool,
}

impl Field {
    /// The field as a number of the machine's byte order; `None` if the record is too short or
    /// the field is no number.
    pub fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        Some(match (self.size, self.signed) {
            (1, false) => u64::from(bytes[0]),
            (1, true) => i64::from(bytes[0] as i8) as u64,
            (2, false) => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_ne_bytes(bytes.try_into().ok()?)) as u64,
            (4, false) => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)) as u64,
            (8, _) => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// The field as it is in the record; `None` if the record is too short.
    pub fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// The field as a C string in a fixed array, a name.
    pub fn text(self, record: &[u8]) -> Option<String> {
        let bytes = self.bytes(record)?;
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        Some(name_text(&bytes[..end]))
    }
}

/// One event's `format` file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Format {
    /// `common_type` of its records.
    pub id: u16,
    fields: Vec<(String, Field)>,
}

impl Format {
    /// Parses the text of a `format` file (or of `header_page`, which has no ID).
    ///
    /// Lines that are not understood are passed over: a field that is needed and missing is for
    /// the caller to report.
    pub fn parse(text: &str) -> Format {
        let mut format = Format::default();
        for line in text.lines() {
            let line = line.trim_start();
            if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().unwrap_or_default();
            } else if let Some(field) = line.strip_prefix("field:") {
                format.fields.extend(parse_field(field));
            }
        }
        format
    }

    /// The field of one of these names, separated by `|`: kernels rename fields.
    pub fn field(&self, names: &str) -> Option<Field> {
        names.split('|').find_map(|name| {
            let (_, field) = self.fields.iter().find(|(n, _)| n == name)?;
            Some(*field)
        })
    }
}

fn parse_field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let declaration = match declaration.rsplit_once('[') {
        // `char comm[16]`, but not `__data_loc char[] cmd`.
        Some((before, after)) if after.ends_with(']') => before,
        _ => declaration,
    };
    let name = declaration.rsplit([' ', '*']).next()?;
    let mut field = Field {
        offset: 0,
        size: 0,
        signed: false,
    };
    for part in parts {
        match part.split_once(':') {
            Some(("offset", n)) => field.offset = n.parse().ok()?,
            Some(("size", n)) => field.size = n.parse().ok()?,
            Some(("signed", n)) => field.signed = n == "1",
            _ => {}
        }
    }
    Some((name.to_owned(), field))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: &str = include_str!("../../testdata/tracefs/block_bio_queue.format");

    #[test]
    fn fields_are_found_by_name_whatever_their_type_looks_like() {
        let format = Format::parse(QUEUE);
        let rwbs = format.field("rwbs").expect("a char array");
        assert_eq!((rwbs.offset, rwbs.size), (28, 10));
        let pid = format.field("common_pid").expect("a common field");
        assert!(pid.signed);
        let loc = parse_field("__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;");
        assert_eq!(loc.expect("a dynamic array").0, "cmd");
        let pointer = parse_field("void *pointer;\toffset:8;\tsize:8;\tsigned:0;");
        assert_eq!(pointer.expect("a pointer").0, "pointer");
    }

    #[test]
    fn a_renamed_field_is_found_under_either_name() {
        let format = Format::parse(QUEUE);
        assert_eq!(format.field("missing|sector"), format.field("sector"));
        assert_eq!(format.field("missing|gone"), None);
    }

    #[test]
    fn numbers_keep_their_sign_and_short_records_give_nothing() {
        let field = |offset, size, signed| Field {
            offset,
            size,
            signed,
        };
        let record = (-2i32).to_ne_bytes();
        assert_eq!(field(0, 4, true).number(&record), Some(-2i64 as u64));
        assert_eq!(field(0, 4, false).number(&record), Some(0xFFFF_FFFE));
        assert_eq!(field(1, 4, true).number(&record), None);
        assert_eq!(field(usize::MAX, 2, false).number(&record), None);
        assert_eq!(field(0, 3, false).number(&record), None);
    }
}

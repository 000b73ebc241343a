//! Files of JSON that tell their version.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, Result};

/// All bytes of a file.
///
/// Errors: `Io`; `Unsupported` for more than `most_bytes`, where `expected` was looked for.
pub(crate) fn read(path: &Path, most_bytes: u64, expected: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most_bytes + 1).read_to_end(&mut text))
        .map_err(Error::io(path, "read"))?;
    if text.len() as u64 > most_bytes {
        return Err(Error::Unsupported {
            path: path.to_owned(),
            found: format!("more than {most_bytes} bytes"),
            expected: expected.into(),
        });
    }
    Ok(text)
}

/// Who wrote it, of whatever version the rest is.
#[derive(Default, Deserialize)]
struct Head {
    schema_version: Option<Value>,
    iostep_version: Option<Value>,
}

/// Makes something of JSON whose `schema_version` is at most `newest`; `path` and `format` name it in
/// errors.
///
/// Errors: `Unsupported` for a newer version; `Corrupt` for anything else.
pub(crate) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    (format, newest): (&str, u32),
) -> Result<T> {
    // A list of the values would be taken for fields with names.
    if !text.trim_start().starts_with('{') {
        return Err(Error::corrupt(path, "JSON", "expected an object"));
    }
    let damaged = |error| Error::corrupt(path, "JSON", error);
    let head: Head = serde_json::from_str(text).map_err(damaged)?;
    let version = head.schema_version.as_ref().and_then(Value::as_u64);
    let version = version.ok_or_else(|| Error::corrupt(path, "schema_version", "missing"))?;
    if version > u64::from(newest) {
        let writer = head.iostep_version.as_ref().and_then(Value::as_str);
        return Err(Error::newer(path, format, version, newest, writer));
    }
    serde_json::from_str(text).map_err(damaged)
}

#[cfg(test)]
mod tests {
    /// Without serde_json's feature `float_roundtrip` it is another number, and a result that is shown
    /// again is another document.
    #[test]
    fn a_number_is_read_as_it_was_written() {
        for text in ["0.9719388349514564", "0.1", "4.9e-324"] {
            let number: f64 = serde_json::from_str(text).expect("a number");
            assert_eq!(
                number.to_bits(),
                text.parse::<f64>().expect("too").to_bits()
            );
        }
    }
}

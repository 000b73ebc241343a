//! Files that are packed, and standard input: opened and unpacked on the way.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, anyhow};

use crate::error::bad_input;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";
/// How packed files begin that are read, and those that another program has to unpack.
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
pub const XZ: &[u8] = b"\xfd7zXZ\0";
pub const BZIP2: &[u8] = b"BZh";
pub const LZ4: &[u8] = b"\x04\x22\x4d\x18";
pub const ZIP: &[u8] = b"PK\x03\x04";
const OTHER_PACKERS: [(&[u8], &str, &str); 4] = [
    (XZ, "xz", "xz -dc"),
    (BZIP2, "bzip2", "bzip2 -dc"),
    (LZ4, "lz4", "lz4 -dc"),
    (ZIP, "zip", "unzip -p"),
];
/// The longest of these beginnings.
const MAGIC_BYTES: u64 = 6;

/// What a file holds, unpacked.
pub type Unpacked = Box<dyn Read + Send>;

/// Opens a file or standard input; `wrap` sees what is read of a file before it is unpacked.
/// `command` reads standard input, and is what a packer that is not known here is told to feed.
///
/// Errors, of bad usage: it cannot be opened or read, or is packed in another way.
pub fn open(
    path: &Path,
    command: &str,
    wrap: impl FnOnce(File) -> Unpacked,
) -> anyhow::Result<Unpacked> {
    let name = path.display();
    let mut packed: Unpacked = match is_standard_input(path) {
        true => Box::new(std::io::stdin()),
        false => {
            let file = File::open(path).with_context(|| format!("{name}: cannot open"));
            wrap(file.map_err(bad_input)?)
        }
    };
    let mut begin = Vec::new();
    let read = (&mut packed).take(MAGIC_BYTES).read_to_end(&mut begin);
    read.with_context(|| format!("{name}: cannot read"))
        .map_err(bad_input)?;
    let is = |magic: &[u8]| begin.starts_with(magic);
    if let Some((_, what, by)) = OTHER_PACKERS.iter().find(|(magic, ..)| is(magic)) {
        return Err(bad_input(anyhow!(
            "{name}: packed with {what}; unpack it on the way: {by} {name} | {command} -"
        )));
    }
    let (gzip, zstandard) = (is(GZIP), is(ZSTD));
    let whole = Cursor::new(begin).chain(packed);
    Ok(if gzip {
        Box::new(flate2::read::MultiGzDecoder::new(whole))
    } else if zstandard {
        let unpacked = zstd::Decoder::new(whole);
        Box::new(unpacked.with_context(|| format!("{name}: cannot unpack"))?)
    } else {
        Box::new(whole)
    })
}

/// Takes the first bytes, and gives what is read with them back.
///
/// Errors: it cannot be read.
pub fn begin(mut text: Unpacked, bytes: usize) -> std::io::Result<(Vec<u8>, Unpacked)> {
    let mut start = Vec::new();
    (&mut text).take(bytes as u64).read_to_end(&mut start)?;
    let whole = Cursor::new(start.clone()).chain(text);
    Ok((start, Box::new(whole)))
}

/// True for the name that means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// True for a file whose text cannot be seen, or only a part of it, without unpacking it.
pub fn is_packed(path: &Path) -> bool {
    let mut begin = Vec::new();
    let file = File::open(path).map(|file| file.take(MAGIC_BYTES).read_to_end(&mut begin));
    let others = OTHER_PACKERS.iter().map(|(magic, ..)| *magic);
    let mut magics = others.chain([GZIP, ZSTD]);
    file.is_ok() && magics.any(|magic| begin.starts_with(magic))
}

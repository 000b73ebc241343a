//! What an ATA disk calls itself in full: SCSI's fields, which sysfs shows, have 16 and 4 characters.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::attribute::plain;

/// The page "ATA Information" of SCSI's vital product data, from Linux 5.5 on (T10's SAT).
const PAGE: &str = "vpd_pg89";
const NUMBER: u8 = 0x89;
/// The number and the length of the page, which counts from their end.
const HEAD_BYTES: usize = 4;
/// The command whose answer the page has: IDENTIFY DEVICE, not that of a disc drive.
const COMMAND_AT: u64 = 56;
const IDENTIFY_DEVICE: u8 = 0xec;
/// Where that answer begins.
const ANSWER_AT: usize = 60;
/// In 16-bit words of the answer (T13's ACS). The serial number (10 to 19) is not read.
const FIRMWARE: Range<usize> = 23..27;
const MODEL: Range<usize> = 27..47;

/// Model and firmware of the disk whose SCSI device has this directory in sysfs; `None` where it
/// does not tell.
pub fn names(device: &Path) -> [Option<String>; 2] {
    let page = File::open(device.join(PAGE)).ok();
    let page = page.filter(|page| is_whole(page).unwrap_or(false));
    [MODEL, FIRMWARE].map(|words| string(page.as_ref()?, words))
}

fn is_whole(page: &File) -> std::io::Result<bool> {
    let mut head = [0; HEAD_BYTES];
    page.read_exact_at(&mut head, 0)?;
    let bytes = HEAD_BYTES + usize::from(u16::from_be_bytes([head[2], head[3]]));
    let mut command = [0];
    page.read_exact_at(&mut command, COMMAND_AT)?;
    let is_told = head[1] == NUMBER && command == [IDENTIFY_DEVICE];
    Ok(is_told && bytes >= ANSWER_AT + 2 * MODEL.end)
}

/// Two characters are a word, the first one above the second; words lie low byte first.
fn string(page: &File, words: Range<usize>) -> Option<String> {
    let mut bytes = vec![0; 2 * words.len()];
    let at = ANSWER_AT + 2 * words.start;
    page.read_exact_at(&mut bytes, at as u64).ok()?;
    bytes.chunks_exact_mut(2).for_each(|word| word.swap(0, 1));
    plain(&bytes)
}

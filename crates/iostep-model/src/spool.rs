//! `events.log`: the recording as it grows.
//!
//! An append-only file of frames. A killed recorder loses at most what it had not yet written;
//! a reader takes every whole frame and says where the file stops being whole.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | magic `IOSP` |
//! | 4 | 2 | format version, little-endian |
//! | 6 | 2 | zero |
//! | 8 | ... | frames |
//!
//! Frame:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | payload length in bytes, little-endian, at most 16 MiB |
//! | 4 | 4 | CRC-32C of the payload, little-endian |
//! | 8 | length | events, each a postcard-encoded [`Event`], back to back |

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::directory::give_to_caller;
use crate::error::{Error, Result};
use crate::event::Event;

/// The spool's name inside a trace directory.
pub const FILE_NAME: &str = "events.log";

const MAGIC: &[u8; 4] = b"IOSP";
/// Changes whenever [`Event`]'s encoding does.
pub const VERSION: u16 = 5;
/// The oldest version that is read: since then events were only added, behind the others.
const OLDEST_VERSION: u16 = 2;
const HEADER_BYTES: u64 = 8;
const MAX_FRAME_BYTES: usize = 16 << 20;
const TARGET_FRAME_BYTES: usize = 256 << 10;

/// Appends events to a spool.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    pending: Vec<u8>,
    written_bytes: u64,
}

impl Writer {
    /// Creates `path`, which must not exist.
    ///
    /// Errors: `Io`.
    pub fn create(path: &Path) -> Result<Writer> {
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(Error::io(path, "create"))?;
        give_to_caller(&file).map_err(Error::io(path, "give away"))?;
        let mut header = [0; HEADER_BYTES as usize];
        header[..4].copy_from_slice(MAGIC);
        header[4..6].copy_from_slice(&VERSION.to_le_bytes());
        file.write_all(&header).map_err(Error::io(path, "write"))?;
        Ok(Writer {
            file,
            path: path.to_owned(),
            pending: Vec::with_capacity(TARGET_FRAME_BYTES + 4096),
            written_bytes: HEADER_BYTES,
        })
    }

    /// Adds one event to the current frame.
    ///
    /// Errors: `Io` when a full frame cannot be written; the file then ends with its last whole
    /// frame, and the event is lost.
    pub fn push(&mut self, event: &Event) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.pending = postcard::to_extend(event, pending)
            .expect("encoding into a vector fails only without memory");
        if self.pending.len() >= TARGET_FRAME_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Hands every event so far to the kernel, so that killing this process loses none of them.
    ///
    /// Errors: `Io`; a torn frame is cut off again, so that the file stays readable.
    pub fn flush(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let mut frame = Vec::with_capacity(self.pending.len() + 8);
        frame.extend((self.pending.len() as u32).to_le_bytes());
        frame.extend(crc32c::crc32c(&self.pending).to_le_bytes());
        frame.append(&mut self.pending);
        if let Err(error) = self.file.write_all(&frame) {
            // Best effort: the CRC guards the reader even where the cut fails.
            let _ = self.file.set_len(self.written_bytes);
            return Err(Error::io(&self.path, "write")(error));
        }
        self.written_bytes += frame.len() as u64;
        Ok(())
    }
}

/// What a spool held.
#[derive(Debug)]
pub struct Contents {
    /// The events of every whole frame, in the order of recording.
    pub events: Vec<Event>,
    /// Where and why reading stopped before the end of the file.
    pub cut: Option<String>,
}

/// Reads a spool to its end or to its first damaged frame.
///
/// Errors: `Io`; `Unsupported` for another version; `Corrupt` if it is no spool at all. A damaged
/// or half-written frame is not an error: it is reported in [`Contents::cut`].
pub fn read(path: &Path) -> Result<Contents> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .map_err(Error::io(path, "read"))?;
    let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES as usize) else {
        return Err(Error::corrupt(path, "byte 0", "shorter than a header"));
    };
    if &header[..4] != MAGIC {
        return Err(Error::corrupt(path, "byte 0", "no IOSP magic"));
    }
    let version = u16::from_le_bytes([header[4], header[5]]);
    if version > VERSION {
        return Err(Error::newer(
            path,
            "event format",
            version.into(),
            VERSION,
            None,
        ));
    }
    if version < OLDEST_VERSION {
        return Err(Error::Unsupported {
            path: path.to_owned(),
            found: format!("event format {version}"),
            expected: format!("{OLDEST_VERSION} to {VERSION}"),
        });
    }
    let mut events = Vec::new();
    let cut = decode_frames(body, &mut events)
        .err()
        .map(|(offset, why)| format!("byte {}: {why}", HEADER_BYTES + offset as u64));
    Ok(Contents { events, cut })
}

/// Decodes frames until the end of `body`; on damage, the offset of the bad frame and the reason.
pub fn decode_frames(
    body: &[u8],
    events: &mut Vec<Event>,
) -> std::result::Result<(), (usize, &'static str)> {
    let mut rest = body;
    while !rest.is_empty() {
        let offset = body.len() - rest.len();
        let (header, after) = rest
            .split_at_checked(8)
            .ok_or((offset, "half a frame header"))?;
        let length = u32::from_le_bytes(header[..4].try_into().expect("four bytes")) as usize;
        let crc = u32::from_le_bytes(header[4..].try_into().expect("four bytes"));
        if length > MAX_FRAME_BYTES {
            return Err((offset, "a frame longer than 16 MiB"));
        }
        let (payload, after) = after
            .split_at_checked(length)
            .ok_or((offset, "half a frame"))?;
        if crc32c::crc32c(payload) != crc {
            return Err((offset, "a frame with a wrong checksum"));
        }
        decode_events(payload, events).map_err(|why| (offset, why))?;
        rest = after;
    }
    Ok(())
}

fn decode_events(
    mut payload: &[u8],
    events: &mut Vec<Event>,
) -> std::result::Result<(), &'static str> {
    while !payload.is_empty() {
        let (event, rest) =
            postcard::take_from_bytes(payload).map_err(|_| "an event that does not decode")?;
        events.push(event);
        payload = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Marker;

    fn split(n: u64) -> Event {
        Event::Split {
            mono_ns: n,
            sector: n * 8,
        }
    }

    fn spool_of(events: &[Event]) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join(FILE_NAME);
        let mut writer = Writer::create(&path).expect("create");
        for event in events {
            writer.push(event).expect("push");
            writer.flush().expect("flush");
        }
        (dir, path)
    }

    #[test]
    fn what_was_written_is_read_back() {
        let events = vec![
            split(1),
            Event::Marker {
                mono_ns: 2,
                marker: Marker::Step("commit".into()),
            },
            split(3),
        ];
        let (_dir, path) = spool_of(&events);
        let contents = read(&path).expect("read");
        assert_eq!(contents.events, events);
        assert_eq!(contents.cut, None);
    }

    #[test]
    fn versions_between_the_oldest_and_the_newest_are_read() {
        let (_dir, path) = spool_of(&[split(1)]);
        let mut bytes = std::fs::read(&path).expect("read");
        for (version, is_read) in [(1, false), (2, true), (VERSION, true), (VERSION + 1, false)] {
            bytes[4..6].copy_from_slice(&version.to_le_bytes());
            std::fs::write(&path, &bytes).expect("write");
            assert_eq!(read(&path).is_ok(), is_read, "version {version}");
        }
    }

    #[test]
    fn a_spool_cut_anywhere_yields_its_whole_frames() {
        let events: Vec<Event> = (0..20).map(split).collect();
        let (_dir, path) = spool_of(&events);
        let whole = std::fs::read(&path).expect("read");
        for length in HEADER_BYTES as usize..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("cut");
            let contents = read(&path).expect("read");
            assert!(contents.events.len() < events.len());
            assert_eq!(contents.events[..], events[..contents.events.len()]);
        }
    }

    #[test]
    fn a_flipped_bit_stops_the_reader_and_is_named() {
        let (_dir, path) = spool_of(&[split(1), split(2), split(3)]);
        let mut bytes = std::fs::read(&path).expect("read");
        let last = bytes.len() - 1;
        bytes[last] ^= 0x40;
        std::fs::write(&path, &bytes).expect("write");
        let contents = read(&path).expect("read");
        assert_eq!(contents.events, [split(1), split(2)]);
        assert!(contents.cut.expect("a reason").contains("checksum"));
    }
}

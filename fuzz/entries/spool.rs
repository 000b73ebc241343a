//! The reader of a recording's event log over any bytes.

use iostep_model::spool;

const FRAME_HEADER_BYTES: usize = 8;

/// Decodes the bytes as frames, and as the payload of a frame with the right checksum.
pub fn run(bytes: &[u8]) {
    let mut events = Vec::new();
    if let Err((offset, _)) = spool::decode_frames(bytes, &mut events) {
        assert!(offset <= bytes.len(), "damage is somewhere in the bytes");
    }
    // A mutation seldom guesses a checksum, so this is how it gets past it.
    let mut frame = Vec::with_capacity(bytes.len() + FRAME_HEADER_BYTES);
    frame.extend((bytes.len() as u32).to_le_bytes());
    frame.extend(crc32c::crc32c(bytes).to_le_bytes());
    frame.extend(bytes);
    let mut events = Vec::new();
    if spool::decode_frames(&frame, &mut events).is_ok() {
        // An event takes at least one byte: what was decoded cannot outgrow what was read.
        assert!(events.len() <= bytes.len());
    }
}

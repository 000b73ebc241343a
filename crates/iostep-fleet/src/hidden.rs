//! What stands in a lake for text that is personal: the same for the same text of one lake, and
//! nothing to whoever does not have the lake's key.

use bytes::Bytes;
use iostep_model::hex;
use sha2::{Digest, Sha256};

/// HMAC's block for SHA-256 (RFC 2104).
const BLOCK_BYTES: usize = 64;

/// The secret of a lake.
#[derive(Clone)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) const BYTES: usize = 32;

    pub(crate) fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// HMAC-SHA-256 of a text of a kind, its first 128 bits in hexadecimal digits. Kinds keep a path
    /// from being compared with a command line.
    pub(crate) fn hide(&self, kind: &str, text: &str) -> Bytes {
        let padded = |pad: u8| {
            let mut block = [pad; BLOCK_BYTES];
            let key = block.iter_mut().zip(self.0);
            key.for_each(|(byte, key)| *byte ^= key);
            Sha256::new_with_prefix(block)
        };
        let mut inner = padded(0x36);
        inner.update(kind);
        inner.update([0]);
        inner.update(text);
        let outer = padded(0x5c).chain_update(inner.finalize()).finalize();
        hex::encode(&outer[..16]).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_hmac_as_others_compute_it() {
        // python3: hmac.new(bytes(range(32)), b"path\0/data/a.db", "sha256").hexdigest()[:32]
        let key = Key::new(std::array::from_fn(|index| index as u8));
        assert_eq!(
            key.hide("path", "/data/a.db"),
            "a8e882ab2435b82caa029ef8f11fd0b8"
        );
        assert_ne!(
            key.hide("path", "/data/a.db"),
            key.hide("path", "/data/b.db")
        );
        assert_ne!(key.hide("path", "x"), key.hide("command", "x"));
        let other = Key::new([7; 32]);
        assert_ne!(key.hide("path", "x"), other.hide("path", "x"));
    }
}

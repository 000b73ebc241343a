//! Messages of protobuf, as they are written: a tag before each field, lengths before what nests.
//!
//! Source: protobuf's "Encoding" page. Only what a trace needs: varints, bytes, and messages.

/// Fields of the type varint.
const VARINT: u64 = 0;
/// Fields of the type length-delimited.
const DELIMITED: u64 = 2;

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Message {
    bytes: Vec<u8>,
}

impl Message {
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// An integer without a sign, a truth value or a number of an enumeration.
    pub(super) fn number(&mut self, field: u32, value: u64) {
        push(&mut self.bytes, u64::from(field) << 3 | VARINT);
        push(&mut self.bytes, value);
    }

    /// An `int64` or `int32`: two's complement, of 64 bits for both.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value as u64);
    }

    /// A string, bytes, or a message that is made already.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.delimiter(field, bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// What stands before `length` bytes of a field.
    pub(super) fn delimiter(&mut self, field: u32, length: usize) {
        push(&mut self.bytes, u64::from(field) << 3 | DELIMITED);
        push(&mut self.bytes, length as u64);
    }

    /// A message inside this one.
    pub(super) fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        push(&mut self.bytes, u64::from(field) << 3 | DELIMITED);
        let begin = self.bytes.len();
        fill(self);
        let mut length = self.bytes.len() - begin;
        let mut at = begin;
        while length >= 0x80 {
            self.bytes.insert(at, length as u8 | 0x80);
            length >>= 7;
            at += 1;
        }
        self.bytes.insert(at, length as u8);
    }
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_protobufs_page_are_written_as_there() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.as_bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.bytes(2, b"testing");
        assert_eq!(message.as_bytes(), b"\x12\x07testing");
        message.clear();
        message.nested(3, |inside| inside.number(1, 150));
        assert_eq!(message.as_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.signed(1, -2);
        let minus_two = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(message.as_bytes(), [&[0x08][..], &minus_two].concat());
    }

    #[test]
    fn a_long_message_has_a_length_of_two_bytes() {
        let mut message = Message::default();
        message.nested(1, |inside| inside.bytes(1, &[7; 300]));
        assert_eq!(
            message.as_bytes()[..6],
            [0x0a, 0xaf, 0x02, 0x0a, 0xac, 0x02]
        );
        assert_eq!(message.as_bytes().len(), 306);
    }
}

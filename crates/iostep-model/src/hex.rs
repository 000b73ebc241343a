//! Bytes as lower-case hexadecimal digits.

use base16ct::lower;

/// Two digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    lower::encode_string(bytes)
}

/// The bytes of exactly `2 * N` digits; `None` for anything else.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let length = lower::decode(text, &mut bytes).ok()?.len();
    (length == N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_digits_that_are_written_are_read() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = encode(&bytes);
        assert_eq!(decode::<256>(&text).map(Vec::from), Some(bytes));
        assert_eq!(decode::<2>("00ff"), Some([0, 255]));
        for text in ["", "00f", "00fff", "00FF", "+0ff", "00 f", "é0f"] {
            assert_eq!(decode::<2>(text), None, "{text}");
        }
    }
}

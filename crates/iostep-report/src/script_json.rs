//! JSON that is safe inside a `<script>` element.

use serde::Serialize;

/// Serializes `value` so that no string in it can end the element, open a comment in it, or be
/// taken for markup: HTML's parser knows nothing of JSON's quotes.
pub(crate) fn to_string(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("a page's data has only JSON's types");
    let mut safe = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            // Outside of strings JSON has none of these letters, so this stays JSON.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                safe.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    #[test]
    fn markup_and_line_separators_are_escaped_and_read_back() {
        let hostile = "</script><!-- \u{2028}&\u{2029} \" \\";
        let text = super::to_string(&hostile);
        assert!(!text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        let back: String = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back, hostile);
    }
}

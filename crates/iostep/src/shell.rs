//! Words of lines for sh(1).

use iostep_model::printable;

/// A word for sh, which changes nothing in it.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words as a line for sh.
#[cfg(feature = "many-devices")]
pub fn line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A word of a line that a person is shown and may run: as it is where sh changes nothing in it.
pub fn shown(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,=-".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => quoted(&printable(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_sh_would_change_is_quoted() {
        assert_eq!(shown("http://h:1/a-b_c.json"), "http://h:1/a-b_c.json");
        let changed = ["", "a b", "it's", "$HOME", "a;b", "~", "*", "[::1]", "é"];
        for word in changed {
            let shown = shown(word);
            assert!(shown.starts_with('\'') && shown.ends_with('\''), "{shown}");
            let echo = format!("printf %s {shown}");
            let said = std::process::Command::new("sh")
                .args(["-c", &echo])
                .output();
            assert_eq!(said.expect("sh runs").stdout, word.as_bytes());
        }
        assert!(!shown("a\x1b[2J").contains('\x1b'));
    }
}

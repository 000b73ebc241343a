//! Comma-separated values (RFC 4180).

use std::borrow::Cow;

/// What makes a spreadsheet take a cell for a formula, and so run what a name says; some take the
/// wide forms for the others.
const FORMULAS: &[char] = &['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n'];

/// A cell as it is written: in quotes if it holds what separates cells or lines, and behind an
/// apostrophe if it is no number and a spreadsheet would take it for a formula.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    let is_number = || text.parse::<f64>().is_ok_and(f64::is_finite);
    let apostrophe = match text.starts_with(FORMULAS) && !is_number() {
        true => "'",
        false => "",
    };
    match (text.contains([',', '"', '\r', '\n']), apostrophe) {
        (true, _) => format!("\"{apostrophe}{}\"", text.replace('"', "\"\"")).into(),
        (false, "") => text.into(),
        (false, _) => format!("{apostrophe}{text}").into(),
    }
}

pub fn line(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut line = String::new();
    for text in cells {
        line += &cell(text.as_ref());
        line.push(',');
    }
    line.pop();
    line + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_name_is_a_formula() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"a\",1)", "\"'=HYPERLINK(\"\"a\"\",1)\""),
            ("+a", "'+a"),
            ("-a", "'-a"),
            ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\r=1", "\"'\r=1\""),
            ("\n=1", "\"'\n=1\""),
            ("\u{ff1d}1", "'\u{ff1d}1"),
        ] {
            assert_eq!(cell(text), expected);
        }
    }

    #[test]
    fn numbers_and_other_names_stay() {
        for text in ["", "-1", "+1.5e3", "-0", "a=b", "/var/lib/-x", "'=1"] {
            assert_eq!(cell(text), text);
        }
    }
}

//! Cutting a script into statements.

use std::ffi::CString;

use crate::error::{Error, Result};

/// Cuts a script into its statements, without the empty ones.
///
/// A semicolon ends a statement where `sqlite3_complete` says so, which knows strings, comments and
/// the body of a trigger. The tables that a statement names need not exist yet.
/// Errors: `Usage` if there is no statement, or a zero byte.
pub fn split(script: &str) -> Result<Vec<&str>> {
    if script.contains('\0') {
        return Err(Error::Usage {
            what: "the script holds a zero byte".into(),
            hint: "write binary values as x'00'".into(),
        });
    }
    let mut statements = Vec::new();
    let mut start = 0;
    for semicolon in semicolons(script) {
        if is_complete(&script[start..=semicolon]) {
            statements.push(script[start..=semicolon].trim());
            start = semicolon + 1;
        }
    }
    statements.push(script[start..].trim());
    statements.retain(|statement| !is_blank(statement));
    if statements.is_empty() {
        return Err(Error::Usage {
            what: "the script has no statement".into(),
            hint: "give some SQL, as in \"INSERT INTO t VALUES (1)\"".into(),
        });
    }
    Ok(statements)
}

/// Positions of the semicolons outside of strings, quoted names and comments: the only ones worth
/// a question, so that a long string full of semicolons stays cheap.
fn semicolons(script: &str) -> impl Iterator<Item = usize> {
    let bytes = script.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let here = at;
            at = after_token(script, at);
            if bytes[here] == b';' {
                return Some(here);
            }
        }
        None
    })
}

/// Where the string, quoted name, comment or single byte at `at` ends.
fn after_token(script: &str, at: usize) -> usize {
    let rest = &script.as_bytes()[at..];
    let closing: &[u8] = match rest {
        [b'\'', ..] => b"'",
        [b'"', ..] => b"\"",
        [b'`', ..] => b"`",
        [b'[', ..] => b"]",
        [b'-', b'-', ..] => b"\n",
        [b'/', b'*', ..] => b"*/",
        _ => return at + 1,
    };
    let opening = if closing.len() == 2 { 2 } else { 1 };
    rest[opening..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(script.len(), |found| at + opening + found + closing.len())
}

fn is_complete(text: &str) -> bool {
    let text = CString::new(text).expect("zero bytes were refused before");
    // SAFETY: the argument is a C string that outlives the call.
    unsafe { rusqlite::ffi::sqlite3_complete(text.as_ptr()) != 0 }
}

/// True for what is nothing but space, comments and semicolons.
fn is_blank(statement: &str) -> bool {
    let mut at = 0;
    while at < statement.len() {
        let rest = &statement[at..];
        let comment = rest.starts_with("--") || rest.starts_with("/*");
        let space = rest.starts_with(|c: char| c.is_ascii_whitespace() || c == ';');
        if !comment && !space {
            return false;
        }
        at = after_token(statement, at);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn semicolons_in_strings_names_comments_and_triggers_do_not_cut() {
        let trigger = "CREATE TRIGGER r AFTER INSERT ON t BEGIN DELETE FROM u; SELECT 1; END;";
        let script = format!(
            "INSERT INTO t VALUES ('a;b''c;'); -- no; cut\n{trigger}\n/* ; */ SELECT \";\", `;`, [;]"
        );
        let statements = split(&script).expect("three statements");
        assert_eq!(statements.len(), 3, "{statements:?}");
        assert_eq!(statements[0], "INSERT INTO t VALUES ('a;b''c;');");
        assert!(statements[1].ends_with(trigger));
        assert!(statements[2].ends_with("[;]"));
    }

    #[test]
    fn a_script_without_a_statement_is_refused() {
        for script in ["", " \n", ";;", "-- only a comment", "/* unclosed", "\0"] {
            assert!(
                matches!(split(script), Err(Error::Usage { .. })),
                "{script:?}"
            );
        }
    }

    #[test]
    fn an_unclosed_string_is_left_for_sqlite_to_complain_about() {
        let statements = split("SELECT 1; SELECT 'open; SELECT 2;").expect("two statements");
        assert_eq!(statements, ["SELECT 1;", "SELECT 'open; SELECT 2;"]);
    }

    proptest! {
        #[test]
        fn nothing_of_a_script_is_lost_or_moved(script in "([a-z ;'\"`\\[\\]/*\n-]|--|/\\*|\\*/|é){0,60}") {
            let mut end = 0;
            for statement in split(&script).unwrap_or_default() {
                // By address: the same text may stand in a comment before.
                let start = statement.as_ptr().addr() - script.as_ptr().addr();
                prop_assert!(is_blank(&script[end..start]), "{:?}", &script[end..start]);
                end = start + statement.len();
            }
            prop_assert!(is_blank(&script[end..]), "{:?}", &script[end..]);
        }
    }

    #[test]
    fn characters_of_several_bytes_are_not_cut() {
        let statements = split("SELECT 'é;→'; SELECT [ü];").expect("two statements");
        assert_eq!(statements, ["SELECT 'é;→';", "SELECT [ü];"]);
    }
}

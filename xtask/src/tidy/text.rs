//! Rules about single lines: what is left over, and what belongs to one machine.

use super::tree::Source;
use super::{Finding, at_line};

/// Macros of unfinished work.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Where one person's files lie. Spelled so that this file does not break its own rule.
const PERSONAL: [&str; 4] = [
    concat!("/", "home/"),
    concat!("/", "root/"),
    concat!("/", "Users/"),
    concat!("/", "work/"),
];

/// Trailing blanks, a missing newline at the end, unfinished work, personal paths.
pub fn check(source: &Source, findings: &mut Vec<Finding>) {
    if source.text.is_empty() {
        return;
    }
    for (number, line) in source.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            at_line(findings, source, number, "blanks at the end of the line");
        }
        if let Some(path) = PERSONAL.iter().find(|path| has_absolute(line, path)) {
            at_line(findings, source, number, &format!("a path below {path}"));
        }
        if source.kind() == "rs"
            && let Some(name) = UNFINISHED.iter().find(|name| calls_macro(line, name))
        {
            at_line(findings, source, number, &format!("unfinished: {name}!"));
        }
    }
    if !source.text.ends_with('\n') {
        findings.push(format!("{}: no newline at the end", source.path));
    }
}

/// True if `path` stands in `line` and is not the middle of a longer one.
fn has_absolute(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | ')' | '*'))
    })
}

fn calls_macro(line: &str, name: &str) -> bool {
    let code = line.split("//").next().unwrap_or(line);
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        whole && code[at + name.len()..].starts_with("!(")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::source;

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        let mut findings = Vec::new();
        check(&source(path, text), &mut findings);
        findings
    }

    #[test]
    fn each_rule_names_the_line() {
        assert_eq!(
            findings("a.md", "x\ny \n"),
            ["a.md:2: blanks at the end of the line"]
        );
        assert_eq!(findings("a.md", "x"), ["a.md: no newline at the end"]);
        let unfinished = format!("fn f() {{\n    {}!()\n}}\n", "todo");
        assert_eq!(findings("a.rs", &unfinished), ["a.rs:2: unfinished: todo!"]);
        let personal = format!("cd {}me\n", PERSONAL[0]);
        let expected = format!("a.sh:1: a path below {}", PERSONAL[0]);
        assert_eq!(findings("a.sh", &personal), [expected]);
    }

    #[test]
    fn what_only_looks_alike_is_left_alone() {
        let relative = format!("target{}x\n", PERSONAL[3]);
        assert_eq!(findings("a.md", &relative), [""; 0]);
        assert_eq!(
            findings("a.rs", "// a todo! for later\nmytodo!();\n"),
            [""; 0]
        );
    }
}

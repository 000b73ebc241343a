//! How long files and C functions may be. Rust functions are clippy's (`too_many_lines`).

use super::tree::Source;
use super::{Finding, functions};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
/// One file by design: people copy it into their program, as they do with SQLite. Its functions are
/// as short as all others.
const ONE_FILE: &str = "waldio/waldio.c";
/// Kinds of file that people read as code.
const CODE: [&str; 9] = ["rs", "c", "h", "js", "css", "html", "sh", "py", "java"];

/// Compares every size with its limit.
pub fn check(source: &Source, findings: &mut Vec<Finding>) {
    let mut judge = |place: &str, lines: usize, limit: usize| {
        if lines > limit {
            findings.push(format!("{place}: {lines} lines, at most {limit}"));
        }
    };
    if CODE.contains(&source.kind()) && source.path != ONE_FILE {
        judge(&source.path, source.text.lines().count(), FILE_LINES);
    }
    for function in functions::of(source) {
        let place = format!("{}:{}", source.path, function.name);
        judge(&place, function.lines, FUNCTION_LINES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::source;

    #[test]
    fn a_file_that_people_copy_may_be_long_and_its_functions_may_not() {
        let body = "  x();\n".repeat(900);
        let code = format!("static int run(void)\n{{\n{body}}}\n");
        let places = |path: &str| {
            let mut findings = Vec::new();
            check(&source(path, &code), &mut findings);
            let place = |finding: &String| finding.split(": ").next().map(str::to_owned);
            findings.iter().filter_map(place).collect::<Vec<_>>()
        };
        assert_eq!(places(ONE_FILE), ["waldio/waldio.c:run"]);
        assert_eq!(places("a.c"), ["a.c", "a.c:run"]);
    }
}

//! How long files and functions may be. What is longer stands in a list that only shrinks: an entry
//! that is not needed, or is larger than the truth, is itself a broken rule.

use std::collections::HashMap;

use super::tree::Source;
use super::{Finding, functions};

const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 70;
/// One file by design: people copy it into their program, as they do with SQLite. Its functions are
/// as short as all others.
const ONE_FILE: &str = "waldio/waldio.c";
/// Entries are `FILE lines` or `FILE:FUNCTION lines`.
const ALLOWED_PATH: &str = "xtask/oversize.txt";
/// Kinds of file that people read as code.
const CODE: [&str; 8] = ["rs", "c", "h", "js", "css", "html", "sh", "py"];

/// Compares every size with its limit.
pub fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let list = sources.iter().find(|source| source.path == ALLOWED_PATH);
    let mut allowed = match list.map_or(Ok(HashMap::new()), |source| parse(&source.text)) {
        Ok(allowed) => allowed,
        Err(line) => return findings.push(format!("{ALLOWED_PATH}: cannot read {line:?}")),
    };
    for source in sources
        .iter()
        .filter(|source| CODE.contains(&source.kind()))
    {
        for (place, lines, limit) in measured(source) {
            let allowance = allowed.remove(&place);
            findings.extend(judge(&place, lines, limit, allowance));
        }
    }
    let gone = allowed
        .keys()
        .map(|place| format!("{ALLOWED_PATH}: {place} is gone; remove it"));
    findings.extend(gone);
}

/// The file and its functions, each with its length and its limit.
fn measured(source: &Source) -> Vec<(String, usize, usize)> {
    let mut sizes = Vec::new();
    if source.path != ONE_FILE {
        sizes.push((source.path.clone(), source.text.lines().count(), FILE_LINES));
    }
    for function in functions::of(source) {
        let place = format!("{}:{}", source.path, function.name);
        // Two functions of a name, in two `impl`s, share an entry: the longer one counts.
        match sizes.iter_mut().find(|(known, ..)| *known == place) {
            Some((_, lines, _)) => *lines = function.lines.max(*lines),
            None => sizes.push((place, function.lines, FUNCTION_LINES)),
        }
    }
    sizes
}

fn judge(place: &str, lines: usize, limit: usize, allowance: Option<usize>) -> Option<Finding> {
    let entry = |what: &str| Some(format!("{ALLOWED_PATH}: {place} {what}"));
    match allowance {
        None if lines > limit => Some(format!("{place}: {lines} lines, at most {limit}")),
        Some(most) if lines > most => {
            Some(format!("{place}: {lines} lines, was {most}; shrink it"))
        }
        Some(_) if lines <= limit => entry("is within the limit; remove it"),
        Some(most) if lines < most => entry(&format!("has shrunk; write {lines}")),
        _ => None,
    }
}

/// Errors: the line that is no entry.
fn parse(text: &str) -> Result<HashMap<String, usize>, &str> {
    let mut allowed = HashMap::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (place, lines) = line.rsplit_once(' ').ok_or(line)?;
        allowed.insert(place.to_owned(), lines.parse().map_err(|_| line)?);
    }
    Ok(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::source;

    fn findings(lines: usize, list: &str) -> Vec<Finding> {
        let body = "    work();\n".repeat(lines - 2);
        let code = source("a.rs", &format!("fn long() {{\n{body}}}\n"));
        let mut findings = Vec::new();
        check(&[code, source(ALLOWED_PATH, list)], &mut findings);
        findings
    }

    #[test]
    fn a_long_function_needs_an_entry_of_its_exact_size() {
        assert_eq!(findings(70, ""), [""; 0]);
        assert_eq!(findings(71, ""), ["a.rs:long: 71 lines, at most 70"]);
        assert_eq!(findings(80, "a.rs:long 80\n"), [""; 0]);
        assert_eq!(
            findings(81, "a.rs:long 80\n"),
            ["a.rs:long: 81 lines, was 80; shrink it"]
        );
    }

    #[test]
    fn a_file_that_people_copy_may_be_long_and_its_functions_may_not() {
        let body = "  x();\n".repeat(900);
        let code = format!("static int run(void)\n{{\n{body}}}\n");
        let places = |path: &str| {
            let mut findings = Vec::new();
            check(&[source(path, &code)], &mut findings);
            let place = |finding: &String| finding.split(": ").next().map(str::to_owned);
            findings.iter().filter_map(place).collect::<Vec<_>>()
        };
        assert_eq!(places(ONE_FILE), ["waldio/waldio.c:run"]);
        assert_eq!(places("a.c"), ["a.c", "a.c:run"]);
    }

    #[test]
    fn the_list_only_shrinks() {
        let shrunk = "xtask/oversize.txt: a.rs:long has shrunk; write 75";
        assert_eq!(findings(75, "a.rs:long 80\n"), [shrunk]);
        let within = "xtask/oversize.txt: a.rs:long is within the limit; remove it";
        assert_eq!(findings(60, "a.rs:long 80\n"), [within]);
        let gone = "xtask/oversize.txt: b.rs:f is gone; remove it";
        assert_eq!(findings(60, "b.rs:f 80\n"), [gone]);
    }
}

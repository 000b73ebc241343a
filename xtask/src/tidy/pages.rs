//! Rules about Markdown: links lead somewhere, and every page can be reached.

use std::collections::{HashMap, HashSet};

use super::tree::Source;
use super::{Finding, at_line};
use crate::step::root;

/// Where a reader starts.
const ENTRANCES: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// Checks every link of every page, and that a chain of links leads to every page.
pub fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let pages: HashMap<&str, &Source> = sources
        .iter()
        .filter(|source| source.kind() == "md")
        .map(|source| (source.path.as_str(), source))
        .collect();
    for page in pages.values() {
        for (line, target) in links(&page.text) {
            if let Some(fact) = broken(&page.path, &target, &pages) {
                at_line(findings, page, line, &fact);
            }
        }
    }
    let reached = reachable(&pages);
    let lost = pages.keys().filter(|path| !reached.contains(**path));
    findings.extend(lost.map(|path| format!("{path}: no link leads here from README.md")));
}

/// The targets of `[text](target)` outside code, with the line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_code = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        // Every other piece between backquotes is code.
        let prose: String = line.split('`').step_by(2).collect();
        for (_, rest) in prose
            .match_indices("](")
            .map(|(at, mark)| (at, &prose[at + mark.len()..]))
        {
            if let Some((target, _)) = rest.split_once(')') {
                links.push((number, target.to_owned()));
            }
        }
    }
    links
}

fn broken(page: &str, target: &str, pages: &HashMap<&str, &Source>) -> Option<String> {
    if is_elsewhere(target) {
        return None;
    }
    let (path, anchor) = split(page, target);
    if !pages.contains_key(path.as_str()) {
        return (!root().join(&path).exists()).then(|| format!("{target}: there is no such file"));
    }
    let known = pages
        .get(path.as_str())
        .is_some_and(|to| has_heading(&to.text, anchor));
    (!anchor.is_empty() && !known).then(|| format!("{target}: there is no such heading"))
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

/// The file that a link names, from the root, and the heading in it.
fn split<'a>(page: &str, target: &'a str) -> (String, &'a str) {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    if file.is_empty() {
        return (page.to_owned(), anchor);
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    (parts.join("/"), anchor)
}

/// Anchors are headings in lower case, words joined by hyphens, punctuation dropped.
fn has_heading(text: &str, anchor: &str) -> bool {
    text.lines()
        .filter_map(|line| line.strip_prefix('#'))
        .any(|rest| {
            let title = rest
                .trim_start_matches('#')
                .trim()
                .to_lowercase()
                .replace(' ', "-");
            let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_');
            title.chars().filter(kept).eq(anchor.chars())
        })
}

fn reachable<'a>(pages: &HashMap<&'a str, &Source>) -> HashSet<&'a str> {
    let mut reached = HashSet::new();
    let mut ahead: Vec<String> = ENTRANCES.iter().map(|path| (*path).to_owned()).collect();
    while let Some(path) = ahead.pop() {
        let Some((path, page)) = pages.get_key_value(path.as_str()) else {
            continue;
        };
        if reached.insert(*path) {
            let targets = links(&page.text)
                .into_iter()
                .filter(|(_, to)| !is_elsewhere(to));
            ahead.extend(targets.map(|(_, target)| split(path, &target).0));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tree::source;

    fn findings(pages: &[(&str, &str)]) -> Vec<Finding> {
        let sources: Vec<Source> = pages
            .iter()
            .map(|(path, text)| source(path, text))
            .collect();
        let mut findings = Vec::new();
        check(&sources, &mut findings);
        findings
    }

    #[test]
    fn a_link_to_nothing_is_named_by_its_line() {
        let expected = "README.md:2: docs/gone.md: there is no such file";
        assert_eq!(
            findings(&[("README.md", "a\n[b](docs/gone.md)\n")]),
            [expected]
        );
        let expected = "README.md:1: #nowhere: there is no such heading";
        assert_eq!(findings(&[("README.md", "[b](#nowhere)\n")]), [expected]);
    }

    #[test]
    fn links_are_relative_to_their_page_and_code_has_none() {
        let readme = "[t](docs/t.md#the-self-check)\n```\n[x](gone)\n```\n`[y](gone)`\n";
        let page = "# Trace\n## The self-check\n[back](../README.md) [here](#trace)\n";
        assert_eq!(
            findings(&[("README.md", readme), ("docs/t.md", page)]),
            [""; 0]
        );
    }

    #[test]
    fn a_page_that_no_link_leads_to_is_lost() {
        let pages = [
            ("README.md", "hi\n"),
            ("docs/lost.md", "[a](../README.md)\n"),
        ];
        assert_eq!(
            findings(&pages),
            ["docs/lost.md: no link leads here from README.md"]
        );
    }
}

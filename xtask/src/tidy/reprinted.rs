//! Output that several pages show is one output: a command prints it into all of them.

use super::Finding;
use super::tree::Source;

/// What stands before an output, with the command that prints it, and after.
const BEGIN: &str = "<!-- demo output: ";
const END: &str = "<!-- end of demo output -->";

/// Checks that outputs with the same first line are the same everywhere.
pub fn check(sources: &[Source], findings: &mut Vec<Finding>) {
    let pages = sources.iter().filter(|source| source.kind() == "md");
    let outputs: Vec<(&str, &str)> = pages
        .filter_map(|page| Some((page.path.as_str(), output(&page.text)?)))
        .collect();
    let Some((first, shown)) = outputs.first() else {
        return;
    };
    let others = outputs.iter().filter(|(_, other)| other != shown);
    findings.extend(others.map(|(page, _)| {
        format!("{page}: shows another output of the demo than {first}; make docs-demo")
    }));
}

/// The output, with the line before it.
fn output(text: &str) -> Option<&str> {
    let from = text.find(BEGIN)?;
    let to = text[from..].find(END)?;
    Some(&text[from..from + to])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, shown: &str) -> Source {
        Source {
            path: path.into(),
            text: format!("# A\n\n{BEGIN}make docs-demo -->\n```\n{shown}\n```\n{END}\n\nB\n"),
        }
    }

    fn findings(pages: &[Source]) -> Vec<Finding> {
        let mut findings = Vec::new();
        check(pages, &mut findings);
        findings
    }

    #[test]
    fn two_pages_with_different_outputs_are_found() {
        let same = [page("README.md", "28 KiB"), page("docs/a.md", "28 KiB")];
        assert_eq!(findings(&same), Vec::<Finding>::new());
        let different = [page("README.md", "16 KiB"), page("docs/a.md", "28 KiB")];
        let [finding] = &findings(&different)[..] else {
            panic!("one finding");
        };
        assert!(finding.starts_with("docs/a.md: "), "{finding}");
    }
}

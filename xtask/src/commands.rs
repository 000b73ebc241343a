//! Every command has its page.

use anyhow::{Context, Result, bail};

use crate::metadata;
use crate::step::{output_of, root};
use crate::suites;

/// Fails for a command of `iostep --help` that no page in `docs` is about: neither `NAME.md`, nor a
/// heading that says `iostep NAME`.
pub fn check() -> Result<()> {
    suites::build()?;
    let binary = metadata::read()?.target_directory.join("debug/iostep");
    let help = output_of(std::process::Command::new(binary).arg("--help"))?;
    let names = names_in(&help);
    if names.is_empty() {
        bail!("iostep --help lists no commands");
    }
    let pages = pages()?;
    let missing: Vec<&str> = names
        .into_iter()
        .filter(|name| *name != "help" && !is_documented(name, &pages))
        .collect();
    if !missing.is_empty() {
        bail!("no page in docs about: {}", missing.join(", "));
    }
    Ok(())
}

/// The names in the list of commands that clap prints: its lines are indented by two.
fn names_in(help: &str) -> Vec<&str> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
        })
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

/// Name and text of each page.
fn pages() -> Result<Vec<(String, String)>> {
    let directory = root().join("docs");
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(&directory).context("docs")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            pages.push((name.into_owned(), std::fs::read_to_string(&path)?));
        }
    }
    Ok(pages)
}

fn is_documented(command: &str, pages: &[(String, String)]) -> bool {
    let heading = format!("`iostep {command}`");
    pages.iter().any(|(name, text)| {
        let about = |line: &str| line.starts_with('#') && line.contains(&heading);
        name == command || text.lines().any(about)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "What it is\n\nUsage: iostep\n\nCommands:\n  trace   Records\n          \
                        and more\n  report  Shows\n\nOptions:\n  -h  Help\n";

    #[test]
    fn names_are_read_from_the_list_of_commands_only() {
        assert_eq!(names_in(HELP), ["trace", "report"]);
    }

    #[test]
    fn a_heading_counts_as_a_page_and_a_mention_does_not() {
        let page = |text: &str| [("explain".to_owned(), text.to_owned())];
        assert!(is_documented("explain", &page("")));
        assert!(is_documented("demo", &page("## `iostep demo`\n")));
        assert!(!is_documented("demo", &page("run `iostep demo`\n")));
    }
}

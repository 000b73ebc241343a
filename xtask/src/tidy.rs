//! The rules of the tree that no other tool knows. A rule is kept by everything, or names the place
//! that breaks it: there are no warnings.

mod compiled;
mod features;
mod functions;
mod layers;
mod manifests;
mod modules;
mod pages;
mod reprinted;
mod sizes;
mod text;
pub mod tree;

use anyhow::{Result, bail};
use tree::Source;

/// A broken rule: the place, then the fact.
type Finding = String;

/// Fails and prints every broken rule.
pub fn check() -> Result<()> {
    let files = tree::files()?;
    let sources = tree::read(&files)?;
    let mut findings = Vec::new();
    compiled::check(&files, &mut findings)?;
    for source in &sources {
        text::check(source, &mut findings);
        manifests::check(source, &mut findings);
        sizes::check(source, &mut findings);
    }
    modules::check(&sources, &mut findings)?;
    pages::check(&sources, &mut findings);
    reprinted::check(&sources, &mut findings);
    features::check(&mut findings)?;
    layers::check(&crate::metadata::read()?.packages, &mut findings);
    if findings.is_empty() {
        println!("{} files", sources.len());
        return Ok(());
    }
    findings.sort();
    bail!("{} broken rules\n{}", findings.len(), findings.join("\n"));
}

/// Adds a finding about a line, counted from 0.
fn at_line(findings: &mut Vec<Finding>, source: &Source, line: usize, fact: &str) {
    findings.push(format!("{}:{}: {fact}", source.path, line + 1));
}

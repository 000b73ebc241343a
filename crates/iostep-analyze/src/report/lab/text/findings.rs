//! The papers' claims as text.

use iostep_model::printable;

use crate::lab::{Evidence, Finding, Missing, Verdict};
use crate::report::lab::number::{factor, shown};
use crate::report::text::Style;

/// What the papers found, and what became of it.
pub(super) fn of(findings: &[Finding], style: Style) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style.bold("What the papers found"));
    for finding in findings {
        text.push_str(&one(finding, style));
    }
    text
}

fn one(finding: &Finding, style: Style) -> String {
    let verdict = format!("{:<13}", finding.verdict.name());
    let verdict = match finding.verdict {
        Verdict::DoesNotHold => style.alarm(&verdict),
        Verdict::Holds => style.bold(&verdict),
        Verdict::Open => verdict,
    };
    let mut text = format!(
        " {verdict}  {}: {} ({})\n",
        finding.name, finding.claim, finding.source
    );
    for evidence in &finding.evidence {
        let mark = if evidence.holds { '+' } else { '-' };
        text.push_str(&format!("   {mark} {}\n", printable(&numbers(evidence))));
    }
    for missing in &finding.missing {
        text.push_str(&format!("   ? {}\n", printable(&absent(missing))));
    }
    if finding.verdict == Verdict::DoesNotHold && !finding.explanation.is_empty() {
        text.push_str(&format!("   why: {}\n", finding.explanation));
    }
    text
}

/// `insert, wal; insert, delete: no result`.
pub(in crate::report::lab) fn absent(missing: &Missing) -> String {
    let named = missing.places.iter().filter(|place| !place.is_empty());
    let places: Vec<&str> = named.map(String::as_str).collect();
    match places.is_empty() {
        true => missing.reason.clone(),
        false => format!("{}: {}", places.join("; "), missing.reason),
    }
}

/// `ext4, insert: wal 2.01, delete 5.03`.
pub(in crate::report::lab) fn numbers(evidence: &Evidence) -> String {
    let numbers = evidence.numbers.iter().map(|number| {
        let value = match number.measure {
            Some(measure) => shown(measure, number.value),
            None => factor(number.value),
        };
        format!("{} {value}", number.name)
    });
    let numbers = numbers.collect::<Vec<_>>().join(", ");
    match evidence.place.as_str() {
        "" => numbers,
        place => format!("{place}: {numbers}"),
    }
}

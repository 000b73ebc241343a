//! Licences of what is linked in.

pub mod texts;

use anyhow::{Result, anyhow, bail};
use spdx::{Expression, LicenseId, Licensee, ParseMode};

use crate::metadata::{self, Package};

/// Licences that an Apache-2.0 program can ship with. A package under several needs one of them.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Fails and names every package whose licence is not allowed, or is not stated.
pub fn check() -> Result<()> {
    let metadata = metadata::read()?;
    let refused: Vec<String> = metadata.packages.iter().filter_map(refusal).collect();
    if refused.is_empty() {
        println!("{} packages", metadata.packages.len());
        return Ok(());
    }
    bail!("{}", refused.join("\n"));
}

fn refusal(package: &Package) -> Option<String> {
    let of = |why: String| Some(format!("{} {}: {why}", package.name, package.version));
    let Some(licence) = &package.license else {
        return of("no licence stated".into());
    };
    match is_allowed(licence) {
        Ok(true) => None,
        Ok(false) => of(format!(
            "licence {licence}, which is not on the list of allowed ones"
        )),
        Err(error) => of(format!(
            "licence {licence} does not parse: {}",
            error.reason
        )),
    }
}

/// The fewest licences that an expression asks to keep; of alternatives, the first in [`ALLOWED`].
fn needed(licence: &str) -> Result<Vec<LicenseId>> {
    let expression = Expression::parse_mode(licence, ParseMode::LAX)
        .map_err(|error| anyhow!("licence {licence} does not parse: {}", error.reason))?;
    let allowed: Vec<Licensee> = ALLOWED
        .iter()
        .filter_map(|name| Licensee::parse(name).ok())
        .collect();
    let needed = expression
        .minimized_requirements(&allowed)
        .map_err(|error| anyhow!("licence {licence}: {error}"))?;
    Ok(needed
        .iter()
        .filter_map(|requirement| requirement.license.id())
        .collect())
}

fn is_allowed(licence: &str) -> Result<bool, spdx::ParseError> {
    let expression = Expression::parse_mode(licence, ParseMode::LAX)?;
    Ok(expression.evaluate(|requirement| {
        let id = requirement.license.id().map(|id| id.name);
        id.is_some_and(|name| ALLOWED.contains(&name))
    }))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn a_choice_needs_one_allowed_licence_and_a_sum_needs_all() {
        let allowed = |licence| is_allowed(licence).expect("parses");
        assert!(allowed("LGPL-2.1-only OR BSD-2-Clause"));
        assert!(allowed("MIT/Apache-2.0"));
        assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!allowed("MIT AND GPL-2.0-only"));
        assert!(!allowed("MPL-2.0"));
    }
}

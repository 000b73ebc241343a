//! Which crate may depend on which: the data goes one way, and ARCHITECTURE.md draws it.

use super::Finding;
use crate::metadata::Package;

/// A crate and the crates of ours that it may use. Tests may use more.
const MAY_USE: &[(&str, &[&str])] = &[
    ("iostep-model", &[]),
    ("waldio", &[]),
    ("iostep-fs", &["iostep-model"]),
    ("iostep-trace", &["iostep-model"]),
    ("iostep-load", &["iostep-model", "waldio"]),
    ("iostep-calls", &["iostep-model"]),
    ("iostep-lab", &["iostep-model"]),
    ("iostep-report", &["iostep-model"]),
    (
        "iostep-analyze",
        &["iostep-model", "iostep-fs", "iostep-report"],
    ),
    ("iostep-fleet", &["iostep-model", "iostep-analyze"]),
    (
        "iostep-serve",
        &["iostep-model", "iostep-analyze", "iostep-report", "waldio"],
    ),
];
/// Crates that glue or test the others.
const ABOVE_ALL: &[&str] = &["iostep", "iostep-kernel-tests", "xtask"];

/// Names every dependency that points the wrong way, and every crate without a place.
pub fn check(packages: &[Package], findings: &mut Vec<Finding>) {
    for package in packages.iter().filter(|package| package.source.is_none()) {
        let name = package.name.as_str();
        if ABOVE_ALL.contains(&name) {
            continue;
        }
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            findings.push(format!("{name}: a crate without a place in {}", file!()));
            continue;
        };
        for dependency in package
            .dependencies
            .iter()
            .filter(|d| d.kind.as_deref() != Some("dev"))
        {
            let used = dependency.name.as_str();
            let ours = MAY_USE.iter().any(|(known, _)| *known == used);
            if ours && !allowed.contains(&used) {
                findings.push(format!("{name}: must not depend on {used}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    fn package(name: &str, uses: &str, kind: Option<&str>) -> Package {
        Package {
            name: name.into(),
            version: "0.1.0".into(),
            license: None,
            license_file: None,
            authors: Vec::new(),
            source: None,
            manifest_path: Default::default(),
            dependencies: vec![Dependency {
                name: uses.into(),
                kind: kind.map(str::to_owned),
            }],
        }
    }

    fn findings(package: Package) -> usize {
        let mut findings = Vec::new();
        check(&[package], &mut findings);
        findings.len()
    }

    #[test]
    fn a_probe_must_not_know_layouts_but_its_tests_may() {
        assert_eq!(findings(package("iostep-trace", "iostep-model", None)), 0);
        assert_eq!(findings(package("iostep-trace", "iostep-fs", None)), 1);
        assert_eq!(
            findings(package("iostep-trace", "iostep-lab", Some("dev"))),
            0
        );
        assert_eq!(findings(package("iostep-load", "waldio", None)), 0);
        assert_eq!(findings(package("iostep-analyze", "waldio", None)), 1);
        assert_eq!(findings(package("iostep-new", "serde", None)), 1);
    }
}

//! Rules about `Cargo.toml`.

use super::Finding;
use super::tree::Source;

/// Every crate takes the workspace's lints. The fuzz targets are no part of it, nor is what has a
/// workspace of its own.
pub fn check(source: &Source, findings: &mut Vec<Finding>) {
    let is_manifest = source.path.rsplit('/').next() == Some("Cargo.toml");
    let is_elsewhere = source.path.starts_with("fuzz/") || source.text.contains("\n[workspace]\n");
    let is_crate = source.text.contains("[package]") && !is_elsewhere;
    if is_manifest && is_crate && !source.text.contains("[lints]\nworkspace = true\n") {
        findings.push(format!(
            "{}: the workspace's lints are not taken",
            source.path
        ));
    }
}

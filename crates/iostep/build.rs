//! Tells a build which commit it is made from, so that results can say it: what `IOSTEP_COMMIT`
//! says, as scripts/dist has it of git, a `+` behind it if files were changed; or else, of a release
//! build, the commit that is checked out, and a `?`. Cargo does not run this again when a file
//! changes, so that a word on changes would be of an earlier day.
//!
//! Another debug build says nothing: it would be built again with every commit.

use std::process::Command;

/// What a caller says, who has looked at the files.
const TOLD: &str = "IOSTEP_COMMIT";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={TOLD}");
    let told = std::env::var(TOLD).ok().filter(|told| !told.is_empty());
    if let Some(commit) = told.or_else(checked_out) {
        println!("cargo::rustc-env=IOSTEP_BUILT_FROM={commit}");
    }
}

/// The commit of a release build. Without a repository, as in a source archive, there is none.
fn checked_out() -> Option<String> {
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    Some(git(&["rev-parse", "HEAD"])? + "?")
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

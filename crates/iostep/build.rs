//! Tells a release build which commit it is made from, so that results can say it. A debug build
//! says nothing: it would be built again with every commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    // Without a repository, as in a source archive, there is nothing to tell.
    let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) else {
        return;
    };
    println!("cargo::rerun-if-changed={log}");
    if let Some(commit) = git(&[
        "describe",
        "--always",
        "--abbrev=40",
        "--dirty=+",
        "--exclude=*",
    ]) {
        println!("cargo::rustc-env=IOSTEP_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

//! The pages in a browser: `pages.js` drives Chromium without a screen.
//!
//! `IOSTEP_SCREENSHOTS` names a directory for what the browser showed.

mod common;

use std::path::PathBuf;
use std::process::Command;

use common::{Fleet, Running, encoded};

/// By the names that distributions have.
const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).collect::<Vec<_>>();
    let programs = BROWSERS
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    programs.into_iter().find(|program| program.is_file())
}

#[test]
#[ignore = "needs Chromium and node; make test-pages installs and runs it"]
fn pages_are_seen_and_reached_and_have_the_figures_of_the_api() {
    let browser = browser().expect("Chromium in PATH; scripts/setup pages installs it");
    let mut hostile = String::new();
    let running = Running::start(|fleet| {
        fleet.many();
        hostile = encoded(&fleet.hostile().key());
    });
    let mut command = Command::new("node");
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/browser/pages.js"
        ))
        .arg(browser)
        .arg(format!("http://{}", running.address))
        .arg(&hostile);
    if let Some(place) = Fleet::screenshots() {
        command.arg(place);
    }
    let output = command.output().expect("node starts");
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    println!("{}", said[0]);
    assert!(output.status.success(), "{}", said.concat());
}

//! The pages in a browser: `pages.js` drives Chromium without a screen. Without one, or without node,
//! the test is ignored, with the reason, or fails if `IOSTEP_REQUIRE` names `browser`.
//!
//! `IOSTEP_SCREENSHOTS` names a directory for what the browser showed.

mod common;

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use common::{Fleet, Running, encoded};
use libtest_mimic::{Arguments, Failed, Trial};

/// By the names that distributions have.
const BROWSERS: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];

fn found(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).collect::<Vec<_>>();
    let programs = names
        .iter()
        .flat_map(|name| places.iter().map(move |place| place.join(name)));
    programs.into_iter().find(|program| program.is_file())
}

fn main() -> ExitCode {
    let browser = found(&BROWSERS);
    let lacks = match (&browser, found(&["node"])) {
        (None, _) => "no Chromium",
        (_, None) => "no node",
        _ => "",
    };
    let required = std::env::var("IOSTEP_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name == "browser");
    let name = match lacks {
        "" => "pages".to_owned(),
        lacks => format!("pages ({lacks}; make test-pages installs what is needed)"),
    };
    let trial = Trial::test(name, move || {
        let browser = browser.ok_or(lacks)?;
        pages(&browser)
    });
    let trial = trial.with_ignored_flag(!lacks.is_empty() && !is_required);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn pages(browser: &std::path::Path) -> Result<(), Failed> {
    let mut hostile = String::new();
    let running = Running::start(|fleet| {
        fleet.many();
        hostile = encoded(&fleet.hostile().key());
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser/pages.js");
    let mut command = Command::new("node");
    command
        .arg(script)
        .arg(browser)
        .arg(format!("http://{}", running.address))
        .arg(&hostile);
    if let Some(place) = Fleet::screenshots() {
        command.arg(place);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{said}");
    match output.status.success() {
        true => Ok(()),
        false => Err((said + &String::from_utf8_lossy(&output.stderr)).into()),
    }
}

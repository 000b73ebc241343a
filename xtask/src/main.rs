//! The project's own chores; `cargo xtask ci` is the whole check.

mod arm64;
mod browser;
mod commands;
mod contributing;
mod format;
mod javascript;
mod licences;
mod metadata;
mod phone_app;
mod step;
mod suites;
mod tidy;
mod waldio;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use step::Plan;
use suites::Guests;

const USAGE: &str = "\
usage: cargo xtask TASK

  ci             everything below, in this order; what `make test` runs
  fmt [--check]  format Rust and C
  tidy           the rules of the tree that no other tool knows
  licences       licences of everything that is linked in
  javascript     the pages' scripts: types, lints, tests
  lint           clippy, warnings are errors
  doc            rustdoc, warnings are errors
  build          the command and every test
  commands       every command has its page in docs
  contributing   what the pages of docs/contributing say, done in a copy of the tree, and built
                 there; ci does it but for the build
  waldio         the SQLite extension's tests: two SQLites, sanitizers, languages
  phone-app      the tests of the phone app; ci does it where the machine is set up for it
  browser        the server's pages in Chromium; ci does it where scripts/setup pages was
  kernels        the tests that run in guests, on every kernel that scripts/setup unpacks
  arm64          the program for arm64: unit tests under user emulation, the rest in guests on
                 every kernel that scripts/setup unpacks; ci makes one trace on one of them
                 where the machine is set up for it
  test           unit tests, then the tests that need root and a real kernel
  licences-of FILE MANIFEST ARGUMENT...
                 writes the licences of the crates that are linked into a program; the arguments
                 are those of cargo tree that select it: --package, --target, features

Environment:
  IOSTEP_REQUIRE  comma-separated requirements (root,btf,ext4,xfs,btrfs,..., or all) that a test
                  may not miss: a skip becomes a failure. All of them where CI=true, but for the
                  examples of waldio (node, go, ...), which come from registries.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["ci"] => ci(),
        ["fmt"] => Plan::new().then("fmt", format::rewrite),
        ["fmt", "--check"] => Plan::new().then("fmt --check", format::check),
        ["tidy"] => Plan::new().then("tidy", tidy::check),
        ["licences"] => Plan::new().then("licences", licences::check),
        ["licences-of", file, manifest, ref selection @ ..] => Plan::new()
            .then("licences-of", || {
                licences::texts::write(file, manifest, selection)
            }),
        ["javascript"] => Plan::new().then("javascript", javascript::check),
        ["lint"] => Plan::new().then("lint", suites::lint),
        ["doc"] => Plan::new().then("doc", suites::doc),
        ["build"] => Plan::new().then("build", suites::build),
        ["contributing"] => Plan::new().then("contributing", contributing::build),
        ["commands"] => Plan::new().then("commands", commands::check),
        ["waldio"] => Plan::new().then("waldio", waldio::test),
        ["browser"] => Plan::new().then("browser", browser::test),
        ["phone-app"] => Plan::new().then("phone-app", phone_app::test),
        ["kernels"] => Plan::new().then("kernels", suites::kernels),
        ["arm64"] => Plan::new().then("arm64", arm64::whole),
        ["arm64-smoke"] => Plan::new().then("arm64-smoke", arm64::smoke),
        ["test"] => Plan::new().then("test", || suites::test(Guests::start()?)),
        [] | ["help" | "-h" | "--help"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("xtask: no task {:?}\n\n{USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Cheap steps first, so that a slip is told in seconds.
fn ci() -> Result<Plan> {
    let plan = Plan::new()
        .then("fmt --check", format::check)?
        .then("tidy", tidy::check)?
        .then("licences", licences::check)?
        .then("javascript", javascript::check)?
        .then("lint", suites::lint)?
        .then("doc", suites::doc)?
        .then("build", suites::build)?;
    // They take as long as all that follows.
    let guests = Guests::start()?;
    let plan = plan
        .then("commands", commands::check)?
        .then("contributing", contributing::check)?
        .then("waldio", waldio::test)?
        .then("phone-app", phone_app::test)?
        .then("browser", browser::test)?
        .then("test", || suites::test(guests))?
        .then("arm64-smoke", arm64::smoke)?;
    plan.summarise();
    Ok(plan)
}

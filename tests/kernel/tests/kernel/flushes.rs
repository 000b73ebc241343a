//! One number of flushes: what the device executed, wherever a number is shown.
//!
//! Ground truth: the kernel's own count, the 16th field of `/sys/block/X/stat`.

use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::counters;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use serde_json::Value;

use crate::case::Case;
use crate::stage::{self, Stage};

/// Each sync commits; the commit block asks for a flush first, and for FUA, which a loop device
/// does not have: another flush.
const MODES: &[&str] = &["append-fsync", "o-dsync"];

/// Settling a filesystem three times that is settled, and once before that.
const BETWEEN_STEPS: u64 = 9;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    let case = |name: &str, body: fn() -> anyhow::Result<()>| {
        Case::new(name, needs.clone(), body).about("flushes")
    };
    vec![
        case("reports show as many as the device counted", in_reports),
        case("explain shows as many as the device counted", in_explain),
    ]
}

fn flushes(stage: &Stage) -> anyhow::Result<u64> {
    Ok(counters::read(stage.device())?.flush.ios)
}

fn in_reports() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let before = flushes(&stage)?;
    let words = stage.trace(&output, &["--json", "--settle"], &stage.workload(MODES));
    let outcome = iostep::run(words)?.success()?;
    let counted = flushes(&stage)? - before;
    let summary: Value = serde_json::from_str(&outcome.stdout)?;
    let asking = summary["barriers"]["preflush_writes"].as_u64();
    println!("    {counted} flushes, {asking:?} writes that ask for one first");
    anyhow::ensure!(counted > 0 && asking > Some(0), "not what is to be tested");
    let shown = [
        ("JSON", in_json(&summary)),
        ("JSON, requests", of_requests(&summary)),
        ("JSON, by sync call", of_syncs(&summary)),
        ("text", in_text(&report(&output, &[Path::new("--full")])?)),
        (
            "text, requests",
            of_requests_in_text(&report(&output, &[Path::new("--full")])?),
        ),
        ("HTML", in_page(&output, directory.path())?),
    ];
    for (place, number) in shown {
        anyhow::ensure!(number == Some(counted), "{place}: {number:?} of {counted}");
    }
    Ok(())
}

fn report(trace: &Path, flags: &[&Path]) -> anyhow::Result<String> {
    let words = [Path::new("report"), trace];
    let outcome = iostep::run(words.iter().chain(flags))?.success()?;
    Ok(outcome.stdout)
}

fn in_json(summary: &Value) -> Option<u64> {
    summary["barriers"]["flushes"].as_u64()
}

fn of_requests(summary: &Value) -> Option<u64> {
    let totals = summary["totals"].as_array()?.iter();
    let flushes = totals.filter(|total| total["operation"] == "flush");
    flushes
        .map(|total| total["amount"]["requests"].as_u64())
        .sum()
}

/// All of them: each flush of this workload is a sync call's.
fn of_syncs(summary: &Value) -> Option<u64> {
    let kinds = summary["sync_kinds"].as_array()?.iter();
    kinds.map(|kind| kind["flushes"].as_u64()).sum()
}

fn in_text(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(" flushes "));
    line?.split(';').next()?.replace(',', "").parse().ok()
}

fn of_requests_in_text(text: &str) -> Option<u64> {
    let flushes = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [.., "flush", requests, "0", "B"] => Some(requests.replace(',', "")),
            _ => None,
        }
    });
    flushes.map(|number| number.parse::<u64>().ok()).sum()
}

/// The number among the totals at the page's head.
fn in_page(trace: &Path, directory: &Path) -> anyhow::Result<Option<u64>> {
    let page = directory.join("page.html");
    report(trace, &["--html".as_ref(), &page])?;
    number_in_page(&page)
}

fn number_in_page(page: &Path) -> anyhow::Result<Option<u64>> {
    let page = std::fs::read_to_string(page)?;
    let (_, rest) = page
        .split_once("<dt>flushes</dt><dd>")
        .context("no flushes in the page")?;
    let number = rest.split('<').next().unwrap_or_default();
    Ok(number.replace(',', "").parse().ok())
}

/// In place, and without a transaction before the first: then all but the settling between the
/// steps is in some step.
fn in_explain() -> anyhow::Result<()> {
    // Nor is anything committed by time, after 5 s, while the trace is not there yet.
    let stage = Stage::new(Kind::Ext4, &[], "commit=600")?;
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("page.html");
    let database = stage.root().join("app.db");
    // An empty file is an empty database.
    std::fs::write(&database, "")?;
    stage.settle()?;
    let before = flushes(&stage)?;
    let words = [
        Path::new("explain"),
        &database,
        "CREATE TABLE t(x); INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)".as_ref(),
        "--in-place".as_ref(),
        "--json".as_ref(),
        "--html".as_ref(),
        &page,
    ];
    let outcome = iostep::run(words)?.success()?;
    let counted = flushes(&stage)? - before;
    let explanation: Value = serde_json::from_str(&outcome.stdout)?;
    let shown = in_steps(&explanation["runs"][0]);
    let in_page = number_in_page(&page)?;
    println!("    {counted} flushes; {shown:?} in the steps, {in_page:?} in the page");
    anyhow::ensure!(counted > 0 && in_page == Some(counted), "{in_page:?}");
    let shown = shown.unwrap_or(0);
    let expected = counted.saturating_sub(BETWEEN_STEPS)..=counted;
    anyhow::ensure!(expected.contains(&shown), "{shown} of {counted}");
    Ok(())
}

fn in_steps(run: &Value) -> Option<u64> {
    let transactions = run["transactions"].as_array()?.iter();
    let steps = transactions.flat_map(|transaction| [&transaction["cost"], &transaction["later"]]);
    let steps = steps.chain([&run["close"]]);
    steps.map(|cost| cost["flushes"].as_u64()).sum()
}

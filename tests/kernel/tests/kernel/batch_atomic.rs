//! SQLite's commits by f2fs's batch atomic writes, as the kernel and sqlite3 see them.

use std::path::Path;

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::bench::{Document, Run};
use iostep_model::table::Trace;
use iostep_model::{SyncKind, store};

use crate::case::Case;
use crate::stage::{self, Stage};

const TRANSACTIONS: u64 = 20;
/// The commit that comes before the measured part.
const WARM_UP: u64 = 1;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::F2fs);
    needs.extend([Requirement::Btf, Requirement::Program("sqlite3")]);
    let case = |name: &str, body: fn() -> anyhow::Result<()>| {
        Case::new(format!("f2fs: {name}"), needs.clone(), body)
    };
    vec![
        case(
            "an insert with batch atomic writes is one atomic commit and no journal",
            || atomic("delete"),
        ),
        case(
            "batch atomic writes replace a journal that persists",
            || atomic("persist"),
        ),
    ]
}

/// What inserts left: the trace of the whole command, and its result.
struct Inserts {
    trace: Trace,
    run: Run,
}

impl Inserts {
    fn make(stage: &Stage, flags: &str) -> anyhow::Result<Inserts> {
        let directory = tempfile::tempdir()?;
        let [output, result] =
            ["run.iostep", "result.json"].map(|name| directory.path().join(name));
        let root = stage.root().to_string_lossy().into_owned();
        let bench = format!(
            "bench sqlite {root} {flags} --transactions {TRANSACTIONS} --verify --keep --quiet -o {}",
            result.display()
        );
        let program = iostep::binary()?.to_string_lossy().into_owned();
        let words = bench.split_whitespace().map(str::to_owned);
        let command: Vec<String> = std::iter::once(program).chain(words).collect();
        iostep::run(stage.trace(&output, &["--json"], &command))?.success()?;
        let document = Document::parse(&result, &std::fs::read(&result)?)?;
        let run = document.runs.into_iter().next().context("no run")?;
        let made = stage.root().join("iostep-bench");
        is_whole(&made.join("sqlite-0-0.db"))?;
        std::fs::remove_dir_all(made)?;
        let trace = store::read(&output)?;
        Ok(Inserts { trace, run })
    }

    fn atomic_commits(&self) -> u64 {
        let syncs = self.trace.syncs.iter();
        syncs.filter(|s| s.kind == SyncKind::AtomicCommit).count() as u64
    }

    fn written_bytes(&self) -> u64 {
        let requests = self.trace.requests.iter();
        let writes = requests.filter(|request| request.operation.is_write());
        writes.map(|write| u64::from(write.bytes)).sum()
    }

    fn has_journal(&self) -> bool {
        let mut paths = self
            .trace
            .files
            .iter()
            .filter_map(|file| file.path.as_deref());
        paths.any(|path| path.ends_with("-journal"))
    }
}

/// sqlite3 finds every row, and nothing wrong.
fn is_whole(database: &Path) -> anyhow::Result<()> {
    let sql = "PRAGMA integrity_check; SELECT count(*) FROM t0";
    let answer = crate::bench::sqlite3(database, sql)?;
    anyhow::ensure!(answer == format!("ok\n{TRANSACTIONS}\n"), "{answer}");
    Ok(())
}

fn atomic(journal: &str) -> anyhow::Result<()> {
    let stage = Stage::new(Kind::F2fs, &[], "nodiscard")?;
    let plain = Inserts::make(&stage, &format!("--journal {journal}"))?;
    anyhow::ensure!(plain.run.atomic_commits.is_none(), "they are on by default");
    anyhow::ensure!(plain.atomic_commits() == 0, "they are on by default");
    anyhow::ensure!(plain.has_journal(), "no journal without them");
    let atomic = Inserts::make(&stage, &format!("--journal {journal} --batch-atomic"))?;
    let found = (atomic.run.atomic_commits, atomic.atomic_commits());
    let expected = (Some(TRANSACTIONS), TRANSACTIONS + WARM_UP);
    anyhow::ensure!(found == expected, "{found:?} commits");
    anyhow::ensure!(!atomic.has_journal(), "a journal beside them");
    let [less, more] = [&atomic, &plain].map(Inserts::written_bytes);
    println!("    {less} bytes, {more} with the journal");
    anyhow::ensure!(less < more, "{less} bytes, {more} with the journal");
    let verified = atomic.run.verification.as_ref();
    let wrong = verified.context("not verified")?.wrong;
    anyhow::ensure!(wrong == 0, "{wrong} rows are wrong");
    Ok(())
}

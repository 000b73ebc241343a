//! One line on what would be cheaper, from what was measured.

use iostep_model::durability::{Durability, Loss};
use iostep_report::quantity::bytes;

use super::part::Owner;
use super::{Part, RunCost, TransactionCost};

/// The advice for an experiment. `own_mode` is the journal mode that the database came with.
pub(super) fn advice(runs: &[RunCost], own_mode: &str, filesystem: &str) -> String {
    let Some(own) = runs
        .iter()
        .find(|run| run.mode == own_mode)
        .or(runs.first())
    else {
        return "nothing was run, so there is nothing to advise".into();
    };
    let rivals: Vec<_> = runs
        .iter()
        .filter(|run| run.mode != own.mode && run.durability.loses_no_more_than(&own.durability))
        .collect();
    match rivals.iter().min_by_key(|run| price(run)) {
        Some(best) if price(best) < price(own) => cheaper(best, own),
        Some(next) => cheapest(own, next),
        None => from_one_run(own, filesystem),
    }
}

/// Bytes first, those that are written a little later among them; then flushes, then requests.
fn price(run: &RunCost) -> (u64, u64, u64) {
    let total = run.total();
    (written(run), total.flushes, total.writes)
}

fn written(run: &RunCost) -> u64 {
    run.total().bytes + run.total_later().bytes
}

fn cheaper(best: &RunCost, own: &RunCost) -> String {
    let saved = written(own) - written(best);
    let mut text = format!(
        "{} instead of {} writes {} instead of {} ({} less) and flushes {} instead of {} times",
        best.mode,
        own.mode,
        bytes(written(best)),
        bytes(written(own)),
        percent(saved, written(own)),
        best.total().flushes,
        own.total().flushes,
    );
    text += &durability(&best.durability, &own.durability);
    let checkpoint = best.close.bytes;
    if checkpoint > own.close.bytes {
        text += &format!(
            "; its checkpoint at the close wrote {} more",
            bytes(checkpoint)
        );
    }
    text
}

/// What a mode that loses no more than the database's own one can lose at worst.
fn durability(best: &Durability, own: &Durability) -> String {
    let accidents = [
        ("when the power fails", best.power_loss, own.power_loss),
        ("when the system crashes", best.os_crash, own.os_crash),
        (
            "when the process is killed",
            best.process_crash,
            own.process_crash,
        ),
    ];
    match accidents.iter().find(|(_, best, own)| best != own) {
        Some((accident, best, own)) => format!(
            ", and loses less {accident} (at worst {} instead of: {})",
            best.words(),
            own.words()
        ),
        None if own.power_loss == Loss::Nothing => ", with the same durability".into(),
        None => format!(
            ", with the same durability (at worst, when the power fails: {})",
            own.power_loss.words()
        ),
    }
}

fn cheapest(own: &RunCost, next: &RunCost) -> String {
    let tie = if written(next) == written(own) {
        format!("as many bytes, with {} flushes", next.total().flushes)
    } else {
        let more = written(next).saturating_sub(written(own));
        format!(
            "{} ({} more)",
            bytes(written(next)),
            percent(more, written(own))
        )
    };
    format!(
        "keep {}: with {} and {} flushes it is the cheapest that is at least as durable; next is \
         {} with {tie}",
        own.mode,
        bytes(written(own)),
        own.total().flushes,
        next.mode,
    )
}

fn from_one_run(run: &RunCost, filesystem: &str) -> String {
    let total = run.total();
    let writing: Vec<_> = run
        .transactions
        .iter()
        .filter(|t| t.cost.syncs > 0)
        .collect();
    if writing.len() > 1 {
        return one_transaction(&writing);
    }
    if total.joj_bytes > 0 {
        return format!(
            "{} of {} ({}) are {filesystem} journaling the SQLite journal, which a journal on \
             blocks that are already allocated does not cause; compare with --journal \
             delete,truncate,persist,wal,waldio",
            bytes(total.joj_bytes),
            bytes(total.bytes),
            percent(total.joj_bytes, total.bytes),
        );
    }
    let for_database = Part::Log(Some(Owner::Database));
    let logged = total.parts.iter().find(|row| row.part == for_database);
    if let Some(logged) = logged {
        return format!(
            "{} of {} ({}) are {filesystem} journaling the database file itself, because it grew \
             or its inode changed; what is left is data",
            bytes(logged.bytes),
            bytes(total.bytes),
            percent(logged.bytes, total.bytes),
        );
    }
    if total.bytes == 0 {
        return "nothing was written before the last statement returned: there is nothing to save \
                but durability"
            .into();
    }
    format!(
        "no byte of {} is {filesystem} journaling for SQLite's journal: this is as far as journal \
         modes go",
        bytes(total.bytes)
    )
}

/// What the cheapest of several transactions costs is what each saves by joining another.
fn one_transaction(writing: &[&TransactionCost]) -> String {
    let cheapest = writing
        .iter()
        .map(|t| (t.cost.bytes, t.cost.syncs, t.cost.flushes))
        .min()
        .unwrap_or_default();
    let others = writing.len() as u64 - 1;
    format!(
        "{} transactions sync one by one; in one BEGIN ... COMMIT up to {} sync calls and {} \
         flushes ({}) would be saved",
        writing.len(),
        others * cheapest.1,
        others * cheapest.2,
        bytes(others * cheapest.0),
    )
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".into();
    }
    format!("{:.0} %", part as f64 / whole as f64 * 100.0)
}

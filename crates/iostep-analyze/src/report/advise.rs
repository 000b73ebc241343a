//! The advice as a report.

mod verdict;

use iostep_model::database::DatabaseFacts;
use iostep_model::goal::Goal;
use iostep_model::unit::Unit;
use iostep_report::document::{Block, Cell, Document, Item, Section, Table};
use iostep_report::quantity::{bytes, count, duration};

use super::bench::{advice as warning_advice, job};
use crate::advise::{Advice, Gain, Row, Situation, State, Verdict};

/// The whole advice. That it is not all comes first; then what to do, what was asked and where it
/// was measured, the ranking, and what each setting can lose.
pub fn document(advice: &Advice) -> Document {
    let verdict = verdict::of(advice);
    let mut body = Section::new(title(advice));
    body.headline = verdict.sentence;
    body.alarms = complaints(advice);
    body.push(Block::Lines(verdict.besides));
    body.push(Block::Lines(head(advice)));
    let warnings = advice.warnings.iter().map(warning_advice::of);
    body.push(Block::Warnings(warnings.collect()));
    body.push(Block::Table(ranking(advice)));
    body.push(Block::Table(what_can_be_lost(advice)));
    body.push(Block::Section(lines(advice)));
    body.push(Block::Table(not_measured(advice)));
    Document::of(body)
}

fn complaints(advice: &Advice) -> Vec<String> {
    let mut complaints = Vec::new();
    if advice.interrupted {
        let turns = advice.rows.iter().filter_map(|row| row.gain);
        let turns: u64 = turns.map(|gain| gain.turns).sum();
        complaints.push(format!(
            "PARTIAL: interrupted; what is here was measured until then, in {} turns",
            count(turns)
        ));
    }
    complaints.extend(advice.rows.iter().filter_map(|row| match &row.state {
        State::Failed { reason } => Some(format!("FAILED: {}: {reason}", row.name)),
        _ => None,
    }));
    complaints
}

fn title(advice: &Advice) -> String {
    let place = &advice.place;
    let about = match &place.database {
        Some(facts) => format!("advice for {}", facts.path.display()),
        None => format!("advice for databases in {}", place.directory.display()),
    };
    format!("{about}; goal: {}", place.goal)
}

fn head(advice: &Advice) -> Vec<String> {
    let place = &advice.place;
    let mut lines = Vec::new();
    lines.extend(place.database.iter().flat_map(database));
    lines.extend(
        place
            .workload
            .basis
            .iter()
            .map(|basis| format!("after {basis}")),
    );
    lines.push(measured(place));
    lines.push(format!(
        "present setting: {}; {}",
        place.present.name(),
        place.present_basis.join("; ")
    ));
    if let Some(environment) = &advice.environment {
        lines.push(job::place(&place.directory, environment));
        lines.push(job::machine(environment));
    }
    lines
}

fn database(facts: &DatabaseFacts) -> Vec<String> {
    let mut lines = vec![format!(
        "{} in {} pages of {}, {} reserved; journal mode {}; {}",
        bytes(facts.bytes),
        count(facts.pages),
        bytes(facts.page_bytes.into()),
        bytes(facts.reserved_bytes.into()),
        facts.journal,
        match facts.tables.len() {
            1 => "1 table".to_owned(),
            tables => format!("{tables} tables"),
        },
    )];
    lines.extend(
        facts
            .unread
            .iter()
            .map(|unread| format!("not read: {unread}")),
    );
    lines
}

fn measured(place: &Situation) -> String {
    let workload = &place.workload;
    let threads = match workload.threads {
        1 => "by 1 thread".to_owned(),
        threads => format!("by {threads} threads on one database"),
    };
    format!(
        "measured: {} of {} B in {} of {} B pages, {threads}; logs {}; {} a run, {} rounds by turns",
        workload.operation,
        workload.record_bytes,
        match (workload.statements, workload.tables) {
            (1, 1) => "a tree".to_owned(),
            (1, tables) => format!("each of {tables} trees"),
            (statements, tables) => format!("each of {tables} trees, {statements} times,"),
        },
        place.present.page_bytes,
        workload.log_file,
        duration(place.run_ns),
        place.rounds,
    )
}

const COLUMNS: [&str; 9] = [
    "setting",
    ">commits/s",
    ">spread",
    ">gain",
    "95 % interval",
    "",
    ">written",
    ">flushes",
    "a power loss can cost",
];

fn ranking(advice: &Advice) -> Table {
    let measured = |row: &&Row| row.state == State::Measured;
    let rows = std::iter::once(&advice.present).chain(&advice.rows);
    let (mut at_most, mut unsynced, mut alike) = (false, false, false);
    let mut above = "";
    let mut table = Table::new(
        match advice.place.goal {
            Goal::Speed => "Ranking: first what gives nothing up",
            Goal::Wear => "Ranking by what is written: first what gives nothing up",
            Goal::Durability => "Ranking by what can be lost",
        },
        COLUMNS,
    );
    for row in rows.filter(measured) {
        at_most |= row.device.at_most && row.device.written_bytes.is_some();
        unsynced |= !row.setting.syncs() && row.device.flushes.is_some();
        let like_above = row.not_told_from.iter().any(|key| key == above);
        alike |= like_above;
        table.rows.push(cells(row, like_above));
        above = &row.key;
    }
    if alike {
        let line = "~ the turns do not tell it from the row above";
        table.lines.push(line.to_owned());
    }
    if at_most {
        table.lines.push(
            "* at most: the log was not checkpointed within a run, and the checkpoint after it is \
             shared by fewer commits than in an application. A longer --time tells more"
                .to_owned(),
        );
    }
    if unsynced {
        let line = "written - : nothing is synced, so what a commit writes comes after the runs";
        table.lines.push(line.to_owned());
    }
    table
}

fn cells(row: &Row, like_above: bool) -> Vec<Cell> {
    let rate = row.commits_per_second.as_ref();
    let mark = match row.device.at_most {
        true => " *",
        false => "",
    };
    let marked = |unit, amount: Option<f64>| {
        let cell = Cell::number(unit, amount);
        let text = cell.text.clone() + if amount.is_some() { mark } else { "" };
        cell.saying(text)
    };
    let name = match row.key.as_str() {
        "present" => format!("{} (present)", row.name),
        _ => row.name.clone(),
    };
    let interval = row.gain.and_then(|gain| gain.interval);
    let interval = interval.map(|i| format!("{:.2} to {:.2}", i.low, i.high));
    vec![
        Cell::text(name),
        Cell::number(Unit::Mean, rate.map(|rate| rate.median)),
        Cell::share(rate.and_then(|rate| rate.spread)),
        Cell::number(Unit::Factor, row.gain.map(|gain| gain.ratio)),
        Cell::text(interval.as_deref().unwrap_or("-")),
        Cell::text(word(row.gain).to_owned() + if like_above { " ~" } else { "" }),
        marked(Unit::Bytes, row.device.written_bytes),
        marked(Unit::Mean, row.device.flushes),
        Cell::text(row.durability.power_loss.words()),
    ]
}

fn word(gain: Option<Gain>) -> &'static str {
    match gain.map(|gain| gain.verdict) {
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
        Some(Verdict::NoGain) => "no gain",
        Some(Verdict::TooFewTurns) => "too few turns",
        None => "",
    }
}

fn what_can_be_lost(advice: &Advice) -> Table {
    let columns = ["setting", "process crash", "OS crash", "power loss"];
    let measured = advice.rows.iter();
    let measured = measured.filter(|row| row.state == State::Measured);
    let rows = std::iter::once(&advice.present).chain(measured);
    let rows = rows.map(|row| {
        let lost = &row.durability;
        let lost = [lost.process_crash, lost.os_crash, lost.power_loss];
        let lost = lost.map(|lost| Cell::text(lost.words()));
        std::iter::once(Cell::text(&row.name)).chain(lost).collect()
    });
    Table::new("What a commit that returned can still lose", columns).rows(rows)
}

/// The lines of what is faster.
fn lines(advice: &Advice) -> Section {
    let faster = |row: &&Row| {
        !row.only_shown && row.gain.is_some_and(|gain| gain.verdict == Verdict::Faster)
    };
    let items = advice.rows.iter().filter(faster).map(|row| Item {
        verdict: None,
        text: row.name.clone(),
        details: row.lines.clone(),
    });
    let mut section = Section::new("What to put into the application, or into the sqlite3 shell");
    section.push(Block::Items(items.collect()));
    section
}

fn not_measured(advice: &Advice) -> Table {
    let rows = advice.rows.iter().filter_map(|row| {
        let (State::NotMeasured { reason } | State::NotApplicable { reason }) = &row.state else {
            return None;
        };
        let mount = row.setting.mount;
        let line = mount.and_then(|_| row.lines.first());
        Some(vec![
            Cell::text(&row.name),
            Cell::text(reason),
            Cell::text(mount.map_or("", |option| option.effect)),
            Cell::text(line.map_or("", String::as_str)),
        ])
    });
    let columns = ["setting", "why", "what it does", "line"];
    Table::new("Not measured", columns).rows(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::fixture;
    use iostep_report::document::Detail;
    use iostep_report::text::Style;

    fn text(advice: &Advice) -> String {
        document(advice).text(Detail::Full, Style::default())
    }

    #[test]
    fn the_advice_reads_well() {
        insta::assert_snapshot!(text(&fixture::advice()));
    }

    #[test]
    fn what_is_not_all_says_so_first() {
        let text = self::text(&fixture::interrupted());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("PARTIAL: interrupted"), "{text}");
        assert!(
            lines[1].starts_with("FAILED: wal, normal: database or disk is full"),
            "{text}"
        );
        assert!(text.contains("Keep wal, full"), "{text}");
        assert!(text.contains("a signal came before"), "{text}");
    }

    #[test]
    fn rows_that_cannot_be_told_apart_are_marked() {
        let text = self::text(&fixture::advice_of(&|_, _| 3.0));
        assert!(text.contains("faster ~"), "{text}");
        assert!(
            text.contains("\n ~ the turns do not tell it from the row above\n"),
            "{text}"
        );
        let mut advice = fixture::advice();
        assert!(!self::text(&advice).contains("do not tell"));
        let best = &mut advice.rows[0];
        best.not_told_from = vec!["wal-normal".into()];
        let text = self::text(&advice);
        let expected = "\n The turns do not tell it from: wal, normal\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn no_gain_is_said_to_be_none() {
        let text = self::text(&fixture::advice_of(&|_, _| 1.0));
        assert!(
            text.contains("no gain") && !text.contains("faster\n"),
            "{text}"
        );
        assert!(!text.contains("What to put into"), "{text}");
    }
}

//! The advice as text.

use iostep_model::database::DatabaseFacts;
use iostep_model::printable;

use super::bench::{advice as warning_advice, job};
use super::quantity::{bytes, count, decimal, duration, percent};
use super::text::Style;
use super::text::grid::grid;
use crate::advise::{Advice, Gain, Place, Row, State, Verdict};

/// The whole advice. That it is not all comes first; then what was asked and where it was
/// measured, the ranking, what to do, and what each setting can lose.
pub fn render(advice: &Advice, style: Style) -> String {
    let mut text = String::new();
    for complaint in complaints(advice) {
        text.push_str(&style.alarm(&printable(&complaint)));
        text.push('\n');
    }
    text.push_str(&head(advice, style));
    for warning in &advice.warnings {
        let (fact, what_to_do) = warning_advice::of(warning);
        let fact = printable(&fact);
        text.push_str(&format!(
            "{} {fact}; {what_to_do}\n",
            style.bold("warning:")
        ));
    }
    text.push_str(&ranking(advice, style));
    text.push_str(&recommendation(advice, style));
    text.push_str(&what_can_be_lost(advice, style));
    text.push_str(&lines(advice, style));
    text.push_str(&not_measured(advice, style));
    text
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

fn head(advice: &Advice, style: Style) -> String {
    let place = &advice.place;
    let title = match &place.database {
        Some(facts) => format!("advice for {}", facts.path.display()),
        None => format!("advice for databases in {}", place.directory.display()),
    };
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
    let lines = lines.iter().map(|line| format!(" {}\n", printable(line)));
    format!(
        "{}\n{}",
        style.bold(&printable(&title)),
        lines.collect::<String>()
    )
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

fn measured(place: &Place) -> String {
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

fn ranking(advice: &Advice, style: Style) -> String {
    let mut table = grid(style, &COLUMNS);
    let measured = |row: &&Row| row.state == State::Measured;
    let rows = std::iter::once(&advice.present).chain(&advice.rows);
    let mut without_checkpoint = false;
    let mut alike = false;
    let mut above = "";
    for row in rows.filter(measured) {
        without_checkpoint |= row.device.without_checkpoint;
        let like_above = row.not_told_from.iter().any(|key| key == above);
        alike |= like_above;
        table.row(cells(row, like_above));
        above = &row.key;
    }
    let mut text = table.titled("Ranking: first what gives nothing up");
    if alike {
        text.push_str(" ~ the turns do not tell it from the row above\n");
    }
    if without_checkpoint {
        text.push_str(
            " * without the checkpoint, which came after the runs only; the commits/s are with it. \
             A longer --time has some\n",
        );
    }
    text
}

fn cells(row: &Row, like_above: bool) -> [String; 9] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let rate = row.commits_per_second.as_ref();
    let mark = if row.device.without_checkpoint {
        " *"
    } else {
        ""
    };
    let name = match row.key.as_str() {
        "present" => format!("{} (present)", row.name),
        _ => row.name.clone(),
    };
    let interval = row.gain.and_then(|gain| gain.interval);
    [
        printable(&name).into(),
        or_dash(rate.map(|rate| decimal(rate.median))),
        percent(rate.and_then(|rate| rate.spread)),
        or_dash(row.gain.map(|gain| format!("{:.2}x", gain.ratio))),
        or_dash(interval.map(|i| format!("{:.2} to {:.2}", i.low, i.high))),
        verdict(row.gain).to_owned() + if like_above { " ~" } else { "" },
        or_dash(
            row.device
                .written_bytes
                .map(|amount| bytes(amount.round() as u64) + mark),
        ),
        or_dash(row.device.flushes.map(|amount| decimal(amount) + mark)),
        row.durability.power_loss.words().into(),
    ]
}

fn verdict(gain: Option<Gain>) -> &'static str {
    match gain.map(|gain| gain.verdict) {
        Some(Verdict::Faster) => "faster",
        Some(Verdict::Slower) => "slower",
        Some(Verdict::NoGain) => "no gain",
        Some(Verdict::TooFewTurns) => "too few turns",
        None => "",
    }
}

fn recommendation(advice: &Advice, style: Style) -> String {
    let is_best = |row: &&Row| Some(&row.key) == advice.recommended.as_ref();
    let best = advice.rows.iter().find(is_best);
    let first = match best {
        Some(row) => format!(
            "{} {}: {}; it gives nothing up{}",
            style.bold("Take"),
            row.name,
            gain_words(row.gain),
            alike(advice, row)
        ),
        None => format!(
            "{} {}: nothing that gives no more up is faster for certain",
            style.bold("Keep"),
            advice.present.name
        ),
    };
    let faster = |row: &&Row| {
        row.gives_up && !row.only_shown && row.gain.is_some_and(|g| g.verdict == Verdict::Faster)
    };
    let beyond = best
        .and_then(|row| row.gain)
        .map_or(1.0, |gain| gain.at_least());
    let other = advice.rows.iter().find(faster);
    let other = other.filter(|row| row.gain.is_some_and(|gain| gain.at_least() > beyond));
    let second = other.map(|row| {
        format!(
            "\nOr {}: {}, if a power loss may cost {}",
            row.name,
            gain_words(row.gain),
            row.durability.power_loss.words()
        )
    });
    let third = least_written(advice);
    let rest = [second, third].into_iter().flatten().collect::<String>();
    format!("\n{first}{rest}\n")
}

/// What is as good as the best one, as far as the turns tell.
fn alike(advice: &Advice, best: &Row) -> String {
    let is_alike = |row: &&Row| best.not_told_from.contains(&row.key);
    let names: Vec<&str> = advice
        .rows
        .iter()
        .filter(is_alike)
        .map(|row| row.name.as_str())
        .collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("\nThe turns do not tell it from: {}", names.join("; ")),
    }
}

/// The setting that gives nothing up and wears the device least, if that is a tenth less. Figures
/// with and without a checkpoint are not compared.
fn least_written(advice: &Advice) -> Option<String> {
    let present = advice.present.device;
    let now = present.written_bytes?;
    let comparable =
        |row: &&Row| !row.gives_up && row.device.without_checkpoint == present.without_checkpoint;
    let rows = advice.rows.iter().filter(comparable);
    let written = rows.filter_map(|row| Some((row, row.device.written_bytes?)));
    let (row, least) = written.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let [shown, shown_now] = [least, now].map(|amount| bytes(amount.round() as u64));
    (least < 0.9 * now).then(|| {
        format!(
            "\nLeast written: {}, {shown} a commit instead of {shown_now}",
            row.name
        )
    })
}

fn gain_words(gain: Option<Gain>) -> String {
    let Some(gain) = gain else {
        return "not measured".into();
    };
    let sure = gain.interval.map_or_else(String::new, |interval| {
        format!(
            ", 95 % sure between {:.2} and {:.2}",
            interval.low, interval.high
        )
    });
    format!("{:.2} times as many commits/s{sure}", gain.ratio)
}

fn what_can_be_lost(advice: &Advice, style: Style) -> String {
    let names = ["setting", "process crash", "OS crash", "power loss"];
    let mut table = grid(style, &names);
    let measured = advice
        .rows
        .iter()
        .filter(|row| row.state == State::Measured);
    for row in std::iter::once(&advice.present).chain(measured) {
        let lost = &row.durability;
        table.row([
            printable(&row.name).into(),
            lost.process_crash.words().into(),
            lost.os_crash.words().into(),
            lost.power_loss.words().into(),
        ]);
    }
    table.titled("What a commit that returned can still lose")
}

/// The lines of what is faster.
fn lines(advice: &Advice, style: Style) -> String {
    let mut text = String::new();
    let faster = |row: &&Row| {
        !row.only_shown && row.gain.is_some_and(|gain| gain.verdict == Verdict::Faster)
    };
    for row in advice.rows.iter().filter(faster) {
        text.push_str(&format!("\n {}\n", printable(&row.name)));
        for line in &row.lines {
            text.push_str(&format!("   {}\n", printable(line)));
        }
    }
    if text.is_empty() {
        return text;
    }
    let title = "What to put into the application, or into the sqlite3 shell";
    format!("\n{}\n{}", style.bold(title), text.trim_start_matches('\n'))
}

fn not_measured(advice: &Advice, style: Style) -> String {
    let mut table = grid(style, &["setting", "why", "what it does", "line"]);
    for row in &advice.rows {
        let reason = match &row.state {
            State::NotMeasured { reason } => reason,
            State::NotApplicable { reason } => reason,
            State::Measured | State::Failed { .. } => continue,
        };
        let mount = row.setting.mount;
        let effect = mount.map_or("", |option| option.effect);
        let line = mount.and_then(|_| row.lines.first());
        table.row([
            printable(&row.name).into(),
            printable(reason).into(),
            effect.into(),
            printable(line.map_or("", String::as_str)).into(),
        ]);
    }
    table.titled("Not measured")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::fixture;

    #[test]
    fn the_advice_reads_well() {
        insta::assert_snapshot!(render(&fixture::advice(), Style::default()));
    }

    #[test]
    fn what_is_not_all_says_so_first() {
        let text = render(&fixture::interrupted(), Style::default());
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
    fn what_wears_the_device_less_is_named() {
        let mut advice = fixture::advice();
        assert!(!render(&advice, Style::default()).contains("Least written"));
        let row = |advice: &mut Advice, key: &str, written_bytes| {
            let row = advice.rows.iter_mut().find(|row| row.key == key);
            row.expect("a row").device.written_bytes = Some(written_bytes);
        };
        row(&mut advice, "waldio-full", 4096.0);
        row(&mut advice, "wal-off", 10.0);
        let text = render(&advice, Style::default());
        let expected = "\nLeast written: waldio, full, 4 KiB a commit instead of 8 KiB\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn rows_that_cannot_be_told_apart_are_marked() {
        let text = render(&fixture::advice_of(&|_, _| 3.0), Style::default());
        assert!(text.contains("faster ~"), "{text}");
        assert!(
            text.contains("\n ~ the turns do not tell it from the row above\n"),
            "{text}"
        );
        let mut advice = fixture::advice();
        assert!(!render(&advice, Style::default()).contains("do not tell"));
        let best = &mut advice.rows[0];
        best.not_told_from = vec!["wal-normal".into()];
        let text = render(&advice, Style::default());
        let expected = "gives nothing up\nThe turns do not tell it from: wal, normal\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn no_gain_is_said_to_be_none() {
        let text = render(&fixture::advice_of(&|_, _| 1.0), Style::default());
        assert!(
            text.contains("no gain") && !text.contains("faster\n"),
            "{text}"
        );
        assert!(!text.contains("What to put into"), "{text}");
    }
}

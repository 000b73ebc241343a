//! Small advice, made by hand, for tests.

use iostep_model::database::{DatabaseFacts, TableFacts};
use iostep_model::goal::Goal;
use iostep_model::pragma::{Journal, Synchronous};

use super::advice::{Advice, Planned, Situation};
use super::candidate::candidates;
use super::mount_option::mount_options;
use super::setting::Setting;
use super::turns::{CommitCost, Observation, Setback, Turn, Turns};
use super::workload::Workload;
use crate::bench::fixture::sqlite_wal;

/// A database in WAL mode with 10,000 rows of 120 bytes and two indexes on them.
pub fn facts() -> DatabaseFacts {
    let table = |name: &str, rows, row_bytes, indexes| TableFacts {
        name: name.into(),
        rows,
        row_bytes,
        pages: row_bytes / 4000 + 1,
        whole: true,
        indexes,
    };
    DatabaseFacts {
        path: "/mnt/app.db".into(),
        bytes: 4096 * 400,
        page_bytes: 4096,
        pages: 400,
        reserved_bytes: 0,
        journal: Journal::Wal,
        log_bytes: 0,
        tables: vec![
            table("entry", 10_000, 1_200_000, 2),
            table("account", 100, 2_000, 0),
        ],
        unread: None,
    }
}

fn at(commits_per_second: f64) -> Observation {
    Observation {
        commits_per_second,
        cost: Some(CommitCost {
            written_bytes: 8192.0,
            writes: 2.0,
            flushes: Some(1.0),
        }),
        written_least: Some(8192.0),
        checkpoints: 3,
    }
}

/// A turn with these commits a second.
pub fn turn(before: f64, own: [f64; 2], after: f64) -> Turn {
    Turn {
        candidate: 0,
        before: at(before),
        own: own.map(at),
        after: at(after),
    }
}

/// A turn in which a commit writes so many bytes at most and at least.
pub fn wearing(own: (f64, f64), present: (f64, f64)) -> Turn {
    let of = |(most, least): (f64, f64)| Observation {
        cost: Some(CommitCost {
            written_bytes: most,
            ..CommitCost::default()
        }),
        written_least: Some(least),
        ..at(1000.0)
    };
    Turn {
        candidate: 0,
        before: of(present),
        own: [of(own); 2],
        after: of(present),
    }
}

pub fn planned() -> Vec<Planned> {
    let place = place();
    let options = mount_options("ext4", "barrier=0");
    let all = candidates(&place.present, &place.workload, &options);
    let wanted = ["delete-full", "wal-normal", "waldio-full", "wal-off"];
    all.into_iter()
        .filter_map(|candidate| match candidate.key.starts_with("mount") {
            true => Some((candidate, Some("it needs to be mounted anew".to_owned()))),
            false => wanted
                .contains(&candidate.key.as_str())
                .then_some((candidate, None)),
        })
        .collect()
}

fn place() -> Situation {
    let facts = facts();
    Situation {
        directory: "/mnt".into(),
        mount_point: "/mnt".into(),
        workload: Workload::like(Some(&facts), None),
        database: Some(facts),
        recording: None,
        present: Setting::new(Journal::Wal, Synchronous::Full, 4096),
        present_basis: vec!["journal wal from the database".into()],
        goal: Goal::Speed,
        run_ns: 1_000_000_000,
        rounds: 5,
    }
}

/// Five rounds; `ratio` tells that of a candidate's number in a round.
pub fn turns(ratio: &dyn Fn(usize, u32) -> f64) -> Turns {
    let mut turns = Turns::default();
    turns.present.push(at(1000.0));
    for round in 0..5 {
        let count = planned()
            .iter()
            .filter(|(_, skipped)| skipped.is_none())
            .count();
        for candidate in 0..count {
            // Alternately a little more and less.
            let noise = if round % 2 == 0 { 1.01 } else { 0.99 };
            let own = 1000.0 * noise * ratio(candidate, round);
            turns.turns.push(Turn {
                candidate,
                ..turn(1000.0, [own, own], 1000.0)
            });
            turns.present.push(at(1000.0));
        }
    }
    turns
}

/// The advice that follows from these turns.
pub fn advice_with(turns: &Turns) -> Advice {
    advice_for(Goal::Speed, turns)
}

/// The same for another goal.
pub fn advice_for(goal: Goal, turns: &Turns) -> Advice {
    let environment = sqlite_wal(1).environment;
    let place = Situation { goal, ..place() };
    Advice::new(place, &planned(), turns, Some(environment), Vec::new())
}

/// The same turns, with what a commit of each candidate writes at most and at least.
pub fn writing(mut turns: Turns, bytes: &dyn Fn(&str) -> (f64, f64)) -> Turns {
    let keys: Vec<String> = planned().into_iter().map(|(c, _)| c.key).collect();
    for turn in &mut turns.turns {
        let (most, least) = bytes(&keys[turn.candidate]);
        for run in &mut turn.own {
            run.written_least = Some(least);
            run.checkpoints = if most > least { 1 } else { 3 };
            run.cost = run.cost.map(|cost| CommitCost {
                written_bytes: most,
                ..cost
            });
        }
    }
    turns
}

/// The advice of [`turns`].
pub fn advice_of(ratio: &dyn Fn(usize, u32) -> f64) -> Advice {
    advice_with(&turns(ratio))
}

/// Delete is half as fast as the present log, others are two, three and four times as fast.
pub fn advice() -> Advice {
    let keys: Vec<String> = planned().into_iter().map(|(c, _)| c.key).collect();
    advice_of(&|candidate, _| match keys[candidate].as_str() {
        "delete-full" => 0.5,
        "waldio-full" => 2.0,
        "wal-normal" => 3.0,
        _ => 4.0,
    })
}

/// One that a signal ended after the first turn, with a failure.
pub fn interrupted() -> Advice {
    let mut turns = turns(&|_, _| 2.0);
    turns.turns.truncate(1);
    turns.setbacks = vec![(1, Setback::Failed("database or disk is full".into()))];
    turns.interrupted = true;
    advice_with(&turns)
}

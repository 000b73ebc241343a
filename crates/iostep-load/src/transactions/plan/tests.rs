use std::collections::BTreeSet;

use iostep_model::bench::CheckpointPolicy;
use proptest::prelude::*;

use super::*;

pub(in crate::transactions) fn job(
    operation: SqliteOperation,
    keys: KeyOrder,
    rows: u64,
) -> SqliteJob {
    let mut job = SqliteJob {
        operation,
        transactions: 30,
        record_bytes: 1,
        rows,
        statements: 3,
        keys,
        threads: 3,
        shared: true,
        checkpoint: CheckpointPolicy::Never,
        ..SqliteJob::new("")
    };
    job.measurement.seed = 5;
    job
}

/// Keys and actions of a thread, in their order.
fn all(job: &SqliteJob, thread: u32) -> Vec<(Action, i64)> {
    let mut plan = Plan::new(job, thread);
    let (share, mut rows, mut all) = (plan.share(), Vec::new(), Vec::new());
    while let Some(action) = plan.next(&mut rows) {
        all.extend(rows.iter().map(|&row| (action, share.key(row))));
    }
    all
}

#[test]
fn threads_that_share_never_meet_and_leave_no_key_out() {
    for keys in [KeyOrder::Sequential, KeyOrder::Random] {
        let inserts = job(SqliteOperation::Insert, keys, 10);
        let met: Vec<i64> = (0..3)
            .flat_map(|thread| all(&inserts, thread))
            .map(|(_, key)| key)
            .collect();
        assert_eq!(met.len(), 270);
        let different: BTreeSet<i64> = met.into_iter().collect();
        assert_eq!(different.len(), 270, "{keys}");
        assert_eq!(
            (different.first(), different.last()),
            (Some(&11), Some(&280)),
            "{keys}"
        );
    }
}

#[test]
fn each_row_is_met_once_before_any_is_met_again() {
    let updates = SqliteJob {
        shared: false,
        ..job(SqliteOperation::Update, KeyOrder::Random, 45)
    };
    let met = all(&updates, 0);
    let passes: Vec<_> = met.chunks(45).collect();
    for pass in &passes {
        let different: BTreeSet<i64> = pass.iter().map(|&(_, key)| key).collect();
        assert_eq!(different.len(), 45);
    }
    assert_ne!(passes[0], passes[1]);
}

#[test]
fn deletes_end_with_the_rows() {
    for keys in [KeyOrder::Sequential, KeyOrder::Random] {
        let mut deletes = SqliteJob {
            shared: false,
            ..job(SqliteOperation::Delete, keys, 100)
        };
        deletes.measurement.limits.time_ns = Some(1);
        // 33 transactions of three; the hundredth row is not enough for one more.
        assert_eq!(all(&deletes, 0).len(), 99);
    }
}

#[test]
fn a_key_belongs_to_one_share_and_others_to_none() {
    let job = job(SqliteOperation::Insert, KeyOrder::Sequential, 10);
    let shares = [0, 1, 2].map(|thread| Share::of(&job, thread));
    assert_eq!(shares.map(|share| share.rows), [4, 3, 3]);
    for key in 1..100 {
        let owners = shares
            .iter()
            .filter_map(|share| Some((share, share.row(key)?)));
        let keys: Vec<i64> = owners.map(|(share, row)| share.key(row)).collect();
        assert_eq!(keys, [key]);
    }
    for nobodys in [0, -1, i64::MIN] {
        assert!(shares.iter().all(|share| share.row(nobodys).is_none()));
    }
}

proptest! {
    #[test]
    fn a_mix_only_touches_rows_that_are_there(
        weights in prop::array::uniform4(0u32..4),
        rows in 0u64..50,
        random: bool,
        seed: u64,
    ) {
        let [insert, update, delete, read] = weights;
        let keys = if random { KeyOrder::Random } else { KeyOrder::Sequential };
        let mix = SqliteOperation::Mix(Mix { insert, update, delete, read });
        let mut job = SqliteJob { transactions: 100, ..job(mix, keys, rows) };
        job.measurement.seed = seed;
        let share = Share::of(&job, 1);
        let mut there: BTreeSet<i64> = (0..share.rows).map(|row| share.key(row)).collect();
        for (action, key) in all(&job, 1) {
            match action {
                Action::Insert => prop_assert!(there.insert(key)),
                Action::Delete => prop_assert!(there.remove(&key)),
                Action::Update | Action::Read => prop_assert!(there.contains(&key)),
            }
        }
        prop_assert_eq!(all(&job, 1), all(&job, 1));
    }
}

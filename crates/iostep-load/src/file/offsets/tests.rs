use std::collections::HashSet;

use super::*;
use crate::file::sample;

fn offsets(job: &FileJob, thread: u32) -> Offsets {
    Offsets::new(job, thread, 0, &Arc::default())
}

fn job(access: Access, sharing: Sharing, threads: u32) -> FileJob {
    FileJob {
        access,
        sharing,
        threads,
        file_bytes: 120 * 4096,
        ..sample::job("/x")
    }
}

#[test]
fn a_thread_with_its_own_file_goes_over_all_of_it() {
    for access in [Access::Write, Access::Read, Access::Append] {
        let job = job(access, Sharing::OwnFile, 3);
        let found: Vec<_> = offsets(&job, 2).collect();
        assert_eq!(found, Vec::from_iter((0..120).map(|i| i * 4096)));
    }
}

#[test]
fn threads_that_share_a_file_in_order_take_parts_that_make_up_the_whole() {
    let job = job(Access::Write, Sharing::SharedFile, 4);
    let found: Vec<_> = (0..4).flat_map(|thread| offsets(&job, thread)).collect();
    assert_eq!(found, Vec::from_iter((0..120).map(|i| i * 4096)));
}

#[test]
fn threads_that_append_to_one_file_never_take_the_same_place() {
    let job = job(Access::Append, Sharing::SharedFile, 2);
    let end = Arc::default();
    let (mut one, mut other) = (
        Offsets::new(&job, 0, 0, &end),
        Offsets::new(&job, 1, 0, &end),
    );
    let mut found = Vec::new();
    while let (Some(a), Some(b)) = (one.next(), other.next()) {
        found.extend([a, b]);
    }
    assert_eq!(found, Vec::from_iter((0..120).map(|i| i * 4096)));
}

#[test]
fn every_pass_of_every_thread_has_another_random_order_of_the_whole_file() {
    let job = job(Access::RandomWrite, Sharing::SharedFile, 2);
    let mut orders = HashSet::new();
    for thread in 0..2 {
        let mut offsets = offsets(&job, thread);
        for _ in 0..2 {
            let order: Vec<_> = offsets.by_ref().collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, Vec::from_iter((0..120).map(|i| i * 4096)));
            assert!(orders.insert(order));
            offsets.start_over();
        }
    }
}

#[test]
fn the_overlapping_share_is_exact_and_goes_to_earlier_places() {
    for (percent, repeats) in [
        (0.0, 0),
        (0.5, 1),
        (25.0, 30),
        (50.0, 60),
        (99.9, 119),
        (100.0, 119),
    ] {
        let job = FileJob {
            overlap_percent: percent,
            ..job(Access::RandomWrite, Sharing::OwnFile, 1)
        };
        let mut offsets = offsets(&job, 0);
        for _ in 0..2 {
            let different: HashSet<_> = offsets.by_ref().collect();
            assert_eq!(different.len(), 120 - repeats, "{percent} %");
            assert!(different.iter().all(|offset| *offset < 120 * 4096));
            offsets.start_over();
        }
    }
}

#[test]
fn one_record_is_a_pass_of_one_operation() {
    let job = FileJob {
        file_bytes: 4096,
        overlap_percent: 100.0,
        ..job(Access::RandomRead, Sharing::OwnFile, 1)
    };
    assert_eq!(offsets(&job, 0).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_part_of_a_device_begins_at_its_base() {
    let job = job(Access::Write, Sharing::OwnFile, 2);
    let mut offsets = Offsets::new(&job, 1, job.file_bytes, &Arc::default());
    assert_eq!(offsets.next(), Some(120 * 4096));
}

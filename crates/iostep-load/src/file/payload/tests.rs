use std::collections::HashSet;

use super::*;
use crate::file::sample;

#[test]
fn every_write_of_every_thread_differs_in_each_4_kib() {
    let mut seen = HashSet::new();
    for thread in 0..2 {
        let job = FileJob {
            record_bytes: 3 * 4096,
            ..sample::job("/x")
        };
        let mut payload = Payload::to_write(&job, thread, 0, 1).expect("memory");
        for sequence in 1..100 {
            let slot = sequence as usize % payload.slots();
            let record = payload.stamp(slot, 0, sequence);
            for unit in record.chunks(UNIT_BYTES) {
                assert!(seen.insert(unit.to_vec()));
            }
        }
    }
}

#[test]
fn consecutive_records_do_not_repeat_within_what_a_filesystem_compresses() {
    for record_bytes in [64, 1000, 4096, 65536] {
        let job = FileJob {
            record_bytes,
            ..sample::job("/x")
        };
        let payload = Payload::to_write(&job, 0, 0, 1).expect("memory");
        assert!(payload.all().len() >= 192 << 10, "{record_bytes}");
        let units = (0..payload.slots()).flat_map(|slot| payload.slot(slot).chunks(UNIT_BYTES));
        let words: Vec<_> = units.flat_map(|unit| unit[48..].chunks_exact(8)).collect();
        let different: HashSet<_> = words.iter().collect();
        assert_eq!(different.len(), words.len());
    }
}

#[test]
fn a_stamp_names_its_own_place_thread_and_write() {
    let job = FileJob {
        record_bytes: 5000,
        ..sample::job("/x")
    };
    let mut payload = Payload::to_write(&job, 7, 3, 2).expect("memory");
    let record = payload.stamp(1, 10_000, 42).to_vec();
    for (number, unit) in record.chunks(UNIT_BYTES).enumerate() {
        let stamp = Stamp::take(unit).expect("a stamp");
        let expected = Stamp {
            seed: 1,
            offset_bytes: 10_000 + 4096 * number as u64,
            sequence: 42,
            file: 3,
            thread: 7,
            slot: 1,
        };
        assert_eq!(stamp, expected);
        assert!(stamp::body_is_intact(unit, true, &stamp, number));
    }
}

#[test]
fn a_short_record_is_all_random_and_a_constant_one_all_constant() {
    let mut job = FileJob {
        record_bytes: 63,
        ..sample::job("/x")
    };
    let mut payload = Payload::to_write(&job, 0, 0, 1).expect("memory");
    let before = payload.slot(0).to_vec();
    assert_eq!(payload.stamp(0, 63, 9), before);
    job.payload = PayloadKind::Constant(0xfe);
    job.record_bytes = 4096;
    let mut payload = Payload::to_write(&job, 0, 0, 1).expect("memory");
    assert!(payload.stamp(0, 4096, 9).iter().all(|&byte| byte == 0xfe));
}

#[test]
fn there_are_as_many_buffers_as_are_needed_at_once_each_on_its_own_page() {
    let job = sample::job("/x");
    let payload = Payload::to_write(&job, 0, 0, 200).expect("memory");
    assert_eq!(payload.slots(), 200);
    assert_eq!(payload.memory().start().addr() % 4096, 0);
    let payload = Payload::to_read(&job, 2).expect("memory");
    assert_eq!(payload.slots(), 2);
    assert_eq!(payload.slot(1).as_ptr().addr() % 4096, 0);
}

#[test]
fn neighbours_in_a_file_come_from_different_buffers_in_whatever_order() {
    for record_bytes in [64, 1000, 4096, 65536] {
        let job = FileJob {
            record_bytes,
            ..sample::job("/x")
        };
        let payload = Payload::to_write(&job, 0, 0, 1).expect("memory");
        let first = 1_000_000 * record_bytes;
        let offsets = (0..192 << 10).step_by(record_bytes as usize);
        let slots: Vec<_> = offsets.map(|o| payload.slot_at(first + o)).collect();
        let different: HashSet<_> = slots.iter().collect();
        assert_eq!(different.len(), slots.len(), "{record_bytes}");
    }
}

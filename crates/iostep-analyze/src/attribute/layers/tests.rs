use iostep_model::Flags;
use iostep_model::manifest::{Device, TracedDevice};

use super::*;

fn manifest(devices: &[(&str, &[u8], Holds)]) -> Manifest {
    let mut manifest = iostep_model::fixture::manifest();
    let traced = devices.iter().map(|(kind, made_of, holds)| TracedDevice {
        device: Device {
            ..manifest.device.clone()
        },
        holds: *holds,
        made_of: made_of.to_vec(),
        kind: (*kind).into(),
        title: None,
    });
    manifest.devices = traced.collect();
    manifest
}

/// LUKS (1) on a disk (0).
fn crypt() -> Layers {
    Layers::new(&manifest(&[
        ("", &[], Holds::Devices),
        ("LUKS", &[0], Holds::Filesystem),
    ]))
}

/// A mirror (2) of two disks (0, 1).
fn mirror() -> Layers {
    Layers::new(&manifest(&[
        ("", &[], Holds::Devices),
        ("", &[], Holds::Devices),
        ("RAID1", &[0, 1], Holds::Filesystem),
    ]))
}

fn piece(bytes: u32, offset: u64) -> Waiting {
    let mut waiting = Waiting::of_nobody(bytes, Class::FileData);
    waiting.piece.evidence = Evidence::PageCache;
    waiting.piece.file_offset_bytes = Some(offset);
    waiting
}

fn remap(from: Option<u8>, to: u8, sector: u64, bytes: u32) -> Remap {
    Remap {
        mono_ns: 1,
        from,
        from_sector: sector,
        to,
        to_sector: sector + 1000,
        bytes,
        operation: Operation::Write,
        flags: Flags::default(),
    }
}

/// Bytes and file offset of each piece; no offset for an unknown one.
fn taken(layers: &mut Layers, remap: &Remap) -> Vec<(u32, Option<u64>)> {
    let pieces = layers.take(remap).into_iter();
    pieces
        .map(|waiting| (waiting.piece.bytes, waiting.piece.file_offset_bytes))
        .collect()
}

#[test]
fn a_bio_that_is_cut_takes_its_parts_along_in_any_order() {
    let mut layers = crypt();
    layers.push(1, Operation::Write, 80, piece(4096, 0));
    layers.push(1, Operation::Write, 88, piece(8192, 65536));
    let second = taken(&mut layers, &remap(Some(1), 0, 92, 6144));
    assert_eq!(second, [(6144, Some(65536 + 2048))]);
    let first = taken(&mut layers, &remap(Some(1), 0, 80, 6144));
    assert_eq!(first, [(4096, Some(0)), (2048, Some(65536))]);
}

#[test]
fn what_was_taken_is_gone_and_what_was_never_seen_is_unknown() {
    let mut layers = crypt();
    layers.push(1, Operation::Write, 80, piece(4096, 0));
    assert_eq!(
        taken(&mut layers, &remap(Some(1), 0, 80, 4096)),
        [(4096, Some(0))]
    );
    let again = layers.take(&remap(Some(1), 0, 80, 4096));
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].piece.bytes, 4096);
    assert_eq!(again[0].piece.class, Class::Unknown);
}

#[test]
fn a_gap_lasts_to_the_next_piece() {
    let mut layers = crypt();
    layers.push(1, Operation::Write, 88, piece(4096, 7));
    let found = taken(&mut layers, &remap(Some(1), 0, 80, 8192));
    assert_eq!(found, [(4096, None), (4096, Some(7))]);
}

#[test]
fn of_two_bios_at_one_place_the_older_goes_first() {
    let mut layers = crypt();
    layers.push(1, Operation::Write, 80, piece(4096, 1));
    layers.push(1, Operation::Write, 80, piece(4096, 2));
    for offset in [1, 2] {
        let found = taken(&mut layers, &remap(Some(1), 0, 80, 4096));
        assert_eq!(found, [(4096, Some(offset))]);
    }
}

#[test]
fn a_mirror_takes_a_piece_once_for_each_disk() {
    let mut layers = mirror();
    layers.push(2, Operation::Write, 80, piece(4096, 3));
    for disk in [0, 1] {
        let found = taken(&mut layers, &remap(Some(2), disk, 80, 4096));
        assert_eq!(found, [(4096, Some(3))], "disk {disk}");
    }
    let again = taken(&mut layers, &remap(Some(2), 0, 80, 4096));
    assert_eq!(again, [(4096, None)]);
}

#[test]
fn a_read_of_a_mirror_does_not_answer_for_a_later_one() {
    let mut layers = mirror();
    let read = |to| Remap {
        operation: Operation::Read,
        ..remap(Some(2), to, 80, 4096)
    };
    layers.push(2, Operation::Read, 80, piece(4096, 3));
    assert_eq!(taken(&mut layers, &read(0)), [(4096, Some(3))]);
    layers.push(2, Operation::Read, 80, piece(4096, 4));
    assert_eq!(taken(&mut layers, &read(1)), [(4096, Some(4))]);
}

#[test]
fn another_volumes_bios_are_named_so() {
    let found = crypt().take(&remap(None, 0, 80, 4096));
    assert_eq!(found[0].piece.class, Class::OtherVolume);
    assert_eq!(found[0].piece.bytes, 4096);
}

#[test]
fn a_flush_is_asked_for_by_whoever_asked_above() {
    let issuer = |queue_ns| Issuer {
        queue_ns,
        ..Issuer::default()
    };
    let mut layers = mirror();
    layers.push_flush(2, issuer(1));
    layers.push_flush(2, issuer(2));
    assert_eq!(layers.take_flush(2, 0), Some(issuer(1)));
    assert_eq!(layers.take_untold_flush(1), Some(issuer(1)));
    assert_eq!(layers.take_untold_flush(1), Some(issuer(2)));
    assert_eq!(layers.take_untold_flush(1), None);
    assert_eq!(layers.take_flush(2, 0), Some(issuer(2)));
    // Once more for another target of the same device.
    assert_eq!(layers.take_flush(2, 0), Some(issuer(2)));
}

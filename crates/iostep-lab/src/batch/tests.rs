use std::io::Write;

use iostep_model::bench::Warning;
use iostep_model::fixture;
use iostep_model::lab::{Filesystem, WorkloadKind};

use super::inbox::MAX_STDERR_BYTES;
use super::*;
use crate::console::Console;
use crate::measured::tests::document;
use crate::storage::JOURNAL_BYTES;

fn cell(number: u64) -> Cell {
    let mut cell = fixture::cell(Filesystem::F2fs, WorkloadKind::Sqlite, &[]);
    cell.key = format!("{number:016x}");
    cell.storage.device_bytes = number << 20;
    cell
}

fn guests(interrupted: &AtomicBool) -> Guests<'_> {
    Guests {
        program: "/usr/bin/iostep".into(),
        kernel: None,
        device: None,
        polled: BTreeSet::from(["polled".to_owned()]),
        time_limit: Duration::from_secs(60),
        interrupted,
    }
}

#[test]
fn a_result_is_taken_once_when_its_key_is_announced() {
    let share = tempfile::tempdir().expect("a directory");
    let (one, two) = (cell(1), cell(2));
    let lab = Lab {
        name: "test".into(),
        title: "A test".into(),
        cells: vec![one.clone(), two.clone()],
        analysis: Default::default(),
    };
    let results = results::Results::open(share.path(), &lab).expect("a new directory");
    let written = Measured {
        result: CellResult::without_runs(&one, State::Complete),
        bench: Some(document(7, &[])),
    };
    results.put(&written).expect("written");
    let never = AtomicBool::new(false);
    let watch = Watch::new(&never, Duration::from_secs(60));
    let mut keys = Vec::new();
    let mut done = |measured: Measured| {
        assert_eq!(measured.bench, written.bench);
        keys.push(measured.result.cell.key);
        Ok(())
    };
    let mut inbox = Inbox::new(share.path(), &lab.cells, &watch, &mut done);
    let (head, tail) = one.key.split_at(5);
    // What is announced and not there, unknown, or too long to be a key is nothing.
    let long = "x".repeat(10_000);
    for text in [
        head,
        tail,
        "\n",
        &two.key,
        "\n../lab\n",
        &long,
        "\n",
        &one.key,
        "\n",
    ] {
        inbox
            .write_all(text.as_bytes())
            .expect("it takes everything");
    }
    assert_eq!(inbox.finish().expect("nothing failed"), keys);
    assert_eq!(keys, [one.key]);
}

#[test]
fn only_a_guest_that_came_up_may_have_died_of_a_cell() {
    let never = AtomicBool::new(false);
    let watch = Watch::new(&never, Duration::from_secs(60));
    let guest = |came_up| Error::Guest {
        what: "the guest ended".into(),
        came_up,
        silent: false,
        console: Console::default(),
    };
    let fault = |error| fault(Err(error), &watch, &Tail::default());
    assert!(fault(guest(true)).is_the_cells);
    assert!(!fault(guest(false)).is_the_cells);
    let missing = Error::Unsupported {
        what: "no QEMU".into(),
        hint: "apt install qemu-system-x86".into(),
    };
    let missing = fault(missing);
    assert!(!missing.is_the_cells);
    assert!(missing.reason.contains("apt install"), "{}", missing.reason);
}

#[test]
fn a_guest_that_says_nothing_for_too_long_is_ended() {
    let never = AtomicBool::new(false);
    let watch = Watch::new(&never, Duration::ZERO);
    // From its first word on the boot is over.
    watch.heard();
    std::thread::scope(|scope| {
        scope.spawn(|| watch.look());
        while !watch.stop.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        watch.end();
    });
    let fault = fault(Err(Error::Interrupted), &watch, &Tail::default());
    assert!(fault.is_the_cells);
    assert!(fault.reason.contains("said nothing"), "{}", fault.reason);
}

#[test]
fn the_last_line_of_a_complaint_tells() {
    let mut tail = Tail::default();
    tail.write_all(b"warning: x\niostep: no room\n\n")
        .expect("written");
    assert_eq!(tail.last_line().as_deref(), Some("no room"));
    tail.write_all(&vec![b'x'; 1 << 20]).expect("written");
    assert!(tail.0.len() <= MAX_STDERR_BYTES);
}

#[test]
fn cells_of_a_block_that_is_polled_need_nvme() {
    let never = AtomicBool::new(false);
    let mut guests = guests(&never);
    let polled = Cell {
        block: "polled".into(),
        ..cell(1)
    };
    assert_eq!(guests.device_of(&polled), Device::Nvme);
    assert_eq!(guests.device_of(&cell(1)), Device::Virtio);
    guests.device = Some(Device::Sd);
    assert_eq!(guests.device_of(&polled), Device::Sd);
}

#[test]
fn one_device_is_large_enough_for_every_cell() {
    let (small, mut large) = (cell(1), cell(3));
    large.storage.external_journal = true;
    let bytes = |disks: &[GuestDisk]| -> Vec<u64> {
        let length = |disk: &GuestDisk| match disk {
            GuestDisk::Memory(file) => file.metadata().expect("it is open").len(),
            GuestDisk::Elsewhere(bytes) => *bytes,
        };
        disks.iter().map(length).collect()
    };
    let all = disks(&[&small, &large], 0).expect("there is room");
    assert_eq!(bytes(&all), [3 << 20, JOURNAL_BYTES]);
    assert_eq!(
        bytes(&disks(&[&small], 0).expect("there is room")),
        [1 << 20]
    );
}

#[test]
fn the_host_says_what_a_guests_disk_is() {
    let cell = cell(1);
    let memory = disks(&[&cell], 0).expect("there is room");
    let said = |disk: &GuestDisk| disk.warning(&document(1, &[]));
    assert!(matches!(said(&memory[0]), Warning::InMemory { .. }));
    let file = said(&GuestDisk::Elsewhere(1));
    assert!(matches!(file, Warning::LoopDevice { .. }));
}

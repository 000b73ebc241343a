//! Commands past the block layer and operations on zones, on each kind of disk and on the oldest and
//! the newest kernel: every trace is read again, and its sums are the device's.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::{iostep, kernels};
use iostep_model::table::Trace;
use iostep_model::{Operation, store};

use super::{LIMIT, guest};
use crate::case::Case;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/passthrough.c");
/// How often the program sends each of its commands.
const TIMES: &str = "3";
/// Reads and writes of others, and both kinds of command, at once.
const COMMANDS: &str = r#"
set -e
"$1" trace "$3" -o "$2/trace" -- sh -c '
    dd if=/dev/urandom of="$1" bs=64k count=16 seek=4 oflag=direct 2> /dev/null &
    "$0/passthrough" "$1" "$2" > "$0/told"
    wait
    dd if="$1" of=/dev/null bs=64k count=16 iflag=direct 2> /dev/null
    blkdiscard -z -o 4194304 -l 1048576 "$1"
    blkdiscard -o 8388608 -l 1048576 "$1" || true
' "$2" "$3" "$4"
"$1" report "$2/trace" > "$2/report"
"#;
/// Eight zones of 4 MiB: each operation on two, and a reset of all.
const ZONES: &str = r#"
set -e
modprobe null_blk nr_devices=1 zoned=1 zone_size=4 gb=1 zone_max_open=8 zone_max_active=8
"$1" trace /dev/nullb0 -o "$2/trace" -- sh -c '
    dd if=/dev/zero of=/dev/nullb0 bs=64k count=4 oflag=direct 2> /dev/null
    for what in open close finish reset; do
        blkzone $what -o 0 -c 2 /dev/nullb0
    done
    blkzone reset /dev/nullb0
'
"$1" report "$2/trace" > "$2/report"
"#;

/// Every test of this file.
pub fn cases(needs: impl Fn(&[&'static str]) -> Vec<Requirement>) -> Vec<Case> {
    let mut all = Vec::new();
    for role in ["6.1", "newest-7"] {
        let needs = |programs: &[&'static str]| {
            let mut needs = needs(programs);
            needs.push(Requirement::Kernel(role));
            needs
        };
        for (kind, disk) in [("scsi", "sda"), ("nvme", "nvme0n1"), ("sd", "mmcblk0")] {
            let name =
                format!("{role}, {kind}: commands past the block layer are rows of their own");
            let needs = needs(&["cc", "blkdiscard"]);
            all.push(Case::new(name, needs, move || passed(role, kind, disk)));
        }
        let name = format!("{role}: operations on zones are counted as the device counts them");
        all.push(Case::new(name, needs(&["blkzone"]), move || zoned(role)));
    }
    all
}

/// Runs a script in a guest, with iostep, a directory and further words as arguments.
fn run(
    role: &str,
    directory: &Path,
    kind: &str,
    script: &str,
    more: &[&str],
) -> anyhow::Result<Trace> {
    let kernel = kernels::image(role).context("it was there a moment ago")?;
    let (kernel, place) = (kernel.to_string_lossy(), directory.to_string_lossy());
    let binary = iostep::binary()?;
    let binary = binary.to_string_lossy();
    let flags = [
        "--kernel", &*kernel, "--device", kind, "--size", "64MiB", "--rw", &*place,
    ];
    let command = ["--", "sh", "-c", script, "sh", &*binary, &*place];
    guest(&[&flags[..], &command, more].concat(), LIMIT)?.status(0)?;
    let trace = store::read(&directory.join("trace"))?;
    ensure!(trace.manifest.check.passed(), "{:#?}", trace.manifest.check);
    ensure!(trace.manifest.check.device.is_some(), "the device counts");
    Ok(trace)
}

fn passed(role: &str, kind: &str, disk: &str) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let program = directory.path().join("passthrough");
    let mut compile = Command::new("cc");
    compile
        .args(["-O1", "-static", "-o"])
        .arg(&program)
        .arg(SOURCE);
    ensure!(compile.status()?.success(), "cc failed");
    let device = format!("/dev/{disk}");
    let trace = run(role, directory.path(), kind, COMMANDS, &[&device, TIMES])?;
    let told = std::fs::read_to_string(directory.path().join("told"))?;
    // A card has one command at a time, so that a worker of the kernel hands most of them on.
    let by_workers = kind == "sd";
    let of_program = |row: &u32| {
        let process = &trace.processes[*row as usize];
        process.comm == "passthrough" || by_workers && process.kernel
    };
    for (operation, ways) in [
        (Operation::DriverIn, &["in", "none"][..]),
        (Operation::DriverOut, &["out"]),
    ] {
        let mut expected: Vec<u32> = Vec::new();
        for line in told.lines() {
            let (way, bytes) = line.split_once(' ').context("two words")?;
            if ways.contains(&way) {
                expected.push(bytes.parse()?);
            }
        }
        let rows = trace
            .requests
            .iter()
            .filter(|row| row.operation == operation);
        // Drivers have some of their own.
        let rows = rows.filter(|row| row.submitter.as_ref().is_some_and(of_program));
        let rows: Vec<_> = rows.collect();
        let mut found: Vec<u32> = rows.iter().map(|row| row.bytes).collect();
        found.sort_unstable();
        expected.sort_unstable();
        let mut others = found.clone();
        let has_all = expected.iter().all(|bytes| {
            let at = others.iter().position(|other| other == bytes);
            at.map(|at| others.remove(at)).is_some()
        });
        // A worker does not say whose command it hands on: the driver has some of its own.
        ensure!(
            has_all && (by_workers || others.is_empty()),
            "{operation:?}: {found:?}, told {expected:?}"
        );
        for row in rows {
            let has_no_place = row.sector == 0 && row.segments == 0;
            ensure!(has_no_place && row.complete_ns.is_some(), "{row:?}");
        }
    }
    let report = std::fs::read_to_string(directory.path().join("report"))?;
    ensure!(report.contains("note: passthrough requests"), "{report}");
    ensure!(by_workers || report.contains("by passthrough:"), "{report}");
    Ok(())
}

fn zoned(role: &str) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let trace = run(role, directory.path(), "virtio", ZONES, &[])?;
    let count = |operation| {
        let rows = trace.requests.iter();
        rows.filter(|row| row.operation == operation && row.complete_ns.is_some())
            .count()
    };
    let (managed, written) = (count(Operation::ZoneManagement), count(Operation::Write));
    // Of all zones, one request resets all or one request each.
    ensure!(managed > 4 * 2 && written == 4, "{managed} {written}");
    ensure!(
        managed == trace.requests.len() - written - count(Operation::Read),
        "{managed}"
    );
    Ok(())
}

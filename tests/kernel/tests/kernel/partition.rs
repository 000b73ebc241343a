//! A partition is traced as itself: its own I/O and no other's, at the sectors of the whole disk.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::store;

use crate::case::Case;
use crate::stage;

const START_SECTOR: u64 = 2048;
const SECTORS: u64 = 131_072;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.extend([Requirement::Btf, Requirement::Program("addpart")]);
    vec![Case::new(
        "a partition is traced without its neighbour",
        needs,
        without_its_neighbour,
    )]
}

/// A loop device with partitions; detached at the end.
struct Disk {
    device: PathBuf,
}

impl Disk {
    /// Two partitions, one behind the other. The kernel is told of them: it may not be able to
    /// read a partition table.
    fn new(backing: &Path) -> anyhow::Result<Disk> {
        File::create(backing)?.set_len(130 << 20)?;
        let attached = Command::new("losetup")
            .args(["--find", "--show", "--partscan"])
            .arg(backing)
            .output()?;
        anyhow::ensure!(attached.status.success(), "losetup: {}", attached.status);
        let device = String::from_utf8(attached.stdout)?.trim().into();
        let disk = Disk { device };
        disk.add(1, START_SECTOR)?;
        disk.add(2, START_SECTOR + SECTORS)?;
        Ok(disk)
    }

    fn add(&self, number: u32, start: u64) -> anyhow::Result<()> {
        let status = Command::new("addpart")
            .arg(&self.device)
            .args([number.to_string(), start.to_string(), SECTORS.to_string()])
            .status()?;
        anyhow::ensure!(status.success(), "addpart: {status}");
        Ok(())
    }

    fn partition(&self, number: u32) -> anyhow::Result<PathBuf> {
        let node = PathBuf::from(format!("{}p{number}", self.device.display()));
        crate::faults::wait_until("the partition", || node.exists())?;
        Ok(node)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A failure shows as a loop device left behind, which fails the test.
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.device)
            .status();
    }
}

fn without_its_neighbour() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let disk = Disk::new(&directory.path().join("disk"))?;
    let (first, second) = (disk.partition(1)?, disk.partition(2)?);
    let output = directory.path().join("run.iostep");
    let write = |partition: &Path, count: u32| {
        let partition = partition.display();
        format!(
            "dd if=/dev/zero of={partition} bs=64k count={count} seek=3 oflag=direct 2>/dev/null"
        )
    };
    let script = format!("{}; {}", write(&first, 23), write(&second, 7));
    let (target, place) = (first.to_string_lossy(), output.to_string_lossy());
    let words = ["trace", &target, "-o", &place, "--", "sh", "-c", &script];
    iostep::run(words)?.success()?;
    let trace = store::read(&output)?;
    let device = &trace.manifest.device;
    println!("    {device:?}");
    anyhow::ensure!(device.start_sector == START_SECTOR, "{device:?}");
    anyhow::ensure!(device.sectors == SECTORS, "{device:?}");
    let mut written = 0;
    for request in trace.requests.iter().filter(|r| r.operation.is_write()) {
        let begin = START_SECTOR + 3 * 128;
        let inside = (begin..begin + 23 * 128).contains(&request.sector);
        anyhow::ensure!(inside, "not of the partition's dd: {request:?}");
        written += request.bytes;
    }
    anyhow::ensure!(written == 23 * 65_536, "{written} bytes");
    Ok(())
}

//! The wear of NVMe disks after a recording: this process has given up the right to ask by then
//! (CAP_SYS_ADMIN), and what it starts as root has it again.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use iostep_model::disk::{self, Bus, Disk, Health};

/// Its name as a command.
pub const COMMAND: &str = "__disk-health";

/// `iostep __disk-health`: the process that asks.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The disks' names below /dev
    names: Vec<String>,
}

/// Writes the health of each disk, in their order, as a list in JSON.
///
/// Errors: standard output's.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let disk = |name: &String| Disk {
        name: name.clone(),
        bus: Some(Bus::Nvme),
        ..Disk::default()
    };
    let mut disks: Vec<Disk> = args.names.iter().map(disk).collect();
    disk::read_after(Path::new("/"), &mut disks);
    let found: Vec<Option<Health>> = disks.into_iter().map(|disk| disk.health_after).collect();
    writeln!(io::stdout(), "{}", serde_json::to_string(&found)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the disks that told before the recording and did not tell this process after it. Those that
/// do not answer stay without.
pub fn ask_again(disks: &mut [Disk]) {
    let mut asked: Vec<&mut Disk> = disks
        .iter_mut()
        .filter(|disk| disk.bus == Some(Bus::Nvme))
        .filter(|disk| disk.health_before.is_some() && disk.health_after.is_none())
        .collect();
    if asked.is_empty() {
        return;
    }
    let mut command = Command::new("/proc/self/exe");
    command.arg0("iostep").arg(COMMAND).arg("--");
    command.args(asked.iter().map(|disk| &disk.name));
    let answer = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let answer = answer.ok().filter(|answer| answer.status.success());
    let found: Option<Vec<Option<Health>>> =
        answer.and_then(|answer| serde_json::from_slice(&answer.stdout).ok());
    for (disk, health) in asked.iter_mut().zip(found.unwrap_or_default()) {
        disk.health_after = health;
    }
}

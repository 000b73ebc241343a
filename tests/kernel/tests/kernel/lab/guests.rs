//! Cells that run in a guest.

use std::time::Duration;

use anyhow::Context;
use iostep_kernel_tests::iostep::Running;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::results;
use iostep_model::bench::{Document, Warning};
use iostep_model::lab::{CellResult, Medium, State};
use rustix::process::{Pid, Signal, kill_process};

use super::{Bench, LOOP, at, ensure_complete};
use crate::case::Case;
use crate::faults::wait_until;
use crate::guest::BrokenKernel;

/// What a few cells may take where everything is emulated.
const IN_GUEST: Duration = Duration::from_secs(600);

pub fn cases() -> Vec<Case> {
    let chosen = [
        LOOP,
        &[
            Requirement::Guest,
            Requirement::Program("mkfs.f2fs"),
            Requirement::Program("mkfs.nilfs2"),
        ],
    ]
    .concat();
    let guest = [
        Requirement::Root,
        Requirement::Guest,
        Requirement::Program("mkfs.ext4"),
    ];
    vec![
        Case::new(
            "cells run here, and in a guest where this kernel lacks their filesystem",
            chosen,
            chosen_by_cell,
        ),
        Case::new("polling divides context switches by 50", guest, polled),
        Case::new(
            "a guest that dies costs one cell, and the rest runs in a new one",
            guest,
            guest_killed,
        ),
        Case::new("Ctrl-C keeps what the guest has done", guest, interrupted),
        Case::new(
            "a guest that does not come up fails its cells with the console's end",
            guest,
            broken_kernel,
        ),
    ]
}

fn place(result: &CellResult) -> anyhow::Result<Medium> {
    let environment = result.environment.as_ref().context("no environment")?;
    Ok(environment.place)
}

fn chosen_by_cell() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='sqlite'\ntransactions=20\nfilesystem=['ext4', 'f2fs', 'nilfs2']\n\
         journal=['delete', 'wal']\n",
    )?;
    let running = Running::start(bench.words("out", &[]))?;
    running.finish_within(IN_GUEST)?.status(0)?;
    let all = bench.read("out")?;
    anyhow::ensure!(all.len() == 6, "{} results", all.len());
    for result in &all {
        ensure_complete(result)?;
        let kind = result.cell.axis("filesystem").context("no filesystem")?;
        let has_it = Requirement::Filesystem(match kind {
            "ext4" => "ext4",
            "f2fs" => "f2fs",
            _ => "nilfs2",
        });
        let in_guest = has_it.missing().is_some();
        let found = place(result)?;
        anyhow::ensure!((found == Medium::Guest) == in_guest, "{kind}: {found:?}");
        let environment = result.environment.as_ref().context("no environment")?;
        let mounted = &environment.mounted;
        anyhow::ensure!(mounted.starts_with(kind), "{mounted}");
        let tools: Vec<&str> = environment.tools.iter().map(|t| t.name.as_str()).collect();
        let has_qemu = tools.contains(&"qemu-system-x86_64");
        anyhow::ensure!(has_qemu == in_guest, "{tools:?}");
        let device = result.runs[0].device.context("no counters")?;
        anyhow::ensure!(device.write.bytes >= 20 * 4096, "{device:?}");
        ensure_no_disk(&bench, result)?;
    }
    let files = results::bench_files(&bench.path("out"))?;
    anyhow::ensure!(files.len() == 6, "{files:?}");
    Ok(())
}

/// What bench said of a cell is there, and says that no disk was measured, wherever the cell ran.
fn ensure_no_disk(bench: &Bench, result: &CellResult) -> anyhow::Result<()> {
    let file = format!("out/bench/{}.json", result.cell.key);
    let document = Document::read(&bench.path(&file))?;
    anyhow::ensure!(document.runs.len() == result.runs.len(), "{file}");
    let says = |it: &Warning| match place(result) {
        Ok(Medium::Guest) => matches!(it, Warning::InMemory { .. } | Warning::LoopDevice { .. }),
        _ => matches!(it, Warning::LoopDevice { .. }),
    };
    let warnings = &document.warnings;
    anyhow::ensure!(warnings.iter().any(says), "{file}: {warnings:?}");
    Ok(())
}

/// On NVMe, since the cells of a block run on what its polled ones need.
fn polled() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nfilesystem='ext4'\nengine='uring'\ntransfer='direct'\n\
         access='random-write'\nsync='none'\nsize='8MiB'\nrecord='4KiB'\n\
         switches=['', 'P']\ndevice-size='128MiB'\n",
    )?;
    let running = Running::start(bench.words("out", &[]))?;
    running.finish_within(IN_GUEST)?.status(0)?;
    let all = bench.read("out")?;
    let switches = |name: &str| -> anyhow::Result<u64> {
        let result = at(&all, "switches", name)?;
        ensure_complete(result)?;
        let environment = result.environment.as_ref().context("no environment")?;
        let device = environment.device.as_ref().context("no device")?;
        anyhow::ensure!(device.name.starts_with("nvme"), "{device:?}");
        anyhow::ensure!(!environment.device_model.is_empty(), "no model");
        anyhow::ensure!(result.runs[0].operations == 2048, "{:?}", result.runs[0]);
        let cpu = result.runs[0].cpu.context("no processor time")?;
        Ok(cpu.voluntary_switches)
    };
    let (waiting, polling) = (switches("")?, switches("P")?);
    println!("    {waiting} switches, polled {polling}");
    anyhow::ensure!(waiting >= 50 * polling.max(1), "{waiting} and {polling}");
    Ok(())
}

/// Cells of which the second takes a minute.
const MINUTE: &str = "[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
                      time=[0.1, 60, 0.2]\ndevice-size='64MiB'\n";

/// Starts [`MINUTE`] in a guest with such a device, and returns when it has its first result.
fn started(bench: &Bench, device: &str) -> anyhow::Result<Running> {
    let flags = ["--on", "guest", "--device", device];
    let running = Running::start(bench.words("out", &flags))?;
    let cells = bench.path("out").join("cells");
    wait_until("the first result", || {
        std::fs::read_dir(&cells).is_ok_and(|all| all.count() == 1)
    })?;
    Ok(running)
}

fn guest_killed() -> anyhow::Result<()> {
    let bench = Bench::new(MINUTE)?;
    let running = started(&bench, "sd")?;
    let pid = running.pid().as_raw_nonzero();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let qemu = children.trim().parse().ok().and_then(Pid::from_raw);
    kill_process(qemu.context("no QEMU")?, Signal::KILL)?;
    let outcome = running.finish_within(IN_GUEST)?.status(1)?;
    println!("{}", outcome.stderr);
    let all = bench.read("out")?;
    let states: Vec<&State> = all.iter().map(|result| &result.state).collect();
    anyhow::ensure!(states.len() == 3, "{states:?}");
    let lost = matches!(states[1], State::Failed { reason } if reason.contains("the guest ended"));
    anyhow::ensure!(lost, "{states:?}");
    anyhow::ensure!(*states[0] == State::Complete && *states[2] == State::Complete);
    let environment = all[2].environment.as_ref().context("no environment")?;
    let device = environment.device.as_ref().context("no device")?;
    anyhow::ensure!(device.name == "mmcblk0", "{device:?}");
    Ok(())
}

fn interrupted() -> anyhow::Result<()> {
    let bench = Bench::new(MINUTE)?;
    let running = started(&bench, "virtio")?;
    running.signal(Signal::INT)?;
    running.finish()?.status(1)?;
    let all = bench.read("out")?;
    anyhow::ensure!(all.len() == 1, "{} results", all.len());
    ensure_complete(&all[0])?;
    let left: Vec<_> = std::fs::read_dir(bench.path("out"))?
        .filter_map(|entry| Some(entry.ok()?.file_name()))
        .filter(|name| name.to_string_lossy().starts_with(".guest-"))
        .collect();
    anyhow::ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

fn broken_kernel() -> anyhow::Result<()> {
    let bench = Bench::new(MINUTE)?;
    let kernel = BrokenKernel::new()?;
    let flags = ["--on", "guest", "--kernel", &kernel.path()];
    let outcome = bench.run("out", &flags)?.status(1)?;
    println!("{}", outcome.stderr);
    anyhow::ensure!(outcome.stderr.contains("its console"), "{}", outcome.stderr);
    let all = bench.read("out")?;
    let all_failed = all.iter().all(
        |result| matches!(&result.state, State::Failed { reason } if reason.contains("the guest")),
    );
    anyhow::ensure!(all.len() == 3 && all_failed, "{all:?}");
    Ok(())
}

//! Cells that fail, and machines that lack something.

use std::path::{Path, PathBuf};
use std::process::Command;

use iostep_kernel_tests::iostep::{self, Outcome};
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::lab::{CellResult, State};

use super::{Bench, LOOP, QUICK, at, ensure_complete};
use crate::bad_input::TempMount;
use crate::case::Case;

/// Runs a command where this tool of the administrator's is not installed.
const WITHOUT_TOOL: &str = r#"
set -e
tool=$1; shift
hidden=$(mktemp -d)
mkdir "$hidden/real" "$hidden/shown"
mount --bind /usr/sbin "$hidden/real"
for file in "$hidden"/real/*; do ln -s "$file" "$hidden/shown/"; done
rm "$hidden/shown/$tool"
mount --bind "$hidden/shown" /usr/sbin
exec "$@"
"#;
/// Runs a command where there is no kernel that a guest could boot.
const WITHOUT_KERNEL: &str = r#"
set -e
for place in /boot /var/cache/iostep/guest; do
    [ ! -d "$place" ] || mount -t tmpfs none "$place"
done
exec "$@"
"#;

pub fn cases() -> Vec<Case> {
    let hidden = [
        LOOP,
        &[
            Requirement::Program("unshare"),
            Requirement::Program("mkfs.xfs"),
        ],
    ]
    .concat();
    let unshared = [Requirement::Root, Requirement::Program("unshare")];
    vec![
        Case::new(
            "a cell that fails is recorded and the others run",
            LOOP,
            one_fails,
        ),
        Case::new(
            "a filesystem whose tool is missing is a failed cell that names the package",
            hidden,
            without_tool,
        ),
        Case::new("a cell ends at its time limit", LOOP, time_limit),
        Case::new(
            "images that may not fit are refused, and results that do not fit end it",
            LOOP,
            no_space,
        ),
        Case::new(
            "without QEMU, a guest's cells are refused",
            unshared,
            without_qemu,
        ),
        Case::new(
            "without a kernel, they are refused, too",
            unshared,
            without_kernel,
        ),
    ]
}

fn one_fails() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nfilesystem='ext4'\ndevice-size='16MiB'\n\
         size=['64MiB', '16KiB']\n\
         [[cells]]\nname='mkfs'\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
         device-size='16MiB'\nmkfs-options='-N nonsense'\n\
         [[cells]]\nname='mount'\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
         device-size='16MiB'\nmount-options='nonsense'\n",
    )?;
    let outcome = bench.run("out", &["--on", "tmpfs"])?.status(1)?;
    print!("{}", outcome.stderr);
    let all = bench.read("out")?;
    ensure_complete(at(&all, "size", "16KiB")?)?;
    let failed = all.iter().filter_map(|result| match &result.state {
        State::Failed { reason } => Some(reason.as_str()),
        _ => None,
    });
    let failed: Vec<&str> = failed.collect();
    anyhow::ensure!(failed.len() == 3, "{failed:?}");
    for (reason, word) in failed
        .iter()
        .zip(["free", "mkfs.ext4 failed", "cannot mount"])
    {
        anyhow::ensure!(reason.contains(word), "{reason}");
        anyhow::ensure!(outcome.stderr.contains(reason), "{reason} was not told");
    }
    Ok(())
}

/// Runs the command by a script in mounts of its own.
fn run_hidden(script: &str, first: &[&str], words: Vec<PathBuf>) -> anyhow::Result<Outcome> {
    let result = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args(first)
        .arg(iostep::binary()?)
        .args(words)
        .env("NO_COLOR", "1")
        .output()?;
    Ok(Outcome::from(result))
}

fn reason(result: &CellResult) -> &str {
    match &result.state {
        State::Failed { reason } => reason,
        _ => "",
    }
}

fn without_tool() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nsize='16KiB'\ndevice-size='320MiB'\n\
         filesystem=['xfs', 'ext4']\n",
    )?;
    let words = bench.words("out", &["--on", "tmpfs"]);
    let outcome = run_hidden(WITHOUT_TOOL, &["mkfs.xfs"], words)?.status(1)?;
    let all = bench.read("out")?;
    ensure_complete(at(&all, "filesystem", "ext4")?)?;
    let expected = "mkfs.xfs: not installed; on Debian and Ubuntu: apt install xfsprogs";
    let found = reason(at(&all, "filesystem", "xfs")?);
    anyhow::ensure!(found == expected, "{found}");
    anyhow::ensure!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    Ok(())
}

fn time_limit() -> anyhow::Result<()> {
    let bench = Bench::new(
        "[[cells]]\nworkload='file'\nfilesystem='ext4'\nsize='16KiB'\n\
         device-size='64MiB'\ntime=[60, 0.1]\n",
    )?;
    let flags = ["--on", "tmpfs", "--time-limit", "1s"];
    bench.run("out", &flags)?.status(1)?;
    let all = bench.read("out")?;
    ensure_complete(at(&all, "time", "0.1")?)?;
    let found = reason(at(&all, "time", "60")?);
    anyhow::ensure!(found == "it did not end within 1 seconds", "{found}");
    Ok(())
}

fn no_space() -> anyhow::Result<()> {
    let bench = Bench::new(QUICK)?;
    let small = TempMount::new("tmpfs", "size=16m")?;
    let result = Command::new(iostep::binary()?)
        .args(bench.words("out", &["--on", "loop", "--shard", "1/4"]))
        .env("TMPDIR", small.path())
        .output()?;
    Outcome::from(result).status(1)?;
    let all = bench.read("out")?;
    let found = reason(&all[0]);
    println!("    {found}");
    anyhow::ensure!(found.contains("16 MiB free") && found.contains("need 64 MiB"));

    let tiny = TempMount::new("tmpfs", "size=16k")?;
    let results = tiny.path().join("out");
    let mut words = ["lab", "run"].map(PathBuf::from).to_vec();
    words.extend([bench.lab(), "--results".into(), results.clone()]);
    words.extend(["--on", "tmpfs"].map(PathBuf::from));
    let outcome = iostep::run(words)?.refused(&[1], "No space left")?;
    anyhow::ensure!(outcome.stdout.is_empty(), "{}", outcome.stdout);
    // What is there is whole.
    let kept = std::fs::read_dir(results.join("cells")).map_or(0, Iterator::count);
    let read = iostep_lab::results::read(&results).map_or(0, |(_, all)| all.len());
    anyhow::ensure!(
        kept == read && kept < 4,
        "{kept} files, {read} of them whole"
    );
    Ok(())
}

/// Nothing was begun that would have to be gone on with.
fn ensure_no_cells(results: &Path) -> anyhow::Result<()> {
    let cells = std::fs::read_dir(results.join("cells")).map_or(0, Iterator::count);
    anyhow::ensure!(cells == 0, "{cells} results");
    Ok(())
}

fn without_qemu() -> anyhow::Result<()> {
    let run = |bench: &Bench, flags: &[&str]| -> anyhow::Result<Outcome> {
        let mut command = Command::new(iostep::binary()?);
        command.args(bench.words("out", flags));
        Ok(command.env("PATH", "/nonexistent").output()?.into())
    };
    let package = "apt install qemu-system-x86";
    let bench = Bench::new(QUICK)?;
    run(&bench, &["--in", "guest"])?.refused(&[4], package)?;
    ensure_no_cells(&bench.path("out"))?;

    // A loop device cannot be polled, so these need a guest; the others do not.
    let bench = Bench::new(&format!(
        "{QUICK}[[cells]]\nname='polled'\nworkload='file'\nfilesystem='ext4'\nswitches='P'\n\
         engine='uring'\nsize='16KiB'\ndevice-size='64MiB'\nseed=[1, 2, 3, 4, 5]\n"
    ))?;
    let outcome = run(&bench, &[])?.status(1)?;
    let all = bench.read("out")?;
    anyhow::ensure!(all.len() == 9, "{} results", all.len());
    all[..4].iter().try_for_each(ensure_complete)?;
    anyhow::ensure!(
        all[4..]
            .iter()
            .all(|result| reason(result).contains(package))
    );
    let lines = outcome.stderr.lines().filter(|line| line.contains(package));
    anyhow::ensure!(lines.count() == 4, "{}", outcome.stderr);
    Ok(())
}

fn without_kernel() -> anyhow::Result<()> {
    let bench = Bench::new(QUICK)?;
    let words = bench.words("out", &["--on", "guest"]);
    run_hidden(WITHOUT_KERNEL, &[], words)?.refused(&[4], "scripts/setup guest")?;
    let flags = ["--on", "guest", "--kernel", "/no/such/kernel"];
    bench.run("out", &flags)?.refused(&[2], "/no/such/kernel")?;
    ensure_no_cells(&bench.path("out"))
}

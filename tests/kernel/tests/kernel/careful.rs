//! What iostep leaves alone, and what it lets nobody else see.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use iostep_kernel_tests::iostep::{self, binary};
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::manifest::{Manifest, State};

use crate::case::Case;
use crate::faults::wait_until;
use crate::stage::{self, Stage};

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.push(Requirement::Btf);
    vec![
        Case::new(
            "a trace goes into the directory it made, whatever is at its name",
            needs.clone(),
            swapped,
        ),
        Case::new(
            "explain works in the directory it made, whatever is at its name",
            needs.clone(),
            explained_elsewhere,
        ),
        Case::new(
            "explain works beside the database that it was given, whatever is at its name",
            needs.clone(),
            explained_where_it_was,
        ),
        Case::new("an ignored SIGHUP stays ignored", needs.clone(), nohup),
        Case::new(
            "copies and traces are private and belong to who called sudo",
            needs,
            private,
        ),
    ]
}

fn swapped() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let place = tempfile::tempdir()?;
    let of = |name: &str| place.path().join(name);
    fs::create_dir(of("victim"))?;
    let script = format!(
        "cd {} && mv t moved && ln -s victim t && echo x > {}/f",
        place.path().display(),
        stage.root().display()
    );
    traced(stage.root(), &of("t"), &script)?.success()?;
    ensure!(
        fs::read_dir(of("victim"))?.count() == 0,
        "root wrote elsewhere"
    );
    ensure!(Manifest::read(&of("moved"))?.state == State::Complete);
    Ok(())
}

/// Somebody moves the directories of copies away as soon as they are there, and puts links to a
/// database of root in their place.
fn explained_elsewhere() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let of = |name: &str| stage.root().join(name);
    fs::create_dir(of("app"))?;
    fs::create_dir(of("victim"))?;
    for database in ["app/app.db", "victim/app.db"] {
        fs::write(of(database), "")?;
    }
    // Who comes between the making and the opening of a directory is refused.
    for _ in 0..20 {
        let (moved, explained) = explained_while_moved(&of("app"), &of("victim"))?;
        println!("    {moved} directories were moved: {}", explained.stderr);
        ensure!(moved > 0, "nothing was moved");
        let names = fs::read_dir(of("victim"))?.flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        ensure!(names == ["app.db"], "root wrote elsewhere: {names:?}");
        ensure!(fs::metadata(of("victim/app.db"))?.len() == 0, "it changed");
        if explained.stderr.contains("Not a directory") {
            explained.status(1)?;
            continue;
        }
        return explained.success().map(|_| ());
    }
    bail!("never once opened before it was moved")
}

fn explained_while_moved(place: &Path, victim: &Path) -> anyhow::Result<(u32, iostep::Outcome)> {
    let (stop, moved) = (AtomicBool::new(false), AtomicU32::new(0));
    let explained = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                moved.fetch_add(swap_copies(place, victim), Ordering::Relaxed);
            }
        });
        let sql = "CREATE TABLE t (v)";
        let words = ["explain".as_ref(), place.join("app.db").as_os_str()].map(ToOwned::to_owned);
        let words = words
            .into_iter()
            .chain([sql, "--journal", "delete,wal"].map(Into::into));
        let explained = iostep::run(words);
        stop.store(true, Ordering::Relaxed);
        explained
    })?;
    Ok((moved.into_inner(), explained))
}

/// Somebody moves the database's directory away once it was opened, and puts a link to another one in
/// its place.
fn explained_where_it_was() -> anyhow::Result<()> {
    for in_place in [false, true] {
        let (stage, scratch) = (Stage::new(Kind::Ext4, &[], "")?, tempfile::tempdir()?);
        let of = |name: &str| stage.root().join(name);
        fs::create_dir(of("app"))?;
        fs::create_dir(of("victim"))?;
        for database in ["app/app.db", "victim/app.db"] {
            fs::write(of(database), "")?;
        }
        let changed = || {
            let found = fs::metadata(of("victim"))?;
            anyhow::Ok((found.mtime(), found.mtime_nsec()))
        };
        let before = changed()?;
        let explain = Command::new(binary()?)
            .arg("explain")
            .arg(of("app/app.db"))
            .arg("CREATE TABLE t (v)")
            .args(in_place.then_some("--in-place"))
            .env("TMPDIR", scratch.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        // For the recording, which begins before the SQL runs.
        wait_until("its directory", || {
            fs::read_dir(scratch.path()).is_ok_and(|found| found.count() > 0)
        })?;
        fs::rename(of("app"), of("moved"))?;
        std::os::unix::fs::symlink("victim", of("app"))?;
        let ended = explain.wait_with_output()?;
        ensure!(ended.status.success(), "{ended:?}");
        ensure!(changed()? == before, "root wrote elsewhere");
        ensure!(fs::metadata(of("victim/app.db"))?.len() == 0, "it changed");
        let changed = fs::metadata(of("moved/app.db"))?.len() > 0;
        ensure!(changed == in_place, "--in-place: {in_place}");
    }
    Ok(())
}

fn swap_copies(place: &Path, victim: &Path) -> u32 {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let copies = entries.filter(|entry| {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_directory && entry.file_name().to_string_lossy().starts_with(".iostep-")
    });
    let swapped = copies.filter(|entry| {
        let mut moved = entry.path().into_os_string();
        moved.push("-moved");
        let away = place.with_extension(Path::new(&moved).file_name().unwrap_or_default());
        fs::rename(entry.path(), away).is_ok()
            && std::os::unix::fs::symlink(victim, entry.path()).is_ok()
    });
    u32::try_from(swapped.count()).unwrap_or(u32::MAX)
}

fn nohup() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let place = tempfile::tempdir()?;
    let trace = place.path().join("t");
    let survived = place.path().join("survived");
    let ended = Command::new("sh")
        .arg("-c")
        .arg("trap '' HUP; exec \"$@\"")
        .arg("sh")
        .arg(binary()?)
        .arg("trace")
        .arg(stage.root())
        .arg("-o")
        .arg(&trace)
        .args(["--", "sh", "-c"])
        .arg(format!(
            "kill -HUP $PPID; sleep 0.3; echo x > {}",
            survived.display()
        ))
        .output()?;
    ensure!(ended.status.success(), "{ended:?}");
    ensure!(survived.exists(), "the command was ended");
    Ok(())
}

fn private() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let database = stage.root().join("app.db");
    fs::write(&database, "")?;
    fs::set_permissions(
        &database,
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )?;
    let as_user = |arguments: &[&std::ffi::OsStr]| -> anyhow::Result<()> {
        let mut command = Command::new(binary()?);
        let command = command.args(arguments).current_dir(stage.facts_dir());
        let ended = command
            .envs([("SUDO_UID", "1234"), ("SUDO_GID", "4321")])
            .output()?;
        ensure!(ended.status.success(), "{ended:?}");
        Ok(())
    };
    let sql = "CREATE TABLE t (v)".as_ref();
    as_user(&[
        "explain".as_ref(),
        database.as_ref(),
        sql,
        "--keep".as_ref(),
    ])?;
    let mut kept = fs::read_dir(stage.root())?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_copy = |path: &std::path::PathBuf| path.to_string_lossy().contains(".iostep-explain-");
    let kept = kept.find(is_copy).context("nothing was kept")?;
    let recording = stage.facts_dir().join("r");
    let (secret, data) = (
        stage.facts_dir().join("secret"),
        stage.facts_dir().join("r.data"),
    );
    fs::write(&secret, "content")?;
    let record = ["record", "--with-data", "-o"].map(std::ffi::OsStr::new);
    let cat = ["--".as_ref(), "cat".as_ref(), secret.as_ref()];
    as_user(&[&record[..], &[recording.as_ref()], &cat].concat())?;
    is_private(&recording, 0o600)?;
    let trace = stage.facts_dir().join("t");
    let options = [
        "-o".as_ref(),
        trace.as_ref(),
        "--".as_ref(),
        "true".as_ref(),
    ];
    as_user(&[&["trace".as_ref(), stage.root().as_ref()][..], &options].concat())?;
    for directory in [&kept, &trace, &data] {
        is_private(directory, 0o700)?;
        for entry in fs::read_dir(directory)? {
            is_private(&entry?.path(), 0o600)?;
        }
    }
    ensure!(kept.join("app.db").exists(), "no database");
    Ok(())
}

fn is_private(path: &Path, mode: u32) -> anyhow::Result<()> {
    let found = fs::metadata(path)?;
    let found = (found.mode() & 0o777, found.uid(), found.gid());
    ensure!(found == (mode, 1234, 4321), "{}: {found:?}", path.display());
    Ok(())
}

fn traced(target: &Path, trace: &Path, script: &str) -> anyhow::Result<iostep::Outcome> {
    let mut arguments = vec!["trace".as_ref(), target.as_os_str(), "-o".as_ref()];
    arguments.push(trace.as_os_str());
    arguments.extend(["--", "sh", "-c", script].map(std::ffi::OsStr::new));
    iostep::run(arguments)
}

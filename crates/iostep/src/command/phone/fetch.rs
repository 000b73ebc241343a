//! Files of the phone, which may be anybody's: it says neither where something goes on this machine
//! nor what it is called there.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use iostep_model::directory::{Directory, Temporary};
use iostep_model::publish;
use iostep_model::syscall::kept;

use super::adb::{Adb, is_plain_name, line, said};
use crate::error::bad_input;

/// More files than a trace has, or the data of a recording.
const MOST_FILES: usize = 100_000;

/// Fetches a result of bench, whole or not at all.
///
/// Errors: adb fails, or it cannot be written.
pub fn result(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    file(adb, from, to, |content| {
        publish::write_with(to, |out| copy(content, out, to))
    })
}

/// Fetches a recording and the data that it kept, if any, for its owner alone.
///
/// Errors: adb fails, or it cannot be written.
pub fn recording(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    let kept = kept::directory_of(Path::new(from));
    let kept = kept.to_str().context("a name")?;
    if adb.shell(&format!("[ -d {kept} ]"))?.status.success() {
        directory(adb, kept, &kept::directory_of(to))?;
    }
    file(adb, from, to, |content| {
        publish::write_private_with(to, |out| copy(content, out, to))
    })
}

fn file(
    adb: &Adb,
    from: &str,
    to: &Path,
    publish: impl FnOnce(File) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let place = Temporary::new(&publish::spool_directory(to), ".iostep-phone-")?;
    adb.pull(from, &place.directory().path_for_others().join("part"))?;
    let content = File::open(place.path().join("part"));
    publish(content.with_context(|| format!("{}: cannot fetch", to.display()))?)
}

fn copy(mut content: File, out: &mut dyn io::Write, to: &Path) -> anyhow::Result<()> {
    let copied = io::copy(&mut content, out);
    copied.with_context(|| format!("{}: cannot write", to.display()))?;
    Ok(())
}

/// The error for a directory that is to be new.
pub fn is_there(path: &Path) -> anyhow::Error {
    let path = path.display();
    bad_input(anyhow!("{path}: is there already; name what is not"))
}

/// Fetches a directory of files into a new one.
///
/// Errors: the directory is there; adb fails, or a name is none of iostep's. Then nothing is left.
pub fn directory(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    let names = names(adb, from)?;
    let (directory, is_new) = Directory::make(to)?;
    if !is_new {
        return Err(is_there(to));
    }
    let mut pulled = Ok(());
    for name in &names {
        let path = directory.path_for_others().join(name);
        pulled = adb.pull(&format!("{from}/{name}"), &path);
        if pulled.is_err() {
            break;
        }
    }
    if pulled.is_err() {
        for name in &names {
            // Most were not fetched.
            let _ = fs::remove_file(directory.path().join(name));
        }
        directory.remove_if_empty();
    }
    pulled
}

fn names(adb: &Adb, directory: &str) -> anyhow::Result<Vec<String>> {
    let output = adb.shell(&line(["ls", "-1", directory]))?;
    if !output.status.success() {
        bail!("on the phone: {}", said(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names: Vec<String> = text.lines().map(|name| name.trim().to_owned()).collect();
    match names.iter().find(|name| !is_plain_name(name)) {
        Some(name) => bail!("{directory}: {name:?} on the phone is no file of iostep's"),
        None if names.is_empty() => bail!("{directory}: nothing is there on the phone"),
        None if names.len() > MOST_FILES => bail!("{directory}: too many files on the phone"),
        None => Ok(names),
    }
}

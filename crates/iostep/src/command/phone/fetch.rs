//! Files of the phone, which may be anybody's: it says neither where something goes on this machine
//! nor what it is called there.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use iostep_model::directory::{Directory, give_to_caller};
use iostep_model::publish;
use iostep_model::syscall::kept;

use super::adb::{Adb, MARK, is_plain_name};
use crate::error::bad_input;
use crate::shell::line;

/// More files than a trace has, or the data of a recording.
const MOST_FILES: usize = 100_000;

/// Fetches a result of bench, whole or not at all.
///
/// Errors: adb fails, or it cannot be written.
pub fn result(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    let content = content(adb, from, to)?;
    publish::write_with(to, |out| copy(content, out, to))
}

/// Fetches a recording and the data that it kept, if any, for its owner alone.
///
/// Errors: adb fails, or it cannot be written. Then nothing is left of either.
pub fn recording(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    let content = content(adb, from, to)?;
    let kept = kept::directory_of(Path::new(from));
    let kept = kept.to_str().context("a name")?;
    let data = match adb.shell(&format!("[ -d {kept} ]"))?.succeeded() {
        true => Some(Fetched::fetch(adb, kept, &kept::directory_of(to))?),
        false => None,
    };
    let published = publish::write_private_with(to, |out| copy(content, out, to));
    published.inspect_err(|_| {
        if let Some(data) = &data {
            data.remove();
        }
    })
}

/// Fetches a directory of files into a new one.
///
/// Errors: the directory is there; adb fails, or a name is none of iostep's. Then nothing is left.
pub fn directory(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<()> {
    Fetched::fetch(adb, from, to).map(drop)
}

/// A file's content, in a file without a name.
fn content(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<File> {
    let mut content = tempfile::tempfile_in(publish::spool_directory(to))
        .map_err(|error| anyhow!("{}: cannot fetch: {error}", to.display()))?;
    let end = content.try_clone().context("a descriptor")?;
    adb.read(from, end)?;
    content.rewind().context("a file without a name")?;
    Ok(content)
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

/// A directory that was fetched.
struct Fetched {
    directory: Directory,
    names: Vec<String>,
}

impl Fetched {
    fn fetch(adb: &Adb, from: &str, to: &Path) -> anyhow::Result<Fetched> {
        let names = names(adb, from)?;
        let (directory, is_new) = Directory::make(to)?;
        if !is_new {
            return Err(is_there(to));
        }
        let all = Fetched { directory, names };
        let mut names = all.names.iter();
        let fetched =
            names.try_for_each(|name| adb.read(&format!("{from}/{name}"), all.create(name)?));
        match fetched {
            Ok(()) => Ok(all),
            Err(error) => {
                all.remove();
                Err(error)
            }
        }
    }

    fn create(&self, name: &str) -> anyhow::Result<File> {
        let shown = || {
            format!(
                "{}: cannot write",
                self.directory.name().join(name).display()
            )
        };
        let mut options = File::options();
        let file = options.write(true).create_new(true).mode(0o600);
        let file = file
            .open(self.directory.path().join(name))
            .with_context(shown)?;
        give_to_caller(&file).with_context(shown)?;
        Ok(file)
    }

    /// Removes it again, as far as that can be done.
    fn remove(&self) {
        for name in &self.names {
            // Not all of them may have been made.
            let _ = fs::remove_file(self.directory.path().join(name));
        }
        self.directory.remove_if_empty();
    }
}

fn names(adb: &Adb, directory: &str) -> anyhow::Result<Vec<String>> {
    let answer = adb.shell(&line(["ls", "-1", directory]))?;
    if !answer.succeeded() {
        bail!("on the phone: {}", answer.said);
    }
    let lines = answer.output.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(MARK));
    let names: Vec<String> = lines.map(str::to_owned).collect();
    match names.iter().find(|name| !is_plain_name(name)) {
        Some(name) => bail!("{directory}: {name:?} on the phone is no file of iostep's"),
        None if names.is_empty() => bail!("{directory}: nothing is there on the phone"),
        None if names.len() > MOST_FILES => bail!("{directory}: too many files on the phone"),
        None => Ok(names),
    }
}

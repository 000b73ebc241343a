//! Where this machine does not let iostep make a filesystem and record what reaches it, a guest does:
//! the same command, in a kernel of its own.

use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use iostep_lab::guest::{self, Command, Options};
use iostep_model::directory::Temporary;
use iostep_model::publish;

use crate::error::{describe, is_of_the_machine};
use crate::interrupt::Interrupt;
use crate::passing;
use crate::terminal::say;

/// Memory of a guest beside its files, which are half of the rest: to check the BPF programs takes
/// Linux 7.2 more than 1 GiB.
const LEAST_BYTES: u64 = 2 << 30;

/// What a command runs as in a guest.
pub struct Guest {
    /// The command and its arguments, all paths absolute.
    pub words: Vec<OsString>,
    /// Directories of the files that it leaves, to which the guest may write.
    pub results: Vec<PathBuf>,
    /// What it reads that the guest would not see otherwise, as in `/tmp`.
    pub brought: Option<Temporary>,
    /// The kernel's name of the filesystem that is made.
    pub filesystem: &'static str,
    /// What the command writes to files, at most.
    pub file_bytes: u64,
}

impl Guest {
    /// Adds a flag with a file for a result. Standard output and devices as /dev/null are there in a
    /// guest, too.
    ///
    /// Errors: `Usage` for what only this machine has, as a FIFO; no working directory.
    pub fn add_result(&mut self, flag: &str, path: &Path) -> anyhow::Result<()> {
        self.words.push(flag.into());
        if publish::is_standard_output(path) {
            self.words.push("-".into());
            return Ok(());
        }
        let path = std::path::absolute(path).context("cannot find the working directory")?;
        match path.metadata().map(|found| found.file_type()) {
            Ok(kind) if kind.is_char_device() => {}
            Ok(kind) if !kind.is_file() => {
                return Err(iostep_load::Error::Usage {
                    what: format!("{}: a guest cannot write there", path.display()),
                    hint: "name a file".into(),
                }
                .into());
            }
            _ => self.results.extend(path.parent().map(Path::to_owned)),
        }
        self.words.push(path.into());
        Ok(())
    }
}

/// Runs a command here; if this machine cannot do it, in a guest, and says so.
///
/// Errors: those of `here` and of the guest.
pub fn here_or_in_a_guest(
    here: impl FnOnce() -> anyhow::Result<ExitCode>,
    guest: impl FnOnce(&Interrupt) -> anyhow::Result<Guest>,
) -> anyhow::Result<ExitCode> {
    match here() {
        Err(refusal) if is_for_a_guest(&refusal) => {
            tell(&refusal, "--on here");
            in_a_guest(guest)
        }
        ended => ended,
    }
}

/// True if a guest can do what this machine cannot, or does not allow. Within a guest there is no
/// other one.
pub fn is_for_a_guest(refusal: &anyhow::Error) -> bool {
    is_of_the_machine(refusal) && std::env::var_os(guest::VARIABLE).is_none()
}

/// Says why a guest does it, and what prevents that.
pub fn tell(refusal: &anyhow::Error, flag: &str) {
    say!("iostep: {}", describe(refusal));
    say!(
        "iostep: a guest does it, a kernel of its own under QEMU, which needs no rights: bytes and \
         counts are exact, times are not this machine's; {flag} prevents that"
    );
}

/// Runs a command in a guest.
///
/// Errors: those of `guest` and of the guest.
pub fn in_a_guest(
    guest: impl FnOnce(&Interrupt) -> anyhow::Result<Guest>,
) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let guest = guest(&interrupt)?;
    let program = std::env::current_exe().context("cannot find the program itself")?;
    let command = Command {
        words: std::iter::once(program.into()).chain(guest.words).collect(),
        environment: passing::environment(&[]),
        directory: "/".into(),
    };
    let brought = guest.brought.as_ref();
    let brought = brought.map(|brought| brought.directory().name().to_owned());
    let options = Options {
        filesystems: vec![guest.filesystem],
        memory_bytes: LEAST_BYTES + 2 * guest.file_bytes.next_multiple_of(1 << 20),
        shares: guest.results.into_iter().chain(brought).collect(),
        ..Options::default()
    };
    passing::pass_on(&options, &command, interrupt.flag())
}

/// The words of a command line.
pub fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(path: &Path) -> anyhow::Result<Guest> {
        let mut guest = Guest {
            words: Vec::new(),
            results: Vec::new(),
            brought: None,
            filesystem: "ext4",
            file_bytes: 0,
        };
        guest.add_result("--html", path)?;
        Ok(guest)
    }

    #[test]
    fn a_guest_may_write_where_a_file_goes_and_has_standard_output_and_devices_itself() {
        let directory = tempfile::tempdir().expect("a directory");
        let page = directory.path().join("page.html");
        for there in [false, true] {
            let guest = added(&page).expect("a file");
            assert_eq!(
                guest.words,
                ["--html".as_ref(), page.as_os_str()],
                "{there}"
            );
            assert_eq!(guest.results, [directory.path()]);
            std::fs::write(&page, "old").expect("written");
        }
        for path in ["-", "/dev/null"] {
            let guest = added(Path::new(path)).expect("it is there");
            assert_eq!(guest.words, ["--html", path]);
            assert!(guest.results.is_empty());
        }
        assert!(added(directory.path()).is_err());
    }
}

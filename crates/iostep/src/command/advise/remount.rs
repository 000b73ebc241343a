//! Options of a mounted filesystem, set for a while.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, bail};
use iostep_analyze::advise::MountOption;
use iostep_load::Error;
use iostep_model::durability::Loss;

use super::guard;
use super::mounted::Mounted;
use super::subject::Subject;
use crate::error::describe;
use crate::terminal::say;

/// Makes sure that filesystems can be mounted.
///
/// Errors: `Unsupported` for whoever is not root.
pub fn check_rights() -> Result<(), Error> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Error::Unsupported {
            what: "--remount: no right to mount".into(),
            hint: "run it as root, as `sudo iostep ...` does".into(),
        }),
    }
}

/// Why an option is not measured; `None` if it is.
pub fn reason_against(option: &MountOption, subject: &Subject, wanted: bool) -> Option<String> {
    let point = subject.mount_point.display();
    match option.undo {
        None => Some("a remount does not change it".into()),
        Some(_) if option.loss == Loss::Filesystem && !subject.is_loop => Some(format!(
            "never but on a loop device: a crash meanwhile could damage {point}"
        )),
        Some(_) if !wanted => Some(format!(
            "all that is on {point} would be mounted so meanwhile; --remount does it"
        )),
        Some(_) => None,
    }
}

/// An option that is in force until the drop: also when this process dies, since another one takes
/// it back then.
#[derive(Debug)]
pub struct Remounted {
    mounted: Mounted,
    name: PathBuf,
    undo: &'static str,
    /// The other process; nothing once the option is taken back.
    guard: Option<Child>,
}

impl Remounted {
    /// Sets an option on what is mounted at `point`, which has to hold `directory`.
    ///
    /// Errors: the kernel's own words; the mount is not the one that was looked at.
    pub fn new(point: &Path, directory: &Path, option: &MountOption) -> anyhow::Result<Remounted> {
        let undo = option.undo.context("a remount does not change it")?;
        let mounted = Mounted::open(point)?;
        mounted.check_holds(directory)?;
        let mut guard = Command::new("/proc/self/exe")
            .arg0("iostep")
            .arg(guard::COMMAND)
            .arg(mounted.root().path_for_others())
            .arg(point)
            .args([option.option, undo])
            // What is measured must not be kept busy by it.
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the process that takes the option back")?;
        let said = guard.stdout.take();
        let remounted = Remounted {
            mounted,
            name: point.to_owned(),
            undo,
            guard: Some(guard),
        };
        let mut line = String::new();
        if let Some(said) = said {
            BufReader::new(said).read_line(&mut line)?;
        }
        match line.trim_end() {
            guard::READY => Ok(remounted),
            "" => bail!("the process that takes the option back was ended"),
            reason => bail!("{reason}"),
        }
    }

    /// Takes the option back.
    ///
    /// Errors: the kernel refuses it.
    pub fn take_back(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        let Some(mut guard) = self.guard.take() else {
            return Ok(());
        };
        // The end of its input is what it waits for.
        drop(guard.stdin.take());
        if guard.wait().is_ok_and(|status| status.success()) {
            return Ok(());
        }
        // It was killed, or could not do it.
        let undone = self
            .mounted
            .lock()
            .and_then(|()| self.mounted.set(self.undo));
        undone.with_context(|| {
            let name = self.name.display();
            format!("{name}: {} is not in force again", self.undo)
        })
    }
}

impl Drop for Remounted {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            say!("iostep: {}", describe(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iostep_analyze::advise::mount_options;

    fn subject(is_loop: bool) -> Subject {
        Subject {
            directory: "/mnt/d".into(),
            database: None,
            filesystem: "ext4".into(),
            mount_point: "/mnt".into(),
            mount_options: "rw,discard".into(),
            is_loop,
        }
    }

    #[test]
    fn what_could_damage_a_filesystem_is_measured_on_loop_devices_only() {
        let reasons = |is_loop, wanted| -> Vec<bool> {
            let options = mount_options("ext4", "rw,discard");
            let names: Vec<&str> = options.iter().map(|option| option.option).collect();
            assert_eq!(names, ["nodiscard", "barrier=0", "data=writeback"]);
            let subject = subject(is_loop);
            let reasons = options.iter().map(|o| reason_against(o, &subject, wanted));
            reasons.map(|reason| reason.is_none()).collect()
        };
        assert_eq!(reasons(false, false), [false, false, false]);
        assert_eq!(reasons(false, true), [true, false, false]);
        assert_eq!(reasons(true, true), [true, true, false]);
        assert_eq!(reasons(true, false), [false, false, false]);
    }
}

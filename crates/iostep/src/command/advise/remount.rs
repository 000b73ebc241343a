//! Options of a mounted filesystem, set for a while.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iostep_analyze::advise::MountOption;
use iostep_load::Error;
use iostep_model::durability::Loss;

use super::subject::Subject;
use crate::terminal::say;

/// Makes sure that filesystems can be mounted.
///
/// Errors: `Unsupported` for whoever is not root.
pub fn check_rights() -> Result<(), Error> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(Error::Unsupported {
            what: "--remount: no right to mount".into(),
            hint: "run it with sudo".into(),
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

/// An option that is in force until the drop.
#[derive(Debug)]
pub struct Remounted {
    point: PathBuf,
    undo: &'static str,
}

impl Remounted {
    /// Remounts a filesystem with an option.
    ///
    /// Errors: mount(8)'s own words.
    pub fn new(point: &Path, option: &MountOption) -> Result<Remounted, String> {
        let undo = option.undo.unwrap_or("defaults");
        let remounted = Remounted {
            point: point.to_owned(),
            undo,
        };
        // What went wrong half-way is undone too.
        remount(point, option.option)?;
        Ok(remounted)
    }
}

impl Drop for Remounted {
    fn drop(&mut self) {
        if let Err(error) = remount(&self.point, self.undo) {
            let point = self.point.display();
            say!(
                "iostep: {point}: cannot take the mount option back: {error}; do it with: mount -o \
                 remount,{} {point}",
                self.undo
            );
        }
    }
}

fn remount(point: &Path, option: &str) -> Result<(), String> {
    let output = Command::new("mount")
        .arg("-o")
        .arg(format!("remount,{option}"))
        .arg(point)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("mount: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find(|line| !line.trim().is_empty());
    Err(line.map_or_else(|| output.status.to_string(), |line| line.trim().to_owned()))
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

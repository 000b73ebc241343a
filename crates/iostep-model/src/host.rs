//! The machine that something ran on.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// A kernel and the processors below it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// `uname -r`, in a guest the guest's.
    pub kernel: String,
    /// `uname -m`.
    pub machine: String,
    /// The processor's name; empty if nobody looked, as for a trace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub processor: String,
    /// CPUs that the process may use; 0 if nobody looked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpus: u32,
    /// The build of Android; `None` elsewhere, and in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub android: Option<Android>,
}

fn is_zero(cpus: &u32) -> bool {
    *cpus == 0
}

impl Host {
    /// This one, without its processor.
    pub fn running() -> Host {
        let uname = rustix::system::uname();
        Host {
            kernel: uname.release().to_string_lossy().into_owned(),
            machine: uname.machine().to_string_lossy().into_owned(),
            android: Android::read(Path::new("/")),
            ..Host::default()
        }
    }
}

/// A build of Android, by its properties. They are the same on every phone of the model with the
/// same update; what belongs to one phone, as its serial number, is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Android {
    /// `ro.product.manufacturer`.
    pub manufacturer: Option<String>,
    /// `ro.product.brand`.
    pub brand: Option<String>,
    /// `ro.product.model`, what people call it.
    pub model: Option<String>,
    /// `ro.product.device`, what its makers call it.
    pub device: Option<String>,
    /// `ro.build.version.release`: `14`.
    pub release: Option<String>,
    /// `ro.build.fingerprint`.
    pub fingerprint: Option<String>,
}

/// Android's own program; build.prop may be read by root alone there.
const GETPROP: &str = "system/bin/getprop";

impl Android {
    /// What the properties say; `None` where there are none. `root` is `/` but for tests.
    pub fn read(root: &Path) -> Option<Android> {
        let program = root.join(GETPROP);
        if !program.exists() {
            return None;
        }
        let property = |name: &str| {
            let asked = Command::new(&program)
                .arg(name)
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .output();
            let answer = asked.ok().filter(|output| output.status.success())?;
            let text = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        let found = Android {
            manufacturer: property("ro.product.manufacturer"),
            brand: property("ro.product.brand"),
            model: property("ro.product.model"),
            device: property("ro.product.device"),
            release: property("ro.build.version.release"),
            fingerprint: property("ro.build.fingerprint"),
        };
        (found != Android::default()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A root whose getprop knows a phone, by a script.
    fn root(script: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let program = root.path().join(GETPROP);
        std::fs::create_dir_all(program.parent().expect("a parent")).expect("made");
        std::fs::write(
            &program,
            format!(
                "#!/bin/sh\necho \"$1\" >> {}/asked\n{script}",
                root.path().display()
            ),
        )
        .expect("written");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("executable");
        root
    }

    #[test]
    fn a_build_is_named_and_no_phone_is() {
        let root = root(
            "case $1 in
                ro.product.manufacturer) echo ACME ;;
                ro.product.model) echo 'Phone 8 Pro' ;;
                ro.build.version.release) echo 14 ;;
                ro.build.fingerprint) echo acme/ph8/ph8:14/AP1A.240405/1:user/release-keys ;;
                ro.serialno) echo 0123 ;;
                *) echo ;;
            esac",
        );
        let some = |text: &str| Some(text.to_owned());
        let expected = Android {
            manufacturer: some("ACME"),
            brand: None,
            model: some("Phone 8 Pro"),
            device: None,
            release: some("14"),
            fingerprint: some("acme/ph8/ph8:14/AP1A.240405/1:user/release-keys"),
        };
        assert_eq!(Android::read(root.path()), Some(expected));
        let asked = std::fs::read_to_string(root.path().join("asked")).expect("read");
        let all = asked
            .lines()
            .all(|name| name.starts_with("ro.product.") || name.starts_with("ro.build."));
        assert!(all, "{asked}");
    }

    #[test]
    fn elsewhere_there_is_none() {
        let nothing = tempfile::tempdir().expect("a directory");
        assert_eq!(Android::read(nothing.path()), None);
        // Refused, as by SELinux, and a program that knows nothing.
        for script in ["echo denied; exit 1", "echo"] {
            assert_eq!(Android::read(root(script).path()), None, "{script}");
        }
    }
}

//! The guest's first root: it loads the drivers, mounts the host's root, and hands over.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::cpio::Archive;
use super::kernel::Kernel;
use super::share::{self, ROOT};
use super::{agent, busybox, modules};
use crate::error::{Error, Result};

/// What is needed to reach the host's root and the host itself.
const DRIVERS: [&str; 5] = [
    "virtio_pci",
    "virtio_console",
    "9pnet_virtio",
    "9p",
    "overlay",
];

/// The modules that a guest with these drivers of devices needs before it has a root.
pub(super) fn needed(devices: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    let devices = devices.iter().map(|(name, _)| *name);
    DRIVERS.into_iter().chain(devices).collect()
}

/// The program that calls [`agent::main`] when its argument is [`agent::COMMAND`].
pub(super) enum Init {
    /// A file that the guest's root has at the same place.
    OnRoot(PathBuf),
    /// A static one that is brought along.
    Brought(Vec<u8>),
}

/// Where a guest with a root of its own has the agent.
pub const BROUGHT: &str = "/iostep";

/// Writes the first root into a nameless file.
///
/// Errors: `Unsupported` without a static busybox; `Io`; `Program` if a module cannot be unpacked.
pub(super) fn make(
    kernel: &Kernel,
    devices: &[(&'static str, &'static str)],
    root: &Path,
    init: &Init,
) -> Result<File> {
    let busybox = busybox::find(root, kernel.architecture)?;
    let program = std::fs::read(&busybox).map_err(Error::io(&busybox, "read"))?;
    let files = kernel.modules.in_order(&needed(devices));
    let mut loaded = Vec::new();
    for (name, path) in &files {
        loaded.push((name.as_str(), modules::content(path)?));
    }
    let parameters = |name: &str| {
        let known = devices.iter().find(|(driver, _)| *driver == name);
        known.map_or("", |(_, parameters)| parameters)
    };
    let script = script(
        loaded.iter().map(|(name, _)| (*name, parameters(name))),
        init,
    );
    let directory = std::env::temp_dir();
    let write = || -> std::io::Result<File> {
        let mut archive = Archive::new(BufWriter::new(tempfile::tempfile_in(&directory)?));
        for name in ["bin", "modules", "host", "written", "root"] {
            archive.directory(name)?;
        }
        archive.file("bin/busybox", 0o755, &program)?;
        for (name, content) in &loaded {
            archive.file(&format!("modules/{name}"), 0o644, content)?;
        }
        if let Init::Brought(program) = init {
            archive.file("brought", 0o755, program)?;
        }
        archive.file("init", 0o755, &script)?;
        let mut out = archive.finish()?;
        out.flush()?;
        out.into_inner().map_err(|error| error.into_error())
    };
    write().map_err(Error::io(&directory, "write the guest's first root in"))
}

/// The host's root is the lower layer, which nothing writes to; the agent makes all but a few
/// directories read-only. The upper one is there for mount points that the host lacks.
fn script<'a>(modules: impl Iterator<Item = (&'a str, &'a str)>, init: &Init) -> Vec<u8> {
    let mut script = String::from(
        "#!/bin/busybox sh
b=/bin/busybox
# With -no-reboot, this is how a guest ends.
end() { echo \"iostep: cannot $1\"; $b reboot -f; }
",
    );
    for (name, parameters) in modules {
        script.push_str(&format!(
            "$b insmod /modules/{name} {parameters} || end 'load the module {name}'\n"
        ));
    }
    script.push_str(&format!(
        "o=ro,{options}
$b mount -t 9p -o $o {ROOT} /host || end \"mount the host's root\"
$b mount -t tmpfs -o mode=755 written /written || end 'make a tmpfs'
$b mkdir /written/upper /written/work
{bring}o=lowerdir=/host,upperdir=/written/upper,workdir=/written/work
$b mount -t overlay -o $o root /root || end 'lay a tmpfs over the root'
exec $b switch_root /root ",
        options = share::mount_options("loose"),
        bring = match init {
            Init::OnRoot(_) => String::new(),
            Init::Brought(_) => {
                format!("$b mv /brought /written/upper{BROUGHT} || end 'bring iostep along'\n")
            }
        },
    ));
    let mut script = script.into_bytes();
    script.extend(match init {
        Init::OnRoot(path) => quoted(path),
        Init::Brought(_) => BROUGHT.into(),
    });
    script.extend(format!(" {}\n", agent::COMMAND).as_bytes());
    script
}

/// One word of a shell, whatever bytes it holds.
fn quoted(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut word = vec![b'\''];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => word.extend(b"'\\''"),
            other => word.push(*other),
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_a_quoted_path_back() {
        let path = Path::new("/a b/it's \"$HOME\" `x`\\\n*");
        let mut script = b"printf %s ".to_vec();
        script.extend(quoted(path));
        let script = String::from_utf8(script).expect("text");
        let output = Command::new("sh").args(["-c", &script]).output();
        let output = output.expect("sh runs").stdout;
        assert_eq!(output, path.as_os_str().as_encoded_bytes());
    }

    #[test]
    fn a_shell_accepts_the_script() {
        let modules = [("9p", ""), ("nvme", "poll_queues=1")];
        let on_root = Init::OnRoot("/usr/bin/iostep".into());
        for (init, last) in [
            (on_root, "switch_root /root '/usr/bin/iostep' "),
            (Init::Brought(Vec::new()), "switch_root /root /iostep "),
        ] {
            let script = script(modules.into_iter(), &init);
            let text = String::from_utf8(script).expect("text");
            let insert = "insmod /modules/nvme poll_queues=1 ||";
            assert!(text.contains(insert) && text.contains(last), "{text}");
            let status = Command::new("sh").args(["-n", "-c", &text]).status();
            assert!(status.expect("sh runs").success());
        }
    }
}

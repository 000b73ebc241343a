//! The modules of a kernel, as depmod(8) lists them.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};

/// What a directory of modules, `/lib/modules/VERSION`, holds.
#[derive(Debug)]
pub(super) struct Modules {
    directory: PathBuf,
    /// By name: the file and the names of the modules that it needs.
    files: HashMap<String, (PathBuf, Vec<String>)>,
    builtin: HashSet<String>,
}

impl Modules {
    /// Errors: `Unsupported` if depmod was never run there.
    pub fn read(directory: &Path) -> Result<Modules> {
        let path = directory.join("modules.dep");
        let dependencies = std::fs::read_to_string(&path).map_err(|error| Error::Unsupported {
            what: format!("{}: cannot read: {error}", path.display()),
            hint: "make it with: depmod, of the package kmod".into(),
        })?;
        // Without this file nothing is known to be built in, so a module is missed by its name.
        let builtin = std::fs::read_to_string(directory.join("modules.builtin"));
        Ok(Modules::parse(
            directory,
            &dependencies,
            &builtin.unwrap_or_default(),
        ))
    }

    fn parse(directory: &Path, dependencies: &str, builtin: &str) -> Modules {
        let entry = |line: &str| {
            let (file, needs) = line.split_once(':')?;
            let needs = needs.split_whitespace().map(name).collect();
            Some((name(file), (PathBuf::from(file), needs)))
        };
        Modules {
            directory: directory.to_owned(),
            files: dependencies.lines().filter_map(entry).collect(),
            builtin: builtin.lines().map(name).collect(),
        }
    }

    /// The first of these modules that the kernel has neither as a file nor built in.
    pub fn missing<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        let has = |name: &str| self.files.contains_key(name) || self.builtin.contains(name);
        names.iter().copied().find(|name| !has(name))
    }

    /// The files of these modules and of all that they need, each after what it needs itself.
    /// Names that have no file are left out.
    pub fn in_order(&self, names: &[&str]) -> Vec<(String, PathBuf)> {
        let mut seen = HashSet::new();
        let mut ordered = Vec::new();
        for name in names {
            self.visit(name, &mut seen, &mut ordered);
        }
        ordered
    }

    fn visit<'a>(
        &'a self,
        name: &'a str,
        seen: &mut HashSet<&'a str>,
        ordered: &mut Vec<(String, PathBuf)>,
    ) {
        let Some((file, needs)) = self.files.get(name) else {
            return;
        };
        if !seen.insert(name) {
            return;
        }
        for needed in needs {
            self.visit(needed, seen, ordered);
        }
        ordered.push((name.to_owned(), self.directory.join(file)));
    }
}

/// `kernel/drivers/net/virtio-net.ko.xz` is the module `virtio_net`.
fn name(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or(file);
    let stem = file.split(".ko").next().unwrap_or(file);
    stem.replace('-', "_")
}

/// A module's content, uncompressed.
///
/// Errors: `Io`; `Unsupported` if the program that unpacks it is not installed; `Program`.
pub(super) fn content(file: &Path) -> Result<Vec<u8>> {
    let suffix = file.extension().and_then(|suffix| suffix.to_str());
    let (program, package) = match suffix {
        Some("xz") => ("xz", "xz-utils"),
        Some("zst") => ("zstd", "zstd"),
        Some("gz") => ("gzip", "gzip"),
        _ => return std::fs::read(file).map_err(Error::io(file, "read")),
    };
    let output = Command::new(program)
        .args(["-d", "-c"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::not_runnable(program, package, error))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(Error::Program {
        program: program.into(),
        status: output.status,
        message: String::from_utf8_lossy(&output.stderr).trim().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As depmod writes it: every line has all that a module needs, however far away.
    const DEPENDENCIES: &str = "\
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko
kernel/net/9p/9pnet.ko:
kernel/fs/netfs/netfs.ko:
kernel/net/9p/9pnet_virtio.ko: kernel/net/9p/9pnet.ko kernel/drivers/virtio/virtio.ko
kernel/drivers/virtio/virtio.ko:
kernel/drivers/mmc/host/sdhci-pci.ko.xz: kernel/drivers/mmc/host/sdhci-pci.ko.xz
";

    fn modules() -> Modules {
        let builtin = "kernel/fs/overlayfs/overlay.ko\n";
        Modules::parse(Path::new("/m"), DEPENDENCIES, builtin)
    }

    #[test]
    fn a_module_comes_once_and_after_what_it_needs() {
        let modules = modules();
        let ordered = modules.in_order(&["9pnet_virtio", "9p", "overlay"]);
        let names: Vec<&str> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["9pnet", "virtio", "9pnet_virtio", "netfs", "9p"]);
        assert_eq!(ordered[4].1, Path::new("/m/kernel/fs/9p/9p.ko"));
    }

    #[test]
    fn a_module_that_needs_itself_ends() {
        assert_eq!(modules().in_order(&["sdhci_pci"]).len(), 1);
    }

    #[test]
    fn what_is_built_in_is_not_missing() {
        let modules = modules();
        assert_eq!(modules.missing(&["overlay", "sdhci_pci"]), None);
        assert_eq!(modules.missing(&["9p", "nvme"]), Some("nvme"));
    }

    #[test]
    fn compressed_modules_are_unpacked() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.ko");
        std::fs::write(&path, "module").expect("written");
        assert_eq!(content(&path).expect("read"), b"module");
        let packed = Command::new("gzip").arg(&path).status().expect("gzip runs");
        assert!(packed.success());
        let path = directory.path().join("a.ko.gz");
        assert_eq!(content(&path).expect("unpacked"), b"module");
        std::fs::write(&path, "no gzip").expect("written");
        assert!(matches!(content(&path), Err(Error::Program { .. })));
    }
}

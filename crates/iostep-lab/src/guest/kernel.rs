//! Kernels that a guest can boot: an image and the modules that were built with it.

use std::cmp::Ordering;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::architecture::Architecture;
use super::modules::Modules;
use super::payload;
use crate::error::{Error, Result};

/// Where `scripts/setup` unpacks a distribution's kernel without installing it.
const UNPACKED: &str = "/var/cache/iostep/guest";
/// Where a root directory has the modules; Debian 13 moved them.
const MODULES: [&str; 2] = ["lib/modules", "usr/lib/modules"];

/// The header of a bzImage (Documentation/arch/x86/boot.rst of Linux).
mod header {
    pub const MAGIC_AT: u64 = 0x202;
    pub const MAGIC: [u8; 4] = *b"HdrS";
    /// A 16-bit offset, counted from `TEXT_FROM`, of a text that begins with the version.
    pub const VERSION_AT: u64 = 0x20e;
    pub const TEXT_FROM: u64 = 0x200;
    pub const LONGEST_VERSION: usize = 128;
}

/// A kernel and its modules.
#[derive(Debug)]
pub(super) struct Kernel {
    /// Open: what was looked at is what is booted.
    image: File,
    pub architecture: Architecture,
    /// As `uname -r` says it.
    pub version: String,
    /// The directory of its modules on the host.
    pub directory: PathBuf,
    pub modules: Modules,
}

impl Kernel {
    /// What QEMU boots fastest.
    ///
    /// Errors: `Io`.
    pub fn to_boot(&self) -> Result<File> {
        let unpacked = match self.architecture {
            Architecture::X86_64 => payload::unpacked(&self.image),
            Architecture::Aarch64 => None,
        };
        match unpacked {
            Some(kernel) => Ok(kernel),
            None => self
                .image
                .try_clone()
                .map_err(Error::io("the kernel's image", "open once more")),
        }
    }
}

/// The kernel `wanted`, or the best one that has the modules `needed`: the one that the host
/// runs, the newest in `/boot`, the newest of those that were unpacked. Among these the first that
/// has the modules `wished`, too, if there is one.
///
/// Errors: `Usage` if what was asked for is no kernel; `Unsupported` if there is none.
pub(super) fn find(wanted: Option<&Path>, needed: &[&str], wished: &[&str]) -> Result<Kernel> {
    let running = rustix::system::uname();
    match wanted {
        Some(image) => {
            if let Err(error) = image.metadata() {
                return Err(Error::Usage {
                    what: format!("{}: {error}", image.display()),
                    hint: "name a kernel, as /boot/vmlinuz-VERSION is".into(),
                });
            }
            open_with(image, needed)
        }
        None => best(
            &candidates(&running.release().to_string_lossy()),
            needed,
            wished,
        ),
    }
}

fn best(candidates: &[PathBuf], needed: &[&str], wished: &[&str]) -> Result<Kernel> {
    let (mut first, mut refused) = (None, None);
    for image in candidates {
        match open_with(image, needed) {
            // Its programs are this machine's.
            Ok(kernel) if kernel.architecture != Architecture::HOST => {}
            Ok(kernel) if kernel.modules.missing(wished).is_none() => return Ok(kernel),
            Ok(kernel) => first = first.or(Some(kernel)),
            Err(error) => refused = Some(error),
        }
    }
    first.ok_or_else(|| none(refused))
}

fn open_with(image: &Path, needed: &[&str]) -> Result<Kernel> {
    let kernel = open(image)?;
    match kernel.modules.missing(needed) {
        None => Ok(kernel),
        Some(module) => Err(lacks(image, &kernel.version, module)),
    }
}

fn lacks(image: &Path, version: &str, module: &str) -> Error {
    Error::Unsupported {
        what: format!(
            "{}: Linux {version} has no module {module}",
            image.display()
        ),
        hint: "choose another kernel with --kernel".into(),
    }
}

fn none(refused: Option<Error>) -> Error {
    let what = match refused {
        Some(error) => format!("no kernel for the guest: {error}"),
        None => "no kernel for the guest in /boot".into(),
    };
    Error::Unsupported {
        what,
        hint: format!(
            "name one with --kernel, or unpack Debian's below {UNPACKED} with: scripts/setup guest"
        ),
    }
}

/// Images in the order in which they are tried.
fn candidates(running: &str) -> Vec<PathBuf> {
    let mut all = images(Path::new("/boot"));
    let own = format!("vmlinuz-{running}");
    if let Some(at) = all.iter().position(|image| image.ends_with(&own)) {
        all[..=at].rotate_right(1);
    }
    all.extend(images(&Path::new(UNPACKED).join("boot")));
    all
}

/// The kernels in a directory, the newest first.
fn images(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("vmlinuz-")
        })
        .collect();
    found.sort_by(|a, b| by_version(&b.to_string_lossy(), &a.to_string_lossy()));
    found
}

/// `6.1.0-9` comes before `6.1.0-41`.
fn by_version(a: &str, b: &str) -> Ordering {
    numbers(a).cmp(&numbers(b)).then_with(|| a.cmp(b))
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

fn open(path: &Path) -> Result<Kernel> {
    let image = File::open(path).map_err(Error::io(path, "read"))?;
    let (architecture, version, image) = identify(image).ok_or_else(|| Error::Usage {
        what: format!("{}: no Linux kernel for x86-64 or aarch64", path.display()),
        hint: "a guest boots a bzImage or an Image, as /boot/vmlinuz-VERSION is".into(),
    })?;
    let directory = modules_of(path, &version).ok_or_else(|| Error::Unsupported {
        what: format!("{}: no modules of Linux {version}", path.display()),
        hint: "put them beside it as ../lib/modules/VERSION, or into /lib/modules".into(),
    })?;
    Ok(Kernel {
        image,
        architecture,
        version,
        modules: Modules::read(&directory)?,
        directory,
    })
}

/// What the image says that it is, and what is booted of it; `None` if it is none.
fn identify(image: File) -> Option<(Architecture, String, File)> {
    if let Some(version) = version(&image) {
        return Some((Architecture::X86_64, version, image));
    }
    let kernel = payload::arm64(&image)?;
    let version = banner(&kernel)?;
    Some((
        Architecture::Aarch64,
        version,
        payload::write(&kernel).ok()?,
    ))
}

/// The version in what a kernel prints first (init/version-timestamp.c of Linux): an Image for
/// arm64 has it nowhere else.
fn banner(kernel: &[u8]) -> Option<String> {
    let begin = b"Linux version ";
    let at = kernel.windows(begin.len()).position(|at| at == begin)?;
    first_word(&kernel[at + begin.len()..])
}

/// The version in the header of a bzImage.
fn version(image: &File) -> Option<String> {
    let mut magic = [0; 4];
    image.read_exact_at(&mut magic, header::MAGIC_AT).ok()?;
    let mut offset = [0; 2];
    image.read_exact_at(&mut offset, header::VERSION_AT).ok()?;
    if magic != header::MAGIC {
        return None;
    }
    let mut text = [0; header::LONGEST_VERSION];
    let at = header::TEXT_FROM + u64::from(u16::from_le_bytes(offset));
    let read = image.read_at(&mut text, at).ok()?;
    first_word(&text[..read])
}

/// A version, if it is the name of a file.
fn first_word(text: &[u8]) -> Option<String> {
    let text = &text[..text.len().min(header::LONGEST_VERSION)];
    let version = text.split(|b| *b == b' ' || *b == 0).next()?;
    let version = std::str::from_utf8(version).ok()?;
    // It becomes part of a path.
    let is_name = !version.is_empty() && !version.contains('/') && !version.starts_with('.');
    is_name.then(|| version.to_owned())
}

/// Beside the image, as packages have them, or the host's own.
fn modules_of(image: &Path, version: &str) -> Option<PathBuf> {
    let root = image
        .canonicalize()
        .ok()?
        .parent()?
        .parent()
        .map(Path::to_owned);
    let roots = root.into_iter().chain([PathBuf::from("/")]);
    roots
        .flat_map(|root| MODULES.map(|below| root.join(below).join(version)))
        .find(|directory| directory.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of a bzImage of this version.
    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        bytes[0x300..][..version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    fn version_of(bytes: &[u8]) -> Option<String> {
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(bytes, 0).expect("written");
        version(&file)
    }

    #[test]
    fn an_image_says_its_version() {
        let text = "6.1.0-41-amd64 (builder@example) #1 SMP";
        assert_eq!(version_of(&image(text)).as_deref(), Some("6.1.0-41-amd64"));
    }

    #[test]
    fn what_is_no_image_or_names_another_directory_is_refused() {
        assert_eq!(version_of(b"\x7fELF"), None);
        assert_eq!(version_of(&vec![0; 4096]), None);
        assert_eq!(version_of(&image("../../etc")), None);
        assert_eq!(version_of(&image("")), None);
        let mut beyond = image("6.1.0");
        beyond[0x20e..0x210].copy_from_slice(&0xfff0u16.to_le_bytes());
        assert_eq!(version_of(&beyond), None);
    }

    #[test]
    fn the_newest_comes_first_and_numbers_count_as_numbers() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in [
            "vmlinuz-6.1.0-9",
            "vmlinuz-6.1.0-41",
            "initrd.img-7.0",
            "vmlinuz-5.10.0",
        ] {
            std::fs::write(directory.path().join(name), "").expect("written");
        }
        let names: Vec<_> = images(directory.path())
            .iter()
            .map(|path| path.file_name().expect("a name").to_owned())
            .collect();
        assert_eq!(
            names,
            ["vmlinuz-6.1.0-41", "vmlinuz-6.1.0-9", "vmlinuz-5.10.0"]
        );
    }

    /// A kernel below `root`, whose modules are listed if there are any.
    fn install(root: &Path, version: &str, modules: &[&str]) -> PathBuf {
        let boot = root.join("boot");
        let directory = root.join("usr/lib/modules").join(version);
        for directory in [&boot, &directory] {
            std::fs::create_dir_all(directory).expect("made");
        }
        let path = boot.join(format!("vmlinuz-{version}"));
        std::fs::write(&path, image(version)).expect("written");
        if !modules.is_empty() {
            let lines: String = modules
                .iter()
                .map(|name| format!("a/{name}.ko:\n"))
                .collect();
            std::fs::write(directory.join("modules.dep"), lines).expect("written");
        }
        path
    }

    #[test]
    fn modules_lie_beside_the_image() {
        let root = tempfile::tempdir().expect("a directory");
        let path = install(root.path(), "6.1.0-test", &[]);
        let error = find(Some(&path), &[], &[]).expect_err("depmod did not run");
        assert!(error.to_string().contains("depmod"), "{error}");
        install(root.path(), "6.1.0-test", &["9p"]);
        let kernel = find(Some(&path), &["9p"], &["xfs"]).expect("found");
        assert_eq!(kernel.version, "6.1.0-test");
        let error = find(Some(&path), &["9p", "overlay"], &[]).expect_err("no overlay");
        assert!(error.to_string().contains("no module overlay"), "{error}");
    }

    #[test]
    fn a_kernel_with_every_filesystem_comes_before_one_that_merely_boots() {
        let root = tempfile::tempdir().expect("a directory");
        let unusable = install(root.path(), "6.3.0", &["f2fs"]);
        let cloud = install(root.path(), "6.2.0-cloud", &["9p"]);
        let whole = install(root.path(), "6.1.0", &["9p", "f2fs"]);
        let all = [unusable, cloud, whole];
        let found = |candidates: &[PathBuf], needed: &[&str]| {
            best(candidates, needed, &["f2fs"]).map(|kernel| kernel.version)
        };
        assert_eq!(found(&all, &["9p"]).expect("found"), "6.1.0");
        assert_eq!(found(&all[..2], &["9p"]).expect("found"), "6.2.0-cloud");
        let error = found(&all[..2], &["9p", "f2fs"]).expect_err("neither has both");
        assert!(error.to_string().contains("no module f2fs"), "{error}");
        assert!(found(&[], &[]).is_err());
    }
}

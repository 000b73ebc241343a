//! A cell's storage: filesystem, mount, and the external journal, made and taken down again.

use std::path::Path;

use iostep_model::lab::{Filesystem, Storage, Tool};

use crate::disk::{Disk, GivenDevice};
use crate::error::Result;
use crate::free_space;
use crate::image::{LoopImage, Options};
use crate::mkfs::{self, Kind, make_journal, tool};
use crate::mount::Mount;

/// Length of a journal of its own: more than ext4 and xfs ask for, and nothing that fills up.
pub const JOURNAL_BYTES: u64 = 128 << 20;

/// Where the devices of a filesystem come from.
#[derive(Clone, Copy, Debug)]
pub enum DeviceSource<'a> {
    /// Loop devices over files in this directory.
    Images(&'a Path),
    /// Devices that were given: the filesystem's, and the journal's if there is one.
    Devices(&'a Path, Option<&'a Path>),
}

/// A mounted filesystem of a cell. The drop unmounts it and takes its devices down.
#[derive(Debug)]
pub struct Mounted {
    // In the order of the drop.
    mount: Mount,
    _disk: AnyDisk,
    journal: Option<AnyDisk>,
    commands: Vec<String>,
    tools: Vec<Tool>,
}

/// A device of either kind.
#[derive(Debug)]
enum AnyDisk {
    Image(LoopImage),
    Given(GivenDevice),
}

impl Disk for AnyDisk {
    fn device(&self) -> &Path {
        match self {
            AnyDisk::Image(image) => image.device(),
            AnyDisk::Given(given) => given.device(),
        }
    }

    fn check_may_be_destroyed(&self) -> Result<()> {
        match self {
            AnyDisk::Image(image) => image.check_may_be_destroyed(),
            AnyDisk::Given(given) => given.check_may_be_destroyed(),
        }
    }
}

impl AnyDisk {
    fn image(directory: &Path, bytes: u64, filled: bool) -> Result<AnyDisk> {
        let options = Options {
            bytes,
            directory: Some(directory.to_owned()),
            ..Options::default()
        };
        let image = LoopImage::create(&options)?;
        if filled {
            image.fill()?;
        }
        Ok(AnyDisk::Image(image))
    }

    fn given(path: &Path, bytes: u64) -> Result<AnyDisk> {
        let device = GivenDevice::take(path)?;
        device.check_holds(bytes)?;
        Ok(AnyDisk::Given(device))
    }
}

impl Mounted {
    /// Makes and mounts what `storage` says. Images are `filled` where times are compared that a
    /// filesystem below would otherwise lengthen with each block that is written for the first time.
    ///
    /// Errors: those of the devices, and `Unsupported` without room for images, before anything is
    /// written; those of [`mkfs::mkfs`] and [`Mount::new`].
    pub fn make(storage: &Storage, source: DeviceSource<'_>, filled: bool) -> Result<Mounted> {
        let (disk, journal) = disks(storage, source, filled)?;
        let mut recipe = Recipe::of(storage, journal.as_ref().map(Disk::device));
        let kind = recipe.kind;
        if filled {
            let own = storage.mkfs_options.len();
            let first = recipe.mkfs.len() - own;
            let kept = tool(kind).no_discard.iter().map(|word| (*word).to_owned());
            recipe.mkfs.splice(first..first, kept);
        }
        let mut commands = Vec::new();
        if let (Kind::Ext4, Some(journal)) = (kind, &journal) {
            make_journal(journal)?;
            commands.push(mkfs::journal_command_line(journal.device()));
        }
        mkfs::mkfs(kind, &disk, &recipe.mkfs)?;
        commands.push(mkfs::command_line(kind, disk.device(), &recipe.mkfs));
        let mount = Mount::new(kind, &disk, &recipe.mount)?;
        commands.push(mount_line(&recipe, disk.device()));
        let version = mkfs::version(kind);
        let tool = version.map(|version| Tool {
            name: tool(kind).program.into(),
            version,
        });
        Ok(Mounted {
            mount,
            _disk: disk,
            journal,
            commands,
            tools: tool.into_iter().collect(),
        })
    }

    /// The root of the filesystem.
    pub fn root(&self) -> &Path {
        self.mount.path()
    }

    /// The device of the journal, if it has its own.
    pub fn journal(&self) -> Option<&Path> {
        self.journal.as_ref().map(Disk::device)
    }

    /// How it was made, as lines for a shell.
    pub fn commands(&self) -> &[String] {
        &self.commands
    }

    /// The programs that made it.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// Writes everything that waits to be written.
    ///
    /// Errors: `Io`.
    pub fn settle(&self) -> Result<()> {
        self.mount.settle()
    }
}

fn disks(
    storage: &Storage,
    source: DeviceSource<'_>,
    filled: bool,
) -> Result<(AnyDisk, Option<AnyDisk>)> {
    let wants_journal = storage.external_journal;
    Ok(match source {
        DeviceSource::Images(directory) => {
            let journal_bytes = wants_journal.then_some(JOURNAL_BYTES);
            let more = journal_bytes.unwrap_or(0);
            free_space::check(directory, storage.device_bytes.saturating_add(more))?;
            (
                AnyDisk::image(directory, storage.device_bytes, filled)?,
                journal_bytes
                    .map(|bytes| AnyDisk::image(directory, bytes, filled))
                    .transpose()?,
            )
        }
        DeviceSource::Devices(device, journal) => (
            AnyDisk::given(device, storage.device_bytes)?,
            match journal.filter(|_| wants_journal) {
                Some(journal) => Some(AnyDisk::given(journal, JOURNAL_BYTES)?),
                None => None,
            },
        ),
    })
}

fn mount_line(recipe: &Recipe, device: &Path) -> String {
    let options = match recipe.mount.as_str() {
        "" => String::new(),
        options => format!(" -o {options}"),
    };
    let kind = recipe.kind.name();
    format!("mount -t {kind}{options} {} DIR", device.display())
}

/// What mkfs and mount are told.
struct Recipe {
    kind: Kind,
    mkfs: Vec<String>,
    mount: String,
}

impl Recipe {
    fn of(storage: &Storage, journal: Option<&Path>) -> Recipe {
        let kind = storage.filesystem.kind();
        let journal = journal.map(|path| path.display().to_string());
        let mut mkfs = first_options(storage.filesystem);
        let mut mount = own_mount_options(storage.filesystem).to_owned();
        match (kind, journal) {
            (Kind::Ext4, Some(journal)) => mkfs.extend(["-J".into(), format!("device={journal}")]),
            (Kind::Xfs, Some(journal)) => {
                mkfs.extend(["-l".into(), format!("logdev={journal}")]);
                add(&mut mount, &format!("logdev={journal}"));
            }
            _ => {}
        }
        mkfs.extend(storage.mkfs_options.iter().cloned());
        add(&mut mount, &storage.mount_options);
        Recipe { kind, mkfs, mount }
    }
}

fn add(options: &mut String, further: &str) {
    if !options.is_empty() && !further.is_empty() {
        options.push(',');
    }
    options.push_str(further);
}

/// Blocks of 4 KiB, which mkfs.ext4 does not choose for a small device, and nothing that the
/// kernel finishes later.
fn first_options(filesystem: Filesystem) -> Vec<String> {
    let features = match filesystem {
        Filesystem::Ext4FastCommit => Some("fast_commit"),
        Filesystem::Ext4NoJournal => Some("^has_journal"),
        _ => None,
    };
    let kind = filesystem.kind();
    let mut options: Vec<&str> = match kind {
        Kind::Ext4 => vec!["-b", "4096"],
        _ => Vec::new(),
    };
    options.extend(tool(kind).at_once);
    options.extend(features.iter().flat_map(|features| ["-O", features]));
    options.into_iter().map(str::to_owned).collect()
}

fn own_mount_options(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Filesystem::Ext4Writeback => "data=writeback",
        Filesystem::Ext4DataJournal => "data=journal",
        _ => "",
    }
}

/// The filesystem of the papers' names that a mount is, if it is one of them: its kernel's name
/// and its options as /proc/self/mountinfo has them.
pub fn filesystem_of(kernel_name: &str, options: &str) -> Option<Filesystem> {
    let has = |option: &str| options.split(',').any(|found| found == option);
    Some(match kernel_name {
        "ext4" if has("data=writeback") => Filesystem::Ext4Writeback,
        "ext4" if has("data=journal") => Filesystem::Ext4DataJournal,
        other => *Filesystem::ALL.iter().find(|f| f.kind().name() == other)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(filesystem: Filesystem) -> Storage {
        Storage {
            filesystem,
            external_journal: false,
            mkfs_options: vec!["-X".into()],
            mount_options: "noatime".into(),
            device_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_journal_elsewhere_is_told_to_ext4_by_mkfs_and_to_xfs_by_mount_too() {
        let journal = Path::new("/dev/j");
        let ext4 = Recipe::of(&storage(Filesystem::Ext4), Some(journal));
        assert!(ext4.mkfs.join(" ").ends_with("-J device=/dev/j -X"));
        assert_eq!(ext4.mount, "noatime");
        let xfs = Recipe::of(&storage(Filesystem::Xfs), Some(journal));
        assert_eq!(xfs.mkfs, ["-l", "logdev=/dev/j", "-X"]);
        assert_eq!(xfs.mount, "logdev=/dev/j,noatime");
    }

    #[test]
    fn a_mode_of_ext4_is_a_feature_or_a_mount_option() {
        for (filesystem, mkfs, mount) in [
            (Filesystem::Ext4FastCommit, "-O fast_commit -X", "noatime"),
            (Filesystem::Ext4NoJournal, "-O ^has_journal -X", "noatime"),
            (Filesystem::Ext4Writeback, "-X", "data=writeback,noatime"),
            (Filesystem::Ext4DataJournal, "-X", "data=journal,noatime"),
        ] {
            let recipe = Recipe::of(&storage(filesystem), None);
            assert!(recipe.mkfs.join(" ").ends_with(mkfs), "{filesystem}");
            assert_eq!(recipe.mount, mount);
        }
    }

    #[test]
    fn a_mount_is_recognised_by_its_kind_and_options() {
        let of = |kind, options| filesystem_of(kind, options).map(Filesystem::name);
        assert_eq!(of("ext4", "rw,relatime"), Some("ext4"));
        assert_eq!(of("ext4", "rw,data=journal"), Some("ext4-data-journal"));
        assert_eq!(of("vfat", "rw"), Some("fat32"));
        assert_eq!(of("zfs", "rw"), None);
    }
}

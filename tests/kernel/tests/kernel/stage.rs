//! A filesystem of our own, a workload on it, and the image that remains.

use std::path::Path;
use std::process::Command;

use iostep_kernel_tests::facts::Facts;
use iostep_kernel_tests::image::Image;
use iostep_kernel_tests::requirement::Requirement;
use iostep_kernel_tests::stack::{Below, Places, Stack};
use iostep_lab::image::{LoopImage, Options};
use iostep_lab::{Disk, Kind, Mount};
use tempfile::TempDir;

/// Large enough for each filesystem's own rules, small enough to scan in a second.
const IMAGE_BYTES: u64 = 512 << 20;
/// The same where an emulated processor has to decrypt it.
const ENCRYPTED_BYTES: u64 = 192 << 20;

/// What every test with a filesystem needs.
pub fn requirements(kind: Kind) -> Vec<Requirement> {
    let mut all = vec![Requirement::Root, Requirement::Loop];
    all.push(Requirement::Filesystem(kind.name()));
    all.extend(match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => ["mkfs.ext4", "debugfs", "dumpe2fs"]
            .map(Requirement::Program)
            .to_vec(),
        Kind::Xfs => ["mkfs.xfs", "xfs_db"].map(Requirement::Program).to_vec(),
        Kind::Btrfs => ["mkfs.btrfs", "btrfs"].map(Requirement::Program).to_vec(),
        Kind::F2fs => ["mkfs.f2fs", "dump.f2fs"]
            .map(Requirement::Program)
            .to_vec(),
        Kind::Nilfs2 => ["mkfs.nilfs2", "dumpseg"]
            .map(Requirement::Program)
            .to_vec(),
        Kind::Fat => ["mkfs.fat", "fsck.fat", "mdir"]
            .map(Requirement::Program)
            .to_vec(),
    });
    all
}

/// A mounted filesystem on a loop device, or on a device made of some.
pub struct Stage {
    /// Before what it lies on: fields are dropped in order.
    mount: Mount,
    stack: Stack,
    images: Vec<LoopImage>,
    facts: TempDir,
}

impl Stage {
    /// Makes and mounts a filesystem, with nothing left to be written.
    pub fn new(kind: Kind, mkfs: &[&str], options: &str) -> anyhow::Result<Stage> {
        Stage::on(Below::Nothing, kind, mkfs, options)
    }

    /// The same with devices between the filesystem and its disks.
    pub fn on(below: Below, kind: Kind, mkfs: &[&str], options: &str) -> anyhow::Result<Stage> {
        let image = || {
            LoopImage::create(&Options {
                bytes: match (below, kind) {
                    // The least that mkfs.xfs takes, or that FAT32 has clusters of 4 KiB on,
                    // and room for LUKS's header.
                    (Below::Luks | Below::LvmOnLuks, Kind::Xfs | Kind::Fat | Kind::F2fs) => {
                        336 << 20
                    }
                    (Below::Luks | Below::LvmOnLuks, _) => ENCRYPTED_BYTES,
                    _ => IMAGE_BYTES,
                },
                ..Options::default()
            })
        };
        let images: Result<Vec<LoopImage>, _> = (0..below.disks()).map(|_| image()).collect();
        let images = images?;
        let stack = Stack::new(below, &images)?;
        // The blocks that the workload writes have 4 KiB, also on a small device.
        let blocks: &[&str] = match kind {
            Kind::Ext4 => &["-b", "4096"],
            _ => &[],
        };
        iostep_lab::mkfs(
            kind,
            &stack,
            &[iostep_lab::tool(kind).at_once, blocks, mkfs].concat(),
        )?;
        let mount = Mount::new(kind, &stack, options)?;
        let stage = Stage {
            mount,
            stack,
            images,
            facts: tempfile::tempdir()?,
        };
        stage.settle()?;
        Ok(stage)
    }

    /// The device that the filesystem lies on.
    pub fn device(&self) -> &Path {
        self.stack.device()
    }

    /// The loop devices.
    pub fn disks(&self) -> impl Iterator<Item = &Path> {
        self.images.iter().map(LoopImage::device)
    }

    /// Where the loop devices' sectors lie on the device.
    pub fn places(&self) -> anyhow::Result<Places> {
        self.stack.places()
    }

    /// The mount point.
    pub fn root(&self) -> &Path {
        self.mount.path()
    }

    /// Where processes of the workload leave their facts.
    pub fn facts_dir(&self) -> &Path {
        self.facts.path()
    }

    /// Writes everything to the device.
    pub fn settle(&self) -> anyhow::Result<()> {
        let root = std::fs::File::open(self.root())?;
        Ok(rustix::fs::syncfs(&root)?)
    }

    /// The command line that runs these modes of the workload here; all modes for none.
    pub fn workload(&self, modes: &[&str]) -> Vec<String> {
        let mut words = vec![env!("CARGO_BIN_EXE_workload").to_owned(), "run".to_owned()];
        for path in [self.root(), self.facts_dir()] {
            words.push(path.to_string_lossy().into_owned());
        }
        words.extend(modes.iter().map(|m| (*m).to_owned()));
        words
    }

    /// The command line that traces this filesystem into `output` while `command` runs.
    pub fn trace(&self, output: &Path, flags: &[&str], command: &[String]) -> Vec<String> {
        let mut words = vec![
            "trace".to_owned(),
            self.root().to_string_lossy().into_owned(),
        ];
        words.extend(["-o".to_owned(), output.to_string_lossy().into_owned()]);
        words.extend(flags.iter().map(|f| (*f).to_owned()));
        words.push("--".to_owned());
        words.extend_from_slice(command);
        words
    }

    /// Unmounts and hands out what remains.
    pub fn unmount(self) -> anyhow::Result<Remains> {
        let facts = Facts::read(self.facts_dir())?;
        self.mount.unmount()?;
        // Pages that the device's own cache has had since mkfs would hide what came later.
        let status = Command::new("blockdev")
            .arg("--flushbufs")
            .arg(self.stack.device())
            .status()?;
        anyhow::ensure!(status.success(), "blockdev --flushbufs: {status}");
        Ok(Remains {
            image: Image::open(self.stack.device())?,
            facts,
            _stack: self.stack,
            _disks: self.images,
        })
    }
}

/// An unmounted filesystem and what was done to it.
pub struct Remains {
    /// What lies on the device.
    pub image: Image,
    /// What the workload said.
    pub facts: Facts,
    _stack: Stack,
    _disks: Vec<LoopImage>,
}

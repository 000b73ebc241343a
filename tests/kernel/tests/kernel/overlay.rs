//! Files of an overlayfs, as in containers: they lie in its layers, with numbers that those do not
//! know.

use std::path::{Path, PathBuf};

use iostep_kernel_tests::requirement::Requirement;

use crate::bad_input::TempMount;

/// What a mount of it needs.
pub const NEEDS: [Requirement; 2] = [Requirement::Root, Requirement::Filesystem("overlay")];

fn mount(lower: &Path, upper: &Path, work: &Path, numbered: &str) -> anyhow::Result<TempMount> {
    let [lower, upper, work] = [lower, upper, work].map(Path::display);
    let options = format!("lowerdir={lower},upperdir={upper},workdir={work},xino={numbered}");
    TempMount::new("overlay", &options)
}

/// Where the numbers of its files come from, which stat(2) shows: see "Inode properties" in
/// Documentation/filesystems/overlayfs.rst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// Both layers on one filesystem: files have its numbers.
    OfOneFilesystem,
    /// A filesystem each: a file has its layer's number, and that of a device for this layer.
    OfTwo,
    /// The same, with a bit of the number for the layer.
    OfTwoNumbered,
}

pub const ALL_LAYERS: [Layers; 3] = [
    Layers::OfOneFilesystem,
    Layers::OfTwo,
    Layers::OfTwoNumbered,
];

/// An overlayfs on tmpfs.
pub struct Overlay {
    /// Before what it lies on: fields are dropped in order.
    overlay: TempMount,
    _below: [TempMount; 2],
}

impl Overlay {
    /// Mounts it; `fill` makes what is in the layers, given as lower and upper.
    pub fn new(
        layers: Layers,
        fill: impl FnOnce(&Path, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Overlay> {
        let below = [TempMount::new("tmpfs", "")?, TempMount::new("tmpfs", "")?];
        let other = match layers {
            Layers::OfOneFilesystem => 0,
            Layers::OfTwo | Layers::OfTwoNumbered => 1,
        };
        let numbered = match layers {
            Layers::OfTwoNumbered => "on",
            Layers::OfOneFilesystem | Layers::OfTwo => "off",
        };
        let lower = below[0].path().join("lower");
        let upper = below[other].path().join("upper");
        let work = below[other].path().join("work");
        for layer in [&lower, &upper, &work] {
            std::fs::create_dir(layer)?;
        }
        fill(&lower, &upper)?;
        Ok(Overlay {
            overlay: mount(&lower, &upper, &work, numbered)?,
            _below: below,
        })
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.overlay.path().join(name)
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        self.overlay.path()
    }
}

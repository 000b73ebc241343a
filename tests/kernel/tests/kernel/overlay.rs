//! Files of an overlayfs, as in containers: they lie in its layers, with numbers that those do not
//! know.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_lab::Kind;
use iostep_model::{SyncKind, store};

use crate::bad_input::TempMount;
use crate::case::Case;
use crate::stage::{self, Stage};

/// What a mount of it needs.
pub const NEEDS: [Requirement; 2] = [Requirement::Root, Requirement::Filesystem("overlay")];

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let mut needs = stage::requirements(Kind::Ext4);
    needs.extend(NEEDS);
    needs.extend([Requirement::Btf, Requirement::Tracefs]);
    let case = Case::new("files of an overlay are those of its layers", needs, traced);
    vec![case.about("overlay")]
}

/// The upper layer's filesystem is traced while a program writes to the overlay.
fn traced() -> anyhow::Result<()> {
    let stage = Stage::new(Kind::Ext4, &[], "")?;
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| stage.root().join(name));
    for layer in [&lower, &upper, &work] {
        std::fs::create_dir(layer)?;
    }
    std::fs::write(lower.join("old"), "of the lower layer")?;
    let overlay = mount(&lower, &upper, &work, "off")?;
    let directory = tempfile::tempdir()?;
    let output = directory.path().join("run.iostep");
    let dd = "dd status=none if=/dev/zero bs=4k count=3";
    let script = format!(
        "cd {} && {dd} of=new conv=fsync && {dd} of=old conv=notrunc,fdatasync && sync -f old",
        overlay.path().display()
    );
    let command = ["sh", "-c", &script].map(str::to_owned);
    iostep::run(stage.trace(&output, &[], &command))?.success()?;
    let trace = store::read(&output)?;
    let synced = |kind: SyncKind| {
        let mut all = trace.syncs.iter().filter(move |sync| sync.kind == kind);
        let one = all.next().filter(|_| all.next().is_none());
        one.with_context(|| format!("not one {}: {:?}", kind.name(), trace.syncs))
    };
    for (kind, path) in [
        (SyncKind::Fsync, Some("/upper/new")),
        (SyncKind::Fdatasync, Some("/upper/old")),
        (SyncKind::Syncfs, None),
    ] {
        let sync = synced(kind)?;
        ensure!(sync.result.is_none_or(|result| result == 0), "{sync:?}");
        let file = sync.file.map(|row| &trace.files[row as usize]);
        let found = file.and_then(|file| file.path.as_deref());
        ensure!(found == path, "{}: {found:?}", kind.name());
    }
    Ok(())
}

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
    OneFilesystem,
    /// A filesystem each: a file has its layer's number, and that of a device for this layer.
    Two,
    /// The same, with a bit of the number for the layer.
    Numbered,
}

pub const ALL_LAYERS: [Layers; 3] = [Layers::OneFilesystem, Layers::Two, Layers::Numbered];

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
            Layers::OneFilesystem => 0,
            Layers::Two | Layers::Numbered => 1,
        };
        let numbered = match layers {
            Layers::Numbered => "on",
            Layers::OneFilesystem | Layers::Two => "off",
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

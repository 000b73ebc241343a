//! The places of a trace that a filesystem may lie on, where there are several.

use serde::{Deserialize, Serialize};

use super::{Filesystem, Holds, Manifest};
use crate::filesystem::Kind;

/// A partition of a traced disk, or a device made of others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// Name below /dev, `nvme0n1p2`; of an import the image's, and the partition's number.
    pub name: String,
    /// What people call it, where that is not its name below /dev: `vg-root`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The device that it is a part of, or is: index into [`Manifest::devices`]; 0 where there is
    /// only one.
    pub device: u8,
    /// First sector there.
    pub start_sector: u64,
    /// Length in sectors.
    pub sectors: u64,
    /// What lies on it: never other devices.
    pub holds: Holds,
    /// Where the rest of its filesystem is, which begins elsewhere: index into
    /// [`Manifest::volumes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<u16>,
    /// The filesystem that begins on it; `None` for swap and the like, and for what is not known.
    pub filesystem: Option<Filesystem>,
}

impl Volume {
    /// What people call it.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

impl Manifest {
    /// The filesystem of a row's `volume`: the only one where there are no volumes.
    pub fn filesystem_of(&self, volume: Option<u16>) -> Option<&Filesystem> {
        match volume {
            None if self.volumes.is_empty() => self.filesystem.as_ref(),
            None => None,
            Some(volume) => self.volumes.get(usize::from(volume))?.filesystem.as_ref(),
        }
    }

    /// The first sector of the filesystem of a row's `volume`.
    pub fn start_sector_of(&self, volume: Option<u16>) -> u64 {
        let volume = volume.and_then(|volume| self.volumes.get(usize::from(volume)));
        volume.map_or(self.filesystem_start_sector(), |volume| volume.start_sector)
    }

    /// What people call a row's `volume`; nothing where a trace has one filesystem, and for what is in
    /// none of several.
    pub fn volume_title(&self, volume: Option<u16>) -> &str {
        let volume = volume.and_then(|volume| self.volumes.get(usize::from(volume)));
        volume.map_or("", Volume::title)
    }

    /// Every filesystem of the trace, with the name of what it begins on where there are several.
    pub fn filesystems(&self) -> impl Iterator<Item = (Option<&Volume>, &Filesystem)> {
        let only = self.filesystem.iter().map(|filesystem| (None, filesystem));
        let several = self
            .volumes
            .iter()
            .filter_map(|volume| Some((Some(volume), volume.filesystem.as_ref()?)));
        only.chain(several)
    }

    /// A file's path as users have it, from its path below the root of its filesystem.
    ///
    /// Where there are several filesystems, the path on one that is not mounted begins with the
    /// name of what it lies on.
    pub fn user_path(&self, volume: Option<u16>, path: &str) -> String {
        let Some(filesystem) = self.filesystem_of(volume) else {
            return path.to_owned();
        };
        let known = volume.and_then(|volume| self.volumes.get(usize::from(volume)));
        match known {
            Some(volume) if filesystem.mounts.is_empty() => format!("{}:{path}", volume.title()),
            _ => filesystem.user_path(path),
        }
    }
}

impl Filesystem {
    /// Which one it is; `None` for one that is not known here.
    pub fn known_kind(&self) -> Option<Kind> {
        Kind::of_mount(&self.kind)
    }
}

//! What a machine allows, as `iostep doctor` found it.

use iostep_model::disk::Disk;
use iostep_model::host::Host;
use serde::Serialize;

/// The whole of it.
#[derive(Clone, Debug, Serialize)]
pub struct Checkup {
    /// The version of these fields.
    pub schema_version: u32,
    /// The release of iostep, and the commit if that is known.
    pub iostep: String,
    pub host: Host,
    /// The user ID that iostep runs with.
    pub user: u32,
    /// What iostep can do here, in the order of its use.
    pub abilities: Vec<Ability>,
    pub filesystems: Vec<Made>,
    pub mounts: Vec<Seen>,
    pub disks: Vec<Disk>,
}

/// Of [`Checkup::schema_version`].
pub const SCHEMA_VERSION: u32 = 1;

/// Something that iostep can do, or cannot.
#[derive(Clone, Debug, Serialize)]
pub struct Ability {
    /// The commands.
    pub what: &'static str,
    pub works: bool,
    /// Why not, with the way on; or what is to be known of it.
    pub note: Option<String>,
}

/// A filesystem that a lab makes.
#[derive(Clone, Debug, Serialize)]
pub struct Made {
    pub name: &'static str,
    /// The running kernel can mount it.
    pub mounts: bool,
    /// What the program says that makes it.
    pub mkfs: Option<String>,
    /// Why there is none, with the way on.
    pub mkfs_missing: Option<String>,
}

/// A filesystem that is mounted.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    pub point: String,
    /// As the kernel calls it.
    pub kind: String,
    pub source: String,
    /// iostep knows the filesystem's own blocks, its log and their causes.
    pub is_known: bool,
}

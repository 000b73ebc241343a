//! What the files of a lake say of themselves.

/// The version of the format. A lake of a newer one is refused.
pub const VERSION: u32 = 1;

/// The key of the table's name in a file's metadata.
pub(crate) const TABLE_KEY: &str = "iostep.table";
/// The key of [`VERSION`].
pub(crate) const VERSION_KEY: &str = "iostep.lake_version";

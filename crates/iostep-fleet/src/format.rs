//! What the files of a lake say of themselves.

use iostep_model::columnar::Label;

use crate::table::Table;

/// The version of the format. A lake of a newer one is refused.
pub const VERSION: u32 = 1;

/// What has [`VERSION`], as a refusal calls it.
pub(crate) const VERSIONED: &str = "a lake of version";

pub(crate) fn label(table: Table) -> Label {
    Label {
        table: table.name(),
        version_key: "iostep.lake_version",
        version: VERSION,
        versioned: VERSIONED,
    }
}

//! The labs that iostep brings along, and the recordings that they replay.

use std::path::Path;

use iostep_model::lab::Analysis;

use crate::plan;

/// A lab that is built in.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// As in `iostep lab run NAME`.
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! labs {
    ($($name:literal,)*) => {
        /// Every one, in the order of `iostep lab list`.
        pub const LABS: &[Builtin] = &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../labs/", $name, ".toml")),
        },)*];
    };
}

labs!(
    "table1",
    "fsync-patterns",
    "matrix",
    "combined",
    "polling",
    "waldio",
    "waldio-peers",
    "replay",
);

/// The lab with this name.
pub fn find(name: &str) -> Option<Builtin> {
    LABS.iter().copied().find(|lab| lab.name == name)
}

/// What the lab with this name shows; nothing if it is not built in.
pub fn analysis(name: &str) -> Analysis {
    let lab = find(name).map(|lab| plan::parse(Path::new(name), lab.text, &|_, _| Ok(())));
    lab.and_then(Result::ok)
        .map_or_else(Analysis::default, |lab| lab.analysis)
}

/// A recording that is built in.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// As in `builtin:NAME`.
    pub name: &'static str,
    /// Its file, compressed with zstd (docs/format-syscalls.md).
    pub content: &'static [u8],
}

/// Every one. labs/recordings/record says how they were made.
pub const RECORDINGS: &[Recording] = &[Recording {
    name: "timeline",
    content: include_bytes!("../labs/recordings/timeline.trace.zst"),
}];

/// What stands before the name of a recording that is no file.
const BUILTIN: &str = "builtin:";

/// The name of a built-in recording in `recording = "builtin:NAME"`; `None` for a file's path.
pub(crate) fn recording_name(value: &str) -> Option<&str> {
    value.strip_prefix(BUILTIN)
}

/// The recording with this name.
pub(crate) fn recording(name: &str) -> Option<Recording> {
    let mut recordings = RECORDINGS.iter().copied();
    recordings.find(|recording| recording.name == name)
}

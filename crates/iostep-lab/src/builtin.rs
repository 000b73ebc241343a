//! The labs that iostep brings along.

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

//! The labs that iostep brings along.

/// A lab that is built in.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// As in `iostep lab run NAME`.
    pub name: &'static str,
    /// Its file.
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
);

/// The lab with this name.
pub fn find(name: &str) -> Option<Builtin> {
    LABS.iter().copied().find(|lab| lab.name == name)
}

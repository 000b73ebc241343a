//! What whoever adds a trace or a result says of it.

/// What a trace and a result do not say of themselves, and what of them is kept.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which device it is, in whatever words; the lake has only what stands for them.
    pub device: Option<String>,
    /// Instead of Android's model, or where there is none.
    pub model: Option<String>,
    /// Instead of Android's release, or where there is none.
    pub release: Option<String>,
    /// How full the filesystem was, percent.
    pub fill_percent: Option<u8>,
    /// Keep paths and command lines as they are.
    pub keep_paths: bool,
}

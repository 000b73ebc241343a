//! Which iostep this is.

use std::sync::OnceLock;

/// The release.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// The commit that a release build is made from; a `+` behind it tells of changes.
pub const COMMIT: Option<&str> = option_env!("IOSTEP_COMMIT");

/// What `--version` says: the source, how it is linked, and the version of each format that it
/// writes. Those that it reads are older, too.
pub fn long() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let linked = match (
            cfg!(target_feature = "crt-static"),
            cfg!(target_env = "musl"),
        ) {
            (true, true) => "one static file with musl",
            (true, false) => "one static file",
            (false, _) => "with the system's libraries",
        };
        let formats = [
            ("traces", iostep_model::manifest::SCHEMA_VERSION),
            ("results of bench", iostep_model::bench::SCHEMA_VERSION),
            ("of lab", iostep_model::lab::SCHEMA_VERSION),
            ("of replay", iostep_analyze::replay::SCHEMA_VERSION),
            ("of advise", iostep_analyze::advise::SCHEMA_VERSION),
        ]
        .map(|(what, version)| format!("{what} {version}"));
        format!(
            "{NUMBER}\ncommit: {}\nbuilt: for {}-linux, {linked}\nformats: {}",
            COMMIT.unwrap_or("not known"),
            std::env::consts::ARCH,
            formats.join(", ")
        )
    })
}

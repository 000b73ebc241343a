//! Which iostep this is.

use std::sync::OnceLock;

use iostep_model::syscall::text as recording;
use iostep_model::{bench, lab, manifest, spool};
#[cfg(feature = "trace")]
use iostep_trace::syscalls::spool as calls;

/// The release.
pub const NUMBER: &str = env!("CARGO_PKG_VERSION");
/// The commit that a build is made from, if it was told or is a release: a `+` behind it tells of
/// changed files, a `?` that nobody looked for them.
pub const COMMIT: Option<&str> = option_env!("IOSTEP_BUILT_FROM");

/// The features of this crate, and whether they are compiled in.
const FEATURES: [(&str, bool); 2] = [
    ("trace", cfg!(feature = "trace")),
    ("many-devices", cfg!(feature = "many-devices")),
];

/// What `--version` says: the source, how it is linked, what is compiled in, and the version of each
/// format that it writes. Those that it reads are older, too.
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
        let formats: Vec<String> = formats()
            .into_iter()
            .map(|(what, version)| format!("{what} {version}"))
            .collect();
        format!(
            "{NUMBER}\ncommit: {}\nbuilt: for {}-linux, {linked}\nfeatures: {}\nformats: {}",
            COMMIT.unwrap_or("not known"),
            std::env::consts::ARCH,
            features(&FEATURES),
            formats.join(", ")
        )
    })
}

fn features(all: &[(&str, bool)]) -> String {
    let compiled_in = all.iter().filter(|(_, compiled_in)| *compiled_in);
    let names: Vec<&str> = compiled_in.map(|(name, _)| *name).collect();
    match names.is_empty() {
        true => "none".into(),
        false => names.join(", "),
    }
}

/// What is written, in the plural, and its version.
fn formats() -> Vec<(&'static str, u32)> {
    Vec::from([
        ("traces", manifest::SCHEMA_VERSION),
        ("event logs", spool::VERSION.into()),
        ("recordings", recording::VERSION),
        #[cfg(feature = "trace")]
        ("recordings cut short", calls::VERSION),
        ("results of bench", bench::SCHEMA_VERSION),
        ("of lab", lab::SCHEMA_VERSION),
        ("of replay", iostep_analyze::replay::SCHEMA_VERSION),
        ("of advise", iostep_analyze::advise::SCHEMA_VERSION),
        #[cfg(feature = "many-devices")]
        ("lakes", iostep_fleet::VERSION),
        #[cfg(feature = "many-devices")]
        ("stores of serve", iostep_serve::store::SCHEMA_VERSION),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_package_and_only_what_is_compiled_in_is_told() {
        let package: toml::Table = include_str!("../Cargo.toml").parse().expect("TOML");
        let of_package = package["features"].as_table().expect("features").keys();
        let of_package: Vec<&str> = of_package
            .map(String::as_str)
            .filter(|name| *name != "default")
            .collect();
        assert_eq!(FEATURES.map(|(name, _)| name), of_package[..]);
        assert_eq!(features(&[("a", true), ("b", false), ("c", true)]), "a, c");
        assert_eq!(features(&[("a", false)]), "none");
    }

    #[test]
    fn no_format_is_told_twice() {
        let mut names: Vec<&str> = formats().into_iter().map(|(what, _)| what).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}

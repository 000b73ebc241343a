//! Compiles the extension into the program, against the SQLite of libsqlite3-sys.

use std::env;

/// What waldio.c calls by itself, below no VFS. With the feature `flush-hook` it calls the
/// functions of `src/hook.rs`, which call these.
const FLUSHES: [&str; 2] = ["fdatasync", "pwritev2"];

fn main() {
    for file in ["waldio.c", "waldio.h"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let mut build = cc::Build::new();
    build
        .file("waldio.c")
        .define("SQLITE_CORE", None)
        .std("gnu11")
        .warnings(true)
        .extra_warnings(true);
    // Not there if libsqlite3-sys links the system's SQLite and its header is where all are.
    if let Some(include) = env::var_os("DEP_SQLITE3_INCLUDE") {
        build.include(include);
    }
    if env::var_os("CARGO_FEATURE_FLUSH_HOOK").is_some() {
        for function in FLUSHES {
            build.define(function, format!("waldio_hook_{function}").as_str());
        }
    }
    build.compile("waldio");
}

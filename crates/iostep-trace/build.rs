//! Compiles the BPF programs from source and generates the Rust types of their records.

#![cfg_attr(not(feature = "bpf"), allow(dead_code, unused_imports))]

use std::env;
use std::path::PathBuf;

#[cfg(feature = "bpf")]
use libbpf_cargo::SkeletonBuilder;

/// Each object and the file that its Rust side is generated into.
const OBJECTS: [(&str, &str); 2] = [
    ("src/bpf/iostep.bpf.c", "iostep.skel.rs"),
    ("src/syscalls/bpf/calls.bpf.c", "calls.skel.rs"),
];

fn main() {
    #[cfg(feature = "bpf")]
    compile();
}

#[cfg(feature = "bpf")]
fn compile() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => panic!("iostep's BPF programs know x86_64 and aarch64 only, not {other:?}"),
    };
    // The headers of the libbpf that libbpf-sys carries, whatever the system has installed.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys tells where its headers are");
    let source_root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/syscalls/bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    for (source, skeleton) in OBJECTS {
        let result = SkeletonBuilder::new()
            .source(source)
            .obj(out.join(skeleton).with_extension("o"))
            // As a file, not as text of numbers that rustc reads.
            .reference_obj(true)
            .clang(&clang)
            .clang_args([
                "-Wall",
                "-Wextra",
                "-Werror",
                // BPF_PROG() declares a context that most programs do not use.
                "-Wno-unused-parameter",
                &format!("-I{headers}"),
                // The lines of the source are in the object, for the verifier's log: nobody's
                // directories are.
                &format!("-ffile-prefix-map={source_root}=."),
                &format!("-ffile-prefix-map={headers}=libbpf"),
                &format!("-D__TARGET_ARCH_{architecture}"),
            ])
            .build_and_generate(out.join(skeleton));
        if let Err(error) = result {
            panic!(
                "{source} does not compile: {error:#}\nhint: the build needs clang and llvm-strip"
            );
        }
        let skeleton = out.join(skeleton);
        let text = std::fs::read_to_string(&skeleton).expect("it was just written");
        std::fs::write(&skeleton, keep_one_by_one(&text)).expect("it was just written");
    }
}

/// The skeleton's `attach` makes one value of all links at once; each that fails drops those before
/// it, code that grows with the square of the programs (of 220: 150 s and 7 GiB of rustc). Here each
/// link is kept as it is made.
#[cfg(feature = "bpf")]
fn keep_one_by_one(skeleton: &str) -> String {
    const START: &str = "self.links = ";
    const EACH: &str = "Link::from_ptr(ptr) }),";
    let other = "libbpf-cargo generates another `attach`: look whether it still needs this";
    let (before, rest) = skeleton.split_once(START).expect(other);
    let (kind, rest) = rest.split_once('{').expect(other);
    let (links, after) = rest.rsplit_once(EACH).expect(other);
    let (end, after) = after.split_once("};").expect(other);
    assert!(end.trim().is_empty(), "{other}");
    let mut text = format!("{before}{START}{kind}::default();\n");
    for link in links.split(EACH) {
        let (name, value) = link.split_once(':').expect(other);
        let name = name.trim();
        text += &format!("self.links.{name} = {value}Link::from_ptr(ptr) }});\n");
    }
    text + after
}

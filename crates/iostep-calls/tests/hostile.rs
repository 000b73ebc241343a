//! Foreign text that nobody meant: events or an error, never a panic, and every line counted.

#[path = "../../../fuzz/entries/mangle.rs"]
mod mangle;
#[path = "../../../fuzz/entries/mobigen.rs"]
mod mobigen;
#[path = "../../../fuzz/entries/mutate.rs"]
mod mutate;

use mangle::mangle;
use mutate::Random;

/// Every kind of line, with descriptors that are used again.
const SCRIPT: &str = "\
0 0 open /data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36
0 0 write 36 4
9 1256 open data/data O_RDWR|O_CREAT|O_LARGEFILE 43
9 1257 pwrite 43 4294967296 4096
3 1300 open \"/data/a/b\" O_RDONLY 36
3 1301 read 36 100
3 1302 unlink \"/data/a/b\" 0
3 1303 stat64 \"/data/a/../a/b\" -1
0 1304 openat / \"/data/a/b\" 44
0 1305 fsync 44 0
0 1306 close 44 0
0 1307 pread 44 -1 9223372036854775807
1 1308 access \"/data/a\" 0
1 1309 lstat64 \"/data/\\303\\244\" 0
1 1310 open dev/binder O_RDWR 12
";

#[test]
fn mobigen_scripts() {
    mobigen::run(SCRIPT.as_bytes());
    for seed in 0..20_000 {
        let mut random = Random::new(seed);
        let mut script = mangle(SCRIPT.as_bytes().to_vec(), &mut random);
        if seed % 3 == 0 {
            script = mangle(script, &mut random);
        }
        mobigen::run(&script);
    }
}

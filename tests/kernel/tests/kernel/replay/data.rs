//! `iostep record --with-data`: files are replayed with what they held.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use iostep_kernel_tests::iostep;
use iostep_kernel_tests::requirement::Requirement;
use iostep_model::syscall::{Content, InitialKind, Recording, kept, text};
use serde_json::Value;
use tempfile::TempDir;

use crate::bad_input::TempMount;
use crate::case::Case;

/// Every test of this file.
pub fn cases() -> Vec<Case> {
    let tmpfs = [Requirement::Root, Requirement::Filesystem("tmpfs")];
    vec![
        Case::new(
            "with data, files hold what they held before the program",
            tmpfs,
            as_before,
        ),
        Case::new(
            "data beyond the limit is counted, and left out",
            tmpfs,
            limited,
        ),
        Case::new("data cannot be kept by BPF, which says so", [], by_bpf),
    ]
}

/// Files that a shell script reads, cuts, appends to and makes.
struct Fixture {
    source: TempDir,
    results: TempDir,
}

const READ: &[u8] = b"only read, twice";
const CUT: &[u8] = &[0x5a; 100_000];
const GROWN: &[u8] = b"what was there";
const SCRIPT: &str =
    "cat read read > made; echo new > cut; echo more >> grown; cat made > /dev/null";

impl Fixture {
    fn new() -> anyhow::Result<Fixture> {
        let ground = Fixture {
            source: tempfile::tempdir()?,
            results: tempfile::tempdir()?,
        };
        for (name, data) in [("read", READ), ("cut", CUT), ("grown", GROWN)] {
            std::fs::write(ground.source.path().join(name), data)?;
        }
        let hole = std::fs::File::create(ground.source.path().join("hole"))?;
        hole.set_len(1 << 20)?;
        Ok(ground)
    }

    fn trace(&self) -> PathBuf {
        self.results.path().join("app.trace")
    }

    /// Records the script; what the command said.
    fn record(&self, flags: &[&str]) -> anyhow::Result<(Recording, Value)> {
        let body = format!(
            "cd '{}'; {SCRIPT}; cat hole > /dev/null",
            self.source.path().display()
        );
        let trace = self.trace();
        let words = ["record", "--with-data", "--json"].map(Path::new);
        let flags = flags.iter().map(Path::new);
        let command = ["--", "sh", "-c", &body].map(Path::new);
        let words = words.into_iter().chain(flags);
        let words = words.chain([Path::new("-o"), &trace]).chain(command);
        let outcome = iostep::run(words)?.success()?;
        let said = serde_json::from_str(&outcome.stdout)?;
        Ok((text::read(&trace)?, said))
    }

    /// What was at a name of the source, and the data if it was kept.
    fn initially(
        &self,
        recording: &Recording,
        name: &str,
    ) -> anyhow::Result<(u64, Content, Vec<u8>)> {
        let path = self.source.path().join(name);
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut all = recording.initial.iter();
        let found = all.find(|file| recording.paths.get(file.path) == bytes);
        let found = found.with_context(|| format!("{name} is not there"))?;
        let InitialKind::File { size, content } = &found.kind else {
            anyhow::bail!("{name}: {:?}", found.kind);
        };
        let mut data = Vec::new();
        if let Content::Kept(number) = content {
            kept::open(&kept::directory_of(&self.trace()), *number)?.read_to_end(&mut data)?;
        }
        Ok((*size, content.clone(), data))
    }
}

fn as_before() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let (recording, said) = ground.record(&[])?;
    println!("    {said}");
    for (name, data) in [("read", READ), ("cut", CUT), ("grown", GROWN)] {
        let (size, _, kept) = ground.initially(&recording, name)?;
        anyhow::ensure!(size == data.len() as u64, "{name}: {size} bytes");
        anyhow::ensure!(kept == data, "{name}: {} bytes are kept", kept.len());
    }
    let (size, content, _) = ground.initially(&recording, "hole")?;
    anyhow::ensure!((size, content) == (1 << 20, Content::Hole), "{size} bytes");
    let made = ground.initially(&recording, "made");
    anyhow::ensure!(made.is_err(), "{made:?}");
    let place = TempMount::new("tmpfs", "")?;
    let trace = ground.trace();
    let words = [Path::new("replay"), &trace, "--to".as_ref(), place.path()];
    iostep::run(words.into_iter().chain([Path::new("--keep")]))?.success()?;
    let replayed = |name: &str| {
        let source = ground.source.path().strip_prefix("/")?.join(name);
        Ok::<_, anyhow::Error>(std::fs::read(
            place.path().join("iostep-replay").join(source),
        )?)
    };
    anyhow::ensure!(replayed("read")? == READ);
    let grown = replayed("grown")?;
    anyhow::ensure!(
        grown.starts_with(GROWN) && grown.len() == GROWN.len() + 5,
        "{grown:?}"
    );
    anyhow::ensure!(replayed("hole")? == vec![0; 1 << 20]);
    Ok(())
}

/// The shell's own libraries are read too, so that only the sum says what was kept.
fn limited() -> anyhow::Result<()> {
    let ground = Fixture::new()?;
    let (recording, said) = ground.record(&["--data-limit", "1000"])?;
    println!("    {said}");
    let (size, content, _) = ground.initially(&recording, "cut")?;
    anyhow::ensure!(size == CUT.len() as u64, "{size} bytes");
    anyhow::ensure!(content == Content::Data, "{content:?}");
    let (_, _, kept) = ground.initially(&recording, "read")?;
    anyhow::ensure!(kept == READ, "{kept:?}");
    let data = &said["data"];
    let number = |name: &str| data[name].as_u64().unwrap_or(0);
    anyhow::ensure!(number("too_much") >= 1, "{data}");
    anyhow::ensure!((1..=1000).contains(&number("bytes")), "{data}");
    anyhow::ensure!(number("unreadable") == 0, "{data}");
    Ok(())
}

fn by_bpf() -> anyhow::Result<()> {
    let words = "record --with-data --via bpf -o /nowhere/trace -- true";
    iostep::run(words.split(' '))?.refused(&[2], "--via ptrace")?;
    Ok(())
}

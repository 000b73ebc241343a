//! What a path leads to, for commands that are given one: two things are called a trace, and
//! several commands make files of JSON.

mod foreign;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow};
use iostep_calls::import::Format;
use iostep_calls::input::GUESS_BYTES;
use iostep_model::bench::SCHEMA_VERSION;
use iostep_model::manifest;
use iostep_model::printable::BYTE_ORDER_MARK;
use iostep_model::syscall::text as recording;
#[cfg(feature = "trace")]
use iostep_trace::blkparse::Format as BlockFormat;
#[cfg(feature = "trace")]
use iostep_trace::syscalls::spool;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::bad_input;
use foreign::Foreign;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory of `iostep trace`.
    Trace,
    /// A file of `iostep record`.
    Recording,
    /// What `iostep record` left that was cut short.
    Partial,
    /// A result of `iostep bench`.
    Bench,
    /// A result of `iostep replay`.
    Replay,
    /// A directory of `iostep lab run`.
    Lab,
    /// A text that `iostep clean` reads.
    Calls,
    /// A text of blkparse.
    Blkparse,
    /// Another recording of block I/O that `iostep import` reads.
    #[cfg(feature = "trace")]
    Block(BlockFormat),
    /// What another tool wrote that nothing of iostep reads.
    Foreign(&'static Foreign),
    /// A database of SQLite.
    Database,
    /// JSON that is damaged, or of a newer iostep: whoever reads it says so.
    Damaged,
    /// What is read but once, as a pipe: its reader says what it is.
    Stream,
    /// Something else: whoever could read something like it says what is wrong with it.
    Other,
}

impl Kind {
    /// What it is, and which command takes it.
    fn description(self) -> String {
        let text = match self {
            Kind::Trace => "a trace of block I/O; iostep report shows it, and compares two",
            Kind::Recording => {
                "a recording of system calls; iostep trace-info shows it, iostep replay performs it"
            }
            Kind::Partial => "a recording that was cut short; iostep clean makes a trace of it",
            Kind::Bench => {
                "a result of iostep bench; iostep report shows it, iostep compare compares two"
            }
            Kind::Replay => "a result of iostep replay; iostep report shows it",
            Kind::Lab => "a directory of a lab's results; iostep lab report shows it",
            Kind::Calls => "another tool's trace of system calls; iostep clean reads it",
            Kind::Blkparse => "a text of blkparse; iostep import reads it",
            Kind::Database => "a SQLite database; iostep explain and iostep advise take it",
            Kind::Damaged => "JSON that is damaged, or of a newer iostep",
            Kind::Stream => "no file",
            Kind::Other => "nothing that iostep makes or reads",
            #[cfg(feature = "trace")]
            Kind::Block(BlockFormat::Blkparse) => "a text of blkparse; iostep import reads it",
            #[cfg(feature = "trace")]
            Kind::Block(BlockFormat::Blktrace) => "a file of blktrace; iostep import reads it",
            #[cfg(feature = "trace")]
            Kind::Block(BlockFormat::Ftrace) => {
                "the kernel's block events as text; iostep import reads them"
            }
            #[cfg(feature = "trace")]
            Kind::Block(BlockFormat::Iolog) => {
                "fio's log of I/O; iostep import reads one of a block device; for one of files, \
                 iostep record -o FILE -- fio --name=again --read_iolog=LOG records the calls of \
                 doing it again"
            }
            Kind::Foreign(foreign) => return format!("{}; {}", foreign.what, foreign.way_on),
        };
        text.to_owned()
    }
}

/// Looks at what a command was given, which takes what is in `taken`.
///
/// Errors, all of bad usage: it is not there or cannot be read; it is something that another
/// command takes, which is then named.
pub fn expect(path: &Path, taken: &[Kind]) -> anyhow::Result<Kind> {
    let kind = look(path).map_err(bad_input)?;
    match kind {
        Kind::Damaged | Kind::Stream | Kind::Other => Ok(kind),
        kind if taken.contains(&kind) => Ok(kind),
        kind => Err(unfit(path, kind)),
    }
}

/// The error for what a command does not take.
pub fn unfit(path: &Path, kind: Kind) -> anyhow::Error {
    bad_input(anyhow!("{}: {}", path.display(), kind.description()))
}

fn look(path: &Path) -> anyhow::Result<Kind> {
    let name = path.display();
    let metadata = std::fs::metadata(path).with_context(|| format!("{name}: cannot open"))?;
    if metadata.is_dir() {
        return Ok(if path.join(manifest::FILE_NAME).exists() {
            Kind::Trace
        } else if path.join(iostep_lab::results::LAB).exists() {
            Kind::Lab
        } else {
            Kind::Other
        });
    }
    if !metadata.is_file() {
        return Ok(Kind::Stream);
    }
    let open = || File::open(path).with_context(|| format!("{name}: cannot open"));
    let start = start(open()?).with_context(|| format!("{name}: cannot read"))?;
    Ok(match start.trim_ascii_start().first() {
        Some(b'{') => of_json(open()?),
        _ => of_start(&start),
    })
}

/// The first bytes, of what was compressed if it was.
fn start(file: File) -> std::io::Result<Vec<u8>> {
    let begin = |input: &mut dyn Read| {
        let mut start = Vec::new();
        input.take(GUESS_BYTES as u64).read_to_end(&mut start)?;
        Ok(start)
    };
    let start = begin(&mut &file)?;
    if start.starts_with(&[0x1f, 0x8b]) {
        // What is packed so is nothing of iostep's; what its beginning shows may be others'.
        let mut unpacked = flate2::read::GzDecoder::new(&start[..]);
        let mut begun = vec![0; GUESS_BYTES];
        let read = unpacked.read(&mut begun).unwrap_or(0);
        begun.truncate(read);
        return Ok(begun);
    }
    let compressed = start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let unpacked = || begin(&mut zstd::Decoder::new(&start[..])?);
    // A part of a compressed file may hold less than a block.
    Ok(match compressed {
        true => unpacked().unwrap_or_else(|_: std::io::Error| recording::MAGIC.into()),
        false => start,
    })
}

/// What a file is that begins with `start`, as much as [`GUESS_BYTES`].
pub fn of_start(start: &[u8]) -> Kind {
    let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    if start.starts_with(b"SQLite format 3\0") {
        return Kind::Database;
    }
    if start.starts_with(recording::MAGIC.as_bytes()) {
        return Kind::Recording;
    }
    #[cfg(feature = "trace")]
    if start.starts_with(spool::MAGIC) {
        return Kind::Partial;
    }
    #[cfg(feature = "trace")]
    if let Some(format) = BlockFormat::guess(start) {
        return Kind::Block(format);
    }
    if let Some(foreign) = foreign::of_calls(start) {
        return Kind::Foreign(foreign);
    }
    if Format::guess(start).is_some() {
        return Kind::Calls;
    }
    if start.split(|byte| *byte == b'\n').any(is_of_blkparse) {
        return Kind::Blkparse;
    }
    foreign::of_others(start).map_or(Kind::Other, Kind::Foreign)
}

/// `  8,0    1       42     0.000012345  4711  Q   W 8 + 8 [app]`.
fn is_of_blkparse(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.split_whitespace();
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    let are_two = |field: Option<&str>, mark: char| {
        let halves = field.and_then(|field| field.split_once(mark));
        halves.is_some_and(|(first, second)| is_number(first) && is_number(second))
    };
    are_two(fields.next(), ',')
        && fields.next().is_some_and(is_number)
        && fields.next().is_some_and(is_number)
        && are_two(fields.next(), '.')
}

/// The keys that tell results apart.
#[derive(Deserialize)]
struct Keys {
    result: Option<IgnoredAny>,
    job: Option<IgnoredAny>,
    recording: Option<IgnoredAny>,
    targets: Option<IgnoredAny>,
    schema_version: Option<u64>,
}

fn of_json(file: File) -> Kind {
    let keys = serde_json::from_reader::<_, Keys>(std::io::BufReader::new(file));
    match keys {
        Ok(keys) if keys.result.is_some() || keys.job.is_some() => Kind::Bench,
        Ok(keys) if keys.recording.is_some() && keys.targets.is_some() => Kind::Replay,
        Ok(keys) if keys.schema_version <= Some(u64::from(SCHEMA_VERSION)) => Kind::Other,
        _ => Kind::Damaged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_databases_are_told_by_how_they_begin() {
        for (start, expected) in [
            (&b"SQLite format 3\0\x10\0"[..], Kind::Database),
            (b"# iostep system calls 1\n", Kind::Recording),
            #[cfg(feature = "trace")]
            (spool::MAGIC, Kind::Partial),
            (b"8,0 1 2 0.000000001 7 Q W 8 + 8 [a]\n", Kind::Blkparse),
            (
                b"  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n",
                Kind::Blkparse,
            ),
            (
                b"1234  12:00:00.001600 read(3, \"\", 100) = 100 <0.000009>\n",
                Kind::Calls,
            ),
            (b"hi\n", Kind::Other),
            (b"", Kind::Other),
        ] {
            assert_eq!(
                of_start(start),
                expected,
                "{:?}",
                String::from_utf8_lossy(start)
            );
        }
    }
}

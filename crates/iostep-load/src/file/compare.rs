//! Whether a record holds what it should.

use std::path::Path;

use iostep_model::bench::{FileJob, InitialContent, Verification};

use super::stamp::{self, LEAST_BYTES, Stamp, UNIT_BYTES, WRITER_BEFORE};

/// Wrong records that are described.
const EXAMPLES: usize = 10;
/// Records that were compared, and what was wrong with them.
#[derive(Clone, Debug, Default)]
pub struct Wrong(Verification);

impl Wrong {
    /// Counts a record of the file at `path`, with what is wrong with it.
    pub fn count(&mut self, path: &Path, wrong: Option<Difference>) {
        self.0.compared += 1;
        if let Some(difference) = wrong {
            self.note(format!("{}: {difference}", path.display()));
        }
    }

    fn note(&mut self, example: String) {
        self.0.wrong += 1;
        if self.0.examples.len() < EXAMPLES {
            self.0.examples.push(example);
        }
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Wrong) {
        self.0.compared += other.0.compared;
        self.0.wrong += other.0.wrong;
        let room = EXAMPLES - self.0.examples.len();
        let examples = other.0.examples.iter().take(room).cloned();
        self.0.examples.extend(examples);
    }

    /// As a result has it.
    pub fn into_verification(self) -> Verification {
        self.0
    }
}

/// What is wrong with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Where, in the file.
    pub offset_bytes: u64,
    /// What should be there.
    pub expected: String,
    pub found: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Difference {
            offset_bytes,
            expected,
            found,
        } = self;
        write!(f, "at {offset_bytes}: expected {expected}, found {found}")
    }
}

/// What a record may hold.
#[derive(Clone, Debug)]
pub enum Expected<'a> {
    /// What it held before the threads began.
    Before,
    /// The last write of any of these threads, or one that was under way together with it.
    Last(&'a [(u32, u64)]),
    /// Any write; by thread, how many there were.
    Any(&'a [u64]),
}

impl Expected<'_> {
    fn allows(&self, stamp: &Stamp, depth: u64) -> bool {
        match self {
            Expected::Before => stamp.thread == WRITER_BEFORE && stamp.sequence == 0,
            Expected::Last(writes) => writes.iter().any(|&(thread, last)| {
                let together = last.saturating_sub(depth) + 1..=last;
                stamp.thread == thread && together.contains(&stamp.sequence)
            }),
            Expected::Any(writes) => writes
                .get(stamp.thread as usize)
                .is_some_and(|last| (1..=*last).contains(&stamp.sequence)),
        }
    }
}

impl std::fmt::Display for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expected::Before => write!(f, "what was there before"),
            Expected::Last([(thread, last)]) => write!(f, "write {last} of thread {thread}"),
            Expected::Last(writes) => {
                write!(f, "the last write of one of {} threads", writes.len())
            }
            Expected::Any(_) => write!(f, "a write of any thread"),
        }
    }
}

/// Says what is wrong with a record that was read while nobody writes, by its stamps.
pub fn read_is_wrong(
    job: &FileJob,
    file: u32,
    record: &[u8],
    offset_bytes: u64,
) -> Option<Difference> {
    Comparing { job, file }.record(record, offset_bytes, &Expected::Before, Bodies::Skipped)
}

/// Whether the bytes behind the stamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    Compared,
    /// None: it takes as long as writing them.
    Skipped,
}

/// Compares records of one file.
#[derive(Clone, Copy, Debug)]
pub struct Comparing<'a> {
    pub job: &'a FileJob,
    /// Number of the file.
    pub file: u32,
}

impl Comparing<'_> {
    /// What is wrong with a record: its first wrong block.
    pub fn record(
        &self,
        record: &[u8],
        offset_bytes: u64,
        expected: &Expected,
        bodies: Bodies,
    ) -> Option<Difference> {
        let zeros = self.job.initial != InitialContent::Written;
        let mut latest = None;
        for (number, unit) in record.chunks(UNIT_BYTES).enumerate() {
            let offset_bytes = offset_bytes + (number * UNIT_BYTES) as u64;
            let found = match expected {
                Expected::Before if zeros => unit
                    .iter()
                    .any(|&byte| byte != 0)
                    .then(|| "other bytes than zeros".to_owned()),
                _ if unit.len() < LEAST_BYTES => self.tail(unit, number, latest.as_ref(), bodies),
                _ => {
                    latest = Stamp::take(unit);
                    self.unit(unit, (number, offset_bytes), &latest, expected, bodies)
                }
            };
            if let Some(found) = found {
                return Some(Difference {
                    offset_bytes,
                    expected: expected.to_string(),
                    found,
                });
            }
        }
        None
    }

    fn unit(
        &self,
        unit: &[u8],
        (number, offset_bytes): (usize, u64),
        stamp: &Option<Stamp>,
        expected: &Expected,
        bodies: Bodies,
    ) -> Option<String> {
        let Some(stamp) = stamp else {
            return Some("no stamp".into());
        };
        let Stamp {
            seed,
            file,
            thread,
            sequence,
            ..
        } = *stamp;
        if (seed, file, stamp.offset_bytes) != (self.job.measurement.seed, self.file, offset_bytes)
        {
            return Some(format!(
                "the stamp of file {file} at {} with seed {seed}",
                stamp.offset_bytes
            ));
        }
        if !expected.allows(stamp, u64::from(self.job.depth)) {
            return Some(match thread {
                WRITER_BEFORE => "what was there before".into(),
                _ => format!("write {sequence} of thread {thread}"),
            });
        }
        let intact = bodies == Bodies::Skipped || stamp::body_is_intact(unit, true, stamp, number);
        (!intact).then(|| "its stamp, and other bytes behind it".into())
    }

    /// The end of a record that is too short for a stamp belongs to the block before it.
    fn tail(
        &self,
        unit: &[u8],
        number: usize,
        stamp: Option<&Stamp>,
        bodies: Bodies,
    ) -> Option<String> {
        let intact = bodies == Bodies::Skipped
            || stamp.is_none_or(|stamp| stamp::body_is_intact(unit, false, stamp, number));
        (!intact).then(|| "other bytes".into())
    }
}

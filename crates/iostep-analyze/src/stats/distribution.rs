//! The distributions of ATC'13 figure 2(a) to (e), each by requests and by bytes.

use iostep_model::SECTOR_BYTES;
use iostep_model::class::{Class, FileType, Layer};
use iostep_model::operation::{Flags, Operation};
use iostep_model::table::{Request, Segment, Trace};
use serde::Serialize;

use super::amount::Split;
use super::uncovered_bytes;

/// One row of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Share<K> {
    /// What the row is about.
    pub of: K,
    /// How much of it.
    #[serde(flatten)]
    pub amounts: Split,
}

/// Whether somebody waits for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// A read, or a request with `REQ_SYNC`, `REQ_FUA` or `REQ_PREFLUSH`: the kernel's own rule
    /// (`op_is_sync`, include/linux/blk_types.h).
    Synchronous,
    /// Everything else: write-back on the kernel's own account.
    Buffered,
}

iostep_model::listed! { Mode,
    Synchronous = "synchronous",
    Buffered = "buffered",
}

impl Mode {
    pub fn of(request: &Request) -> Mode {
        let waited_for = [Flags::SYNC, Flags::FUA, Flags::PREFLUSH];
        let sync = request.operation == Operation::Read
            || waited_for.iter().any(|flag| request.flags.has(*flag));
        if sync {
            Mode::Synchronous
        } else {
            Mode::Buffered
        }
    }
}

/// Whether a request goes on where the one before ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// It does not, or it is the first.
    Random,
    /// It starts at the sector after the last one of the request of the same direction that was
    /// issued before it.
    Sequential,
}

iostep_model::listed! { Order,
    Random = "random",
    Sequential = "sequential",
}

/// Sizes above half of `up_to_bytes` and up to it; the first bucket also has everything smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct SizeBucket {
    /// The largest size in the bucket: a power of two, 4 KiB or more.
    pub up_to_bytes: u64,
}

const SMALLEST_BUCKET_LOG2: u32 = 12;
const BUCKETS: usize = (32 - SMALLEST_BUCKET_LOG2) as usize + 1;

impl SizeBucket {
    fn index(bytes: u32) -> usize {
        let log2 = u64::from(bytes).next_power_of_two().ilog2();
        log2.saturating_sub(SMALLEST_BUCKET_LOG2) as usize
    }

    fn at(index: usize) -> SizeBucket {
        SizeBucket {
            up_to_bytes: 1 << (SMALLEST_BUCKET_LOG2 as usize + index),
        }
    }
}

/// One past the last [`FileType`]: bytes that are no file's data.
const NO_FILE: usize = FileType::ALL.len();

pub(super) struct Collector {
    file_types: Vec<Split>,
    layers: [Split; Layer::ALL.len()],
    classes: Vec<Split>,
    modes: [Split; Mode::ALL.len()],
    orders: [Split; Order::ALL.len()],
    sizes: [Split; BUCKETS],
    read_end: Option<(u8, u64)>,
    write_end: Option<(u8, u64)>,
}

pub(super) struct Distributions {
    pub(super) file_types: Vec<Share<Option<FileType>>>,
    pub(super) layers: Vec<Share<Layer>>,
    pub(super) classes: Vec<Share<Class>>,
    pub(super) modes: Vec<Share<Mode>>,
    pub(super) orders: Vec<Share<Order>>,
    pub(super) sizes: Vec<Share<SizeBucket>>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector {
            file_types: vec![Split::default(); NO_FILE + 1],
            layers: Default::default(),
            classes: vec![Split::default(); Class::ALL.len()],
            modes: Default::default(),
            orders: Default::default(),
            sizes: Default::default(),
            read_end: None,
            write_end: None,
        }
    }
}

/// `seen` of [`add_part`] has room for every class.
const _: () = assert!(Class::ALL.len() <= u64::BITS as usize && NO_FILE < u64::BITS as usize);

/// Adds to the rows of one distribution; `seen` has a bit for each row that this request is in.
fn add_part(rows: &mut [Split], seen: &mut u64, row: usize, operation: Operation, bytes: u64) {
    if let Some(side) = rows[row].side(operation) {
        side.bytes += bytes;
        side.requests += u64::from(*seen & (1 << row) == 0);
        *seen |= 1 << row;
    }
}

fn add_whole(rows: &mut [Split], row: usize, request: &Request) {
    if let Some(side) = rows[row].side(request.operation) {
        side.add(request.bytes.into());
    }
}

impl Collector {
    pub(super) fn add(&mut self, trace: &Trace, request: &Request, segments: &[Segment]) {
        if Split::default().side(request.operation).is_none() || request.bytes == 0 {
            return;
        }
        add_whole(&mut self.modes, Mode::of(request) as usize, request);
        let order = self.order_of(request);
        add_whole(&mut self.orders, order as usize, request);
        add_whole(&mut self.sizes, SizeBucket::index(request.bytes), request);
        self.add_segments(trace, request, segments);
    }

    fn order_of(&mut self, request: &Request) -> Order {
        let end = match request.operation {
            Operation::Read => &mut self.read_end,
            _ => &mut self.write_end,
        };
        let here = (request.device, request.sector);
        let follows = *end == Some(here);
        *end = Some((here.0, here.1 + u64::from(request.bytes) / SECTOR_BYTES));
        if follows {
            Order::Sequential
        } else {
            Order::Random
        }
    }

    fn add_segments(&mut self, trace: &Trace, request: &Request, segments: &[Segment]) {
        let (mut types, mut layers, mut classes) = (0, 0, 0);
        let operation = request.operation;
        let mut add = |class: Class, file_type: usize, bytes: u64| {
            let layer = class.layer() as usize;
            add_part(
                &mut self.classes,
                &mut classes,
                class as usize,
                operation,
                bytes,
            );
            add_part(&mut self.layers, &mut layers, layer, operation, bytes);
            add_part(
                &mut self.file_types,
                &mut types,
                file_type,
                operation,
                bytes,
            );
        };
        for segment in segments {
            add(
                segment.class,
                file_type_of(trace, segment),
                segment.bytes.into(),
            );
        }
        let rest = uncovered_bytes(request, segments);
        if rest > 0 {
            add(Class::Unknown, NO_FILE, rest);
        }
    }

    pub(super) fn finish(self) -> Distributions {
        let file_type = |row| FileType::ALL.get(row).copied();
        let bucket_end = 1 + self.sizes.iter().rposition(|s| !s.is_empty()).unwrap_or(0);
        let of = |row| SizeBucket::at(row);
        Distributions {
            file_types: shares(&self.file_types, file_type, false),
            layers: shares(&self.layers, |row| Layer::ALL[row], true),
            classes: shares(&self.classes, |row| Class::ALL[row], false),
            modes: shares(&self.modes, |row| Mode::ALL[row], true),
            orders: shares(&self.orders, |row| Order::ALL[row], true),
            sizes: shares(&self.sizes[..bucket_end], of, true),
        }
    }
}

/// The row of the file whose data the segment is. Metadata and the journal are no file's data.
fn file_type_of(trace: &Trace, segment: &Segment) -> usize {
    match (segment.class.layer(), segment.file) {
        (Layer::Data, Some(file)) => trace.files[file as usize].file_type as usize,
        _ => NO_FILE,
    }
}

/// Names the rows; empty ones are left out unless `keep_empty`.
pub(super) fn shares<K>(
    rows: &[Split],
    name: impl Fn(usize) -> K,
    keep_empty: bool,
) -> Vec<Share<K>> {
    rows.iter()
        .enumerate()
        .filter(|(_, amounts)| keep_empty || !amounts.is_empty())
        .map(|(row, amounts)| Share {
            of: name(row),
            amounts: *amounts,
        })
        .collect()
}

//! What a request asks of the device.

use serde::{Deserialize, Serialize};

use crate::SECTORS_MAX;

/// The operation of a request (`enum req_op`, include/linux/blk_types.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// `REQ_OP_READ`.
    Read,
    /// `REQ_OP_WRITE`.
    Write,
    /// `REQ_OP_FLUSH`: empty the device's volatile cache.
    Flush,
    /// `REQ_OP_DISCARD`.
    Discard,
    /// `REQ_OP_SECURE_ERASE`.
    SecureErase,
    /// `REQ_OP_WRITE_ZEROES`.
    WriteZeroes,
    /// `REQ_OP_ZONE_APPEND`.
    ZoneAppend,
    /// What is known of none of these: what later kernels add, and what recordings of others call
    /// neither.
    Other,
    /// `REQ_OP_ZONE_OPEN`, `_CLOSE`, `_FINISH`, `_RESET` and `_RESET_ALL`: no bytes.
    ZoneManagement,
    /// `REQ_OP_DRV_IN`: a command past the block layer (SG_IO, NVMe's ioctls, a driver's own) that
    /// reads, or moves no data.
    DriverIn,
    /// `REQ_OP_DRV_OUT`: such a command that carries data to the device.
    DriverOut,
}

crate::listed! { Operation,
    Read = "read",
    Write = "write",
    Flush = "flush",
    Discard = "discard",
    SecureErase = "secure_erase",
    WriteZeroes = "write_zeroes",
    ZoneAppend = "zone_append",
    Other = "other",
    ZoneManagement = "zone_management",
    DriverIn = "driver_in",
    DriverOut = "driver_out",
}

impl Operation {
    /// Decodes the low byte of `bi_opf` or `cmd_flags`. The numbers are those of Linux 6.1 to 7.3.
    pub fn from_kernel(op: u8) -> Operation {
        match op {
            0 => Operation::Read,
            1 => Operation::Write,
            2 => Operation::Flush,
            3 => Operation::Discard,
            5 => Operation::SecureErase,
            7 => Operation::ZoneAppend,
            9 => Operation::WriteZeroes,
            11 | 13 | 15 | 17 | 19 => Operation::ZoneManagement,
            34 => Operation::DriverIn,
            35 => Operation::DriverOut,
            _ => Operation::Other,
        }
    }

    /// Which of the device's counters this operation's bytes go to
    /// (`op_stat_group`, include/linux/blk_types.h).
    pub fn counter(self) -> Counter {
        match self {
            Operation::Read => Counter::Read,
            Operation::Write | Operation::WriteZeroes | Operation::ZoneAppend => Counter::Write,
            Operation::SecureErase | Operation::ZoneManagement => Counter::Write,
            Operation::Discard => Counter::Discard,
            Operation::Flush => Counter::Flush,
            Operation::Other | Operation::DriverIn | Operation::DriverOut => Counter::None,
        }
    }

    /// True for a command past the block layer: it covers no sectors, and the kernel counts it
    /// nowhere.
    pub fn is_passthrough(self) -> bool {
        matches!(self, Operation::DriverIn | Operation::DriverOut)
    }

    /// True if a request of this kind says which sectors it is about; the kernel leaves the sector of
    /// others at -1.
    pub fn has_sector(self) -> bool {
        self != Operation::Flush && !self.is_passthrough()
    }

    /// True if a request of this kind that names `sector` lies on a device.
    pub fn has_place_at(self, sector: u64) -> bool {
        self.has_sector() && sector <= SECTORS_MAX
    }

    /// True for what changes the medium's content with data of the request.
    pub fn is_write(self) -> bool {
        matches!(self, Operation::Write | Operation::ZoneAppend)
    }
}

/// The groups of `/sys/block/X/stat` (Documentation/block/stat.rst).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Fields 1 to 4.
    Read,
    /// Fields 5 to 8.
    Write,
    /// Fields 12 to 15.
    Discard,
    /// Fields 16 and 17; it has no bytes.
    Flush,
    /// Not counted by the kernel.
    None,
}

/// Flags of a request, in iostep's own bits: the kernel's move between versions
/// (`enum req_flag_bits`), so a probe translates them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// `REQ_SYNC`: somebody waits for it.
    pub const SYNC: Flags = Flags(1);
    /// `REQ_META`.
    pub const META: Flags = Flags(1 << 1);
    /// `REQ_FUA`: durable when complete.
    pub const FUA: Flags = Flags(1 << 2);
    /// `REQ_PREFLUSH`: flush the device before.
    pub const PREFLUSH: Flags = Flags(1 << 3);
    /// `REQ_RAHEAD`.
    pub const READAHEAD: Flags = Flags(1 << 4);
    /// `REQ_BACKGROUND`.
    pub const BACKGROUND: Flags = Flags(1 << 5);
    /// `REQ_POLLED` (`REQ_HIPRI` before 5.16).
    pub const POLLED: Flags = Flags(1 << 6);
    /// `REQ_ATOMIC` (6.11).
    pub const ATOMIC: Flags = Flags(1 << 7);
    /// `REQ_IDLE`.
    pub const IDLE: Flags = Flags(1 << 8);
    /// `REQ_PRIO`.
    pub const PRIO: Flags = Flags(1 << 9);

    /// The kernel's bit names (without `__REQ_`) and ours.
    pub const KERNEL_NAMES: [(&'static str, Flags); 11] = [
        ("SYNC", Flags::SYNC),
        ("META", Flags::META),
        ("FUA", Flags::FUA),
        ("PREFLUSH", Flags::PREFLUSH),
        ("RAHEAD", Flags::READAHEAD),
        ("BACKGROUND", Flags::BACKGROUND),
        ("POLLED", Flags::POLLED),
        ("HIPRI", Flags::POLLED),
        ("ATOMIC", Flags::ATOMIC),
        ("IDLE", Flags::IDLE),
        ("PRIO", Flags::PRIO),
    ];

    /// True if every bit of `other` is set.
    pub fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits that `other` has too.
    pub fn only(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }

    /// Both sets of bits.
    pub fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// blktrace's letters (RWBS, `blk_fill_rwbs` in kernel/trace/blktrace.c): `F` before the
/// operation for a preflush, `F` after it for FUA, then `A`, `S`, `M`.
pub fn rwbs(operation: Operation, flags: Flags) -> String {
    let mut text = String::with_capacity(6);
    if flags.has(Flags::PREFLUSH) {
        text.push('F');
    }
    text.push_str(match operation {
        Operation::Read => "R",
        Operation::Write | Operation::ZoneAppend => "W",
        Operation::Flush => "F",
        Operation::Discard => "D",
        Operation::SecureErase => "DE",
        Operation::WriteZeroes => "WZ",
        Operation::Other
        | Operation::ZoneManagement
        | Operation::DriverIn
        | Operation::DriverOut => "N",
    });
    for (bit, letter) in [
        (Flags::FUA, 'F'),
        (Flags::READAHEAD, 'A'),
        (Flags::SYNC, 'S'),
        (Flags::META, 'M'),
    ] {
        if flags.has(bit) {
            text.push(letter);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_name(operation.name()), Some(operation));
        }
    }

    #[test]
    fn letters_are_those_of_blktrace() {
        let commit = Flags::SYNC.with(Flags::FUA).with(Flags::PREFLUSH);
        assert_eq!(rwbs(Operation::Write, commit), "FWFS");
        let metadata = Flags::SYNC.with(Flags::META);
        assert_eq!(rwbs(Operation::Read, metadata), "RSM");
        assert_eq!(rwbs(Operation::Flush, Flags::default()), "F");
        assert_eq!(rwbs(Operation::Discard, Flags::SYNC), "DS");
    }
}

//! The device's own counters, read by the test and not by the tool.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use iostep_model::SECTOR_BYTES;
use iostep_model::manifest::{Counters, Totals};

/// For how long the counters must stand still, and how often they are read for it.
const STILL: Duration = Duration::from_millis(100);
const ATTEMPTS: u32 = 50;

/// Reads `/sys/block/X/stat` (Documentation/block/stat.rst) when nothing is under way and nothing
/// is still to be counted: a request's waiter is told after its bytes were added, and before the
/// request itself is (`blk_update_request` and `__blk_mq_end_request_acct` of block/blk-mq.c), a
/// time in which it is not in flight any more.
///
/// Errors: no such device; no 100 ms without I/O in five seconds.
pub fn read(device: &Path) -> anyhow::Result<Counters> {
    let name = device.file_name().context("a device has a name")?;
    let directory = Path::new("/sys/class/block").join(name);
    let text = |file: &str| {
        let path = directory.join(file);
        std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
    };
    let mut before = String::new();
    for _ in 0..ATTEMPTS {
        let now = text("stat")?;
        let idle = text("inflight")?.split_whitespace().all(|n| n == "0");
        if idle && now == before {
            return parse(&now).with_context(|| format!("{name:?}: too few fields in its stat"));
        }
        before = now;
        std::thread::sleep(STILL);
    }
    anyhow::bail!("{name:?}: never idle for {STILL:?}")
}

/// The sums over several devices; see [`read`].
pub fn of_all<'a>(devices: impl Iterator<Item = &'a Path>) -> anyhow::Result<Counters> {
    let mut sums = Counters::default();
    for device in devices {
        sums = sums.and(read(device)?);
    }
    Ok(sums)
}

fn parse(text: &str) -> Option<Counters> {
    let fields: Vec<u64> = text
        .split_whitespace()
        .map_while(|f| f.parse().ok())
        .collect();
    let totals = |ios: usize, sectors: usize| {
        Some(Totals {
            ios: *fields.get(ios)?,
            bytes: fields.get(sectors)? * SECTOR_BYTES,
        })
    };
    Some(Counters {
        read: totals(0, 2)?,
        write: totals(4, 6)?,
        discard: totals(11, 13)?,
        flush: Totals {
            ios: *fields.get(15)?,
            bytes: 0,
        },
    })
}

/// After minus before.
pub fn difference(before: Counters, after: Counters) -> Counters {
    let totals = |before: Totals, after: Totals| Totals {
        ios: after.ios.wrapping_sub(before.ios),
        bytes: after.bytes.wrapping_sub(before.bytes),
    };
    Counters {
        read: totals(before.read, after.read),
        write: totals(before.write, after.write),
        discard: totals(before.discard, after.discard),
        flush: totals(before.flush, after.flush),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_puts_them() {
        let text = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        let counters = parse(text).expect("all fields");
        assert_eq!(
            counters.read,
            Totals {
                ios: 1,
                bytes: 3 * 512
            }
        );
        assert_eq!(
            counters.write,
            Totals {
                ios: 5,
                bytes: 7 * 512
            }
        );
        assert_eq!(
            counters.discard,
            Totals {
                ios: 12,
                bytes: 14 * 512
            }
        );
        assert_eq!(counters.flush, Totals { ios: 16, bytes: 0 });
        assert_eq!(parse("1 2 3"), None);
    }
}

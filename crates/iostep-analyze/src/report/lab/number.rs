//! Numbers of a lab as people read them.

use crate::lab::{Measure, Unit};
use crate::report::quantity::{bytes, decimal, duration, percent};

/// A value in its unit.
pub(crate) fn shown(measure: Measure, value: f64) -> String {
    match measure.unit() {
        Unit::PerSecond => format!("{}/s", decimal(value)),
        Unit::Bytes => bytes(value.round() as u64),
        Unit::Nanoseconds => duration(value.round() as u64),
        Unit::Count => decimal(value),
        Unit::Share => percent(Some(value)),
    }
}

/// A ratio: `1.53x`, and `0.010x` where two digits would say nothing.
pub(crate) fn factor(ratio: f64) -> String {
    match ratio {
        0.0 => "0x".to_owned(),
        ratio if ratio < 0.095 => format!("{ratio:.3}x"),
        ratio if ratio < 99.5 => format!("{ratio:.2}x"),
        ratio => format!("{}x", decimal(ratio)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unit_is_said() {
        let found = [
            shown(Measure::Throughput, 1234.0),
            shown(Measure::WrittenBytes, 8192.4),
            shown(Measure::SyncP50, 1_500.0),
            shown(Measure::Writes, 2.0),
            shown(Measure::CpuActive, 0.264),
        ];
        assert_eq!(found, ["1,234/s", "8 KiB", "1.50 µs", "2.00", "26.4 %"]);
    }

    #[test]
    fn a_small_ratio_keeps_a_digit() {
        let found = [0.0, 0.0101, 0.5, 1.5333, 130.2].map(factor);
        assert_eq!(found, ["0x", "0.010x", "0.50x", "1.53x", "130x"]);
    }
}

//! Numbers as people read them.

use iostep_model::unit::Unit;

/// Bytes, exact up to 1 KiB and in whole KiB, and with three digits above: `512 B`, `12 KiB`,
/// `1.46 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let exact = value.fract() == 0.0;
    let digits = if exact || value >= 100.0 {
        0
    } else {
        1 + usize::from(value < 10.0)
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A duration with three digits: `850 ns`, `12.3 µs`, `1.20 ms`, `2.05 s`.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A count with thousands set apart: `1,234,567`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of what has a regular plural: `1 write`, `1,234 writes`.
pub fn plural(number: u64, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{} {one}{s}", count(number))
}

/// A number that need not be whole with three digits, or four and more before the point: `12,345`,
/// `123`, `12.3`, `1.23`, `0.012`.
pub fn decimal(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        100.0.. => count(value.round() as u64),
        10.0..100.0 => format!("{value:.1}"),
        1.0..10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A share as a percentage, or `-`.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".into(), |share| format!("{:.1} %", share * 100.0))
}

/// A ratio: `1.53x`, and `0.010x` where two digits would say nothing.
pub fn factor(ratio: f64) -> String {
    match ratio {
        0.0 => "0x".to_owned(),
        ratio if ratio < 0.095 => format!("{ratio:.3}x"),
        ratio if ratio < 99.5 => format!("{ratio:.2}x"),
        ratio => format!("{}x", decimal(ratio)),
    }
}

/// How people read a number of a unit.
pub trait Show {
    /// A number in its unit.
    fn show(self, number: f64) -> String;
}

impl Show for Unit {
    fn show(self, number: f64) -> String {
        let whole = number.round() as u64;
        match self {
            Unit::Count => count(whole),
            Unit::Mean => decimal(number),
            Unit::PerSecond => format!("{}/s", decimal(number)),
            Unit::Bytes => bytes(whole),
            Unit::BytesPerSecond => format!("{}/s", bytes(whole)),
            Unit::Nanoseconds => duration(whole),
            Unit::Share => percent(Some(number)),
            Unit::Factor => factor(number),
        }
    }
}

/// Seconds with nine digits, from nanoseconds.
pub fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_three_digits() {
        let found = [0, 1023, 4096, 102_400, 1_536_000, 5 << 30].map(bytes);
        assert_eq!(
            found,
            ["0 B", "1023 B", "4 KiB", "100 KiB", "1.46 MiB", "5 GiB"]
        );
    }

    #[test]
    fn durations_keep_three_digits() {
        let found = [0, 999, 1_000, 12_345, 123_456, 2_049_000_000].map(duration);
        assert_eq!(
            found,
            ["0 ns", "999 ns", "1.00 µs", "12.3 µs", "123 µs", "2.05 s"]
        );
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn decimals_keep_three_digits() {
        let found = [0.0, 0.0123, 1.0, 12.34, 99.94, 123.4, 12_345.6].map(decimal);
        let expected = ["0", "0.012", "1.00", "12.3", "99.9", "123", "12,346"];
        assert_eq!(found, expected);
    }

    #[test]
    fn each_unit_is_said() {
        let found = [
            (Unit::PerSecond, 1234.0),
            (Unit::Bytes, 8192.4),
            (Unit::Nanoseconds, 1_500.0),
            (Unit::Mean, 2.0),
            (Unit::Share, 0.264),
        ];
        let found = found.map(|(unit, number)| unit.show(number));
        assert_eq!(found, ["1,234/s", "8 KiB", "1.50 µs", "2.00", "26.4 %"]);
    }

    #[test]
    fn a_small_ratio_keeps_a_digit() {
        let found = [0.0, 0.0101, 0.5, 1.5333, 130.2].map(factor);
        assert_eq!(found, ["0x", "0.010x", "0.50x", "1.53x", "130x"]);
    }
}

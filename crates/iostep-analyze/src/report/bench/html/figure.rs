//! Numbers of a bench as people read them.

use crate::bench::Unit;
use crate::report::quantity;

/// A value in its unit.
pub(in crate::report) fn in_unit(value: f64, unit: Unit) -> String {
    match unit {
        Unit::PerSecond => format!("{}/s", quantity::decimal(value)),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::Bytes => bytes(value),
        Unit::Nanoseconds => nanoseconds(value),
        Unit::Count => quantity::decimal(value),
    }
}

/// As [`in_unit`], or `-`.
pub(in crate::report) fn or_dash(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| "-".to_owned(), |value| in_unit(value, unit))
}

/// Nanoseconds that may be a mean.
pub(in crate::report) fn nanoseconds(ns: f64) -> String {
    quantity::duration(ns.round() as u64)
}

/// Bytes that may be a mean.
pub(in crate::report) fn bytes(bytes: f64) -> String {
    quantity::bytes(bytes.round() as u64)
}

/// Round numbers beside an axis, without zeros that say nothing: `2.5`, not `2.50`; `1 ms`.
pub(in crate::report) fn tick(text: &str) -> String {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::tick;

    #[test]
    fn only_zeros_behind_the_point_say_nothing() {
        let found = ["5.00", "10.0 ms", "0.250", "1,500", "100 ns", "0"].map(tick);
        assert_eq!(found, ["5", "10 ms", "0.25", "1,500", "100 ns", "0"]);
    }
}

//! Quantities as people write them.

/// Text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}: {reason}")]
pub struct BadQuantity {
    /// What was written.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

const SIZE_UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const TIME_UNITS: [(&str, u64); 8] = [
    ("", 1_000_000_000),
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A size in bytes: `512`, `4k` and `4KiB` (1024), `1MB` (1,000,000), `1.5GiB`.
///
/// Errors: no number, an unknown unit, a fraction of a byte, or more than 2^64.
pub fn parse_bytes(text: &str) -> Result<u64, BadQuantity> {
    parse(text, &SIZE_UNITS, "a size as 4096, 4k, 4KiB or 1.5GB")
}

/// A time in nanoseconds: `10` (seconds), `250ms`, `50us`, `2m`.
///
/// Errors: no number, an unknown unit, a fraction of a nanosecond, or more than 2^64.
pub fn parse_duration_ns(text: &str) -> Result<u64, BadQuantity> {
    parse(text, &TIME_UNITS, "a time as 10, 10s, 250ms or 2m")
}

fn parse(text: &str, units: &[(&str, u64)], example: &str) -> Result<u64, BadQuantity> {
    let bad = |reason: String| BadQuantity {
        text: text.to_owned(),
        reason,
    };
    let trimmed = text.trim();
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let unit = unit.trim_start().to_lowercase();
    let Some(&(_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(bad(format!("no such unit; expected {example}")));
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(bad(format!("not a number; expected {example}")));
    }
    // Up to 18 digits of a fraction, exactly; more than that is no quantity that anybody means.
    let digits = fraction.len() as u32;
    if digits > 18 {
        return Err(bad("too many digits after the point".into()));
    }
    let power = 10u128.pow(digits);
    let scaled = format!("{whole}{fraction}")
        .parse::<u128>()
        .ok()
        .and_then(|value| value.checked_mul(u128::from(scale)))
        .ok_or_else(|| bad("too large".into()))?;
    if scaled % power != 0 {
        return Err(bad("not a whole number of the smallest unit".into()));
    }
    u64::try_from(scaled / power).map_err(|_| bad("too large".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_taken_in_every_unit() {
        let found = ["512", "4k", "4KiB", "4 kib", "4KB", "1.5m", "1TiB", "0"].map(parse_bytes);
        let expected = [512, 4096, 4096, 4096, 4000, 3 << 19, 1 << 40, 0];
        assert_eq!(found, expected.map(Ok));
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        let found = ["10", "1.5s", "250ms", "50us", "2m", "1h", "7ns"].map(parse_duration_ns);
        let expected = [
            10_000_000_000,
            1_500_000_000,
            250_000_000,
            50_000,
            120_000_000_000,
            3_600_000_000_000,
            7,
        ];
        assert_eq!(found, expected.map(Ok));
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_an_example() {
        for text in [
            "",
            "k",
            "-1",
            "4q",
            "1.2.3",
            ".",
            "1.0001k",
            "99999999999t",
            "1e3",
            "٣",
        ] {
            let error = parse_bytes(text).expect_err(text);
            assert!(
                error.to_string().starts_with(&format!("{text}: ")),
                "{error}"
            );
        }
        assert!(parse_duration_ns("1.5ns").is_err());
        assert!(parse_bytes("340282366920938463463374607431768211457").is_err());
    }
}

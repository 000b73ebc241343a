//! Lines on standard error, each with the time in UTC. No address is in any.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike};
use iostep_model::printable::say;

/// Says a line.
pub fn line(text: &str) {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    say(&format!("{} {text}", utc(seconds)));
}

/// `2026-01-31T23:59:59Z` of seconds since 1970; the number itself beyond the years that have names.
pub fn utc(seconds: u64) -> String {
    let date = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .filter(|date| date.year() <= 9_999);
    date.map_or_else(
        || format!("{seconds} s"),
        |date| date.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn seconds_are_told_as_a_date() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_800, "253402300800 s"),
            (u64::MAX, "18446744073709551615 s"),
        ] {
            assert_eq!(utc(seconds), expected);
        }
    }
}

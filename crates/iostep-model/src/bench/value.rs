//! Values of options that are neither a word nor a plain number.

use std::str::FromStr;

use crate::units;

/// [`cpus`] for none.
pub const NO_CPUS: &str = "none";

/// More CPUs than any kernel has (`CONFIG_NR_CPUS`): a larger number is a slip.
const MAX_CPUS: u32 = 8192;

/// How fast operations are issued, of all threads together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Operations a second.
    Operations(f64),
    /// Bytes a second.
    Bytes(u64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let example = "expected operations a second as 500, or bytes as 4MiB/s";
        let number = text.strip_suffix("/s").unwrap_or(text);
        if let Ok(rate) = number.parse::<f64>() {
            let possible = rate.is_finite() && rate > 0.0;
            return possible
                .then_some(Rate::Operations(rate))
                .ok_or_else(|| format!("{text}: not more than 0; {example}"));
        }
        // A unit without "/s" could be meant as thousands of operations.
        match units::parse_bytes(number) {
            Ok(rate) if rate > 0 && number != text => Ok(Rate::Bytes(rate)),
            _ => Err(format!("{text}: {example}")),
        }
    }
}

/// A size that SQLite takes.
pub fn sqlite_bytes(text: &str) -> Result<u32, String> {
    let bytes = units::parse_bytes(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes)
        .map_err(|_| "SQLite takes nothing so large; choose less than 1 GiB".to_owned())
}

/// `10` or `10%`, from 0 to 100.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    number
        .parse::<f64>()
        .ok()
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| format!("{text}: expected a percentage from 0 to 100"))
}

/// CPUs, as `0-3,6`, in the order given.
pub fn cpus(text: &str) -> Result<Vec<u32>, String> {
    let bad = || format!("{text}: expected CPUs as 0-3,6, each less than {MAX_CPUS}");
    let number = |text: &str| text.parse::<u32>().ok().filter(|cpu| *cpu < MAX_CPUS);
    let mut cpus = Vec::new();
    if text == NO_CPUS {
        return Ok(cpus);
    }
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = number(first).zip(number(last)).ok_or_else(bad)?;
        if first > last || cpus.len() > MAX_CPUS as usize {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_operations_or_bytes_and_never_guesses() {
        assert_eq!("500".parse(), Ok(Rate::Operations(500.0)));
        assert_eq!("0.5/s".parse(), Ok(Rate::Operations(0.5)));
        assert_eq!("4MiB/s".parse(), Ok(Rate::Bytes(4 << 20)));
        for text in ["10k", "0", "-1", "inf", "NaN", "0k/s", "", "/s", "fast"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_stay_between_their_ends() {
        assert_eq!(percent("12.5%"), Ok(12.5));
        for text in ["-1", "101", "NaN", "x", ""] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cpus_are_listed_in_order_and_a_hostile_range_is_refused() {
        assert_eq!(cpus("0-2,7"), Ok(vec![0, 1, 2, 7]));
        for text in ["", "2-0", "0-4294967295", "8192", "a", "1,,2", "-1"] {
            assert!(cpus(text).is_err(), "{text}");
        }
        let many = vec!["0-8191"; 50_000].join(",");
        assert!(cpus(&many).is_err());
    }
}

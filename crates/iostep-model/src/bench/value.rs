//! Values of options that are neither a word nor a plain number.

use std::str::FromStr;

use super::{CheckpointPolicy, Mix, PayloadKind, WaldioLayout};
use crate::units;

/// [`cpus`] for none.
pub const NO_CPUS: &str = "none";
/// [`layout`] for waldio's own choice.
pub const AUTO: &str = "auto";

/// The byte that a constant payload repeats if none is named.
const CONSTANT: u8 = 0xfe;
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

/// `auto`, or a layout.
pub fn layout(text: &str) -> Result<Option<WaldioLayout>, String> {
    if text.eq_ignore_ascii_case(AUTO) {
        return Ok(None);
    }
    let layout = text.parse::<WaldioLayout>();
    layout
        .map(Some)
        .map_err(|error| format!("{error}, or auto"))
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

/// `incompressible`, `constant` or `constant:BYTE`.
pub fn payload(text: &str) -> Result<PayloadKind, String> {
    let (kind, byte) = match text.split_once(':') {
        Some((kind, byte)) => (kind, Some(byte)),
        None => (text, None),
    };
    match (kind, byte) {
        ("incompressible", None) => Ok(PayloadKind::Incompressible),
        ("constant", None) => Ok(PayloadKind::Constant(CONSTANT)),
        ("constant", Some(byte)) => match byte.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => byte.parse(),
        }
        .map(PayloadKind::Constant)
        .map_err(|_| format!("{byte}: no byte; expected 0 to 255, or 0x00 to 0xff")),
        _ => Err(format!(
            "{text}: no payload; choose incompressible, constant, constant:BYTE"
        )),
    }
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

/// `insert=40,update=30,delete=10,read=20`; what is left out is 0.
pub fn mix(text: &str) -> Result<Mix, String> {
    let bad = || format!("{text}: expected weights as insert=40,update=30,delete=10,read=20");
    let mut mix = Mix::default();
    let mut sum = 0u32;
    for part in text.split(',') {
        let (name, weight) = part.split_once('=').ok_or_else(bad)?;
        let weight: u32 = weight.parse().map_err(|_| bad())?;
        let place = match name {
            "insert" => &mut mix.insert,
            "update" => &mut mix.update,
            "delete" => &mut mix.delete,
            "read" => &mut mix.read,
            _ => return Err(bad()),
        };
        *place = weight;
        sum = sum.checked_add(weight).ok_or_else(bad)?;
    }
    if sum == 0 {
        return Err(format!("{text}: at least one weight must be more than 0"));
    }
    Ok(mix)
}

/// `PAGES`, `never` or `every:N`.
pub fn checkpoint(text: &str) -> Result<CheckpointPolicy, String> {
    let policy = match text.split_once(':') {
        None if text == "never" => Some(CheckpointPolicy::Never),
        None => text.parse().ok().map(CheckpointPolicy::Pages),
        Some(("every", count)) => count.parse().ok().map(CheckpointPolicy::Transactions),
        Some(_) => None,
    };
    policy
        .filter(|policy| {
            !matches!(
                policy,
                CheckpointPolicy::Pages(0) | CheckpointPolicy::Transactions(0)
            )
        })
        .ok_or_else(|| {
            format!("{text}: expected pages as 1000, never, or transactions as every:100")
        })
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
    fn a_constant_payload_names_its_byte_in_either_base() {
        assert_eq!(payload("constant"), Ok(PayloadKind::Constant(0xfe)));
        assert_eq!(payload("constant:0x00"), Ok(PayloadKind::Constant(0)));
        assert_eq!(payload("constant:255"), Ok(PayloadKind::Constant(255)));
        for text in [
            "constant:256",
            "constant:0xfff",
            "constant:",
            "zero",
            "incompressible:1",
        ] {
            assert!(payload(text).is_err(), "{text}");
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

    #[test]
    fn a_mix_has_weights_and_not_all_of_them_zero() {
        let found = mix("insert=1,read=3").expect("a mix");
        assert_eq!((found.insert, found.read, found.delete), (1, 3, 0));
        for text in [
            "",
            "insert",
            "insert=x",
            "walk=1",
            "insert=0",
            "insert=4294967295,read=1",
        ] {
            assert!(mix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn checkpoints_come_by_pages_by_transactions_or_never() {
        assert_eq!(checkpoint("1000"), Ok(CheckpointPolicy::Pages(1000)));
        assert_eq!(checkpoint("never"), Ok(CheckpointPolicy::Never));
        assert_eq!(checkpoint("every:5"), Ok(CheckpointPolicy::Transactions(5)));
        for text in ["0", "every:0", "every:", "each:5", "-1", ""] {
            assert!(checkpoint(text).is_err(), "{text}");
        }
    }
}

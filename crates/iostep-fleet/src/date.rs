//! Days in UTC, by which a lake is partitioned.

use std::fmt;

use chrono::NaiveDate;

const NS_PER_DAY: i64 = 86_400_000_000_000;
/// From the first day of our era, as chrono counts, to 1970-01-01.
const DAYS_TO_1970: i64 = 719_163;

/// A day in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// Since 1970-01-01.
    days: i64,
}

impl Date {
    /// The day of a time since 1970, in ns.
    pub fn of_wall_ns(wall_ns: i64) -> Date {
        Date {
            days: wall_ns.div_euclid(NS_PER_DAY),
        }
    }

    /// Days since 1970-01-01.
    pub fn days(self) -> i64 {
        self.days
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = i32::try_from(self.days + DAYS_TO_1970).ok();
        let date = days.and_then(NaiveDate::from_num_days_from_ce_opt);
        date.ok_or(fmt::Error)?.fmt(f)
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let date = text.parse::<NaiveDate>().ok().map(|date| Date {
            days: i64::from(chrono::Datelike::num_days_from_ce(&date)) - DAYS_TO_1970,
        });
        // chrono takes spaces, and numbers without their zeros.
        date.filter(|date| date.to_string() == text)
            .ok_or_else(|| format!("{text}: a date is written as 2026-11-27"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_784, "2026-11-27"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(Date { days }.to_string(), text);
            assert_eq!(text.parse(), Ok(Date { days }));
        }
        assert_eq!(Date::of_wall_ns(NS_PER_DAY - 1).days, 0);
        assert_eq!(Date::of_wall_ns(NS_PER_DAY).days, 1);
    }

    #[test]
    fn every_day_is_read_back_and_nothing_else_is() {
        for days in 0..80_000 {
            let date = Date { days };
            assert_eq!(date.to_string().parse(), Ok(date));
        }
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "2026-2-3",
            "../x",
            "2026-02-03/",
        ] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}

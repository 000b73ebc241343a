//! Days in UTC, by which a lake is partitioned.

use std::fmt;

const NS_PER_DAY: i64 = 86_400_000_000_000;

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

    /// Year, month and day of the month in the Gregorian calendar.
    ///
    /// Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`:
    /// years begin in March, so that the leap day is a year's last.
    fn civil(self) -> (i64, i64, i64) {
        let from_0000_03_01 = self.days + 719_468;
        let era = from_0000_03_01.div_euclid(146_097);
        let day_of_era = from_0000_03_01.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month, day)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let wrong = || format!("{text}: a date is written as 2026-11-27");
        let mut parts = text.splitn(3, '-').map(str::parse::<i64>);
        let (Some(Ok(year)), Some(Ok(month)), Some(Ok(_))) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        if !(1970..=2262).contains(&year) || !(1..=12).contains(&month) {
            return Err(wrong());
        }
        // No month begins earlier than this after its year: the day itself is near.
        let first = (year - 1970) * 365 + (month - 1) * 28;
        (first..first + 140)
            .map(|days| Date { days })
            .find(|date| date.to_string() == text)
            .ok_or_else(wrong)
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

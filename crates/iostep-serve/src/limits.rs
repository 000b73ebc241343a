//! How often somebody may ask for something.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More than this are not told apart: those who have asked little lately are forgotten.
const MANY: usize = 100_000;
/// How often somebody looks who that is: it takes a look at each.
const SWEEP: Duration = Duration::from_secs(1);
const MINUTE: f64 = 60.0;

/// Lets each of many do something so many times a minute; that many at once after a pause.
#[derive(Debug)]
pub struct Limit<K> {
    per_minute: f64,
    all: Mutex<All<K>>,
}

#[derive(Debug)]
struct All<K> {
    /// What is left to each, and when that was.
    left: HashMap<K, (f64, Instant)>,
    swept: Option<Instant>,
}

impl<K: Eq + Hash> Limit<K> {
    pub fn new(per_minute: u32) -> Limit<K> {
        Limit {
            per_minute: per_minute.into(),
            all: Mutex::new(All {
                left: HashMap::new(),
                swept: None,
            }),
        }
    }

    /// Counts one more time.
    ///
    /// Errors: how long to wait, if it is too often.
    pub fn take(&self, who: K, now: Instant) -> Result<(), Duration> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let All { left, swept } = &mut *all;
        if left.len() >= MANY && !left.contains_key(&who) {
            let is_due = swept.is_none_or(|then| now.saturating_duration_since(then) >= SWEEP);
            if is_due {
                left.retain(|_, entry| self.at(*entry, now) < self.per_minute);
                *swept = Some(now);
            }
            if left.len() >= MANY {
                return Err(SWEEP);
            }
        }
        let entry = left.entry(who).or_insert((self.per_minute, now));
        *entry = (self.at(*entry, now), now);
        if entry.0 < 1.0 {
            let seconds = (1.0 - entry.0) * MINUTE / self.per_minute;
            return Err(Duration::from_secs_f64(seconds.clamp(0.0, MINUTE)));
        }
        entry.0 -= 1.0;
        Ok(())
    }

    fn at(&self, (left, then): (f64, Instant), now: Instant) -> f64 {
        let passed = now.saturating_duration_since(then).as_secs_f64();
        (left + passed * self.per_minute / MINUTE).min(self.per_minute)
    }
}

/// What of an address tells one from another: of IPv6 the network, in which somebody has as many
/// addresses as they like.
pub fn network(address: IpAddr) -> [u8; 16] {
    let mut octets = match address.to_canonical() {
        IpAddr::V4(address) => return address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    octets[8..].fill(0);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_a_minute_and_each_for_itself() {
        let limit = Limit::new(60);
        let start = Instant::now();
        for _ in 0..60 {
            assert_eq!(limit.take("a", start), Ok(()));
        }
        assert_eq!(limit.take("a", start), Err(Duration::from_secs(1)));
        assert_eq!(limit.take("b", start), Ok(()));
        let later = start + Duration::from_secs(2);
        assert_eq!(limit.take("a", later), Ok(()));
        assert_eq!(limit.take("a", later), Ok(()));
        assert!(limit.take("a", later).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let limit = Limit::new(1);
        let start = Instant::now();
        for who in 0..MANY {
            assert_eq!(limit.take(who, start), Ok(()));
        }
        assert!(limit.take(MANY, start).is_err());
        let later = start + Duration::from_secs(60);
        assert_eq!(limit.take(MANY, later), Ok(()));
        assert_eq!(limit.all.lock().expect("unused").left.len(), 1);
    }

    #[test]
    fn an_address_of_a_network_is_the_network() {
        let parse = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_ne!(parse("192.0.2.1"), parse("192.0.2.2"));
        assert_eq!(parse("::ffff:192.0.2.1"), parse("192.0.2.1"));
    }
}

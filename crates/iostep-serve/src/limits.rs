//! How often somebody may ask for something, and for how much.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// More than this are not told apart: those who have taken least of theirs are forgotten.
const MANY: usize = 100_000;
/// How often somebody looks who that is: it takes a look at each.
const SWEEP: Duration = Duration::from_secs(1);
/// Lets each of many have so much in a time; that much at once after a pause.
#[derive(Debug)]
pub struct Limit<K> {
    most: f64,
    per: Duration,
    all: Mutex<All<K>>,
}

#[derive(Debug)]
struct All<K> {
    /// What is left to each, and when that was.
    left: HashMap<K, (f64, Instant)>,
    swept: Option<Instant>,
}

impl<K: Eq + Hash> Limit<K> {
    /// A limit of `most` in the time `per`.
    pub fn new(most: u64, per: Duration) -> Limit<K> {
        Limit {
            most: most as f64,
            per,
            all: Mutex::new(All {
                left: HashMap::new(),
                swept: None,
            }),
        }
    }

    /// Counts that somebody takes an amount; more than there ever is counts as all of it.
    ///
    /// Errors: how long to wait, if so much is not left.
    pub fn take(&self, who: K, amount: u64, now: Instant) -> Result<(), Duration> {
        let amount = (amount as f64).min(self.most);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let All { left, swept } = &mut *all;
        if left.len() >= MANY && !left.contains_key(&who) {
            let is_due = swept.is_none_or(|then| now.saturating_duration_since(then) >= SWEEP);
            if is_due {
                left.retain(|_, entry| self.at(*entry, now) < self.most);
                if left.len() >= MANY {
                    left.retain(|_, entry| self.at(*entry, now) < self.most / 2.0);
                }
                *swept = Some(now);
            }
            if left.len() >= MANY {
                return Err(SWEEP);
            }
        }
        let entry = left.entry(who).or_insert((self.most, now));
        *entry = (self.at(*entry, now), now);
        if entry.0 < amount {
            let share = (amount - entry.0) / self.most;
            return Err(self.per.mul_f64(share.clamp(0.0, 1.0)));
        }
        entry.0 -= amount;
        Ok(())
    }

    fn at(&self, (left, then): (f64, Instant), now: Instant) -> f64 {
        let passed = now.saturating_duration_since(then).as_secs_f64();
        (left + passed * self.most / self.per.as_secs_f64()).min(self.most)
    }
}

/// Before an address of IPv4 that is reached from IPv6 (RFC 6052).
const NAT64: [u8; 12] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/// What of an address tells one from another: of IPv6 the network, in which somebody has as many
/// addresses as they like.
pub fn network(address: IpAddr) -> [u8; 16] {
    let mut octets = match address.to_canonical() {
        IpAddr::V4(address) => return address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    };
    if octets.starts_with(&NAT64) {
        return octets;
    }
    octets[8..].fill(0);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn so_many_a_minute_and_each_for_itself() {
        let limit = Limit::new(60, MINUTE);
        let start = Instant::now();
        for _ in 0..60 {
            assert_eq!(limit.take("a", 1, start), Ok(()));
        }
        assert_eq!(limit.take("a", 1, start), Err(Duration::from_secs(1)));
        assert_eq!(limit.take("b", 1, start), Ok(()));
        let later = start + Duration::from_secs(2);
        assert_eq!(limit.take("a", 1, later), Ok(()));
        assert_eq!(limit.take("a", 1, later), Ok(()));
        assert!(limit.take("a", 1, later).is_err());
    }

    #[test]
    fn what_is_large_takes_more_and_what_is_larger_than_all_takes_all() {
        let day = Duration::from_secs(86_400);
        let limit = Limit::new(100, day);
        let start = Instant::now();
        assert_eq!(limit.take("a", 60, start), Ok(()));
        assert_eq!(limit.take("a", 60, start), Err(day / 5));
        assert_eq!(limit.take("a", 40, start), Ok(()));
        assert_eq!(limit.take("a", 1000, start + day / 2), Err(day / 2));
        assert_eq!(limit.take("a", 1000, start + day), Ok(()));
        assert!(limit.take("a", 1, start + day).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let limit = Limit::new(1, MINUTE);
        let start = Instant::now();
        for who in 0..MANY {
            assert_eq!(limit.take(who, 1, start), Ok(()));
        }
        assert!(limit.take(MANY, 1, start).is_err());
        let later = start + Duration::from_secs(60);
        assert_eq!(limit.take(MANY, 1, later), Ok(()));
        assert_eq!(limit.all.lock().expect("unused").left.len(), 1);
    }

    #[test]
    fn many_who_take_little_keep_nobody_away() {
        let limit = Limit::new(10, MINUTE);
        let start = Instant::now();
        assert_eq!(limit.take(0, 9, start), Ok(()));
        for who in 1..MANY {
            assert_eq!(limit.take(who, 1, start), Ok(()));
        }
        assert_eq!(limit.take(MANY, 1, start), Ok(()));
        // Whoever has taken most is remembered.
        assert!(limit.take(0, 9, start).is_err());
    }

    #[test]
    fn an_address_of_a_network_is_the_network() {
        let parse = |text: &str| network(text.parse().expect("an address"));
        assert_eq!(parse("2001:db8::1"), parse("2001:db8::ffff:1"));
        assert_ne!(parse("2001:db8::1"), parse("2001:db8:0:1::1"));
        assert_ne!(parse("192.0.2.1"), parse("192.0.2.2"));
        assert_ne!(parse("64:ff9b::192.0.2.1"), parse("64:ff9b::192.0.2.2"));
        assert_eq!(parse("::ffff:192.0.2.1"), parse("192.0.2.1"));
    }
}

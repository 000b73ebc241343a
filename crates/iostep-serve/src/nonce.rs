//! Numbers that are good for one upload, soon.
//!
//! One that is given out takes no memory: it tells when it ends, and a hash tells that it is one of
//! ours. Only those that were used are remembered, until they end. Those of a server that was
//! started anew are none of its own.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// Bytes: when it ends, something random, a hash.
pub const BYTES: usize = 8 + RANDOM + HASH;
const RANDOM: usize = 16;
const HASH: usize = 16;
/// How long one is good.
pub const GOOD: Duration = Duration::from_secs(120);
/// More used ones than this are not remembered: no further one is taken until some have ended.
const MANY: usize = 1 << 20;

/// A number of [`Nonces`].
pub type Nonce = [u8; BYTES];

/// Gives numbers out, and takes each once.
pub struct Nonces {
    secret: [u8; 32],
    start: Instant,
    /// Those that were taken, in the order of their ends, with which they begin.
    used: Mutex<BTreeSet<Nonce>>,
}

/// Why one is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is none of this server's.
    Unknown,
    /// It is too old.
    Ended,
    /// It was taken before.
    Used,
    /// Too many are remembered.
    Many,
}

impl Nonces {
    /// Errors: the system has no random numbers.
    pub fn new() -> std::io::Result<Nonces> {
        Ok(Nonces {
            secret: random()?,
            start: Instant::now(),
            used: Mutex::default(),
        })
    }

    /// A new one, good for [`GOOD`] from `now` on.
    ///
    /// Errors: the system has no random numbers.
    pub fn give(&self, now: Instant) -> std::io::Result<Nonce> {
        let mut nonce = [0; BYTES];
        let end_ms = self.since_start(now + GOOD);
        nonce[..8].copy_from_slice(&end_ms.to_be_bytes());
        nonce[8..8 + RANDOM].copy_from_slice(&random::<RANDOM>()?);
        let hash = self.hash(&nonce);
        nonce[8 + RANDOM..].copy_from_slice(&hash);
        Ok(nonce)
    }

    /// Looks whether one may be taken, without taking it.
    ///
    /// Errors: why not.
    pub fn check(&self, nonce: &Nonce, now: Instant) -> Result<(), Fault> {
        if self.hash(nonce)[..] != nonce[8 + RANDOM..] {
            return Err(Fault::Unknown);
        }
        if end_ms(nonce) < self.since_start(now) {
            return Err(Fault::Ended);
        }
        match self.used().contains(nonce) {
            true => Err(Fault::Used),
            false => Ok(()),
        }
    }

    /// Takes one. Of two at the same time one gets it.
    ///
    /// Errors: why not.
    pub fn take(&self, nonce: &Nonce, now: Instant) -> Result<(), Fault> {
        self.check(nonce, now)?;
        let mut used = self.used();
        let now_ms = self.since_start(now);
        while used.first().is_some_and(|first| end_ms(first) < now_ms) {
            used.pop_first();
        }
        if used.len() >= MANY {
            return Err(Fault::Many);
        }
        match used.insert(*nonce) {
            true => Ok(()),
            false => Err(Fault::Used),
        }
    }

    fn used(&self) -> std::sync::MutexGuard<'_, BTreeSet<Nonce>> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since_start(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_millis() as u64
    }

    /// Of all but the hash itself, whose length is always the same.
    fn hash(&self, nonce: &Nonce) -> [u8; HASH] {
        let whole: [u8; 32] = Sha256::digest([&self.secret, &nonce[..8 + RANDOM]].concat()).into();
        let mut hash = [0; HASH];
        hash.copy_from_slice(&whole[..HASH]);
        hash
    }
}

impl std::fmt::Debug for Nonces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Nonces")
    }
}

fn end_ms(nonce: &Nonce) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&nonce[..8]);
    u64::from_be_bytes(bytes)
}

/// Bytes that nobody can guess.
///
/// Errors: the system has none.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_good_once_until_it_ends_and_only_where_it_is_from() {
        let (nonces, others) = (
            Nonces::new().expect("random"),
            Nonces::new().expect("random"),
        );
        let now = Instant::now();
        let nonce = nonces.give(now).expect("random");
        assert_eq!(nonces.check(&nonce, now), Ok(()));
        assert_eq!(others.check(&nonce, now), Err(Fault::Unknown));
        assert_eq!(nonces.take(&nonce, now), Ok(()));
        assert_eq!(nonces.take(&nonce, now), Err(Fault::Used));
        assert_eq!(nonces.check(&nonce, now), Err(Fault::Used));
        let another = nonces.give(now).expect("random");
        assert_ne!(nonce, another);
        let late = now + GOOD + Duration::from_secs(1);
        assert_eq!(nonces.take(&another, late), Err(Fault::Ended));
        let mut longer = another;
        longer[0] = 1;
        assert_eq!(nonces.take(&longer, late), Err(Fault::Unknown));
    }

    #[test]
    fn those_that_ended_are_forgotten_and_the_rest_is_remembered() {
        let nonces = Nonces::new().expect("random");
        let start = Instant::now();
        let later = start + GOOD / 2;
        let early: Vec<Nonce> = (0..100)
            .map(|_| nonces.give(start).expect("random"))
            .collect();
        let late = nonces.give(later).expect("random");
        for nonce in early.iter().chain([&late]) {
            assert_eq!(nonces.take(nonce, later), Ok(()));
        }
        assert_eq!(nonces.used().len(), 101);
        let end = start + GOOD + Duration::from_secs(1);
        let last = nonces.give(end).expect("random");
        assert_eq!(nonces.take(&last, end), Ok(()));
        assert_eq!(nonces.used().len(), 2);
        assert_eq!(nonces.take(&late, end), Err(Fault::Used));
    }
}

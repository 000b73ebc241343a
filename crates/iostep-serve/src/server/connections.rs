//! How many connections there are at once, of all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::network;

/// Lets connections in.
#[derive(Debug)]
pub struct ConnectionLimit {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// By the network of the address; none that has no connection.
    by_network: HashMap<[u8; 16], usize>,
}

/// One connection that was let in; another may come when this is dropped.
#[derive(Debug)]
pub struct Admitted {
    limit: Arc<ConnectionLimit>,
    network: [u8; 16],
}

impl ConnectionLimit {
    /// A limit of `most` connections, and for `most_of_one` of one address.
    pub fn new(most: usize, most_of_one: usize) -> Arc<ConnectionLimit> {
        Arc::new(ConnectionLimit {
            most,
            most_of_one,
            taken: Mutex::default(),
        })
    }

    /// Lets a connection from an address in; `None` if there are too many.
    pub fn admit(self: &Arc<ConnectionLimit>, address: IpAddr) -> Option<Admitted> {
        let network = network(address);
        let mut taken = self.taken();
        let of_one = taken.by_network.get(&network).copied().unwrap_or(0);
        if taken.all >= self.most || of_one >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.by_network.insert(network, of_one + 1);
        Some(Admitted {
            limit: Arc::clone(self),
            network,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut taken = self.limit.taken();
        taken.all -= 1;
        if let Some(of_one) = taken.by_network.get_mut(&self.network) {
            *of_one -= 1;
            if *of_one == 0 {
                taken.by_network.remove(&self.network);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_its_share_and_what_ends_makes_room() {
        let limit = ConnectionLimit::new(3, 2);
        let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let first = limit.admit(one).expect("room");
        let second = limit.admit(one).expect("room");
        assert!(limit.admit(one).is_none());
        let third = limit.admit(other).expect("room");
        assert!(limit.admit(other).is_none());
        drop(first);
        let again = limit.admit(one).expect("room");
        drop((again, second, third));
        assert!(limit.taken().by_network.is_empty());
        assert_eq!(limit.taken().all, 0);
    }
}

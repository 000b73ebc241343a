//! How many connections there are at once, of all and of one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::network;

/// Gives places to connections.
#[derive(Debug)]
pub struct Room {
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

/// The place of one connection, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    room: Arc<Room>,
    network: [u8; 16],
}

impl Room {
    /// Room for `most` connections, and for `most_of_one` of one address.
    pub fn new(most: usize, most_of_one: usize) -> Arc<Room> {
        Arc::new(Room {
            most,
            most_of_one,
            taken: Mutex::default(),
        })
    }

    /// A place for a connection from an address; `None` if there is none.
    pub fn enter(self: &Arc<Room>, address: IpAddr) -> Option<Place> {
        let network = network(address);
        let mut taken = self.taken();
        let of_one = taken.by_network.get(&network).copied().unwrap_or(0);
        if taken.all >= self.most || of_one >= self.most_of_one {
            return None;
        }
        taken.all += 1;
        taken.by_network.insert(network, of_one + 1);
        Some(Place {
            room: Arc::clone(self),
            network,
        })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
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
        let room = Room::new(3, 2);
        let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let first = room.enter(one).expect("room");
        let second = room.enter(one).expect("room");
        assert!(room.enter(one).is_none());
        let third = room.enter(other).expect("room");
        assert!(room.enter(other).is_none());
        drop(first);
        let again = room.enter(one).expect("room");
        drop((again, second, third));
        assert!(room.taken().by_network.is_empty());
        assert_eq!(room.taken().all, 0);
    }
}

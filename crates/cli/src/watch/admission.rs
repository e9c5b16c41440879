//! Who may come in: how many connections there are, from where, and which have not said yet what
//! they want.
//!
//! A connection without a head costs a thread, and nobody knows yet whether it has the token. Of
//! too many of these the one that has waited longest is closed, of the address that has the most
//! of them; whoever sends a head at once is let in, however many are silent. Those that are in
//! are counted by their address, so that one never has all places.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};

/// Connections that were let in, at the same time.
pub(super) const INSIDE_MAX: usize = 2048;
/// The same, of one address.
pub(super) const INSIDE_OF_ONE_MAX: usize = 1024;
/// Connections that have no head yet.
const OUTSIDE_MAX: usize = 256;

/// Where a connection comes from. A network of version 6 hands out so many addresses that those
/// of one are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// This machine, by a file.
    Local,
    V4([u8; 4]),
    V6([u8; 8]),
}

impl From<IpAddr> for Origin {
    fn from(address: IpAddr) -> Origin {
        match address.to_canonical() {
            IpAddr::V4(address) => Origin::V4(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Origin::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// What closes a connection, from any thread.
pub(super) type Close = Box<dyn FnOnce() + Send>;

/// All connections.
#[derive(Default)]
pub(super) struct Admission(Mutex<Connections>);

#[derive(Default)]
struct Connections {
    count: u64,
    /// Those without a head, the oldest first.
    outside: Vec<Outside>,
    inside: HashMap<Origin, usize>,
}

struct Outside {
    number: u64,
    origin: Origin,
    close: Close,
}

/// A place of a connection; it is free again when this is dropped.
pub(super) struct Place {
    admission: Arc<Admission>,
    number: u64,
    origin: Origin,
    is_inside: bool,
}

impl Admission {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.0.lock().expect("nobody panics while holding it")
    }

    /// A connection comes; whether another one had to go for it.
    pub(super) fn knock(self: &Arc<Self>, origin: Origin, close: Close) -> (Place, bool) {
        let mut connections = self.connections();
        let closed = connections.make_room();
        connections.count += 1;
        let number = connections.count;
        connections.outside.push(Outside { number, origin, close });
        drop(connections);
        let is_any_closed = closed.is_some();
        if let Some(close) = closed {
            close();
        }
        (Place { admission: Arc::clone(self), number, origin, is_inside: false }, is_any_closed)
    }
}

impl Connections {
    /// Takes out the oldest connection of the address with the most, if there are too many.
    fn make_room(&mut self) -> Option<Close> {
        if self.outside.len() < OUTSIDE_MAX {
            return None;
        }
        let mut counts: HashMap<Origin, usize> = HashMap::new();
        for one in &self.outside {
            *counts.entry(one.origin).or_default() += 1;
        }
        let most = counts.values().copied().max()?;
        let place = self.outside.iter().position(|one| counts[&one.origin] == most)?;
        Some(self.outside.remove(place).close)
    }
}

impl Place {
    /// The head was taken: an error if there are too many already.
    pub(super) fn enter(&mut self) -> Result<(), String> {
        if self.is_inside {
            return Ok(());
        }
        let mut connections = self.admission.connections();
        let all: usize = connections.inside.values().sum();
        let of_one = connections.inside.get(&self.origin).copied().unwrap_or(0);
        if of_one >= INSIDE_OF_ONE_MAX {
            return Err(format!("expected at most {INSIDE_OF_ONE_MAX} connections of one address"));
        }
        if all >= INSIDE_MAX {
            return Err(format!("expected at most {INSIDE_MAX} connections"));
        }
        connections.outside.retain(|one| one.number != self.number);
        *connections.inside.entry(self.origin).or_default() += 1;
        self.is_inside = true;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut connections = self.admission.connections();
        if !self.is_inside {
            connections.outside.retain(|one| one.number != self.number);
        } else if let Some(count) = connections.inside.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                connections.inside.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn origin(last: u8) -> Origin {
        IpAddr::from([127, 0, 0, last]).into()
    }

    #[test]
    fn of_too_many_that_are_silent_the_oldest_of_the_greediest_goes() {
        let admission: Arc<Admission> = Arc::default();
        let last_closed = Arc::new(AtomicUsize::new(usize::MAX));
        let knock = |number: usize, from: u8| {
            let closed = Arc::clone(&last_closed);
            let close = Box::new(move || closed.store(number, Ordering::Relaxed));
            admission.knock(origin(from), close)
        };
        let (honest, _) = knock(0, 1);
        let silent: Vec<(Place, bool)> = (1..OUTSIDE_MAX).map(|number| knock(number, 2)).collect();
        assert!(silent.iter().all(|(_, is_any_closed)| !is_any_closed));
        let (_next, is_any_closed) = knock(OUTSIDE_MAX, 3);
        assert!(is_any_closed);
        assert_eq!(last_closed.load(Ordering::Relaxed), 1);
        drop(honest);
        // There is room again.
        assert!(!knock(OUTSIDE_MAX + 1, 2).1);
    }

    #[test]
    fn one_address_never_has_all_places() {
        let admission: Arc<Admission> = Arc::default();
        let enter = |from: u8| {
            let (mut place, _) = admission.knock(origin(from), Box::new(|| ()));
            place.enter().map(|()| place)
        };
        let mut inside: Vec<Place> =
            (0..INSIDE_OF_ONE_MAX).map(|_| enter(1).expect("there is room")).collect();
        let refused = enter(1).err();
        assert_eq!(refused.as_deref(), Some("expected at most 1024 connections of one address"));
        inside
            .extend((0..INSIDE_MAX - INSIDE_OF_ONE_MAX).map(|_| enter(2).expect("there is room")));
        assert_eq!(enter(3).err().as_deref(), Some("expected at most 2048 connections"));
        inside.pop();
        assert!(enter(3).is_ok());
    }

    #[test]
    fn addresses_of_one_network_are_one() {
        let of = |text: &str| Origin::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:1.2.3.4"), of("1.2.3.4"));
    }
}

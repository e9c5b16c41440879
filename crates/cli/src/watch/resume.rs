//! Streams that were cut and go on in another connection.
//!
//! A sender that gives its stream an identity may connect again and send once more what was
//! not acknowledged. What the listener had taken of that already is recognized and left out:
//! within a client transactions ascend, so it is of an earlier transaction than the last, or is
//! an event of the last that is equal in everything.

use super::now::{now, patience};
use super::stream::StreamClient;
use isolde::online::Interval;
use isolde_history::trace::{Kind, Row};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long a cut stream is kept.
const KEPT_FOR: Duration = Duration::from_mins(1);
/// How long the next connection waits until the end of the one before it is noticed.
const WAIT_MAX: Duration = Duration::from_secs(2);
/// Cut streams at the same time.
const PARKED_MAX: usize = 1024;
/// Streams that were given up, and are known as such.
const GIVEN_UP_MAX: usize = 1 << 16;
/// Bytes of an identity.
const IDENTITY_BYTES_MAX: usize = 200;

/// The clients of a stream, by their names.
pub(super) type Clients = BTreeMap<String, StreamClient>;

/// Streams with an identity: those that are connected, and those that were cut.
#[derive(Default)]
pub(super) struct Parking {
    streams: Mutex<Streams>,
    changed: Condvar,
}

#[derive(Default)]
struct Streams {
    connected: HashSet<String>,
    parked: BTreeMap<String, (Clients, Instant)>,
    /// Codes of those that may not come back, as what they send again would be told twice; the
    /// last to be given up is the last here.
    given_up: VecDeque<u64>,
}

impl Streams {
    fn give_up(&mut self, identity: &str) {
        if self.given_up.len() == GIVEN_UP_MAX {
            self.given_up.pop_front();
        }
        self.given_up.push_back(code(&identity));
    }
}

impl Parking {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().expect("nobody panics while parking")
    }

    /// A stream with this identity connects: what it had before.
    pub(super) fn enter(&self, identity: &str) -> Result<Clients, String> {
        if identity.is_empty() || identity.len() > IDENTITY_BYTES_MAX {
            return Err(format!("expected a `resume` of 1 to {IDENTITY_BYTES_MAX} bytes"));
        }
        let is_there = |streams: &mut Streams| streams.connected.contains(identity);
        let waited = self.changed.wait_timeout_while(self.streams(), patience(WAIT_MAX), is_there);
        let (mut streams, waited) = waited.expect("nobody panics while parking");
        if streams.given_up.contains(&code(&identity)) {
            return Err("expected a `resume` that is new or goes on in time, found one that was \
                        given up"
                .into());
        }
        if waited.timed_out() {
            return Err("expected one connection of this `resume` at a time, found another".into());
        }
        streams.connected.insert(identity.to_owned());
        Ok(streams.parked.remove(identity).map(|(clients, _)| clients).unwrap_or_default())
    }

    /// A stream is not connected any more; its clients may come back. Those for which there
    /// is no room are given back, and given up.
    pub(super) fn leave(&self, identity: &str, clients: Clients) -> Clients {
        let mut streams = self.streams();
        streams.connected.remove(identity);
        self.changed.notify_all();
        if clients.is_empty() {
            return clients;
        }
        if streams.parked.len() == PARKED_MAX {
            streams.give_up(identity);
            return clients;
        }
        streams.parked.insert(identity.to_owned(), (clients, now()));
        Clients::new()
    }

    /// A stream may not come back.
    pub(super) fn give_up(&self, identity: &str) {
        let mut streams = self.streams();
        streams.connected.remove(identity);
        streams.give_up(identity);
        self.changed.notify_all();
    }

    /// Those that did not come back in time.
    pub(super) fn take_expired(&self) -> Vec<Clients> {
        let mut streams = self.streams();
        let expired = streams.parked.extract_if(.., |_, (_, since)| now() - *since > KEPT_FOR);
        let expired: Vec<(String, (Clients, Instant))> = expired.collect();
        for (identity, _) in &expired {
            streams.give_up(identity);
        }
        expired.into_iter().map(|(_, (clients, _))| clients).collect()
    }

    /// All that are not connected.
    pub(super) fn take_all(&self) -> Vec<Clients> {
        let parked = std::mem::take(&mut self.streams().parked);
        parked.into_values().map(|(clients, _)| clients).collect()
    }
}

/// What was taken of a client, as far as it may come again.
#[derive(Default)]
pub(super) struct Taken {
    txn: Option<u64>,
    /// Codes of the events of its last transaction.
    events: Vec<u64>,
    /// Whether its next event may be one that came before.
    is_again: bool,
}

impl Taken {
    /// The client is back.
    pub(super) fn again(&mut self) {
        self.is_again = true;
    }

    /// Whether an event is new; if it is, it is known from now on.
    pub(super) fn is_new(
        &mut self,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> bool {
        let code = code(&(kind, interval.invoked, interval.completed, rows));
        let is_old = match self.txn {
            Some(last) => txn < last || (txn == last && self.events.contains(&code)),
            None => false,
        };
        if self.is_again && is_old {
            return false;
        }
        self.is_again = false;
        if self.txn != Some(txn) {
            self.txn = Some(txn);
            self.events.clear();
        }
        self.events.push(code);
        true
    }
}

fn code(of: &impl Hash) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_old_only_after_a_cut() {
        let mut taken = Taken::default();
        let take = |taken: &mut Taken, txn, kind, invoked| {
            let interval = Interval { invoked, completed: invoked + 1 };
            taken.is_new(txn, kind, interval, &[])
        };
        let sent = [(1, Kind::Begin, 1), (1, Kind::Commit, 3), (2, Kind::Begin, 5)];
        for (txn, kind, at) in sent {
            assert!(take(&mut taken, txn, kind, at));
        }
        taken.again();
        for (txn, kind, at) in sent {
            assert!(!take(&mut taken, txn, kind, at));
        }
        assert!(take(&mut taken, 2, Kind::Commit, 7));
        assert!(take(&mut taken, 2, Kind::Commit, 7), "a repetition is for others to judge");
    }

    #[test]
    fn an_identity_is_connected_once_and_finds_what_it_left() {
        let parking = Parking::default();
        assert!(parking.enter("").is_err());
        assert!(parking.enter("one").is_ok_and(|clients| clients.is_empty()));
        assert!(parking.leave("one", Clients::new()).is_empty());
        assert!(parking.enter("one").is_ok());
        assert!(parking.take_all().is_empty() && parking.take_expired().is_empty());
        // What it would send again was told already, by clients that are gone.
        parking.give_up("one");
        assert!(parking.enter("one").is_err());
        assert!(parking.enter("another").is_ok());
    }
}

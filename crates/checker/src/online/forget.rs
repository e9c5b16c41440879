//! Giving up what can matter no more.
//!
//! The *horizon* is the earliest instant at which a transaction that is open, or is still
//! to come, can have its snapshot. What ended before it is concurrent with nothing to
//! come: its locks are released, its place in the order is certain. A version that was
//! replaced before the horizon is seen by nobody who may see it. So the last version of
//! each item stays, and little more, and memory follows the number of transactions at a
//! time and not of all transactions.

use super::tables::{Fate, NONE, Stage, State};
use super::trace::{Interval, NEVER, Time};
use super::verifier::Verifier;

/// Versions that are remembered after they were given up, so that a read of one of them
/// can be called by its name.
const GRAVEYARD_MAX: usize = 1 << 12;
/// Lists of versions that are gone through whenever one of them may be given up.
const SHORT: u32 = 8;

impl Verifier {
    /// Moves the horizon and gives up what lies before it.
    pub(super) fn forget(&mut self) {
        while let Some(&oldest) = self.open.front() {
            if !self.tables.txns[oldest].is_judged() {
                break;
            }
            self.open.pop_front();
            self.tables.txns[oldest].is_queued = false;
        }
        let next = self.watermark.saturating_sub(self.options.drift);
        let oldest = self.open.front().map_or(NEVER, |&txn| self.tables.txns[txn].start);
        let horizon = next.min(oldest).saturating_sub(self.profile.staleness);
        self.horizon = self.horizon.max(horizon);
        while let Some(&oldest) = self.ended.front() {
            if self.tables.txns[oldest].is_queued || self.expires(oldest) >= self.horizon {
                break;
            }
            self.ended.pop_front();
            self.expire(oldest);
        }
    }

    /// The instant after which nothing is concurrent with a transaction that has ended.
    pub(super) fn expires(&self, txn: u32) -> Time {
        let txn = &self.tables.txns[txn];
        if txn.state == State::Aborted { txn.answered } else { txn.commit.completed }
    }

    /// Nothing to come is concurrent with this transaction.
    fn expire(&mut self, txn: u32) {
        self.drop_uses(txn);
        self.tables.txns[txn].stage = Stage::Expired;
        let node = self.tables.txns[txn].node;
        if !node.is_in_graph() {
            self.remove(txn);
            return;
        }
        if !node.is_first() {
            return;
        }
        let mut firsts = std::mem::take(&mut self.firsts);
        firsts.push(txn);
        while let Some(first) = firsts.pop() {
            // One that is first now but not old enough is asked again when it expires.
            if self.tables.txns[first].stage == Stage::Expired {
                self.graph.remove_first(&mut self.tables.txns, first, &mut firsts);
                self.remove(first);
            }
        }
        self.firsts = firsts;
    }

    fn drop_uses(&mut self, txn: u32) {
        let mut place = std::mem::replace(&mut self.tables.txns[txn].uses, NONE);
        while place != NONE {
            let next = self.tables.uses[place].next_of_txn;
            self.tables.unlink_use(place);
            self.tables.uses.give_back(place);
            place = next;
        }
    }

    /// Gives a transaction back; its last versions stay.
    fn remove(&mut self, txn: u32) {
        self.drop_notes(txn);
        let mut place = std::mem::replace(&mut self.tables.txns[txn].versions, NONE);
        while place != NONE {
            let version = &mut self.tables.versions[place];
            let (next, item) = (version.next_of_txn, version.item);
            version.txn = NONE;
            version.next_of_txn = NONE;
            let item = &mut self.tables.items[item as usize];
            item.released += 1;
            // A long list is gone through when that may halve it, and not for each version.
            if item.kept <= SHORT || item.released >= item.kept / 2 {
                let item = version.item;
                self.prune(item);
            }
            place = next;
        }
        self.tables.txns.give_back(txn);
    }

    /// Gives up the notes of a transaction.
    pub(super) fn drop_notes(&mut self, txn: u32) {
        self.conditions.give_up(txn, self.tables.txns[txn].snapshot);
        let mut place = std::mem::replace(&mut self.tables.txns[txn].notes, NONE);
        while place != NONE {
            let note = &self.notes[place];
            let (version, following) = (note.version, note.next_of_txn);
            let (previous, next) = (note.previous_reader, note.next_reader);
            if previous != NONE {
                self.notes[previous].next_reader = next;
            } else if version != NONE && self.tables.versions[version].readers == place {
                self.tables.versions[version].readers = next;
            }
            if next != NONE {
                self.notes[next].previous_reader = previous;
            }
            self.notes.give_back(place);
            place = following;
        }
    }

    /// Gives up versions of an item that nobody who is still to come can see.
    fn prune(&mut self, item: u32) {
        let mut pivot = super::trace::ALWAYS;
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            self.counters.looked_at += 1;
            let version = &self.tables.versions[place];
            if version.fate == Fate::Committed && version.commit.completed < self.horizon {
                pivot = pivot.max(version.commit.invoked);
            }
            place = version.older;
        }
        let mut given_up = Vec::new();
        let mut newer = NONE;
        place = self.tables.items[item as usize].newest;
        while place != NONE {
            let older = self.tables.versions[place].older;
            if self.is_useless(place, pivot) {
                self.unlink_version(item, newer, place);
                given_up.push(place);
            } else {
                newer = place;
            }
            place = older;
        }
        self.tables.items[item as usize].released = 0;
        if !given_up.is_empty() {
            self.give_back_versions(item, given_up);
        }
    }

    /// Whether nobody can see a version if all that was committed before the horizon and before
    /// this pivot is replaced.
    fn is_useless(&self, place: u32, pivot: Time) -> bool {
        let version = &self.tables.versions[place];
        let is_shown_replaced = version.successor != NONE
            && self.tables.versions[version.successor].commit.completed < self.horizon;
        version.txn == NONE
            && match version.fate {
                Fate::Committed | Fate::Lost => {
                    version.commit.completed < pivot || is_shown_replaced
                }
                Fate::Aborted | Fate::Intermediate => true,
                Fate::Pending => false,
            }
    }

    /// Takes a version out of its item's list, after `newer`.
    fn unlink_version(&mut self, item: u32, newer: u32, place: u32) {
        let older = self.tables.versions[place].older;
        if newer == NONE {
            self.tables.items[item as usize].newest = older;
        } else {
            self.tables.versions[newer].older = older;
        }
        self.tables.items[item as usize].kept -= 1;
        self.tables.meeting.forget(self.tables.versions[place].content, item);
        if self.profile.notes_reads() {
            let mut note = self.tables.versions[place].readers;
            while note != NONE {
                self.notes[note].version = NONE;
                note = self.notes[note].next_reader;
            }
        }
        if self.graveyard.len() == GRAVEYARD_MAX {
            self.graveyard.pop_front();
        }
        self.graveyard.push_back(self.tables.versions[place]);
    }

    /// Gives back versions that are in no list any more, and are nobody's successors.
    fn give_back_versions(&mut self, item: u32, mut given_up: Vec<u32>) {
        given_up.sort_unstable();
        let mut place = self.tables.items[item as usize].newest;
        while place != NONE {
            let version = &mut self.tables.versions[place];
            if version.successor != NONE && given_up.binary_search(&version.successor).is_ok() {
                version.successor = NONE;
            }
            place = version.older;
        }
        for place in given_up {
            self.tables.versions.give_back(place);
        }
    }

    /// Narrows where a commit lies. One without an answer that is known to have been over
    /// by some instant can be given up after that.
    pub(super) fn narrow_commit(&mut self, txn: u32, to: Interval) {
        let was_endless = self.tables.txns[txn].commit.completed == NEVER;
        self.tables.narrow_commit(txn, to);
        let own = &self.tables.txns[txn];
        if was_endless && own.commit.completed != NEVER && own.is_judged() {
            self.ended.push_back(txn);
        }
    }
}

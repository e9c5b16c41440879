//! What reads have told about a snapshot and commits that overlap it.
//!
//! Intervals alone lose it: of a snapshot and a commit in the same interval they cannot
//! say which came first. A read that one version alone explains can: that version's
//! transaction was *seen*, and those that certainly replaced it later were *missed*.
//! What was seen hides what it replaced from the same snapshot; of what was missed no
//! other version is seen.

use super::slab::Slab;
use super::tables::NONE;
use super::trace::ClientId;
use super::verifier::Verifier;

/// Which of the two came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// The commit.
    Seen,
    /// The snapshot.
    Missed,
}

/// One thing that is known about a snapshot.
pub(super) struct Relation {
    other: u32,
    /// Who that was: it may be forgotten before the snapshot is over, and its slot used
    /// again.
    id: (ClientId, u64),
    side: Side,
    next: u32,
}

impl Verifier {
    /// What the snapshot of a transaction is known to have to do with another one.
    pub(super) fn relation(&self, txn: u32, other: u32) -> Option<Side> {
        let mut place = self.tables.txns[txn].relations;
        while place != NONE {
            let relation = &self.relations[place];
            if relation.other == other && relation.id == self.id(other) {
                return Some(relation.side);
            }
            place = relation.next;
        }
        None
    }

    /// Notes it.
    pub(super) fn relate(&mut self, txn: u32, other: u32, side: Side) {
        if other == NONE || other == txn || self.relation(txn, other).is_some() {
            return;
        }
        let (id, next) = (self.id(other), self.tables.txns[txn].relations);
        let relation = Relation { other, id, side, next };
        self.tables.txns[txn].relations = self.relations.insert(relation);
    }

    fn id(&self, txn: u32) -> (ClientId, u64) {
        (self.tables.txns[txn].client, self.tables.txns[txn].number)
    }

    /// Forgets it: the snapshot is over.
    pub(super) fn drop_relations(&mut self, txn: u32) {
        let mut place = std::mem::replace(&mut self.tables.txns[txn].relations, NONE);
        while place != NONE {
            let next = self.relations[place].next;
            self.relations.give_back(place);
            place = next;
        }
    }
}

/// Where they are kept.
pub(super) type Relations = Slab<Relation>;

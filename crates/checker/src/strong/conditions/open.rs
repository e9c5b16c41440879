//! Questions about reads by condition that only an order of all versions answers.

use super::{Listed, SlotWrites, listing};
use crate::strong::model::Model;
use crate::strong::repeated::{NO_READ, Repeated};
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use hashbrown::{HashMap, HashSet};
use isolde_history::{KeyId, OpId, Outcome, Predicate, Share, TxnId};
use std::collections::BTreeMap;

/// Whether what an operation found fits an order: of one key, or of all for an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::strong) struct Open {
    pub(super) reader: TxnId,
    pub(super) op: OpId,
    pub(super) key: Option<KeyId>,
}

/// An order of events, of which questions are asked.
struct Asked<'v, 'a> {
    model: &'static Model,
    versions: &'v Versions<'a>,
    writes: SlotWrites,
    /// By node.
    positions: Vec<u32>,
    /// Versions in their order, the initial one first.
    chains: HashMap<KeyId, Vec<Slot>>,
    /// What the operation that was asked about last lists.
    listing: Option<(OpId, BTreeMap<KeyId, Listed>)>,
}

impl<'v, 'a> Asked<'v, 'a> {
    fn new(model: &'static Model, versions: &'v Versions<'a>, positions: Vec<u32>) -> Self {
        let writes = SlotWrites::new(versions);
        let (chains, listing) = (HashMap::new(), None);
        Asked { model, versions, writes, positions, chains, listing }
    }

    /// Whether the order answers a question with yes.
    fn fits(&mut self, open: &Open) -> bool {
        let history = self.versions.history;
        let predicate = history.predicate(open.op);
        if let Some(key) = open.key {
            return self.fits_key(open, predicate, key);
        }
        let aggregate = predicate.aggregate.expect("only aggregates are about all keys");
        let mut shares = Vec::new();
        for key in history.keys() {
            let write = match self.own_write(open, key) {
                Some(own) => Some(own),
                None if !self.fits_key(open, predicate, key) => return false,
                None => {
                    let slot = self.seen(open, key).1;
                    self.writes.of(slot)
                }
            };
            let Some(share) = history.share(predicate, key, write) else { return false };
            shares.push(share);
        }
        aggregate.agrees(history.values(), shares.into_iter()) == Some(true)
    }

    fn own_write(&self, open: &Open, key: KeyId) -> Option<OpId> {
        let history = self.versions.history;
        let before = (history.op_range(open.reader).start..open.op.0).rev().map(OpId);
        let writes = |op: &OpId| history.op(*op).kind.is_write() && history.op(*op).key == key;
        before.into_iter().find(writes)
    }

    fn listed(&mut self, op: OpId, key: KeyId) -> Listed {
        if self.listing.as_ref().is_none_or(|known| known.0 != op) {
            let predicate = self.versions.history.predicate(op);
            self.listing = Some((op, listing(self.versions, op, predicate)));
        }
        let listed = self.listing.as_ref().and_then(|known| known.1.get(&key));
        listed.copied().unwrap_or(Listed::Absent)
    }

    /// Puts the versions of a key in order, the initial one first.
    fn order(&mut self, key: KeyId) {
        let (versions, model, positions) = (self.versions, self.model, &self.positions);
        self.chains.entry(key).or_insert_with(|| {
            let mut slots: Vec<Slot> = versions.slots_of(key).collect();
            slots.sort_unstable_by_key(|&slot| {
                positions[model.commit(versions.writer(slot)) as usize]
            });
            slots.insert(0, INITIAL_SLOT);
            slots
        });
    }

    /// The last version that is committed when the reader begins, and its place.
    fn seen(&mut self, open: &Open, key: KeyId) -> (usize, Slot) {
        self.order(key);
        let (versions, model, positions) = (self.versions, self.model, &self.positions);
        let begin = positions[model.begin(open.reader) as usize];
        let chain = &self.chains[&key];
        let is_before = |&slot: &Slot| {
            slot == INITIAL_SLOT || positions[model.commit(versions.writer(slot)) as usize] < begin
        };
        let place = chain.partition_point(is_before) - 1;
        (place, chain[place])
    }

    fn fits_key(&mut self, open: &Open, predicate: &Predicate, key: KeyId) -> bool {
        let history = self.versions.history;
        let (place, slot) = self.seen(open, key);
        let listed = self.listed(open.op, key);
        let share = |slot: Slot| history.share(predicate, key, self.writes.of(slot));
        let adds = |slot: Slot| share(slot).map(|share| share != Share::Nothing);
        let is_aggregate = predicate.aggregate.is_some();
        let chain = &self.chains[&key];
        let told = self.snapshot_place(open, chain);
        let is_own =
            |&slot: &Slot| slot != INITIAL_SLOT && self.versions.writer(slot) == open.reader;
        let own_place = chain.iter().position(is_own).unwrap_or(chain.len());
        // Whether a version is as good as the one that is seen: nothing changes between.
        let is_like = |other: usize| {
            let (low, high) = (place.min(other), place.max(other));
            let mut shares = chain[low..=high].iter().map(|&slot| share(slot));
            let first = shares.next().flatten();
            first.is_some() && shares.all(|it| it == first)
        };
        if told.is_some_and(|told| !is_like(told)) {
            return false;
        }
        match listed {
            Listed::Untold => true,
            Listed::Absent => is_aggregate || adds(slot) == Some(false),
            Listed::Replaced => adds(slot) == Some(true),
            Listed::Value { value, matched } => {
                let has_value = |slot: Slot| match self.writes.of(slot) {
                    Some(write) => history.op(write).value == value,
                    None => history.initial(key) == value,
                };
                (0..if told.is_some() { chain.len() } else { own_place }).any(|other| {
                    has_value(chain[other])
                        && told.is_none_or(|told| told == other)
                        && is_like(other)
                        && adds(chain[other]) == Some(matched)
                })
            }
        }
    }

    fn snapshot_place(&self, open: &Open, chain: &[Slot]) -> Option<usize> {
        let history = self.versions.history;
        let snapshot = history.snapshot(open.reader, open.op)?;
        let mut last = 0;
        for (place, &slot) in chain.iter().enumerate().skip(1) {
            let writer = self.versions.writer(slot);
            if snapshot.sees(history.number(writer)?) && writer != open.reader {
                last = place;
            }
        }
        Some(last)
    }
}

/// Whether an order of events answers all questions with yes; `None` if it was stopped.
pub(in crate::strong) fn all_fit(
    model: &'static Model,
    versions: &Versions<'_>,
    positions: Vec<u32>,
    stop: &dyn Fn() -> bool,
) -> Option<bool> {
    let mut asked = Asked::new(model, versions, positions);
    for open in &versions.conditions.open {
        if stop() {
            return None;
        }
        if !asked.fits(open) {
            return Some(false);
        }
    }
    Some(true)
}

/// Questions about single keys as choices of the version that was seen.
///
/// A key that was not found has a version that adds nothing, as has a listed one that does not
/// meet the condition. In an order of events that answers all questions, the last version of the
/// key before the reader began is one of these; so the reader may as well be taken to have read
/// it, like a value that several transactions wrote.
pub(in crate::strong) struct Choosable<'v, 'a> {
    /// None if there are no questions.
    asked: Option<Asked<'v, 'a>>,
    /// Not yet chosen about.
    left: Vec<Open>,
}

impl<'v, 'a> Choosable<'v, 'a> {
    pub(in crate::strong) fn new(model: &'static Model, versions: &'v Versions<'a>) -> Self {
        let left = choosable(versions);
        let asked = (!left.is_empty()).then(|| Asked::new(model, versions, Vec::new()));
        Choosable { asked, left }
    }

    /// Takes the questions that an order does not answer with yes.
    pub(in crate::strong) fn take_wrong(&mut self, positions: &[u32]) -> Vec<Repeated> {
        let Some(asked) = &mut self.asked else { return Vec::new() };
        asked.positions.clear();
        asked.positions.extend_from_slice(positions);
        asked.chains.clear();
        let wrong: Vec<Open> = self.left.extract_if(.., |open| !asked.fits(open)).collect();
        wrong.iter().map(|open| asked.repeated(open)).collect()
    }
}

/// Questions about single keys of which only it is open which version was seen.
pub(in crate::strong) fn choosable(versions: &Versions<'_>) -> Vec<Open> {
    let open = &versions.conditions.open;
    if open.is_empty() {
        return Vec::new();
    }
    let left_out = keys_left_out(versions);
    let is_choosable = |open: &&Open| {
        open.key.is_some_and(|key| !left_out.contains(&key))
            && versions.history.snapshot(open.reader, open.op).is_none()
    };
    open.iter().filter(is_choosable).copied().collect()
}

impl Asked<'_, '_> {
    /// All versions that may be the last one when the reader began.
    fn repeated(&mut self, open: &Open) -> Repeated {
        let versions = self.versions;
        let history = versions.history;
        let key = open.key.expect("a question about one key");
        let predicate = history.predicate(open.op);
        let listed = self.listed(open.op, key);
        let writes = &self.writes;
        let fits = |slot: &Slot| {
            let write = writes.of(*slot);
            let share = history.share(predicate, key, write);
            let adds = share.is_some_and(|share| share != Share::Nothing);
            match listed {
                Listed::Untold => true,
                Listed::Absent => !adds,
                Listed::Replaced => adds,
                // Or one like the listed version: nothing need have changed between them.
                Listed::Value { matched, .. } => adds == matched,
            }
        };
        let slots = std::iter::once(INITIAL_SLOT).chain(versions.slots_of(key));
        let origin = |slot: Slot| (slot != INITIAL_SLOT).then(|| versions.writer(slot));
        let origins = slots.filter(fits).map(origin).filter(|&it| it != Some(open.reader));
        Repeated {
            read: NO_READ,
            reader: open.reader,
            op: open.op,
            key,
            protected: true,
            origins: origins.collect(),
        }
    }
}

/// Keys with versions of transactions that do not count, although they may have committed: then
/// more may have been seen than is chosen from.
fn keys_left_out(versions: &Versions<'_>) -> HashSet<KeyId> {
    let history = versions.history;
    let is_left_out =
        |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown && !versions.index.is_counted(*txn);
    let ops = history.txns().filter(is_left_out).flat_map(|txn| history.ops_of(txn));
    ops.map(|op| history.op(op)).filter(|op| op.kind.is_write()).map(|op| op.key).collect()
}

//! Reads by condition: dependencies on versions that change what they find.
//!
//! **Definition** [Adya99, Emme]: as in `reference/conditions.rs`. Only the changes nearest to
//! the version that was seen are edges; the others follow through the order of versions.
//!
//! **Method.** The versions of a settled key are a chain. Per operation and key, the place in
//! the chain follows from a listed value, from the database's snapshot, or because only one
//! gap between matching versions is left; then the nearest changes are found by binary search
//! over the runs of matching versions. Runs come from an index over versions (`matches`), so
//! that the cost follows keys and matches, not all versions. What is not exact before an order
//! is known is kept as an open question (`open`), and asked of the order that was found: a
//! witness must answer all of them.

mod aggregates;
mod dense;
mod impossible;
mod matches;
mod open;
mod places;
mod runs;
mod walk;

use super::versions::{INITIAL_SLOT, Slot, Versions};
use isolde_history::{
    History, Index, KeyId, OpId, OpKind, Outcome, Predicate, Share, TxnId, Value,
};
use matches::Matches;
use places::Chains;
use runs::Runs;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) use open::{Choosable, Open, all_fit, choosable};

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) edges: Vec<ConditionEdge>,
    /// Questions that only an order of all versions answers.
    pub(super) open: Vec<Open>,
    /// Operations whose result no version set of theirs gives.
    pub(super) mismatches: Vec<Mismatch>,
}

/// Writers of unknown outcome that nobody names and that reads by condition may have met.
pub(crate) fn unnamed_writers<'a>(
    history: &'a History,
    index: &'a Index,
) -> impl Iterator<Item = TxnId> + 'a {
    let writes = |txn: TxnId| history.ops_of(txn).any(|op| history.op(op).kind.is_write());
    let is_unnamed =
        move |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown && !index.is_counted(*txn);
    let txns = history.has_predicates().then(|| history.txns());
    txns.into_iter().flatten().filter(is_unnamed).filter(move |&txn| writes(txn))
}

/// A dependency of a read by condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConditionEdge {
    pub(super) reader: TxnId,
    pub(super) writer: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    pub(super) kind: Change,
}

/// Whether the reader saw a change or missed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Saw,
    Missed,
}

/// A key that makes a result impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) op: OpId,
    pub(super) key: KeyId,
    /// The write of the version that was looked at, if it is one.
    pub(super) write: Option<OpId>,
}

/// What an operation says about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Value {
        value: Value,
        matched: bool,
    },
    /// Replaced, with a value never learned.
    Replaced,
    /// Nothing is told.
    Untold,
    Absent,
}

impl Conditions {
    /// What all reads by condition of counted transactions mean; `None` if it was stopped.
    pub(super) fn new(versions: &Versions<'_>, stop: &dyn Fn() -> bool) -> Option<Self> {
        let history = versions.history;
        let writes = Rc::new(SlotWrites::new(versions));
        let mut finder = Finder {
            versions,
            chains: Chains::new(versions, Rc::clone(&writes)),
            matches: Matches::new(versions, writes),
            found: Conditions::default(),
            nearest: vec![Nearest::default(); history.key_count()],
            changed: Vec::new(),
            work_left: impossible::WORK_MAX,
            has_uncounted: OnceCell::new(),
        };
        for txn in history.txns().filter(|&txn| versions.index.is_counted(txn)) {
            let mut own: BTreeMap<KeyId, OpId> = BTreeMap::new();
            for op in history.ops_of(txn) {
                let it = history.op(op);
                if it.kind.is_write() {
                    own.insert(it.key, op);
                } else if !it.kind.has_key() {
                    let predicate = history.predicate(op);
                    if stop() {
                        return None;
                    }
                    let listed = listing(versions, op, predicate);
                    finder.chains.look_at(txn, op);
                    finder.operation(&Reading { txn, op, predicate, own: &own, listed });
                }
            }
            finder.end_txn(txn);
        }
        Some(finder.found)
    }
}

fn listing(versions: &Versions<'_>, op: OpId, predicate: &Predicate) -> BTreeMap<KeyId, Listed> {
    let mut listed: BTreeMap<KeyId, Listed> = BTreeMap::new();
    for key in versions.history.replaced(op) {
        listed.insert(key, Listed::Replaced);
    }
    // Of several rows of a key the first counts.
    for row in predicate.rows.iter().rev() {
        let told = match (row.value, row.matched) {
            (Value::UNKNOWN, true) => Listed::Replaced,
            (Value::UNKNOWN, false) => Listed::Untold,
            (value, matched) => Listed::Value { value, matched },
        };
        listed.insert(row.key, told);
    }
    listed
}

/// One operation by condition.
struct Reading<'a> {
    txn: TxnId,
    op: OpId,
    predicate: &'a Predicate,
    /// The transaction's own writes before the operation.
    own: &'a BTreeMap<KeyId, OpId>,
    listed: BTreeMap<KeyId, Listed>,
}

impl Reading<'_> {
    fn listed(&self, key: KeyId) -> Listed {
        self.listed.get(&key).copied().unwrap_or(Listed::Absent)
    }
}

struct Finder<'v, 'a> {
    versions: &'v Versions<'a>,
    chains: Chains<'v, 'a>,
    matches: Matches<'v, 'a>,
    found: Conditions,
    /// By key, what the transaction at hand saw and missed of it.
    nearest: Vec<Nearest>,
    /// Keys of which it did.
    changed: Vec<KeyId>,
    /// How much may still be looked at to find impossible aggregates.
    work_left: usize,
    /// Found when it is asked for.
    has_uncounted: OnceCell<bool>,
}

/// Places of the nearest changes around a version that was seen.
#[derive(Clone, Copy, Debug)]
struct Changes {
    saw: Option<u32>,
    missed: Option<u32>,
}

/// The nearest changes around all versions that a transaction saw of a key, each with the
/// operation that they are nearest to. All others follow through the order of versions.
#[derive(Clone, Copy, Debug, Default)]
struct Nearest {
    txn: Option<TxnId>,
    saw: Option<(u32, OpId)>,
    missed: Option<(u32, OpId)>,
}

/// Where in its chain a key was seen.
enum Seen {
    /// At this place.
    At(u32),
    /// At none that fits.
    Nowhere,
    /// That is no matter: rows that are reads of their keys, and what is not told.
    Elsewhere,
    /// Only an order tells.
    Open,
}

impl Finder<'_, '_> {
    fn operation(&mut self, reading: &Reading<'_>) {
        if let Some(aggregate) = reading.predicate.aggregate {
            self.aggregate(reading, aggregate);
            return;
        }
        let history = self.versions.history;
        for (&key, &own) in reading.own {
            let Some(share) = history.share(reading.predicate, key, Some(own)) else { continue };
            let adds = share != Share::Nothing;
            let contradicts = match reading.listed(key) {
                Listed::Replaced => !adds,
                Listed::Absent => adds && !self.matches.is_list(key),
                Listed::Value { .. } | Listed::Untold => false,
            };
            if contradicts {
                self.mismatch(reading, key, Some(own));
            }
        }
        let found = self.matches.of(&mut self.chains, reading.predicate);
        if let Some(test) = found.dense {
            for key in history.keys().filter(|key| !reading.own.contains_key(key)) {
                self.dense_key(reading, key, test);
            }
        }
        for (key, runs) in &found.keys {
            self.key(reading, *key, runs);
        }
        for (&key, &listed) in &reading.listed {
            if !reading.own.contains_key(&key) && !found.has(key) {
                self.key_without_matches(reading, key, listed);
            }
        }
    }

    /// Of all changes that a transaction saw or missed of a key, the nearest count.
    fn changes(&mut self, reading: &Reading<'_>, key: KeyId, changes: Changes) {
        let nearest = &mut self.nearest[key.index()];
        if nearest.txn != Some(reading.txn) {
            *nearest = Nearest { txn: Some(reading.txn), ..Nearest::default() };
            self.changed.push(key);
        }
        if let Some(saw) = changes.saw
            && nearest.saw.is_none_or(|known| known.0 < saw)
        {
            nearest.saw = Some((saw, reading.op));
        }
        if let Some(missed) = changes.missed
            && nearest.missed.is_none_or(|known| known.0 > missed)
        {
            nearest.missed = Some((missed, reading.op));
        }
    }

    /// Makes edges of what a transaction saw and missed.
    fn end_txn(&mut self, reader: TxnId) {
        let mut changed = std::mem::take(&mut self.changed);
        for &key in &changed {
            let Nearest { saw, missed, .. } = self.nearest[key.index()];
            for (change, kind) in [(saw, Change::Saw), (missed, Change::Missed)] {
                let Some((place, op)) = change else { continue };
                let writer = self.chains.writer(key, place);
                if reader != writer {
                    self.found.edges.push(ConditionEdge { reader, writer, op, key, kind });
                }
            }
        }
        changed.clear();
        self.changed = changed;
    }

    fn key_without_matches(&mut self, reading: &Reading<'_>, key: KeyId, listed: Listed) {
        if !self.matches.can_tell(reading.predicate, key) {
            return;
        }
        if listed == Listed::Replaced {
            self.mismatch(reading, key, None);
        } else if !self.versions.settled[key.index()] {
            self.unordered_key(reading, key, &[]);
        } else if let Seen::Nowhere = self.seen(reading, key, &Runs::default()) {
            self.mismatch(reading, key, None);
        }
    }

    fn mismatch(&mut self, reading: &Reading<'_>, key: KeyId, write: Option<OpId>) {
        self.found.mismatches.push(Mismatch { op: reading.op, key, write });
    }

    fn leave_open(&mut self, reading: &Reading<'_>, key: Option<KeyId>) {
        self.found.open.push(Open { reader: reading.txn, op: reading.op, key });
    }

    /// What a key with versions that add something means to an operation.
    fn key(&mut self, reading: &Reading<'_>, key: KeyId, runs: &KeyRuns) {
        if reading.own.contains_key(&key) {
            return;
        }
        let runs = match runs {
            KeyRuns::Ordered(runs) => runs,
            KeyRuns::Unordered { others, .. } => {
                return self.unordered_key(reading, key, others);
            }
        };
        match self.seen(reading, key, runs) {
            Seen::At(place) => self.edges(reading, key, runs, place),
            Seen::Nowhere => {
                let write = runs.all().first().map_or(0, |run| run.start);
                let write = self.chains.write(key, write);
                self.mismatch(reading, key, write);
            }
            Seen::Elsewhere => {}
            Seen::Open => self.leave_open(reading, Some(key)),
        }
    }

    /// A key whose order is open. A reader that can have seen only the initial version
    /// precedes all writers; the rest is left to the order.
    fn unordered_key(&mut self, reading: &Reading<'_>, key: KeyId, others: &[Slot]) {
        let told = self.chains.has_snapshot();
        match reading.listed(key) {
            Listed::Untold => {}
            Listed::Value { matched, .. }
                if (matched || reading.predicate.condition.is_range()) && !told => {}
            Listed::Absent if others.is_empty() => self.mismatch(reading, key, None),
            Listed::Absent if others == [INITIAL_SLOT] && !told => {
                self.missed_all(reading, key);
                // The rest holds in every order if all writers follow the heads.
                if reading_is_writer(self.versions, reading, key) {
                    self.leave_open(reading, Some(key));
                }
            }
            _ => self.leave_open(reading, Some(key)),
        }
    }

    /// A reader that saw the initial version of a key whose order is open.
    fn missed_all(&mut self, reading: &Reading<'_>, key: KeyId) {
        let versions = self.versions;
        let heads = versions.slots_of(key).filter(|&slot| !versions.is_followed(slot));
        for writer in heads.map(|slot| versions.writer(slot)) {
            self.edge(reading, key, writer, Change::Missed);
        }
    }

    fn seen(&mut self, reading: &Reading<'_>, key: KeyId, runs: &Runs) -> Seen {
        let told = self.chains.snapshot_place(key);
        let listed = reading.listed(key);
        match (listed, told) {
            (Listed::Untold, _) => return Seen::Elsewhere,
            (Listed::Value { matched, .. }, None)
                if matched || reading.predicate.condition.is_range() =>
            {
                return Seen::Elsewhere;
            }
            _ => {}
        }
        let length = self.chains.length(key);
        let places: Vec<u32> = match (listed, told) {
            (_, Some(told)) => vec![told],
            (Listed::Value { value, matched }, None) => {
                let fits = |&place: &u32| matched == (runs.share(place) != Share::Nothing);
                let slots = self.chains.slots_of_value(key, value, reading.txn);
                let places = slots.into_iter().map(|slot| self.chains.place(key, slot));
                places.filter(fits).collect()
            }
            (Listed::Replaced, None) => runs.all().iter().map(|run| run.start).collect(),
            _ => runs.gaps(length),
        };
        let own_place = self.chains.own_place(key, reading.txn);
        let mut fits = |place: u32| {
            let adds = runs.share(place) != Share::Nothing;
            (told.is_some() || place < own_place) && self.fits(listed, adds, key, place)
        };
        let places: Vec<u32> = places.into_iter().filter(|&place| fits(place)).collect();
        match places[..] {
            [] => Seen::Nowhere,
            [place] => Seen::At(place),
            _ => Seen::Open,
        }
    }

    /// Whether a version that adds something or not is what was listed.
    fn fits(&mut self, listed: Listed, adds: bool, key: KeyId, place: u32) -> bool {
        match listed {
            Listed::Replaced => adds,
            Listed::Absent => !adds,
            Listed::Value { value, matched } => {
                adds == matched && self.chains.value(key, place) == value
            }
            Listed::Untold => true,
        }
    }

    fn edges(&mut self, reading: &Reading<'_>, key: KeyId, runs: &Runs, place: u32) {
        let length = self.chains.length(key);
        let changes =
            Changes { saw: runs.last_change(place), missed: runs.next_change(place, length) };
        self.changes(reading, key, changes);
    }

    fn edge(&mut self, reading: &Reading<'_>, key: KeyId, writer: TxnId, kind: Change) {
        let Reading { txn: reader, op, .. } = *reading;
        if reader != writer {
            self.found.edges.push(ConditionEdge { reader, writer, op, key, kind });
        }
    }
}

/// Whether the reader writes a key after it looked.
fn reading_is_writer(versions: &Versions<'_>, reading: &Reading<'_>, key: KeyId) -> bool {
    versions.slot(key, reading.txn).is_some()
}

/// What a key adds, by its versions.
enum KeyRuns {
    /// Along the order of its versions, which is known.
    Ordered(Rc<Runs>),
    /// The order is open.
    Unordered {
        /// Versions that add nothing.
        others: Vec<Slot>,
        /// Whether no version adds anything.
        adds_nothing: bool,
    },
}

impl KeyRuns {
    fn is_empty(&self) -> bool {
        match self {
            KeyRuns::Ordered(runs) => runs.all().is_empty(),
            KeyRuns::Unordered { adds_nothing, .. } => *adds_nothing,
        }
    }
}

/// The operation that installed each version.
struct SlotWrites {
    writes: Vec<OpId>,
}

impl SlotWrites {
    fn new(versions: &Versions<'_>) -> Self {
        let history = versions.history;
        let mut writes = vec![OpId(0); versions.index.writers().len()];
        for txn in history.txns().filter(|&txn| versions.index.is_counted(txn)) {
            for op in history.ops_of(txn) {
                let it = history.op(op);
                if it.kind.is_write()
                    && let Some(slot) = versions.slot(it.key, txn)
                {
                    writes[slot as usize] = op;
                }
            }
        }
        SlotWrites { writes }
    }

    /// The value of a version whose row exists.
    fn live_value(&self, history: &History, key: KeyId, slot: Slot) -> Option<Value> {
        let value = match self.of(slot) {
            Some(write) if history.op(write).kind == OpKind::Delete => Value::NIL,
            Some(write) => history.op(write).value,
            None => history.initial(key),
        };
        (value != Value::NIL).then_some(value)
    }

    /// The last write of its transaction; none for the initial version.
    fn of(&self, slot: Slot) -> Option<OpId> {
        (slot != INITIAL_SLOT).then(|| self.writes[slot as usize])
    }
}

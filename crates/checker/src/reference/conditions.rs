//! What reads by condition mean beside the rows they returned.
//!
//! **Definition** [Adya99, Emme]. An operation by condition has a version set: of each key one
//! version. A version *changes* what the operation finds if it adds something else to it than
//! the version before it: a row or nothing, for the least, largest and sum its value. The
//! operation depends on the writer of the last change at or before the version set's version,
//! and the writer of the first change after it depends on the operation.
//!
//! **The version set.** After an own write it has the own version. A snapshot that the database
//! told gives the last version it sees. Nothing is seen that was installed after an own later
//! version. A row that was listed with a value has that value.
//! For the rest there is a choice: a key that was not returned has a version that adds
//! nothing, a row that an update replaced has one that adds something, and an aggregate may
//! have seen any versions that give its result. Rows of ranges of keys are reads of these
//! keys anyway [Viper], as all returned rows are; keys with a version of which it cannot be
//! told what it adds, and keys listed with a version never learned, impose nothing.

use super::execution::{Counted, Execution};
use super::observation::writes_of;
use super::relation::Relation;
use crate::unknown::{Obstacle, Size};
use isolde_history::{KeyId, OpId, OpKind, Predicate, Share, Value};

/// More combinations of versions under one aggregate are refused.
const COMBINATIONS_MAX: usize = 4_096;

/// What depends on what if an operation saw certain versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alternative {
    pub(super) wr: Relation,
    pub(super) rw: Relation,
}

/// One of these holds.
pub(super) type Constraint = Vec<Alternative>;

/// What all operations by condition ask for, given an order of the versions of each key.
pub(super) fn constraints(
    execution: &Execution<'_>,
    orders: &[(KeyId, &[Counted])],
) -> Result<Vec<Constraint>, Obstacle> {
    let history = execution.history;
    let mut found = Vec::new();
    for (reader, &txn) in execution.counted.iter().enumerate() {
        for op in history.ops_of(txn).filter(|&op| !history.op(op).kind.has_key()) {
            let reading =
                Reading { execution, orders, reader, op, predicate: history.predicate(op) };
            if reading.predicate.aggregate.is_some() {
                found.extend(reading.aggregate()?);
            } else {
                found.extend(history.keys().filter_map(|key| reading.key(key)));
            }
        }
    }
    Ok(found)
}

struct Reading<'a> {
    execution: &'a Execution<'a>,
    orders: &'a [(KeyId, &'a [Counted])],
    reader: Counted,
    op: OpId,
    predicate: &'a Predicate,
}

/// The versions of a key in their order, the initial one first.
struct Chain {
    /// `None` is the initial version.
    writers: Vec<Option<Counted>>,
    writes: Vec<Option<OpId>>,
    shares: Vec<Share>,
}

/// What an operation says about a key.
enum Listed {
    /// Returned, or looked at, with this value.
    Value { value: Value, matched: bool },
    /// Replaced, with a value never learned.
    Replaced,
    /// Nothing is told.
    Untold,
    /// Not mentioned.
    Absent,
}

impl Reading<'_> {
    /// The versions of a key, if it can be told of each what it adds.
    fn chain(&self, key: KeyId) -> Option<Chain> {
        let history = self.execution.history;
        let order = self.orders.iter().find(|entry| entry.0 == key).map_or(&[][..], |it| it.1);
        let last_write = |writer: Counted| {
            let txn = self.execution.counted[writer];
            writes_of(history, key).filter(|&write| history.txn_of(write) == txn).last()
        };
        let writers: Vec<Option<Counted>> =
            std::iter::once(None).chain(order.iter().map(|&writer| Some(writer))).collect();
        let writes: Vec<Option<OpId>> =
            writers.iter().map(|writer| writer.and_then(last_write)).collect();
        let is_list = |&op: &OpId| {
            let it = history.op(op);
            it.key == key && matches!(it.kind, OpKind::Append | OpKind::ReadList)
        };
        if (0..history.op_count() as u32).map(OpId).any(|op| is_list(&op)) {
            return None;
        }
        let shares: Option<Vec<Share>> =
            writes.iter().map(|&write| history.share(self.predicate, key, write)).collect();
        Some(Chain { writers, writes, shares: shares? })
    }

    fn listed(&self, key: KeyId) -> Listed {
        let row = self.predicate.rows.iter().find(|row| row.key == key);
        match row {
            Some(row) if row.value != Value::UNKNOWN => {
                Listed::Value { value: row.value, matched: row.matched }
            }
            Some(row) if row.matched => Listed::Replaced,
            Some(_) => Listed::Untold,
            None if self.execution.history.replaced(self.op).any(|it| it == key) => {
                Listed::Replaced
            }
            None => Listed::Absent,
        }
    }

    /// The transaction's own last write of a key before the operation.
    fn own(&self, key: KeyId) -> Option<OpId> {
        let history = self.execution.history;
        let txn = self.execution.counted[self.reader];
        writes_of(history, key)
            .filter(|&write| history.txn_of(write) == txn && write < self.op)
            .last()
    }

    /// The place of the last version that the database's snapshot sees, if it tells.
    fn snapshot_place(&self, chain: &Chain) -> Option<usize> {
        let (history, counted) = (self.execution.history, &self.execution.counted);
        let snapshot = history.snapshot(counted[self.reader], self.op)?;
        let mut last = 0;
        for (place, writer) in chain.writers.iter().enumerate() {
            let Some(writer) = *writer else { continue };
            if snapshot.sees(history.number(counted[writer])?) && writer != self.reader {
                last = place;
            }
        }
        Some(last)
    }

    /// Places of versions that the operation may have seen.
    fn places(&self, key: KeyId, chain: &Chain) -> Vec<usize> {
        let history = self.execution.history;
        let value = |place: usize| match chain.writes[place] {
            Some(write) => history.op(write).value,
            None => history.initial(key),
        };
        let is_aggregate = self.predicate.aggregate.is_some();
        let fits = |place: usize| match self.listed(key) {
            Listed::Value { value: seen, matched } => {
                value(place) == seen && matched == (chain.shares[place] != Share::Nothing)
            }
            Listed::Replaced => chain.shares[place] != Share::Nothing,
            Listed::Absent => is_aggregate || chain.shares[place] == Share::Nothing,
            Listed::Untold => true,
        };
        let told = self.snapshot_place(chain);
        let is_own = |&writer: &Option<Counted>| writer == Some(self.reader);
        let own_place = chain.writers.iter().position(is_own).unwrap_or(chain.writers.len());
        // What the database told is taken as it is.
        (0..if told.is_some() { chain.writers.len() } else { own_place })
            .filter(|&place| told.is_none_or(|told| told == place))
            .filter(|&place| fits(place))
            .collect()
    }

    /// What depends on what if the version at this place was seen.
    fn alternative(&self, chain: &Chain, place: usize) -> Alternative {
        let changes = |at: &usize| chain.shares[*at] != chain.shares[*at - 1];
        let other = |at: usize| chain.writers[at].filter(|&writer| writer != self.reader);
        let mut alternative = Alternative::default();
        if let Some(writer) = (1..=place).rev().find(changes).and_then(other) {
            alternative.wr.insert(writer, self.reader);
        }
        let later = (place + 1..chain.writers.len()).find(changes);
        if let Some(writer) = later.and_then(other) {
            alternative.rw.insert(self.reader, writer);
        }
        alternative
    }

    /// What a key imposes on an operation that returned rows, if anything.
    fn key(&self, key: KeyId) -> Option<Constraint> {
        let chain = self.chain(key)?;
        let history = self.execution.history;
        let listed = self.listed(key);
        if let Some(own) = self.own(key) {
            let adds = history.share(self.predicate, key, Some(own))? != Share::Nothing;
            let fits = match listed {
                // Its value is compared as that of every read is.
                Listed::Value { .. } | Listed::Untold => true,
                Listed::Replaced => adds,
                Listed::Absent => !adds,
            };
            return (!fits).then(Vec::new);
        }
        match listed {
            Listed::Untold => return None,
            Listed::Value { matched, .. }
                if (matched || self.predicate.condition.is_range())
                    && self.snapshot_place(&chain).is_none() =>
            {
                return None;
            }
            _ => {}
        }
        let places = self.places(key, &chain);
        Some(places.into_iter().map(|place| self.alternative(&chain, place)).collect())
    }

    /// What an aggregate imposes on all keys together, if anything.
    fn aggregate(&self) -> Result<Option<Constraint>, Obstacle> {
        let history = self.execution.history;
        let aggregate = self.predicate.aggregate.expect("called for aggregates");
        let mut combinations: Vec<(Vec<Share>, Alternative)> =
            vec![(Vec::new(), Alternative::default())];
        for key in history.keys() {
            let Some(chain) = self.chain(key) else { return Ok(None) };
            let options: Vec<(Share, Alternative)> = match self.own(key) {
                Some(own) => {
                    let Some(share) = history.share(self.predicate, key, Some(own)) else {
                        return Ok(None);
                    };
                    vec![(share, Alternative::default())]
                }
                None => (self.places(key, &chain).into_iter())
                    .map(|place| (chain.shares[place], self.alternative(&chain, place)))
                    .collect(),
            };
            let mut more = Vec::new();
            for (shares, sum) in &combinations {
                for (share, alternative) in &options {
                    let mut shares = shares.clone();
                    shares.push(*share);
                    let wr = sum.wr.or(alternative.wr);
                    let rw = sum.rw.or(alternative.rw);
                    more.push((shares, Alternative { wr, rw }));
                }
            }
            if more.len() > COMBINATIONS_MAX {
                return Err(Obstacle::TooLarge(Size::Aggregates(COMBINATIONS_MAX)));
            }
            combinations = more;
        }
        let agrees = |shares: &[Share]| aggregate.agrees(history.values(), shares.iter().copied());
        let mut constraint: Constraint = Vec::new();
        for (shares, alternative) in combinations {
            match agrees(&shares) {
                None => return Ok(None),
                Some(true) if !constraint.contains(&alternative) => constraint.push(alternative),
                Some(_) => {}
            }
        }
        Ok(Some(constraint))
    }
}

//! What operations by condition found, as something that the contents of keys fit or not.
//!
//! **Definition.** An operation saw, of every key, a version between which and the last one
//! that was committed when its transaction began nothing changes what it finds; see
//! [`conditions`](super::super::conditions). So at the begin each key holds something that adds
//! what the operation saw of it, and an aggregate of what all keys hold is its result.
//!
//! Where it cannot be told what contents add, they are taken to fit, and so is what was told by a
//! snapshot of the database: that leaves more orders.

use super::problem::Content;
use crate::verify::conditions::Looked;
use crate::verify::facts::Facts;
use isolde_history::{Aggregate, History, KeyId, OpId, OpKind, Share, TxnId};
use std::collections::{HashMap, HashSet};

/// Operations by condition times operations; of more, nothing is looked at.
const WORK_MAX: usize = 1 << 22;

/// What has to be true of the contents of keys when a transaction begins.
pub(super) enum Found {
    /// A key holds one of these.
    Key { slot: usize, fitting: HashSet<Content> },
    /// What keys hold gives a result.
    Result {
        aggregate: Aggregate,
        /// What contents of a key add, as far as they tell.
        shares: Vec<(usize, HashMap<Content, Share>)>,
        /// What own versions add, and keys all of whose versions add the same.
        always: Vec<Share>,
    },
}

impl Found {
    /// Whether it is true, as far as that can be told.
    pub(super) fn fits(&self, history: &History, contents: &[Content]) -> bool {
        match self {
            Found::Key { slot, fitting } => fitting.contains(&contents[*slot]),
            Found::Result { aggregate, shares, always } => {
                let share = |(slot, shares): &(usize, HashMap<Content, Share>)| {
                    shares.get(&contents[*slot]).copied()
                };
                let shares: Option<Vec<Share>> = shares.iter().map(share).collect();
                let Some(shares) = shares else { return true };
                let shares = shares.into_iter().chain(always.iter().copied());
                aggregate.agrees(history.values(), shares) != Some(false)
            }
        }
    }
}

/// What operations by condition found in keys.
pub(super) struct Finder<'f, 'a> {
    facts: &'f Facts<'a>,
    slots: &'f HashMap<KeyId, usize>,
    /// Keys that hold lists, which no condition is about.
    lists: HashSet<KeyId>,
}

impl<'f, 'a> Finder<'f, 'a> {
    /// Nothing if there is too much to look at.
    pub(super) fn new(facts: &'f Facts<'a>, slots: &'f HashMap<KeyId, usize>) -> Option<Self> {
        let kinds = facts.history.op_kinds();
        let by_condition = kinds.iter().filter(|kind| !kind.has_key()).count();
        let is_list = |kind: &OpKind| matches!(kind, OpKind::Append | OpKind::ReadList);
        let keys = kinds.iter().zip(facts.history.op_keys());
        let lists = keys.filter(|it| is_list(it.0)).map(|it| *it.1).collect();
        (by_condition * kinds.len() <= WORK_MAX).then_some(Finder { facts, slots, lists })
    }

    /// All that the operations of a transaction found.
    pub(super) fn of(&self, txn: TxnId) -> Vec<Found> {
        let history = self.facts.history;
        let by_condition = history.ops_of(txn).filter(|&op| !history.op(op).kind.has_key());
        by_condition.flat_map(|op| self.at(txn, op)).collect()
    }

    fn at(&self, txn: TxnId, op: OpId) -> Vec<Found> {
        let history = self.facts.history;
        if history.snapshot(txn, op).is_some() {
            return Vec::new();
        }
        if let Some(aggregate) = history.predicate(op).aggregate {
            return self.result(op, aggregate).into_iter().collect();
        }
        let mut found = Vec::new();
        for (&key, &slot) in self.slots.iter().filter(|it| !self.lists.contains(it.0)) {
            let looked = Looked::new(history, op, key).expect("an operation by condition");
            if looked.as_read(self.facts).is_some() {
                let versions = self.versions(key).filter(|&(write, _)| looked.may_be(write));
                let fitting = versions.map(|(_, content)| content).collect();
                found.push(Found::Key { slot, fitting });
            }
        }
        found
    }

    fn result(&self, op: OpId, aggregate: Aggregate) -> Option<Found> {
        let history = self.facts.history;
        if !self.lists.is_empty() || !history.predicate(op).rows.is_empty() {
            return None;
        }
        let (mut shares, mut always) = (Vec::new(), Vec::new());
        for key in history.keys() {
            let looked = Looked::new(history, op, key).expect("an operation by condition");
            match (looked.own_write(), self.slots.get(&key)) {
                (Some(own), _) => always.push(looked.share(Some(own))?),
                (None, Some(&slot)) => shares.push((slot, self.shares(&looked, key))),
                (None, None) => always.push(looked.only_share(self.facts)?),
            }
        }
        Some(Found::Result { aggregate, shares, always })
    }

    /// What the contents of a key add. Versions that leave the same may add different things.
    fn shares(&self, looked: &Looked<'_>, key: KeyId) -> HashMap<Content, Share> {
        let mut shares: HashMap<Content, Option<Share>> = HashMap::new();
        for (write, content) in self.versions(key) {
            let share = looked.share(write);
            let known = shares.entry(content).or_insert(share);
            *known = known.filter(|_| *known == share);
        }
        let told = shares.into_iter().filter_map(|(content, share)| Some((content, share?)));
        told.collect()
    }

    /// All versions that a key may have, and what it holds then.
    fn versions(&self, key: KeyId) -> impl Iterator<Item = (Option<OpId>, Content)> {
        let (facts, history) = (self.facts, self.facts.history);
        let is_version =
            |write: &OpId| facts.may_count(history.txn_of(*write)) && facts.is_final(*write);
        let writes = facts.writes_of(key).filter(is_version);
        let writes = writes.map(|write| (Some(write), history.op(write).value.bits()));
        std::iter::once((None, history.initial(key).bits())).chain(writes)
    }
}

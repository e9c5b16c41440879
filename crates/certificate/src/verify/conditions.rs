//! Reads by condition: what the versions of each key say about what they found.
//!
//! **Definition** [Adya99, Emme]. A version changes what an operation finds if it adds
//! something else to it than the version before. The operation comes after the last change at
//! or before the version that it saw, and before the first change after it.
//!
//! **Why looking at an order is enough.** If the transactions of an order commit one after
//! another and an operation saw, of every key, a version between which and the last one
//! committed nothing changes, then the changes before lead to its begin and the next one
//! follows it.
//!
//! **Why a step holds.** If every version that an operation can have seen has the same change
//! at or before it, or a later one, then the writer of that change committed before the
//! reader began; and likewise for changes after it. For this the versions of the key must have
//! one order: by what the database said, and by who read a version and replaced it.

use super::aggregate;
use super::derivation::{Prover, expect_edge};
use super::facts::{Facts, Origin, Read, Seen, Sole};
use super::versions::given_writes;
use crate::level::{Meaning, Reads, Rows};
use crate::proof::{Node, Step};
use isolde_history::{Aggregate, History, KeyId, OpId, OpKind, Predicate, Share, TxnId, Value};
use std::collections::{HashMap, HashSet};

/// What an operation says about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Value { value: Value, matched: bool },
    Replaced,
    Untold,
    Absent,
}

/// One operation by condition, and a key.
pub(super) struct Looked<'a> {
    history: &'a History,
    txn: TxnId,
    op: OpId,
    predicate: &'a Predicate,
    key: KeyId,
    listed: Listed,
    own: Option<OpId>,
}

impl<'a> Looked<'a> {
    pub(super) fn new(history: &'a History, op: OpId, key: KeyId) -> Option<Self> {
        let known = op.index() < history.op_count() && key.index() < history.key_count();
        if !known || history.op(op).kind.has_key() {
            return None;
        }
        let predicate = history.predicate(op);
        let txn = history.txn_of(op);
        let listed = match predicate.rows.iter().find(|row| row.key == key) {
            Some(row) if row.value != Value::UNKNOWN => {
                Listed::Value { value: row.value, matched: row.matched }
            }
            Some(row) if row.matched => Listed::Replaced,
            Some(_) => Listed::Untold,
            None if history.replaced(op).any(|replaced| replaced == key) => Listed::Replaced,
            None => Listed::Absent,
        };
        let before = (history.op_range(txn).start..op.0).rev().map(OpId);
        let writes = |op: &OpId| history.op(*op).kind.is_write() && history.op(*op).key == key;
        let own = before.into_iter().find(writes);
        Some(Looked { history, txn, op, predicate, key, listed, own })
    }

    /// The read of the version that the operation saw of the key, if it can be taken for one:
    /// in an order that fits what was found, the last version when the reader began is one
    /// that fits too.
    pub(super) fn as_read(&self, facts: &Facts<'a>) -> Option<Read<'a>> {
        let is_item = matches!(self.listed, Listed::Value { matched, .. }
            if matched || self.predicate.condition.is_range());
        let is_open = !is_item
            && self.listed != Listed::Untold
            && self.own.is_none()
            && self.predicate.aggregate.is_none()
            && self.history.snapshot(self.txn, self.op).is_none()
            && self.refuse_list(facts).is_ok();
        let Looked { txn, op, key, .. } = *self;
        is_open.then_some(Read { txn, op, key, seen: Seen::Fitting, own: None, row: None })
    }

    /// Whether a version can be the last one when the reader began.
    pub(super) fn may_be(&self, write: Option<OpId>) -> bool {
        let Some(share) = self.share(write) else { return true };
        let adds = share != Share::Nothing;
        match self.listed {
            // Or one like the listed version: nothing need have changed between them.
            Listed::Value { matched, .. } => adds == matched,
            Listed::Replaced => adds,
            Listed::Absent => !adds,
            Listed::Untold => true,
        }
    }

    fn refuse_list(&self, facts: &Facts<'_>) -> Result<(), String> {
        let is_append = |write: OpId| self.history.op(write).kind == OpKind::Append;
        if facts.writes_of(self.key).any(is_append) {
            return Err(format!("no condition is about key {}, which is a list", self.key.0));
        }
        Ok(())
    }

    /// Whether all versions but the initial one add something, and nothing was found: then
    /// every writer comes later, in whatever order.
    fn saw_initial_only(&self, facts: &Facts<'_>) -> bool {
        let adds = |write: Option<OpId>| self.share(write).map(|share| share != Share::Nothing);
        let by_others = |write: &OpId| {
            let txn = self.history.txn_of(*write);
            txn != self.txn && facts.may_count(txn) && facts.is_final(*write)
        };
        let is_possible = |write: Option<OpId>| match self.predicate.aggregate {
            None => adds(write).map(|adds| !adds),
            Some(_) => self.share(write).map(|share| self.result_allows(facts, share)),
        };
        self.listed == Listed::Absent
            && self.own.is_none()
            && is_possible(None) == Some(true)
            && (facts.writes_of(self.key).filter(by_others))
                .all(|it| is_possible(Some(it)) == Some(false))
    }

    pub(super) fn share(&self, write: Option<OpId>) -> Option<Share> {
        self.history.share(self.predicate, self.key, write)
    }

    /// The reader's own write before the operation, if it has one.
    pub(super) fn own_write(&self) -> Option<OpId> {
        self.own
    }

    fn value(&self, write: Option<OpId>) -> Value {
        write.map_or(self.history.initial(self.key), |write| self.history.op(write).value)
    }

    /// Whether an own version contradicts what was found.
    fn own_contradicts(&self, own: OpId) -> bool {
        let Some(share) = self.share(Some(own)) else { return false };
        match self.listed {
            Listed::Replaced => share == Share::Nothing,
            Listed::Absent => self.predicate.aggregate.is_none() && share != Share::Nothing,
            Listed::Value { .. } | Listed::Untold => false,
        }
    }

    /// The place of the last version that the database's snapshot sees, if it tells.
    fn told(&self, chain: &[Option<OpId>]) -> Option<usize> {
        let snapshot = self.history.snapshot(self.txn, self.op)?;
        let mut last = 0;
        for (place, write) in chain.iter().enumerate() {
            let Some(write) = write else { continue };
            let writer = self.history.txn_of(*write);
            if snapshot.sees(self.history.number(writer)?) && writer != self.txn {
                last = place;
            }
        }
        Some(last)
    }

    /// What the versions add; `None` if nothing can be told or nothing is asked.
    fn shares(&self, chain: &[Option<OpId>]) -> Option<Vec<Share>> {
        let is_row = matches!(self.listed, Listed::Value { matched, .. }
            if matched || self.predicate.condition.is_range());
        let nothing_asked = self.listed == Listed::Untold
            || (is_row && self.predicate.aggregate.is_none() && self.told(chain).is_none());
        if self.own.is_some() || nothing_asked {
            return None;
        }
        chain.iter().map(|&write| self.share(write)).collect()
    }

    /// Places of versions that the operation can have seen.
    fn places(&self, chain: &[Option<OpId>], shares: &[Share]) -> Vec<usize> {
        let told = self.told(chain);
        let is_own = |write: &Option<OpId>| {
            write.is_some_and(|write| self.history.txn_of(write) == self.txn)
        };
        let own_place = chain.iter().position(is_own).unwrap_or(chain.len());
        (0..if told.is_some() { chain.len() } else { own_place })
            .filter(|&place| told.is_none_or(|told| told == place))
            .filter(|&place| self.is_as_listed(chain[place], shares[place]))
            .collect()
    }

    /// Whether a version that adds this is what the operation says of the key.
    fn is_as_listed(&self, write: Option<OpId>, share: Share) -> bool {
        let adds = share != Share::Nothing;
        match self.listed {
            Listed::Value { value, matched } => self.value(write) == value && adds == matched,
            Listed::Replaced => adds,
            Listed::Absent => self.predicate.aggregate.is_some() || !adds,
            Listed::Untold => true,
        }
    }
}

impl Looked<'_> {
    /// Whether an aggregate can have its result if the key adds this to it, whatever the
    /// others add. Without an aggregate, and where versions do not tell what they add, yes.
    fn result_allows(&self, facts: &Facts<'_>, share: Share) -> bool {
        let Some(aggregate) = self.predicate.aggregate else { return true };
        let history = self.history;
        if !self.predicate.rows.is_empty() || !lists(history).is_empty() {
            return true;
        }
        let mut others = Vec::new();
        for key in history.keys().filter(|&key| key != self.key) {
            let other = Looked::new(history, self.op, key).expect("a key of the history");
            match other.possible_shares(facts) {
                Some(shares) => others.push(shares),
                None => return true,
            }
        }
        aggregate::allows(history, aggregate, share, &others)
    }

    /// What the key adds in whatever order its versions came: all of them add the same, as
    /// those of keys that no condition of the operation is about.
    pub(super) fn only_share(&self, facts: &Facts<'_>) -> Option<Share> {
        let initial = self.share(None)?;
        let is_version =
            |write: &OpId| facts.may_count(self.history.txn_of(*write)) && facts.is_final(*write);
        let mut versions = facts.writes_of(self.key).filter(is_version);
        versions.all(|write| self.share(Some(write)) == Some(initial)).then_some(initial)
    }

    /// What the key may add: its own version, or any that another transaction may have left.
    fn possible_shares(&self, facts: &Facts<'_>) -> Option<Vec<Share>> {
        if let Some(own) = self.own {
            return Some(vec![self.share(Some(own))?]);
        }
        let by_others = |write: &OpId| {
            let txn = self.history.txn_of(*write);
            txn != self.txn && facts.may_count(txn) && facts.is_final(*write)
        };
        let writes = facts.writes_of(self.key).filter(by_others).map(Some);
        let mut shares = Vec::new();
        for write in std::iter::once(None).chain(writes) {
            let share = self.share(write)?;
            shares.extend(self.is_as_listed(write, share).then_some(share));
        }
        Some(shares)
    }
}

impl Prover<'_, '_> {
    /// A change that a reader saw, or one that it missed, at levels that ask for it.
    pub(super) fn check_change(
        &self,
        step: &Step,
        read: (OpId, KeyId),
        saw: bool,
    ) -> Result<(), String> {
        if !matches!(self.level.meaning, Meaning::Events(level) if level.rows != Rows::ReadsFrom) {
            return Err("the level does not ask what was found by condition".into());
        }
        let writer = if saw { step.from.txn() } else { step.to.txn() };
        let reader = check_change(self.facts, read, writer, saw)?;
        self.check_surely_counts(reader)?;
        let (begin, commit) = (self.begin(reader), Node::commit(writer));
        if saw { expect_edge(step, commit, begin) } else { expect_edge(step, begin, commit) }
    }
}

/// Whether every version that an operation can have seen of a key comes after a change by
/// `writer`, or before one.
fn check_change(
    facts: &Facts<'_>,
    (op, key): (OpId, KeyId),
    writer: TxnId,
    saw: bool,
) -> Result<TxnId, String> {
    let looked = Looked::new(facts.history, op, key)
        .ok_or_else(|| format!("operation {} is none by condition", op.0))?;
    looked.refuse_list(facts)?;
    if !saw && looked.saw_initial_only(facts) && facts.writes(writer, key) && writer != looked.txn {
        return Ok(looked.txn);
    }
    let chain = chain(facts, key)?;
    let shares = looked.shares(&chain).ok_or("nothing is told of what the operation saw")?;
    let is_writers =
        |write: &Option<OpId>| write.is_some_and(|write| facts.history.txn_of(write) == writer);
    let at = chain.iter().position(is_writers).ok_or("the transaction does not write the key")?;
    let changes = |place: &usize| shares[*place] != shares[*place - 1];
    let mut places = looked.places(&chain, &shares);
    places.retain(|&place| looked.result_allows(facts, shares[place]));
    for place in places {
        let holds = if saw {
            (1..=place).rev().find(changes).is_some_and(|change| change >= at)
        } else {
            (place + 1..chain.len()).find(changes).is_some_and(|change| change <= at)
        };
        if !holds {
            return Err(format!("it can have seen version {place}, which shows no such change"));
        }
    }
    Ok(looked.txn)
}

/// The final writes of a key in their one order, the initial version first.
fn chain(facts: &Facts<'_>, key: KeyId) -> Result<Vec<Option<OpId>>, String> {
    let history = facts.history;
    let final_writes: Vec<OpId> = facts
        .writes_of(key)
        .filter(|&write| facts.may_count(history.txn_of(write)) && facts.is_final(write))
        .collect();
    if let Some(&open) = final_writes
        .iter()
        .find(|&&write| !facts.surely_counts(history.txn_of(write), Reads::Final))
    {
        return Err(format!("it is open whether transaction {} counts", history.txn_of(open).0));
    }
    let mut next: HashMap<TxnId, TxnId> = HashMap::new();
    let mut link = |before: TxnId, after: TxnId| {
        before == after || *next.entry(before).or_insert(after) == after
    };
    let mut is_one = true;
    for chain in history.orders().versions.iter().filter(|chain| chain.key == key) {
        let mut last: Option<TxnId> = None;
        for write in given_writes(facts, chain).writes {
            let writer = history.txn_of(write);
            if !facts.may_count(writer) {
                continue;
            }
            is_one &= last.is_none_or(|last| link(last, writer));
            last = Some(writer);
        }
    }
    for &write in &final_writes {
        let reader = history.txn_of(write);
        for op in history.ops_of(reader) {
            for read in facts.reads_at(op, key).iter().filter(|read| read.is_external()) {
                if let Sole::One(Origin::Txn(from)) = facts.sole_origin(read, Reads::Final) {
                    is_one &= link(from, reader);
                }
            }
        }
    }
    let followed = |txn: TxnId| next.values().any(|&after| after == txn);
    let mut order: Vec<Option<OpId>> = vec![None];
    let mut at =
        final_writes.iter().map(|&write| history.txn_of(write)).find(|&txn| !followed(txn));
    while let Some(txn) = at {
        order.extend(
            final_writes.iter().find(|&&write| history.txn_of(write) == txn).map(|&it| Some(it)),
        );
        at = next.get(&txn).copied().filter(|_| order.len() <= final_writes.len());
    }
    if !is_one || order.len() != final_writes.len() + 1 {
        return Err(format!("the versions of key {} are not known to have one order", key.0));
    }
    Ok(order)
}

const MAY_FIT: &str = "the versions of the key may fit what was found";

/// Whether no versions of all keys together give the result of an aggregate.
fn check_result(facts: &Facts<'_>, op: OpId, aggregate: Aggregate) -> Result<TxnId, String> {
    let history = facts.history;
    let reader = history.txn_of(op);
    if !lists(history).is_empty() {
        return Err("the history has lists, of which no aggregate tells anything".into());
    }
    // All versions that may be, in any order: enough if no choice of them fits.
    let looked = |key| Looked::new(history, op, key).expect("a key of the history");
    let choices: Option<Vec<Vec<Share>>> =
        history.keys().map(|key| looked(key).possible_shares(facts)).collect();
    if choices.is_some_and(|choices| aggregate::is_impossible(history, aggregate, &choices)) {
        return Ok(reader);
    }
    let mut shares = Vec::new();
    for key in history.keys() {
        let looked = looked(key);
        if let Some(own) = looked.own {
            shares.push(looked.share(Some(own)).ok_or("a version does not tell what it adds")?);
            continue;
        }
        let chain = match chain(facts, key) {
            Ok(chain) => chain,
            Err(why) => {
                shares.push(looked.only_share(facts).ok_or(why)?);
                continue;
            }
        };
        let all = looked.shares(&chain).ok_or("nothing is told of what was seen")?;
        // Versions that add the same need not be told apart.
        match looked.places(&chain, &all)[..] {
            [] => return Ok(reader),
            [first, ref more @ ..] if more.iter().all(|&place| all[place] == all[first]) => {
                shares.push(all[first]);
            }
            _ => return Err(MAY_FIT.into()),
        }
    }
    match aggregate.agrees(history.values(), shares.into_iter()) {
        Some(false) => Ok(reader),
        _ => Err(MAY_FIT.into()),
    }
}

/// Whether no version of a key, in whatever order they came, fits what an operation found. Of an
/// aggregate all keys are asked, which the first stands for.
pub(super) fn check_mismatch(facts: &Facts<'_>, op: OpId, key: KeyId) -> Result<TxnId, String> {
    let history = facts.history;
    let looked = Looked::new(history, op, key)
        .ok_or_else(|| format!("operation {} is none by condition", op.0))?;
    looked.refuse_list(facts)?;
    let fits = || Err(MAY_FIT.to_owned());
    if let Some(aggregate) = looked.predicate.aggregate {
        if key != KeyId(0) {
            return Err("an aggregate is of all keys, which key 0 stands for".into());
        }
        return check_result(facts, op, aggregate);
    }
    if let Some(own) = looked.own {
        return if looked.own_contradicts(own) { Ok(looked.txn) } else { fits() };
    }
    // All versions that may be, in any order: enough if none fits by itself.
    let by_others = |&write: &OpId| {
        let txn = history.txn_of(write);
        txn != looked.txn && facts.may_count(txn) && facts.is_final(write)
    };
    let unordered: Vec<Option<OpId>> =
        std::iter::once(None).chain(facts.writes_of(key).filter(by_others).map(Some)).collect();
    let shares: Option<Vec<Share>> = unordered.iter().map(|&write| looked.share(write)).collect();
    let shares = shares.ok_or("a version does not tell what it adds")?;
    let is_possible = |place: usize| looked.is_as_listed(unordered[place], shares[place]);
    if !(0..unordered.len()).any(is_possible) {
        return Ok(looked.txn);
    }
    let chain = chain(facts, key)?;
    match looked.shares(&chain) {
        Some(shares) if looked.places(&chain, &shares).is_empty() => Ok(looked.txn),
        _ => fits(),
    }
}

fn lists(history: &History) -> HashSet<KeyId> {
    let kinds = history.op_kinds().iter().zip(history.op_keys());
    let of_lists = kinds.filter(|entry| matches!(entry.0, OpKind::Append | OpKind::ReadList));
    of_lists.map(|entry| *entry.1).collect()
}

/// The commits of an order, by key.
#[derive(Clone)]
pub(super) struct Commits {
    by_key: HashMap<KeyId, Vec<(u32, OpId)>>,
    /// Keys of lists, which no condition is about.
    lists: HashSet<KeyId>,
}

impl Commits {
    pub(super) fn new(history: &History) -> Self {
        Commits { by_key: HashMap::new(), lists: lists(history) }
    }

    /// A transaction installed its version of a key.
    pub(super) fn add(&mut self, key: KeyId, place: u32, write: OpId) {
        let commits = self.by_key.entry(key).or_default();
        match commits.last_mut() {
            Some(last) if last.0 == place => last.1 = write,
            _ => commits.push((place, write)),
        }
    }

    /// Whether what an operation found fits what was there when its transaction began.
    pub(super) fn check(&self, history: &History, op: OpId, begun: u32) -> Result<(), String> {
        let predicate = history.predicate(op);
        let mut sum: Option<Vec<Share>> = Some(Vec::new());
        for key in history.keys() {
            let looked = Looked::new(history, op, key).expect("an operation by condition");
            let adds = if self.lists.contains(&key) {
                None
            } else {
                let adds = self.check_key(&looked, begun);
                adds.map_err(|why| format!("key {}: {why}", key.0))?
            };
            match (adds, &mut sum) {
                (Some(share), Some(sum)) => sum.push(share),
                _ => sum = None,
            }
        }
        let (Some(aggregate), Some(sum)) = (predicate.aggregate, sum) else { return Ok(()) };
        match aggregate.agrees(history.values(), sum.into_iter()) {
            Some(false) => Err("the aggregate is another one".into()),
            _ => Ok(()),
        }
    }

    /// What a key adds to what was found, if that can be told.
    fn check_key(&self, looked: &Looked<'_>, begun: u32) -> Result<Option<Share>, String> {
        if let Some(own) = looked.own {
            if looked.own_contradicts(own) {
                return Err("the own version does not fit what was found".into());
            }
            return Ok(looked.share(Some(own)));
        }
        let commits = self.by_key.get(&looked.key).map_or(&[][..], Vec::as_slice);
        let chain: Vec<Option<OpId>> =
            std::iter::once(None).chain(commits.iter().map(|commit| Some(commit.1))).collect();
        let place = commits.partition_point(|commit| commit.0 < begun);
        let Some(shares) = looked.shares(&chain) else {
            return Ok(looked.share(chain[place]));
        };
        let is_like = |other: &usize| {
            let (low, high) = (place.min(*other), place.max(*other));
            shares[low..=high].iter().all(|share| *share == shares[place])
        };
        if looked.places(&chain, &shares).iter().any(is_like) {
            return Ok(Some(shares[place]));
        }
        Err("the version that is there does not fit what was found".into())
    }
}

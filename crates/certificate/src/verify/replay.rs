//! Witnesses of levels of begins and commits: the order is replayed.
//!
//! At its begin a transaction sees of every key what was last committed; at its commit
//! its final writes become what is seen. If every read saw exactly that, then the version
//! order is the order of commits, and every dependency of the level leads forward in
//! the order that was replayed: there is no cycle. What remains is checked on the way:
//! that no other writer of a key commits between a writer's begin and commit (where
//! version order leads to begins), session order, real time, and given version orders.
//!
//! A transaction of unknown outcome that takes part although nobody saw a write of it can be
//! left out of the order without changing what anybody sees, so it does no harm.

use super::conditions::Commits;
use super::facts::{Facts, Read, Reader, Seen};
use super::versions;
use crate::level::{EventKind, Events, Rows};
use crate::proof::Node;
use isolde_history::{History, KeyId, Op, OpId, OpKind, Outcome, Time, TxnId, Value};
use std::collections::{HashMap, HashSet};

/// Stands for "never", "nobody" and "not yet".
const NONE: u32 = u32::MAX;

/// Checks that the level holds by this order.
pub(super) fn check(facts: &Facts<'_>, level: &Events, order: &[Node]) -> Result<(), String> {
    refuse_without_times(facts, level)?;
    if order.len() >= NONE as usize {
        return Err("the order has more events than can be numbered".into());
    }
    let mut replay = Replay::new(facts, *level);
    for (place, &node) in order.iter().enumerate() {
        replay.event(node, place as u32).map_err(|why| format!("event {place}, {node}: {why}"))?;
    }
    replay.end()
}

/// The events of an order, one after another.
#[derive(Clone)]
pub(super) struct Replay<'f, 'a> {
    facts: &'f Facts<'a>,
    level: Events,
    reader: Reader,
    /// By transaction, the place of its events.
    begun: Vec<u32>,
    committed: Vec<u32>,
    /// By session, the transaction after the last that has begun.
    next_in_session: Vec<u32>,
    /// By key, the write that is seen now.
    current: Vec<u32>,
    lists: HashMap<KeyId, List>,
    /// What was committed when, where reads by condition have to fit it.
    commits: Option<Commits>,
    /// Every version that there was, where rows may be read from the past.
    past: HashSet<(KeyId, Value)>,
    has_past: bool,
    /// For each real-time rule, the latest invocations so far.
    latest: Vec<Latest>,
}

#[derive(Clone, Default)]
struct List {
    elements: Vec<Value>,
    /// Where each element stands first.
    places: HashMap<Value, usize>,
    /// Whether an element stands in it twice.
    repeats: bool,
}

/// The two latest invocations, of different transactions.
#[derive(Clone, Copy)]
struct Latest {
    first: (Time, u32),
    second: (Time, u32),
}

impl Latest {
    fn insert(&mut self, invoked: Time, txn: TxnId) {
        if invoked > self.first.0 {
            if self.first.1 != txn.0 {
                self.second = self.first;
            }
            self.first = (invoked, txn.0);
        } else if invoked > self.second.0 && self.first.1 != txn.0 {
            self.second = (invoked, txn.0);
        }
    }

    /// The latest invocation of a transaction other than `txn`.
    fn of_others(self, txn: TxnId) -> (Time, u32) {
        if self.first.1 == txn.0 { self.second } else { self.first }
    }
}

impl<'f, 'a> Replay<'f, 'a> {
    pub(super) fn new(facts: &'f Facts<'a>, level: Events) -> Self {
        let history = facts.history;
        let never = (Time::MIN, NONE);
        let starts = history.sessions().map(|session| history.session_range(session).start);
        Replay {
            facts,
            level,
            reader: Reader::default(),
            begun: vec![NONE; history.txn_count()],
            committed: vec![NONE; history.txn_count()],
            next_in_session: starts.collect(),
            current: vec![NONE; history.key_count()],
            lists: HashMap::new(),
            commits: (level.rows != Rows::ReadsFrom && history.has_predicates())
                .then(|| Commits::new(history)),
            past: HashSet::new(),
            has_past: level.rows == Rows::ReadsFrom,
            latest: vec![Latest { first: never, second: never }; level.real_time.len()],
        }
    }

    /// Refuses what cannot happen next, nor then in any order that begins like this one.
    pub(super) fn event(&mut self, node: Node, place: u32) -> Result<(), String> {
        let history = self.facts.history;
        let txn = node.txn();
        if node == Node::INITIAL || txn.index() >= history.txn_count() {
            return Err("expected an event of a transaction of the history".into());
        }
        if history.outcome(txn) == Outcome::Aborted {
            return Err("the transaction was aborted".into());
        }
        if self.level.single && !is_single(history, txn) {
            return Err(
                "the level is about single operations, and this transaction has several".into()
            );
        }
        if self.level.one {
            if node.is_begin() {
                return Err("the level has one event for each transaction, its commit".into());
            }
            self.begin(txn, place)?;
            return self.commit(txn, place);
        }
        if node.is_begin() { self.begin(txn, place) } else { self.commit(txn, place) }
    }

    fn begin(&mut self, txn: TxnId, place: u32) -> Result<(), String> {
        if self.begun[txn.index()] != NONE {
            return Err("the transaction has begun before".into());
        }
        self.begun[txn.index()] = place;
        if self.level.sessions {
            self.follow_session(txn)?;
        }
        // One event is real time's from and to at once.
        if self.level.one {
            self.real_time_from(EventKind::Commit, txn)?;
        } else {
            self.real_time_from(EventKind::Begin, txn)?;
        }
        self.real_time_to(EventKind::Begin, txn);
        let mut reader = std::mem::take(&mut self.reader);
        let mut wrong = None;
        reader.visit(self.facts.history, txn, |read| {
            if wrong.is_none() {
                wrong = self
                    .read(&read)
                    .err()
                    .map(|why| format!("operation {} reads key {}: {why}", read.op.0, read.key.0));
            }
        });
        self.reader = reader;
        wrong.map_or(Ok(()), Err)
    }

    /// The last of its session to begin has committed. Those before it had, when it
    /// began, and those that were passed over may not begin any more.
    fn follow_session(&mut self, txn: TxnId) -> Result<(), String> {
        let session = self.facts.history.session_of(txn);
        let start = self.facts.history.session_range(session).start;
        let next = &mut self.next_in_session[session.index()];
        if txn.0 < *next {
            return Err("a later transaction of its session has begun before".into());
        }
        let last = (start..*next).next_back().map(TxnId);
        *next = txn.0 + 1;
        match last.filter(|last| self.committed[last.index()] == NONE) {
            Some(open) => {
                Err(format!("transaction {} of its session has not committed yet", open.0))
            }
            None => Ok(()),
        }
    }

    /// Nothing that was invoked after this event completed may have happened before.
    fn real_time_from(&self, kind: EventKind, txn: TxnId) -> Result<(), String> {
        let history = self.facts.history;
        if history.outcome(txn) == Outcome::Unknown {
            return Ok(());
        }
        for (rule, latest) in self.level.real_time.iter().zip(&self.latest) {
            let (invoked, other) = latest.of_others(txn);
            if rule.0 == kind && self.facts.completed(txn, kind) < invoked {
                return Err(format!("transaction {other} was invoked after it completed"));
            }
        }
        Ok(())
    }

    fn real_time_to(&mut self, kind: EventKind, txn: TxnId) {
        for (rule, latest) in self.level.real_time.iter().zip(&mut self.latest) {
            if rule.1 == kind {
                latest.insert(self.facts.invoked(txn, kind), txn);
            }
        }
    }

    fn read(&self, read: &Read<'_>) -> Result<(), String> {
        let history = self.facts.history;
        if let Seen::List(others) = read.seen {
            let others = others.ok_or("the list does not end with its own appends")?;
            return self.read_list(read, others);
        }
        let current = Some(self.current[read.key.index()]).filter(|&op| op != NONE).map(OpId);
        let write = read.own.or(current);
        let value = write.map_or(history.initial(read.key), |write| history.op(write).value);
        let is_past = || match read.seen {
            Seen::This(value) if self.has_past && read.row.is_some() && read.own.is_none() => {
                self.past.contains(&(read.key, value)) || value == history.initial(read.key)
            }
            _ => false,
        };
        if !read.seen.admits(value) && !is_past() {
            return Err("it saw another version than the one that is there".into());
        }
        if self.level.rows == Rows::Exact && self.facts.contradicts_condition(read, write) {
            return Err("the row does not fit the condition".into());
        }
        Ok(())
    }

    fn read_list(&self, read: &Read<'_>, others: &[Value]) -> Result<(), String> {
        let history = self.facts.history;
        let own = &history.list(read.op)[others.len()..];
        let Some(list) = self.lists.get(&read.key) else {
            let distinct = (1..own.len()).all(|place| !own[..place].contains(&own[place]));
            if others.is_empty() && distinct {
                return Ok(());
            }
            return Err("it saw another list than the one that is there".into());
        };
        if others != list.elements {
            return Err("it saw another list than the one that is there".into());
        }
        let repeats = |place: usize| {
            list.places.contains_key(&own[place]) || own[..place].contains(&own[place])
        };
        if list.repeats || (0..own.len()).any(repeats) {
            return Err("it saw an element twice".into());
        }
        Ok(())
    }

    fn commit(&mut self, txn: TxnId, place: u32) -> Result<(), String> {
        let history = self.facts.history;
        let begun = self.begun[txn.index()];
        if begun == NONE {
            return Err("the transaction has not begun".into());
        }
        if self.committed[txn.index()] != NONE {
            return Err("the transaction has committed before".into());
        }
        if !self.level.one {
            self.real_time_from(EventKind::Commit, txn)?;
            self.real_time_to(EventKind::Commit, txn);
        }
        for op in history.ops_of(txn) {
            let Op { kind, key, value } = history.op(op);
            if !kind.is_write() {
                continue;
            }
            let before = self.current[key.index()];
            if before != NONE && self.level.overwriter == EventKind::Begin {
                let other = history.txn_of(OpId(before));
                if other != txn && self.committed[other.index()] > begun {
                    return Err(format!(
                        "transaction {} committed key {} after it began",
                        other.0, key.0
                    ));
                }
            }
            self.current[key.index()] = op.0;
            if let Some(commits) = &mut self.commits {
                commits.add(key, place, op);
            }
            if kind == OpKind::Append {
                self.append(key, value);
            }
        }
        if self.has_past {
            self.remember(txn);
        }
        self.committed[txn.index()] = place;
        Ok(())
    }

    /// Refuses unless this is a whole order that explains everything.
    pub(super) fn end(&self) -> Result<(), String> {
        let history = self.facts.history;
        for txn in history.txns() {
            let has_committed = self.committed[txn.index()] != NONE;
            if history.outcome(txn) == Outcome::Committed && !has_committed {
                return Err(format!("transaction {} committed and is not in the order", txn.0));
            }
            if self.begun[txn.index()] != NONE && !has_committed {
                return Err(format!("transaction {} begins and does not commit", txn.0));
            }
        }
        self.conditions()?;
        versions::check_given(self.facts, &self.committed, versions::Faults::Refused)
    }

    /// What operations by condition found fits the order.
    fn conditions(&self) -> Result<(), String> {
        let Some(commits) = &self.commits else { return Ok(()) };
        let history = self.facts.history;
        for txn in history.txns().filter(|txn| self.begun[txn.index()] != NONE) {
            for op in history.ops_of(txn).filter(|&op| !history.op(op).kind.has_key()) {
                let found = commits.check(history, op, self.begun[txn.index()]);
                found.map_err(|why| format!("operation {} by condition, {why}", op.0))?;
            }
        }
        Ok(())
    }

    fn append(&mut self, key: KeyId, value: Value) {
        let list = self.lists.entry(key).or_default();
        let place = list.elements.len();
        list.elements.push(value);
        list.repeats |= *list.places.entry(value).or_insert(place) != place;
    }

    /// Notes the versions that a transaction installed.
    fn remember(&mut self, txn: TxnId) {
        let history = self.facts.history;
        for op in history.ops_of(txn) {
            let Op { kind, key, value } = history.op(op);
            if kind.is_write() && self.current[key.index()] == op.0 {
                self.past.insert((key, value));
            }
        }
    }
}

/// Refuses levels of real time if there are no times.
pub(super) fn refuse_without_times(facts: &Facts<'_>, level: &Events) -> Result<(), String> {
    if !level.real_time.is_empty() && !facts.history.has_times() {
        return Err("the level asks for times, and the history has none".into());
    }
    Ok(())
}

/// Whether a transaction is one operation, as a compare-and-set is: a read of a key and
/// then a write of it.
pub(super) fn is_single(history: &History, txn: TxnId) -> bool {
    let ops: Vec<Op> = history.ops_of(txn).map(|op| history.op(op)).collect();
    match *ops {
        [] | [_] => true,
        [read, write] => {
            read.kind == OpKind::Read && write.kind.is_write() && read.key == write.key
        }
        _ => false,
    }
}

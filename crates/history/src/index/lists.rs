//! Version orders of list keys, from the longest list read.
//!
//! Every list a counted transaction read is, without its own appends, a state the
//! key went through. States of one key must be prefixes of the longest one, the
//! *spine*; appends that the spine does not show came after it, and those of one
//! transaction come in the order of its program. [Kingsbury and Alvaro 2020, §4.2.3]

use super::own::OwnWrites;
use super::versions::group_starts;
use super::writes::Writes;
use super::{Misread, MisreadKind, VersionConflict, VersionEvidence, VersionStep, may_count};
use crate::history::{History, KeyId, OpId, OpKind, TxnId};
use crate::value::Value;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::cmp::Reverse;

#[derive(Default)]
pub(super) struct ListOrders {
    pub(super) steps: Vec<VersionStep>,
    pub(super) conflicts: Vec<VersionConflict>,
    pub(super) misreads: Vec<Misread>,
    /// Whether an element that was read was appended more than once, so that the order
    /// of its appends is not known.
    pub(super) has_repeated: bool,
}

/// A list read without its transaction's own appends; `None` if it does not end
/// with exactly those.
pub(super) fn external_part<'a>(
    history: &'a History,
    own: &OwnWrites<'_>,
    txn: TxnId,
    op: OpId,
) -> Option<&'a [Value]> {
    let mut external = history.list(op);
    let before = history.op_range(txn).start..op.0;
    for write in own.of(txn, history.op(op).key, before).rev() {
        let (&last, rest) = external.split_last()?;
        if last != history.op_values()[write.index()] {
            return None;
        }
        external = rest;
    }
    Some(external)
}

/// A state of a list that somebody else's appends led to.
#[derive(Clone, Copy)]
struct State {
    key: KeyId,
    read: OpId,
    txn: TxnId,
    /// Where the elements lie; equal starts share their elements.
    start: u32,
    length: u32,
}

pub(super) fn orders(
    history: &History,
    writes: &Writes,
    own: &OwnWrites<'_>,
    counted: &[bool],
) -> ListOrders {
    let mut orders = ListOrders::default();
    if !history.has_lists() {
        return orders;
    }
    let states = States::new(history, own, counted, &mut orders);
    // Every key needs it, and tasks that wait for each other would never end.
    let _ = writes.by_key(history);
    let parts: Vec<ListOrders> = (0..history.key_count())
        .into_par_iter()
        .map(|key| states.of(key))
        .filter(|group| !group.is_empty())
        .fold(ListOrders::default, |mut orders, group| {
            KeyOrder::new(history, writes, own, counted, longest(group)).add(group, &mut orders);
            orders
        })
        .collect();
    orders.steps.reserve_exact(parts.iter().map(|part| part.steps.len()).sum());
    for mut part in parts {
        orders.steps.append(&mut part.steps);
        orders.conflicts.append(&mut part.conflicts);
        orders.misreads.append(&mut part.misreads);
        orders.has_repeated |= part.has_repeated;
    }
    orders
}

/// All states that counted transactions read, those of one key after those of another.
struct States {
    all: Vec<State>,
    /// By key, where its states start and end.
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl States {
    /// Reads that do not end with their transaction's own appends are misreads already and tell
    /// nothing about order. Elements that stand twice are found on the way, once per shared list.
    fn new(
        history: &History,
        own: &OwnWrites<'_>,
        counted: &[bool],
        orders: &mut ListOrders,
    ) -> Self {
        let kinds = history.op_kinds().iter().zip(history.op_keys());
        let reads = kinds.filter(|it| *it.0 == OpKind::ReadList);
        let starts = group_starts(history.key_count(), reads.clone().map(|it| *it.1));
        let nothing = State { key: KeyId(0), read: OpId(0), txn: TxnId(0), start: 0, length: 0 };
        let all = vec![nothing; reads.count()];
        let mut states = States { all, ends: starts.clone(), starts };
        let mut longest_at: HashMap<u32, (u32, OpId)> = HashMap::new();
        // Lists lie in the order of a log, in which neighbours in time are neighbours.
        for txn in history.txns_interleaved().filter(|txn| counted[txn.index()]) {
            for op in history.ops_of(txn) {
                if history.op_kinds()[op.index()] != OpKind::ReadList {
                    continue;
                }
                let (start, length) = history.list_span(op);
                let longest = longest_at.entry(start).or_insert((length, op));
                if (length, Reverse(op)) > (longest.0, Reverse(longest.1)) {
                    *longest = (length, op);
                }
                if let Some(external) = external_part(history, own, txn, op) {
                    let (key, length) = (history.op(op).key, external.len() as u32);
                    states.add(State { key, read: op, txn, start, length });
                }
            }
        }
        for &(_, read) in longest_at.values() {
            if let Some(place) = first_repeated(history.list(read)) {
                orders.conflicts.push(VersionConflict::Duplicate { read, place });
            }
        }
        states
    }

    fn add(&mut self, state: State) {
        let end = &mut self.ends[state.key.index()];
        self.all[*end as usize] = state;
        *end += 1;
    }

    fn of(&self, key: usize) -> &[State] {
        &self.all[self.starts[key] as usize..self.ends[key] as usize]
    }
}

/// The longest state of a key, and of several the first.
fn longest(states: &[State]) -> State {
    let longest = states.iter().min_by_key(|state| (Reverse(state.length), state.read));
    *longest.expect("a key without states has no group")
}

fn first_repeated(elements: &[Value]) -> Option<u32> {
    let mut seen = hashbrown::HashSet::with_capacity(elements.len());
    elements.iter().position(|&element| !seen.insert(element)).map(|place| place as u32)
}

/// What the longest state of a key says.
struct KeyOrder<'a> {
    history: &'a History,
    writes: &'a Writes,
    own: &'a OwnWrites<'a>,
    counted: &'a [bool],
    longest: State,
    spine: &'a [Value],
    places: HashMap<Value, u32>,
}

impl<'a> KeyOrder<'a> {
    fn new(
        history: &'a History,
        writes: &'a Writes,
        own: &'a OwnWrites<'a>,
        counted: &'a [bool],
        longest: State,
    ) -> Self {
        let spine = &history.list(longest.read)[..longest.length as usize];
        let places = spine.iter().enumerate().map(|(at, &element)| (element, at as u32)).collect();
        KeyOrder { history, writes, own, counted, longest, spine, places }
    }

    fn add(&self, states: &[State], orders: &mut ListOrders) {
        let key = self.longest.key;
        let conflicts = orders.conflicts.len();
        let bad = bad_elements(self.history, self.writes, key, self.spine);
        let is_repeated =
            |&element: &Value| self.writes.with_value(self.history, key, element).len() > 1;
        orders.has_repeated |= self.spine.iter().any(is_repeated);
        for state in states {
            let elements = || &self.history.list(state.read)[..state.length as usize];
            if state.start == self.longest.start || self.spine.starts_with(elements()) {
                for &(_, kind) in bad.iter().take_while(|bad| bad.0 < state.length) {
                    orders.misreads.push(Misread { read: state.read, key, kind });
                }
                self.own_elements(*state, &self.places, orders);
            } else {
                self.disagreeing(*state, elements(), orders);
            }
        }
        if let Some(conflict) = self.against_program() {
            orders.conflicts.push(conflict);
        }
        if orders.conflicts.len() == conflicts && !self.shows_one_append_twice() {
            self.steps(orders);
        }
    }

    /// A state that is no prefix of the spine.
    fn disagreeing(&self, state: State, elements: &[Value], orders: &mut ListOrders) {
        let (first, second) = (self.longest.read, state.read);
        orders.conflicts.push(VersionConflict::Incompatible { first, second });
        for (_, kind) in bad_elements(self.history, self.writes, state.key, elements) {
            orders.misreads.push(Misread { read: second, key: state.key, kind });
        }
        let places = elements.iter().enumerate().map(|(at, &element)| (element, at as u32));
        self.own_elements(state, &places.collect(), orders);
    }

    /// Two appends of one transaction of which the spine shows the second first, or
    /// only the second.
    fn against_program(&self) -> Option<VersionConflict> {
        let place = |value| self.places.get(&value).copied().unwrap_or(u32::MAX);
        let mut appends: Vec<(OpId, TxnId, u32)> = self
            .writes
            .by_key(self.history)
            .of(self.longest.key)
            .iter()
            .filter(|version| self.counted[version.txn.index()])
            // Of an element that was appended twice and shown, it is open which append that was.
            .filter(|version| self.is_only(version.value) || place(version.value) == u32::MAX)
            .map(|version| (version.op(), version.txn, place(version.value)))
            .collect();
        appends.sort_unstable();
        let wrong = appends.windows(2).find(|pair| pair[0].1 == pair[1].1 && pair[0].2 > pair[1].2);
        wrong.map(|pair| VersionConflict::Program {
            read: Some(self.longest.read),
            earlier: pair[0].0,
            later: pair[1].0,
        })
    }

    /// Whether an append would have to come before itself: the key then has no order,
    /// which matters to levels that such a list does not refute.
    fn shows_one_append_twice(&self) -> bool {
        let is_counted = |element: Value| {
            let appends = self.writes.with_value(self.history, self.longest.key, element);
            appends.iter().any(|append| self.counted[append.txn.index()])
        };
        let mut places = (0..).zip(self.spine);
        self.places.len() < self.spine.len()
            && places.any(|(at, element)| self.places[element] != at && is_counted(*element))
    }

    fn is_only(&self, value: Value) -> bool {
        self.writes.with_value(self.history, self.longest.key, value).len() == 1
    }

    fn steps(&self, orders: &mut ListOrders) {
        let (key, read) = (self.longest.key, self.longest.read);
        let mut last = None;
        for &element in self.spine {
            let after = match &*self.writes.with_value(self.history, key, element) {
                [only] if self.counted[only.txn.index()] => only.txn,
                _ => continue,
            };
            if let Some(before) = last
                && before != after
            {
                let evidence = VersionEvidence::ListRead(read);
                orders.steps.push(VersionStep { before, after, key, evidence });
            }
            last = Some(after);
        }
        let Some(before) = last else { return };
        let mut unseen: Vec<TxnId> = self
            .writes
            .by_key(self.history)
            .of(key)
            .iter()
            .filter(|version| self.counted[version.txn.index()])
            .filter(|version| !self.places.contains_key(&version.value))
            .map(|version| version.txn)
            .filter(|&txn| txn != before)
            .collect();
        unseen.sort_unstable();
        unseen.dedup();
        let evidence = VersionEvidence::NotInList(read);
        let steps = unseen.into_iter().map(|after| VersionStep { before, after, key, evidence });
        orders.steps.extend(steps);
    }

    /// Elements that the reading transaction itself appends later.
    fn own_elements(&self, state: State, places: &HashMap<Value, u32>, orders: &mut ListOrders) {
        let later = state.read.0 + 1..self.history.op_range(state.txn).end;
        for op in self.own.of(state.txn, state.key, later) {
            let later = self.history.op(op);
            if later.kind == OpKind::Append
                && places.get(&later.value).is_some_and(|&place| place < state.length)
                && self.is_only(later.value)
            {
                let kind = MisreadKind::Future { write: op };
                orders.misreads.push(Misread { read: state.read, key: state.key, kind });
            }
        }
    }
}

/// Elements that nobody, or only an aborted transaction, appended.
fn bad_elements(
    history: &History,
    writes: &Writes,
    key: KeyId,
    elements: &[Value],
) -> Vec<(u32, MisreadKind)> {
    let mut bad = Vec::new();
    for (place, &element) in elements.iter().enumerate() {
        let found = writes.with_value(history, key, element);
        if found.iter().any(|version| may_count(history, version.txn)) {
            continue;
        }
        let kind = match found.first() {
            Some(version) => MisreadKind::Aborted { write: version.op() },
            None => MisreadKind::ThinAir,
        };
        bad.push((place as u32, kind));
    }
    bad
}

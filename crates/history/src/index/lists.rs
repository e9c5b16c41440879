//! Version orders of list keys, from the longest list read.
//!
//! Every list a counted transaction read is, without its own appends, a state the
//! key went through. States of one key must be prefixes of the longest one, the
//! *spine*; appends that the spine does not show came after it. [Kingsbury and
//! Alvaro 2020, §4.2.3]

use super::versions::Versions;
use super::{ListConflict, Misread, MisreadKind, VersionEvidence, VersionStep, may_count};
use crate::history::{History, KeyId, OpId, OpKind, TxnId};
use crate::value::Value;
use hashbrown::HashMap;

#[derive(Default)]
pub(super) struct ListOrders {
    pub(super) steps: Vec<VersionStep>,
    pub(super) conflicts: Vec<ListConflict>,
    pub(super) misreads: Vec<Misread>,
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

pub(super) fn orders(history: &History, versions: &Versions, counted: &[bool]) -> ListOrders {
    let mut states = states(history, counted);
    // The longest of each key first; of equal ones the earliest.
    states.sort_unstable_by_key(|state| (state.key, std::cmp::Reverse(state.length), state.read));
    let mut orders = ListOrders::default();
    for group in states.chunk_by(|one, other| one.key == other.key) {
        key_order(history, versions, counted, group, &mut orders);
    }
    orders
}

/// All states that counted transactions read; reads that do not end with their
/// transaction's own appends are misreads already and tell nothing about order.
fn states(history: &History, counted: &[bool]) -> Vec<State> {
    let mut states = Vec::new();
    for txn in history.txns().filter(|txn| counted[txn.index()]) {
        let range = history.op_range(txn);
        for op in range.clone().map(OpId) {
            if history.op_kinds()[op.index()] != OpKind::ReadList {
                continue;
            }
            let key = history.op(op).key;
            let own: Vec<Value> = (range.start..op.0)
                .map(|earlier| history.op(OpId(earlier)))
                .filter(|earlier| earlier.kind.is_write() && earlier.key == key)
                .map(|earlier| earlier.value)
                .collect();
            if history.list(op).ends_with(&own) {
                let (start, length) = history.list_span(op);
                let length = length - own.len() as u32;
                states.push(State { key, read: op, txn, start, length });
            }
        }
    }
    states
}

fn key_order(
    history: &History,
    versions: &Versions,
    counted: &[bool],
    states: &[State],
    orders: &mut ListOrders,
) {
    let longest = states[0];
    let key = longest.key;
    let spine = &history.list(longest.read)[..longest.length as usize];
    let mut places: HashMap<Value, u32> = HashMap::with_capacity(spine.len());
    for (place, &element) in spine.iter().enumerate() {
        if places.insert(element, place as u32).is_some() {
            let read = longest.read;
            orders.conflicts.push(ListConflict::Duplicate { read, place: place as u32 });
        }
    }
    for state in &states[1..] {
        let elements = &history.list(state.read)[..state.length as usize];
        if state.start != longest.start && !spine.starts_with(elements) {
            disagreeing(history, versions, *state, elements, longest, orders);
        }
    }
    let bad = bad_elements(history, versions, key, spine);
    for state in states.iter().filter(|state| state.start == longest.start) {
        for &(place, kind) in bad.iter().take_while(|bad| bad.0 < state.length) {
            let _ = place;
            orders.misreads.push(Misread { read: state.read, key, kind });
        }
        own_elements(history, *state, &places, orders);
    }
    steps(versions, counted, longest, spine, &places, orders);
}

/// A state that is no prefix of the spine: which anomaly it is, and what its
/// elements show by themselves.
fn disagreeing(
    history: &History,
    versions: &Versions,
    state: State,
    elements: &[Value],
    longest: State,
    orders: &mut ListOrders,
) {
    let mut seen: HashMap<Value, u32> = HashMap::with_capacity(elements.len());
    let read = state.read;
    for (place, &element) in elements.iter().enumerate() {
        if seen.insert(element, place as u32).is_some() {
            orders.conflicts.push(ListConflict::Duplicate { read, place: place as u32 });
        }
    }
    orders.conflicts.push(ListConflict::Incompatible { first: longest.read, second: read });
    for (_, kind) in bad_elements(history, versions, state.key, elements) {
        orders.misreads.push(Misread { read, key: state.key, kind });
    }
    own_elements(history, state, &seen, orders);
}

/// Elements that nobody, or only an aborted transaction, appended.
fn bad_elements(
    history: &History,
    versions: &Versions,
    key: KeyId,
    elements: &[Value],
) -> Vec<(u32, MisreadKind)> {
    let mut bad = Vec::new();
    for (place, &element) in elements.iter().enumerate() {
        let found = versions.with_value(key, element);
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

/// Elements that the reading transaction itself appends later.
fn own_elements(
    history: &History,
    state: State,
    places: &HashMap<Value, u32>,
    orders: &mut ListOrders,
) {
    for op in (state.read.0 + 1..history.op_range(state.txn).end).map(OpId) {
        let later = history.op(op);
        if later.kind == OpKind::Append
            && later.key == state.key
            && places.get(&later.value).is_some_and(|&place| place < state.length)
        {
            let kind = MisreadKind::Future { write: op };
            orders.misreads.push(Misread { read: state.read, key: state.key, kind });
        }
    }
}

fn steps(
    versions: &Versions,
    counted: &[bool],
    longest: State,
    spine: &[Value],
    places: &HashMap<Value, u32>,
    orders: &mut ListOrders,
) {
    let (key, read) = (longest.key, longest.read);
    let writer = |element: Value| {
        let mut found =
            versions.with_value(key, element).iter().filter(|version| counted[version.txn.index()]);
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only.txn),
            _ => None,
        }
    };
    let mut last = None;
    for &element in spine {
        let next = writer(element);
        if let (Some(before), Some(after)) = (last, next)
            && before != after
        {
            let evidence = VersionEvidence::ListRead(read);
            orders.steps.push(VersionStep { before, after, key, evidence });
        }
        last = next.or(last);
    }
    let Some(before) = last else { return };
    let mut unseen: Vec<TxnId> = versions
        .of(key)
        .iter()
        .filter(|version| counted[version.txn.index()] && !places.contains_key(&version.value))
        .map(|version| version.txn)
        .filter(|&txn| txn != before)
        .collect();
    unseen.sort_unstable();
    unseen.dedup();
    let evidence = VersionEvidence::NotInList(read);
    orders.steps.extend(unseen.into_iter().map(|after| VersionStep {
        before,
        after,
        key,
        evidence,
    }));
}

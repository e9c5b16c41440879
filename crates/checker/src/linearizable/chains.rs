//! Objects whose contents tell their writers: chains of compare-and-sets.
//!
//! **Definition.** Every content that somebody saw was left by one operation, or is
//! the initial one and was left by none. A *version* is what one operation left, with
//! everybody who saw it. A compare-and-set that saw a version follows it with nothing
//! in between, so versions form *chains*: each begins with a plain write, or with the
//! initial state, and is continued by compare-and-sets.
//!
//! **Method** [MTC]. The order within a chain is forced: the write, those who read
//! it, the compare-and-set that replaced it, those who read that, and so on. Two
//! successful compare-and-sets of one version refute, and so does a circle of them.
//! Walking a chain backwards with the earliest completion so far, an operation
//! invoked after it refutes. A history with one insert and compare-and-sets otherwise
//! is one chain, and decided by this alone. The order of several chains is found by
//! [`zones`](super::zones). O(n log n), for sorting readers by invocation.

use super::operations::{Action, Content, Operation};
use crate::anomaly::AnomalyKind;
use hashbrown::{HashMap, HashSet};
use isolde_history::Time;

/// Operations in the only order they can have, nothing in between.
pub(super) struct Chain {
    /// Places of operations.
    pub(super) order: Vec<usize>,
}

/// What the contents of an object tell.
pub(super) enum Versions {
    /// The chains, that of the initial state first.
    Chains(Vec<Chain>),
    /// These operations cannot all have happened.
    Contradiction(AnomalyKind, Vec<usize>),
    /// Somebody saw a content that several operations may have left.
    Repeated,
}

/// Who left and who saw one version.
#[derive(Default)]
struct Version {
    write: Option<usize>,
    readers: Vec<usize>,
    /// The compare-and-set that replaced it.
    next: Option<usize>,
}

/// Finds the chains of one object. Refused compare-and-sets are left out: they saw no
/// version in particular.
pub(super) fn chains(operations: &[Operation], initial: Content) -> Versions {
    // What an append leaves depends on what was there, also if nobody knows that it happened.
    if operations.iter().any(|operation| matches!(operation.action, Action::Append(_))) {
        return Versions::Repeated;
    }
    let (seen, counted) = observed(operations);
    let mut versions = vec![Version::default()];
    let mut version_of: HashMap<Content, usize> = HashMap::new();
    if seen.contains(&initial) {
        version_of.insert(initial, 0);
    }
    // The version that each operation left.
    let mut left_by: Vec<usize> = vec![usize::MAX; operations.len()];
    for &place in &counted {
        let Some(content) = operations[place].action.left() else { continue };
        let version = versions.len();
        versions.push(Version { write: Some(place), ..Version::default() });
        left_by[place] = version;
        if seen.contains(&content) && version_of.insert(content, version).is_some() {
            return Versions::Repeated;
        }
    }
    for &place in &counted {
        let Some(content) = operations[place].action.seen() else { continue };
        let Some(&version) = version_of.get(&content) else {
            return Versions::Contradiction(AnomalyKind::ThinAirRead, vec![place]);
        };
        match (operations[place].action, versions[version].next) {
            (Action::Replace { .. }, Some(other)) => {
                return Versions::Contradiction(
                    AnomalyKind::CompareAndSetTwice,
                    vec![other, place],
                );
            }
            (Action::Replace { .. }, None) => versions[version].next = Some(place),
            _ => versions[version].readers.push(place),
        }
    }
    link(operations, versions, &left_by)
}

/// The contents that operations saw, and the operations that took effect: the certain
/// ones, and what they saw of others, directly or through others.
fn observed(operations: &[Operation]) -> (HashSet<Content>, Vec<usize>) {
    let mut left_by: HashMap<Content, Vec<usize>> = HashMap::new();
    for (place, operation) in operations.iter().enumerate() {
        if let Some(content) = operation.action.left().filter(|_| !operation.is_certain) {
            left_by.entry(content).or_default().push(place);
        }
    }
    let certain = |place: &usize| operations[*place].is_certain;
    let mut counted: Vec<usize> = (0..operations.len()).filter(certain).collect();
    let mut seen = HashSet::new();
    let mut next = 0;
    while let Some(&place) = counted.get(next) {
        next += 1;
        if let Some(content) = operations[place].action.seen()
            && seen.insert(content)
        {
            counted.extend(left_by.get(&content).into_iter().flatten());
        }
    }
    counted.sort_unstable();
    (seen, counted)
}

/// Puts versions together and holds each chain to real time.
fn link(operations: &[Operation], mut versions: Vec<Version>, left_by: &[usize]) -> Versions {
    let is_plain = |version: &Version| {
        version.write.is_none_or(|write| matches!(operations[write].action, Action::Write(_)))
    };
    let starts: Vec<usize> =
        (0..versions.len()).filter(|&version| is_plain(&versions[version])).collect();
    let mut found = Vec::new();
    let mut linked = 0;
    for start in starts {
        let mut order = Vec::new();
        let mut at = Some(start);
        while let Some(version) = at {
            linked += 1;
            let version = &mut versions[version];
            order.extend(version.write);
            let mut readers = std::mem::take(&mut version.readers);
            readers.sort_unstable_by_key(|&place| (operations[place].invoked, place));
            order.append(&mut readers);
            at = version.next.map(|place| left_by[place]);
        }
        if let Some((earlier, later)) = against_time(operations, &order) {
            let kind = if operations[earlier].action.left() == operations[later].action.seen() {
                AnomalyKind::ReadBeforeWrite
            } else {
                AnomalyKind::StaleRead
            };
            return Versions::Contradiction(kind, vec![earlier, later]);
        }
        found.push(Chain { order });
    }
    if linked < versions.len() {
        let reached: HashSet<usize> =
            found.iter().flat_map(|chain: &Chain| chain.order.iter().copied()).collect();
        let is_left = |&place: &usize| left_by[place] != usize::MAX && !reached.contains(&place);
        let circle = (0..operations.len()).filter(is_left).collect();
        return Versions::Contradiction(AnomalyKind::UnexplainedOperation, circle);
    }
    Versions::Chains(found)
}

/// An operation of the sequence and a later one that completed before the first was
/// invoked.
fn against_time(operations: &[Operation], order: &[usize]) -> Option<(usize, usize)> {
    let mut earliest: Option<(Time, usize)> = None;
    for &place in order.iter().rev() {
        if let Some((completed, later)) = earliest
            && completed < operations[place].invoked
        {
            return Some((place, later));
        }
        let own = (operations[place].completed, place);
        earliest = Some(earliest.map_or(own, |known| known.min(own)));
    }
    None
}

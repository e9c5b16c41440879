//! Linearizability: as if each operation took effect at once while it was open.
//!
//! **Definition** \[Herlihy90\]. There is one order of the operations in which every
//! read sees what was last written to its object, and which keeps real time: what
//! completed before another was invoked comes before it. Operations of unknown outcome
//! are in it or not, and never complete. Session order is kept too, because a client
//! does one thing after another even if its clock does not tell.
//!
//! **Method.** Each object is decided by itself, and the orders are merged.
//!
//! | file | what it decides |
//! |---|---|
//! | `chains` | what follows from compare-and-sets where contents tell their writers \[MTC\] |
//! | `zones` | the order of plain writes there \[Gibbons97\] |
//! | `search` | contents that repeat, refused compare-and-sets, texts that grow [Wing93; Lowe17] |
//! | `unseen` | which contents of a text the search need not tell apart |
//! | `objects` | all objects, on all threads |
//! | `merge` | one order of all objects |
//! | `possible`, `locks` | what an object can have held and by whom, for explanations |
//! | `window` | the fewest calls of a register that no order explains, for explanations |
//! | `account` | which of these is told |
//!
//! Where contents tell their writers that is O(n log n); a search is exponential in
//! the operations open at once and may end at a limit.

mod account;
mod chains;
mod events;
mod locks;
mod merge;
mod objects;
mod operations;
mod possible;
mod refused;
mod search;
mod unseen;
mod window;
mod zones;

pub use account::{Account, account};
pub use locks::Lock;
pub use operations::NilReads;
pub use window::{Attempt, Window};

use crate::anomaly::{Anomaly, AnomalyKind, of_operations};
use crate::limits::Limits;
use crate::unknown::{Limit, Obstacle, Unknown};
use crate::verdict::{Satisfied, Verdict, Violated};
use chains::Versions;
use hashbrown::{HashMap, HashSet};
use isolde_history::{History, KeyId, OpId, OpKind, Outcome, Time, TxnId, Value};
use objects::Without;
use operations::{Action, Content, Operation, Operations, Texts};
use search::{Problem, Searched};

/// How a history is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// What a read of nil saw.
    pub nil_reads: NilReads,
    /// Clocks of clients may differ by so many nanoseconds.
    pub drift: Time,
}

/// More operations are not searched in one order if sessions contradict the times.
const MERGED_BY_SEARCH_MAX: usize = 256;

/// Whether a history has times and every transaction is one operation, of an object that is
/// known.
pub(crate) fn applies(history: &History) -> bool {
    let has_calls = history.op_kinds().contains(&OpKind::Call);
    obstacle(history).is_none()
        && (!has_calls || Operations::of(history, NilReads::default(), 0).is_some())
}

/// Why linearizability says nothing of a history, whatever its objects are.
pub(crate) fn obstacle(history: &History) -> Option<Obstacle> {
    let mut txns = history.txns().filter(|&txn| history.outcome(txn) != Outcome::Aborted);
    if !history.has_times() {
        Some(Obstacle::NoTimes)
    } else if txns.any(|txn| !is_single(history, txn)) {
        Some(Obstacle::SeveralOperations)
    } else {
        None
    }
}

/// Whether a transaction is one operation: a compare-and-set reads a key and then writes it.
fn is_single(history: &History, txn: TxnId) -> bool {
    match *history.ops_of(txn).collect::<Vec<OpId>>() {
        [] | [_] => true,
        [read, write] => {
            let (read, write) = (history.op(read), history.op(write));
            read.kind == OpKind::Read && write.kind.is_write() && read.key == write.key
        }
        _ => false,
    }
}

/// Decides linearizability; `None` if some transaction is not one operation on a
/// register, a store or a lock, or if an order was found but not the one in which the database
/// says that it installed the versions.
pub fn decide(history: &History, limits: &Limits<'_>, reading: Reading) -> Option<Verdict> {
    let mut operations = Operations::of(history, reading.nil_reads, reading.drift)?;
    if !history.has_times() {
        return Some(Verdict::Unknown(Unknown::Unsupported(Obstacle::NoTimes)));
    }
    let orders = match objects::orders(&mut operations, limits) {
        Ok(orders) => orders,
        Err(Without { decided: Decided::Limit(limit), .. }) => {
            return Some(Verdict::Unknown(Unknown::Limit(limit)));
        }
        Err(Without { decided: Decided::Violated(kind, shown), object, operations: own }) => {
            let key = operations.objects[object].key;
            return Some(violated(anomaly(history, &own, key, kind, &shown)));
        }
        Err(Without { decided: Decided::Order(_), .. }) => unreachable!("it is without"),
    };
    match all_objects(history, operations, &orders, limits) {
        Verdict::Satisfied(Satisfied::Order(order)) if !is_as_given(history, &order) => None,
        verdict => Some(verdict),
    }
}

/// Whether the writes of an order come as the database said that it installed them. Not where
/// that names a value twice: who wrote it is then to be found out.
fn is_as_given(history: &History, order: &[TxnId]) -> bool {
    let chains = &history.orders().versions;
    let mut places: HashMap<(KeyId, Value), (usize, usize)> = HashMap::new();
    for (number, chain) in chains.iter().enumerate() {
        for (place, &value) in chain.values.iter().enumerate() {
            let is_known = value == history.initial(chain.key)
                || places.insert((chain.key, value), (number, place)).is_some();
            if is_known {
                return false;
            }
        }
    }
    let mut next = vec![0; chains.len()];
    let mut writes = (order.iter().flat_map(|&txn| history.ops_of(txn)))
        .map(|op| history.op(op))
        .filter(|op| op.kind.is_write())
        .filter_map(|write| places.get(&(write.key, write.value)));
    writes.all(|&(number, place)| {
        let is_later = place >= next[number];
        next[number] = place + 1;
        is_later
    })
}

fn violated(anomaly: Anomaly) -> Verdict {
    Verdict::Violated(Violated::by(vec![anomaly]))
}

/// What was found out about one object.
enum Decided {
    Order(Vec<usize>),
    Violated(AnomalyKind, Vec<usize>),
    Limit(Limit),
}

fn one_object(
    operations: &[Operation],
    object: operations::Object,
    texts: &mut Texts,
    limits: &Limits<'_>,
) -> Decided {
    match chains::chains(operations, object.initial) {
        Versions::Contradiction(kind, shown) => return Decided::Violated(kind, shown),
        Versions::Chains(chains) => match zones::order(operations, &chains) {
            Err(conflict) => {
                let ((first, last), (second, other)) = (conflict.first, conflict.second);
                let shown = first.into_iter().chain([other, second, last]).collect();
                return Decided::Violated(AnomalyKind::StaleRead, shown);
            }
            Ok(order) => {
                if let Some(order) = refused::place(operations, object.initial, order) {
                    return Decided::Order(order);
                }
            }
        },
        Versions::Repeated => {}
    }
    let relevant = relevant(operations);
    let left: Vec<Operation> = relevant.iter().map(|&place| operations[place]).collect();
    let problem = Problem { operations: &left, objects: &[object], before: &[] };
    let known = |places: Vec<usize>| places.into_iter().map(|place| relevant[place]).collect();
    match search::search(&problem, texts, limits) {
        Searched::Order(order) => Decided::Order(known(order)),
        Searched::Unexplained(shown) => {
            Decided::Violated(AnomalyKind::UnexplainedOperation, known(shown))
        }
        Searched::Limit(limit) => Decided::Limit(limit),
    }
}

/// Operations without the uncertain ones of which nobody could have seen anything.
fn relevant(operations: &[Operation]) -> Vec<usize> {
    let is_vague = |operation: &Operation| {
        matches!(operation.action, Action::ReadOther(_) | Action::Append(_))
    };
    let all_matter = operations.iter().any(is_vague);
    let seen: HashSet<Content> = operations.iter().filter_map(|it| it.action.seen()).collect();
    let matters = |operation: &Operation| {
        operation.is_certain
            || all_matter
            || operation.action.left().is_some_and(|content| seen.contains(&content))
    };
    (0..operations.len()).filter(|&place| matters(&operations[place])).collect()
}

/// Merges the orders of the objects, or searches for one order if there is none.
fn all_objects(
    history: &History,
    mut operations: Operations,
    orders: &[Vec<usize>],
    limits: &Limits<'_>,
) -> Verdict {
    let before = before_in_session(history, &operations.all);
    let all = &operations.all;
    let in_order = |order: Vec<usize>| {
        let order: Vec<TxnId> = order.into_iter().map(|place| all[place].txn).collect();
        Verdict::Satisfied(Satisfied::Order(order))
    };
    if let Some(order) = merge::merge(all, orders, &before) {
        return in_order(order);
    }
    if all.len() > MERGED_BY_SEARCH_MAX {
        return Verdict::Unknown(Unknown::Unsupported(Obstacle::OpenMerge));
    }
    let objects = &operations.objects;
    let problem = Problem { operations: all, objects, before: &before };
    match search::search(&problem, &mut operations.texts, limits) {
        Searched::Order(order) => in_order(order),
        Searched::Unexplained(shown) => {
            let key = all.get(shown[0]).and_then(|it| objects.get(it.object));
            let key = key.map_or(KeyId(0), |object| object.key);
            let kind = AnomalyKind::UnexplainedOperation;
            violated(anomaly(history, all, key, kind, &shown))
        }
        Searched::Limit(limit) => Verdict::Unknown(Unknown::Limit(limit)),
    }
}

/// The operation before each in its session. Operations stand in the order of their
/// transactions, and those session by session.
fn before_in_session(history: &History, operations: &[Operation]) -> Vec<Option<usize>> {
    let mut before = vec![None; operations.len()];
    let mut place = 0;
    for session in history.sessions() {
        let end = history.session_range(session).end;
        let mut last = None;
        while operations.get(place).is_some_and(|operation| operation.txn.0 < end) {
            before[place] = last.replace(place);
            place += 1;
        }
    }
    before
}

fn anomaly(
    history: &History,
    operations: &[Operation],
    key: KeyId,
    kind: AnomalyKind,
    shown: &[usize],
) -> Anomaly {
    let ops: Vec<OpId> = shown.iter().map(|&place| operations[place].op).collect();
    of_operations(history, kind, key, ops)
}

#[cfg(test)]
mod tests;

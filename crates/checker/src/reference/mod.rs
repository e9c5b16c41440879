//! The definitions of all levels, by brute force.
//!
//! This is the specification that the fast engine is tested against. It is kept
//! short enough to be checked by eye and is never made faster; histories beyond a
//! small size are answered with [`Reference::Unknown`].
//!
//! **Method.** A history leaves open which write a read saw (where values repeat),
//! in which order transactions committed and in which order versions were
//! installed. All of it is tried: `observation` lists the choices of writers,
//! `execution` says what one choice means and which reads explain themselves by
//! no choice of orders, `commit_order` and `event_graph` try the orders, `conditions` says
//! what reads by condition ask for under an order of versions. A level
//! is satisfied if some combination satisfies it.
//!
//! **Initial state.** An initial transaction precedes everything. It writes the
//! declared initial value, nil where none is declared, and the empty list to keys
//! that are lists.
//!
//! **What is not decided.** Histories with operations that are neither read nor
//! write; keys used both as register and as list; writes, list elements and
//! initial values that are not known. Levels with real time, if the history has no times. Linearizability, if
//! a counted transaction has several operations and is no compare-and-set. A
//! serialization order given by a database is evidence of its own and is not looked
//! at, and neither is whether a given version order is complete.

mod commit_order;
mod conditions;
mod event_graph;
mod execution;
mod observation;
mod relation;

use crate::level::Level;
use crate::unknown::Obstacle;
use execution::Execution;
use isolde_history::{History, Op, OpKind, Outcome, Time, TxnId};
use observation::Observations;

/// What the definition says about a history and a level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Reference {
    /// Some choice of writers and orders satisfies the level.
    Satisfied,
    /// None does.
    Violated,
    /// Not every choice could be tried, or the definition does not apply: the reason.
    Unknown(Obstacle),
}

/// Decides one level.
pub fn decide(history: &History, level: Level) -> Reference {
    decide_with_drift(history, level, 0)
}

/// The same if clocks of clients may be so far apart, in nanoseconds.
pub fn decide_with_drift(history: &History, level: Level, clock_drift: Time) -> Reference {
    let [verdict] = decide_each(history, [level], clock_drift);
    verdict
}

/// Decides every level, in the order of [`Level::ALL`].
pub fn decide_all(history: &History) -> [(Level, Reference); Level::ALL.len()] {
    let mut verdicts = decide_each(history, Level::ALL, 0).into_iter();
    Level::ALL.map(|level| (level, verdicts.next().expect("a verdict for every level")))
}

fn decide_each<const COUNT: usize>(
    history: &History,
    levels: [Level; COUNT],
    clock_drift: Time,
) -> [Reference; COUNT] {
    match try_every_choice(history, levels, clock_drift) {
        Ok(verdicts) => verdicts,
        Err(reason) => levels.map(|_| Reference::Unknown(reason.clone())),
    }
}

fn try_every_choice<const COUNT: usize>(
    history: &History,
    levels: [Level; COUNT],
    clock_drift: Time,
) -> Result<[Reference; COUNT], Obstacle> {
    let is_committed = |outcome: &&Outcome| **outcome == Outcome::Committed;
    let committed = history.outcomes().iter().filter(is_committed).count();
    if committed > execution::TXNS_MAX {
        return Err(execution::too_many(committed));
    }
    let observations = Observations::of(history)?;
    let mut verdicts = levels.map(|_| Reference::Violated);
    for choice in observations.choices()? {
        let execution = Execution::of(&observations, &choice, clock_drift);
        for (verdict, level) in verdicts.iter_mut().zip(levels) {
            if *verdict == Reference::Satisfied {
                continue;
            }
            let found = execution
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|execution| is_satisfied(execution, level));
            match found {
                Ok(true) => *verdict = Reference::Satisfied,
                Ok(false) => {}
                Err(reason) => *verdict = Reference::Unknown(reason),
            }
        }
    }
    Ok(verdicts)
}

/// Whether a transaction is one operation. A compare-and-set is: it reads a key and
/// then writes it.
fn is_single(history: &History, txn: TxnId) -> bool {
    let ops: Vec<Op> = history.ops_of(txn).map(|op| history.op(op)).collect();
    match *ops {
        [] | [_] => true,
        [read, write] => {
            read.kind == OpKind::Read && write.kind.is_write() && read.key == write.key
        }
        _ => false,
    }
}

fn is_satisfied(execution: &Execution<'_>, level: Level) -> Result<bool, Obstacle> {
    let history = execution.history;
    if event_graph::needs_times(level) && !history.has_times() {
        return Err(Obstacle::NoTimes);
    }
    if level == Level::Linearizable && !execution.counted.iter().all(|&txn| is_single(history, txn))
    {
        return Err(Obstacle::LongTransaction);
    }
    if execution.faults.iter().any(|fault| fault.refutes(level)) {
        return Ok(false);
    }
    match level {
        Level::ReadUncommitted
        | Level::AdyaReadCommitted
        | Level::MonotonicAtomicView
        | Level::ReadCommitted
        | Level::ReadAtomic
        | Level::ReadYourWrites
        | Level::MonotonicReads
        | Level::MonotonicWrites
        | Level::WritesFollowReads
        | Level::Causal
        | Level::CursorStability
        | Level::UpdateAtomic => Ok(commit_order::is_satisfied(execution, level)),
        Level::Prefix
        | Level::ParallelSnapshotIsolation
        | Level::RepeatableRead
        | Level::SnapshotIsolation
        | Level::GeneralizedSnapshotIsolation
        | Level::SessionSnapshotIsolation
        | Level::PrefixConsistentSnapshotIsolation
        | Level::StrongSnapshotIsolation
        | Level::Serializable
        | Level::SessionSerializable
        | Level::StrictSerializable
        | Level::Linearizable => event_graph::is_satisfied(execution, level),
    }
}

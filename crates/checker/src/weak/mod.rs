//! The polynomial levels: one commit order, and a rule that forces parts of it.
//!
//! Biswas and Enea's form [Biswas19]: there is a total commit order that contains
//! what is known (versions, reads-from, session order), and whenever `reader` reads
//! a key from `writer`, and `other` writes the key too and was *visible* to the
//! reader, `other` precedes `writer`. A level says what visible means; its file
//! finds the orders this forces. The level holds if known and forced orders have
//! no cycle.
//!
//! Each file of this folder is one level and exports a [`Rule`].

mod adya_read_committed;
mod asked_keys;
mod causal;
mod core;
mod happens_before;
mod monotonic_atomic_view;
mod monotonic_reads;
mod monotonic_writes;
mod order;
mod reach;
mod read_atomic;
mod read_committed;
mod read_uncommitted;
mod read_your_writes;
#[cfg(test)]
mod samples;
mod session_state;
mod walk;
mod writes_follow_reads;

use crate::anomaly::{self, Anomaly, AnomalyKind};
use crate::evidence::{Cycle, Edge, INITIAL};
use crate::level::Level;
use crate::limits::Limits;
use crate::naming;
use crate::unknown::Limit;
use isolde_certificate::Rule as Step;
use isolde_history::{Candidates, History, Index, KeyMarks, Origin, ReadId, SessionId, TxnId};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The levels of this family.
pub(crate) static RULES: &[Rule] = &[
    read_uncommitted::RULE,
    adya_read_committed::RULE,
    monotonic_atomic_view::RULE,
    read_committed::RULE,
    read_atomic::RULE,
    read_your_writes::RULE,
    monotonic_reads::RULE,
    monotonic_writes::RULE,
    writes_follow_reads::RULE,
    causal::RULE,
];

/// What makes a level of this family.
pub(crate) struct Rule {
    pub(crate) level: Level,
    /// Whether reads-from is part of the commit order.
    pub(crate) reads_from: bool,
    /// Whether session order is part of the commit order.
    pub(crate) session_order: bool,
    /// Which writes may explain a read of a repeated value.
    pub(crate) candidates: Candidates,
    /// What a cycle with a forced order is called.
    pub(crate) broken: AnomalyKind,
    /// Finds the forced orders, or a cycle of known ones on the way.
    pub(crate) forced: fn(&Facts<'_>) -> Result<Vec<Forced>, Halt>,
    /// Shows why the earlier transaction of a forced order was visible.
    pub(crate) visible: fn(&Facts<'_>, Forced) -> Vec<Edge>,
}

/// What all levels share.
pub(crate) struct Facts<'a> {
    pub(crate) history: &'a History,
    pub(crate) index: &'a Index,
    pub(crate) limits: &'a Limits<'a>,
    /// Forced orders found so far by all workers of one level.
    pub(crate) found: AtomicUsize,
}

/// Why a rule was not followed to its end.
pub(crate) enum Halt {
    /// Known orders alone have a cycle.
    Cycle(Cycle),
    /// A limit was reached.
    Limit(Limit),
}

/// `before` must precede `after` because of `read`, a read from `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forced {
    pub(crate) before: TxnId,
    /// [`INITIAL`] if the read saw the initial state: nothing precedes that.
    pub(crate) after: TxnId,
    pub(crate) read: ReadId,
}

/// Decides one level, given that no read is wrong by itself at it.
pub(crate) fn decide(rule: &Rule, facts: &Facts<'_>) -> Decision {
    let found = |cycle: Cycle| {
        let is_phantom = rule.broken == AnomalyKind::FracturedRead
            && naming::missed_by_condition(facts.history, &cycle);
        let broken = if is_phantom { AnomalyKind::Phantom } else { rule.broken };
        Decision::Violated(anomaly::of_cycle(facts.history, cycle, broken))
    };
    let forced = match (rule.forced)(facts) {
        Ok(forced) => forced,
        Err(Halt::Cycle(cycle)) => return found(cycle),
        Err(Halt::Limit(limit)) => return Decision::Limit(limit),
    };
    if let Some(&impossible) = forced.iter().find(|forced| forced.after == INITIAL) {
        let first = overwritten(rule, facts, impossible);
        let second = Edge::by(Step::InitialFirst, INITIAL, impossible.before);
        return found(Cycle { edges: vec![first, second] });
    }
    match order::commit_order(rule, facts, forced) {
        Ok(order) => Decision::Satisfied(order),
        Err(cycle) => found(cycle),
    }
}

/// What following a rule to its end shows.
pub(crate) enum Decision {
    Satisfied(Vec<TxnId>),
    Violated(Anomaly),
    Limit(Limit),
}

fn overwritten(rule: &Rule, facts: &Facts<'_>, forced: Forced) -> Edge {
    let read = facts.index.read(forced.read);
    let path = (rule.visible)(facts, forced);
    let step = Step::Visible { read: read.op, key: read.key, path };
    Edge::by(step, forced.before, forced.after)
}

/// For levels without a rule of their own.
#[expect(clippy::unnecessary_wraps, reason = "rules of other levels can fail")]
fn nothing_forced(_: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    Ok(Vec::new())
}

fn never_visible(_: &Facts<'_>, _: Forced) -> Vec<Edge> {
    unreachable!("nothing is forced at this level")
}

impl<'a> Facts<'a> {
    pub(crate) fn new(history: &'a History, index: &'a Index, limits: &'a Limits<'a>) -> Self {
        Facts { history, index, limits, found: AtomicUsize::new(0) }
    }

    /// Counts what a worker found; it is in memory twice while it is put together.
    fn count(&self, forced: &[Forced]) -> Result<(), Halt> {
        let before = self.found.fetch_add(forced.len(), Ordering::Relaxed);
        self.stop_if_asked(2 * (before + forced.len()) * size_of::<Forced>())
    }

    /// Fails if the caller wants an end, or `bytes` more are too much memory.
    fn stop_if_asked(&self, bytes: usize) -> Result<(), Halt> {
        if self.limits.is_over() {
            return Err(Halt::Limit(self.limits.reached()));
        }
        match self.limits.working_bytes_max {
            Some(left) if bytes > left => {
                Err(Halt::Limit(Limit::WorkingMemory { needed: bytes, left }))
            }
            _ => Ok(()),
        }
    }

    /// The transaction a read came from as the later end of a forced order;
    /// `None` if it is not known by itself.
    #[inline]
    fn writer(origin: Origin) -> Option<TxnId> {
        match origin {
            Origin::Txn(txn) => Some(txn),
            Origin::Initial => Some(INITIAL),
            Origin::Several | Origin::Nobody => None,
        }
    }

    /// The reader of a forced order.
    fn reader(&self, forced: Forced) -> TxnId {
        self.history.txn_of(self.index.read(forced.read).op)
    }

    /// The first read of `reader` from `writer`, as an edge.
    fn reads_from(&self, reader: TxnId, writer: TxnId) -> Option<Edge> {
        self.index
            .reads_of(reader)
            .find(|read| read.origin == Origin::Txn(writer))
            .map(|read| Edge::reads_from(writer, reader, read.op, read.key))
    }

    /// Counted transactions of a session before `txn`, last first.
    fn earlier_in_session(&self, txn: TxnId) -> impl Iterator<Item = TxnId> {
        let start = self.history.session_range(self.history.session_of(txn)).start;
        (start..txn.0).rev().map(TxnId).filter(|&earlier| self.index.is_counted(earlier))
    }

    /// Runs `find` on every session, in parallel, each worker with one `scratch`.
    fn by_session<S>(
        &self,
        scratch: impl Fn() -> S + Sync + Send,
        find: impl Fn(&mut S, SessionId, &mut Vec<Forced>) + Sync + Send,
    ) -> Result<Vec<Forced>, Halt> {
        let sessions = self.history.session_count() as u32;
        let share = (sessions as usize).div_ceil(4 * rayon::current_num_threads()).max(1);
        let parts: Vec<Vec<Forced>> = (0..sessions)
            .into_par_iter()
            .with_min_len(share)
            .map_init(scratch, |scratch, session| {
                self.stop_if_asked(0)?;
                let mut forced = Vec::new();
                find(scratch, SessionId(session), &mut forced);
                self.count(&forced)?;
                Ok(forced)
            })
            .collect::<Result<_, Halt>>()?;
        Ok(parts.concat())
    }

    /// Runs `find` on all transactions, many at a time, in parallel.
    fn by_txns(
        &self,
        find: impl Fn(Range<u32>, &mut Vec<Forced>) + Sync + Send,
    ) -> Result<Vec<Forced>, Halt> {
        const TXNS_PER_TASK: usize = 1 << 13;
        let txns = self.history.txn_count();
        let parts: Vec<Vec<Forced>> = (0..txns.div_ceil(TXNS_PER_TASK))
            .into_par_iter()
            .map(|task| {
                self.stop_if_asked(0)?;
                let mut forced = Vec::new();
                let end = ((task + 1) * TXNS_PER_TASK).min(txns);
                find((task * TXNS_PER_TASK) as u32..end as u32, &mut forced);
                self.count(&forced)?;
                Ok(forced)
            })
            .collect::<Result<_, Halt>>()?;
        Ok(parts.concat())
    }

    /// Visits these transactions in order, each with what the writers of its reads
    /// write.
    fn with_seen(&self, txns: Range<u32>, mut visit: impl FnMut(TxnId, &[KeyMarks])) {
        const TXNS_TOGETHER: u32 = 64;
        let mut seen: Vec<KeyMarks> = Vec::new();
        for first in txns.clone().step_by(TXNS_TOGETHER as usize) {
            let end = (first + TXNS_TOGETHER).min(txns.end);
            let start = self.index.read_range(TxnId(first)).start;
            let reads = start..self.index.read_range(TxnId(end - 1)).end;
            self.index.written_by_origins(reads, &mut seen);
            for txn in (first..end).map(TxnId) {
                let range = self.index.read_range(txn);
                visit(txn, &seen[(range.start - start) as usize..(range.end - start) as usize]);
            }
        }
    }
}

/// The marks of the keys of a few reads.
#[inline]
fn marks_of_keys<'m>(
    facts: &Facts<'_>,
    reads: Range<u32>,
    marks: &'m mut [KeyMarks],
) -> &'m [KeyMarks] {
    let keys = facts.index.read_keys(reads);
    for (mark, &key) in marks.iter_mut().zip(keys) {
        *mark = KeyMarks::of(key);
    }
    &marks[..keys.len()]
}

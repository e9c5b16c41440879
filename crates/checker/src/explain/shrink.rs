//! Leaving out what a violation does not need.

use super::{is_violated, seeds};
use crate::anomaly::Evidence;
use crate::check::Limits;
use crate::level::Level;
use crate::strong::Options;
use crate::verdict::Violated;
use isolde_history::{History, Index, OpId, Part, Selection, TxnId};

/// How far shrinking has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Transactions that are left.
    pub transactions: usize,
    /// Operations that are left.
    pub operations: usize,
    /// Parts that were checked.
    pub checks: usize,
}

/// What may be left out beside operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Nothing: sessions and times stay as they were recorded.
    SessionsAndTimes,
    /// The order of sessions and times that are not needed.
    OnlyWhatIsNeeded,
}

/// The smallest part of a history that violates `level` still, given that it does: no
/// transaction and no operation of it can be left out. Begins with what the violation names,
/// if that is enough, and with everything otherwise.
pub fn shrink(
    (history, index): (&History, &Index),
    level: Level,
    violated: &Violated,
    options: Options,
    limits: &Limits<'_>,
    observe: &dyn Fn(Progress),
) -> Part {
    let selection = start((history, index), level, violated, options, limits);
    let mut shrinker = Shrinker::new((history, index), level, options, limits, selection);
    shrinker.observe = observe;
    shrinker.run(Keep::SessionsAndTimes);
    Part::new(history, index, &shrinker.selection)
}

fn start(
    (history, index): (&History, &Index),
    level: Level,
    violated: &Violated,
    options: Options,
    limits: &Limits<'_>,
) -> Selection {
    let is_enough = |selection: &Selection| {
        let part = Part::new(history, index, selection);
        is_violated(&part.history, level, options, limits)
    };
    for anomaly in &violated.anomalies {
        let named = match &anomaly.evidence {
            Evidence::Operations { ops, .. } => {
                let mut ops = ops.clone();
                ops.sort_unstable();
                ops.dedup();
                seeds::widened(history, index, &Selection { ops, ..Selection::default() })
            }
            _ => seeds::of(history, index, anomaly, violated.proof.as_deref()),
        };
        if is_enough(&named) {
            return named;
        }
        let wider = seeds::widened(history, index, &named);
        if is_enough(&wider) {
            return wider;
        }
    }
    Selection::all(history)
}

/// How much there is to look at: operations, and what those by condition say of rows.
pub(super) fn work_of(history: &History) -> usize {
    if !history.has_predicates() {
        return history.op_count();
    }
    let by_condition = (0..history.op_count() as u32).map(OpId);
    let by_condition = by_condition.filter(|&op| !history.op(op).kind.has_key());
    let rows: usize = by_condition.map(|op| history.predicate(op).rows.len()).sum();
    history.op_count() + rows
}

/// A part that violates a level, becoming smaller.
pub(super) struct Shrinker<'a> {
    whole: (&'a History, &'a Index),
    level: Level,
    options: Options,
    limits: &'a Limits<'a>,
    observe: &'a dyn Fn(Progress),
    pub(super) selection: Selection,
    /// How much may be looked at still; see [`work_of`].
    pub(super) work_left: usize,
    checks: usize,
    /// Whether everything was tried.
    pub(super) is_done: bool,
}

impl<'a> Shrinker<'a> {
    pub(super) fn new(
        whole: (&'a History, &'a Index),
        level: Level,
        options: Options,
        limits: &'a Limits<'a>,
        selection: Selection,
    ) -> Self {
        Shrinker {
            whole,
            level,
            options,
            limits,
            observe: &|_| {},
            selection,
            work_left: usize::MAX,
            checks: 0,
            is_done: false,
        }
    }

    /// Leaves out what can be left out: many transactions at once, then fewer, then single
    /// operations.
    ///
    /// One round is enough where violations only go away as more is left out. Lists that
    /// contradict each other are an exception: some levels take no order from them, and do
    /// once one of them is gone. So it is tried until nothing changes.
    pub(super) fn run(&mut self, keep: Keep) {
        if keep == Keep::OnlyWhatIsNeeded {
            self.loosen_all();
        }
        loop {
            let before = self.selection.clone();
            self.round(keep);
            if self.is_stopped() {
                return;
            }
            if self.selection == before {
                self.is_done = true;
                return;
            }
        }
    }

    fn round(&mut self, keep: Keep) {
        self.halving(|shrinker| {
            let history = shrinker.whole.0;
            let of = |txn| history.ops_of(txn).filter(|&op| shrinker.selection.has(op)).collect();
            shrinker.selection.txns(history).into_iter().map(of).collect()
        });
        if keep == Keep::OnlyWhatIsNeeded {
            for txn in self.selection.txns(self.whole.0) {
                self.loosen(txn);
            }
        }
        self.halving(|shrinker| shrinker.selection.ops.iter().map(|&op| vec![op]).collect());
    }

    fn is_stopped(&self) -> bool {
        self.work_left == 0 || (self.limits.stop)()
    }

    /// Tries to leave out a half of all units, then each quarter, and so on.
    fn halving(&mut self, units: impl Fn(&Self) -> Vec<Vec<OpId>>) {
        let mut together = units(self).len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            let all = units(self);
            // The last are tried first: earlier ones have more that depends on them.
            let all: Vec<Vec<OpId>> = all.into_iter().rev().collect();
            while at < all.len() && !self.is_stopped() {
                let end = (at + together).min(all.len());
                let without: Vec<OpId> = all[at..end].concat();
                self.try_without(&without);
                at = end;
            }
            if together == 1 || self.is_stopped() {
                return;
            }
            together = (together / 2).min(units(self).len().div_ceil(2)).max(1);
        }
    }

    fn try_without(&mut self, ops: &[OpId]) {
        let mut without = ops.to_vec();
        without.sort_unstable();
        let mut smaller = self.selection.clone();
        smaller.ops.retain(|op| without.binary_search(op).is_err());
        if smaller.ops.len() == self.selection.ops.len() {
            return;
        }
        smaller.close(self.whole.0, self.whole.1);
        self.try_this(smaller);
    }

    fn try_this(&mut self, smaller: Selection) {
        self.checks += 1;
        let part = Part::new(self.whole.0, self.whole.1, &smaller);
        self.work_left = self.work_left.saturating_sub(work_of(&part.history) + 1);
        if is_violated(&part.history, self.level, self.options, self.limits) {
            self.selection = smaller;
        }
        (self.observe)(Progress {
            transactions: self.selection.txns(self.whole.0).len(),
            operations: self.selection.ops.len(),
            checks: self.checks,
        });
    }

    /// Tries to do without sessions and times altogether: what needs neither is the plainer
    /// violation.
    fn loosen_all(&mut self) {
        let txns = self.selection.txns(self.whole.0);
        self.try_this(Selection { timeless: txns.clone(), ..self.selection.clone() });
        self.try_this(Selection { apart: txns, ..self.selection.clone() });
    }

    /// Tries to do without a transaction's place in its session, and without its times.
    fn loosen(&mut self, txn: TxnId) {
        if let Err(place) = self.selection.apart.binary_search(&txn) {
            let mut apart = self.selection.clone();
            apart.apart.insert(place, txn);
            self.try_this(apart);
        }
        if let Err(place) = self.selection.timeless.binary_search(&txn)
            && self.whole.0.has_times()
        {
            let mut timeless = self.selection.clone();
            timeless.timeless.insert(place, txn);
            self.try_this(timeless);
        }
    }
}

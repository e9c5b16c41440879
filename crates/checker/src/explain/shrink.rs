//! Leaving out what a violation does not need.

use super::{is_violated, seeds};
use crate::anomaly::Evidence;
use crate::check::Interpretations;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::Options;
use crate::verdict::Violated;
use hashbrown::HashSet;
use isolde_history::{History, Index, KeyId, OpId, Outcome, Part, Selection, TxnId};
use std::time::{Duration, Instant};

/// How far shrinking has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Transactions that are left.
    pub transactions: usize,
    /// Operations that are left.
    pub operations: usize,
    /// Parts that were checked.
    pub checks: usize,
    /// Of these, parts that took too long to decide, so that what they lack was kept.
    pub given_up: usize,
}

/// How long one part may take to decide: a search may need longer for a part than for the
/// whole, where something else showed the violation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    least: Duration,
    /// For each operation, and each row that one by condition says something of.
    each: Duration,
}

impl Patience {
    const USUAL: Patience =
        Patience { least: Duration::from_secs(2), each: Duration::from_micros(50) };

    fn of(self, work: usize) -> Duration {
        self.least + self.each.saturating_mul(u32::try_from(work).unwrap_or(u32::MAX))
    }
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
/// transaction, operation or initial value of it can be left out, unless that took too long to find out,
/// which the last progress tells. Begins with what the violation names,
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
    shrinker.patience = Some(Patience::USUAL);
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

/// How much there is to look at: operations, what those by condition say of rows, and the keys
/// that they may say something of.
pub(super) fn work_of(history: &History) -> usize {
    if !history.has_predicates() {
        return history.op_count();
    }
    let by_condition = (0..history.op_count() as u32).map(OpId);
    let by_condition = by_condition.filter(|&op| !history.op(op).kind.has_key());
    let rows: usize = by_condition.map(|op| history.predicate(op).rows.len()).sum();
    history.op_count() + rows + history.key_count()
}

/// How often it may be looked at: once for each way to understand it, up to what trying all
/// orders of all ways costs.
fn ways_of(history: &History) -> usize {
    const WAYS_MAX: usize = 64;
    if history.txns().all(|txn| history.outcome(txn) != Outcome::Unknown) {
        return 1;
    }
    let index = Index::new(history);
    let interpretations = Interpretations::of(history, &index);
    interpretations.map_or(1, |interpretations| {
        interpretations.count().map_or(WAYS_MAX, |ways| ways.min(WAYS_MAX))
    })
}

/// A part that violates a level, becoming smaller.
pub(super) struct Shrinker<'a> {
    whole: (&'a History, &'a Index),
    level: Level,
    options: Options,
    limits: &'a Limits<'a>,
    observe: &'a dyn Fn(Progress),
    pub(super) selection: Selection,
    /// Operations that stay, whatever else shows the violation.
    pub(super) kept: Vec<OpId>,
    /// How much may be looked at still; see [`work_of`].
    pub(super) work_left: usize,
    /// How long one attempt may take, if that is bounded.
    patience: Option<Patience>,
    checks: usize,
    given_up: usize,
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
            kept: Vec::new(),
            work_left: usize::MAX,
            patience: None,
            checks: 0,
            given_up: 0,
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
        if !self.selection.initial.is_empty() {
            self.try_this(Selection { initial: Vec::new(), ..self.selection.clone() });
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
        let txns = |shrinker: &Self| -> Vec<Vec<OpId>> {
            let history = shrinker.whole.0;
            let of = |txn| history.ops_of(txn).filter(|&op| shrinker.selection.has(op)).collect();
            shrinker.selection.txns(history).into_iter().map(of).collect()
        };
        self.halving(txns, |shrinker, txns| shrinker.try_without(&txns.concat()));
        if keep == Keep::OnlyWhatIsNeeded {
            for txn in self.selection.txns(self.whole.0) {
                self.loosen(txn);
            }
        }
        let ops = |shrinker: &Self| shrinker.selection.ops.clone();
        self.halving(ops, Self::try_without);
        let keys = |shrinker: &Self| shrinker.selection.initial.clone();
        self.halving(keys, Self::try_without_keys);
    }

    fn is_stopped(&self) -> bool {
        self.work_left == 0 || (self.limits.stop)()
    }

    /// Tries to leave out a half of all units, then each quarter, and so on.
    fn halving<Unit>(
        &mut self,
        units: impl Fn(&Self) -> Vec<Unit>,
        try_without: impl Fn(&mut Self, &[Unit]),
    ) {
        let mut together = units(self).len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            let mut all = units(self);
            // The last are tried first: earlier ones have more that depends on them.
            all.reverse();
            while at < all.len() && !self.is_stopped() {
                let end = (at + together).min(all.len());
                try_without(self, &all[at..end]);
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
        if self.kept.iter().all(|&op| smaller.has(op)) {
            self.try_this(smaller);
        }
    }

    fn try_without_keys(&mut self, keys: &[KeyId]) {
        let without: HashSet<KeyId> = keys.iter().copied().collect();
        let mut smaller = self.selection.clone();
        smaller.initial.retain(|key| !without.contains(key));
        self.try_this(smaller);
    }

    fn try_this(&mut self, smaller: Selection) {
        if self.is_stopped() {
            return;
        }
        self.checks += 1;
        let part = Part::new(self.whole.0, self.whole.1, &smaller);
        let work = work_of(&part.history);
        self.work_left = self.work_left.saturating_sub(ways_of(&part.history) * (work + 1));
        let end = self.patience.map(|patience| Instant::now() + patience.of(work));
        let is_late = || end.is_some_and(|end| Instant::now() >= end);
        let limits = Limits { stop: &|| is_late() || (self.limits.stop)(), ..*self.limits };
        if is_violated(&part.history, self.level, self.options, &limits) {
            self.selection = smaller;
        } else if is_late() {
            self.given_up += 1;
        }
        (self.observe)(Progress {
            transactions: self.selection.txns(self.whole.0).len(),
            operations: self.selection.ops.len(),
            checks: self.checks,
            given_up: self.given_up,
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

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    /// What is left of a write skew, and how many attempts were given up.
    fn left(patience: Patience) -> (usize, usize) {
        let history = parse_text(
            "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\nC: r(z,nil) w(u,1)\nD: w(z,1)\nE: w(u,2)\n",
        )
        .expect("a well-formed history");
        let index = Index::new(&history);
        let all = Selection::all(&history);
        let options = Options::default();
        let limits = Limits::NONE;
        let whole = (&history, &index);
        let mut shrinker = Shrinker::new(whole, Level::Serializable, options, &limits, all);
        shrinker.patience = Some(patience);
        shrinker.run(Keep::SessionsAndTimes);
        (shrinker.selection.txns(&history).len(), shrinker.given_up)
    }

    #[test]
    fn what_takes_too_long_to_decide_is_kept() {
        assert_eq!(left(Patience::USUAL), (2, 0));
        let (kept, given_up) = left(Patience { least: Duration::ZERO, each: Duration::ZERO });
        assert_eq!(kept, 5);
        assert!(given_up > 0);
    }
}

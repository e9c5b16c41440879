//! What the verdicts of other levels say about a level.
//!
//! **Definition.** A commit order for a level is one for every weaker level, and an anomaly of a
//! level refutes every stronger one (`IMPLICATIONS`).
//!
//! **Method.** Verdicts that are known cost nothing. Others are asked for where they are decided
//! sooner than the level itself, or where it cannot be decided by itself.

use super::{Question, Strategy};
use crate::check::Check;
use crate::check::lattice::tells;
use crate::level::Level;
use crate::strategy::StrategyName;
use crate::strong;
use crate::unknown::Unknown;
use crate::verdict::{Attempt, Satisfied, Verdict};
use std::cmp::Reverse;
use std::sync::Arc;

/// A weaker level does not hold. A level that can show its own violation does so, if the weaker
/// one cannot.
pub(super) static WEAKER: Strategy = Strategy {
    name: StrategyName::Weaker,
    applies: |_| true,
    attempt: |question| {
        let shows = Check::is_strong(question.level);
        let violated = question.check.violated_weaker(question.level);
        Attempt::from(violated.filter(|it| !shows || tells(it)))
    },
};

/// A stronger level holds.
pub(super) static STRONGER: Strategy = Strategy {
    name: StrategyName::Stronger,
    applies: |_| true,
    attempt: |question| Attempt::from(question.check.satisfied_stronger(question.level)),
};

/// A level that means the same for this history was decided: serializability, if nothing was read
/// by predicate, or strict serializability of transactions that happen at once.
pub(super) static EQUIVALENT: Strategy = Strategy {
    name: StrategyName::Equivalent,
    applies: |question| {
        matches!(question.level, Level::RepeatableRead | Level::StrongSnapshotIsolation)
    },
    attempt: |question| {
        let in_serial_order = || {
            let satisfied = question.check.in_serial_order(question.level);
            satisfied.map(Verdict::Satisfied)
        };
        let same = question.check.same_as_serializable(question.level);
        Attempt::from(same.or_else(in_serial_order))
    },
};

/// From so many transactions on, parallel snapshot isolation is asked for only if
/// snapshot isolation does not hold.
pub(super) const STRONGER_FIRST_TXNS: usize = 512;

/// Snapshot isolation holds. The search of the parallel one is much slower than that of the
/// stronger level, which most histories satisfy.
pub(super) static ASK_SNAPSHOTS: Strategy = Strategy {
    name: StrategyName::AskStronger,
    applies: |question| {
        question.level == Level::ParallelSnapshotIsolation
            && question.check.history.txn_count() >= STRONGER_FIRST_TXNS
            && !question.check.deciding.contains(&Level::SnapshotIsolation)
    },
    attempt: |question| match question.check.decide(Level::SnapshotIsolation) {
        Verdict::Satisfied(_) => Attempt::Proved(Satisfied::Implied(Level::SnapshotIsolation)),
        _ => Attempt::Passed,
    },
};

/// A stronger level holds, of those that a short search decides, where values repeat: most do so
/// with session order and without times, and rules would search as this one does.
pub(super) static ASK_STRONGER: Strategy = Strategy {
    name: StrategyName::AskStronger,
    applies: |question| question.is_about_repeated_values() && question.is_first(),
    attempt: ask_stronger,
};

fn ask_stronger(question: &mut Question<'_, '_>) -> Attempt {
    let check = &mut *question.check;
    let applicable = crate::check::applicable_levels(check.history);
    let mut stronger = question.level.stronger_than();
    stronger.retain(|it| applicable.contains(it) && Check::is_strong(*it));
    stronger
        .sort_by_key(|&it| (!strong::keeps_sessions(it) || strong::needs_times(it), Reverse(it)));
    let known: Vec<Level> = check.verdicts.iter().map(|known| known.0).collect();
    let (work, units) = (Arc::clone(&check.work), check.first_turn());
    let mut holds =
        |it: Level| matches!(work.within(units, || check.decide(it)), Verdict::Satisfied(_));
    let held = stronger.into_iter().find(|&it| holds(it));
    // What was not decided so soon may be with more work.
    let is_limit = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Unknown::Limit(_)));
    check.verdicts.retain(|(level, it)| known.contains(level) || !is_limit(it));
    held.map_or(Attempt::Passed, |held| Attempt::Proved(Satisfied::Implied(held)))
}

/// Levels that can be decided say something about one that cannot: a stronger one that holds, or
/// a weaker one that does not. So a level gets the same verdict whether it is asked for alone
/// or with all others. A level that others wait for is theirs to settle.
pub(super) static RELATED: Strategy = Strategy {
    name: StrategyName::Related,
    applies: |question| {
        question.is_first() && (question.is_obstructed() || question.is_about_repeated_values())
    },
    attempt: |question| {
        if question.is_obstructed() {
            return Attempt::from(question.check.implied(question.level));
        }
        match question.check.held_by(question.level) {
            Some(held) => Attempt::from(held),
            // With more of it a stronger level may hold.
            None if question.check.limits().is_over() => {
                Attempt::OutOfBudget(question.check.limits().reached())
            }
            None => Attempt::Passed,
        }
    },
};

impl Question<'_, '_> {
    /// Whether no other level waits for this one.
    fn is_first(&self) -> bool {
        self.check.deciding.len() == 1
    }

    pub(super) fn is_about_repeated_values(&self) -> bool {
        matches!(self.open, Some(Unknown::RepeatedValues { .. }))
    }
}

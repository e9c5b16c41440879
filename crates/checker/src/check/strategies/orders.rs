//! Orders of begins and commits that explain every read: a table of strategies of their own.
//!
//! **Definition.** A row of `MODELS` says which edge between events each dependency means; a level
//! holds if some version orders leave the graph of events without a cycle.
//!
//! **Method.** `strong` proposes an order, replays it, puts it right, and asks a solver about what
//! it gets wrong; `strong/strategies` is the table. Some histories take a way before or around it.

use super::{Question, Strategy};
use crate::level::Level;
use crate::limits::Limits;
use crate::strategy::StrategyName;
use crate::strong::{self, Refused};
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Satisfied, Violated};
use std::sync::Arc;

/// A serial order along the clients' times; linear where clocks are right, and its search for all
/// levels of one event is one.
pub(super) static REPLAY: Strategy = Strategy {
    name: StrategyName::Replay,
    applies: |question| strong::is_of_one_event(question.level) && question.has_times_it_needs(),
    attempt: |question| {
        let check = &mut *question.check;
        let work = Arc::clone(&check.work);
        let limits = Limits { work: Some(&work), ..*check.within };
        let order = check.shared.replayed((check.history, check.index), check.options, &limits);
        order.map_or(Attempt::Passed, |order| Attempt::Proved(Satisfied::Order(order)))
    },
};

/// An order without refused compare-and-sets that do not tell what they found. To try what they
/// found costs the square of the history and is seldom needed.
pub(super) static REFUSED: Strategy = Strategy {
    name: StrategyName::Refused,
    applies: |question| {
        question.has_times_it_needs()
            && strong::has_refused(question.check.history, question.check.index)
    },
    attempt: |question| {
        let (history, index) = (question.check.history, question.check.index);
        match events(question, Refused::LeftOut) {
            Attempt::Proved(order) if strong::refused_fit(history, index, &order) => {
                Attempt::Proved(order)
            }
            Attempt::Refuted(violated) => question.whoever_counts(violated),
            _ => Attempt::Passed,
        }
    },
};

/// The orders of events, with all that is known.
pub(super) static EVENTS: Strategy = Strategy {
    name: StrategyName::Orders,
    applies: |_| true,
    attempt: |question| {
        if !question.has_times_it_needs() {
            return Attempt::Open(Unknown::Unsupported(Obstacle::NoTimes));
        }
        match events(question, Refused::Tried) {
            Attempt::Refuted(violated) => question.whoever_counts(violated),
            other => other,
        }
    },
};

/// What follows for parallel snapshot isolation without a search, and soon.
pub(super) static FORCED: Strategy = Strategy {
    name: StrategyName::ForcedOrders,
    applies: |question| {
        question.level == Level::ParallelSnapshotIsolation
            && question.check.history.txn_count() >= super::implied::STRONGER_FIRST_TXNS
    },
    attempt: |question| {
        let check = &*question.check;
        let facts = (check.history, check.index);
        match strong::parallel_refuted(facts, check.options, &check.limits()) {
            Some(violated) => question.whoever_counts(violated),
            None => Attempt::Passed,
        }
    },
};

/// The orders of commits of [`COMMIT_LEVELS`](crate::strong::COMMIT_LEVELS).
pub(super) static COMMITS: Strategy = Strategy {
    name: StrategyName::Commits,
    applies: |_| true,
    attempt: |question| {
        let check = &*question.check;
        let facts = (check.history, check.index);
        let limits = check.limits();
        let found = strong::decide_commits(question.level, facts, check.options, &limits);
        question.decided_by = found.by;
        match Attempt::from(found.verdict) {
            Attempt::Refuted(violated) => question.whoever_counts(violated),
            other => other,
        }
    },
};

fn events(question: &mut Question<'_, '_>, refused: Refused) -> Attempt {
    let (level, is_nowhere) = (question.level, question.is_nowhere);
    let check = &mut *question.check;
    let work = Arc::clone(&check.work);
    let limits = Limits { work: Some(&work), ..*check.within };
    let facts = (check.history, check.index);
    let asked = strong::Asked { level, refused, is_brief: is_nowhere };
    let (attempt, by) = strong::decide(asked, facts, &mut check.shared, check.options, &limits);
    question.decided_by = by;
    attempt
}

impl Question<'_, '_> {
    /// Whether there are times, if the level is about them.
    pub(super) fn has_times_it_needs(&self) -> bool {
        !strong::needs_times(self.level) || self.check.history.has_times()
    }

    /// What a violation means that was found without transactions of unknown outcome which may
    /// have written what was read by predicate.
    pub(super) fn whoever_counts(&mut self, violated: Violated) -> Attempt {
        Attempt::from(self.check.whoever_counts(self.level, violated))
    }
}

//! Where values repeat: one order of all transactions, session by session.
//!
//! **Definition.** One order of all sessions that explains every read shows session
//! serializability, with real time strict serializability, and all weaker levels.
//!
//! **Method.** `strong/orders/interleaving.rs`: what the sessions have left is taken one by one. That is
//! soon found or not at all, while a level by itself would try who wrote what every read saw.

use super::{Question, Strategy};
use crate::level::Level;
use crate::limits::Limits;
use crate::strategy::StrategyName;
use crate::strong::{self, Interleaved};
use crate::verdict::{Attempt, Satisfied, Verdict, Violated};
use std::sync::Arc;

const STRONGER: Level = Level::SessionSerializable;
/// Of more possible origins it is not looked for why a level does not hold, once that is known.
const EXPLAINED_ORIGINS_MAX: usize = 1 << 16;

/// A level that such an order shows because it shows a stronger one.
pub(super) static IMPLIED: Strategy = Strategy {
    name: StrategyName::Interleaving,
    applies: |question| {
        question.level.stronger_than().contains(&STRONGER)
            && !question.check.deciding.contains(&STRONGER)
            && question.check.values_repeat()
    },
    attempt: |question| {
        let is_shown = matches!(find(question, STRONGER), Some(Interleaved::Order(_)))
            && matches!(question.check.decide(STRONGER), Verdict::Satisfied(_));
        if is_shown { Attempt::Proved(Satisfied::Implied(STRONGER)) } else { Attempt::Passed }
    },
};

/// A level of one event for each transaction.
pub(super) static INTERLEAVING: Strategy = Strategy {
    name: StrategyName::Interleaving,
    applies: |question| strong::is_of_one_event(question.level) && question.has_times_it_needs(),
    attempt: |question| match find(question, question.level) {
        Some(Interleaved::Order(order)) => Attempt::Proved(Satisfied::Order(order)),
        Some(Interleaved::Nowhere) => {
            question.is_nowhere = true;
            let several = question.check.index.several().iter();
            let origins: usize = several.map(|several| several.candidates.len()).sum();
            if origins > EXPLAINED_ORIGINS_MAX { refuted(question) } else { Attempt::Passed }
        }
        Some(Interleaved::Open) | None => Attempt::Passed,
    },
};

/// There is no such order, and a short search did not say why.
pub(super) static NOWHERE: Strategy = Strategy {
    name: StrategyName::Interleaving,
    applies: |question| question.is_nowhere,
    attempt: refuted,
};

fn refuted(question: &mut Question<'_, '_>) -> Attempt {
    question.decided_by = None;
    question.whoever_counts(Violated::by(Vec::new()))
}

fn find(question: &mut Question<'_, '_>, level: Level) -> Option<Interleaved> {
    let check = &mut *question.check;
    let work = Arc::clone(&check.work);
    let limits = Limits { work: Some(&work), ..*check.within };
    check.shared.interleaved(level, (check.history, check.index), check.options, &limits)
}

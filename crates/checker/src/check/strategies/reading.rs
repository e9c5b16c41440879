//! Operations alone refute a level.
//!
//! **Definition.** Some reads are wrong whatever the order: of a value that nobody wrote, of what
//! an aborted transaction wrote, of a version that its writer replaced. Each rules out some levels
//! (`AnomalyKind::rules_out`).
//!
//! **Method.** All of them were found while the history was read; linear.

use super::{Question, Strategy};
use crate::strategy::StrategyName;
use crate::verdict::{Attempt, Violated};

pub(super) static READING: Strategy = Strategy {
    name: StrategyName::Reading,
    applies: |question| {
        let mut found = question.check.found().iter();
        found.any(|anomaly| anomaly.kind.rules_out(question.level))
    },
    attempt: refute,
};

fn refute(question: &mut Question<'_, '_>) -> Attempt {
    let found = question.check.found().iter();
    let refuting = found.filter(|anomaly| anomaly.kind.rules_out(question.level));
    Attempt::Refuted(Violated::by(refuting.cloned().collect()))
}

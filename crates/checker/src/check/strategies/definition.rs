//! What a history leaves open, taken in every way, and the definition, tried in all orders.
//!
//! **Definition.** A level holds if it holds in one of the ways to understand the history
//! (`interpretations.rs`), and by its definition (`reference`).
//!
//! **Method.** Each way is decided by itself as a history of its own, up to a fixed number of
//! ways. All orders of choices and versions are tried where they are few, which is so of small
//! histories alone.

use super::{Question, Strategy};
use crate::check::Check;
use crate::level::Level;
use crate::reference::{self, Reference};
use crate::strategy::StrategyName;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Satisfied, Verdict, Violated};
use crate::weak::{self, Decision, Facts, RULES, Rule};
use isolde_history::Candidates;

/// Every way to understand which transactions and appends there are.
pub(super) static INTERPRETATIONS: Strategy = Strategy {
    name: StrategyName::Interpretations,
    applies: |question| question.is_obstructed(),
    attempt: |question| Attempt::from(question.check.in_every_way(question.level)),
};

/// The definition.
pub(super) static DEFINITION: Strategy = Strategy {
    name: StrategyName::Definition,
    applies: |question| question.open.is_none() || question.is_obstructed(),
    attempt: define,
};

fn define(question: &mut Question<'_, '_>) -> Attempt {
    let (check, level) = (&mut *question.check, question.level);
    if check.is_without_lists() {
        return Attempt::Open(Unknown::Unsupported(Obstacle::WithoutLists));
    }
    // A rule would have been followed at the weaker levels.
    let is_weak = RULES.iter().any(|rule| rule.level == level);
    if !is_weak && let Some(violated) = weaker_violated(check, level) {
        return Attempt::from(violated);
    }
    let ordered = check.ordered();
    match reference::decide_with_drift(ordered, level, check.options.clock_drift) {
        Reference::Satisfied => Attempt::Proved(Satisfied::Definition),
        Reference::Violated => Attempt::Refuted(Violated::by(Vec::new())),
        Reference::Unknown(obstacle) => {
            if !is_weak {
                // A weaker level may need less: no times, for one.
                let rules = |level: &Level| RULES.iter().any(|rule| rule.level == *level);
                for weaker in level.weaker_than().into_iter().filter(|level| !rules(level)) {
                    let _ = check.decide(weaker);
                }
                if let Some(violated) = check.violated_weaker(level) {
                    return Attempt::from(violated);
                }
            }
            Attempt::Open(Unknown::Unsupported(obstacle))
        }
    }
}

/// A weaker level with a rule that does not hold.
fn weaker_violated(check: &mut Check<'_>, level: Level) -> Option<Verdict> {
    let weaker = level.weaker_than();
    // Reads of repeated values stay open here: trying their writers for every
    // weaker level would cost much and seldom settle this one.
    let is_violated = {
        let limits = check.limits();
        let facts = Facts::new(check.ordered(), check.index, &limits);
        let violated = |rule: &Rule| {
            weaker.contains(&rule.level)
                && rule.candidates == Candidates::Final
                && matches!(weak::decide(rule, &facts), Decision::Violated(_))
        };
        // The strongest rule is violated if any is.
        RULES.iter().rev().any(violated)
    };
    if !is_violated {
        return None;
    }
    for rule in RULES.iter().filter(|rule| weaker.contains(&rule.level)) {
        let _ = check.decide(rule.level);
    }
    check.violated_weaker(level)
}

//! The orders of commits that a weak level forces.
//!
//! **Definition.** A row of [`RULES`] says which transactions must commit before which because of
//! what was read [Biswas19]. A level holds if some order of commits keeps all of that; where
//! values repeat, for some choice of who wrote what each read saw.
//!
//! **Method.** The forced orders are collected and sorted: a cycle refutes the level, an order
//! shows it; linear or nearly so. Reads of repeated values are left out at first, which only makes
//! the level easier to satisfy. Then `choices` tries their writers, which may take exponential
//! time and is given up after a fixed amount of work.

use super::{Question, Strategy};
use crate::check::Check;
use crate::choices::{self, Effort};
use crate::level::Level;
use crate::strategy::StrategyName;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Satisfied, Violated};
use crate::weak::{self, Decision, Facts, RULES, Rule};
use isolde_history::{Candidates, Index};

/// The rule, without reads of repeated values.
pub(super) static RULE: Strategy =
    Strategy { name: StrategyName::Rule, applies: |_| true, attempt: follow };

/// Choices near a guess, no longer than asking another level takes.
pub(super) static FIRST_CHOICES: Strategy = Strategy {
    name: StrategyName::Choices,
    applies: |question| question.is_about_repeated_values(),
    attempt: |question| choose(question, Effort::Little),
};

/// All choices, as long as it may take.
pub(super) static CHOICES: Strategy = Strategy {
    name: StrategyName::Choices,
    applies: |question| question.is_about_repeated_values(),
    attempt: |question| choose(question, Effort::Most),
};

fn follow(question: &mut Question<'_, '_>) -> Attempt {
    if question.check.is_without_lists() {
        return Attempt::Open(Unknown::Unsupported(Obstacle::WithoutLists));
    }
    with_facts(question.check, question.level, |rule, facts| match weak::decide(rule, facts) {
        Decision::Violated(anomaly) => Attempt::Refuted(Violated::by(vec![anomaly])),
        Decision::Limit(limit) => Attempt::OutOfBudget(limit),
        // Orders that depend on which append it was are not known, so finding no cycle means
        // nothing.
        Decision::Satisfied(_) if facts.index.has_repeated_elements() => {
            Attempt::Open(Unknown::Unsupported(Obstacle::RepeatedElement))
        }
        Decision::Satisfied(_) if !facts.index.several().is_empty() => {
            let reads = facts.index.several().len();
            Attempt::Open(Unknown::RepeatedValues { reads })
        }
        Decision::Satisfied(order) => Attempt::Proved(Satisfied::Order(order)),
    })
}

fn choose(question: &mut Question<'_, '_>, effort: Effort) -> Attempt {
    with_facts(question.check, question.level, |rule, facts| {
        Attempt::from(choices::decide(rule, facts, effort))
    })
}

/// Does something with the rule of a level and the history as that rule joins reads to writers.
fn with_facts<T>(check: &Check<'_>, level: Level, act: impl FnOnce(&Rule, &Facts<'_>) -> T) -> T {
    let rule = RULES.iter().find(|rule| rule.level == level).expect("a level of this family");
    let any;
    let index = if rule.candidates == Candidates::Any && check.index.has_lesser_candidates() {
        any = Index::choosing(check.history, Candidates::Any, &[]);
        &any
    } else {
        check.index
    };
    let limits = check.limits();
    act(rule, &Facts::new(check.ordered(), index, &limits))
}

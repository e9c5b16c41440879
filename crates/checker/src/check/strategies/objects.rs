//! Single operations, object by object.
//!
//! **Definition.** If every transaction is one operation, linearizability asks of each object by
//! itself for an order that keeps real time [Herlihy90]; strict serializability and, where no
//! times tell begins and commits apart, strong snapshot isolation ask the same.
//!
//! **Method.** `linearizable`: O(n log n) where contents tell their writers, else a search that is
//! exponential in the operations that are open at once.

use super::{Question, Strategy};
use crate::level::Level;
use crate::linearizable;
use crate::strategy::StrategyName;
use crate::unknown::Unknown;
use crate::verdict::Attempt;

/// Levels of transactions that ask the same, where the search for an order of transactions came
/// to no end: many operations of unknown outcome that wrote repeated values.
pub(super) static OBJECTS: Strategy = Strategy {
    name: StrategyName::Objects,
    applies: |question| question.open.is_some(),
    attempt: |question| Attempt::from(question.check.as_objects(question.level)),
};

/// Linearizability itself.
pub(super) static LINEARIZABLE: Strategy = Strategy {
    name: StrategyName::Objects,
    applies: |_| true,
    attempt: |question| match question.check.linearizable() {
        Some(verdict) => Attempt::from(verdict),
        None => obstacle(question),
    },
};

fn obstacle(question: &Question<'_, '_>) -> Attempt {
    match linearizable::obstacle(question.check.history) {
        Some(obstacle) if question.check.calls().is_none() => {
            Attempt::Open(Unknown::Unsupported(obstacle))
        }
        _ => Attempt::Passed,
    }
}

/// Lists, or objects whose versions the database put in order: linearizability asks of them what
/// strict serializability does.
pub(super) static STRICT: Strategy = Strategy {
    name: StrategyName::Strict,
    applies: |question| {
        question.open.is_none() && linearizable::obstacle(question.check.history).is_none()
    },
    attempt: |question| Attempt::from(question.check.decide(Level::StrictSerializable)),
};

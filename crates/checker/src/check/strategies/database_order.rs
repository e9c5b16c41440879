//! The serialization order that the database told.
//!
//! **Definition.** An order of all transactions in which every read saw the last write shows
//! serializability, and the levels that it implies [Enne].
//!
//! **Method.** It is replayed, once for all levels; linear. An order that does not explain the
//! reads refutes what the database told about itself, and no level.

use super::Strategy;
use crate::check::Check;
use crate::database_claims;
use crate::level::Level;
use crate::strategy::StrategyName;
use crate::verdict::{Attempt, Satisfied, Verdict};

pub(super) static DATABASE_ORDER: Strategy = Strategy {
    name: StrategyName::DatabaseOrder,
    applies: |question| question.check.history.orders().total.is_some(),
    attempt: |question| {
        let satisfied = shown(question.check, question.level);
        satisfied.map_or(Attempt::Passed, Attempt::Proved)
    },
};

fn shown(check: &mut Check<'_>, level: Level) -> Option<Satisfied> {
    let serial = check.serial.get_or_init(|| database_claims::shown(check.history, check.index));
    if level == Level::Serializable {
        return serial.clone().map(Satisfied::Order);
    }
    let is_implied = level.stronger_than().contains(&Level::Serializable)
        && !check.deciding.contains(&Level::Serializable);
    let holds = is_implied && serial.is_some();
    (holds && matches!(check.decide(Level::Serializable), Verdict::Satisfied(_)))
        .then_some(Satisfied::Implied(Level::Serializable))
}

//! How an order of begins and commits is found or refuted: a table of strategies.
//!
//! They are tried from the first to the last, and the first that proves or refutes the level ends
//! it. A level without session order is tried with it first: sessions are the best guess, and the
//! graph is much harder without them. What rests on them refutes nothing then: the edges of
//! session order that it needs are given up, and the table is begun anew.

pub(super) mod commits;
mod contradictions;
mod known_order;
mod saturation;
mod search;
mod times;

use super::decision::Decision;
use crate::strategy::StrategyName;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Verdict};

/// A way to find or refute an order.
struct Strategy {
    /// What `check -v` prints and `--without` takes.
    name: StrategyName,
    /// Whether it can have an answer; cheap to find out.
    applies: fn(&Decision<'_>) -> bool,
    attempt: fn(&mut Decision<'_>) -> Result<Attempt, GivenUp>,
}

/// Edges of session order were given up.
pub(super) struct GivenUp;

/// The strategies, as they are tried.
static EVENTS: &[Strategy] = &[
    contradictions::CONTRADICTIONS,
    times::TIMES,
    known_order::KNOWN_ORDER,
    search::SEARCH,
    saturation::SATURATION,
];

/// Decides a level by the first strategy that has an answer, and says which that was.
pub(super) fn decide(decision: &mut Decision<'_>) -> (Verdict, Option<StrategyName>) {
    // The others take it for granted that there are none.
    if decision.is_off(StrategyName::Contradictions)
        && (contradictions::CONTRADICTIONS.applies)(decision)
    {
        return (Verdict::Unknown(Unknown::Unsupported(Obstacle::SwitchedOff)), None);
    }
    loop {
        if let Some(limit) = decision.begin() {
            return (Verdict::Unknown(Unknown::Limit(limit)), None);
        }
        if let Ok(answer) = round(decision) {
            return answer;
        }
    }
}

fn round(decision: &mut Decision<'_>) -> Result<(Verdict, Option<StrategyName>), GivenUp> {
    let mut open = Unknown::Unsupported(Obstacle::SwitchedOff);
    for strategy in EVENTS {
        if decision.is_off(strategy.name) || !(strategy.applies)(decision) {
            continue;
        }
        match (strategy.attempt)(decision)? {
            Attempt::Proved(satisfied) => {
                return Ok((Verdict::Satisfied(satisfied), Some(strategy.name)));
            }
            Attempt::Refuted(violated) => {
                return Ok((Verdict::Violated(violated), Some(strategy.name)));
            }
            Attempt::Passed => {}
            Attempt::OutOfBudget(limit) => open = Unknown::Limit(limit),
            Attempt::Open(reason) => return Ok((Verdict::Unknown(reason), None)),
        }
    }
    Ok((Verdict::Unknown(open), None))
}

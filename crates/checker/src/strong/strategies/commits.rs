//! How an order of commits is found or refuted, at the two levels whose orders take a search.
//!
//! **Definition.** `update_atomic.rs` and `parallel.rs` say what such an order must keep.
//!
//! **Method.** A table again. What follows from the known orders is added to the graph until
//! nothing more does; then the solver is asked about what an order gets wrong, from a guess or,
//! in large histories, from an order of a stronger level, of which most is right. Exponential in
//! the worst case.

use super::super::commits::{CommitLevel, Commits, Depth};
use crate::strategy::StrategyName;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Verdict};

/// A way to find or refute an order of commits.
struct Strategy {
    name: StrategyName,
    applies: fn(&Commits<'_>) -> bool,
    attempt: fn(&mut Commits<'_>) -> Attempt,
}

/// The strategies, as they are tried.
fn table<L: CommitLevel>() -> [Strategy; 5] {
    [
        // What single transactions contradict.
        Strategy {
            name: StrategyName::Contradictions,
            applies: |_| true,
            attempt: |commits| Attempt::from(L::begin(commits)),
        },
        // What the known orders contradict, and else an order that agrees with them.
        Strategy {
            name: StrategyName::KnownOrder,
            applies: |_| true,
            attempt: |commits| commits.settle::<L>(),
        },
        // Orders of versions that cycles force; of large histories they are asked for first.
        Strategy {
            name: StrategyName::ForcedOrders,
            applies: |commits| commits.depth == Depth::Forced || commits.is_small(),
            attempt: |commits| commits.force_orders::<L>(),
        },
        // A better order to begin with.
        Strategy {
            name: StrategyName::StrongerOrder,
            applies: |commits| {
                L::ASKS_STRONGER && commits.depth == Depth::Search && !commits.is_small()
            },
            attempt: |commits| commits.improve::<L>(),
        },
        // The solver, asked about what the order gets wrong.
        Strategy {
            name: StrategyName::Commits,
            applies: |commits| commits.depth == Depth::Search,
            attempt: |commits| commits.search::<L>(),
        },
    ]
}

/// Decides a level by the first strategy that has an answer, and says which that was.
pub(in crate::strong) fn decide<L: CommitLevel>(
    commits: &mut Commits<'_>,
) -> (Verdict, Option<StrategyName>) {
    for strategy in table::<L>() {
        let is_off = commits.is_off(strategy.name);
        // The first two prepare what the others take for granted.
        let prepares =
            matches!(strategy.name, StrategyName::Contradictions | StrategyName::KnownOrder);
        if (is_off && !prepares) || !(strategy.applies)(commits) {
            continue;
        }
        match (strategy.attempt)(commits) {
            Attempt::Passed => {}
            Attempt::Proved(_) | Attempt::Refuted(_) if is_off => {
                return (Verdict::Unknown(Unknown::Unsupported(Obstacle::SwitchedOff)), None);
            }
            Attempt::Proved(satisfied) => {
                return (Verdict::Satisfied(satisfied), Some(strategy.name));
            }
            Attempt::Refuted(violated) => {
                return (Verdict::Violated(violated), Some(strategy.name));
            }
            Attempt::OutOfBudget(limit) => return (Verdict::Unknown(Unknown::Limit(limit)), None),
            Attempt::Open(reason) => return (Verdict::Unknown(reason), None),
        }
    }
    let obstacle = match commits.depth {
        Depth::Forced => Obstacle::NotSearched,
        Depth::Search => Obstacle::SwitchedOff,
    };
    (Verdict::Unknown(Unknown::Unsupported(obstacle)), None)
}

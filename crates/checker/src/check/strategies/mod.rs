//! How a level is decided: one ordered table of strategies for each family of levels.
//!
//! The strategies of a table are tried from the first to the last, and the first that proves or
//! refutes the level ends it. One that has no answer may leave its reason. The reason that is
//! told in the end is that of a limit if there was one, as more of it may help, else the first.
//!
//! | file | strategies |
//! |---|---|
//! | `reading.rs` | `reading` |
//! | `implied.rs` | `weaker`, `stronger`, `equivalent`, `ask-stronger`, `related` |
//! | `interleaving.rs` | `interleaving` |
//! | `database_order.rs` | `database-order` |
//! | `orders.rs` | `replay`, `refused`, and the orders of events and commits, which have tables of their own in `strong` |
//! | `rule.rs` | `rule`, `choices` |
//! | `objects.rs` | `objects`, `strict` |
//! | `definition.rs` | `interpretations`, `definition` |

mod database_order;
mod definition;
mod implied;
mod interleaving;
mod objects;
mod orders;
mod reading;
mod rule;

use crate::check::Check;
use crate::level::Level;
use crate::limits::Stage;
use crate::strategy::StrategyName;
use crate::strong::COMMIT_LEVELS;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Attempt, Verdict};
use crate::weak::RULES;

/// A way to decide levels.
pub(super) struct Strategy {
    /// What `check -v` prints and `--without` takes.
    name: StrategyName,
    /// Whether it can have an answer; cheap to find out.
    applies: fn(&Question<'_, '_>) -> bool,
    attempt: fn(&mut Question<'_, '_>) -> Attempt,
}

/// A level of a history that is to be decided.
pub(super) struct Question<'q, 'a> {
    check: &'q mut Check<'a>,
    level: Level,
    /// Why it is open so far.
    open: Option<Unknown>,
    /// Whether it is known that no order of all sessions explains the reads.
    is_nowhere: bool,
    /// Which strategy of a table within a table had the answer.
    decided_by: Option<StrategyName>,
}

/// Levels of one order of commits: a row of [`RULES`] each.
static WEAK: &[&Strategy] = &[
    &reading::READING,
    &implied::WEAKER,
    &implied::STRONGER,
    &interleaving::IMPLIED,
    &rule::RULE,
    &rule::FIRST_CHOICES,
    &implied::ASK_STRONGER,
    &rule::CHOICES,
    &definition::INTERPRETATIONS,
    &definition::DEFINITION,
    &implied::RELATED,
];

/// Levels of orders of begins and commits: a row of `MODELS` each.
static STRONG: &[&Strategy] = &[
    &reading::READING,
    &implied::WEAKER,
    &implied::STRONGER,
    &implied::EQUIVALENT,
    &interleaving::IMPLIED,
    &database_order::DATABASE_ORDER,
    &orders::REPLAY,
    &interleaving::INTERLEAVING,
    &orders::REFUSED,
    &orders::EVENTS,
    &interleaving::NOWHERE,
    &objects::OBJECTS,
    &definition::INTERPRETATIONS,
    &definition::DEFINITION,
    &implied::RELATED,
];

/// Levels whose orders of commits take a search of their own: [`COMMIT_LEVELS`].
static COMMITS: &[&Strategy] = &[
    &reading::READING,
    &implied::WEAKER,
    &implied::STRONGER,
    &interleaving::IMPLIED,
    &database_order::DATABASE_ORDER,
    &orders::FORCED,
    &implied::ASK_SNAPSHOTS,
    &orders::COMMITS,
    &definition::INTERPRETATIONS,
    &definition::DEFINITION,
    &implied::RELATED,
];

/// Linearizability.
static LINEARIZABLE: &[&Strategy] = &[
    &reading::READING,
    &implied::WEAKER,
    &implied::STRONGER,
    &objects::LINEARIZABLE,
    &objects::STRICT,
    &definition::DEFINITION,
    &implied::RELATED,
];

/// Stores and locks are objects to linearizability, and nothing to isolation.
static CALLS: &[&Strategy] = &[&objects::LINEARIZABLE];

/// The strategies for a level, as they are tried.
fn table(level: Level, has_calls: bool) -> &'static [&'static Strategy] {
    match level {
        Level::Linearizable if has_calls => CALLS,
        _ if has_calls => &[],
        Level::Linearizable => LINEARIZABLE,
        level if COMMIT_LEVELS.contains(&level) => COMMITS,
        level if RULES.iter().any(|rule| rule.level == level) => WEAK,
        _ => STRONG,
    }
}

/// Decides a level by the first strategy of its table that has an answer.
pub(super) fn decide(check: &mut Check<'_>, level: Level) -> Verdict {
    let calls = check.calls();
    // What holds without a part of the level's meaning may not hold with it.
    let switched_off = check.switched_off(level).map(Unknown::Unsupported);
    let mut is_without = false;
    let mut question = Question { check, level, open: None, is_nowhere: false, decided_by: None };
    // The others take it for granted that no read is wrong by itself.
    if question.is_off(StrategyName::Reading) && (reading::READING.applies)(&question) {
        return Verdict::Unknown(Unknown::Unsupported(Obstacle::SwitchedOff));
    }
    for strategy in table(level, calls.is_some()) {
        let name = strategy.name;
        let is_last = name == StrategyName::Related;
        if question.is_off(name) || (is_without && !is_last) || !(strategy.applies)(&question) {
            continue;
        }
        match (strategy.attempt)(&mut question) {
            Attempt::Proved(_) if switched_off.is_some() && !is_last => {
                is_without = true;
                question.open.clone_from(&switched_off);
            }
            Attempt::Proved(satisfied) => {
                question.told(name);
                return Verdict::Satisfied(satisfied);
            }
            Attempt::Refuted(violated) => {
                question.told(name);
                return Verdict::Violated(violated);
            }
            Attempt::Passed => {}
            Attempt::OutOfBudget(limit) => question.open = Some(Unknown::Limit(limit)),
            Attempt::Open(reason) => {
                question.open.get_or_insert(reason);
            }
        }
    }
    let open = question.open.or(calls);
    Verdict::Unknown(match (open, switched_off) {
        (Some(Unknown::Unsupported(_)), Some(switched_off)) => switched_off,
        (Some(reason), _) => reason,
        (None, _) => Unknown::Unsupported(Obstacle::SwitchedOff),
    })
}

impl Question<'_, '_> {
    fn is_off(&self, name: StrategyName) -> bool {
        self.check.options.without.contains(name)
    }

    /// Says who decided the level.
    fn told(&self, name: StrategyName) {
        let by = self.decided_by.unwrap_or(name);
        (self.check.limits().observe)(Stage::Decided { level: self.level, by });
    }

    /// Whether nothing but more of a resource can help.
    fn is_obstructed(&self) -> bool {
        matches!(self.open, Some(Unknown::Unsupported(_)))
    }
}

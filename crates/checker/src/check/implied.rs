//! What the verdicts of some levels say about another.

use crate::level::Level;
use crate::verdict::{Satisfied, Verdict, Violated};

/// What follows for a level from others that were decided: it holds if a stronger one does, and
/// does not if a weaker one does not.
pub fn implied<'v>(
    level: Level,
    decided: impl Iterator<Item = (Level, &'v Verdict)> + Clone,
) -> Option<Verdict> {
    let satisfied = satisfied_stronger(level, decided.clone());
    satisfied.or_else(|| violated_weaker(level, decided).map(|it| Verdict::Violated(it.1)))
}

/// By the first stronger level that holds.
pub(crate) fn satisfied_stronger<'v>(
    level: Level,
    mut decided: impl Iterator<Item = (Level, &'v Verdict)>,
) -> Option<Verdict> {
    let stronger = level.stronger_than();
    let holds = |(other, verdict): &(Level, &Verdict)| {
        stronger.contains(other) && matches!(verdict, Verdict::Satisfied(_))
    };
    decided.find(holds).map(|(other, _)| Verdict::Satisfied(Satisfied::Implied(other)))
}

/// By the weakest level that does not hold, and which that is. One that shows how is worth more
/// than a weaker one that does not.
pub(crate) fn violated_weaker<'v>(
    level: Level,
    decided: impl Iterator<Item = (Level, &'v Verdict)>,
) -> Option<(Level, Violated)> {
    let weaker = level.weaker_than();
    let violated = decided.filter_map(|(other, verdict)| match verdict {
        Verdict::Violated(violated) if weaker.contains(&other) => Some((other, violated)),
        _ => None,
    });
    let (weakest, violated) = violated.min_by_key(|it| (it.1.anomalies.is_empty(), it.0))?;
    let settled_by = violated.settled_by.or(Some(weakest));
    Some((weakest, Violated { settled_by, ..violated.clone() }))
}

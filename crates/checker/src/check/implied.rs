//! What the verdicts of some levels say about another.

use crate::check::Check;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong;
use crate::verdict::{Satisfied, Verdict, Violated};
use std::sync::Arc;

impl Check<'_> {
    /// A level that one order of all sessions shows. Where values repeat, that is soon found or
    /// not at all, while a level by itself would try who wrote what every read saw.
    pub(crate) fn by_interleaving(&mut self, level: Level) -> Option<Verdict> {
        const STRONGER: Level = Level::SessionSerializable;
        let is_asked = level.stronger_than().contains(&STRONGER)
            && !self.deciding.contains(&STRONGER)
            && self.values_repeat();
        let facts = (self.history, self.index);
        let work = Arc::clone(&self.work);
        let limits = Limits { work: Some(&work), ..*self.within };
        let is_shown = is_asked
            && strong::is_interleaved(facts, &mut self.shared, self.options, &limits)
            && matches!(self.decide(STRONGER), Verdict::Satisfied(_));
        is_shown.then_some(Verdict::Satisfied(Satisfied::Implied(STRONGER)))
    }
}

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

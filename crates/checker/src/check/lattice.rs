//! Deciding several levels of one history with shared work.
//!
//! The lattice saves most of it: a commit order for a level is one for every weaker
//! level, and an anomaly of a level refutes every stronger one. So levels are tried
//! from strong to weak until one holds, and each violated level is shown by the
//! anomaly of the weakest level that has it.

use crate::anomaly::{Anomaly, found_by_reading};
use crate::check::implied;
use crate::check::interpretations::Interpretations;
use crate::check::strategies;
use crate::level::Level;
use crate::limits::{Limits, Stage, Work};
use crate::linearizable;
use crate::strong::{self, Options};
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Satisfied, Verdict};
use crate::weak::RULES;
use isolde_history::{History, Index, OpId, OpKind, TxnId};
use std::sync::{Arc, OnceLock};

/// One history being checked.
pub struct Check<'a> {
    pub(crate) history: &'a History,
    pub(crate) index: &'a Index,
    pub(super) within: &'a Limits<'a>,
    pub(crate) work: Arc<Work<'a>>,
    /// Anomalies that reading alone shows.
    found: Vec<Anomaly>,
    pub(crate) options: Options,
    pub(crate) shared: strong::Shared<'a>,
    pub(crate) verdicts: Vec<(Level, Verdict)>,
    /// Levels that wait for the verdict of another.
    pub(crate) deciding: Vec<Level>,
    /// Whether the history is one of several ways to understand another.
    pub(crate) is_one_way: bool,
    /// The history without session order and times that were switched off; made when it is
    /// asked for.
    reduced: OnceLock<History>,
    /// The given serialization order, if it shows serializability; found when it is asked for.
    pub(super) serial: OnceLock<Option<Vec<TxnId>>>,
}

/// Levels that are decided for histories of any size.
pub fn decided_levels() -> Vec<Level> {
    let mut levels: Vec<Level> =
        RULES.iter().map(|rule| rule.level).chain(strong::levels()).collect();
    levels.sort_unstable();
    levels
}

/// Levels that this history can tell something about: those of real time need times,
/// and linearizability is about single operations.
pub fn applicable_levels(history: &History) -> Vec<Level> {
    let mut levels = decided_levels();
    levels.retain(|&level| history.has_times() || !strong::needs_times(level));
    if linearizable::applies(history) {
        levels.push(Level::Linearizable);
    }
    levels
}

/// Decides `levels`; the verdicts are in the order of [`Level`]. With a time limit,
/// [`Check::decide_in_turns`] leaves less open.
pub fn check(
    history: &History,
    index: &Index,
    levels: &[Level],
    limits: &Limits<'_>,
) -> Vec<(Level, Verdict)> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels.dedup();
    Check::new(history, index, limits).decide_all(&levels)
}

impl<'a> Check<'a> {
    /// Starts with what reading alone shows.
    pub fn new(history: &'a History, index: &'a Index, limits: &'a Limits<'a>) -> Self {
        let found = found_by_reading(history, index);
        let options = Options::default();
        let shared = strong::Shared::default();
        Check {
            history,
            index,
            within: limits,
            work: Arc::new(Work::new(limits.work)),
            found,
            options,
            shared,
            verdicts: Vec::new(),
            deciding: Vec::new(),
            is_one_way: false,
            reduced: OnceLock::new(),
            serial: OnceLock::new(),
        }
    }

    /// The same for a history that was already taken in one of several ways.
    pub(crate) fn in_one_way(&mut self) -> &mut Self {
        self.is_one_way = true;
        self
    }

    /// Decides a level in every way that the history can be understood, if there are
    /// several.
    pub(crate) fn in_every_way(&self, level: Level) -> Option<Verdict> {
        if self.is_one_way {
            return None;
        }
        let is_refuted = || self.is_without_orders(level);
        let interpretations = Interpretations::of(self.history, self.index)?;
        interpretations.decide(level, self.options, &self.limits(), is_refuted)
    }

    /// The same with other options than the usual ones.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The limits of who asks, and this check's own count of work.
    pub(crate) fn limits(&self) -> Limits<'_> {
        Limits { work: Some(&self.work), ..*self.within }
    }

    /// Anomalies that reading alone shows, whatever level is asked for.
    pub fn found(&self) -> &[Anomaly] {
        &self.found
    }

    /// Decides levels that are in the order of [`Level`].
    pub fn decide_all(&mut self, levels: &[Level]) -> Vec<(Level, Verdict)> {
        // Stronger levels have the larger ids, as far as they can be compared.
        for &level in levels.iter().rev() {
            let _ = self.decide(level);
        }
        levels.iter().map(|&level| (level, self.decide(level))).collect()
    }

    /// Decides one level, using what was decided before.
    pub fn decide(&mut self, level: Level) -> Verdict {
        if let Some((_, verdict)) = self.verdicts.iter().find(|known| known.0 == level) {
            return self.settled(level, verdict.clone());
        }
        self.deciding.push(level);
        (self.limits().observe)(Stage::Decide(level));
        let verdict = strategies::decide(self, level);
        self.deciding.pop();
        if let Some(&waiting) = self.deciding.last() {
            (self.limits().observe)(Stage::Decide(waiting));
        }
        self.verdicts.push((level, verdict.clone()));
        verdict
    }

    /// What a level means and was switched off.
    pub(super) fn switched_off(&self, level: Level) -> Option<Obstacle> {
        let sources = self.options.sources;
        if !sources.session && level.has_session_order() {
            Some(Obstacle::WithoutSessions)
        } else {
            let is_timed = level.has_real_time() && self.history.has_times();
            (!sources.real_time && is_timed).then_some(Obstacle::WithoutTimes)
        }
    }

    /// The history for those who read session order and times from it.
    pub(crate) fn ordered(&self) -> &History {
        let sources = self.options.sources;
        if sources.session && sources.real_time {
            return self.history;
        }
        self.reduced.get_or_init(|| {
            let history = self.history.taken_as(&[], &[]);
            let history = if sources.session { history } else { history.without_sessions() };
            if sources.real_time { history } else { history.without_times() }
        })
    }

    /// What levels that can be decided say about one that cannot: a stronger one that holds, or
    /// a weaker one that does not. So a level gets the same verdict whether it is asked for alone
    /// or with all others.
    pub(super) fn implied(&mut self, level: Level) -> Option<Verdict> {
        if let Some(held) = self.held_by(level) {
            return Some(held);
        }
        let applicable = applicable_levels(self.history);
        for weaker in level.weaker_than().into_iter().filter(|it| applicable.contains(it)) {
            if matches!(self.decide(weaker), Verdict::Violated(_)) {
                return self.violated_weaker(level);
            }
        }
        None
    }

    /// The first stronger level that holds.
    pub(super) fn held_by(&mut self, level: Level) -> Option<Verdict> {
        let applicable = applicable_levels(self.history);
        let stronger = level.stronger_than().into_iter().filter(|it| applicable.contains(it));
        for stronger in stronger {
            if matches!(self.decide(stronger), Verdict::Satisfied(_)) {
                return Some(Verdict::Satisfied(Satisfied::Implied(stronger)));
            }
        }
        None
    }

    /// A violation is shown by the weakest level that has it.
    fn settled(&self, level: Level, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Violated(violated) if violated.settled_by.is_none() => {
                let weaker = self.violated_weaker(level);
                weaker.filter(tells).unwrap_or(Verdict::Violated(violated))
            }
            // Others may have been decided since.
            Verdict::Unknown(
                reason @ (Unknown::Unsupported(_) | Unknown::RepeatedValues { .. }),
            ) => {
                let stronger = self.satisfied_stronger(level);
                let decided = stronger.or_else(|| self.violated_weaker(level));
                decided.unwrap_or(Verdict::Unknown(reason))
            }
            other => other,
        }
    }

    fn known(&self) -> impl Iterator<Item = (Level, &Verdict)> {
        self.verdicts.iter().map(|known| (known.0, &known.1))
    }

    pub(super) fn satisfied_stronger(&self, level: Level) -> Option<Verdict> {
        implied::satisfied_stronger(level, self.known())
    }

    pub(super) fn violated_weaker(&self, level: Level) -> Option<Verdict> {
        let (weakest, mut violated) = implied::violated_weaker(level, self.known())?;
        // Found by reading, and allowed at the weaker level.
        let own =
            self.found.iter().filter(|it| it.kind.rules_out(level) && !it.kind.rules_out(weakest));
        violated.anomalies.extend(own.cloned());
        Some(Verdict::Violated(violated))
    }

    /// Without conditions, what a search found against serializability it finds against
    /// repeatable reads too.
    pub(super) fn same_as_serializable(&self, level: Level) -> Option<Verdict> {
        if level != Level::RepeatableRead || self.history.has_predicates() {
            return None;
        }
        let is_same = |verdict: &Verdict| match verdict {
            Verdict::Violated(violated) => {
                violated.settled_by.is_none() && violated.proof.is_some()
            }
            _ => false,
        };
        let known = self.verdicts.iter().find(|known| known.0 == Level::Serializable)?;
        is_same(&known.1).then(|| known.1.clone())
    }

    /// What is neither read nor write.
    pub(crate) fn calls(&self) -> Option<Unknown> {
        let kinds = self.history.op_kinds();
        let first = OpId(kinds.iter().position(|&kind| kind == OpKind::Call)? as u32);
        let operations = kinds.iter().filter(|&&kind| kind == OpKind::Call).count();
        let function = self.history.datum(self.history.key_name(self.history.op(first).key));
        let place = self.history.position(first);
        let unit = self.history.position_unit().name();
        Some(Unknown::Calls { operations, first: format!("{function}, {unit} {place}") })
    }

    /// Whether a level is one of begins and commits.
    pub(crate) fn is_strong(level: Level) -> bool {
        level == Level::Linearizable || strong::levels().any(|strong| strong == level)
    }

    /// Rules and definitions take the order of lists for granted. Where it is left out they
    /// would answer another question than the strong levels, and the lattice would not hold.
    pub(super) fn is_without_lists(&self) -> bool {
        !self.options.sources.lists && self.history.op_kinds().contains(&OpKind::ReadList)
    }
}

/// Whether a violation shows how.
pub(super) fn tells(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Violated(violated) if !violated.anomalies.is_empty())
}

//! Deciding several levels of one history with shared work.
//!
//! The lattice saves most of it: a commit order for a level is one for every weaker
//! level, and an anomaly of a level refutes every stronger one. So levels are tried
//! from strong to weak until one holds, and each violated level is shown by the
//! anomaly of the weakest level that has it.

use crate::anomaly::{Anomaly, found_by_reading};
use crate::choices;
use crate::level::Level;
use crate::linearizable::{self, Reading};
use crate::reference::{self, Reference};
use crate::verdict::{Satisfied, Unknown, Verdict, Violated};
use crate::weak::{self, Decision, Facts, RULES, Rule};
use isolde_history::{Candidates, History, Index, OpKind};

/// What a check may use. The core reads no clock: the caller says when to stop.
pub struct Limits<'a> {
    /// Asked now and then; once true, open levels become [`Unknown::Limit`].
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Memory for clocks and other working state, beside history and index.
    pub working_bytes_max: Option<usize>,
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> = Limits { stop: &|| false, working_bytes_max: None };
}

/// One history being checked.
pub struct Check<'a> {
    history: &'a History,
    index: &'a Index,
    limits: &'a Limits<'a>,
    /// Anomalies that reading alone shows.
    found: Vec<Anomaly>,
    verdicts: Vec<(Level, Verdict)>,
}

/// Levels that are decided for histories of any size.
pub fn decided_levels() -> Vec<Level> {
    RULES.iter().map(|rule| rule.level).collect()
}

/// Decides `levels`; the verdicts are in the order of [`Level`].
pub fn check(
    history: &History,
    index: &Index,
    levels: &[Level],
    limits: &Limits<'_>,
) -> Vec<(Level, Verdict)> {
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    levels.dedup();
    let mut check = Check::new(history, index, limits);
    // Stronger levels have the larger ids, as far as they can be compared.
    for &level in levels.iter().rev() {
        let _ = check.decide(level);
    }
    levels.iter().map(|&level| (level, check.decide(level))).collect()
}

impl<'a> Check<'a> {
    /// Starts with what reading alone shows.
    pub fn new(history: &'a History, index: &'a Index, limits: &'a Limits<'a>) -> Self {
        let found = found_by_reading(history, index);
        Check { history, index, limits, found, verdicts: Vec::new() }
    }

    /// Anomalies that reading alone shows, whatever level is asked for.
    pub fn found(&self) -> &[Anomaly] {
        &self.found
    }

    /// Decides one level, using what was decided before.
    pub fn decide(&mut self, level: Level) -> Verdict {
        if let Some((_, verdict)) = self.verdicts.iter().find(|known| known.0 == level) {
            return self.settled(level, verdict.clone());
        }
        let verdict = self.decide_anew(level);
        self.verdicts.push((level, verdict.clone()));
        verdict
    }

    /// A violation is shown by the weakest level that has it.
    fn settled(&self, level: Level, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Violated(violated) if violated.settled_by.is_none() => {
                self.violated_weaker(level).unwrap_or(Verdict::Violated(violated))
            }
            other => other,
        }
    }

    fn violated_weaker(&self, level: Level) -> Option<Verdict> {
        let weaker = level.weaker_than();
        let mut known: Vec<&(Level, Verdict)> = self
            .verdicts
            .iter()
            .filter(|known| weaker.contains(&known.0))
            .filter(|known| matches!(known.1, Verdict::Violated(_)))
            .collect();
        known.sort_unstable_by_key(|known| known.0);
        known.first().map(|(weakest, verdict)| {
            let Verdict::Violated(violated) = verdict else { unreachable!("filtered above") };
            let settled_by = violated.settled_by.or(Some(*weakest));
            let mut anomalies = violated.anomalies.clone();
            // Found by reading, and allowed at the weaker level.
            let own = self.found.iter().filter(|it| refutes(it, level) && !refutes(it, *weakest));
            anomalies.extend(own.cloned());
            Verdict::Violated(Violated { anomalies, settled_by })
        })
    }

    fn decide_anew(&mut self, level: Level) -> Verdict {
        let calls = self.history.op_kinds().iter().filter(|&&kind| kind == OpKind::Call).count();
        // Stores and locks are objects to linearizability, and nothing to isolation.
        if calls > 0 {
            let unknown = Verdict::Unknown(Unknown::Calls { operations: calls });
            let is_asked = level == Level::Linearizable;
            return is_asked.then(|| self.linearizable()).flatten().unwrap_or(unknown);
        }
        let refuting: Vec<Anomaly> =
            self.found.iter().filter(|anomaly| refutes(anomaly, level)).cloned().collect();
        if !refuting.is_empty() {
            return Verdict::Violated(Violated { anomalies: refuting, settled_by: None });
        }
        if let Some(verdict) = self.violated_weaker(level) {
            return verdict;
        }
        let stronger = level.stronger_than();
        let implied = self.verdicts.iter().find(|(known, verdict)| {
            stronger.contains(known) && matches!(verdict, Verdict::Satisfied(_))
        });
        if let Some(&(stronger, _)) = implied {
            return Verdict::Satisfied(Satisfied::Implied(stronger));
        }
        if level == Level::Linearizable
            && let Some(verdict) = self.linearizable()
        {
            return verdict;
        }
        match RULES.iter().find(|rule| rule.level == level) {
            Some(rule) => self.follow(rule),
            None => self.by_definition(level),
        }
    }

    /// Linearizability of single operations on objects; `None` for all else.
    fn linearizable(&self) -> Option<Verdict> {
        linearizable::decide(self.history, self.limits, Reading::default())
    }

    fn follow(&self, rule: &Rule) -> Verdict {
        if rule.candidates == Candidates::Any && self.index.has_lesser_candidates() {
            let index = Index::choosing(self.history, Candidates::Any, &[]);
            return self.follow_in(rule, &index);
        }
        self.follow_in(rule, self.index)
    }

    fn follow_in(&self, rule: &Rule, index: &Index) -> Verdict {
        let facts = Facts::new(self.history, index, self.limits);
        match weak::decide(rule, &facts) {
            Decision::Violated(anomaly) => {
                Verdict::Violated(Violated { anomalies: vec![anomaly], settled_by: None })
            }
            Decision::Limit(limit) => Verdict::Unknown(Unknown::Limit(limit)),
            // Reads of repeated values were left out so far, which only made the
            // level easier to satisfy.
            Decision::Satisfied(_) if !index.several().is_empty() => choices::decide(rule, &facts),
            Decision::Satisfied(order) => Verdict::Satisfied(Satisfied::Order(order)),
        }
    }

    /// Levels without a rule: a violated weaker level settles them, and small
    /// histories are decided by the definition.
    fn by_definition(&mut self, level: Level) -> Verdict {
        let weaker = level.weaker_than();
        let facts = Facts::new(self.history, self.index, self.limits);
        // Reads of repeated values stay open here: trying their writers for every
        // weaker level would cost much and seldom settle this one.
        let violated = |rule: &&Rule| {
            weaker.contains(&rule.level)
                && rule.candidates == Candidates::Final
                && matches!(weak::decide(rule, &facts), Decision::Violated(_))
        };
        // The strongest rule is violated if any is.
        if RULES.iter().rev().any(|rule| violated(&rule)) {
            for rule in RULES.iter().filter(|rule| weaker.contains(&rule.level)) {
                let _ = self.decide(rule.level);
            }
            if let Some(verdict) = self.violated_weaker(level) {
                return verdict;
            }
        }
        match reference::decide(self.history, level) {
            Reference::Satisfied => Verdict::Satisfied(Satisfied::Definition),
            Reference::Violated => {
                Verdict::Violated(Violated { anomalies: Vec::new(), settled_by: None })
            }
            Reference::Unknown(reason) => {
                // A weaker level may need less: no times, for one.
                let rules = |level: &Level| RULES.iter().any(|rule| rule.level == *level);
                for weaker in weaker.into_iter().filter(|level| !rules(level)) {
                    let _ = self.decide(weaker);
                }
                let unknown = Verdict::Unknown(Unknown::Unsupported(reason));
                self.violated_weaker(level).unwrap_or(unknown)
            }
        }
    }
}

/// Whether a level forbids an anomaly that reading alone shows.
fn refutes(anomaly: &Anomaly, level: Level) -> bool {
    anomaly
        .kind
        .refutes()
        .iter()
        .any(|&weakest| weakest == level || level.weaker_than().contains(&weakest))
}

//! Deciding several levels of one history with shared work.
//!
//! The lattice saves most of it: a commit order for a level is one for every weaker
//! level, and an anomaly of a level refutes every stronger one. So levels are tried
//! from strong to weak until one holds, and each violated level is shown by the
//! anomaly of the weakest level that has it.

use crate::anomaly::{Anomaly, found_by_reading};
use crate::check::implied;
use crate::check::interpretations::Readings;
use crate::choices::{self, Effort};
use crate::given;
use crate::level::Level;
use crate::limits::{Limits, Stage, Work};
use crate::linearizable;
use crate::reference::{self, Reference};
use crate::strong::{self, Options};
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::{Satisfied, Verdict, Violated};
use crate::weak::{self, Decision, Facts, RULES, Rule};
use isolde_history::{Candidates, History, Index, OpId, OpKind, TxnId};
use std::cmp::Reverse;
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
    serial: OnceLock<Option<Vec<TxnId>>>,
}

/// From so many transactions on, parallel snapshot isolation is asked for only if
/// snapshot isolation does not hold.
const STRONGER_FIRST_TXNS: usize = 512;

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
        let readings = Readings::of(self.history, self.index)?;
        readings.decide(level, self.options, &self.limits(), is_refuted)
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
        let found = self.decide_anew(level);
        let verdict = match self.within_sources(level, found) {
            // A level that others wait for is theirs to settle.
            Verdict::Unknown(Unknown::Unsupported(reason)) if self.deciding.len() == 1 => {
                let unknown = Verdict::Unknown(Unknown::Unsupported(reason));
                self.implied(level).unwrap_or(unknown)
            }
            verdict => verdict,
        };
        self.deciding.pop();
        if let Some(&waiting) = self.deciding.last() {
            (self.limits().observe)(Stage::Decide(waiting));
        }
        self.verdicts.push((level, verdict.clone()));
        verdict
    }

    /// What holds without a part of the level's meaning may not hold with it.
    fn within_sources(&self, level: Level, verdict: Verdict) -> Verdict {
        match (&verdict, self.switched_off(level)) {
            (Verdict::Satisfied(_) | Verdict::Unknown(Unknown::Unsupported(_)), Some(reason)) => {
                Verdict::Unknown(Unknown::Unsupported(reason))
            }
            _ => verdict,
        }
    }

    /// What a level means and was switched off.
    fn switched_off(&self, level: Level) -> Option<Obstacle> {
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
    fn implied(&mut self, level: Level) -> Option<Verdict> {
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
    fn held_by(&mut self, level: Level) -> Option<Verdict> {
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

    fn satisfied_stronger(&self, level: Level) -> Option<Verdict> {
        implied::satisfied_stronger(level, self.known())
    }

    fn violated_weaker(&self, level: Level) -> Option<Verdict> {
        let (weakest, mut violated) = implied::violated_weaker(level, self.known())?;
        // Found by reading, and allowed at the weaker level.
        let own =
            self.found.iter().filter(|it| it.kind.rules_out(level) && !it.kind.rules_out(weakest));
        violated.anomalies.extend(own.cloned());
        Some(Verdict::Violated(violated))
    }

    /// Without conditions, what a search found against serializability it finds against
    /// repeatable reads too.
    fn same_as_serializable(&self, level: Level) -> Option<Verdict> {
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

    fn decide_anew(&mut self, level: Level) -> Verdict {
        // Stores and locks are objects to linearizability, and nothing to isolation.
        if let Some(calls) = self.calls() {
            let unknown = Verdict::Unknown(calls);
            let is_asked = level == Level::Linearizable;
            return is_asked.then(|| self.linearizable()).flatten().unwrap_or(unknown);
        }
        let refuting: Vec<Anomaly> =
            self.found.iter().filter(|anomaly| anomaly.kind.rules_out(level)).cloned().collect();
        if !refuting.is_empty() {
            return Verdict::Violated(Violated::by(refuting));
        }
        // A level that can show its own violation does so, if the weaker one cannot.
        let shows = Check::is_strong(level);
        if let Some(verdict) = self.violated_weaker(level).filter(|it| !shows || tells(it)) {
            return verdict;
        }
        if let Some(verdict) =
            self.satisfied_stronger(level).or_else(|| self.same_as_serializable(level))
        {
            return verdict;
        }
        if let Some(verdict) = self.by_interleaving(level) {
            return verdict;
        }
        if level == Level::Linearizable
            && let Some(verdict) = self.linearizable().or_else(|| self.strictly_linearizable())
        {
            return verdict;
        }
        match RULES.iter().find(|rule| rule.level == level) {
            Some(rule) => self.follow_or_ask(rule),
            None if strong::levels().any(|strong| strong == level) => self.strong(level),
            None => match self.by_definition(level) {
                Verdict::Unknown(Unknown::Unsupported(_)) if level == Level::Linearizable => {
                    match linearizable::obstacle(self.history) {
                        Some(obstacle) => Verdict::Unknown(Unknown::Unsupported(obstacle)),
                        None => self.decide(Level::StrictSerializable),
                    }
                }
                verdict => verdict,
            },
        }
    }

    /// Whether a level is one of begins and commits.
    pub(crate) fn is_strong(level: Level) -> bool {
        level == Level::Linearizable || strong::levels().any(|strong| strong == level)
    }

    /// Whether the serialization order that the database gave shows a level, without a search.
    fn shown_by_given_order(&mut self, level: Level) -> Option<Verdict> {
        self.history.orders().total.as_ref()?;
        let serial = self.serial.get_or_init(|| given::shown(self.history, self.index));
        if level == Level::Serializable {
            return serial.clone().map(|order| Verdict::Satisfied(Satisfied::Order(order)));
        }
        let is_implied = level.stronger_than().contains(&Level::Serializable)
            && !self.deciding.contains(&Level::Serializable);
        let holds = is_implied && serial.is_some();
        (holds && matches!(self.decide(Level::Serializable), Verdict::Satisfied(_)))
            .then_some(Verdict::Satisfied(Satisfied::Implied(Level::Serializable)))
    }

    fn strong(&mut self, level: Level) -> Verdict {
        if let Some(verdict) = self.shown_by_given_order(level) {
            return verdict;
        }
        if level == Level::ParallelSnapshotIsolation
            && self.history.txn_count() >= STRONGER_FIRST_TXNS
            && let Some(violated) =
                strong::parallel_refuted((self.history, self.index), self.options, &self.limits())
        {
            return self.whoever_counts(level, violated);
        }
        // Its search is much slower than that of the stronger level, which most
        // histories satisfy.
        if level == Level::ParallelSnapshotIsolation
            && self.history.txn_count() >= STRONGER_FIRST_TXNS
            && !self.deciding.contains(&Level::SnapshotIsolation)
            && matches!(self.decide(Level::SnapshotIsolation), Verdict::Satisfied(_))
        {
            return Verdict::Satisfied(Satisfied::Implied(Level::SnapshotIsolation));
        }
        if let Some(satisfied) = self.in_serial_order(level) {
            return Verdict::Satisfied(satisfied);
        }
        let facts = (self.history, self.index);
        let work = Arc::clone(&self.work);
        let limits = Limits { work: Some(&work), ..*self.within };
        let verdict = strong::decide(level, facts, &mut self.shared, self.options, &limits);
        let reason = match &verdict {
            Verdict::Satisfied(_) => return verdict,
            Verdict::Violated(violated) => return self.whoever_counts(level, violated.clone()),
            Verdict::Unknown(reason) => reason,
        };
        if let Some(decided) = self.as_objects(level) {
            return decided;
        }
        if !matches!(reason, Unknown::Unsupported(_)) {
            return verdict;
        }
        // A small history can still be decided.
        match self.in_every_way(level).unwrap_or_else(|| self.by_definition(level)) {
            Verdict::Unknown(Unknown::Unsupported(_)) => verdict,
            decided => decided,
        }
    }

    /// Rules and definitions take the order of lists for granted. Where it is left out they
    /// would answer another question than the strong levels, and the lattice would not hold.
    fn is_without_lists(&self) -> bool {
        !self.options.sources.lists && self.history.op_kinds().contains(&OpKind::ReadList)
    }

    /// A rule of repeated values may take all choices to decide. A stronger level, whose
    /// search is another one, may hold at once.
    fn follow_or_ask(&mut self, rule: &Rule) -> Verdict {
        let is_open =
            |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Unknown::RepeatedValues { .. }));
        let verdict = self.follow(rule, Effort::Little);
        if !is_open(&verdict) || self.deciding.len() > 1 {
            return if is_open(&verdict) { self.follow(rule, Effort::Most) } else { verdict };
        }
        if let Some(held) = self.held_soon(rule.level) {
            return held;
        }
        let verdict = self.follow(rule, Effort::Most);
        let held = is_open(&verdict).then(|| self.held_by(rule.level)).flatten();
        held.unwrap_or(match verdict {
            // With more of it a stronger level may hold.
            verdict if is_open(&verdict) && self.limits().is_over() => {
                Verdict::Unknown(Unknown::Limit(self.limits().reached()))
            }
            verdict => verdict,
        })
    }

    /// A stronger level that holds, of those that a short search decides: most do so with session
    /// order and without times, and rules would search as this one does.
    fn held_soon(&mut self, level: Level) -> Option<Verdict> {
        let applicable = applicable_levels(self.history);
        let mut stronger = level.stronger_than();
        stronger.retain(|it| applicable.contains(it) && Check::is_strong(*it));
        stronger.sort_by_key(|&it| {
            (!strong::keeps_sessions(it) || strong::needs_times(it), Reverse(it))
        });
        let known: Vec<Level> = self.verdicts.iter().map(|known| known.0).collect();
        let (work, units) = (Arc::clone(&self.work), self.first_turn());
        let mut holds =
            |it: Level| matches!(work.within(units, || self.decide(it)), Verdict::Satisfied(_));
        let held = stronger.into_iter().find(|&it| holds(it));
        // What was not decided so soon may be with more work.
        let is_limit = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Unknown::Limit(_)));
        self.verdicts.retain(|(level, it)| known.contains(level) || !is_limit(it));
        held.map(|held| Verdict::Satisfied(Satisfied::Implied(held)))
    }

    fn follow(&self, rule: &Rule, effort: Effort) -> Verdict {
        if self.is_without_lists() {
            return Verdict::Unknown(Unknown::Unsupported(Obstacle::WithoutLists));
        }
        if rule.candidates == Candidates::Any && self.index.has_lesser_candidates() {
            let index = Index::choosing(self.history, Candidates::Any, &[]);
            return self.follow_in(rule, &index, effort);
        }
        self.follow_in(rule, self.index, effort)
    }

    fn follow_in(&self, rule: &Rule, index: &Index, effort: Effort) -> Verdict {
        let limits = self.limits();
        let facts = Facts::new(self.ordered(), index, &limits);
        match weak::decide(rule, &facts) {
            Decision::Violated(anomaly) => Verdict::Violated(Violated::by(vec![anomaly])),
            Decision::Limit(limit) => Verdict::Unknown(Unknown::Limit(limit)),
            Decision::Satisfied(_) if index.has_repeated_elements() => {
                self.with_repeated_elements(rule.level)
            }
            // Reads of repeated values were left out so far, which only made the
            // level easier to satisfy.
            Decision::Satisfied(_) if !index.several().is_empty() => {
                choices::decide(rule, &facts, effort)
            }
            Decision::Satisfied(order) => Verdict::Satisfied(Satisfied::Order(order)),
        }
    }

    /// A list shows an element that was appended more than once. Orders that depend on
    /// which append it was are not known, so finding no cycle means nothing.
    fn with_repeated_elements(&self, level: Level) -> Verdict {
        let decided = self.in_every_way(level);
        if let Some(verdict) = decided.filter(|it| !matches!(it, Verdict::Unknown(_))) {
            return verdict;
        }
        match self.by_all_orders(level) {
            Reference::Satisfied => Verdict::Satisfied(Satisfied::Definition),
            Reference::Violated => Verdict::Violated(Violated::by(Vec::new())),
            Reference::Unknown(_) => {
                Verdict::Unknown(Unknown::Unsupported(Obstacle::RepeatedElement))
            }
        }
    }

    /// What the definition says, tried in all orders.
    fn by_all_orders(&self, level: Level) -> Reference {
        reference::decide_with_drift(self.ordered(), level, self.options.clock_drift)
    }

    /// Levels without a rule: a violated weaker level settles them, and small
    /// histories are decided by the definition.
    fn by_definition(&mut self, level: Level) -> Verdict {
        if self.is_without_lists() {
            return Verdict::Unknown(Unknown::Unsupported(Obstacle::WithoutLists));
        }
        let weaker = level.weaker_than();
        // Reads of repeated values stay open here: trying their writers for every
        // weaker level would cost much and seldom settle this one.
        let is_violated = {
            let limits = self.limits();
            let facts = Facts::new(self.ordered(), self.index, &limits);
            let violated = |rule: &&Rule| {
                weaker.contains(&rule.level)
                    && rule.candidates == Candidates::Final
                    && matches!(weak::decide(rule, &facts), Decision::Violated(_))
            };
            // The strongest rule is violated if any is.
            RULES.iter().rev().any(|rule| violated(&rule))
        };
        if is_violated {
            for rule in RULES.iter().filter(|rule| weaker.contains(&rule.level)) {
                let _ = self.decide(rule.level);
            }
            if let Some(verdict) = self.violated_weaker(level) {
                return verdict;
            }
        }
        match self.by_all_orders(level) {
            Reference::Satisfied => Verdict::Satisfied(Satisfied::Definition),
            Reference::Violated => Verdict::Violated(Violated::by(Vec::new())),
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

/// Whether a violation shows how.
fn tells(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Violated(violated) if !violated.anomalies.is_empty())
}

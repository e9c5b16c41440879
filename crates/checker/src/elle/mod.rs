//! Questions as elle-cli asks them: does a history obey these consistency models?
//!
//! A model is one row of [`MODELS`], an anomaly one of [`ANOMALIES`]. A history is
//! valid if every model asked for holds and every anomaly asked for is absent;
//! where our levels do not settle that, the answer is unknown and not a guess.
//!
//! Where Elle reads a history otherwise than our levels do, `reading` reads it as Elle does.

mod anomalies;
mod models;
mod named;
mod reading;
mod workloads;

pub use anomalies::{ANOMALIES, ElleAnomaly, elle_name};
pub use models::{MODELS, Model};
pub use reading::allowing_unwritten;
pub use workloads::{Expectations, Finding, JepsenWorkload, Misfit, Problem, WORKLOADS};

use crate::anomaly::{Anomaly, AnomalyKind, Evidence, FOUND_BY_READING};
use crate::check::Check;
use crate::evidence::EdgeKind;
use crate::explain::explain;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::Options;
use crate::verdict::{Verdict, Violated};
use isolde_history::{History, Index, OpId, OpKind, Origin, TxnId, Value};
use models::{Broken, Order};
use reading::Lists;

/// What is asked about a history.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Models that should hold.
    pub models: Vec<&'static Model>,
    /// Anomalies that should be absent.
    pub anomalies: Vec<&'static ElleAnomaly>,
    /// Whether violations are told as briefly as can be, which takes longer.
    pub explain: bool,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the history is as it should be.
    pub valid: Valid,
    /// Anomalies that show that it is not.
    pub anomalies: Vec<Anomaly>,
    /// Models asked for that are broken, by their usual names.
    pub not: Vec<&'static str>,
}

/// Elle's three answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Valid {
    /// Everything asked for holds.
    True,
    /// Something does not.
    False,
    /// Not settled, for this reason.
    Unknown(String),
}

/// The kinds of histories that Elle checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Reads and writes of registers.
    RwRegister,
    /// Appends to lists and reads of them.
    ListAppend,
}

impl Workload {
    /// The first operation that does not belong to the workload.
    pub fn misfit(self, history: &History) -> Option<OpId> {
        let fits = |op: OpId| {
            let it = history.op(op);
            match (self, it.kind) {
                (Workload::RwRegister, OpKind::Read | OpKind::Write)
                | (Workload::ListAppend, OpKind::Append | OpKind::ReadList) => true,
                // A read that saw nothing looks the same in both.
                (Workload::ListAppend, OpKind::Read) => {
                    it.value == Value::NIL || it.value == Value::UNKNOWN
                }
                _ => false,
            }
        };
        history.txns().flat_map(|txn| history.ops_of(txn)).find(|&op| !fits(op))
    }
}

/// Answers a question about a history.
pub fn answer(
    history: &History,
    index: &Index,
    question: &Question,
    limits: &Limits<'_>,
) -> Answer {
    let lists = Lists::of(history, index);
    let orders_index = lists.orders.as_ref().map(Index::new);
    let orders = lists.orders.as_ref().zip(orders_index.as_ref());
    let mut asked = Asked {
        history,
        index,
        limits,
        explain: question.explain,
        check: Check::new(history, index, limits),
        orders: orders.map(|(orders, index)| Check::new(orders, index, limits)),
        lists: &lists,
        anomalies: Vec::new(),
        explained: Vec::new(),
        open: None,
    };
    let not: Vec<&'static str> = question
        .models
        .iter()
        .filter(|model| asked.holds(model) == Some(false))
        .map(|model| model.names[0])
        .collect();
    let mut present = false;
    for anomaly in &question.anomalies {
        present |= asked.is_absent(anomaly) == Some(false);
    }
    let valid = match asked.open {
        _ if present || !not.is_empty() => Valid::False,
        Some(reason) => Valid::Unknown(reason),
        None => Valid::True,
    };
    Answer { valid, anomalies: asked.anomalies, not }
}

/// Why a model is not settled that has no level of its own.
const NO_LEVEL: &str = "it is none of the levels that are decided";

/// A history being asked about.
struct Asked<'a> {
    history: &'a History,
    index: &'a Index,
    limits: &'a Limits<'a>,
    explain: bool,
    check: Check<'a>,
    /// The longest lists alone, which decide read uncommitted where there are others.
    orders: Option<Check<'a>>,
    lists: &'a Lists,
    /// What answered `false`.
    anomalies: Vec<Anomaly>,
    /// Violations as small arguments, for each level that was looked at.
    explained: Vec<(Level, Option<Anomaly>)>,
    /// Why something is not settled, the first reason.
    open: Option<String>,
}

impl Asked<'_> {
    /// Whether a model holds, if that can be told.
    fn holds(&mut self, model: &Model) -> Option<bool> {
        let lists = self.lists;
        if model.forbids_aborted_reads() {
            self.remember(&lists.incompatible.iter().collect::<Vec<_>>());
        }
        for &broken in model.broken_with {
            if let Some(shown) = self.shown_broken(broken) {
                self.remember(&shown.iter().collect::<Vec<_>>());
                return Some(false);
            }
        }
        if model.forbids_aborted_reads() && !lists.incompatible.is_empty() {
            return Some(false);
        }
        // Only what breaks nothing can be too little to say anything.
        if let Some(reason) = self.vacuous(model.order) {
            self.open.get_or_insert(reason);
            return None;
        }
        if self.any_satisfied(model.holds_with) {
            return Some(true);
        }
        let between = self.between(model);
        self.leave_open(model.names[0], model.holds_with, &between);
        None
    }

    /// What shows that a model is broken that this breaks, if it does.
    fn shown_broken(&mut self, broken: Broken) -> Option<Vec<Anomaly>> {
        let level = match broken {
            Broken::Shown(name) => {
                let anomaly = ElleAnomaly::parse(name).expect("one of Elle's anomalies");
                return self.shown_as(anomaly).map(|found| vec![found]);
            }
            Broken::Violated(level)
            | Broken::WithoutSessions(level)
            | Broken::BySessionFlow(level) => level,
        };
        let Verdict::Violated(violated) = self.decide(level) else { return None };
        if self.explain && matches!(broken, Broken::Violated(_)) {
            return Some(self.smallest(level, violated));
        }
        let shows = |anomaly: &&Anomaly| match broken {
            Broken::WithoutSessions(_) => !uses_sessions(anomaly),
            Broken::BySessionFlow(_) => anomaly.kind == AnomalyKind::SessionCircularInformationFlow,
            Broken::Violated(_) | Broken::Shown(_) => true,
        };
        let shown: Vec<Anomaly> = violated.anomalies.iter().filter(shows).cloned().collect();
        (matches!(broken, Broken::Violated(_)) || !shown.is_empty()).then_some(shown)
    }

    /// What violates a level as `check` tells it: by the weakest level that is violated, and by
    /// the fewest transactions.
    fn smallest(&mut self, level: Level, violated: Violated) -> Vec<Anomaly> {
        let (mut level, mut violated) = (level, violated);
        for weaker in level.weaker_than() {
            if let Verdict::Violated(found) = self.decide(weaker) {
                (level, violated) = (weaker, found);
                break;
            }
        }
        let by_reading = |it: &Anomaly| matches!(it.evidence, Evidence::Operations { .. });
        if violated.anomalies.iter().any(by_reading) {
            return violated.anomalies;
        }
        match self.explained(level, &violated) {
            Some(found) => vec![found],
            None => violated.anomalies,
        }
    }

    /// Why a model is not settled by the levels around it.
    fn between(&mut self, model: &Model) -> String {
        let violated: Vec<Level> = (model.holds_with.iter().copied())
            .filter(|&level| matches!(self.decide(level), Verdict::Violated(_)))
            .collect();
        let mut holding = Vec::new();
        for broken in model.broken_with {
            if let Broken::Violated(level) = *broken
                && matches!(self.decide(level), Verdict::Satisfied(_))
            {
                holding.push(level);
            }
        }
        let names = |levels: &[Level]| {
            levels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let (violated, holding) = (names(&violated), names(&holding));
        match (holding.as_str(), violated.as_str()) {
            (_, "") => NO_LEVEL.into(),
            ("", violated) => {
                format!("it is weaker than the level {violated} (violated) and none of the others")
            }
            (holding, violated) => {
                format!(
                    "it lies between the levels {holding} (satisfied) and {violated} (violated)"
                )
            }
        }
    }

    /// Whether an anomaly is absent, if that can be told.
    fn is_absent(&mut self, anomaly: &ElleAnomaly) -> Option<bool> {
        let lists = self.lists;
        let shows = |found: &&Anomaly| anomaly.shown_by.contains(&found.kind);
        if lists.incompatible.iter().any(|found| shows(&found)) {
            self.remember(&lists.incompatible.iter().collect::<Vec<_>>());
            return Some(false);
        }
        if self.any_satisfied(anomaly.absent_with) {
            return Some(true);
        }
        let mut shown: Vec<Anomaly> = self.check.found().iter().filter(shows).cloned().collect();
        for &level in anomaly.absent_with {
            if let Verdict::Violated(violated) = self.decide(level) {
                shown.extend(violated.anomalies.iter().filter(shows).cloned());
            }
        }
        if shown.is_empty() && !is_by_reading(anomaly) {
            shown.extend(self.shown_as(anomaly));
        }
        if !shown.is_empty() {
            self.remember(&shown.iter().collect::<Vec<_>>());
            return Some(false);
        }
        // Reading finds all of its kind, so what was not found is not there.
        if is_by_reading(anomaly) {
            return Some(true);
        }
        let others = self.others(anomaly);
        self.leave_open(anomaly.name, anomaly.absent_with, &others);
        None
    }

    /// An anomaly of this name among those by which levels are violated that forbid it, or
    /// weaker ones.
    fn shown_as(&mut self, anomaly: &ElleAnomaly) -> Option<Anomaly> {
        let mut levels: Vec<Level> = anomaly.absent_with.to_vec();
        for level in anomaly.absent_with {
            levels.extend(level.weaker_than().iter().rev());
        }
        for (place, &level) in levels.iter().enumerate() {
            if levels[..place].contains(&level) {
                continue;
            }
            let Verdict::Violated(violated) = self.decide(level) else { continue };
            let shows = |found: &&Anomaly| named::shows(self.history, found, anomaly.name);
            if let Some(found) = violated.anomalies.iter().find(shows) {
                return Some(found.clone());
            }
            let explained = self.explained(level, &violated);
            if let Some(found) = explained.filter(|it| named::shows(self.history, it, anomaly.name))
            {
                return Some(found);
            }
        }
        None
    }

    /// The small argument against a level, as `check` would name it.
    fn explained(&mut self, level: Level, violated: &Violated) -> Option<Anomaly> {
        if let Some((_, known)) = self.explained.iter().find(|known| known.0 == level) {
            return known.clone();
        }
        if level == Level::ReadUncommitted && self.orders.is_some() {
            return violated.anomalies.first().cloned();
        }
        let facts = (self.history, self.index);
        let found = explain(facts, self.meant(level), violated, Options::default(), self.limits);
        let found = found.map(|explanation| explanation.anomaly);
        self.explained.push((level, found.clone()));
        found
    }

    /// Why an anomaly is not settled by the levels that forbid it.
    fn others(&mut self, anomaly: &ElleAnomaly) -> String {
        let mut names: Vec<&str> = Vec::new();
        for &level in anomaly.absent_with {
            let Verdict::Violated(violated) = self.decide(level) else { continue };
            let explained = self.explained(level, &violated);
            for found in violated.anomalies.iter().chain(&explained) {
                let name = found.name_in_elle(self.history);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let by = if names.is_empty() { String::new() } else { format!(" by {}", names.join(", ")) };
        format!("what forbids it is violated{by}, and whether it occurs as well is not decided")
    }

    /// A level's verdict.
    fn decide(&mut self, level: Level) -> Verdict {
        match &mut self.orders {
            Some(orders) if level == Level::ReadUncommitted => {
                self.lists.in_history(orders.decide(level))
            }
            _ => self.check.decide(self.meant(level)),
        }
    }

    /// Without times no real-time order is known, and what is left of the levels that keep it
    /// is session order.
    fn meant(&self, level: Level) -> Level {
        match level {
            Level::StrictSerializable if !self.history.has_times() => Level::SessionSerializable,
            Level::StrongSnapshotIsolation if !self.history.has_times() => {
                Level::SessionSnapshotIsolation
            }
            other => other,
        }
    }

    fn any_satisfied(&mut self, levels: &[Level]) -> bool {
        levels.iter().any(|&level| matches!(self.decide(level), Verdict::Satisfied(_)))
    }

    /// Notes why `name` is not settled: a level that is not, or else `otherwise`.
    fn leave_open(&mut self, name: &str, levels: &[Level], otherwise: &str) {
        let reasons = levels.iter().find_map(|&level| match self.decide(level) {
            Verdict::Unknown(reason) => Some(reason.to_string()),
            _ => None,
        });
        let reason = reasons.unwrap_or_else(|| otherwise.to_owned());
        self.open.get_or_insert(format!("{name}: {reason}"));
    }

    fn remember(&mut self, shown: &[&Anomaly]) {
        for &anomaly in shown {
            if !self.anomalies.contains(anomaly) {
                self.anomalies.push(anomaly.clone());
            }
        }
    }

    /// Why nothing in the history could break a model, if so. Elle calls it an empty
    /// transaction graph and does not let it pass.
    fn vacuous(&self, order: Order) -> Option<String> {
        let is_logged = |txn: &TxnId| !self.history.is_unlogged(*txn);
        let logged =
            self.history.txns().filter(|&txn| self.index.is_counted(txn)).filter(is_logged);
        if logged.take(2).count() < 2 {
            return Some("fewer than two transactions committed".into());
        }
        let related = order != Order::Nothing
            || !self.index.steps().is_empty()
            || !self.check.found().is_empty()
            || self.history.txns().any(|txn| {
                let is_other = |writer: TxnId| writer != txn && is_logged(&writer);
                self.index.reads_of(txn).any(|read| match read.origin {
                    Origin::Txn(writer) => is_other(writer),
                    Origin::Initial => {
                        self.index.writers_of(read.key).iter().any(|&it| is_other(it))
                    }
                    Origin::Several | Origin::Nobody => true,
                })
            });
        (!related).then(|| "no transaction depends on another".into())
    }
}

/// Whether an anomaly needs no search: reading alone finds it.
fn is_by_reading(anomaly: &ElleAnomaly) -> bool {
    let by_reading = |kind| FOUND_BY_READING.iter().any(|row| row.kind == kind);
    !anomaly.shown_by.is_empty() && anomaly.shown_by.iter().all(|&kind| by_reading(kind))
}

/// Whether an anomaly rests on session order somewhere.
fn uses_sessions(anomaly: &Anomaly) -> bool {
    anomaly.evidence.all_edges().iter().any(|edge| edge.kind() == EdgeKind::Session)
}

#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;

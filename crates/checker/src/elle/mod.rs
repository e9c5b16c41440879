//! Questions as elle-cli asks them: does a history obey these consistency models?
//!
//! A model is one row of [`MODELS`], an anomaly one of [`ANOMALIES`]. A history is
//! valid if every model asked for holds and every anomaly asked for is absent;
//! where our levels do not settle that, the answer is unknown and not a guess.
//!
//! One thing Elle has no name for: a register read of a value that nobody wrote.
//! None of its models forbids it. To answer as Elle does, such reads are left out
//! with [`without_unwritten`], which counts them so that a caller can tell.

mod anomalies;
mod models;
mod named;
mod workloads;

pub use anomalies::{ANOMALIES, ElleAnomaly, elle_name};
pub use models::{MODELS, Model};
pub use workloads::{Expectations, Finding, JepsenWorkload, Misfit, Problem, WORKLOADS};

use crate::anomaly::{Anomaly, AnomalyKind, Evidence, FOUND_BY_READING};
use crate::check::Check;
use crate::explain::explain;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::Options;
use crate::verdict::{Edge, Reason, Verdict, Violated};
use hashbrown::HashSet;
use isolde_history::{
    History, HistoryBuilder, Index, KeyId, MisreadKind, OpId, OpKind, Origin, Value,
};
use models::{Broken, Order};

/// What is asked about a history.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Models that should hold.
    pub models: Vec<&'static Model>,
    /// Anomalies that should be absent.
    pub anomalies: Vec<&'static ElleAnomaly>,
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

/// The history without register reads of values that nobody wrote, and how many
/// there were. Elle overlooks them; [`answer`] does not.
pub fn without_unwritten(history: History) -> (History, usize) {
    let reads = unwritten_reads(&history, &Index::new(&history));
    if reads.is_empty() { (history, 0) } else { (without_reads(&history, &reads), reads.len()) }
}

/// Answers a question about a history.
pub fn answer(
    history: &History,
    index: &Index,
    question: &Question,
    limits: &Limits<'_>,
) -> Answer {
    let mut asked = Asked {
        history,
        index,
        limits,
        check: Check::new(history, index, limits),
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
    check: Check<'a>,
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
        for &broken in model.broken_with {
            let (Broken::Violated(level)
            | Broken::WithoutSessions(level)
            | Broken::BySessionFlow(level)) = broken;
            let Verdict::Violated(violated) = self.decide(level) else { continue };
            let shows = |anomaly: &&Anomaly| match broken {
                Broken::Violated(_) => true,
                Broken::WithoutSessions(_) => !uses_sessions(anomaly),
                Broken::BySessionFlow(_) => {
                    anomaly.kind == AnomalyKind::SessionCircularInformationFlow
                }
            };
            let shown: Vec<&Anomaly> = violated.anomalies.iter().filter(shows).collect();
            if matches!(broken, Broken::Violated(_)) || !shown.is_empty() {
                self.remember(&shown);
                return Some(false);
            }
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
        if self.any_satisfied(anomaly.absent_with) {
            return Some(true);
        }
        let shows = |found: &&Anomaly| anomaly.shown_by.contains(&found.kind);
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
        self.check.decide(self.meant(level))
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
        if self.index.counted_txns() < 2 {
            return Some("fewer than two transactions committed".into());
        }
        let related = order != Order::Nothing
            || !self.index.steps().is_empty()
            || !self.check.found().is_empty()
            || self.history.txns().any(|txn| {
                self.index.reads_of(txn).any(|read| match read.origin {
                    Origin::Txn(writer) => writer != txn,
                    Origin::Initial => self.index.writers_of(read.key).iter().any(|&it| it != txn),
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
    fn any_session(edges: &[Edge]) -> bool {
        // Explanations go a few levels deep.
        edges.iter().any(|edge| match &edge.reason {
            Reason::Session => true,
            Reason::Overwritten { visible: steps, .. }
            | Reason::AntiDependency { because: steps, .. }
            | Reason::WritersApart { because: steps, .. } => any_session(steps),
            _ => false,
        })
    }
    match &anomaly.evidence {
        Evidence::Operations { .. } => false,
        Evidence::Cycle(cycle) => any_session(&cycle.edges),
        Evidence::Cases(cases) => cases.cycles.iter().any(|cycle| any_session(&cycle.edges)),
    }
}

/// Register reads of values that nobody wrote.
fn unwritten_reads(history: &History, index: &Index) -> HashSet<OpId> {
    let misreads = index.misreads().iter();
    misreads
        .filter(|misread| misread.kind == MisreadKind::ThinAir)
        .map(|misread| misread.read)
        .filter(|&read| history.op(read).kind == OpKind::Read)
        .collect()
}

/// The history with these register reads left out. Only what a [`Workload`] has is
/// carried over: it holds no predicates, rows or orders given by a database.
fn without_reads(history: &History, reads: &HashSet<OpId>) -> History {
    let mut builder = HistoryBuilder::new();
    let values = history.values();
    let take =
        |builder: &mut HistoryBuilder, value| builder.values().intern_datum(values.datum(value));
    let default = take(&mut builder, history.initial_default());
    builder.initial_default(default);
    let keys: Vec<KeyId> = history
        .keys()
        .map(|key| {
            let name = take(&mut builder, history.key_name(key));
            builder.key(name)
        })
        .collect();
    for &(key, value) in history.declared_initial() {
        let value = take(&mut builder, value);
        builder.initial(keys[key.index()], value);
    }
    builder.position_unit(history.position_unit());
    for session in history.sessions() {
        let label = take(&mut builder, history.session_label(session));
        let new_session = builder.new_session(label);
        for txn in history.txns_of(session) {
            let draft = builder.begin(new_session);
            builder.outcome(draft, history.outcome(txn));
            let label = take(&mut builder, history.txn_label(txn));
            builder.label(draft, label);
            if history.has_times() {
                builder.interval(draft, history.txn_interval(txn));
            }
            for op in history.ops_of(txn).filter(|op| !reads.contains(op)) {
                let it = history.op(op);
                let key = keys[it.key.index()];
                builder.position(history.position(op));
                if it.kind == OpKind::ReadList {
                    let list = history.list(op).iter();
                    let list: Vec<Value> = list.map(|&value| take(&mut builder, value)).collect();
                    builder.read_list(key, &list);
                } else {
                    let value = take(&mut builder, it.value);
                    builder.op(it.kind, key, value);
                }
            }
        }
    }
    builder.finish("history").expect("a part of a history is no larger than the whole")
}

#[cfg(test)]
mod tests;

//! Repeated values: trying which of several writers a read saw.
//!
//! Where values repeat, a level holds if *some* choice of writers satisfies it
//! [the setting of `VeriStrong`]. Choices are made one at a time, and a partial choice
//! that already violates the level is given up: reads left open constrain nothing,
//! so more choices cannot mend it. A guess comes first, and long histories are searched
//! from there by what it contradicts (`conflicts`).

mod conflicts;

use crate::anomaly::{Anomaly, Cases, Evidence, found_by_reading};
use crate::evidence::Cycle;
use crate::limits::{Limits, Stage};
use crate::naming;
use crate::unknown::{Limit, Unknown};
use crate::verdict::{Satisfied, Verdict, Violated};
use crate::weak::{self, Decision, Facts, Rule};
use isolde_history::{Choice, History, Index, OpKind, Origin, SeveralOrigins, TxnId};

/// How much work the search may do, in operations indexed again.
const WORK_MAX: usize = 1 << 18;
/// Choices of which it is told how they violate a level.
const CASES_MAX: usize = 16;

/// How long to search for choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Long enough for a guess that is nearly right, and no longer than asking another level.
    Little,
    /// As long as it may take.
    Most,
}

/// Decides a level of a history in which some reads have several origins. Without
/// them it is satisfied.
pub(crate) fn decide(rule: &Rule, facts: &Facts<'_>, effort: Effort) -> Verdict {
    let reads = facts.index.several().len();
    match search(rule, facts, effort) {
        Tried::Satisfied(order, _) => Verdict::Satisfied(Satisfied::Order(order)),
        Tried::Violated(cases) => Verdict::Violated(Violated::by(cases.told(facts.history))),
        Tried::GaveUp => Verdict::Unknown(Unknown::RepeatedValues { reads }),
        Tried::Limit(limit) => Verdict::Unknown(Unknown::Limit(limit)),
    }
}

/// The order by which [`decide`] says that the level holds, and the choices it is for.
pub(crate) fn chosen(rule: &Rule, facts: &Facts<'_>) -> Option<(Vec<TxnId>, Vec<Choice>)> {
    match search(rule, facts, Effort::Most) {
        Tried::Satisfied(order, choices) => Some((order, choices)),
        _ => None,
    }
}

fn search(rule: &Rule, facts: &Facts<'_>, effort: Effort) -> Tried {
    let reads = facts.index.several().len();
    let open = facts.index.several().iter().map(|several| facts.index.read(several.read).op);
    // The same element of two lists has one writer, which choices per read forget.
    if open.into_iter().any(|op| facts.history.op(op).kind == OpKind::ReadList) {
        return Tried::GaveUp;
    }
    (facts.limits.observe)(Stage::Choose);
    let mut search = Search { rule, history: facts.history, limits: facts.limits, work: WORK_MAX };
    let guess = search.guess(facts.index);
    let mut tried = search.with(&guess);
    if matches!(tried, Tried::GaveUp) && search.history.op_count() * reads < WORK_MAX {
        tried = search.from(&mut Vec::new());
    }
    if matches!(tried, Tried::GaveUp) {
        tried = conflicts::search(&search, facts.index, &guess, effort);
    }
    tried
}

/// The work of an attempt, which indexes the history anew.
fn indexing(history: &History) -> u64 {
    const WORK_PER_OP: u64 = 8;
    WORK_PER_OP * (history.op_count() as u64 + 1)
}

enum Tried {
    /// With the choices it is satisfied by.
    Satisfied(Vec<TxnId>, Vec<Choice>),
    /// Every choice violates the level.
    Violated(Violations),
    GaveUp,
    Limit(Limit),
}

/// How choices violate a level, each in its own way.
struct Violations {
    /// The first of them.
    kept: Vec<Anomaly>,
    count: usize,
}

impl Violations {
    fn add(&mut self, more: Violations) {
        let room = CASES_MAX - self.kept.len();
        self.kept.extend(more.kept.into_iter().take(room));
        self.count += more.count;
    }

    /// As one anomaly. A single one shows the violation whatever was chosen; several do
    /// together, as far as they are cycles.
    fn told(self, history: &History) -> Vec<Anomaly> {
        if self.count == 1 {
            return self.kept;
        }
        let kind = self.kept[0].kind;
        let is_of_a_kind = self.kept.iter().all(|it| it.kind == kind);
        let cycle = |anomaly: Anomaly| match anomaly.evidence {
            Evidence::Cycle(cycle) => Some(naming::plain(history, cycle)),
            _ => None,
        };
        let cycles: Vec<Cycle> = self.kept.into_iter().filter_map(cycle).collect();
        if cycles.is_empty() {
            return Vec::new();
        }
        let (ways, seen) = (Vec::new(), Vec::new());
        let mut anomaly = naming::of_cases(Cases { cycles, count: self.count, ways, seen });
        if is_of_a_kind {
            anomaly.kind = kind;
        }
        vec![anomaly]
    }
}

struct Search<'a> {
    rule: &'a Rule,
    history: &'a History,
    limits: &'a Limits<'a>,
    work: usize,
}

impl Search<'_> {
    /// A choice may make a transaction count that was left out before, and what that
    /// one read may be wrong by itself.
    fn decide(&self, index: &Index) -> Decision {
        let found = found_by_reading(self.history, index);
        if let Some(anomaly) = found.into_iter().find(|it| it.kind.rules_out(self.rule.level)) {
            return Decision::Violated(anomaly);
        }
        let facts = Facts::new(self.history, index, self.limits);
        weak::decide(self.rule, &facts)
    }

    /// Tries all choices that extend `made`. Recursion is as deep as there are
    /// choices, and the work limit bounds both.
    fn from(&mut self, made: &mut Vec<Choice>) -> Tried {
        let Some(work) = self.work.checked_sub(self.history.op_count() + 1) else {
            return Tried::GaveUp;
        };
        self.work = work;
        self.limits.spend(indexing(self.history));
        let index = Index::choosing(self.history, self.rule.candidates, made);
        match self.decide(&index) {
            Decision::Violated(anomaly) => {
                return Tried::Violated(Violations { kept: vec![anomaly], count: 1 });
            }
            Decision::Limit(limit) => return Tried::Limit(limit),
            Decision::Satisfied(order) if index.several().is_empty() => {
                return Tried::Satisfied(order, made.clone());
            }
            Decision::Satisfied(_) => {}
        }
        let open = index.several()[0].clone();
        let read = index.read(open.read);
        let mut all = Violations { kept: Vec::new(), count: 0 };
        for &origin in &open.candidates {
            made.push(Choice { op: read.op, key: read.key, origin });
            let tried = self.from(made);
            made.pop();
            match tried {
                Tried::Violated(more) => all.add(more),
                other => return other,
            }
        }
        if open.complete { Tried::Violated(all) } else { Tried::GaveUp }
    }

    /// For every read the candidate nearest before it: by time where there are times, else
    /// in its own session, else the first.
    fn guess(&self, index: &Index) -> Vec<Choice> {
        let several = index.several().iter();
        let choices = several.map(|several| {
            let read = index.read(several.read);
            let origin = self.nearest(several, self.history.txn_of(read.op));
            Choice { op: read.op, key: read.key, origin }
        });
        choices.collect()
    }

    /// What comes of these choices, one for each read.
    fn with(&self, made: &[Choice]) -> Tried {
        self.limits.spend(indexing(self.history));
        let chosen = Index::choosing(self.history, self.rule.candidates, made);
        if !chosen.several().is_empty() {
            return Tried::GaveUp;
        }
        match self.decide(&chosen) {
            Decision::Satisfied(order) => Tried::Satisfied(order, made.to_vec()),
            Decision::Limit(limit) => Tried::Limit(limit),
            Decision::Violated(_) => Tried::GaveUp,
        }
    }

    fn nearest(&self, several: &SeveralOrigins, reader: TxnId) -> Origin {
        let history = self.history;
        let read_at = history.txn_interval(reader).completed;
        let rank = |origin: &Origin| match *origin {
            Origin::Txn(writer) => {
                let written_at = history.txn_interval(writer).completed;
                let own = history.session_of(writer) == history.session_of(reader);
                let timed = history.has_times() && written_at <= read_at;
                (timed, if timed { written_at } else { 0 }, own && writer < reader, writer.0)
            }
            _ => (false, 0, false, 0),
        };
        several.candidates.iter().copied().max_by_key(rank).expect("several candidates")
    }
}

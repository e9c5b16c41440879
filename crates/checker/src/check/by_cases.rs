//! Refutations by cases: what a history leaves open is taken in every way.
//!
//! Which transactions of unknown outcome count and which append added an element are decided
//! first, as [`Interpretations`] does, because they say which versions there are; then, one
//! after another, what reads of repeated values saw, until what was taken is refuted
//! whatever the others saw.

use crate::anomaly::found_by_reading;
use crate::check::Check;
use crate::check::certify::{reading, refutation};
use crate::check::interpretations::Interpretations;
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::{self, COMMIT_LEVELS, Options};
use crate::verdict::{Verdict, Violated};
use crate::weak::{self, Decision, Facts, RULES};
use isolde_certificate::{Case, Cases, Claim, Open, Proof, Refutation, Taken, Verifier};
use isolde_history::{Candidates, Choice, History, Index, OpId, OpKind, Origin, Outcome, TxnId};

/// Operations that may be looked at, in all cases together.
const WORK_MAX: usize = 1 << 18;
/// Cases that are tried.
const CASES_MAX: usize = 1 << 8;

/// A refutation and the level that it is about.
pub(crate) type Shown = (Level, Refutation);

/// Refutes a level that is violated, case by case.
pub(crate) fn refute(
    level: Level,
    (history, index): (&History, &Index),
    options: Options,
    limits: &Limits<'_>,
) -> Option<Shown> {
    let cases = CASES_MAX.min(WORK_MAX / history.op_count().max(1));
    let mut split = Split { level, options, limits, cases };
    let open = Interpretations::of(history, index)
        .map_or(Vec::new(), |interpretations| interpretations.open());
    // Who saw a transaction of unknown outcome says that it counts.
    let is_element = |open: &Open| matches!(open, Open::Element(_));
    let elements: Vec<Open> = open.iter().copied().filter(is_element).collect();
    let by_origins = elements.is_empty().then(|| split.origins(history, &mut Vec::new())).flatten();
    let mut in_ways = |open: &[Open]| {
        split.cases = cases;
        split.ways(history, open, &mut Way::default())
    };
    // So does who saw its element, which then needs no cases of its own.
    let by_elements = || (elements != open).then(|| in_ways(&elements)).flatten();
    by_origins.or_else(by_elements).or_else(|| in_ways(&open)).or_else(|| {
        let everything = Interpretations::of_everybody(history, index)?.open();
        (everything != open).then(|| in_ways(&everything)).flatten()
    })
}

/// What has been taken for true.
#[derive(Default)]
struct Way {
    outcomes: Vec<(TxnId, Outcome)>,
    /// Appends whose element nobody else saw.
    alone: Vec<OpId>,
}

impl Way {
    /// Transactions that do not count: nobody who counts saw what they wrote.
    fn never_happened(&self) -> Vec<TxnId> {
        let aborted = self.outcomes.iter().filter(|taken| taken.1 == Outcome::Aborted);
        aborted.map(|taken| taken.0).collect()
    }
}

struct Split<'a> {
    level: Level,
    options: Options,
    limits: &'a Limits<'a>,
    /// How many may still be tried.
    cases: usize,
}

impl Split<'_> {
    /// Takes the first of what is open in every way. As deep as that is long, and the
    /// limit of cases bounds both.
    fn ways(&mut self, history: &History, open: &[Open], way: &mut Way) -> Option<Shown> {
        let Some((&first, rest)) = open.split_first() else {
            let taken = history.taken_as(&way.outcomes, &way.alone);
            // Levels that ignore aborted writes would ignore who saw them.
            let shown = self.one_way(&taken);
            return shown
                .or_else(|| self.one_way(&taken.without_effects_of(&way.never_happened())));
        };
        let mut cases = Vec::new();
        match first {
            Open::Outcome(txn) => {
                let outcomes =
                    [(Taken::Counts, Outcome::Committed), (Taken::CountsNot, Outcome::Aborted)];
                for (taken, outcome) in outcomes {
                    way.outcomes.push((txn, outcome));
                    let shown = self.ways(history, rest, way);
                    way.outcomes.pop();
                    cases.push(case(taken, shown?));
                }
            }
            Open::Element(append) => {
                let appends = same_appends(history, append);
                for &taken in &appends {
                    let before = way.alone.len();
                    way.alone.extend(appends.iter().filter(|&&other| other != taken));
                    let shown = self.ways(history, rest, way);
                    way.alone.truncate(before);
                    cases.push(case(Taken::Append(taken), shown?));
                }
            }
            Open::Origin { .. } => return None,
        }
        Some((self.level, Refutation::Cases(Cases { open: first, cases })))
    }

    fn one_way(&mut self, history: &History) -> Option<Shown> {
        self.cases = self.cases.checked_sub(1)?;
        let index = Index::new(history);
        let mut check = Check::new(history, &index, self.limits).with_options(self.options);
        if let Verdict::Violated(violated) = check.in_one_way().decide(self.level)
            && let Ok((at, Proof::Refutation(shown))) = check.refutation(self.level, &violated)
        {
            let proof = Proof::Refutation(shown.clone());
            let name = at.name().to_string();
            let claim = Claim { shown_at: name.clone(), levels: vec![name], proof };
            if Verifier::new(history).check(&claim).is_ok() {
                return Some((at, shown));
            }
        }
        self.origins(history, &mut Vec::new())
    }

    /// Takes what is shown whatever the open reads saw, or splits the first of these.
    fn origins(&mut self, history: &History, made: &mut Vec<Choice>) -> Option<Shown> {
        self.cases = self.cases.checked_sub(1)?;
        let rule = RULES.iter().find(|rule| rule.level == self.level);
        let candidates = rule.map_or(Candidates::Final, |rule| rule.candidates);
        let index = Index::choosing(history, candidates, made);
        if let Some(shown) = self.shown(history, &index) {
            return Some(shown);
        }
        let open = index.several().first().filter(|open| open.complete)?;
        let read = index.read(open.read);
        if history.op(read.op).kind == OpKind::ReadList {
            return None;
        }
        let mut cases = Vec::new();
        for &origin in &open.candidates {
            let taken = match origin {
                Origin::Initial => Taken::Writer(None),
                Origin::Txn(writer) => Taken::Writer(Some(writer)),
                Origin::Nobody => Taken::Nowhere,
                Origin::Several => return None,
            };
            made.push(Choice { op: read.op, key: read.key, origin });
            let shown = self.origins(history, made);
            made.pop();
            cases.push(case(taken, shown?));
        }
        let open = Open::Origin { read: read.op, key: read.key };
        Some((self.level, Refutation::Cases(Cases { open, cases })))
    }

    fn shown(&self, history: &History, index: &Index) -> Option<Shown> {
        let found = found_by_reading(history, index);
        if let Some(anomaly) = found.iter().find(|anomaly| anomaly.kind.rules_out(self.level)) {
            return reading(self.level, anomaly);
        }
        let rule = RULES.iter().find(|rule| rule.level == self.level);
        let violated = if let Some(rule) = rule {
            match weak::decide(rule, &Facts::new(history, index, self.limits)) {
                Decision::Violated(anomaly) => Violated::by(vec![anomaly]),
                _ => return None,
            }
        } else if COMMIT_LEVELS.contains(&self.level) {
            let facts = (history, index);
            match strong::decide_commits(self.level, facts, self.options, self.limits).verdict {
                Verdict::Violated(violated) => violated,
                _ => return None,
            }
        } else {
            return None;
        };
        match refutation(history, self.level, &violated) {
            Ok((at, Proof::Refutation(shown))) => Some((at, shown)),
            _ => None,
        }
    }
}

fn case(taken: Taken, (at, refutation): Shown) -> Case {
    Case { shown_at: at.name().into(), taken, refutation }
}

/// All appends of the same element to the same key.
fn same_appends(history: &History, append: OpId) -> Vec<OpId> {
    let element = history.op(append);
    (0..history.op_count() as u32).map(OpId).filter(|&op| history.op(op) == element).collect()
}

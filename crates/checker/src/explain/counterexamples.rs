//! Counterexamples of all violated levels: each violation is explained once, however many levels
//! have it.

use super::{Explanation, explain, in_depth, with_conflicts};
use crate::anomaly::Anomaly;
use crate::level::Level;
use crate::limits::{Limits, Stage};
use crate::strong::Options;
use crate::verdict::{Verdict, Violated};
use isolde_history::{History, Index};

/// At most so many counterexamples are made for a level.
pub const COUNTEREXAMPLES_MAX: usize = 10;

/// What shows that a level is violated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexamples {
    /// The level.
    pub level: Level,
    /// The first is as small as it could be made, the others are as they were found.
    pub all: Vec<Counterexample>,
    /// Whether nothing of the first can be left out.
    pub is_minimal: bool,
    /// Whether a limit ended the search for a smaller one, or for one at all.
    pub is_cut_short: bool,
}

/// An anomaly of a history, and what it means for levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// What it is.
    pub anomaly: Anomaly,
    /// The levels that it rules out, from weak to strong.
    pub rules_out: Vec<Level>,
}

/// What shows the violations among these verdicts, as briefly as it can be said within the
/// limits: where they are reached, an anomaly stays as it was found.
///
/// `turn` is called before each level with the part of the time that is left which it may use:
/// one in so many. `stop` of the limits has to keep to that, if there is a limit of time.
pub fn counterexamples<'a>(
    (history, index): (&History, &Index),
    verdicts: impl IntoIterator<Item = (Level, &'a Verdict)>,
    options: Options,
    limits: &Limits<'_>,
    turn: &dyn Fn(u32),
) -> Vec<Counterexamples> {
    let mut explainer = Explainer { whole: (history, index), options, limits, known: Vec::new() };
    let violated: Vec<(Level, &Violated)> = verdicts
        .into_iter()
        .filter_map(|(level, verdict)| match verdict {
            Verdict::Violated(violated) => Some((level, violated)),
            _ => None,
        })
        .collect();
    let left = (1..=violated.len() as u32).rev();
    let explained = left.zip(violated).map(|(left, (level, violated))| {
        turn(left);
        (limits.observe)(Stage::Explain);
        explainer.counterexamples(level, violated)
    });
    let explained = explained.collect();
    turn(1);
    explained
}

struct Explainer<'a> {
    whole: (&'a History, &'a Index),
    options: Options,
    limits: &'a Limits<'a>,
    known: Vec<(Option<Anomaly>, Option<Explanation>)>,
}

impl Explainer<'_> {
    fn counterexamples(&mut self, level: Level, violated: &Violated) -> Counterexamples {
        let (first, others) = match violated.anomalies.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, [].as_slice()),
        };
        let mut also: Vec<Level> = level.stronger_than();
        also.push(level);
        also.sort_unstable();
        let explanation = self.explanation(level, violated);
        let is_minimal = explanation.as_ref().is_some_and(|it| it.is_minimal);
        let is_cut_short = !is_minimal && (self.limits.stop)();
        let first = match (explanation, first) {
            (Some(it), _) => Counterexample { anomaly: it.anomaly, rules_out: it.rules_out },
            (None, Some(first)) => Counterexample {
                anomaly: self.as_found(level, first, violated),
                rules_out: also.clone(),
            },
            (None, None) => {
                return Counterexamples { level, all: Vec::new(), is_minimal, is_cut_short };
            }
        };
        let others = others
            .iter()
            .take(COUNTEREXAMPLES_MAX - 1)
            .map(|anomaly| Counterexample { anomaly: anomaly.clone(), rules_out: also.clone() });
        let all = std::iter::once(first).chain(others).collect();
        Counterexamples { level, all, is_minimal, is_cut_short }
    }

    /// The explanation of a level, or that of another which rules it out too: what rules out a
    /// weaker level says more than what this level alone forbids.
    fn explanation(&mut self, level: Level, violated: &Violated) -> Option<Explanation> {
        let first = violated.anomalies.first();
        let known = self.known.iter().find(|(anomaly, explanation)| match explanation {
            Some(it) => it.holds_for(self.whole.0, level),
            None => first.is_some() && anomaly.as_ref() == first,
        });
        if let Some((_, explanation)) = known {
            return explanation.clone();
        }
        if first.is_none() && violated.settled_by.is_some() {
            return None;
        }
        let found = explain(self.whole, level, violated, self.options, self.limits);
        self.known.push((first.cloned(), found.clone()));
        found
    }

    /// An anomaly with all that the proof of its violation knows.
    fn as_found(&self, level: Level, anomaly: &Anomaly, violated: &Violated) -> Anomaly {
        let anomaly = match &violated.proof {
            Some(proof) => in_depth(anomaly.clone(), proof),
            None => anomaly.clone(),
        };
        with_conflicts(self.whole, violated.settled_by.unwrap_or(level), anomaly)
    }
}

//! A second opinion: what the complete checker says of the history around a violation.

use super::window::Around;
use isolde::lint::lint;
use isolde::{Check, Level, Limits, Verdict, applicable_levels};
use isolde_history::{History, Index};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How long deciding one part may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Memory for it.
const MEMORY_MAX: usize = 1 << 28;

/// Mistakes of a recording that no part of what was watched may have: it would be evidence of
/// nothing.
const REFUTING: [&str; 3] =
    ["completed-before-invoked", "ends-before-its-operations", "read-before-it-was-sent"];

/// What the checker decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) txns: usize,
    /// The rule by which the part contradicts itself: then no level is decided.
    pub(super) refuted_by: Option<&'static str>,
    /// Violated levels that no other violated level is weaker than, with an anomaly.
    pub(super) violated: Vec<(Level, Option<&'static str>)>,
    /// Satisfied levels that imply all others that are.
    pub(super) satisfied: Vec<Level>,
    pub(super) unknown: Vec<Level>,
}

/// Decides all levels that the part can tell something about.
pub(super) fn opinion(around: &Around) -> Opinion {
    let history = &around.history;
    let index = Index::new(history);
    let deadline = Instant::now() + TIME_MAX;
    let stop = || Instant::now() >= deadline;
    let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_MAX), ..Limits::NONE };
    let mut found = Opinion { txns: history.txn_count(), ..Opinion::default() };
    let mistakes = lint(history, &index);
    found.refuted_by =
        mistakes.iter().map(|mistake| mistake.rule).find(|rule| REFUTING.contains(rule));
    if found.refuted_by.is_some() {
        return found;
    }
    let mut check = Check::new(history, &index, &limits);
    let levels = levels(history);
    let verdicts: Vec<(Level, Verdict)> =
        levels.iter().rev().map(|&level| (level, check.decide(level))).collect();
    let of = |name: &str| -> Vec<Level> {
        let those = verdicts.iter().filter(|(_, verdict)| verdict.name() == name);
        those.map(|(level, _)| *level).collect()
    };
    let (satisfied, violated) = (of("satisfied"), of("violated"));
    for (level, verdict) in &verdicts {
        match verdict {
            Verdict::Violated(violation) => {
                if !level.weaker_than().iter().any(|weaker| violated.contains(weaker)) {
                    let anomaly = violation.anomalies.first().map(|found| found.kind.name());
                    found.violated.push((*level, anomaly));
                }
            }
            Verdict::Satisfied(_) => {
                let is_implied = |other: &Level| other.weaker_than().contains(level);
                if !satisfied.iter().any(is_implied) {
                    found.satisfied.push(*level);
                }
            }
            Verdict::Unknown(_) => found.unknown.push(*level),
        }
    }
    if let Some(plain) = &around.plain {
        found.name_as_in(plain, &limits);
    }
    found
}

/// Levels of transactions. Whether linearizability applies depends on what was cut off; strict
/// serializability says the same of single operations.
pub(super) fn levels(history: &History) -> Vec<Level> {
    let mut levels = applicable_levels(history);
    levels.retain(|&level| level != Level::Linearizable);
    levels
}

impl Opinion {
    /// What violates a level, where writes alone do not say, as another history calls it.
    fn name_as_in(&mut self, plain: &History, limits: &Limits<'_>) {
        let index = Index::new(plain);
        let mut check = Check::new(plain, &index, limits);
        let is_unnamed =
            |anomaly: Option<&str>| anomaly.is_none_or(|name| name == "no-version-order");
        for (level, anomaly) in &mut self.violated {
            if is_unnamed(*anomaly)
                && let Verdict::Violated(violation) = check.decide(*level)
            {
                let plainer = violation.anomalies.first().map(|found| found.kind.name());
                *anomaly = plainer.or(*anomaly);
            }
        }
    }

    /// In one or two sentences.
    pub(super) fn to_text(&self) -> String {
        let names = |levels: &[Level]| {
            let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
            names.join(", ")
        };
        let mut text = format!("second opinion on the {} transactions around it: ", self.txns);
        if let Some(rule) = self.refuted_by {
            write!(text, "none, because they contradict themselves ({rule}): see isolde lint")
                .expect("a string grows");
            return text;
        }
        if self.violated.is_empty() {
            text.push_str("no level is violated");
            if self.unknown.is_empty() {
                text.push_str(
                    " (levels know when a transaction began and ended, the mechanisms also when \
                     each of its operations ran)",
                );
            }
        } else {
            let each: Vec<String> = (self.violated.iter())
                .map(|(level, anomaly)| match anomaly {
                    Some(anomaly) => format!("{} ({anomaly})", level.name()),
                    None => level.name().to_owned(),
                })
                .collect();
            write!(text, "violated: {}", each.join(", ")).expect("a string grows");
        }
        if !self.satisfied.is_empty() {
            write!(text, "; satisfied: {}", names(&self.satisfied)).expect("a string grows");
        }
        if !self.unknown.is_empty() {
            write!(text, "; not decided: {}", names(&self.unknown)).expect("a string grows");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(history: History) -> String {
        opinion(&Around { history, plain: None }).to_text()
    }

    #[test]
    fn what_contradicts_itself_is_no_evidence() {
        let history = isolde_history::format::parse_text(
            "A@1..2: w(x,1)\nB@3..4: r(x,1) r(y,1)\nC@5..6: w(y,1)\n",
        );
        assert_eq!(
            told(history.expect("a history")),
            "second opinion on the 3 transactions around it: none, because they contradict \
             themselves (read-before-it-was-sent): see isolde lint"
        );
    }

    #[test]
    fn the_weakest_violated_and_the_strongest_satisfied_levels_are_told() {
        let history =
            isolde_history::format::parse_text("A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\n");
        let told = told(history.expect("a history"));
        assert_eq!(
            told,
            "second opinion on the 2 transactions around it: violated: repeatable-read (write-skew); \
             satisfied: session-snapshot-isolation"
        );
    }
}

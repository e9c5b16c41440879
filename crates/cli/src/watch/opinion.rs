//! A second opinion: what the complete checker says of the history around a violation.

use isolde::{Check, Level, Limits, Verdict, applicable_levels};
use isolde_history::{History, Index};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How long deciding one part may take.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Memory for it.
const MEMORY_MAX: usize = 1 << 28;

/// What the checker decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Opinion {
    pub(super) txns: usize,
    /// Violated levels that no other violated level is weaker than, with an anomaly.
    pub(super) violated: Vec<(Level, Option<&'static str>)>,
    /// Satisfied levels that imply all others that are.
    pub(super) satisfied: Vec<Level>,
    pub(super) unknown: Vec<Level>,
}

/// Decides all levels that the part can tell something about.
pub(super) fn opinion(history: &History) -> Opinion {
    let index = Index::new(history);
    let deadline = Instant::now() + TIME_MAX;
    let stop = || Instant::now() >= deadline;
    let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_MAX), ..Limits::NONE };
    let mut check = Check::new(history, &index, &limits);
    let levels = applicable_levels(history);
    let mut found = Opinion { txns: history.txn_count(), ..Opinion::default() };
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
    found
}

impl Opinion {
    /// In one or two sentences.
    pub(super) fn to_text(&self) -> String {
        let names = |levels: &[Level]| {
            let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
            names.join(", ")
        };
        let mut text = format!("second opinion on the {} transactions around it: ", self.txns);
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

    #[test]
    fn the_weakest_violated_and_the_strongest_satisfied_levels_are_told() {
        let history =
            isolde_history::format::parse_text("A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)\n");
        let told = opinion(&history.expect("a history")).to_text();
        assert_eq!(
            told,
            "second opinion on the 2 transactions around it: violated: repeatable-read (write-skew); \
             satisfied: session-snapshot-isolation"
        );
    }
}

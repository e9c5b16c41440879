//! The different violations of a report: what several levels share is told once.

use crate::scenario::Scenario;
use crate::{AnomalyReport, Report, argument};

/// One violation and the levels that it refutes.
pub(crate) struct Counterexample<'a> {
    /// Its everyday name, with that of the literature.
    pub(crate) title: String,
    /// The levels it was reported for, from weak to strong.
    pub(crate) levels: Vec<&'a str>,
    /// Why, one sentence a line.
    pub(crate) explanation: &'a str,
    /// The same as data.
    pub(crate) scenario: &'a Scenario,
}

impl Report {
    /// Its different violations, those of weak levels first.
    pub(crate) fn counterexamples(&self) -> Vec<Counterexample<'_>> {
        let all = self
            .levels
            .iter()
            .flat_map(|level| level.anomalies.iter().map(|anomaly| (level.level, anomaly)));
        let mut found: Vec<(&AnomalyReport, Vec<&str>)> = Vec::new();
        for (level, anomaly) in all {
            let same = |other: &AnomalyReport| {
                other.name == anomaly.name && other.explanation == anomaly.explanation
            };
            match found.iter_mut().find(|(other, _)| same(other)) {
                Some((_, levels)) => levels.push(level),
                None => found.push((anomaly, vec![level])),
            }
        }
        let told = found.into_iter().map(|(anomaly, levels)| Counterexample {
            title: title(&anomaly.scenario, anomaly.name),
            levels,
            explanation: &anomaly.explanation,
            scenario: &anomaly.scenario,
        });
        told.collect()
    }
}

/// `write skew (G2-item)`, as everything that people read calls it; reports of older versions
/// may have no names but `name`.
pub(crate) fn title(scenario: &Scenario, name: &str) -> String {
    if scenario.names.everyday.is_empty() { name.to_owned() } else { argument::title(scenario) }
}

//! The report as one HTML file that needs nothing else.
//!
//! Pictures are drawn here; the script makes them answer, and draws the timeline. Everything that
//! comes from a history is either escaped text in the markup or data in a block of JSON that the
//! script shows as text. The policy of the page lets no other script run and nothing be loaded.

mod columns;
pub(crate) mod digest;
mod lattice_picture;
mod layers;
mod packed_columns;
mod plots;

use crate::argument;
use crate::counterexample::{Counterexample, title};
use crate::escape::{json_in_html, xml};
use crate::scenario::Scenario;
use crate::{SCHEMA, replay, svg};
use columns::Columns;
use isolde::Level;
use isolde_history::{Datum, History, Index, SessionId, TxnId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

const TEMPLATE: &str = include_str!("../../web/page.html");
const STYLE: &str = include_str!("../../web/page.css");
/// The script's files, in the order of their use.
const SCRIPTS: &[&str] = &[
    include_str!("../../web/data.js"),
    include_str!("../../web/levels.js"),
    include_str!("../../web/counterexample.js"),
    include_str!("../../web/timeline.js"),
    include_str!("../../web/timeline_input.js"),
    include_str!("../../web/search.js"),
    include_str!("../../web/main.js"),
];

/// What a page is made of.
pub struct Page<'a> {
    /// The report as `isolde check --format json` prints it.
    pub report: &'a Value,
    /// The history that it is about, if it is at hand.
    pub history: Option<(&'a History, &'a Index)>,
    /// How the history was recorded, as `isolde run` notes it.
    pub run: Option<&'a Value>,
}

/// Refuses JSON that is no report, or one of another version, in words for the user.
pub fn refuse_other_schema(report: &Value) -> Result<(), String> {
    let is_report = report.get("levels").is_some_and(Value::is_object)
        && report.get("file").is_some_and(Value::is_string);
    let made_by = report.get("version").and_then(Value::as_str).unwrap_or("another version");
    match report.get("schema").and_then(Value::as_u64) {
        Some(found) if found == u64::from(SCHEMA) && is_report => Ok(()),
        Some(found) if found != u64::from(SCHEMA) => Err(format!(
            "expected a report of schema {SCHEMA}, found schema {found}, written by isolde \
             {made_by}; check the history again with this one"
        )),
        _ => Err("expected a report as `isolde check --format json` prints it".to_owned()),
    }
}

impl Page<'_> {
    /// The page, or why the report cannot be shown.
    pub fn to_html(&self) -> Result<String, String> {
        refuse_other_schema(self.report)?;
        let read: ReadReport = serde_json::from_value(self.report.clone())
            .map_err(|error| format!("expected a report of schema {SCHEMA}, found: {error}"))?;
        let violations = read.violations();
        let data = self.data(&read, &violations);
        let json = serde_json::to_string(&data).expect("plain data");
        let script = script();
        let style = format!("{}{STYLE}", svg::STYLE);
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; \
             form-action 'none'",
            digest::source(&script),
            digest::source(&style)
        );
        let plots = self.history.map(|(history, _)| plots::draw(history)).unwrap_or_default();
        Ok(filled(&[
            ("policy", &policy),
            ("title", &xml(&read.file)),
            ("style", &style),
            ("lattice", &lattice_picture::draw(&read.verdicts())),
            ("graphs", &graphs(&violations)),
            ("plots", &plots),
            ("data", &json_in_html(&json)),
            ("script", &script),
        ]))
    }

    fn data(&self, read: &ReadReport, violations: &[Violation]) -> Data<'_> {
        let ids: Vec<Vec<Option<TxnId>>> = match self.history {
            Some((history, _)) => {
                let sessions = Sessions::new(history);
                violations.iter().map(|it| sessions.txns(&it.scenario)).collect()
            }
            None => violations.iter().map(|_| Vec::new()).collect(),
        };
        let mut involved: Vec<TxnId> = ids.iter().flatten().flatten().copied().collect();
        involved.sort_unstable();
        involved.dedup();
        let history = self.history.map(|(history, index)| Columns::new(history, index, &involved));
        let origin = self.history.map_or(0, |(history, _)| columns::origin(history));
        let place = |txn: TxnId| history.as_ref().and_then(|columns| columns.place(txn));
        let counterexamples = violations
            .iter()
            .zip(ids)
            .map(|(it, ids)| it.shown(ids.iter().map(|id| id.and_then(place)).collect()));
        let counterexamples = counterexamples.collect();
        Data {
            version: env!("CARGO_PKG_VERSION"),
            made_by: read.version.clone(),
            file: read.file.clone(),
            format: read.format.clone(),
            size: self.report["history"].clone(),
            levels: read.levels_shown(violations),
            strongest: read.strongest.clone(),
            weakest_violated: read.weakest_violated.clone(),
            notes: self.report["notes"].clone(),
            unlogged: self.report.get("unlogged").cloned(),
            serialization_order: self.report.get("serialization_order").cloned(),
            conflicts: self.report.get("conflicts").cloned(),
            remarks: read.remarks.iter().map(AnomalyRead::shown).collect(),
            without_counterexample: read.without_counterexample(violations),
            counterexamples,
            run: self.run,
            origin,
            history,
        }
    }
}

/// The template with these parts in their places; parts are not looked into.
fn filled(parts: &[(&str, &str)]) -> String {
    let mut pieces = TEMPLATE.split("{{");
    let mut out = pieces.next().unwrap_or("").to_owned();
    for piece in pieces {
        let (name, rest) = piece.split_once("}}").expect("a closed place of the template");
        let part = parts.iter().find(|part| part.0 == name).expect("a part for every place");
        out.push_str(part.1);
        out.push_str(rest);
    }
    out
}

fn script() -> String {
    format!("(function () {{\n'use strict';\n{}\n}})();\n", SCRIPTS.join("\n"))
}

/// All pictures; the script shows one at a time.
fn graphs(violations: &[Violation]) -> String {
    let mut out = String::new();
    for (number, violation) in violations.iter().enumerate() {
        for (case, (_, edges)) in svg::cycles(&violation.scenario).into_iter().enumerate() {
            let id = format!("g{number}-{case}");
            let picture = svg::inline(&violation.scenario, edges, &id);
            writeln!(out, "<div class=\"picture\" id=\"{id}\" hidden>{picture}</div>")
                .expect("a string grows");
        }
    }
    out
}

/// A report as it was read from JSON.
#[derive(Deserialize)]
struct ReadReport {
    version: String,
    file: String,
    format: String,
    levels: HashMap<String, LevelRead>,
    strongest: Vec<String>,
    weakest_violated: Vec<String>,
    remarks: Vec<AnomalyRead>,
}

#[derive(Deserialize)]
struct LevelRead {
    verdict: String,
    anomalies: Vec<AnomalyRead>,
    reason: Option<String>,
    without_given: Option<String>,
    seconds: f64,
}

#[derive(Deserialize)]
struct AnomalyRead {
    name: String,
    explanation: String,
    scenario: Scenario,
}

/// One violation and its levels.
struct Violation {
    title: String,
    levels: Vec<String>,
    explanation: String,
    scenario: Scenario,
}

impl ReadReport {
    /// The levels of the report, from weak to strong.
    fn ordered(&self) -> impl Iterator<Item = (Level, &LevelRead)> {
        Level::ALL.into_iter().filter_map(|level| Some((level, self.levels.get(level.name())?)))
    }

    fn verdicts(&self) -> Vec<(Level, &str)> {
        self.ordered().map(|(level, it)| (level, it.verdict.as_str())).collect()
    }

    /// The different violations, those of weak levels first.
    fn violations(&self) -> Vec<Violation> {
        let mut found: Vec<Violation> = Vec::new();
        for (level, it) in self.ordered() {
            for anomaly in &it.anomalies {
                let title = title(&anomaly.scenario, &anomaly.name);
                let same = found
                    .iter_mut()
                    .find(|it| it.title == title && it.explanation == anomaly.explanation);
                match same {
                    Some(same) => same.levels.push(level.name().to_owned()),
                    None => found.push(Violation {
                        title,
                        levels: vec![level.name().to_owned()],
                        explanation: anomaly.explanation.clone(),
                        scenario: anomaly.scenario.clone(),
                    }),
                }
            }
        }
        found
    }

    /// What is said if there is no counterexample: a level may be violated all the same.
    fn without_counterexample(&self, violations: &[Violation]) -> Option<String> {
        if !violations.is_empty() {
            return None;
        }
        let violated = self.ordered().find(|(_, it)| it.verdict == "violated");
        Some(match violated {
            None => "No violation was found, so there is none to explain.".to_owned(),
            Some((level, it)) => format!(
                "{} is violated, but no few transactions show it: {}.",
                level.row().title,
                it.reason.as_deref().unwrap_or("the report does not say why")
            ),
        })
    }

    fn levels_shown(&self, violations: &[Violation]) -> Vec<LevelShown> {
        let shown = |(level, it): (Level, &LevelRead)| LevelShown {
            name: level.name(),
            title: level.row().title,
            summary: level.row().summary,
            verdict: it.verdict.clone(),
            reason: it.reason.clone(),
            without_given: it.without_given.clone(),
            seconds: it.seconds,
            counterexamples: (violations.iter().enumerate())
                .filter(|(_, violation)| violation.levels.iter().any(|it| it == level.name()))
                .map(|(place, _)| place)
                .collect(),
        };
        self.ordered().map(shown).collect()
    }
}

impl AnomalyRead {
    fn shown(&self) -> RemarkShown {
        RemarkShown {
            title: title(&self.scenario, &self.name),
            explanation: self.explanation.clone(),
        }
    }
}

impl Violation {
    fn shown(&self, places: Vec<Option<usize>>) -> CounterexampleShown {
        let told = Counterexample {
            title: self.title.clone(),
            levels: self.levels.iter().map(String::as_str).collect(),
            explanation: &self.explanation,
            scenario: &self.scenario,
        };
        CounterexampleShown {
            title: self.title.clone(),
            levels: self.levels.clone(),
            explanation: self.explanation.clone(),
            argument: argument::full(&self.scenario).join("\n"),
            replay: replay::of(&told),
            places,
            scenario: self.scenario.clone(),
        }
    }
}

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    version: &'static str,
    made_by: String,
    file: String,
    format: String,
    size: Value,
    levels: Vec<LevelShown>,
    strongest: Vec<String>,
    weakest_violated: Vec<String>,
    notes: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlogged: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    serialization_order: Option<Value>,
    /// Absent in reports of older versions, and where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    conflicts: Option<Value>,
    remarks: Vec<RemarkShown>,
    counterexamples: Vec<CounterexampleShown>,
    /// What stands in their place if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_counterexample: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a Value>,
    /// The recorded time that the timeline calls zero.
    origin: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Columns>,
}

#[derive(Serialize)]
struct LevelShown {
    name: &'static str,
    title: &'static str,
    summary: &'static str,
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    without_given: Option<String>,
    seconds: f64,
    counterexamples: Vec<usize>,
}

#[derive(Serialize)]
struct RemarkShown {
    title: String,
    explanation: String,
}

#[derive(Serialize)]
struct CounterexampleShown {
    title: String,
    levels: Vec<String>,
    explanation: String,
    /// The same down to operations, as `isolde explain` tells it.
    argument: String,
    replay: String,
    /// Where the scenario's transactions stand in the columns of the history.
    places: Vec<Option<usize>>,
    scenario: Scenario,
}

/// Sessions by their labels, to find the transactions of a scenario again.
struct Sessions<'a> {
    history: &'a History,
    by_label: HashMap<String, Vec<SessionId>>,
}

impl<'a> Sessions<'a> {
    fn new(history: &'a History) -> Sessions<'a> {
        let mut by_label: HashMap<String, Vec<SessionId>> = HashMap::new();
        for session in history.sessions() {
            let label: Datum<'_> = history.datum(history.session_label(session));
            by_label.entry(label.to_string()).or_default().push(session);
        }
        Sessions { history, by_label }
    }

    fn txns(&self, scenario: &Scenario) -> Vec<Option<TxnId>> {
        let found = scenario.transactions.iter().map(|it| {
            let place = u32::try_from(it.place_in_session.checked_sub(1)?).ok()?;
            let sessions = self.by_label.get(&it.session)?;
            let ids = sessions.iter().filter_map(|&session| {
                let range = self.history.session_range(session);
                range.start.checked_add(place).filter(|txn| range.contains(txn)).map(TxnId)
            });
            let mut named = ids.filter(|&txn| self.history.readable_name(txn) == it.name);
            named.next()
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decided, explained};
    use isolde::{Verdict, Violated};
    use isolde_history::format::parse_text;

    /// The page of a history of which a level is decided so.
    fn page(verdict: Verdict) -> String {
        let history = parse_text("A: w(x,1)\nB: r(x,1)").expect("a history");
        let index = Index::new(&history);
        // A violation of a weaker level that is not in the report has nothing to show here.
        let decided: [Decided; 1] = [(Level::Serializable, verdict, 0.0)];
        let report = explained((&history, &index), ("x.txt", "text"), &decided, &[]);
        let report = serde_json::to_value(&report).expect("plain data");
        Page { report: &report, history: None, run: None }.to_html().expect("a page")
    }

    #[test]
    fn a_violation_without_a_counterexample_is_not_denied() {
        let settled_by = Some(Level::Causal);
        let violated = Violated { settled_by, ..Violated::by(Vec::new()) };
        let told = page(Verdict::Violated(violated));
        assert!(told.contains(" is violated, but no few"), "{told}");
        assert!(told.contains("transactions show it: causal is violated."), "{told}");
        let denied = "No violation was found, so there is none to explain.";
        assert!(!told.contains(denied), "{told}");
        assert!(page(Verdict::Satisfied(isolde::Satisfied::Definition)).contains(denied));
    }
}

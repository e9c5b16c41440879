//! What Elle leaves in a directory, for pipelines that look for it: a text for each kind of
//! anomaly, and `results.edn`.

use crate::Report;
use crate::counterexample::Counterexample;
use crate::escape::{edn, visible};
use crate::scenario::{Scenario, ScenarioEdge};
use crate::svg::cycles;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The files, by their names: `G2-item.txt`, `results.edn`.
pub fn to_elle_directory(report: &Report) -> Vec<(String, String)> {
    let counterexamples = report.counterexamples();
    let mut by_name: BTreeMap<String, Vec<&Counterexample<'_>>> = BTreeMap::new();
    for counterexample in &counterexamples {
        by_name.entry(name(counterexample)).or_default().push(counterexample);
    }
    let mut files: Vec<(String, String)> = Vec::new();
    for (name, all) in &by_name {
        let texts: Vec<String> = all.iter().map(|it| text(it)).collect();
        files.push((format!("{name}.txt"), texts.join("\n\n\n")));
    }
    files.push(("results.edn".to_owned(), results(report, &by_name)));
    files
}

/// What Elle calls a cycle that must exist in any case, by the weakest level without it.
const CYCLE_EXISTS: &[(&str, &str)] = &[
    ("read-uncommitted", "PL-1"),
    ("adya-read-committed", "PL-2"),
    ("repeatable-read", "PL-2.99"),
    ("snapshot-isolation", "PL-SI"),
    ("session-snapshot-isolation", "strong-session-snapshot-isolation"),
    ("strong-snapshot-isolation", "strong-snapshot-isolation"),
    ("serializable", "PL-3"),
    ("session-serializable", "strong-session-serializable"),
    ("strict-serializable", "PL-SS"),
];

/// Elle's name of an anomaly. What Elle knows nothing of, such as a value that nobody wrote,
/// has ours. Always fit for a file.
fn name(counterexample: &Counterexample<'_>) -> String {
    let names = &counterexample.scenario.names;
    let row = |level: &&str| CYCLE_EXISTS.iter().find(|row| row.0 == *level);
    let exists = counterexample.levels.iter().find_map(row).map(|row| row.1);
    let known = match (&names.elle, exists) {
        (Some(elle), _) => elle.clone(),
        (None, Some(level)) if !counterexample.scenario.cases.is_empty() => {
            format!("{level}-cycle-exists")
        }
        _ => names.name.clone(),
    };
    let fit = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
    let name: String = known.chars().filter(|&character| fit(character)).collect();
    if name.is_empty() { "anomaly".to_owned() } else { name }
}

fn text(counterexample: &Counterexample<'_>) -> String {
    let scenario = counterexample.scenario;
    let mut out = String::from("Let:\n");
    for txn in scenario.transactions.iter().filter(|txn| !txn.session.is_empty()) {
        let ops: Vec<String> = txn.operations.iter().map(crate::drawing::operation).collect();
        let line = format!("  {} = {{{}}} ({})", txn.name, ops.join(", "), txn.place);
        writeln!(out, "{}", visible(&line.replace('\n', " "))).expect("a string grows");
    }
    if scenario.edges.is_empty() && scenario.cases.is_empty() {
        writeln!(out, "\nThen:\n  - {}", visible(&counterexample.explanation.replace('\n', "; ")))
            .expect("a string grows");
    }
    for (assumption, edges) in cycles(scenario) {
        match assumption {
            "" if edges.is_empty() => {}
            "" => out.push_str("\nThen:\n"),
            assumption => {
                writeln!(out, "\nIf {}, then:", visible(assumption)).expect("a string grows");
            }
        }
        for (place, edge) in edges.iter().enumerate() {
            step(&mut out, scenario, edge, place + 1 == edges.len());
        }
    }
    out
}

fn step(out: &mut String, scenario: &Scenario, edge: &ScenarioEdge, is_last: bool) {
    let name = |txn: usize| scenario.transactions.get(txn).map_or("?", |it| it.name.as_str());
    let (lead, end) = if is_last { ("However, ", ": a contradiction!") } else { ("", ".") };
    let because = edge.explanation.replace('\n', "; ");
    let line = format!("  - {lead}{} < {}, because {because}{end}", name(edge.from), name(edge.to));
    writeln!(out, "{}", visible(&line)).expect("a string grows");
}

fn results(report: &Report, by_name: &BTreeMap<String, Vec<&Counterexample<'_>>>) -> String {
    let unknown = report.levels.iter().any(|level| level.verdict == "unknown");
    let valid = match (by_name.is_empty(), unknown) {
        (false, _) => "false",
        (true, true) => ":unknown",
        (true, false) => "true",
    };
    let types: Vec<String> = by_name.keys().map(|name| format!(":{name}")).collect();
    let mut out =
        format!("{{:valid? {valid}\n :anomaly-types [{}]\n :anomalies {{", types.join(" "));
    for (name, all) in by_name {
        write!(out, ":{name} [").expect("a string grows");
        for it in all {
            let scenario = it.scenario;
            let names: Vec<String> =
                scenario.transactions.iter().map(|txn| edn(&txn.name)).collect();
            write!(
                out,
                "{{:transactions [{}] :levels [{}] :explanation {}}} ",
                names.join(" "),
                it.levels.iter().map(|level| format!(":{level}")).collect::<Vec<_>>().join(" "),
                edn(it.explanation)
            )
            .expect("a string grows");
        }
        out.truncate(out.trim_end().len());
        out.push_str("]\n             ");
    }
    out.truncate(out.trim_end().len());
    let keywords =
        |names: &[&str]| names.iter().map(|name| format!(":{name}")).collect::<Vec<_>>().join(" ");
    let violated: Vec<&str> = (report.levels.iter())
        .filter(|level| level.verdict == "violated")
        .map(|level| level.level)
        .collect();
    let also: Vec<&str> =
        violated.into_iter().filter(|level| !report.weakest_violated.contains(level)).collect();
    write!(
        out,
        "}}\n :not #{{{}}}\n :also-not #{{{}}}}}\n",
        keywords(&report.weakest_violated),
        keywords(&also)
    )
    .expect("a string grows");
    out
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped test must be seen")]
mod tests {
    use super::CYCLE_EXISTS;
    use crate::names::NAMES;

    const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/elle_model.json");

    #[test]
    fn names_of_files_are_anomalies_of_elle() {
        let Ok(model) = std::fs::read_to_string(MODEL) else {
            println!("skipped: no ../shared/elle_model.json");
            return;
        };
        let model: serde_json::Value = serde_json::from_str(&model).expect("JSON");
        let known = model["anomaly_weakest_not"].as_object().expect("anomalies");
        let exists = CYCLE_EXISTS.iter().map(|row| format!("{}-cycle-exists", row.1));
        for name in NAMES.iter().filter_map(|row| row.elle.map(str::to_owned)).chain(exists) {
            assert!(known.contains_key(&name), "{name}");
        }
    }
}

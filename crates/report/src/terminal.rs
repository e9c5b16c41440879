//! The report as text for a terminal, meaningful without colour.

use crate::argument;
use crate::headline::headline;
use crate::prose::safe;
use crate::reasons::SharedReasons;
use crate::unlogged::UNLOGGED_ADVICE;
use crate::{
    AnomalyReport, ConflictReport, GivenOrderReport, LevelReport, Report, Scenario,
    TimestampsReport,
};
use std::fmt::Write;

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The verdicts alone.
    Verdicts,
    /// Verdicts and explanations. Levels whose verdict follows from that on another one share a
    /// line.
    Full,
    /// The same, with a line for each level.
    Every,
}

/// The report as text. `gate` is a command that would fail if what holds now
/// stopped holding, if the report is not itself a gate.
pub fn to_text(report: &Report, detail: Detail, gate: Option<&str>) -> String {
    if detail == Detail::Verdicts {
        return verdicts(report);
    }
    let mut out = String::new();
    line(&mut out, format_args!("{}: {}", safe(&report.file), headline(report)));
    head(&mut out, report);
    table(&mut out, report, detail);
    if let Some(unlogged) = &report.unlogged {
        line(&mut out, format_args!("\n  {}: {}", unlogged.meaning, unlogged.names()));
        line(&mut out, format_args!("  {UNLOGGED_ADVICE}"));
    }
    let mut shown: Vec<&LevelReport> = Vec::new();
    for level in &report.levels {
        show_violation(&mut out, report, level, &mut shown);
    }
    if let Some(given) = &report.timestamps {
        show_timestamps(&mut out, given, report);
    }
    if let Some(given) = &report.serialization_order {
        show_given(&mut out, given, report);
    }
    for conflict in &report.conflicts {
        show_conflict(&mut out, conflict, report);
    }
    if !report.remarks.is_empty() {
        line(&mut out, format_args!("\nalso seen:"));
        for anomaly in &report.remarks {
            show(&mut out, anomaly);
        }
    }
    for note in &report.notes {
        line(&mut out, format_args!("\nnote: {} ({})", note.meaning, note.name));
        if let Some(example) = &note.example {
            line(&mut out, format_args!("  such as: {}", safe(example)));
        }
        line(&mut out, format_args!("  to do: {}", note.advice));
    }
    out.push('\n');
    if !report.strongest.is_empty() {
        line(&mut out, format_args!("holds: {}", report.strongest.join(", ")));
    }
    if !report.weakest_violated.is_empty() {
        line(&mut out, format_args!("broken: {}", report.weakest_violated.join(", ")));
    }
    if !report.refuted.is_empty() {
        line(&mut out, format_args!("refuted: {}", report.refuted.join(", ")));
    }
    if let Some(gate) = gate {
        line(&mut out, format_args!("gate: {gate}"));
    }
    out
}

/// The levels from strong to weak. Those whose verdict follows from that on another one share a
/// line, unless every level is to have its own.
fn table(out: &mut String, report: &Report, detail: Detail) {
    let shared = SharedReasons::of(report);
    let folds = |level: &&LevelReport| {
        detail == Detail::Full && level.follows && level.without_given.is_none()
    };
    let own = || report.levels.iter().rev().filter(|level| !folds(level));
    let width = own().map(|level| level.level.len()).max().unwrap_or(0);
    for level in own() {
        let without = level.without_given.map(without_given);
        let reason = level.reason.as_deref().map(|reason| shared.told(reason));
        let reasons: Vec<&str> = reason.as_deref().into_iter().chain(without).collect();
        let reason = match reasons.as_slice() {
            [] => String::new(),
            reasons => format!("  ({})", reasons.join("; ")),
        };
        line(out, format_args!("  {:width$}  {}{reason}", level.level, level.verdict));
    }
    for verdict in ["violated", "satisfied"] {
        let folded = report.levels.iter().rev().filter(folds);
        let folded = folded.filter(|level| level.verdict == verdict).map(|level| level.level);
        let names: Vec<&str> = folded.collect();
        if !names.is_empty() {
            line(out, format_args!("  so {verdict}: {}", names.join(", ")));
        }
    }
    shared.all().for_each(|reason| line(out, format_args!("\n  {reason}")));
}

/// The verdicts alone, one a line.
fn verdicts(report: &Report) -> String {
    let mut out = String::new();
    let file = safe(&report.file);
    for level in &report.levels {
        line(&mut out, format_args!("{file}\t{}\t{}", level.level, level.verdict));
    }
    if let Some(unlogged) = &report.unlogged {
        line(&mut out, format_args!("{file}\tassumed\t{}", unlogged.meaning));
    }
    for claim in &report.refuted {
        line(&mut out, format_args!("{file}\t{claim}\trefuted"));
    }
    out
}

fn head(out: &mut String, report: &Report) {
    let size = &report.history;
    let mut outcomes = format!("{} committed", size.committed);
    if size.aborted > 0 {
        let _ = write!(outcomes, ", {} aborted", size.aborted);
    }
    if size.unknown > 0 {
        let _ = write!(outcomes, ", {} unknown", size.unknown);
    }
    line(
        out,
        format_args!(
            "{} ({outcomes}) in {}, {} on {} ({})\n",
            counted(size.transactions, "transaction"),
            counted(size.sessions, "session"),
            counted(size.operations, "operation"),
            counted(size.keys, "key"),
            report.format
        ),
    );
    if !report.evidence.is_empty() {
        line(out, format_args!("judged with {}\n", report.evidence.join("; ")));
    }
}

/// So many of something.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The anomalies of a level. One settled by a weaker level that is shown itself is not
/// explained again, unless it has more to show; but every level that is named as broken
/// has a section, or says which one shows it.
fn show_violation<'a>(
    out: &mut String,
    report: &Report,
    level: &'a LevelReport,
    shown: &mut Vec<&'a LevelReport>,
) {
    let name = level.level;
    let settling = report.levels.iter().find(|other| Some(other.level) == level.settled_by);
    let settled = settling.is_some_and(|other| other.anomalies.len() == level.anomalies.len());
    let same = shown.iter().find(|other| other.anomalies == level.anomalies);
    let same = same.map(|other| other.level);
    if !settled && same.is_none() && !level.anomalies.is_empty() {
        line(out, format_args!("\nnot {name}:"));
        for anomaly in &level.anomalies {
            show(out, anomaly);
        }
        shown.push(level);
        return;
    }
    if !report.weakest_violated.contains(&name) {
        return;
    }
    match (same, &level.reason) {
        (Some(same), _) => line(out, format_args!("\nnot {name}: shown by not {same}, above")),
        (None, Some(reason)) => line(out, format_args!("\nnot {name}: {reason}")),
        (None, None) => {}
    }
}

/// What a level's verdict without given version orders means beside the one with them.
fn without_given(verdict: &str) -> &'static str {
    match verdict {
        "satisfied" => "only by what the database told: satisfied without it",
        "violated" => "without what the database told too",
        _ => "not decided without what the database told",
    }
}

/// Whether the claim of the database holds, and whether the level does all the same.
fn show_given(out: &mut String, given: &GivenOrderReport, report: &Report) {
    if given.explains {
        line(out, format_args!("\nthe serialization order that came with it explains every read"));
        return;
    }
    line(out, format_args!("\nthe serialization order that came with it does not explain it:"));
    for sentence in given.explanation.lines() {
        line(out, format_args!("  {sentence}"));
    }
    let serializable = report.levels.iter().find(|level| level.level == "serializable");
    match serializable.map(|level| level.verdict) {
        Some("satisfied") => {
            line(out, format_args!("  another order does: the claim is wrong, not the level"));
        }
        Some("violated") => line(out, format_args!("  no other order does either")),
        _ => {}
    }
}

/// Whether the timestamps hold, by the names of what does not, and whether the level does.
fn show_timestamps(out: &mut String, given: &TimestampsReport, report: &Report) {
    if given.explains {
        line(
            out,
            format_args!(
                "\nthe timestamps that came with it explain every read: snapshot isolation in sessions"
            ),
        );
        return;
    }
    line(out, format_args!("\nthe timestamps that came with it do not explain it:"));
    for failed in &given.failed {
        let mut sentences = failed.explanation.lines();
        let first = sentences.next().unwrap_or_default();
        line(
            out,
            format_args!(
                "  {}{first}",
                failed.name.map(|it| format!("{it}: ")).unwrap_or_default()
            ),
        );
        for sentence in sentences {
            line(out, format_args!("    {sentence}"));
        }
    }
    let level = report.levels.iter().find(|level| level.level == "session-snapshot-isolation");
    match level.map(|level| level.verdict) {
        Some("satisfied") => line(
            out,
            format_args!(
                "  session-snapshot-isolation holds all the same: the timestamps are wrong, not the level"
            ),
        ),
        Some("violated") => {
            line(
                out,
                format_args!(
                    "  session-snapshot-isolation is violated whatever the timestamps are"
                ),
            );
        }
        _ => {}
    }
}

/// Two sources that contradict each other, and whether a level is violated by either.
fn show_conflict(out: &mut String, conflict: &ConflictReport, report: &Report) {
    let [one, other] = conflict.between.map(source);
    line(out, format_args!("\n{one} and {other} contradict each other:"));
    for sentence in conflict.explanation.lines() {
        line(out, format_args!("  {sentence}"));
    }
    let violated = || report.levels.iter().filter(|level| level.verdict == "violated");
    let outright = violated().find(|level| level.without_given != Some("satisfied"));
    match (outright, violated().next()) {
        (Some(level), _) => {
            line(out, format_args!("  {} is violated whichever of them is right", level.level));
        }
        (None, Some(level)) => line(
            out,
            format_args!(
                "  {} is violated only by what the database told: it or one of them is wrong",
                level.level
            ),
        ),
        (None, None) => {
            line(
                out,
                format_args!("  no level is violated by what was seen: one of them is wrong"),
            );
        }
    }
}

/// A source of order in words.
fn source(name: &str) -> &str {
    match name {
        "timestamps" => "the timestamps",
        "version-order" => "the order of versions",
        "serialization-order" => "the serialization order",
        "snapshot" => "a told snapshot",
        _ => "what was read",
    }
}

fn show(out: &mut String, anomaly: &AnomalyReport) {
    line(out, format_args!("  {}", argument::title(&anomaly.scenario)));
    for sentence in anomaly.explanation.lines() {
        line(out, format_args!("    {sentence}"));
    }
    show_statements(out, &anomaly.scenario, "    ");
    if let Some(documented) = &anomaly.scenario.documented {
        line(out, format_args!("    documented: {documented}"));
    }
}

/// What asked for the operations of a proof, where the history tells.
fn show_statements(out: &mut String, scenario: &Scenario, indent: &str) {
    for (place, statement) in scenario.statements() {
        line(out, format_args!("{indent}{}: {}", safe(place), safe(statement)));
    }
}

/// Every violation as a whole argument: for each level that is named as broken, or for all. What
/// several levels have in common is told once, and the others refer to it.
pub fn to_explanations(report: &Report, which: Which) -> String {
    let mut out = String::new();
    let mut shown: Vec<(&AnomalyReport, &str)> = Vec::new();
    for level in report.levels.iter().filter(|level| level.verdict == "violated") {
        let is_wanted = which == Which::All || report.weakest_violated.contains(&level.level);
        if !is_wanted {
            continue;
        }
        if level.anomalies.is_empty() {
            let reason = level.reason.as_deref().unwrap_or("it is not known why");
            line(&mut out, format_args!("not {}: {reason}\n", level.level));
        }
        let wanted = if which == Which::Broken { 1 } else { level.anomalies.len() };
        let mut referred = None;
        let known = shown.len();
        for anomaly in level.anomalies.iter().take(wanted) {
            if let Some(same) = shown.iter().find(|other| is_same(other.0, anomaly)) {
                referred = referred.or(Some(same.1));
                continue;
            }
            shown.push((anomaly, level.level));
            let scenario = &anomaly.scenario;
            line(&mut out, format_args!("not {}: {}\n", level.level, argument::title(scenario)));
            out.push_str(&argument::indented(&argument::full(scenario), "  "));
            show_statements(&mut out, scenario, "  ");
            out.push('\n');
        }
        if let Some(same) = referred.filter(|_| shown.len() == known) {
            line(&mut out, format_args!("not {}: shown by not {same}, above\n", level.level));
        }
    }
    if out.is_empty() {
        let unknown: Vec<&LevelReport> =
            report.levels.iter().filter(|level| level.verdict == "unknown").collect();
        let nothing = match unknown.first() {
            None => "nothing is violated".to_owned(),
            Some(first) => format!(
                "nothing was found to be violated, but {} not decided: {}",
                if unknown.len() == 1 {
                    format!("{} was", first.level)
                } else {
                    format!("{} levels were", unknown.len())
                },
                first.reason.as_deref().unwrap_or("it is not known why")
            ),
        };
        let assumed = report.unlogged.as_ref().map(|it| format!(" ({})", it.meaning));
        let assumed = assumed.unwrap_or_default();
        line(&mut out, format_args!("{}: {nothing}{assumed}", safe(&report.file)));
    }
    out
}

/// Whether two levels are violated by the same. What else it rules out may be told of one of them
/// alone.
fn is_same(one: &AnomalyReport, other: &AnomalyReport) -> bool {
    (one.name, &one.transactions, &one.explanation)
        == (other.name, &other.transactions, &other.explanation)
}

/// What to explain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// One violation for each of the weakest levels that are violated.
    Broken,
    /// Every violation that differs from those before it.
    All,
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}

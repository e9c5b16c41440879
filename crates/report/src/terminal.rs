//! The report as text for a terminal, meaningful without colour.

use crate::{AnomalyReport, LevelReport, Report};
use std::fmt::Write;

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The verdicts alone.
    Verdicts,
    /// Verdicts and explanations.
    Full,
}

/// The report as text. `gate` is a command that would fail if what holds now
/// stopped holding, if the report is not itself a gate.
pub fn to_text(report: &Report, detail: Detail, gate: Option<&str>) -> String {
    let mut out = String::new();
    if detail == Detail::Verdicts {
        for level in &report.levels {
            line(&mut out, format_args!("{}\t{}\t{}", report.file, level.level, level.verdict));
        }
        return out;
    }
    head(&mut out, report);
    let width = report.levels.iter().map(|level| level.level.len()).max().unwrap_or(0);
    for level in report.levels.iter().rev() {
        let reason = level.reason.as_ref().map(|reason| format!("  ({reason})"));
        let reason = reason.unwrap_or_default();
        line(&mut out, format_args!("  {:width$}  {}{reason}", level.level, level.verdict));
    }
    for level in report.levels.iter().filter(|level| shows_anomalies(report, level)) {
        line(&mut out, format_args!("\nnot {}:", level.level));
        for anomaly in &level.anomalies {
            show(&mut out, anomaly);
        }
    }
    if !report.remarks.is_empty() {
        line(&mut out, format_args!("\nalso seen, refuting none of these levels:"));
        for anomaly in &report.remarks {
            show(&mut out, anomaly);
        }
    }
    for note in &report.notes {
        line(&mut out, format_args!("\nnote: {} ({})", note.meaning, note.name));
        line(&mut out, format_args!("  to do: {}", note.advice));
    }
    out.push('\n');
    if !report.strongest.is_empty() {
        line(&mut out, format_args!("holds: {}", report.strongest.join(", ")));
    }
    if !report.weakest_violated.is_empty() {
        line(&mut out, format_args!("broken: {}", report.weakest_violated.join(", ")));
    }
    if let Some(gate) = gate {
        line(&mut out, format_args!("gate: {gate}"));
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
            "{}: {} ({outcomes}) in {}, {} on {} ({})\n",
            report.file,
            counted(size.transactions, "transaction"),
            counted(size.sessions, "session"),
            counted(size.operations, "operation"),
            counted(size.keys, "key"),
            report.format
        ),
    );
}

/// So many of something.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A level settled by a weaker one that is shown itself is not explained again,
/// unless it has more to show.
fn shows_anomalies(report: &Report, level: &LevelReport) -> bool {
    let settling = report.levels.iter().find(|other| Some(other.level) == level.settled_by);
    if settling.is_some_and(|other| other.anomalies.len() == level.anomalies.len()) {
        return false;
    }
    let explained =
        |other: &LevelReport| other.level != level.level && other.anomalies == level.anomalies;
    let earlier = report.levels.iter().take_while(|other| other.level != level.level);
    !level.anomalies.is_empty() && !earlier.into_iter().any(explained)
}

fn show(out: &mut String, anomaly: &AnomalyReport) {
    let code = anomaly.code.map(|code| format!(" ({code})")).unwrap_or_default();
    line(out, format_args!("  {}{code}", anomaly.name));
    for sentence in anomaly.explanation.lines() {
        line(out, format_args!("    {sentence}"));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}

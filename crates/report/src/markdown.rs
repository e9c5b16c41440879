//! The report in Markdown: for a bug report, and for the step summary of a workflow.

use crate::argument;
use crate::counterexample::Counterexample;
use crate::drawing::operation;
use crate::escape::{markdown, markdown_code};
use crate::reasons::SharedReasons;
use crate::replay;
use crate::scenario::Scenario;
use crate::unlogged::UNLOGGED_ADVICE;
use crate::{AnomalyReport, Report, Unreadable};
use std::fmt::Write;

/// The whole report.
pub(crate) fn to_markdown(report: &Report) -> String {
    let mut out = String::new();
    let size = &report.history;
    let broken = report.weakest_violated.join(", ");
    let heading =
        if broken.is_empty() { "no violation found".into() } else { format!("not {broken}") };
    write!(
        out,
        "## {}: {heading}\n\n{} transactions ({} committed, {} aborted, {} unknown) in {} sessions, \
         {} operations on {} keys. Checked by isolde {}.\n\n| level | verdict | |\n|---|---|---|\n",
        markdown(&report.file),
        size.transactions,
        size.committed,
        size.aborted,
        size.unknown,
        size.sessions,
        size.operations,
        size.keys,
        report.version,
    )
    .expect("a string grows");
    let shared = SharedReasons::of(report);
    for level in report.levels.iter().rev() {
        let mark = match level.verdict {
            "satisfied" => "✅",
            "violated" => "❌",
            _ => "❔",
        };
        let everyday = |anomaly: &AnomalyReport| anomaly.scenario.names.everyday.clone();
        let names: Vec<String> = level.anomalies.iter().map(everyday).collect();
        let reason = level.reason.as_deref().map(|reason| shared.told(reason));
        let reason = reason.unwrap_or_else(|| names.join(", "));
        let (name, verdict, reason) = (level.level, level.verdict, markdown(&reason));
        writeln!(out, "| {name} | {mark} {verdict} | {reason} |").expect("a string grows");
    }
    for reason in shared.all() {
        writeln!(out, "\n{}", markdown(&reason)).expect("a string grows");
    }
    if let Some(unlogged) = &report.unlogged {
        let (meaning, names) = (sentence(&unlogged.meaning), markdown(&unlogged.names()));
        writeln!(out, "\n> **{meaning}** {names}; {UNLOGGED_ADVICE}").expect("a string grows");
    }
    for counterexample in report.counterexamples() {
        violation(&mut out, &counterexample);
    }
    for note in &report.notes {
        write!(out, "\n> **Note:** {} ", markdown(note.meaning)).expect("a string grows");
        if let Some(example) = &note.example {
            write!(out, "Such as: {} ", markdown(example)).expect("a string grows");
        }
        writeln!(out, "{}", markdown(note.advice)).expect("a string grows");
    }
    out
}

/// What stands in place of the report on a history that could not be read.
pub(crate) fn unreadable(it: &Unreadable) -> String {
    format!("## {}: not read\n\n{}\n", markdown(&it.file), markdown(&it.error))
}

fn violation(out: &mut String, counterexample: &Counterexample<'_>) {
    let scenario = counterexample.scenario;
    let title = markdown(&counterexample.title);
    let levels = counterexample.levels.join(", ");
    write!(out, "\n### {title}\n\nViolates {levels}.").expect("a string grows");
    if !scenario.summary.is_empty() {
        write!(out, " {}", markdown(&sentence(&scenario.summary))).expect("a string grows");
    }
    out.push_str("\n\n");
    transactions(out, scenario);
    out.push('\n');
    out.push_str(&markdown_code("", counterexample.explanation));
    if !argument::is_short(scenario) {
        out.push_str("\n<details><summary>The whole argument</summary>\n\n");
        out.push_str(&markdown_code("", &argument::full(scenario).join("\n")));
        out.push_str("\n</details>\n");
    }
    if !scenario.meaning.is_empty() {
        writeln!(out, "\n{}", markdown(&sentence(&scenario.meaning))).expect("a string grows");
    }
    if let Some(documented) = &scenario.documented {
        writeln!(out, "\n> **Documented:** {}", markdown(documented)).expect("a string grows");
    }
    out.push_str("\n<details><summary>Statements that repeat it</summary>\n\n");
    out.push_str(&markdown_code("sql", &replay::of(counterexample)));
    out.push_str("\n</details>\n");
}

fn transactions(out: &mut String, scenario: &Scenario) {
    out.push_str("| transaction | session | operations | where |\n|---|---|---|---|\n");
    for txn in scenario.transactions.iter().filter(|txn| !txn.session.is_empty()) {
        let involved = txn.operations.iter().filter(|op| op.involved);
        let ops: Vec<String> = involved.map(|op| markdown(&operation(op))).collect();
        writeln!(
            out,
            "| {} | {} | {} | {} |",
            markdown(&txn.name),
            markdown(&txn.session),
            ops.join("; "),
            markdown(&txn.place)
        )
        .expect("a string grows");
    }
}

/// A sentence with its capital and its full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let rest = characters.as_str();
    let stop = if text.ends_with(['.', '!', '?', '…']) || text.is_empty() { "" } else { "." };
    format!("{}{rest}{stop}", first.unwrap_or_default())
}

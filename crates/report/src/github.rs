//! Annotations for GitHub's workflow log, each at the line of the history that shows it.
//!
//! The step summary beside them is the Markdown of [`crate::markdown`].

use crate::prose::safe;
use crate::scenario::{Scenario, ScenarioOp};
use crate::{Report, Unreadable};
use std::fmt::Write;

/// One annotation for each violation, and one for each level that is not decided.
pub(crate) fn to_annotations(report: &Report) -> String {
    let mut out = String::new();
    for counterexample in report.counterexamples() {
        let (file, line) = place(&report.file, counterexample.scenario);
        let title = format!("not {}: {}", counterexample.levels[0], counterexample.title);
        write!(out, "::error file={}", file_name(&file)).expect("a string grows");
        if let Some(line) = line {
            write!(out, ",line={line}").expect("a string grows");
        }
        writeln!(out, ",title={}::{}", property(&title), data(counterexample.explanation))
            .expect("a string grows");
    }
    for level in report.levels.iter().filter(|level| level.verdict == "unknown") {
        let reason = level.reason.as_deref().unwrap_or("");
        let title = format!("{} is not decided", level.level);
        let (file, title) = (file_name(&report.file), property(&title));
        writeln!(out, "::warning file={file},title={title}::{}", data(reason))
            .expect("a string grows");
    }
    let holds = report.strongest.join(", ");
    let mut holds = if holds.is_empty() { "no level".to_owned() } else { holds };
    if let Some(unlogged) = &report.unlogged {
        holds = format!("{holds} ({})", unlogged.meaning);
    }
    writeln!(out, "::notice file={},title=holds::{}", file_name(&report.file), data(&holds))
        .expect("a string grows");
    out
}

/// The annotation of a history that could not be read.
pub(crate) fn unreadable(it: &Unreadable) -> String {
    format!("::error file={},title=not read::{}\n", file_name(&it.file), data(&it.error))
}

/// The file and line of the first operation that a violation rests on.
fn place(file: &str, scenario: &Scenario) -> (String, Option<u32>) {
    let mut ops = scenario.transactions.iter().flat_map(|txn| &txn.operations);
    let Some(op) = ops.find(|op| op.involved) else { return (file.to_owned(), None) };
    let Some((name, line)) = line_of(op) else { return (file.to_owned(), None) };
    // A history of several files names the one that a session stands in.
    if file.rsplit('/').next().is_some_and(|last| safe(last) == name) {
        return (file.to_owned(), Some(line));
    }
    (format!("{}/{name}", file.trim_end_matches('/')), Some(line))
}

fn line_of(op: &ScenarioOp) -> Option<(&str, u32)> {
    let (name, line) = op.place.rsplit_once(':')?;
    Some((name, line.parse().ok()?))
}

/// The text of an annotation.
fn data(text: &str) -> String {
    let visible = crate::escape::visible(text);
    visible.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The name of a file, on one line whatever it has in it.
fn file_name(name: &str) -> String {
    property(&safe(name))
}

/// A property of an annotation.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_annotation() {
        assert_eq!(data("a\n::error::b 100%"), "a%0A::error::b 100%25");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
        assert_eq!(file_name("a\n\u{1b}[31m:b"), "a\\u{a}\\u{1b}[31m%3Ab");
    }
}

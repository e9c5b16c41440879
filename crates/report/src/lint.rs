//! What the linter found, as text and JSON.

use crate::{Prose, TABLES_SCHEMA};
use isolde::lint::{Example, Finding, rule};
use isolde_history::{History, Index};
use serde::Serialize;
use std::fmt::Write;

/// Mistakes of the recording of one history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintReport {
    /// The version of this form.
    pub schema: u32,
    /// The file, as it was named.
    pub file: String,
    /// Its format.
    pub format: String,
    /// What was found, the gravest first.
    pub findings: Vec<FindingReport>,
}

/// One kind of mistake that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FindingReport {
    /// The rule's name.
    pub rule: &'static str,
    /// `certain`, `likely` or `possible`: that the recording is at fault.
    pub certainty: &'static str,
    /// How often.
    pub total: usize,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// The first of them, each with its place in the source where it has one.
    pub examples: Vec<String>,
}

impl LintReport {
    /// A report on what was found in a history read from `file`.
    pub fn new(
        history: &History,
        index: &Index,
        (file, format): (&str, &str),
        findings: &[Finding],
    ) -> LintReport {
        let prose = Prose::new(history, index, file);
        let told = |example: &Example| match (example.op, example.position) {
            (Some(op), _) => format!("{} {}", example.text, prose.at(op)),
            (None, 0) => example.text.clone(),
            (None, position) => {
                let unit = history.position_unit().name();
                format!("{} ({unit} {position})", example.text)
            }
        };
        let reported = |finding: &Finding| {
            let rule = rule(finding.rule).expect("a finding names its rule");
            FindingReport {
                rule: rule.name,
                certainty: rule.certainty.name(),
                total: finding.total,
                meaning: rule.meaning,
                advice: rule.advice,
                examples: finding.examples.iter().map(told).collect(),
            }
        };
        LintReport {
            schema: TABLES_SCHEMA,
            file: file.to_owned(),
            format: format.to_owned(),
            findings: findings.iter().map(reported).collect(),
        }
    }
}

/// The report as text.
pub fn lint_to_text(report: &LintReport) -> String {
    let mut out = String::new();
    if report.findings.is_empty() {
        let _ = writeln!(out, "{}: nothing wrong with the recording was found", report.file);
    }
    for finding in &report.findings {
        let times =
            if finding.total == 1 { String::new() } else { format!(" × {}", finding.total) };
        let _ = writeln!(out, "{}: {} ({}){times}", report.file, finding.rule, finding.certainty);
        let _ = writeln!(out, "  {}", finding.meaning);
        for example in &finding.examples {
            let _ = writeln!(out, "    {example}");
        }
        let hidden = finding.total - finding.examples.len();
        if hidden > 0 {
            let _ = writeln!(out, "    and {hidden} more");
        }
        let _ = writeln!(out, "  to do: {}", finding.advice);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    fn text(history: &str) -> String {
        let history = parse_text(history).expect("a well-formed history");
        let index = Index::new(&history);
        let findings = isolde::lint::lint(&history, &index);
        lint_to_text(&LintReport::new(&history, &index, ("a/test.hist", "text"), &findings))
    }

    #[test]
    fn a_finding_tells_meaning_examples_and_advice() {
        assert_eq!(
            text("A: w(x,1) w(y,1)\nB: r(x,1) w(x,1) r(y,1)"),
            "\
a/test.hist: repeated-write (certain)
  one value was written to one key more than once, so a reader of it does not tell which write it saw
    x = 1 was written by A and B (test.hist:1)
  to do: write every value once; a retry of a transaction is a new transaction with new values
"
        );
    }

    #[test]
    fn nothing_found_is_said() {
        assert_eq!(
            text("A: w(x,1)\nB: r(x,1)"),
            "a/test.hist: nothing wrong with the recording was found\n"
        );
    }
}

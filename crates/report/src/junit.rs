//! Verdicts as `JUnit` XML: one test case for each level.
//!
//! A violated level is a failure. One that is not decided is an error: it must not pass for a
//! level that holds. What holds of a history without a committed transaction is skipped.

use crate::escape::xml;
use crate::prose::safe;
use crate::{AnomalyReport, LevelReport, Report, Unreadable};
use std::fmt::Write;

/// What stands before and after the suites of all histories.
pub(crate) const HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"isolde\">\n";
pub(crate) const TAIL: &str = "</testsuites>\n";

/// The suite of one history.
pub(crate) fn to_suite(report: &Report) -> String {
    let count = |verdict| report.levels.iter().filter(|it| it.verdict == verdict).count();
    let seconds: f64 = report.levels.iter().map(|level| level.seconds).sum();
    let skipped = if is_tested(report) { 0 } else { count("satisfied") };
    let mut out = format!(
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{skipped}\" \
         time=\"{seconds:.3}\">\n",
        xml(&safe(&report.file)),
        report.levels.len(),
        count("violated"),
        count("unknown"),
    );
    for level in &report.levels {
        case(&mut out, report, level);
    }
    if let Some(unlogged) = &report.unlogged {
        let told = xml(&format!("{}: {}", unlogged.meaning, unlogged.names()));
        writeln!(out, "    <system-out>{told}</system-out>").expect("a string grows");
    }
    out.push_str("  </testsuite>\n");
    out
}

/// Whether anything was tested.
fn is_tested(report: &Report) -> bool {
    report.history.committed > 0
}

/// The suite of a history that could not be read.
pub(crate) fn unreadable(it: &Unreadable) -> String {
    let (file, error) = (xml(&safe(&it.file)), xml(&it.error));
    format!(
        "  <testsuite name=\"{file}\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" \
         time=\"0.000\">\n    <testcase name=\"reading\" classname=\"{file}\" time=\"0.000\">\n      \
         <error message=\"{error}\"/>\n    </testcase>\n  </testsuite>\n"
    )
}

/// What an anomaly is called, by us and by those who know Elle.
fn name(anomaly: &AnomalyReport) -> String {
    let names = &anomaly.scenario.names;
    match names.elle.as_ref().or(names.adya.as_ref()) {
        Some(known) if known != anomaly.name => format!("{} ({known})", anomaly.name),
        _ => anomaly.name.to_owned(),
    }
}

fn case(out: &mut String, report: &Report, level: &LevelReport) {
    write!(
        out,
        "    <testcase name=\"{}\" classname=\"{}\" time=\"{:.3}\"",
        level.level,
        xml(&safe(&report.file)),
        level.seconds
    )
    .expect("a string grows");
    let reason = level.reason.as_deref().unwrap_or("");
    match level.verdict {
        "violated" => {
            let names: Vec<String> = level.anomalies.iter().map(name).collect();
            let message = if names.is_empty() { reason.to_owned() } else { names.join(", ") };
            let told: Vec<String> = (level.anomalies.iter())
                .map(|anomaly| format!("{}\n{}", name(anomaly), anomaly.explanation))
                .collect();
            writeln!(
                out,
                ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                xml(&message),
                xml(&told.join("\n\n"))
            )
        }
        "unknown" => writeln!(
            out,
            ">\n      <error message=\"not decided: {}\"/>\n    </testcase>",
            xml(reason)
        ),
        _ if is_tested(report) => writeln!(out, "/>"),
        _ => writeln!(
            out,
            ">\n      <skipped message=\"no transaction committed, so nothing was tested\"/>\n    \
             </testcase>"
        ),
    }
    .expect("a string grows");
}

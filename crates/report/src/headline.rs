//! The answer in one line: which level does not hold, by what, and what holds.

use crate::scenario::Role;
use crate::{AnomalyReport, LevelReport, Report};

/// Levels that people ask for, from weak to strong. The first that is violated is named; the
/// levels between them are in the list below.
const ASKED_FOR: [&str; 10] = [
    "read-uncommitted",
    "adya-read-committed",
    "read-committed",
    "read-atomic",
    "causal",
    "snapshot-isolation",
    "serializable",
    "session-serializable",
    "strict-serializable",
    "linearizable",
];

/// Transactions that are named; of more, so many are counted.
const NAMED_MAX: usize = 3;

/// What a check came to, such as `not serializable: write skew between A and B; snapshot
/// isolation holds`.
pub fn headline(report: &Report) -> String {
    let violated = |name: &&str| is(report, name, "violated");
    let named = ASKED_FOR.iter().find(|name| violated(name)).copied();
    let named = named.or_else(|| report.weakest_violated.first().copied());
    let holding = holding(report);
    if let Some(level) = named {
        let shown = shown(report, level).map(told).unwrap_or_default();
        let holding = holding.map_or(String::new(), |it| format!("; {it}"));
        let is_told = |it: &LevelReport| it.level == level && it.without_given == Some("satisfied");
        let told =
            if report.levels.iter().any(is_told) { " by the order that was told" } else { "" };
        return format!("not {}{told}{shown}{holding}", words(level));
    }
    let open = ASKED_FOR.iter().find(|name| is(report, name, "unknown"));
    let open = open.copied().or_else(|| {
        report.levels.iter().find(|level| level.verdict == "unknown").map(|level| level.level)
    });
    match (open, holding) {
        _ if report.history.committed == 0 => "nothing committed, so nothing was tested".into(),
        (Some(open), Some(holding)) => format!("{holding}; {} is not decided", words(open)),
        (Some(open), None) => format!("{} is not decided", words(open)),
        (None, Some(holding)) => holding,
        (None, None) => "nothing was asked".into(),
    }
}

fn is(report: &Report, name: &str, verdict: &str) -> bool {
    report.levels.iter().any(|level| level.level == name && level.verdict == verdict)
}

/// Names of levels are one word where they are typed.
fn words(level: &str) -> String {
    level.replace('-', " ")
}

/// The strongest level that people ask for among those that hold, or else whatever holds.
fn holding(report: &Report) -> Option<String> {
    let known = ASKED_FOR.iter().rev().find(|name| is(report, name, "satisfied")).copied();
    let level = known.or_else(|| report.strongest.last().copied())?;
    let condition = report.unlogged.as_ref().map_or("", |_| " if what is in no log committed");
    Some(format!("{} holds{condition}", words(level)))
}

/// What shows that a level does not hold.
fn shown<'a>(report: &'a Report, level: &str) -> Option<&'a AnomalyReport> {
    let named = |name: &str| report.levels.iter().find(|it| it.level == name);
    let level: &LevelReport = named(level)?;
    let settling = level.settled_by.and_then(named);
    let all = [Some(level), settling].into_iter().flatten();
    all.flat_map(|level| &level.anomalies).next()
}

/// An anomaly by its name and those who are in it.
fn told(anomaly: &AnomalyReport) -> String {
    let scenario = &anomaly.scenario;
    let cast = scenario.transactions.iter().filter(|it| it.role == Role::Cycle);
    let cast: Vec<&str> = cast.map(|it| it.name.as_str()).collect();
    let everyday = &scenario.names.everyday;
    match &cast[..] {
        [] => format!(": {everyday}"),
        [one] => format!(": {everyday} in {one}"),
        [others @ .., last] if cast.len() <= NAMED_MAX => {
            format!(": {everyday} between {} and {last}", others.join(", "))
        }
        [first, ..] => format!(": {everyday} between {first} and {} others", cast.len() - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::{Check, Limits, applicable_levels};
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    fn check(text: &str, expected: &str) {
        let history = parse_text(text).expect("a history");
        let index = Index::new(&history);
        let mut checking = Check::new(&history, &index, &Limits::NONE);
        let decided = checking.decide_all(&applicable_levels(&history));
        let decided: Vec<_> = decided.into_iter().map(|it| (it.0, it.1, 0.0)).collect();
        let report = crate::explained((&history, &index), ("x", "text"), &decided, &[]);
        assert_eq!(headline(&report), expected);
    }

    #[test]
    fn it_names_the_weakest_usual_level_that_fails_and_the_strongest_that_holds() {
        check(
            "A: r(x,nil) w(y,1)\nB: r(y,nil) w(x,1)",
            "not serializable: write skew between A and B; snapshot isolation holds",
        );
        check(
            "A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)",
            "not snapshot isolation: lost update between A and B; causal holds",
        );
        check(
            "A: w(x,1)\nB: r(x,1) w(y,1)\nC: r(y,1) r(x,nil)",
            "not causal: causality violation between C, A and B; read atomic holds",
        );
    }

    #[test]
    fn what_holds_is_named_by_its_strongest_level() {
        check("A: w(x,1)\nB: r(x,1)", "session serializable holds");
        check("A @1..2: w(x,1) w(y,1)\nB @3..4: r(x,1)", "strict serializable holds");
        check("A @1..2: w(x,1)\nB @3..4: r(x,1)", "linearizable holds");
        check("A: w(x,1) aborted", "nothing committed, so nothing was tested");
    }
}

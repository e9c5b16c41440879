//! A scenario as text: what happened, who saw what, and why that cannot be.

use crate::scenario::facts::is_update;
use crate::scenario::{
    EdgeKind, Role, Scenario, ScenarioEdge, ScenarioOp, ScenarioRow, ScenarioTxn,
};

/// The lines of the short form: what happened, the steps of the contradiction, and what
/// follows.
pub(crate) fn short(scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![sentence(&scenario.summary)];
    steps(scenario, &scenario.edges, &mut lines);
    for (number, case) in scenario.cases.iter().enumerate() {
        lines.push(format!("case {}: suppose that {}", number + 1, case.assumption));
        let mut told = Vec::new();
        steps(scenario, &case.edges, &mut told);
        told.push(format!("so {}", case.conclusion));
        lines.extend(told.into_iter().map(|line| format!("  {line}")));
    }
    left_out(scenario, &mut lines);
    if !scenario.conclusion.is_empty() {
        lines.push(format!("so {}", scenario.conclusion));
    }
    lines
}

/// The lines of the full form: the same with all operations, everything that each step
/// follows from, and what it means.
pub(crate) fn full(scenario: &Scenario) -> Vec<String> {
    let mut lines = vec![sentence(&scenario.summary), String::new()];
    lines.push("Who did what:".to_owned());
    lines.extend(cast(scenario));
    if !scenario.edges.is_empty() || !scenario.cases.is_empty() {
        lines.extend([String::new(), "Why that cannot be:".to_owned()]);
    }
    let mut number = 0;
    numbered(scenario, &scenario.edges, "  ", &mut number, &mut lines);
    for (place, case) in scenario.cases.iter().enumerate() {
        lines.push(format!("  Case {}: suppose that {}.", place + 1, case.assumption));
        numbered(scenario, &case.edges, "    ", &mut number, &mut lines);
        lines.push(format!("    So {}.", case.conclusion));
    }
    left_out(scenario, &mut lines);
    if !scenario.conclusion.is_empty() {
        lines.push(format!("  So {}.", scenario.conclusion));
    }
    lines.extend(facts(scenario));
    if !scenario.meaning.is_empty() {
        lines.extend([String::new(), format!("What it means: {}", scenario.meaning)]);
    }
    if let Some(documented) = &scenario.documented {
        lines.extend([String::new(), format!("Documented: {documented}")]);
    }
    if !scenario.also.is_empty() {
        lines
            .extend([String::new(), format!("This alone rules out: {}", scenario.also.join(", "))]);
    }
    lines
}

/// What a scenario is called: the everyday name, then those of the literature.
pub(crate) fn title(scenario: &Scenario) -> String {
    let names = &scenario.names;
    let mut others: Vec<String> = Vec::new();
    match (&names.adya, &names.elle) {
        (Some(adya), Some(elle)) if adya == elle => others.push(adya.clone()),
        (adya, elle) => {
            others.extend(adya.as_ref().map(|adya| format!("Adya's {adya}")));
            others.extend(elle.as_ref().map(|elle| format!("Elle's {elle}")));
        }
    }
    if others.is_empty() {
        return names.everyday.clone();
    }
    format!("{} ({})", names.everyday, others.join(", "))
}

fn left_out(scenario: &Scenario, lines: &mut Vec<String>) {
    match scenario.cases_left_out {
        0 => {}
        1 => lines.push("and one more case, not shown here".to_owned()),
        count => lines.push(format!("and {count} more cases, not shown here")),
    }
}

fn sentence(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}.") }
}

/// What stands in the short form for the rest of a derivation.
const REST: &str = "and so on; `isolde explain` tells the rest";

/// Whether the short form says everything.
pub(crate) fn is_short(scenario: &Scenario) -> bool {
    !short(scenario).iter().any(|line| line.ends_with(REST))
}

/// Lines that tell what one step of the short form follows from; long derivations are cut.
const SHORT_DERIVATION_MAX: usize = 6;

/// The edges of a cycle, each with what it follows from.
fn steps(scenario: &Scenario, edges: &[ScenarioEdge], lines: &mut Vec<String>) {
    for edge in edges {
        lines.push(told(scenario, edge));
        let mut why = Vec::new();
        brief_derivation(scenario, &edge.because, "  ", &mut why);
        let is_long = why.len() > SHORT_DERIVATION_MAX;
        if is_long {
            why.truncate(SHORT_DERIVATION_MAX - 1);
        }
        lines.extend(why);
        if is_long || goes_on(edge) {
            lines.push(format!("  {REST}"));
        }
    }
}

/// Whether an edge follows from what is told elsewhere or nowhere.
fn goes_on(edge: &ScenarioEdge) -> bool {
    let is_elsewhere = edge.because.is_empty() && edge.fact.is_some();
    is_elsewhere || edge.left_out.is_some() || edge.because.iter().any(goes_on)
}

/// What an edge follows from, without numbers of facts.
fn brief_derivation(
    scenario: &Scenario,
    edges: &[ScenarioEdge],
    indent: &str,
    lines: &mut Vec<String>,
) {
    for edge in edges {
        lines.push(format!("{indent}for {}", told(scenario, edge)));
        if !is_update(edge) {
            brief_derivation(scenario, &edge.because, &format!("{indent}  "), lines);
        }
    }
}

/// An edge and its operations' places.
fn told(scenario: &Scenario, edge: &ScenarioEdge) -> String {
    let places = places_of(scenario, edge);
    if places.is_empty() {
        return edge.explanation.clone();
    }
    format!("{} ({places})", edge.explanation)
}

fn numbered(
    scenario: &Scenario,
    edges: &[ScenarioEdge],
    indent: &str,
    number: &mut usize,
    lines: &mut Vec<String>,
) {
    for edge in edges {
        *number += 1;
        let (from, to) = (name(scenario, edge.from), name(scenario, edge.to));
        if edge.kind == EdgeKind::Initial {
            lines.push(format!("{indent}{number}. {}.", edge.explanation));
            continue;
        }
        let label = fact_of(edge).filter(|_| is_told_here(edge));
        let label = label.map(|label| format!("{label}: ")).unwrap_or_default();
        let referred = fact_of(edge).filter(|_| !is_told_here(edge));
        let referred = referred.map(|label| format!(", by {label}")).unwrap_or_default();
        lines.push(format!(
            "{indent}{number}. {label}{from} comes before {to}: {}{referred}. {}",
            told(scenario, edge),
            kind(edge)
        ));
        let indent = format!("{indent}     ");
        grounds(scenario, edge, &indent, lines);
    }
}

/// What kind of dependency an edge is: `[rw on x]`.
fn kind(edge: &ScenarioEdge) -> String {
    let key = edge.key.as_ref().map(|key| format!(" on {key}")).unwrap_or_default();
    format!("[{}{key}]", edge.kind.name())
}

/// The orders that are told apart, each with what it follows from.
fn facts(scenario: &Scenario) -> Vec<String> {
    let mut lines = Vec::new();
    if !scenario.facts.is_empty() {
        lines.extend([String::new(), "What that rests on:".to_owned()]);
    }
    for fact in &scenario.facts {
        let (from, to) = (name(scenario, fact.from), name(scenario, fact.to));
        let label = fact_of(fact).unwrap_or_default();
        let (told, kind) = (told(scenario, fact), kind(fact));
        lines.push(format!("  {label}. {from} comes before {to}: {told}. {kind}"));
        grounds(scenario, fact, "       ", &mut lines);
    }
    lines
}

/// What other edges call an edge.
fn fact_of(edge: &ScenarioEdge) -> Option<String> {
    edge.fact.map(|number| format!("F{number}"))
}

fn is_told_here(edge: &ScenarioEdge) -> bool {
    !edge.because.is_empty()
}

/// What an edge follows from, down to operations or to a fact. Nested a few levels deep, so
/// this may recurse.
fn grounds(scenario: &Scenario, edge: &ScenarioEdge, indent: &str, lines: &mut Vec<String>) {
    if is_update(edge) {
        return;
    }
    for step in &edge.because {
        let told = told(scenario, step);
        lines.push(match fact_of(step) {
            Some(label) if is_told_here(step) => format!("{indent}for {label}: {told}"),
            Some(label) => format!("{indent}for {told}, by {label}"),
            None => format!("{indent}for {told}"),
        });
        grounds(scenario, step, &format!("{indent}  "), lines);
    }
    match edge.left_out {
        None => {}
        Some(0) => lines.push(format!("{indent}and so on, in the certificate")),
        Some(1) => lines.push(format!("{indent}and so on: one more step, in the certificate")),
        Some(count) => {
            lines.push(format!("{indent}and so on: {count} more steps, in the certificate"));
        }
    }
}

fn name(scenario: &Scenario, place: usize) -> &str {
    scenario.transactions.get(place).map_or("?", |txn| &txn.name)
}

/// The places of an edge's operations, the file named once.
fn places_of(scenario: &Scenario, edge: &ScenarioEdge) -> String {
    let op = |at: &crate::scenario::OpRef| -> Option<&ScenarioOp> {
        scenario.transactions.get(at.transaction)?.operations.get(at.operation)
    };
    let places = edge.operations.iter().filter_map(op).map(|op| op.place.as_str());
    joined(places)
}

/// Places in one file as one: `file:3, 7`.
pub(crate) fn joined<'a>(places: impl Iterator<Item = &'a str>) -> String {
    let mut told = String::new();
    let mut file = "";
    let mut seen: Vec<&str> = Vec::new();
    for place in places {
        if seen.contains(&place) {
            continue;
        }
        seen.push(place);
        let end = place.rfind([':', ' ']).map_or(0, |end| end + 1);
        if told.is_empty() {
            told.push_str(place);
        } else if place[..end] == *file {
            told.push_str(", ");
            told.push_str(&place[end..]);
        } else {
            told.push_str("; ");
            told.push_str(place);
        }
        file = &place[..end];
    }
    told
}

/// The transactions and what they did, those of the proof itself first.
fn cast(scenario: &Scenario) -> Vec<String> {
    let txns = || scenario.transactions.iter().filter(|txn| txn.role != Role::Initial);
    let width = txns().map(|txn| txn.name.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for txn in txns() {
        let gap = " ".repeat(width - txn.name.chars().count());
        lines.push(format!("  {}{gap}  {}", txn.name, about(txn)));
        let ops: Vec<String> = txn.operations.iter().filter(|op| op.involved).map(did).collect();
        let place =
            joined(txn.operations.iter().filter(|op| op.involved).map(|op| op.place.as_str()));
        let others =
            txn.operations.iter().filter(|op| !op.involved).count() + txn.operations_left_out;
        let told = match (ops.is_empty(), others) {
            (true, 0) => "did nothing".to_owned(),
            (true, 1) => "one operation, which does not matter here".to_owned(),
            (true, count) => format!("{count} operations, which do not matter here"),
            (false, 0) => ops.join(", "),
            (false, 1) => format!("{}, and another operation", ops.join(", ")),
            (false, count) => format!("{}, and {count} other operations", ops.join(", ")),
        };
        let place = if place.is_empty() { String::new() } else { format!(" ({place})") };
        lines.push(format!("  {}  {told}{place}", " ".repeat(width)));
    }
    lines
}

fn about(txn: &ScenarioTxn) -> String {
    let mut about = match txn.session.as_str() {
        "nil" => "no session".to_owned(),
        session => format!("session {session}"),
    };
    if let Some(endpoint) = &txn.endpoint {
        about = format!("{about} at {endpoint}");
    }
    if txn.outcome != "committed" {
        about = format!("{about}, outcome {}", txn.outcome);
    }
    let begun = txn.begin.and_then(|span| span.invoked);
    let ended = txn.commit.and_then(|span| span.completed);
    if let (Some(begun), Some(ended)) = (begun, ended) {
        about = format!("{about}, from {begun} to {ended} ns");
    }
    if txn.role == Role::Evidence { format!("{about}, as evidence") } else { about }
}

fn did(op: &ScenarioOp) -> String {
    let key = op.key.as_deref().unwrap_or_default();
    match op.kind.as_str() {
        "read" | "read-list" => format!("read {key} = {}", op.value),
        "read-other" => format!("read {key} other than {}", op.value),
        "append" => format!("appended {} to {key}", op.value),
        "insert" => format!("inserted {key} = {}", op.value),
        "delete" => format!("deleted {key}"),
        "predicate-read" | "predicate-update" => {
            let verb = if op.kind == "predicate-read" { "selected" } else { "updated" };
            let rows = rows(op);
            // An aggregate tells its result itself: `max all -> 80`.
            if op.value.contains(" -> ") && op.rows.is_empty() {
                return format!("computed {}", op.value);
            }
            match op.value.as_str() {
                "all" => format!("{verb} all rows and found {rows}"),
                condition => format!("{verb} rows with {condition} and found {rows}"),
            }
        }
        "call" => op.words.clone().unwrap_or_else(|| format!("did {key} {}", op.value)),
        _ => format!("wrote {key} = {}", op.value),
    }
}

/// The rows that were found by condition, and those that were there and did not meet it.
fn rows(op: &ScenarioOp) -> String {
    let listed = |is_told: &dyn Fn(&ScenarioRow) -> bool| {
        let rows = op.rows.iter().filter(|row| is_told(row));
        let told = |row: &ScenarioRow| match row.value.as_str() {
            "?" => row.key.clone(),
            value => format!("{} = {value}", row.key),
        };
        rows.map(told).collect::<Vec<String>>().join(", ")
    };
    let found = listed(&|row| row.matched);
    let others = listed(&|row| !row.matched && row.value != "nil" && row.value != "?");
    let found = if found.is_empty() { "none".to_owned() } else { found };
    if others.is_empty() { found } else { format!("{found} (it looked at {others} too)") }
}

/// Lines with an indent, but for empty ones.
pub(crate) fn indented(lines: &[String], indent: &str) -> String {
    let line = |line: &String| match line.as_str() {
        "" => String::from("\n"),
        text => format!("{indent}{text}\n"),
    };
    lines.iter().map(line).collect()
}

//! A violation as statements that a person can type into a terminal for each session.
//!
//! `order.rs` says which terminal types what when; here are the statements themselves.
//!
//! Keys and values that are not plain are replaced by stand-ins: nothing of a history may end a
//! string of SQL, whatever the dialect.

mod conditions;
mod lists;
mod order;

use crate::counterexample::Counterexample;
use crate::drawing::operation;
use crate::escape::visible;
use crate::scenario::{Scenario, ScenarioOp, ScenarioTxn};
use conditions::{Keys, Selection};
use order::{Act, Step, Terminal, ordered, reads, terminals};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const TABLE: &str = "isolde_replay";

/// The scripts of all violations of a report.
pub(crate) fn to_replay(counterexamples: &[Counterexample<'_>]) -> String {
    if counterexamples.is_empty() {
        return "-- no violation was found: there is nothing to repeat\n".to_owned();
    }
    let scripts: Vec<String> = counterexamples.iter().map(of).collect();
    scripts.join("\n\n")
}

/// The script of one violation.
pub(crate) fn of(counterexample: &Counterexample<'_>) -> String {
    let scenario = counterexample.scenario;
    let mut words = Words::new(scenario);
    let terminals = terminals(scenario);
    let steps = ordered(scenario, &terminals, words.keys);
    let first = initial(scenario, &mut words);
    let lines: Vec<(usize, String)> = (steps.iter().enumerate())
        .map(|(place, (terminal, step))| {
            (*terminal, statement(scenario, step, place + 1, &mut words))
        })
        .collect();
    let mut out = format!("-- {}\n", counterexample.title);
    comment(&mut out, &scenario.summary);
    out.push_str("-- Prepare once:\n");
    let kind = if words.has_text { "VARCHAR(200)" } else { "BIGINT" };
    let key_kind = if words.keys == Keys::Numbers { "BIGINT" } else { "VARCHAR(100)" };
    writeln!(out, "CREATE TABLE {TABLE} (k {key_kind} PRIMARY KEY, v {kind});")
        .expect("a string grows");
    for (key, value) in first {
        writeln!(out, "INSERT INTO {TABLE} (k, v) VALUES ({key}, {value});")
            .expect("a string grows");
    }
    for (original, stand_in) in &words.stand_ins {
        comment(&mut out, &format!("{stand_in} stands for {original}"));
    }
    type_in(&mut out, isolation(counterexample.levels[0]), &terminals, &lines);
    comment(&mut out, "");
    comment(&mut out, &scenario.conclusion);
    out
}

/// All lines in their order, then those of each terminal alone.
fn type_in(out: &mut String, level: &str, terminals: &[Terminal], lines: &[(usize, String)]) {
    let count = match terminals.len() {
        1 => "one terminal. In it".to_owned(),
        count => format!("{count} terminals. In each"),
    };
    write!(
        out,
        "\n-- Open {count}, choose the isolation setting that was tested, such as\n\
         -- SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level};\n\
         -- or, where that is no statement,\n\
         -- SET SESSION TRANSACTION ISOLATION LEVEL {level};\n\
         -- then type the statements in the order of their numbers:\n"
    )
    .expect("a string grows");
    for (terminal, line) in lines {
        writeln!(out, "/* {} */ {line}", letter(*terminal)).expect("a string grows");
    }
    for (place, terminal) in terminals.iter().enumerate() {
        out.push('\n');
        comment(out, &format!("Terminal {} alone ({}):", letter(place), terminal.name));
        for (_, line) in lines.iter().filter(|(of, _)| *of == place) {
            writeln!(out, "{line}").expect("a string grows");
        }
    }
}

fn statement(scenario: &Scenario, step: &Step, number: usize, words: &mut Words) -> String {
    let txn = &scenario.transactions[step.txn];
    let (sql, remark) = match step.act {
        Act::Begin => ("BEGIN;".to_owned(), txn.name.clone()),
        Act::End => match txn.outcome.as_str() {
            "aborted" => ("ROLLBACK;".to_owned(), "it was aborted".to_owned()),
            "unknown" => ("COMMIT;".to_owned(), "its client never heard whether it did".to_owned()),
            _ => ("COMMIT;".to_owned(), String::new()),
        },
        Act::Op(op) => {
            let sql = by_condition(txn, op, words);
            let op = &txn.operations[op];
            let sql = sql.unwrap_or_else(|| self::sql(op, words));
            let saw = if reads(op) { format!("saw {}", saw(op)) } else { String::new() };
            let place = if op.involved { format!(" ({})", op.place) } else { String::new() };
            (sql, format!("{saw}{place}").trim_start().to_owned())
        }
    };
    let remark = visible(&remark.replace('\n', " "));
    let remark = if remark.is_empty() { remark } else { format!("  -- {remark}") };
    // A comment of ours cannot be ended by what it tells.
    format!("/* {number:>2} */ {sql}{}", remark.replace("*/", "* /"))
}

/// The statement of an operation by condition, if there is one.
fn by_condition(txn: &ScenarioTxn, place: usize, words: &mut Words) -> Option<String> {
    let op = &txn.operations[place];
    let selection = Selection::parse(&op.value, words.keys)?;
    match op.kind.as_str() {
        "predicate-read" => Some(selection.select()),
        "predicate-update" => {
            let writes: Vec<(String, Option<String>)> = (conditions::writes_of(txn, place).iter())
                .map(|write| {
                    let key = words.key(write.key.as_deref().unwrap_or(""));
                    (key, (write.kind == "write").then(|| words.value(&write.value)))
                })
                .collect();
            let is_told = !writes.is_empty();
            let change = is_told.then(|| selection.change(&writes)).flatten();
            Some(change.unwrap_or_else(|| selection.select()))
        }
        _ => None,
    }
}

fn saw(op: &ScenarioOp) -> String {
    if op.key.is_none() { operation(op) } else { op.value.clone() }
}

fn sql(op: &ScenarioOp, words: &mut Words) -> String {
    let key = words.key(op.key.as_deref().unwrap_or(""));
    match op.kind.as_str() {
        "write" | "insert" if words.makes_row(op) => {
            let value = words.value(&op.value);
            format!("INSERT INTO {TABLE} (k, v) VALUES ({key}, {value});")
        }
        "read" | "read-list" | "read-other" => format!("SELECT v FROM {TABLE} WHERE k = {key};"),
        "write" => format!("UPDATE {TABLE} SET v = {} WHERE k = {key};", words.value(&op.value)),
        "append" => {
            words.has_text = true;
            let element = words.literal(&format!(" {}", op.value));
            format!("UPDATE {TABLE} SET v = CONCAT(COALESCE(v, ''), {element}) WHERE k = {key};")
        }
        "insert" => {
            let value = words.value(&op.value);
            format!("INSERT INTO {TABLE} (k, v) VALUES ({key}, {value});")
        }
        "delete" => {
            if let Some(rows) = &mut words.rows {
                rows.remove(op.key.as_deref().unwrap_or(""));
            }
            format!("DELETE FROM {TABLE} WHERE k = {key};")
        }
        "predicate-read" | "predicate-update" => {
            let condition = op.value.replace('\n', " ");
            format!("SELECT k, v FROM {TABLE}; -- those with {}", visible(&condition))
        }
        kind => format!("-- {kind} {}", visible(&operation(op).replace('\n', " "))),
    }
}

/// Keys with their first values, as far as a read tells them.
fn initial(scenario: &Scenario, words: &mut Words) -> Vec<(String, String)> {
    let ops = scenario.transactions.iter().flat_map(|txn| &txn.operations);
    let mut keys: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut written: Vec<(&str, &str)> = Vec::new();
    let mut inserted: Vec<&str> = Vec::new();
    for op in ops.clone() {
        let Some(key) = op.key.as_deref() else { continue };
        match op.kind.as_str() {
            "insert" => inserted.push(key),
            "write" | "append" => written.push((key, &op.value)),
            _ => {}
        }
        keys.entry(key).or_default();
    }
    // What the proof rests on is told last, and so it stays.
    let others = ops.clone().filter(|op| !op.involved);
    for op in others.chain(ops.filter(|op| op.involved)).filter(|op| op.kind == "read") {
        let Some(key) = op.key.as_deref() else { continue };
        if !written.contains(&(key, &op.value)) {
            keys.insert(key, Some(&op.value));
        }
    }
    let lists = lists::first(scenario);
    keys.extend(lists.iter().map(|(key, list)| (*key, Some(list.as_str()))));
    words.has_text |= !lists.is_empty();
    let rows = scenario.transactions.iter().flat_map(|txn| &txn.operations).flat_map(|it| &it.rows);
    for row in rows.filter(|row| row.value != "?") {
        if !written.contains(&(row.key.as_str(), row.value.as_str())) {
            keys.insert(&row.key, Some(&row.value));
        }
    }
    let mut kept: Vec<(&str, &str)> = (keys.into_iter())
        .map(|(key, value)| (key, value.unwrap_or("nil")))
        .filter(|(key, _)| !inserted.contains(key))
        .collect();
    // A row without a value is a row to a condition.
    if let Some(rows) = &mut words.rows {
        kept.retain(|(_, value)| *value != "nil");
        rows.extend(kept.iter().map(|(key, _)| (*key).to_owned()));
    }
    kept.into_iter().map(|(key, value)| (words.key(key), words.value(value))).collect()
}

/// `A`, `B`, … for terminals.
fn letter(place: usize) -> String {
    const LETTERS: &[u8; 26] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    match LETTERS.get(place) {
        Some(&letter) => char::from(letter).to_string(),
        None => format!("S{}", place + 1),
    }
}

/// The setting of the standard that comes closest to a level.
fn isolation(level: &str) -> &'static str {
    match level {
        "read-uncommitted" => "READ UNCOMMITTED",
        "adya-read-committed" | "read-committed" | "monotonic-atomic-view" => "READ COMMITTED",
        level if level.contains("serializable") || level == "linearizable" => "SERIALIZABLE",
        _ => "REPEATABLE READ",
    }
}

fn comment(out: &mut String, text: &str) {
    for line in text.lines() {
        writeln!(out, "-- {}", visible(line)).expect("a string grows");
    }
}

/// Literals of SQL, and what stands for what is not plain.
#[derive(Default)]
struct Words {
    /// Whether values are more than numbers.
    has_text: bool,
    keys: Keys,
    /// The rows that exist so far, where conditions make a difference between none and nil.
    rows: Option<BTreeSet<String>>,
    stand_ins: BTreeMap<String, String>,
}

impl Words {
    fn new(scenario: &Scenario) -> Words {
        let ops = || scenario.transactions.iter().flat_map(|txn| &txn.operations);
        let has_conditions = ops().any(|op| op.kind.starts_with("predicate"));
        let keys = ops().filter_map(|op| op.key.as_deref());
        let mut keys = keys.chain(ops().flat_map(|op| &op.rows).map(|row| row.key.as_str()));
        let are_numbers = has_conditions && keys.all(|key| key.parse::<i64>().is_ok());
        Words {
            keys: if are_numbers { Keys::Numbers } else { Keys::Text },
            rows: has_conditions.then(BTreeSet::new),
            ..Words::default()
        }
    }

    /// Whether an operation makes a row that was not there, and notes what it does.
    fn makes_row(&mut self, op: &ScenarioOp) -> bool {
        let Some(rows) = &mut self.rows else { return false };
        rows.insert(op.key.clone().unwrap_or_default())
    }

    fn key(&mut self, key: &str) -> String {
        if self.keys == Keys::Numbers { key.to_owned() } else { self.literal(key) }
    }

    fn value(&mut self, value: &str) -> String {
        if value == "nil" || value == "?" {
            return "NULL".to_owned();
        }
        if value.parse::<i64>().is_ok() {
            return value.to_owned();
        }
        self.has_text = true;
        self.literal(value)
    }

    fn literal(&mut self, text: &str) -> String {
        const LENGTH_MAX: usize = 90;
        let is_plain = |character: char| {
            character.is_ascii_alphanumeric() || " _-.,:;/+=()[]{}#@".contains(character)
        };
        if text.len() <= LENGTH_MAX && text.chars().all(is_plain) && !text.contains("--") {
            return format!("'{text}'");
        }
        let next = self.stand_ins.len() + 1;
        let stand_in = self.stand_ins.entry(text.to_owned());
        format!("'{}'", stand_in.or_insert_with(|| format!("text-{next}")))
    }
}

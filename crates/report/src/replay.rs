//! A violation as statements that a person can type into a terminal for each session.
//!
//! Steps stand in the order of their recorded times. Without times they stand in an order in
//! which every read of the scenario can see what it saw: a writer commits before its readers
//! read, and who missed a write reads before it is committed. Where no such order exists, which
//! is itself the violation, program order decides.
//!
//! Keys and values that are not plain are replaced by stand-ins: nothing of a history may end a
//! string of SQL, whatever the dialect.

mod conditions;

use crate::counterexample::Counterexample;
use crate::drawing::operation;
use crate::escape::visible;
use crate::scenario::{EdgeKind, OpRef, Scenario, ScenarioEdge, ScenarioOp, ScenarioTxn};
use conditions::{Keys, Selection};
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
    let steps = ordered(scenario, words.keys);
    let first = initial(scenario, &mut words);
    let lines: Vec<(usize, String)> = (steps.iter().enumerate())
        .map(|(place, step)| (step.txn, statement(scenario, step, place + 1, &mut words)))
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
    let level = isolation(counterexample.levels[0]);
    let sessions = sessions(scenario);
    write!(
        out,
        "\n-- Open {} terminals. In each, choose the isolation setting that was tested, such as\n\
         -- SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level};\n\
         -- then type the statements in the order of their numbers:\n",
        sessions.len()
    )
    .expect("a string grows");
    for (txn, line) in &lines {
        let terminal = sessions.iter().position(|it| *it == scenario.transactions[*txn].session);
        let terminal = letter(terminal.unwrap_or(0));
        writeln!(out, "/* {terminal} */ {line}").expect("a string grows");
    }
    for (place, session) in sessions.iter().enumerate() {
        out.push('\n');
        comment(&mut out, &format!("Terminal {} alone (session {session}):", letter(place)));
        for (txn, line) in &lines {
            if scenario.transactions[*txn].session == **session {
                writeln!(out, "{line}").expect("a string grows");
            }
        }
    }
    comment(&mut out, "");
    comment(&mut out, &scenario.conclusion);
    out
}

/// What happens at one step of the script.
#[derive(Clone, Copy, PartialEq)]
enum Act {
    Begin,
    Op(usize),
    End,
}

#[derive(Clone, Copy, PartialEq)]
struct Step {
    txn: usize,
    act: Act,
}

/// All steps of the real transactions, in the order in which they are typed.
fn ordered(scenario: &Scenario, keys: Keys) -> Vec<Step> {
    let mut steps = Vec::new();
    for (txn, it) in scenario.transactions.iter().enumerate() {
        if !it.session.is_empty() {
            steps.push(Step { txn, act: Act::Begin });
            let covered = conditions::covered(it, keys);
            let ops = (0..it.operations.len()).filter(|&op| !covered[op]);
            steps.extend(ops.map(|op| Step { txn, act: Act::Op(op) }));
            steps.push(Step { txn, act: Act::End });
        }
    }
    let mut before = constraints(scenario, &steps);
    let times: Vec<Option<i64>> = steps.iter().map(|step| time_of(scenario, *step)).collect();
    if times.iter().all(Option::is_some) {
        // Program order was recorded with the times, and is part of `steps`.
        before.clear();
        let mut order: Vec<usize> = (0..steps.len()).collect();
        order.sort_by_key(|&step| times[step]);
        return order.into_iter().map(|step| steps[step]).collect();
    }
    arranged(&steps, &before)
}

/// Pairs of steps, the first of which must come before the second.
fn constraints(scenario: &Scenario, steps: &[Step]) -> Vec<(usize, usize)> {
    let place = |txn: usize, act: Act| steps.iter().position(|it| *it == Step { txn, act });
    let mut pairs = Vec::new();
    for edge in scenario.all_edges() {
        let ends = (place(edge.from, Act::End), place(edge.to, Act::End));
        let reads = reads_of(scenario, edge);
        match edge.kind {
            EdgeKind::Wr => pairs.extend(reads.iter().filter_map(|read| {
                Some((ends.0?, place(read.transaction, Act::Op(read.operation))?))
            })),
            EdgeKind::Rw => pairs.extend(reads.iter().filter_map(|read| {
                Some((place(read.transaction, Act::Op(read.operation))?, ends.1?))
            })),
            EdgeKind::Ww => pairs.extend(ends.0.zip(ends.1)),
            EdgeKind::Session | EdgeKind::RealTime => {
                pairs.extend(ends.0.zip(place(edge.to, Act::Begin)));
            }
            EdgeKind::Initial | EdgeKind::Assumed => {}
        }
    }
    pairs
}

/// The reads that an edge rests on.
fn reads_of(scenario: &Scenario, edge: &ScenarioEdge) -> Vec<OpRef> {
    let reader = if edge.kind == EdgeKind::Wr { edge.to } else { edge.from };
    let is_read = |it: &&OpRef| {
        let txn = scenario.transactions.get(it.transaction);
        it.transaction == reader
            && txn.and_then(|txn| txn.operations.get(it.operation)).is_some_and(reads)
    };
    edge.operations.iter().filter(is_read).copied().collect()
}

fn reads(op: &ScenarioOp) -> bool {
    op.kind.starts_with("read") || op.kind.starts_with("predicate")
}

/// An order of the steps that keeps as many of the pairs as program order allows. Of the steps
/// that are free, that of the transaction with the fewest steps behind it goes first, so that
/// transactions overlap as they must have.
fn arranged(steps: &[Step], pairs: &[(usize, usize)]) -> Vec<Step> {
    let mut is_done = vec![false; steps.len()];
    let mut order = Vec::new();
    while order.len() < steps.len() {
        let next_of_each: Vec<usize> = (0..steps.len())
            .filter(|&step| {
                !is_done[step]
                    && (step == 0 || steps[step - 1].txn != steps[step].txn || is_done[step - 1])
            })
            .collect();
        let blocked = |&&step: &&usize| {
            pairs.iter().all(|&(first, second)| second != step || is_done[first] || first == step)
        };
        let behind = |txn: usize| {
            (0..steps.len()).filter(|&step| is_done[step] && steps[step].txn == txn).count()
        };
        let free = next_of_each.iter().filter(blocked);
        // Commits wait: what overlaps is typed first.
        let rank = |step: &&usize| (steps[**step].act == Act::End, behind(steps[**step].txn));
        let next = *free.min_by_key(rank).unwrap_or(&next_of_each[0]);
        is_done[next] = true;
        order.push(steps[next]);
    }
    order
}

fn time_of(scenario: &Scenario, step: Step) -> Option<i64> {
    let txn = &scenario.transactions[step.txn];
    match step.act {
        Act::Begin => txn.begin?.invoked,
        Act::End => txn.commit?.completed,
        Act::Op(op) => txn.operations[op].time?.invoked,
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
    for op in ops.filter(|op| op.kind == "read") {
        let Some(key) = op.key.as_deref() else { continue };
        if !written.contains(&(key, &op.value)) {
            keys.insert(key, Some(&op.value));
        }
    }
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

fn sessions(scenario: &Scenario) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    let real = scenario.transactions.iter().filter(|txn: &&ScenarioTxn| !txn.session.is_empty());
    for txn in real {
        if !found.contains(&txn.session.as_str()) {
            found.push(&txn.session);
        }
    }
    found
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

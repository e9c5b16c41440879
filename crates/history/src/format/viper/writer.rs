//! Writing Viper's JSON logs; see [`super::json`] for the format.

use crate::format::registers::{self, Abilities, Losses, Plan};
use crate::format::{Folder, WriteError};
use crate::history::{History, KeyId, Op, OpId, OpKind, TxnId};
use crate::predicate::Condition;
use crate::value::{Datum, Value};
use hashbrown::{HashMap, HashSet};
use serde_json::{Value as Json, json};
use std::io::{BufWriter, Write};

pub(super) fn write(history: &History, folder: &mut dyn Folder) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { ranges: true, times: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::refuse_unwritten(history, &plan)?;
    let timed = registers::writes_times(history, &plan, &mut losses);
    let names = Names::new(history, &plan, &mut losses)?;
    let mut logs = Logs { history, tombstones: tombstones(history, &plan), names, timed, losses };
    logs.initial(folder)?;
    let width = history.session_count().to_string().len();
    for session in history.sessions() {
        let txns: Vec<TxnId> = history.txns_of(session).collect();
        let mut txns = txns.into_iter().filter(|&txn| plan.is_kept(txn)).peekable();
        if txns.peek().is_none() {
            logs.losses.add("sessions without transactions are left out");
            continue;
        }
        let mut out = BufWriter::new(folder.create(&format!("J{:0width$}.log", session.0 + 1))?);
        for txn in txns {
            logs.txn(txn, &mut out)?;
        }
        out.flush()?;
    }
    if plan.txns(history).next().is_none() {
        // Without any log it would not be a directory of logs.
        folder.create("J1.log")?;
    }
    Ok(logs.losses.sentences())
}

fn tombstones(history: &History, plan: &Plan) -> HashSet<(KeyId, Value)> {
    plan.txns(history)
        .flat_map(|txn| history.ops_of(txn))
        .map(|op| history.op(op))
        .filter(|op| op.kind == OpKind::Delete)
        .map(|op| (op.key, op.value))
        .collect()
}

struct Logs<'h> {
    history: &'h History,
    tombstones: HashSet<(KeyId, Value)>,
    names: Names<'h>,
    timed: bool,
    losses: Losses,
}

impl Logs<'_> {
    /// Writes the initial values in a log of their own, if there are any.
    fn initial(&mut self, folder: &mut dyn Folder) -> Result<(), WriteError> {
        let history = self.history;
        let writes: Vec<Json> = history
            .keys()
            .filter(|&key| history.initial(key) != Value::NIL || self.names.has_nil())
            .map(|key| {
                let value = self.names.value(history.initial(key));
                json!(["w", self.names.key(key), value, true])
            })
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        let mut out = folder.create("J0.log")?;
        // Readers tell the format by its first field.
        let writes = Json::Array(writes);
        writeln!(out, "{{\"value\":{writes},\"isInitial\":true,\"isFinal\":false}}")?;
        Ok(())
    }

    fn txn(&mut self, txn: TxnId, out: &mut dyn Write) -> Result<(), WriteError> {
        if self.history.txn_label(txn) != Value::NIL {
            self.losses.add("labels of transactions");
        }
        let ids: Vec<OpId> = self.history.ops_of(txn).collect();
        let mut operations = Vec::with_capacity(ids.len());
        let mut index = 0;
        while index < ids.len() {
            let op = self.history.op(ids[index]);
            let next = ids.get(index + 1).map(|&next| self.history.op(next));
            index += 1;
            match (op.kind, next) {
                (OpKind::Read, _) if op.value == Value::UNKNOWN => {}
                (OpKind::Read, Some(next)) if replaces(op, next) => {
                    operations.push(self.replace(op, next));
                    index += 1;
                }
                (OpKind::Read, _) => {
                    let dead = self.tombstones.contains(&(op.key, op.value));
                    let (key, value) = (self.names.key(op.key), self.names.value(op.value));
                    operations.push(json!(["r", key, value, dead]));
                }
                (OpKind::PredicateRead, _) => operations.push(self.range(ids[index - 1])),
                _ => {
                    if op.kind != OpKind::Write {
                        self.losses.add(
                            "inserts and deletes without a read of the row before are \
                             written as writes",
                        );
                    }
                    let (key, value) = (self.names.key(op.key), self.names.value(op.value));
                    operations.push(json!(["w", key, value, true]));
                }
            }
        }
        out.write_all(b"{")?;
        if self.timed {
            let times = self.history.txn_times(txn);
            let (begin, commit) = (times.begin, times.commit);
            write!(
                out,
                "\"preBeginTS\":{},\"postBeginTS\":{},\"preCommitTS\":{},\"postCommitTS\":{},",
                begin.invoked, begin.completed, commit.invoked, commit.completed
            )?;
        }
        writeln!(out, "\"value\":{}}}", Json::Array(operations))?;
        Ok(())
    }

    fn replace(&self, seen: Op, written: Op) -> Json {
        let tag = if written.kind == OpKind::Insert { "i" } else { "d" };
        let dead = self.tombstones.contains(&(seen.key, seen.value));
        json!([
            tag,
            self.names.key(seen.key),
            self.names.value(written.value),
            self.names.value(seen.value),
            dead,
            true
        ])
    }

    fn range(&mut self, op: OpId) -> Json {
        let predicate = self.history.predicate(op);
        let (low, high) = match predicate.condition {
            Condition::KeyRange { low, high } => (low, high),
            _ => (Value::NIL, Value::NIL),
        };
        let (mut live, mut dead) = (Vec::new(), Vec::new());
        for row in &predicate.rows {
            if row.value == Value::NIL {
                self.losses.add("rows that a range saw missing");
                continue;
            }
            let key = self.names.key(row.key);
            let row_json = json!({"id": key, "sk": key, "val": self.names.value(row.value)});
            if row.matched { &mut live } else { &mut dead }.push(row_json);
        }
        let bound = |value| match value {
            Value::NIL => json!("nil"),
            value => plain(self.history, value).unwrap_or(Json::Null),
        };
        json!(["range", bound(low), bound(high), live, dead])
    }
}

/// Whether the second operation replaces the row that the first one read.
fn replaces(seen: Op, written: Op) -> bool {
    matches!(written.kind, OpKind::Insert | OpKind::Delete) && written.key == seen.key
}

/// Keys and values as the format writes them.
struct Names<'h> {
    history: &'h History,
    keys_numbered: bool,
    /// Numbers of values, where some are neither integers nor text. Nil has one if it
    /// was written, and then it is no missing row: it is the value of rows that are there.
    values: Option<HashMap<Value, u64>>,
}

impl<'h> Names<'h> {
    fn new(history: &'h History, plan: &Plan, losses: &mut Losses) -> Result<Self, WriteError> {
        let keys_numbered =
            history.keys().any(|key| plain(history, history.key_name(key)).is_none());
        let ranges = history.op_kinds().contains(&OpKind::PredicateRead);
        if keys_numbered {
            if ranges {
                return Err(WriteError::Inexpressible(
                    "keys that are neither integers nor text cannot be in the ranges \
                     of this format"
                        .into(),
                ));
            }
            losses.add("keys are numbered from 0");
        }
        let ops: Vec<Op> = plan
            .txns(history)
            .flat_map(|txn| history.ops_of(txn))
            .map(|op| history.op(op))
            .filter(|op| op.kind.has_key() && op.value != Value::UNKNOWN)
            .collect();
        let nil_written = ops.iter().any(|op| op.kind.is_write() && op.value == Value::NIL);
        if nil_written && ranges {
            return Err(WriteError::Inexpressible(
                "nil was written, and this format cannot tell it from missing rows of ranges"
                    .into(),
            ));
        }
        let mut values = HashMap::new();
        let mut all_plain = true;
        for op in ops.iter().filter(|op| nil_written || op.value != Value::NIL) {
            let next = values.len() as u64 + 1;
            values.entry(op.value).or_insert(next);
            all_plain &= plain(history, op.value).is_some();
        }
        if !all_plain {
            // Initial values are written too.
            for key in history.keys().filter(|&key| history.initial(key) != Value::NIL) {
                let next = values.len() as u64 + 1;
                values.entry(history.initial(key)).or_insert(next);
            }
            losses.add("values are numbered from 1");
        }
        Ok(Names { history, keys_numbered, values: (!all_plain).then_some(values) })
    }

    fn has_nil(&self) -> bool {
        self.values.as_ref().is_some_and(|numbers| numbers.contains_key(&Value::NIL))
    }

    fn key(&self, key: KeyId) -> Json {
        if self.keys_numbered {
            return json!(key.0);
        }
        plain(self.history, self.history.key_name(key)).unwrap_or(Json::Null)
    }

    fn value(&self, value: Value) -> Json {
        let named = match &self.values {
            Some(numbers) => numbers.get(&value).map(|number| json!(number)),
            None => plain(self.history, value),
        };
        named.unwrap_or_else(|| json!("nil"))
    }
}

/// An integer of Java's `long`, or text.
fn plain(history: &History, value: Value) -> Option<Json> {
    match history.datum(value) {
        Datum::Int(number) => i64::try_from(number).ok().map(|number| json!(number)),
        Datum::Text(text) if text != "nil" => Some(json!(text)),
        _ => None,
    }
}

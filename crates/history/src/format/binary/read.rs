//! Reading the binary format, and proving that what was read is a history.

use super::UNLOGGED;
use super::check::Slices;
use super::frame::{Column, Columns as Stored, too_large};
use crate::builder::{HistoryBuilder, NO_KEY, OPS_MAX, TXNS_MAX};
use crate::error::ReadError;
use crate::format::Input;
use crate::history::{
    Columns, Event, GivenOrders, KeyId, OpId, OpKind, Outcome, PositionUnit, Remark, Session, Time,
    Timestamp, Timestamps, TxnId, VersionChain,
};
use crate::predicate::{Aggregate, Condition, Function, Predicate, PredicateRow};
use crate::value::{VALUES_MAX, Value, Values};
use std::borrow::Cow;

pub(super) fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let mut source = input.file()?;
    let file = source.name().to_owned();
    let memory_max = builder.memory_max();
    let bytes = source.whole(memory_max.unwrap_or(usize::MAX))?;
    let bytes = bytes.ok_or_else(|| too_large(&file, memory_max.unwrap_or(usize::MAX)))?;
    let stored = Stored::read(&file, bytes, memory_max)?;
    let mut reader = Reader { file: &file, stored, columns: Columns::default() };
    reader.values()?;
    reader.sessions()?;
    reader.txns()?;
    reader.lists()?;
    reader.predicates()?;
    reader.ops()?;
    reader.rows()?;
    reader.snapshots()?;
    reader.orders()?;
    reader.notes()?;
    builder.adopt(reader.columns);
    Ok(())
}

const FUNCTIONS: usize = Function::ALL.len();

pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) stored: Stored,
    pub(super) columns: Columns,
}

impl Reader<'_> {
    /// A column of values, of which it is checked that they are some.
    fn take_values(&mut self, name: &str) -> Result<Column<u32>, ReadError> {
        let column = self.stored.words(name);
        self.check_values(&column)?;
        Ok(column)
    }

    fn values(&mut self) -> Result<(), ReadError> {
        let kinds = self.stored.bytes("value.kinds");
        let payloads = self.stored.longs("value.payloads");
        let text = self.stored.bytes("value.text");
        self.check_ids(&kinds, VALUES_MAX)?;
        self.check(&kinds, "a kind of value from 1 to 5", |kind| (1..=5).contains(&kind))?;
        self.check_length(&payloads, kinds.len())?;
        let mut slices = Slices::new(self.file, &text)?;
        let mut values = Values::default();
        values.reserve(kinds.len(), text.len());
        for (index, (&kind, &payload)) in kinds.entries.iter().zip(&payloads.entries).enumerate() {
            let value = match kind {
                1 => values.int(payload.cast_signed()),
                2 => values.unsigned(payload),
                _ => {
                    let text = slices.next(payload, &payloads, index)?;
                    match kind {
                        3 => values.text(text),
                        4 => values.keyword(text),
                        _ => values.other(text),
                    }
                }
            };
            // A datum has one id, and small numbers are their own.
            if value != Values::nth(index) {
                let message = "expected each value once and no small number, found another";
                return Err(kinds.wrong(self.file, index, message));
            }
        }
        slices.finish()?;
        self.columns.values = values;

        let keys = self.take_values("keys")?;
        self.check_ids(&keys, TXNS_MAX)?;
        let mut sorted = keys.entries.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let again = keys.entries.iter().rposition(|&key| key == pair[0]);
            let message = "expected each key once, found one again";
            return Err(keys.wrong(self.file, again.unwrap_or(0), message));
        }
        self.columns.keys = from_bits(keys);
        self.initial_values()
    }

    fn initial_values(&mut self) -> Result<(), ReadError> {
        let default = self.take_values("initial.default")?;
        if default.len() > 1 {
            self.check_length(&default, 1)?;
        }
        self.columns.initial_default = default.entries.first().copied().map(Value::from_bits);
        let keys = self.stored.words("initial.keys");
        self.check_keys(&keys)?;
        if let Some(index) = keys.entries.windows(2).position(|pair| pair[0] >= pair[1]) {
            let message = "expected keys in ascending order, found another";
            return Err(keys.wrong(self.file, index + 1, message));
        }
        let values = self.take_values("initial.values")?;
        self.check_length(&values, keys.len())?;
        let pairs = keys.entries.into_iter().zip(values.entries);
        self.columns.initial =
            pairs.map(|(key, value)| (KeyId(key), Value::from_bits(value))).collect();
        Ok(())
    }

    fn sessions(&mut self) -> Result<(), ReadError> {
        let labels = self.take_values("session.labels")?;
        let endpoints = self.take_values("session.endpoints")?;
        let origins = self.take_values("session.origins")?;
        self.check_ids(&labels, TXNS_MAX)?;
        self.check_length(&endpoints, labels.len())?;
        self.check_length(&origins, labels.len())?;
        let entries = labels.entries.iter().zip(endpoints.entries).zip(origins.entries);
        self.columns.sessions = entries
            .map(|((&label, endpoint), origin)| Session {
                label: Value::from_bits(label),
                endpoint: Value::from_bits(endpoint),
                origin: Value::from_bits(origin),
            })
            .collect();
        Ok(())
    }

    fn txns(&mut self) -> Result<(), ReadError> {
        let outcomes = self.stored.bytes("txn.outcomes");
        self.check_ids(&outcomes, TXNS_MAX)?;
        self.check(&outcomes, "an outcome from 0 to 3", |outcome| outcome <= UNLOGGED)?;
        let count = outcomes.len();
        if outcomes.entries.contains(&UNLOGGED) {
            self.columns.unlogged = outcomes.entries.iter().map(|&code| code == UNLOGGED).collect();
        }
        let outcome = |code: u8| match code {
            0 => Outcome::Committed,
            1 => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        self.columns.outcomes = outcomes.entries.into_iter().map(outcome).collect();
        let session_txns = self.stored.words("session.txns");
        self.check_offsets(&session_txns, self.columns.sessions.len(), count)?;
        self.columns.session_txns = session_txns.entries;
        let labels = self.take_values("txn.labels")?;
        self.check_optional(&labels, count)?;
        self.columns.labels = from_bits(labels);
        let errors = self.take_values("txn.errors")?;
        self.check_optional(&errors, count)?;
        self.columns.errors = from_bits(errors);
        (self.columns.invoked, self.columns.completed) =
            self.times(["txn.invoked", "txn.completed"], count)?;
        (self.columns.begun, self.columns.committing) =
            self.times(["txn.begun", "txn.committing"], count)?;
        self.timestamps(count)
    }

    /// Two columns of times that are both there or both absent.
    fn times(
        &mut self,
        names: [&str; 2],
        count: usize,
    ) -> Result<(Vec<Time>, Vec<Time>), ReadError> {
        let [first, second] = names.map(|name| self.stored.longs(name));
        self.check_optional(&first, count)?;
        self.check_length(&second, first.len())?;
        let times = |column: Column<u64>| {
            let entries = column.entries.into_iter();
            entries.map(u64::cast_signed).collect()
        };
        Ok((times(first), times(second)))
    }

    fn timestamps(&mut self, count: usize) -> Result<(), ReadError> {
        let given = self.stored.bytes("timestamp.given");
        self.check_optional(&given, count)?;
        self.check_flags(&given)?;
        let parts = [
            "timestamp.start",
            "timestamp.start.logical",
            "timestamp.commit",
            "timestamp.commit.logical",
        ]
        .map(|name| self.stored.longs(name));
        for part in &parts {
            self.check_length(part, given.len())?;
        }
        let stamp = |index: usize, part: usize| Timestamp {
            physical: parts[part].entries[index],
            logical: parts[part + 1].entries[index],
        };
        let flags = given.entries.iter().enumerate();
        self.columns.timestamps = flags
            .map(|(index, &flag)| {
                (flag == 1).then(|| Timestamps { start: stamp(index, 0), commit: stamp(index, 2) })
            })
            .collect();
        Ok(())
    }

    fn lists(&mut self) -> Result<(), ReadError> {
        let elements = self.take_values("list.elements")?;
        let starts = self.stored.words("list.starts");
        let lengths = self.stored.words("list.lengths");
        self.check_length(&lengths, starts.len())?;
        let available = elements.len() as u64;
        self.columns.lists =
            starts.entries.into_iter().zip(lengths.entries.iter().copied()).collect();
        let outside = |list: &(u32, u32)| u64::from(list.0) + u64::from(list.1) > available;
        if let Some(index) = self.columns.lists.iter().position(outside) {
            let message = format!("expected a list within {available} elements, found one beyond");
            return Err(lengths.wrong(self.file, index, &message));
        }
        self.columns.elements = from_bits(elements);
        Ok(())
    }

    fn predicates(&mut self) -> Result<(), ReadError> {
        let kinds = self.stored.bytes("predicate.kinds");
        let operands = ["predicate.first", "predicate.second", "predicate.third"]
            .map(|name| self.stored.longs(name));
        for column in &operands {
            self.check_length(column, kinds.len())?;
        }
        let keys = self.stored.words("predicate.row.keys");
        self.check_keys(&keys)?;
        let values = self.take_values("predicate.row.values")?;
        self.check_length(&values, keys.len())?;
        let matched = self.stored.bytes("predicate.row.matched");
        self.check_length(&matched, keys.len())?;
        self.check_flags(&matched)?;
        let offsets = self.stored.longs("predicate.rows");
        self.check_offsets(&offsets, kinds.len(), keys.len())?;
        let functions = self.stored.bytes("predicate.functions");
        self.check_length(&functions, kinds.len())?;
        self.check(&functions, "a function from 0 to 4", |it| usize::from(it) <= FUNCTIONS)?;
        let results = self.take_values("predicate.results")?;
        self.check_length(&results, kinds.len())?;
        let aggregate = |index: usize| {
            let place = usize::from(functions.entries[index]).checked_sub(1)?;
            let result = Value::from_bits(results.entries[index]);
            Some(Aggregate { function: Function::ALL[place], result })
        };
        let row = |index: usize| PredicateRow {
            key: KeyId(keys.entries[index]),
            value: Value::from_bits(values.entries[index]),
            matched: matched.entries[index] == 1,
        };
        let mut predicates = Vec::with_capacity(kinds.len());
        for (index, bounds) in offsets.entries.windows(2).enumerate() {
            predicates.push(Predicate {
                condition: self.condition(&kinds, &operands, index)?,
                rows: (bounds[0] as usize..bounds[1] as usize).map(row).collect(),
                aggregate: aggregate(index),
            });
        }
        self.columns.predicates = predicates;
        Ok(())
    }

    fn condition(
        &self,
        kinds: &Column<u8>,
        operands: &[Column<u64>; 3],
        index: usize,
    ) -> Result<Condition, ReadError> {
        let operand = |which: usize| operands[which].entries[index];
        let value = |which: usize| {
            let value = u32::try_from(operand(which)).ok().map(Value::from_bits);
            value.filter(|&value| self.columns.values.contains(value)).ok_or_else(|| {
                let message = format!("expected the id of a value, found {}", operand(which));
                operands[which].wrong(self.file, index, &message)
            })
        };
        Ok(match kinds.entries[index] {
            0 => Condition::All,
            1 => Condition::Equals(value(0)?),
            2 if operand(0) == 0 => {
                let message = "expected a divisor of at least 1, found 0";
                return Err(operands[0].wrong(self.file, index, message));
            }
            2 => Condition::Modulo { modulus: operand(0), remainder: operand(1) },
            3 => Condition::KeyRange { low: value(0)?, high: value(1)? },
            4 => Condition::ColumnRange { column: value(2)?, low: value(0)?, high: value(1)? },
            5 => Condition::Notation(value(0)?),
            6 => Condition::ValueRange { low: value(0)?, high: value(1)? },
            other => {
                let message = format!("expected a kind of condition from 0 to 6, found {other}");
                return Err(kinds.wrong(self.file, index, &message));
            }
        })
    }

    fn ops(&mut self) -> Result<(), ReadError> {
        let kinds = self.stored.bytes("op.kinds");
        self.check_ids(&kinds, OPS_MAX)?;
        let count = kinds.len();
        self.check(&kinds, "a kind of operation from 0 to 9", |kind| {
            (kind as usize) < OpKind::ALL.len()
        })?;
        let keys = self.stored.words("op.keys");
        let values = self.stored.words("op.values");
        let positions = self.stored.words("op.positions");
        self.check_length(&keys, count)?;
        self.check_length(&values, count)?;
        self.check_optional(&positions, count)?;
        self.columns.kinds = kinds.entries.iter().map(|&kind| OpKind::ALL[kind as usize]).collect();
        self.check_operands(&keys, &values)?;
        self.columns.op_keys = keys.entries.into_iter().map(KeyId).collect();
        self.columns.op_values = from_bits(values);
        if positions.entries.iter().any(|&position| position != 0) {
            self.columns.positions = positions.entries;
        }
        (self.columns.op_invoked, self.columns.op_completed) =
            self.times(["op.invoked", "op.completed"], count)?;
        let txn_ops = self.stored.words("txn.ops");
        self.check_offsets(&txn_ops, self.columns.outcomes.len(), count)?;
        self.columns.txn_ops = txn_ops.entries;
        Ok(())
    }

    /// Keys and values of operations mean different things for different kinds.
    fn check_operands(&self, keys: &Column<u32>, values: &Column<u32>) -> Result<(), ReadError> {
        let columns = &self.columns;
        let (key_count, lists) = (columns.keys.len(), columns.lists.len());
        let operands = keys.entries.iter().zip(&values.entries);
        for (index, (&kind, (&key, &value))) in columns.kinds.iter().zip(operands).enumerate() {
            let key_fits = if kind.has_key() { (key as usize) < key_count } else { key == NO_KEY };
            if !key_fits {
                let message = format!("expected the key of a {kind:?}, found {key}");
                return Err(keys.wrong(self.file, index, &message));
            }
            let value_fits = match kind {
                OpKind::ReadList => (value as usize) < lists,
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    (value as usize) < columns.predicates.len()
                }
                _ => columns.values.contains(Value::from_bits(value)),
            };
            if !value_fits {
                let message = format!("expected the value of a {kind:?}, found {value}");
                return Err(values.wrong(self.file, index, &message));
            }
        }
        Ok(())
    }

    fn rows(&mut self) -> Result<(), ReadError> {
        let ops = self.stored.words("row.ops");
        let count = self.columns.kinds.len();
        self.check(&ops, &format!("an operation below {count}"), |op| (op as usize) < count)?;
        if let Some(index) = ops.entries.windows(2).position(|pair| pair[0] > pair[1]) {
            let message = "expected operations in ascending order, found another";
            return Err(ops.wrong(self.file, index + 1, message));
        }
        let names = self.take_values("row.columns")?;
        let contents = self.take_values("row.contents")?;
        self.check_length(&names, ops.len())?;
        self.check_length(&contents, ops.len())?;
        let entries = ops.entries.iter().zip(names.entries).zip(contents.entries);
        self.columns.rows = entries
            .map(|((&op, name), content)| {
                let (name, content) = (Value::from_bits(name), Value::from_bits(content));
                (OpId(op), name, content)
            })
            .collect();
        Ok(())
    }

    fn orders(&mut self) -> Result<(), ReadError> {
        let keys = self.stored.words("version.keys");
        self.check_keys(&keys)?;
        let complete = self.stored.bytes("version.complete");
        self.check_length(&complete, keys.len())?;
        self.check_flags(&complete)?;
        let values = self.take_values("version.values")?;
        let offsets = self.stored.longs("version.chains");
        self.check_offsets(&offsets, keys.len(), values.len())?;
        let numbered = self.stored.words("version.numbered");
        let numbers = self.stored.longs("version.numbers");
        self.check_length(&numbers, numbered.len())?;
        let count = values.len();
        self.check(&numbered, &format!("a version below {count}"), |at| (at as usize) < count)?;
        self.check_ascending(&numbered, "versions")?;
        let mut numbers = numbered.entries.iter().zip(&numbers.entries).peekable();
        let chains = offsets.entries.windows(2).zip(&keys.entries).zip(&complete.entries);
        let versions = chains.map(|((bounds, &key), &complete)| VersionChain {
            key: KeyId(key),
            numbers: std::iter::from_fn(|| numbers.next_if(|at| u64::from(*at.0) < bounds[1]))
                .map(|(at, &number)| ((u64::from(*at) - bounds[0]) as u32, number))
                .collect(),
            values: values.entries[bounds[0] as usize..bounds[1] as usize]
                .iter()
                .map(|&bits| Value::from_bits(bits))
                .collect(),
            complete: complete == 1,
        });
        let versions = versions.collect();

        let given = self.stored.bytes("serial.given");
        self.check_length(&given, 1)?;
        self.check_flags(&given)?;
        let txns = self.stored.words("serial.txns");
        let count = self.columns.outcomes.len();
        self.check(&txns, &format!("a transaction below {count}"), |txn| (txn as usize) < count)?;
        let mut listed = vec![false; count];
        let again = |&txn: &u32| std::mem::replace(&mut listed[txn as usize], true);
        if let Some(index) = txns.entries.iter().position(again) {
            let message = "expected each transaction once, found one again";
            return Err(txns.wrong(self.file, index, message));
        }
        let is_given = given.entries[0] == 1;
        if !is_given {
            self.check_length(&txns, 0)?;
        }
        let total = is_given.then(|| txns.entries.into_iter().map(TxnId).collect());
        self.columns.orders = GivenOrders { versions, total };
        Ok(())
    }

    fn notes(&mut self) -> Result<(), ReadError> {
        let has_time = self.stored.bytes("event.timed");
        self.check_flags(&has_time)?;
        let times = self.stored.longs("event.times");
        self.check_length(&times, has_time.len())?;
        let positions = self.stored.words("event.positions");
        self.check_length(&positions, has_time.len())?;
        let texts = self.texts("event.lengths", "event.text", has_time.len())?;
        let entries = has_time.entries.iter().zip(times.entries).zip(positions.entries);
        self.columns.events = entries
            .zip(texts)
            .map(|(((&has_time, time), position), text)| Event {
                time: (has_time == 1).then_some(time.cast_signed()),
                position,
                text,
            })
            .collect();

        let positions = self.stored.words("remark.positions");
        let kinds = self.texts("remark.kind.lengths", "remark.kind.text", positions.len())?;
        let texts = self.texts("remark.lengths", "remark.text", positions.len())?;
        let entries = positions.entries.into_iter().zip(kinds).zip(texts);
        self.columns.remarks = entries
            .map(|((position, kind), text)| Remark { kind: Cow::Owned(kind), position, text })
            .collect();

        let unit = self.stored.bytes("position.unit");
        self.check_length(&unit, 1)?;
        self.check(&unit, "a unit from 0 to 2", |unit| unit <= 2)?;
        self.columns.unit = match unit.entries[0] {
            0 => PositionUnit::Line,
            1 => PositionUnit::Record,
            _ => PositionUnit::Index,
        };
        Ok(())
    }

    /// Texts stored as a column of lengths and one of all of them joined.
    fn texts(&mut self, lengths: &str, text: &str, count: usize) -> Result<Vec<String>, ReadError> {
        let lengths = self.stored.longs(lengths);
        let text = self.stored.bytes(text);
        self.check_length(&lengths, count)?;
        let mut slices = Slices::new(self.file, &text)?;
        let mut texts = Vec::with_capacity(count);
        for (index, &length) in lengths.entries.iter().enumerate() {
            texts.push(slices.next(length, &lengths, index)?.to_owned());
        }
        slices.finish()?;
        Ok(texts)
    }
}

fn from_bits(column: Column<u32>) -> Vec<Value> {
    column.entries.into_iter().map(Value::from_bits).collect()
}

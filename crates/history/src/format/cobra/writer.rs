//! Writing Cobra's client logs; see [`super`] for the format.

use super::{INITIAL, MILLISECOND, UNIVERSAL};
use crate::format::registers::{self, Abilities, Losses, Numbers, Plan};
use crate::format::{Folder, WriteError};
use crate::history::{ALWAYS, History, KeyId, OpKind, TxnId};
use crate::value::{Datum, Value};
use hashbrown::HashMap;
use std::io::{BufWriter, Write};

pub(super) fn write(history: &History, folder: &mut dyn Folder) -> Result<Vec<String>, WriteError> {
    let mut losses = Losses::default();
    let abilities = Abilities { times: true, ..Abilities::default() };
    let plan = registers::plan(history, abilities, &mut losses)?;
    registers::note_initial(history, &plan, Datum::Nil, &mut losses);
    registers::refuse_unwritten(history, &plan)?;
    registers::refuse_written_initial(history, &plan)?;
    let numbers = Numbers::new(history, &plan, &mut losses);
    let logs = Logs {
        history,
        writes: Writes::new(history, &plan),
        txn_ids: txn_ids(history, &mut losses),
        timed: registers::writes_times(history, &plan, &mut losses)
            && are_told_apart(history, &plan, &mut losses),
        plan,
        numbers,
    };
    if logs.timed {
        losses.add(
            "times are rounded to milliseconds, and the end of a transaction is its client's \
             next begin",
        );
    }
    losses.add("values are write ids");
    let width = history.session_count().to_string().len();
    for session in history.sessions() {
        let mut txns = history.txns_of(session).filter(|&txn| logs.plan.is_kept(txn)).peekable();
        if txns.peek().is_none() {
            losses.add("sessions without transactions are left out");
            continue;
        }
        let mut out = BufWriter::new(folder.create(&format!("T{:0width$}.log", session.0))?);
        for txn in txns {
            logs.txn(txn, &mut out)?;
        }
        out.flush()?;
    }
    if logs.plan.txns(history).next().is_none() {
        // Without any log it would not be a directory of logs.
        folder.create("T0.log")?;
    }
    Ok(losses.sentences())
}

/// Whether every begin was over when the commit was asked for, and every commit when
/// the client began again: the format has no other times, so it would say so.
fn are_told_apart(history: &History, plan: &Plan, losses: &mut Losses) -> bool {
    let told_apart = history.sessions().all(|session| {
        let mut earlier = ALWAYS;
        history.txns_of(session).filter(|&txn| plan.is_kept(txn)).all(|txn| {
            let times = history.txn_times(txn);
            let follows = earlier <= times.begin.invoked;
            earlier = times.commit.completed;
            follows && times.begin.completed <= times.commit.invoked
        })
    });
    if !told_apart {
        losses.add("times of transactions, because begins and commits are not told apart");
    }
    told_apart
}

struct Logs<'h> {
    history: &'h History,
    plan: Plan,
    numbers: Numbers,
    writes: Writes,
    txn_ids: Vec<u64>,
    timed: bool,
}

impl Logs<'_> {
    fn txn(&self, txn: TxnId, out: &mut dyn Write) -> Result<(), WriteError> {
        let id = self.txn_ids[txn.index()];
        let times = self.history.txn_times(txn);
        self.end(b'S', id, times.begin.invoked, out)?;
        for op_id in self.history.ops_of(txn) {
            let op = self.history.op(op_id);
            let Some(value) = self.numbers.value(op.key, op.value) else {
                continue;
            };
            let key = self.numbers.key(op.key);
            if op.kind == OpKind::Read {
                let (writer, write) = self.writer_of(op.key, op.value);
                record(out, b'R', &[writer, write, key, value])?;
            } else {
                let write = self.writes.id(u64::from(op_id.0));
                record(out, b'W', &[write, key, value])?;
            }
        }
        self.end(b'C', id, times.commit.invoked, out)
    }

    fn end(&self, tag: u8, id: u64, time: i64, out: &mut dyn Write) -> Result<(), WriteError> {
        if self.timed {
            let milliseconds = time.div_euclid(MILLISECOND);
            record(out, tag, &[id, milliseconds.cast_unsigned()])
        } else {
            record(out, tag, &[id])
        }
    }

    /// Transaction and write id of a version.
    fn writer_of(&self, key: KeyId, value: Value) -> (u64, u64) {
        match self.writes.by_version.get(&(key, value)) {
            _ if value == self.history.initial(key) => (INITIAL, INITIAL),
            Some(_) if self.writes.repeated => (UNIVERSAL, UNIVERSAL),
            Some(&(txn, op)) => (self.txn_ids[txn.index()], self.writes.id(op)),
            None => (INITIAL, INITIAL),
        }
    }
}

/// Who wrote what.
struct Writes {
    by_version: HashMap<(KeyId, Value), (TxnId, u64)>,
    /// Some version has two writers, so that reads cannot name theirs.
    repeated: bool,
}

impl Writes {
    fn new(history: &History, plan: &Plan) -> Self {
        let mut by_version = HashMap::new();
        let mut repeated = false;
        for txn in plan.txns(history) {
            for id in history.ops_of(txn) {
                let op = history.op(id);
                if op.kind.is_write() {
                    let place = (txn, u64::from(id.0));
                    repeated |= by_version.insert((op.key, op.value), place).is_some();
                    repeated |= op.value == history.initial(op.key);
                }
            }
        }
        Writes { by_version, repeated }
    }

    fn id(&self, op: u64) -> u64 {
        if self.repeated { UNIVERSAL } else { op + 1 }
    }
}

/// Ids below the constants of the format.
fn txn_ids(history: &History, losses: &mut Losses) -> Vec<u64> {
    const CONSTANTS_MIN: u64 = 0x2333_2333;
    let labels = || history.txns().map(|txn| history.txn_label(txn));
    let own = registers::distinct_naturals(history, labels())
        .filter(|ids| ids.iter().all(|&id| id < CONSTANTS_MIN));
    own.unwrap_or_else(|| {
        if labels().any(|label| label != Value::NIL) {
            losses.add("transactions are numbered from 1");
        }
        (1..=history.txn_count() as u64).collect()
    })
}

fn record(out: &mut dyn Write, tag: u8, fields: &[u64]) -> Result<(), WriteError> {
    out.write_all(&[tag])?;
    for field in fields {
        out.write_all(&field.to_be_bytes())?;
    }
    Ok(())
}

//! Writing histories as Jepsen records them, in EDN or as lines of JSON.
//!
//! Where all times are known each transaction is an invocation and a completion,
//! merged in an order that agrees with the times and with every session; else
//! there are completions only, the sessions taking turns. What Jepsen has no field
//! for is named as lost. A history is refused when a reader would take it for
//! another one: see [`Refusals`].

use super::meaning::is_mop_name;
use super::notation::{Line, Notation};
use crate::format::WriteError;
use crate::history::{
    ALWAYS, History, KeyId, NEVER, Op, OpId, OpKind, Outcome, SessionId, Time, TxnId,
};
use crate::predicate::Condition;
use crate::value::{Datum, Value};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::Write;

/// Writes one EDN map a line.
pub(super) fn write_edn(history: &History, out: &mut dyn Write) -> Result<Vec<String>, WriteError> {
    write(history, out, Notation::Edn)
}

/// Writes one JSON object a line.
pub(super) fn write_json(
    history: &History,
    out: &mut dyn Write,
) -> Result<Vec<String>, WriteError> {
    write(history, out, Notation::Json)
}

fn write(
    history: &History,
    out: &mut dyn Write,
    notation: Notation,
) -> Result<Vec<String>, WriteError> {
    Refusals::new(history).check()?;
    let has_pairs = history.txns().all(|txn| has_both_times(history, txn));
    let mut file = File {
        history,
        processes: processes(history),
        initial: if has_predicates(history) { Initial::Declared } else { Initial::Nil },
        line: Line::new(notation),
        index: 0,
        has_pairs,
        out,
    };
    file.declare_initial()?;
    file.lines()?;
    Ok(losses(history, has_pairs))
}

fn has_both_times(history: &History, txn: TxnId) -> bool {
    let interval = history.txn_interval(txn);
    interval.invoked != ALWAYS
        && (interval.completed != NEVER || history.outcome(txn) == Outcome::Unknown)
}

fn has_predicates(history: &History) -> bool {
    history.op_kinds().iter().any(|kind| !kind.has_key())
}

/// The number each session goes by: its label if all labels are natural numbers
/// and differ.
fn processes(history: &History) -> Vec<i128> {
    let labels: Option<Vec<i128>> = history
        .sessions()
        .map(|session| match history.datum(history.session_label(session)) {
            Datum::Int(number) if (0..1 << 31).contains(&number) => Some(number),
            _ => None,
        })
        .collect();
    match labels {
        Some(labels) if labels.iter().collect::<HashSet<_>>().len() == labels.len() => labels,
        _ => (0..history.session_count() as i128).collect(),
    }
}

/// How a file says what a key starts with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Initial {
    /// Reads of it are `nil`, whatever it was.
    Nil,
    /// An operation `:init` declares it: conditions are evaluated on it.
    Declared,
}

struct File<'a> {
    history: &'a History,
    processes: Vec<i128>,
    initial: Initial,
    line: Line,
    index: u64,
    has_pairs: bool,
    out: &'a mut dyn Write,
}

/// What a line of a transaction says; of two lines with one time the first goes
/// first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Invocation,
    Completion,
}

impl File<'_> {
    fn declare_initial(&mut self) -> Result<(), WriteError> {
        let history = self.history;
        let declared: Vec<KeyId> =
            history.keys().filter(|&key| history.initial(key) != Value::NIL).collect();
        if self.initial == Initial::Nil || declared.is_empty() {
            return Ok(());
        }
        self.line.begin("ok", "init");
        self.line.field("value");
        self.line.open_map();
        for key in declared {
            self.line.entry(history.datum(history.key_name(key)))?;
            self.line.datum(history.datum(history.initial(key)))?;
        }
        self.line.close_map();
        self.end_line(None, None)
    }

    fn lines(&mut self) -> Result<(), WriteError> {
        let history = self.history;
        let mut turns: BinaryHeap<Reverse<(Time, Phase, u32, u32)>> = BinaryHeap::new();
        for session in history.sessions() {
            let range = history.session_range(session);
            if !range.is_empty() {
                turns.push(Reverse(self.turn(session.0, range.start, Phase::Invocation)));
            }
        }
        while let Some(Reverse((_, phase, session, txn))) = turns.pop() {
            if phase == Phase::Completion || self.has_pairs {
                self.txn_line(session, TxnId(txn), phase)?;
            }
            let range = history.session_range(SessionId(session));
            let next = match phase {
                Phase::Invocation => self.turn(session, txn, Phase::Completion),
                Phase::Completion if txn + 1 < range.end => {
                    self.turn(session, txn + 1, Phase::Invocation)
                }
                Phase::Completion => continue,
            };
            turns.push(Reverse(next));
        }
        Ok(())
    }

    /// When a line has its turn. Of lines with one time invocations come first, so
    /// that what may have overlapped still does.
    fn turn(&self, session: u32, txn: u32, phase: Phase) -> (Time, Phase, u32, u32) {
        let interval = self.history.txn_interval(TxnId(txn));
        let place = self.history.session_range(SessionId(session)).start;
        let time = match phase {
            _ if !self.has_pairs && interval.completed == NEVER => Time::from(txn - place),
            Phase::Invocation if self.has_pairs => interval.invoked,
            Phase::Completion if interval.completed == NEVER => interval.invoked,
            Phase::Invocation | Phase::Completion => interval.completed,
        };
        (time, phase, session, txn)
    }

    fn txn_line(&mut self, session: u32, txn: TxnId, phase: Phase) -> Result<(), WriteError> {
        let history = self.history;
        let outcome = history.outcome(txn);
        let step = match (phase, outcome) {
            (Phase::Invocation, _) => "invoke",
            (_, Outcome::Committed) => "ok",
            (_, Outcome::Aborted) => "fail",
            (_, Outcome::Unknown) => "info",
        };
        let shows_results = step == "ok";
        if let Some((name, value)) = lone_call(history, txn) {
            self.line.begin_call(step, name)?;
            self.line.field("value");
            self.line.datum(value)?;
        } else {
            self.line.begin(step, "txn");
            self.line.field("value");
            self.line.open();
            for op in history.ops_of(txn) {
                self.op(op, shows_results)?;
            }
            self.line.close();
        }
        let interval = history.txn_interval(txn);
        let time = match phase {
            Phase::Invocation => interval.invoked,
            Phase::Completion if interval.completed == NEVER => interval.invoked,
            Phase::Completion => interval.completed,
        };
        let time = Some(time).filter(|&time| time != ALWAYS && time != NEVER);
        let error = match phase {
            Phase::Completion if history.error(txn) != Value::NIL => Some(history.error(txn)),
            _ => None,
        };
        self.line.number("process", self.processes[session as usize]);
        self.end_line(time, error)
    }

    fn end_line(&mut self, time: Option<Time>, error: Option<Value>) -> Result<(), WriteError> {
        if let Some(time) = time {
            self.line.number("time", i128::from(time));
        }
        if let Some(error) = error {
            self.line.field("error");
            self.line.any(self.history.datum(error));
        }
        self.line.number("index", i128::from(self.index));
        self.index += 1;
        self.out.write_all(self.line.end().as_bytes())?;
        Ok(())
    }

    fn op(&mut self, op: OpId, shows_results: bool) -> Result<(), WriteError> {
        let history = self.history;
        let found = history.op(op);
        let name = match found.kind {
            OpKind::Read | OpKind::ReadList => "r",
            OpKind::Write => "w",
            OpKind::Append => "append",
            OpKind::Insert => "insert",
            OpKind::Delete => "delete",
            OpKind::PredicateRead => return self.predicate(op, shows_results),
            OpKind::Call => return self.line.mop_notation(history.datum(found.value)),
            OpKind::ReadOther | OpKind::PredicateUpdate => return Ok(()),
        };
        self.line.open();
        self.line.word(name);
        self.line.datum(history.datum(history.key_name(found.key)))?;
        match found.kind {
            OpKind::Delete => {}
            OpKind::Read | OpKind::ReadList if !shows_results => self.line.nil(),
            OpKind::ReadList => {
                self.line.open();
                for &element in history.list(op) {
                    self.line.datum(history.datum(element))?;
                }
                self.line.close();
            }
            OpKind::Read
                if self.initial == Initial::Nil && found.value == history.initial(found.key) =>
            {
                self.line.nil();
            }
            _ => self.line.datum(history.datum(found.value))?,
        }
        self.line.close();
        Ok(())
    }

    fn predicate(&mut self, op: OpId, shows_results: bool) -> Result<(), WriteError> {
        let history = self.history;
        let predicate = history.predicate(op);
        self.line.open();
        self.line.word("rp");
        match predicate.condition {
            Condition::Equals(value) => {
                self.line.open();
                self.line.word("=");
                self.line.datum(history.datum(value))?;
                self.line.close();
            }
            Condition::Modulo { modulus, remainder } => {
                self.line.open();
                self.line.word("mod");
                self.line.datum(Datum::Int(i128::from(modulus)))?;
                self.line.datum(Datum::Int(i128::from(remainder)))?;
                self.line.close();
            }
            Condition::Notation(notation) => self.line.datum(history.datum(notation))?,
            Condition::All
            | Condition::ValueRange { .. }
            | Condition::KeyRange { .. }
            | Condition::ColumnRange { .. } => {
                self.line.word("true");
            }
        }
        if shows_results {
            self.line.open_map();
            for row in predicate.rows.iter().filter(|row| row.matched) {
                self.line.entry(history.datum(history.key_name(row.key)))?;
                self.line.datum(history.datum(row.value))?;
            }
            self.line.close_map();
        } else {
            self.line.nil();
        }
        self.line.close();
        Ok(())
    }
}

/// A transaction that is one call of a named function is an operation of its own.
fn lone_call(history: &History, txn: TxnId) -> Option<(&str, Datum<'_>)> {
    let range = history.op_range(txn);
    if range.len() != 1 {
        return None;
    }
    let op = history.op(OpId(range.start));
    if op.kind != OpKind::Call {
        return None;
    }
    match history.datum(history.key_name(op.key)) {
        Datum::Keyword(name) if !is_mop(name, history.datum(op.value)) => {
            Some((name, history.datum(op.value)))
        }
        _ => None,
    }
}

fn is_mop(name: &str, value: Datum<'_>) -> bool {
    match value {
        Datum::Other(notation) => {
            notation.strip_prefix("[:").is_some_and(|rest| rest.starts_with(name))
        }
        _ => false,
    }
}

/// Whether a reader would take the value of a call for a transaction.
fn looks_like_txn(value: Datum<'_>) -> bool {
    let Datum::Other(notation) = value else { return false };
    let members = |text| unblank(text).strip_prefix(['[', '(']);
    let word = members(notation).and_then(members).map(unblank);
    word.is_some_and(|word| word.starts_with([':', '"']))
}

/// The text after the blanks of EDN.
fn unblank(text: &str) -> &str {
    text.trim_start_matches(|letter: char| letter == ',' || letter.is_whitespace())
}

/// What cannot be written without becoming another history.
struct Refusals<'a> {
    history: &'a History,
    has_lists: bool,
    has_registers: bool,
    /// Whether some call tells that `:read` is one, too, and no operation on a register.
    tells_calls: bool,
}

impl<'a> Refusals<'a> {
    fn new(history: &'a History) -> Self {
        let has_lists =
            history.op_kinds().iter().any(|kind| matches!(kind, OpKind::Append | OpKind::ReadList));
        let is_of_register = |op: u32| match history.op(OpId(op)) {
            // A read without a result may be one of a list.
            Op { kind: OpKind::Read, value, .. } => value != Value::UNKNOWN,
            Op { kind, .. } => matches!(kind, OpKind::Write | OpKind::Insert | OpKind::Delete),
        };
        let has_registers = has_lists && (0..history.op_count() as u32).any(is_of_register);
        let mut calls = history.txns().filter_map(|txn| lone_call(history, txn));
        let tells_calls = calls.any(|(name, value)| match value {
            _ if name != "read" => true,
            Datum::Other(notation) => notation.starts_with(['{', '#']),
            _ => false,
        });
        Refusals { history, has_lists, has_registers, tells_calls }
    }

    fn check(&self) -> Result<(), WriteError> {
        let history = self.history;
        for txn in history.txns() {
            for op in history.ops_of(txn) {
                if let Some(reason) = self.reason(txn, op) {
                    let name = history.txn_name(txn);
                    return Err(WriteError::Inexpressible(format!(
                        "transaction {name} has {reason}, which Jepsen's histories cannot say"
                    )));
                }
            }
        }
        Ok(())
    }

    fn reason(&self, txn: TxnId, op: OpId) -> Option<&'static str> {
        let history = self.history;
        let found = history.op(op);
        let is_committed = history.outcome(txn) == Outcome::Committed;
        let initial = || history.initial(found.key);
        match found.kind {
            OpKind::Read if is_committed && found.value == Value::UNKNOWN => {
                Some("a read whose result is not known")
            }
            OpKind::Read if is_committed && self.has_lists && found.value == initial() => {
                Some("a read of an absent register among lists")
            }
            // A reader takes it for a vector in a register unless an append came before.
            OpKind::ReadList if is_committed && self.has_registers => {
                Some("a read of a list among registers")
            }
            OpKind::Read if found.value == Value::NIL && initial() != Value::NIL => {
                Some("a read of nothing where keys start with something")
            }
            OpKind::Write | OpKind::Insert
                if initial() != Value::NIL
                    && (found.value == initial() || found.value == Value::NIL) =>
            {
                Some("a write of the value that its key starts with, or of nothing")
            }
            OpKind::Delete if found.value != Value::NIL => Some("a delete that leaves a version"),
            OpKind::ReadOther => Some("a refused compare-and-set"),
            OpKind::PredicateUpdate => Some("an update by condition"),
            OpKind::PredicateRead if history.predicate(op).aggregate.is_some() => {
                Some("an aggregate")
            }
            OpKind::PredicateRead => match history.predicate(op).condition {
                Condition::ValueRange { .. }
                | Condition::KeyRange { .. }
                | Condition::ColumnRange { .. } => Some("a read by range"),
                _ => None,
            },
            OpKind::Call => match lone_call(history, txn) {
                Some((name, value)) => self.call_reason(name, value),
                None => self.mop_reason(op, is_committed),
            },
            _ => None,
        }
    }

    /// Why a call that is all of its transaction would be read as something else.
    fn call_reason(&self, name: &str, value: Datum<'_>) -> Option<&'static str> {
        match name {
            "txn" | "init" | "write" | "cas" => Some("a call of a function that is no call"),
            "read" if !self.tells_calls => Some("a call that would be a read of a register"),
            _ if looks_like_txn(value) => Some("a call of what would be a transaction"),
            _ => None,
        }
    }

    /// Why a call among small operations would be read as something else.
    fn mop_reason(&self, op: OpId, is_committed: bool) -> Option<&'static str> {
        let found = self.history.op(op);
        match self.history.datum(self.history.key_name(found.key)) {
            // In a transaction that did not commit it is how its condition is kept.
            Datum::Keyword("rp") if is_committed => Some("a call of a known operation"),
            Datum::Keyword(name) if name != "rp" && is_mop_name(name.as_bytes()) => {
                Some("a call of a known operation")
            }
            Datum::Keyword(name) if is_mop(name, self.history.datum(found.value)) => None,
            _ => Some("a call among other operations"),
        }
    }
}

fn losses(history: &History, has_pairs: bool) -> Vec<String> {
    let any_txn = |test: &dyn Fn(TxnId) -> bool| history.txns().any(test);
    let any_session = |datum: fn(&History, SessionId) -> Value| {
        let mut sessions = history.sessions();
        sessions.any(|session| datum(history, session) != Value::NIL)
    };
    let has_initial = history.keys().any(|key| history.initial(key) != Value::NIL);
    let lost = [
        (
            history.has_times() && !has_pairs,
            "times of invocations: not every transaction has both its times",
        ),
        (history.has_op_times(), "times of single operations"),
        (history.has_inner_times(), "times of begin and commit apart"),
        (any_txn(&|txn| history.timestamps(txn).is_some()), "timestamps of the database"),
        (history.has_snapshots(), "snapshots of the database"),
        (!history.orders().versions.is_empty(), "version orders"),
        (
            history.orders().total.is_some(),
            "the order in which the database serialized transactions",
        ),
        (history.has_rows(), "columns of rows"),
        (!history.events().is_empty(), "events beside the transactions"),
        (
            any_txn(&|txn| history.txn_label(txn) != Value::NIL),
            "labels of transactions: they are numbered by line",
        ),
        (!keeps_labels(history), "labels of sessions: they are numbered"),
        (any_session(History::endpoint), "endpoints of sessions"),
        (any_session(History::origin), "files of sessions"),
        (
            any_txn(&|txn| hides_results(history, txn)),
            "results of reads in transactions that did not commit",
        ),
        (has_initial && !has_predicates(history), "initial values: reads of them are nil"),
        (
            any_txn(&|txn| leaves_rows_out(history, txn)),
            "rows that a condition was evaluated on and not met by",
        ),
    ];
    let lost = lost.iter().filter(|(applies, _)| *applies);
    lost.map(|(_, what)| (*what).to_owned()).collect()
}

fn keeps_labels(history: &History) -> bool {
    let mut sessions = history.sessions().zip(processes(history));
    sessions.all(|(session, process)| {
        history.datum(history.session_label(session)) == Datum::Int(process)
    })
}

fn hides_results(history: &History, txn: TxnId) -> bool {
    history.outcome(txn) != Outcome::Committed
        && history.ops_of(txn).any(|op| match history.op(op).kind {
            OpKind::Read => history.op(op).value != Value::UNKNOWN,
            OpKind::ReadList | OpKind::PredicateRead => true,
            _ => false,
        })
}

fn leaves_rows_out(history: &History, txn: TxnId) -> bool {
    history.ops_of(txn).any(|op| {
        history.op(op).kind == OpKind::PredicateRead
            && history.predicate(op).rows.iter().any(|row| !row.matched)
    })
}

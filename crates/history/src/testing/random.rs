//! Histories with everything in them, at random, for round trips.

use crate::builder::HistoryBuilder;
use crate::history::{
    ALWAYS, History, Interval, KeyId, NEVER, OpKind, Outcome, Time, Timestamp, Timestamps,
    TxnTimes, VersionChain,
};
use crate::predicate::{Aggregate, Condition, Function, Predicate, PredicateRow};
use crate::snapshot::Snapshot;
use crate::value::{Datum, Value};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Texts that a careless writer would write as something else.
const TEXTS: [&str; 27] = [
    "x",
    "y",
    "",
    "nil",
    "7",
    "-3",
    "?",
    "a/b",
    "a..b",
    "a.",
    "serial",
    "event",
    "complete",
    "aborted",
    "error",
    "A.1",
    "T7",
    "S7",
    "two words",
    "#",
    "\"",
    "\\",
    "\n\t\r",
    "\u{1b}",
    "é\u{2028}",
    "db1:5432",
    "*",
];

/// A history made of `seed` alone.
pub(crate) fn random_history(seed: u64) -> History {
    let mut random =
        Random { numbers: Xoshiro256PlusPlus::seed_from_u64(seed), builder: HistoryBuilder::new() };
    random.declarations();
    let mut txns = Vec::new();
    for _ in 0..random.below(6) {
        let label = random.value();
        let session = random.builder.session(label);
        let txn = random.builder.begin(session);
        random.transaction(txn);
        txns.push(txn);
    }
    if random.below(2) == 0 {
        txns.reverse();
        txns.truncate(random.below(6) as usize);
        random.builder.total_order(txns);
    }
    for _ in 0..random.below(3) {
        let text = random.text().to_owned();
        let time = (random.below(2) == 0).then(|| random.time(NEVER));
        random.builder.event(time, text);
    }
    random.builder.finish("random").expect("small")
}

struct Random {
    numbers: Xoshiro256PlusPlus,
    builder: HistoryBuilder,
}

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.numbers.random_range(0..limit)
    }

    fn text(&mut self) -> &'static str {
        TEXTS[self.below(TEXTS.len() as u64) as usize]
    }

    fn value(&mut self) -> Value {
        let text = self.text();
        let datum = match self.below(9) {
            0 => Datum::Nil,
            1 => Datum::Unknown,
            2 => Datum::Int(i128::from(u64::MAX)),
            3 => Datum::Int(i128::from(i64::MIN)),
            4 => Datum::Keyword(text),
            5 => Datum::Other(text),
            6 => Datum::Text(text),
            _ => Datum::Int(i128::from(self.below(9))),
        };
        self.builder.values().intern_datum(datum)
    }

    fn values(&mut self) -> Vec<Value> {
        (0..self.below(4)).map(|_| self.value()).collect()
    }

    fn key(&mut self) -> KeyId {
        let name = self.value();
        self.builder.key(name)
    }

    fn time(&mut self, missing: Time) -> Time {
        match self.below(4) {
            0 => missing,
            1 => -self.below(99).cast_signed(),
            _ => self.below(99).cast_signed(),
        }
    }

    fn interval(&mut self) -> Interval {
        Interval { invoked: self.time(ALWAYS), completed: self.time(NEVER) }
    }

    fn declarations(&mut self) {
        if self.below(2) == 0 {
            let value = self.value();
            self.builder.initial_default(value);
        }
        for _ in 0..self.below(3) {
            let (key, value) = (self.key(), self.value());
            self.builder.initial(key, value);
        }
        for _ in 0..self.below(3) {
            let (label, endpoint, origin) = (self.value(), self.value(), self.value());
            let session = self.builder.session(label);
            self.builder.endpoint(session, endpoint);
            self.builder.origin(session, origin);
        }
        for _ in 0..self.below(3) {
            let (key, values) = (self.key(), self.values());
            let numbers = (0..values.len() as u32).filter(|_| self.below(3) == 0);
            let numbers: Vec<u32> = numbers.collect();
            let numbers = numbers.into_iter().map(|at| (at, self.below(20))).collect();
            self.builder.version_chain(VersionChain {
                key,
                values,
                numbers,
                complete: self.numbers.random(),
            });
        }
    }

    fn transaction(&mut self, txn: crate::DraftTxn) {
        if self.below(2) == 0 {
            let (label, error) = (self.value(), self.value());
            self.builder.label(txn, label);
            self.builder.error(txn, error);
        }
        let outcomes = [Outcome::Committed, Outcome::Aborted, Outcome::Unknown];
        let outcome = outcomes[self.below(3) as usize];
        self.builder.outcome(txn, outcome);
        let (begin, commit) = (self.interval(), self.interval());
        match self.below(3) {
            0 => self.builder.interval(txn, begin),
            1 => self.builder.times(txn, TxnTimes { begin, commit }),
            _ => {}
        }
        if self.below(3) == 0 {
            let [start, commit] =
                [0; 2].map(|_: u8| Timestamp { physical: self.below(9), logical: self.below(2) });
            self.builder.timestamps(txn, Timestamps { start, commit });
        }
        if self.below(3) == 0 {
            let (number, snapshot) = (self.below(9), self.snapshot());
            self.builder.number(txn, number);
            self.builder.txn_snapshot(txn, snapshot);
        }
        for _ in 0..self.below(5) {
            self.operation();
        }
    }

    fn operation(&mut self) {
        let kind = OpKind::ALL[self.below(10) as usize];
        let (key, value) = (self.key(), self.value());
        match kind {
            OpKind::ReadList => {
                let elements = self.values();
                self.builder.read_list(key, &elements);
            }
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let predicate = self.predicate();
                self.builder.predicate(kind, predicate);
            }
            _ => self.builder.op(kind, key, value),
        }
        if self.below(4) == 0 {
            let (column, content) = (self.value(), self.value());
            self.builder.row_column(column, content);
        }
        if self.below(3) == 0 {
            let interval = self.interval();
            self.builder.op_interval(interval);
        }
        if self.below(4) == 0 {
            let snapshot = self.snapshot();
            self.builder.op_snapshot(snapshot);
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let except = (0..self.below(3)).map(|_| self.below(9)).collect();
        Snapshot { below: self.below(9), except }
    }

    fn predicate(&mut self) -> Predicate {
        let (low, high, column) = (self.value(), self.value(), self.value());
        let condition = match self.below(7) {
            0 => Condition::All,
            1 => Condition::Equals(low),
            2 => Condition::Modulo { modulus: 1 + self.below(9), remainder: self.below(9) },
            3 => Condition::KeyRange { low, high },
            4 => Condition::ColumnRange { column, low, high },
            5 => Condition::ValueRange { low, high },
            _ => Condition::Notation(low),
        };
        let rows = (0..self.below(4)).map(|_| PredicateRow {
            key: self.key(),
            value: self.value(),
            matched: self.below(2) == 0,
        });
        let rows = rows.collect();
        let result = self.value();
        let function = Function::ALL.get(self.below(8) as usize);
        let aggregate = function.map(|&function| Aggregate { function, result });
        Predicate { condition, rows, aggregate }
    }
}

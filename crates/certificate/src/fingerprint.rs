//! Recognising the history that a certificate is about.
//!
//! The hash covers everything that a verdict depends on: sessions, outcomes, operations,
//! keys and values by content, initial values, given version orders, and the times of
//! transactions. Labels, positions and whatever else only a reader sees are left out, so
//! the same history in another format has the same fingerprint, as long as the format
//! keeps it whole and in the same order; a certificate names transactions, operations
//! and keys by their number, and so must this.
//!
//! It is the XXH3 of 128 bits, over numbers of 64 bits. It tells histories apart that were
//! mixed up. It is not cryptographic: somebody who wants to can make two histories with one
//! fingerprint. The verifier does not rely on it, since it checks every proof against the
//! history that it was given.

use isolde_history::{Condition, Datum, History, KeyId, OpKind, Snapshot, Value};
use std::fmt;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// A hash of a history, and its size for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The hash.
    pub hash: u128,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many transactions.
    pub transactions: u64,
    /// How many operations.
    pub operations: u64,
}

impl Fingerprint {
    /// The fingerprint of a history.
    pub fn of(history: &History) -> Fingerprint {
        let mut contents = Contents::new(history);
        contents.keys();
        contents.transactions();
        contents.operations();
        contents.given_orders();
        Fingerprint {
            hash: contents.hash.digest128(),
            sessions: history.session_count() as u64,
            transactions: history.txn_count() as u64,
            operations: history.op_count() as u64,
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fingerprint { hash, sessions, transactions, operations } = self;
        write!(
            out,
            "{transactions} transactions and {operations} operations in {sessions} sessions, \
             fingerprint {hash:032x}"
        )
    }
}

struct Contents<'a> {
    history: &'a History,
    hash: Xxh3,
    /// By place in the table of values.
    of_values: Vec<u64>,
}

impl<'a> Contents<'a> {
    fn new(history: &'a History) -> Self {
        let of_values = history.values().table().map(of_datum).collect();
        Contents { history, hash: Xxh3::new(), of_values }
    }

    fn word(&mut self, word: u64) {
        self.hash.update(&word.to_le_bytes());
    }

    fn value(&mut self, value: Value) {
        const TABLE: u32 = 1 << 31;
        const RESERVED: u32 = 2;
        let bits = value.bits();
        let place = (bits & !TABLE).checked_sub(RESERVED).filter(|_| bits & TABLE != 0);
        let word = place.map_or(u64::from(bits), |place| self.of_values[place as usize]);
        self.word(word);
    }

    fn key(&mut self, key: KeyId) {
        self.word(u64::from(key.0));
    }

    fn keys(&mut self) {
        self.word(self.history.key_count() as u64);
        for key in self.history.keys() {
            self.value(self.history.key_name(key));
            self.value(self.history.initial(key));
        }
    }

    fn transactions(&mut self) {
        let history = self.history;
        self.word(history.session_count() as u64);
        for session in history.sessions() {
            self.word(history.session_range(session).len() as u64);
        }
        self.word(u64::from(history.has_times()));
        for txn in history.txns() {
            self.word(history.outcome(txn) as u64);
            self.word(history.op_range(txn).len() as u64);
            if let Some(number) = history.number(txn) {
                self.word(number);
            }
            if let Some(snapshot) = history.txn_snapshot(txn) {
                self.snapshot(snapshot);
            }
            if history.has_times() {
                let times = history.txn_times(txn);
                for interval in [times.begin, times.commit] {
                    self.word(interval.invoked.cast_unsigned());
                    self.word(interval.completed.cast_unsigned());
                }
            }
        }
    }

    fn operations(&mut self) {
        let history = self.history;
        let has_rows = history.has_rows();
        for op in (0..history.op_count() as u32).map(isolde_history::OpId) {
            let isolde_history::Op { kind, key, value } = history.op(op);
            self.word(kind as u64);
            match kind {
                OpKind::ReadList => {
                    self.key(key);
                    let elements = history.list(op);
                    self.word(elements.len() as u64);
                    for &element in elements {
                        self.value(element);
                    }
                }
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    let predicate = history.predicate(op);
                    self.condition(&predicate.condition);
                    if let Some(aggregate) = predicate.aggregate {
                        self.word(u64::MAX - aggregate.function as u64);
                        self.value(aggregate.result);
                    }
                    if let Some(snapshot) = history.op_snapshot(op) {
                        self.snapshot(snapshot);
                    }
                    self.word(predicate.rows.len() as u64);
                    for row in &predicate.rows {
                        self.key(row.key);
                        self.value(row.value);
                        self.word(u64::from(row.matched));
                    }
                }
                _ => {
                    self.key(key);
                    self.value(value);
                }
            }
            if has_rows {
                for (column, content) in history.row(op) {
                    self.value(column);
                    self.value(content);
                }
            }
        }
    }

    fn condition(&mut self, condition: &Condition) {
        match *condition {
            Condition::All => self.word(1),
            Condition::Equals(value) => {
                self.word(2);
                self.value(value);
            }
            Condition::Modulo { modulus, remainder } => {
                self.word(3);
                self.word(modulus);
                self.word(remainder);
            }
            Condition::KeyRange { low, high } => {
                self.word(4);
                self.value(low);
                self.value(high);
            }
            Condition::ColumnRange { column, low, high } => {
                self.word(5);
                self.value(column);
                self.value(low);
                self.value(high);
            }
            Condition::Notation(notation) => {
                self.word(6);
                self.value(notation);
            }
            Condition::ValueRange { low, high } => {
                self.word(7);
                self.value(low);
                self.value(high);
            }
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.word(snapshot.below);
        self.word(snapshot.except.len() as u64);
        for &number in &snapshot.except {
            self.word(number);
        }
    }

    fn given_orders(&mut self) {
        let history = self.history;
        for chain in &history.orders().versions {
            self.key(chain.key);
            self.word(chain.values.len() as u64);
            for &value in &chain.values {
                self.value(value);
            }
        }
    }
}

/// The kind of a datum is the seed of its hash.
fn of_datum(datum: Datum<'_>) -> u64 {
    match datum {
        Datum::Nil => xxh3_64_with_seed(b"", 1),
        Datum::Unknown => xxh3_64_with_seed(b"", 2),
        Datum::Int(number) => xxh3_64_with_seed(&number.to_le_bytes(), 3),
        Datum::Text(text) => xxh3_64_with_seed(text.as_bytes(), 4),
        Datum::Keyword(text) => xxh3_64_with_seed(text.as_bytes(), 5),
        Datum::Other(text) => xxh3_64_with_seed(text.as_bytes(), 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    fn of(text: &str) -> Fingerprint {
        Fingerprint::of(&parse_text(text).unwrap())
    }

    #[test]
    fn names_of_sessions_do_not_matter_and_everything_else_does() {
        let base = of("A: w(x,1) r(y,nil)\nB: r(x,1)\n");
        assert_eq!(of("C: w(x,1) r(y,nil)\nD: r(x,1)\n"), base);
        for other in [
            "A: w(x,2) r(y,nil)\nB: r(x,1)\n",
            "A: w(x,1) r(y,nil)\nB: r(x,nil)\n",
            "A: w(x,1) r(y,nil)\nA: r(x,1)\n",
            "A: w(z,1) r(y,nil)\nB: r(z,1)\n",
            "A: w(x,1)\nB: r(y,nil) r(x,1)\n",
            "A: r(x,1) r(y,nil)\nB: r(x,1)\n",
            "A: w(x,one) r(y,nil)\nB: r(x,one)\n",
        ] {
            assert_ne!(of(other).hash, base.hash, "{other}");
        }
    }
}

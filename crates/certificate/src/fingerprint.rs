//! Recognising the history that a certificate is about.
//!
//! The hash covers everything that a verdict depends on: sessions, outcomes, operations,
//! keys and values by content, initial values, given version orders, and the times of
//! transactions. Labels, positions and whatever else only a reader sees are left out, so
//! the same history in another format has the same fingerprint, as long as the format
//! keeps it whole and in the same order; a certificate names transactions, operations
//! and keys by their number, and so must this.
//!
//! It tells histories apart that were mixed up. It is not cryptographic: somebody who
//! wants to can make two histories with one fingerprint. The verifier does not rely on
//! it, since it checks every proof against the history that it was given.

use isolde_history::{Condition, Datum, History, KeyId, OpKind, Snapshot, Value};
use std::fmt;

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
            hash: contents.hash.finish(),
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
    hash: Hash,
    /// By place in the table of values.
    of_values: Vec<u64>,
}

impl<'a> Contents<'a> {
    fn new(history: &'a History) -> Self {
        let of_values = history.values().table().map(of_datum).collect();
        Contents { history, hash: Hash::default(), of_values }
    }

    fn value(&mut self, value: Value) {
        const TABLE: u32 = 1 << 31;
        const RESERVED: u32 = 2;
        let bits = value.bits();
        let place = (bits & !TABLE).checked_sub(RESERVED).filter(|_| bits & TABLE != 0);
        let word = place.map_or(u64::from(bits), |place| self.of_values[place as usize]);
        self.hash.word(word);
    }

    fn key(&mut self, key: KeyId) {
        self.hash.word(u64::from(key.0));
    }

    fn keys(&mut self) {
        self.hash.word(self.history.key_count() as u64);
        for key in self.history.keys() {
            self.value(self.history.key_name(key));
            self.value(self.history.initial(key));
        }
    }

    fn transactions(&mut self) {
        let history = self.history;
        self.hash.word(history.session_count() as u64);
        for session in history.sessions() {
            self.hash.word(history.session_range(session).len() as u64);
        }
        self.hash.word(u64::from(history.has_times()));
        for txn in history.txns() {
            self.hash.word(history.outcome(txn) as u64);
            self.hash.word(history.op_range(txn).len() as u64);
            if let Some(number) = history.number(txn) {
                self.hash.word(number);
            }
            if let Some(snapshot) = history.txn_snapshot(txn) {
                self.snapshot(snapshot);
            }
            if history.has_times() {
                let times = history.txn_times(txn);
                for interval in [times.begin, times.commit] {
                    self.hash.word(interval.invoked.cast_unsigned());
                    self.hash.word(interval.completed.cast_unsigned());
                }
            }
        }
    }

    fn operations(&mut self) {
        let history = self.history;
        let has_rows = history.has_rows();
        for op in (0..history.op_count() as u32).map(isolde_history::OpId) {
            let isolde_history::Op { kind, key, value } = history.op(op);
            self.hash.word(kind as u64);
            match kind {
                OpKind::ReadList => {
                    self.key(key);
                    let elements = history.list(op);
                    self.hash.word(elements.len() as u64);
                    for &element in elements {
                        self.value(element);
                    }
                }
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    let predicate = history.predicate(op);
                    self.condition(&predicate.condition);
                    if let Some(aggregate) = predicate.aggregate {
                        self.hash.word(u64::MAX - aggregate.function as u64);
                        self.value(aggregate.result);
                    }
                    if let Some(snapshot) = history.op_snapshot(op) {
                        self.snapshot(snapshot);
                    }
                    self.hash.word(predicate.rows.len() as u64);
                    for row in &predicate.rows {
                        self.key(row.key);
                        self.value(row.value);
                        self.hash.word(u64::from(row.matched));
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
            Condition::All => self.hash.word(1),
            Condition::Equals(value) => {
                self.hash.word(2);
                self.value(value);
            }
            Condition::Modulo { modulus, remainder } => {
                self.hash.word(3);
                self.hash.word(modulus);
                self.hash.word(remainder);
            }
            Condition::KeyRange { low, high } => {
                self.hash.word(4);
                self.value(low);
                self.value(high);
            }
            Condition::ColumnRange { column, low, high } => {
                self.hash.word(5);
                self.value(column);
                self.value(low);
                self.value(high);
            }
            Condition::Notation(notation) => {
                self.hash.word(6);
                self.value(notation);
            }
            Condition::ValueRange { low, high } => {
                self.hash.word(7);
                self.value(low);
                self.value(high);
            }
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.hash.word(snapshot.below);
        self.hash.word(snapshot.except.len() as u64);
        for &number in &snapshot.except {
            self.hash.word(number);
        }
    }

    fn given_orders(&mut self) {
        let history = self.history;
        for chain in &history.orders().versions {
            self.key(chain.key);
            self.hash.word(chain.values.len() as u64);
            for &value in &chain.values {
                self.value(value);
            }
        }
    }
}

fn of_datum(datum: Datum<'_>) -> u64 {
    let mut hash = Hash::default();
    let (kind, text) = match datum {
        Datum::Nil => (1, ""),
        Datum::Unknown => (2, ""),
        Datum::Int(number) => {
            let bits = number.cast_unsigned();
            hash.word((bits >> 64) as u64);
            hash.word(bits as u64);
            (3, "")
        }
        Datum::Text(text) => (4, text),
        Datum::Keyword(text) => (5, text),
        Datum::Other(text) => (6, text),
    };
    hash.word(kind);
    hash.word(text.len() as u64);
    for piece in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..piece.len()].copy_from_slice(piece);
        hash.word(u64::from_le_bytes(word));
    }
    hash.finish() as u64
}

/// Two lanes of multiply and rotate, finished by a mixing of all bits.
struct Hash {
    lanes: [u64; 2],
}

impl Default for Hash {
    fn default() -> Self {
        Hash { lanes: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344] }
    }
}

impl Hash {
    /// Odd numbers without a pattern: the digits of the golden ratio and of the square root of two.
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0x6a09_e667_f3bc_c909];

    #[inline]
    fn word(&mut self, word: u64) {
        for (lane, factor) in self.lanes.iter_mut().zip(Hash::FACTORS) {
            *lane = (*lane ^ word).wrapping_mul(factor).rotate_left(29);
        }
    }

    fn finish(&self) -> u128 {
        let mixed = self.lanes.map(|lane| {
            let lane = (lane ^ (lane >> 32)).wrapping_mul(Hash::FACTORS[0]);
            let lane = (lane ^ (lane >> 29)).wrapping_mul(Hash::FACTORS[1]);
            lane ^ (lane >> 32)
        });
        u128::from(mixed[0]) << 64 | u128::from(mixed[1])
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

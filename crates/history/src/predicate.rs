//! Reads by condition: which rows met it, and which versions it was evaluated on.

use crate::condition_sql;
use crate::history::{History, KeyId, OpId, OpKind};
use crate::value::{Datum, Value, Values, is_bare_word};
use std::fmt;

/// A condition on rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// Every row.
    All,
    /// Rows whose value is this.
    Equals(Value),
    /// Rows whose value leaves `remainder` when divided by `modulus`.
    Modulo {
        /// The divisor, at least 1.
        modulus: u64,
        /// What must be left.
        remainder: u64,
    },
    /// Rows whose value lies between the bounds, both included; nil is no bound.
    ValueRange {
        /// The lowest value.
        low: Value,
        /// The highest value.
        high: Value,
    },
    /// Rows whose key lies between the bounds, both included; nil is no bound.
    KeyRange {
        /// The lowest key.
        low: Value,
        /// The highest key.
        high: Value,
    },
    /// Rows whose column lies between the bounds, both included.
    ColumnRange {
        /// The column's name.
        column: Value,
        /// The lowest content.
        low: Value,
        /// The highest content.
        high: Value,
    },
    /// A condition in another notation. SQL is understood as far as databases agree on it.
    Notation(Value),
}

/// One row that a predicate was evaluated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PredicateRow {
    /// The row's key.
    pub key: KeyId,
    /// The version it was evaluated on, named as a read would name it.
    pub value: Value,
    /// Whether the row was returned.
    pub matched: bool,
}

/// A predicate operation's condition and what it saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The condition.
    pub condition: Condition,
    /// Rows returned, and as much of the version set as the source tells. An update's
    /// matched rows may have a value that was never learned.
    pub rows: Vec<PredicateRow>,
    /// What was computed from the rows that met the condition, if not the rows themselves
    /// were returned. Then rows that are not listed may have met it too.
    pub aggregate: Option<Aggregate>,
}

/// What an operation computed from all rows that met its condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aggregate {
    /// How it was computed.
    pub function: Function,
    /// What came of it; nil for the least, largest or sum of nothing.
    pub result: Value,
}

/// How a number is made of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Function {
    /// How many rows there are.
    Count = 0,
    /// The least value.
    Min = 1,
    /// The largest value.
    Max = 2,
    /// The sum of the values.
    Sum = 3,
}

impl Function {
    /// All functions, in the order of their numbers.
    pub const ALL: [Function; 4] = [Function::Count, Function::Min, Function::Max, Function::Sum];

    /// `count`, `min`, `max` or `sum`.
    pub const fn name(self) -> &'static str {
        match self {
            Function::Count => "count",
            Function::Min => "min",
            Function::Max => "max",
            Function::Sum => "sum",
        }
    }
}

/// What a version of a row adds to an operation by condition. A version *changes* what the
/// operation finds if it adds something else than the version before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Share {
    /// The row does not meet the condition, or does not exist.
    Nothing,
    /// The row is one more.
    Row,
    /// The row's value.
    Value(Value),
}

/// What the result of an aggregate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// It was never learned, or is in a notation that is not understood.
    Untold,
    /// There was nothing to compute it of.
    Nothing,
    /// This number. Sums may be larger than any value that a history can have.
    Number(i128),
    /// No number at all.
    NoNumber,
}

impl Aggregate {
    /// What the result says. Sources have large numbers as text; what has digits but is no
    /// whole number might be one in a notation of theirs, such as `5.0` or `1e20`.
    pub fn computed(&self, values: &Values) -> Computed {
        match values.datum(self.result) {
            Datum::Unknown => Computed::Untold,
            Datum::Nil => Computed::Nothing,
            Datum::Int(number) => Computed::Number(number),
            Datum::Text(text) | Datum::Other(text) => match text.trim().parse() {
                Ok(number) => Computed::Number(number),
                Err(_) if text.contains(char::is_numeric) => Computed::Untold,
                Err(_) => Computed::NoNumber,
            },
            Datum::Keyword(_) => Computed::NoNumber,
        }
    }

    /// Whether these shares of all rows give the result; `None` if that cannot be told.
    pub fn agrees(&self, values: &Values, shares: impl Iterator<Item = Share>) -> Option<bool> {
        let mut rows = 0u64;
        let mut number: Option<i128> = None;
        for share in shares {
            match share {
                Share::Nothing => {}
                Share::Row => rows += 1,
                Share::Value(value) => {
                    let Datum::Int(value) = values.datum(value) else { return None };
                    number = Some(match (self.function, number) {
                        (_, None) => value,
                        (Function::Min, Some(least)) => least.min(value),
                        (Function::Max, Some(largest)) => largest.max(value),
                        (_, Some(sum)) => sum.checked_add(value)?,
                    });
                }
            }
        }
        let found = if self.function == Function::Count { Some(rows.into()) } else { number };
        match (self.computed(values), found) {
            (Computed::Untold, _) => None,
            (Computed::Number(result), Some(found)) => Some(result == found),
            (Computed::Nothing, None) => Some(true),
            _ => Some(false),
        }
    }
}

impl History {
    /// Whether a version of a key meets a condition: the version that `write` installed, or
    /// the initial one. A row that is deleted or was never made meets none. `None` if it
    /// cannot be told.
    pub fn meets(&self, condition: &Condition, key: KeyId, write: Option<OpId>) -> Option<bool> {
        let value = match write {
            Some(write) => {
                let op = self.op(write);
                if op.kind == OpKind::Delete {
                    return Some(false);
                }
                op.value
            }
            None => self.initial(key),
        };
        if value == Value::NIL {
            return Some(false);
        }
        let name = self.key_name(key);
        match condition {
            Condition::ColumnRange { .. } | Condition::Notation(_) => {
                let columns: Vec<_> = write.map(|it| self.row(it).collect()).unwrap_or_default();
                condition.holds(self.values(), name, value, &columns)
            }
            _ => condition.holds(self.values(), name, value, &[]),
        }
    }

    /// The keys of rows that an update by condition replaced, where it lists none: those of
    /// the writes and deletes directly behind it.
    pub fn replaced(&self, op: OpId) -> impl Iterator<Item = KeyId> {
        let lists_none = || self.predicate(op).rows.iter().all(|row| !row.matched);
        let is_update = self.op(op).kind == OpKind::PredicateUpdate && lists_none();
        let end = self.op_range(self.txn_of(op)).end;
        let behind = op.0 + 1..if is_update { end } else { 0 };
        behind
            .map(|op| self.op(OpId(op)))
            .take_while(|op| matches!(op.kind, OpKind::Write | OpKind::Delete))
            .map(|op| op.key)
    }

    /// What a version of a key adds to an operation by condition; see [`History::meets`].
    pub fn share(&self, predicate: &Predicate, key: KeyId, write: Option<OpId>) -> Option<Share> {
        if !self.meets(&predicate.condition, key, write)? {
            return Some(Share::Nothing);
        }
        let takes_values = |it: Aggregate| it.function != Function::Count;
        if !predicate.aggregate.is_some_and(takes_values) {
            return Some(Share::Row);
        }
        Some(Share::Value(write.map_or(self.initial(key), |write| self.op(write).value)))
    }
}

impl Predicate {
    /// Rows that are reads of their keys: those returned, and of a range of keys all that
    /// are listed.
    pub fn item_rows(&self) -> impl Iterator<Item = &PredicateRow> {
        let all = self.condition.is_range();
        self.rows.iter().filter(move |row| row.matched || all)
    }

    /// Aggregate and condition as the native text format writes them.
    pub fn display<'a>(&'a self, values: &'a Values) -> impl fmt::Display + 'a {
        fmt::from_fn(move |out| {
            let condition = self.condition.display(values);
            match self.aggregate {
                None => write!(out, "{condition}"),
                Some(Aggregate { function, result }) => {
                    write!(out, "{} {condition} -> {}", function.name(), values.datum(result))
                }
            }
        })
    }

    pub(crate) fn memory(&self) -> usize {
        size_of::<Predicate>() + self.rows.capacity() * size_of::<PredicateRow>()
    }
}

impl Condition {
    /// Whether it is about keys alone, so that all keys that meet it can be listed.
    pub const fn is_range(&self) -> bool {
        matches!(self, Condition::All | Condition::KeyRange { .. })
    }

    /// Whether a row meets the condition; `None` if that cannot be told from its
    /// key, its value and the given columns.
    pub fn holds(
        &self,
        values: &Values,
        key: Value,
        value: Value,
        columns: &[(Value, Value)],
    ) -> Option<bool> {
        if value == Value::UNKNOWN {
            return None;
        }
        match *self {
            Condition::All => Some(value != Value::NIL),
            Condition::Equals(wanted) => Some(value == wanted),
            Condition::Modulo { modulus, remainder } => match values.datum(value) {
                Datum::Int(number) => {
                    Some(number.rem_euclid(i128::from(modulus)) == i128::from(remainder))
                }
                Datum::Nil => Some(false),
                _ => None,
            },
            // A dead row in range is in the version set, but never returned.
            Condition::ValueRange { .. } | Condition::KeyRange { .. } if value == Value::NIL => {
                Some(false)
            }
            Condition::ValueRange { low, high } => between(values, low, value, high),
            Condition::KeyRange { low, high } => between(values, low, key, high),
            Condition::ColumnRange { column, low, high } => {
                let content = columns.iter().find(|entry| entry.0 == column)?.1;
                between(values, low, content, high)
            }
            Condition::Notation(_) if value == Value::NIL => Some(false),
            Condition::Notation(text) => match values.datum(text) {
                Datum::Text(text) => {
                    condition_sql::holds(text, &condition_sql::Row { values, key, value, columns })
                }
                _ => None,
            },
        }
    }

    /// The condition as the native text format writes it.
    pub fn display<'a>(&'a self, values: &'a Values) -> impl fmt::Display + 'a {
        fmt::from_fn(move |out| match *self {
            Condition::All => out.write_str("all"),
            Condition::Equals(value) => write!(out, "value = {}", values.datum(value)),
            Condition::Modulo { modulus, remainder } => {
                write!(out, "value mod {modulus} = {remainder}")
            }
            Condition::ValueRange { low, high } => {
                write!(out, "value {}..{}", Bound(values.datum(low)), Bound(values.datum(high)))
            }
            Condition::KeyRange { low, high } => {
                write!(out, "key {}..{}", Bound(values.datum(low)), Bound(values.datum(high)))
            }
            Condition::ColumnRange { column, low, high } => {
                let (low, high) = (Bound(values.datum(low)), Bound(values.datum(high)));
                write!(out, "column {} {low}..{high}", values.datum(column))
            }
            Condition::Notation(notation) => {
                write!(out, "where {}", values.datum(notation))
            }
        })
    }
}

/// An end of a range. Words with dots would run into the dots of the range.
struct Bound<'a>(Datum<'a>);

impl fmt::Display for Bound<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Datum::Text(word) if is_bare_word(word) && word.contains('.') => {
                write!(out, "\"{word}\"")
            }
            Datum::Keyword(word) if is_bare_word(word) && word.contains('.') => {
                write!(out, ":\"{word}\"")
            }
            other => other.fmt(out),
        }
    }
}

/// Numbers compare as numbers, text as text; a mixed pair cannot be told.
fn between(values: &Values, low: Value, middle: Value, high: Value) -> Option<bool> {
    let at_most = |small: Value, large: Value| match (values.datum(small), values.datum(large)) {
        (Datum::Nil, _) | (_, Datum::Nil) => Some(true),
        (Datum::Int(small), Datum::Int(large)) => Some(small <= large),
        (Datum::Text(small), Datum::Text(large)) => Some(small <= large),
        _ => None,
    };
    Some(at_most(low, middle)? && at_most(middle, high)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_numbers_in_any_notation_of_whole_numbers() {
        let mut values = Values::default();
        let largest = i128::MAX.to_string();
        for (datum, computed) in [
            (Datum::Int(7), Computed::Number(7)),
            (Datum::Other("18446744073709551616"), Computed::Number(1 << 64)),
            (Datum::Text("-9223372036854775809"), Computed::Number(-(1 << 63) - 1)),
            (Datum::Text(&largest), Computed::Number(i128::MAX)),
            (Datum::Text(&format!("{largest}0")), Computed::Untold),
            (Datum::Other("5.0"), Computed::Untold),
            (Datum::Unknown, Computed::Untold),
            (Datum::Nil, Computed::Nothing),
            (Datum::Text("many"), Computed::NoNumber),
            (Datum::Other("true"), Computed::NoNumber),
        ] {
            let result = values.intern_datum(datum);
            let aggregate = Aggregate { function: Function::Sum, result };
            assert_eq!(aggregate.computed(&values), computed, "{datum}");
        }
    }
}

//! Reads by condition: which rows met it, and which versions it was evaluated on.

use crate::history::KeyId;
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
    /// A condition in a notation that is kept but not understood.
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
    /// Rows returned, and as much of the version set as the source tells.
    pub rows: Vec<PredicateRow>,
}

impl Predicate {
    pub(crate) fn memory(&self) -> usize {
        size_of::<Predicate>() + self.rows.capacity() * size_of::<PredicateRow>()
    }
}

impl Condition {
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
            Condition::KeyRange { .. } if value == Value::NIL => Some(false),
            Condition::KeyRange { low, high } => between(values, low, key, high),
            Condition::ColumnRange { column, low, high } => {
                let content = columns.iter().find(|entry| entry.0 == column)?.1;
                between(values, low, content, high)
            }
            Condition::Notation(_) => None,
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

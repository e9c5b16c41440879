//! What clients ask a database for, and what it answers.
//!
//! Keys and values are natural numbers below 2^63. Registers are rows of a key and a value;
//! lists are apart from them.

pub use isolde_history::Function;
use std::fmt;

/// One request of a client.
///
/// More may come: a driver refuses what it does not know by
/// [`Failure::unsupported`](crate::Failure::unsupported).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Reads a register. Answer: [`Answer::Value`].
    Read {
        /// Its key.
        key: u64,
    },
    /// Writes a register, whether or not it exists. Answer: [`Answer::Done`].
    Write {
        /// Its key.
        key: u64,
        /// Its new value.
        value: u64,
    },
    /// Reads a list. Answer: [`Answer::List`], empty if there is none.
    ReadList {
        /// Its key.
        key: u64,
    },
    /// Appends to a list, which may have to be created. Answer: [`Answer::Done`].
    Append {
        /// Its key.
        key: u64,
        /// The new last element.
        value: u64,
    },
    /// Creates a row of the registers. Answer: [`Answer::Applied`]; if there was one, with
    /// `false`, or [`Answer::Found`], or the transaction is aborted.
    Insert {
        /// Its key.
        key: u64,
        /// Its value.
        value: u64,
    },
    /// Removes a row of the registers. Answer: [`Answer::Applied`], with `false` if
    /// there was none.
    Delete {
        /// Its key.
        key: u64,
    },
    /// Reads all registers with keys from `low` to `high`, both included, by one
    /// statement. Answer: [`Answer::Rows`].
    Range {
        /// The lowest key.
        low: u64,
        /// The highest key.
        high: u64,
    },
    /// Writes a register if it has the expected value, by one statement. Answer:
    /// [`Answer::Applied`]; if it has not, with `false` or [`Answer::Found`].
    CompareAndSet {
        /// Its key.
        key: u64,
        /// The value it must have; `None` if it must not exist.
        expected: Option<u64>,
        /// Its new value.
        value: u64,
    },
    /// Updates every register with a key from `low` to `high`, both included, by one
    /// statement: the one at `key` gets the value `first + (key - low)`. Answer:
    /// [`Answer::Rows`], the updated rows with their new values.
    UpdateRange {
        /// The lowest key.
        low: u64,
        /// The highest key.
        high: u64,
        /// The value that the lowest key gets.
        first: u64,
    },
    /// Reads all registers that meet a condition, by one statement. Answer:
    /// [`Answer::Rows`].
    Select {
        /// The condition.
        filter: Filter,
    },
    /// Computes something from all registers that meet a condition, by one statement.
    /// Answer: [`Answer::Value`]; the least or largest of nothing is `None`.
    Aggregate {
        /// What is computed.
        function: Function,
        /// The condition.
        filter: Filter,
    },
    /// Updates every register that meets a condition, by one statement: the one at `key`
    /// gets the value `first + key % `[`BLOCK`]. Answer: [`Answer::Rows`], the updated rows
    /// with their new values.
    UpdateWhere {
        /// The condition.
        filter: Filter,
        /// A multiple of [`BLOCK`].
        first: u64,
    },
    /// Removes every row of the registers that meets a condition. Answer:
    /// [`Answer::Rows`], the removed rows with their last values.
    DeleteWhere {
        /// The condition.
        filter: Filter,
    },
}

/// How many values an update by condition may take.
pub const BLOCK: u64 = 1 << 20;

/// A condition on rows of the registers. It has two numbers, so that all of them are
/// statements of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Keys between these, both included.
    Keys {
        /// The lowest key.
        low: u64,
        /// The highest key.
        high: u64,
    },
    /// Values between these, both included.
    Values {
        /// The lowest value.
        low: u64,
        /// The highest value.
        high: u64,
    },
    /// Values that leave this remainder.
    Remainder {
        /// The divisor, at least 1.
        modulus: u64,
        /// What is left.
        remainder: u64,
    },
}

impl Filter {
    /// Whether a row meets it.
    pub const fn holds(self, key: u64, value: u64) -> bool {
        match self {
            Filter::Keys { low, high } => low <= key && key <= high,
            Filter::Values { low, high } => low <= value && value <= high,
            Filter::Remainder { modulus, remainder } => value % modulus == remainder,
        }
    }

    /// Its two numbers.
    pub const fn numbers(self) -> [u64; 2] {
        match self {
            Filter::Keys { low, high } | Filter::Values { low, high } => [low, high],
            Filter::Remainder { modulus, remainder } => [modulus, remainder],
        }
    }
}

/// The kinds of requests, for what a workload needs and a database can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RequestKind {
    /// [`Request::Read`]
    Read,
    /// [`Request::Write`]
    Write,
    /// [`Request::ReadList`]
    ReadList,
    /// [`Request::Append`]
    Append,
    /// [`Request::Insert`]
    Insert,
    /// [`Request::Delete`]
    Delete,
    /// [`Request::Range`]
    Range,
    /// [`Request::CompareAndSet`]
    CompareAndSet,
    /// [`Request::UpdateRange`]
    UpdateRange,
    /// [`Request::Select`]
    Select,
    /// [`Request::Aggregate`]
    Aggregate,
    /// [`Request::UpdateWhere`]
    UpdateWhere,
    /// [`Request::DeleteWhere`]
    DeleteWhere,
}

impl RequestKind {
    /// All kinds.
    pub const ALL: [RequestKind; 13] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::ReadList,
        RequestKind::Append,
        RequestKind::Insert,
        RequestKind::Delete,
        RequestKind::Range,
        RequestKind::CompareAndSet,
        RequestKind::UpdateRange,
        RequestKind::Select,
        RequestKind::Aggregate,
        RequestKind::UpdateWhere,
        RequestKind::DeleteWhere,
    ];

    /// What messages call it.
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::ReadList => "list read",
            RequestKind::Append => "append",
            RequestKind::Insert => "insert",
            RequestKind::Delete => "delete",
            RequestKind::Range => "range read",
            RequestKind::CompareAndSet => "compare-and-set",
            RequestKind::UpdateRange => "range update",
            RequestKind::Select => "read by condition",
            RequestKind::Aggregate => "aggregate",
            RequestKind::UpdateWhere => "update by condition",
            RequestKind::DeleteWhere => "delete by condition",
        }
    }

    /// Whether a transaction of such requests changes nothing.
    pub const fn is_read(self) -> bool {
        matches!(
            self,
            RequestKind::Read
                | RequestKind::ReadList
                | RequestKind::Range
                | RequestKind::Select
                | RequestKind::Aggregate
        )
    }

    /// Whether it is about all rows that meet a [`Filter`].
    pub const fn is_by_condition(self) -> bool {
        matches!(
            self,
            RequestKind::Select
                | RequestKind::Aggregate
                | RequestKind::UpdateWhere
                | RequestKind::DeleteWhere
        )
    }

    /// Whether it is about a list. All others are about registers.
    pub const fn is_list(self) -> bool {
        matches!(self, RequestKind::ReadList | RequestKind::Append)
    }
}

impl Request {
    /// Its kind.
    pub const fn kind(&self) -> RequestKind {
        match self {
            Request::Read { .. } => RequestKind::Read,
            Request::Write { .. } => RequestKind::Write,
            Request::ReadList { .. } => RequestKind::ReadList,
            Request::Append { .. } => RequestKind::Append,
            Request::Insert { .. } => RequestKind::Insert,
            Request::Delete { .. } => RequestKind::Delete,
            Request::Range { .. } => RequestKind::Range,
            Request::CompareAndSet { .. } => RequestKind::CompareAndSet,
            Request::UpdateRange { .. } => RequestKind::UpdateRange,
            Request::Select { .. } => RequestKind::Select,
            Request::Aggregate { .. } => RequestKind::Aggregate,
            Request::UpdateWhere { .. } => RequestKind::UpdateWhere,
            Request::DeleteWhere { .. } => RequestKind::DeleteWhere,
        }
    }
}

/// What a database answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done, and there is nothing to tell.
    Done,
    /// The register's value; `None` if it does not exist.
    Value(Option<u64>),
    /// The elements of a list, first appended first.
    List(Vec<u64>),
    /// Keys and values of registers, in any order.
    Rows(Vec<(u64, u64)>),
    /// Whether the request changed anything.
    Applied(bool),
    /// The request did not apply, because of this value of the register; `None` if it does
    /// not exist.
    Found(Option<u64>),
}

/// What it tells, in words; nothing if it was only done.
impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&match self {
            Answer::Done => String::new(),
            Answer::Value(value) => value.map_or("nothing".to_owned(), |value| value.to_string()),
            Answer::List(elements) if elements.is_empty() => "an empty list".to_owned(),
            Answer::List(elements) => joined(elements.iter().map(u64::to_string)),
            Answer::Rows(rows) if rows.is_empty() => "no rows".to_owned(),
            Answer::Rows(rows) => {
                joined(rows.iter().map(|(key, value)| format!("{key} = {value}")))
            }
            Answer::Applied(true) => "applied".to_owned(),
            Answer::Applied(false) => "changed nothing".to_owned(),
            Answer::Found(value) => format!("changed nothing, found {}", Answer::Value(*value)),
        })
    }
}

fn joined(each: impl Iterator<Item = String>) -> String {
    each.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::Answer;

    #[test]
    fn answers_are_told_in_words() {
        for (answer, told) in [
            (Answer::Done, ""),
            (Answer::Value(Some(10)), "10"),
            (Answer::Value(None), "nothing"),
            (Answer::List(vec![1, 2]), "1, 2"),
            (Answer::List(vec![]), "an empty list"),
            (Answer::Rows(vec![(1, 10), (2, 20)]), "1 = 10, 2 = 20"),
            (Answer::Rows(vec![]), "no rows"),
            (Answer::Applied(true), "applied"),
            (Answer::Applied(false), "changed nothing"),
            (Answer::Found(Some(10)), "changed nothing, found 10"),
            (Answer::Found(None), "changed nothing, found nothing"),
        ] {
            assert_eq!(answer.to_string(), told);
        }
    }
}

//! The words of a history: ids, how transactions end, what operations do.

use crate::history::History;
use crate::value::Value;
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into columns.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

id!(
    /// A session: one client's sequence of transactions.
    SessionId
);
id!(
    /// A transaction.
    TxnId
);
id!(
    /// An operation.
    OpId
);
id!(
    /// A key.
    KeyId
);

/// How a transaction ended, as far as its client learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Outcome {
    /// The database confirmed the commit.
    Committed = 0,
    /// The database refused or the client rolled back.
    Aborted = 1,
    /// The client never learned.
    Unknown = 2,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OpKind {
    /// Read a register; the value is what was seen.
    Read = 0,
    /// Write a register.
    Write = 1,
    /// Append an element to a list.
    Append = 2,
    /// Read a list; [`History::list`] has the elements seen.
    ReadList = 3,
    /// Create a row. For ordering it is a write.
    Insert = 4,
    /// Remove a row. For ordering it is a write of a tombstone: the value, or nil.
    Delete = 5,
    /// A read that saw some value other than this one: a refused compare-and-set.
    ReadOther = 6,
    /// Read all rows that meet a condition; see [`History::predicate`].
    PredicateRead = 7,
    /// The reading half of an update by condition; its writes follow it.
    PredicateUpdate = 8,
    /// An operation that is neither read nor write (a bank transfer, a lock):
    /// the key names the function, the value its argument or result.
    Call = 9,
}

impl OpKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [OpKind; 10] = [
        OpKind::Read,
        OpKind::Write,
        OpKind::Append,
        OpKind::ReadList,
        OpKind::Insert,
        OpKind::Delete,
        OpKind::ReadOther,
        OpKind::PredicateRead,
        OpKind::PredicateUpdate,
        OpKind::Call,
    ];

    /// Whether the operation installs a version of its key.
    #[inline]
    pub const fn is_write(self) -> bool {
        matches!(self, OpKind::Write | OpKind::Append | OpKind::Insert | OpKind::Delete)
    }

    /// Whether the operation observes exactly one version of its key.
    #[inline]
    pub const fn is_item_read(self) -> bool {
        matches!(self, OpKind::Read | OpKind::ReadList)
    }

    /// Whether the operation has a key of the history (predicates have none).
    pub const fn has_key(self) -> bool {
        !matches!(self, OpKind::PredicateRead | OpKind::PredicateUpdate)
    }
}

/// One operation, copied out of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// What it does.
    pub kind: OpKind,
    /// Its key; [`KeyId`]`(u32::MAX)` for predicates.
    pub key: KeyId,
    /// The value read or written. For [`OpKind::ReadList`] and predicates these
    /// bits are an index: use [`History::list`] and [`History::predicate`].
    pub value: Value,
}

impl History {
    /// What was asked by an operation, without its literals; nil where the source does not tell.
    pub fn statement(&self, op: OpId) -> Value {
        let statements = &self.columns.statements;
        let place = statements.binary_search_by_key(&self.position(op), |entry| entry.0);
        place.map_or(Value::NIL, |place| statements[place].1)
    }

    /// Whether operations have statements.
    pub fn has_statements(&self) -> bool {
        !self.columns.statements.is_empty()
    }
}

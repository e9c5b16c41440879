//! What is generated: the clients, their transactions and the store's level.

use crate::anomaly::Anomaly;
use crate::simulated::Bug;
use std::fmt;

/// Everything a generated history depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Clients, each with one transaction at a time.
    pub sessions: u32,
    /// Committed transactions of all sessions together.
    pub transactions: u32,
    /// Operations of each transaction.
    pub operations: u32,
    /// The share of reads among the operations, or of read-only transactions where
    /// the kind of transaction has such; from 0 to 1.
    pub read_share: f64,
    /// Keys in use at a time.
    pub keys: u32,
    /// How often each key is used.
    pub distribution: Distribution,
    /// What transactions do.
    pub kind: TxnKind,
    /// What the store guarantees.
    pub isolation: Isolation,
    /// Which times the clients note.
    pub times: Times,
    /// What becomes of transactions that the store refuses.
    pub aborts: Aborts,
    /// What the store gets wrong now and then.
    pub bug: Option<Bug>,
    /// A fault after the last transaction, on keys of its own.
    pub anomaly: Option<Anomaly>,
    /// Chooses one of the histories that the other parameters allow.
    pub seed: u64,
}

/// How often each key is used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// All keys equally often.
    Uniform,
    /// The n-th key in proportion to `1 / n^theta`.
    Zipf {
        /// The exponent; 0 is uniform.
        theta: f64,
    },
    /// Four of five operations use the first fifth of the keys.
    Hotspot,
    /// Ever less often, such that 95 % of the operations use the first 6/7 of the keys.
    Exponential,
}

/// What transactions do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnKind {
    /// Each operation is a read or a write of its own.
    Mixed,
    /// Read-only transactions and transactions of writes alone.
    BlindWrite,
    /// Each key is read, then written; two operations a key.
    ReadModifyWrite,
    /// Each operation reads a list or appends to one. A key retires after
    /// 128 appends and a new one takes its place, so that lists stay short.
    ListAppend,
    /// One or two reads and up to two writes of keys that were read before, in any of
    /// the possible orders.
    MiniTransaction,
    /// The transactions of an application.
    Application(Application),
    /// Transactions on rows that come and go, or on conditions. The simulated store has
    /// none.
    Rows(Rows),
}

/// An application whose transactions read and write registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Transfers between accounts, and looks at all of them.
    Bank,
    /// Checking and savings accounts, six kinds of transactions.
    SmallBank,
    /// Warehouses and orders, five kinds of transactions.
    TpcC,
    /// Auctions, six kinds of transactions.
    Rubis,
    /// Messages and followers, five kinds of transactions.
    Twitter,
}

/// What transactions do with rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Blind writes, and reads of which half are of ranges of ten keys.
    BlindWriteRange,
    /// Transactions of one kind of operation each: reads, writes, inserts, deletes and
    /// ranges in these percentages.
    Mix {
        /// Of read and of write transactions, each.
        items: u8,
        /// Of insert and of delete transactions, each.
        changes: u8,
    },
    /// Reads, aggregates, updates and deletes by condition beside reads and writes of
    /// single rows.
    Predicates {
        /// Operations by condition, in percent.
        share: u8,
        /// Of those that change something, deletes, in percent.
        deletes: u8,
    },
    /// Reads by condition, once, twice or before the insert of a new row that meets it: what
    /// goes wrong shows in conditions alone.
    Phantoms,
    /// A look at the newest rows, and an insert of one of them or of the next: clients insert
    /// the same rows at about the same time.
    Inserts,
    /// A read, or a compare-and-set of the value last seen; one request a transaction.
    CompareAndSet,
    /// The transactions of an application with the amounts that it computes, which repeat.
    Balances(Application),
    /// Reads and writes of different keys, with values that are drawn from a few.
    FewValues {
        /// How many.
        values: u8,
    },
}

impl TxnKind {
    /// Whether values are lists.
    pub const fn is_list(self) -> bool {
        matches!(self, TxnKind::ListAppend)
    }

    /// Whether several writes may write the same value.
    pub const fn has_repeated_values(self) -> bool {
        matches!(self, TxnKind::Rows(Rows::Balances(_) | Rows::FewValues { .. }))
    }
}

/// What the store guarantees. Each is a different store; see [`crate::generate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// Writes are in place at once, and taken back when refused. Only one
    /// transaction at a time may have written a key.
    ReadUncommitted,
    /// Every read sees what is committed at that moment.
    ReadCommitted,
    /// Replicas that take over whole transactions, in any order.
    ReadAtomic,
    /// Replicas that take over a transaction after all it depends on.
    Causal,
    /// Snapshots; of two concurrent writers of a key the second is refused.
    SnapshotIsolation,
    /// Snapshots; a writer is refused if anything it read or wrote has changed.
    Serializable,
}

impl Isolation {
    /// All of them, from weak to strong.
    pub const ALL: [Isolation; 6] = [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::ReadAtomic,
        Isolation::Causal,
        Isolation::SnapshotIsolation,
        Isolation::Serializable,
    ];

    /// Whether its store lets everybody see the versions of a key in one order, as lists
    /// must have it.
    pub const fn has_one_order(self) -> bool {
        !matches!(self, Isolation::ReadUncommitted | Isolation::ReadAtomic | Isolation::Causal)
    }

    /// The level of this name.
    pub fn by_name(name: &str) -> Option<Isolation> {
        Isolation::ALL.into_iter().find(|isolation| isolation.name() == name)
    }

    /// The level's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read-uncommitted",
            Isolation::ReadCommitted => "read-committed",
            Isolation::ReadAtomic => "read-atomic",
            Isolation::Causal => "causal",
            Isolation::SnapshotIsolation => "snapshot-isolation",
            Isolation::Serializable => "serializable",
        }
    }
}

/// Which times the clients note. The instants at which the store acts lie inside
/// the intervals, so the snapshot levels hold in real time too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// None.
    None,
    /// Begin and commit of each transaction.
    Transactions,
    /// Those, and each operation.
    Operations,
}

/// What becomes of transactions that the store refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aborts {
    /// They leave no trace, unless others may have read from them.
    LeftOut,
    /// They are part of the history.
    Recorded,
}

/// Parameters that no history has. Displayed as `expected …, found …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError {
    message: String,
}

impl ParameterError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        ParameterError { message: message.into() }
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for ParameterError {}

/// Operations are numbered with 31 bits; refused transactions need some too.
const OPERATIONS_MAX: u64 = 1 << 30;
/// Each client has room for one transaction of its own.
const SESSIONS_MAX: u32 = 1 << 20;
/// Keys of retired lists are numbered on from here.
const KEYS_MAX: u32 = 1 << 28;

impl Parameters {
    /// Whether there are clients with these parameters.
    pub(crate) fn validate_clients(&self) -> Result<(), ParameterError> {
        let from_one = [
            ("sessions", self.sessions, SESSIONS_MAX),
            ("operations", self.operations, 1 << 16),
            ("keys", self.keys, KEYS_MAX),
        ];
        for (what, found, most) in from_one {
            if found == 0 || found > most {
                let message = format!("expected 1 to {most} {what}, found {found}");
                return Err(ParameterError::new(message));
            }
        }
        let operations = u64::from(self.transactions) * u64::from(self.operations);
        if operations > OPERATIONS_MAX {
            let message =
                format!("expected at most {OPERATIONS_MAX} operations in all, found {operations}");
            return Err(ParameterError::new(message));
        }
        if !(0.0..=1.0).contains(&self.read_share) {
            let message = format!("expected a read share from 0 to 1, found {}", self.read_share);
            return Err(ParameterError::new(message));
        }
        if let Distribution::Zipf { theta } = self.distribution
            && !(0.0..=10.0).contains(&theta)
        {
            let message = format!("expected an exponent from 0 to 10, found {theta}");
            return Err(ParameterError::new(message));
        }
        Ok(())
    }

    /// Whether the simulated database has histories with these parameters.
    pub fn validate(&self) -> Result<(), ParameterError> {
        self.validate_clients()?;
        if let (TxnKind::Rows(_), Some(_)) = (self.kind, self.anomaly) {
            let message = "expected a workload of plain reads and writes, or of lists, to add a \
                           fault to, found one of rows, inserts or compare-and-sets: choose a \
                           bug of the simulated database instead (`--bug`)";
            return Err(ParameterError::new(message));
        }
        if self.kind == TxnKind::ListAppend && !self.isolation.has_one_order() {
            return Err(ParameterError::new(format!(
                "expected serializable, snapshot-isolation or read-committed for lists, found {}: \
                 its readers may disagree on the order of elements, which lists never do",
                self.isolation.name()
            )));
        }
        Ok(())
    }
}

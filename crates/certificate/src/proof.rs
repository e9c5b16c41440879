//! What a certificate says: claims about levels of one history, each with its proof.
//!
//! **Counted transactions.** A proof speaks of committed transactions and of those of
//! unknown outcome; aborted ones take no part. `docs/certificate.md` says which facts
//! each rule needs, and why they hold in every order that explains the history.

use crate::fingerprint::Fingerprint;
use isolde_history::{KeyId, OpId, Time, TxnId};
use std::fmt;

/// Proofs about one history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The history that all claims are about.
    pub history: Fingerprint,
    /// How far the clocks of clients may be apart, in nanoseconds, not negative: one event
    /// precedes another in real time if it completed more than that before the other was invoked.
    pub clock_drift: Time,
    /// What is claimed of it. No level is settled by two claims.
    pub claims: Vec<Claim>,
}

/// One proof and the levels that it settles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The level whose definition the proof is about, by its name on the command line.
    pub shown_at: String,
    /// The levels with the same verdict. Each is `shown_at` itself, or implied by it
    /// if the proof is a witness, or implies it if the proof is a refutation.
    pub levels: Vec<String>,
    /// Why.
    pub proof: Proof,
}

/// Why a level holds or does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The level holds.
    Witness(Witness),
    /// The level does not hold.
    Refutation(Refutation),
}

/// An order that explains every read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// For levels of begins and commits: every committed transaction's begin and
    /// commit, in one order. For levels of one event: its commit alone. Transactions
    /// of unknown outcome may take part, aborted ones may not.
    Events(Vec<Node>),
    /// For levels of one commit order and for parallel snapshot isolation.
    Commits {
        /// Every committed transaction; of those with unknown outcome at least the
        /// ones that were observed.
        order: Vec<TxnId>,
        /// What each read with several possible origins saw.
        origins: Vec<ChosenOrigin>,
        /// For elements that were appended several times, the one that others saw.
        appends: Vec<OpId>,
    },
}

/// One of the possible origins of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChosenOrigin {
    /// The reading operation.
    pub read: OpId,
    /// The key; a read by condition reads several.
    pub key: KeyId,
    /// The transaction that wrote what was read; `None` is the initial state.
    pub writer: Option<TxnId>,
}

/// The begin or commit of a transaction. Where a level does not tell them apart, the
/// commit stands for both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node(pub u32);

impl Node {
    /// The initial transaction, which precedes all others.
    pub const INITIAL: Node = Node(u32::MAX);
    /// Transactions from here on have no nodes.
    pub const TXNS_MAX: u32 = u32::MAX / 2;

    /// The begin of a transaction.
    ///
    /// # Panics
    /// If the transaction is not below [`Node::TXNS_MAX`].
    pub const fn begin(txn: TxnId) -> Node {
        assert!(txn.0 < Node::TXNS_MAX, "a history with nodes for its transactions");
        Node(2 * txn.0)
    }

    /// The commit of a transaction.
    ///
    /// # Panics
    /// If the transaction is not below [`Node::TXNS_MAX`].
    pub const fn commit(txn: TxnId) -> Node {
        assert!(txn.0 < Node::TXNS_MAX, "a history with nodes for its transactions");
        Node(2 * txn.0 + 1)
    }

    /// The transaction; meaningless for [`Node::INITIAL`].
    pub const fn txn(self) -> TxnId {
        TxnId(self.0 / 2)
    }

    /// Whether it is a begin.
    pub const fn is_begin(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

impl fmt::Display for Node {
    /// As certificates write it: `b3`, `c3` or `initial`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Node::INITIAL => out.write_str("initial"),
            node => write!(out, "{}{}", if node.is_begin() { 'b' } else { 'c' }, node.txn().0),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Why no order explains the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// Operations that contradict each other whatever the order.
    Reading(Reading),
    /// Orders that follow from one another until they contradict each other.
    Derivation(Derivation),
    /// No order of events explains what was done to these keys: the verifier tries all, which
    /// are few where little was open at once.
    Orders(Vec<KeyId>),
    /// Whatever is taken to have happened, something refutes it.
    Cases(Cases),
}

/// Something that a history leaves open, and a refutation of each way to take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases {
    /// What is open.
    pub open: Open,
    /// One for each possibility.
    pub cases: Vec<Case>,
}

/// What a history may leave open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// Whether a transaction of unknown outcome counts.
    Outcome(TxnId),
    /// Which append added the element of this one, wherever others saw it.
    Element(OpId),
    /// What a read saw.
    Origin {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
}

/// One way to take what is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The level whose definition the refutation is about; the one that has the cases
    /// implies it.
    pub shown_at: String,
    /// What is taken to have happened.
    pub taken: Taken,
    /// Why it cannot have.
    pub refutation: Refutation,
}

/// What is taken to have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Taken {
    /// The transaction counts.
    Counts,
    /// The transaction does not count.
    CountsNot,
    /// This append added the element.
    Append(OpId),
    /// The read saw this transaction, or the initial state.
    Writer(Option<TxnId>),
    /// The read saw nobody who counts, and is ignored.
    Nowhere,
}

/// An anomaly that operations show by themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it is.
    pub kind: ReadingKind,
    /// The key.
    pub key: KeyId,
    /// The operations that show it, in the order that [`ReadingKind`] says.
    pub ops: Vec<OpId>,
}

/// The anomalies that operations show by themselves, with the operations that each
/// needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReadingKind {
    /// A read of a value nobody wrote: the read.
    ThinAir,
    /// A read of a value of an aborted transaction: the read, the write.
    Aborted,
    /// A read of a value that its writer overwrote: the read, the write, the
    /// writer's final write.
    Intermediate,
    /// A read of a value that the reader writes later: the read, the write.
    Future,
    /// Another's value after an own write: the read, the own last write before it.
    NotMyOwnWrite,
    /// An own value after an own later one: the read, the own last write before it.
    NotMyLastWrite,
    /// Two external reads of a key by one transaction that differ: the reads.
    NonRepeatable,
    /// A list with an element twice: the read.
    DuplicateElements,
    /// Lists or a given order that no order of appends explains: two list reads; or
    /// a list read and two writes of one transaction, the earlier first, that it
    /// shows the other way round; or, for an order given by the database, the two
    /// writes alone; or the write that it puts before the initial state.
    IncompatibleOrder,
    /// A row that was returned and does not meet the condition, or the reverse: the
    /// read by condition, then the write of the row unless it is the initial one.
    ResultSetMismatch,
}

/// Steps, each of which holds in every order that explains the history, and why they
/// cannot all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derivation {
    /// Each follows from the history and the steps before it.
    pub steps: Vec<Step>,
    /// The contradiction.
    pub end: End,
}

/// The place of a step among the steps of its derivation, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StepId(pub u32);

/// `from` precedes `to` in every order that explains the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The earlier event.
    pub from: Node,
    /// The later event.
    pub to: Node,
    /// Why.
    pub rule: Rule,
}

/// Why one event precedes another.
///
/// Paths are earlier steps, each of which starts where the one before ends; from a
/// transaction's begin to its commit no step is needed. A reader "reads from" a
/// transaction if that is the only possible origin of the read.
///
/// A derivation names the steps of a path by their places. Others who speak of the same rules
/// may hold a `Path` in another way: whoever derives by its ends, whoever explains by the steps
/// themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule<Path = Vec<StepId>> {
    /// One session ran one transaction before the other: commit to begin.
    Session,
    /// A client saw one event complete before it, or another, invoked the other.
    RealTime,
    /// The initial transaction precedes all others.
    InitialFirst,
    /// `to` begins the reader, `from` commits the transaction it read `key` from.
    ReadsFrom {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// A list read shows an append of `from` before one of `to`, or one of `from` and
    /// not one of `to`: version order.
    ListOrder {
        /// The list read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// The database said that `from` installed a version of the key before `to` did:
    /// version order.
    GivenOrder {
        /// The key.
        key: KeyId,
    },
    /// The reader that `from` begins saw the initial state of a key that `to` writes.
    InitialRead {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// Two writers of a key. The other order would contradict the path, which leads
    /// from the begin of the first writer to the commit of the second (for prefix
    /// consistency from commit to commit): version order.
    Pair {
        /// The key.
        key: KeyId,
        /// Why not the other way round.
        path: Path,
    },
    /// A reader reads `key` from `to`, although `from` writes the key too and was
    /// visible to it: so `from` was overwritten, version order. For levels of begins
    /// and commits the path leads from the commit of `from` to the begin of the
    /// reader; for levels of one commit order it is one that the level calls visible.
    /// There `to` is [`Node::INITIAL`] if the reader saw the initial state.
    Visible {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// From `from` to the reader.
        path: Path,
    },
    /// The reader that `from` begins reads `key` from a transaction whose version
    /// precedes the one of `to`, as the path shows in the way of [`Rule::Pair`].
    AntiDependency {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// From the transaction read from to `to`.
        path: Path,
    },
    /// The reader that `to` begins selected by condition, and saw of `key` the change by `from`,
    /// or something later that adds the same to what it found.
    SawChange {
        /// The read by condition.
        read: OpId,
        /// The key.
        key: KeyId,
    },
    /// The reader that `from` begins selected by condition, and `to` was the next to change
    /// what `key` adds to what it found.
    MissedChange {
        /// The read by condition.
        read: OpId,
        /// The key.
        key: KeyId,
    },
}

/// How a derivation ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Steps that lead back to where they start.
    Cycle(Vec<StepId>),
    /// Whatever is open, each way of deciding it contradicts the steps.
    Search(Search),
}

/// A propositional refutation: clauses that hold in every order that explains the
/// history, the last of which is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// What is open. No variable occurs twice.
    pub variables: Vec<Variable>,
    /// Each follows from the history, the steps, and the clauses before it.
    pub clauses: Vec<Clause>,
}

/// Something that an order which explains the history decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variable {
    /// Whether one writer's version of a key precedes the other's. If so: the version
    /// order from `first` to `second`, and an anti-dependency to `second` from each
    /// transaction that reads the key from `first`. If not: the mirror image.
    Order {
        /// The key.
        key: KeyId,
        /// One writer.
        first: TxnId,
        /// The other.
        second: TxnId,
    },
    /// Whether a read saw this one of its possible origins. If so: the reads-from edge,
    /// or for the initial state an anti-dependency to each other writer of the key. If
    /// not: nothing.
    Origin(ChosenOrigin),
    /// Whether one event precedes another. If not, the other precedes it.
    Before {
        /// One event.
        from: Node,
        /// The other.
        to: Node,
    },
}

/// A variable or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(pub u32);

impl Literal {
    /// The variable at this place is true.
    pub const fn yes(variable: u32) -> Literal {
        Literal(2 * variable)
    }

    /// The variable at this place is false.
    pub const fn no(variable: u32) -> Literal {
        Literal(2 * variable + 1)
    }

    /// The place of the variable among [`Search::variables`].
    pub const fn variable(self) -> u32 {
        self.0 / 2
    }

    /// Whether it says that the variable is true.
    pub const fn is_yes(self) -> bool {
        self.0.is_multiple_of(2)
    }
}

impl std::ops::Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

impl fmt::Display for Literal {
    /// As certificates write it: `+3` or `-3`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", if self.is_yes() { '+' } else { '-' }, self.variable())
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// A part of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A step of the derivation.
    Step(StepId),
    /// An edge that holds if the literal does.
    Literal {
        /// The literal.
        literal: Literal,
        /// The earlier event.
        from: Node,
        /// The later event.
        to: Node,
    },
}

/// A disjunction that holds in every order that explains the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clause {
    /// The literals of a cycle do not all hold.
    Cycle(Vec<Link>),
    /// A read saw one of its possible origins: all of their variables.
    OneOrigin {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
    },
    /// If the read saw `writer`, then the other writer's version precedes that of
    /// `writer`, or the reader begins before `other` commits.
    SeenOrAfter {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// One of its possible origins.
        writer: TxnId,
        /// Another writer of the key.
        other: TxnId,
    },
    /// Unit propagation of the negation contradicts the clauses before this one.
    Lemma(Vec<Literal>),
}

impl ReadingKind {
    /// Every kind.
    pub const ALL: [ReadingKind; 10] = [
        ReadingKind::ThinAir,
        ReadingKind::Aborted,
        ReadingKind::Intermediate,
        ReadingKind::Future,
        ReadingKind::NotMyOwnWrite,
        ReadingKind::NotMyLastWrite,
        ReadingKind::NonRepeatable,
        ReadingKind::DuplicateElements,
        ReadingKind::IncompatibleOrder,
        ReadingKind::ResultSetMismatch,
    ];

    /// The name in certificates and reports.
    pub const fn name(self) -> &'static str {
        match self {
            ReadingKind::ThinAir => "thin-air-read",
            ReadingKind::Aborted => "aborted-read",
            ReadingKind::Intermediate => "intermediate-read",
            ReadingKind::Future => "future-read",
            ReadingKind::NotMyOwnWrite => "not-my-own-write",
            ReadingKind::NotMyLastWrite => "not-my-last-write",
            ReadingKind::NonRepeatable => "non-repeatable-read",
            ReadingKind::DuplicateElements => "duplicate-elements",
            ReadingKind::IncompatibleOrder => "incompatible-order",
            ReadingKind::ResultSetMismatch => "result-set-mismatch",
        }
    }
}

impl<Path> Rule<Path> {
    /// The operation that it rests on beside its path, if there is one.
    pub const fn read(&self) -> Option<OpId> {
        match *self {
            Rule::ReadsFrom { read, .. }
            | Rule::ListOrder { read, .. }
            | Rule::InitialRead { read, .. }
            | Rule::Visible { read, .. }
            | Rule::AntiDependency { read, .. }
            | Rule::SawChange { read, .. }
            | Rule::MissedChange { read, .. } => Some(read),
            Rule::Session
            | Rule::RealTime
            | Rule::InitialFirst
            | Rule::GivenOrder { .. }
            | Rule::Pair { .. } => None,
        }
    }

    /// The key that it is about, if there is one.
    pub const fn key(&self) -> Option<KeyId> {
        match *self {
            Rule::Session | Rule::RealTime | Rule::InitialFirst => None,
            Rule::ReadsFrom { key, .. }
            | Rule::ListOrder { key, .. }
            | Rule::GivenOrder { key }
            | Rule::InitialRead { key, .. }
            | Rule::Pair { key, .. }
            | Rule::Visible { key, .. }
            | Rule::AntiDependency { key, .. }
            | Rule::SawChange { key, .. }
            | Rule::MissedChange { key, .. } => Some(key),
        }
    }

    /// The path that it follows from, if it needs one.
    pub const fn path(&self) -> Option<&Path> {
        match self {
            Rule::Pair { path, .. }
            | Rule::Visible { path, .. }
            | Rule::AntiDependency { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub const fn path_mut(&mut self) -> Option<&mut Path> {
        match self {
            Rule::Pair { path, .. }
            | Rule::Visible { path, .. }
            | Rule::AntiDependency { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The same rule about other operations and keys, with a path that is held in another way.
    pub fn map<Other>(
        &self,
        op: impl Fn(OpId) -> OpId,
        key: impl Fn(KeyId) -> KeyId,
        path: impl FnOnce(&Path) -> Other,
    ) -> Rule<Other> {
        match self {
            Rule::Session => Rule::Session,
            Rule::RealTime => Rule::RealTime,
            Rule::InitialFirst => Rule::InitialFirst,
            Rule::ReadsFrom { read, key: of } => Rule::ReadsFrom { read: op(*read), key: key(*of) },
            Rule::ListOrder { read, key: of } => Rule::ListOrder { read: op(*read), key: key(*of) },
            Rule::GivenOrder { key: of } => Rule::GivenOrder { key: key(*of) },
            Rule::InitialRead { read, key: of } => {
                Rule::InitialRead { read: op(*read), key: key(*of) }
            }
            Rule::Pair { key: of, path: by } => Rule::Pair { key: key(*of), path: path(by) },
            Rule::Visible { read, key: of, path: by } => {
                Rule::Visible { read: op(*read), key: key(*of), path: path(by) }
            }
            Rule::AntiDependency { read, key: of, path: by } => {
                Rule::AntiDependency { read: op(*read), key: key(*of), path: path(by) }
            }
            Rule::SawChange { read, key: of } => Rule::SawChange { read: op(*read), key: key(*of) },
            Rule::MissedChange { read, key: of } => {
                Rule::MissedChange { read: op(*read), key: key(*of) }
            }
        }
    }

    /// The same rule with a path that is held in another way.
    pub fn with_path<Other>(&self, path: impl FnOnce(&Path) -> Other) -> Rule<Other> {
        self.map(|op| op, |key| key, path)
    }

    /// The name in certificates.
    pub const fn name(&self) -> &'static str {
        match self {
            Rule::Session => "session",
            Rule::RealTime => "real-time",
            Rule::InitialFirst => "initial-first",
            Rule::ReadsFrom { .. } => "reads-from",
            Rule::ListOrder { .. } => "list-order",
            Rule::GivenOrder { .. } => "given-order",
            Rule::InitialRead { .. } => "initial-read",
            Rule::Pair { .. } => "pair",
            Rule::Visible { .. } => "visible",
            Rule::AntiDependency { .. } => "anti-dependency",
            Rule::SawChange { .. } => "saw-change",
            Rule::MissedChange { .. } => "missed-change",
        }
    }
}

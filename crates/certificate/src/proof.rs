//! What a certificate says: claims about levels of one history, each with its proof.
//!
//! **Counted transactions.** A proof speaks of committed transactions and of those of
//! unknown outcome; aborted ones take no part. `docs/certificate.md` says which facts
//! each rule needs, and why they hold in every order that explains the history.

use crate::fingerprint::Fingerprint;
use crate::rule::{Rule, StepId};
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
    /// An anti-dependency that holds if a read saw one version and another one is later.
    Overwritten {
        /// That the versions come in this order.
        order: Literal,
        /// That the read saw the first of them.
        origin: Literal,
        /// Where the reader begins.
        from: Node,
        /// Where the writer of the later version commits.
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
    /// If one transaction saw both of these, then the writer of `other`, which also writes the
    /// key of `one`, precedes the writer of `one`.
    SeenTogether {
        /// A read and what it is said to have seen.
        one: ChosenOrigin,
        /// Another read of the same transaction, and whose write it is said to have seen.
        other: ChosenOrigin,
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

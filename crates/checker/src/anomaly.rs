//! What goes wrong: anomalies that one read shows by itself, and cycles.
//!
//! The first kind needs no order of transactions: the operations are the proof.
//! [`FOUND_BY_READING`] lists them with the weakest levels each refutes.

use crate::evidence::{Cycle, Edge, EdgeKind, with_premises};
use crate::level::Level;
use isolde_history::{
    ExternalRead, History, Index, KeyId, MisreadKind, OpId, OpKind, Origin, Predicate,
    PredicateRow, ReadId, TxnId, Version, VersionConflict,
};

/// Something that a level forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// What it is.
    pub kind: AnomalyKind,
    /// The transactions involved, without repetition.
    pub txns: Vec<TxnId>,
    /// What shows it.
    pub evidence: Evidence,
}

/// The operations or orders that show an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// These operations on this key; the first is the read in question.
    Operations {
        /// The key.
        key: KeyId,
        /// The operations.
        ops: Vec<OpId>,
    },
    /// Transactions that would have to precede themselves.
    Cycle(Cycle),
    /// However the versions of some keys are ordered, there is such a cycle.
    Cases(Cases),
}

impl Evidence {
    /// The cycle, or those of all cases.
    pub fn cycles(&self) -> &[Cycle] {
        match self {
            Evidence::Operations { .. } => &[],
            Evidence::Cycle(cycle) => std::slice::from_ref(cycle),
            Evidence::Cases(cases) => &cases.cycles,
        }
    }

    /// The same, to be changed.
    pub(crate) fn cycles_mut(&mut self) -> &mut [Cycle] {
        match self {
            Evidence::Operations { .. } => &mut [],
            Evidence::Cycle(cycle) => std::slice::from_mut(cycle),
            Evidence::Cases(cases) => &mut cases.cycles,
        }
    }

    /// The edges of all cycles, and all that they follow from.
    pub fn all_edges(&self) -> Vec<&Edge> {
        with_premises(self.cycles().iter().flat_map(|cycle| &cycle.edges))
    }
}

/// A proof by cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cases {
    /// Cycles under assumptions; some of them at least if there are many.
    pub cycles: Vec<Cycle>,
    /// How many there are.
    pub count: usize,
    /// For each cycle how the history is understood in it; empty if there is but one way.
    pub ways: Vec<Way>,
    /// What operations by condition are taken to have seen.
    pub seen: Vec<Seen>,
}

/// In one case, an operation by condition is taken to have seen one of several versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The place of the case.
    pub case: usize,
    /// The operation.
    pub read: OpId,
    /// The key.
    pub key: KeyId,
    /// Who wrote the version; [`INITIAL`](crate::INITIAL) if nobody did.
    pub writer: TxnId,
}

/// One of several ways to understand a history: what is taken for granted beside orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Way {
    /// Appends that added an element that was read, which others appended too.
    pub added: Vec<OpId>,
    /// Transactions of unknown outcome that took effect.
    pub happened: Vec<TxnId>,
    /// Those that did not.
    pub never_happened: Vec<TxnId>,
}

/// The kinds of anomalies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AnomalyKind {
    /// A value nobody wrote.
    ThinAirRead,
    /// A value of an aborted transaction (G1a).
    AbortedRead,
    /// A value that its writer overwrote (G1b).
    IntermediateRead,
    /// A value that the reader itself writes later.
    FutureRead,
    /// Another's value after an own write.
    NotMyOwnWrite,
    /// An own value that was overwritten by the same transaction.
    NotMyLastWrite,
    /// Two reads of a key with different values.
    NonRepeatableRead,
    /// One value written twice to a key.
    DuplicateWrite,
    /// An element twice in one list.
    DuplicateElements,
    /// Lists that are not prefixes of one another.
    IncompatibleOrder,
    /// A predicate read whose rows do not fit its condition.
    ResultSetMismatch,
    /// Version orders contradict each other (G0).
    DirtyWrite,
    /// The same, with session order.
    SessionDirtyWrite,
    /// The same, with real time.
    RealTimeDirtyWrite,
    /// Transactions read from each other in a circle (G1c).
    CircularInformationFlow,
    /// The same, with session order.
    SessionCircularInformationFlow,
    /// After seeing one write of a transaction, a reader missed another.
    ObservedTransactionVanishes,
    /// A reader saw a transaction in part.
    FracturedRead,
    /// A session missed its own write.
    MissedOwnWrite,
    /// A session saw less than before.
    NonMonotonicRead,
    /// A session's writes were seen out of order.
    NonMonotonicWrite,
    /// A write was seen without what its session had read.
    WriteWithoutItsReads,
    /// An effect was seen without its cause.
    CausalityViolation,
    /// Transactions read from each other in a circle that real time closes.
    RealTimeCircularInformationFlow,
    /// Two transactions replaced the same version (P4).
    LostUpdate,
    /// A reader saw one effect of others and missed another (G-single).
    ReadSkew,
    /// The same, with session order.
    SessionReadSkew,
    /// The same, with real time.
    RealTimeReadSkew,
    /// Readers saw unrelated writes in different orders (G-nonadjacent).
    LongFork,
    /// The same, with session order.
    SessionLongFork,
    /// The same, with real time.
    RealTimeLongFork,
    /// Each of two transactions missed what the other wrote (G2-item).
    WriteSkew,
    /// Two writers fit in either order, and a transaction that only reads in neither.
    ReadOnlyTransactionAnomaly,
    /// A cycle in which transactions missed each other's writes (G2-item).
    AntiDependencyCycle,
    /// The same, with session order.
    SessionAntiDependencyCycle,
    /// The same, with real time.
    RealTimeAntiDependencyCycle,
    /// The same, with a read by condition (G2).
    PredicateAntiDependencyCycle,
    /// By one condition a transaction both missed a change and saw it.
    Phantom,
    /// By one condition a transaction missed a change that it saw by another.
    PredicateManyPreceders,
    /// Each of two transactions missed what the other changed, one of them by condition.
    PredicateWriteSkew,
    /// Two transactions found a row missing, and both made it.
    LostInsert,
    /// No order of versions explains the reads.
    NoVersionOrder,
    /// A value was seen before its writer was sent.
    ReadBeforeWrite,
    /// A value was seen after another had replaced it.
    StaleRead,
    /// Two compare-and-sets replaced one version.
    CompareAndSetTwice,
    /// An operation that no order explains.
    UnexplainedOperation,
}

/// An anomaly that reading alone shows, and what it refutes.
pub struct FoundByReading {
    /// The anomaly.
    pub kind: AnomalyKind,
    /// The weakest levels that forbid it; all stronger ones do as well.
    pub refutes: &'static [Level],
}

const COMMITTED_UP: &[Level] = &[Level::AdyaReadCommitted];

/// Anomalies that need no cycle. A duplicate write refutes nothing: it makes the
/// writer of a read a choice.
pub static FOUND_BY_READING: &[FoundByReading] = &[
    FoundByReading { kind: AnomalyKind::ThinAirRead, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::AbortedRead, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::IntermediateRead, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::FutureRead, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::NotMyOwnWrite, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::NotMyLastWrite, refutes: COMMITTED_UP },
    FoundByReading { kind: AnomalyKind::NonRepeatableRead, refutes: &[Level::ReadAtomic] },
    FoundByReading { kind: AnomalyKind::DuplicateWrite, refutes: &[] },
    FoundByReading { kind: AnomalyKind::DuplicateElements, refutes: &[Level::ReadUncommitted] },
    FoundByReading { kind: AnomalyKind::IncompatibleOrder, refutes: &[Level::ReadUncommitted] },
    FoundByReading { kind: AnomalyKind::ResultSetMismatch, refutes: &[Level::SnapshotIsolation] },
];

impl AnomalyKind {
    /// All of them.
    #[rustfmt::skip]
    pub const ALL: [AnomalyKind; 46] = [
        AnomalyKind::ThinAirRead, AnomalyKind::AbortedRead, AnomalyKind::IntermediateRead,
        AnomalyKind::FutureRead, AnomalyKind::NotMyOwnWrite, AnomalyKind::NotMyLastWrite,
        AnomalyKind::NonRepeatableRead, AnomalyKind::DuplicateWrite, AnomalyKind::DuplicateElements,
        AnomalyKind::IncompatibleOrder, AnomalyKind::ResultSetMismatch, AnomalyKind::DirtyWrite,
        AnomalyKind::SessionDirtyWrite, AnomalyKind::RealTimeDirtyWrite,
        AnomalyKind::CircularInformationFlow, AnomalyKind::SessionCircularInformationFlow,
        AnomalyKind::ObservedTransactionVanishes, AnomalyKind::FracturedRead,
        AnomalyKind::MissedOwnWrite, AnomalyKind::NonMonotonicRead, AnomalyKind::NonMonotonicWrite,
        AnomalyKind::WriteWithoutItsReads, AnomalyKind::CausalityViolation,
        AnomalyKind::RealTimeCircularInformationFlow, AnomalyKind::LostUpdate,
        AnomalyKind::ReadSkew, AnomalyKind::SessionReadSkew, AnomalyKind::RealTimeReadSkew,
        AnomalyKind::LongFork, AnomalyKind::SessionLongFork, AnomalyKind::RealTimeLongFork,
        AnomalyKind::WriteSkew, AnomalyKind::ReadOnlyTransactionAnomaly,
        AnomalyKind::AntiDependencyCycle,
        AnomalyKind::SessionAntiDependencyCycle, AnomalyKind::RealTimeAntiDependencyCycle,
        AnomalyKind::PredicateAntiDependencyCycle, AnomalyKind::Phantom,
        AnomalyKind::PredicateManyPreceders, AnomalyKind::PredicateWriteSkew,
        AnomalyKind::LostInsert, AnomalyKind::NoVersionOrder,
        AnomalyKind::ReadBeforeWrite, AnomalyKind::StaleRead, AnomalyKind::CompareAndSetTwice,
        AnomalyKind::UnexplainedOperation,
    ];

    /// The name in reports, in kebab case.
    pub const fn name(self) -> &'static str {
        match self {
            AnomalyKind::ThinAirRead => "thin-air-read",
            AnomalyKind::AbortedRead => "aborted-read",
            AnomalyKind::IntermediateRead => "intermediate-read",
            AnomalyKind::FutureRead => "future-read",
            AnomalyKind::NotMyOwnWrite => "not-my-own-write",
            AnomalyKind::NotMyLastWrite => "not-my-last-write",
            AnomalyKind::NonRepeatableRead => "non-repeatable-read",
            AnomalyKind::DuplicateWrite => "duplicate-write",
            AnomalyKind::DuplicateElements => "duplicate-elements",
            AnomalyKind::IncompatibleOrder => "incompatible-order",
            AnomalyKind::ResultSetMismatch => "result-set-mismatch",
            AnomalyKind::DirtyWrite => "dirty-write",
            AnomalyKind::SessionDirtyWrite => "session-dirty-write",
            AnomalyKind::RealTimeDirtyWrite => "real-time-dirty-write",
            AnomalyKind::CircularInformationFlow => "circular-information-flow",
            AnomalyKind::SessionCircularInformationFlow => "session-circular-information-flow",
            AnomalyKind::ObservedTransactionVanishes => "observed-transaction-vanishes",
            AnomalyKind::FracturedRead => "fractured-read",
            AnomalyKind::MissedOwnWrite => "missed-own-write",
            AnomalyKind::NonMonotonicRead => "non-monotonic-read",
            AnomalyKind::NonMonotonicWrite => "non-monotonic-write",
            AnomalyKind::WriteWithoutItsReads => "write-without-its-reads",
            AnomalyKind::CausalityViolation => "causality-violation",
            AnomalyKind::RealTimeCircularInformationFlow => "real-time-circular-information-flow",
            AnomalyKind::LostUpdate => "lost-update",
            AnomalyKind::ReadSkew => "read-skew",
            AnomalyKind::SessionReadSkew => "session-read-skew",
            AnomalyKind::RealTimeReadSkew => "real-time-read-skew",
            AnomalyKind::LongFork => "long-fork",
            AnomalyKind::SessionLongFork => "session-long-fork",
            AnomalyKind::RealTimeLongFork => "real-time-long-fork",
            AnomalyKind::WriteSkew => "write-skew",
            AnomalyKind::ReadOnlyTransactionAnomaly => "read-only-transaction-anomaly",
            AnomalyKind::AntiDependencyCycle => "anti-dependency-cycle",
            AnomalyKind::SessionAntiDependencyCycle => "session-anti-dependency-cycle",
            AnomalyKind::RealTimeAntiDependencyCycle => "real-time-anti-dependency-cycle",
            AnomalyKind::PredicateAntiDependencyCycle => "predicate-anti-dependency-cycle",
            AnomalyKind::Phantom => "phantom",
            AnomalyKind::PredicateManyPreceders => "predicate-many-preceders",
            AnomalyKind::PredicateWriteSkew => "predicate-write-skew",
            AnomalyKind::LostInsert => "lost-insert",
            AnomalyKind::NoVersionOrder => "no-version-order",
            AnomalyKind::ReadBeforeWrite => "read-before-write",
            AnomalyKind::StaleRead => "stale-read",
            AnomalyKind::CompareAndSetTwice => "compare-and-set-twice",
            AnomalyKind::UnexplainedOperation => "unexplained-operation",
        }
    }

    /// Adya's or Elle's name, where they have one.
    pub const fn code(self) -> Option<&'static str> {
        match self {
            AnomalyKind::AbortedRead => Some("G1a"),
            AnomalyKind::IntermediateRead => Some("G1b"),
            AnomalyKind::CircularInformationFlow => Some("G1c"),
            AnomalyKind::SessionCircularInformationFlow => Some("G1c-process"),
            AnomalyKind::DirtyWrite => Some("G0"),
            AnomalyKind::SessionDirtyWrite => Some("G0-process"),
            AnomalyKind::RealTimeDirtyWrite => Some("G0-realtime"),
            AnomalyKind::ObservedTransactionVanishes => Some("OTV"),
            AnomalyKind::RealTimeCircularInformationFlow => Some("G1c-realtime"),
            AnomalyKind::LostUpdate | AnomalyKind::LostInsert => Some("P4"),
            AnomalyKind::ReadSkew | AnomalyKind::Phantom => Some("G-single"),
            AnomalyKind::SessionReadSkew => Some("G-single-process"),
            AnomalyKind::RealTimeReadSkew | AnomalyKind::StaleRead => Some("G-single-realtime"),
            AnomalyKind::LongFork => Some("G-nonadjacent"),
            AnomalyKind::SessionLongFork => Some("G-nonadjacent-process"),
            AnomalyKind::RealTimeLongFork => Some("G-nonadjacent-realtime"),
            AnomalyKind::WriteSkew
            | AnomalyKind::ReadOnlyTransactionAnomaly
            | AnomalyKind::AntiDependencyCycle => Some("G2-item"),
            AnomalyKind::SessionAntiDependencyCycle => Some("G2-item-process"),
            AnomalyKind::RealTimeAntiDependencyCycle => Some("G2-item-realtime"),
            AnomalyKind::PredicateManyPreceders => Some("PMP"),
            AnomalyKind::PredicateWriteSkew | AnomalyKind::PredicateAntiDependencyCycle => {
                Some("G2")
            }
            _ => None,
        }
    }

    /// Whether a level forbids it, as reading alone shows it.
    pub(crate) fn rules_out(self, level: Level) -> bool {
        let implied = level.weaker_than();
        self.refutes().iter().any(|&weakest| weakest == level || implied.contains(&weakest))
    }

    /// The weakest levels that an anomaly found by reading refutes.
    pub fn refutes(self) -> &'static [Level] {
        FOUND_BY_READING.iter().find(|row| row.kind == self).map_or(&[], |row| row.refutes)
    }
}

/// All anomalies that reading alone shows, in the order of their operations.
pub fn found_by_reading(history: &History, index: &Index) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    for misread in index.misreads() {
        let (kind, write) = match misread.kind {
            MisreadKind::ThinAir => (AnomalyKind::ThinAirRead, None),
            MisreadKind::Aborted { write } => (AnomalyKind::AbortedRead, Some(write)),
            MisreadKind::Intermediate { write } => (AnomalyKind::IntermediateRead, Some(write)),
            MisreadKind::Future { write } => (AnomalyKind::FutureRead, Some(write)),
            MisreadKind::NotMyOwnWrite { write } => (AnomalyKind::NotMyOwnWrite, Some(write)),
            MisreadKind::NotMyLastWrite { write } => (AnomalyKind::NotMyLastWrite, Some(write)),
        };
        let mut ops = vec![misread.read];
        ops.extend(write);
        if let MisreadKind::Intermediate { write } = misread.kind {
            ops.extend(index.final_write(history, history.txn_of(write), misread.key));
        }
        anomalies.push(of_operations(history, kind, misread.key, ops));
    }
    for &conflict in index.conflicts() {
        let (kind, ops) = match conflict {
            VersionConflict::Incompatible { first, second } => {
                (AnomalyKind::IncompatibleOrder, vec![first, second])
            }
            VersionConflict::Duplicate { read, .. } => (AnomalyKind::DuplicateElements, vec![read]),
            VersionConflict::Program { read, earlier, later } => {
                let shown = read.into_iter().chain([earlier, later]);
                (AnomalyKind::IncompatibleOrder, shown.collect())
            }
            VersionConflict::LateInitial { write } => (AnomalyKind::IncompatibleOrder, vec![write]),
        };
        anomalies.push(of_operations(history, kind, history.op(ops[0]).key, ops));
    }
    non_repeatable_reads(history, index, &mut anomalies);
    duplicate_writes(history, index, &mut anomalies);
    result_set_mismatches(history, index, &mut anomalies);
    anomalies
}

/// The key of an anomaly of a history that has none: what was found by condition has no row.
pub(crate) const NO_KEY: KeyId = KeyId(u32::MAX);

/// The anomaly that operations on one key show.
pub(crate) fn of_operations(
    history: &History,
    kind: AnomalyKind,
    key: KeyId,
    ops: Vec<OpId>,
) -> Anomaly {
    let mut txns: Vec<TxnId> = Vec::new();
    for &op in &ops {
        let txn = history.txn_of(op);
        if !txns.contains(&txn) {
            txns.push(txn);
        }
    }
    Anomaly { kind, txns, evidence: Evidence::Operations { key, ops } }
}

/// Two external reads of one key by one transaction that saw different values.
fn non_repeatable_reads(history: &History, index: &Index, anomalies: &mut Vec<Anomaly>) {
    const READS_SHORT: usize = 16;
    let mut reads: Vec<ExternalRead> = Vec::new();
    for txn in history.txns() {
        let range = index.read_range(txn);
        // Most transactions read no key twice; that is seen without sorting.
        let key_of = |read| index.read(ReadId(read)).key;
        let repeats =
            |read: u32| (range.start..read).any(|earlier| key_of(earlier) == key_of(read));
        if range.len() < 2 || range.len() <= READS_SHORT && !range.clone().any(repeats) {
            continue;
        }
        reads.clear();
        reads.extend(index.reads_of(txn));
        reads.sort_unstable_by_key(|read| (read.key, read.op));
        for group in reads.chunk_by(|one, other| one.key == other.key) {
            let first = group[0];
            if let Some(other) = group[1..].iter().find(|other| differ(history, first, **other)) {
                let kind = AnomalyKind::NonRepeatableRead;
                let ops = vec![first.op, other.op];
                anomalies.push(of_operations(history, kind, first.key, ops));
            }
        }
    }
}

/// Registers differ by value; lists and rows by the transaction they came from,
/// since own appends make equal states look different.
fn differ(history: &History, one: ExternalRead, other: ExternalRead) -> bool {
    let (first, second) = (history.op(one.op), history.op(other.op));
    if first.kind == OpKind::Read && second.kind == OpKind::Read {
        return first.value != second.value;
    }
    let known = |origin| matches!(origin, Origin::Initial | Origin::Txn(_));
    known(one.origin) && known(other.origin) && one.origin != other.origin
}

/// One value written to a key by two operations of transactions that count. A
/// transaction that repeats its own value is included: no reader can tell which.
fn duplicate_writes(history: &History, index: &Index, anomalies: &mut Vec<Anomaly>) {
    if index.values_are_unique() {
        return;
    }
    for key in history.keys() {
        let versions = index.versions_of(history, key);
        for group in versions.chunk_by(|one, other| one.value == other.value) {
            if group.len() < 2 || history.op(group[0].op()).kind == OpKind::Delete {
                continue;
            }
            let mut counted = group.iter().filter(|version| index.is_counted(version.txn));
            if let (Some(first), Some(second)) = (counted.next(), counted.next()) {
                let kind = AnomalyKind::DuplicateWrite;
                let ops = vec![first.op(), second.op()];
                anomalies.push(of_operations(history, kind, key, ops));
            }
        }
    }
}

/// Rows that were returned and do not meet the condition, or were looked at, meet
/// it and were not returned.
fn result_set_mismatches(history: &History, index: &Index, anomalies: &mut Vec<Anomaly>) {
    if !history.has_predicates() {
        return;
    }
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        for op in history.ops_of(txn) {
            if history.op(op).kind.has_key() {
                continue;
            }
            let predicate = history.predicate(op);
            for row in &predicate.rows {
                let versions = index.versions_of(history, row.key);
                let first = versions.partition_point(|version| version.value < row.value);
                let written = versions[first..].iter().take_while(|it| it.value == row.value);
                let mut origins: Vec<Option<OpId>> =
                    written.clone().map(|it| Some(it.op())).collect();
                origins.extend((history.initial(row.key) == row.value).then_some(None));
                // If the value repeats, every version that it may be has to contradict.
                let wrong = |&write: &Option<OpId>| contradicts(history, predicate, row, write);
                if !origins.is_empty() && origins.iter().all(wrong) {
                    let own = written.clone().filter(|it| it.txn == txn && it.op() < op);
                    let left =
                        |it: &&Version| it.txn != txn && it.is_final() && index.is_counted(it.txn);
                    // What was looked at is an own version, else one that another left.
                    let looked_at = own.max_by_key(|it| it.op()).or(written.clone().find(left));
                    let origin = match looked_at {
                        Some(version) => Some(version.op()),
                        None => origins[origins.len() - 1],
                    };
                    let ops = [op].into_iter().chain(origin).collect();
                    let kind = AnomalyKind::ResultSetMismatch;
                    anomalies.push(of_operations(history, kind, row.key, ops));
                }
            }
        }
    }
}

/// Whether a row fits its condition worse than the reader says, if it is the version
/// that `write` installed, or the initial one.
fn contradicts(
    history: &History,
    predicate: &Predicate,
    row: &PredicateRow,
    write: Option<OpId>,
) -> bool {
    if write.is_some_and(|write| history.op(write).kind == OpKind::Delete) {
        return row.matched;
    }
    let columns: Vec<_> = write.map(|write| history.row(write).collect()).unwrap_or_default();
    let name = history.key_name(row.key);
    let holds = predicate.condition.holds(history.values(), name, row.value, &columns);
    holds.is_some_and(|holds| holds != row.matched)
}

/// The anomaly that a cycle is: named by its edges, or, if one of them follows from
/// a level's own rule, by what that rule forbids.
pub(crate) fn of_cycle(history: &History, cycle: Cycle, broken_rule: AnomalyKind) -> Anomaly {
    let has = |kind: EdgeKind| cycle.edges.iter().any(|edge| edge.kind() == kind);
    let kind = if cycle.edges.iter().any(Edge::is_overwriting) {
        broken_rule
    } else if has(EdgeKind::Session) {
        if has(EdgeKind::Wr) {
            AnomalyKind::SessionCircularInformationFlow
        } else {
            AnomalyKind::SessionDirtyWrite
        }
    } else if has(EdgeKind::Wr) {
        AnomalyKind::CircularInformationFlow
    } else {
        AnomalyKind::DirtyWrite
    };
    of_named_cycle(history, cycle, kind)
}

pub(crate) fn of_named_cycle(history: &History, cycle: Cycle, kind: AnomalyKind) -> Anomaly {
    let mut txns = Vec::new();
    let mut add = |txn| {
        if txn != crate::evidence::INITIAL && !txns.contains(&txn) {
            txns.push(txn);
        }
    };
    let mut open: Vec<&Edge> = cycle.edges.iter().rev().collect();
    while let Some(edge) = open.pop() {
        add(edge.before);
        open.extend(edge.premises().iter().rev());
        if let Some(read) = edge.read().filter(|_| edge.is_overwriting()) {
            add(history.txn_of(read));
        }
    }
    Anomaly { kind, txns, evidence: Evidence::Cycle(cycle) }
}

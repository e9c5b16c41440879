//! What happened if every read saw what one choice says.
//!
//! **Counted** transactions are the committed ones, and the unknown ones of which
//! a counted transaction saw a write. What was found by condition names nobody: where there are
//! such reads, every other unknown writer may count as well. Only counted transactions impose anything.
//!
//! **External reads** are what counted transactions saw of others. Reads that
//! contradict themselves are [`Fault`]s instead; levels that tolerate the fault
//! ignore the read, unless it saw a counted transaction after all (an
//! intermediate read does).
//!
//! **The known version order** comes from lists and from orders that the database
//! gave. All list reads of a key show beginnings of one sequence of appends, and
//! appends that none of them shows come later. Two operations in a known order put
//! their transactions in that order. Within one transaction the order of
//! operations is the program's: a list that shows a transaction's second append
//! without or before its first fits no version order. Lists and given orders that
//! fit none are a fault; levels that tolerate it take no order from them.

use super::observation::{Choice, ListRead, Observations, RegisterRead, Seen, Source, writes_of};
use super::relation::Relation;
use crate::level::Level;
use crate::unknown::{Obstacle, Size};
use isolde_history::{History, KeyId, Named, OpId, OpKind, Outcome, Time, TxnId, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// More counted transactions are refused: every order of them is tried.
pub(super) const TXNS_MAX: usize = 7;

/// Why so many counted transactions are refused.
pub(super) fn too_many(found: usize) -> Obstacle {
    Obstacle::TooLarge(Size::Txns(found, TXNS_MAX))
}

/// A transaction, as its place among the counted ones.
pub(super) type Counted = usize;

/// One possible execution.
pub(super) struct Execution<'a> {
    pub(super) history: &'a History,
    /// How far clocks of clients may be apart.
    pub(super) clock_drift: Time,
    pub(super) counted: Vec<TxnId>,
    /// `so`: earlier before later in each session.
    pub(super) session_order: Relation,
    pub(super) reads: Vec<ExternalRead>,
    /// `wr`: writer before reader.
    pub(super) reads_from: Relation,
    pub(super) faults: BTreeSet<Fault>,
    /// The counted writers of every key that has any.
    pub(super) writers: BTreeMap<KeyId, Vec<Counted>>,
    /// The known part of each key's version order.
    pub(super) versions: BTreeMap<KeyId, Relation>,
}

/// What a counted transaction saw of another, or of the initial state.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExternalRead {
    pub(super) reader: Counted,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    /// `None` is the initial transaction.
    pub(super) writer: Option<Counted>,
    /// Whether it is a row of a read by condition.
    pub(super) is_row: bool,
}

/// What contradicts itself without any order of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A read that no committed state and no own write explains: thin-air,
    /// aborted, intermediate or future read, not my own write, not my last write.
    Read,
    /// Lists or given orders of one key that contradict each other, or an element
    /// twice in one list.
    Versions,
    /// A row that was returned and does not meet the condition, or the reverse.
    ResultSet,
}

impl Fault {
    /// Whether a history with this fault cannot satisfy `level`.
    pub(super) fn refutes(self, level: Level) -> bool {
        let is_session_guarantee = matches!(
            level,
            Level::ReadYourWrites
                | Level::MonotonicReads
                | Level::MonotonicWrites
                | Level::WritesFollowReads
        );
        match self {
            Fault::Read => !is_session_guarantee && level != Level::ReadUncommitted,
            Fault::Versions => !is_session_guarantee,
            Fault::ResultSet => {
                let snapshots = Level::SnapshotIsolation;
                level == snapshots || snapshots.stronger_than().contains(&level)
            }
        }
    }
}

impl<'a> Execution<'a> {
    /// The execution in which reads saw what `choice` says, or why it is too large.
    pub(super) fn of(
        observations: &Observations<'a>,
        choice: &Choice,
        clock_drift: Time,
    ) -> Result<Self, Obstacle> {
        let history = observations.history;
        let counted = counted(observations, choice);
        if counted.len() > TXNS_MAX {
            return Err(too_many(counted.len()));
        }
        let mut execution = Execution {
            history,
            clock_drift,
            session_order: session_order(history, &counted),
            counted,
            reads: Vec::new(),
            reads_from: Relation::default(),
            faults: BTreeSet::new(),
            writers: BTreeMap::new(),
            versions: BTreeMap::new(),
        };
        for (read, &source) in observations.registers.iter().zip(&choice.registers) {
            execution.see_register(read, source);
        }
        for read in &observations.lists {
            execution.see_list(read, choice);
        }
        for read in &execution.reads {
            if let Some(writer) = read.writer {
                execution.reads_from.insert(writer, read.reader);
            }
        }
        for key in history.keys() {
            let mut writers: Vec<Counted> = (writes_of(history, key))
                .filter_map(|write| execution.place(history.txn_of(write)))
                .collect();
            writers.dedup();
            if !writers.is_empty() {
                execution.writers.insert(key, writers);
            }
            execution.order_list(observations, choice, key);
        }
        execution.order_as_given();
        Ok(execution)
    }

    fn place(&self, txn: TxnId) -> Option<Counted> {
        self.counted.iter().position(|&counted| counted == txn)
    }

    fn see_register(&mut self, read: &RegisterRead<'_>, source: Source) {
        let Some(reader) = self.place(read.txn) else {
            return;
        };
        if self.contradicts_condition(read, source) {
            self.faults.insert(Fault::ResultSet);
        }
        let writer = match source {
            Source::Own(_) => return,
            Source::Initial => None,
            Source::Write(_) | Source::Nowhere => {
                let Some(writer) = self.see_write(read.txn, source, IsLast::Yes) else {
                    return;
                };
                Some(writer)
            }
        };
        self.reads.push(ExternalRead {
            reader,
            op: read.op,
            key: read.key,
            writer,
            is_row: read.row.is_some(),
        });
    }

    fn see_list(&mut self, read: &ListRead<'_>, choice: &Choice) {
        let Some(reader) = self.place(read.txn) else {
            return;
        };
        let distinct: HashSet<Value> = read.elements.iter().copied().collect();
        if distinct.len() < read.elements.len() {
            self.faults.insert(Fault::Versions);
        }
        let Some(others) = read.others else {
            self.faults.insert(Fault::Read);
            return;
        };
        let mut writer = None;
        for (place, &element) in others.iter().enumerate() {
            let is_last = if place + 1 == others.len() { IsLast::Yes } else { IsLast::No };
            writer = self.see_write(read.txn, choice.elements[&(read.key, element)], is_last);
        }
        if writer.is_none() && !others.is_empty() {
            return;
        }
        self.reads.push(ExternalRead { reader, op: read.op, key: read.key, writer, is_row: false });
    }

    /// The counted transaction that wrote what `reader` saw, and the faults of
    /// that. In a list only the last element tells where the reader stood.
    fn see_write(&mut self, reader: TxnId, source: Source, is_last: IsLast) -> Option<Counted> {
        let writer = match source {
            Source::Write(write) => {
                let txn = self.history.txn_of(write);
                if is_last == IsLast::Yes && !is_final(self.history, write) {
                    self.faults.insert(Fault::Read);
                }
                self.place(txn).filter(|_| txn != reader)
            }
            Source::Initial | Source::Own(_) | Source::Nowhere => None,
        };
        if writer.is_none() {
            self.faults.insert(Fault::Read);
        }
        writer
    }

    fn contradicts_condition(&self, read: &RegisterRead<'_>, source: Source) -> bool {
        let (Some((condition, returned)), Seen::This(value)) = (read.row, read.seen) else {
            return false;
        };
        let columns: Vec<(Value, Value)> = match source {
            Source::Write(write) | Source::Own(write) => {
                if self.history.op(write).kind == OpKind::Delete {
                    return returned;
                }
                self.history.row(write).collect()
            }
            Source::Initial => Vec::new(),
            Source::Nowhere => return false,
        };
        let key = self.history.key_name(read.key);
        let holds = condition.holds(self.history.values(), key, value, &columns);
        holds.is_some_and(|holds| holds != returned)
    }

    fn order_list(&mut self, observations: &Observations<'_>, choice: &Choice, key: KeyId) {
        let seen: Vec<&[Value]> = (observations.lists.iter())
            .filter(|read| read.key == key && self.place(read.txn).is_some())
            .filter_map(|read| read.others)
            .collect();
        let Some(longest) = seen.iter().max_by_key(|list| list.len()) else {
            return;
        };
        if seen.iter().any(|list| !longest.starts_with(list)) {
            self.faults.insert(Fault::Versions);
            return;
        }
        let shown: Vec<OpId> = (longest.iter())
            .filter_map(|&element| match choice.elements[&(key, element)] {
                Source::Write(append) => Some(append),
                Source::Initial | Source::Own(_) | Source::Nowhere => None,
            })
            .collect();
        let later: Vec<OpId> =
            (writes_of(self.history, key)).filter(|append| !shown.contains(append)).collect();
        let mut pairs = pairs_of(&shown);
        for &first in &shown {
            pairs.extend(later.iter().map(|&second| (first, second)));
        }
        self.order(key, &pairs);
    }

    fn order_as_given(&mut self) {
        let history = self.history;
        for chain in &history.orders().versions {
            let writes_of = |value: Value| {
                writes_of(history, chain.key)
                    .filter(|&write| history.op(write).value == value)
                    .collect()
            };
            let mut sequence = Vec::new();
            for named in chain.named(history, &writes_of) {
                match named {
                    Named::Write(write) => sequence.push(write),
                    Named::Initial if sequence.is_empty() => {}
                    Named::Initial => {
                        self.faults.insert(Fault::Versions);
                    }
                    Named::Open | Named::Nobody => {}
                }
            }
            self.order(chain.key, &pairs_of(&sequence));
        }
    }

    /// Adds pairs of operations in version order. Either all pairs have a meaning
    /// or the key has no version order.
    fn order(&mut self, key: KeyId, pairs: &[(OpId, OpId)]) {
        let mut known = Relation::default();
        for &(first, second) in pairs {
            let places =
                (self.place(self.history.txn_of(first)), self.place(self.history.txn_of(second)));
            let (Some(early), Some(late)) = places else {
                continue;
            };
            if early != late {
                known.insert(early, late);
            } else if first >= second {
                self.faults.insert(Fault::Versions);
                return;
            }
        }
        let versions = self.versions.entry(key).or_default();
        *versions = versions.or(known);
    }
}

/// Whether an element is the last of its list; a register is a list of one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IsLast {
    Yes,
    No,
}

/// The committed transactions, and unknown ones as long as a counted one saw
/// something of them.
fn counted(observations: &Observations<'_>, choice: &Choice) -> Vec<TxnId> {
    let history = observations.history;
    let mut counted: BTreeSet<TxnId> =
        history.txns().filter(|&txn| history.outcome(txn) == Outcome::Committed).collect();
    counted.extend(&choice.counted);
    loop {
        let registers = (observations.registers.iter().zip(&choice.registers))
            .map(|(read, &source)| (read.txn, source));
        let lists = observations.lists.iter().flat_map(|read| {
            let others = read.others.unwrap_or_default();
            (others.iter()).map(|&element| (read.txn, choice.elements[&(read.key, element)]))
        });
        let seen: Vec<TxnId> = registers
            .chain(lists)
            .filter(|(reader, _)| counted.contains(reader))
            .filter_map(|(_, source)| match source {
                Source::Write(write) => Some(history.txn_of(write)),
                Source::Initial | Source::Own(_) | Source::Nowhere => None,
            })
            .filter(|&txn| history.outcome(txn) == Outcome::Unknown)
            .collect();
        let before = counted.len();
        counted.extend(seen);
        if counted.len() == before {
            return counted.into_iter().collect();
        }
    }
}

fn session_order(history: &History, counted: &[TxnId]) -> Relation {
    let mut order = Relation::default();
    for (first, &early) in counted.iter().enumerate() {
        for (second, &late) in counted.iter().enumerate().skip(first + 1) {
            if history.session_of(early) == history.session_of(late) {
                order.insert(first, second);
            }
        }
    }
    order
}

/// Whether `write` is its transaction's last write of its key.
fn is_final(history: &History, write: OpId) -> bool {
    let txn = history.txn_of(write);
    let last = writes_of(history, history.op(write).key)
        .filter(|&other| history.txn_of(other) == txn)
        .last();
    last == Some(write)
}

/// Every pair of the sequence in its order.
fn pairs_of(sequence: &[OpId]) -> Vec<(OpId, OpId)> {
    let mut pairs = Vec::new();
    for (place, &first) in sequence.iter().enumerate() {
        pairs.extend(sequence[place + 1..].iter().map(|&second| (first, second)));
    }
    pairs
}

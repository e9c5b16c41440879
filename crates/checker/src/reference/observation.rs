//! What each read may have seen: the choices a history leaves open.
//!
//! A read with value v of key k may have seen any write of v to k in another
//! transaction, whatever became of it, or the initial state if v is the initial
//! value. With unique values that is at most one candidate. Elements of lists are
//! chosen once per key and element, because every read of a list shows the same
//! beginning of the same order.
//!
//! After an own write of the key there is no choice: the read shows the own last
//! write or contradicts it. A list read must end with exactly the own earlier
//! appends; the rest of it was written by others.
//!
//! A read whose value the client never learned imposes nothing. Rows that a read by
//! condition returned are reads of their keys, and so are all rows of a range of keys;
//! what else it means is for `conditions`.

use crate::unknown::{Obstacle, Size, Undefined};
use isolde_history::{Condition, History, KeyId, Op, OpId, OpKind, Outcome, TxnId, Value};
use std::collections::{BTreeMap, HashSet};

/// Larger histories are refused: candidates are found by looking at everything.
const OPS_MAX: usize = 2_000;
/// More combinations of choices are refused.
const COMBINATIONS_MAX: usize = 4_096;

/// What a read saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The state before every transaction.
    Initial,
    /// A write; of another transaction, unless it is an element of a list.
    Write(OpId),
    /// The transaction's own last write, as it must be.
    Own(OpId),
    /// Nothing that can be: a value nobody wrote, or only the reader itself and
    /// later, or a value other than the one the reader had just written.
    Nowhere,
}

/// A read of one version of a register.
pub(super) struct RegisterRead<'a> {
    pub(super) txn: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    pub(super) seen: Seen,
    /// For a row of a read by condition: the condition, and whether the row was returned.
    pub(super) row: Option<(&'a Condition, bool)>,
}

/// What a register read tells about the value.
#[derive(Clone, Copy)]
pub(super) enum Seen {
    /// It was this.
    This(Value),
    /// It was not this: a refused compare-and-set.
    NotThis(Value),
}

impl Seen {
    fn admits(self, value: Value) -> bool {
        match self {
            Seen::This(seen) => value == seen,
            Seen::NotThis(expected) => value != expected,
        }
    }
}

/// A read of a list.
pub(super) struct ListRead<'a> {
    pub(super) txn: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    pub(super) elements: &'a [Value],
    /// The elements before the own appends; `None` if the list does not end with them.
    pub(super) others: Option<&'a [Value]>,
}

/// Every read of the transactions that may count, with its possible sources.
pub(super) struct Observations<'a> {
    pub(super) history: &'a History,
    pub(super) registers: Vec<RegisterRead<'a>>,
    pub(super) lists: Vec<ListRead<'a>>,
    /// Possible sources of each register read.
    register_sources: Vec<Vec<Source>>,
    /// Possible sources of each element of each list.
    element_sources: BTreeMap<(KeyId, Value), Vec<Source>>,
}

/// One source for every read.
pub(super) struct Choice {
    /// By index of [`Observations::registers`].
    pub(super) registers: Vec<Source>,
    pub(super) elements: BTreeMap<(KeyId, Value), Source>,
    /// Transactions of unknown outcome that count whoever names them: what was found by
    /// condition may be due to them.
    pub(super) counted: Vec<TxnId>,
}

impl<'a> Observations<'a> {
    /// The reads of `history`, or why it is outside of what can be decided here.
    pub(super) fn of(history: &'a History) -> Result<Self, Obstacle> {
        refuse(history)?;
        let mut observations = Observations {
            history,
            registers: Vec::new(),
            lists: Vec::new(),
            register_sources: Vec::new(),
            element_sources: BTreeMap::new(),
        };
        let may_count = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        for txn in history.txns().filter(may_count) {
            for op in history.ops_of(txn) {
                observations.record(txn, op);
            }
        }
        Ok(observations)
    }

    /// Every way to choose one source for every read.
    pub(super) fn choices(&self) -> Result<impl Iterator<Item = Choice>, Obstacle> {
        let elements = self.element_sources.values();
        let optional = self.optional();
        let outcomes = optional.iter().map(|_| 2);
        let count = (self.register_sources.iter().chain(elements).map(Vec::len))
            .chain(outcomes)
            .try_fold(1, |count: usize, choices| count.checked_mul(choices))
            .filter(|&count| count <= COMBINATIONS_MAX)
            .ok_or(Obstacle::TooLarge(Size::Writers(COMBINATIONS_MAX)))?;
        Ok((0..count).map(move |mut number| {
            let mut pick = |choices: usize| {
                let picked = number % choices;
                number /= choices;
                picked
            };
            let registers = self.register_sources.iter();
            let elements = self.element_sources.iter();
            Choice {
                registers: registers.map(|sources| sources[pick(sources.len())]).collect(),
                elements: elements
                    .map(|(&element, sources)| (element, sources[pick(sources.len())]))
                    .collect(),
                counted: optional.iter().copied().filter(|_| pick(2) == 1).collect(),
            }
        }))
    }

    /// Writers of unknown outcome, where there are reads by condition.
    fn optional(&self) -> Vec<TxnId> {
        let history = self.history;
        if !history.has_predicates() {
            return Vec::new();
        }
        let writes = |txn: TxnId| history.ops_of(txn).any(|op| history.op(op).kind.is_write());
        let is_unknown = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
        history.txns().filter(is_unknown).filter(|&txn| writes(txn)).collect()
    }

    fn record(&mut self, txn: TxnId, op: OpId) {
        let Op { kind, key, value } = self.history.op(op);
        match kind {
            OpKind::Read => self.record_register(txn, op, key, Seen::This(value), None),
            OpKind::ReadOther => self.record_register(txn, op, key, Seen::NotThis(value), None),
            OpKind::ReadList => self.record_list(txn, op, key),
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let predicate = self.history.predicate(op);
                for row in predicate.item_rows() {
                    let condition = Some((&predicate.condition, row.matched));
                    self.record_register(txn, op, row.key, Seen::This(row.value), condition);
                }
            }
            OpKind::Write | OpKind::Append | OpKind::Insert | OpKind::Delete | OpKind::Call => {}
        }
    }

    fn record_register(
        &mut self,
        txn: TxnId,
        op: OpId,
        key: KeyId,
        seen: Seen,
        row: Option<(&'a Condition, bool)>,
    ) {
        let (Seen::This(value) | Seen::NotThis(value)) = seen;
        if value == Value::UNKNOWN {
            return;
        }
        let own_last = own_writes_before(self.history, txn, op, key).last().copied();
        let mut sources: Vec<Source> = match own_last {
            Some(own) if seen.admits(self.history.op(own).value) => vec![Source::Own(own)],
            Some(_) => vec![],
            None => writes_of(self.history, key)
                .filter(|&write| self.history.txn_of(write) != txn)
                .filter(|&write| seen.admits(self.history.op(write).value))
                .map(Source::Write)
                .collect(),
        };
        if own_last.is_none() && seen.admits(self.history.initial(key)) {
            sources.push(Source::Initial);
        }
        if sources.is_empty() {
            sources.push(Source::Nowhere);
        }
        self.register_sources.push(sources);
        self.registers.push(RegisterRead { txn, op, key, seen, row });
    }

    fn record_list(&mut self, txn: TxnId, op: OpId, key: KeyId) {
        let elements = self.history.list(op);
        let own: Vec<Value> = own_writes_before(self.history, txn, op, key)
            .iter()
            .map(|&append| self.history.op(append).value)
            .collect();
        let others = elements.strip_suffix(own.as_slice());
        for &element in others.unwrap_or_default() {
            let sources = || {
                let appends: Vec<Source> = writes_of(self.history, key)
                    .filter(|&append| self.history.op(append).value == element)
                    .map(Source::Write)
                    .collect();
                if appends.is_empty() { vec![Source::Nowhere] } else { appends }
            };
            self.element_sources.entry((key, element)).or_insert_with(sources);
        }
        self.lists.push(ListRead { txn, op, key, elements, others });
    }
}

/// Every write of `key`, whatever became of its transaction.
pub(super) fn writes_of(history: &History, key: KeyId) -> impl Iterator<Item = OpId> {
    (0..history.op_count() as u32).map(OpId).filter(move |&op| {
        let Op { kind, key: of, .. } = history.op(op);
        kind.is_write() && of == key
    })
}

fn own_writes_before(history: &History, txn: TxnId, before: OpId, key: KeyId) -> Vec<OpId> {
    writes_of(history, key)
        .filter(|&write| history.txn_of(write) == txn && write < before)
        .collect()
}

/// Why nothing is said about `history`, if so.
fn refuse(history: &History) -> Result<(), Obstacle> {
    let all_ops = || (0..history.op_count() as u32).map(OpId);
    let seen: usize = history.op_count()
        + all_ops().map(|op| seen_by(history, op)).sum::<usize>()
        + (history.orders().versions.iter()).map(|chain| chain.values.len()).sum::<usize>();
    if seen > OPS_MAX {
        return Err(Obstacle::TooLarge(Size::Operations(seen, OPS_MAX)));
    }
    let mut registers: HashSet<KeyId> = HashSet::new();
    let mut lists: HashSet<KeyId> = HashSet::new();
    for op in all_ops() {
        let Op { kind, key, value } = history.op(op);
        match kind {
            OpKind::Call => {
                return Err(Obstacle::Undefined(Undefined::Calls));
            }
            OpKind::ReadList if history.list(op).contains(&Value::UNKNOWN) => {
                return Err(Obstacle::Undefined(Undefined::UnlearnedElement));
            }
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                registers.extend(history.predicate(op).rows.iter().map(|row| row.key));
            }
            kind if kind.is_write() && value == Value::UNKNOWN => {
                return Err(Obstacle::Undefined(Undefined::UnlearnedWrite));
            }
            OpKind::Append | OpKind::ReadList => {
                lists.insert(key);
            }
            OpKind::Read if value == Value::UNKNOWN => {}
            _ => {
                registers.insert(key);
            }
        }
    }
    if !registers.is_disjoint(&lists) {
        return Err(Obstacle::Undefined(Undefined::RegisterAndList));
    }
    if (registers.iter()).any(|&key| history.initial(key) == Value::UNKNOWN) {
        return Err(Obstacle::Undefined(Undefined::InitialValue));
    }
    Ok(())
}

/// How many versions an operation saw beside its own.
fn seen_by(history: &History, op: OpId) -> usize {
    match history.op(op).kind {
        OpKind::ReadList => history.list(op).len(),
        OpKind::PredicateRead | OpKind::PredicateUpdate => history.predicate(op).rows.len(),
        _ => 0,
    }
}

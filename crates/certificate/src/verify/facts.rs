//! What a history says by itself: reads, their possible origins, who surely counts.
//!
//! The joins are simple sorted arrays of the verifier's own.

use super::conditions::Looked;
use crate::level::{EventKind, Reads};
use isolde_history::{
    Condition, History, Interval, KeyId, Op, OpId, OpKind, Outcome, Time, TxnId, Value,
};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

/// A history with what the verifier looks up in it.
pub(super) struct Facts<'a> {
    pub(super) history: &'a History,
    /// How far clocks may be apart.
    pub(super) clock_drift: Time,
    /// What is taken for true of what the history leaves open.
    assumed: Assumed,
    joins: OnceCell<Rc<Joins>>,
    surely_counted: [OnceCell<Vec<bool>>; 2],
}

/// What one case of a proof takes for true. All that is said of a history is then said of
/// the ways to understand it in which this is so.
#[derive(Clone, Default)]
pub(super) struct Assumed {
    /// Whether transactions of unknown outcome count.
    pub(super) counts: HashMap<TxnId, bool>,
    /// The append that added an element, wherever others than its transaction saw it.
    pub(super) appends: HashMap<(KeyId, Value), OpId>,
    /// What reads saw.
    pub(super) origins: HashMap<(OpId, KeyId), Origin>,
}

struct Joins {
    /// Every write, by key and value.
    by_value: Vec<(KeyId, Value, OpId)>,
    /// Every write, by key.
    by_key: Vec<(KeyId, OpId)>,
    /// By operation: a write that its transaction does not overwrite.
    is_final: Vec<bool>,
}

/// A read of one version of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<'a> {
    pub(super) txn: TxnId,
    pub(super) op: OpId,
    pub(super) key: KeyId,
    pub(super) seen: Seen<'a>,
    /// The transaction's last write of the key before the read.
    pub(super) own: Option<OpId>,
    /// For a row of a read by condition: the condition, and whether it was returned.
    pub(super) row: Option<(&'a Condition, bool)>,
}

impl Read<'_> {
    /// Whether it saw something of others: not so after an own write, unless the own
    /// appends are only the end of a list.
    pub(super) fn is_external(&self) -> bool {
        match self.seen {
            Seen::List(others) => others.is_some(),
            Seen::This(_) | Seen::NotThis(_) | Seen::Fitting => self.own.is_none(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Seen<'a> {
    /// The value was this.
    This(Value),
    /// The value was not this.
    NotThis(Value),
    /// A list that others had appended these to; `None` if it does not end with the
    /// transaction's own appends.
    List(Option<&'a [Value]>),
    /// A version that fits what an operation by condition found, which names none.
    Fitting,
}

impl Seen<'_> {
    /// Whether a register with this value fits.
    pub(super) fn admits(self, value: Value) -> bool {
        match self {
            Seen::This(seen) => value == seen,
            Seen::NotThis(refused) => value != refused,
            Seen::List(_) | Seen::Fitting => false,
        }
    }
}

/// Where what was read may have come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Initial,
    Txn(TxnId),
    /// From a transaction that does not count, or nowhere: the read is ignored by
    /// levels that allow it.
    Nowhere,
}

/// How many origins a read may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sole {
    None,
    One(Origin),
    Several,
}

impl<'a> Facts<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        Facts {
            history,
            clock_drift: 0,
            assumed: Assumed::default(),
            joins: OnceCell::new(),
            surely_counted: Default::default(),
        }
    }

    /// The same history if more is taken for true.
    pub(super) fn assuming(&self, assume: impl FnOnce(&mut Assumed)) -> Facts<'a> {
        let mut assumed = self.assumed.clone();
        assume(&mut assumed);
        self.joins();
        Facts {
            history: self.history,
            clock_drift: self.clock_drift,
            assumed,
            joins: self.joins.clone(),
            surely_counted: Default::default(),
        }
    }

    /// When an event of a transaction was invoked.
    pub(super) fn invoked(&self, txn: TxnId, kind: EventKind) -> Time {
        self.interval(txn, kind).invoked
    }

    /// When an event of a transaction had surely completed by everybody's clock.
    pub(super) fn completed(&self, txn: TxnId, kind: EventKind) -> Time {
        self.interval(txn, kind).completed.saturating_add(self.clock_drift)
    }

    fn interval(&self, txn: TxnId, kind: EventKind) -> Interval {
        let times = self.history.txn_times(txn);
        match kind {
            EventKind::Begin => times.begin,
            EventKind::Commit => times.commit,
        }
    }

    fn joins(&self) -> &Joins {
        self.joins.get_or_init(|| Rc::new(Joins::new(self.history)))
    }

    pub(super) fn may_count(&self, txn: TxnId) -> bool {
        self.history.outcome(txn) != Outcome::Aborted
            && self.assumed.counts.get(&txn) != Some(&false)
    }

    pub(super) fn is_final(&self, write: OpId) -> bool {
        self.joins().is_final[write.index()]
    }

    /// Every write of a value to a key.
    pub(super) fn writes_of_value(
        &self,
        key: KeyId,
        value: Value,
    ) -> impl Iterator<Item = OpId> + Clone + use<'_> {
        let writes = &self.joins().by_value;
        let start = writes.partition_point(|write| (write.0, write.1) < (key, value));
        writes[start..]
            .iter()
            .take_while(move |write| (write.0, write.1) == (key, value))
            .map(|write| write.2)
    }

    /// The appends that may have added an element which others saw.
    pub(super) fn appends_of(
        &self,
        key: KeyId,
        element: Value,
    ) -> impl Iterator<Item = OpId> + Clone + use<'_> {
        let assumed = self.assumed.appends.get(&(key, element)).copied();
        let is_possible = move |&append: &OpId| assumed.is_none_or(|assumed| append == assumed);
        self.writes_of_value(key, element).filter(is_possible)
    }

    /// Whether an append may be the one that others saw.
    pub(super) fn may_be_seen(&self, append: OpId) -> bool {
        let Op { key, value, .. } = self.history.op(append);
        self.assumed.appends.get(&(key, value)).is_none_or(|assumed| append == *assumed)
    }

    /// Every write of a key, in the order of operations.
    pub(super) fn writes_of(&self, key: KeyId) -> impl Iterator<Item = OpId> + Clone + use<'_> {
        let writes = &self.joins().by_key;
        let start = writes.partition_point(|write| write.0 < key);
        writes[start..].iter().take_while(move |write| write.0 == key).map(|write| write.1)
    }

    /// Whether a transaction writes a key.
    pub(super) fn writes(&self, txn: TxnId, key: KeyId) -> bool {
        let range = self.history.op_range(txn);
        let writes = &self.joins().by_key;
        let place = writes.partition_point(|write| *write < (key, OpId(range.start)));
        writes.get(place).is_some_and(|write| write.0 == key && write.1.0 < range.end)
    }

    /// The reads of an operation on a key: one, but for rows of a read by condition.
    pub(super) fn reads_at(&self, op: OpId, key: KeyId) -> Vec<Read<'a>> {
        if op.index() >= self.history.op_count() {
            return Vec::new();
        }
        let txn = self.history.txn_of(op);
        let mut own = None;
        for earlier in (self.history.op_range(txn).start..op.0).map(OpId) {
            let Op { kind, key: of, .. } = self.history.op(earlier);
            if kind.is_write() && of == key {
                own = Some(earlier);
            }
        }
        let mut reads = Vec::new();
        visit_reads(self.history, txn, op, &mut |_| own, &mut |read| reads.push(read));
        reads.retain(|read| read.key == key);
        reads
    }

    /// Visits the possible origins of a read that is external, each at least
    /// once, until told to stop.
    pub(super) fn visit_origins(
        &self,
        read: &Read<'_>,
        reads: Reads,
        mut visit: impl FnMut(Origin) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let history = self.history;
        let assumed = self.assumed.origins.get(&(read.op, read.key));
        let mut visit = |origin: Origin| {
            if assumed.is_none_or(|assumed| *assumed == origin) {
                return visit(origin);
            }
            ControlFlow::Continue(())
        };
        let mut visit_write = |write: OpId| {
            let txn = history.txn_of(write);
            if txn == read.txn && !matches!(read.seen, Seen::List(_)) {
                return ControlFlow::Continue(());
            }
            let counts = txn != read.txn && self.may_count(txn);
            // Had a read that counts seen it, it would count.
            if !counts && txn != read.txn && history.outcome(txn) == Outcome::Unknown {
                return ControlFlow::Continue(());
            }
            match reads {
                Reads::Final if counts && self.is_final(write) => visit(Origin::Txn(txn)),
                Reads::Final => ControlFlow::Continue(()),
                _ if counts => visit(Origin::Txn(txn)),
                _ => visit(Origin::Nowhere),
            }
        };
        match read.seen {
            Seen::This(value) => {
                for write in self.writes_of_value(read.key, value) {
                    visit_write(write)?;
                }
            }
            Seen::NotThis(value) => {
                for write in self.writes_of(read.key) {
                    if history.op(write).value != value {
                        visit_write(write)?;
                    }
                }
            }
            Seen::Fitting => {
                let Some(looked) = Looked::new(history, read.op, read.key) else {
                    return visit(Origin::Nowhere);
                };
                for write in self.writes_of(read.key).filter(|&it| looked.may_be(Some(it))) {
                    visit_write(write)?;
                }
                if looked.may_be(None) {
                    visit(Origin::Initial)?;
                }
            }
            Seen::List(Some([])) => return visit(Origin::Initial),
            Seen::List(None) => return ControlFlow::Continue(()),
            Seen::List(Some([.., last])) => {
                for write in self.appends_of(read.key, *last) {
                    visit_write(write)?;
                }
            }
        }
        if read.seen.admits(history.initial(read.key)) {
            visit(Origin::Initial)?;
        }
        ControlFlow::Continue(())
    }

    /// The origin of a read that is external, if there is one only.
    pub(super) fn sole_origin(&self, read: &Read<'_>, reads: Reads) -> Sole {
        let mut found = Sole::None;
        let _ = self.visit_origins(read, reads, |origin| match found {
            Sole::None => {
                found = Sole::One(origin);
                ControlFlow::Continue(())
            }
            Sole::One(known) if known == origin => ControlFlow::Continue(()),
            _ => {
                found = Sole::Several;
                ControlFlow::Break(())
            }
        });
        found
    }

    /// Whether a read that is external may have this origin.
    pub(super) fn may_have(&self, read: &Read<'_>, reads: Reads, origin: Origin) -> bool {
        let compare = |possible| {
            if possible == origin { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        self.visit_origins(read, reads, compare).is_break()
    }

    /// The append that every list which shows an element to `reader` means, if there
    /// is one only.
    pub(super) fn append_of(
        &self,
        reader: TxnId,
        key: KeyId,
        element: Value,
        reads: Reads,
    ) -> Option<OpId> {
        let history = self.history;
        let is_possible = |&append: &OpId| {
            let txn = history.txn_of(append);
            reads != Reads::Final || (txn != reader && self.may_count(txn))
        };
        let mut appends = self.appends_of(key, element).filter(is_possible);
        let only = appends.next()?;
        appends.next().is_none().then_some(only)
    }

    /// Whether no choice of origins makes sense of a read: levels with [`Reads::Final`]
    /// are refuted by it.
    pub(super) fn is_wrong(&self, read: &Read<'_>) -> bool {
        let history = self.history;
        match (read.seen, read.own) {
            (Seen::List(None), _) => true,
            (Seen::List(Some(elements)), _) => {
                let by_others = |&element: &Value| {
                    self.appends_of(read.key, element).any(|append| {
                        let txn = history.txn_of(append);
                        txn != read.txn && self.may_count(txn)
                    })
                };
                !elements.iter().all(by_others)
                    || self.sole_origin(read, Reads::Final) == Sole::None
            }
            (seen, Some(own)) => !seen.admits(history.op(own).value),
            (_, None) => self.sole_origin(read, Reads::Final) == Sole::None,
        }
    }

    /// Whether a transaction counts whatever reads with several origins saw.
    pub(super) fn surely_counts(&self, txn: TxnId, reads: Reads) -> bool {
        match self.history.outcome(txn) {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown if self.assumed.counts.contains_key(&txn) => self.assumed.counts[&txn],
            Outcome::Unknown => {
                let cell = &self.surely_counted[usize::from(reads == Reads::Final)];
                cell.get_or_init(|| self.find_surely_counted(reads))[txn.index()]
            }
        }
    }

    fn find_surely_counted(&self, reads: Reads) -> Vec<bool> {
        let history = self.history;
        let counts = |txn: TxnId| {
            history.outcome(txn) == Outcome::Committed
                || self.assumed.counts.get(&txn) == Some(&true)
        };
        let mut counted: Vec<bool> = history.txns().map(counts).collect();
        let mut open: Vec<TxnId> = history.txns().filter(|txn| counted[txn.index()]).collect();
        let mut observed = Vec::new();
        let mut reader = Reader::default();
        while let Some(txn) = open.pop() {
            reader.visit(history, txn, |read| {
                if let Seen::List(elements) = read.seen {
                    for &element in elements.unwrap_or_default() {
                        let append = self.append_of(txn, read.key, element, reads);
                        observed.extend(append.map(|append| history.txn_of(append)));
                    }
                } else if read.is_external()
                    && let Sole::One(Origin::Txn(writer)) = self.sole_origin(&read, reads)
                {
                    observed.push(writer);
                }
            });
            for writer in observed.drain(..) {
                if self.may_count(writer) && !counted[writer.index()] {
                    counted[writer.index()] = true;
                    open.push(writer);
                }
            }
        }
        counted
    }

    /// Whether a row was returned although it does not meet the condition, or the
    /// reverse, if `write` installed it, or nobody did.
    pub(super) fn contradicts_condition(&self, read: &Read<'_>, write: Option<OpId>) -> bool {
        let history = self.history;
        let (Some((condition, returned)), Seen::This(value)) = (read.row, read.seen) else {
            return false;
        };
        if write.is_some_and(|write| history.op(write).kind == OpKind::Delete) {
            return returned;
        }
        let columns: Vec<(Value, Value)> =
            write.map(|write| history.row(write).collect()).unwrap_or_default();
        let name = history.key_name(read.key);
        let holds = condition.holds(history.values(), name, value, &columns);
        holds.is_some_and(|holds| holds != returned)
    }
}

impl Joins {
    fn new(history: &History) -> Joins {
        let writes = || {
            (0..history.op_count() as u32)
                .map(OpId)
                .filter(|op| history.op_kinds()[op.index()].is_write())
        };
        let mut by_value: Vec<(KeyId, Value, OpId)> = writes()
            .map(|op| (history.op_keys()[op.index()], history.op_values()[op.index()], op))
            .collect();
        by_value.sort_unstable();
        let mut by_key: Vec<(KeyId, OpId)> =
            writes().map(|op| (history.op_keys()[op.index()], op)).collect();
        by_key.sort_unstable();
        let mut is_final = vec![false; history.op_count()];
        for place in 0..by_key.len() {
            let (key, op) = by_key[place];
            let next = by_key.get(place + 1).filter(|next| next.0 == key);
            let end = history.op_range(history.txn_of(op)).end;
            is_final[op.index()] = next.is_none_or(|next| next.1.0 >= end);
        }
        Joins { by_value, by_key, is_final }
    }
}

/// Visits the reads of transactions, with the own write before each.
#[derive(Clone, Default)]
pub(super) struct Reader {
    own: HashMap<KeyId, OpId>,
}

impl Reader {
    pub(super) fn visit<'a>(
        &mut self,
        history: &'a History,
        txn: TxnId,
        mut visit: impl FnMut(Read<'a>),
    ) {
        self.own.clear();
        for op in history.ops_of(txn) {
            if history.op_kinds()[op.index()].is_write() {
                self.own.insert(history.op_keys()[op.index()], op);
            } else {
                visit_reads(history, txn, op, &mut |key| self.own.get(&key).copied(), &mut visit);
            }
        }
    }
}

fn visit_reads<'a>(
    history: &'a History,
    txn: TxnId,
    op: OpId,
    own: &mut dyn FnMut(KeyId) -> Option<OpId>,
    visit: &mut dyn FnMut(Read<'a>),
) {
    let Op { kind, key, value } = history.op(op);
    let seen = match kind {
        OpKind::Read => Seen::This(value),
        OpKind::ReadOther => Seen::NotThis(value),
        OpKind::ReadList => Seen::List(without_own(history, txn, op)),
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            let predicate = history.predicate(op);
            for row in predicate.item_rows().filter(|row| row.value != Value::UNKNOWN) {
                let seen = Seen::This(row.value);
                let condition = Some((&predicate.condition, row.matched));
                let own = own(row.key);
                visit(Read { txn, op, key: row.key, seen, own, row: condition });
            }
            return;
        }
        _ => return,
    };
    // A result that the client never learned says nothing.
    if kind == OpKind::ReadList || value != Value::UNKNOWN {
        visit(Read { txn, op, key, seen, own: own(key), row: None });
    }
}

/// A list without the reader's own appends at its end.
fn without_own(history: &History, txn: TxnId, read: OpId) -> Option<&[Value]> {
    let key = history.op(read).key;
    let mut rest = history.list(read);
    for op in (history.op_range(txn).start..read.0).rev().map(OpId) {
        if history.op_keys()[op.index()] == key && history.op_kinds()[op.index()].is_write() {
            rest = rest.strip_suffix(&[history.op_values()[op.index()]])?;
        }
    }
    Some(rest)
}

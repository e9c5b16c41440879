//! How Elle reads registers and lists where that differs from the definitions of our levels.
//!
//! - **A register read of a value that nobody wrote** is no anomaly to Elle and orders nothing
//!   [elle.rw-register, `wr-graph`]. It counts in two ways: transactions that read the same such
//!   value and then wrote the key lost an update [elle.txn, `lost-update-cases`], and a transaction
//!   sees one value of a key [elle.rw-register, `internal-cases`]. Such a read is taken as one of a
//!   writer who is not in the history, any other one as one that never learned what it saw.
//! - **The longest list of a key** is the order of its appends, whoever read it and whatever the
//!   reader itself had appended [elle.list-append, `append-index`]. Of our levels, read
//!   uncommitted alone may hold where lists contradict each other, so it alone is asked about
//!   a history of appends and the longest lists.
//! - **Lists that are no beginning of the longest** are a read of what never was, G1a, and no
//!   fault of the order of versions [elle.list-append, `incompatible-orders`]. Own appends are not
//!   taken away first, so `[2]` after an own append of 2 contradicts `[1 2]`.

use crate::anomaly::{Anomaly, AnomalyKind, Evidence, of_operations};
use crate::evidence::Reason;
use crate::verdict::Verdict;
use hashbrown::{HashMap, HashSet};
use isolde_certificate::Rule;
use isolde_history::{
    History, HistoryBuilder, Index, KeyId, MisreadKind, OpId, OpKind, Outcome, Value,
    VersionConflict,
};

/// The history as Elle reads it if values were read from registers that nobody wrote, and how many
/// such reads there are. [`super::answer`] calls them an anomaly otherwise.
pub fn allowing_unwritten(history: History) -> (History, usize) {
    let index = Index::new(&history);
    let reads: HashSet<OpId> = (index.misreads().iter())
        .filter(|misread| misread.kind == MisreadKind::ThinAir)
        .map(|misread| misread.read)
        .filter(|&read| history.op(read).kind == OpKind::Read)
        .collect();
    if reads.is_empty() {
        drop(index);
        return (history, 0);
    }
    let counting = counting(&history, &index, &reads);
    let is_kept = |op: OpId| !reads.contains(&op) || counting.binary_search(&op).is_ok();
    let mut builder = copy(&history, is_kept);
    let mut known: HashSet<(KeyId, Value)> = HashSet::new();
    for &read in &counting {
        let it = history.op(read);
        if !known.insert((it.key, it.value)) {
            continue;
        }
        let label = builder.values().text(&format!("missing-writer-{}", known.len()));
        let session = builder.new_session(label);
        let txn = builder.begin(session);
        builder.label(txn, label);
        builder.unlogged(txn);
        builder.position(history.position(read));
        let value = builder.values().intern_datum(history.datum(it.value));
        builder.op(OpKind::Write, it.key, value);
    }
    (finish(builder), reads.len())
}

/// Reads of values that nobody wrote by which Elle finds a lost update or a transaction that saw
/// two values of a key; ascending.
fn counting(history: &History, index: &Index, unwritten: &HashSet<OpId>) -> Vec<OpId> {
    let mut counting: Vec<OpId> = Vec::new();
    let mut replaced: HashMap<(KeyId, Value), Vec<OpId>> = HashMap::new();
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        // Of each key, what was read until the transaction itself wrote it.
        let mut seen: HashMap<KeyId, Vec<OpId>> = HashMap::new();
        let mut written: HashSet<KeyId> = HashSet::new();
        for op in history.ops_of(txn) {
            let it = history.op(op);
            if it.kind == OpKind::Read {
                if it.value != Value::UNKNOWN && !written.contains(&it.key) {
                    seen.entry(it.key).or_default().push(op);
                }
            } else if written.insert(it.key)
                && let Some(reads) = seen.get(&it.key)
                && unwritten.contains(&reads[0])
            {
                let value = history.op(reads[0]).value;
                replaced.entry((it.key, value)).or_default().push(reads[0]);
            }
        }
        for reads in seen.into_values() {
            let first = history.op(reads[0]).value;
            if reads.iter().any(|&read| history.op(read).value != first) {
                counting.extend(reads.iter().filter(|read| unwritten.contains(*read)));
            }
        }
    }
    counting.extend(replaced.into_values().filter(|readers| readers.len() > 1).flatten());
    counting.sort_unstable();
    counting.dedup();
    counting
}

/// What Elle takes from lists.
pub(super) struct Lists {
    /// Lists that are no beginning of the longest, one for each key.
    pub(super) incompatible: Vec<Anomaly>,
    /// The appends and the longest lists, if some list does not go with the others of its key or
    /// with what its reader had appended. Else the history itself says the same.
    pub(super) orders: Option<History>,
    /// The longest lists, in the order in which the last transaction of `orders` reads them.
    reads: Vec<OpId>,
    /// How many operations the history has. Those of `orders` have the same places.
    ops: usize,
}

impl Lists {
    pub(super) fn of(history: &History, index: &Index) -> Lists {
        let ops = history.op_count();
        let mut lists = Lists { incompatible: Vec::new(), orders: None, reads: Vec::new(), ops };
        if !history.has_lists() {
            return lists;
        }
        let longest = longest(history);
        let mut met: HashSet<KeyId> = HashSet::new();
        for read in list_reads(history) {
            let key = history.op(read).key;
            let first = longest[&key];
            if !history.list(first).starts_with(history.list(read)) && met.insert(key) {
                let kind = AnomalyKind::IncompatibleOrder;
                lists.incompatible.push(of_operations(history, kind, key, vec![first, read]));
            }
        }
        let is_list = |read: OpId| history.op(read).kind == OpKind::ReadList;
        let is_misread = index.misreads().iter().any(|it| is_list(it.read));
        // An element twice in one list refutes read uncommitted by itself.
        let repeats = |it: &VersionConflict| matches!(it, VersionConflict::Duplicate { .. });
        if (is_misread || !lists.incompatible.is_empty()) && !index.conflicts().iter().any(repeats)
        {
            lists.reads = longest.into_values().collect();
            lists.reads.sort_unstable();
            lists.orders = Some(orders(history, &lists.reads));
        }
        lists
    }

    /// A verdict about `orders` with the operations of the history.
    pub(super) fn in_history(&self, verdict: Verdict) -> Verdict {
        let Verdict::Violated(mut violated) = verdict else { return verdict };
        let in_history = |op: &mut OpId| {
            if let Some(place) = op.index().checked_sub(self.ops) {
                *op = self.reads[place];
            }
        };
        for anomaly in &mut violated.anomalies {
            // Elements are unique, so that there is one way to read the lists, and no cases.
            match &mut anomaly.evidence {
                Evidence::Operations { ops, .. } => ops.iter_mut().for_each(in_history),
                evidence => {
                    for edge in evidence.cycles_mut().iter_mut().flat_map(|it| &mut it.edges) {
                        if let Reason::Rule(Rule::ListOrder { read, .. }) = &mut edge.reason {
                            in_history(read);
                        }
                    }
                }
            }
        }
        Verdict::Violated(violated)
    }
}

/// Reads of lists by transactions that may have committed.
fn list_reads(history: &History) -> impl Iterator<Item = OpId> {
    let may_count = |txn: &_| history.outcome(*txn) != Outcome::Aborted;
    let ops = history.txns().filter(may_count).flat_map(|txn| history.ops_of(txn));
    ops.filter(|&op| history.op(op).kind == OpKind::ReadList)
}

/// The longest list of each key, and of several the first.
fn longest(history: &History) -> HashMap<KeyId, OpId> {
    let mut longest: HashMap<KeyId, OpId> = HashMap::new();
    for read in list_reads(history) {
        let known = longest.entry(history.op(read).key).or_insert(read);
        if history.list(read).len() > history.list(*known).len() {
            *known = read;
        }
    }
    longest
}

/// All appends, and behind them one transaction that made these reads, with each element once.
fn orders(history: &History, reads: &[OpId]) -> History {
    let mut builder = copy(history, |op| history.op(op).kind.is_write());
    let label = builder.values().text("longest-lists");
    let session = builder.new_session(label);
    let txn = builder.begin(session);
    builder.label(txn, label);
    for &read in reads {
        let mut met: HashSet<Value> = HashSet::new();
        let distinct = history.list(read).iter().filter(|&&element| met.insert(element));
        let list: Vec<Value> = distinct
            .map(|&element| builder.values().intern_datum(history.datum(element)))
            .collect();
        builder.position(history.position(read));
        builder.read_list(history.op(read).key, &list);
    }
    finish(builder)
}

/// The same transactions and operations; what was read becomes unknown where it is not kept.
/// Only what a [`super::Workload`] has is taken over: it holds no predicates, rows or orders given
/// by a database.
fn copy(history: &History, is_kept: impl Fn(OpId) -> bool) -> HistoryBuilder {
    let mut builder = HistoryBuilder::new();
    let take = |builder: &mut HistoryBuilder, value| {
        builder.values().intern_datum(history.values().datum(value))
    };
    let default = take(&mut builder, history.initial_default());
    builder.initial_default(default);
    // In their order, so that keys keep their ids.
    for key in history.keys() {
        let name = take(&mut builder, history.key_name(key));
        builder.key(name);
    }
    for &(key, value) in history.declared_initial() {
        let value = take(&mut builder, value);
        builder.initial(key, value);
    }
    builder.position_unit(history.position_unit());
    for session in history.sessions() {
        let label = take(&mut builder, history.session_label(session));
        let new_session = builder.new_session(label);
        for txn in history.txns_of(session) {
            let draft = builder.begin(new_session);
            builder.outcome(draft, history.outcome(txn));
            let label = take(&mut builder, history.txn_label(txn));
            builder.label(draft, label);
            if history.has_times() {
                builder.interval(draft, history.txn_interval(txn));
            }
            for op in history.ops_of(txn) {
                let it = history.op(op);
                builder.position(history.position(op));
                if !is_kept(op) {
                    builder.op(OpKind::Read, it.key, Value::UNKNOWN);
                } else if it.kind == OpKind::ReadList {
                    let list = history.list(op).iter();
                    let list: Vec<Value> = list.map(|&value| take(&mut builder, value)).collect();
                    builder.read_list(it.key, &list);
                } else {
                    let value = take(&mut builder, it.value);
                    builder.op(it.kind, it.key, value);
                }
            }
        }
    }
    builder
}

fn finish(builder: HistoryBuilder) -> History {
    builder.finish("history").expect("at most a write more for each read")
}

//! What the writers of register formats share: which transactions are written,
//! what is lost, what is refused, and names as numbers.

use super::WriteError;
use crate::history::{ALWAYS, History, KeyId, NEVER, Op, OpId, OpKind, Outcome, TxnId};
use crate::value::{Datum, Value};
use hashbrown::{HashMap, HashSet};

/// What a format can express beside committed transactions of reads and writes.
#[derive(Clone, Copy, Default)]
pub(super) struct Abilities {
    /// Aborted transactions.
    pub(super) aborted: bool,
    /// Reads of key ranges.
    pub(super) ranges: bool,
    /// Begin and end of transactions.
    pub(super) times: bool,
}

/// What a format does not say of a history, one sentence each.
#[derive(Default)]
pub(super) struct Losses {
    sentences: Vec<String>,
}

impl Losses {
    /// Notes a loss, once.
    pub(super) fn add(&mut self, sentence: &str) {
        if !self.sentences.iter().any(|known| known == sentence) {
            self.sentences.push(sentence.to_owned());
        }
    }

    fn add_if(&mut self, lost: bool, sentence: &str) {
        if lost {
            self.add(sentence);
        }
    }

    pub(super) fn sentences(self) -> Vec<String> {
        self.sentences
    }
}

/// Which transactions are written.
pub(super) struct Plan {
    kept: Vec<bool>,
}

impl Plan {
    pub(super) fn is_kept(&self, txn: TxnId) -> bool {
        self.kept[txn.index()]
    }

    /// The transactions that are written.
    pub(super) fn txns(&self, history: &History) -> impl Iterator<Item = TxnId> {
        history.txns().filter(|&txn| self.is_kept(txn))
    }

    /// The operations that are written, predicates among them.
    fn ops<'h>(&'h self, history: &'h History) -> impl Iterator<Item = Op> + 'h {
        self.txns(history).flat_map(|txn| history.ops_of(txn)).map(|op| history.op(op))
    }
}

/// Decides what is written, refusing what no register format can say.
///
/// An unknown transaction is written as a committed one if its writes were seen,
/// and left out otherwise: that is what its outcome means. Where another writer may
/// be the one that was seen, it is neither, and the history is refused.
pub(super) fn plan(
    history: &History,
    abilities: Abilities,
    losses: &mut Losses,
) -> Result<Plan, WriteError> {
    for txn in history.txns() {
        for op in history.ops_of(txn) {
            refuse(history, abilities, txn, history.op(op), || history.predicate(op))?;
        }
    }
    let observed = observed_unknowns(history)?;
    let kept: Vec<bool> = history
        .txns()
        .map(|txn| match history.outcome(txn) {
            Outcome::Committed => true,
            Outcome::Aborted => abilities.aborted,
            Outcome::Unknown => observed.contains(&txn),
        })
        .collect();
    let plan = Plan { kept };
    general_losses(history, abilities, &plan, losses);
    Ok(plan)
}

fn refuse<'h>(
    history: &History,
    abilities: Abilities,
    txn: TxnId,
    op: Op,
    predicate: impl FnOnce() -> &'h crate::predicate::Predicate,
) -> Result<(), WriteError> {
    use crate::predicate::Condition;
    let what = match op.kind {
        OpKind::Append | OpKind::ReadList => {
            "works on a list, and lists as registers would mean something else"
        }
        OpKind::ReadOther => "has a read that tells only what was not seen",
        OpKind::Call => "has an operation that is neither read nor write",
        OpKind::PredicateUpdate => "has an update by condition",
        OpKind::PredicateRead if !abilities.ranges => "has a read by condition",
        OpKind::PredicateRead => match predicate() {
            it if it.aggregate.is_some() => "has an aggregate",
            it if matches!(it.condition, Condition::All | Condition::KeyRange { .. }) => {
                return Ok(());
            }
            _ => "has a read by a condition that is no range of keys",
        },
        OpKind::Read | OpKind::Write | OpKind::Insert | OpKind::Delete => return Ok(()),
    };
    let name = history.txn_name(txn);
    Err(WriteError::Inexpressible(format!("transaction {name} {what}: this format cannot say it")))
}

fn general_losses(history: &History, abilities: Abilities, plan: &Plan, losses: &mut Losses) {
    let outcomes = history.outcomes();
    let left_out =
        |outcome| history.txns().any(|txn| history.outcome(txn) == outcome && !plan.is_kept(txn));
    losses.add_if(left_out(Outcome::Aborted), "aborted transactions are left out");
    losses.add_if(
        left_out(Outcome::Unknown),
        "transactions of unknown outcome that nobody saw are left out",
    );
    losses.add_if(
        plan.txns(history).any(|txn| outcomes[txn.index()] == Outcome::Unknown),
        "transactions of unknown outcome that somebody saw are written as committed",
    );
    losses.add_if(history.has_times() && !abilities.times, "times of transactions");
    losses.add_if(history.has_op_times(), "times of operations");
    losses.add_if(
        history.txns().any(|txn| history.timestamps(txn).is_some()),
        "timestamps of the database",
    );
    losses.add_if(history.has_snapshots(), "snapshots of the database");
    let orders = history.orders();
    losses.add_if(
        !orders.versions.is_empty() || orders.total.is_some(),
        "orders given by the database",
    );
    losses.add_if(!history.events().is_empty(), "events beside transactions");
    losses.add_if(history.has_statements(), "statements of operations");
    losses.add_if(history.has_rows(), "columns of rows");
    losses.add_if(
        history.sessions().any(|session| history.endpoint(session) != Value::NIL),
        "endpoints of sessions",
    );
    losses.add_if(
        history.txns().any(|txn| history.error(txn) != Value::NIL),
        "what clients were told of failures",
    );
    losses.add_if(
        plan.ops(history).any(|op| matches!(op.kind, OpKind::Insert | OpKind::Delete))
            && !abilities.ranges,
        "inserts and deletes are written as writes",
    );
    losses.add_if(
        plan.ops(history).any(|op| op.kind == OpKind::Read && op.value == Value::UNKNOWN),
        "reads whose result was never learned are left out",
    );
}

/// Unknown transactions that a committed one read from, directly or through others.
fn observed_unknowns(history: &History) -> Result<HashSet<TxnId>, WriteError> {
    let mut observed = HashSet::new();
    let writers = writers_of_unknowns(history);
    if writers.is_empty() {
        return Ok(observed);
    }
    let is_unknown = |txn: TxnId| history.outcome(txn) == Outcome::Unknown;
    let committed = |txn: &TxnId| history.outcome(*txn) == Outcome::Committed;
    let mut readers: Vec<TxnId> = history.txns().filter(committed).collect();
    let mut ambiguous = Vec::new();
    while let Some(reader) = readers.pop() {
        for (key, value) in seen_of_others(history, reader) {
            match writers.get(&(key, value)).map(Vec::as_slice) {
                None => {}
                Some(&[writer]) if value != history.initial(key) => {
                    readers.extend(observed.insert(writer).then_some(writer));
                }
                Some(_) => ambiguous.push((reader, key, value)),
            }
        }
    }
    for (reader, key, value) in ambiguous {
        let open = |writer: &&TxnId| is_unknown(**writer) && !observed.contains(*writer);
        if let Some(&writer) = writers[&(key, value)].iter().find(open) {
            let why = format!(
                "that may be of transaction {}, whose outcome is unknown, or of another: \
                 this format cannot leave it open",
                history.txn_name(writer)
            );
            return Err(inexpressible_read(history, reader, (key, value), &why));
        }
    }
    Ok(observed)
}

/// Who wrote the values that transactions of unknown outcome wrote.
fn writers_of_unknowns(history: &History) -> HashMap<(KeyId, Value), Vec<TxnId>> {
    let mut writers: HashMap<(KeyId, Value), Vec<TxnId>> = HashMap::new();
    let (unknown, others): (Vec<TxnId>, Vec<TxnId>) =
        history.txns().partition(|&txn| history.outcome(txn) == Outcome::Unknown);
    for txn in unknown {
        for version in written_by(history, txn) {
            let writers = writers.entry(version).or_default();
            if writers.last() != Some(&txn) {
                writers.push(txn);
            }
        }
    }
    if writers.is_empty() {
        return writers;
    }
    for txn in others {
        for version in written_by(history, txn) {
            if let Some(writers) = writers.get_mut(&version) {
                writers.push(txn);
            }
        }
    }
    writers
}

/// Keys and values that a transaction wrote.
fn written_by(history: &History, txn: TxnId) -> impl Iterator<Item = (KeyId, Value)> {
    let ops = history.ops_of(txn).map(|op| history.op(op));
    ops.filter(|op| op.kind.is_write()).map(|op| (op.key, op.value))
}

fn inexpressible_read(
    history: &History,
    reader: TxnId,
    (key, value): (KeyId, Value),
    why: &str,
) -> WriteError {
    let (name, key) = (history.txn_name(reader), history.datum(history.key_name(key)));
    let value = history.datum(value);
    WriteError::Inexpressible(format!("transaction {name} read {value} of key {key}, {why}"))
}

/// Keys and values that a transaction saw of keys before it wrote them itself: what it saw of them
/// afterwards, right or wrong, shows of nobody that he counts.
fn seen_of_others(history: &History, txn: TxnId) -> Vec<(KeyId, Value)> {
    let mut own: HashSet<KeyId> = HashSet::new();
    let mut seen = Vec::new();
    for op in history.ops_of(txn) {
        if history.op(op).kind.is_write() {
            own.insert(history.op(op).key);
        } else {
            see(history, op, |key| !own.contains(&key), &mut seen);
        }
    }
    seen
}

/// Keys and values that a transaction saw.
fn seen_by(history: &History, txn: TxnId) -> Vec<(KeyId, Value)> {
    let mut seen = Vec::new();
    for op in history.ops_of(txn) {
        see(history, op, |_| true, &mut seen);
    }
    seen
}

/// Notes what an operation saw of some keys.
fn see(
    history: &History,
    id: OpId,
    is_asked: impl Fn(KeyId) -> bool,
    seen: &mut Vec<(KeyId, Value)>,
) {
    let op = history.op(id);
    match op.kind {
        OpKind::Read if is_asked(op.key) => seen.push((op.key, op.value)),
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            let rows = history.predicate(id).rows.iter().filter(|row| is_asked(row.key));
            seen.extend(rows.map(|row| (row.key, row.value)));
        }
        _ => {}
    }
}

/// Refuses reads of values that no written transaction wrote, or that one wrote that
/// is left out, for formats in which they would come back as something else.
pub(super) fn refuse_unwritten(history: &History, plan: &Plan) -> Result<(), WriteError> {
    let (kept, left_out): (Vec<TxnId>, Vec<TxnId>) =
        history.txns().partition(|&txn| plan.is_kept(txn));
    let versions = |txns: &[TxnId]| -> HashSet<(KeyId, Value)> {
        txns.iter().flat_map(|&txn| written_by(history, txn)).collect()
    };
    let (written, missing) = (versions(&kept), versions(&left_out));
    for txn in kept {
        for version @ (key, value) in seen_by(history, txn) {
            if value == Value::UNKNOWN {
                continue;
            }
            let why = if value != history.initial(key) && !written.contains(&version) {
                "which no committed transaction wrote: this format would take it for something else"
            } else if missing.contains(&version) {
                "which an aborted transaction wrote, too: this format cannot say that it may be \
                 its value"
            } else {
                continue;
            };
            return Err(inexpressible_read(history, txn, version, why));
        }
    }
    Ok(())
}

/// Refuses reads of initial values that were also written, for formats in which the
/// initial state is no value: a read names either that state or a write.
pub(super) fn refuse_written_initial(history: &History, plan: &Plan) -> Result<(), WriteError> {
    let is_initial = |&(key, value): &(KeyId, Value)| value == history.initial(key);
    let written: HashSet<(KeyId, Value)> =
        plan.txns(history).flat_map(|txn| written_by(history, txn)).filter(is_initial).collect();
    if written.is_empty() {
        return Ok(());
    }
    for txn in plan.txns(history) {
        for version in seen_by(history, txn) {
            if written.contains(&version) {
                let why = "which it had at first and which was written, too: this format cannot \
                           say that it may be either";
                return Err(inexpressible_read(history, txn, version, why));
            }
        }
    }
    Ok(())
}

/// Whether times of transactions are written, and why not. Each must have a beginning
/// and an end: one of unknown outcome that is written as committed has none, as it may
/// have taken effect long after its client gave up.
pub(super) fn writes_times(history: &History, plan: &Plan, losses: &mut Losses) -> bool {
    if !history.has_times() {
        return false;
    }
    if plan.txns(history).any(|txn| history.outcome(txn) == Outcome::Unknown) {
        losses.add("times of transactions, because one of unknown outcome has no end");
        return false;
    }
    let timed = plan.txns(history).all(|txn| {
        let whole = history.txn_interval(txn);
        whole.invoked != ALWAYS && whole.completed != NEVER
    });
    if !timed {
        losses.add("times of transactions, because some have none");
    }
    timed
}

/// Keys and values as natural numbers, the initial value of every key as 0.
pub(super) struct Numbers {
    keys: Vec<u64>,
    initial: Vec<Value>,
    /// `None` where values are their own numbers.
    values: Option<HashMap<Value, u64>>,
    own: HashMap<Value, u64>,
}

impl Numbers {
    /// Keeps names that are natural numbers already, and numbers the others.
    pub(super) fn new(history: &History, plan: &Plan, losses: &mut Losses) -> Self {
        let names = history.keys().map(|key| history.key_name(key));
        let keys = distinct_naturals(history, names).unwrap_or_else(|| {
            losses.add("keys are numbered from 0");
            (0..history.key_count() as u64).collect()
        });
        let initial: Vec<Value> = history.keys().map(|key| history.initial(key)).collect();
        let ops = || plan.ops(history).filter(|op| op.kind.has_key() && op.value != Value::UNKNOWN);
        let values_of = |ops: &mut dyn Iterator<Item = Op>| -> Vec<Value> {
            ops.filter(|op| op.value != initial[op.key.index()]).map(|op| op.value).collect()
        };
        let values = values_of(&mut ops());
        let fit = |value: &Value| natural(history, *value).is_some_and(|number| number > 0);
        let renumbered = (!values.iter().all(fit)).then(|| {
            losses.add("values are numbered from 1");
            let mut numbers = HashMap::new();
            for value in &values {
                let next = numbers.len() as u64 + 1;
                numbers.entry(*value).or_insert(next);
            }
            numbers
        });
        let own = match renumbered {
            Some(_) => HashMap::new(),
            None => wide_values(history, &values),
        };
        Numbers { keys, initial, values: renumbered, own }
    }

    pub(super) fn key(&self, key: KeyId) -> u64 {
        self.keys[key.index()]
    }

    /// The number of a value of a key; `None` if it was never learned.
    pub(super) fn value(&self, key: KeyId, value: Value) -> Option<u64> {
        if value == Value::UNKNOWN {
            return None;
        }
        if value == self.initial[key.index()] {
            return Some(0);
        }
        match &self.values {
            Some(numbers) => numbers.get(&value).copied(),
            None if Value::small(u64::from(value.bits())) == Some(value) => {
                Some(u64::from(value.bits()))
            }
            None => self.own.get(&value).copied(),
        }
    }

    /// The version that a value of a key is; `None` if it was never learned.
    pub(super) fn version(&self, key: KeyId, value: Value) -> Option<Version> {
        let number = self.value(key, value)?;
        Some(if value == self.initial[key.index()] {
            Version::Initial
        } else {
            Version::Number(number)
        })
    }
}

/// A version where the initial one has no number.
#[derive(Clone, Copy)]
pub(super) enum Version {
    Initial,
    Number(u64),
}

/// Notes initial values that somebody read and that come back as another one.
pub(super) fn note_initial(history: &History, plan: &Plan, again: Datum<'_>, losses: &mut Losses) {
    let changed = |op: Op| {
        op.kind == OpKind::Read
            && op.value == history.initial(op.key)
            && history.datum(op.value) != again
    };
    if plan.ops(history).any(changed) {
        losses.add(&format!("initial values become {again}"));
    }
}

/// Numbers of the values that are not their own bits.
fn wide_values(history: &History, values: &[Value]) -> HashMap<Value, u64> {
    values
        .iter()
        .filter(|value| Value::small(u64::from(value.bits())) != Some(**value))
        .filter_map(|&value| Some((value, natural(history, value)?)))
        .collect()
}

/// Java's `long` is the widest number that all readers of these formats take.
fn natural(history: &History, value: Value) -> Option<u64> {
    match history.datum(value) {
        Datum::Int(number) => {
            i64::try_from(number).ok().and_then(|number| u64::try_from(number).ok())
        }
        _ => None,
    }
}

/// The labels as numbers, if they are natural and all different.
pub(super) fn distinct_naturals(
    history: &History,
    labels: impl Iterator<Item = Value>,
) -> Option<Vec<u64>> {
    let numbers: Vec<u64> = labels.map(|label| natural(history, label)).collect::<Option<_>>()?;
    let distinct: HashSet<u64> = numbers.iter().copied().collect();
    (distinct.len() == numbers.len()).then_some(numbers)
}

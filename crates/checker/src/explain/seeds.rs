//! Where to look: the operations that a proof or an anomaly names.

use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::{Edge, INITIAL, Reason};
use hashbrown::HashSet;
use isolde_certificate::{Clause, Derivation, End, Link, Node, Variable};
use isolde_history::{History, Index, KeyId, OpId, OpKind, Selection, TxnId, Version};

/// Of a key with more versions, not all are looked at for the sake of a condition.
const VERSIONS_MAX: usize = 64;

/// All operations of the named transactions on the named keys, and every possible writer of
/// the named reads.
pub(super) fn of(
    history: &History,
    index: &Index,
    anomaly: &Anomaly,
    proof: Option<&Derivation>,
) -> Selection {
    let mut named = Named::default();
    match proof {
        Some(proof) => named.by_proof(proof),
        None => named.by_edges(&anomaly.evidence.all_edges()),
    }
    named.selection(history, index)
}

/// All operations that began before an unexplained one had completed, on the same register.
/// Nothing can be left out of calls: without the release of a lock nobody may acquire it.
pub(super) fn object(history: &History, index: &Index, anomaly: &Anomaly) -> Option<Selection> {
    let Evidence::Operations { key, ops } = &anomaly.evidence else { return None };
    let unexplained = *ops.first()?;
    if history.op_kinds().contains(&OpKind::Call) {
        return None;
    }
    let end = history.txn_interval(history.txn_of(unexplained)).completed;
    let near = history.txns().filter(|&txn| history.txn_interval(txn).invoked <= end);
    let on_object = |&op: &OpId| history.op(op).key == *key;
    let all = near.flat_map(|txn| history.ops_of(txn)).filter(on_object).collect();
    Some(sorted(history, index, all))
}

/// These operations, and the writes that support them.
pub(super) fn supported(history: &History, index: &Index, ops: &[OpId]) -> Selection {
    let mut all: HashSet<OpId> = ops.iter().copied().collect();
    for &op in ops {
        let it = history.op(op);
        let rows = match it.kind {
            OpKind::PredicateRead | OpKind::PredicateUpdate => history.predicate(op).rows.clone(),
            _ => Vec::new(),
        };
        let seen = rows.iter().map(|row| (row.key, row.value));
        let own = it.kind.has_key().then_some((it.key, it.value));
        for (key, value) in seen.chain(own) {
            let versions = index.versions_of(history, key);
            let start = versions.partition_point(|version| version.value < value);
            let writes = versions[start..].iter().take_while(|version| version.value == value);
            all.extend(writes.map(|version| version.op()));
        }
    }
    sorted(history, index, all)
}

/// These transactions, without reads whose writers are not among them.
pub(super) fn of_txns(history: &History, index: &Index, txns: &[TxnId]) -> Selection {
    sorted(history, index, txns.iter().flat_map(|&txn| history.ops_of(txn)).collect())
}

/// The same transactions with all their operations, and everything that supports their reads.
pub(super) fn widened(history: &History, index: &Index, selection: &Selection) -> Selection {
    let mut ops: HashSet<OpId> = HashSet::new();
    let mut open: Vec<TxnId> = selection.txns(history);
    let mut known: HashSet<TxnId> = open.iter().copied().collect();
    while let Some(txn) = open.pop() {
        for op in history.ops_of(txn) {
            ops.insert(op);
            let it = history.op(op);
            let supports = |version: &&Version| match it.kind {
                OpKind::Read => version.value == it.value,
                OpKind::ReadOther => true,
                _ => false,
            };
            if !it.kind.has_key() {
                continue;
            }
            for version in index.versions_of(history, it.key).iter().filter(supports) {
                if known.insert(version.txn) {
                    open.push(version.txn);
                }
            }
        }
    }
    sorted(history, index, ops)
}

fn sorted(history: &History, index: &Index, ops: HashSet<OpId>) -> Selection {
    let mut ops: Vec<OpId> = ops.into_iter().collect();
    ops.sort_unstable();
    let initial = Selection::unwritten(history);
    let mut selection = Selection { ops, initial, ..Selection::default() };
    selection.close(history, index);
    selection
}

#[derive(Default)]
struct Named {
    txns: HashSet<TxnId>,
    keys: HashSet<KeyId>,
    reads: HashSet<OpId>,
}

impl Named {
    fn read(&mut self, read: OpId, key: KeyId) {
        self.reads.insert(read);
        self.keys.insert(key);
    }

    fn node(&mut self, node: Node) {
        if node != Node::INITIAL {
            self.txns.insert(node.txn());
        }
    }

    fn by_proof(&mut self, proof: &Derivation) {
        for step in &proof.steps {
            self.node(step.from);
            self.node(step.to);
            self.reads.extend(step.rule.read());
            self.keys.extend(step.rule.key());
        }
        let End::Search(search) = &proof.end else { return };
        for &variable in &search.variables {
            match variable {
                Variable::Order { key, first, second } => {
                    self.keys.insert(key);
                    self.txns.extend([first, second]);
                }
                Variable::Origin(origin) => {
                    self.read(origin.read, origin.key);
                    self.txns.extend(origin.writer);
                }
                Variable::Before { from, to } => {
                    self.node(from);
                    self.node(to);
                }
            }
        }
        for clause in &search.clauses {
            match clause {
                Clause::Cycle(links) => {
                    for link in links {
                        if let Link::Literal { from, to, .. } = *link {
                            self.node(from);
                            self.node(to);
                        }
                    }
                }
                Clause::OneOrigin { read, key } => self.read(*read, *key),
                Clause::SeenOrAfter { read, key, writer, other } => {
                    self.read(*read, *key);
                    self.txns.extend([*writer, *other]);
                }
                Clause::Lemma(_) => {}
            }
        }
    }

    fn by_edges(&mut self, edges: &[&Edge]) {
        for edge in edges {
            let mut txns = vec![edge.before, edge.after];
            if let Reason::Assumed { first, second, .. } = edge.reason {
                txns.extend([first, second]);
            }
            self.txns.extend(txns.into_iter().filter(|&txn| txn != INITIAL));
            self.reads.extend(edge.read());
            self.keys.extend(edge.key().into_iter().chain(edge.conflict));
        }
    }

    fn selection(mut self, history: &History, index: &Index) -> Selection {
        let mut ops: HashSet<OpId> = HashSet::new();
        for &read in &self.reads {
            self.txns.insert(history.txn_of(read));
            let it = history.op(read);
            if !it.kind.has_key() {
                // What a condition finds says nothing of keys that lose a write.
                let keys = self.keys.iter().map(|&key| index.versions_of(history, key));
                let few = keys.filter(|versions| versions.len() <= VERSIONS_MAX);
                self.txns.extend(few.flatten().map(|version| version.txn));
            }
            if it.kind != OpKind::Read {
                continue;
            }
            let versions = index.versions_of(history, it.key);
            let start = versions.partition_point(|version| version.value < it.value);
            let writes = versions[start..].iter().take_while(|version| version.value == it.value);
            self.txns.extend(writes.map(|version| version.txn));
        }
        for &txn in &self.txns {
            let named = |op: &OpId| {
                let it = history.op(*op);
                !it.kind.has_key() || self.keys.contains(&it.key)
            };
            ops.extend(history.ops_of(txn).filter(named));
        }
        sorted(history, index, ops)
    }
}

//! Dependencies between transactions that are certain.

use super::Relation;
use isolde_history::{History, Index, KeyId, OpId, Origin, TxnId};
use std::collections::{HashMap, HashSet};

/// One transaction must come before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dependency {
    pub(super) from: TxnId,
    pub(super) to: TxnId,
    pub(super) relation: Relation,
    pub(super) key: KeyId,
    pub(super) from_op: OpId,
    pub(super) to_op: OpId,
}

/// All of them, by the transaction that comes first.
pub(super) struct Graph {
    pub(super) edges: Vec<Dependency>,
    /// Invariant: `transactions + 1` ascending offsets into the edges.
    starts: Vec<u32>,
    /// Keys whose versions are in a given order.
    ordered: HashSet<KeyId>,
}

/// What follows a version of a key; the version before all is nobody's.
type Followers = HashMap<(KeyId, Option<TxnId>), Vec<TxnId>>;

/// Without an order of its versions, a key that more have written follows from its first version
/// in too many ways to be of use.
const WRITERS_MAX: usize = 16;

impl Graph {
    pub(super) fn new(history: &History, index: &Index) -> Graph {
        let ordered: HashSet<KeyId> = index.steps().iter().map(|step| step.key).collect();
        let followers = followers(history, index, &ordered);
        let mut edges = Vec::new();
        for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
            for read in index.reads_of(txn) {
                let writer = match read.origin {
                    Origin::Txn(writer) => Some(writer),
                    Origin::Initial => None,
                    Origin::Several | Origin::Nobody => continue,
                };
                if let Some(writer) = writer.filter(|&writer| writer != txn)
                    && let Some(write) = index.final_write(history, writer, read.key)
                {
                    let edge = (writer, txn, Relation::Wr, read.key, write, read.op);
                    edges.push(dependency(edge));
                }
                let next = followers.get(&(read.key, writer)).into_iter().flatten();
                for &follower in next.filter(|&&it| it != txn && Some(it) != writer) {
                    if let Some(write) = index.final_write(history, follower, read.key) {
                        let edge = (txn, follower, Relation::Rw, read.key, read.op, write);
                        edges.push(dependency(edge));
                    }
                }
            }
        }
        for (&(key, before), after) in &followers {
            let Some(before) = before else { continue };
            for &after in after.iter().filter(|&&after| after != before) {
                let writes = |txn| index.final_write(history, txn, key);
                if let (Some(first), Some(second)) = (writes(before), writes(after)) {
                    edges.push(dependency((before, after, Relation::Ww, key, first, second)));
                }
            }
        }
        edges.sort_unstable_by_key(|it| (it.from, it.to, it.relation, it.from_op, it.to_op));
        edges.dedup();
        let mut starts = vec![0; history.txn_count() + 1];
        for edge in &edges {
            starts[edge.from.index() + 1] += 1;
        }
        for place in 1..starts.len() {
            starts[place] += starts[place - 1];
        }
        Graph { edges, starts, ordered }
    }

    /// How who replaced what another one had read was replaced by that one in turn: an update
    /// that is lost. Where the order of versions is known, who replaced the version that was read
    /// came next, so the reader's own write came later.
    pub(super) fn overwritten(
        &self,
        history: &History,
        index: &Index,
        read: &Dependency,
    ) -> Option<Dependency> {
        if !self.ordered.contains(&read.key) {
            return None;
        }
        let own = index.final_write(history, read.from, read.key)?;
        Some(Dependency {
            from: read.to,
            to: read.from,
            relation: Relation::Ww,
            key: read.key,
            from_op: read.to_op,
            to_op: own,
        })
    }

    pub(super) fn txn_count(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn from(&self, txn: TxnId) -> &[Dependency] {
        let range = self.starts[txn.index()]..self.starts[txn.index() + 1];
        &self.edges[range.start as usize..range.end as usize]
    }
}

fn dependency(
    (from, to, relation, key, from_op, to_op): (TxnId, TxnId, Relation, KeyId, OpId, OpId),
) -> Dependency {
    Dependency { from, to, relation, key, from_op, to_op }
}

fn followers(history: &History, index: &Index, ordered: &HashSet<KeyId>) -> Followers {
    let mut followers: Followers = HashMap::new();
    // By key, who has somebody before him in its order.
    let mut preceded: HashSet<(KeyId, TxnId)> = HashSet::new();
    for step in index.steps() {
        followers.entry((step.key, Some(step.before))).or_default().push(step.after);
        preceded.insert((step.key, step.after));
    }
    for step in index.steps().iter().filter(|step| !preceded.contains(&(step.key, step.before))) {
        let first = followers.entry((step.key, None)).or_default();
        if !first.contains(&step.before) {
            first.push(step.before);
        }
    }
    for key in history.keys().filter(|key| !ordered.contains(key)) {
        let writers = index.writers_of(key);
        if writers.len() <= WRITERS_MAX {
            followers.insert((key, None), writers.to_vec());
        }
    }
    // Who writes what it has read comes behind the version that it read.
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        for read in index.reads_of(txn).filter(|it| !ordered.contains(&it.key)) {
            if let Origin::Txn(writer) = read.origin
                && index.writes(txn, read.key)
            {
                followers.entry((read.key, Some(writer))).or_default().push(txn);
            }
        }
    }
    followers
}

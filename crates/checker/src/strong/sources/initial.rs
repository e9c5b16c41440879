//! Initial versions: who read one precedes every writer of the key.
//!
//! Where several transactions read the initial version of a key and several write it,
//! the edges pass through one node per key, the point where its first version is
//! installed: as many edges as readers and writers, not their product. Writers that
//! are known to follow another writer of the key need no edge.
//!
//! A transaction that read the initial version and writes the key installs the first
//! version: it comes before all other writers, and other readers of the initial version
//! before it.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Events, Model, Node};
use crate::strong::versions::{Slot, Versions};
use isolde_history::{KeyId, ReadId};

/// Edges from readers of initial versions to the writers of their keys.
pub(in crate::strong) struct Initial<'a> {
    model: &'static Model,
    versions: &'a Versions<'a>,
    keys: Vec<ReadInitially>,
    nodes: u32,
}

/// A key with reads of its initial version.
struct ReadInitially {
    key: KeyId,
    /// Where its reads start among the initial reads.
    start: u32,
    /// The node its edges pass through, if that makes them fewer.
    node: Option<Node>,
    /// The read of the transaction that installs the first version, if one must.
    rewriting: Option<ReadId>,
}

impl<'a> Initial<'a> {
    /// Its nodes are numbered from `first_node`.
    pub(in crate::strong) fn new(
        model: &'static Model,
        versions: &'a Versions<'a>,
        first_node: Node,
    ) -> Self {
        let has_first = model.forbids_divergence() || model.events == Events::One;
        let mut initial = Initial { model, versions, keys: Vec::new(), nodes: 0 };
        let all = versions.initial_reads();
        let mut start = 0;
        for reads in all.chunk_by(|one, other| one.0 == other.0) {
            let key = reads[0].0;
            let rewriting = versions.initial_rewriter[key.index()].filter(|_| has_first);
            let heads = initial.heads(key).count();
            let froms = if rewriting.is_some() { 1 } else { reads.len() };
            if heads > 0 {
                let node = (froms > 1 && heads > 1).then(|| first_node + initial.nodes);
                initial.nodes += u32::from(node.is_some());
                initial.keys.push(ReadInitially { key, start, node, rewriting });
            }
            start += reads.len() as u32;
        }
        initial
    }

    /// The same for keys alone whose first version is known. They need no nodes.
    pub(in crate::strong) fn of_rewritten(mut self) -> Self {
        self.keys.retain(|of| of.rewriting.is_some());
        self.nodes = 0;
        self
    }

    /// How many nodes it needs.
    pub(in crate::strong) fn node_count(&self) -> usize {
        self.nodes as usize
    }

    fn reads(&self, of: &ReadInitially) -> impl Iterator<Item = ReadId> {
        let reads = &self.versions.initial_reads()[of.start as usize..];
        let key = of.key;
        reads.iter().take_while(move |read| read.0 == key).map(|read| read.1)
    }

    /// Versions that are not known to follow another.
    fn heads(&self, key: KeyId) -> impl Iterator<Item = Slot> {
        let versions = self.versions;
        versions.slots_of(key).filter(|&slot| !versions.is_followed(slot))
    }

    /// The first version's writer comes before all others, and readers of the initial
    /// version before it.
    fn around_first(
        &self,
        of: &ReadInitially,
        rewriting: ReadId,
        emit: &mut impl FnMut(Node, Node, Why),
    ) {
        let (model, versions) = (self.model, self.versions);
        let first = versions.reader(rewriting);
        for read in self.reads(of) {
            let reader = versions.reader(read);
            if reader != first {
                emit(model.begin(reader), model.commit(first), Why::InitialRead(read));
            }
        }
        for slot in self.heads(of.key) {
            let writer = versions.writer(slot);
            if writer != first {
                emit(model.commit(first), model.next_writer(writer), Why::InitialRead(rewriting));
            }
        }
    }
}

impl Edges for Initial<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        let (model, versions) = (self.model, self.versions);
        for of in &self.keys {
            if let Some(rewriting) = of.rewriting {
                self.around_first(of, rewriting, emit);
                continue;
            }
            if let Some(node) = of.node {
                for read in self.reads(of) {
                    emit(model.begin(versions.reader(read)), node, Why::InitialRead(read));
                }
                for slot in self.heads(of.key) {
                    emit(node, model.commit(versions.writer(slot)), Why::FirstVersion(slot));
                }
                continue;
            }
            for read in self.reads(of) {
                for slot in self.heads(of.key) {
                    let commit = model.commit(versions.writer(slot));
                    emit(model.begin(versions.reader(read)), commit, Why::InitialRead(read));
                }
            }
        }
    }
}

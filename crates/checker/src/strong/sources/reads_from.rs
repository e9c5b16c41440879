//! Reads-from: who read a value precedes nobody it came from.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node};
use isolde_history::{History, Index, Origin, ReadId};

/// The edge from the writer of every value read to its reader.
pub(in crate::strong) struct ReadsFrom<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) history: &'a History,
    pub(in crate::strong) index: &'a Index,
}

impl Edges for ReadsFrom<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        self.history.txns_interleaved().for_each(|txn| {
            let begin = self.model.begin(txn);
            for read in self.index.read_range(txn) {
                if let Origin::Txn(writer) = self.index.read(ReadId(read)).origin {
                    emit(self.model.commit(writer), begin, Why::ReadsFrom(ReadId(read)));
                }
            }
        });
    }
}

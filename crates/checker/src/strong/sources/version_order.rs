//! Known steps of version orders: from writer to writer, and from readers to the
//! writer that replaced what they read.
//!
//! A read-modify-write needs no edge of its own between the writers, because reads-from
//! is one already.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node};
use crate::strong::versions::Versions;

/// Edges that links between versions mean.
pub(in crate::strong) struct VersionOrder<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) versions: &'a Versions<'a>,
}

impl Edges for VersionOrder<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        let versions = self.versions;
        let has_steps = !versions.index.steps().is_empty();
        for slot in 0..versions.index.writers().len() as u32 {
            let reads = versions.reads_of(slot);
            if has_steps {
                for (step, after) in versions.steps_from(slot) {
                    let writer = versions.writer(slot);
                    let next = self.model.next_writer(versions.writer(after));
                    emit(self.model.commit(writer), next, Why::Step(step));
                }
            }
            if reads.is_empty() {
                continue;
            }
            for later in versions.following(slot) {
                let replacer = versions.writer(later);
                let commit = self.model.commit(replacer);
                for &read in reads {
                    let reader = versions.reader(read);
                    if reader != replacer {
                        emit(self.model.begin(reader), commit, Why::Replaced(read));
                    }
                }
            }
        }
    }
}

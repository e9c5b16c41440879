//! Known steps of version orders: from writer to writer, and from readers to the
//! writer that replaced what they read.
//!
//! A read-modify-write needs no edge of its own between the writers, because reads-from
//! is one already.

use crate::strong::graph::{Edges, Why};
use crate::strong::model::{Model, Node};
use crate::strong::versions::{INITIAL_SLOT, Slot, Versions};
use isolde_history::ReadId;

/// Edges that links between versions mean.
pub(in crate::strong) struct VersionOrder<'a> {
    pub(in crate::strong) model: &'static Model,
    pub(in crate::strong) versions: &'a Versions<'a>,
}

/// Histories of more transactions do not fit in a cache. Walked in the order of their reads,
/// what belongs together in time is found there all the same; walked by key it is not.
const LONG: usize = 1 << 16;

impl Edges for VersionOrder<'_> {
    fn each(&self, emit: &mut impl FnMut(Node, Node, Why)) {
        let versions = self.versions;
        let is_long = versions.history.txn_count() >= LONG;
        let has_steps = !versions.index.steps().is_empty();
        if !is_long || has_steps {
            for slot in 0..versions.index.writers().len() as u32 {
                self.steps(slot, emit);
                let reads = if is_long { &[] } else { versions.reads_of(slot) };
                self.replaced(slot, reads, emit);
            }
        }
        if is_long {
            versions.reads_interleaved().for_each(|read| {
                versions.expect_link_after(read);
                let slot = versions.seen[read.0 as usize];
                let key = versions.index.read(read).key;
                let is_asked = slot < INITIAL_SLOT && versions.linked[key.index()];
                if is_asked && !versions.is_only_replacer(read, key) {
                    self.replaced(slot, &[read], emit);
                }
            });
        }
    }
}

impl VersionOrder<'_> {
    /// Edges from the writer of a version, where the step to a later one is known.
    fn steps(&self, slot: Slot, emit: &mut impl FnMut(Node, Node, Why)) {
        let (model, versions) = (self.model, self.versions);
        for (step, after) in versions.steps_from(slot) {
            let next = model.next_writer(versions.writer(after));
            emit(model.commit(versions.writer(slot)), next, Why::Step(step));
        }
    }

    /// Edges from these readers of a version to who replaced it.
    #[inline]
    fn replaced(&self, slot: Slot, reads: &[ReadId], emit: &mut impl FnMut(Node, Node, Why)) {
        let (model, versions) = (self.model, self.versions);
        if reads.is_empty() {
            return;
        }
        versions.each_following(slot, |later| {
            let replacer = versions.writer(later);
            for &read in reads {
                let reader = versions.reader(read);
                if reader != replacer {
                    emit(model.begin(reader), model.commit(replacer), Why::Replaced(read));
                }
            }
        });
    }
}

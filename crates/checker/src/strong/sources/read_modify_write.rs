//! Read-modify-writes: who reads a version and writes the key installs a later one
//! [MTC, Cobra].
//!
//! Where the level forbids lost updates it is the next one, so two writers that replaced the
//! same version contradict each other. That is found on the way. Who read the initial version
//! is noted for `initial`, whose edges do not depend on this source.

use crate::strong::model::Model;
use crate::strong::versions::{Divergence, INITIAL_SLOT, Link, NO_SLOT, ShownBy, Versions};
use isolde_history::ReadId;

/// The links that read-modify-writes show.
pub(in crate::strong) struct ReadModifyWrites<'a> {
    pub(in crate::strong) model: &'a Model,
    /// Whether links are found, or only who replaced an initial version.
    pub(in crate::strong) links: bool,
}

impl ReadModifyWrites<'_> {
    /// Adds them to the versions.
    pub(in crate::strong) fn find(&self, versions: &mut Versions<'_>) {
        versions.initial_rewriter = vec![None; versions.history.key_count()];
        versions.reads_interleaved().for_each(|read| {
            versions.expect_link_after(read);
            self.link(versions, read);
        });
    }

    #[inline]
    fn link(&self, versions: &mut Versions<'_>, read: ReadId) {
        let seen = versions.seen[read.0 as usize];
        let reader = versions.reader(read);
        let key = versions.index.read(read).key;
        if seen == NO_SLOT || !versions.index.writes(reader, key) {
            return;
        }
        let own = versions.slot(key, reader).expect("it writes the key");
        if seen == INITIAL_SLOT {
            match versions.initial_rewriter[key.index()] {
                Some(first) if versions.reader(first) != reader => {
                    self.diverge(versions, first, read);
                }
                Some(_) => {}
                None => versions.initial_rewriter[key.index()] = Some(read),
            }
            return;
        }
        if !self.links {
            return;
        }
        if let Some(ShownBy::Read(first)) = versions.read_link(seen)
            && versions.reader(first) != reader
        {
            self.diverge(versions, first, read);
        }
        versions.link(Link { before: seen, after: own, shown_by: ShownBy::Read(read) });
    }

    fn diverge(&self, versions: &mut Versions<'_>, first: ReadId, second: ReadId) {
        if self.model.forbids_divergence() {
            versions.divergences.push(Divergence { first, second });
        }
    }
}

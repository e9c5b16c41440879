//! Orders given with the history: version orders, complete or in part, that the database told
//! [Emme, King Cobra].
//!
//! A serialization order of all transactions is no source of edges: it is tried as it is,
//! before anything is searched [Enne], by the strategy `database-order`.

use isolde_history::{VersionEvidence, VersionStep};

/// Whether the database told a step of a version order.
#[inline]
pub(in crate::strong) fn show(step: &VersionStep) -> bool {
    match step.evidence {
        VersionEvidence::Given => true,
        VersionEvidence::ListRead(_) | VersionEvidence::NotInList(_) => false,
    }
}

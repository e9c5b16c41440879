//! Lists: what a list shows in front of an element was appended before it, and what it does
//! not show was appended after all of it [Elle].
//!
//! The index reads lists once for all levels; their steps come with the read that shows them.

use isolde_history::{VersionEvidence, VersionStep};

/// Whether lists show a step of a version order.
#[inline]
pub(in crate::strong) fn show(step: &VersionStep) -> bool {
    match step.evidence {
        VersionEvidence::ListRead(_) | VersionEvidence::NotInList(_) => true,
        VersionEvidence::Given => false,
    }
}

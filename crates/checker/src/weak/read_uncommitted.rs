//! Read uncommitted: versions of all keys fit one order.
//!
//! **Definition.** Adya's PL-1 proscribes G0: a cycle of write dependencies alone
//! [Adya99 §3.2]. Version orders of registers are free unless the database told
//! them, so only lists and given orders can violate it.
//!
//! **Method.** The known version steps have no cycle. Linear.

use super::{Rule, never_visible, nothing_forced};
use crate::anomaly::AnomalyKind;
use crate::level::Level;
use isolde_history::Candidates;

pub(super) const RULE: Rule = Rule {
    level: Level::ReadUncommitted,
    reads_from: false,
    session_order: false,
    candidates: Candidates::Final,
    broken: AnomalyKind::DirtyWrite,
    forced: nothing_forced,
    visible: never_visible,
};

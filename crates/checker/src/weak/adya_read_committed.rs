//! Read committed as Adya and Elle mean it: reads come from final committed
//! versions, and information flows one way.
//!
//! **Definition.** PL-2 proscribes G1: aborted reads, intermediate reads and cycles
//! of write and read dependencies (G1c) [Adya99 §3.2]. Session order plays no part.
//!
//! **Method.** Known version steps and reads-from have no cycle: any order that
//! contains both yields version orders. Linear.

use super::{Rule, never_visible, nothing_forced};
use crate::anomaly::AnomalyKind;
use crate::level::Level;
use isolde_history::Candidates;

pub(super) const RULE: Rule = Rule {
    level: Level::AdyaReadCommitted,
    reads_from: true,
    session_order: false,
    candidates: Candidates::Final,
    broken: AnomalyKind::CircularInformationFlow,
    forced: nothing_forced,
    visible: never_visible,
};

//! Monotonic atomic view: once a transaction is seen, it stays seen.
//!
//! **Definition.** PL-2 without *observed transaction vanishes*: after a reader
//! read from `other`, its later reads of keys that `other` writes see `other` or
//! something newer [Bailis13, App. A.3]. The rule is the one of
//! [read committed](super::read_committed), but session order plays no part:
//! `A: r(x,1)` followed in the same session by `A: w(x,1)` is allowed here and
//! refused there.
//!
//! **Method.** As read committed, in an order without sessions.

use super::{Rule, read_committed};
use crate::anomaly::AnomalyKind;
use crate::level::Level;
use isolde_history::Candidates;

pub(super) const RULE: Rule = Rule {
    level: Level::MonotonicAtomicView,
    reads_from: true,
    session_order: false,
    candidates: Candidates::Final,
    broken: AnomalyKind::ObservedTransactionVanishes,
    forced: read_committed::forced,
    visible: read_committed::visible,
};

//! Which level forbids which anomaly, by the weakest levels that do.
//!
//! **Definition.** The tables of `docs/definitions.md`. A level forbids what any level that it
//! implies forbids. Whatever is reported of a level is called by a name that it forbids: a
//! report that blames what the level allows contradicts its own verdict.

use crate::anomaly::{AnomalyKind, FOUND_BY_READING};
use crate::level::Level;

/// Levels with session order, each of which no other such level is weaker than.
const SESSIONS: &[Level] = &[
    Level::ReadCommitted,
    Level::ReadYourWrites,
    Level::MonotonicReads,
    Level::MonotonicWrites,
    Level::WritesFollowReads,
];
/// The same with real time.
const REAL_TIME: &[Level] =
    &[Level::GeneralizedSnapshotIsolation, Level::StrictSerializable, Level::Linearizable];

impl Level {
    /// Whether a level forbids an anomaly of this name. What only says that there is some cycle
    /// in any case is forbidden by whatever it was found for.
    pub fn forbids(self, kind: AnomalyKind) -> bool {
        let Some(weakest) = weakest(kind) else { return true };
        weakest.contains(&self) || self.weaker_than().iter().any(|level| weakest.contains(level))
    }
}

/// The weakest levels that forbid an anomaly; `None` if its name does not say.
fn weakest(kind: AnomalyKind) -> Option<&'static [Level]> {
    use Level::{
        AdyaReadCommitted, Causal, CursorStability, MonotonicAtomicView, MonotonicReads,
        MonotonicWrites, ParallelSnapshotIsolation, Prefix, ReadAtomic, ReadUncommitted,
        ReadYourWrites, RepeatableRead, Serializable, SessionSerializable, SnapshotIsolation,
        StrictSerializable, UpdateAtomic, WritesFollowReads,
    };
    let row = FOUND_BY_READING.iter().find(|row| row.kind == kind);
    Some(match kind {
        AnomalyKind::NonRepeatableRead | AnomalyKind::FracturedRead => {
            &[ReadAtomic, UpdateAtomic, RepeatableRead]
        }
        AnomalyKind::ResultSetMismatch => &[Prefix, SnapshotIsolation],
        AnomalyKind::DirtyWrite => {
            &[ReadUncommitted, ReadYourWrites, MonotonicReads, MonotonicWrites, WritesFollowReads]
        }
        AnomalyKind::CircularInformationFlow => {
            &[AdyaReadCommitted, ReadYourWrites, MonotonicReads, MonotonicWrites, WritesFollowReads]
        }
        AnomalyKind::SessionDirtyWrite | AnomalyKind::SessionCircularInformationFlow => SESSIONS,
        AnomalyKind::ObservedTransactionVanishes => &[MonotonicAtomicView, RepeatableRead],
        AnomalyKind::MissedOwnWrite => &[ReadYourWrites],
        AnomalyKind::NonMonotonicRead => &[MonotonicReads],
        AnomalyKind::NonMonotonicWrite => &[MonotonicWrites],
        AnomalyKind::WriteWithoutItsReads => &[WritesFollowReads],
        AnomalyKind::CausalityViolation => &[Causal, ParallelSnapshotIsolation, RepeatableRead],
        AnomalyKind::LostUpdate => &[CursorStability],
        AnomalyKind::ReadSkew => &[UpdateAtomic, Prefix, RepeatableRead],
        AnomalyKind::LongFork => &[Prefix, RepeatableRead, SnapshotIsolation],
        AnomalyKind::SessionReadSkew | AnomalyKind::SessionLongFork => &[Prefix],
        AnomalyKind::WriteSkew
        | AnomalyKind::ReadOnlyTransactionAnomaly
        | AnomalyKind::AntiDependencyCycle => &[RepeatableRead],
        AnomalyKind::SessionAntiDependencyCycle => &[SessionSerializable],
        AnomalyKind::RealTimeAntiDependencyCycle => &[StrictSerializable],
        AnomalyKind::PredicateAntiDependencyCycle | AnomalyKind::PredicateWriteSkew => {
            &[Serializable]
        }
        AnomalyKind::Phantom | AnomalyKind::PredicateManyPreceders => {
            &[ReadAtomic, Prefix, ParallelSnapshotIsolation, SnapshotIsolation]
        }
        // Rows that were looked for by key are items, and the update lost is that of an item.
        AnomalyKind::LostInsert => &[UpdateAtomic, SnapshotIsolation],
        AnomalyKind::RealTimeDirtyWrite
        | AnomalyKind::RealTimeCircularInformationFlow
        | AnomalyKind::RealTimeReadSkew
        | AnomalyKind::RealTimeLongFork
        | AnomalyKind::StaleRead
        | AnomalyKind::ReadBeforeWrite
        | AnomalyKind::CompareAndSetTwice
        | AnomalyKind::UnexplainedOperation => REAL_TIME,
        _ => return row.map(|row| row.refutes).filter(|refutes| !refutes.is_empty()),
    })
}

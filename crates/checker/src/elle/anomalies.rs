//! Elle's anomalies in terms of ours.

use crate::anomaly::AnomalyKind;
use crate::level::Level;

/// An anomaly as Elle names it.
#[derive(Debug, PartialEq, Eq)]
pub struct ElleAnomaly {
    /// Elle's name.
    pub name: &'static str,
    /// The anomaly is absent if one of these levels holds.
    pub(super) absent_with: &'static [Level],
    /// It, or one that implies it, is present if one of these was found.
    pub(super) shown_by: &'static [AnomalyKind],
}

const fn row(
    name: &'static str,
    absent_with: &'static [Level],
    shown_by: &'static [AnomalyKind],
) -> ElleAnomaly {
    ElleAnomaly { name, absent_with, shown_by }
}

const G0: &[AnomalyKind] = &[AnomalyKind::DirtyWrite];
const G1A: &[AnomalyKind] = &[AnomalyKind::AbortedRead, AnomalyKind::IncompatibleOrder];
const G1C: &[AnomalyKind] =
    &[AnomalyKind::CircularInformationFlow, AnomalyKind::DirtyWrite, AnomalyKind::FutureRead];
const G1C_PROCESS: &[AnomalyKind] = &[
    AnomalyKind::CircularInformationFlow,
    AnomalyKind::DirtyWrite,
    AnomalyKind::FutureRead,
    AnomalyKind::SessionCircularInformationFlow,
];
const G1: &[AnomalyKind] = &[
    AnomalyKind::AbortedRead,
    AnomalyKind::IncompatibleOrder,
    AnomalyKind::IntermediateRead,
    AnomalyKind::CircularInformationFlow,
    AnomalyKind::DirtyWrite,
    AnomalyKind::FutureRead,
];
const INTERNAL: &[AnomalyKind] = &[
    AnomalyKind::NotMyOwnWrite,
    AnomalyKind::NotMyLastWrite,
    AnomalyKind::NonRepeatableRead,
    AnomalyKind::FutureRead,
];
/// A reader that saw one write of a transaction and missed another.
const G_SINGLE: &[AnomalyKind] = &[AnomalyKind::ObservedTransactionVanishes];

const REAL_TIME: &[Level] = &[Level::StrictSerializable];
const REAL_TIME_SNAPSHOT: &[Level] = &[Level::StrongSnapshotIsolation, Level::StrictSerializable];

/// Every anomaly that `isolde elle --anomalies` takes. Cycles that need a search of
/// the strong levels have nothing in `shown_by`: they are found by their names among what
/// violates the levels that forbid them.
#[rustfmt::skip]
pub static ANOMALIES: &[ElleAnomaly] = &[
    row("G0", &[Level::ReadUncommitted], G0),
    row("G0-process", &[Level::ReadCommitted], G0),
    row("G0-realtime", REAL_TIME_SNAPSHOT, G0),
    row("G1a", &[Level::AdyaReadCommitted], G1A),
    row("G1b", &[Level::AdyaReadCommitted], &[AnomalyKind::IntermediateRead]),
    row("G1c", &[Level::AdyaReadCommitted], G1C),
    row("G1c-process", &[Level::ReadCommitted], G1C_PROCESS),
    row("G1c-realtime", REAL_TIME_SNAPSHOT, G1C_PROCESS),
    row("G1", &[Level::AdyaReadCommitted], G1),
    row("G1-process", &[Level::ReadCommitted], G1),
    row("G1-realtime", REAL_TIME_SNAPSHOT, G1),
    row("internal", &[Level::ReadAtomic], INTERNAL),
    row("future-read", &[Level::AdyaReadCommitted], &[AnomalyKind::FutureRead]),
    row("dirty-update", &[Level::AdyaReadCommitted], &[]),
    row("cyclic-versions", &[Level::ReadUncommitted], &[]),
    row("duplicate-elements", &[Level::ReadUncommitted], &[AnomalyKind::DuplicateElements]),
    row("incompatible-order", &[Level::AdyaReadCommitted], &[AnomalyKind::IncompatibleOrder]),
    row("lost-update", &[Level::CursorStability], &[]),
    row("write-skew", &[Level::Serializable], &[]),
    row("predicate-read-miss", &[Level::Serializable], &[]),
    row("G-monotonic", &[Level::ParallelSnapshotIsolation], G_SINGLE),
    row("G-cursor", &[Level::CursorStability], &[]),
    row("G-single", &[Level::ParallelSnapshotIsolation], G_SINGLE),
    row("G-single-item", &[Level::ParallelSnapshotIsolation, Level::RepeatableRead], G_SINGLE),
    row("G-single-process", &[Level::SessionSnapshotIsolation], G_SINGLE),
    row("G-single-item-process", &[Level::SessionSnapshotIsolation], G_SINGLE),
    row("G-single-realtime", REAL_TIME_SNAPSHOT, G_SINGLE),
    row("G-single-item-realtime", REAL_TIME_SNAPSHOT, G_SINGLE),
    row("G-nonadjacent", &[Level::SnapshotIsolation], G_SINGLE),
    row("G-nonadjacent-item", &[Level::SnapshotIsolation, Level::RepeatableRead], G_SINGLE),
    row("G-nonadjacent-process", &[Level::SessionSnapshotIsolation], G_SINGLE),
    row("G-nonadjacent-item-process", &[Level::SessionSnapshotIsolation], G_SINGLE),
    row("G-nonadjacent-realtime", REAL_TIME_SNAPSHOT, G_SINGLE),
    row("G-nonadjacent-item-realtime", REAL_TIME_SNAPSHOT, G_SINGLE),
    row("G-SI", &[Level::SnapshotIsolation], &[]),
    row("G-SIb", &[Level::SnapshotIsolation], &[]),
    row("G-MSR", &[Level::SnapshotIsolation], &[]),
    row("G-update", &[Level::Serializable], &[]),
    row("G2-item", &[Level::RepeatableRead], G_SINGLE),
    row("G2", &[Level::Serializable], G_SINGLE),
    row("G2-item-process", &[Level::SessionSerializable], G_SINGLE),
    row("G2-process", &[Level::SessionSerializable], G_SINGLE),
    row("G2-item-realtime", REAL_TIME, G_SINGLE),
    row("G2-realtime", REAL_TIME, G_SINGLE),
    // Elle's names for what it could not look at: that some cycle exists.
    row("GSI", &[Level::SnapshotIsolation], &[]),
    row("GSIa", &[Level::SnapshotIsolation], &[]),
    row("GSIb", &[Level::SnapshotIsolation], &[]),
    row("PL-1-cycle-exists", &[Level::ReadUncommitted], G0),
    row("PL-2-cycle-exists", &[Level::AdyaReadCommitted], G1C),
    row("PL-2.99-cycle-exists", &[Level::RepeatableRead], G1C),
    row("PL-SI-cycle-exists", &[Level::SnapshotIsolation], G1C),
    row("PL-3-cycle-exists", &[Level::Serializable], G1C),
    row("PL-SS-cycle-exists", REAL_TIME, G1C_PROCESS),
    row("strong-session-PL-1-cycle-exists", &[Level::ReadCommitted], G0),
    row("strong-session-PL-2-cycle-exists", &[Level::ReadCommitted], G1C_PROCESS),
    row("strong-session-snapshot-isolation-cycle-exists",
        &[Level::SessionSnapshotIsolation], G1C_PROCESS),
    row("strong-session-serializable-cycle-exists", &[Level::SessionSerializable], G1C_PROCESS),
    row("strong-PL-1-cycle-exists", REAL_TIME_SNAPSHOT, G0),
    row("strong-PL-2-cycle-exists", REAL_TIME_SNAPSHOT, G1C_PROCESS),
    row("strong-snapshot-isolation-cycle-exists", REAL_TIME_SNAPSHOT, G1C_PROCESS),
];

impl ElleAnomaly {
    /// The anomaly of this name, with or without the colon of a keyword.
    pub fn parse(name: &str) -> Option<&'static ElleAnomaly> {
        let name = name.trim().trim_start_matches(':');
        ANOMALIES.iter().find(|anomaly| anomaly.name.eq_ignore_ascii_case(name))
    }
}

/// What Elle calls an anomaly of ours; our own name where it has none.
pub fn elle_name(kind: AnomalyKind) -> &'static str {
    match kind {
        AnomalyKind::NotMyOwnWrite
        | AnomalyKind::NotMyLastWrite
        | AnomalyKind::NonRepeatableRead => "internal",
        AnomalyKind::ObservedTransactionVanishes => "G-single",
        AnomalyKind::LostUpdate | AnomalyKind::LostInsert => "lost-update",
        other => other.code().unwrap_or(other.name()),
    }
}

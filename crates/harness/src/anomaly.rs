//! Faults to inject: the smallest histories that show them, by transaction.
//!
//! They stand at the end of a generated history, on keys of their own, so that
//! exactly the levels that forbid them are violated, whatever comes before.

use crate::plan::Action;
use crate::record::Recorder;
use isolde_history::{Interval, Outcome};

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anomaly {
    /// Two transactions update the same version of a key.
    LostUpdate,
    /// Two readers see two independent writes in opposite orders.
    LongFork,
    /// A snapshot misses a transaction that one in it must have come after (G-SIb).
    MissedEffects,
    /// An effect is seen without its cause.
    Causality,
    /// One write of a transaction is seen, the other is not.
    FracturedRead,
    /// Two transactions read two keys and each writes one of them.
    WriteSkew,
    /// A value that nobody wrote is read.
    ThinAir,
    /// A value of an aborted transaction is read.
    AbortedRead,
    /// A value that its transaction itself replaced is read.
    IntermediateRead,
}

/// What a fault is called and does.
#[derive(Clone, Copy, Debug)]
pub struct AnomalyRow {
    /// The fault.
    pub anomaly: Anomaly,
    /// Its name on the command line.
    pub name: &'static str,
    /// The weakest level among those that can be generated which forbids it. All
    /// stronger ones do too, and none weaker.
    pub forbidden_by: crate::Isolation,
    /// Its transactions, each in a session of its own.
    txns: &'static [Txn],
}

#[derive(Clone, Copy, Debug)]
struct Txn {
    outcome: Outcome,
    steps: &'static [Step],
}

/// An operation on one of three keys, of its n-th version; 0 is nothing.
#[derive(Clone, Copy, Debug)]
struct Step {
    action: Action,
    key: Key,
    version: u32,
}

#[derive(Clone, Copy, Debug)]
enum Key {
    X,
    Y,
    Z,
}
use Key::{X, Y, Z};

const fn read(key: Key, version: u32) -> Step {
    Step { action: Action::Read, key, version }
}

const fn write(key: Key, version: u32) -> Step {
    Step { action: Action::Write, key, version }
}

const fn committed(steps: &'static [Step]) -> Txn {
    Txn { outcome: Outcome::Committed, steps }
}

const fn aborted(steps: &'static [Step]) -> Txn {
    Txn { outcome: Outcome::Aborted, steps }
}

/// Every fault that can be injected.
pub static INJECTED: &[AnomalyRow] = &[
    AnomalyRow {
        anomaly: Anomaly::LostUpdate,
        name: "lost-update",
        forbidden_by: crate::Isolation::SnapshotIsolation,
        txns: &[
            committed(&[read(X, 0), write(X, 1)]),
            committed(&[read(X, 0), write(X, 2)]),
            // Lists show which update came second only to a later reader.
            committed(&[read(X, 2)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::LongFork,
        name: "long-fork",
        forbidden_by: crate::Isolation::SnapshotIsolation,
        txns: &[
            committed(&[write(X, 1)]),
            committed(&[write(Y, 1)]),
            committed(&[read(X, 1), read(Y, 0)]),
            committed(&[read(X, 0), read(Y, 1)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::MissedEffects,
        name: "g-sib",
        forbidden_by: crate::Isolation::SnapshotIsolation,
        txns: &[
            // Both write y, so one ended before the other began; the first does not
            // see z, so it is the first. Whoever sees the second then sees x.
            committed(&[read(Z, 0), write(X, 1), write(Y, 1)]),
            committed(&[write(Y, 2), write(Z, 1)]),
            committed(&[read(Z, 1), read(X, 0)]),
            // Lists show the order of the two only to a later reader.
            committed(&[read(Y, 2)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::Causality,
        name: "causality",
        forbidden_by: crate::Isolation::Causal,
        txns: &[
            committed(&[write(X, 1)]),
            committed(&[read(X, 1), write(Y, 1)]),
            committed(&[read(Y, 1), read(X, 0)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::FracturedRead,
        name: "fractured-read",
        forbidden_by: crate::Isolation::ReadAtomic,
        txns: &[
            committed(&[write(X, 1), write(Y, 1)]),
            // In the other order it would not even be read committed.
            committed(&[read(X, 0), read(Y, 1)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::WriteSkew,
        name: "write-skew",
        forbidden_by: crate::Isolation::Serializable,
        txns: &[
            committed(&[read(X, 0), read(Y, 0), write(X, 1)]),
            committed(&[read(X, 0), read(Y, 0), write(Y, 1)]),
        ],
    },
    AnomalyRow {
        anomaly: Anomaly::ThinAir,
        name: "thin-air",
        forbidden_by: crate::Isolation::ReadCommitted,
        txns: &[committed(&[read(X, 1)])],
    },
    AnomalyRow {
        anomaly: Anomaly::AbortedRead,
        name: "aborted-read",
        forbidden_by: crate::Isolation::ReadCommitted,
        txns: &[aborted(&[write(X, 1)]), committed(&[read(X, 1)])],
    },
    AnomalyRow {
        anomaly: Anomaly::IntermediateRead,
        name: "intermediate-read",
        forbidden_by: crate::Isolation::ReadCommitted,
        txns: &[committed(&[write(X, 1), write(X, 2)]), committed(&[read(X, 1)])],
    },
];

impl Anomaly {
    /// The fault of this name.
    pub fn by_name(name: &str) -> Option<Anomaly> {
        INJECTED.iter().find(|row| row.name == name).map(|row| row.anomaly)
    }

    /// Its row of [`INJECTED`].
    pub fn row(self) -> &'static AnomalyRow {
        INJECTED.iter().find(|row| row.anomaly == self).expect("every fault has a row")
    }

    /// Adds its transactions, with keys from `first_key` and values after
    /// `last_value`, all during one interval.
    pub(crate) fn inject(
        self,
        recorder: &mut Recorder,
        first_key: u32,
        last_value: u32,
        interval: Interval,
    ) {
        const VERSIONS_MAX: u32 = 2;
        for (session, txn) in (0..).zip(self.row().txns) {
            let draft = recorder.begin(session, txn.outcome);
            recorder.interval(draft, interval);
            for step in txn.steps {
                let place = step.key as u32;
                let first = last_value + 1 + place * VERSIONS_MAX;
                let versions: Vec<u32> = (first..first + step.version).collect();
                recorder.inject(step.action, first_key + place, &versions);
            }
        }
    }
}

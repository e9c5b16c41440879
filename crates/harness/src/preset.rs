//! Workloads that the literature measures with, by name.

use crate::parameters::{Aborts, Distribution, Isolation, Parameters, Times, TxnKind};

/// A workload with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Its name in the literature.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, with seed 1.
    pub parameters: Parameters,
}

const BASE: Parameters = Parameters {
    sessions: 25,
    transactions: 10_000,
    operations: 8,
    read_share: 0.5,
    keys: 10_000,
    distribution: Distribution::Zipf { theta: 0.5 },
    kind: TxnKind::Mixed,
    isolation: Isolation::SnapshotIsolation,
    times: Times::None,
    aborts: Aborts::LeftOut,
    anomaly: None,
    seed: 1,
};

/// All presets. A new one is a row.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "BlindW-RW",
        title: "read-only and write-only transactions in equal parts",
        source: "Tan et al., Cobra: Making Transactional Key-Value Stores Verifiably Serializable, OSDI 2020",
        parameters: Parameters {
            sessions: 24,
            keys: 2000,
            distribution: Distribution::Uniform,
            kind: TxnKind::BlindWrite,
            isolation: Isolation::Serializable,
            ..BASE
        },
    },
    Preset {
        name: "GeneralRH",
        title: "reads and writes, 95 % reads",
        source: POLYSI,
        parameters: Parameters { read_share: 0.95, ..BASE },
    },
    Preset {
        name: "GeneralRW",
        title: "reads and writes in equal parts",
        source: POLYSI,
        parameters: BASE,
    },
    Preset {
        name: "GeneralWH",
        title: "reads and writes, 30 % reads",
        source: POLYSI,
        parameters: Parameters { read_share: 0.3, ..BASE },
    },
    Preset {
        name: "PolySI",
        title: "the default of PolySI's experiments: 20 sessions of 100 long transactions",
        source: POLYSI,
        parameters: Parameters { sessions: 20, transactions: 2000, operations: 15, ..BASE },
    },
    Preset {
        name: "mini-transactions",
        title: "two read-modify-writes a transaction",
        source: "Gu et al., Boosting End-to-End Database Isolation Checking via Mini-Transactions, ICDE 2025",
        parameters: Parameters {
            sessions: 20,
            operations: 4,
            keys: 1000,
            distribution: Distribution::Uniform,
            kind: TxnKind::ReadModifyWrite,
            isolation: Isolation::Serializable,
            ..BASE
        },
    },
    Preset {
        name: "weak",
        title: "a million transactions, for levels that are decided in linear time",
        source: "Møldrup and Pavlogiannis, AWDIT: An Optimal Weak Database Isolation Tester, PLDI 2025",
        parameters: Parameters {
            sessions: 50,
            transactions: 1_000_000,
            keys: 100_000,
            distribution: Distribution::Uniform,
            ..BASE
        },
    },
    Preset {
        name: "list-append",
        title: "short transactions over few lists at a time",
        source: "Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental Observations, VLDB 2020",
        parameters: Parameters {
            sessions: 20,
            operations: 4,
            keys: 100,
            distribution: Distribution::Uniform,
            kind: TxnKind::ListAppend,
            isolation: Isolation::Serializable,
            times: Times::Transactions,
            ..BASE
        },
    },
];

const POLYSI: &str =
    "Huang et al., Efficient Black-box Checking of Snapshot Isolation in Databases, VLDB 2023";

/// The preset of this name, in upper or lower case.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

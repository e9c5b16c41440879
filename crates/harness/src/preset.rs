//! Workloads that the literature measures with, by name.

use crate::parameters::{
    Aborts, Application, Distribution, Isolation, Parameters, Rows, Times, TxnKind,
};

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
    bug: None,
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
    Preset {
        name: "MTC",
        title: "mini-transactions of every shape: up to two reads and two writes of keys read before",
        source: MTC,
        parameters: MINI,
    },
    Preset {
        name: "BlindW-RM",
        title: "nine read-only transactions for each write-only one",
        source: VIPER,
        parameters: Parameters { read_share: 0.9, ..BLIND },
    },
    Preset {
        name: "BlindW-W",
        title: "write-only transactions",
        source: LEOPARD,
        parameters: Parameters { read_share: 0.0, ..BLIND },
    },
    Preset {
        name: "BlindW-RW+",
        title: "BlindW-RW with half of the reads over ranges of ten keys",
        source: LEOPARD,
        parameters: Parameters { kind: TxnKind::Rows(Rows::BlindWriteRange), ..BLIND },
    },
    Preset {
        name: "Range-B",
        title: "reads, writes, inserts, deletes and ranges, 20 % of the transactions each",
        source: VIPER,
        parameters: Parameters {
            kind: TxnKind::Rows(Rows::Mix { items: 20, changes: 20 }),
            ..RANGE
        },
    },
    Preset {
        name: "Range-RQH",
        title: "50 % range transactions, the others in equal parts",
        source: VIPER,
        parameters: Parameters {
            kind: TxnKind::Rows(Rows::Mix { items: 12, changes: 13 }),
            ..RANGE
        },
    },
    Preset {
        name: "Range-IDH",
        title: "35 % insert and 35 % delete transactions, the others in equal parts",
        source: VIPER,
        parameters: Parameters {
            kind: TxnKind::Rows(Rows::Mix { items: 10, changes: 35 }),
            ..RANGE
        },
    },
    Preset {
        name: "predicates",
        title: "reads, aggregates and updates by condition, 40 % of the operations",
        source: "Clark et al., Bringing Order to Practical Validation of Database Isolation Levels",
        parameters: Parameters {
            sessions: 8,
            operations: 5,
            keys: 100,
            kind: TxnKind::Rows(Rows::Predicates { share: 40, deletes: 0 }),
            ..RANGE
        },
    },
    Preset {
        name: "predicate-deletes",
        title: "the same with deletes by condition, a quarter of the changes",
        source: "Clark et al., Bringing Order to Practical Validation of Database Isolation Levels",
        parameters: Parameters {
            sessions: 8,
            operations: 5,
            keys: 100,
            kind: TxnKind::Rows(Rows::Predicates { share: 40, deletes: 25 }),
            ..RANGE
        },
    },
    Preset {
        name: "phantoms",
        title: "reads by condition, and inserts of new rows that meet it",
        source: "Clark et al., Bringing Order to Practical Validation of Database Isolation Levels",
        parameters: Parameters {
            sessions: 8,
            operations: 2,
            kind: TxnKind::Rows(Rows::Phantoms),
            ..RANGE
        },
    },
    Preset {
        name: "inserts",
        title: "looks at the newest rows, and inserts of rows that others insert too",
        source: "Kingsbury, Jepsen's test of G2: insert what a look has not found",
        parameters: Parameters {
            sessions: 8,
            operations: 2,
            kind: TxnKind::Rows(Rows::Inserts),
            ..RANGE
        },
    },
    Preset {
        name: "YCSB-A",
        title: "single reads and writes in equal parts, few keys hot",
        source: "Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010",
        parameters: Parameters {
            operations: 1,
            distribution: Distribution::Zipf { theta: 0.99 },
            ..BASE
        },
    },
    Preset {
        name: "SmallBank",
        title: "checking and savings accounts of 1000 customers",
        source: LEOPARD,
        parameters: Parameters { keys: 2000, ..application(Application::SmallBank) },
    },
    Preset {
        name: "SmallBank-balances",
        title: "the same with balances as they are, which repeat",
        source: LEOPARD,
        parameters: Parameters {
            keys: 2000,
            kind: TxnKind::Rows(Rows::Balances(Application::SmallBank)),
            ..application(Application::SmallBank)
        },
    },
    Preset {
        name: "TPC-C",
        title: "warehouses and orders as registers",
        source: COBRA,
        parameters: application(Application::TpcC),
    },
    Preset {
        name: "TPC-C-balances",
        title: "the same with amounts as they are, which repeat",
        source: LEOPARD,
        parameters: Parameters {
            kind: TxnKind::Rows(Rows::Balances(Application::TpcC)),
            ..application(Application::TpcC)
        },
    },
    Preset {
        name: "RUBiS",
        title: "auctions as registers",
        source: COBRA,
        parameters: application(Application::Rubis),
    },
    Preset {
        name: "C-Twitter",
        title: "messages and followers as registers",
        source: COBRA,
        parameters: application(Application::Twitter),
    },
    Preset {
        name: "bank",
        title: "transfers between ten accounts, and looks at all of them",
        source: "Kingsbury, Jepsen's bank test",
        parameters: Parameters { sessions: 10, keys: 10, ..application(Application::Bank) },
    },
    Preset {
        name: "few-values",
        title: "reads and writes of ten keys, each of which holds one of three values",
        source: "VeriStrong's histories whose values repeat",
        parameters: Parameters { transactions: 2000, keys: 10, ..FEW_VALUES },
    },
    Preset {
        name: "fifty-values",
        title: "the same with fifty keys and fifty values",
        source: "VeriStrong's histories whose values repeat",
        parameters: Parameters {
            sessions: 20,
            keys: 50,
            kind: TxnKind::Rows(Rows::FewValues { values: 50 }),
            ..FEW_VALUES
        },
    },
    Preset {
        name: "registers",
        title: "reads and compare-and-sets of single registers",
        source: "Herlihy and Wing, Linearizability: A Correctness Condition for Concurrent Objects, TOPLAS 1990",
        parameters: Parameters {
            sessions: 10,
            operations: 1,
            keys: 20,
            distribution: Distribution::Uniform,
            kind: TxnKind::Rows(Rows::CompareAndSet),
            isolation: Isolation::Serializable,
            ..BASE
        },
    },
];

const FEW_VALUES: Parameters = Parameters {
    sessions: 10,
    distribution: Distribution::Uniform,
    kind: TxnKind::Rows(Rows::FewValues { values: 3 }),
    isolation: Isolation::Serializable,
    ..BASE
};

const MINI: Parameters = Parameters {
    sessions: 10,
    operations: 4,
    keys: 100,
    distribution: Distribution::Uniform,
    kind: TxnKind::MiniTransaction,
    isolation: Isolation::Serializable,
    ..BASE
};

const BLIND: Parameters = Parameters {
    sessions: 24,
    keys: 2000,
    distribution: Distribution::Uniform,
    kind: TxnKind::BlindWrite,
    isolation: Isolation::Serializable,
    ..BASE
};

const RANGE: Parameters = Parameters {
    sessions: 24,
    keys: 1000,
    distribution: Distribution::Uniform,
    isolation: Isolation::Serializable,
    ..BASE
};

const fn application(application: Application) -> Parameters {
    Parameters {
        sessions: 20,
        keys: 2000,
        distribution: Distribution::Uniform,
        kind: TxnKind::Application(application),
        isolation: Isolation::Serializable,
        ..BASE
    }
}

const COBRA: &str =
    "Tan et al., Cobra: Making Transactional Key-Value Stores Verifiably Serializable, OSDI 2020";
const LEOPARD: &str = "Li et al., Leopard: A Black-Box Approach for Efficiently Verifying Various Isolation Levels, ICDE 2023";
const MTC: &str =
    "Gu et al., Boosting End-to-End Database Isolation Checking via Mini-Transactions, ICDE 2025";
const VIPER: &str = "Zhang et al., Viper: A Fast Snapshot Isolation Checker, EuroSys 2023";

const POLYSI: &str =
    "Huang et al., Efficient Black-box Checking of Snapshot Isolation in Databases, VLDB 2023";

/// The preset of this name, in upper or lower case.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

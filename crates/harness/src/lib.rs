//! Histories without a database: a simulated store of a chosen isolation level.
//!
//! [`generate`] runs the clients that [`Parameters`] describe against the store and
//! returns what they saw. The result is a function of the parameters alone, seed
//! included: the same parameters give the same history on every machine, in every
//! version. [`PRESETS`] are the workloads that the literature measures with.
//!
//! ```
//! use isolde_harness::{generate, preset};
//!
//! let mut parameters = preset("BlindW-RW").expect("a preset").parameters;
//! parameters.transactions = 100;
//! let history = generate(&parameters)?;
//! assert_eq!(history.txn_count(), 100);
//! # Ok::<(), isolde_harness::ParameterError>(())
//! ```

mod address;
mod anomaly;
pub mod bank;
mod clients;
mod clock;
pub mod conformance;
mod database;
mod drive;
mod evidence;
mod fault;
mod keys;
mod leftovers;
pub mod matrix;
mod observer;
mod parameters;
mod plan;
mod preset;
mod random;
mod record;
mod recorder;
mod request;
mod schedule;
mod simulated;
mod store;
mod workload;

pub use address::{Address, Host};
pub use anomaly::{Anomaly, AnomalyRow, INJECTED};
pub use clients::generate;
pub use database::{
    Access, Claim, Database, Deviation, Endpoint, Failure, Found, Identity, Needs, Past, Session,
    SnapshotPoint, Style, clean_up_after, remains,
};
pub use drive::{Counts, Drive, DriveError, Extent, Progress};
pub use evidence::{Evidence, Installed, Numbered, Told, VersionCounts, Versions};
pub use fault::{Fault, FaultPlan, Happened};
pub use isolde_history::Snapshot;
pub use leftovers::{FIRST, fresh_prefix, prefix_of, prefixes_of};

pub use observer::{Observer, SessionObserver};
pub use parameters::{
    Aborts, Application, Distribution, Isolation, ParameterError, Parameters, Rows, Times, TxnKind,
};
pub use preset::{PRESETS, Preset, preset};
pub use recorder::{Log, SessionLog};
pub use request::{Answer, BLOCK, Filter, Function, Request, RequestKind};
pub use simulated::{BUGS, Bug, BugRow, Simulated};
pub use workload::{Client, TOMBSTONES, Workload};

//! Verifying while a database runs: traces with times, and what its mechanisms forbid.
//!
//! Clients tell when they sent each request and when it was answered. Somewhere in
//! between it took effect. A [`Pipeline`] brings the events of all clients into the order
//! in which they were sent; a [`Verifier`] mirrors the mechanisms that a [`Profile`]
//! names and reports an event if no placement of the true instants explains it
//! [Li et al., ICDE 2024, *Leopard*].
//!
//! | file | what it does |
//! |---|---|
//! | `trace.rs` | events, cells, contents: what is streamed |
//! | `catalogue.rs` | names of tables, rows and columns to dense ids and back |
//! | `profile.rs` | which mechanisms there are, and their text |
//! | `pipeline.rs` | buffers for each client, merged up to a watermark |
//! | `verifier.rs` | takes events, lets them wait until they can be judged, forgets what is settled |
//! | `tables.rs`, `slab.rs` | what is remembered |
//! | `reads.rs`, `misread.rs` | consistent read, and what to call a read that is not |
//! | `condition.rs`, `meeting.rs` | what reads by condition say about rows that they do not list |
//! | `touched.rs` | who has used which rows, in case that more of a client never comes |
//! | `contradiction.rs` | clocks that contradict what was seen |
//! | `relations.rs` | what reads told about snapshots |
//! | `rows.rs`, `replaced.rs` | mutual exclusion, first updater wins; the same by what was read |
//! | `certifier.rs`, `graph.rs` | the serialization certifier, and cycles |
//! | `forget.rs` | what can matter no more |
//! | `from_history.rs` | recorded histories as traces |
//! | `finding.rs`, `counters.rs` | what comes out |
//! | `rounds.rs` | the complete checker, on finished parts |
//!
//! Nothing here prints, reads a clock or opens anything.

mod catalogue;
mod certifier;
mod condition;
mod contradiction;
mod counters;
mod finding;
mod forget;
mod from_history;
mod graph;
mod meeting;
mod misread;
mod pipeline;
mod profile;
mod reads;
mod relations;
mod replaced;
mod rounds;
mod rows;
mod slab;
mod tables;
mod touched;
mod trace;
mod verifier;

pub use catalogue::{Catalogue, Key, Place};
pub use condition::Condition;
pub use contradiction::Contradiction;
pub use counters::{Counters, Dependencies, Disorder, Unchecked};
pub use finding::{
    Candidate, Dependency, DependencyKind, Finding, Mechanism, NAMES, Name, Role, Step,
};
pub use from_history::{Traced, from_history};
pub use pipeline::{Pipeline, PipelineOptions, Room};
pub use profile::{
    Certifier, Dml, Granularity, KnownDeviation, Locks, Profile, ProfileError, Reads, Writers,
};
pub use rounds::{EXACT_LEVELS, IMPLIED_LEVELS, Names, Round, RoundCounts, Rounds, RoundsOptions};
pub use trace::{
    ALWAYS, Batch, Cell, CellSpan, ClientId, Content, Event, EventKind, Interval, NEVER, Time,
};
pub use verifier::{Options, Verifier};

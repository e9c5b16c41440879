//! Which isolation levels did a database really give its clients?
//!
//! Write down what each client did, and ask. The answer is exact: an order of the transactions
//! that explains every read, or the smallest part of the history that no order explains.
//!
//! ```
//! use isolde::{History, Level, Txn, check};
//!
//! // Two doctors are on call. Each checks that the other one is, and goes home.
//! let mut history = History::builder();
//! history.initial("on");
//! history.commit(Txn::of("alice").read("bob", "on").write("alice", "off"));
//! history.commit(Txn::of("bob").read("alice", "on").write("bob", "off"));
//! let history = history.finish()?;
//!
//! let answer = check(&history);
//! assert_eq!(answer.holds(Level::SnapshotIsolation), Some(true));
//! assert_eq!(answer.holds(Level::Serializable), Some(false));
//! assert!(answer.to_string().contains("write skew"));
//! # Ok::<(), isolde::ReadError>(())
//! ```
//!
//! # In a test
//!
//! [`assert_serializable!`] and [`assert_level!`] fail with the counterexample:
//!
//! ```should_panic
//! # use isolde::{History, Txn, assert_serializable};
//! let mut history = History::builder();
//! history.initial(0);
//! history.commit(Txn::of("alice").read("counter", 0).write("counter", 1));
//! history.commit(Txn::of("bob").read("counter", 0).write("counter", 2));
//! // Panics: not serializable: lost update between alice#1 and bob#1 …
//! assert_serializable!(history.finish().expect("a small history"));
//! ```
//!
//! `examples/threads.rs` tests a small database in this way with real threads, and
//! `examples/schedules.rs` in every order in which the steps of its clients can happen.
//!
//! # What to record
//!
//! - Every operation of every transaction: the key, and the value that was read or written.
//! - How each transaction ended. If a client never learned, that is [`Transcript::unknown`].
//! - For levels of real time, when each transaction began and ended ([`Txn::between`]).
//!
//! A value that is written to a key only once says by itself who wrote it. Then any history is
//! decided fast; repeated values cost a search.
//!
//! # Histories of others
//!
//! [`History::from_path`] reads what Jepsen, Elle, Porcupine, dbcop, Cobra and others record, and
//! Isolde's own formats.
//!
//! # More
//!
//! [`check_within`] takes limits of time, [`checker`] has the engine with all its options,
//! [`history`] the model and the formats, and [`report`] makes pages, pictures, JSON and forms for
//! CI of an [`Answer::report`].

mod answer;
mod assertion;

pub use answer::{Answer, check, check_level, check_within};
#[doc(hidden)]
pub use assertion::assert_holds;
#[doc(inline)]
pub use isolde_checker as checker;
pub use isolde_checker::{AnomalyKind, Level, Verdict};
#[doc(inline)]
pub use isolde_history as history;
pub use isolde_history::{Content, History, Outcome, ReadError, Transcript, Txn};
#[doc(inline)]
pub use isolde_report as report;

//! Orders that are proposed without a solver, replayed, and put right.
//!
//! Most databases have an order close at hand. What is proposed here is checked read by read, so
//! that a wrong proposal costs time and no verdict.
//!
//! | file | proposes | and |
//! |---|---|---|
//! | `replay.rs` | a serial order along the clients' times | replays it with nothing but the last writers of keys, and puts it right where a read contradicts it |
//! | `times.rs` | an order of begins and commits along the times | puts it right a few times over |
//! | `interleaving.rs` | where values repeat, one order of all transactions | session by session, by what the sessions have left |
//! | `witness.rs` | an order along sessions or times | finds what an order gets wrong |
//! | `seriation.rs` | an order by who read from whom | where neither times nor sessions tell one |
//! | `commit_guess.rs` | an order of commits that keeps most of what is likely | |
//! | `stronger_level.rs` | an order of commits of a stronger level | leaves out the readers that this level blames |

pub(super) mod commit_guess;
pub(super) mod interleaving;
pub(super) mod replay;
mod seriation;
pub(super) mod stronger_level;
pub(super) mod times;
pub(super) mod witness;

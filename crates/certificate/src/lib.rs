//! Proofs of verdicts, and the verifier that checks them on its own.
//!
//! A [`Certificate`] says of a history which isolation levels it satisfies and which it
//! does not, with a proof of each: an order that explains every read, or an argument that
//! no order does. It is written and read as text, which `docs/certificate.md` specifies.
//!
//! The verifier shares no code with the checker that finds the proofs, not even the join
//! of reads to their writers. All it uses is [`History`](isolde_history::History).

mod fingerprint;
mod level;
mod proof;
mod read;
mod rule;
mod verify;
mod write;

pub use fingerprint::Fingerprint;
pub use proof::{
    Case, Cases, Certificate, ChosenOrigin, Claim, Clause, Derivation, End, Link, Literal, Node,
    Open, Proof, Reading, ReadingKind, Refutation, Search, Step, Taken, Variable, Witness,
};
pub use read::read;
pub use rule::{Rule, StepId};
pub use verify::{Extent, OtherHistory, Refused, Verifier, verify};
pub use write::write;

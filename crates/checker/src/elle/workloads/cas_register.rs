//! `cas-register`: one register is linearizable.
//!
//! **Definition** [Knossos's `cas-register`]. Reads, writes and compare-and-sets of a
//! register that starts absent take effect one after another, each while it was open.
//! A read that was told nil does not know what it saw. One that failed did not happen.
//!
//! **Method.** See [`linearizable`](crate::linearizable).

use super::{Finding, Misfit, Recorded};
use crate::linearizable::{NilReads, Reading};

pub(super) fn check(recorded: &Recorded<'_>) -> Result<Finding, Misfit> {
    let reading = Reading { nil_reads: NilReads::NotKnown, ..Reading::default() };
    recorded.linearizable(reading, "reads, writes and compare-and-sets of a register")
}

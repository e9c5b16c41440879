//! What the verifier and the pipeline count, so that nothing is left out in silence.

use super::trace::Time;

/// How often dependencies of one kind were known, and from what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The intervals alone decide.
    pub certain: u64,
    /// Intervals overlap, and what was read decides.
    pub by_content: u64,
    /// Intervals overlap, and locks decide.
    pub by_locks: u64,
    /// Intervals overlap, and that one of two writers would have been refused decides.
    pub by_first_updater: u64,
    /// Nothing decides.
    pub uncertain: u64,
}

impl Dependencies {
    /// All that a mechanism had to decide and did.
    pub const fn deduced(&self) -> u64 {
        self.by_content + self.by_locks + self.by_first_updater
    }

    /// All of them.
    pub const fn total(&self) -> u64 {
        self.certain + self.deduced() + self.uncertain
    }
}

/// What was verified, what could not be, and what is kept in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events taken.
    pub events: u64,
    /// Reads and writes among them.
    pub operations: u64,
    /// Cells of reads that were verified.
    pub cells_read: u64,
    /// Cells written.
    pub cells_written: u64,
    /// Transactions that ended with a commit.
    pub committed: u64,
    /// Transactions that were aborted.
    pub aborted: u64,
    /// Transactions whose commit has no answer.
    pub lost: u64,
    /// Who read from whom.
    pub write_read: Dependencies,
    /// Who replaced whom.
    pub write_write: Dependencies,
    /// Who replaced what another had read.
    pub read_write: Dependencies,
    /// Cells of reads that the profile promises nothing about.
    pub unpromised: u64,
    /// Cells of reads that could not be checked; see [`Unchecked`].
    pub unchecked: Unchecked,
    /// Events that contradict their transaction or the order of times; see
    /// [`Disorder`].
    pub disorder: Disorder,
    /// Reads that saw a value before its writer sent it, as the clocks have it; see
    /// [`Contradiction`](super::Contradiction).
    pub contradictions: u64,
    /// Violations.
    pub findings: u64,
    /// Violations that were counted but not kept, because too many were not fetched.
    pub findings_dropped: u64,
    /// Versions and conditions that were looked at: what verifying costs, on any machine.
    pub looked_at: u64,
    /// Versions kept.
    pub versions: u64,
    /// Uses of rows by transactions kept: locks, and what first updater wins needs.
    pub row_uses: u64,
    /// Transactions kept.
    pub txns: u64,
    /// Dependencies kept in the certifier's graph.
    pub graph_edges: u64,
    /// Items known.
    pub items: u64,
    /// Items whose versions were forgotten to stay within the memory.
    pub items_forgotten: u64,
    /// Reads and commits that wait until everything before them has arrived.
    pub waiting: u64,
    /// Everything that was sent before has been taken.
    pub watermark: Time,
    /// Everything older is settled and was given up.
    pub horizon: Time,
}

/// Cells of reads that could not be checked, by what was in the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unchecked {
    /// Events of a client were missing, which may have written what was read.
    pub events_missing: u64,
    /// The trace does not tell what was read.
    pub untold: u64,
    /// It does not tell what rows held that a statement found to change them.
    pub changed: u64,
    /// It was the first that was known of the item, and is taken for what was there.
    pub first: u64,
    /// When it was read or written is not known.
    pub unplaced: u64,
    /// Reads by condition: too many versions meet it.
    pub too_many: u64,
}

impl Unchecked {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.events_missing
            + self.untold
            + self.changed
            + self.first
            + self.unplaced
            + self.too_many
    }
}

/// Traces that are not as they should be. They are counted, and used as far as possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Events whose times contradict the order of their client: its clock was set back.
    pub backwards: u64,
    /// Events of which no time is known since then.
    pub unplaced: u64,
    /// Events that were answered before they were sent.
    pub inverted: u64,
    /// Events that came twice.
    pub duplicates: u64,
    /// Events that came after everything of their time had been verified.
    pub late: u64,
    /// Transactions that came after what they may have seen had been given up.
    pub forgotten: u64,
    /// Events of a transaction that had ended, or of an earlier one.
    pub after_end: u64,
    /// Transactions that have no end although their client went on.
    pub unended: u64,
}

impl Disorder {
    /// All of them.
    pub const fn total(&self) -> u64 {
        self.backwards
            + self.unplaced
            + self.inverted
            + self.duplicates
            + self.late
            + self.forgotten
            + self.after_end
            + self.unended
    }
}

//! When the solver gives up, and what it counted until then.

/// When to stop without an answer.
pub struct Limits<'a> {
    /// Asked now and then; the search ends when it says so.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Bytes the solver may hold, its graph included.
    pub memory_bytes_max: Option<usize>,
    /// Conflicts of one call of `solve`.
    pub conflicts_max: Option<u64>,
    /// Work of one call of `solve`, whether it leads to conflicts or not: sides taken, and
    /// nodes looked at, of which eight count as one; also those that a `Refine` says it looked
    /// at. The same search takes the same work on every machine.
    pub work_max: Option<u64>,
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> =
        Limits { stop: &|| false, memory_bytes_max: None, conflicts_max: None, work_max: None };
}

/// The limit that ended a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Who called said so.
    Asked,
    /// [`Limits::memory_bytes_max`] was reached.
    Memory,
    /// [`Limits::conflicts_max`] was reached.
    Conflicts,
    /// [`Limits::work_max`] was reached.
    Work,
}

/// What a solver did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Choices there are.
    pub choices: u64,
    /// Sides taken for lack of a reason against them.
    pub decisions: u64,
    /// Times that sides taken contradicted each other.
    pub conflicts: u64,
    /// Sides taken because clauses or cycles left no other.
    pub propagations: u64,
    /// Those among the propagations that a cycle forced.
    pub cycle_propagations: u64,
    /// Clauses learned, removed ones included.
    pub learned: u64,
    /// Those among them that were removed again.
    pub forgotten: u64,
    /// Times the order changed.
    pub reorderings: u64,
    /// Nodes visited in looking for cycles and reordering.
    pub visits: u64,
    /// Times all sides were given up to start again.
    pub restarts: u64,
    /// Times the order was shown to the caller.
    pub refinements: u64,
}

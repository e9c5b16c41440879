//! What strategies are called, and which of them are switched off.
//!
//! A level is decided by the first strategy of its family's table that has an answer. The tables
//! stand in `check/strategies` and, for orders of begins and commits, in `strong/strategies`.

use std::fmt;

/// The name of a strategy: what `check -v` prints and `check --without` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrategyName {
    /// Operations alone refute the level: a thin-air read, an aborted read.
    Reading,
    /// A weaker level does not hold.
    Weaker,
    /// A stronger level holds.
    Stronger,
    /// A level that means the same for this history was decided.
    Equivalent,
    /// Where values repeat: one order of all transactions, session by session.
    Interleaving,
    /// The serialization order that the database told.
    DatabaseOrder,
    /// A serial order along the clients' times, replayed and put right.
    Replay,
    /// An order without refused compare-and-sets, which then fits them too.
    Refused,
    /// Orders of begins and commits: a table of strategies of its own, those that follow here.
    Orders,
    /// Two reads of versions that no order explains together.
    Contradictions,
    /// An order of begins and commits along the clients' times, put right.
    Times,
    /// The known edges alone: a cycle, or an order if nothing is open.
    KnownOrder,
    /// The solver, asked about what the best guess at an order gets wrong.
    Search,
    /// All that follows from the known edges, then the solver.
    Saturation,
    /// Orders of commits, at the levels that have a search of their own.
    Commits,
    /// Orders of versions that cycles force, at parallel snapshot isolation.
    ForcedOrders,
    /// An order of commits near one of a stronger level, to search from.
    StrongerOrder,
    /// A stronger level that is asked for because it is decided sooner.
    AskStronger,
    /// The orders of commits that a weak level forces.
    Rule,
    /// Which of several writers each read of a repeated value saw.
    Choices,
    /// Single operations, object by object.
    Objects,
    /// Linearizability as strict serializability.
    Strict,
    /// Every way to understand what the history leaves open.
    Interpretations,
    /// The definition, by all orders of a small history.
    Definition,
    /// Stronger and weaker levels that can be decided where this one cannot.
    Related,
}

impl StrategyName {
    /// All of them, with what to type and what they do, as they are tried.
    pub const ALL: &'static [(StrategyName, &'static str, &'static str)] = &[
        (Self::Reading, "reading", "operations alone refute the level"),
        (Self::Weaker, "weaker", "a weaker level does not hold"),
        (Self::Stronger, "stronger", "a stronger level holds"),
        (Self::Equivalent, "equivalent", "a level that means the same here was decided"),
        (Self::Interleaving, "interleaving", "one order of all sessions, where values repeat"),
        (Self::DatabaseOrder, "database-order", "the serialization order that the database told"),
        (Self::Replay, "replay", "a serial order along the times, replayed and put right"),
        (Self::Refused, "refused", "an order without refused compare-and-sets"),
        (Self::Orders, "orders", "orders of begins and commits: the next five"),
        (Self::Contradictions, "contradictions", "two reads that no order explains together"),
        (Self::Times, "times", "begins and commits along the times, put right"),
        (Self::KnownOrder, "known-order", "the known edges alone, as a cycle or an order"),
        (Self::Search, "search", "the solver, asked what a guess gets wrong"),
        (Self::Saturation, "saturation", "all that follows from known edges, then the solver"),
        (Self::Commits, "commits", "orders of commits that take a search of their own"),
        (Self::ForcedOrders, "forced-orders", "orders of versions that cycles force"),
        (Self::StrongerOrder, "stronger-order", "an order near a stronger level, to search from"),
        (Self::AskStronger, "ask-stronger", "a stronger level that is decided sooner"),
        (Self::Rule, "rule", "the orders of commits that a weak level forces"),
        (Self::Choices, "choices", "which of several writers a read of a repeated value saw"),
        (Self::Objects, "objects", "single operations, object by object"),
        (Self::Strict, "strict", "linearizability as strict serializability"),
        (Self::Interpretations, "interpretations", "every way to understand what is left open"),
        (Self::Definition, "definition", "all orders of a small history"),
        (Self::Related, "related", "levels that can be decided where this one cannot"),
    ];

    /// What to type.
    pub fn name(self) -> &'static str {
        let row = Self::ALL.iter().find(|row| row.0 == self);
        row.map(|row| row.1).expect("every strategy has a row")
    }

    /// What it does, in a few words.
    pub fn about(self) -> &'static str {
        let row = Self::ALL.iter().find(|row| row.0 == self);
        row.map(|row| row.2).expect("every strategy has a row")
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

impl fmt::Display for StrategyName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A set of strategies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strategies(u32);

impl Strategies {
    /// None of them.
    pub const NONE: Strategies = Strategies(0);

    /// The same and one more.
    #[must_use]
    pub const fn and(self, name: StrategyName) -> Strategies {
        Strategies(self.0 | name.bit())
    }

    /// Whether one is among them.
    pub const fn contains(self, name: StrategyName) -> bool {
        self.0 & name.bit() != 0
    }
}

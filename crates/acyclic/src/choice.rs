//! What the solver speaks about: nodes, edges, choices and their sides.

use std::ops::Not;

/// A node, counted from 0.
pub type Node = u32;

/// `from` comes before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Edge {
    /// The earlier node.
    pub from: Node,
    /// The later node.
    pub to: Node,
}

impl Edge {
    /// An edge between two nodes.
    pub const fn new(from: Node, to: Node) -> Edge {
        Edge { from, to }
    }
}

/// Something with two sides, exactly one of which is taken. Choices are counted
/// from 0 in the order they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Choice(u32);

impl Choice {
    pub(crate) fn at(index: usize) -> Choice {
        Choice(index as u32)
    }

    /// How many choices were made before this one.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The first side is taken.
    pub fn yes(self) -> Literal {
        Literal(self.0 * 2)
    }

    /// The second side is taken.
    pub fn no(self) -> Literal {
        Literal(self.0 * 2 + 1)
    }

    /// The side that a phase names.
    pub fn side(self, phase: Phase) -> Literal {
        match phase {
            Phase::Yes => self.yes(),
            Phase::No => self.no(),
        }
    }
}

/// One side of a choice; `!` is the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(u32);

impl Literal {
    pub(crate) fn from_word(word: u32) -> Literal {
        Literal(word)
    }

    pub(crate) fn word(self) -> u32 {
        self.0
    }

    /// Twice the index of the choice, and one more for its second side.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// Whose side this is.
    pub fn choice(self) -> Choice {
        Choice(self.0 >> 1)
    }

    /// Which side this is.
    pub fn phase(self) -> Phase {
        if self.0 & 1 == 0 { Phase::Yes } else { Phase::No }
    }
}

impl Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        Literal(self.0 ^ 1)
    }
}

/// A side by its name: the one to try first where the order is as near to one as to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The first side.
    Yes,
    /// The second side.
    No,
}

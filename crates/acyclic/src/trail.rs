//! Which sides are taken, since when, and why.

use crate::choice::{Choice, Literal};

/// Why a side is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It was decided.
    Decision,
    /// A clause whose other literals are false.
    Clause(u32),
    /// A cycle, at this place among [`Trail::cycles`].
    Cycle(u32),
}

/// How far everything was when a level began.
#[derive(Clone, Copy)]
pub(crate) struct Level {
    pub(crate) literals: usize,
    pub(crate) asserted: usize,
    pub(crate) cycles: usize,
}

#[derive(Default)]
pub(crate) struct Trail {
    /// 1 for a true literal, -1 for a false one, 0 for an undecided one.
    pub(crate) values: Vec<i8>,
    pub(crate) levels_of: Vec<u32>,
    pub(crate) reasons: Vec<Reason>,
    /// True literals in the order they became true.
    pub(crate) literals: Vec<Literal>,
    pub(crate) levels: Vec<Level>,
    /// How many literals clauses were asked about.
    pub(crate) clauses_done: usize,
    /// How many literals have their edges asserted.
    pub(crate) edges_done: usize,
    /// Cycles that are reasons: the step of the proof or [`NOT_LOGGED`], how many edges,
    /// the edges.
    ///
    /// Most are never asked for, so they enter the proof only when they are.
    pub(crate) cycles: Vec<u32>,
}

/// A cycle that is not in the proof yet.
pub(crate) const NOT_LOGGED: u32 = u32::MAX;

impl Trail {
    pub(crate) fn grow(&mut self) {
        self.values.extend([0, 0]);
        self.levels_of.push(0);
        self.reasons.push(Reason::Decision);
    }

    #[inline]
    pub(crate) fn value(&self, literal: Literal) -> i8 {
        self.values[literal.index()]
    }

    #[inline]
    pub(crate) fn level(&self) -> u32 {
        self.levels.len() as u32
    }

    #[inline]
    pub(crate) fn level_of(&self, choice: Choice) -> u32 {
        self.levels_of[choice.index()]
    }

    #[inline]
    pub(crate) fn reason_of(&self, choice: Choice) -> Reason {
        self.reasons[choice.index()]
    }

    pub(crate) fn begin_level(&mut self, asserted: usize) {
        let (literals, cycles) = (self.literals.len(), self.cycles.len());
        self.levels.push(Level { literals, asserted, cycles });
    }

    /// Takes a side at a level, which may be below the current one.
    pub(crate) fn take(&mut self, literal: Literal, reason: Reason, level: u32) {
        debug_assert_eq!(self.value(literal), 0);
        debug_assert!(level <= self.level());
        self.values[literal.index()] = 1;
        self.values[(!literal).index()] = -1;
        self.levels_of[literal.choice().index()] = level;
        self.reasons[literal.choice().index()] = reason;
        self.literals.push(literal);
    }

    /// Keeps a cycle as a reason.
    pub(crate) fn keep_cycle(&mut self, edges: &[u32]) -> Reason {
        let place = self.cycles.len() as u32;
        self.cycles.extend([NOT_LOGGED, edges.len() as u32]);
        self.cycles.extend_from_slice(edges);
        Reason::Cycle(place)
    }

    pub(crate) fn cycle(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.cycles[place + 2..place + 2 + self.cycles[place + 1] as usize]
    }

    /// Gives up the levels above one and says how much was asserted below them.
    /// Calls `freed` with every literal that is no longer true. Literals that were taken
    /// late, but at levels that stay, are kept with their reasons.
    pub(crate) fn give_up(&mut self, level: u32, mut freed: impl FnMut(Literal)) -> usize {
        let limits = self.levels[level as usize];
        self.levels.truncate(level as usize);
        let (mut kept, mut cycles) = (limits.literals, limits.cycles);
        for place in limits.literals..self.literals.len() {
            let literal = self.literals[place];
            if self.levels_of[literal.choice().index()] > level {
                self.values[literal.index()] = 0;
                self.values[(!literal).index()] = 0;
                freed(literal);
                continue;
            }
            self.literals[kept] = literal;
            kept += 1;
            // Cycles stand in the order of their literals, so there is room below.
            if let Reason::Cycle(old) = self.reasons[literal.choice().index()] {
                let start = old as usize;
                let end = start + 2 + self.cycles[start + 1] as usize;
                self.cycles.copy_within(start..end, cycles);
                self.reasons[literal.choice().index()] = Reason::Cycle(cycles as u32);
                cycles += end - start;
            }
        }
        self.literals.truncate(kept);
        self.cycles.truncate(cycles);
        self.clauses_done = self.clauses_done.min(limits.literals);
        self.edges_done = self.edges_done.min(limits.literals);
        limits.asserted
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values.capacity()
            + 4 * (self.levels_of.capacity() + self.literals.capacity() + self.cycles.capacity())
            + size_of::<Reason>() * self.reasons.capacity()
            + size_of::<Level>() * self.levels.capacity()
    }
}

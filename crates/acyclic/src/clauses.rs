//! Clauses in one flat column, found by the two literals each is watched by.
//!
//! A clause is watched by two of its literals; as long as neither is false nothing
//! can follow from it. When one becomes false another is looked for, and if there
//! is none the clause forces its last literal or is broken (Moskewicz 2001).

use crate::choice::Literal;

/// Words before the literals of a clause: how many there are, how many levels met
/// in it when it was learned, and its step in the proof.
const HEADER: usize = 3;
/// The levels of a clause that was not learned: it is never removed.
const KEPT: u32 = 0;
const REMOVED: u32 = u32::MAX;
/// Learned clauses of so few levels are kept for good.
const GLUE: u32 = 2;

/// Somebody to tell when a literal becomes false.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) clause: u32,
    /// Another literal of the clause: if it is true the clause need not be read.
    pub(crate) blocker: Literal,
}

#[derive(Default)]
pub(crate) struct Clauses {
    words: Vec<u32>,
    /// By literal: clauses watched by it.
    pub(crate) watches: Vec<Vec<Watch>>,
    /// Learned clauses that may be removed.
    learned: Vec<u32>,
    watched: usize,
}

impl Clauses {
    pub(crate) fn grow(&mut self) {
        self.watches.extend([Vec::new(), Vec::new()]);
    }

    /// Stores a clause; [`Clauses::watch`] makes it count.
    pub(crate) fn store(&mut self, literals: &[Literal], levels: Option<u32>, step: u32) -> u32 {
        let clause = self.words.len() as u32;
        self.words.extend([literals.len() as u32, levels.unwrap_or(KEPT), step]);
        self.words.extend(literals.iter().map(|literal| literal.word()));
        if levels.is_some_and(|levels| levels > GLUE) && literals.len() > 2 {
            self.learned.push(clause);
        }
        clause
    }

    /// Watches a clause by its first two literals.
    pub(crate) fn watch(&mut self, clause: u32) {
        let (one, other) = (self.literal(clause, 0), self.literal(clause, 1));
        self.watches[one.index()].push(Watch { clause, blocker: other });
        self.watches[other.index()].push(Watch { clause, blocker: one });
        self.watched += 2;
    }

    #[inline]
    pub(crate) fn len(&self, clause: u32) -> usize {
        self.words[clause as usize] as usize
    }

    #[inline]
    pub(crate) fn step(&self, clause: u32) -> u32 {
        self.words[clause as usize + 2]
    }

    #[inline]
    pub(crate) fn literal(&self, clause: u32, place: usize) -> Literal {
        Literal::from_word(self.words[clause as usize + HEADER + place])
    }

    #[inline]
    pub(crate) fn literals(&self, clause: u32) -> impl Iterator<Item = Literal> + '_ {
        let start = clause as usize + HEADER;
        self.words[start..start + self.len(clause)].iter().map(|&word| Literal::from_word(word))
    }

    #[inline]
    pub(crate) fn swap(&mut self, clause: u32, one: usize, other: usize) {
        let start = clause as usize + HEADER;
        self.words.swap(start + one, start + other);
    }

    /// How many learned clauses might be removed.
    pub(crate) fn removable(&self) -> usize {
        self.learned.len()
    }

    /// Removes the half of the learned clauses in which most levels met, but for those
    /// in use, and says where each clause now stands.
    pub(crate) fn reduce(&mut self, used: impl Fn(u32, Literal) -> bool) -> Moves {
        let mut learned = std::mem::take(&mut self.learned);
        // The older of two clauses with as many levels goes first.
        learned.sort_by_key(|&clause| std::cmp::Reverse(self.words[clause as usize + 1]));
        let half = learned.len() / 2;
        for &clause in &learned[..half] {
            if !used(clause, self.literal(clause, 0)) && !used(clause, self.literal(clause, 1)) {
                self.words[clause as usize + 1] = REMOVED;
            }
        }
        learned.retain(|&clause| self.words[clause as usize + 1] != REMOVED);
        learned.sort_unstable();
        let mut words = Vec::with_capacity(self.words.len());
        let mut place = 0;
        while place < self.words.len() {
            let end = place + HEADER + self.words[place] as usize;
            if self.words[place + 1] != REMOVED {
                let moved = words.len() as u32;
                words.extend_from_slice(&self.words[place..end]);
                self.words[place + 2] = moved;
            }
            place = end;
        }
        let moves = Moves { old: std::mem::replace(&mut self.words, words) };
        for clause in &mut learned {
            *clause = moves.of(*clause).expect("it was retained");
        }
        self.learned = learned;
        self.watched = 0;
        for watches in &mut self.watches {
            watches.retain_mut(|watch| {
                let moved = moves.of(watch.clause);
                watch.clause = moved.unwrap_or(0);
                moved.is_some()
            });
            self.watched += watches.len();
        }
        moves
    }

    pub(crate) fn bytes(&self) -> usize {
        // Lists grow by doubling, so they are at most twice as long as what is in them.
        4 * (self.words.capacity() + self.learned.capacity())
            + size_of::<Vec<Watch>>() * self.watches.capacity()
            + 2 * size_of::<Watch>() * self.watched
    }
}

/// Where clauses went.
pub(crate) struct Moves {
    old: Vec<u32>,
}

impl Moves {
    /// The new place of a clause, unless it was removed.
    pub(crate) fn of(&self, clause: u32) -> Option<u32> {
        let clause = clause as usize;
        (self.old[clause + 1] != REMOVED).then(|| self.old[clause + 2])
    }
}

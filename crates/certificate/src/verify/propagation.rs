//! Unit propagation over clauses, for lemmas: assume the opposite, and see it fail.
//!
//! Two literals of each clause are watched. As long as neither is false the clause says
//! nothing new, so it is looked at only when one of them becomes false.

use crate::proof::Literal;

/// The clauses so far, and what follows from them alone.
pub(super) struct Propagation {
    /// All literals of all clauses; the first two of a clause are watched.
    literals: Vec<Literal>,
    /// Where each clause starts.
    starts: Vec<usize>,
    /// By literal, the clauses that watch it.
    watched_by: Vec<Vec<u32>>,
    /// By literal, whether it is true.
    is_true: Vec<bool>,
    /// Literals in the order in which they became true.
    trail: Vec<Literal>,
    /// How much of the trail has been followed.
    followed: usize,
    /// Whether the clauses contradict each other.
    is_contradiction: bool,
}

impl Propagation {
    pub(super) fn new(variables: usize) -> Self {
        Propagation {
            literals: Vec::new(),
            starts: vec![0],
            watched_by: vec![Vec::new(); 2 * variables],
            is_true: vec![false; 2 * variables],
            trail: Vec::new(),
            followed: 0,
            is_contradiction: false,
        }
    }

    /// Whether the clauses so far imply this one, as far as unit propagation sees.
    pub(super) fn implies(&mut self, clause: &[Literal]) -> bool {
        if self.is_contradiction || clause.iter().any(|&literal| self.is_true(literal)) {
            return true;
        }
        let known = self.trail.len();
        for &literal in clause {
            // A literal and its negation in one clause: it always holds.
            if self.is_true(literal) {
                self.forget(known);
                return true;
            }
            if !self.is_true(!literal) {
                self.assign(!literal);
            }
        }
        let fails = !self.follow();
        self.forget(known);
        fails
    }

    /// Adds a clause, and what now follows from all of them.
    pub(super) fn add(&mut self, clause: &[Literal]) {
        let mut clause = clause.to_vec();
        clause.sort_unstable();
        clause.dedup();
        if clause.windows(2).any(|pair| pair[0] == !pair[1]) {
            return;
        }
        // What is not false comes first, to be watched.
        clause.sort_by_key(|&literal| self.is_true(!literal));
        let open = clause.iter().filter(|&&literal| !self.is_true(!literal)).count();
        match clause[..] {
            _ if open == 0 => self.is_contradiction = true,
            [only, ..] if open == 1 => {
                if !self.is_true(only) {
                    self.assign(only);
                    self.is_contradiction |= !self.follow();
                }
            }
            _ => {
                let number = self.starts.len() as u32 - 1;
                for watched in &clause[..2] {
                    self.watched_by[watched.0 as usize].push(number);
                }
                self.literals.extend_from_slice(&clause);
                self.starts.push(self.literals.len());
            }
        }
    }

    fn is_true(&self, literal: Literal) -> bool {
        self.is_true[literal.0 as usize]
    }

    fn assign(&mut self, literal: Literal) {
        self.is_true[literal.0 as usize] = true;
        self.trail.push(literal);
    }

    fn forget(&mut self, known: usize) {
        for literal in self.trail.drain(known..) {
            self.is_true[literal.0 as usize] = false;
        }
        self.followed = known;
    }

    /// Makes true what follows; `false` if a clause fails.
    fn follow(&mut self) -> bool {
        while let Some(&literal) = self.trail.get(self.followed) {
            self.followed += 1;
            let failed = !literal;
            let watching = std::mem::take(&mut self.watched_by[failed.0 as usize]);
            let mut kept = Vec::with_capacity(watching.len());
            let mut holds = true;
            for clause in watching {
                if !holds {
                    kept.push(clause);
                    continue;
                }
                match self.look_at(clause, failed) {
                    Look::Moved => {}
                    Look::Holds => kept.push(clause),
                    Look::Fails => {
                        holds = false;
                        kept.push(clause);
                    }
                }
            }
            self.watched_by[failed.0 as usize] = kept;
            if !holds {
                return false;
            }
        }
        true
    }

    /// Looks at a clause one of whose watched literals has become false.
    fn look_at(&mut self, clause: u32, failed: Literal) -> Look {
        let (start, end) = (self.starts[clause as usize], self.starts[clause as usize + 1]);
        if self.literals[start] == failed {
            self.literals.swap(start, start + 1);
        }
        let other = self.literals[start];
        if self.is_true(other) {
            return Look::Holds;
        }
        for place in start + 2..end {
            let literal = self.literals[place];
            if !self.is_true(!literal) {
                self.literals.swap(start + 1, place);
                self.watched_by[literal.0 as usize].push(clause);
                return Look::Moved;
            }
        }
        if self.is_true(!other) {
            return Look::Fails;
        }
        self.assign(other);
        Look::Holds
    }
}

enum Look {
    /// Another literal is watched instead.
    Moved,
    /// It holds, now if not before.
    Holds,
    /// All its literals are false.
    Fails,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Literals as people write them: 1 and -1.
    fn clause(literals: &[i32]) -> Vec<Literal> {
        let literal = |&number: &i32| {
            let variable = number.unsigned_abs() - 1;
            if number > 0 { Literal::yes(variable) } else { Literal::no(variable) }
        };
        literals.iter().map(literal).collect()
    }

    #[test]
    fn all_four_clauses_of_two_variables_contradict_each_other() {
        let mut propagation = Propagation::new(2);
        for literals in [[1, 2], [1, -2], [-1, 2]] {
            propagation.add(&clause(&literals));
        }
        assert!(!propagation.implies(&clause(&[])));
        assert!(propagation.implies(&clause(&[1])));
        assert!(!propagation.implies(&clause(&[-1])));
        propagation.add(&clause(&[-1, -2]));
        assert!(!propagation.implies(&clause(&[])));
        propagation.add(&clause(&[1]));
        assert!(propagation.implies(&clause(&[])));
    }

    #[test]
    fn what_was_assumed_is_forgotten() {
        let mut propagation = Propagation::new(3);
        propagation.add(&clause(&[-1, 2]));
        propagation.add(&clause(&[-2, 3]));
        for _ in 0..2 {
            assert!(propagation.implies(&clause(&[-1, 3])));
            assert!(!propagation.implies(&clause(&[1, 3])));
            assert!(!propagation.implies(&clause(&[-3, 1])));
        }
        assert!(propagation.implies(&clause(&[1, -1])));
    }
}

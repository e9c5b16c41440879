//! From a contradiction to the clause that would have prevented it.
//!
//! Literals that follow from others are replaced by those until one literal of the
//! last level is left (Marques-Silva and Sakallah 1996); then literals that follow from the
//! rest are dropped (Sörensson and Biere 2009).

use super::Solver;
use crate::choice::{Choice, Literal};
use crate::trail::{NOT_LOGGED, Reason};

/// Levels that are given up at once to take a learned side where it belongs. If there are more,
/// only the last is given up: conflicts are local, and far levels have nothing to do with
/// them (Nadel and Ryvchin 2018).
const JUMP_MAX: u32 = 2;

/// Memory of one analysis, kept for the next.
#[derive(Default)]
pub(crate) struct Analysis {
    /// By choice: it is in the clause, or follows from what is.
    seen: Vec<bool>,
    touched: Vec<Choice>,
    /// The clause; its first literal is the one of the last level.
    pub(crate) learned: Vec<Literal>,
    /// What the clause was derived from.
    reasons: Vec<Reason>,
    roots: Vec<Choice>,
    literals: Vec<Literal>,
    stack: Vec<Choice>,
    stamps: Vec<u64>,
    stamp: u64,
}

impl Analysis {
    pub(crate) fn grow(&mut self) {
        self.seen.push(false);
        // There is at most one level more than choices.
        self.stamps.resize(self.seen.len() + 1, 0);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.seen.capacity() + 8 * self.stamps.capacity()
    }
}

impl Solver {
    /// Learns from a contradiction, and takes the side it shows; false if there is
    /// nothing left to take back.
    pub(crate) fn learn(&mut self, conflict: Reason) -> bool {
        self.statistics.conflicts += 1;
        let mut literals = std::mem::take(&mut self.analysis.literals);
        self.literals_of(conflict, &mut literals);
        let level = |literal: &Literal| self.trail.level_of(literal.choice());
        let last = literals.iter().map(level).max().unwrap_or(0);
        self.analysis.literals = literals;
        if last == 0 {
            self.refute(conflict);
            return false;
        }
        // Clauses and edges may come late, when a newer level has nothing to do with it.
        let conflict = self.give_up_keeping(last, conflict);
        self.resolve(conflict);
        self.minimise();
        let levels = self.levels_in_learned();
        let from = self.steps_behind();
        let step = self.log.lemma(&self.analysis.learned, &from);
        for choice in self.analysis.touched.drain(..) {
            self.analysis.seen[choice.index()] = false;
        }
        let learned = std::mem::take(&mut self.analysis.learned);
        let clause = self.clauses.store(&learned, Some(levels), step);
        let back = learned.get(1).map_or(0, |literal| self.trail.level_of(literal.choice()));
        self.give_up(if last - back > JUMP_MAX { last - 1 } else { back });
        if learned.len() > 1 {
            self.clauses.watch(clause);
        }
        self.take(learned[0], Reason::Clause(clause), back);
        self.analysis.learned = learned;
        self.statistics.learned += 1;
        self.queue.decay();
        self.pace.note(levels);
        true
    }

    /// Gives up levels above one, without losing the cycle that is the conflict.
    fn give_up_keeping(&mut self, level: u32, conflict: Reason) -> Reason {
        let Reason::Cycle(place) = conflict else {
            self.give_up(level);
            return conflict;
        };
        if level == self.trail.level() {
            return conflict;
        }
        let edges = self.trail.cycle(place).to_vec();
        self.give_up(level);
        self.trail.keep_cycle(&edges)
    }

    /// The literals of a reason, as a clause. One may come more than once.
    fn literals_of(&self, reason: Reason, literals: &mut Vec<Literal>) {
        literals.clear();
        match reason {
            Reason::Decision => {}
            Reason::Clause(clause) => literals.extend(self.clauses.literals(clause)),
            Reason::Cycle(place) => {
                let edges = self.trail.cycle(place).iter();
                literals.extend(edges.map(|&edge| !self.graph.edges[edge as usize].literal));
            }
        }
    }

    /// Replaces literals of the last level by what they follow from, until one is left.
    fn resolve(&mut self, conflict: Reason) {
        let mut analysis = std::mem::take(&mut self.analysis);
        analysis.learned.clear();
        analysis.reasons.clear();
        analysis.roots.clear();
        let mut literals = std::mem::take(&mut analysis.literals);
        let last = self.trail.level();
        let (mut reason, mut open, mut place) = (conflict, 0, self.trail.literals.len());
        loop {
            analysis.reasons.push(reason);
            self.literals_of(reason, &mut literals);
            for &literal in &literals {
                let choice = literal.choice();
                // The literal this is the reason of is true, all others are false.
                if self.trail.value(literal) > 0 || analysis.seen[choice.index()] {
                    continue;
                }
                let level = self.trail.level_of(choice);
                if level == 0 {
                    analysis.roots.push(choice);
                    continue;
                }
                analysis.seen[choice.index()] = true;
                analysis.touched.push(choice);
                self.queue.bump(choice.index());
                if level == last {
                    open += 1;
                } else {
                    analysis.learned.push(literal);
                }
            }
            loop {
                place -= 1;
                let choice = self.trail.literals[place].choice();
                if analysis.seen[choice.index()] && self.trail.level_of(choice) == last {
                    break;
                }
            }
            let literal = self.trail.literals[place];
            open -= 1;
            if open == 0 {
                analysis.learned.push(!literal);
                let last = analysis.learned.len() - 1;
                analysis.learned.swap(0, last);
                break;
            }
            reason = self.trail.reason_of(literal.choice());
        }
        analysis.literals = literals;
        self.analysis = analysis;
    }

    /// Drops literals that follow from the others.
    fn minimise(&mut self) {
        let mut analysis = std::mem::take(&mut self.analysis);
        let mut literals = std::mem::take(&mut analysis.literals);
        let mask = |choice: Choice| 1u64 << (self.trail.level_of(choice) % 64);
        let levels = analysis.learned[1..].iter().fold(0, |all, one| all | mask(one.choice()));
        let mut kept = 1;
        for place in 1..analysis.learned.len() {
            let literal = analysis.learned[place];
            if !self.follows(literal.choice(), levels, &mut analysis, &mut literals) {
                analysis.learned[kept] = literal;
                kept += 1;
            }
        }
        analysis.learned.truncate(kept);
        analysis.literals = literals;
        self.analysis = analysis;
    }

    /// Whether a literal follows from what was seen. `levels` are those of the
    /// clause: through others it cannot follow.
    fn follows(
        &self,
        choice: Choice,
        levels: u64,
        analysis: &mut Analysis,
        literals: &mut Vec<Literal>,
    ) -> bool {
        if self.trail.reason_of(choice) == Reason::Decision {
            return false;
        }
        let (touched, reasons) = (analysis.touched.len(), analysis.reasons.len());
        analysis.stack.clear();
        analysis.stack.push(choice);
        while let Some(choice) = analysis.stack.pop() {
            let reason = self.trail.reason_of(choice);
            analysis.reasons.push(reason);
            self.literals_of(reason, literals);
            for other in literals.iter().map(|literal| literal.choice()) {
                let level = self.trail.level_of(other);
                if other == choice || analysis.seen[other.index()] {
                    continue;
                }
                if level == 0 {
                    analysis.roots.push(other);
                    continue;
                }
                let open = self.trail.reason_of(other) == Reason::Decision;
                if open || levels & (1 << (level % 64)) == 0 {
                    for choice in analysis.touched.drain(touched..) {
                        analysis.seen[choice.index()] = false;
                    }
                    analysis.reasons.truncate(reasons);
                    return false;
                }
                analysis.seen[other.index()] = true;
                analysis.touched.push(other);
                analysis.stack.push(other);
            }
        }
        true
    }

    /// Puts a literal of the second-highest level second, and counts the levels.
    fn levels_in_learned(&mut self) -> u32 {
        let analysis = &mut self.analysis;
        analysis.stamp += 1;
        let (mut levels, mut second) = (0, 1);
        for (place, literal) in analysis.learned.iter().enumerate() {
            let level = self.trail.level_of(literal.choice());
            if analysis.stamps[level as usize] != analysis.stamp {
                analysis.stamps[level as usize] = analysis.stamp;
                levels += 1;
            }
            if place > 0 && level > self.trail.level_of(analysis.learned[second].choice()) {
                second = place;
            }
        }
        if analysis.learned.len() > 1 {
            analysis.learned.swap(1, second);
        }
        levels
    }

    /// The steps of the proof that the clause was derived from.
    fn steps_behind(&mut self) -> Vec<u32> {
        let reasons = std::mem::take(&mut self.analysis.reasons);
        let mut steps: Vec<u32> = reasons.iter().map(|&reason| self.step_of(reason)).collect();
        self.analysis.reasons = reasons;
        let roots = self.analysis.roots.iter();
        steps.extend(roots.map(|choice| self.root_steps[choice.index()]));
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// The step of the proof that a reason is, noted now if it is a cycle.
    fn step_of(&mut self, reason: Reason) -> u32 {
        match reason {
            Reason::Decision => unreachable!("a decision is no reason"),
            Reason::Clause(clause) => self.clauses.step(clause),
            Reason::Cycle(place) => {
                let mut step = self.trail.cycles[place as usize];
                if step == NOT_LOGGED {
                    step = self.log.cycle(self.trail.cycle(place));
                    self.trail.cycles[place as usize] = step;
                }
                step
            }
        }
    }

    /// Notes why a side holds for good. All that its reason names does too.
    pub(crate) fn settle(&mut self, literal: Literal) {
        let choice = literal.choice();
        let reason = self.trail.reason_of(choice);
        let mut literals = Vec::new();
        self.literals_of(reason, &mut literals);
        literals.retain(|other| other.choice() != choice);
        let mut step = self.step_of(reason);
        if !literals.is_empty() {
            let mut from = vec![step];
            from.extend(literals.iter().map(|other| self.root_steps[other.choice().index()]));
            step = self.log.lemma(&[literal], &from);
        }
        self.root_steps[choice.index()] = step;
    }

    /// Notes that nothing is left to take back.
    fn refute(&mut self, conflict: Reason) {
        // The conflict may have come with levels above it that are not part of it.
        let conflict = self.give_up_keeping(0, conflict);
        let mut literals = Vec::new();
        self.literals_of(conflict, &mut literals);
        let mut from = vec![self.step_of(conflict)];
        from.extend(literals.iter().map(|literal| self.root_steps[literal.choice().index()]));
        self.refuted = Some(self.log.lemma(&[], &from));
    }
}

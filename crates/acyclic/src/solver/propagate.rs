//! What follows from the sides taken: by clauses, and by edges.

use super::Solver;
use crate::choice::Literal;
use crate::clauses::Watch;
use crate::graph::NONE;
use crate::order::Insertion;
use crate::trail::Reason;

/// How far conclusions went.
pub(crate) enum Propagation {
    /// Nothing more follows.
    Done,
    /// All literals of a clause are false, or a cycle holds.
    Conflict(Reason),
    /// The caller's limits were reached; the rest can be done later.
    Interrupted,
}

impl Solver {
    /// Draws all conclusions. Clauses go first: they are cheap, and edges asserted
    /// in vain may reorder much.
    pub(crate) fn propagate(&mut self, interrupted: &dyn Fn(&Solver) -> bool) -> Propagation {
        if let Some(conflict) = self.enter_late_clauses() {
            return Propagation::Conflict(conflict);
        }
        loop {
            if let Some(conflict) = self.propagate_clauses() {
                return Propagation::Conflict(conflict);
            }
            if let Some(&edge) = self.late_edges.last() {
                if let Some(conflict) = self.assert_edge(edge) {
                    return Propagation::Conflict(conflict);
                }
                self.late_edges.pop();
                continue;
            }
            let Some(&literal) = self.trail.literals.get(self.trail.edges_done) else {
                return Propagation::Done;
            };
            let mut edge = self.graph.lists[literal.index()].0;
            while edge != NONE {
                if let Some(conflict) = self.assert_edge(edge) {
                    return Propagation::Conflict(conflict);
                }
                edge = self.graph.edges[edge as usize].next_of_literal;
            }
            self.trail.edges_done += 1;
            self.work += 1;
            if interrupted(self) {
                return Propagation::Interrupted;
            }
        }
    }

    /// Lets an edge hold if its literal is true, and takes the sides this leaves.
    fn assert_edge(&mut self, edge: u32) -> Option<Reason> {
        let literal = self.graph.edges[edge as usize].literal;
        if self.trail.value(literal) <= 0 || self.graph.states[edge as usize].asserted {
            return None;
        }
        let fixed = self.trail.level_of(literal.choice()) == 0;
        let visits = self.graph.visits;
        let insertion = self.graph.insert(edge, fixed, &self.trail.values);
        self.work += 1 + (self.graph.visits - visits) / 8;
        match insertion {
            Insertion::Agreed => {}
            Insertion::Cycle => return Some(self.trail.keep_cycle(&self.graph.cycle)),
            Insertion::Reordered => {
                let implied = std::mem::take(&mut self.graph.implied);
                let mut start = 0;
                for &(literal, end) in &implied.literals {
                    if self.trail.value(literal) == 0 {
                        let cycle = &implied.edges[start..end as usize];
                        let others = cycle.iter().map(|&edge| self.graph.edges[edge as usize]);
                        let others = others.map(|edge| edge.literal.choice());
                        let others = others.filter(|&other| other != literal.choice());
                        let level = others.map(|other| self.trail.level_of(other)).max();
                        let reason = self.trail.keep_cycle(cycle);
                        self.take(!literal, reason, level.unwrap_or(0));
                        self.statistics.cycle_propagations += 1;
                    }
                    start = end as usize;
                }
                self.graph.implied = implied;
            }
        }
        None
    }

    fn propagate_clauses(&mut self) -> Option<Reason> {
        while let Some(&literal) = self.trail.literals.get(self.trail.clauses_done) {
            self.trail.clauses_done += 1;
            self.work += 1;
            let mut watches = std::mem::take(&mut self.clauses.watches[(!literal).index()]);
            let mut kept = 0;
            let mut conflict = None;
            for place in 0..watches.len() {
                let watch = watches[place];
                let outcome = if conflict.is_some() || self.trail.value(watch.blocker) > 0 {
                    Watched::Keep(watch)
                } else {
                    self.visit_clause(watch, !literal)
                };
                match outcome {
                    Watched::Moved => {}
                    Watched::Keep(watch) => {
                        watches[kept] = watch;
                        kept += 1;
                    }
                    Watched::Broken => {
                        watches[kept] = watch;
                        kept += 1;
                        conflict = Some(Reason::Clause(watch.clause));
                    }
                }
            }
            watches.truncate(kept);
            self.clauses.watches[(!literal).index()] = watches;
            if conflict.is_some() {
                return conflict;
            }
        }
        None
    }

    /// Looks at a clause that has just lost the literal `lost`.
    fn visit_clause(&mut self, watch: Watch, lost: Literal) -> Watched {
        let clause = watch.clause;
        if self.clauses.literal(clause, 0) == lost {
            self.clauses.swap(clause, 0, 1);
        }
        let first = self.clauses.literal(clause, 0);
        let kept = Watch { clause, blocker: first };
        if self.trail.value(first) > 0 {
            return Watched::Keep(kept);
        }
        for place in 2..self.clauses.len(clause) {
            let other = self.clauses.literal(clause, place);
            if self.trail.value(other) >= 0 {
                self.clauses.swap(clause, 1, place);
                self.clauses.watches[other.index()].push(kept);
                return Watched::Moved;
            }
        }
        if self.trail.value(first) < 0 {
            return Watched::Broken;
        }
        // The literal that became false last is watched: it is the first to be given up.
        let level =
            |place: &usize| self.trail.level_of(self.clauses.literal(clause, *place).choice());
        let last = (2..self.clauses.len(clause))
            .fold(1, |last, place| if level(&place) > level(&last) { place } else { last });
        let level = level(&last);
        self.take(first, Reason::Clause(clause), level);
        if last == 1 {
            return Watched::Keep(kept);
        }
        self.clauses.swap(clause, 1, last);
        let other = self.clauses.literal(clause, 1);
        self.clauses.watches[other.index()].push(kept);
        Watched::Moved
    }

    /// Lets clauses count that came since the last time. What one forces belongs to
    /// the level at which it would have been forced.
    fn enter_late_clauses(&mut self) -> Option<Reason> {
        while let Some(clause) = self.late_clauses.pop() {
            let len = self.clauses.len(clause);
            for place in 0..len.min(2) {
                let rank = |other: &usize| self.rank(self.clauses.literal(clause, *other));
                let best = (place..len).max_by_key(rank).expect("places are left");
                self.clauses.swap(clause, place, best);
            }
            if len > 1 {
                self.clauses.watch(clause);
            }
            let first = self.clauses.literal(clause, 0);
            let second = (len > 1).then(|| self.clauses.literal(clause, 1));
            let open = second.is_some_and(|second| self.trail.value(second) >= 0);
            match self.trail.value(first) {
                0 if !open => {
                    let level = second.map_or(0, |second| self.trail.level_of(second.choice()));
                    self.take(first, Reason::Clause(clause), level);
                }
                -1 => return Some(Reason::Clause(clause)),
                _ => {}
            }
        }
        None
    }

    /// True literals first, then open ones, then those that became false last.
    fn rank(&self, literal: Literal) -> u32 {
        match self.trail.value(literal) {
            1 => u32::MAX,
            0 => u32::MAX - 1,
            _ => self.trail.level_of(literal.choice()),
        }
    }
}

enum Watched {
    Keep(Watch),
    Moved,
    Broken,
}

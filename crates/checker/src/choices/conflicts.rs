//! Repeated values in long histories: contradictions tell which choices to change.
//!
//! All reads are taken to have seen something, and the level is decided for that. If it is
//! violated, the reads that the violation rests on did not all see what was chosen for
//! them: a clause for the solver, which then chooses anew. When no choice is left, the level
//! is violated, and when one satisfies it, it holds. So the search is complete, but for its
//! limit of work, and takes as many attempts as there are contradictions, not choices.
//!
//! **What must stay true.** A clause follows from the history. The choices it names, and
//! no others, are made once more, and the level must still be violated; reads that are left
//! open constrain nothing. Where it is not, the clause names all choices: transactions
//! of unknown outcome count only if somebody saw them.

use super::{Effort, Search, Tried, Violations};
use crate::anomaly::{Anomaly, Evidence};
use crate::evidence::Edge;
use crate::unknown::Limit;
use crate::weak::Decision;
use acyclic::{KnownEdges, Literal, Phase, Refine, Refined, Solver};
use hashbrown::HashSet;
use isolde_history::{Choice, Index, OpId, Origin};

/// How much work it may do, in operations indexed again.
const WORK_MAX: usize = 1 << 25;
/// Attempts that are a little effort.
const ATTEMPTS_OF_LITTLE: usize = 1 << 3;

/// Searches for choices that satisfy the level, beginning with `guess`, one for each read
/// of `index` with several origins.
pub(super) fn search(
    search: &Search<'_>,
    index: &Index,
    guess: &[Choice],
    effort: Effort,
) -> Tried {
    let mut solver = Solver::new(&[], KnownEdges::from_edges(0, &[])).expect("there is no edge");
    let mut reads = Vec::with_capacity(guess.len());
    for (several, guessed) in index.several().iter().zip(guess) {
        let mut origins: Vec<(Origin, Literal)> = Vec::with_capacity(several.candidates.len());
        for &origin in &several.candidates {
            let phase = if origin == guessed.origin { Phase::Yes } else { Phase::No };
            origins.push((origin, solver.choice(&[], &[], phase).yes()));
        }
        let literals: Vec<Literal> = origins.iter().map(|&(_, literal)| literal).collect();
        solver.clause(&literals, NO_CASE);
        // What was guessed is taken where several hold.
        origins.sort_by_key(|&(origin, _)| origin != guessed.origin);
        reads.push(Read { guessed: *guessed, origins });
    }
    let work = match effort {
        Effort::Little => WORK_MAX.min(ATTEMPTS_OF_LITTLE * (search.history.op_count() + 1)),
        Effort::Most => WORK_MAX,
    };
    let mut attempts = Attempts { search, reads, cases: Vec::new(), work, ended: None };
    let limits = acyclic::Limits {
        stop: search.limits.stop,
        memory_bytes_max: search.limits.working_bytes_max,
        ..acyclic::Limits::NONE
    };
    let answer = solver.solve(&mut attempts, &limits);
    match answer {
        acyclic::Answer::Satisfied => attempts.ended.expect("it was accepted by an attempt"),
        acyclic::Answer::Violated(refutation) => {
            if index.several().iter().any(|several| !several.complete) {
                return Tried::GaveUp;
            }
            Tried::Violated(attempts.violations(&refutation))
        }
        acyclic::Answer::Stopped(acyclic::Stop::Memory) => Tried::Limit(Limit::Memory),
        acyclic::Answer::Stopped(_) => Tried::Limit(search.limits.reached()),
    }
}

/// The tag of clauses that say that a read saw something.
const NO_CASE: u32 = u32::MAX;

/// A read with several origins, the guessed one first, and what says that it saw them.
struct Read {
    guessed: Choice,
    origins: Vec<(Origin, Literal)>,
}

struct Attempts<'a> {
    search: &'a Search<'a>,
    reads: Vec<Read>,
    /// How choices violate the level, by the tag of the clause.
    cases: Vec<Anomaly>,
    work: usize,
    ended: Option<Tried>,
}

impl Attempts<'_> {
    /// What the solver takes every read to have seen.
    fn made(&self, solver: &Solver) -> Vec<(Choice, Literal)> {
        let taken = |read: &Read| {
            let holds = |literal| solver.value(literal) == Some(true);
            let &(origin, literal) =
                read.origins.iter().find(|it| holds(it.1)).expect("one holds at least");
            (Choice { origin, ..read.guessed }, literal)
        };
        self.reads.iter().map(taken).collect()
    }

    /// What comes of these choices; nothing if the work is used up, or if they satisfy the
    /// level only as long as reads are open. A choice may make a transaction count that was left
    /// out, and what that one read may be open too.
    fn decide(&mut self, made: &[(Choice, Literal)]) -> Option<Decision> {
        self.work = self.work.checked_sub(self.search.history.op_count() + 1)?;
        self.search.limits.spend(super::indexing(self.search.history));
        let choices: Vec<Choice> = made.iter().map(|it| it.0).collect();
        let (history, candidates) = (self.search.history, self.search.rule.candidates);
        let index = Index::choosing(history, candidates, &choices);
        let decision = self.search.decide(&index);
        let is_open = matches!(decision, Decision::Satisfied(_)) && !index.several().is_empty();
        (!is_open).then_some(decision)
    }

    /// The choices among those made that an anomaly rests on, and how they violate the
    /// level by themselves; all of them if they do not.
    fn core(
        &mut self,
        made: Vec<(Choice, Literal)>,
        anomaly: Anomaly,
    ) -> (Vec<(Choice, Literal)>, Anomaly) {
        let mut ops = HashSet::new();
        named(&anomaly, &mut ops);
        let rest: Vec<(Choice, Literal)> =
            made.iter().copied().filter(|(choice, _)| ops.contains(&choice.op)).collect();
        if rest.len() == made.len() {
            return (made, anomaly);
        }
        match self.decide(&rest) {
            Some(Decision::Violated(anomaly)) => (rest, anomaly),
            _ => (made, anomaly),
        }
    }

    /// The cases that a refutation needs.
    fn violations(self, refutation: &acyclic::Refutation) -> Violations {
        let mut tags: Vec<u32> = refutation
            .steps
            .iter()
            .filter_map(|step| match step {
                acyclic::Step::Input { tag, .. } if *tag != NO_CASE => Some(*tag),
                _ => None,
            })
            .collect();
        tags.sort_unstable();
        tags.dedup();
        let kept = tags.iter().map(|&tag| self.cases[tag as usize].clone());
        Violations { kept: kept.take(super::CASES_MAX).collect(), count: tags.len() }
    }
}

impl Refine for Attempts<'_> {
    fn refine(&mut self, solver: &mut Solver, _: &[acyclic::Node]) -> Refined {
        let made = self.made(solver);
        let anomaly = match self.decide(&made) {
            None => {
                self.ended = Some(Tried::GaveUp);
                return Refined::Complete;
            }
            Some(Decision::Limit(limit)) => {
                self.ended = Some(Tried::Limit(limit));
                return Refined::Complete;
            }
            Some(Decision::Satisfied(order)) => {
                let choices = made.into_iter().map(|it| it.0).collect();
                self.ended = Some(Tried::Satisfied(order, choices));
                return Refined::Complete;
            }
            Some(Decision::Violated(anomaly)) => anomaly,
        };
        let (core, anomaly) = self.core(made, anomaly);
        let clause: Vec<Literal> = core.iter().map(|&(_, literal)| !literal).collect();
        solver.clause(&clause, self.cases.len() as u32);
        self.cases.push(anomaly);
        Refined::Added
    }
}

/// All operations that an anomaly rests on, but for those whose lists show an order: these say so
/// whatever else they saw.
fn named(anomaly: &Anomaly, ops: &mut HashSet<OpId>) {
    if let Evidence::Operations { ops: shown, .. } = &anomaly.evidence {
        ops.extend(shown);
    }
    let edges = anomaly.evidence.all_edges().into_iter().filter(|edge| !edge.is_version());
    ops.extend(edges.filter_map(Edge::read));
}

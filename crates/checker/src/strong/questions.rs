//! What the solver is asked about one order of commits.
//!
//! Variables are orders of two versions or of two transactions, and what each read of a
//! repeated value saw. They and the clauses about them are made when an order of the
//! solver gets them wrong.

use super::commits::Commits;
use super::model::Node;
use super::orders::witness::Pair;
use super::search::{Asked, Input, Variable};
use super::versions::{INITIAL_SLOT, Slot, Versions};
use acyclic::{Choice, Edge, Literal, Phase, Refine, Refined, Solver};
use hashbrown::HashMap;
use isolde_certificate::{ChosenOrigin, Clause};
use isolde_history::{KeyId, ReadId, TxnId};

/// Asks what an order gets wrong.
pub(super) trait Asking {
    /// Adds clauses that the solver's order breaks. `moved` as [`Refine::refine`] has it.
    fn ask(
        &mut self,
        questions: &mut Questions<'_>,
        solver: &mut Solver,
        moved: &[Node],
    ) -> Refined;
}

/// The versions of every key in the order of their writers' positions.
pub(super) struct Sorted {
    /// Key by key, as the slots lie.
    slots: Vec<Slot>,
    /// Per slot, where it is in `slots`.
    places: Vec<u32>,
    /// Per key, where it starts.
    starts: Vec<u32>,
}

impl Sorted {
    pub(super) fn new(versions: &Versions<'_>, positions: &[u32]) -> Self {
        let slots: Vec<Slot> = (0..versions.index.writers().len() as Slot).collect();
        let mut starts: Vec<u32> =
            versions.history.keys().map(|key| versions.slots_of(key).start).collect();
        starts.push(slots.len() as u32);
        let mut sorted = Sorted { places: slots.clone(), slots, starts };
        for key in versions.history.keys() {
            sorted.sort(versions, positions, key);
        }
        sorted
    }

    pub(super) fn sort(&mut self, versions: &Versions<'_>, positions: &[u32], key: KeyId) {
        let range = self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize;
        let slots = &mut self.slots[range.clone()];
        slots.sort_unstable_by_key(|&slot| positions[versions.writer(slot).index()]);
        for place in range {
            self.places[self.slots[place] as usize] = place as u32;
        }
    }

    /// The versions of a key after one of them; all are after the initial one.
    pub(super) fn after(&self, key: KeyId, slot: Slot) -> &[Slot] {
        let (start, end) = (self.starts[key.index()], self.starts[key.index() + 1]);
        let start = if slot == INITIAL_SLOT { start } else { self.places[slot as usize] + 1 };
        &self.slots[start as usize..end as usize]
    }

    /// The version of a key before one of them.
    pub(super) fn before(&self, key: KeyId, slot: Slot) -> Option<Slot> {
        let place = self.places[slot as usize];
        (place > self.starts[key.index()]).then(|| self.slots[place as usize - 1])
    }
}

/// What was asked so far, and the order it is asked about.
pub(super) struct Questions<'a> {
    pub(super) commits: &'a Commits<'a>,
    pub(super) asked: Asked,
    pub(super) sorted: Sorted,
    /// Per external read, the version it saw or is taken to have seen.
    pub(super) seen: Vec<Slot>,
    /// Per read of a repeated value, the variable of what it is taken to have seen.
    taken: HashMap<ReadId, Literal>,
    pairs: HashMap<Pair, Choice>,
    befores: HashMap<(Node, Node), Choice>,
    /// Per read in `commits.repeated`, its choices in the order of the origins.
    origins: Vec<Vec<Choice>>,
    sorted_in: Vec<u32>,
    orders: u32,
}

/// [`Questions`] and who asks them.
pub(super) struct Inquiry<'a, L> {
    pub(super) questions: Questions<'a>,
    pub(super) level: L,
}

impl<'a> Questions<'a> {
    /// Tells the solver that every read of a repeated value saw something.
    pub(super) fn new(commits: &'a Commits<'a>, solver: &mut Solver) -> Self {
        let versions = commits.versions;
        let mut questions = Questions {
            commits,
            asked: Asked::default(),
            sorted: Sorted::new(versions, solver.positions()),
            seen: versions.seen.clone(),
            taken: HashMap::new(),
            pairs: HashMap::new(),
            befores: HashMap::new(),
            origins: Vec::new(),
            sorted_in: vec![0; versions.history.key_count()],
            orders: 0,
        };
        for read in commits.repeated {
            let mut choices = Vec::with_capacity(read.origins.len());
            for &writer in &read.origins {
                let edge = writer.map(|writer| Edge::new(writer.0, read.reader.0));
                choices.push(solver.choice(edge.as_slice(), &[], Phase::No));
                let origin = ChosenOrigin { read: read.op, key: read.key, writer };
                questions.asked.variables.push(Variable::Origin(origin));
            }
            let literals: Vec<Literal> = choices.iter().map(|choice| choice.yes()).collect();
            let clause = Clause::OneOrigin { read: read.op, key: read.key };
            questions.clause(solver, &literals, Input::Clause(clause));
            questions.origins.push(choices);
        }
        questions
    }

    pub(super) fn clause(&mut self, solver: &mut Solver, literals: &[Literal], input: Input) {
        solver.clause(literals, self.asked.inputs.len() as u32);
        self.asked.inputs.push(input);
    }

    /// Whether nothing was asked about an order yet.
    pub(super) fn is_first(&self) -> bool {
        self.orders == 1
    }

    /// Follows the solver to its new order.
    fn follow(&mut self, solver: &Solver, moved: &[Node]) {
        self.orders += 1;
        let versions = self.commits.versions;
        // Until the first order is shown, `moved` says nothing.
        if self.is_first() {
            self.sorted = Sorted::new(versions, solver.positions());
        }
        for &node in moved.iter().filter(|&&node| versions.index.is_counted(TxnId(node))) {
            for &key in versions.index.written_by(TxnId(node)) {
                if self.sorted_in[key.index()] != self.orders {
                    self.sorted_in[key.index()] = self.orders;
                    self.sorted.sort(versions, solver.positions(), key);
                }
            }
        }
        for (place, read) in self.commits.repeated.iter().enumerate() {
            let choices = self.origins[place].iter().zip(&read.origins);
            let mut taken = choices.filter(|(choice, _)| solver.value(choice.yes()) == Some(true));
            let (choice, &origin) = taken.next().expect("one origin at least is chosen");
            self.taken.insert(read.read, choice.yes());
            self.seen[read.read.0 as usize] = match origin {
                Some(writer) => versions.slot(read.key, writer).expect("it wrote the value"),
                None => INITIAL_SLOT,
            };
        }
    }

    /// What reads of repeated values are taken to have seen.
    pub(super) fn origins_taken(&self) -> Vec<ChosenOrigin> {
        let origin = |literal: &Literal| match self.asked.variables[literal.choice().index()] {
            Variable::Origin(origin) => Some(origin),
            _ => None,
        };
        self.commits.repeated.iter().filter_map(|it| origin(&self.taken[&it.read])).collect()
    }

    /// What a read of a repeated value rests on.
    pub(super) fn taken(&self, read: ReadId) -> Option<Literal> {
        self.taken.get(&read).copied()
    }

    /// The literal that says that the first version comes before the second.
    pub(super) fn pair(&mut self, solver: &mut Solver, pair: Pair) -> Literal {
        let Pair { first, second } = pair;
        let named = Pair { first: first.min(second), second: first.max(second) };
        let versions = self.commits.versions;
        let (one, other) = (versions.writer(named.first).0, versions.writer(named.second).0);
        let variables = &mut self.asked.variables;
        let choice = *self.pairs.entry(named).or_insert_with(|| {
            variables.push(Variable::Pair(named));
            ordered(solver, one, other)
        });
        if named == pair { choice.yes() } else { choice.no() }
    }

    /// The literal that says that the first transaction comes before the second.
    pub(super) fn before(&mut self, solver: &mut Solver, first: TxnId, second: TxnId) -> Literal {
        let named = (first.0.min(second.0), first.0.max(second.0));
        let variables = &mut self.asked.variables;
        let choice = *self.befores.entry(named).or_insert_with(|| {
            variables.push(Variable::Before { from: named.0, to: named.1 });
            ordered(solver, named.0, named.1)
        });
        if named.0 == first.0 { choice.yes() } else { choice.no() }
    }
}

/// A choice which of two nodes comes first; as it is now, if nothing speaks against it.
fn ordered(solver: &mut Solver, one: Node, other: Node) -> Choice {
    let forward = solver.positions()[one as usize] < solver.positions()[other as usize];
    let phase = if forward { Phase::Yes } else { Phase::No };
    solver.choice(&[Edge::new(one, other)], &[Edge::new(other, one)], phase)
}

impl<L: Asking> Refine for Inquiry<'_, L> {
    fn refine(&mut self, solver: &mut Solver, moved: &[Node]) -> Refined {
        self.questions.follow(solver, moved);
        self.level.ask(&mut self.questions, solver, moved)
    }
}

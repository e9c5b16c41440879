//! What is left open, decided by the solver.
//!
//! A choice is a pair of versions of one key: one of them comes first, and who read it
//! begins before the other's writer commits. Pairs become choices only when an order
//! of events gets them wrong, so hot keys with many writers cost what is really
//! undecided. The first order is the guess.
//!
//! Where values repeat, which version a read saw is open too [`VeriStrong`]: one variable
//! for each possible origin, at least one of which holds. If it does, then another
//! writer of the key comes before that origin, or the reader before it. These clauses
//! too are made only when an order breaks them.

use super::conditions::Choosable;
use super::graph::{Graph, Why};
use super::model::{Model, Node};
use super::orders::witness::{Pair, Witness, suspects};
use super::repeated::Repeated;
use super::solving::in_order;
use super::versions::{INITIAL_SLOT, Slot, Versions};
use acyclic::{Choice, Edge, KnownEdges, Literal, Phase, Refine, Refined, Solver};
use hashbrown::HashMap;
use isolde_certificate::{ChosenOrigin, Clause};
use isolde_history::{KeyId, ReadId, TxnId};

/// What a choice of the solver is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// The first version comes before the second.
    Pair(Pair),
    /// The read saw this.
    Origin(ChosenOrigin),
    /// One event comes before another.
    Before {
        /// The one.
        from: Node,
        /// The other.
        to: Node,
    },
}

/// What the solver was asked.
#[derive(Default)]
pub(super) struct Asked {
    /// By choice.
    pub(super) variables: Vec<Variable>,
    /// By tag.
    pub(super) inputs: Vec<Input>,
}

/// Why a clause that the solver was given holds.
pub(super) enum Input {
    /// For this reason.
    Clause(Clause),
    /// The literals of a cycle do not all hold.
    Cycle(Vec<CycleEdge>),
}

/// An edge of a cycle that was found outside of the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CycleEdge {
    pub(super) from: Node,
    pub(super) to: Node,
    pub(super) because: Because,
}

/// Why an edge of a cycle holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Because {
    /// It is known.
    Known(Why),
    /// If the literal does.
    Literal(Literal),
    /// If the versions come in this order, and the read saw the first of them.
    Overwritten {
        /// The order of the versions.
        order: Literal,
        /// What the read saw.
        origin: Literal,
    },
}

/// Asks the solver what an order gets wrong.
pub(super) struct Search<'a> {
    model: &'static Model,
    versions: &'a Versions<'a>,
    repeated: &'a [Repeated],
    witness: Witness<'a>,
    pub(super) asked: Asked,
    pairs: HashMap<Pair, Choice>,
    befores: HashMap<(Node, Node), Choice>,
    /// Per read in `repeated` and then in `looked`, its choices in the order of the origins.
    origins: Vec<Vec<Choice>>,
    /// What reads by condition may have seen, and those of it that an order got wrong.
    choosable: Choosable<'a, 'a>,
    looked: Vec<Repeated>,
    /// Per key, the last refinement that looked at it.
    looked_at: Vec<u32>,
    refinements: u32,
    wrong: Vec<Pair>,
    edges: [Vec<Edge>; 2],
}

impl<'a> Search<'a> {
    pub(super) fn new(
        model: &'static Model,
        versions: &'a Versions<'a>,
        repeated: &'a [Repeated],
    ) -> Self {
        Search {
            model,
            versions,
            repeated,
            witness: Witness::new(model, versions),
            asked: Asked::default(),
            pairs: HashMap::new(),
            befores: HashMap::new(),
            origins: Vec::new(),
            choosable: Choosable::new(model, versions),
            looked: Vec::new(),
            looked_at: vec![0; versions.history.key_count()],
            refinements: 0,
            wrong: Vec::new(),
            edges: [Vec::new(), Vec::new()],
        }
    }

    /// Tells the solver that every read of a repeated value saw something.
    pub(super) fn begin(&mut self, solver: &mut Solver) {
        for read in self.repeated {
            self.choose_origin(solver, read);
        }
    }

    fn choose_origin(&mut self, solver: &mut Solver, read: &Repeated) {
        let begin = self.model.begin(read.reader);
        let likely = self.likely_origin(solver.positions(), read);
        let mut choices = Vec::with_capacity(read.origins.len());
        for (place, &writer) in read.origins.iter().enumerate() {
            let edge = writer.map(|writer| Edge::new(self.model.commit(writer), begin));
            let phase = if Some(place) == likely { Phase::Yes } else { Phase::No };
            let choice = solver.choice(edge.as_slice(), &[], phase);
            let origin = ChosenOrigin { read: read.op, key: read.key, writer };
            self.asked.variables.push(Variable::Origin(origin));
            choices.push(choice);
        }
        let clause = Clause::OneOrigin { read: read.op, key: read.key };
        let literals: Vec<Literal> = choices.iter().map(|choice| choice.yes()).collect();
        self.clause(solver, &literals, clause);
        self.origins.push(choices);
    }

    /// The place of the origin to try first: the last that the database's snapshot sees,
    /// or that commits before the reader begins in the order so far.
    fn likely_origin(&self, positions: &[u32], read: &Repeated) -> Option<usize> {
        let history = self.versions.history;
        let snapshot = history.snapshot(read.reader, read.op);
        let begins_at = positions[self.model.begin(read.reader) as usize];
        let commit = |txn| positions[self.model.commit(txn) as usize];
        let is_before = |txn| match (snapshot, history.number(txn)) {
            (Some(snapshot), Some(number)) => snapshot.sees(number),
            _ => commit(txn) < begins_at,
        };
        let rank = |&(_, writer): &(usize, &Option<TxnId>)| match *writer {
            None => (true, 0),
            Some(txn) => (is_before(txn), commit(txn) + 1),
        };
        read.origins.iter().enumerate().max_by_key(rank).map(|(place, _)| place)
    }

    fn clause(&mut self, solver: &mut Solver, literals: &[Literal], clause: Clause) {
        solver.clause(literals, self.asked.inputs.len() as u32);
        self.asked.inputs.push(Input::Clause(clause));
    }

    fn look_at(&mut self, key: KeyId, positions: &[u32]) {
        let settled = self.versions.settled[key.index()];
        if !settled && self.looked_at[key.index()] != self.refinements {
            self.looked_at[key.index()] = self.refinements;
            let reads_of = |slot| self.versions.reads_of(slot).iter().copied();
            self.witness.check(key, positions, reads_of, &mut self.wrong);
        }
    }

    fn look_at_moved(&mut self, moved: &[Node], positions: &[u32]) {
        let events = self.model.events_of(self.versions.history.txn_count()) as Node;
        for &node in moved.iter().filter(|&&node| node < events) {
            let txn = self.model.txn(node);
            if !self.versions.index.is_counted(txn) {
                continue;
            }
            for &key in self.versions.index.written_by(txn) {
                self.look_at(key, positions);
            }
            for read in self.versions.index.read_range(txn) {
                if self.versions.seen[read as usize] < INITIAL_SLOT {
                    self.look_at(self.versions.index.read(ReadId(read)).key, positions);
                }
            }
        }
    }

    /// The literal that says that the first version of the pair comes first, and
    /// whether it is new.
    fn pair(&mut self, solver: &mut Solver, pair: Pair) -> (Literal, bool) {
        let Pair { first, second } = pair;
        let named = Pair { first: first.min(second), second: first.max(second) };
        let side = |choice: Choice| if named == pair { choice.yes() } else { choice.no() };
        if let Some(&choice) = self.pairs.get(&named) {
            return (side(choice), false);
        }
        let [mut yes, mut no] = std::mem::take(&mut self.edges);
        let turned = Pair { first: named.second, second: named.first };
        for (pair, edges) in [(named, &mut yes), (turned, &mut no)] {
            edges.clear();
            let reads = self.versions.reads_of(pair.first).iter().copied();
            pair.each_edge(self.model, self.versions, reads, |from, to| {
                edges.push(Edge::new(from, to));
            });
        }
        let phase = if named == pair { Phase::Yes } else { Phase::No };
        let choice = solver.choice(&yes, &no, phase);
        self.edges = [yes, no];
        self.asked.variables.push(Variable::Pair(named));
        self.pairs.insert(named, choice);
        (side(choice), true)
    }

    fn before(&mut self, solver: &mut Solver, from: Node, to: Node) -> Literal {
        let variables = &mut self.asked.variables;
        let choice = *self.befores.entry((from, to)).or_insert_with(|| {
            variables.push(Variable::Before { from, to });
            solver.choice(&[Edge::new(from, to)], &[Edge::new(to, from)], Phase::Yes)
        });
        choice.yes()
    }

    /// Asks about the read of a repeated value at this place, if the order explains no
    /// origin that was chosen for it.
    fn look_at_repeated(&mut self, solver: &mut Solver, place: usize, read: &Repeated) -> Refined {
        if !read.protected {
            return Refined::Complete;
        }
        let mut first_wrong = None;
        for (number, &writer) in read.origins.iter().enumerate() {
            let choice = self.origins[place][number];
            if solver.value(choice.yes()) != Some(true) {
                continue;
            }
            let Some(other) = self.missed(solver.positions(), read, writer) else {
                return Refined::Complete;
            };
            first_wrong.get_or_insert((choice, writer, other));
        }
        let (choice, writer, other) = first_wrong.expect("one origin at least is chosen");
        let (begin, commit) =
            (self.model.begin(read.reader), self.model.commit(self.versions.writer(other)));
        let Some(writer) = writer else {
            solver.extend(choice.yes(), &[Edge::new(begin, commit)]);
            return Refined::Added;
        };
        let seen = self.versions.slot(read.key, writer).expect("it wrote the value");
        let (earlier, _) = self.pair(solver, Pair { first: other, second: seen });
        let after = self.before(solver, begin, commit);
        let other = self.versions.writer(other);
        let clause = Clause::SeenOrAfter { read: read.op, key: read.key, writer, other };
        self.clause(solver, &[!choice.yes(), earlier, after], clause);
        Refined::Added
    }

    /// A version that the reader should have seen instead of the one by `writer`.
    fn missed(&self, positions: &[u32], read: &Repeated, writer: Option<TxnId>) -> Option<Slot> {
        let commit = |txn| positions[self.model.commit(txn) as usize];
        let seen_at = writer.map(commit);
        let begins_at = positions[self.model.begin(read.reader) as usize];
        self.versions.slots_of(read.key).find(|&slot| {
            let other = self.versions.writer(slot);
            Some(other) != writer
                && other != read.reader
                && seen_at.is_none_or(|seen_at| commit(other) > seen_at)
                && commit(other) < begins_at
        })
    }
}

impl Refine for Search<'_> {
    fn refine(&mut self, solver: &mut Solver, moved: &[Node]) -> Refined {
        self.refinements += 1;
        if self.refinements == 1 {
            let positions = solver.positions();
            let order = in_order(positions);
            for key in suspects(self.model, self.versions, &order, positions).wrong_keys() {
                self.look_at(key, positions);
            }
        } else {
            self.look_at_moved(moved, solver.positions());
        }
        let mut refined = Refined::Complete;
        for pair in std::mem::take(&mut self.wrong) {
            if self.pair(solver, pair).1 {
                refined = Refined::Added;
            }
        }
        for (place, read) in self.repeated.iter().enumerate() {
            if self.look_at_repeated(solver, place, read) == Refined::Added {
                refined = Refined::Added;
            }
        }
        let looked = std::mem::take(&mut self.looked);
        for (place, read) in (self.repeated.len()..).zip(&looked) {
            if self.look_at_repeated(solver, place, read) == Refined::Added {
                refined = Refined::Added;
            }
        }
        self.looked = looked;
        for read in self.choosable.take_wrong(solver.positions()) {
            self.choose_origin(solver, &read);
            self.looked.push(read);
            refined = Refined::Added;
        }
        refined
    }
}

/// The edges of the graph as the solver wants them.
pub(super) fn known_edges(graph: &Graph) -> KnownEdges {
    let mut starts = Vec::with_capacity(graph.node_count() + 1);
    let mut before = Vec::with_capacity(graph.edge_count());
    starts.push(0);
    for node in 0..graph.node_count() as Node {
        before.extend(graph.before(node));
        starts.push(before.len() as u32);
    }
    KnownEdges { starts, before }
}

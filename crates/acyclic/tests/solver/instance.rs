//! Instances, their brute force, and one way to run the solver on them.

use crate::checker;
use acyclic::{
    Answer, Choice, Edge, KnownEdges, Limits, Literal, Node, NothingHidden, Phase, Refine, Refined,
    Solver, Statistics,
};

/// A choice of an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sides {
    pub(crate) yes: Vec<Edge>,
    pub(crate) no: Vec<Edge>,
    /// Edges of each side the solver is told only when an order lacks them.
    pub(crate) hidden_yes: Vec<Edge>,
    pub(crate) hidden_no: Vec<Edge>,
    pub(crate) prefers_no: bool,
}

/// Everything the solver may be told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instance {
    pub(crate) order: Vec<Node>,
    pub(crate) known: Vec<Edge>,
    pub(crate) choices: Vec<Sides>,
    /// Choices from this one on are hidden until an order violates them.
    pub(crate) hidden_choices: Option<usize>,
    pub(crate) clauses: Vec<Vec<(usize, bool)>>,
    /// Clauses from this one on are hidden until an order violates them.
    pub(crate) hidden_clauses: Option<usize>,
}

impl Instance {
    fn all_edges(&self, choice: usize, yes: bool) -> impl Iterator<Item = Edge> + '_ {
        let sides = &self.choices[choice];
        let (told, hidden) =
            if yes { (&sides.yes, &sides.hidden_yes) } else { (&sides.no, &sides.hidden_no) };
        told.iter().chain(hidden).copied()
    }

    /// The edges of a side, told or hidden, by the solver's literal.
    pub(crate) fn side_of(&self, choice: usize, literal: Literal) -> Vec<Edge> {
        self.all_edges(choice, checker::is_yes(literal)).collect()
    }

    /// Whether some assignment leaves no cycle, by trying all.
    pub(crate) fn is_satisfiable(&self) -> bool {
        (0u32..1 << self.choices.len()).any(|taken| {
            let yes = |choice: usize| taken >> choice & 1 == 1;
            let holds = |clause: &Vec<(usize, bool)>| {
                clause.iter().any(|&(choice, side)| yes(choice) == side)
            };
            self.clauses.iter().all(holds) && {
                let chosen =
                    (0..self.choices.len()).flat_map(|choice| self.all_edges(choice, yes(choice)));
                is_acyclic(self.order.len(), self.known.iter().copied().chain(chosen))
            }
        })
    }
}

/// Whether nodes without predecessors can be removed until none is left.
fn is_acyclic(nodes: usize, edges: impl Iterator<Item = Edge>) -> bool {
    let mut edges: Vec<Edge> = edges.collect();
    let mut left: Vec<Node> = (0..nodes as Node).collect();
    loop {
        let before = left.len();
        left.retain(|&node| edges.iter().any(|edge| edge.to == node));
        edges.retain(|edge| left.contains(&edge.from));
        if left.len() == before {
            return left.is_empty();
        }
    }
}

/// Tells the solver what is hidden, once an order lacks it.
struct Hidden<'a> {
    instance: &'a Instance,
    /// The solver's choice for each choice of the instance.
    told: Vec<Option<Choice>>,
    /// The other way round.
    choices: Vec<usize>,
    extended: Vec<[bool; 2]>,
    clause_told: Vec<bool>,
    positions: Vec<u32>,
    calls: usize,
    /// How many things are told at a time.
    at_once: usize,
}

impl<'a> Hidden<'a> {
    fn new(instance: &'a Instance, at_once: usize) -> Self {
        Hidden {
            instance,
            told: vec![None; instance.choices.len()],
            choices: Vec::new(),
            extended: vec![[false; 2]; instance.choices.len()],
            clause_told: vec![false; instance.clauses.len()],
            positions: Vec::new(),
            calls: 0,
            at_once,
        }
    }

    fn tell_choice(&mut self, solver: &mut Solver, choice: usize) {
        let sides = &self.instance.choices[choice];
        let phase = if sides.prefers_no { Phase::No } else { Phase::Yes };
        self.told[choice] = Some(solver.choice(&sides.yes, &sides.no, phase));
        self.choices.push(choice);
    }

    fn tell_clause(&mut self, solver: &mut Solver, clause: usize) {
        let literals: Vec<Literal> =
            self.instance.clauses[clause].iter().map(|&named| self.literal(named)).collect();
        solver.clause(&literals, clause as u32);
        self.clause_told[clause] = true;
    }

    fn literal(&self, (choice, yes): (usize, bool)) -> Literal {
        let choice = self.told[choice].expect("clauses name choices that are told");
        if yes { choice.yes() } else { choice.no() }
    }

    /// What moved must be among `moved`, each node once.
    fn check_moved(&mut self, solver: &Solver, moved: &[Node]) {
        if self.calls == 0 {
            assert!(moved.is_empty());
        } else {
            let mut sorted = moved.to_vec();
            sorted.sort_unstable();
            assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]), "a node came twice");
            for node in 0..self.positions.len() {
                let changed = self.positions[node] != solver.positions()[node];
                assert!(!changed || sorted.binary_search(&(node as Node)).is_ok());
            }
        }
        self.calls += 1;
        self.positions = solver.positions().to_vec();
    }
}

impl Refine for Hidden<'_> {
    fn refine(&mut self, solver: &mut Solver, moved: &[Node]) -> Refined {
        self.check_moved(solver, moved);
        let instance = self.instance;
        let positions = self.positions.clone();
        let agree = |edges: &[Edge]| {
            edges.iter().all(|edge| positions[edge.from as usize] < positions[edge.to as usize])
        };
        let mut left = self.at_once;
        for (choice, sides) in instance.choices.iter().enumerate() {
            let Some(told) = self.told[choice] else {
                let fine = (agree(&sides.yes) && agree(&sides.hidden_yes))
                    || (agree(&sides.no) && agree(&sides.hidden_no));
                if !fine && left > 0 {
                    self.tell_choice(solver, choice);
                    left -= 1;
                }
                continue;
            };
            let side = solver.side(told);
            let index = usize::from(side == told.no());
            let hidden = [&sides.hidden_yes, &sides.hidden_no][index];
            if !self.extended[choice][index] && !agree(hidden) && left > 0 {
                self.extended[choice][index] = true;
                solver.extend(side, hidden);
                left -= 1;
            }
        }
        for (clause, literals) in instance.clauses.iter().enumerate() {
            let holds = |&named: &(usize, bool)| {
                let literal = self.literal(named);
                solver.side(literal.choice()) == literal
            };
            if !self.clause_told[clause] && !literals.iter().any(holds) && left > 0 {
                self.tell_clause(solver, clause);
                left -= 1;
            }
        }
        if left == self.at_once { Refined::Complete } else { Refined::Added }
    }
}

/// What a run found, checked.
pub(crate) struct Found {
    pub(crate) satisfied: bool,
    pub(crate) steps: usize,
    pub(crate) statistics: Statistics,
}

/// How to run the solver.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// How many hidden things are told at a time.
    pub(crate) at_once: usize,
    /// The search stops after so many conflicts and is continued.
    pub(crate) conflicts_max: Option<u64>,
}

pub(crate) const PLAIN: Run = Run { at_once: usize::MAX, conflicts_max: None };

/// Runs the solver and checks its answer: an order against all edges and
/// clauses, a refusal by its proof.
pub(crate) fn solve(instance: &Instance, run: Run) -> Found {
    let (mut solver, mut hidden) = begin(instance, run);
    let limits = Limits { conflicts_max: run.conflicts_max, ..Limits::NONE };
    let answer = loop {
        match solver.solve(&mut hidden, &limits) {
            Answer::Stopped(_) => {}
            answer => break answer,
        }
    };
    let statistics = solver.statistics();
    match answer {
        Answer::Satisfied => {
            check_order(instance, &solver, &hidden);
            Found { satisfied: true, steps: 0, statistics }
        }
        Answer::Violated(refutation) => {
            checker::check(instance, &hidden.choices, &refutation);
            let again = solver.solve(&mut NothingHidden, &Limits::NONE);
            assert!(matches!(again, Answer::Violated(_)), "a refusal is final");
            Found { satisfied: false, steps: refutation.steps.len(), statistics }
        }
        Answer::Stopped(_) => unreachable!("the loop goes on"),
    }
}

fn begin(instance: &Instance, run: Run) -> (Solver, Hidden<'_>) {
    let known = KnownEdges::from_edges(instance.order.len(), &instance.known);
    let mut solver = Solver::new(&instance.order, known).expect("an order");
    let mut hidden = Hidden::new(instance, run.at_once);
    for choice in 0..instance.hidden_choices.unwrap_or(instance.choices.len()) {
        hidden.tell_choice(&mut solver, choice);
    }
    for clause in 0..instance.hidden_clauses.unwrap_or(instance.clauses.len()) {
        hidden.tell_clause(&mut solver, clause);
    }
    (solver, hidden)
}

/// Whether CaDiCaL finds an order, which is checked.
#[cfg(feature = "cadical")]
pub(crate) fn solve_by_cadical(instance: &Instance, run: Run) -> bool {
    let (mut solver, mut hidden) = begin(instance, run);
    match solver.solve_by_cadical(&mut hidden, &Limits::NONE) {
        acyclic::Unproven::Satisfied => {
            check_order(instance, &solver, &hidden);
            true
        }
        acyclic::Unproven::Violated => false,
        acyclic::Unproven::Stopped(_) => unreachable!("there are no limits"),
    }
}

fn check_order(instance: &Instance, solver: &Solver, hidden: &Hidden<'_>) {
    let positions = solver.positions();
    let mut sorted = positions.to_vec();
    sorted.sort_unstable();
    assert!(sorted.iter().enumerate().all(|(place, &position)| place == position as usize));
    let forward = |edge: Edge| positions[edge.from as usize] < positions[edge.to as usize];
    assert!(instance.known.iter().all(|&edge| forward(edge)), "a known edge leads backward");
    for choice in 0..instance.choices.len() {
        let agrees = |yes: bool| instance.all_edges(choice, yes).all(forward);
        let fine = match hidden.told[choice] {
            None => agrees(true) || agrees(false),
            Some(told) => agrees(checker::is_yes(solver.side(told))),
        };
        assert!(fine, "choice {choice} has no side");
        if let Some(told) = hidden.told[choice]
            && let Some(taken) = solver.value(told.yes())
        {
            assert!(agrees(taken), "the side of choice {choice} leads backward");
        }
    }
    for (place, clause) in instance.clauses.iter().enumerate() {
        let holds = |&named: &(usize, bool)| {
            let literal = hidden.literal(named);
            solver.side(literal.choice()) == literal
        };
        assert!(clause.iter().any(holds), "clause {place} is false");
    }
}

//! What saturation leaves open, decided by trying everything, with a proof of failure.
//!
//! Which variables, edges and clauses there are is asked of the verifier alone.

use crate::derivations::{Edge, Prover};
use isolde_certificate::{
    ChosenOrigin, Clause, Derivation, End, Link, Literal, Node, Rule, Search, Step, Variable,
};
use isolde_history::TxnId;

/// Histories with more open questions are not searched.
const VARIABLES_MAX: usize = 12;

/// What saturation leaves open.
pub(crate) struct Open<'p, 'a> {
    prover: &'p Prover<'a>,
    variables: Vec<Variable>,
    /// By literal, the edges that it means.
    edges: Vec<Vec<Edge>>,
    /// The edges that two literals mean together.
    overwritten: Vec<Edge>,
    clauses: Vec<Clause>,
    literals: Vec<Vec<Literal>>,
}

impl<'p, 'a> Open<'p, 'a> {
    /// `None` if too much is open.
    pub(crate) fn of(prover: &'p Prover<'a>) -> Option<Self> {
        let mut open = Open {
            prover,
            variables: Vec::new(),
            edges: Vec::new(),
            overwritten: Vec::new(),
            clauses: Vec::new(),
            literals: Vec::new(),
        };
        let candidates = open.candidates();
        for variable in candidates {
            let refused = open.refusal(vec![variable], vec![Clause::Cycle(Vec::new())]);
            if refused.starts_with("clause ") {
                open.variables.push(variable);
            }
        }
        if open.variables.len() > VARIABLES_MAX {
            return None;
        }
        open.edges = (0..2 * open.variables.len() as u32)
            .map(|literal| open.edges_of(Literal(literal)))
            .collect();
        open.overwritten = open.overwritten();
        open.add_clauses_of_reads();
        Some(open)
    }

    fn candidates(&self) -> Vec<Variable> {
        let prover = self.prover;
        let mut candidates = Vec::new();
        for key in prover.history.keys() {
            for (place, &first) in prover.txns.iter().enumerate() {
                for &second in &prover.txns[place + 1..] {
                    candidates.push(Variable::Order { key, first, second });
                }
            }
        }
        for &(read, key) in &prover.reads {
            // A read with one origin is known already.
            let reader = prover.begin(prover.history.txn_of(read));
            let is_known = |step: &Step| match step.rule {
                Rule::ReadsFrom { read: known, key: of }
                | Rule::InitialRead { read: known, key: of } => (known, of) == (read, key),
                _ => false,
            };
            if prover.steps.iter().any(is_known) {
                continue;
            }
            let writers = prover.txns.iter().map(|&txn| Some(txn)).chain([None]);
            let origin = |writer| Variable::Origin(ChosenOrigin { read, key, writer });
            candidates.extend(writers.map(origin));
            let writes =
                |op| prover.history.op(op).kind.is_write() && prover.history.op(op).key == key;
            for &txn in prover.txns.iter().filter(|&&txn| prover.history.ops_of(txn).any(writes)) {
                candidates.push(Variable::Before { from: reader, to: Node::commit(txn) });
            }
        }
        let mut distinct: Vec<Variable> = Vec::new();
        for candidate in candidates {
            if !distinct.contains(&candidate) {
                distinct.push(candidate);
            }
        }
        distinct
    }

    fn refusal(&self, variables: Vec<Variable>, clauses: Vec<Clause>) -> String {
        let end = End::Search(Search { variables, clauses });
        self.prover.check_end(self.prover.steps.clone(), end).err().unwrap_or_default()
    }

    fn edges_of(&self, literal: Literal) -> Vec<Edge> {
        let mut edges = Vec::new();
        for from in self.prover.nodes() {
            for to in self.prover.nodes() {
                let link = Link::Literal { literal, from, to };
                let refused = self.refusal(self.variables.clone(), vec![Clause::Cycle(vec![link])]);
                // The edge is accepted, and does not close a cycle by itself.
                if refused.contains("expected to go on from") {
                    let is_anti = match self.variables[literal.variable() as usize] {
                        Variable::Order { first, second, .. } => {
                            let first = if literal.is_yes() { first } else { second };
                            from != Node::commit(first)
                        }
                        Variable::Origin(origin) => origin.writer.is_none(),
                        Variable::Before { .. } => false,
                    };
                    edges.push(Edge { from, to, is_anti, link });
                }
            }
        }
        edges
    }

    fn overwritten(&self) -> Vec<Edge> {
        let literals = (0..2 * self.variables.len() as u32).map(Literal);
        let variable = |literal: Literal| self.variables[literal.variable() as usize];
        let orders: Vec<Literal> =
            literals.clone().filter(|&it| matches!(variable(it), Variable::Order { .. })).collect();
        let mut edges = Vec::new();
        for origin in literals {
            let Variable::Origin(ChosenOrigin { read, .. }) = variable(origin) else { continue };
            let from = self.prover.begin(self.prover.history.txn_of(read));
            for &order in &orders {
                for to in self.prover.nodes() {
                    let link = Link::Overwritten { order, origin, from, to };
                    let refused =
                        self.refusal(self.variables.clone(), vec![Clause::Cycle(vec![link])]);
                    if refused.contains("expected to go on from") {
                        edges.push(Edge { from, to, is_anti: true, link });
                    }
                }
            }
        }
        edges
    }

    fn place(&self, variable: Variable) -> Option<u32> {
        self.variables.iter().position(|&it| it == variable).map(|place| place as u32)
    }

    fn add_clauses_of_reads(&mut self) {
        for (read, key) in self.prover.reads.clone() {
            let origin = |writer| Variable::Origin(ChosenOrigin { read, key, writer });
            let writers: Vec<Option<TxnId>> =
                self.prover.txns.iter().map(|&txn| Some(txn)).chain([None]).collect();
            let literals: Vec<Literal> = (writers.iter())
                .filter_map(|&writer| self.place(origin(writer)).map(Literal::yes))
                .collect();
            if !literals.is_empty() {
                self.add_if_accepted(Clause::OneOrigin { read, key }, literals);
            }
            for &writer in &self.prover.txns {
                let Some(seen) = self.place(origin(Some(writer))) else { continue };
                for &other in &self.prover.txns {
                    let order = |first, second| Variable::Order { key, first, second };
                    let overwritten = (self.place(order(other, writer)).map(Literal::yes))
                        .or_else(|| self.place(order(writer, other)).map(Literal::no));
                    let from = self.prover.begin(self.prover.history.txn_of(read));
                    let after = self.place(Variable::Before { from, to: Node::commit(other) });
                    if let (Some(overwritten), Some(after)) = (overwritten, after) {
                        let clause = Clause::SeenOrAfter { read, key, writer, other };
                        let literals = vec![Literal::no(seen), overwritten, Literal::yes(after)];
                        self.add_if_accepted(clause, literals);
                    }
                }
            }
        }
    }

    fn add_if_accepted(&mut self, clause: Clause, literals: Vec<Literal>) {
        if !self.refusal(self.variables.clone(), vec![clause.clone()]).starts_with("clause ") {
            self.clauses.push(clause);
            self.literals.push(literals);
        }
    }

    pub(crate) fn is_refuted(&mut self) -> bool {
        self.derivation().is_some()
    }

    /// A derivation that ends in a search.
    pub(crate) fn derivation(&mut self) -> Option<Derivation> {
        if !self.refute(&mut Vec::new()) {
            return None;
        }
        assert_eq!(self.refusal(self.variables.clone(), self.clauses.clone()), "");
        let (variables, clauses) = (self.variables.clone(), self.clauses.clone());
        let end = End::Search(Search { variables, clauses });
        Some(Derivation { steps: self.prover.steps.clone(), end })
    }

    /// Whether the decisions cannot be extended to an order; then a lemma says so.
    fn refute(&mut self, decisions: &mut Vec<Literal>) -> bool {
        let assigned = loop {
            let Some(assigned) = self.propagate(decisions) else { break None };
            if assigned.len() < self.variables.len() {
                break Some(assigned);
            }
            let mut edges = self.prover.edges();
            for literal in &assigned {
                edges.extend(&self.edges[literal.0 as usize]);
            }
            let holds = |link: &Link| match link {
                Link::Overwritten { order, origin, .. } => {
                    assigned.contains(order) && assigned.contains(origin)
                }
                _ => true,
            };
            edges.extend(self.overwritten.iter().filter(|edge| holds(&edge.link)));
            let Some(cycle) = self.prover.cycle(&edges) else { return false };
            let negated = cycle.iter().flat_map(|link| match *link {
                Link::Step(_) => Vec::new(),
                Link::Literal { literal, .. } => vec![!literal],
                Link::Overwritten { order, origin, .. } => vec![!order, !origin],
            });
            self.literals.push(negated.collect());
            self.clauses.push(Clause::Cycle(cycle));
        };
        if let Some(assigned) = assigned {
            let is_open = |variable: &u32| {
                !assigned.contains(&Literal::yes(*variable))
                    && !assigned.contains(&Literal::no(*variable))
            };
            let mut variables = 0..self.variables.len() as u32;
            let variable = variables.find(is_open).expect("one is open");
            for literal in [Literal::yes(variable), Literal::no(variable)] {
                decisions.push(literal);
                let refuted = self.refute(decisions);
                decisions.pop();
                if !refuted {
                    return false;
                }
            }
        }
        let lemma: Vec<Literal> = decisions.iter().map(|&literal| !literal).collect();
        self.literals.push(lemma.clone());
        self.clauses.push(Clause::Lemma(lemma));
        true
    }

    /// What follows from the decisions; `None` if a clause fails.
    fn propagate(&self, decisions: &[Literal]) -> Option<Vec<Literal>> {
        let mut assigned = decisions.to_vec();
        loop {
            let before = assigned.len();
            for clause in &self.literals {
                if clause.iter().any(|literal| assigned.contains(literal)) {
                    continue;
                }
                let open: Vec<Literal> =
                    clause.iter().copied().filter(|it| !assigned.contains(&!*it)).collect();
                match open[..] {
                    [] => return None,
                    [only] => assigned.push(only),
                    _ => {}
                }
            }
            if assigned.len() == before {
                return Some(assigned);
            }
        }
    }
}

//! A derivation as people read it: cycles of transactions, with what each edge follows from.
//!
//! An engine refutes a level by a derivation in the language of certificates: steps with
//! premises, each of which is an operation or an earlier step. Everything else that is said of a
//! violation is a reading of that one value. This is the first of them: it joins the begins and
//! commits of a transaction, and nests the premises of a step in it. The name of the anomaly, its
//! smallest counterexample, its sentences and its picture are made of what it gives.

use crate::anomaly::{Cases, Evidence, Seen};
use crate::evidence::{Cycle, Edge, EdgeKind, INITIAL, Reason};
use isolde_certificate::{
    ChosenOrigin, Clause, Derivation, End, Link, Literal, Node, Rule, Search, Step, StepId,
    Variable,
};
use isolde_history::{History, KeyId, OpId, TxnId};

/// Derivations inside derivations are told down to this depth: that decides the name of an
/// anomaly. Whoever shows it gets all of them from the proof.
const DEPTH_MAX: usize = 3;
/// So many cycles of a proof by cases are told.
const CASES_MAX: usize = 8;

/// What a derivation shows.
pub(crate) fn evidence(history: &History, proof: &Derivation) -> Evidence {
    let steps = Steps(&proof.steps);
    match &proof.end {
        End::Cycle(path) => Evidence::Cycle(Cycle { edges: steps.path(path, 0) }),
        End::Search(search) => Evidence::Cases(SearchReader::new(history, steps, search).cases()),
    }
}

/// The steps of a derivation as edges.
#[derive(Clone, Copy)]
pub(crate) struct Steps<'a>(pub(crate) &'a [Step]);

impl Steps<'_> {
    pub(crate) fn rule(self, id: StepId) -> &'_ Rule {
        &self.0[id.0 as usize].rule
    }

    /// A step without what it follows from.
    pub(crate) fn edge(self, id: StepId) -> Edge {
        let step = &self.0[id.0 as usize];
        let reason = match self.first_version(&step.rule) {
            Some(reason) => reason,
            None => Reason::Rule(step.rule.with_path(|_| Vec::new())),
        };
        Edge::new(txn(step.from), txn(step.to), reason)
    }

    /// Whoever replaced the initial version installed the first one.
    fn first_version(self, rule: &Rule) -> Option<Reason> {
        let Rule::Pair { key, path } = rule else { return None };
        let [only] = path[..] else { return None };
        match *self.rule(only) {
            Rule::InitialRead { read, key: of } if of == *key => {
                Some(Reason::FirstVersion { read, key: of })
            }
            _ => None,
        }
    }

    /// The steps that a step follows from and that are worth a word: within one transaction none
    /// is, nor is that whoever replaced a version had read it.
    pub(crate) fn premises(self, id: StepId) -> Vec<StepId> {
        let step = &self.0[id.0 as usize];
        let path = step.rule.path().map_or(&[][..], Vec::as_slice);
        let is_between = |id: &StepId| {
            let step = &self.0[id.0 as usize];
            step.from.txn() != step.to.txn()
        };
        let path: Vec<StepId> = path.iter().copied().filter(is_between).collect();
        match (&step.rule, &path[..]) {
            (Rule::AntiDependency { key, .. }, &[only])
                if matches!(self.rule(only), Rule::ReadsFrom { key: of, .. } if of == key)
                    && self.0[only.0 as usize].to.txn() == step.to.txn() =>
            {
                Vec::new()
            }
            _ => path,
        }
    }

    /// The edges of a path, each with what it follows from. No deeper than some levels, so this
    /// may recurse.
    fn path(self, path: &[StepId], depth: usize) -> Vec<Edge> {
        path.iter().map(|&id| self.told(id, depth)).collect()
    }

    fn told(self, id: StepId, depth: usize) -> Edge {
        let mut edge = self.edge(id);
        let premises = self.premises(id);
        let Reason::Rule(rule) = &mut edge.reason else { return edge };
        let Some(path) = rule.path_mut() else { return edge };
        *path = match &premises[..] {
            [] => Vec::new(),
            // An order that a list or the database shows is where a derivation begins.
            &[only] if self.edge(only).is_version() => vec![self.edge(only)],
            [first, .., _] | [first] if depth >= DEPTH_MAX => {
                let last = premises[premises.len() - 1];
                let ends = (self.edge(*first).before, self.edge(last).after);
                vec![Edge::new(ends.0, ends.1, Reason::Untold { steps: None })]
            }
            premises => self.path(premises, depth + 1),
        };
        edge
    }
}

fn txn(node: Node) -> TxnId {
    if node == Node::INITIAL { INITIAL } else { node.txn() }
}

/// If a read saw the version of `writer`, and that of `other` is later, then the reader
/// precedes `other`.
#[derive(Clone, Copy)]
struct Later {
    read: OpId,
    key: KeyId,
    writer: TxnId,
    other: TxnId,
}

/// A refutation by search as cases: cycles under assumptions, not all of which can be wrong.
struct SearchReader<'a> {
    history: &'a History,
    steps: Steps<'a>,
    search: &'a Search,
    later: Vec<Later>,
    /// What operations by condition are taken to have seen in the case that is told.
    seen: Vec<Seen>,
}

impl<'a> SearchReader<'a> {
    fn new(history: &'a History, steps: Steps<'a>, search: &'a Search) -> Self {
        let (later, seen) = (Vec::new(), Vec::new());
        let mut reader = SearchReader { history, steps, search, later, seen };
        reader.later = reader.later();
        reader
    }

    /// The cycles of a refutation by search, each under its assumptions.
    fn cases(mut self) -> Cases {
        let (ways, seen) = (Vec::new(), Vec::new());
        let mut cases = Cases { cycles: Vec::new(), count: 0, ways, seen };
        for clause in &self.search.clauses {
            if self.is_about_what_was_seen(clause) {
                continue;
            }
            let cycle = (cases.count < CASES_MAX).then(|| self.case(clause));
            let place = cases.cycles.len();
            let seen = std::mem::take(&mut self.seen).into_iter();
            let seen = seen.map(|seen| Seen { case: place, ..seen });
            // Of two ways to the same contradiction under the same assumptions one is enough.
            let is_same = |known: usize, cycle: &Cycle| {
                cases.cycles[known] == *cycle
                    && seen.clone().all(|it| cases.seen.contains(&Seen { case: known, ..it }))
            };
            if cycle.as_ref().is_some_and(|cycle| (0..place).any(|known| is_same(known, cycle))) {
                continue;
            }
            cases.seen.extend(seen);
            cases.count += 1;
            cases.cycles.extend(cycle);
        }
        cases
    }

    /// Whether a clause is no contradiction by itself: what a read saw, what follows from that
    /// for a version order that is a choice of its own, or what follows from clauses.
    fn is_about_what_was_seen(&self, clause: &Clause) -> bool {
        match *clause {
            Clause::Cycle(_) | Clause::SeenTogether { .. } => false,
            Clause::OneOrigin { .. } | Clause::Lemma(_) => true,
            Clause::SeenOrAfter { key, writer, other, .. } => self.orders(key, writer, other),
        }
    }

    /// Whether the order of two versions is a choice of its own.
    fn orders(&self, of: KeyId, one: TxnId, other: TxnId) -> bool {
        self.search.variables.iter().any(|variable| match *variable {
            Variable::Order { key, first, second } => {
                key == of && [(one, other), (other, one)].contains(&(first, second))
            }
            _ => false,
        })
    }

    /// Orders of events that the refutation takes for what follows if a read saw one version
    /// and another is later. What follows from several such things is left out.
    fn later(&self) -> Vec<Later> {
        let clauses = self.search.clauses.iter();
        let later = clauses.filter(|clause| self.is_about_what_was_seen(clause));
        let mut later: Vec<Later> = later
            .filter_map(|clause| match *clause {
                Clause::SeenOrAfter { read, key, writer, other } => {
                    Some(Later { read, key, writer, other })
                }
                _ => None,
            })
            .collect();
        let ends: Vec<(TxnId, TxnId)> = later.iter().map(|it| self.ends(it)).collect();
        later.retain(|it| ends.iter().filter(|&&other| other == self.ends(it)).count() == 1);
        later
    }

    fn ends(&self, later: &Later) -> (TxnId, TxnId) {
        (self.history.txn_of(later.read), later.other)
    }

    fn case(&mut self, clause: &Clause) -> Cycle {
        match *clause {
            Clause::Cycle(ref links) => self.cycle(links),
            Clause::SeenOrAfter { read, key, writer, other } => {
                let visible = supposed(other, self.history.txn_of(read));
                missed((read, key), Some(writer), other, visible)
            }
            Clause::SeenTogether { read, key, writer, other, source: (source, of) } => {
                let visible = Edge::reads_from(other, self.history.txn_of(read), source, of);
                missed((read, key), writer, other, visible)
            }
            Clause::OneOrigin { .. } | Clause::Lemma(_) => unreachable!("no contradiction"),
        }
    }

    fn cycle(&mut self, links: &[Link]) -> Cycle {
        let mut edges = Vec::new();
        let mut path: Vec<StepId> = Vec::new();
        for link in links {
            let (literal, from, to) = match *link {
                Link::Step(step) => {
                    path.push(step);
                    continue;
                }
                Link::Literal { literal, from, to }
                | Link::Overwritten { order: literal, from, to, .. } => (literal, from, to),
            };
            edges.extend(self.steps.path(&std::mem::take(&mut path), 0));
            let reason = self.assumed(literal, to.txn());
            edges.push(Edge::new(from.txn(), to.txn(), reason));
        }
        edges.extend(self.steps.path(&path, 0));
        edges.retain(|edge| edge.before != edge.after);
        Cycle { edges }
    }

    fn assumed(&mut self, literal: Literal, after: TxnId) -> Reason {
        match self.search.variables[literal.variable() as usize] {
            Variable::Order { key, first, second } => {
                let (first, second) =
                    if literal.is_yes() { (first, second) } else { (second, first) };
                Reason::Assumed { key, first, second }
            }
            Variable::Origin(ChosenOrigin { read, key, writer }) => {
                self.see(read, key, writer.unwrap_or(INITIAL));
                Reason::Rule(match writer {
                    Some(_) => Rule::ReadsFrom { read, key },
                    None => Rule::InitialRead { read, key },
                })
            }
            Variable::Before { from, to } => {
                let (from, to) = (from.txn(), to.txn());
                let before = if after == to { from } else { to };
                let mut later = self.later.iter();
                let Some(&Later { read, key, writer, other }) =
                    later.find(|it| self.ends(it) == (before, after))
                else {
                    return Reason::Supposed { first: before, second: after };
                };
                self.see(read, key, writer);
                let reason = Reason::Assumed { key, first: writer, second: other };
                let path = vec![Edge::new(writer, other, reason)];
                Reason::Rule(Rule::AntiDependency { read, key, path })
            }
        }
    }

    /// Notes what an operation by condition is taken to have seen. Of reads of repeated values
    /// the edge says it.
    fn see(&mut self, read: OpId, key: KeyId, writer: TxnId) {
        let seen = Seen { case: 0, read, key, writer };
        if !self.history.op(read).kind.has_key() && !self.seen.contains(&seen) {
            self.seen.push(seen);
        }
    }
}

fn supposed(first: TxnId, second: TxnId) -> Edge {
    Edge::new(first, second, Reason::Supposed { first, second })
}

/// Were the version that a read missed later than the one that it saw, it would have been
/// overwritten and would not.
fn missed(
    (read, key): (OpId, KeyId),
    writer: Option<TxnId>,
    other: TxnId,
    visible: Edge,
) -> Cycle {
    let later = match writer {
        Some(writer) => supposed(writer, other),
        None => Edge::by(Rule::InitialFirst, INITIAL, other),
    };
    let overwritten = Rule::Visible { read, key, path: vec![visible] };
    let overwritten = Edge::by(overwritten, other, later.before);
    Cycle { edges: vec![later, overwritten] }
}

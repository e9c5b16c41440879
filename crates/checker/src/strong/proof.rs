//! Refutations as certificates: every edge with the rule it follows from, premises
//! before conclusions.

use super::conditions::Change;
use super::cycle::{Premises, Step};
use super::graph::Why;
use super::model::{Events, Model, Node};
use super::search::{Because, CycleEdge, Input, Variable};
use super::versions::{ShownBy, Slot, Versions};
use crate::evidence::version_rule;
use hashbrown::HashMap;
use isolde_certificate as certificate;
use isolde_certificate::{Clause, Derivation, End, Link, StepId};
use isolde_history::{ReadId, TxnId};
use std::collections::BTreeMap;

/// What a derivation is made from.
pub(super) struct ProofBuilder<'a> {
    model: &'static Model,
    versions: &'a Versions<'a>,
    premises: Premises<'a>,
    steps: Vec<certificate::Step>,
    /// Where known edges stand among the steps.
    known: HashMap<(certificate::Node, certificate::Node, Why), StepId>,
    /// Where derived edges stand among the steps.
    derived: HashMap<u32, StepId>,
}

impl<'a> ProofBuilder<'a> {
    pub(super) fn new(
        model: &'static Model,
        versions: &'a Versions<'a>,
        premises: Premises<'a>,
    ) -> Self {
        ProofBuilder {
            model,
            versions,
            premises,
            steps: Vec::new(),
            known: HashMap::new(),
            derived: HashMap::new(),
        }
    }

    /// The proof that a closed path makes.
    pub(super) fn of_cycle(mut self, steps: &[Step]) -> Derivation {
        let steps = self.turned(steps);
        self.derive_all(&steps);
        let path = self.path(&steps);
        Derivation { steps: self.steps, end: End::Cycle(path) }
    }

    /// The proof that two writers of one version make.
    pub(super) fn of_divergence(mut self, first: ReadId, second: ReadId) -> Derivation {
        let one = self.replaces(first, second);
        let other = self.replaces(second, first);
        let (early, late) = (self.versions.reader(first), self.versions.reader(second));
        let before = match self.model.events {
            Events::One => one,
            Events::Two => {
                let key = self.versions.index.read(first).key;
                let rule = certificate::Rule::Pair { key, path: vec![one] };
                self.add(self.model.commit(early), self.model.begin(late), rule)
            }
        };
        Derivation { steps: self.steps, end: End::Cycle(vec![before, other]) }
    }

    /// The reader of one read begins before the reader of the other, which replaces the
    /// version that both saw, commits.
    fn replaces(&mut self, read: ReadId, replacing: ReadId) -> StepId {
        let it = self.versions.index.read(read);
        let (reader, replacer) = (self.versions.reader(read), self.versions.reader(replacing));
        let (from, to) = (self.model.begin(reader), self.model.commit(replacer));
        let seen = self.versions.seen[read.0 as usize];
        if seen == super::versions::INITIAL_SLOT {
            let rule = certificate::Rule::InitialRead { read: it.op, key: it.key };
            return self.add(from, to, rule);
        }
        let writer = self.model.commit(self.versions.writer(seen));
        let step =
            Step { from: writer, to: self.model.begin(replacer), why: Why::ReadsFrom(replacing) };
        let path = vec![self.event_step(step)];
        let rule = certificate::Rule::AntiDependency { read: it.op, key: it.key, path };
        self.add(from, to, rule)
    }

    /// The proof that a refutation of the solver makes: closed paths of graph edges and
    /// assumptions, and what follows from them.
    pub(super) fn of_search(
        mut self,
        refutation: &acyclic::Refutation,
        search: &super::search::Asked,
    ) -> Derivation {
        let cycles: Vec<Vec<Step>> = refutation
            .steps
            .iter()
            .filter_map(|step| match step {
                acyclic::Step::Cycle { path } => Some(self.known_steps(path)),
                acyclic::Step::Input { tag, .. } => match &search.inputs[*tag as usize] {
                    Input::Cycle(edges) => Some(edges.iter().filter_map(known_step).collect()),
                    Input::Clause(_) => None,
                },
                acyclic::Step::Lemma { .. } => None,
            })
            .collect();
        self.derive_all(&cycles.concat());
        let mut names = Names::default();
        let mut clauses = Vec::with_capacity(refutation.steps.len());
        for step in &refutation.steps {
            clauses.push(match step {
                acyclic::Step::Cycle { path } => Clause::Cycle(self.links(path, &mut names)),
                acyclic::Step::Input { tag, literals } => {
                    for &literal in literals {
                        let _ = names.of(literal);
                    }
                    self.input(&search.inputs[*tag as usize], &mut names)
                }
                acyclic::Step::Lemma { literals } => {
                    Clause::Lemma(literals.iter().map(|&literal| names.of(literal)).collect())
                }
            });
        }
        let variables =
            names.choices.iter().map(|&choice| self.variable(search.variables[choice])).collect();
        let end = End::Search(certificate::Search { variables, clauses });
        Derivation { steps: self.steps, end }
    }

    fn input(&mut self, input: &Input, names: &mut Names) -> Clause {
        match input {
            Input::Clause(clause) => clause.clone(),
            Input::Cycle(edges) => {
                Clause::Cycle(edges.iter().map(|edge| self.cycle_link(edge, names)).collect())
            }
        }
    }

    fn cycle_link(&mut self, edge: &CycleEdge, names: &mut Names) -> Link {
        match edge.because {
            Because::Known(why) => {
                Link::Step(self.event_step(Step { from: edge.from, to: edge.to, why }))
            }
            Because::Literal(literal) => Link::Literal {
                literal: names.of(literal),
                from: self.node(edge.from),
                to: self.node(edge.to),
            },
            Because::Overwritten { order, origin } => Link::Overwritten {
                order: names.of(order),
                origin: names.of(origin),
                from: self.node(edge.from),
                to: self.node(edge.to),
            },
        }
    }

    /// The proof that a reader of an initial version had to see another, from whose
    /// writer a path leads to it.
    pub(super) fn of_missed_first(mut self, read: ReadId, path: &[Step]) -> Derivation {
        self.derive_all(path);
        let it = self.versions.index.read(read);
        let from = self.node(path[0].from);
        let path = self.path(path);
        let rule = certificate::Rule::Visible { read: it.op, key: it.key, path };
        let initial = certificate::Node::INITIAL;
        let first = StepId(self.steps.len() as u32);
        self.steps.push(certificate::Step { from, to: initial, rule });
        let rule = certificate::Rule::InitialFirst;
        self.steps.push(certificate::Step { from: initial, to: from, rule });
        Derivation { steps: self.steps, end: End::Cycle(vec![first, StepId(first.0 + 1)]) }
    }

    /// The proof that two writers of one version make where a cycle may have only one
    /// anti-dependency: whichever comes first, the other missed it.
    pub(super) fn of_parallel_divergence(mut self, first: ReadId, second: ReadId) -> Derivation {
        let (one, other) = (self.versions.reader(first), self.versions.reader(second));
        let (forth, back) = (self.replaces(first, second), self.replaces(second, first));
        let (from, to) = (self.node(self.model.commit(one)), self.node(self.model.commit(other)));
        let key = self.versions.index.read(first).key;
        let variables = vec![certificate::Variable::Order { key, first: one, second: other }];
        let (yes, no) = (certificate::Literal::yes(0), certificate::Literal::no(0));
        let clauses = vec![
            Clause::Cycle(vec![Link::Literal { literal: yes, from, to }, Link::Step(back)]),
            Clause::Cycle(vec![
                Link::Literal { literal: no, from: to, to: from },
                Link::Step(forth),
            ]),
            Clause::Lemma(Vec::new()),
        ];
        let end = End::Search(certificate::Search { variables, clauses });
        Derivation { steps: self.steps, end }
    }

    fn variable(&self, variable: Variable) -> certificate::Variable {
        match variable {
            Variable::Pair(pair) => certificate::Variable::Order {
                key: self.versions.key_of(pair.first),
                first: self.versions.writer(pair.first),
                second: self.versions.writer(pair.second),
            },
            Variable::Origin(origin) => certificate::Variable::Origin(origin),
            Variable::Before { from, to } => {
                certificate::Variable::Before { from: self.node(from), to: self.node(to) }
            }
        }
    }

    /// The known edges of a path of the solver.
    pub(super) fn known_steps(&self, path: &[acyclic::PathEdge]) -> Vec<Step> {
        path.iter()
            .filter(|edge| edge.literal.is_none())
            .map(|edge| self.premises.step(edge.from, edge.to))
            .collect()
    }

    fn links(&mut self, path: &[acyclic::PathEdge], names: &mut Names) -> Vec<Link> {
        let events = self.events();
        let first = path.iter().position(|edge| edge.from < events).unwrap_or(0);
        let mut links = Vec::new();
        let mut known: Vec<Step> = Vec::new();
        for edge in path[first..].iter().chain(&path[..first]) {
            match edge.literal {
                None => known.push(self.premises.step(edge.from, edge.to)),
                Some(literal) => {
                    links.extend(self.path(&known).into_iter().map(Link::Step));
                    known.clear();
                    links.push(Link::Literal {
                        literal: names.of(literal),
                        from: self.node(edge.from),
                        to: self.node(edge.to),
                    });
                }
            }
        }
        links.extend(self.path(&known).into_iter().map(Link::Step));
        links
    }

    fn events(&self) -> Node {
        self.model.events_of(self.versions.history.txn_count()) as Node
    }

    /// The same closed path from an event on.
    fn turned(&self, steps: &[Step]) -> Vec<Step> {
        let events = self.events();
        let first = steps.iter().position(|step| step.from < events).unwrap_or(0);
        steps[first..].iter().chain(&steps[..first]).copied().collect()
    }

    /// Adds the derived edges among `steps`, and all that they need, oldest first.
    fn derive_all(&mut self, steps: &[Step]) {
        let mut premises: BTreeMap<u32, Vec<Step>> = BTreeMap::new();
        let places = |steps: &[Step]| -> Vec<u32> {
            let place = |step: &Step| match step.why {
                Why::Derived(place) => Some(place),
                _ => None,
            };
            steps.iter().filter_map(place).collect()
        };
        let mut open = places(steps);
        while let Some(place) = open.pop() {
            if self.derived.contains_key(&place) || premises.contains_key(&place) {
                continue;
            }
            let path = self.premise(place);
            open.extend(places(&path));
            premises.insert(place, path);
        }
        for (place, path) in premises {
            let derived = self.premises.graph.derived[place as usize];
            let path = self.path(&path);
            let rule = derived.rule.with_path(|_| path);
            let id = self.add(derived.from, derived.to, rule);
            self.derived.insert(place, id);
        }
    }

    fn premise(&self, place: u32) -> Vec<Step> {
        let rule = &self.premises.graph.derived[place as usize].rule;
        let &(start, end) = rule.path().expect("what is derived follows from a path");
        self.premises.path(start, end, place)
    }

    /// A path of events as steps. Begins before commits need none, and edges through
    /// points are one step.
    fn path(&mut self, steps: &[Step]) -> Vec<StepId> {
        let events = self.events();
        let mut ids = Vec::new();
        let mut at = 0;
        while at < steps.len() {
            let first = steps[at];
            while steps[at].to >= events && at + 1 < steps.len() {
                at += 1;
            }
            if first.why != Why::Begins {
                ids.push(self.event_step(Step { to: steps[at].to, ..first }));
            }
            at += 1;
        }
        ids
    }

    /// An edge from event to event.
    fn event_step(&mut self, step: Step) -> StepId {
        if let Why::Derived(place) = step.why {
            return self.derived[&place];
        }
        let name = (self.node(step.from), self.node(step.to), step.why);
        if let Some(&id) = self.known.get(&name) {
            return id;
        }
        let rule = self.known_rule(step);
        let id = self.add(step.from, step.to, rule);
        self.known.insert(name, id);
        id
    }

    fn known_rule(&mut self, step: Step) -> certificate::Rule {
        let versions = self.versions;
        let it = |read: ReadId| versions.index.read(read);
        match step.why {
            Why::Session => certificate::Rule::Session,
            Why::RealTime => certificate::Rule::RealTime,
            Why::ReadsFrom(read) => {
                certificate::Rule::ReadsFrom { read: it(read).op, key: it(read).key }
            }
            Why::Replaced(read) => {
                let path = self.link(versions.seen[read.0 as usize], self.model.txn(step.to));
                certificate::Rule::AntiDependency { read: it(read).op, key: it(read).key, path }
            }
            Why::Step(place) => version_rule(&versions.index.steps()[place as usize]),
            Why::InitialRead(read) => {
                let (op, key) = (it(read).op, it(read).key);
                let initial = certificate::Rule::InitialRead { read: op, key };
                let reader = versions.reader(read);
                let after = self.model.txn(step.to);
                if self.model.events == Events::Two && step.from == self.model.commit(reader) {
                    let (from, to) = (self.model.begin(reader), self.model.commit(after));
                    let path = vec![self.add(from, to, initial)];
                    certificate::Rule::Pair { key, path }
                } else {
                    initial
                }
            }
            Why::Condition(place) => {
                let it = versions.conditions.edges[place as usize];
                match it.kind {
                    Change::Saw => certificate::Rule::SawChange { read: it.op, key: it.key },
                    Change::Missed => certificate::Rule::MissedChange { read: it.op, key: it.key },
                }
            }
            Why::Begins | Why::FirstVersion(_) | Why::Derived(_) => {
                unreachable!("no step of its own")
            }
        }
    }

    /// The link from a version to the one by `replacer`.
    fn link(&mut self, seen: Slot, replacer: TxnId) -> Vec<StepId> {
        let versions = self.versions;
        let link = versions
            .links(seen)
            .find(|link| versions.writer(link.after) == replacer)
            .expect("the link that replaced what was read");
        let from = self.model.commit(versions.writer(seen));
        let step = match link.shown_by {
            ShownBy::Read(read) => {
                Step { from, to: self.model.begin(replacer), why: Why::ReadsFrom(read) }
            }
            ShownBy::Step(place) => {
                Step { from, to: self.model.next_writer(replacer), why: Why::Step(place) }
            }
        };
        vec![self.event_step(step)]
    }

    fn add(&mut self, from: Node, to: Node, rule: certificate::Rule) -> StepId {
        let id = StepId(self.steps.len() as u32);
        self.steps.push(certificate::Step { from: self.node(from), to: self.node(to), rule });
        id
    }

    fn node(&self, node: Node) -> certificate::Node {
        certificate_node(self.model, node)
    }
}

fn known_step(edge: &CycleEdge) -> Option<Step> {
    match edge.because {
        Because::Known(why) => Some(Step { from: edge.from, to: edge.to, why }),
        _ => None,
    }
}

/// Literals in the order they are needed.
#[derive(Default)]
struct Names {
    numbers: HashMap<usize, u32>,
    /// By variable: the choice.
    choices: Vec<usize>,
}

impl Names {
    fn of(&mut self, literal: acyclic::Literal) -> certificate::Literal {
        let choice = literal.choice().index();
        let variable = *self.numbers.entry(choice).or_insert_with(|| {
            self.choices.push(choice);
            self.choices.len() as u32 - 1
        });
        match literal.phase() {
            acyclic::Phase::Yes => certificate::Literal::yes(variable),
            acyclic::Phase::No => certificate::Literal::no(variable),
        }
    }
}

/// An event as certificates name it.
pub(super) fn certificate_node(model: &Model, node: Node) -> certificate::Node {
    let txn = model.txn(node);
    match model.events {
        Events::Two if model.begin(txn) == node => certificate::Node::begin(txn),
        _ => certificate::Node::commit(txn),
    }
}

//! Derivations: every step that the verifier accepts is taken, until nothing new follows.
//! The level is violated exactly if that ends in a contradiction, by itself, by a search
//! over what is open, or whichever transactions of unknown outcome count.
//!
//! This is a checker with the verifier as its only knowledge of the definitions, so a rule
//! that concludes too much refutes a level that holds, and one that concludes too little
//! misses a violation.

use crate::searches::Open;
use crate::support::{Size, history, random_histories, random_history};
use isolde_certificate::{
    Case, Cases, Claim, Derivation, End, Link, Node, Open as Question, Proof, Reading, ReadingKind,
    Refutation, Rule, Step, StepId, Taken, Verifier,
};
use isolde_checker::Level;
use isolde_checker::reference::{self, Reference};
use isolde_history::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use std::collections::{BTreeMap, VecDeque};

/// An edge of the graph of events.
#[derive(Clone, Copy)]
pub(crate) struct Edge {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) is_anti: bool,
    pub(crate) link: Link,
}

/// A level of a history, and the steps that were accepted.
pub(crate) struct Prover<'a> {
    pub(crate) history: &'a History,
    verifier: Verifier<'a>,
    level: Level,
    has_begins: bool,
    /// Transactions of unknown outcome that are taken to count or not to.
    assumed: Vec<(TxnId, Taken)>,
    pub(crate) txns: Vec<TxnId>,
    /// Every operation and key that may be a read.
    pub(crate) reads: Vec<(OpId, KeyId)>,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Prover<'a> {
    fn new(history: &'a History, level: Level) -> Self {
        let has_begins = matches!(
            level,
            Level::Prefix
                | Level::SnapshotIsolation
                | Level::GeneralizedSnapshotIsolation
                | Level::SessionSnapshotIsolation
                | Level::PrefixConsistentSnapshotIsolation
                | Level::StrongSnapshotIsolation
        );
        let counts = |txn: &TxnId| history.outcome(*txn) != Outcome::Aborted;
        let mut reads = Vec::new();
        for op in (0..history.op_count() as u32).map(OpId) {
            match history.op(op).kind {
                OpKind::Read | OpKind::ReadList | OpKind::ReadOther => {
                    reads.push((op, history.op(op).key));
                }
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    reads.extend(history.predicate(op).rows.iter().map(|row| (op, row.key)));
                }
                _ => {}
            }
        }
        let txns = history.txns().filter(counts).collect();
        let verifier = Verifier::new(history);
        let (assumed, steps) = (Vec::new(), Vec::new());
        Prover { history, verifier, level, has_begins, assumed, txns, reads, steps }
    }

    pub(crate) fn begin(&self, txn: TxnId) -> Node {
        if self.has_begins { Node::begin(txn) } else { Node::commit(txn) }
    }

    /// Where version order leads to.
    fn overwriter(&self, txn: TxnId) -> Node {
        if self.level == Level::Prefix { Node::commit(txn) } else { self.begin(txn) }
    }

    pub(crate) fn nodes(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> =
            self.txns.iter().flat_map(|&txn| [self.begin(txn), Node::commit(txn)]).collect();
        nodes.dedup();
        nodes
    }

    /// Whether the refutation is accepted in the case that is assumed. The others are refuted
    /// by nothing and stand behind it, so that they are refused only if it is not.
    fn check(&self, mut refutation: Refutation) -> Result<(), String> {
        let name = self.level.name().to_string();
        for &(txn, taken) in self.assumed.iter().rev() {
            let nothing = Derivation { steps: Vec::new(), end: End::Cycle(Vec::new()) };
            let cases = [(taken, refutation), (other(taken), Refutation::Derivation(nothing))];
            let case = |(taken, refutation)| Case { shown_at: name.clone(), taken, refutation };
            let cases = cases.into_iter().map(case).collect();
            refutation = Refutation::Cases(Cases { open: Question::Outcome(txn), cases });
        }
        let proof = Proof::Refutation(refutation);
        let claim = Claim { shown_at: name.clone(), levels: vec![name], proof };
        let Err(refused) = self.verifier.check(&claim) else { return Ok(()) };
        let refused = refused.to_string();
        let mut why = refused.as_str();
        for &(txn, taken) in &self.assumed {
            let case = |taken: Taken| format!("case `{taken}` of `{}`: ", Question::Outcome(txn));
            if why.starts_with(&case(other(taken))) {
                return Ok(());
            }
            why = why.strip_prefix(&case(taken)).expect("cases of what is open");
        }
        Err(why.to_owned())
    }

    pub(crate) fn check_end(&self, steps: Vec<Step>, end: End) -> Result<(), String> {
        self.check(Refutation::Derivation(Derivation { steps, end }))
    }

    /// Takes a step if it is accepted, as then only the missing end is refused.
    fn take(&mut self, from: Node, to: Node, rule: Rule) -> bool {
        let mut steps = self.steps.clone();
        steps.push(Step { from, to, rule });
        let refused = self.check_end(steps.clone(), End::Cycle(Vec::new())).unwrap_err();
        let accepted = !refused.starts_with("step ");
        if accepted {
            self.steps = steps;
        }
        accepted
    }

    pub(crate) fn edges(&self) -> Vec<Edge> {
        let edge = |(place, step): (usize, &Step)| Edge {
            from: step.from,
            to: step.to,
            is_anti: matches!(step.rule, Rule::InitialRead { .. } | Rule::AntiDependency { .. }),
            link: Link::Step(StepId(place as u32)),
        };
        self.steps.iter().enumerate().map(edge).collect()
    }

    /// The shortest path; for parallel snapshot isolation with few anti-dependencies.
    fn path(&self, edges: &[Edge], from: Node, to: Node, anti_max: usize) -> Option<Vec<Link>> {
        type State = (Node, usize);
        let counts_anti = self.level == Level::ParallelSnapshotIsolation;
        let start: State = (from, 0);
        let mut came: BTreeMap<State, (State, Option<Link>)> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(state) = open.pop_front() {
            let (node, anti) = state;
            let implicit = (self.has_begins && node != Node::INITIAL && node.is_begin())
                .then(|| ((Node::commit(node.txn()), anti), None));
            let explicit = edges.iter().filter(|edge| edge.from == node).map(|edge| {
                let anti = anti + usize::from(counts_anti && edge.is_anti);
                ((edge.to, anti), Some(edge.link))
            });
            for (next, link) in implicit.into_iter().chain(explicit) {
                if next.1 > anti_max || came.contains_key(&next) {
                    continue;
                }
                came.insert(next, (state, link));
                if next.0 == to {
                    let (mut path, mut at) = (Vec::new(), next);
                    loop {
                        let (before, link) = came[&at];
                        path.extend(link);
                        at = before;
                        if at == start {
                            path.reverse();
                            return Some(path);
                        }
                    }
                }
                open.push_back(next);
            }
        }
        None
    }

    fn step_path(&self, from: Node, to: Node) -> Option<Vec<StepId>> {
        self.path(&self.edges(), from, to, 0).map(step_ids)
    }

    /// A cycle through these edges.
    pub(crate) fn cycle(&self, edges: &[Edge]) -> Option<Vec<Link>> {
        edges.iter().find_map(|edge| {
            if edge.from == edge.to {
                return Some(vec![edge.link]);
            }
            let rest = self.path(edges, edge.to, edge.from, usize::from(!edge.is_anti))?;
            Some([vec![edge.link], rest].concat())
        })
    }

    /// Takes every step that follows from the history alone.
    fn take_known(&mut self) {
        let (nodes, reads, txns) = (self.nodes(), self.reads.clone(), self.txns.clone());
        for &from in &nodes {
            self.take(Node::INITIAL, from, Rule::InitialFirst);
            for &to in &nodes {
                self.take(from, to, Rule::Session);
                self.take(from, to, Rule::RealTime);
                for key in self.history.keys() {
                    self.take(from, to, Rule::GivenOrder { key });
                }
            }
        }
        for &(read, key) in &reads {
            let reader = self.history.txn_of(read);
            for &txn in &txns {
                self.take(Node::commit(txn), self.begin(reader), Rule::ReadsFrom { read, key });
                self.take(self.begin(reader), Node::commit(txn), Rule::InitialRead { read, key });
                for &late in &txns {
                    let to = self.overwriter(late);
                    self.take(Node::commit(txn), to, Rule::ListOrder { read, key });
                }
            }
        }
    }

    fn has_edge(&self, from: Node, to: Node) -> bool {
        self.steps.iter().any(|step| (step.from, step.to) == (from, to))
    }

    /// Takes every step that follows from others, until there are no more.
    fn saturate(&mut self) {
        self.take_known();
        loop {
            let before = self.steps.len();
            for one in self.txns.clone() {
                for other in self.txns.clone() {
                    self.order(one, other);
                }
            }
            if self.steps.len() == before || self.cycle(&self.edges()).is_some() {
                return;
            }
        }
    }

    /// What can be said about one writer before another, or a reader before a writer.
    fn order(&mut self, one: TxnId, other: TxnId) {
        let to = self.overwriter(other);
        let start = if to.is_begin() { Node::begin(one) } else { Node::commit(one) };
        if let Some(path) = self.step_path(start, Node::commit(other)) {
            for key in self.history.keys() {
                if !self.has_edge(Node::commit(one), to) {
                    self.take(Node::commit(one), to, Rule::Pair { key, path: path.clone() });
                }
            }
            for (read, key) in self.reads.clone() {
                let begin = self.begin(self.history.txn_of(read));
                if !self.has_edge(begin, Node::commit(other)) {
                    let path = path.clone();
                    let rule = Rule::AntiDependency { read, key, path };
                    self.take(begin, Node::commit(other), rule);
                }
            }
        }
        for (read, key) in self.reads.clone() {
            let begin = self.begin(self.history.txn_of(read));
            for to in [to, Node::INITIAL] {
                for path in self.visible_paths(Node::commit(one), begin) {
                    if !self.has_edge(Node::commit(one), to) {
                        self.take(Node::commit(one), to, Rule::Visible { read, key, path });
                    }
                }
            }
        }
    }

    /// Paths that some level may call visible.
    fn visible_paths(&self, from: Node, to: Node) -> Vec<Vec<StepId>> {
        let edges = self.edges();
        let is_near = |edge: &&Edge| {
            let Link::Step(step) = edge.link else { return false };
            let rule = &self.steps[step.0 as usize].rule;
            matches!(rule, Rule::Session | Rule::ReadsFrom { .. })
        };
        let near: Vec<Edge> = edges.iter().filter(is_near).copied().collect();
        let mut found: Vec<Vec<Link>> = Vec::new();
        found.extend(self.path(&edges, from, to, 0));
        if !self.has_begins {
            found.extend(self.path(&near, from, to, 0));
            let mut partial: Vec<(Node, Vec<Link>)> = vec![(from, Vec::new())];
            for _ in 0..3 {
                let mut longer = Vec::new();
                for (at, path) in &partial {
                    for edge in near.iter().filter(|edge| edge.from == *at) {
                        longer.push((edge.to, [path.as_slice(), &[edge.link]].concat()));
                    }
                }
                found.extend(longer.iter().filter(|it| it.0 == to).map(|it| it.1.clone()));
                partial = longer;
            }
        }
        found.into_iter().map(step_ids).collect()
    }

    fn has_reading(&self) -> bool {
        let ops: Vec<OpId> = (0..self.history.op_count() as u32).map(OpId).collect();
        let mut lists: Vec<Vec<OpId>> = ops.iter().map(|&op| vec![op]).collect();
        for &one in &ops {
            lists.extend(ops.iter().map(|&other| vec![one, other]));
        }
        if ops.len() <= 10 {
            for pair in lists.clone().iter().filter(|list| list.len() == 2) {
                lists.extend(ops.iter().map(|&third| vec![pair[0], pair[1], third]));
            }
        }
        ReadingKind::ALL.into_iter().any(|kind| {
            self.history.keys().any(|key| {
                lists.iter().any(|ops| {
                    let reading = Reading { kind, key, ops: ops.clone() };
                    self.check(Refutation::Reading(reading)).is_ok()
                })
            })
        })
    }

    /// Whether the level is refuted, by everything there is; `None` if too much is open.
    fn refutes(&mut self) -> Option<bool> {
        if self.derivation().is_some() || self.has_reading() {
            return Some(true);
        }
        Open::of(self).map(|mut open| open.is_refuted())
    }

    /// The same, whichever transactions of unknown outcome count. Without repeated values, who
    /// was seen says which.
    fn refutes_by_cases(history: &'a History, level: Level) -> Option<bool> {
        let mut whole = Prover::new(history, level);
        let found = whole.refutes();
        let is_unknown = |txn: &TxnId| history.outcome(*txn) == Outcome::Unknown;
        let unknown: Vec<TxnId> = history.txns().filter(is_unknown).collect();
        if found == Some(true) || unknown.is_empty() || !values_repeat(history) {
            return found;
        }
        let mut every = (0..1_u32 << unknown.len()).map(|choice| {
            let taken = |place: usize| match choice >> place & 1 {
                0 => Taken::Counts,
                _ => Taken::CountsNot,
            };
            let assumed = unknown.iter().enumerate().map(|(place, &txn)| (txn, taken(place)));
            let mut prover = Prover { assumed: assumed.collect(), ..Prover::new(history, level) };
            prover.refutes()
        });
        every.find(|found| *found != Some(true)).unwrap_or(Some(true))
    }

    /// A derivation that ends in a cycle.
    fn derivation(&mut self) -> Option<Derivation> {
        self.saturate();
        let end = End::Cycle(step_ids(self.cycle(&self.edges())?));
        assert_eq!(self.check_end(self.steps.clone(), end.clone()), Ok(()), "{}", self.level);
        Some(Derivation { steps: self.steps.clone(), end })
    }
}

/// The other case.
fn other(taken: Taken) -> Taken {
    if taken == Taken::Counts { Taken::CountsNot } else { Taken::Counts }
}

fn step_ids(links: Vec<Link>) -> Vec<StepId> {
    let step = |link| match link {
        Link::Step(step) => step,
        Link::Literal { .. } | Link::Overwritten { .. } => unreachable!("steps alone"),
    };
    links.into_iter().map(step).collect()
}

/// A claim with a refutation, if there is one.
pub(crate) fn violated(history: &History, level: Level) -> Option<Claim> {
    let mut prover = Prover::new(history, level);
    let derivation = prover.derivation().or_else(|| Open::of(&prover)?.derivation())?;
    let proof = Proof::Refutation(Refutation::Derivation(derivation));
    let name = level.name().to_string();
    Some(Claim { shown_at: name.clone(), levels: vec![name], proof })
}

/// Values that were written twice to one key, or that are initial as well.
fn values_repeat(history: &History) -> bool {
    repeat(history, OpKind::is_write)
        || (0..history.op_count() as u32).any(|op| history.op(OpId(op)).kind == OpKind::ReadOther)
}

/// Elements that were appended twice to one list. What is refuted by taking one for the
/// other is shown by cases or by all orders, not by steps.
fn appends_repeat(history: &History) -> bool {
    repeat(history, |kind| kind == OpKind::Append)
}

fn repeat(history: &History, is_asked: impl Fn(OpKind) -> bool) -> bool {
    let mut written = std::collections::HashSet::new();
    (0..history.op_count() as u32).map(|op| history.op(OpId(op))).any(|op| {
        is_asked(op.kind)
            && (!written.insert((op.key, op.value)) || op.value == history.initial(op.key))
    })
}

#[test]
fn a_level_is_refuted_if_and_only_if_it_is_violated() {
    let size = Size { txns_max: 4, ops_max: 3, keys_max: 2 };
    let mut violated: BTreeMap<Level, usize> = BTreeMap::new();
    let mut missed: BTreeMap<Level, Vec<u64>> = BTreeMap::new();
    // The violation of seed 9009 has a proof in cases alone.
    for seed in (200..200 + random_histories(110)).chain([9009]) {
        let text = random_history(seed, size);
        let history = history(&text);
        // What a read of a repeated value saw is a variable only where all events have one
        // order and each key has one of versions.
        let has_search =
            |level: Level| level >= Level::Prefix && level != Level::ParallelSnapshotIsolation;
        for level in Level::ALL {
            let verdict = reference::decide(&history, level);
            if let Reference::Unknown(_) = verdict {
                continue;
            }
            match (verdict, Prover::refutes_by_cases(&history, level)) {
                (Reference::Satisfied, Some(true)) => panic!("{level} holds, refuted\n{text}"),
                (Reference::Violated, Some(true)) => *violated.entry(level).or_default() += 1,
                (Reference::Violated, Some(false))
                    if !values_repeat(&history)
                        || has_search(level) && !appends_repeat(&history) =>
                {
                    missed.entry(level).or_default().push(seed);
                }
                _ => {}
            }
        }
    }
    assert_eq!(missed, BTreeMap::new(), "seeds of violations that are not refuted");
    let unseen: Vec<Level> =
        Level::ALL.into_iter().filter(|level| !violated.contains_key(level)).collect();
    assert_eq!(unseen, []);
}

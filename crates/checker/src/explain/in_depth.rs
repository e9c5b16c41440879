//! Derivations down to operations: what the proof of a violation knows beyond the first few steps.
//!
//! The engine tells an anomaly a few derivations deep; its proof has all of them. Here each order
//! that follows from others gets what it follows from, once. Where it is needed again, it is
//! [`Reason::AsTold`]. What is nearest to the contradiction is told first; when that is enough
//! for a reader, the rest is counted as [`Reason::Untold`].

use crate::anomaly::Anomaly;
use crate::evidence::{Cycle, Edge, EdgeKind, INITIAL, Reason};
use hashbrown::{HashMap, HashSet};
use isolde_certificate::{Derivation, Node, Rule, Step, StepId};
use isolde_history::{KeyId, OpId, TxnId};
use std::collections::VecDeque;

/// So many edges tell why others hold; the certificate has all.
const TOLD_MAX: usize = 240;

/// The same anomaly, with everything that its edges follow from as far as the proof says it.
#[must_use]
pub(super) fn in_depth(mut anomaly: Anomaly, proof: &Derivation) -> Anomaly {
    Teller::new(proof).tell(anomaly.evidence.cycles_mut());
    anomaly
}

/// What an edge that follows from others says. Two with the same are one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Fact {
    before: TxnId,
    after: TxnId,
    key: KeyId,
    by: By,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Visible(OpId),
    Apart,
    Anti(OpId),
}

impl Fact {
    fn of(edge: &Edge) -> Option<Fact> {
        let key = edge.key()?;
        let by = match edge.kind() {
            EdgeKind::Rw => By::Anti(edge.read()?),
            _ if edge.is_overwriting() => By::Visible(edge.read()?),
            _ => edge.pair().map(|_| By::Apart)?,
        };
        Some(Fact { before: edge.before, after: edge.after, key, by })
    }
}

struct Teller<'a> {
    steps: &'a [Step],
    /// Where the proof derives each fact.
    derived: HashMap<Fact, StepId>,
    /// Facts whose derivations are told.
    chosen: HashSet<Fact>,
    /// Steps of the proof that are told.
    shown: HashSet<StepId>,
    /// Facts whose derivations have been told.
    told: HashSet<Fact>,
}

impl<'a> Teller<'a> {
    fn new(proof: &'a Derivation) -> Teller<'a> {
        let mut teller = Teller {
            steps: &proof.steps,
            derived: HashMap::new(),
            chosen: HashSet::new(),
            shown: HashSet::new(),
            told: HashSet::new(),
        };
        for place in 0..proof.steps.len() as u32 {
            if let Some(fact) = Fact::of(&teller.edge(StepId(place))) {
                teller.derived.entry(fact).or_insert(StepId(place));
            }
        }
        teller
    }

    fn tell(&mut self, cycles: &mut [Cycle]) {
        self.choose(cycles);
        for cycle in cycles {
            cycle.edges = cycle.edges.iter().map(|edge| self.told(edge, true)).collect();
        }
    }

    /// The facts that are told: those nearest to the cycles.
    fn choose(&mut self, cycles: &[Cycle]) {
        let top = cycles.iter().flat_map(|cycle| &cycle.edges);
        let mut open: VecDeque<Edge> = top.cloned().collect();
        let mut met: HashSet<Fact> = HashSet::new();
        let mut count = 0;
        while let Some(edge) = open.pop_front() {
            let Some(fact) = Fact::of(&edge) else { continue };
            let premises = self.premises(&edge);
            if !met.insert(fact) || count + premises.len() > TOLD_MAX {
                continue;
            }
            count += premises.len();
            self.chosen.insert(fact);
            if let Some(&step) = self.derived.get(&fact) {
                self.shown.insert(step);
                self.shown.extend(path(&self.steps[step.0 as usize].rule));
            }
            open.extend(premises);
        }
    }

    /// An edge with all that it follows from. Those of a cycle, and those that
    /// [`Cycle::dependencies`] puts in their place, are told even if they were before.
    /// Nested no deeper than what is chosen, so this may recurse.
    fn told(&mut self, edge: &Edge, on_cycle: bool) -> Edge {
        let Some(fact) = Fact::of(edge) else { return edge.clone() };
        let premises = self.premises(edge);
        let is_replaced = on_cycle && fact.by == By::Apart;
        let is_plain = matches!(&premises[..], [only] if self.premises(only).is_empty());
        let (Some(first), Some(last)) = (premises.first(), premises.last()) else {
            return edge.clone();
        };
        let (before, after) = (first.before, last.after);
        let because = if is_plain {
            premises
        } else if self.told.contains(&fact) && !on_cycle {
            vec![Edge::new(before, after, Reason::AsTold)]
        } else if self.chosen.contains(&fact) {
            let told: Vec<Edge> =
                premises.iter().map(|step| self.told(step, is_replaced)).collect();
            // Only now: what a fact follows from must not refer to it.
            if !is_replaced {
                self.told.insert(fact);
            }
            told
        } else {
            let steps = self.untold(fact);
            vec![Edge::new(before, after, Reason::Untold { steps })]
        };
        let mut told = edge.clone();
        if let Reason::Rule(rule) = &edge.reason {
            told.reason = Reason::Rule(rule.with_path(|_| because));
        }
        told
    }

    /// What an edge follows from, one derivation deep or as deep as the engine told it, and
    /// without what only says the same again: a version is not replaced because its writer and
    /// the next do not overlap, if that in turn follows from a read that missed the next.
    fn premises(&self, edge: &Edge) -> Vec<Edge> {
        let mut premises = self.found(edge);
        let fact = Fact::of(edge);
        let behind = premises.iter().flat_map(|step| self.found(step));
        if let Some(same) = behind.into_iter().find(|step| fact.is_some() && Fact::of(step) == fact)
        {
            premises = self.found(&same);
        }
        premises.into_iter().map(|step| self.in_fewer_words(step)).collect()
    }

    /// An order of two writers that follows from nothing but the same order: that one.
    fn in_fewer_words(&self, edge: Edge) -> Edge {
        let Some((key, _)) = edge.pair() else { return edge };
        let behind = self.found(&edge);
        match &behind[..] {
            [only]
                if (only.before, only.after) == (edge.before, edge.after)
                    && only.kind() == EdgeKind::Ww
                    && only.pair().is_none()
                    && !matches!(only.reason, Reason::Assumed { .. })
                    && only.key() == Some(key) =>
            {
                only.clone()
            }
            _ => edge,
        }
    }

    /// What an edge follows from as it was found.
    fn found(&self, edge: &Edge) -> Vec<Edge> {
        let own = edge.premises();
        if !matches!(own, [] | [Edge { reason: Reason::Untold { .. }, .. }]) {
            return own.to_vec();
        }
        let step = Fact::of(edge).and_then(|fact| self.derived.get(&fact));
        step.map_or_else(|| own.to_vec(), |&step| self.because(step))
    }

    /// The path that a step follows from, as edges between transactions.
    fn because(&self, step: StepId) -> Vec<Edge> {
        let rule = &self.steps[step.0 as usize].rule;
        let edges = path(rule).iter().map(|&id| self.edge(id));
        let edges: Vec<Edge> = edges.filter(|edge| edge.before != edge.after).collect();
        match (rule, &edges[..]) {
            // That who replaced a version had read it needs no step of its own.
            (Rule::AntiDependency { key, .. }, [only])
                if only.kind() == EdgeKind::Wr
                    && only.key() == Some(*key)
                    && only.after == self.steps[step.0 as usize].to.txn() =>
            {
                Vec::new()
            }
            _ => edges,
        }
    }

    /// A step as an edge, without what it follows from.
    fn edge(&self, id: StepId) -> Edge {
        let step = &self.steps[id.0 as usize];
        let (before, after) = (txn_of(step.from), txn_of(step.to));
        let reason = match step.rule {
            Rule::Pair { key, ref path } => match path[..] {
                [only] => match self.steps[only.0 as usize].rule {
                    Rule::InitialRead { read, .. } => Reason::FirstVersion { read, key },
                    _ => Reason::Rule(Rule::Pair { key, path: Vec::new() }),
                },
                _ => Reason::Rule(Rule::Pair { key, path: Vec::new() }),
            },
            ref rule => Reason::Rule(rule.with_path(|_| Vec::new())),
        };
        Edge::new(before, after, reason)
    }

    /// Steps that a fact follows from and that are not told.
    fn untold(&self, fact: Fact) -> Option<usize> {
        let mut met: HashSet<StepId> = HashSet::new();
        let mut open: Vec<StepId> =
            path(&self.steps[self.derived.get(&fact)?.0 as usize].rule).to_vec();
        while let Some(step) = open.pop() {
            if !self.shown.contains(&step) && met.insert(step) {
                open.extend(path(&self.steps[step.0 as usize].rule));
            }
        }
        Some(met.len())
    }
}

fn txn_of(node: Node) -> TxnId {
    if node == Node::INITIAL { INITIAL } else { node.txn() }
}

fn path(rule: &Rule) -> &[StepId] {
    rule.path().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::{TOLD_MAX, in_depth};
    use crate::anomaly::{Anomaly, AnomalyKind, Evidence};
    use crate::evidence::{Cycle, Edge, Reason};
    use isolde_certificate::{Derivation, End, Node, Rule, Step, StepId};
    use isolde_history::{KeyId, OpId, TxnId};

    /// A proof in which each order but the first follows from the one before it and a read.
    fn chain(length: u32) -> Derivation {
        let mut steps = Vec::new();
        for place in 0..length {
            let before = place.checked_sub(1).map(|before| 2 * before);
            let path = before.into_iter().flat_map(|it| [StepId(it), StepId(it + 1)]).collect();
            let rule = Rule::AntiDependency { read: OpId(place), key: KeyId(0), path };
            let (txn, next) = (TxnId(place), TxnId(place + 1));
            steps.push(Step { from: Node::begin(txn), to: Node::commit(next), rule });
            let rule = Rule::ReadsFrom { read: OpId(length + place), key: KeyId(1) };
            let after = Node::begin(TxnId(place + 2));
            steps.push(Step { from: Node::commit(next), to: after, rule });
        }
        Derivation { steps, end: End::Cycle(Vec::new()) }
    }

    /// How many edges say why the last order of such a proof holds, and how many steps are
    /// not told.
    fn told_of(length: u32) -> (usize, Option<usize>) {
        let rule = Rule::AntiDependency { read: OpId(length - 1), key: KeyId(0), path: Vec::new() };
        let edge = Edge::by(rule, TxnId(length - 1), TxnId(length));
        let evidence = Evidence::Cycle(Cycle { edges: vec![edge] });
        let anomaly = Anomaly { kind: AnomalyKind::WriteSkew, txns: Vec::new(), evidence };
        let anomaly = in_depth(anomaly, &chain(length));
        let Evidence::Cycle(cycle) = &anomaly.evidence else { panic!("still a cycle") };
        let (mut count, mut open) = (0, vec![&cycle.edges[0]]);
        while let Some(edge) = open.pop() {
            if let Reason::Untold { steps } = edge.reason {
                return (count, steps);
            }
            let is_told = |it: &&Edge| !matches!(it.reason, Reason::Untold { .. });
            count += edge.premises().iter().filter(is_told).count();
            open.extend(edge.premises());
        }
        (count, None)
    }

    /// The read of step 2 missed a version because of step 3, which follows from step 2.
    #[test]
    fn what_only_says_the_same_again_is_left_out() {
        let (key, read) = (KeyId(0), OpId(0));
        let (writer, reader, next) = (TxnId(0), TxnId(1), TxnId(2));
        let step = |from, to, rule| Step { from, to, rule };
        let saw = |read| Rule::ReadsFrom { read: OpId(read), key: KeyId(read) };
        let path = vec![StepId(0), StepId(1)];
        let steps = vec![
            step(Node::commit(writer), Node::begin(TxnId(3)), saw(3)),
            step(Node::commit(TxnId(3)), Node::begin(next), saw(4)),
            step(Node::begin(reader), Node::commit(next), Rule::AntiDependency { read, key, path }),
            step(Node::commit(writer), Node::begin(reader), Rule::ReadsFrom { read, key }),
            step(
                Node::commit(writer),
                Node::begin(next),
                Rule::Pair { key, path: vec![StepId(3), StepId(2)] },
            ),
        ];
        let proof = Derivation { steps, end: End::Cycle(Vec::new()) };
        let pair = Edge::by(Rule::Pair { key, path: Vec::new() }, writer, next);
        let rule = Rule::AntiDependency { read, key, path: vec![pair] };
        let edge = Edge::by(rule, reader, next);
        let evidence = Evidence::Cycle(Cycle { edges: vec![edge] });
        let anomaly = Anomaly { kind: AnomalyKind::ReadSkew, txns: Vec::new(), evidence };
        let anomaly = in_depth(anomaly, &proof);
        let Evidence::Cycle(cycle) = &anomaly.evidence else { panic!("still a cycle") };
        let ends: Vec<(u32, u32)> =
            cycle.edges[0].premises().iter().map(|edge| (edge.before.0, edge.after.0)).collect();
        assert_eq!(ends, [(0, 3), (3, 2)]);
    }

    #[test]
    fn derivations_are_told_however_deep() {
        assert_eq!(told_of(1), (0, None));
        assert_eq!(told_of(100), (198, None));
    }

    #[test]
    fn what_is_too_much_for_a_reader_is_counted() {
        assert_eq!(told_of(150), (TOLD_MAX, Some(2 * 149 - TOLD_MAX)));
    }
}

//! Orders that are told once: what is needed again or lies deep is referred to by a number.
//!
//! A derivation that is nested as deep as it was found cannot be read, and one that repeats what
//! it shares with others can be of any length. So an order that follows from several others is
//! told where it is first needed; deep ones move to [`Scenario::facts`] at the end.

use super::{EdgeKind, Scenario, ScenarioEdge};
use std::collections::BTreeMap;

/// Derivations inside derivations that are told in place.
const DEPTH_MAX: usize = 4;

/// What a reason without premises stands for, until facts have their numbers.
pub(super) const AS_TOLD: usize = usize::MAX;

/// Tells every order once, and numbers those that are referred to.
pub(super) fn gather(scenario: &mut Scenario) {
    let mut gatherer = Gatherer::default();
    let cases = scenario.cases.iter().flat_map(|case| &case.edges);
    for edge in scenario.edges.iter().chain(cases) {
        gatherer.note(edge);
    }
    let cases = scenario.cases.iter_mut().flat_map(|case| &mut case.edges);
    for edge in scenario.edges.iter_mut().chain(cases) {
        gatherer.place(edge, 0);
    }
    let mut next = 0;
    while next < gatherer.apart.len() {
        let mut fact = gatherer.apart[next].clone();
        gatherer.tell(&mut fact, 0);
        gatherer.apart[next] = fact;
        next += 1;
    }
    scenario.facts = gatherer.apart;
    let mut numbers = Numbers { referred: gatherer.referred, number: BTreeMap::new() };
    let cases = scenario.cases.iter_mut().flat_map(|case| &mut case.edges);
    let edges = scenario.edges.iter_mut().chain(cases).chain(&mut scenario.facts);
    edges.for_each(|edge| numbers.give(edge));
    scenario.facts.sort_by_key(|fact| fact.fact);
}

/// Whether the later transaction replaced what it had read, which one sentence says.
pub(crate) fn is_update(edge: &ScenarioEdge) -> bool {
    edge.kind == EdgeKind::Ww
        && matches!(&edge.because[..], [read] if read.kind == EdgeKind::Wr && read.key == edge.key)
}

#[derive(Default)]
struct Gatherer {
    /// Orders that follow from others, as they were found.
    noted: Vec<ScenarioEdge>,
    is_told: Vec<bool>,
    /// Which of them are referred to.
    referred: Vec<bool>,
    /// Those that are told apart.
    apart: Vec<ScenarioEdge>,
}

impl Gatherer {
    fn note(&mut self, edge: &ScenarioEdge) {
        if has_a_story(edge) && self.same(edge).is_none() {
            self.noted.push(edge.clone());
            self.is_told.push(false);
            self.referred.push(false);
        }
        edge.because.iter().for_each(|step| self.note(step));
    }

    /// The place of an order that says the same for the same reasons.
    fn same(&self, edge: &ScenarioEdge) -> Option<usize> {
        self.noted.iter().position(|noted| {
            says_the_same(noted, edge)
                && (edge.fact == Some(AS_TOLD) || noted.because == edge.because)
        })
    }

    fn place(&mut self, edge: &mut ScenarioEdge, depth: usize) {
        let is_told_elsewhere = edge.fact == Some(AS_TOLD);
        if !is_told_elsewhere && !has_a_story(edge) {
            return;
        }
        let Some(same) = self.same(edge) else {
            // The one that is meant is not here: it was put in other words.
            (edge.fact, edge.left_out) = (None, Some(0));
            return;
        };
        edge.fact = Some(same);
        edge.explanation.clone_from(&self.noted[same].explanation);
        edge.operations.clone_from(&self.noted[same].operations);
        if is_told_elsewhere || self.is_told[same] {
            self.referred[same] = true;
            edge.because.clear();
        } else if depth >= DEPTH_MAX {
            self.is_told[same] = true;
            self.referred[same] = true;
            self.apart.push(edge.clone());
            edge.because.clear();
        } else {
            self.tell(edge, depth);
            self.is_told[same] = true;
        }
    }

    fn tell(&mut self, edge: &mut ScenarioEdge, depth: usize) {
        edge.because.iter_mut().for_each(|step| self.place(step, depth + 1));
    }
}

/// Whether it takes more than a line to say what an edge follows from.
fn has_a_story(edge: &ScenarioEdge) -> bool {
    let is_derived = |step: &ScenarioEdge| {
        !step.because.is_empty() || step.fact.is_some() || step.left_out.is_some()
    };
    !is_update(edge) && (edge.because.len() > 1 || edge.because.iter().any(is_derived))
}

/// Of edges with the same ends and key, the first operation tells how they are known.
fn says_the_same(one: &ScenarioEdge, other: &ScenarioEdge) -> bool {
    let said =
        |edge: &ScenarioEdge| (edge.from, edge.to, edge.kind, edge.operations.first().copied());
    said(one) == said(other) && one.key == other.key
}

/// Numbers in the order in which a reader meets them.
struct Numbers {
    referred: Vec<bool>,
    number: BTreeMap<usize, usize>,
}

impl Numbers {
    fn give(&mut self, edge: &mut ScenarioEdge) {
        edge.fact = edge.fact.filter(|&fact| self.referred[fact]).map(|fact| {
            let next = self.number.len() + 1;
            *self.number.entry(fact).or_insert(next)
        });
        edge.because.iter_mut().for_each(|step| self.give(step));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OpRef, Scenario, ScenarioEdge};
    use super::{AS_TOLD, gather};

    fn edge(from: usize, because: Vec<ScenarioEdge>) -> ScenarioEdge {
        let operations = vec![OpRef { transaction: from, operation: 0 }];
        ScenarioEdge { from, to: from + 1, operations, because, ..ScenarioEdge::default() }
    }

    /// The facts of a scenario and of its edges: `0` has no number, `2(…)` is told as the second,
    /// `2` refers to it.
    fn shape(edges: &[ScenarioEdge]) -> String {
        let each = edges.iter().map(|edge| {
            let fact = edge.fact.unwrap_or(0);
            if edge.because.is_empty() {
                fact.to_string()
            } else {
                format!("{fact}({})", shape(&edge.because))
            }
        });
        each.collect::<Vec<_>>().join(" ")
    }

    fn gathered(edges: Vec<ScenarioEdge>) -> String {
        let mut scenario = Scenario { edges, ..Scenario::default() };
        gather(&mut scenario);
        format!("{} | {}", shape(&scenario.edges), shape(&scenario.facts))
    }

    #[test]
    fn what_is_needed_twice_is_told_once() {
        let fact = || edge(1, vec![edge(1, vec![]), edge(2, vec![])]);
        let other = edge(1, vec![edge(2, vec![]), edge(3, vec![])]);
        assert_eq!(gathered(vec![edge(0, vec![fact()]), fact()]), "0(1(0 0)) 1 | ");
        // The same order for other reasons is another one.
        assert_eq!(gathered(vec![edge(0, vec![fact()]), other]), "0(0(0 0)) 0(0 0) | ");
        let as_told = ScenarioEdge { fact: Some(AS_TOLD), ..edge(1, vec![]) };
        assert_eq!(gathered(vec![fact(), as_told]), "1(0 0) 1 | ");
    }

    #[test]
    fn what_lies_deep_is_told_apart() {
        let nested = |depth: usize| {
            (0..depth).rev().fold(edge(9, vec![]), |inner, place| edge(place, vec![inner]))
        };
        assert_eq!(gathered(vec![nested(5)]), "0(0(0(0(0(0))))) | ");
        assert_eq!(gathered(vec![nested(6)]), "0(0(0(0(1)))) | 1(0(0))");
    }

    #[test]
    fn what_is_told_nowhere_is_left_out() {
        let as_told = ScenarioEdge { fact: Some(AS_TOLD), ..edge(1, vec![]) };
        let mut scenario = Scenario { edges: vec![as_told], ..Scenario::default() };
        gather(&mut scenario);
        assert_eq!((scenario.edges[0].fact, scenario.edges[0].left_out), (None, Some(0)));
    }
}

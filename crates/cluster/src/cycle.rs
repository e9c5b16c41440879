//! The shortest cycle of dependencies and real time among the events of a window.
//!
//! All pairs that real time orders would be quadratic. Chains of points in time carry the order
//! instead: an event leads to the first point after its completion, and the last point before
//! an invocation leads to that event. Begins have a chain of their own, which no begin leads to.

use crate::event::{Dependency, Event, Kind};
use hashbrown::HashMap;
use std::collections::VecDeque;

/// So many events are tried as the start of the shortest cycle; the earliest ones.
const STARTS_MAX: usize = 64;

/// A shortest cycle of these dependencies and of real time among these events and the ends of
/// the dependencies. Each event leads to the next one, and the last to the first.
pub fn shortest(events: &[Event], dependencies: &[Dependency]) -> Option<Vec<Event>> {
    let mut graph = Graph::new(events, dependencies);
    graph.peel();
    graph.shortest()
}

struct Graph {
    events: Vec<Event>,
    /// By node: events first, then points.
    next: Vec<Vec<u32>>,
    /// Nodes that may lie on a cycle.
    left: Vec<bool>,
}

impl Graph {
    fn new(events: &[Event], dependencies: &[Dependency]) -> Graph {
        let ends = dependencies.iter().flat_map(|it| [it.from, it.to]);
        let mut all: Vec<Event> = events.iter().copied().chain(ends).collect();
        all.sort_unstable();
        all.dedup();
        let places: HashMap<Event, u32> = (0..).zip(&all).map(|(place, &it)| (it, place)).collect();
        let mut next = vec![Vec::new(); all.len()];
        for it in dependencies {
            next[places[&it.from] as usize].push(places[&it.to]);
        }
        let mut graph = Graph { events: all, next, left: Vec::new() };
        graph.add_chain(|_| true, |to| to != Kind::Begin);
        graph.add_chain(|from| from != Kind::Begin, |to| to == Kind::Begin);
        graph.left = vec![true; graph.next.len()];
        graph
    }

    /// Real time from events of some kinds to events of others.
    fn add_chain(&mut self, is_from: fn(Kind) -> bool, is_to: fn(Kind) -> bool) {
        let numbered = || (0..).zip(&self.events);
        let from = numbered().filter(|(_, it)| is_from(it.kind) && it.completed < i64::MAX);
        let mut completed: Vec<(i64, u32)> = from.map(|(node, it)| (it.completed, node)).collect();
        let to = numbered().filter(|(_, it)| is_to(it.kind));
        let mut invoked: Vec<(i64, u32)> = to.map(|(node, it)| (it.invoked, node)).collect();
        completed.sort_unstable();
        invoked.sort_unstable();
        let mut completed = completed.into_iter().peekable();
        let mut point: Option<u32> = None;
        for (time, event) in invoked {
            let mut is_new = true;
            while let Some((_, before)) = completed.next_if(|it| it.0 < time) {
                if is_new {
                    let new = self.next.len() as u32;
                    self.next.push(Vec::new());
                    if let Some(last) = point.replace(new) {
                        self.next[last as usize].push(new);
                    }
                    is_new = false;
                }
                let point = point.expect("made with the first completion");
                self.next[before as usize].push(point);
            }
            if let Some(point) = point {
                self.next[point as usize].push(event);
            }
        }
    }

    /// Takes away what no cycle leads to.
    fn peel(&mut self) {
        let mut before = vec![0u32; self.next.len()];
        for &to in self.next.iter().flatten() {
            before[to as usize] += 1;
        }
        let free = |node: &u32| before[*node as usize] == 0;
        let mut open: Vec<u32> = (0..self.next.len() as u32).filter(free).collect();
        while let Some(node) = open.pop() {
            self.left[node as usize] = false;
            for &to in &self.next[node as usize] {
                before[to as usize] -= 1;
                if before[to as usize] == 0 {
                    open.push(to);
                }
            }
        }
    }

    fn shortest(&self) -> Option<Vec<Event>> {
        let starts = (0..self.events.len() as u32).filter(|&node| self.left[node as usize]);
        let mut best: Option<Vec<u32>> = None;
        for (tried, start) in starts.enumerate() {
            // What is left may hang on a cycle without lying on one.
            if tried >= STARTS_MAX && best.is_some() {
                break;
            }
            let most = best.as_ref().map_or(usize::MAX, Vec::len);
            best = self.back_to(start, most).or(best);
        }
        Some(best?.into_iter().map(|node| self.events[node as usize]).collect())
    }

    /// The shortest way from an event back to it, if it has fewer events than this.
    fn back_to(&self, start: u32, most: usize) -> Option<Vec<u32>> {
        let is_event = |node: u32| (node as usize) < self.events.len();
        let mut from: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut open = VecDeque::from([(start, 1)]);
        while let Some((node, length)) = open.pop_front() {
            if length >= most || from.get(&node).is_some_and(|known| known.1 < length) {
                continue;
            }
            for &to in self.next[node as usize].iter().filter(|&&to| self.left[to as usize]) {
                if to == start {
                    return Some(self.way(start, node, &from));
                }
                let longer = length + usize::from(is_event(to));
                if from.get(&to).is_none_or(|known| known.1 > longer) {
                    from.insert(to, (node, longer));
                    if is_event(to) {
                        open.push_back((to, longer));
                    } else {
                        open.push_front((to, longer));
                    }
                }
            }
        }
        None
    }

    fn way(&self, start: u32, last: u32, from: &HashMap<u32, (u32, usize)>) -> Vec<u32> {
        let mut way = Vec::new();
        let mut node = last;
        while node != start {
            if (node as usize) < self.events.len() {
                way.push(node);
            }
            node = from[&node].0;
        }
        way.push(start);
        way.reverse();
        way
    }
}

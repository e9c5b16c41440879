//! What an object can have held while an operation was open: for explanations.
//!
//! **Definition.** An operation left what the object holds if it was the last to change
//! it. Over all orders of the other operations that keep real time and explain what those
//! saw that had completed when the operation in question did, these are the operations
//! that may have left what it found.
//!
//! **Method.** Like [`search`](super::search), but every configuration also knows who
//! changed the object last, and nothing keeps configurations few but their number: this is
//! for what a person is told, who will not follow thousands of ways either.

use super::events::{Event, events};
use super::operations::{Action, Content, NilReads, Operation, Operations, Texts};
use super::search::after;
use hashbrown::{HashMap, HashSet};
use isolde_history::{History, OpId};

/// More configurations are not looked at.
const CONFIGURATIONS_MAX: usize = 20_000;

/// The operations that may have left what an operation that nothing explains found, in order
/// of invocation, `None` for the initial state. Nothing if that takes too long to find out,
/// or if some order would let the operation see what it saw and fails elsewhere.
pub(super) fn left_while_open(history: &History, unexplained: OpId) -> Option<Vec<Option<OpId>>> {
    [NilReads::Absent, NilReads::NotKnown].into_iter().find_map(|nil_reads| {
        let mut operations = Operations::of(history, nil_reads, 0)?;
        let at = operations.all.iter().position(|it| it.op == unexplained)?;
        let object = operations.all[at].object;
        let initial = operations.objects.get(object)?.initial;
        let own = operations.all.iter().filter(|it| it.object == object);
        let own: Vec<Operation> = own.copied().collect();
        let place = own.iter().position(|it| it.op == unexplained)?;
        let walk = Walk {
            operations: &own,
            texts: &mut operations.texts,
            place,
            open: Vec::new(),
            nodes: Vec::new(),
            current: HashMap::new(),
        };
        walk.left(initial)
    })
}

/// What was last changed by whom, and which open operations have taken effect.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    content: Content,
    left_by: Option<usize>,
    /// Ascending.
    done: Vec<usize>,
}

struct Node {
    content: Content,
    left_by: Option<usize>,
    /// Nodes that it came from, since the operation in question was invoked.
    from: Vec<usize>,
}

struct Walk<'a> {
    operations: &'a [Operation],
    texts: &'a mut Texts,
    /// The operation in question.
    place: usize,
    /// Others that were invoked and have not completed.
    open: Vec<usize>,
    nodes: Vec<Node>,
    /// The configurations of this moment, each with its node.
    current: HashMap<Configuration, usize>,
}

impl Walk<'_> {
    fn left(mut self, initial: Content) -> Option<Vec<Option<OpId>>> {
        let start = Configuration { content: initial, left_by: None, done: Vec::new() };
        self.add(start, None);
        for event in events(self.operations) {
            match event {
                Event::Invoked(place) if place == self.place => self.begin_anew(),
                Event::Invoked(place) => self.open.push(place),
                Event::Completed(place) => {
                    self.spread()?;
                    if place == self.place {
                        return self.told();
                    }
                    self.complete(place);
                    if self.current.is_empty() {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Forgets how the present configurations came about.
    fn begin_anew(&mut self) {
        self.nodes.clear();
        let current = std::mem::take(&mut self.current);
        for configuration in sorted(current) {
            self.add(configuration, None);
        }
    }

    fn add(&mut self, configuration: Configuration, from: Option<usize>) -> bool {
        if let Some(&known) = self.current.get(&configuration) {
            self.nodes[known].from.extend(from);
            return false;
        }
        let Configuration { content, left_by, .. } = configuration;
        self.nodes.push(Node { content, left_by, from: from.into_iter().collect() });
        self.current.insert(configuration, self.nodes.len() - 1);
        true
    }

    /// Lets open operations take effect in all ways.
    fn spread(&mut self) -> Option<()> {
        let mut waiting = sorted(self.current.clone());
        while let Some(configuration) = waiting.pop() {
            let node = self.current[&configuration];
            for &place in &self.open.clone() {
                if configuration.done.contains(&place) {
                    continue;
                }
                let action = self.operations[place].action;
                let Some(content) = after(action, configuration.content, self.texts) else {
                    continue;
                };
                let mut done = configuration.done.clone();
                done.push(place);
                done.sort_unstable();
                let left_by = if action.is_read() { configuration.left_by } else { Some(place) };
                let next = Configuration { content, left_by, done };
                if self.add(next.clone(), Some(node)) {
                    waiting.push(next);
                }
            }
            if self.nodes.len() > CONFIGURATIONS_MAX {
                return None;
            }
        }
        Some(())
    }

    /// Keeps the configurations in which this one has taken effect.
    fn complete(&mut self, place: usize) {
        self.open.retain(|&open| open != place);
        let current = std::mem::take(&mut self.current);
        let node_of = current.clone();
        for mut configuration in sorted(current) {
            let node = node_of[&configuration];
            if let Ok(at) = configuration.done.binary_search(&place) {
                configuration.done.remove(at);
                self.add(configuration, Some(node));
            }
        }
    }

    /// Who left what the object held, in all configurations from which those of this moment
    /// came about.
    fn told(self) -> Option<Vec<Option<OpId>>> {
        let mut seen: HashSet<usize> = self.current.values().copied().collect();
        let mut open: Vec<usize> = seen.iter().copied().collect();
        while let Some(node) = open.pop() {
            open.extend(self.nodes[node].from.iter().filter(|&&from| seen.insert(from)));
        }
        let (Action::Read(found) | Action::Replace { old: found, .. }) =
            self.operations[self.place].action
        else {
            return None;
        };
        if seen.iter().any(|&node| self.nodes[node].content == found) {
            return None;
        }
        let mut left: Vec<Option<usize>> =
            seen.iter().map(|&node| self.nodes[node].left_by).collect();
        left.sort_unstable_by_key(|left| left.map(|place| (self.operations[place].invoked, place)));
        left.dedup();
        Some(left.into_iter().map(|left| left.map(|place| self.operations[place].op)).collect())
    }
}

/// In an order that does not depend on a hash table.
fn sorted(configurations: HashMap<Configuration, usize>) -> Vec<Configuration> {
    let mut all: Vec<(usize, Configuration)> =
        configurations.into_iter().map(|(configuration, node)| (node, configuration)).collect();
    all.sort_unstable_by_key(|&(node, _)| node);
    all.into_iter().map(|(_, configuration)| configuration).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::linearizable::{Reading, decide};
    use crate::{Evidence, Verdict};
    use isolde_history::format::parse_text;

    /// Who may have left what the operation found that nothing explains.
    fn check(text: &str, expected: Option<&[&str]>) {
        let history = parse_text(text).expect("a well-formed history");
        let verdict = decide(&history, &Limits::NONE, Reading::default());
        let Some(Verdict::Violated(violated)) = verdict else { panic!("{verdict:?}: {text}") };
        let Evidence::Operations { ops, .. } = &violated.anomalies[0].evidence else {
            panic!("operations show it")
        };
        let name = |op: Option<OpId>| {
            op.map_or("initial".to_owned(), |op| history.txn_name(history.txn_of(op)))
        };
        let left = left_while_open(&history, ops[0]);
        let left: Option<Vec<String>> = left.map(|left| left.into_iter().map(name).collect());
        let left: Option<Vec<&str>> =
            left.as_ref().map(|left| left.iter().map(String::as_str).collect());
        assert_eq!(left.as_deref(), expected, "{text}");
    }

    #[test]
    fn a_lock_is_held_by_who_acquired_it_last() {
        let taken =
            "A @1..2: c(:acquire,nil)\nB @3..4: c(:release,nil)\nC @5..6: c(:acquire,nil)\n";
        check(&format!("{taken}D @7..8: c(:acquire,nil)"), Some(&["C"]));
        // Either of two that acquire it at the same time finds it free in some order.
        check("A @1..5: c(:acquire,nil)\nB @2..5: c(:acquire,nil)", None);
        check("A @1..2: c(:release,nil)", Some(&["initial"]));
    }

    #[test]
    fn a_register_holds_what_one_of_its_last_writers_left() {
        let repeated = "A @1..2: w(x,1)\nB @3..9: w(x,2)\nC @3..9: w(x,1)\nD @4..5: r(x,2)\n";
        check(&format!("{repeated}E @6..7: r(x,1)\nF @8..9: r(x,2)"), Some(&["C"]));
        let two = "A @1..2: w(x,1)\nB @3..4: w(x,1)\nC @3..4: w(x,2)\nD @5..6: w(x,3)\n";
        check(&format!("{two}E @5..7: r(x,1)\nF @8..9: r(x,2)"), Some(&["D"]));
    }
}

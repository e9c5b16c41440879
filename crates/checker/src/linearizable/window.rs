//! Why no order explains an operation on a register: the fewest calls that show it.
//!
//! **Definition.** A window begins with a call that is known to have found or left a content,
//! or with the initial state, and has some of the calls that were not over by then. It shows a
//! violation if no order of them that keeps real time explains what they saw.
//!
//! **Method.** The latest beginning is taken whose window still has no order; then calls are
//! left out while it has none. Only calls whose effect nobody in the window saw are left out:
//! without a write, its readers would look as if they had invented something. What overlaps
//! the beginning may have come before it and is free to have no effect. Neither can a window
//! accuse a history that has an order: that order, from the beginning on, is one of the window.
//!
//! A call of unknown outcome may take effect in any later window. It is left out where an
//! earlier operation has no explanation without it: then it took effect before that was over.

use super::operations::{Action, Content, NilReads, Object, Operation, Operations, Texts};
use super::search::{Problem, Searched, after, search};
use crate::limits::Limits;
use hashbrown::HashSet;
use isolde_history::{ALWAYS, History, NEVER, OpId};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Longer windows are not looked at: nobody would follow them.
const CALLS_MAX: usize = 300;
/// More calls than these are not told.
const TOLD_MAX: usize = 8;
/// More orders than these are not told.
const ORDERS_MAX: usize = 8;
/// So often a search may ask whether to go on, all searches together: half a second. Counted and
/// not timed, so that the same history has the same window.
const LOOKS_MAX: usize = 500;
/// So many calls may be searched for an order, those of all searches together.
const SEARCHED_MAX: usize = 1 << 20;

/// Calls of one register that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The call that found or left what the register held at the beginning; the initial
    /// state, if none.
    pub beginning: Option<OpId>,
    /// In order of invocation. Without any of them the others have an order, or lack who wrote
    /// what they saw.
    pub calls: Vec<OpId>,
    /// Calls of unknown outcome that took effect before, each with an operation that nothing
    /// else explains.
    pub earlier: Vec<(OpId, OpId)>,
    /// Every order, as far as it goes.
    pub orders: Vec<Attempt>,
}

impl Window {
    /// All operations that it tells of.
    pub fn all(&self) -> impl Iterator<Item = OpId> {
        let earlier = self.earlier.iter().flat_map(|&(call, by)| [call, by]);
        self.beginning.into_iter().chain(self.calls.iter().copied()).chain(earlier)
    }
}

/// An order as far as it explains what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The calls in this order.
    pub placed: Vec<OpId>,
    /// The call that can be no further one, and neither can another.
    pub stuck: OpId,
    /// Who left what it should have found; the beginning, if none.
    pub left_by: Option<OpId>,
}

/// The smallest window that shows why an operation has no explanation. Nothing if that takes
/// too long to find out, if too many calls are needed, or if it is about a lock or texts.
pub(super) fn window(history: &History, unexplained: OpId, limits: &Limits<'_>) -> Option<Window> {
    [NilReads::Absent, NilReads::NotKnown].into_iter().find_map(|nil_reads| {
        let operations = Operations::of(history, nil_reads, 0)?;
        let last = operations.all.iter().find(|it| it.op == unexplained)?;
        let initial = operations.objects.get(last.object)?.initial;
        let is_own = |it: &&Operation| it.object == last.object && it.invoked <= last.completed;
        let own = operations.all.iter().filter(is_own);
        let own: Vec<Operation> = own.map(|it| at_the_end(*it, last)).collect();
        let is_register = |it: &Operation| !matches!(it.action, Action::Append(_));
        if !own.iter().all(is_register) || matches!(last.action, Action::ReadOther(_)) {
            return None;
        }
        let key = operations.objects[last.object];
        let (looks, searched) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let seeker = Seeker { looks, searched, key, limits };
        seeker.window(&own, initial)
    })
}

/// A call as it was when the last one ended: what others had not been told yet, they cannot be
/// held to, because who wrote it may have begun later.
fn at_the_end(call: Operation, last: &Operation) -> Operation {
    let call = Operation { object: 0, ..call };
    if call.completed <= last.completed {
        return call;
    }
    let action = if call.action.is_read() { Action::Nothing } else { call.action };
    Operation { action, completed: NEVER, is_certain: false, ..call }
}

/// A search had to be given up.
struct TooLong;

struct Seeker<'a> {
    looks: AtomicUsize,
    searched: AtomicUsize,
    /// The register.
    key: Object,
    limits: &'a Limits<'a>,
}

/// What a window begins with: a content, and the call that tells it.
#[derive(Clone, Copy)]
struct Beginning {
    content: Content,
    call: Option<Operation>,
}

impl Seeker<'_> {
    fn window(&self, own: &[Operation], initial: Content) -> Option<Window> {
        // Whether a refused compare-and-set has a place depends on all others.
        let told = |it: &&Operation| !matches!(it.action, Action::ReadOther(_) | Action::Nothing);
        let own: Vec<Operation> = own.iter().filter(told).copied().collect();
        let earlier = self.earlier(&own, initial)?;
        let (beginning, calls) = self.latest(&own, initial, &earlier)?;
        let calls = self.smallest(beginning.content, calls)?;
        let orders = orders(beginning, &calls)?;
        let written: HashSet<Content> = calls.iter().filter_map(|it| it.action.seen()).collect();
        let begun = beginning.call.map_or(ALWAYS, |call| call.invoked);
        let matters = |(call, by): &(Operation, Operation)| {
            by.completed < begun && call.action.left().is_some_and(|left| written.contains(&left))
        };
        let earlier = earlier.into_iter().filter(matters).map(|(call, by)| (call.op, by.op));
        Some(Window {
            beginning: beginning.call.map(|call| call.op),
            earlier: earlier.collect(),
            calls: calls.iter().map(|call| call.op).collect(),
            orders,
        })
    }

    /// The first operation that no order explains, if there is one.
    fn unexplained(&self, initial: Content, calls: &[Operation]) -> Result<Option<usize>, TooLong> {
        let is_too_long = || self.looks.fetch_add(1, Ordering::Relaxed) > LOOKS_MAX;
        let stop = || is_too_long() || (self.limits.stop)();
        let searched = self.searched.fetch_add(calls.len(), Ordering::Relaxed);
        if searched > SEARCHED_MAX || (self.limits.stop)() {
            return Err(TooLong);
        }
        let limits = Limits { stop: &stop, working_bytes_max: Some(1 << 26), ..Limits::NONE };
        let objects = [Object { initial, ..self.key }];
        let problem = Problem { operations: calls, objects: &objects, before: &[] };
        match search(&problem, &mut Texts::default(), &limits) {
            Searched::Order(_) => Ok(None),
            Searched::Unexplained(shown) => Ok(Some(shown[0])),
            Searched::Limit(_) => Err(TooLong),
        }
    }

    /// Calls of unknown outcome, each with the first operation that lacks an explanation
    /// without it.
    fn earlier(&self, own: &[Operation], initial: Content) -> Option<Vec<(Operation, Operation)>> {
        let seen: HashSet<Content> = own.iter().filter_map(|it| it.action.seen()).collect();
        let is_seen = |it: &Operation| it.action.left().is_some_and(|left| seen.contains(&left));
        let mut earlier = Vec::new();
        for uncertain in own.iter().filter(|it| !it.is_certain && is_seen(it)) {
            let others = own.iter().filter(|it| it.op != uncertain.op);
            let others: Vec<Operation> = others.copied().collect();
            if let Some(place) = self.unexplained(initial, &others).ok()? {
                earlier.push((*uncertain, others[place]));
            }
        }
        Some(earlier)
    }

    /// The latest beginning after which there is no order, and the calls from there on.
    fn latest(
        &self,
        own: &[Operation],
        initial: Content,
        earlier: &[(Operation, Operation)],
    ) -> Option<(Beginning, Vec<Operation>)> {
        let mut beginnings: Vec<&Operation> = own.iter().filter(|it| it.is_certain).collect();
        beginnings.sort_by_key(|it| std::cmp::Reverse((it.completed, it.op)));
        let certain = beginnings.into_iter().filter_map(|&call| {
            let content = call.action.left().or(call.action.seen())?;
            Some(Beginning { content, call: Some(call) })
        });
        for beginning in certain.chain([Beginning { content: initial, call: None }]) {
            let calls = calls_since(beginning, own, earlier);
            if calls.len() > CALLS_MAX {
                return None;
            }
            if self.unexplained(beginning.content, &calls).ok()?.is_some() {
                return Some((beginning, calls));
            }
        }
        None
    }

    /// Leaves calls out while there is no order, those before others that are told least of.
    fn smallest(&self, initial: Content, mut calls: Vec<Operation>) -> Option<Vec<Operation>> {
        loop {
            let mut is_smaller = false;
            let mut candidates: Vec<Operation> = calls.clone();
            candidates.sort_by_key(|it| (it.is_certain, it.action.left().is_some(), it.invoked));
            for call in candidates {
                let rest = calls.iter().filter(|it| it.op != call.op);
                let rest: Vec<Operation> = rest.copied().collect();
                let is_seen = call
                    .action
                    .left()
                    .is_some_and(|left| rest.iter().any(|other| other.action.seen() == Some(left)));
                if !is_seen && self.unexplained(initial, &rest).ok()?.is_some() {
                    calls = rest;
                    is_smaller = true;
                }
            }
            if !is_smaller {
                calls.sort_by_key(|it| (it.invoked, it.op));
                return (calls.len() <= TOLD_MAX).then_some(calls);
            }
        }
    }
}

/// The calls that may come after a beginning.
fn calls_since(
    beginning: Beginning,
    own: &[Operation],
    earlier: &[(Operation, Operation)],
) -> Vec<Operation> {
    let Some(first) = beginning.call else { return own.to_vec() };
    let is_over = |it: &Operation| {
        it.op == first.op
            || it.completed < first.invoked
            || earlier.iter().any(|(call, by)| call.op == it.op && by.completed < first.invoked)
    };
    let mut calls = Vec::new();
    for &call in own.iter().filter(|&it| !is_over(it)) {
        let may_be_before = call.invoked <= first.completed;
        if !may_be_before {
            calls.push(call);
        } else if !call.action.is_read() {
            calls.push(Operation { completed: NEVER, is_certain: false, ..call });
        }
    }
    calls
}

/// Every order of some calls, as far as it goes; nothing if there are too many.
fn orders(beginning: Beginning, calls: &[Operation]) -> Option<Vec<Attempt>> {
    let mut attempts = Vec::new();
    let mut waiting = vec![(beginning.content, Vec::<usize>::new())];
    while let Some((content, placed)) = waiting.pop() {
        let left: Vec<usize> = (0..calls.len()).filter(|it| !placed.contains(it)).collect();
        let is_next = |&place: &usize| {
            !left.iter().any(|&other| calls[other].completed < calls[place].invoked)
        };
        let next = |&place: &usize| {
            let content = after(calls[place].action, content, &mut Texts::default())?;
            let placed = placed.iter().copied().chain([place]).collect::<Vec<usize>>();
            Some((content, placed))
        };
        // A read changes nothing, so it is never too early.
        let possible: Vec<usize> = left.iter().copied().filter(is_next).collect();
        let read = possible.iter().filter(|&&place| calls[place].action.is_read()).find_map(next);
        let steps: Vec<(Content, Vec<usize>)> = match read {
            Some(read) => vec![read],
            None => possible.iter().rev().filter_map(next).collect(),
        };
        if steps.is_empty() {
            let stuck = possible.iter().filter(|&&place| calls[place].is_certain);
            let stuck = *stuck.min_by_key(|&&place| calls[place].completed)?;
            let left_by = placed.iter().rev().find(|&&place| !calls[place].action.is_read());
            attempts.push(Attempt {
                placed: placed.iter().map(|&place| calls[place].op).collect(),
                stuck: calls[stuck].op,
                left_by: left_by.map(|&place| calls[place].op),
            });
        }
        waiting.extend(steps);
        if attempts.len() > ORDERS_MAX || waiting.len() > ORDERS_MAX * TOLD_MAX {
            return None;
        }
    }
    Some(attempts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::{Reading, decide};
    use crate::{Evidence, Verdict};
    use isolde_history::format::parse_text;

    /// Beginning, calls, those of unknown outcome before, and where each order ends.
    fn check(text: &str, expected: &str) {
        let history = parse_text(text).expect("a well-formed history");
        let verdict = decide(&history, &Limits::NONE, Reading::default());
        let Some(Verdict::Violated(violated)) = verdict else { panic!("{verdict:?}: {text}") };
        let Evidence::Operations { ops, .. } = &violated.anomalies[0].evidence else {
            panic!("operations show it")
        };
        let name = |op: &OpId| history.txn_name(history.txn_of(*op));
        let names = |ops: &[OpId]| ops.iter().map(name).collect::<String>();
        let told = window(&history, ops[0], &Limits::NONE).map_or("nothing".to_owned(), |window| {
            let beginning = window.beginning.as_ref().map_or("initial".to_owned(), name);
            let mut told = format!("{beginning}: {}", names(&window.calls));
            for (call, by) in &window.earlier {
                told = format!("{told}, {} before {}", name(call), name(by));
            }
            for order in &window.orders {
                told = format!("{told}; {} stuck {}", names(&order.placed), name(&order.stuck));
            }
            told
        });
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn two_replacements_of_one_write_fit_in_neither_order() {
        let before = "A @1..2: w(x,1)\nB @3..4: w(x,9)\nC @5..6: r(x,9)\n";
        let twice = "D @7..9: w(x,1)\nE @8..12: r(x,1) w(x,2)\nF @8..14: r(x,1) w(x,5)\n";
        let told = "C: DEF; DE stuck F; DF stuck E";
        check(&format!("{before}{twice}"), told);
        // Who reads beside them is not needed; who might have written again is.
        check(&format!("{before}{twice}G @13..15: r(x,5)\nH @10..11: w(y,1)"), told);
        let again = "G @9..20: r(x,3) w(x,1)\nH @15..16: w(x,3)\n";
        check(&format!("{before}{twice}{again}"), "C: DEFG; DE stuck F; DF stuck E");
    }

    #[test]
    fn a_write_without_an_answer_took_effect_where_nothing_else_explains_a_read() {
        let before = "A @1..2: w(x,1)\nB @3..4: w(x,9)\nU @4..5: w(x,1) unknown\nC @6..7: r(x,1)\n";
        let twice = "D @8..9: w(x,9)\nE @10..11: r(x,1)\n";
        check(&format!("{before}{twice}"), "D: E, U before C;  stuck E");
    }
}

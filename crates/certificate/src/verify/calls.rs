//! Calls of locks and stores: whether one order of them keeps real time and explains all.
//!
//! A lock is free at first, `acquire` takes it from free to held, and `release` back. A store
//! holds a text for every name, empty at first, which `get` sees, `put` replaces and `append`
//! adds to. Calls of unknown outcome took effect or not, at any time since they were sent; what
//! they would have got says nothing.
//!
//! An order of all calls is replayed. That there is none is shown by trying all orders of the
//! calls of each object: an order of all would be one of them too. A configuration is which
//! calls have taken effect and what the object holds. A `get` that sees what is there and may
//! come next does so at once: where it comes later in an order that explains the rest, it can
//! come now as well, for nobody who precedes it is left and nothing changes by it.

use super::facts::Facts;
use crate::proof::Node;
use isolde_history::{Datum, History, NEVER, Op, OpId, OpKind, Outcome, Time, Tree, TxnId};
use std::collections::{HashMap, HashSet};

/// Configurations of one object that are looked at before a proof is refused.
const CONFIGURATIONS_MAX: usize = 1 << 18;
/// What a lock holds while somebody has it.
const HELD: &str = "held";

/// What a call does, and what it saw.
enum Action {
    /// Nothing that matters, to no object.
    Nothing,
    Acquire,
    Release,
    Get(String),
    Put(String),
    Append(String),
}

impl Action {
    /// What the object holds after the call, unless it cannot take effect now.
    fn after(&self, before: &str) -> Option<String> {
        match self {
            Action::Nothing => Some(before.to_owned()),
            Action::Acquire => before.is_empty().then(|| HELD.to_owned()),
            Action::Release => (before == HELD).then(String::new),
            Action::Get(seen) => (before == seen).then(|| before.to_owned()),
            Action::Put(text) => Some(text.clone()),
            Action::Append(text) => Some(format!("{before}{text}")),
        }
    }
}

struct Call {
    txn: TxnId,
    object: Option<usize>,
    action: Action,
    invoked: Time,
    completed: Time,
    is_certain: bool,
}

/// A history in which every transaction is one call.
pub(super) struct Calls<'a> {
    history: &'a History,
    /// In the order of their transactions.
    all: Vec<Call>,
    objects: usize,
}

impl<'a> Calls<'a> {
    /// The calls of a history that consists of them; `None` if it does not.
    pub(super) fn of(facts: &Facts<'a>) -> Option<Calls<'a>> {
        let history = facts.history;
        let mut objects: HashMap<Option<String>, usize> = HashMap::new();
        let mut all = Vec::new();
        for txn in history.txns().filter(|&txn| history.outcome(txn) != Outcome::Aborted) {
            let is_certain = history.outcome(txn) == Outcome::Committed;
            let ops: Vec<OpId> = history.ops_of(txn).collect();
            let (name, action) = match ops[..] {
                [] => (None, Action::Nothing),
                [op] => called(history, op, is_certain)?,
                _ => return None,
            };
            if !is_certain && matches!(action, Action::Nothing | Action::Get(_)) {
                continue;
            }
            let next = objects.len();
            let is_call = !matches!(action, Action::Nothing);
            let object = is_call.then(|| *objects.entry(name).or_insert(next));
            let interval = history.txn_interval(txn);
            let completed = if is_certain && interval.completed != NEVER {
                interval.completed.max(interval.invoked).saturating_add(facts.clock_drift)
            } else {
                NEVER
            };
            let invoked = interval.invoked;
            all.push(Call { txn, object, action, invoked, completed, is_certain });
        }
        Some(Calls { history, all, objects: objects.len() })
    }

    /// Checks that an order explains every call and keeps real time and session order.
    pub(super) fn check_order(&self, order: &[Node]) -> Result<(), String> {
        let mut contents = vec![String::new(); self.objects];
        let mut placed = vec![false; self.all.len()];
        let mut sessions: HashMap<u32, TxnId> = HashMap::new();
        let mut latest = (Time::MIN, TxnId(0));
        for &node in order {
            if node == Node::INITIAL || node.is_begin() {
                return Err(format!("expected the commit of a call, found {node}"));
            }
            let txn = node.txn();
            let fail = |why: String| format!("transaction {}: {why}", txn.0);
            let place = self.all.binary_search_by_key(&txn, |call| call.txn);
            let place = place.map_err(|_| fail("it is no call that took effect".into()))?;
            if std::mem::replace(&mut placed[place], true) {
                return Err(fail("it stands there twice".into()));
            }
            let call = &self.all[place];
            if call.completed < latest.0 {
                return Err(fail(format!("{} was invoked after it completed", latest.1.0)));
            }
            latest = latest.max((call.invoked, txn));
            let session = self.history.session_of(txn);
            if sessions.insert(session.0, txn).is_some_and(|last| last > txn) {
                return Err(fail("a later one of its session comes before it".into()));
            }
            if let Some(object) = call.object {
                let after = call.action.after(&contents[object]);
                contents[object] =
                    after.ok_or_else(|| fail("it cannot have got this answer here".into()))?;
            }
        }
        match self.all.iter().zip(placed).find(|(call, placed)| call.is_certain && !placed) {
            Some((call, _)) => Err(format!("transaction {} is missing", call.txn.0)),
            None => Ok(()),
        }
    }

    /// Checks that no order explains the calls of some object: how many configurations were
    /// looked at.
    pub(super) fn check_none(&self) -> Result<usize, String> {
        let mut looked_at = 0;
        let mut refused = "an order explains the calls of every object".to_string();
        for object in 0..self.objects {
            match Tried::new(self, object).all_orders(&mut looked_at) {
                Outcomes::None => return Ok(looked_at),
                Outcomes::Some => {}
                Outcomes::TooMany => refused = "there are too many orders to try".into(),
            }
        }
        Err(refused)
    }
}

/// The object of an operation and what it does to it; `None` if it is no call.
fn called(history: &History, op: OpId, is_certain: bool) -> Option<(Option<String>, Action)> {
    let Op { kind: OpKind::Call, key, value } = history.op(op) else { return None };
    let Datum::Keyword(function) = history.datum(history.key_name(key)) else { return None };
    if let "acquire" | "release" = function {
        let action = if function == "acquire" { Action::Acquire } else { Action::Release };
        return Some((None, action));
    }
    let Tree::Sequence(parts) = Tree::of(history.datum(value)) else { return None };
    let [name, content] = parts.try_into().ok()?;
    let text = match content {
        Tree::Text(text) => text,
        Tree::Nil if !is_certain => return Some((None, Action::Nothing)),
        _ => return None,
    };
    let action = match function {
        "get" => Action::Get(text),
        "put" => Action::Put(text),
        "append" => Action::Append(text),
        _ => return None,
    };
    Some((Some(name.to_string()), action))
}

/// What came of trying all orders.
enum Outcomes {
    /// None explains the calls.
    None,
    Some,
    TooMany,
}

/// The calls of one object, by the time of their invocation.
struct Tried<'c> {
    calls: Vec<&'c Call>,
    /// From each place on, the least time at which one completes.
    ends: Vec<Time>,
}

/// Who took effect, and what the object holds.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Configuration {
    /// All before this place have, but for those that are `left`.
    next: usize,
    left: Vec<usize>,
    content: String,
}

impl<'c> Tried<'c> {
    fn new(calls: &'c Calls<'_>, object: usize) -> Self {
        let mut calls: Vec<&Call> =
            calls.all.iter().filter(|call| call.object == Some(object)).collect();
        calls.sort_by_key(|call| call.invoked);
        let mut ends = vec![NEVER; calls.len() + 1];
        for place in (0..calls.len()).rev() {
            ends[place] = ends[place + 1].min(calls[place].completed);
        }
        Tried { calls, ends }
    }

    fn all_orders(&self, looked_at: &mut usize) -> Outcomes {
        let begin = Configuration { next: 0, left: Vec::new(), content: String::new() };
        let mut seen = HashSet::from([begin.clone()]);
        let mut open = vec![begin];
        while let Some(configuration) = open.pop() {
            *looked_at += 1;
            if *looked_at > CONFIGURATIONS_MAX {
                return Outcomes::TooMany;
            }
            if self.is_complete(&configuration) {
                return Outcomes::Some;
            }
            for next in self.following(&configuration) {
                if seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        Outcomes::None
    }

    /// Whether all that certainly took effect have.
    fn is_complete(&self, configuration: &Configuration) -> bool {
        let left = configuration.left.iter().copied();
        !left.chain(configuration.next..self.calls.len()).any(|place| self.calls[place].is_certain)
    }

    fn following(&self, configuration: &Configuration) -> Vec<Configuration> {
        let Configuration { next, left, content } = configuration;
        let ends = left.iter().map(|&place| self.calls[place].completed);
        let end = ends.chain([self.ends[*next]]).min().expect("one at least");
        let later = (*next..self.calls.len()).take_while(|&it| self.calls[it].invoked <= end);
        let mut found = Vec::new();
        for place in left.iter().copied().chain(later) {
            let call = self.calls[place];
            let Some(content) = call.action.after(content) else { continue };
            let mut left: Vec<usize> = left.iter().copied().filter(|&it| it != place).collect();
            left.extend(*next..place);
            let next = (*next).max(place + 1);
            let configuration = Configuration { next, left, content };
            if matches!(call.action, Action::Get(_)) {
                return vec![configuration];
            }
            found.push(configuration);
        }
        found
    }
}

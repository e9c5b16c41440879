//! What transactions did to some keys, as events that can happen one after another.

use super::found::{Finder, Found};
use crate::level::{EventKind, Events, Rows};
use crate::verify::facts::{Facts, Reader, Seen};
use isolde_history::{History, KeyId, Op, OpKind, Outcome, Time, TxnId, Value};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What a key holds: the bits of a value, or the number of a list.
pub(super) type Content = u32;

/// What happens, and what has to come first.
pub(super) struct Problem<'f, 'a> {
    pub(super) facts: &'f Facts<'a>,
    pub(super) level: Events,
    pub(super) parts: Vec<Part>,
    /// Those of committed transactions by completion, then the others by invocation.
    pub(super) events: Vec<Event>,
    /// How many events must happen.
    pub(super) certain: usize,
    /// By event, the earliest invocation from there on, among those that must happen.
    pub(super) earliest: Vec<Time>,
    /// What the keys hold at first.
    pub(super) initial: Vec<Content>,
    pub(super) lists: Lists,
}

/// What one transaction did to the keys.
pub(super) struct Part {
    pub(super) txn: TxnId,
    pub(super) is_committed: bool,
    pub(super) action: Action,
    pub(super) found: Vec<Found>,
    /// The one before and after it in its session, if the level has session order.
    pub(super) before: Option<usize>,
    pub(super) after: Option<usize>,
    pub(super) begin: usize,
    pub(super) commit: usize,
    /// Parts of one class did the same, and can change places: see [`Problem::classes`].
    pub(super) class: Option<usize>,
}

/// What a transaction saw of the keys and left in them.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Action {
    pub(super) saw: Vec<(usize, Saw)>,
    /// Of every key once.
    pub(super) left: Vec<(usize, Left)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Saw {
    This(Content),
    NotThis(Content),
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Left {
    Content(Content),
    /// Elements at the end of what was there.
    Appended(Vec<Value>),
}

/// The begin or commit of a transaction, or both.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) part: usize,
    pub(super) begins: bool,
    pub(super) commits: bool,
}

impl Event {
    pub(super) fn is(self, kind: EventKind) -> bool {
        match kind {
            EventKind::Begin => self.begins,
            EventKind::Commit => self.commits,
        }
    }
}

/// Lists by number; number 0 is the empty one.
pub(super) struct Lists {
    by_number: Vec<Vec<Value>>,
    numbers: HashMap<Vec<Value>, Content>,
    /// Elements of all of them.
    pub(super) size: usize,
}

impl Lists {
    fn new() -> Lists {
        Lists { by_number: vec![Vec::new()], numbers: HashMap::from([(Vec::new(), 0)]), size: 0 }
    }

    fn number(&mut self, list: Vec<Value>) -> Content {
        if let Some(&number) = self.numbers.get(&list) {
            return number;
        }
        let number = self.by_number.len() as Content;
        self.size += list.len();
        self.by_number.push(list.clone());
        self.numbers.insert(list, number);
        number
    }

    /// A list with elements at its end.
    pub(super) fn extended(&mut self, list: Content, elements: &[Value]) -> Content {
        let list = [&self.by_number[list as usize], elements].concat();
        self.number(list)
    }
}

impl<'f, 'a> Problem<'f, 'a> {
    pub(super) fn new(facts: &'f Facts<'a>, level: Events, keys: &[KeyId]) -> Self {
        let history = facts.history;
        let slots: HashMap<KeyId, usize> =
            keys.iter().enumerate().map(|(slot, &key)| (key, slot)).collect();
        let mut problem = Problem {
            facts,
            level,
            parts: Vec::new(),
            events: Vec::new(),
            certain: 0,
            earliest: Vec::new(),
            initial: keys.iter().map(|&key| history.initial(key).bits()).collect(),
            lists: Lists::new(),
        };
        problem.empty_lists(&slots);
        problem.add_parts(&slots);
        problem.leave_out_unseen();
        problem.link_sessions();
        problem.add_events();
        problem.classes();
        problem
    }

    fn empty_lists(&mut self, slots: &HashMap<KeyId, usize>) {
        let history = self.facts.history;
        let kinds = history.op_kinds().iter().zip(history.op_keys());
        for (_, key) in kinds.filter(|it| matches!(it.0, OpKind::Append | OpKind::ReadList)) {
            if let Some(&slot) = slots.get(key) {
                self.initial[slot] = 0;
            }
        }
    }

    fn add_parts(&mut self, slots: &HashMap<KeyId, usize>) {
        let Problem { facts, level, ref mut lists, .. } = *self;
        let history = facts.history;
        let mut reader = Reader::default();
        let asks = level.rows != Rows::ReadsFrom && history.has_predicates();
        let finder = asks.then(|| Finder::new(facts, slots)).flatten();
        for txn in history.txns().filter(|&txn| facts.may_count(txn)) {
            let mut saw = Vec::new();
            reader.visit(history, txn, |read| {
                // Repeatable read lets rows be from the past.
                let is_past = read.row.is_some() && level.rows == Rows::ReadsFrom;
                let Some(&slot) = slots.get(&read.key).filter(|_| read.is_external() && !is_past)
                else {
                    return;
                };
                match read.seen {
                    Seen::This(value) => saw.push((slot, Saw::This(value.bits()))),
                    Seen::NotThis(value) => saw.push((slot, Saw::NotThis(value.bits()))),
                    Seen::List(Some(others)) => {
                        saw.push((slot, Saw::This(lists.number(others.to_vec()))));
                    }
                    Seen::List(None) | Seen::Fitting => {}
                }
            });
            let is_committed = history.outcome(txn) == Outcome::Committed;
            let action = Action { saw, left: left(history, txn, slots) };
            let found = finder.as_ref().map_or(Vec::new(), |finder| finder.of(txn));
            let has_seen = !action.saw.is_empty() || !found.is_empty();
            // What may not have happened and left nothing was seen by nobody.
            if !action.left.is_empty() || (is_committed && has_seen) {
                let (before, after, begin, commit, class) = (None, None, 0, 0, None);
                self.parts.push(Part {
                    txn,
                    is_committed,
                    action,
                    found,
                    before,
                    after,
                    begin,
                    commit,
                    class,
                });
            }
        }
    }

    /// Transactions of unknown outcome that left only contents that nobody saw: in an order
    /// with one of them nothing is read of it, so the order explains as much without it.
    fn leave_out_unseen(&mut self) {
        // What was found by condition may be what anybody left.
        if self.parts.iter().any(|part| !part.found.is_empty()) {
            return;
        }
        let mut seen: HashSet<(usize, Content)> = HashSet::new();
        let mut refused: HashSet<usize> = HashSet::new();
        for &(slot, saw) in self.parts.iter().flat_map(|part| &part.action.saw) {
            match saw {
                Saw::This(content) => drop(seen.insert((slot, content))),
                Saw::NotThis(_) => drop(refused.insert(slot)),
            }
        }
        let may_be_seen = |(slot, left): &(usize, Left)| match left {
            Left::Content(content) => refused.contains(slot) || seen.contains(&(*slot, *content)),
            Left::Appended(_) => true,
        };
        self.parts.retain(|part| part.is_committed || part.action.left.iter().any(may_be_seen));
    }

    fn link_sessions(&mut self) {
        if !self.level.sessions {
            return;
        }
        let history = self.facts.history;
        for part in 1..self.parts.len() {
            let (before, own) = (self.parts[part - 1].txn, self.parts[part].txn);
            if history.session_of(before) == history.session_of(own) {
                self.parts[part].before = Some(part - 1);
                self.parts[part - 1].after = Some(part);
            }
        }
    }

    fn add_events(&mut self) {
        let kinds: &[(bool, bool)] =
            if self.level.one { &[(true, true)] } else { &[(true, false), (false, true)] };
        let mut events: Vec<Event> = Vec::new();
        for part in 0..self.parts.len() {
            events.extend(kinds.iter().map(|&(begins, commits)| Event { part, begins, commits }));
        }
        events.sort_by_key(|&event| {
            let is_committed = self.parts[event.part].is_committed;
            let time = if is_committed { self.completed(event) } else { self.needed(event) };
            (!is_committed, time, event.part, event.commits)
        });
        for (number, event) in events.iter().enumerate() {
            let part = &mut self.parts[event.part];
            if event.begins {
                part.begin = number;
            }
            if event.commits {
                part.commit = number;
            }
        }
        self.certain = events.iter().filter(|it| self.parts[it.part].is_committed).count();
        self.earliest = events.iter().map(|&event| self.needed(event)).collect();
        for number in (1..self.certain).rev() {
            self.earliest[number - 1] = self.earliest[number - 1].min(self.earliest[number]);
        }
        self.events = events;
    }

    fn completed(&self, event: Event) -> Time {
        let kind = if event.commits { EventKind::Commit } else { EventKind::Begin };
        self.facts.completed(self.parts[event.part].txn, kind)
    }

    /// When an event was invoked, as far as real time asks; before all times if it does not.
    fn needed(&self, event: Event) -> Time {
        let rules = self.level.real_time.iter().filter(|rule| event.is(rule.1));
        let txn = self.parts[event.part].txn;
        rules.map(|rule| self.facts.invoked(txn, rule.1)).min().unwrap_or(Time::MIN)
    }

    /// At levels of one event, parts that did the same and bind nobody in their sessions.
    ///
    /// Take two of one class that can both happen next, both committed or both of unknown
    /// outcome, and an order in which the one that completes last happens first. In the
    /// order with their places exchanged (or without the other, if it is not in it) each
    /// key holds the same at all times. Nothing before either in its session may still
    /// happen. What follows the second in its session, or in real time, was invoked after
    /// it completed, so after the first did, and comes after both in either order. So of
    /// two such parts it is enough to try the one that completes first.
    fn classes(&mut self) {
        if !self.level.one {
            return;
        }
        let mut classes: HashMap<(bool, Action), usize> = HashMap::new();
        for part in 0..self.parts.len() {
            let Part { txn, is_committed, before, after, .. } = self.parts[part];
            let is_bound = match after.map(|after| self.parts[after].txn) {
                None => false,
                // Nothing follows in real time what may never have ended.
                Some(_) if !is_committed || self.level.real_time.is_empty() => true,
                Some(after) => {
                    let completed = self.facts.completed(txn, EventKind::Commit);
                    completed >= self.facts.invoked(after, EventKind::Begin)
                }
            };
            let may_be_blocked = before.is_some_and(|before| !self.parts[before].is_committed);
            if !is_bound && !may_be_blocked && self.parts[part].found.is_empty() {
                let next = classes.len();
                let action = self.parts[part].action.clone();
                let class = *classes.entry((is_committed, action)).or_insert(next);
                self.parts[part].class = Some(class);
            }
        }
    }
}

/// What a transaction leaves in the keys.
fn left(history: &History, txn: TxnId, slots: &HashMap<KeyId, usize>) -> Vec<(usize, Left)> {
    let mut left: BTreeMap<usize, Left> = BTreeMap::new();
    for Op { kind, key, value } in history.ops_of(txn).map(|op| history.op(op)) {
        let Some(&slot) = slots.get(&key).filter(|_| kind.is_write()) else { continue };
        match left.get_mut(&slot) {
            Some(Left::Appended(elements)) if kind == OpKind::Append => elements.push(value),
            _ if kind == OpKind::Append => drop(left.insert(slot, Left::Appended(vec![value]))),
            _ => drop(left.insert(slot, Left::Content(value.bits()))),
        }
    }
    left.into_iter().collect()
}

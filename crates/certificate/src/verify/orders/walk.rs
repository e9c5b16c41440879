//! All configurations that can be reached.
//!
//! Three things keep them few, each of which leaves a path to the end if there is one.
//! A committed transaction that left nothing happens as soon as it can, unless one of unknown
//! outcome before it in its session would then be too late: that changes no key, and
//! whatever has to come before it has happened. Of transactions that did the same, the one
//! that completes first happens first (see [`Problem`]). And at levels of one event, of two
//! configurations that differ only in which transactions of unknown outcome have happened,
//! the one with fewer stands for both: these bind nobody, so whatever can follow the other
//! can follow it too.

use super::problem::{Content, Event, Left, Part, Problem, Saw};
use super::{EXPLAINS, TOO_MANY};
use crate::level::EventKind;
use isolde_history::Time;
use std::collections::{HashMap, HashSet};

/// More steps from one configuration to another are refused.
const STEPS_MAX: usize = 1 << 17;
/// And so are configurations that take more numbers to write down.
const NUMBERS_MAX: usize = 1 << 24;

/// Which events have happened, and what the keys hold.
#[derive(Clone)]
struct Configuration {
    state: State,
    /// Events of transactions of unknown outcome that have happened, in order of number.
    uncertain: Vec<u32>,
    /// Parts that have begun and not committed.
    open: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    /// Of the events that must happen, all before this one have.
    done: u32,
    /// And these after it, in order of number.
    beyond: Vec<u32>,
    contents: Vec<Content>,
}

impl Configuration {
    fn has(&self, event: usize, certain: usize) -> bool {
        let number = event as u32;
        let state = &self.state;
        if event >= certain {
            return self.uncertain.binary_search(&number).is_ok();
        }
        number < state.done || state.beyond.binary_search(&number).is_ok()
    }

    fn add(&mut self, event: usize, certain: usize) {
        let number = event as u32;
        let State { done, beyond, .. } = &mut self.state;
        let events = if event >= certain { &mut self.uncertain } else { &mut *beyond };
        let place = events.partition_point(|&other| other < number);
        events.insert(place, number);
        let passed = (*done..).zip(&*beyond).take_while(|it| it.0 == *it.1).count();
        *done += passed as u32;
        beyond.drain(..passed);
    }
}

/// The two earliest completions of events that have not happened, of different parts.
#[derive(Clone, Copy)]
struct Waiting {
    first: (Time, usize),
    second: Time,
}

impl Waiting {
    const NOTHING: Waiting = Waiting { first: (Time::MAX, usize::MAX), second: Time::MAX };

    fn of_others(self, part: usize) -> Time {
        if self.first.1 == part { self.second } else { self.first.0 }
    }
}

/// A walk through all configurations.
pub(super) struct Walk<'f, 'a> {
    problem: Problem<'f, 'a>,
    /// For each state, sets of events of transactions of unknown outcome.
    seen: HashMap<State, Vec<Vec<u32>>>,
    count: usize,
    steps: usize,
    numbers: usize,
}

impl<'f, 'a> Walk<'f, 'a> {
    pub(super) fn of(problem: Problem<'f, 'a>) -> Self {
        Walk { problem, seen: HashMap::new(), count: 0, steps: 0, numbers: 0 }
    }

    /// Refuses if the end can be reached; how many configurations there are.
    pub(super) fn all(mut self) -> Result<usize, String> {
        let contents = self.problem.initial.clone();
        let state = State { done: 0, beyond: Vec::new(), contents };
        let mut first = Configuration { state, uncertain: Vec::new(), open: Vec::new() };
        self.settle(&mut first);
        let mut waiting = Vec::new();
        let mut found = Some(first);
        loop {
            if let Some(at) = found.take() {
                if at.state.done as usize == self.problem.certain {
                    return Err(EXPLAINS.into());
                }
                if self.is_new(&at) {
                    waiting.push((self.next(&at), at));
                }
            }
            let Some((events, at)) = waiting.last_mut() else { return Ok(self.count) };
            let Some(event) = events.pop() else {
                waiting.pop();
                continue;
            };
            let mut after = at.clone();
            self.steps += 1;
            let numbers = self.numbers + self.problem.lists.size;
            if self.steps > STEPS_MAX || numbers > NUMBERS_MAX {
                return Err(TOO_MANY.into());
            }
            self.happen(&mut after, event);
            self.settle(&mut after);
            found = Some(after);
        }
    }

    /// Notes a configuration, unless one that stands for it is known.
    fn is_new(&mut self, at: &Configuration) -> bool {
        let one = self.problem.level.one;
        let stands_for = |known: &Vec<u32>| {
            if one { is_within(known, &at.uncertain) } else { *known == at.uncertain }
        };
        let known = self.seen.entry(at.state.clone()).or_default();
        if known.iter().any(stands_for) {
            return false;
        }
        known.push(at.uncertain.clone());
        self.count += 1;
        self.numbers += at.state.beyond.len() + at.state.contents.len() + at.uncertain.len();
        true
    }

    /// Lets everything happen that changes nothing.
    fn settle(&self, at: &mut Configuration) {
        loop {
            let waiting = self.waiting(at);
            let changes_nothing = |event: &usize| {
                let part = self.problem.events[*event].part;
                self.problem.parts[part].action.left.is_empty() && !self.makes_late(at, part)
            };
            let mut events = self.certain(at, &waiting);
            events.retain(changes_nothing);
            if events.is_empty() {
                return;
            }
            for event in events {
                self.note(at, event);
            }
        }
    }

    /// Events that must happen and can be next.
    fn certain(&self, at: &Configuration, waiting: &[Waiting]) -> Vec<usize> {
        let latest = latest(waiting);
        (at.state.done as usize..self.problem.certain)
            .take_while(|&event| self.problem.earliest[event] <= latest)
            .filter(|&event| self.can_be_next(at, waiting, event))
            .collect()
    }

    /// Events that are tried next.
    fn next(&self, at: &Configuration) -> Vec<usize> {
        let waiting = self.waiting(at);
        let latest = latest(&waiting);
        let mut events = self.certain(at, &waiting);
        events.extend(
            (self.problem.certain..self.problem.events.len())
                .take_while(|&event| self.problem.earliest[event] <= latest)
                .filter(|&event| self.can_be_next(at, &waiting, event)),
        );
        let mut tried = HashSet::new();
        let part = |event: usize| &self.problem.parts[self.problem.events[event].part];
        events.retain(|&event| part(event).class.is_none_or(|class| tried.insert(class)));
        events
    }

    /// For each rule of real time, what has not happened.
    fn waiting(&self, at: &Configuration) -> Vec<Waiting> {
        let Problem { facts, level, parts, events, certain, .. } = &self.problem;
        let of_rule = |kind: EventKind| {
            let mut waiting = Waiting::NOTHING;
            let start = at.state.done as usize;
            for (number, event) in (start..).zip(&events[start..*certain]) {
                if !event.is(kind) || at.has(number, *certain) {
                    continue;
                }
                let completed = facts.completed(parts[event.part].txn, kind);
                if waiting.first.1 != usize::MAX {
                    waiting.second = completed;
                    break;
                }
                waiting.first = (completed, event.part);
            }
            waiting
        };
        level.real_time.iter().map(|rule| of_rule(rule.0)).collect()
    }

    fn can_be_next(&self, at: &Configuration, waiting: &[Waiting], number: usize) -> bool {
        let Problem { facts, level, parts, events, certain, .. } = &self.problem;
        if at.has(number, *certain) {
            return false;
        }
        let event = events[number];
        let part = &parts[event.part];
        let is_early = level.real_time.iter().zip(waiting).any(|(rule, waiting)| {
            event.is(rule.1) && waiting.of_others(event.part) < facts.invoked(part.txn, rule.1)
        });
        if is_early {
            return false;
        }
        if event.begins {
            let fits = |&(slot, saw): &(usize, Saw)| match saw {
                Saw::This(content) => at.state.contents[slot] == content,
                Saw::NotThis(content) => at.state.contents[slot] != content,
            };
            let contents = &at.state.contents;
            return self.follows_session(at, part)
                && part.action.saw.iter().all(fits)
                && part.found.iter().all(|found| found.fits(facts.history, contents));
        }
        at.has(part.begin, *certain) && !self.is_in_the_way(at, event.part)
    }

    /// Those before it in its session have committed, or will not happen, and none after it
    /// has begun.
    fn follows_session(&self, at: &Configuration, part: &Part) -> bool {
        let Problem { parts, certain, .. } = &self.problem;
        let mut before = part.before.map(|before| &parts[before]);
        while let Some(earlier) = before {
            let has_committed = at.has(earlier.commit, *certain);
            if !has_committed && (earlier.is_committed || at.has(earlier.begin, *certain)) {
                return false;
            }
            if earlier.is_committed {
                break;
            }
            before = earlier.before.map(|before| &parts[before]);
        }
        let mut after = part.after.map(|after| &parts[after]);
        while let Some(later) = after {
            if at.has(later.begin, *certain) {
                return false;
            }
            // One that must come after this one, and did not.
            after = later.after.filter(|_| !later.is_committed).map(|after| &parts[after]);
        }
        true
    }

    /// Whether one of unknown outcome before it in its session could not happen after it.
    fn makes_late(&self, at: &Configuration, part: usize) -> bool {
        let Problem { parts, certain, .. } = &self.problem;
        let mut before = parts[part].before.map(|before| &parts[before]);
        while let Some(earlier) = before.filter(|earlier| !earlier.is_committed) {
            if !at.has(earlier.begin, *certain) {
                return true;
            }
            before = earlier.before.map(|before| &parts[before]);
        }
        false
    }

    /// Whether an open transaction writes a key that this one writes, and may not be
    /// overtaken.
    fn is_in_the_way(&self, at: &Configuration, part: usize) -> bool {
        let Problem { level, parts, .. } = &self.problem;
        let writes =
            |part: usize, slot: usize| parts[part].action.left.iter().any(|left| left.0 == slot);
        let own = &parts[part].action.left;
        level.overwriter == EventKind::Begin
            && (at.open.iter().filter(|&&open| open != part))
                .any(|&open| own.iter().any(|left| writes(open, left.0)))
    }

    fn happen(&mut self, at: &mut Configuration, event: usize) {
        self.note(at, event);
        let Problem { parts, events, lists, .. } = &mut self.problem;
        let Event { part, commits, .. } = events[event];
        for (slot, left) in parts[part].action.left.iter().filter(|_| commits) {
            let content = &mut at.state.contents[*slot];
            *content = match left {
                Left::Content(content) => *content,
                Left::Appended(elements) => lists.extended(*content, elements),
            };
        }
    }

    /// Notes that an event has happened, whatever it leaves.
    fn note(&self, at: &mut Configuration, event: usize) {
        let Event { part, begins, commits } = self.problem.events[event];
        at.add(event, self.problem.certain);
        if begins && !commits {
            at.open.push(part);
        } else if commits && !begins {
            at.open.retain(|&open| open != part);
        }
    }
}

/// What was invoked later than this cannot be next.
fn latest(waiting: &[Waiting]) -> Time {
    waiting.iter().map(|waiting| waiting.second).max().unwrap_or(Time::MAX)
}

/// Whether a sorted sequence is part of another one.
fn is_within(few: &[u32], many: &[u32]) -> bool {
    let mut many = many.iter();
    few.len() <= many.len() && few.iter().all(|one| many.any(|other| other == one))
}

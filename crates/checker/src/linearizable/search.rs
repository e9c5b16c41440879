//! Objects whose contents repeat: every order that real time leaves, step by step.
//!
//! **Method** [Wing93; Lowe17]. Time is walked through from invocation to completion.
//! A *configuration* is what the objects hold and which of the open operations have
//! taken effect. When an operation completes, every configuration in which it has not
//! taken effect is continued in every way by open operations until it has; if none is
//! left, the operation is the first that no order explains. Equal configurations are
//! one. How they came about is kept in a tree, which is the witness at the end.
//!
//! What comes after the last operation that saw something is not searched: it fits in any order
//! that real time leaves.
//!
//! Five things keep the configurations few. A read takes effect as soon as it can: that
//! changes nothing and can only help. Of open operations that do the same, the one that
//! ends first takes effect first: the other could take its place. Operations that may
//! never have happened stay open for ever, so equal ones are told apart by their number
//! only. Of two configurations that differ in those alone, the one that used fewer
//! stands for both. And texts that nobody can see any more are one (`unseen`).
//!
//! Exponential in the operations open at once, linear in the rest.

use super::events::{Event, events, left_by, open_max, seen};
use super::operations::{Action, Content, Object, Operation, Texts};
use super::unseen::Unseen;
use crate::limits::Limits;
use crate::unknown::Limit;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// What a search answers.
pub(super) enum Searched {
    /// Places of operations in an order that explains them.
    Order(Vec<usize>),
    /// The first operation that no order explains, and those open beside it.
    Unexplained(Vec<usize>),
    /// A limit was reached.
    Limit(Limit),
}

/// What is searched.
pub(super) struct Problem<'a> {
    pub(super) operations: &'a [Operation],
    /// Operations refer to these.
    pub(super) objects: &'a [Object],
    /// Of each operation, the one before it in its session; empty where real time
    /// says it already.
    pub(super) before: &'a [Option<usize>],
}

/// Without a limit of the caller's, no search takes more than this.
pub(super) const BYTES_MAX: usize = 1 << 30;
/// Configurations between two questions whether to stop.
const STEPS_PER_LOOK: usize = 1 << 10;
/// A smaller tree is not worth pruning.
const PRUNED_MIN: usize = if cfg!(test) { 1 << 8 } else { 1 << 20 };
/// Beside the operation that is not explained, so many are named.
const SHOWN_MAX: usize = 8;

/// Searches for an order.
pub(super) fn search(problem: &Problem<'_>, texts: &mut Texts, limits: &Limits<'_>) -> Searched {
    let mut search = Search::new(problem, texts, limits);
    let mut events = events(problem.operations);
    // Sessions may ask for another order of what comes last than its times do.
    if problem.before.is_empty() {
        events.truncate(seen(problem.operations, &events));
    }
    for event in events {
        match event {
            Event::Invoked(place) => search.invoke(place),
            Event::Completed(place) => {
                if let Err(limit) = search.complete(place) {
                    return Searched::Limit(limit);
                }
                if search.frontier.count == 0 {
                    return Searched::Unexplained(search.unexplained(place));
                }
            }
        }
    }
    let mut order = search.path(search.frontier.nodes[0]);
    order.extend(left_by(problem.operations, &order));
    Searched::Order(order)
}

/// Where in a configuration it stands whether an operation has taken effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    NotInvoked,
    /// A bit while the operation is open.
    Bit(u32),
    /// It was certain and has completed.
    Past,
    /// Uncertain: its class, and its number in it.
    Member {
        class: u32,
        number: u32,
    },
}

/// Uncertain operations that do the same.
struct Class {
    /// Places, in order of invocation.
    members: Vec<usize>,
    /// How many have been invoked.
    open: u32,
}

/// Configurations without repetition.
#[derive(Default)]
struct Set {
    rows: Vec<u32>,
    /// How each came about.
    nodes: Vec<u32>,
    count: usize,
    table: HashTable<u32>,
}

struct Search<'a> {
    problem: &'a Problem<'a>,
    texts: &'a mut Texts,
    limits: &'a Limits<'a>,
    unseen: Unseen,
    slots: Vec<Slot>,
    /// Bits of operations that have completed.
    free: Vec<u32>,
    /// Certain operations that have been invoked and have not completed, in order of
    /// completion.
    open: Vec<usize>,
    classes: Vec<Class>,
    layout: Layout,
    frontier: Set,
    /// The operation that took effect last and the node before it.
    tree: Vec<(u32, u32)>,
    /// At so many nodes the tree is pruned.
    prune_at: usize,
    steps: usize,
    hasher: DefaultHashBuilder,
}

/// The parts of a configuration: contents, bits, numbers used of each class.
#[derive(Clone, Copy)]
struct Layout {
    objects: usize,
    words: usize,
    classes: usize,
}

impl Layout {
    fn width(self) -> usize {
        self.objects + self.words + self.classes
    }

    fn bit(self, bit: u32) -> (usize, u32) {
        (self.objects + bit as usize / 32, 1 << (bit % 32))
    }

    fn class(self, class: u32) -> usize {
        self.objects + self.words + class as usize
    }
}

const ROOT: u32 = u32::MAX;

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, texts: &'a mut Texts, limits: &'a Limits<'a>) -> Self {
        let (classes, slots) = classes(problem);
        let layout = Layout {
            objects: problem.objects.len(),
            words: open_max(problem.operations).div_ceil(32),
            classes: classes.len(),
        };
        let mut unseen = Unseen::of(problem, texts);
        let initial = problem.objects.iter().map(|object| object.initial).enumerate();
        let mut start: Vec<u32> =
            initial.map(|(object, content)| unseen.content(object, content, texts)).collect();
        let mut search = Search {
            problem,
            texts,
            limits,
            unseen,
            slots,
            free: (0..(layout.words * 32) as u32).rev().collect(),
            open: Vec::new(),
            classes,
            layout,
            frontier: Set::default(),
            tree: Vec::new(),
            prune_at: PRUNED_MIN,
            steps: 0,
            hasher: DefaultHashBuilder::default(),
        };
        start.resize(layout.width(), 0);
        let mut frontier = Set::default();
        search.insert(&mut frontier, &start, ROOT);
        search.frontier = frontier;
        search
    }

    fn invoke(&mut self, place: usize) {
        if let Slot::Member { class, .. } = self.slots[place] {
            self.classes[class as usize].open += 1;
            return;
        }
        let bit = self.free.pop().expect("as many bits as operations are ever open");
        self.slots[place] = Slot::Bit(bit);
        let operations = self.problem.operations;
        let ends_later = |open: &usize| operations[*open].completed > operations[place].completed;
        let at = self.open.iter().position(ends_later).unwrap_or(self.open.len());
        self.open.insert(at, place);
        if self.problem.operations[place].action.is_read() {
            let width = self.layout.width();
            let mut rows = std::mem::take(&mut self.frontier.rows);
            let mut nodes = std::mem::take(&mut self.frontier.nodes);
            self.frontier = Set::default();
            let mut frontier = Set::default();
            for (row, node) in rows.chunks_exact_mut(width).zip(&mut nodes) {
                self.read(row, node);
                self.insert(&mut frontier, row, *node);
            }
            self.frontier = frontier;
        }
    }

    /// Continues all configurations until `place` has taken effect in them.
    fn complete(&mut self, place: usize) -> Result<(), Limit> {
        let Slot::Bit(bit) = self.slots[place] else { unreachable!("certain, and invoked before") };
        let (word, mask) = self.layout.bit(bit);
        let width = self.layout.width();
        let before = std::mem::take(&mut self.frontier);
        let (mut next, mut visited) = (Set::default(), Set::default());
        let mut waiting: Vec<u32> = Vec::new();
        let mut row = vec![0; width];
        for (start, &node) in before.rows.chunks_exact(width).zip(&before.nodes) {
            row.copy_from_slice(start);
            if row[word] & mask != 0 {
                row[word] &= !mask;
                self.insert(&mut next, &row, node);
            } else if let Some(number) = self.insert(&mut visited, &row, node) {
                waiting.push(number);
            }
        }
        drop(before);
        while let Some(number) = waiting.pop() {
            self.look(&next, &visited)?;
            let start = number as usize * width;
            let node = visited.nodes[number as usize];
            for candidate in self.candidates(&visited.rows[start..start + width]) {
                row.copy_from_slice(&visited.rows[start..start + width]);
                let Some(mut node) = self.take_effect(&mut row, node, candidate) else { continue };
                self.read(&mut row, &mut node);
                if row[word] & mask != 0 {
                    row[word] &= !mask;
                    self.insert(&mut next, &row, node);
                } else if let Some(number) = self.insert(&mut visited, &row, node) {
                    waiting.push(number);
                }
            }
        }
        self.slots[place] = Slot::Past;
        self.free.push(bit);
        self.open.retain(|&open| open != place);
        self.frontier = next;
        self.prune();
        Ok(())
    }

    /// Forgets how configurations came about that are no more, when they are many.
    fn prune(&mut self) {
        if self.tree.len() < self.prune_at {
            return;
        }
        // A node stands after the one before it, so one pass back finds all that are
        // needed and one pass forth numbers them again.
        let mut numbers = vec![ROOT; self.tree.len()];
        for &node in self.frontier.nodes.iter().filter(|&&node| node != ROOT) {
            numbers[node as usize] = 0;
        }
        for node in (0..self.tree.len()).rev() {
            let before = self.tree[node].1;
            if numbers[node] == 0 && before != ROOT {
                numbers[before as usize] = 0;
            }
        }
        let mut kept = 0;
        for node in 0..self.tree.len() {
            if numbers[node] == ROOT {
                continue;
            }
            let (place, before) = self.tree[node];
            let before = if before == ROOT { ROOT } else { numbers[before as usize] };
            self.tree[kept] = (place, before);
            numbers[node] = kept as u32;
            kept += 1;
        }
        self.tree.truncate(kept);
        for node in self.frontier.nodes.iter_mut().filter(|node| **node != ROOT) {
            *node = numbers[*node as usize];
        }
        self.prune_at = PRUNED_MIN.max(2 * kept);
    }

    /// Stops if time or memory are up.
    fn look(&mut self, next: &Set, visited: &Set) -> Result<(), Limit> {
        self.steps += 1;
        if !self.steps.is_multiple_of(STEPS_PER_LOOK) {
            return Ok(());
        }
        self.limits.spend(STEPS_PER_LOOK as u64);
        if self.limits.is_over() {
            let is_memory = (self.limits.is_memory)();
            return Err(if is_memory { Limit::MemoryOfObjects } else { Limit::TimeOfObjects });
        }
        let rows =
            next.rows.capacity() + visited.rows.capacity() + 3 * (next.count + visited.count);
        let bytes = rows * 4 + self.tree.capacity() * 8 + self.texts.memory();
        let bytes_max = self.limits.working_bytes_max.unwrap_or(BYTES_MAX).min(BYTES_MAX);
        if bytes > bytes_max || self.tree.len() >= ROOT as usize {
            return Err(Limit::OpenOperations { mebibytes: bytes_max >> 20 });
        }
        Ok(())
    }

    /// Open operations that have not taken effect and change something.
    fn candidates(&self, row: &[u32]) -> Vec<usize> {
        // Reads have taken effect if they can, but for those that wait by choice.
        let is_candidate = |place: usize| {
            !self.problem.operations[place].action.is_read() || self.may_wait(row, place)
        };
        let mut candidates: Vec<usize> = Vec::new();
        // Of open operations that do the same, the one that ends first goes first.
        let is_second = |candidates: &[usize], place: usize| {
            let same = |place: usize| {
                (self.problem.operations[place].object, self.problem.operations[place].action)
            };
            self.problem.before.is_empty() && candidates.iter().any(|&it| same(it) == same(place))
        };
        for &place in &self.open {
            let is_open = is_candidate(place) && !self.has_effect(row, place);
            if is_open && !is_second(&candidates, place) {
                candidates.push(place);
            }
        }
        for (number, class) in self.classes.iter().enumerate() {
            let used = row[self.layout.class(number as u32)];
            if used < class.open {
                let place = class.members[used as usize];
                if !is_second(&candidates, place) {
                    candidates.push(place);
                }
            }
        }
        candidates
    }

    fn has_effect(&self, row: &[u32], place: usize) -> bool {
        match self.slots[place] {
            Slot::NotInvoked => false,
            Slot::Past => true,
            Slot::Bit(bit) => {
                let (word, mask) = self.layout.bit(bit);
                row[word] & mask != 0
            }
            Slot::Member { class, number } => row[self.layout.class(class)] > number,
        }
    }

    /// Whether the session allows the operation to be next: the certain ones before
    /// it have taken effect. An uncertain one that has not will not any more.
    fn is_next_in_session(&self, row: &[u32], place: usize) -> bool {
        let mut at = self.problem.before.get(place).copied().flatten();
        while let Some(before) = at {
            if self.problem.operations[before].is_certain {
                if !self.has_effect(row, before) {
                    return false;
                }
                break;
            }
            at = self.problem.before[before];
        }
        self.problem.operations[place].is_certain || !self.is_overtaken(row, place)
    }

    /// Whether a read may do better to wait: an uncertain operation before it in its
    /// session cannot take effect after it.
    fn may_wait(&self, row: &[u32], place: usize) -> bool {
        let mut at = self.problem.before.get(place).copied().flatten();
        while let Some(before) = at {
            if self.problem.operations[before].is_certain {
                return false;
            }
            if !self.has_effect(row, before) {
                return true;
            }
            at = self.problem.before[before];
        }
        false
    }

    /// Whether a later operation of the session has taken effect.
    fn is_overtaken(&self, row: &[u32], place: usize) -> bool {
        (self.problem.before.iter().enumerate())
            .any(|(later, &before)| before == Some(place) && self.reaches(row, later))
    }

    fn reaches(&self, row: &[u32], mut place: usize) -> bool {
        loop {
            if self.has_effect(row, place) {
                return true;
            }
            if self.problem.operations[place].is_certain {
                return false;
            }
            let later = (self.problem.before.iter()).position(|&before| before == Some(place));
            let Some(later) = later else { return false };
            place = later;
        }
    }

    /// Lets an operation take effect, if what it saw allows it.
    fn take_effect(&mut self, row: &mut [u32], node: u32, place: usize) -> Option<u32> {
        let operation = self.problem.operations[place];
        if !self.problem.before.is_empty() && !self.is_next_in_session(row, place) {
            return None;
        }
        if operation.action != Action::Nothing {
            let content = &mut row[operation.object];
            *content = self.unseen.after(&operation, *content, self.texts)?;
        }
        match self.slots[place] {
            Slot::Bit(bit) => {
                let (word, mask) = self.layout.bit(bit);
                row[word] |= mask;
            }
            Slot::Member { class, .. } => row[self.layout.class(class)] += 1,
            Slot::NotInvoked | Slot::Past => unreachable!("only open operations take effect"),
        }
        self.tree.push((place as u32, node));
        Some(self.tree.len() as u32 - 1)
    }

    /// Whether it can only help that an operation takes effect at once.
    fn may_hurry(&self, row: &[u32], place: usize) -> bool {
        let operation = &self.problem.operations[place];
        let is_idle = || self.unseen.is_idle(operation, row[operation.object]);
        operation.action.is_read() || self.problem.before.is_empty() && is_idle()
    }

    /// Lets every open read take effect that can, and what else changes nothing.
    fn read(&mut self, row: &mut [u32], node: &mut u32) {
        loop {
            let mut has_changed = false;
            for at in 0..self.open.len() {
                let place = self.open[at];
                let is_open = self.may_hurry(row, place)
                    && !self.has_effect(row, place)
                    && !self.may_wait(row, place);
                if let Some(later) = is_open.then(|| self.take_effect(row, *node, place)).flatten()
                {
                    *node = later;
                    has_changed = true;
                }
            }
            // Without sessions, one read does not wait for another.
            if !has_changed || self.problem.before.is_empty() {
                return;
            }
        }
    }

    /// Adds a configuration unless it, or one that used fewer uncertain operations,
    /// is there; its number if it is new.
    fn insert(&self, set: &mut Set, row: &[u32], node: u32) -> Option<u32> {
        let width = self.layout.width();
        let shared = self.layout.objects + self.layout.words;
        let hash = |row: &[u32]| self.hasher.hash_one(&row[..shared]);
        let of = |rows: &[u32], number: u32| {
            let start = number as usize * width;
            (start, start + width, rows.len())
        };
        let rows = &set.rows;
        let stands_for = |&number: &u32| {
            let (start, end, _) = of(rows, number);
            let known = &rows[start..end];
            known[..shared] == row[..shared]
                && known[shared..].iter().zip(&row[shared..]).all(|(known, used)| known <= used)
        };
        let hashed = hash(row);
        if set.table.find(hashed, stands_for).is_some() {
            return None;
        }
        let number = set.count as u32;
        set.rows.extend_from_slice(row);
        set.nodes.push(node);
        set.count += 1;
        let rows = &set.rows;
        set.table.insert_unique(hashed, number, |&number| {
            let (start, end, _) = of(rows, number);
            hash(&rows[start..end])
        });
        Some(number)
    }

    fn path(&self, node: u32) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = node;
        while at != ROOT {
            let (place, before) = self.tree[at as usize];
            path.push(place as usize);
            at = before;
        }
        path.reverse();
        path
    }

    fn unexplained(&self, place: usize) -> Vec<usize> {
        let object = self.problem.operations[place].object;
        let beside = |&open: &usize| self.problem.operations[open].object == object;
        let beside = self.open.iter().copied().filter(beside);
        std::iter::once(place).chain(beside.take(SHOWN_MAX)).collect()
    }
}

/// What an object holds after an action; `None` if it saw something else.
pub(super) fn after(action: Action, content: Content, texts: &mut Texts) -> Option<Content> {
    match action {
        Action::Nothing => Some(content),
        Action::Read(seen) => (seen == content).then_some(content),
        Action::ReadOther(other) => (other != content).then_some(content),
        Action::Write(new) => Some(new),
        Action::Replace { old, new } => (old == content).then_some(new),
        Action::Append(end) => Some(texts.append(content, end)),
    }
}

/// Uncertain operations by what they do. With sessions each is a class of its own,
/// because its place in its session matters too.
fn classes(problem: &Problem<'_>) -> (Vec<Class>, Vec<Slot>) {
    let operations = problem.operations;
    let mut slots = vec![Slot::NotInvoked; operations.len()];
    let mut uncertain: Vec<usize> =
        (0..operations.len()).filter(|&place| !operations[place].is_certain).collect();
    let by_sessions = !problem.before.is_empty();
    uncertain.sort_by_key(|&place| {
        let Operation { object, action, invoked, .. } = operations[place];
        (object, action, if by_sessions { place } else { 0 }, invoked)
    });
    let is_same = |one: usize, other: usize| {
        let same = |place: usize| (operations[place].object, operations[place].action);
        !by_sessions && same(one) == same(other)
    };
    let mut classes: Vec<Class> = Vec::new();
    for members in uncertain.chunk_by(|&one, &other| is_same(one, other)) {
        for (number, &place) in members.iter().enumerate() {
            slots[place] = Slot::Member { class: classes.len() as u32, number: number as u32 };
        }
        classes.push(Class { members: members.to_vec(), open: 0 });
    }
    (classes, slots)
}

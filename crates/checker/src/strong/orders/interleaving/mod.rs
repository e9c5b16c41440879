//! Histories whose values repeat: one order of all sessions, step by step.
//!
//! **Definition.** At levels where a transaction is one event, an order of the transactions in
//! which each external read finds what was last written to its key is all that is wanted. This
//! looks for one that keeps session order, and real time if that is asked for.
//!
//! **Method** [Wing93; Lowe17]. A *configuration* is how far each session has come and what each
//! key holds. From one, the next transaction of a session can follow if its reads find what they
//! saw. Who wrote what was read is never asked, so that it does not matter how often a value
//! repeats, and equal configurations are one. Configurations are continued together, all those
//! after the same number of writing transactions; a transaction that only reads takes place as
//! soon as it can, which changes nothing and can only help.
//!
//! A transaction that saw several keys fits few of the wrong states, so that wrong turns end soon
//! and configurations stay few. If all were looked at and none can be continued, there is no such
//! order. If they become many, some are kept: those in which most of what the next transactions
//! saw is there or written soon, and of these the ones whose transactions so far saw most, because
//! wrong turns are taken by those that fit anywhere. After that only an order that is found tells
//! anything.

use crate::limits::{Limits, Stage};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use isolde_history::{
    ALWAYS, History, Index, KeyId, NEVER, OpId, OpKind, Outcome, Time, TxnId, Value,
};
use std::hash::BuildHasher;
use std::ops::Range;

/// Configurations kept at a time: so many first, then more while there is work left.
const KEPT_FIRST: usize = 1 << 8;
const KEPT_MAX: usize = 1 << 16;
/// Words of configurations that all attempts may write.
const WORK_MAX: usize = 1 << 30;
/// Configurations of more words are not copied again and again.
const WORDS_MAX: usize = 1 << 14;
/// As much as a shorter one takes, with what is noted beside it.
const WORDS_MIN: usize = 1 << 6;
/// Words of all configurations that are kept at a time, and that there may be before these are
/// chosen.
const KEPT_WORDS_MAX: usize = 1 << 22;
const WORDS_AT_A_TIME_MAX: usize = 1 << 26;
/// Less memory is not enough for this.
const BYTES_MIN: usize = 1 << 30;
/// Configurations between two questions whether to stop.
const PERIOD: usize = 1 << 10;
/// What one of so many next transactions of a session writes is written soon.
const SOON: u32 = 4;
/// Sessions are taken to be no further apart than so many transactions.
const APART_MAX: u32 = 64;
/// The configuration before the first one.
const ROOT: u32 = u32::MAX;
/// What a key holds that nobody can tell from other contents.
const UNSEEN: u32 = u32::MAX;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Interleaved {
    /// This order explains every read.
    Order(Vec<TxnId>),
    /// There is none.
    Nowhere,
    /// None was found, and not all were looked at.
    Open,
}

/// Looks for an order; `None` where more is known of a history than reads and writes of values.
/// It keeps real time if clocks are known to be at most so far apart.
pub(in crate::strong) fn order(
    (history, index): (&History, &Index),
    real_time: Option<Time>,
    limits: &Limits<'_>,
) -> Option<Interleaved> {
    if limits.working_bytes_max.is_some_and(|most| most < BYTES_MIN) {
        return None;
    }
    let problem = Problem::of(history, index, real_time)?;
    (limits.observe)(Stage::Interleave);
    let kept_max = KEPT_MAX.min(KEPT_WORDS_MAX / problem.words().max(1));
    let mut work = WORK_MAX;
    let mut kept = KEPT_FIRST;
    loop {
        let (found, _) = Walk::new(&problem, kept, &mut work, limits).all();
        if found != Interleaved::Open || kept >= kept_max || work == 0 || (limits.stop)() {
            return Some(found);
        }
        kept = kept_max.min(16 * kept);
    }
}

/// A read: where the key stands in a configuration, and what was found there.
#[derive(Clone, Copy)]
struct Found {
    slot: u32,
    content: u32,
    /// Whether something else was found.
    differs: bool,
}

/// A transaction as what it found and what it left.
struct Step {
    txn: TxnId,
    reads: Range<u32>,
    writes: Range<u32>,
    invoked: Time,
    completed: Time,
    /// What it and those before it in its session saw, in bits.
    told: f64,
}

/// What can be told apart of keys: what somebody saw, or did not see.
struct Told {
    /// By key, where it stands in a configuration.
    slots: Vec<u32>,
    /// The keys that stand there.
    keys: Vec<KeyId>,
    contents: HashMap<(KeyId, Value), u32>,
    /// By key, how many contents it has.
    counts: Vec<u32>,
}

impl Told {
    fn of(history: &History, index: &Index) -> Told {
        let keys = history.key_count();
        let mut told = Told {
            slots: vec![u32::MAX; keys],
            keys: Vec::new(),
            contents: HashMap::new(),
            counts: vec![0; keys],
        };
        for read in history.txns().flat_map(|txn| index.reads_of(txn)) {
            let (number, key) = (told.contents.len() as u32, read.key.index());
            told.contents.entry((read.key, history.op(read.op).value)).or_insert_with(|| {
                told.counts[key] += 1;
                number
            });
            if told.slots[key] == u32::MAX {
                told.slots[key] = told.keys.len() as u32;
                told.keys.push(read.key);
            }
        }
        told
    }
    fn content(&self, key: KeyId, value: Value) -> u32 {
        self.contents.get(&(key, value)).copied().unwrap_or(UNSEEN)
    }
}

/// What is to be put in order.
struct Problem {
    /// Session by session.
    steps: Vec<Step>,
    reads: Vec<Found>,
    /// Where a key stands and what it is left with.
    writes: Vec<(u32, u32)>,
    /// Of every content, sessions and places of those who wrote it, by their place.
    writers: Vec<Vec<(u32, u32)>>,
    /// Where each session begins, and the end.
    starts: Vec<u32>,
    /// What the keys hold at first.
    initial: Vec<u32>,
    is_timed: bool,
}

impl Problem {
    fn of(history: &History, index: &Index, real_time: Option<Time>) -> Option<Problem> {
        if !is_plain(history, index) {
            return None;
        }
        let told = Told::of(history, index);
        let initial = |&key: &KeyId| told.content(key, history.initial(key));
        if told.keys.iter().any(|&key| history.initial(key) == Value::UNKNOWN) {
            return None;
        }
        let mut problem = Problem {
            steps: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            writers: vec![Vec::new(); told.contents.len()],
            starts: vec![0],
            initial: told.keys.iter().map(initial).collect(),
            is_timed: real_time.is_some(),
        };
        if history.session_count() + problem.initial.len() > WORDS_MAX {
            return None;
        }
        for session in history.sessions() {
            let mut last = ALWAYS;
            for txn in history.txns_of(session).filter(|&txn| index.is_counted(txn)) {
                problem.add((history, index), &told, txn);
                let step = problem.steps.last_mut().expect("it was added");
                if let Some(clock_drift) = real_time {
                    let interval = history.txn_interval(txn);
                    step.invoked = interval.invoked;
                    step.completed = interval.completed.saturating_add(clock_drift);
                }
                // Of those that are left in a session, the next one is over first.
                if step.completed < last {
                    return None;
                }
                last = step.completed;
            }
            problem.starts.push(problem.steps.len() as u32);
        }
        for writers in &mut problem.writers {
            writers.sort_unstable_by_key(|it| it.1);
        }
        Some(problem)
    }

    /// Adds the next transaction of the session that began last.
    fn add(&mut self, (history, index): (&History, &Index), told: &Told, txn: TxnId) {
        let session = self.starts.len() as u32 - 1;
        let place = self.steps.len() as u32 - self.starts[session as usize];
        let before = self.steps.last().filter(|_| place > 0);
        let mut sum = before.map_or(0.0, |step| step.told);
        let (reads, writes) = (self.reads.len() as u32, self.writes.len() as u32);
        for read in index.reads_of(txn) {
            let (slot, op) = (told.slots[read.key.index()], history.op(read.op));
            let differs = op.kind == OpKind::ReadOther;
            let content = told.content(read.key, op.value);
            self.reads.push(Found { slot, content, differs });
            if !differs {
                sum += f64::from(1 + told.counts[read.key.index()]).log2();
            }
        }
        for &key in index.written_by(txn) {
            let slot = told.slots[key.index()];
            let mut ops = history.op_range(txn).rev().map(|op| history.op(OpId(op)));
            let last = ops.find(|op| op.key == key && op.kind.is_write());
            let content = told.content(key, last.expect("it writes the key").value);
            if slot == u32::MAX {
                continue;
            }
            self.writes.push((slot, content));
            if content != UNSEEN {
                self.writers[content as usize].push((session, place));
            }
        }
        self.steps.push(Step {
            txn,
            reads: reads..self.reads.len() as u32,
            writes: writes..self.writes.len() as u32,
            invoked: ALWAYS,
            completed: NEVER,
            told: sum,
        });
    }

    fn sessions(&self) -> usize {
        self.starts.len() - 1
    }

    /// How long a configuration is: places of sessions, then contents of keys.
    fn words(&self) -> usize {
        self.sessions() + self.initial.len()
    }

    /// The next transaction of a session.
    fn next(&self, row: &[u32], session: usize) -> Option<usize> {
        (row[session] < self.starts[session + 1]).then_some(row[session] as usize)
    }

    fn is_reader(&self, step: usize) -> bool {
        self.steps[step].writes.is_empty()
    }

    /// Whether the reads of a transaction find what they saw, and nothing else has to come first.
    fn fits(&self, row: &[u32], step: usize) -> bool {
        let Step { reads, invoked, .. } = &self.steps[step];
        let contents = &row[self.sessions()..];
        let fits = |read: &Found| (contents[read.slot as usize] == read.content) != read.differs;
        self.reads[reads.start as usize..reads.end as usize].iter().all(fits)
            && !(self.is_timed && self.is_hindered(row, step, *invoked))
    }

    /// Whether a transaction that is left was over before this one was invoked. In a session the
    /// next one is over first.
    fn is_hindered(&self, row: &[u32], step: usize, invoked: Time) -> bool {
        (0..self.sessions()).any(|session| {
            self.next(row, session)
                .is_some_and(|other| other != step && self.steps[other].completed < invoked)
        })
    }

    /// How much speaks for a configuration.
    fn rank(&self, row: &[u32]) -> f64 {
        const PER_BIT: f64 = 0.01;
        let first = |session: usize| row[session] - self.starts[session];
        let earliest = (0..self.sessions()).map(first).min().unwrap_or_default();
        let contents = &row[self.sessions()..];
        let mut missing = 0;
        for step in (0..self.sessions()).filter_map(|session| self.next(row, session)) {
            let Step { reads, .. } = &self.steps[step];
            for read in &self.reads[reads.start as usize..reads.end as usize] {
                let is_there = (contents[read.slot as usize] == read.content) != read.differs;
                let is_missing = !is_there && !self.is_written_soon(row, read, earliest);
                missing += i32::from(is_missing && !read.differs);
            }
        }
        PER_BIT * self.told(row) - f64::from(missing)
    }

    /// Whether one of the next transactions of some session writes what a read found.
    fn is_written_soon(&self, row: &[u32], read: &Found, earliest: u32) -> bool {
        let writers = &self.writers[read.content as usize];
        let start = writers.partition_point(|it| it.1 < earliest);
        let mut near = writers[start..].iter().take_while(|it| it.1 < earliest + APART_MAX + SOON);
        near.any(|&(session, place)| {
            let next = row[session as usize] - self.starts[session as usize];
            (next..next + SOON).contains(&place)
        })
    }

    /// What the transactions of a configuration saw together.
    fn told(&self, row: &[u32]) -> f64 {
        let told = |session: usize| match row[session] {
            place if place == self.starts[session] => 0.0,
            place => self.steps[place as usize - 1].told,
        };
        (0..self.sessions()).map(told).sum()
    }
}

/// Whether nothing is known but what reads and writes of single values say.
fn is_plain(history: &History, index: &Index) -> bool {
    let is_open = |txn: TxnId| history.outcome(txn) != Outcome::Aborted && !index.is_counted(txn);
    !history.has_predicates()
        && !history.has_snapshots()
        && !history.has_lists()
        && history.orders().total.is_none()
        && index.steps().is_empty()
        && index.conflicts().is_empty()
        && index.misreads().is_empty()
        && !history.op_kinds().contains(&OpKind::Call)
        && !history.txns().any(is_open)
}

/// Configurations without repetition.
#[derive(Default)]
struct Set {
    rows: Vec<u32>,
    /// How each came about.
    nodes: Vec<u32>,
    table: HashTable<u32>,
}

impl Set {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.nodes.clear();
        self.table.clear();
    }
}

struct Walk<'a> {
    problem: &'a Problem,
    limits: &'a Limits<'a>,
    /// How many configurations are kept at a time.
    kept: usize,
    /// How many words may still be written.
    work: &'a mut usize,
    /// The transaction that came last, and the node before it.
    tree: Vec<(u32, u32)>,
    hasher: DefaultHashBuilder,
    /// Configurations that were looked at.
    looked_at: usize,
    /// Room of sets that are over: the system takes longer to hand out memory anew for each than
    /// it takes to fill it.
    spare: Vec<Set>,
}

impl<'a> Walk<'a> {
    fn new(
        problem: &'a Problem,
        kept: usize,
        work: &'a mut usize,
        limits: &'a Limits<'a>,
    ) -> Walk<'a> {
        let hasher = DefaultHashBuilder::default();
        let (tree, spare) = (Vec::new(), Vec::new());
        Walk { problem, limits, kept, work, tree, hasher, looked_at: 0, spare }
    }

    /// What comes of it, and how many configurations that took.
    fn all(mut self) -> (Interleaved, usize) {
        let problem = self.problem;
        let sessions = problem.starts[..problem.sessions()].iter().copied();
        let mut row: Vec<u32> = sessions.chain(problem.initial.iter().copied()).collect();
        let mut node = ROOT;
        self.read(&mut row, &mut node);
        let mut frontier = Set::default();
        self.insert(&mut frontier, &row, node);
        let mut is_whole = true;
        let writers = (0..problem.steps.len()).filter(|&step| !problem.is_reader(step)).count();
        for _ in 0..writers {
            let Some(next) = self.continued(&frontier) else {
                return (Interleaved::Open, self.looked_at);
            };
            if next.len() == 0 {
                let found = if is_whole { Interleaved::Nowhere } else { Interleaved::Open };
                return (found, self.looked_at);
            }
            is_whole &= next.len() <= self.kept;
            let best = self.best(next);
            self.spare.push(std::mem::replace(&mut frontier, best));
        }
        let words = problem.words();
        let is_over = |row: &[u32]| row[..problem.sessions()] == problem.starts[1..];
        match frontier.rows.chunks_exact(words).position(is_over) {
            Some(at) => (Interleaved::Order(self.path(frontier.nodes[at])), self.looked_at),
            None if is_whole => (Interleaved::Nowhere, self.looked_at),
            None => (Interleaved::Open, self.looked_at),
        }
    }

    /// Every configuration after one more writing transaction; `None` if that takes too long.
    fn continued(&mut self, frontier: &Set) -> Option<Set> {
        let problem = self.problem;
        let words = problem.words();
        let mut next = self.empty();
        let mut row = vec![0; words];
        for (start, &before) in frontier.rows.chunks_exact(words).zip(&frontier.nodes) {
            self.looked_at += 1;
            if self.looked_at.is_multiple_of(PERIOD) && (self.limits.stop)() {
                return None;
            }
            for session in 0..problem.sessions() {
                let Some(step) = problem.next(start, session) else { continue };
                if !problem.fits(start, step) {
                    continue;
                }
                *self.work = self.work.checked_sub(words.max(WORDS_MIN))?;
                row.copy_from_slice(start);
                let mut node = before;
                self.take(&mut row, &mut node, session, step);
                self.read(&mut row, &mut node);
                self.insert(&mut next, &row, node);
                if next.rows.len() > WORDS_AT_A_TIME_MAX {
                    return None;
                }
            }
        }
        Some(next)
    }

    fn take(&mut self, row: &mut [u32], node: &mut u32, session: usize, step: usize) {
        row[session] += 1;
        let writes = &self.problem.steps[step].writes;
        for &(slot, content) in &self.problem.writes[writes.start as usize..writes.end as usize] {
            row[self.problem.sessions() + slot as usize] = content;
        }
        self.tree.push((step as u32, *node));
        *node = self.tree.len() as u32 - 1;
    }

    /// Lets transactions that only read take place, as far as they can.
    fn read(&mut self, row: &mut [u32], node: &mut u32) {
        let problem = self.problem;
        loop {
            let reader = (0..problem.sessions()).find_map(|session| {
                let step = problem.next(row, session)?;
                (problem.is_reader(step) && problem.fits(row, step)).then_some((session, step))
            });
            let Some((session, step)) = reader else { return };
            self.take(row, node, session, step);
        }
    }

    fn insert(&mut self, set: &mut Set, row: &[u32], node: u32) {
        let words = row.len();
        let hash = self.hasher.hash_one(row);
        let Set { rows, nodes, table } = set;
        let at = |number: &u32| *number as usize * words..(*number as usize + 1) * words;
        if table.find(hash, |number| rows[at(number)] == *row).is_some() {
            return;
        }
        let number = nodes.len() as u32;
        rows.extend_from_slice(row);
        nodes.push(node);
        let hasher = &self.hasher;
        table.insert_unique(hash, number, |number| hasher.hash_one(&rows[at(number)]));
    }

    /// A set without configurations.
    fn empty(&mut self) -> Set {
        let mut set = self.spare.pop().unwrap_or_default();
        set.clear();
        set
    }

    /// As many configurations as are kept, those that most speaks for.
    fn best(&mut self, set: Set) -> Set {
        if set.len() <= self.kept {
            return set;
        }
        let words = self.problem.words();
        let rank = set.rows.chunks_exact(words).map(|row| self.problem.rank(row));
        let mut ranked: Vec<(f64, u32)> = rank.zip(0..).collect();
        let by_rank = |one: &(f64, u32), other: &(f64, u32)| {
            other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
        };
        ranked.select_nth_unstable_by(self.kept, by_rank);
        ranked.truncate(self.kept);
        ranked.sort_unstable_by_key(|it| it.1);
        let mut kept = self.empty();
        for (_, number) in ranked {
            let start = number as usize * words;
            kept.rows.extend_from_slice(&set.rows[start..start + words]);
            kept.nodes.push(set.nodes[number as usize]);
        }
        self.spare.push(set);
        kept
    }

    fn path(&self, node: u32) -> Vec<TxnId> {
        let mut path = Vec::new();
        let mut at = node;
        while at != ROOT {
            let (step, before) = self.tree[at as usize];
            path.push(self.problem.steps[step as usize].txn);
            at = before;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests;

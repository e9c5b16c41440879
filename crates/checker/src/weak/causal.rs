//! Causal consistency: who sees an effect sees its causes.
//!
//! **Definition.** `other` is visible to a reader if it happens before it:
//! `(session order ∪ reads-from)⁺` [Biswas19, Def. 2.4; transactional causal
//! consistency].
//!
//! **Method.** One walk in an order that contains happens-before. Each transaction
//! gets a clock: per session, how far it happens before it. Clocks are merged from
//! the session's predecessor and the transactions read from, and dropped when their
//! last user has passed. For a read of a key, per session only the last visible
//! writer matters, and none that happens before the writer that was read: session
//! order and reads-from order those already. O(n·k) for k sessions. [`AWDIT`, §3.3]

use super::{Facts, Forced, Halt, Rule, session_edge};
use crate::anomaly::AnomalyKind;
use crate::level::Level;
use crate::verdict::{Cycle, Edge, INITIAL, Reason};
use hashbrown::HashMap;
use isolde_history::{Candidates, KeyId, Origin, ReadId, TxnId};
use std::collections::VecDeque;

pub(super) const RULE: Rule = Rule {
    level: Level::Causal,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Final,
    broken: AnomalyKind::CausalityViolation,
    forced,
    visible,
};

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let mut walk = Walk::new(facts);
    walk.run()?;
    Ok(walk.forced)
}

/// No clock.
const NONE: u32 = u32::MAX;

/// Walking all writers of a key costs a step each, searching them this many for
/// each session.
const STEPS_PER_SEARCH: usize = 6;

/// The walk in happens-before order.
struct Walk<'a> {
    facts: &'a Facts<'a>,
    /// The session of every transaction.
    sessions: Vec<u32>,
    /// The session of every writer of every key, beside [`Index::writers`]: the
    /// innermost loop reads both in order.
    ///
    /// [`Index::writers`]: isolde_history::Index::writers
    writer_sessions: Vec<u32>,
    /// Each counted transaction's predecessor in its session, or [`INITIAL`].
    previous: Vec<TxnId>,
    /// How many have yet to merge a transaction's clock: its readers, and its
    /// successor in the session.
    users: Vec<u32>,
    state: Vec<Progress>,
    /// Where each transaction's clock is, in clocks; [`NONE`] before and after.
    clock_of: Vec<u32>,
    clocks: Clocks,
    forced: Vec<Forced>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Open,
    Done,
}

/// A transaction being visited.
struct Frame {
    txn: TxnId,
    /// The read to look at next; `None` before its session was looked at.
    next_read: Option<u32>,
}

/// Clocks of equal length in one allocation, used again when dropped.
struct Clocks {
    width: usize,
    entries: Vec<u32>,
    unused: Vec<u32>,
}

impl Clocks {
    fn take(&mut self) -> u32 {
        self.unused.pop().unwrap_or_else(|| {
            let number = self.entries.len() / self.width;
            self.entries.resize(self.entries.len() + self.width, 0);
            number as u32
        })
    }

    #[inline]
    fn get(&self, clock: u32) -> &[u32] {
        &self.entries[clock as usize * self.width..][..self.width]
    }

    fn set(&mut self, clock: u32, entries: &[u32]) {
        self.entries[clock as usize * self.width..][..self.width].copy_from_slice(entries);
    }

    #[inline]
    fn merge(&self, clock: u32, into: &mut [u32]) {
        for (entry, &other) in into.iter_mut().zip(self.get(clock)) {
            *entry = (*entry).max(other);
        }
    }
}

impl<'a> Walk<'a> {
    fn new(facts: &'a Facts<'a>) -> Self {
        let (history, index) = (facts.history, facts.index);
        let txns = history.txn_count();
        let mut sessions = Vec::with_capacity(txns);
        let mut previous = Vec::with_capacity(txns);
        let mut users = vec![0u32; txns];
        for session in history.sessions() {
            let mut last = INITIAL;
            for txn in history.txns_of(session) {
                sessions.push(session.0);
                previous.push(last);
                if index.is_counted(txn) {
                    if last != INITIAL {
                        users[last.index()] += 1;
                    }
                    last = txn;
                }
            }
        }
        for txn in history.txns() {
            for read in index.reads_of(txn) {
                if let Origin::Txn(writer) = read.origin {
                    users[writer.index()] += 1;
                }
            }
        }
        let width = history.session_count().max(1);
        let writer_sessions = index.writers().iter().map(|txn| sessions[txn.index()]).collect();
        Walk {
            facts,
            sessions,
            writer_sessions,
            previous,
            users,
            state: vec![Progress::Waiting; txns],
            clock_of: vec![NONE; txns],
            clocks: Clocks { width, entries: Vec::new(), unused: Vec::new() },
            forced: Vec::new(),
        }
    }

    fn working_bytes(&self) -> usize {
        self.clocks.entries.capacity() * 4 + self.forced.capacity() * size_of::<Forced>()
    }

    /// Visits every counted transaction after all that happen before it. Sessions
    /// take turns, so that clocks are needed by few transactions at a time.
    fn run(&mut self) -> Result<(), Halt> {
        let history = self.facts.history;
        let longest = history.sessions().map(|id| history.session_range(id).len()).max();
        let mut entries = vec![0u32; self.clocks.width];
        for turn in 0..longest.unwrap_or(0) as u32 {
            self.facts.stop_if_asked(self.working_bytes())?;
            for session in history.sessions() {
                let range = history.session_range(session);
                let txn = TxnId(range.start + turn);
                if txn.0 < range.end && self.facts.index.is_counted(txn) {
                    self.visit(txn, &mut entries)?;
                }
            }
        }
        Ok(())
    }

    /// Visits one transaction, and before it what it waits for. No recursion: the
    /// chain of what waits grows with the history.
    fn visit(&mut self, txn: TxnId, entries: &mut [u32]) -> Result<(), Halt> {
        if self.state[txn.index()] != Progress::Waiting {
            return Ok(());
        }
        let mut open: Vec<Frame> = vec![Frame { txn, next_read: None }];
        self.state[txn.index()] = Progress::Open;
        while let Some(mut frame) = open.pop() {
            let awaited = self.awaited(&mut frame);
            let txn = frame.txn;
            match awaited {
                Some(before) if self.state[before.index()] == Progress::Open => {
                    open.push(frame);
                    return Err(Halt::Cycle(self.cycle(&open, before)));
                }
                Some(before) => {
                    self.state[before.index()] = Progress::Open;
                    open.push(frame);
                    open.push(Frame { txn: before, next_read: None });
                }
                None => {
                    self.finish(txn, entries);
                    self.state[txn.index()] = Progress::Done;
                }
            }
        }
        Ok(())
    }

    /// A transaction that happens directly before the frame's and was not visited
    /// yet. What was visited stays so, hence the frame goes on where it was.
    fn awaited(&self, frame: &mut Frame) -> Option<TxnId> {
        let waits = |before: TxnId| self.state[before.index()] != Progress::Done;
        let range = self.facts.index.read_range(frame.txn);
        if frame.next_read.is_none() {
            frame.next_read = Some(range.start);
            let previous = self.previous[frame.txn.index()];
            if previous != INITIAL && waits(previous) {
                return Some(previous);
            }
        }
        for read in frame.next_read.unwrap_or(range.start)..range.end {
            if let Origin::Txn(writer) = self.facts.index.read(ReadId(read)).origin
                && waits(writer)
            {
                frame.next_read = Some(read);
                return Some(writer);
            }
        }
        frame.next_read = Some(range.end);
        None
    }

    /// `txn` and everything before it is visited: computes its clock, and what its
    /// reads force.
    fn finish(&mut self, txn: TxnId, entries: &mut [u32]) {
        let facts = self.facts;
        let previous = self.previous[txn.index()];
        if previous == INITIAL {
            // Nothing of a session is visible yet: clocks hold the first transaction
            // that is not.
            for (entry, session) in entries.iter_mut().zip(facts.history.sessions()) {
                *entry = facts.history.session_range(session).start;
            }
        } else {
            entries.copy_from_slice(self.clocks.get(self.clock_of[previous.index()]));
        }
        for read in facts.index.reads_of(txn) {
            if let Origin::Txn(writer) = read.origin {
                self.clocks.merge(self.clock_of[writer.index()], entries);
            }
        }
        for read in facts.index.read_range(txn).map(ReadId) {
            self.force(read, entries);
        }
        for read in facts.index.reads_of(txn) {
            if let Origin::Txn(writer) = read.origin {
                self.used(writer);
            }
        }
        if previous != INITIAL {
            self.used(previous);
        }
        if self.users[txn.index()] > 0 {
            entries[self.sessions[txn.index()] as usize] = txn.0 + 1;
            let clock = self.clocks.take();
            self.clocks.set(clock, entries);
            self.clock_of[txn.index()] = clock;
        }
    }

    fn used(&mut self, txn: TxnId) {
        let users = &mut self.users[txn.index()];
        *users -= 1;
        if *users == 0 {
            self.clocks.unused.push(self.clock_of[txn.index()]);
            self.clock_of[txn.index()] = NONE;
        }
    }

    /// What one read forces, given what is visible to its transaction.
    fn force(&mut self, read: ReadId, visible: &[u32]) {
        let external = self.facts.index.read(read);
        let Some(after) = Facts::writer(external.origin) else { return };
        let writers = self.facts.index.writers_of(external.key);
        let known = (after != INITIAL).then(|| self.clocks.get(self.clock_of[after.index()]));
        let sessions = self.clocks.width;
        if writers.len() <= STEPS_PER_SEARCH * sessions {
            let mut last: Option<(u32, TxnId)> = None;
            let of = &self.writer_sessions[self.facts.index.writer_range(external.key)];
            for (&writer, &session) in writers.iter().zip(of) {
                let ordered = known.is_some_and(|known| writer.0 < known[session as usize]);
                if writer.0 >= visible[session as usize] || ordered {
                    continue;
                }
                if let Some((of, before)) = last
                    && of != session
                {
                    self.forced.push(Forced { before, after, read });
                }
                last = Some((session, writer));
            }
            if let Some((_, before)) = last {
                self.forced.push(Forced { before, after, read });
            }
            return;
        }
        for session in self.facts.history.sessions() {
            let end = visible[session.index()];
            let start = match known {
                Some(known) => known[session.index()],
                None => self.facts.history.session_range(session).start,
            };
            if start >= end {
                continue;
            }
            let count = writers.partition_point(|writer| writer.0 < end);
            if let Some(&before) = writers[..count].last()
                && before.0 >= start
            {
                self.forced.push(Forced { before, after, read });
            }
        }
    }

    /// The transactions that wait for each other, from `first` to the last open one.
    fn cycle(&self, open: &[Frame], first: TxnId) -> Cycle {
        let start = open.iter().position(|frame| frame.txn == first).expect("it is open");
        let waiting: Vec<TxnId> = open[start..].iter().map(|frame| frame.txn).collect();
        let mut edges: Vec<Edge> = Vec::new();
        for (place, &after) in waiting.iter().enumerate() {
            let before = waiting.get(place + 1).copied().unwrap_or(first);
            edges.push(if self.previous[after.index()] == before {
                session_edge(before, after)
            } else {
                self.facts.reads_from(after, before).expect("it waits for this read")
            });
        }
        edges.reverse();
        Cycle { edges: merge_sessions(edges) }
    }
}

/// Joins steps along one session, also across the ends of the cycle.
fn merge_sessions(mut edges: Vec<Edge>) -> Vec<Edge> {
    if let Some(turn) = edges.iter().position(|edge| edge.reason != Reason::Session) {
        edges.rotate_left(turn);
    }
    merge_chain(edges)
}

/// A shortest chain of reads and session steps from the forced transaction to the
/// reader, searched backwards from the reader.
fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    let target = forced.before;
    let target_session = facts.history.session_of(target);
    let mut toward: HashMap<TxnId, Edge> = HashMap::new();
    let mut queue = VecDeque::from([reader]);
    // Per session, the earliest transaction reached: from there on along the
    // session nothing new is found.
    let mut reached: HashMap<u32, TxnId> = HashMap::new();
    while let Some(txn) = queue.pop_front() {
        let session = facts.history.session_of(txn);
        if session == target_session && target <= txn {
            let mut chain = Vec::new();
            if target != txn {
                chain.push(session_edge(target, txn));
            }
            let mut at = txn;
            while at != reader {
                let edge = toward[&at].clone();
                at = edge.after;
                chain.push(edge);
            }
            return merge_chain(chain);
        }
        let mut arrive = |edge: Edge, queue: &mut VecDeque<TxnId>| {
            if edge.before != reader && !toward.contains_key(&edge.before) {
                queue.push_back(edge.before);
                toward.insert(edge.before, edge);
            }
        };
        for read in facts.index.reads_of(txn) {
            if let Origin::Txn(writer) = read.origin {
                arrive(read_edge(writer, txn, read.op, read.key), &mut queue);
            }
        }
        // Everything earlier in the session is one step away; what it read, two.
        let known = reached.get(&session.0).copied();
        for earlier in facts.earlier_in_session(txn) {
            if known.is_some_and(|known| earlier >= known) {
                continue;
            }
            arrive(session_edge(earlier, txn), &mut queue);
        }
        let start = facts.history.session_range(session).start;
        reached.insert(session.0, TxnId(start));
    }
    Vec::new()
}

fn read_edge(before: TxnId, after: TxnId, read: isolde_history::OpId, key: KeyId) -> Edge {
    Edge { before, after, reason: Reason::ReadsFrom { read, key } }
}

fn merge_chain(chain: Vec<Edge>) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::with_capacity(chain.len());
    for edge in chain {
        match merged.last_mut() {
            Some(last) if last.reason == Reason::Session && edge.reason == Reason::Session => {
                last.after = edge.after;
            }
            _ => merged.push(edge),
        }
    }
    merged
}

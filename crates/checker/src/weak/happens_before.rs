//! Happens-before, walked so that what happens before a transaction comes first.

use super::{Facts, Halt};
use crate::evidence::{Cycle, Edge, EdgeKind, INITIAL};
use isolde_history::{Origin, ReadId, SessionId, TxnId};

/// Session order and reads-from of the counted transactions.
pub(super) struct HappensBefore<'a> {
    pub(super) facts: &'a Facts<'a>,
    /// Each counted transaction's predecessor in its session, or [`INITIAL`].
    pub(super) previous: Vec<TxnId>,
    state: Vec<Progress>,
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

impl<'a> HappensBefore<'a> {
    pub(super) fn new(facts: &'a Facts<'a>) -> Self {
        let (history, index) = (facts.history, facts.index);
        let mut previous = Vec::with_capacity(history.txn_count());
        for session in history.sessions() {
            let mut last = INITIAL;
            for txn in history.txns_of(session) {
                previous.push(last);
                if index.is_counted(txn) {
                    last = txn;
                }
            }
        }
        HappensBefore { facts, previous, state: vec![Progress::Waiting; history.txn_count()] }
    }

    /// A counted transaction's predecessor in its session.
    pub(super) fn previous_of(&self, txn: TxnId) -> Option<TxnId> {
        Some(self.previous[txn.index()]).filter(|&previous| previous != INITIAL)
    }

    /// Visits every counted transaction after all that happen before it. Sessions
    /// take turns, so that clocks are needed by few transactions at a time.
    pub(super) fn walk(
        &mut self,
        mut visit: impl FnMut(&Self, TxnId) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
        let history = self.facts.history;
        let mut sessions: Vec<SessionId> = history.sessions().collect();
        for turn in 0.. {
            sessions.retain(|&session| turn < history.session_range(session).len() as u32);
            if sessions.is_empty() {
                return Ok(());
            }
            for &session in &sessions {
                let txn = TxnId(history.session_range(session).start + turn);
                if self.facts.index.is_counted(txn) {
                    self.visit(txn, &mut visit)?;
                }
            }
        }
        Ok(())
    }

    /// Visits one transaction, and before it what it waits for. No recursion: the
    /// chain of what waits grows with the history.
    fn visit(
        &mut self,
        txn: TxnId,
        visit: &mut impl FnMut(&Self, TxnId) -> Result<(), Halt>,
    ) -> Result<(), Halt> {
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
                    visit(self, txn)?;
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

    /// The transactions that wait for each other, from `first` to the last open one.
    fn cycle(&self, open: &[Frame], first: TxnId) -> Cycle {
        let start = open.iter().position(|frame| frame.txn == first).expect("it is open");
        let waiting: Vec<TxnId> = open[start..].iter().map(|frame| frame.txn).collect();
        let mut edges: Vec<Edge> = Vec::new();
        for (place, &after) in waiting.iter().enumerate() {
            let before = waiting.get(place + 1).copied().unwrap_or(first);
            edges.push(if self.previous[after.index()] == before {
                Edge::session(before, after)
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
    if let Some(turn) = edges.iter().position(|edge| edge.kind() != EdgeKind::Session) {
        edges.rotate_left(turn);
    }
    merge_chain(edges)
}

/// Joins steps along one session.
pub(super) fn merge_chain(chain: Vec<Edge>) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::with_capacity(chain.len());
    for edge in chain {
        match merged.last_mut() {
            Some(last) if [last.kind(), edge.kind()] == [EdgeKind::Session; 2] => {
                last.after = edge.after;
            }
            _ => merged.push(edge),
        }
    }
    merged
}

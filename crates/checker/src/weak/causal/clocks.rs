//! What causality forces, by clocks: for histories of few long sessions.
//!
//! Each transaction gets a clock: per session, how far it happens before it. Clocks
//! are merged from the session's predecessor and the transactions read from, and
//! dropped when their last user has passed. For a read of a key, per session only the
//! last visible writer matters, and none that happens before the writer that was read:
//! session order and reads-from order those already. O(n·k) for k sessions.
//! [`AWDIT`, §3.3]

use crate::evidence::INITIAL;
use crate::weak::happens_before::HappensBefore;
use crate::weak::{Facts, Forced, Halt};
use isolde_history::{Origin, ReadId, TxnId};

/// No clock.
const NONE: u32 = u32::MAX;

/// Walking all writers of a key costs a step each, searching them this many for
/// each session.
const STEPS_PER_SEARCH: usize = 6;

/// How many transactions are visited before limits are looked at again.
const TXNS_BETWEEN: usize = 1 << 10;

pub(super) fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let mut order = HappensBefore::new(facts);
    let mut state = State::new(&order);
    let mut entries = vec![0u32; state.clocks.width];
    let mut visited = 0;
    order.walk(|order, txn| {
        if visited % TXNS_BETWEEN == 0 {
            facts.stop_if_asked(state.working_bytes())?;
        }
        visited += 1;
        state.visit(txn, order.previous[txn.index()], &mut entries);
        Ok(())
    })?;
    Ok(state.forced)
}

struct State<'a> {
    facts: &'a Facts<'a>,
    /// The session of every transaction.
    sessions: Vec<u32>,
    /// The session of every writer of every key, beside [`Index::writers`]: the
    /// innermost loop reads both in order.
    ///
    /// [`Index::writers`]: isolde_history::Index::writers
    writer_sessions: Vec<u32>,
    /// How many have yet to merge a transaction's clock: its readers, and its
    /// successor in the session.
    users: Vec<u32>,
    /// Where each transaction's clock is, in clocks; [`NONE`] before and after.
    clock_of: Vec<u32>,
    clocks: Clocks,
    forced: Vec<Forced>,
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

impl<'a> State<'a> {
    fn new(order: &HappensBefore<'a>) -> Self {
        let facts = order.facts;
        let (history, index) = (facts.history, facts.index);
        let txns = history.txn_count();
        let mut sessions = Vec::with_capacity(txns);
        let mut users = vec![0u32; txns];
        for session in history.sessions() {
            sessions.extend(history.txns_of(session).map(|_| session.0));
        }
        for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
            let previous = order.previous[txn.index()];
            if previous != INITIAL {
                users[previous.index()] += 1;
            }
            for read in index.reads_of(txn) {
                if let Origin::Txn(writer) = read.origin {
                    users[writer.index()] += 1;
                }
            }
        }
        let width = history.session_count().max(1);
        let writer_sessions = index.writers().iter().map(|txn| sessions[txn.index()]).collect();
        State {
            facts,
            sessions,
            writer_sessions,
            users,
            clock_of: vec![NONE; txns],
            clocks: Clocks { width, entries: Vec::new(), unused: Vec::new() },
            forced: Vec::new(),
        }
    }

    fn working_bytes(&self) -> usize {
        self.clocks.entries.capacity() * 4 + self.forced.capacity() * size_of::<Forced>()
    }

    /// `txn` and everything before it is visited: computes its clock, and what its
    /// reads force.
    fn visit(&mut self, txn: TxnId, previous: TxnId, entries: &mut [u32]) {
        let facts = self.facts;
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
}

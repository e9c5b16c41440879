//! Whether a commit order explains what every reader missed, level by level.
//!
//! For each read of a key, the latest in the commit order of the key's writers that were
//! visible to the reader is found; if it does not come after the writer that was read
//! from, none does. Session order is part of the commit order wherever it makes visible, so
//! the last writer in a session is the latest of that session.

use super::commits::{Ordered, SeenFrom};
use crate::level::Visible;
use isolde_history::{KeyId, SessionId, TxnId};
use std::collections::{HashMap, HashSet};

/// More work is refused, in writers looked at.
const WORK_MAX: u64 = 1 << 33;
/// More memory for clocks is refused.
const CLOCK_BYTES_MAX: usize = 1 << 33;

/// Checks every read.
pub(super) fn check(ordered: &Ordered<'_, '_>, visible: Visible) -> Result<(), String> {
    match visible {
        Visible::AnySteps => Causal::new(ordered).check(),
        Visible::BeforeUpdate | Visible::CommonWriter => Preceding::new(ordered, visible).check(),
        Visible::ReadThenSession | Visible::ReadThenSessionThenRead => {
            let timelines = Timelines::new(ordered);
            each_read(ordered, |reader, read| timelines.check(visible, reader, read))
        }
        _ => each_read(ordered, |reader, read| check_near(ordered, visible, reader, read)),
    }
}

fn each_read(
    ordered: &Ordered<'_, '_>,
    check: impl Fn(TxnId, &SeenFrom) -> Result<(), String>,
) -> Result<(), String> {
    for &reader in ordered.order {
        ordered.reads_of(reader).iter().try_for_each(|read| check(reader, read))?;
    }
    Ok(())
}

/// What is a step or two away from the reader.
fn check_near(
    ordered: &Ordered<'_, '_>,
    visible: Visible,
    reader: TxnId,
    read: &SeenFrom,
) -> Result<(), String> {
    let session_of = |txn| ordered.facts.history.session_of(txn);
    if matches!(visible, Visible::Session | Visible::OneStep) {
        let last = ordered.last_writer_before(session_of(reader), reader, read.key);
        explain(ordered, reader, read, last)?;
    }
    if visible == Visible::Session {
        return Ok(());
    }
    for source in ordered.reads_of(reader) {
        let Some(writer) = source.writer else { continue };
        match visible {
            Visible::EarlierRead if source.op >= read.op => {}
            Visible::SessionThenRead => {
                let last = ordered.last_writer_before(session_of(writer), writer, read.key);
                explain(ordered, reader, read, last)?;
            }
            _ if ordered.writes(writer, read.key) => {
                explain(ordered, reader, read, Some(writer))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Another writer of the key that was visible precedes the one that was read from.
fn explain(
    ordered: &Ordered<'_, '_>,
    reader: TxnId,
    read: &SeenFrom,
    other: Option<TxnId>,
) -> Result<(), String> {
    let Some(other) = other.filter(|&other| other != reader && Some(other) != read.writer) else {
        return Ok(());
    };
    if read.writer.is_some_and(|writer| ordered.place(other) < ordered.place(writer)) {
        return Ok(());
    }
    Err(unexplained(reader, read, other))
}

fn unexplained(reader: TxnId, read: &SeenFrom, other: TxnId) -> String {
    let from = read
        .writer
        .map_or("the initial state".into(), |writer| format!("transaction {}", writer.0));
    format!(
        "transaction {} read key {} from {from} and should have seen transaction {}",
        reader.0, read.key.0, other.0
    )
}

/// For each session and key, the latest writer of it that the session has read from, as
/// the session goes on.
struct Timelines<'o, 'f, 'a> {
    ordered: &'o Ordered<'f, 'a>,
    /// The transaction that read, and the latest writer so far.
    seen: HashMap<(SessionId, KeyId), Vec<(TxnId, TxnId)>>,
}

impl<'o, 'f, 'a> Timelines<'o, 'f, 'a> {
    fn new(ordered: &'o Ordered<'f, 'a>) -> Self {
        let history = ordered.facts.history;
        let mut seen: HashMap<(SessionId, KeyId), Vec<(TxnId, TxnId)>> = HashMap::new();
        let mut known: HashSet<TxnId> = HashSet::new();
        for session in history.sessions() {
            known.clear();
            for reader in history.txns_of(session).filter(|&txn| ordered.takes_part(txn)) {
                let sources = ordered.reads_of(reader).iter().filter_map(|read| read.writer);
                for writer in sources {
                    if !known.insert(writer) {
                        continue;
                    }
                    for op in history.ops_of(writer).filter(|op| history.op(*op).kind.is_write()) {
                        let timeline = seen.entry((session, history.op(op).key)).or_default();
                        let latest = timeline.last().map(|last| last.1);
                        if latest.is_none_or(|it| ordered.place(it) < ordered.place(writer)) {
                            timeline.push((reader, writer));
                        }
                    }
                }
            }
        }
        Timelines { ordered, seen }
    }

    /// The latest writer of a key that earlier transactions of the session read from.
    fn latest(&self, before: TxnId, key: KeyId) -> Option<TxnId> {
        let session = self.ordered.facts.history.session_of(before);
        let timeline = self.seen.get(&(session, key))?;
        let place = timeline.partition_point(|entry| entry.0 < before);
        timeline[..place].last().map(|entry| entry.1)
    }

    fn check(&self, visible: Visible, reader: TxnId, read: &SeenFrom) -> Result<(), String> {
        if visible == Visible::ReadThenSession {
            return explain(self.ordered, reader, read, self.latest(reader, read.key));
        }
        let sources = self.ordered.reads_of(reader).iter().filter_map(|read| read.writer);
        for source in sources {
            explain(self.ordered, reader, read, self.latest(source, read.key))?;
        }
        Ok(())
    }
}

/// Causal paths, as clocks: for each session, the first of its transactions that is not
/// known to precede.
struct Causal<'o, 'f, 'a> {
    ordered: &'o Ordered<'f, 'a>,
    /// By transaction, its clock as long as somebody will ask for it.
    clocks: Vec<Option<Box<[u32]>>>,
    /// By transaction, how often its clock will still be asked for.
    uses: Vec<u32>,
}

impl<'o, 'f, 'a> Causal<'o, 'f, 'a> {
    fn new(ordered: &'o Ordered<'f, 'a>) -> Self {
        let history = ordered.facts.history;
        let mut uses = vec![0; history.txn_count()];
        for &reader in ordered.order {
            for writer in ordered.reads_of(reader).iter().filter_map(|read| read.writer) {
                uses[writer.index()] += 1;
            }
        }
        for session in history.sessions() {
            let txns = history.txns_of(session).filter(|&txn| ordered.takes_part(txn));
            // The last one has nobody after it.
            for txn in txns.rev().skip(1) {
                uses[txn.index()] += 1;
            }
        }
        Causal { ordered, clocks: vec![None; history.txn_count()], uses }
    }

    fn check(mut self) -> Result<(), String> {
        let history = self.ordered.facts.history;
        let sessions = history.session_count();
        let mut last_of: Vec<Option<TxnId>> = vec![None; sessions];
        let mut held = 0;
        for &reader in self.ordered.order {
            let session = history.session_of(reader);
            let mut clock: Box<[u32]> = vec![0; sessions].into();
            if let Some(last) = last_of[session.index()].replace(reader) {
                self.join(&mut clock, last, &mut held);
            }
            for writer in self.ordered.reads_of(reader).iter().filter_map(|read| read.writer) {
                self.join(&mut clock, writer, &mut held);
            }
            for read in self.ordered.reads_of(reader) {
                self.explain(&clock, reader, read)?;
            }
            if self.uses[reader.index()] > 0 {
                self.clocks[reader.index()] = Some(clock);
                held += 1;
            }
            if held * sessions * size_of::<u32>() > CLOCK_BYTES_MAX {
                return Err("the history has too many sessions for this verifier".into());
            }
        }
        Ok(())
    }

    /// Adds what precedes `earlier`, and `earlier` itself.
    fn join(&mut self, clock: &mut [u32], earlier: TxnId, held: &mut usize) {
        let history = self.ordered.facts.history;
        if let Some(known) = &self.clocks[earlier.index()] {
            for (mine, theirs) in clock.iter_mut().zip(known) {
                *mine = (*mine).max(*theirs);
            }
        }
        let own = &mut clock[history.session_of(earlier).index()];
        *own = (*own).max(earlier.0 + 1);
        let uses = &mut self.uses[earlier.index()];
        *uses = uses.saturating_sub(1);
        if *uses == 0 && self.clocks[earlier.index()].take().is_some() {
            *held -= 1;
        }
    }

    fn explain(&self, clock: &[u32], reader: TxnId, read: &SeenFrom) -> Result<(), String> {
        let history = self.ordered.facts.history;
        let mut writers = self.ordered.writers_of(read.key);
        while let Some(&first) = writers.first() {
            let session = history.session_of(first);
            let end = history.session_range(session).end;
            let count = writers.partition_point(|writer| writer.0 < end);
            let (of_session, rest) = writers.split_at(count);
            let known = of_session.partition_point(|writer| writer.0 < clock[session.index()]);
            let last = of_session[..known].last().copied();
            explain(self.ordered, reader, read, last)?;
            writers = rest;
        }
        Ok(())
    }
}

/// Levels where what precedes the reader in the commit order may be visible: the order is
/// followed, with the writers of each key so far.
struct Preceding<'o, 'f, 'a> {
    ordered: &'o Ordered<'f, 'a>,
    visible: Visible,
    /// By key, its writers so far.
    so_far: Vec<Vec<TxnId>>,
    work: u64,
}

impl<'o, 'f, 'a> Preceding<'o, 'f, 'a> {
    fn new(ordered: &'o Ordered<'f, 'a>, visible: Visible) -> Self {
        let so_far = vec![Vec::new(); ordered.facts.history.key_count()];
        Preceding { ordered, visible, so_far, work: 0 }
    }

    fn check(mut self) -> Result<(), String> {
        let history = self.ordered.facts.history;
        for &reader in self.ordered.order {
            for read in self.ordered.reads_of(reader) {
                self.explain(reader, read)?;
            }
            for op in history.ops_of(reader).filter(|op| history.op(*op).kind.is_write()) {
                let writers = &mut self.so_far[history.op(op).key.index()];
                if writers.last() != Some(&reader) {
                    writers.push(reader);
                }
            }
        }
        Ok(())
    }

    /// No writer between the one that was read from and the reader was visible.
    fn explain(&mut self, reader: TxnId, read: &SeenFrom) -> Result<(), String> {
        let history = self.ordered.facts.history;
        let updates = self.ordered.writes(reader, read.key);
        if self.visible == Visible::BeforeUpdate && (read.is_row || !updates) {
            return Ok(());
        }
        for &other in self.so_far[read.key.index()].iter().rev() {
            if Some(other) == read.writer {
                break;
            }
            self.work += 1 + history.op_range(reader).len() as u64;
            if updates || self.read_from(reader, other) || self.share_a_key(reader, other) {
                return Err(unexplained(reader, read, other));
            }
            if self.work > WORK_MAX {
                return Err("the history takes too much work for this verifier".into());
            }
        }
        Ok(())
    }

    fn read_from(&self, reader: TxnId, other: TxnId) -> bool {
        self.ordered.reads_of(reader).iter().any(|read| read.writer == Some(other))
    }

    fn share_a_key(&self, reader: TxnId, other: TxnId) -> bool {
        let history = self.ordered.facts.history;
        let mut writes = history.ops_of(reader).filter(|op| history.op(*op).kind.is_write());
        writes.any(|op| self.ordered.writes(other, history.op(op).key))
    }
}

//! The transactions between two cuts, and what they leave behind.

use super::open_since;
use crate::online::profile::Reads;
use crate::online::trace::{Batch, Cell, Content, Event, EventKind, NEVER, Time};
use hashbrown::{HashMap, HashSet};
use isolde_history::{Interval, Outcome};

/// What a transaction read or wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundOp {
    pub(super) is_write: bool,
    pub(super) item: u32,
    pub(super) content: Content,
    pub(super) interval: Interval,
}

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct RoundTxn {
    pub(super) client: u32,
    pub(super) number: u64,
    pub(super) begin: Interval,
    pub(super) commit: Interval,
    pub(super) outcome: Outcome,
    pub(super) ops: Vec<RoundOp>,
    /// Whether it is one write of a transaction that did more.
    pub(super) is_piece: bool,
    /// Whether the request is known that took its snapshot.
    has_snapshot: bool,
}

impl RoundTxn {
    /// One that begins with this event.
    pub(super) fn new(event: &Event, reads: Reads) -> RoundTxn {
        RoundTxn {
            client: event.client.0,
            number: event.txn,
            begin: event.interval,
            commit: open_since(event.interval.invoked),
            outcome: Outcome::Unknown,
            ops: Vec::new(),
            is_piece: false,
            has_snapshot: reads.takes_snapshot(event.kind),
        }
    }

    /// If this request takes the snapshot, the transaction may have begun as late as that.
    pub(super) fn begin_by(&mut self, event: &Event, reads: Reads) {
        if !self.has_snapshot && reads.takes_snapshot(event.kind) {
            self.has_snapshot = true;
            self.begin.completed = self.begin.completed.max(event.interval.completed);
        }
    }

    /// The same at its end: if no read took a snapshot, it had none to be held to.
    pub(super) fn begun(mut self, reads: Reads) -> RoundTxn {
        if !self.has_snapshot
            && reads == Reads::FirstRead
            && let Some(last) = self.ops.last()
        {
            self.begin.completed = self.begin.completed.max(last.interval.completed);
        }
        self
    }

    /// Adds what an event read or wrote.
    pub(super) fn add(&mut self, event: &Event, batch: &Batch) {
        if !event.kind.is_operation() {
            return;
        }
        let is_write = event.kind == EventKind::Write;
        let says_which =
            |cell: &&Cell| cell.content != Content::UNKNOWN && cell.content.condition().is_none();
        let known = batch.cells_of(event).iter().filter(says_which);
        self.ops.extend(known.map(|cell| {
            let (item, content) = (cell.item, cell.content);
            RoundOp { is_write, item, content, interval: event.interval }
        }));
    }

    /// Its last writes, each by itself.
    pub(super) fn pieces(self) -> Vec<RoundTxn> {
        let is_piece = self.is_piece || self.ops.len() > 1;
        let is_last = |(place, op): &(usize, &RoundOp)| {
            let mut later = self.ops[place + 1..].iter();
            op.is_write && !later.any(|later| later.is_write && later.item == op.item)
        };
        let writes = self.ops.iter().enumerate().filter(is_last);
        writes
            .map(|(_, op)| RoundTxn {
                client: self.client,
                number: self.number,
                begin: self.begin,
                commit: self.commit,
                outcome: self.outcome,
                ops: vec![*op],
                is_piece,
                has_snapshot: self.has_snapshot,
            })
            .collect()
    }

    /// The same with its end.
    pub(super) fn ended(mut self, kind: EventKind, interval: Interval) -> RoundTxn {
        let last = self.ops.last().map_or(self.begin, |op| op.interval);
        self.outcome = match kind {
            EventKind::Commit => Outcome::Committed,
            EventKind::Abort => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        let invoked = if interval == Interval::UNKNOWN { last.invoked } else { interval.invoked };
        self.commit = Interval { invoked, completed: interval.completed };
        self
    }

    /// The last thing it wrote to each item, and also what it wrote before: who reads that
    /// is to be found.
    pub(super) fn writes(&self) -> HashSet<(u32, Content)> {
        let writes = self.ops.iter().filter(|op| op.is_write);
        writes.map(|op| (op.item, op.content)).collect()
    }

    /// Its reads of items that it had not written.
    pub(super) fn outer_reads(&self) -> impl Iterator<Item = &RoundOp> {
        self.ops.iter().enumerate().filter_map(|(place, op)| {
            let is_own = || self.ops[..place].iter().any(|own| own.is_write && own.item == op.item);
            (!op.is_write && !is_own()).then_some(op)
        })
    }

    fn last_write(&self, item: u32) -> Option<Content> {
        let mut writes = self.ops.iter().rev();
        writes.find(|op| op.is_write && op.item == item).map(|op| op.content)
    }

    fn has_effect(&self) -> bool {
        self.outcome != Outcome::Aborted
    }
}

/// What epochs left: the last version of each item that they wrote.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    pub(super) versions: HashMap<u32, Content>,
    pub(super) from: Time,
    pub(super) until: Time,
}

impl Summary {
    /// Adds what a later one left.
    pub(super) fn extend(&mut self, later: Summary) {
        self.versions.extend(later.versions);
        self.until = self.until.max(later.until);
    }
}

/// Transactions between two cuts. Those of unknown outcome are here if somebody read from
/// them.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    pub(super) txns: Vec<RoundTxn>,
}

impl Epoch {
    /// A committed transaction that read one of these from another.
    pub(super) fn reader_of(&self, written: &HashSet<(u32, Content)>) -> Option<&RoundTxn> {
        self.txns.iter().find(|txn| {
            txn.outcome == Outcome::Committed
                && txn.outer_reads().any(|op| written.contains(&(op.item, op.content)))
        })
    }

    /// The same with transactions of unknown outcome in pieces, and how many that were.
    pub(super) fn divided(self) -> (Epoch, u64) {
        let mut divided = 0;
        let mut txns = Vec::with_capacity(self.txns.len());
        for txn in self.txns {
            if txn.outcome == Outcome::Unknown && txn.ops.len() > 1 {
                divided += 1;
                txns.extend(txn.pieces());
            } else {
                txns.push(txn);
            }
        }
        (Epoch { txns }, divided)
    }

    /// The last version of each item, if those can be known: given what later epochs, with
    /// which this one was decided, did with the items for which several are possible.
    pub(super) fn last_versions(&self, later: &[Option<&Epoch>], drift: Time) -> Option<Summary> {
        let mut items: Vec<u32> = (self.txns.iter().filter(|txn| txn.has_effect()))
            .flat_map(|txn| txn.ops.iter().filter(|op| op.is_write).map(|op| op.item))
            .collect();
        items.sort_unstable();
        items.dedup();
        let mut versions = HashMap::with_capacity(items.len());
        for item in items {
            let possible = self.possible_last(item, drift);
            let known = match possible[..] {
                [only] => only,
                _ => later.iter().flatten().find_map(|epoch| epoch.settles(item, &possible))?,
            };
            versions.insert(item, known);
        }
        let from = self.txns.iter().map(|txn| txn.begin.invoked).min().unwrap_or(Time::MIN);
        let completed = self.txns.iter().map(|txn| txn.commit.completed);
        let until = completed.filter(|&time| time != NEVER).max().unwrap_or(from);
        // Transactions of unknown outcome may have begun before an earlier epoch ended.
        let committed = self.txns.iter().filter(|txn| txn.outcome == Outcome::Committed);
        let from = committed.map(|txn| txn.begin.invoked).min().unwrap_or(from);
        Some(Summary { versions, from: from.min(until), until })
    }

    /// Versions of an item of which no other is known to come later: not by real time, and
    /// not because its reader wrote the next one.
    fn possible_last(&self, item: u32, drift: Time) -> Vec<Content> {
        let writers: Vec<(&RoundTxn, Content)> = (self.txns.iter())
            .filter(|txn| txn.has_effect())
            .filter_map(|txn| Some((txn, txn.last_write(item)?)))
            .collect();
        let is_followed = |(one, content): &(&RoundTxn, Content)| {
            writers.iter().any(|(other, _)| {
                let is_later = one.outcome == Outcome::Committed
                    && one.commit.completed.saturating_add(drift) < other.begin.invoked;
                let mut reads = other.outer_reads();
                is_later
                    || (!std::ptr::eq(*one, *other)
                        && reads.any(|op| op.item == item && op.content == *content))
            })
        };
        writers.iter().filter(|writer| !is_followed(writer)).map(|(_, content)| *content).collect()
    }

    /// Which of several versions this later epoch shows to be the last; any, if it replaces
    /// the item without a look; `None` if it does not touch it.
    fn settles(&self, item: u32, possible: &[Content]) -> Option<Content> {
        let committed = || self.txns.iter().filter(|txn| txn.outcome == Outcome::Committed);
        let mut reads = committed().flat_map(RoundTxn::outer_reads);
        let seen = reads.find(|op| op.item == item && possible.contains(&op.content));
        if let Some(seen) = seen {
            return Some(seen.content);
        }
        let is_replaced = committed().any(|txn| txn.last_write(item).is_some());
        if is_replaced { possible.first().copied() } else { None }
    }
}

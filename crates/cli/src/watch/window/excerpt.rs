//! A part of what was watched, as a history that says no more than the whole.
//!
//! **Definition.** A level that the part violates is violated by the whole, whatever the events
//! say that are not in the part, and whatever items held before everything.
//!
//! **Method.** Transactions that are in the part are there with all that they did. Of the others
//! only writes matter, and of those only what was read in the part: such a write is a
//! transaction by itself, with the times of its own transaction, and of unknown outcome unless
//! that committed and wrote it last. If it is not known how many others wrote what was read, each reader has one of its own; if that would be
//! too many, the reads are left out. Whatever order explains the whole explains the part then:
//! each of these writes stands where its transaction does, or is not used.
//!
//! What an item held before everything is its initial value if that is known, and else one
//! more write, before all others. What nobody can have written has no writer in the part either:
//! else it would deny the violation.

use super::earlier_contents::EarlierContents;
use super::{Known, Txn, TxnName, item_name};
use crate::watch::hub::Hub;
use isolde::online::{ALWAYS, Cell, ClientId, Content, EventKind, Interval};
use isolde_history::{
    DraftTxn, History, HistoryBuilder, KeyId, OpKind, Outcome, ReadError, TxnTimes, Value,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Writes of others of one content that are told apart.
const COPIES_MAX: usize = 4;

/// An item and what it held.
type Name = (u32, Content);

/// What is not in the part.
pub(super) struct Outside<'a> {
    /// Transactions of which something is kept.
    pub(super) others: &'a BTreeMap<TxnName, Txn>,
    /// Events that are not kept.
    pub(super) before: &'a EarlierContents,
    pub(super) initial: &'a HashMap<u32, Content>,
    /// Whether events are missing.
    pub(super) is_blind: bool,
    /// Whether items may have held something before everything of which nothing is known.
    pub(super) is_anything_before: bool,
}

/// What is known of a content of an item that was read.
#[derive(Default)]
struct Read {
    /// Transactions that read it.
    readers: usize,
    /// Whether one of the part wrote it.
    is_written: bool,
    /// Others that did.
    writers: Vec<Writer>,
}

/// Somebody outside of the part.
#[derive(Clone, Copy)]
struct Writer {
    times: TxnTimes,
    /// Committed if the write certainly was the last of a committed transaction.
    outcome: Outcome,
}

/// A history in the making.
pub(super) struct Excerpt<'a> {
    builder: HistoryBuilder,
    hub: &'a Hub,
    known: Known,
    outside: Outside<'a>,
    /// Items of which a write is not told: nothing of them is in the part.
    untold: HashSet<u32>,
    /// Reads that are left out.
    left_out: HashSet<Name>,
    copies: usize,
}

impl<'a> Excerpt<'a> {
    pub(super) fn new(hub: &'a Hub, known: Known, outside: Outside<'a>) -> Excerpt<'a> {
        let builder = HistoryBuilder::new();
        let (untold, left_out) = (HashSet::new(), HashSet::new());
        Excerpt { builder, hub, known, outside, untold, left_out, copies: 0 }
    }

    /// The history of these transactions.
    pub(super) fn history(mut self, txns: &BTreeMap<TxnName, Txn>) -> Result<History, ReadError> {
        let all = || txns.values().chain(self.outside.others.values());
        let is_untold = |cell: &&Cell| cell.content == Content::UNKNOWN;
        self.untold =
            all().flat_map(|txn| txn.cells(true)).filter(is_untold).map(|cell| cell.item).collect();
        self.before(txns);
        for ((client, number), txn) in txns {
            let name = self.hub.name(ClientId(*client));
            let label = self.builder.values().text(&format!("{name} #{client}"));
            let session = self.builder.session(label);
            let draft = self.builder.begin(session);
            self.txn(draft, *number, txn);
        }
        let mut remark =
            "cut from a watch: what was written before is initial, or has few times".to_owned();
        if !self.left_out.is_empty() {
            remark.push_str("; reads are left out of what may have been written more often");
        }
        self.builder.remark("window", remark);
        self.builder.finish("window")
    }

    fn txn(&mut self, draft: DraftTxn, number: u64, txn: &Txn) {
        let outcome = match txn.end {
            Some((EventKind::Commit, _)) => Outcome::Committed,
            Some((EventKind::Abort, _)) => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        self.builder.outcome(draft, outcome);
        let times = self.times(txn);
        self.builder.times(draft, times);
        self.builder.position(u32::try_from(number).unwrap_or(u32::MAX));
        for (event, cells) in &txn.operations {
            let kind = if event.kind == EventKind::Write { OpKind::Write } else { OpKind::Read };
            for cell in cells.iter().filter(|cell| cell.content != Content::UNKNOWN) {
                let is_left_out =
                    kind == OpKind::Read && self.left_out.contains(&(cell.item, cell.content));
                if is_left_out || self.untold.contains(&cell.item) {
                    continue;
                }
                let (key, value) = self.cell(cell.item, cell.content);
                self.builder.op(kind, key, value);
                self.builder.op_interval(self.widened(event.interval));
            }
        }
    }

    fn times(&self, txn: &Txn) -> TxnTimes {
        let (begin, commit) = (txn.begin(self.known.reads), txn.commit());
        TxnTimes { begin: self.widened(begin), commit: self.widened(commit) }
    }

    /// As far as the clocks may be wrong: the file stands without `--clock-drift`.
    fn widened(&self, interval: Interval) -> Interval {
        let Interval { invoked, completed } = interval;
        Interval {
            invoked: invoked.saturating_sub(self.known.drift),
            completed: completed.saturating_add(self.known.drift),
        }
    }

    fn cell(&mut self, item: u32, content: Content) -> (KeyId, Value) {
        let name = item_name(self.hub, item);
        let key = match name.parse::<u64>() {
            Ok(number) => self.builder.values().unsigned(number),
            Err(_) => self.builder.values().text(&name),
        };
        let value = self.value(content);
        (self.builder.key(key), value)
    }

    fn value(&mut self, content: Content) -> Value {
        match (content, content.as_integer()) {
            (Content::ABSENT, _) => Value::NIL,
            (_, Some(number)) => self.builder.values().int(number),
            _ => {
                let text = self.hub.catalogue().content_text(content);
                self.builder.values().text(&text)
            }
        }
    }

    /// Gives every read the writers that it may have had outside of the part.
    fn before(&mut self, txns: &BTreeMap<TxnName, Txn>) {
        let reads = self.reads(txns);
        let start = txns.values().map(Txn::first).min().unwrap_or(ALWAYS);
        let start = start.saturating_sub(self.known.drift).saturating_sub(1);
        let first = Interval { invoked: ALWAYS, completed: start };
        let times = TxnTimes { begin: first, commit: first };
        let first = Writer { times, outcome: Outcome::Committed };
        let until = self.outside.before.until(self.outside.others);
        let until = Interval { invoked: ALWAYS, completed: until };
        let until = self.widened(until);
        let times = TxnTimes { begin: until, commit: until };
        let until = Writer { times, outcome: Outcome::Unknown };
        let written: HashSet<u32> =
            txns.values().flat_map(|txn| txn.cells(true)).map(|cell| cell.item).collect();
        let mut of_items: BTreeMap<u32, Vec<(Content, Read)>> = BTreeMap::new();
        for ((item, content), read) in reads {
            of_items.entry(item).or_default().push((content, read));
        }
        for (item, reads) in of_items {
            let is_settled = !written.contains(&item) && reads.len() == 1;
            if let [(content, read)] = &reads[..]
                && is_settled
            {
                if self.has_origin((item, *content), read) {
                    self.initial(item, *content);
                }
                continue;
            }
            let known = self.initially(item);
            if let Some(content) = known {
                self.initial(item, content);
            }
            for (content, mut read) in reads {
                // In some order, such that the last of them is what was there.
                if known.is_none() && self.outside.is_anything_before {
                    read.writers.push(first);
                }
                self.explain((item, content), &read, until);
            }
        }
    }

    /// What an item held before everything, if that is known.
    fn initially(&self, item: u32) -> Option<Content> {
        let told = self.outside.initial.get(&item).copied();
        told.or(self.known.unwritten).or_else(|| self.outside.before.initial(item))
    }

    /// What was read in the part, and who wrote it.
    fn reads(&self, txns: &BTreeMap<TxnName, Txn>) -> BTreeMap<Name, Read> {
        let mut reads: BTreeMap<Name, Read> = BTreeMap::new();
        let is_told =
            |cell: &&Cell| cell.content != Content::UNKNOWN && !self.untold.contains(&cell.item);
        for txn in txns.values() {
            let own: HashSet<Name> =
                txn.cells(false).filter(is_told).map(|cell| (cell.item, cell.content)).collect();
            for name in own {
                reads.entry(name).or_default().readers += 1;
            }
        }
        for cell in txns.values().flat_map(|txn| txn.cells(true)) {
            if let Some(read) = reads.get_mut(&(cell.item, cell.content)) {
                read.is_written = true;
            }
        }
        for (name, txn) in self.outside.others {
            let mut times = self.times(txn);
            if self.outside.before.is_cut(*name) {
                times.begin.invoked = ALWAYS;
            }
            // What comes after its end may take effect at any time.
            if txn.has_more {
                times = NO_TIMES;
            }
            let is_committed = matches!(txn.end, Some((EventKind::Commit, _))) && !txn.has_more;
            let names = || txn.cells(true).map(|cell| (cell.item, cell.content));
            let last: HashMap<u32, Content> = names().collect();
            let own: HashSet<Name> = names().collect();
            for name in own {
                if let Some(read) = reads.get_mut(&name) {
                    let is_last = is_committed && last[&name.0] == name.1;
                    let outcome = if is_last { Outcome::Committed } else { Outcome::Unknown };
                    read.writers.push(Writer { times, outcome });
                }
            }
        }
        reads
    }

    /// Whether others may have written this as well, nobody knows how often.
    fn may_be_anybodys(&self, name: Name, read: &Read) -> bool {
        // A value that is written once has its writer.
        if self.known.is_unique && name.1 != Content::ABSENT {
            return !read.is_written && read.writers.is_empty() && self.may_be_older(name);
        }
        self.may_be_older(name)
    }

    fn may_be_older(&self, (item, content): Name) -> bool {
        self.outside.is_blind || self.outside.before.may_have_had(item, content)
    }

    /// Whether anybody can have written what was read, or it was there before everything.
    fn has_origin(&self, name: Name, read: &Read) -> bool {
        let initially = self.initially(name.0);
        !read.writers.is_empty()
            || self.may_be_older(name)
            || initially.is_none_or(|initially| initially == name.1)
    }

    /// Adds the writes of others that a read may have seen.
    fn explain(&mut self, name: Name, read: &Read, until: Writer) {
        let is_anybodys = self.may_be_anybodys(name, read);
        if !is_anybodys && read.writers.len() <= COPIES_MAX {
            for &writer in &read.writers {
                self.copy(name, writer);
            }
        } else if self.known.is_unique && name.1 != Content::ABSENT {
            self.copy(name, until);
        } else if read.readers <= COPIES_MAX {
            let is_old = !self.outside.is_blind && read.writers.is_empty();
            let writer = if is_old { until } else { Writer { times: NO_TIMES, ..until } };
            for _ in 0..read.readers {
                self.copy(name, writer);
            }
        } else {
            self.left_out.insert(name);
        }
    }

    fn initial(&mut self, item: u32, content: Content) {
        if content != Content::ABSENT {
            let (key, value) = self.cell(item, content);
            self.builder.initial(key, value);
        }
    }

    /// A write of somebody else, alone.
    fn copy(&mut self, (item, content): Name, Writer { times, outcome }: Writer) {
        self.copies += 1;
        let label = self.builder.values().text(&format!("outside the window {}", self.copies));
        let session = self.builder.session(label);
        let draft = self.builder.begin(session);
        self.builder.outcome(draft, outcome);
        self.builder.times(draft, times);
        let (key, value) = self.cell(item, content);
        self.builder.op(OpKind::Write, key, value);
    }
}

const NO_TIMES: TxnTimes = TxnTimes { begin: Interval::UNKNOWN, commit: Interval::UNKNOWN };

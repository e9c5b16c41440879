//! What rounds keep, as a history.
//!
//! A part of a history must not violate what the whole satisfies. What its transactions read
//! and nobody in it wrote is there before them if that is known; else it is written by
//! transactions of which no time is known, one for each value, which may be anywhere.

use super::epoch::{RoundTxn, Summary};
use super::{Names, Segment};
use crate::online::trace::Content;
use hashbrown::{HashMap, HashSet};
use isolde_history::{
    History, HistoryBuilder, Interval, KeyId, OpKind, Outcome, ReadError, TxnTimes, Value,
};

/// What came before what is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// What earlier rounds left: everything before a cut precedes everything after it.
    Known,
    /// Anything, at any time: real time does not count.
    Anything,
}

/// What is to be drawn.
pub(super) struct Drawing<'a> {
    pub(super) segments: &'a [Segment],
    pub(super) lost: &'a [RoundTxn],
    /// Last versions before everything that is kept.
    pub(super) state: &'a HashMap<u32, Content>,
    /// Whether keys that are not in `state` are known to be unwritten.
    pub(super) is_state_whole: bool,
    pub(super) unwritten: Option<Content>,
    /// Whether rows were deleted, so that one that is not there may have been there before.
    pub(super) has_deleted: bool,
    pub(super) before: Before,
    pub(super) names: Option<&'a dyn Names>,
}

impl Drawing<'_> {
    /// The history, and how many reads it lacks.
    pub(super) fn history(&self) -> Result<(History, u64), ReadError> {
        let builder = HistoryBuilder::new();
        let mut drawn = Drawn { builder, names: self.names, left_out: 0, vague: HashSet::new() };
        let mut written: HashSet<(u32, Content)> = HashSet::new();
        for segment in self.segments {
            match segment {
                Segment::Epoch(epoch) => {
                    written.extend(epoch.txns.iter().flat_map(RoundTxn::writes));
                }
                Segment::Summary(summary) if self.before == Before::Known => {
                    written
                        .extend(summary.versions.iter().map(|(&item, &content)| (item, content)));
                }
                Segment::Summary(_) => {}
            }
        }
        written.extend(self.lost.iter().flat_map(RoundTxn::writes));
        drawn.vague = self.initial(&mut drawn, &written);
        let is_known = |(item, content): (u32, Content)| {
            written.contains(&(item, content))
                || (self.before == Before::Known && self.state.get(&item) == Some(&content))
        };
        for (place, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Epoch(epoch) => {
                    for txn in &epoch.txns {
                        // Those of unknown outcome have no session: others may follow them there.
                        let session = (txn.outcome != Outcome::Unknown).then_some(txn.client);
                        drawn.txn(session, txn, &is_known);
                    }
                }
                Segment::Summary(summary) if self.before == Before::Known => {
                    drawn.summary(place, summary);
                }
                Segment::Summary(_) => {}
            }
        }
        for txn in self.lost {
            drawn.txn(None, txn, &is_known);
        }
        let left_out = drawn.left_out;
        drawn.builder.finish("round").map(|history| (history, left_out))
    }

    /// What keys hold before everything that is drawn. Returns items that were seen without a
    /// row, and nobody knows when that was.
    fn initial(&self, drawn: &mut Drawn<'_>, written: &HashSet<(u32, Content)>) -> HashSet<u32> {
        let mut vague = HashSet::new();
        let mut known: Vec<(u32, Content)> = Vec::new();
        let mut anywhere: Vec<(u32, Content)> = Vec::new();
        if self.before == Before::Known {
            known.extend(self.state.iter().map(|(&item, &content)| (item, content)));
        }
        if self.before == Before::Anything || !self.is_state_whole {
            for (item, contents) in self.read_from_before(written) {
                match contents[..] {
                    // What was there at the cut.
                    [only] if self.before == Before::Known => known.push((item, only)),
                    _ => {
                        vague.extend(contents.contains(&Content::ABSENT).then_some(item));
                        let there = contents.into_iter().filter(|&seen| seen != Content::ABSENT);
                        anywhere.extend(there.map(|content| (item, content)));
                    }
                }
            }
        }
        if let Some(content) = self.unwritten
            && content != Content::ABSENT
        {
            let value = drawn.value(content);
            drawn.builder.initial_default(value);
        }
        known.sort_unstable_by_key(|(item, _)| *item);
        for (item, content) in known {
            let (key, value) = (drawn.key(item), drawn.value(content));
            drawn.builder.initial(key, value);
        }
        anywhere.sort_unstable();
        for (item, content) in anywhere {
            drawn.begin(None);
            drawn.write(item, content);
        }
        vague
    }

    /// What was read of items whose state is not known, and nobody wrote.
    fn read_from_before(&self, written: &HashSet<(u32, Content)>) -> HashMap<u32, Vec<Content>> {
        let unwritten = self.unwritten.unwrap_or(Content::ABSENT);
        let mut read: HashMap<u32, Vec<Content>> = HashMap::new();
        for segment in self.segments {
            let Segment::Epoch(epoch) = segment else { continue };
            for op in epoch.txns.iter().flat_map(RoundTxn::outer_reads) {
                let is_known = match self.before {
                    Before::Known => self.state.contains_key(&op.item),
                    Before::Anything => op.content == unwritten && !self.has_deleted,
                };
                if written.contains(&(op.item, op.content)) || is_known {
                    continue;
                }
                let contents = read.entry(op.item).or_default();
                if !contents.contains(&op.content) {
                    contents.push(op.content);
                }
            }
        }
        read
    }
}

/// A history in the making.
struct Drawn<'a> {
    builder: HistoryBuilder,
    names: Option<&'a dyn Names>,
    left_out: u64,
    /// Items of which no read of a row that is not there is drawn.
    vague: HashSet<u32>,
}

impl Drawn<'_> {
    fn key(&mut self, item: u32) -> KeyId {
        let name = self.names.map(|names| names.item(item));
        let name = match name.as_deref().map(|name| (name, name.parse::<u64>())) {
            None => self.builder.values().unsigned(u64::from(item)),
            Some((_, Ok(number))) => self.builder.values().unsigned(number),
            Some((name, Err(_))) => self.builder.values().text(name),
        };
        self.builder.key(name)
    }

    fn value(&mut self, content: Content) -> Value {
        match (content, content.as_integer()) {
            (Content::ABSENT, _) => Value::NIL,
            (_, Some(number)) => self.builder.values().int(number),
            _ => {
                let text = match self.names {
                    Some(names) => names.content(content),
                    None => format!("{content:?}"),
                };
                self.builder.values().text(&text)
            }
        }
    }

    /// A transaction of a client, or of a session of its own.
    fn begin(&mut self, client: Option<u32>) -> isolde_history::DraftTxn {
        let session = match (client, self.names) {
            (Some(client), None) => {
                let label = self.builder.values().unsigned(u64::from(client));
                self.builder.session(label)
            }
            (Some(client), Some(names)) => {
                let name = format!("{} #{client}", names.client(client));
                let label = self.builder.values().text(&name);
                self.builder.session(label)
            }
            (None, _) => self.builder.new_session(Value::NIL),
        };
        self.builder.begin(session)
    }

    fn write(&mut self, item: u32, content: Content) {
        let (key, value) = (self.key(item), self.value(content));
        self.builder.op(OpKind::Write, key, value);
    }

    fn txn(
        &mut self,
        session: Option<u32>,
        txn: &RoundTxn,
        is_known: &dyn Fn((u32, Content)) -> bool,
    ) {
        let draft = self.begin(session);
        self.builder.outcome(draft, txn.outcome);
        self.builder.times(draft, TxnTimes { begin: txn.begin, commit: txn.commit });
        for op in &txn.ops {
            if op.is_write {
                self.write(op.item, op.content);
                continue;
            }
            let is_known = is_known((op.item, op.content));
            // What a transaction of unknown outcome read long ago may be forgotten by now.
            let is_absent = op.content == Content::ABSENT;
            let is_vague = is_absent && self.vague.contains(&op.item);
            if is_vague || (txn.outcome == Outcome::Unknown && !is_known && !is_absent) {
                self.left_out += 1;
                continue;
            }
            let (key, value) = (self.key(op.item), self.value(op.content));
            self.builder.op(OpKind::Read, key, value);
        }
    }

    /// The transaction that stands for whole epochs.
    fn summary(&mut self, place: usize, summary: &Summary) {
        let label = self.builder.values().text(&format!("summary {place}"));
        let session = self.builder.session(label);
        let draft = self.builder.begin(session);
        self.builder.outcome(draft, Outcome::Committed);
        let whole = Interval { invoked: summary.from, completed: summary.until };
        self.builder.times(draft, TxnTimes { begin: whole, commit: whole });
        let mut items: Vec<(u32, Content)> =
            summary.versions.iter().map(|(&item, &content)| (item, content)).collect();
        items.sort_unstable_by_key(|(item, _)| *item);
        for (item, content) in items {
            self.write(item, content);
        }
    }
}

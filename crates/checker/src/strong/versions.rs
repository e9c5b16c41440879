//! The versions of every key: who wrote and read them, and which are known to follow
//! which.
//!
//! A *slot* is one version: a key and a counted transaction that writes it. Slots of a
//! key lie together, in the order of their writers' ids. A *link* between two slots of
//! a key says that the first was installed before the second. Which sources of order show
//! links, and what they are, is told in `sources`: `read_modify_write`, `lists`, `given`.
//! A key whose links form one path through all its slots is *settled*: nothing about it is
//! left to find out.

use super::conditions::Conditions;
use super::model::{Model, Protected};
use super::reads_by_slot::{ReadsBySlot, SomeReads};
use super::sources::{ReadModifyWrites, Sources};
use crate::evidence::{Cycle, Edge};
use hashbrown::HashSet;
use isolde_certificate::Rule;
use isolde_history::{
    ExternalRead, History, Index, KeyId, OpKind, Origin, ReadId, TxnId, prefetch,
};
use std::ops::Range;
use std::sync::OnceLock;

/// A version, as its place among the writers of all keys.
pub(super) type Slot = u32;

/// The slot of a read that is not protected or whose writer is not known.
pub(super) const NO_SLOT: Slot = u32::MAX;
/// The slot of a read of the initial version.
pub(super) const INITIAL_SLOT: Slot = u32::MAX - 1;

/// A link that no step but a read shows.
const BY_READ: u32 = u32::MAX;

/// What is known to follow a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) before: Slot,
    pub(super) after: Slot,
    pub(super) shown_by: ShownBy,
}

/// What shows a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownBy {
    /// The later writer's read of the earlier version.
    Read(ReadId),
    /// An entry of [`Index::steps`].
    Step(u32),
}

/// Two writers that replaced the same version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Divergence {
    pub(super) first: ReadId,
    pub(super) second: ReadId,
}

impl Divergence {
    /// Each of the two missed the version that the other made.
    pub(super) fn cycle(self, versions: &Versions<'_>) -> Cycle {
        let edge = |one: ReadId, other: ReadId| {
            let it = versions.index.read(one);
            let rule = Rule::AntiDependency { read: it.op, key: it.key, path: Vec::new() };
            Edge::by(rule, versions.reader(one), versions.reader(other))
        };
        Cycle { edges: vec![edge(self.first, self.second), edge(self.second, self.first)] }
    }
}

/// See the module's documentation.
pub(super) struct Versions<'a> {
    pub(super) history: &'a History,
    pub(super) index: &'a Index,
    /// Beside the written keys of all transactions, their slots.
    written_slots: Vec<Slot>,
    /// Per external read, the slot it saw, if the read is protected.
    pub(super) seen: Vec<Slot>,
    /// Per external read, its transaction.
    pub(super) readers: Vec<TxnId>,
    /// Most histories that are explained by the first order never ask for them, so they are
    /// grouped when somebody does.
    reads: OnceLock<ReadsBySlot>,
    /// Protected reads of initial versions, by key.
    initial_reads: Vec<(KeyId, ReadId)>,
    /// Per slot, a slot known to follow it: [`NO_SLOT`] if none. Empty if there are no links.
    next: Vec<Slot>,
    /// Links beyond the one in `next`, sorted by their earlier end.
    pub(super) more_links: Vec<Link>,
    /// Per slot, whether a link leads to it; empty if there are no links.
    followed: Vec<bool>,
    /// Per slot, whether some of `more_links` start there; empty if there are none.
    has_more: Vec<bool>,
    /// The step that shows the link in `next`, or [`BY_READ`]; empty if there are no
    /// steps.
    next_steps: Vec<u32>,
    pub(super) divergences: Vec<Divergence>,
    /// Whether whoever replaced what it read is linked to that.
    links_rewriters: bool,
    /// Per key, whether there are links between its versions.
    pub(super) linked: Vec<bool>,
    /// Per key, whether its order is known.
    pub(super) settled: Vec<bool>,
    /// Per key, the read of its initial version by a transaction that also writes it.
    pub(super) initial_rewriter: Vec<Option<ReadId>>,
    /// What reads by condition mean; empty where the level does not ask.
    pub(super) conditions: Conditions,
}

impl<'a> Versions<'a> {
    /// Finds versions, readers and links as `model` and `sources` say.
    pub(super) fn new(
        history: &'a History,
        index: &'a Index,
        model: &Model,
        sources: Sources,
    ) -> Self {
        let mut versions = Versions {
            history,
            index,
            written_slots: written_slots(history, index),
            seen: vec![NO_SLOT; index.read_count()],
            readers: vec![TxnId(0); index.read_count()],
            reads: OnceLock::new(),
            initial_reads: Vec::new(),
            next: Vec::new(),
            more_links: Vec::new(),
            followed: Vec::new(),
            has_more: Vec::new(),
            next_steps: Vec::new(),
            divergences: Vec::new(),
            links_rewriters: sources.read_modify_write,
            linked: Vec::new(),
            settled: Vec::new(),
            initial_rewriter: Vec::new(),
            conditions: Conditions::default(),
        };
        versions.find_seen(model);
        versions.find_initial_reads();
        versions.find_links(model, sources);
        versions.find_settled();
        versions
    }

    /// The same without what some transactions read and did not replace. Reads by condition
    /// are not looked at.
    pub(super) fn without_reads_of(&self, left_out: &HashSet<TxnId>) -> Versions<'a> {
        let is_kept = |read: ReadId| {
            let reader = self.reader(read);
            !left_out.contains(&reader) || self.index.writes(reader, self.index.read(read).key)
        };
        let kept = |slot| self.reads_of(slot).iter().copied().filter(|&read| is_kept(read));
        let reads = ReadsBySlot::of_slots((0..self.slot_count() as Slot).map(kept));
        let initial_reads = self.initial_reads.iter().copied().filter(|it| is_kept(it.1));
        Versions {
            history: self.history,
            index: self.index,
            written_slots: self.written_slots.clone(),
            seen: self.seen.clone(),
            readers: self.readers.clone(),
            reads: OnceLock::from(reads),
            initial_reads: initial_reads.collect(),
            next: self.next.clone(),
            more_links: self.more_links.clone(),
            followed: self.followed.clone(),
            has_more: self.has_more.clone(),
            next_steps: self.next_steps.clone(),
            divergences: self.divergences.clone(),
            links_rewriters: self.links_rewriters,
            linked: self.linked.clone(),
            settled: self.settled.clone(),
            initial_rewriter: self.initial_rewriter.clone(),
            conditions: Conditions::default(),
        }
    }

    /// Finds what reads by condition mean, if the level asks; whether that was finished
    /// before it was stopped.
    pub(super) fn find_conditions(&mut self, model: &Model, stop: &dyn Fn() -> bool) -> bool {
        if model.protected != Protected::Everything || !self.history.has_predicates() {
            return true;
        }
        match Conditions::new(self, stop) {
            Some(found) => {
                self.conditions = found;
                true
            }
            None => false,
        }
    }

    fn find_seen(&mut self, model: &Model) {
        /// So many transactions ahead, what one needs is asked for.
        const AHEAD: u32 = 4;
        let (history, index) = (self.history, self.index);
        // Per key, the version that was written or found last: most reads see that one, and
        // what its writer wrote need not be looked through.
        let mut last = vec![(TxnId(u32::MAX), NO_SLOT); history.key_count()];
        history.txns_interleaved().for_each(|txn| {
            self.expect_keys(TxnId(txn.0 + AHEAD), &last);
            for read in index.read_range(txn) {
                self.readers[read as usize] = txn;
                let it = index.read(ReadId(read));
                if self.is_protected(model, txn, &it) {
                    self.seen[read as usize] = match it.origin {
                        Origin::Txn(writer) if last[it.key.index()].0 == writer => {
                            last[it.key.index()].1
                        }
                        Origin::Txn(writer) => {
                            let slot = self.slot(it.key, writer).unwrap_or(NO_SLOT);
                            last[it.key.index()] = (writer, slot);
                            slot
                        }
                        Origin::Initial => INITIAL_SLOT,
                        Origin::Several | Origin::Nobody => NO_SLOT,
                    };
                }
            }
            for (key, slot) in self.written_by(txn) {
                last[key.index()] = (txn, slot);
            }
        });
    }

    /// Whether a read has anti-dependencies.
    pub(super) fn is_protected(&self, model: &Model, reader: TxnId, read: &ExternalRead) -> bool {
        let is_item = || {
            let kind = self.history.op(read.op).kind;
            !matches!(kind, OpKind::PredicateRead | OpKind::PredicateUpdate)
        };
        match model.protected {
            Protected::Everything => true,
            Protected::Items => is_item(),
            Protected::RewrittenItems => is_item() && self.index.writes(reader, read.key),
        }
    }

    fn find_initial_reads(&mut self) {
        let reads = (0..).map(ReadId).zip(&self.seen);
        let initial = reads.filter(|(_, seen)| **seen == INITIAL_SLOT);
        self.initial_reads = initial.map(|(read, _)| (self.index.read(read).key, read)).collect();
        self.initial_reads.sort_unstable();
    }

    /// All external reads, those of neighbours in time together.
    pub(super) fn reads_interleaved(&self) -> impl Iterator<Item = ReadId> + use<'a> {
        let (history, index) = (self.history, self.index);
        history.txns_interleaved().flat_map(move |txn| index.read_range(txn)).map(ReadId)
    }

    fn find_links(&mut self, model: &Model, sources: Sources) {
        ReadModifyWrites { model, links: sources.read_modify_write }.find(self);
        self.find_steps(sources);
        self.more_links.sort_unstable_by_key(|link| (link.before, link.after));
        self.more_links.dedup_by_key(|link| (link.before, link.after));
        self.linked = vec![false; self.history.key_count()];
        for key in self.history.keys() {
            let mut slots = self.slots_of(key);
            self.linked[key.index()] = slots.any(|slot| self.next(slot) != NO_SLOT);
        }
        if !self.more_links.is_empty() {
            self.has_more = vec![false; self.slot_count()];
            for link in &self.more_links {
                self.has_more[link.before as usize] = true;
            }
        }
    }

    /// Links that lists show and that the database told.
    fn find_steps(&mut self, sources: Sources) {
        let steps = self.index.steps();
        if !steps.is_empty() {
            self.next_steps = vec![BY_READ; self.slot_count()];
        }
        // One step often begins where the last one ended.
        let mut last = None;
        for (place, step) in steps.iter().enumerate() {
            let before = match last {
                Some((key, txn, slot)) if (key, txn) == (step.key, step.before) => slot,
                _ => self.slot(step.key, step.before),
            };
            let after = self.slot(step.key, step.after);
            last = Some((step.key, step.after, after));
            if let (true, (Some(before), Some(after))) = (sources.show(step), (before, after)) {
                self.link(Link { before, after, shown_by: ShownBy::Step(place as u32) });
            }
        }
    }

    /// A slot known to follow a slot, or [`NO_SLOT`].
    #[inline]
    fn next(&self, slot: Slot) -> Slot {
        self.next.get(slot as usize).copied().unwrap_or(NO_SLOT)
    }

    /// Whether a link leads to a slot.
    #[inline]
    pub(super) fn is_followed(&self, slot: Slot) -> bool {
        self.followed.get(slot as usize).is_some_and(|&followed| followed)
    }

    /// How many slots there are.
    pub(super) fn slot_count(&self) -> usize {
        self.index.writers().len()
    }

    /// Notes that one slot is known to follow another.
    pub(super) fn link(&mut self, link: Link) {
        if self.next.is_empty() {
            self.next = vec![NO_SLOT; self.slot_count()];
            self.followed = vec![false; self.slot_count()];
        }
        let next = &mut self.next[link.before as usize];
        if *next == link.after {
            return;
        }
        self.followed[link.after as usize] = true;
        if *next == NO_SLOT {
            *next = link.after;
            if let ShownBy::Step(step) = link.shown_by {
                self.next_steps[link.before as usize] = step;
            }
        } else {
            self.more_links.push(link);
        }
    }

    /// The read that shows the link in `next`, if a read shows it.
    pub(super) fn read_link(&self, slot: Slot) -> Option<ShownBy> {
        let next = self.next(slot);
        if next == NO_SLOT {
            return None;
        }
        let rewriter = self.writer(next);
        self.reads_of(slot)
            .iter()
            .find(|read| self.readers[read.0 as usize] == rewriter)
            .map(|&read| ShownBy::Read(read))
    }

    /// Asks memory for the link from what a read a little later saw, for walks through all reads.
    #[inline]
    pub(super) fn expect_link_after(&self, read: ReadId) {
        const AHEAD: usize = 8;
        if let Some(&slot) = self.seen.get(read.0 as usize + AHEAD) {
            prefetch(&self.next, slot as usize);
        }
    }

    /// Asks memory for what a transaction will look at in a column of keys.
    #[inline]
    fn expect_keys<T>(&self, txn: TxnId, column: &[T]) {
        if txn.index() < self.history.txn_count() {
            let read = self.index.read_keys(self.index.read_range(txn));
            for key in read.iter().chain(self.index.written_by(txn)) {
                prefetch(column, key.index());
            }
        }
    }

    /// Links from a slot.
    pub(super) fn links(&self, slot: Slot) -> impl Iterator<Item = Link> {
        let first = (self.next(slot) != NO_SLOT).then(|| Link {
            before: slot,
            after: self.next(slot),
            shown_by: match self.next_steps.get(slot as usize) {
                Some(&step) if step != BY_READ => ShownBy::Step(step),
                _ => self.read_link(slot).expect("a read, where no step shows the link"),
            },
        });
        first.into_iter().chain(self.further_links(slot).iter().copied())
    }

    /// Slots known to follow a slot.
    #[inline]
    pub(super) fn following(&self, slot: Slot) -> impl Iterator<Item = Slot> {
        let next = self.next(slot);
        let more = self.further_links(slot).iter().map(|link| link.after);
        (next != NO_SLOT).then_some(next).into_iter().chain(more)
    }

    /// Whether nothing but the reader's own version is known to follow the one it saw. Found
    /// without a look at versions, which lie far from each other; `false` says nothing.
    #[inline]
    pub(super) fn is_only_replacer(&self, read: ReadId, key: KeyId) -> bool {
        self.links_rewriters
            && self.more_links.is_empty()
            && self.index.writes(self.reader(read), key)
    }

    /// Calls back with the slots known to follow a slot.
    #[inline]
    pub(super) fn each_following(&self, slot: Slot, mut call: impl FnMut(Slot)) {
        let next = self.next(slot);
        if next == NO_SLOT {
            return;
        }
        call(next);
        if !self.has_more.is_empty() {
            self.further_links(slot).iter().for_each(|link| call(link.after));
        }
    }

    #[inline]
    fn further_links(&self, slot: Slot) -> &[Link] {
        if !self.has_more.get(slot as usize).is_some_and(|&more| more) {
            return &[];
        }
        let start = self.more_links.partition_point(|link| link.before < slot);
        let length = self.more_links[start..].partition_point(|link| link.before == slot);
        &self.more_links[start..start + length]
    }

    fn find_settled(&mut self) {
        self.settled = vec![true; self.history.key_count()];
        for key in self.history.keys() {
            let slots = self.slots_of(key);
            if slots.len() < 2 {
                continue;
            }
            let linked = slots.clone().filter(|&slot| self.is_followed(slot)).count();
            self.settled[key.index()] = linked + 1 == slots.len()
                && slots.clone().all(|slot| self.further_links(slot).is_empty())
                && slots.clone().filter(|&slot| self.next(slot) == NO_SLOT).count() == 1;
        }
    }

    /// The slots of a key.
    #[inline]
    pub(super) fn slots_of(&self, key: KeyId) -> Range<Slot> {
        let range = self.index.writer_range(key);
        range.start as Slot..range.end as Slot
    }

    /// The slot of a writer of a key.
    #[inline]
    pub(super) fn slot(&self, key: KeyId, writer: TxnId) -> Option<Slot> {
        let range = self.index.written_range(writer);
        let place = self.index.written_by(writer).binary_search(&key).ok()?;
        Some(self.written_slots[range.start + place])
    }

    /// The keys that a transaction wrote, with its versions of them.
    #[inline]
    pub(super) fn written_by(&self, writer: TxnId) -> impl Iterator<Item = (KeyId, Slot)> {
        let slots = &self.written_slots[self.index.written_range(writer)];
        self.index.written_by(writer).iter().copied().zip(slots.iter().copied())
    }

    /// The transaction that wrote a version.
    #[inline]
    pub(super) fn writer(&self, slot: Slot) -> TxnId {
        self.index.writers()[slot as usize]
    }

    /// The protected reads of a version, in the order of their readers.
    #[inline]
    pub(super) fn reads_of(&self, slot: Slot) -> &[ReadId] {
        self.reads.get_or_init(|| ReadsBySlot::new(&self.seen, self.slot_count())).of(slot)
    }

    /// The protected reads of some versions, without grouping those of all.
    pub(super) fn reads_of_some(&self, slots: impl Iterator<Item = Slot>) -> SomeReads {
        SomeReads::new(&self.seen, slots)
    }

    /// The protected reads of initial versions, key by key.
    pub(super) fn initial_reads(&self) -> &[(KeyId, ReadId)] {
        &self.initial_reads
    }

    /// The transaction of a read.
    #[inline]
    pub(super) fn reader(&self, read: ReadId) -> TxnId {
        self.readers[read.0 as usize]
    }

    /// The key of a slot.
    pub(super) fn key_of(&self, slot: Slot) -> KeyId {
        let starts = |key: usize| self.index.writer_range(KeyId(key as u32)).end <= slot as usize;
        let (mut low, mut high) = (0, self.history.key_count());
        while low < high {
            let middle = usize::midpoint(low, high);
            if starts(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        KeyId(low as u32)
    }

    /// Steps of version orders that no read shows as well, with where they lead.
    #[inline]
    pub(super) fn steps_from(&self, slot: Slot) -> impl Iterator<Item = (u32, Slot)> {
        let step = self.next_steps.get(slot as usize).copied().unwrap_or(BY_READ);
        let first = (step != BY_READ).then(|| (step, self.next(slot)));
        let more = self.further_links(slot).iter().filter_map(|link| match link.shown_by {
            ShownBy::Step(step) => Some((step, link.after)),
            ShownBy::Read(_) => None,
        });
        first.into_iter().chain(more)
    }

    /// Keys whose order is not known.
    pub(super) fn open_keys(&self) -> impl Iterator<Item = KeyId> {
        self.history.keys().filter(|key| !self.settled[key.index()])
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        self.reads.get().map_or(0, ReadsBySlot::memory)
            + 4 * (self.seen.len() + self.readers.len())
            + 4 * (self.written_slots.len() + self.next.len() + self.next_steps.len())
            + self.followed.len()
            + self.has_more.len()
            + 10 * self.settled.len()
    }
}

/// Slots of a key lie in the order of their writers' ids.
fn written_slots(history: &History, index: &Index) -> Vec<Slot> {
    let mut next: Vec<Slot> =
        history.keys().map(|key| index.writer_range(key).start as Slot).collect();
    let mut slots = Vec::with_capacity(index.writers().len());
    for txn in history.txns() {
        for key in index.written_by(txn) {
            let slot = &mut next[key.index()];
            slots.push(*slot);
            *slot += 1;
        }
    }
    slots
}

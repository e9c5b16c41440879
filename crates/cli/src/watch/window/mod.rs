//! The last events, and the part of them around a violation as a history.
//!
//! The part has everything that overlaps the transactions of the violation, as far as all of it
//! is known. Nothing in it may say more than the whole does; [`drawn`] says how that is kept.

mod earlier_contents;
mod excerpt;
#[cfg(test)]
mod tests;

use super::hub::Hub;
use earlier_contents::EarlierContents;
use excerpt::{Excerpt, Outside};
use isolde::online::{
    Batch, Cell, Content, Event, EventKind, Finding, Interval, NEVER, Reads, Time,
};
use isolde_history::{History, ReadError};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Events that are kept.
const EVENTS_MAX: usize = 200_000;
/// Transactions of a part.
const TXNS_MAX: usize = 1000;

/// A client and the number of its transaction.
pub(super) type TxnName = (u32, u64);

/// What is known of a stream from the start.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// What reads of the database see.
    pub(super) reads: Reads,
    /// What items hold that nobody has written, if that is known.
    pub(super) unwritten: Option<Content>,
    /// Whether a value is written once to an item, if it is no deletion.
    pub(super) is_unique: bool,
    /// How far the clocks of clients may be apart.
    pub(super) drift: Time,
}

/// The last events.
pub(super) struct Window {
    batches: VecDeque<Batch>,
    events: usize,
    known: Known,
    /// What items held before everything, where that was told.
    initial: HashMap<u32, Content>,
    before: EarlierContents,
    events_max: usize,
    txns_max: usize,
}

/// The part around a violation.
pub(super) struct Around {
    pub(super) history: History,
    /// As if items had held nothing before everything, unless that is known: what it violates
    /// has plainer names there.
    pub(super) plain: Option<History>,
}

/// What the events of one transaction say.
#[derive(Default)]
struct Txn {
    begin: Option<Interval>,
    operations: Vec<(Event, Vec<Cell>)>,
    end: Option<(EventKind, Interval)>,
    /// Whether it did something after its end.
    has_more: bool,
}

impl Txn {
    fn first(&self) -> Time {
        let first = self.operations.first().map(|(event, _)| event.interval.invoked);
        let begin = self.begin.map(|begin| begin.invoked);
        let end = self.end.map(|(_, interval)| interval.invoked);
        begin.or(first).or(end).unwrap_or(NEVER)
    }

    fn last(&self) -> Time {
        self.end.map_or(NEVER, |(_, interval)| interval.completed)
    }

    /// A transaction begins when its snapshot is taken, which may be by its first request, or
    /// its first read, long after its begin was answered.
    fn begin(&self, reads: Reads) -> Interval {
        let begun = self.begun();
        let takes = |(event, _): &&(Event, _)| reads.takes_snapshot(event.kind);
        match self.operations.iter().find(takes) {
            Some((event, _)) if reads != Reads::Begin => {
                let completed = begun.completed.max(event.interval.completed);
                Interval { completed, ..begun }
            }
            _ => begun,
        }
    }

    fn begun(&self) -> Interval {
        let first = self.operations.first().map(|(event, _)| event.interval);
        let begin = self.begin.or(first).or(self.end.map(|(_, interval)| interval));
        begin.unwrap_or(Interval::UNKNOWN)
    }

    fn commit(&self) -> Interval {
        let last = self.operations.last().map_or(self.begun(), |(event, _)| event.interval);
        let open = Interval { invoked: last.invoked, completed: NEVER };
        self.end.map_or(open, |(_, interval)| interval)
    }

    fn cells(&self, of_writes: bool) -> impl Iterator<Item = &Cell> {
        (self.operations.iter())
            .filter(move |(event, _)| (event.kind == EventKind::Write) == of_writes)
            .flat_map(|(_, cells)| cells)
    }
}

impl Window {
    /// Without events.
    pub(super) fn new(known: Known) -> Window {
        Window {
            batches: VecDeque::new(),
            events: 0,
            known,
            initial: HashMap::new(),
            before: EarlierContents::new(known.drift),
            events_max: EVENTS_MAX,
            txns_max: TXNS_MAX,
        }
    }

    /// What items hold before everything.
    pub(super) fn initial(&mut self, cells: &[Cell]) {
        self.initial = cells.iter().map(|cell| (cell.item, cell.content)).collect();
    }

    /// Adds the latest events.
    pub(super) fn keep(&mut self, batch: &Batch) {
        if batch.events.is_empty() {
            return;
        }
        if self.known.unwritten.is_none() {
            self.before.look_for_first(batch);
        }
        self.events += batch.events.len();
        self.batches.push_back(batch.clone());
        while self.events > self.events_max
            && self.batches.len() > 1
            && let Some(oldest) = self.batches.pop_front()
        {
            self.events -= oldest.events.len();
            self.before.remember(&oldest);
        }
    }

    /// The part around a violation. If events are missing, anything may have been written.
    pub(super) fn around(
        &self,
        finding: &Finding,
        hub: &Hub,
        is_blind: bool,
    ) -> Result<Around, ReadError> {
        let mut txns = self.txns();
        let chosen = self.chosen(finding, &txns);
        let others: BTreeMap<TxnName, Txn> =
            txns.extract_if(.., |name, _| !chosen.contains(name)).collect();
        let (before, initial) = (&self.before, &self.initial);
        let drawn = |is_anything_before| {
            let outside =
                Outside { others: &others, before, initial, is_blind, is_anything_before };
            Excerpt::new(hub, self.known, outside).history(&txns)
        };
        let plain = self.known.unwritten.is_none().then(|| drawn(false)).transpose()?;
        Ok(Around { history: drawn(true)?, plain })
    }

    /// All transactions of which something is kept.
    fn txns(&self) -> BTreeMap<TxnName, Txn> {
        let mut txns: BTreeMap<TxnName, Txn> = BTreeMap::new();
        for batch in &self.batches {
            for event in &batch.events {
                let txn = txns.entry((event.client.0, event.txn)).or_default();
                match event.kind {
                    EventKind::Begin => txn.begin = Some(event.interval),
                    kind if kind.is_end() => txn.end = Some((kind, event.interval)),
                    _ => {
                        let cells = batch.cells_of(event).iter();
                        let cells = cells.filter(|cell| cell.content.condition().is_none());
                        txn.has_more |= txn.end.is_some();
                        txn.operations.push((*event, cells.copied().collect()));
                    }
                }
            }
        }
        txns
    }

    /// Those that are in the part, with all that they did.
    fn chosen(&self, finding: &Finding, txns: &BTreeMap<TxnName, Txn>) -> BTreeSet<TxnName> {
        let involved = involved(finding);
        let of_them = || involved.iter().filter_map(|name| txns.get(name));
        let from = of_them().map(Txn::first).min().unwrap_or(finding.offender.interval.invoked);
        let until = finding.offender.interval.completed.max(finding.offender.interval.invoked);
        let mut chosen: Vec<TxnName> = (txns.iter())
            .filter(|(name, txn)| !self.before.is_cut(**name) && !txn.has_more)
            .filter(|(name, txn)| {
                involved.contains(name) || (txn.first() <= until && txn.last() >= from)
            })
            .map(|(name, _)| *name)
            .collect();
        let offended = finding.offender.interval.invoked;
        chosen.sort_by_key(|name| {
            (!involved.contains(name), txns[name].first().saturating_sub(offended).saturating_abs())
        });
        chosen.truncate(self.txns_max.max(involved.len()));
        chosen.into_iter().collect()
    }
}

/// The transactions that a finding names.
fn involved(finding: &Finding) -> HashSet<TxnName> {
    let steps = std::iter::once(&finding.offender).chain(&finding.others);
    let steps = steps.map(|step| (step.client.0, step.txn));
    let writers = finding.candidates.iter().filter_map(|candidate| candidate.writer);
    let ends = finding.dependencies.iter().flat_map(|dependency| [dependency.from, dependency.to]);
    steps.chain(writers.chain(ends).map(|(client, txn)| (client.0, txn))).collect()
}

/// How messages and files call an item: the key alone if there is one table of registers.
pub(super) fn item_name(hub: &Hub, item: u32) -> String {
    let catalogue = hub.catalogue();
    match catalogue.item(item) {
        None => format!("item {item}"),
        Some((super::tap::REGISTERS, key, None)) => key.to_string(),
        Some((table, key, None)) => format!("{table}/{key}"),
        Some((table, key, Some(column))) => format!("{table}/{key}/{column}"),
    }
}

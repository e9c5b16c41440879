//! The last events, and the part of them around a violation as a history.
//!
//! The part has everything that overlaps the transactions of the violation. What was read
//! in it and written outside of it is what its keys hold initially; if a key had several such
//! values, or is written in the part too, they are written by transactions of which no time
//! is known. So the part violates nothing that the whole does not. What nobody is known to
//! have written at all has no writer in the part either: else it would deny the violation.

use super::hub::Hub;
use isolde::online::{
    Batch, Cell, Content, Event, EventKind, Finding, Interval, NEVER, Name, Reads, Time,
};
use isolde_history::{
    DraftTxn, History, HistoryBuilder, OpKind, Outcome, ReadError, TxnTimes, Value,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Events that are kept.
const EVENTS_MAX: usize = 200_000;
/// Transactions of a part.
const TXNS_MAX: usize = 1000;

/// A client and the number of its transaction.
pub(super) type TxnName = (u32, u64);

/// The last events.
pub(super) struct Window {
    batches: VecDeque<Batch>,
    events: usize,
    reads: Reads,
}

/// What the events of one transaction say.
#[derive(Default)]
struct Txn {
    begin: Option<Interval>,
    operations: Vec<(Event, Vec<Cell>)>,
    end: Option<(EventKind, Interval)>,
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
}

impl Window {
    /// Without events, of a database whose reads see this.
    pub(super) fn new(reads: Reads) -> Window {
        Window { batches: VecDeque::new(), events: 0, reads }
    }

    /// Adds the latest events.
    pub(super) fn keep(&mut self, batch: &Batch) {
        if batch.events.is_empty() {
            return;
        }
        self.events += batch.events.len();
        self.batches.push_back(batch.clone());
        while self.events > EVENTS_MAX
            && self.batches.len() > 1
            && let Some(oldest) = self.batches.pop_front()
        {
            self.events -= oldest.events.len();
        }
    }

    /// The part around a violation.
    pub(super) fn around(&self, finding: &Finding, hub: &Hub) -> Result<History, ReadError> {
        let involved = involved(finding);
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
                        txn.operations.push((*event, cells.copied().collect()));
                    }
                }
            }
        }
        let of_them = || involved.iter().filter_map(|name| txns.get(name));
        let from = of_them().map(Txn::first).min().unwrap_or(finding.offender.interval.invoked);
        let until = finding.offender.interval.completed.max(finding.offender.interval.invoked);
        let mut chosen: Vec<TxnName> = (txns.iter())
            .filter(|(name, txn)| {
                involved.contains(name) || (txn.first() <= until && txn.last() >= from)
            })
            .map(|(name, _)| *name)
            .collect();
        let offended = finding.offender.interval.invoked;
        chosen.sort_by_key(|name| {
            (!involved.contains(name), txns[name].first().saturating_sub(offended).saturating_abs())
        });
        chosen.truncate(TXNS_MAX.max(involved.len()));
        let chosen: BTreeSet<TxnName> = chosen.into_iter().collect();
        txns.retain(|name, _| chosen.contains(name));
        let unexplained = (finding.name == Name::UnexplainedRead)
            .then_some(finding.offender.cell)
            .flatten()
            .map(|cell| (cell.item, cell.content));
        Drawn { builder: HistoryBuilder::new(), hub, reads: self.reads, unexplained }.history(&txns)
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

/// A history in the making.
struct Drawn<'a> {
    builder: HistoryBuilder,
    hub: &'a Hub,
    reads: Reads,
    /// What nobody wrote, in the window or before it.
    unexplained: Option<(u32, Content)>,
}

impl Drawn<'_> {
    fn history(mut self, txns: &BTreeMap<TxnName, Txn>) -> Result<History, ReadError> {
        self.before(txns);
        for ((client, number), txn) in txns {
            let name = self.hub.name(isolde::online::ClientId(*client));
            let label = self.builder.values().text(&format!("{name} #{client}"));
            let session = self.builder.session(label);
            let draft = self.builder.begin(session);
            self.txn(draft, *number, txn);
        }
        self.builder.remark(
            "window",
            "cut from a watch: what was written before is initial, or has no times".to_owned(),
        );
        self.builder.finish("window")
    }

    fn txn(&mut self, draft: DraftTxn, number: u64, txn: &Txn) {
        let outcome = match txn.end {
            Some((EventKind::Commit, _)) => Outcome::Committed,
            Some((EventKind::Abort, _)) => Outcome::Aborted,
            _ => Outcome::Unknown,
        };
        self.builder.outcome(draft, outcome);
        let times = TxnTimes { begin: txn.begin(self.reads), commit: txn.commit() };
        self.builder.times(draft, times);
        let place = u32::try_from(number).unwrap_or(u32::MAX);
        self.builder.position(place);
        for (event, cells) in &txn.operations {
            let kind = if event.kind == EventKind::Write { OpKind::Write } else { OpKind::Read };
            for cell in cells.iter().filter(|cell| cell.content != Content::UNKNOWN) {
                let (key, value) = self.cell(cell);
                self.builder.op(kind, key, value);
                self.builder.op_interval(event.interval);
            }
        }
    }

    fn cell(&mut self, cell: &Cell) -> (isolde_history::KeyId, Value) {
        let name = item_name(self.hub, cell.item);
        let key = match name.parse::<u64>() {
            Ok(number) => self.builder.values().unsigned(number),
            Err(_) => self.builder.values().text(&name),
        };
        let value = self.value(cell.content);
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

    /// What was read and not written in the part was there before it.
    fn before(&mut self, txns: &BTreeMap<TxnName, Txn>) {
        let cells = |wanted: bool| {
            let operations = txns.values().flat_map(|txn| &txn.operations);
            operations
                .filter(move |(event, _)| (event.kind == EventKind::Write) == wanted)
                .flat_map(|(_, cells)| cells)
                .filter(|cell| cell.content != Content::UNKNOWN)
        };
        let written: HashSet<(u32, Content)> =
            cells(true).map(|cell| (cell.item, cell.content)).collect();
        // Of an item that is written in the window, nobody knows whether what else is read
        // of it came before that.
        let changed: HashSet<u32> = written.iter().map(|name| name.0).collect();
        let mut initial: HashMap<u32, Content> = HashMap::new();
        let mut earlier: Vec<Cell> = Vec::new();
        let mut seen: HashSet<(u32, Content)> = HashSet::new();
        for cell in cells(false) {
            let name = (cell.item, cell.content);
            let is_told = cell.content == Content::ABSENT || written.contains(&name);
            if is_told || self.unexplained == Some(name) || !seen.insert(name) {
                continue;
            }
            let is_absent_too = cells(false)
                .any(|other| other.item == cell.item && other.content == Content::ABSENT);
            let is_changed = changed.contains(&cell.item);
            if is_changed || is_absent_too || initial.contains_key(&cell.item) {
                earlier.push(*cell);
            } else {
                initial.insert(cell.item, cell.content);
                let (key, value) = self.cell(cell);
                self.builder.initial(key, value);
            }
        }
        for (place, cell) in earlier.iter().enumerate() {
            let label = self.builder.values().text(&format!("before the window {}", place + 1));
            let session = self.builder.session(label);
            let _ = self.builder.begin(session);
            let (key, value) = self.cell(cell);
            self.builder.op(OpKind::Write, key, value);
        }
    }
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

//! Takes events in order, lets them wait until they can be judged, forgets what is settled.
//!
//! **Method.** Writes, commits and aborts take effect on the tables as they come. Reads
//! and ends of transactions wait until the watermark has passed the instant at which they
//! were answered: by then every commit that may have come before them is known. They are
//! judged in the order in which they came, so that all reads of a transaction are judged
//! before its end. One that waits longer than those behind it holds them up; it holds up
//! the watermark by as much anyway.
//!
//! **Invariant.** A finding is reported only if no placement of the instants inside the
//! intervals explains the events. What could not be judged is counted.

use super::certifier::Note;
use super::condition::ConditionNotes;
use super::contradiction::{Contradiction, Suspects};
use super::counters::Counters;
use super::finding::Finding;
use super::graph::Graph;
use super::profile::{Profile, Reads, Writers};
use super::reads::Reading;
use super::relations::Relations;
use super::slab::Slab;
use super::tables::{Fate, NONE, Stage, State, Tables, Txn, Version};
use super::touched::Touched;
use super::trace::{
    ALWAYS, Batch, Cell, ClientId, Content, Event, EventKind, Interval, NEVER, Time,
};
use hashbrown::HashMap;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What beside the profile decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How far the clients' clocks may differ, in nanoseconds. Every interval is widened
    /// by it on both sides.
    pub drift: Time,
    /// What items hold that nobody has written; unknown if it is not given, and then the
    /// first reads of an item are taken for it.
    pub unwritten: Option<Content>,
    /// Findings that are kept until they are fetched; more are counted only.
    pub findings_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { drift: 0, unwritten: None, findings_max: 1000 }
    }
}

/// What a client is at.
#[derive(Clone, Copy)]
struct Client {
    /// Its open transaction.
    open: u32,
    /// The number of its last transaction, if it had one.
    last: Option<u64>,
    /// A transaction of which some times are not known.
    unplaced: Option<u64>,
    is_aside: bool,
    /// Whether what it did since is missing for good.
    is_gone: bool,
}

/// A read or an end that waits to be judged.
#[derive(Clone, Copy)]
struct Waiting {
    reading: Reading,
    cells: u32,
}

impl Waiting {
    /// When it was answered. What has no answer has nothing to wait for.
    fn due(&self) -> Time {
        match self.reading.interval.completed {
            NEVER => self.reading.interval.invoked,
            completed => completed,
        }
    }
}

/// See the module's documentation.
pub struct Verifier {
    pub(super) profile: Profile,
    pub(super) options: Options,
    pub(super) counters: Counters,
    pub(super) tables: Tables,
    pub(super) graph: Graph,
    pub(super) notes: Slab<Note>,
    pub(super) conditions: ConditionNotes,
    pub(super) relations: Relations,
    /// Versions that were given up last, for messages.
    pub(super) graveyard: VecDeque<Version>,
    /// Transactions by their begin, up to the first that is not judged.
    pub(super) open: VecDeque<u32>,
    /// Judged transactions that something to come may be concurrent with.
    pub(super) ended: VecDeque<u32>,
    /// Everything that was sent before has been taken.
    pub(super) watermark: Time,
    pub(super) horizon: Time,
    /// The pair whose dependency closed the last cycle.
    pub(super) last_cycle: (u32, u32),
    /// Room for lists.
    pub(super) firsts: Vec<u32>,
    clients: HashMap<u32, Client>,
    clients_aside: usize,
    pub(super) touched: Touched,
    waiting: VecDeque<Waiting>,
    waiting_cells: VecDeque<Cell>,
    /// What others would wait behind for long, by the time of its answer and a number, with
    /// its cells.
    slow: BTreeMap<(Time, u64), (Reading, Vec<Cell>)>,
    slow_count: u64,
    cells: Vec<Cell>,
    findings: Vec<Finding>,
    pub(super) suspects: Suspects,
}

/// Events that are taken before something is judged. Fewer cost more searching for what
/// to judge, more keep more in memory.
const STRIDE: usize = 256;
/// What has no answer in time is put aside once so many wait behind it.
const BEHIND_MAX: usize = 1 << 10;

impl Verifier {
    /// One that has seen nothing.
    pub fn new(profile: Profile, options: Options) -> Verifier {
        Verifier {
            profile,
            options,
            counters: Counters::default(),
            tables: Tables::new(options.unwritten.unwrap_or(Content::UNKNOWN)),
            graph: Graph::new(),
            notes: Slab::new(),
            conditions: ConditionNotes::default(),
            relations: Relations::new(),
            graveyard: VecDeque::new(),
            open: VecDeque::new(),
            ended: VecDeque::new(),
            watermark: ALWAYS,
            horizon: ALWAYS,
            last_cycle: (NONE, NONE),
            firsts: Vec::new(),
            clients: HashMap::new(),
            clients_aside: 0,
            touched: Touched::default(),
            waiting: VecDeque::new(),
            waiting_cells: VecDeque::new(),
            slow: BTreeMap::new(),
            slow_count: 0,
            cells: Vec::new(),
            findings: Vec::new(),
            suspects: Suspects::default(),
        }
    }

    /// What the database is held to.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What the item holds before everything. To be told before the item is used.
    pub fn initial(&mut self, cell: Cell) {
        let is_known =
            self.tables.items.get(cell.item as usize).is_some_and(|item| item.newest != NONE);
        if !is_known {
            self.tables.make_known(&cell, cell.content);
        }
    }

    /// Takes events in the order in which they were sent, such that everything sent
    /// before `watermark` has been taken, and judges what can be judged by then.
    pub fn take(&mut self, batch: &Batch, watermark: Time) {
        self.take_some(batch, 0..batch.events.len(), watermark);
        self.judge_until(watermark);
    }

    /// Takes some of these events, behind those that were taken before; the last of them are
    /// judged by [`Verifier::take`] of what comes behind.
    pub fn take_some(&mut self, batch: &Batch, some: Range<usize>, watermark: Time) {
        for events in batch.events[some].chunks(STRIDE) {
            for event in events {
                self.apply(event, &batch.cells[event.cells.range()]);
            }
            // All that comes behind the last of them was sent after it.
            if let Some(last) = events.last()
                && last.interval.invoked <= watermark
            {
                self.judge_until(last.interval.invoked);
            }
        }
    }

    /// Events of this client are missing from now on. Its open transaction may have
    /// committed, and what nobody is known to have written may be its work: until it is
    /// back, reads that no version explains are not judged.
    pub fn set_aside(&mut self, client: ClientId) {
        let state = self.client(client);
        if state.is_aside {
            return;
        }
        state.is_aside = true;
        let open = state.open;
        self.clients_aside += 1;
        if open != NONE {
            self.end_unknown(client, open);
        }
    }

    /// Nothing of this client is missing any more.
    pub fn readmit(&mut self, client: ClientId) {
        let state = self.client(client);
        if std::mem::replace(&mut state.is_aside, false) {
            self.clients_aside -= 1;
        }
    }

    /// What this client has sent from `since` on will never be known. Its open transaction may
    /// have committed, and rows that it has used may hold anything: reads of these that no version
    /// explains are not judged. Reads of other rows are, but for values that nobody is known to
    /// have written.
    pub fn give_up(&mut self, client: ClientId, since: Time) {
        self.readmit(client);
        let state = self.client(client);
        let (open, has_come) = (state.open, state.last.is_some());
        state.is_gone = true;
        // If its clock was set back, or it came too late, its times do not tell.
        let since = if state.unplaced.is_some() { ALWAYS } else { since };
        self.drop_suspects(since);
        self.touched.note_gone();
        if has_come {
            self.touched.give_up(client);
        }
        if open != NONE {
            self.end_unknown(client, open);
        }
    }

    /// Nothing of this client will come any more. If events of it are missing, they stay so.
    pub fn forget_client(&mut self, client: ClientId) {
        if self.clients.get(&client.0).is_some_and(|known| known.open == NONE) {
            self.clients.remove(&client.0);
        }
    }

    /// Judges everything that waits: nothing more will come.
    pub fn finish(&mut self) {
        self.judge_until(NEVER);
    }

    /// What was found since this was last asked.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// Contradictions of clocks that were found since this was last asked.
    pub fn take_contradictions(&mut self) -> Vec<Contradiction> {
        self.suspects.take_contradictions()
    }

    /// Whether events are missing, now or for good.
    pub fn is_anything_missing(&self) -> bool {
        self.clients_aside > 0 || self.touched.is_any_gone()
    }

    /// What was verified, and what is kept.
    pub fn counters(&self) -> Counters {
        Counters {
            versions: self.tables.versions.len() as u64,
            row_uses: self.tables.uses.len() as u64,
            txns: self.tables.txns.len() as u64,
            graph_edges: self.graph.edge_count() as u64,
            items: self.tables.items_known,
            waiting: (self.waiting.len() + self.slow.len()) as u64,
            watermark: self.watermark,
            horizon: self.horizon,
            ..self.counters
        }
    }
}

impl Verifier {
    /// Whether events are missing that may tell something about these cells.
    pub(super) fn is_blind(&self, cell: &Cell) -> bool {
        self.clients_aside > 0 || self.touched.is_blind(cell.row)
    }

    pub(super) fn report(&mut self, finding: Finding) {
        self.counters.findings += 1;
        if self.findings.len() < self.options.findings_max {
            self.findings.push(finding);
        } else {
            self.counters.findings_dropped += 1;
        }
    }

    fn client(&mut self, client: ClientId) -> &mut Client {
        let unknown =
            Client { open: NONE, last: None, unplaced: None, is_aside: false, is_gone: false };
        self.clients.entry(client.0).or_insert(unknown)
    }

    fn apply(&mut self, event: &Event, cells: &[Cell]) {
        self.counters.events += 1;
        self.touched.note(event.client, cells);
        if self.touched.is_any_gone() && self.client(event.client).is_gone {
            self.touched.give_up(event.client);
        }
        if event.kind == EventKind::Write {
            self.compare_with_suspects(event, cells);
        } else if event.kind.is_end() && self.suspects.is_any_pending() {
            self.end_contradictions(event);
        }
        if event.interval == Interval::UNKNOWN
            || self.client(event.client).unplaced == Some(event.txn)
        {
            self.apply_unplaced(event, cells);
            return;
        }
        if event.interval.invoked < self.watermark {
            self.counters.disorder.late += 1;
        }
        if self.is_forgotten(event) {
            self.counters.disorder.forgotten += 1;
            self.apply_unplaced(event, cells);
            return;
        }
        let interval = self.widened(event.interval);
        let Some(txn) = self.txn_of(event, interval) else {
            self.counters.disorder.after_end += 1;
            if event.kind == EventKind::Write {
                self.write_without_txn(event, interval, cells);
            }
            return;
        };
        let own = &mut self.tables.txns[txn];
        if event.kind.is_operation() {
            own.operations += 1;
            if interval.completed != NEVER {
                own.answered = interval.completed;
            }
            self.counters.operations += 1;
        }
        let by = (event.kind, own.operations, interval);
        self.take_snapshot(txn, by);
        match event.kind {
            EventKind::Begin => {}
            EventKind::Read | EventKind::LockingRead => self.read(txn, by, cells),
            EventKind::Write => self.write(txn, by, cells),
            EventKind::Commit => {
                self.counters.committed += 1;
                self.end(txn, State::Committed, interval);
            }
            EventKind::Abort => {
                self.counters.aborted += 1;
                self.end(txn, State::Aborted, interval);
            }
            EventKind::Lost => {
                self.counters.lost += 1;
                self.end(txn, State::Lost, Interval { completed: NEVER, ..interval });
            }
        }
    }

    /// Whether a transaction begins so late that what it may have seen was given up.
    fn is_forgotten(&mut self, event: &Event) -> bool {
        let last = self.client(event.client).last;
        let is_new = last.is_none_or(|last| last < event.txn);
        is_new && self.widened(event.interval).invoked < self.horizon
    }

    /// An event that may have taken effect at any time: what it wrote may have been there,
    /// always or never. What it read is not judged, nor is the transaction.
    fn apply_unplaced(&mut self, event: &Event, cells: &[Cell]) {
        let Client { open, last, .. } = *self.client(event.client);
        if open != NONE {
            self.end_unknown(event.client, open);
        }
        let client = self.client(event.client);
        client.unplaced = Some(event.txn);
        client.last = last.max(Some(event.txn));
        match event.kind {
            EventKind::Begin => {}
            EventKind::Read | EventKind::LockingRead => {
                self.counters.operations += 1;
                self.counters.unchecked.unplaced += cells.len() as u64;
            }
            EventKind::Write => {
                self.counters.operations += 1;
                self.counters.cells_written += cells.len() as u64;
                self.write_without_txn(event, Interval::UNKNOWN, cells);
            }
            EventKind::Commit => self.counters.committed += 1,
            EventKind::Abort => self.counters.aborted += 1,
            EventKind::Lost => self.counters.lost += 1,
        }
    }

    fn widened(&self, interval: Interval) -> Interval {
        let drift = self.options.drift;
        Interval {
            invoked: interval.invoked.saturating_sub(drift),
            completed: interval.completed.saturating_add(drift),
        }
    }

    /// The transaction of an event, which may begin with it; none if it has ended.
    fn txn_of(&mut self, event: &Event, interval: Interval) -> Option<u32> {
        let Client { open, last, .. } = *self.client(event.client);
        if open != NONE && self.tables.txns[open].number == event.txn {
            return Some(open);
        }
        if last.is_some_and(|last| event.txn <= last) {
            return None;
        }
        if open != NONE {
            self.counters.disorder.unended += 1;
            self.end_unknown(event.client, open);
        }
        let txn = self.tables.txns.insert(Txn::new(event.client, event.txn, interval));
        // One that comes late began before others that are there.
        let tables = &self.tables;
        let start = tables.txns[txn].start;
        let is_latest = self.open.back().is_none_or(|&last| tables.txns[last].start <= start);
        let place = if is_latest {
            self.open.len()
        } else {
            self.open.partition_point(|&other| tables.txns[other].start <= start)
        };
        self.open.insert(place, txn);
        let client = self.client(event.client);
        (client.open, client.last) = (txn, Some(event.txn));
        Some(txn)
    }

    /// The end of a transaction is missing: it may have committed.
    fn end_unknown(&mut self, client: ClientId, txn: u32) {
        let invoked = self.tables.txns[txn].answered;
        self.counters.lost += 1;
        self.end(txn, State::Lost, Interval { invoked, completed: NEVER });
        self.client(client).open = NONE;
    }

    fn take_snapshot(&mut self, txn: u32, by: (EventKind, u32, Interval)) {
        let own = &mut self.tables.txns[txn];
        if self.profile.reads.takes_snapshot(by.0) && own.snapshot.is_none() {
            let invoked = by.2.invoked.saturating_sub(self.profile.staleness);
            own.snapshot = Some(Interval { invoked, ..by.2 });
            own.snapshot_event = by;
        }
    }

    fn read(&mut self, txn: u32, by: (EventKind, u32, Interval), cells: &[Cell]) {
        for cell in cells {
            if cell.content != Content::ABSENT && cell.content.condition().is_none() {
                self.use_row(txn, cell, by);
            }
        }
        if self.profile.reads == Reads::Unchecked {
            self.counters.unpromised += cells.len() as u64;
            return;
        }
        let (kind, operation, interval) = by;
        let reading = Reading { txn, operation, kind, interval };
        self.waiting.push_back(Waiting { reading, cells: cells.len() as u32 });
        self.waiting_cells.extend(cells);
    }

    fn write(&mut self, txn: u32, by: (EventKind, u32, Interval), cells: &[Cell]) {
        self.tables.txns[txn].has_written |= !cells.is_empty();
        self.counters.cells_written += cells.len() as u64;
        for cell in cells {
            self.tables.write(txn, by.1, by.2, cell);
            self.use_row(txn, cell, by);
        }
    }

    /// Writes of a transaction whose end is not known to be its end: they may be seen.
    fn write_without_txn(&mut self, event: &Event, written: Interval, cells: &[Cell]) {
        for cell in cells {
            let older = self.tables.newest(cell);
            let version = Version {
                client: event.client,
                number: event.txn,
                content: cell.content,
                written,
                commit: Interval { completed: NEVER, ..written },
                older,
                fate: Fate::Lost,
                settled: NEVER,
                ..Version::initial(cell.item, cell.content)
            };
            self.tables.add(version);
        }
    }

    fn end(&mut self, txn: u32, state: State, interval: Interval) {
        self.tables.end(txn, state, interval);
        if state == State::Committed {
            self.enter_graph(txn);
        }
        let client = self.tables.txns[txn].client;
        self.client(client).open = NONE;
        let (kind, operation) = (EventKind::Commit, self.tables.txns[txn].operations + 1);
        let reading = Reading { txn, operation, kind, interval };
        self.waiting.push_back(Waiting { reading, cells: 0 });
    }

    /// Judges what was answered before the watermark.
    fn judge_until(&mut self, watermark: Time) {
        self.watermark = self.watermark.max(watermark);
        let known = self.watermark.saturating_sub(self.options.drift);
        while let Some(reading) = self.next_due(known) {
            if reading.kind == EventKind::Commit {
                self.judge_end(reading.txn);
            } else {
                let cells = std::mem::take(&mut self.cells);
                self.judge_read(reading, &cells);
                self.cells = cells;
            }
        }
        self.report_suspects(known);
        self.forget();
    }

    /// Takes what waits and was answered before `known`, with its cells in `cells`: in the
    /// order of arrival, but for what took so long that thousands came behind it. If those
    /// waited, each would be judged among all the versions that were made meanwhile.
    fn next_due(&mut self, known: Time) -> Option<Reading> {
        let is_last = self.watermark == NEVER;
        loop {
            let front = self.waiting.front().map(Waiting::due);
            if let Some(slow) = self.slow.first_entry()
                && (slow.key().0 < known || is_last)
                && front.is_none_or(|front| slow.key().0 <= front)
            {
                let (reading, cells) = slow.remove();
                self.cells = cells;
                return Some(reading);
            }
            let is_due = front? < known || is_last;
            if !is_due && self.waiting.len() <= BEHIND_MAX {
                return None;
            }
            let Waiting { reading, cells } = self.waiting.pop_front()?;
            let cells = self.waiting_cells.drain(..cells as usize);
            if is_due {
                self.cells.clear();
                self.cells.extend(cells);
                return Some(reading);
            }
            self.slow_count += 1;
            self.slow.insert((front?, self.slow_count), (reading, cells.collect()));
        }
    }

    /// Judges a transaction as a whole: all its reads have been.
    fn judge_end(&mut self, txn: u32) {
        self.judge_rows(txn);
        self.drop_relations(txn);
        let own = &mut self.tables.txns[txn];
        own.stage = Stage::Judged;
        self.tables.settle(txn);
        let own = &self.tables.txns[txn];
        match own.state {
            State::Committed => {
                self.count_write_write(txn);
                if self.profile.writers == Writers::AsRead {
                    self.judge_as_read(txn);
                }
                self.certify(txn);
            }
            _ => self.drop_notes(txn),
        }
        if self.tables.txns[txn].commit.completed != NEVER
            || self.tables.txns[txn].state == State::Aborted
        {
            self.ended.push_back(txn);
        }
    }
}

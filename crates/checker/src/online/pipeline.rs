//! Brings the events of all clients into the order in which they were sent.
//!
//! **Method.** Two levels [Li et al., ICDE 2024, §IV-C]: each client has a buffer, in
//! which its events are in order already; the heads of the buffers are merged. What was
//! sent before the *watermark* is complete: every open client has said, by an event or
//! by [`Pipeline::advance`], that nothing of its own will be sent before it. A run of
//! events of one client that lies before the heads of all others leaves at once.
//!
//! A client that falls behind the others by more than a limit of event time is set
//! aside: it is reported once and holds the watermark no longer. What it sends later is
//! handed out late, and counted.
//!
//! Within a client the order of arrival counts. If its times contradict that order, its clock
//! was set back, by no less than the contradiction, and nothing tells which of its times were
//! right. From there until the clock has passed what it showed before, its events leave with
//! [`Interval::UNKNOWN`], and so do those that still wait and claim to be later. After that
//! they are widened by as much as the clock may be behind.

use super::counters::Disorder;
use super::trace::{
    ALWAYS, Batch, Cell, CellSpan, ClientId, Event, EventKind, Interval, NEVER, Time,
};
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When a pipeline pushes back, and for how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineOptions {
    /// Events that are kept for one client before it is asked to wait.
    pub buffered_max: usize,
    /// Nanoseconds of event time that a client may stay behind the others.
    pub stall_after: Time,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        PipelineOptions { buffered_max: 1 << 16, stall_after: 10_000_000_000 }
    }
}

/// Whether a client may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a client that is too far ahead has to wait"]
pub enum Room {
    /// It may.
    Enough,
    /// What it sent is kept, but it is so far ahead that it should wait until
    /// [`Pipeline::room`] says otherwise.
    Full,
}

/// What a client has sent and nobody has taken yet.
#[derive(Default)]
struct Buffer {
    events: Vec<Event>,
    cells: Vec<Cell>,
    /// Events and cells before these were taken.
    taken: usize,
    cells_taken: usize,
    /// Nothing that it will send was sent before this.
    bound: Time,
    /// How far the others were when this one was first waited for: as long as it has said
    /// nothing, it is behind from there on. Not known until somebody has said something.
    waited_since: Option<Time>,
    /// The transaction that has no end yet, and when its last event was answered.
    unended: Option<(u64, Time)>,
    /// The last transaction that has one: what comes of it, or of earlier ones, is too late.
    last_ended: Option<u64>,
    last: Option<Event>,
    last_cells: Vec<Cell>,
    /// When its last transaction was over.
    ended: Time,
    /// Its clock was set back: what it had shown before.
    stepped_from: Option<Time>,
    /// How far its clock may be behind since.
    lag: Time,
    is_open: bool,
    is_aside: bool,
}

/// See the module's documentation.
pub struct Pipeline {
    options: PipelineOptions,
    /// Of clients that are open, or of which something waits.
    buffers: HashMap<u32, Buffer>,
    /// The furthest that any other has been.
    furthest: Time,
    /// Heads of buffers: when sent, whose.
    heads: BinaryHeap<Reverse<(Time, u32)>>,
    watermark: Time,
    disorder: Disorder,
    stalled: Vec<ClientId>,
    returned: Vec<ClientId>,
    gone: Vec<ClientId>,
    buffered: usize,
}

impl Pipeline {
    /// One without clients.
    pub fn new(options: PipelineOptions) -> Pipeline {
        Pipeline {
            options,
            buffers: HashMap::new(),
            furthest: ALWAYS,
            heads: BinaryHeap::new(),
            watermark: ALWAYS,
            disorder: Disorder::default(),
            stalled: Vec::new(),
            returned: Vec::new(),
            gone: Vec::new(),
            buffered: 0,
        }
    }

    /// A client that will send nothing from before this time. Until it does, or
    /// [advances](Pipeline::advance), the others wait for it.
    pub fn open(&mut self, client: ClientId, from: Time) {
        let buffer = self.buffer(client);
        if !std::mem::replace(&mut buffer.is_open, true) {
            buffer.waited_since = None;
        }
        buffer.bound = buffer.bound.max(from);
    }

    /// Takes events of one client; each of them must have that client. One that is not
    /// open is opened.
    pub fn push(&mut self, client: ClientId, batch: &Batch) -> Room {
        if batch.events.is_empty() {
            return self.room(client);
        }
        if !self.buffer(client).is_open {
            let first = batch.events[0].interval.invoked;
            self.open(client, first);
        }
        for event in &batch.events {
            self.push_event(client, *event, &batch.cells[event.cells.range()]);
        }
        self.room(client)
    }

    /// Nothing that this client will send was sent before this time.
    pub fn advance(&mut self, client: ClientId, time: Time) {
        let buffer = self.buffer(client);
        buffer.bound = buffer.bound.max(time);
    }

    /// Goes on without this client until it has caught up, whatever the times say: whether
    /// that is new. To be asked when it holds up the others and they cannot go on.
    pub fn leave_behind(&mut self, client: ClientId) -> bool {
        let is_new = !std::mem::replace(&mut self.buffer(client).is_aside, true);
        // It is behind from here on, not only from when the others move.
        self.raise_watermark();
        is_new
    }

    /// The client is gone. A transaction that it has not ended is aborted at an unknown
    /// time: its commit was never sent.
    pub fn close(&mut self, client: ClientId) {
        if let Some((txn, answered)) = self.buffer(client).unended {
            let interval = Interval { invoked: answered, completed: NEVER };
            let kind = EventKind::Abort;
            let event = Event { client, txn, interval, kind, cells: CellSpan::NONE };
            self.push_event(client, event, &[]);
        }
        let buffer = self.buffer(client);
        buffer.is_open = false;
        if std::mem::replace(&mut buffer.is_aside, false) {
            self.returned.push(client);
        }
        self.forget_if_done(client.0);
    }

    /// Whether a client may send more.
    pub fn room(&self, client: ClientId) -> Room {
        let waiting = self.buffers.get(&client.0).map_or(0, Buffer::waiting);
        if waiting < self.options.buffered_max { Room::Enough } else { Room::Full }
    }

    /// Appends everything that was sent before the watermark to `into`, in the order in
    /// which it was sent, and returns the watermark.
    pub fn drain(&mut self, into: &mut Batch) -> Time {
        self.move_watermark();
        while let Some(&Reverse((sent, client))) = self.heads.peek() {
            if sent >= self.watermark {
                break;
            }
            self.heads.pop();
            // Of a client whose clock was set back there may be an older entry.
            if self.buffers.get(&client).and_then(Buffer::head) != Some(sent) {
                continue;
            }
            let next = self.heads.peek().map_or(NEVER, |head| head.0.0);
            self.take_run(client, next, into);
        }
        self.watermark
    }

    /// Clients that were set aside since this was last asked.
    pub fn take_stalled(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.stalled)
    }

    /// Clients that were set aside and have caught up since this was last asked. What
    /// they sent late has been handed out.
    pub fn take_returned(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.returned)
    }

    /// Clients of which nothing more is kept since this was last asked: they have ended, and
    /// everything of theirs was handed out.
    pub fn take_gone(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.gone)
    }

    /// What was wrong with the order of events. Whether they came late, and whether they
    /// fit their transactions, the verifier counts.
    pub fn disorder(&self) -> Disorder {
        self.disorder
    }

    /// Events that wait.
    pub fn buffered(&self) -> usize {
        self.buffered
    }

    /// Everything that was sent before this time has been handed out.
    pub fn watermark(&self) -> Time {
        self.watermark
    }
}

impl Pipeline {
    fn buffer(&mut self, client: ClientId) -> &mut Buffer {
        let new = || Buffer { bound: ALWAYS, ended: ALWAYS, ..Buffer::default() };
        self.buffers.entry(client.0).or_insert_with(new)
    }

    fn forget_if_done(&mut self, client: u32) {
        let is_done = |buffer: &Buffer| !buffer.is_open && buffer.waiting() == 0;
        if self.buffers.get(&client).is_some_and(is_done)
            && let Some(buffer) = self.buffers.remove(&client)
        {
            self.furthest = self.furthest.max(buffer.bound);
            self.gone.push(ClientId(client));
        }
    }

    fn push_event(&mut self, client: ClientId, event: Event, cells: &[Cell]) {
        let buffer = self.buffer(client);
        if buffer.is_repetition(&event, cells) {
            self.disorder.duplicates += 1;
            return;
        }
        if buffer.is_contradicted_by(&event) {
            self.disorder.backwards += 1;
            self.step_back(client, event.interval.invoked);
        }
        let Some(buffer) = self.buffers.get_mut(&client.0) else { return };
        buffer.last = Some(event);
        buffer.last_cells.clear();
        buffer.last_cells.extend_from_slice(cells);
        let mut event = event;
        if event.interval.completed < event.interval.invoked {
            self.disorder.inverted += 1;
            event.interval.completed = event.interval.invoked;
        }
        let Interval { invoked, completed } = event.interval;
        let answered = if completed == NEVER { invoked } else { completed };
        if event.kind.is_end() {
            buffer.ended = answered;
        }
        if buffer.last_ended.is_none_or(|last| last < event.txn) {
            let is_end = event.kind.is_end();
            buffer.last_ended = if is_end { Some(event.txn) } else { buffer.last_ended };
            buffer.unended = (!is_end).then_some((event.txn, answered));
        }
        buffer.bound = buffer.bound.max(invoked);
        buffer.stepped_from = buffer.stepped_from.filter(|&from| invoked <= from);
        if buffer.stepped_from.is_some() {
            self.disorder.unplaced += 1;
            event.interval = Interval::UNKNOWN;
        } else if completed != NEVER {
            event.interval.completed = completed.saturating_add(buffer.lag);
        }
        if buffer.waiting() == 0 {
            self.heads.push(Reverse((event.interval.invoked, client.0)));
        }
        let start = buffer.cells.len() as u32;
        buffer.cells.extend_from_slice(cells);
        event.cells = CellSpan { start, end: buffer.cells.len() as u32 };
        event.client = client;
        buffer.events.push(event);
        self.buffered += 1;
    }

    /// A clock was set back to `now`. Either it is behind from now on, or it was ahead before.
    fn step_back(&mut self, client: ClientId, now: Time) {
        let bounds = self.buffers.values().filter(|buffer| buffer.is_open);
        let foremost = bounds.map(|buffer| buffer.bound).max().unwrap_or(now);
        let Some(buffer) = self.buffers.get_mut(&client.0) else { return };
        let shown = buffer.last.map_or(now, |last| last.interval.invoked);
        let reached = buffer.bound.max(shown).max(buffer.ended);
        let lag = foremost.max(reached).saturating_sub(now);
        // One that is further behind is set aside for that.
        buffer.lag = buffer.lag.saturating_add(lag).min(self.options.stall_after);
        buffer.stepped_from = Some(buffer.stepped_from.map_or(reached, |from| from.max(reached)));
        buffer.bound = now;
        let mut unplaced = 0;
        for event in &mut buffer.events[buffer.taken..] {
            if event.interval.invoked > now {
                event.interval = Interval::UNKNOWN;
                unplaced += 1;
            }
        }
        self.disorder.unplaced += unplaced;
        if let Some(head) = buffer.head()
            && unplaced > 0
        {
            self.heads.push(Reverse((head, client.0)));
        }
    }

    /// Sets aside who stays behind and takes back who has caught up, and goes on.
    fn move_watermark(&mut self) {
        let open = || self.buffers.values().filter(|buffer| buffer.is_open);
        let Some(foremost) = open().map(|buffer| buffer.bound).max() else {
            // Everything leaves, but others may come whose events are of now.
            let bounds = self.buffers.values().map(|buffer| buffer.bound);
            let furthest = bounds.fold(self.furthest, Time::max);
            self.watermark = self.watermark.max(furthest.saturating_add(1));
            return;
        };
        if foremost == ALWAYS {
            return;
        }
        let limit = foremost.saturating_sub(self.options.stall_after);
        let (stalled, returned) = (self.stalled.len(), self.returned.len());
        for (&client, buffer) in &mut self.buffers {
            if !buffer.is_open {
                continue;
            }
            if buffer.is_aside {
                buffer.is_aside = buffer.bound < self.watermark;
                if !buffer.is_aside {
                    self.returned.push(ClientId(client));
                }
            } else if buffer.behind_since(foremost) < limit {
                buffer.is_aside = true;
                self.stalled.push(ClientId(client));
            }
        }
        self.stalled[stalled..].sort_unstable();
        self.returned[returned..].sort_unstable();
        self.raise_watermark();
    }

    /// To the least bound of those that are waited for. If all that are open have fallen
    /// behind, nothing says how far it goes.
    fn raise_watermark(&mut self) {
        let waited_for = self.buffers.values().filter(|buffer| buffer.is_open && !buffer.is_aside);
        if let Some(least) = waited_for.map(|buffer| buffer.bound).min() {
            self.watermark = self.watermark.max(least);
        }
    }

    /// Moves events of a client up to the head of the next one.
    fn take_run(&mut self, client: u32, next: Time, into: &mut Batch) {
        let Some(buffer) = self.buffers.get_mut(&client) else { return };
        let until = self.watermark;
        loop {
            let event = buffer.events[buffer.taken];
            let start = into.cells.len();
            into.cells.extend_from_slice(&buffer.cells[event.cells.range()]);
            into.push_with_cells_from(event, start);
            buffer.taken += 1;
            buffer.cells_taken = event.cells.end as usize;
            self.buffered -= 1;
            let Some(following) = buffer.events.get(buffer.taken) else { break };
            let sent = following.interval.invoked;
            if sent > next || sent >= until {
                self.heads.push(Reverse((sent, client)));
                break;
            }
        }
        buffer.compact();
        self.forget_if_done(client);
    }
}

impl Buffer {
    fn waiting(&self) -> usize {
        self.events.len() - self.taken
    }

    /// From where on it is behind the others, who are this far.
    fn behind_since(&mut self, foremost: Time) -> Time {
        match self.bound {
            ALWAYS => *self.waited_since.get_or_insert(foremost),
            bound => bound,
        }
    }

    /// When the first event that waits was sent.
    fn head(&self) -> Option<Time> {
        self.events.get(self.taken).map(|event| event.interval.invoked)
    }

    /// Whether the client sent the same event twice in a row. With a coarse clock, two
    /// requests may have the same times: only what is equal in everything is one event.
    fn is_repetition(&self, event: &Event, cells: &[Cell]) -> bool {
        let name = |event: &Event| (event.txn, event.kind, event.interval);
        self.last.is_some_and(|last| name(&last) == name(event)) && self.last_cells == cells
    }

    /// Whether an event cannot come after those before it, if its clock went on. Requests of
    /// a transaction may overlap, transactions do not.
    fn is_contradicted_by(&self, event: &Event) -> bool {
        let sent = event.interval.invoked;
        self.last.is_some_and(|last| {
            sent < last.interval.invoked || (last.txn != event.txn && sent < self.ended)
        })
    }

    /// Gives the room of taken events back when they are the larger part.
    fn compact(&mut self) {
        if self.taken * 2 < self.events.len() {
            return;
        }
        self.events.drain(..self.taken);
        self.cells.drain(..self.cells_taken);
        for event in &mut self.events {
            event.cells.start -= self.cells_taken as u32;
            event.cells.end -= self.cells_taken as u32;
        }
        (self.taken, self.cells_taken) = (0, 0);
    }
}

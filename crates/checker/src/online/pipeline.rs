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
//! Within a client the order of arrival counts. A clock that steps backwards changes the
//! times of events and not their order; each such event is counted.

use super::counters::Disorder;
use super::trace::{
    ALWAYS, Batch, Cell, CellSpan, ClientId, Event, EventKind, Interval, NEVER, Time,
};
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
    /// How far the others were when this one was first waited for: it is behind from there
    /// on, whatever it has said. Not known until somebody has said something.
    waited_since: Option<Time>,
    /// The transaction that has no end yet, and when its last event was answered.
    unended: Option<(u64, Time)>,
    last: Option<Event>,
    is_open: bool,
    is_aside: bool,
}

/// See the module's documentation.
pub struct Pipeline {
    options: PipelineOptions,
    buffers: Vec<Buffer>,
    /// Heads of buffers: when sent, whose.
    heads: BinaryHeap<Reverse<(Time, u32)>>,
    watermark: Time,
    disorder: Disorder,
    stalled: Vec<ClientId>,
    returned: Vec<ClientId>,
    buffered: usize,
}

impl Pipeline {
    /// One without clients.
    pub fn new(options: PipelineOptions) -> Pipeline {
        Pipeline {
            options,
            buffers: Vec::new(),
            heads: BinaryHeap::new(),
            watermark: ALWAYS,
            disorder: Disorder::default(),
            stalled: Vec::new(),
            returned: Vec::new(),
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
    }

    /// Whether a client may send more.
    pub fn room(&self, client: ClientId) -> Room {
        let waiting = self.buffers.get(client.index()).map_or(0, Buffer::waiting);
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
        if self.buffers.len() <= client.index() {
            self.buffers
                .resize_with(client.index() + 1, || Buffer { bound: ALWAYS, ..Buffer::default() });
        }
        &mut self.buffers[client.index()]
    }

    fn push_event(&mut self, client: ClientId, event: Event, cells: &[Cell]) {
        let buffer = &mut self.buffers[client.index()];
        if buffer.last.is_some_and(|last| is_repeated(&last, &event)) {
            self.disorder.duplicates += 1;
            return;
        }
        let mut event = event;
        if event.interval.completed < event.interval.invoked {
            self.disorder.inverted += 1;
            event.interval.completed = event.interval.invoked;
        }
        let sent = event.interval.invoked;
        if buffer.last.is_some_and(|last| sent < last.interval.invoked) {
            self.disorder.backwards += 1;
        }
        buffer.last = Some(event);
        buffer.unended =
            (!event.kind.is_end()).then_some((event.txn, event.interval.completed.max(sent)));
        let is_head = buffer.waiting() == 0;
        buffer.bound = buffer.bound.max(sent);
        if is_head {
            self.heads.push(Reverse((sent, client.0)));
        }
        let start = buffer.cells.len() as u32;
        buffer.cells.extend_from_slice(cells);
        event.cells = CellSpan { start, end: buffer.cells.len() as u32 };
        event.client = client;
        buffer.events.push(event);
        self.buffered += 1;
    }

    /// The least bound of all clients that count.
    fn move_watermark(&mut self) {
        let open = || self.buffers.iter().filter(|buffer| buffer.is_open);
        let Some(foremost) = open().map(|buffer| buffer.bound).max() else {
            // Everything leaves, but others may come whose events are of now.
            let bounds = self.buffers.iter().map(|buffer| buffer.bound.saturating_add(1));
            self.watermark = bounds.fold(self.watermark, Time::max);
            return;
        };
        if foremost == ALWAYS {
            return;
        }
        let limit = foremost.saturating_sub(self.options.stall_after);
        let mut least = NEVER;
        for (client, buffer) in self.buffers.iter_mut().enumerate() {
            if !buffer.is_open {
                continue;
            }
            if buffer.is_aside {
                buffer.is_aside = buffer.bound < self.watermark;
                if !buffer.is_aside {
                    self.returned.push(ClientId(client as u32));
                }
            } else if buffer.bound.max(*buffer.waited_since.get_or_insert(foremost)) < limit {
                buffer.is_aside = true;
                self.stalled.push(ClientId(client as u32));
            }
            if !buffer.is_aside {
                least = least.min(buffer.bound);
            }
        }
        // If all that are open have fallen behind, nothing says how far it goes.
        if least != NEVER {
            self.watermark = self.watermark.max(least);
        }
    }

    /// Moves events of a client up to the head of the next one.
    fn take_run(&mut self, client: u32, next: Time, into: &mut Batch) {
        let buffer = &mut self.buffers[client as usize];
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
    }
}

impl Buffer {
    fn waiting(&self) -> usize {
        self.events.len() - self.taken
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

/// Whether a client sent the same event twice in a row.
fn is_repeated(last: &Event, event: &Event) -> bool {
    (last.txn, last.kind, last.interval.invoked) == (event.txn, event.kind, event.interval.invoked)
}

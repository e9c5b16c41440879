//! Where clients leave their events, and from where the watch takes them.
//!
//! Every client has an inbox of its own: a client and the watch share nothing but that, and
//! the watch holds it only as long as it takes to put an empty batch in the place of a full
//! one. Beside it stands a *bound*: nothing that the client has not left yet was sent before it.
//!
//! Invariant: a client leaves events before it raises the bound, and the watch looks at the
//! bound before it takes events. So what the watch has not seen was sent after the bound it saw.

use super::narrative::clean;
use super::now::now;
use crate::heap;
use isolde::online::{Batch, Catalogue, Cell, ClientId, Event, NEVER, Time};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Events that wait, in all inboxes and behind them, before clients are held back.
const WAITING_MAX: usize = 1 << 19;
/// The same while memory is short.
const WAITING_MAX_IF_SHORT: usize = 1 << 13;
/// Events that may wait in inboxes until the watch looks: more would only take memory. What it
/// takes from there and cannot verify yet, because something is still to come, is not among
/// them.
const LEFT_MAX: usize = 1 << 15;
/// How long the watch may be busy with what it has before clients are held back, so that it
/// is never much further behind than that.
const BUSY_MAX: Duration = Duration::from_millis(300);
/// Bytes of messages that are not whole, in all connections: so many may always be there, and no
/// more than so many.
const UNFINISHED_MIN: usize = 4 << 20;
const UNFINISHED_MAX: usize = 64 << 20;
/// Messages about streams that wait to be told.
const COMPLAINTS_MAX: usize = 100;
/// Texts of contents that are remembered for messages.
const CONTENTS_MAX: usize = 1 << 16;
/// Names of clients that have ended, and may still be told of.
const ENDED_NAMES_MAX: usize = 1 << 14;
/// How often a client that is held back looks again.
const LOOK: Duration = Duration::from_micros(500);

/// The client that is no client: the watch itself, whose bound holds the watermark back.
pub(super) const KEEPER: ClientId = ClientId(0);

/// All inboxes, and what clients share.
pub(super) struct Hub {
    catalogue: Mutex<Catalogue>,
    clients: Mutex<Clients>,
    /// Events in inboxes, and events that were taken from them and not verified yet.
    left: AtomicUsize,
    behind: AtomicUsize,
    /// Messages that could not be read, and streams that ended with them.
    pub(super) malformed: AtomicU64,
    /// Connections that were turned away: wrong tokens, too many.
    pub(super) refused: AtomicU64,
    /// Answers that tell too little to be judged.
    pub(super) untold: AtomicU64,
    /// Rows of a history that a read did not find, and that are not checked.
    pub(super) absences: AtomicU64,
    /// Times that a client was held back.
    pub(super) held_back: AtomicU64,
    /// Operations by condition, which the complete checker does not get.
    pub(super) conditions: AtomicU64,
    /// Events that came again after a connection was cut.
    pub(super) sent_again: AtomicU64,
    /// Cells of rows for which there was no memory.
    pub(super) unseen: AtomicU64,
    /// Bytes of messages that are not whole, in all connections.
    pub(super) unfinished: AtomicUsize,
    /// Bytes that the process may use.
    memory_max: Option<usize>,
    /// Why streams were ended, until that is told.
    complaints: Mutex<Vec<String>>,
    is_memory_short: AtomicBool,
    started: Instant,
    /// Milliseconds after the start since which the watch is busy; 0 if it is not.
    busy_since: AtomicU64,
}

#[derive(Default)]
struct Clients {
    /// How many there were, with the watch itself.
    count: u32,
    names: HashMap<u32, String>,
    /// Those that have ended, oldest first; stories may still tell of the last of them.
    ended: VecDeque<u32>,
    open: Vec<Arc<Inbox>>,
}

/// What one client has left.
pub(super) struct Inbox {
    pub(super) id: ClientId,
    bound: AtomicI64,
    state: AtomicUsize,
    queue: Mutex<Batch>,
}

/// How far a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// More may come.
    Open,
    /// It ended as it should.
    Closed,
    /// It ended within a transaction, of which nobody knows whether it committed. Nothing else
    /// of it is missing: what it writes is sent before its commit.
    Lost,
    /// It goes on, but nobody looks on any more: what it did then is missing.
    CutOff,
    /// It ended, and some of what it did is missing.
    Broken,
}

const STATES: [State; 5] = [State::Open, State::Closed, State::Lost, State::CutOff, State::Broken];

impl Hub {
    /// One whose process may use so many bytes.
    pub(super) fn new(memory_max: Option<usize>) -> Hub {
        let names = HashMap::from([(KEEPER.0, "the watch".into())]);
        let clients = Clients { count: 1, names, ..Clients::default() };
        Hub {
            catalogue: Mutex::new(Catalogue::new(CONTENTS_MAX)),
            clients: Mutex::new(clients),
            left: AtomicUsize::new(0),
            behind: AtomicUsize::new(0),
            malformed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            untold: AtomicU64::new(0),
            absences: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
            conditions: AtomicU64::new(0),
            sent_again: AtomicU64::new(0),
            unseen: AtomicU64::new(0),
            unfinished: AtomicUsize::new(0),
            memory_max,
            complaints: Mutex::default(),
            is_memory_short: AtomicBool::new(false),
            started: now(),
            busy_since: AtomicU64::new(0),
        }
    }

    /// Names and ids.
    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock().expect("nobody panics while naming")
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().expect("nobody panics while counting clients")
    }

    /// A new client, which sends nothing from before this time.
    pub(super) fn open(self: &Arc<Self>, name: &str, from: Time) -> Producer {
        let mut clients = self.clients();
        let id = ClientId(clients.count);
        clients.count += 1;
        clients.names.insert(id.0, clean(name));
        let inbox = Arc::new(Inbox {
            id,
            bound: AtomicI64::new(from),
            state: AtomicUsize::new(0),
            queue: Mutex::default(),
        });
        clients.open.push(Arc::clone(&inbox));
        Producer { hub: Arc::clone(self), inbox, pending: Batch::default() }
    }

    /// What messages call a client.
    pub(super) fn name(&self, client: ClientId) -> String {
        let known = self.clients().names.get(&client.0).cloned();
        known.unwrap_or_else(|| format!("client {}", client.0))
    }

    /// How many clients there were, and how many are open.
    pub(super) fn counts(&self) -> (usize, usize) {
        let clients = self.clients();
        (clients.count as usize - 1, clients.open.len())
    }

    /// The inboxes of clients that were open when this was last asked, or are now.
    pub(super) fn inboxes(&self) -> Vec<Arc<Inbox>> {
        self.clients().open.clone()
    }

    /// Nothing more comes of this client: its name is forgotten after those of many others.
    pub(super) fn release_name(&self, client: ClientId) {
        let mut clients = self.clients();
        clients.ended.push_back(client.0);
        if clients.ended.len() > ENDED_NAMES_MAX
            && let Some(oldest) = clients.ended.pop_front()
        {
            clients.names.remove(&oldest);
        }
    }

    /// This client is done with.
    pub(super) fn forget(&self, client: ClientId) {
        self.clients().open.retain(|inbox| inbox.id != client);
    }

    /// So many events were taken from inboxes and are not verified.
    pub(super) fn behind(&self, count: usize) {
        self.behind.store(count, Ordering::Relaxed);
    }

    /// Whether so much waits, or for so long, that clients are held back.
    pub(super) fn is_full(&self) -> bool {
        let waiting = self.left.load(Ordering::Relaxed) + self.behind.load(Ordering::Relaxed);
        let is_short = self.is_memory_short.load(Ordering::Relaxed);
        waiting >= if is_short { WAITING_MAX_IF_SHORT } else { self.waiting_max() }
            || self.is_busy()
    }

    /// What waits may name rows that nobody has seen yet, and so takes some hundred bytes each.
    fn waiting_max(&self) -> usize {
        let most = self.memory_max.map_or(WAITING_MAX, |bytes| bytes >> 11);
        most.clamp(WAITING_MAX_IF_SHORT, WAITING_MAX)
    }

    /// How many bytes of messages may not be whole.
    pub(super) fn unfinished_max(&self) -> usize {
        let most = self.memory_max.map_or(UNFINISHED_MAX, |bytes| bytes / 8);
        most.clamp(UNFINISHED_MIN, UNFINISHED_MAX)
    }

    /// Looks whether the memory is full as far as it may be: tables grow by doubling, and the
    /// largest must still have room to.
    pub(super) fn watch_memory(&self) {
        let Some(max) = self.memory_max else { return };
        if heap::in_use() > max / 8 * 5 && !self.is_memory_short() {
            self.save_memory();
        }
    }

    /// Whether rows that were not named before are left out.
    pub(super) fn is_memory_short(&self) -> bool {
        self.is_memory_short.load(Ordering::Relaxed)
    }

    fn is_busy(&self) -> bool {
        let since = self.busy_since.load(Ordering::Relaxed);
        since != 0 && now() - self.started > Duration::from_millis(since) + BUSY_MAX
    }

    /// The watch does this before it looks at anything else.
    pub(super) fn while_busy<T>(&self, work: impl FnOnce() -> T) -> T {
        let since = u64::try_from((now() - self.started).as_millis()).unwrap_or(u64::MAX);
        self.busy_since.store(since.max(1), Ordering::Relaxed);
        let done = work();
        self.busy_since.store(0, Ordering::Relaxed);
        done
    }

    /// Rows that were not named before are left out from now on, and less may wait.
    fn save_memory(&self) {
        self.is_memory_short.store(true, Ordering::Relaxed);
        self.catalogue().refuse_new();
    }

    /// Says why a stream was ended.
    pub(super) fn complain(&self, message: &str) {
        let mut complaints = self.complaints.lock().expect("nobody panics while complaining");
        if complaints.len() < COMPLAINTS_MAX {
            complaints.push(clean(message));
        }
    }

    /// What was said since this was last asked.
    pub(super) fn take_complaints(&self) -> Vec<String> {
        std::mem::take(&mut self.complaints.lock().expect("nobody panics while complaining"))
    }

    /// Puts the events of an inbox into `batch`, which is empty.
    pub(super) fn take(&self, inbox: &Inbox, batch: &mut Batch) {
        let mut queue = inbox.queue.lock().expect("nobody panics while copying");
        std::mem::swap(&mut *queue, batch);
        drop(queue);
        self.left.fetch_sub(batch.events.len(), Ordering::Relaxed);
    }

    /// Waits until there is room, or until nobody wants more.
    pub(super) fn wait_for_room(&self, is_over: &AtomicBool) {
        if self.is_full() {
            self.held_back.fetch_add(1, Ordering::Relaxed);
        }
        while (self.is_full() || self.has_enough()) && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the watch has enough to do when it looks next.
    fn has_enough(&self) -> bool {
        self.left.load(Ordering::Relaxed) >= LEFT_MAX
    }
}

impl Inbox {
    /// Nothing that was not left yet was sent before this. To be asked before [`Hub::take`].
    pub(super) fn bound(&self) -> Time {
        self.bound.load(Ordering::Acquire)
    }

    /// To be asked before [`Hub::take`], too: what came last is in it then.
    pub(super) fn state(&self) -> State {
        STATES[self.state.load(Ordering::Acquire)]
    }
}

/// The side of an inbox on which events are left. When it is dropped, the client is gone.
pub(super) struct Producer {
    hub: Arc<Hub>,
    inbox: Arc<Inbox>,
    pending: Batch,
}

impl Producer {
    pub(super) fn id(&self) -> ClientId {
        self.inbox.id
    }

    pub(super) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Events that were not left yet.
    pub(super) fn pending(&self) -> &[Event] {
        &self.pending.events
    }

    /// Adds an event with these cells, to be left later.
    pub(super) fn push(&mut self, event: Event, cells: &[Cell]) {
        self.pending.push(event, cells);
    }

    /// Leaves everything. What follows is sent later than `bound`.
    pub(super) fn publish(&mut self, bound: Time) {
        if !self.pending.events.is_empty() {
            self.hub.left.fetch_add(self.pending.events.len(), Ordering::Relaxed);
            let mut queue = self.inbox.queue.lock().expect("nobody panics while copying");
            if queue.events.is_empty() {
                std::mem::swap(&mut *queue, &mut self.pending);
            } else {
                for event in &self.pending.events {
                    queue.push(*event, self.pending.cells_of(event));
                }
            }
            drop(queue);
            self.pending.clear();
        }
        if bound != NEVER {
            self.inbox.bound.fetch_max(bound, Ordering::AcqRel);
        }
    }

    /// Ends the client.
    pub(super) fn close(&mut self, state: State) {
        let bound = self.inbox.bound();
        self.publish(bound);
        let place = STATES.iter().position(|&known| known == state).expect("a known state");
        self.inbox.state.store(place, Ordering::Release);
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        if self.inbox.state() == State::Open {
            self.close(State::Closed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::online::{CellSpan, EventKind, Interval};

    #[test]
    fn what_is_left_is_taken_once_with_a_bound_that_holds() {
        let hub = Arc::new(Hub::new(None));
        let mut producer = hub.open("a\nb", 5);
        let event = |invoked| {
            let interval = Interval { invoked, completed: invoked + 1 };
            let (client, kind) = (producer_id(&hub), EventKind::Begin);
            Event { client, txn: 1, interval, kind, cells: CellSpan::NONE }
        };
        let (first, second) = (event(10), event(20));
        producer.push(first, &[]);
        producer.publish(11);
        producer.push(second, &[]);
        producer.publish(7);
        let inbox = Arc::clone(&hub.inboxes()[0]);
        assert_eq!((inbox.bound(), inbox.state()), (11, State::Open));
        let mut batch = Batch::default();
        hub.take(&inbox, &mut batch);
        assert_eq!(batch.events, [first, second]);
        batch.clear();
        hub.take(&inbox, &mut batch);
        assert_eq!(batch, Batch::default());
        drop(producer);
        assert_eq!((inbox.state(), hub.counts()), (State::Closed, (1, 1)));
        hub.forget(inbox.id);
        assert_eq!((hub.name(inbox.id), hub.counts()), ("a\u{fffd}b".into(), (1, 0)));
    }

    fn producer_id(hub: &Hub) -> ClientId {
        hub.inboxes()[0].id
    }
}

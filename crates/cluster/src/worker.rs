//! What every worker does: it looks at its pieces, hands their transactions out, joins what it
//! gets, looks for cycles in windows, and hears what the others found.

use crate::access::{Access, Model, Name, Odd, Stamp, accesses};
use crate::cycle;
use crate::event::{Dependency, Event, TxnNumber};
use crate::key::{Key, Teller, Told};
use crate::options::Options;
use crate::parts::{Loaded, Pieces, completion, own_places};
use crate::session::Session;
use crate::share::share;
use crate::survey::{Counted, Survey};
use crate::windows::{SPANS_APART, SPANS_WHOLE, Windows};
use hashbrown::{HashMap, HashSet};
use isolde_history::{Outcome, Time};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::Discriminant;
use std::rc::Rc;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::{Input, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

/// A worker keeps so many findings of each sort; more of them say nothing new.
const FINDINGS_MAX: usize = 16;
/// Transactions handed out between two steps of the dataflow.
const STEP: usize = 1 << 10;

/// What shows that a level may not hold, or why it is not decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Finding {
    /// Dependencies and real time lead from each event to the next, and from the last to the
    /// first.
    Cycle(Vec<Event>),
    /// No order of versions explains what these did.
    Suspect(Vec<TxnNumber>),
    /// Two transactions wrote the same value, or one what a key started with.
    Repeated(Vec<TxnNumber>),
    /// A key is a list for one and a register for another.
    Mixed(TxnNumber),
    /// A dependency came after its window was decided.
    Late,
    /// A part could not be read.
    Unread(String),
    /// There was no more memory.
    Memory,
}

#[derive(Clone, Serialize, Deserialize)]
enum Message {
    Access(Access),
    Session(u64, Stamp),
}

impl Message {
    /// The last ones to complete come first, whoever sent them.
    fn place(&self) -> (Reverse<Time>, TxnNumber) {
        let (Message::Access(Access { stamp, .. }) | Message::Session(_, stamp)) = self;
        (Reverse(stamp.completed()), stamp.txn)
    }

    fn route(&self) -> u64 {
        let mix = |it: u64| it.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        match self {
            Message::Access(it) => mix((it.key >> 64) as u64 ^ it.key as u64),
            Message::Session(session, _) => mix(*session),
        }
    }
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Item {
    Event(Event),
    Edge(Dependency),
}

/// How time is cut, the same for all workers.
#[derive(Clone, Copy)]
struct Cut {
    model: Model,
    windows: Windows,
    /// When the last transaction completed.
    last: Time,
    /// How much time is one step of the dataflow.
    step: u64,
    /// No dependency is told later than so much before its events.
    delay: u64,
}

impl Cut {
    fn new(survey: &Survey, model: Model, txns_in_window: u64) -> Cut {
        let (first, last) = survey.times.unwrap_or((0, 0));
        let span = last.abs_diff(first);
        let (longest, spans) = match model {
            Model::Whole => (survey.longest.0, SPANS_WHOLE),
            Model::Apart => (survey.longest_event, SPANS_APART),
        };
        let overlap = longest.saturating_mul(u64::from(spans)).min(span);
        let share = u128::from(span) * u128::from(txns_in_window) / u128::from(survey.txns.max(1));
        let step = u64::try_from(share).unwrap_or(u64::MAX).max(overlap).max(1);
        let windows = Windows::new(first, overlap, step);
        let delay = survey.longest.0.saturating_mul(4);
        Cut { model, windows, last, step, delay }
    }

    fn epoch(&self, completed: Time) -> u64 {
        self.last.abs_diff(completed.min(self.last)) / self.step
    }

    /// What comes in this epoch or later completed before this time.
    fn watermark(&self, epoch: u64) -> Time {
        let since = i128::from(epoch) * i128::from(self.step);
        Time::try_from(i128::from(self.last) - since + 1).unwrap_or(Time::MIN)
    }

    /// Whether nothing more comes for a window once this epoch has begun.
    fn is_over(&self, window: u64, epoch: u64) -> bool {
        let start = i128::from(self.windows.start(window)) - i128::from(self.delay);
        i128::from(self.watermark(epoch)) <= start
    }
}

/// Findings of a worker, the first few of each sort: the same ones, whoever found them and when.
#[derive(Clone, Default)]
struct Findings(Rc<RefCell<BySort>>);

type BySort = HashMap<Discriminant<Finding>, BTreeSet<Finding>>;

impl Findings {
    fn push(&self, finding: Finding) {
        let mut all = self.0.borrow_mut();
        let same = all.entry(std::mem::discriminant(&finding)).or_default();
        same.insert(finding);
        if same.len() > FINDINGS_MAX {
            same.pop_last();
        }
    }

    fn all(&self) -> Vec<Finding> {
        self.0.borrow().values().flatten().cloned().collect()
    }
}

/// Verifies a level, and tells what all workers found, in one order.
pub(crate) fn verify(
    worker: &mut Worker,
    pieces: &Pieces,
    (survey, counted): (&Survey, &[Counted]),
    model: Model,
    options: &Options,
) -> Vec<Finding> {
    let cut = Cut::new(survey, model, options.window);
    let drift = options.clock_drift;
    let findings = Findings::default();
    let (mut input, probe) = flow(worker, cut, &findings);
    let mut hand = Hand { cut, findings: findings.clone(), drift, sent: 0 };
    hand.out(worker, pieces, counted, (&mut input, &probe), options.is_full);
    drop(input);
    while worker.has_dataflows() {
        worker.step_or_park(Some(Duration::from_millis(100)));
    }
    let first = Findings::default();
    for finding in share(worker, findings.all()) {
        first.push(finding);
    }
    let mut all = first.all();
    all.sort();
    all
}

type MessageInput = InputHandle<u64, CapacityContainerBuilder<Vec<Message>>>;

/// Exchange by key and session, join, exchange by window, cycles.
fn flow(worker: &mut Worker, cut: Cut, findings: &Findings) -> (MessageInput, ProbeHandle<u64>) {
    let (found_joining, found_in_windows) = (findings.clone(), findings.clone());
    worker.dataflow::<u64, _, _>(|scope| {
        let (input, messages) = scope.new_input::<Vec<Message>>();
        let probe = ProbeHandle::new();
        let by_key = Exchange::new(Message::route);
        let items = messages.unary_frontier::<CapacityContainerBuilder<Vec<(u64, Item)>>, _, _, _>(
            by_key,
            "join",
            move |capability, _| {
                let mut capability = Some(capability);
                let mut waiting: BTreeMap<u64, Vec<Message>> = BTreeMap::new();
                let mut join = Join::new(cut, found_joining);
                move |(input, frontier), output| {
                    input.for_each(|time, data| {
                        waiting.entry(*time.time()).or_default().append(data);
                    });
                    let Some(held) = &mut capability else { return };
                    let next = frontier.frontier().first().copied();
                    join.advance(next, &mut waiting);
                    if !join.items.is_empty() {
                        let mut session = output.session(&*held);
                        session.give_iterator(join.items.drain(..));
                    }
                    match next {
                        Some(next) => held.downgrade(&next),
                        None => capability = None,
                    }
                }
            },
        );
        let items = items.probe_with(&probe);
        let by_window = Exchange::new(|it: &(u64, Item)| it.0);
        items.sink(by_window, "cycles", {
            let mut open = Open::new(cut, found_in_windows);
            move |(input, frontier)| {
                input.for_each(|_, data| {
                    for (window, item) in data.drain(..) {
                        open.take(window, item);
                    }
                });
                open.decide(frontier.frontier().first().copied());
            }
        });
        (input, probe)
    })
}

/// Keys and sessions of a worker.
struct Join {
    cut: Cut,
    findings: Findings,
    keys: HashMap<Name, Key>,
    sessions: HashMap<u64, Session>,
    /// Keys that wait for time to pass.
    open: HashSet<Name>,
    /// Sessions that something came of.
    touched: HashSet<u64>,
    next: u64,
    told: Vec<Told>,
    items: Vec<(u64, Item)>,
}

impl Join {
    fn new(cut: Cut, findings: Findings) -> Join {
        Join {
            cut,
            findings,
            keys: HashMap::new(),
            sessions: HashMap::new(),
            open: HashSet::new(),
            touched: HashSet::new(),
            next: 0,
            told: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Takes all epochs before this one, one after the other, so that what is found does not
    /// depend on when the frontier moves.
    fn advance(&mut self, until: Option<u64>, waiting: &mut BTreeMap<u64, Vec<Message>>) {
        while until.is_none_or(|until| self.next < until) {
            let first = waiting.first_key_value().map(|it| *it.0);
            match first {
                Some(first) if first <= self.next => {
                    let (_, mut messages) = waiting.pop_first().expect("it is there");
                    messages.sort_by_key(Message::place);
                    for message in messages {
                        self.take(message);
                    }
                }
                // Nothing comes and nothing waits for time to pass.
                _ if self.open.is_empty() || (first.is_none() && until.is_none()) => {
                    match (first, until) {
                        (None, None) => break,
                        (first, until) => {
                            let next = first.into_iter().chain(until).min();
                            self.next = next.expect("one of them is there");
                            continue;
                        }
                    }
                }
                _ => {}
            }
            self.next += 1;
            self.settle();
        }
        if until.is_none() {
            let (model, told) = (self.cut.model, &mut self.told);
            for key in self.keys.values_mut() {
                key.finish(&mut Teller { model, told });
            }
            self.keys.clear();
            self.pass_on();
        }
    }

    fn take(&mut self, message: Message) {
        let mut teller = Teller { model: self.cut.model, told: &mut self.told };
        match message {
            Message::Access(Access { key, stamp, what }) => {
                self.keys.entry(key).or_default().take(stamp, &what, &mut teller);
                self.open.insert(key);
            }
            Message::Session(session, stamp) => {
                self.sessions.entry(session).or_default().take(stamp, &mut teller);
                self.touched.insert(session);
                self.place_events(&stamp);
            }
        }
    }

    /// Where begins and commits are told apart, a commit may connect two begins by real time
    /// alone, and a begin comes before its commit.
    fn place_events(&mut self, stamp: &Stamp) {
        if self.cut.model == Model::Whole {
            return;
        }
        let (begin, commit) = (self.cut.model.begin(stamp), self.cut.model.commit(stamp));
        for event in [begin, commit] {
            for window in self.cut.windows.containing(event.invoked, event.completed) {
                self.items.push((window, Item::Event(event)));
            }
        }
        self.place(Dependency { from: begin, to: commit });
    }

    fn place(&mut self, edge: Dependency) {
        if edge.is_backward() {
            self.findings.push(Finding::Cycle(vec![edge.from, edge.to]));
        } else if !edge.is_implied() {
            let low = edge.from.invoked.min(edge.to.invoked);
            let high = edge.from.completed.max(edge.to.completed);
            for window in self.cut.windows.containing(low, high) {
                self.items.push((window, Item::Edge(edge)));
            }
        }
    }

    fn settle(&mut self) {
        let watermark = self.cut.watermark(self.next);
        let (model, told) = (self.cut.model, &mut self.told);
        let keys = &mut self.keys;
        self.open.retain(|name| {
            let Some(key) = keys.get_mut(name) else { return false };
            key.settle(watermark, &mut Teller { model, told });
            if key.is_empty() {
                keys.remove(name);
                return false;
            }
            key.is_open()
        });
        for session in self.touched.drain() {
            if let Some(session) = self.sessions.get_mut(&session) {
                session.forget(watermark);
            }
        }
        self.pass_on();
    }

    fn pass_on(&mut self) {
        for told in std::mem::take(&mut self.told) {
            match told {
                Told::Edge(edge) => self.place(edge),
                Told::Suspect(txns) => self.findings.push(Finding::Suspect(txns)),
                Told::Repeated(txns) => self.findings.push(Finding::Repeated(txns.to_vec())),
                Told::Mixed(txn) => self.findings.push(Finding::Mixed(txn)),
            }
        }
    }
}

/// Windows that are not decided yet.
struct Open {
    cut: Cut,
    findings: Findings,
    windows: BTreeMap<u64, (Vec<Event>, Vec<Dependency>)>,
    /// Windows from this one on are decided.
    decided_from: u64,
}

impl Open {
    fn new(cut: Cut, findings: Findings) -> Open {
        Open { cut, findings, windows: BTreeMap::new(), decided_from: u64::MAX }
    }

    fn take(&mut self, window: u64, item: Item) {
        if window >= self.decided_from {
            self.findings.push(Finding::Late);
            return;
        }
        let (events, edges) = self.windows.entry(window).or_default();
        match item {
            Item::Event(event) => events.push(event),
            Item::Edge(edge) => edges.push(edge),
        }
    }

    /// Decides the windows that nothing more comes for.
    fn decide(&mut self, epoch: Option<u64>) {
        while let Some(entry) = self.windows.last_entry() {
            let window = *entry.key();
            if epoch.is_some_and(|epoch| !self.cut.is_over(window, epoch)) {
                return;
            }
            let (events, mut edges) = entry.remove();
            self.decided_from = window;
            edges.sort_unstable();
            edges.dedup();
            if edges.is_empty() {
                continue;
            }
            if let Some(cycle) = cycle::shortest(&events, &edges) {
                self.findings.push(Finding::Cycle(cycle));
            }
        }
    }
}

/// Hands a worker's transactions out, the last ones first.
struct Hand {
    cut: Cut,
    findings: Findings,
    drift: Time,
    sent: usize,
}

/// A piece, and how far it is handed out.
struct Cursor {
    loaded: Loaded,
    next: usize,
}

impl Hand {
    fn out(
        &mut self,
        worker: &mut Worker,
        pieces: &Pieces,
        counted: &[Counted],
        (input, probe): (&mut MessageInput, &ProbeHandle<u64>),
        is_full: fn() -> bool,
    ) {
        let mut places = own_places(worker, pieces).peekable();
        let mut cursors: Vec<Cursor> = Vec::new();
        let mut counted = counted.iter().peekable();
        loop {
            cursors.retain_mut(Cursor::skip);
            let best = cursors.iter().map(|it| it.completed(self.drift)).max();
            let last_counted = counted.peek().map(|it| it.stamp.completed());
            if let Some(&place) = places.peek() {
                let to_come = pieces.completed(place).saturating_add(self.drift);
                if best.max(last_counted).is_none_or(|best| best <= to_come) {
                    places.next();
                    self.wait(worker, (pieces, place), probe);
                    match pieces.load(place) {
                        Ok(loaded) => cursors.push(Cursor { loaded, next: 0 }),
                        Err(error) => return self.findings.push(Finding::Unread(error)),
                    }
                    continue;
                }
            }
            if last_counted.is_some() && last_counted >= best {
                let it = counted.next().expect("it was seen");
                self.advance(input, it.stamp.completed());
                input.send(Message::Session(it.session, it.stamp));
                it.accesses.iter().for_each(|it| input.send(Message::Access(it.clone())));
            } else if let Some(best) = best {
                let at = cursors.iter_mut().find(|it| it.completed(self.drift) == best);
                self.advance(input, best);
                self.send(at.expect("the best is one of them"), input);
            } else {
                return;
            }
            self.sent += 1;
            if self.sent.is_multiple_of(STEP) {
                worker.step();
                if is_full() {
                    return self.findings.push(Finding::Memory);
                }
            }
        }
    }

    /// Lets the others keep up: a piece is handed out once the one before the last of each
    /// worker is through.
    fn wait(
        &self,
        worker: &mut Worker,
        (pieces, place): (&Pieces, usize),
        probe: &ProbeHandle<u64>,
    ) {
        let Some(before) = place.checked_sub(2 * worker.peers()) else { return };
        let epoch = self.cut.epoch(pieces.completed(before).saturating_add(self.drift));
        while probe.less_than(&epoch) {
            worker.step_or_park(Some(Duration::from_millis(10)));
        }
    }

    fn advance(&self, input: &mut MessageInput, completed: Time) {
        let epoch = self.cut.epoch(completed);
        if *input.time() < epoch {
            input.advance_to(epoch);
        }
    }

    fn send(&self, at: &mut Cursor, input: &mut MessageInput) {
        let txn = at.loaded.txns[at.next];
        at.next += 1;
        let history = &*at.loaded.history;
        let number = at.loaded.number(txn);
        let Some(stamp) = Stamp::new(history, txn, number, self.drift) else { return };
        input.send(Message::Session(u64::from(history.session_of(txn).0), stamp));
        let told = accesses(history, txn, stamp, |it| input.send(Message::Access(it)));
        match told {
            Ok(()) => {}
            Err(Odd::Contradicts) => self.findings.push(Finding::Suspect(vec![number])),
            Err(Odd::WritesInitial) => {
                self.findings.push(Finding::Repeated(vec![number]));
            }
        }
    }
}

impl Cursor {
    /// Goes on to the next transaction that is known to have committed, if there is one.
    fn skip(&mut self) -> bool {
        let Loaded { history, txns, .. } = &self.loaded;
        while let Some(&txn) = txns.get(self.next) {
            if history.outcome(txn) == Outcome::Committed {
                return true;
            }
            self.next += 1;
        }
        false
    }

    fn completed(&self, drift: Time) -> Time {
        let txn = self.loaded.txns[self.next];
        completion(&self.loaded.history, txn).saturating_add(drift)
    }
}

//! The complete checker while a database runs: finished parts are decided round by round.
//!
//! **Method.** An instant at which no transaction is open is a *cut*: everything before it
//! precedes everything after it in real time. What lies between two cuts is an epoch. For
//! levels of real time, all that later epochs can see of an earlier one is the last version
//! of each key. Where that is known the epoch is replaced by one transaction that writes
//! these versions, or, if nothing older is kept, by initial values. An epoch in which the
//! last version of some key may be one of several is kept until somebody reads or writes the
//! key, and is decided together with what follows.
//!
//! **What that gives.** With cuts alone, all rounds together have the verdict of the whole
//! history, for strict serializability and strong snapshot isolation; a test compares them.
//! Hence a history that satisfies the first is serializable, and one that satisfies the second
//! has snapshot isolation. Values have to be unique, else the engine may not decide.
//!
//! If there is no cut for too long, one is forced: the newest transactions are kept, older
//! ones are forgotten, and so are the last versions. What is found then is still a
//! violation, but one that spans the cut may be missed, and this is counted.
//!
//! A transaction of unknown outcome never completes. It makes no difference before somebody
//! reads from it, so it is no obstacle to a cut, and is carried along until then. It may have
//! taken effect before the cut, and the rest of it been overwritten there, so each of its
//! writes is carried by itself; that its reads and its other writes fit is not judged then, and
//! this is counted, too.

mod epoch;

use super::trace::{Batch, Cell, Content, Event, EventKind, NEVER, Time};
use crate::check::{Check, Limits};
use crate::level::Level;
use crate::verdict::Verdict;
use epoch::{Epoch, RoundOp, RoundTxn, Summary};
use hashbrown::{HashMap, HashSet};
use isolde_history::{
    History, HistoryBuilder, Index, Interval, KeyId, OpKind, Outcome, ReadError, TxnTimes, Value,
};

/// Writes of transactions of unknown outcome that are carried along.
const LOST_MAX: usize = 1 << 12;

/// Levels for which rounds give the verdict of the whole history.
pub const EXACT_LEVELS: [Level; 2] = [Level::StrongSnapshotIsolation, Level::StrictSerializable];

/// How large rounds are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundsOptions {
    /// Transactions from which on a round is decided at the next cut.
    pub txns_min: usize,
    /// Transactions without a cut from which on one is forced.
    pub txns_max: usize,
    /// How far the clients' clocks may differ, in nanoseconds.
    pub drift: Time,
    /// What items hold that nobody has written; anything if it is not given.
    pub unwritten: Option<Content>,
}

/// How it is going.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundCounts {
    /// Rounds decided.
    pub rounds: u64,
    /// Transactions in them, each once.
    pub txns: u64,
    /// Instants without an open transaction.
    pub cuts: u64,
    /// Cuts that were forced: a violation across one may be missed.
    pub forced: u64,
    /// Transactions of unknown outcome of which a part was left out, because what they read,
    /// or what became of their other writes, is no longer known.
    pub left_out: u64,
    /// Events from before a cut that came after it.
    pub late: u64,
    /// Transactions that are kept for later rounds.
    pub carried: usize,
}

impl RoundCounts {
    /// Whether all rounds together have the verdict of the whole history.
    pub const fn is_exact(&self) -> bool {
        self.forced == 0 && self.left_out == 0 && self.late == 0
    }
}

/// What is kept of decided rounds, oldest first.
enum Segment {
    Epoch(Epoch),
    Summary(Summary),
}

/// Takes events and decides rounds of them. See the module's documentation.
pub struct Rounds {
    level: Level,
    options: RoundsOptions,
    counts: RoundCounts,
    /// The transaction that each client is in.
    open: HashMap<u32, RoundTxn>,
    /// Those that ended since the last cut.
    current: Vec<RoundTxn>,
    /// When the last of them completed.
    busy_until: Time,
    last_cut: Time,
    segments: Vec<Segment>,
    /// Transactions that no round had yet.
    fresh: usize,
    /// Of unknown outcome, and read by nobody so far.
    lost: Vec<RoundTxn>,
    /// Last versions before everything that is kept.
    state: HashMap<u32, Content>,
    /// Whether keys that are not in `state` are known to be unwritten.
    is_state_whole: bool,
}

impl Rounds {
    /// Rounds for one of [`EXACT_LEVELS`].
    pub fn new(level: Level, options: RoundsOptions) -> Rounds {
        Rounds {
            level,
            options,
            counts: RoundCounts::default(),
            open: HashMap::new(),
            current: Vec::new(),
            busy_until: Time::MIN,
            last_cut: Time::MIN,
            segments: Vec::new(),
            fresh: 0,
            lost: Vec::new(),
            state: HashMap::new(),
            is_state_whole: options.unwritten.is_some(),
        }
    }

    /// Takes events in the order in which they were sent.
    pub fn take(&mut self, batch: &Batch) {
        for event in &batch.events {
            self.event(event, batch);
        }
    }

    fn event(&mut self, event: &Event, batch: &Batch) {
        let client = event.client.0;
        if self.open.get(&client).is_some_and(|open| open.number != event.txn)
            && let Some(unended) = self.open.remove(&client)
        {
            // Its end was not traced; a commit may be among what is missing.
            self.lost.push(unended.ended(EventKind::Lost, Interval::UNKNOWN));
        }
        if event.interval.invoked < self.last_cut {
            self.counts.late += 1;
        }
        if !self.open.contains_key(&client) {
            self.cut_before(event.interval.invoked);
            self.open.insert(client, RoundTxn::new(event));
        }
        let txn = self.open.get_mut(&client).expect("opened above");
        match event.kind {
            EventKind::Begin => {}
            kind if kind.is_end() => {
                let txn = self.open.remove(&client).expect("opened above");
                self.end(txn.ended(kind, event.interval));
            }
            kind => {
                let is_write = kind == EventKind::Write;
                let cells = batch.cells_of(event).iter();
                let says_which = |cell: &&Cell| {
                    cell.content != Content::UNKNOWN && cell.content.condition().is_none()
                };
                txn.ops.extend(cells.filter(says_which).map(|cell| {
                    let (item, content) = (cell.item, cell.content);
                    RoundOp { is_write, item, content, interval: event.interval }
                }));
            }
        }
    }

    fn end(&mut self, txn: RoundTxn) {
        if txn.outcome == Outcome::Unknown {
            self.lost.push(txn);
            return;
        }
        if txn.outcome == Outcome::Committed {
            self.busy_until = self.busy_until.max(txn.commit.completed);
        }
        self.current.push(txn);
        self.fresh += 1;
    }

    /// Ends the epoch if nothing is open when something new begins.
    fn cut_before(&mut self, begins: Time) {
        let is_quiet =
            self.open.is_empty() && self.busy_until.saturating_add(self.options.drift) < begins;
        if is_quiet && !self.current.is_empty() {
            self.close_epoch();
            self.last_cut = begins;
        }
    }

    fn close_epoch(&mut self) {
        self.counts.cuts += 1;
        let txns = std::mem::take(&mut self.current);
        self.segments.push(Segment::Epoch(Epoch { txns }));
    }

    /// Whether a round should be decided now.
    pub fn is_due(&self) -> bool {
        let closed = self.fresh - self.current.len();
        closed >= self.options.txns_min.max(1) || self.current.len() >= self.options.txns_max
    }

    /// Decides what is there up to the last cut; forces one if there was none for too long.
    pub fn decide(&mut self, limits: &Limits<'_>) -> Result<Verdict, ReadError> {
        if self.current.len() < self.options.txns_max {
            return self.round(limits);
        }
        self.segments.push(Segment::Epoch(Epoch { txns: std::mem::take(&mut self.current) }));
        let verdict = self.verdict(limits)?;
        self.force();
        Ok(verdict)
    }

    /// Decides everything that is left.
    pub fn finish(&mut self, limits: &Limits<'_>) -> Result<Verdict, ReadError> {
        let mut clients: Vec<u32> = self.open.keys().copied().collect();
        clients.sort_unstable();
        for client in clients {
            let open = self.open.remove(&client).expect("it was there");
            self.lost.push(open.ended(EventKind::Lost, Interval::UNKNOWN));
        }
        if !self.current.is_empty() {
            self.close_epoch();
        }
        self.round(limits)
    }

    /// What was decided, and how well.
    pub fn counts(&self) -> RoundCounts {
        let kept: usize = (self.segments.iter())
            .map(|segment| match segment {
                Segment::Epoch(epoch) => epoch.txns.len(),
                Segment::Summary(_) => 1,
            })
            .sum();
        let carried = kept + self.current.len() + self.lost.len() + self.open.len();
        RoundCounts { carried, ..self.counts }
    }

    fn round(&mut self, limits: &Limits<'_>) -> Result<Verdict, ReadError> {
        let verdict = self.verdict(limits)?;
        // After a violation nothing is known of what the keys hold.
        if matches!(verdict, Verdict::Satisfied(_)) {
            self.settle();
        } else {
            self.forget();
        }
        Ok(verdict)
    }

    fn verdict(&mut self, limits: &Limits<'_>) -> Result<Verdict, ReadError> {
        self.counts.rounds += 1;
        self.counts.txns += (self.fresh - self.current.len()) as u64;
        self.fresh = self.current.len();
        self.place_lost();
        let history = self.history()?;
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, limits).with_options(crate::Options {
            clock_drift: self.options.drift,
            ..crate::Options::default()
        });
        Ok(check.decide(self.level))
    }

    /// Keeps the newest transactions and forgets what the others left.
    fn force(&mut self) {
        self.counts.forced += 1;
        let mut newest: Vec<RoundTxn> = Vec::new();
        for segment in self.segments.drain(..) {
            if let Segment::Epoch(epoch) = segment {
                newest.extend(epoch.txns);
            }
        }
        newest.sort_by_key(|txn| txn.commit.completed);
        let kept = newest.len().min(self.options.txns_max / 4);
        self.current = newest.split_off(newest.len() - kept);
        // In the order of each client.
        self.current.sort_by_key(|txn| txn.begin.invoked);
        self.fresh = 0;
        self.state.clear();
        self.is_state_whole = false;
    }

    fn forget(&mut self) {
        self.counts.forced += 1;
        self.segments.clear();
        self.state.clear();
        self.is_state_whole = false;
    }

    /// Transactions of unknown outcome that somebody read from took effect before that
    /// reader committed.
    fn place_lost(&mut self) {
        let mut index = 0;
        while index < self.lost.len() {
            let written = self.lost[index].writes();
            let reader = self.segments.iter().enumerate().find_map(|(place, segment)| {
                let Segment::Epoch(epoch) = segment else { return None };
                let reader = epoch.reader_of(&written)?;
                Some((place, reader.commit.completed))
            });
            let Some((place, completed)) = reader else {
                index += 1;
                continue;
            };
            let mut txn = self.lost.swap_remove(index);
            txn.commit.completed = completed;
            self.counts.left_out += u64::from(txn.is_piece);
            if let Segment::Epoch(epoch) = &mut self.segments[place] {
                epoch.txns.push(txn);
            }
        }
    }

    /// Replaces epochs whose last versions are known.
    fn settle(&mut self) {
        let mut settled: Vec<Segment> = Vec::new();
        let segments = std::mem::take(&mut self.segments);
        let epochs: Vec<Option<&Epoch>> = (segments.iter())
            .map(|segment| match segment {
                Segment::Epoch(epoch) => Some(epoch),
                Segment::Summary(_) => None,
            })
            .collect();
        let known: Vec<Option<Summary>> = (0..segments.len())
            .map(|place| epochs[place]?.last_versions(&epochs[place + 1..], self.options.drift))
            .collect();
        let is_any_known = known.iter().any(Option::is_some);
        if is_any_known {
            self.divide_lost();
        }
        for (segment, known) in segments.into_iter().zip(known) {
            let summary = match (segment, known) {
                (Segment::Epoch(_), Some(summary)) | (Segment::Summary(summary), _) => summary,
                (Segment::Epoch(epoch), None) => {
                    let (epoch, divided) = if is_any_known { epoch.divided() } else { (epoch, 0) };
                    self.counts.left_out += divided;
                    settled.push(Segment::Epoch(epoch));
                    continue;
                }
            };
            match settled.last_mut() {
                None => self.state.extend(summary.versions),
                Some(Segment::Summary(earlier)) => earlier.extend(summary),
                Some(Segment::Epoch(_)) => settled.push(Segment::Summary(summary)),
            }
        }
        self.segments = settled;
    }

    /// A transaction of unknown outcome may have taken effect among what is now forgotten,
    /// and some of what it wrote may have been replaced there. So from now on its writes stand
    /// alone, each of which may take effect at any time.
    fn divide_lost(&mut self) {
        let lost = std::mem::take(&mut self.lost);
        self.lost.extend(lost.into_iter().flat_map(RoundTxn::pieces));
        if self.lost.len() > LOST_MAX {
            self.lost.clear();
            self.counts.forced += 1;
            self.state.clear();
            self.is_state_whole = false;
        }
    }

    /// Everything that is kept, as a history.
    fn history(&mut self) -> Result<History, ReadError> {
        let mut drawn = Drawn { builder: HistoryBuilder::new(), left_out: 0 };
        let mut written: HashSet<(u32, Content)> = HashSet::new();
        for segment in &self.segments {
            match segment {
                Segment::Epoch(epoch) => {
                    written.extend(epoch.txns.iter().flat_map(RoundTxn::writes));
                }
                Segment::Summary(summary) => {
                    written
                        .extend(summary.versions.iter().map(|(&item, &content)| (item, content)));
                }
            }
        }
        written.extend(self.lost.iter().flat_map(RoundTxn::writes));
        self.initial(&mut drawn, &written);
        for (place, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Epoch(epoch) => {
                    for txn in &epoch.txns {
                        // Those of unknown outcome have no session: others may follow them there.
                        let session = (txn.outcome != Outcome::Unknown).then_some(txn.client);
                        drawn.txn(session, txn, &|name| written.contains(&name), &self.state);
                    }
                }
                Segment::Summary(summary) => drawn.summary(place, summary),
            }
        }
        for txn in &self.lost {
            drawn.txn(None, txn, &|name| written.contains(&name), &self.state);
        }
        self.counts.left_out += drawn.left_out;
        drawn.builder.finish("round")
    }

    /// What keys hold before everything that is kept. Where that is not known, it is what
    /// was read; if that was several values, the others are written by transactions that
    /// may be anywhere.
    fn initial(&self, drawn: &mut Drawn, written: &HashSet<(u32, Content)>) {
        let mut known: HashMap<u32, Content> = self.state.clone();
        let mut earlier: Vec<(u32, Content)> = Vec::new();
        if !self.is_state_whole {
            for segment in &self.segments {
                let Segment::Epoch(epoch) = segment else { continue };
                for op in epoch.txns.iter().flat_map(RoundTxn::outer_reads) {
                    let name = (op.item, op.content);
                    if written.contains(&name) || self.state.contains_key(&op.item) {
                        continue;
                    }
                    let first = *known.entry(op.item).or_insert(op.content);
                    if first != op.content && !earlier.contains(&name) {
                        earlier.push(name);
                    }
                }
            }
        }
        if let Some(content) = self.options.unwritten
            && content != Content::ABSENT
        {
            let value = drawn.value(content);
            drawn.builder.initial_default(value);
        }
        let mut items: Vec<(u32, Content)> = known.into_iter().collect();
        items.sort_unstable_by_key(|(item, _)| *item);
        for (item, content) in items {
            let (key, value) = (drawn.key(item), drawn.value(content));
            drawn.builder.initial(key, value);
        }
        for (item, content) in earlier {
            drawn.begin(None);
            drawn.write(item, content);
        }
    }
}

/// A history in the making.
struct Drawn {
    builder: HistoryBuilder,
    left_out: u64,
}

impl Drawn {
    fn key(&mut self, item: u32) -> KeyId {
        let name = self.builder.values().unsigned(u64::from(item));
        self.builder.key(name)
    }

    fn value(&mut self, content: Content) -> Value {
        match (content, content.as_integer()) {
            (Content::ABSENT, _) => Value::NIL,
            (_, Some(number)) => self.builder.values().int(number),
            _ => self.builder.values().text(&format!("{content:?}")),
        }
    }

    /// A transaction of a client, or of a session of its own.
    fn begin(&mut self, client: Option<u32>) -> isolde_history::DraftTxn {
        let session = match client {
            Some(client) => {
                let label = self.builder.values().unsigned(u64::from(client));
                self.builder.session(label)
            }
            None => self.builder.new_session(Value::NIL),
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
        is_written: &dyn Fn((u32, Content)) -> bool,
        state: &HashMap<u32, Content>,
    ) {
        let draft = self.begin(session);
        self.builder.outcome(draft, txn.outcome);
        self.builder.times(draft, TxnTimes { begin: txn.begin, commit: txn.commit });
        for op in &txn.ops {
            if op.is_write {
                self.write(op.item, op.content);
                continue;
            }
            let name = (op.item, op.content);
            let is_known = is_written(name) || state.get(&op.item) == Some(&op.content);
            // What a transaction of unknown outcome read long ago may be forgotten by now.
            if txn.outcome == Outcome::Unknown && !is_known && op.content != Content::ABSENT {
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

/// The interval of something that never ended.
const fn open_since(invoked: Time) -> Interval {
    Interval { invoked, completed: NEVER }
}

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
//! has snapshot isolation. Values have to be unique: a round in which one repeats is not decided.
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
//!
//! **Levels without real time.** Serializability and snapshot isolation are asked for by way of
//! the level of real time that implies them. A round that satisfies it is clean. One that does
//! not is decided again, without times and without what earlier rounds left: what was read and
//! is not written in it may have been written at any time. If that violates the level, so does
//! the whole history. If it does not, the round violates real time alone, and what it leaves is
//! not known.

mod drawing;
mod epoch;
mod repeated;

use super::profile::Reads;
use super::trace::{Batch, Cell, Content, Event, EventKind, NEVER, Time};
use crate::check::Check;
use crate::level::Level;
use crate::limits::Limits;
use crate::unknown::{Obstacle, Unknown};
use crate::verdict::Verdict;
use drawing::{Before, Drawing};
use epoch::{Epoch, RoundTxn, Summary};
use hashbrown::HashMap;
use isolde_history::{History, Index, Interval, Outcome, ReadError};
use repeated::Repeated;

/// Writes of transactions of unknown outcome that are carried along.
const LOST_MAX: usize = 1 << 12;

/// Levels for which rounds give the verdict of the whole history.
pub const EXACT_LEVELS: [Level; 2] = [Level::StrongSnapshotIsolation, Level::StrictSerializable];

/// Levels without real time that they imply, and of which rounds find what one of them shows.
pub const IMPLIED_LEVELS: [Level; 2] = [Level::SnapshotIsolation, Level::Serializable];

/// The level of real time that settles a level, which may be itself.
fn settled_by(level: Level) -> Level {
    let implied = IMPLIED_LEVELS.iter().position(|&implied| implied == level);
    implied.map_or(level, |place| EXACT_LEVELS[place])
}

/// What a round was found to be.
pub struct Round {
    /// The verdict on the level that was asked for.
    pub verdict: Verdict,
    /// Whether it is satisfied although the round violates real time.
    pub violates_real_time: bool,
    /// What violates the level, if it is violated.
    pub history: Option<History>,
}

/// How histories of violations call things.
pub trait Names {
    /// A client.
    fn client(&self, client: u32) -> String;
    /// An item.
    fn item(&self, item: u32) -> String;
    /// A content that is no integer.
    fn content(&self, content: Content) -> String;
}

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
    /// What reads see: a transaction begins when its snapshot is taken, which may be long
    /// after its begin was answered.
    pub reads: Reads,
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
    /// Rounds that violate real time alone.
    pub real_time: u64,
    /// Transactions of unknown outcome of which a part was left out, because what they read,
    /// or what became of their other writes, is no longer known.
    pub left_out: u64,
    /// Events from before a cut that came after it.
    pub late: u64,
    /// Values that were written more than once, or read before they were: rounds with them
    /// are not decided.
    pub repeated: u64,
    /// Transactions that are kept for later rounds.
    pub carried: usize,
}

impl RoundCounts {
    /// Whether all rounds together have the verdict of the whole history.
    pub const fn is_exact(&self) -> bool {
        self.forced == 0 && self.left_out == 0 && self.late == 0 && self.repeated == 0
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
    /// The same, if some of its times are not known.
    unplaced: HashMap<u32, RoundTxn>,
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
    has_deleted: bool,
    names: Option<Box<dyn Names + Send>>,
}

impl Rounds {
    /// Rounds for one of [`EXACT_LEVELS`] or [`IMPLIED_LEVELS`].
    pub fn new(level: Level, options: RoundsOptions) -> Rounds {
        Rounds {
            level,
            options,
            has_deleted: false,
            names: None,
            counts: RoundCounts::default(),
            open: HashMap::new(),
            unplaced: HashMap::new(),
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

    /// The same; histories of violations have these names in them.
    #[must_use]
    pub fn with_names(mut self, names: Box<dyn Names + Send>) -> Rounds {
        self.names = Some(names);
        self
    }

    /// What an item holds before everything. To be told before anything is taken.
    pub fn initial(&mut self, cell: Cell) {
        if self.options.unwritten != Some(cell.content) {
            self.state.insert(cell.item, cell.content);
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
        if event.kind == EventKind::Write && !self.has_deleted {
            self.has_deleted =
                batch.cells_of(event).iter().any(|cell| cell.content == Content::ABSENT);
        }
        let is_known = event.interval != Interval::UNKNOWN;
        if !is_known || self.unplaced.get(&client).is_some_and(|txn| txn.number == event.txn) {
            self.unplaced_event(event, batch);
            return;
        }
        if event.interval.invoked < self.last_cut {
            self.counts.late += 1;
        }
        if !self.open.contains_key(&client) {
            self.cut_before(event.interval.invoked);
            self.open.insert(client, RoundTxn::new(event, self.options.reads));
        }
        let txn = self.open.get_mut(&client).expect("opened above");
        match event.kind {
            EventKind::Begin => {}
            kind if kind.is_end() => {
                let txn = self.open.remove(&client).expect("opened above");
                let txn = txn.begun(self.options.reads);
                self.end(txn.ended(kind, event.interval));
            }
            _ => {
                txn.add(event, batch);
                txn.begin_by(event, self.options.reads);
            }
        }
    }

    /// A transaction of which some times are not known may have taken effect at any time.
    fn unplaced_event(&mut self, event: &Event, batch: &Batch) {
        let client = event.client.0;
        let earlier = self.open.remove(&client).or_else(|| self.unplaced.remove(&client));
        let mut txn = match earlier {
            Some(txn) if txn.number == event.txn => txn,
            Some(other) => {
                self.lost.push(other.ended(EventKind::Lost, Interval::UNKNOWN));
                RoundTxn::new(event, self.options.reads)
            }
            None => RoundTxn::new(event, self.options.reads),
        };
        if event.kind.is_end() {
            self.counts.left_out += 1;
            self.lost.push(txn.ended(EventKind::Lost, Interval::UNKNOWN));
            return;
        }
        txn.add(event, batch);
        self.unplaced.insert(client, txn);
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
        self.closed() >= self.options.txns_min.max(1) || self.current.len() >= self.options.txns_max
    }

    /// Transactions before the last cut that no round had yet. After a forced cut some of
    /// `current` were in a round, but nothing is before a cut until all of these are.
    fn closed(&self) -> usize {
        self.fresh.saturating_sub(self.current.len())
    }

    /// Decides what is there up to the last cut; forces one if there was none for too long.
    pub fn decide(&mut self, limits: &Limits<'_>) -> Result<Round, ReadError> {
        if self.current.len() < self.options.txns_max {
            return self.round(limits);
        }
        self.segments.push(Segment::Epoch(Epoch { txns: std::mem::take(&mut self.current) }));
        let round = self.decided(limits)?;
        self.force();
        Ok(round)
    }

    /// Decides everything that is left.
    pub fn finish(&mut self, limits: &Limits<'_>) -> Result<Round, ReadError> {
        let unplaced = std::mem::take(&mut self.unplaced).into_values();
        self.lost.extend(unplaced.map(|txn| txn.ended(EventKind::Lost, Interval::UNKNOWN)));
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

    fn round(&mut self, limits: &Limits<'_>) -> Result<Round, ReadError> {
        let round = self.decided(limits)?;
        // After a violation nothing is known of what the keys hold.
        if matches!(round.verdict, Verdict::Satisfied(_)) && !round.violates_real_time {
            self.settle();
        } else {
            self.forget();
        }
        Ok(round)
    }

    fn decided(&mut self, limits: &Limits<'_>) -> Result<Round, ReadError> {
        self.counts.rounds += 1;
        self.counts.txns += self.closed() as u64;
        self.fresh = self.fresh.min(self.current.len());
        self.place_lost();
        let repeated = self.repeated().count();
        if repeated > 0 {
            self.counts.repeated += repeated as u64;
            let obstacle = Obstacle::RepeatedInRound { values: repeated };
            let verdict = Verdict::Unknown(Unknown::Unsupported(obstacle));
            return Ok(Round { verdict, violates_real_time: false, history: None });
        }
        let strong = settled_by(self.level);
        let (history, left_out) = self.drawing(Before::Known, false).history()?;
        self.counts.left_out += left_out;
        let verdict = self.verdict(&history, strong, limits);
        if !matches!(verdict, Verdict::Violated(_)) {
            return Ok(Round { verdict, violates_real_time: false, history: None });
        }
        if strong == self.level {
            let (history, _) = self.drawing(Before::Known, true).history()?;
            return Ok(Round { verdict, violates_real_time: true, history: Some(history) });
        }
        let (history, _) = self.drawing(Before::Anything, true).history()?;
        let verdict = self.verdict(&history, self.level, limits);
        let history = matches!(verdict, Verdict::Violated(_)).then_some(history);
        self.counts.real_time += u64::from(matches!(verdict, Verdict::Satisfied(_)));
        Ok(Round { verdict, violates_real_time: true, history })
    }

    fn verdict(&self, history: &History, level: Level, limits: &Limits<'_>) -> Verdict {
        let index = Index::new(history);
        let mut check = Check::new(history, &index, limits).with_options(crate::Options {
            clock_drift: self.options.drift,
            ..crate::Options::default()
        });
        check.decide(level)
    }

    /// Everything that is kept, to be made a history.
    fn drawing(&self, before: Before, is_named: bool) -> Drawing<'_> {
        Drawing {
            segments: &self.segments,
            lost: &self.lost,
            state: &self.state,
            is_state_whole: self.is_state_whole,
            unwritten: self.options.unwritten,
            has_deleted: self.has_deleted,
            before,
            names: self.names.as_deref().filter(|_| is_named).map(|names| names as &dyn Names),
        }
    }

    fn repeated(&self) -> Repeated<'_> {
        Repeated {
            segments: &self.segments,
            lost: &self.lost,
            state: &self.state,
            is_state_whole: self.is_state_whole,
            unwritten: self.options.unwritten,
            drift: self.options.drift,
        }
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
}

/// The interval of something that never ended.
const fn open_since(invoked: Time) -> Interval {
    Interval { invoked, completed: NEVER }
}

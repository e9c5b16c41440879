//! The watch itself: takes events from all inboxes, has them verified, and tells what is found.

use super::clocks::Clocks;
use super::complete::{ViolatedRound, cannot_start, complete};
use super::hub::{Hub, KEEPER, State};
use super::judge::{Part, judge};
use super::narrative::Narrative;
use super::now::now;
use super::output::Output;
use super::status::{COMPLETE_CHECKER, Kind, Mark, STORIES_MAX, Status, Told, memory};
use super::threads;
use super::window::{Around, Known, Window};
use isolde::Level;
use isolde::online::{
    ALWAYS, Batch, Cell, ClientId, Content, Finding, KnownDeviation, NEVER, Pipeline,
    PipelineOptions, Reads, Time, Verifier,
};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The pause after a round in which nothing came.
const PAUSE: Duration = Duration::from_millis(1);
/// How often the status is made.
const STATUS_PAUSE: Duration = Duration::from_millis(100);
/// So many events are verified before somebody looks at the clock.
const EVENTS_TOGETHER: usize = 1 << 10;
/// Clients that hold up everything while inboxes are full, for so long, are set aside.
const BLOCKED_MAX: Duration = Duration::from_secs(2);
/// Streams that were ended because of what they said, and are told of; the rest are counted.
const COMPLAINTS_TOLD_MAX: usize = 5;
/// Batches that the complete checker may be behind.
const BATCHES_MAX: usize = 4096;

/// Whose time it is.
pub(super) enum Clock {
    /// The clock that clients use can be read.
    Read(Box<dyn Fn() -> Time + Send>),
    /// It is somewhere else, and goes on as time does here. A client that connects may send
    /// events from so many nanoseconds before the last ones.
    Elsewhere { slack: Time },
    /// It is of the past, and told as fast as it can be read.
    Recorded { slack: Time },
}

/// What does not change while a watch goes on.
pub(super) struct Setting {
    pub(super) hub: Arc<Hub>,
    pub(super) status: Arc<Mutex<Status>>,
    pub(super) output: Arc<Output>,
    /// Where windows are saved; created for the first.
    pub(super) folder: PathBuf,
    /// Violations that are told in full, and so many documented deviations.
    pub(super) told_max: u64,
    /// What is documented, and no violation.
    pub(super) deviations: Vec<KnownDeviation>,
    /// Set by the first violation.
    pub(super) stop_when_violated: Option<Arc<AtomicBool>>,
}

impl Setting {
    pub(super) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().expect("nobody panics while counting")
    }
}

/// See the file's first line.
pub(super) struct Monitor {
    setting: Arc<Setting>,
    clock: Clock,
    pipeline: Pipeline,
    verifier: Verifier,
    window: Window,
    opened: HashSet<u32>,
    /// Clients that ended since the last events, and of which what was sent from this time on is
    /// missing.
    broken: Vec<(ClientId, Time)>,
    batch: Batch,
    merged: Batch,
    /// The latest time that any client is known to have reached, and when that became known.
    foremost: Time,
    foremost_since: Instant,
    /// The first time of all, from which times are told.
    origin: Option<Time>,
    started: Instant,
    /// When it is told next how it stands.
    told_next: Instant,
    moved: (Time, Instant),
    rate: Rate,
    clocks: Clocks,
    violations: u64,
    deviations: u64,
    complaints: usize,
    is_memory_short: bool,
    parts: Option<SyncSender<Part>>,
    /// What the complete checker decides, and where it gets its events.
    completing: Option<Completing>,
    initial: Vec<Cell>,
    rounds: Option<SyncSender<Batch>>,
    violated_rounds: Option<Receiver<ViolatedRound>>,
}

/// What the complete checker is asked.
#[derive(Clone, Copy)]
pub(super) struct Completing {
    pub(super) level: Level,
    pub(super) unwritten: Option<Content>,
    pub(super) drift: Time,
    pub(super) reads: Reads,
}

/// Operations a second, over the last seconds.
struct Rate {
    operations: u64,
    at: Instant,
    per_second: f64,
}

impl Monitor {
    pub(super) fn new(
        setting: Arc<Setting>,
        clock: Clock,
        verifier: Verifier,
        options: PipelineOptions,
        known: Known,
        completing: Option<Completing>,
    ) -> Monitor {
        let mut pipeline = Pipeline::new(options);
        pipeline.open(KEEPER, ALWAYS);
        let begun = now();
        Monitor {
            setting,
            origin: matches!(clock, Clock::Read(_)).then_some(0),
            clock,
            pipeline,
            window: Window::new(known),
            verifier,
            opened: HashSet::new(),
            broken: Vec::new(),
            batch: Batch::default(),
            merged: Batch::default(),
            foremost: ALWAYS,
            foremost_since: begun,
            started: begun,
            told_next: begun,
            moved: (ALWAYS, begun),
            rate: Rate { operations: 0, at: begun, per_second: 0.0 },
            clocks: Clocks::default(),
            violations: 0,
            deviations: 0,
            complaints: 0,
            is_memory_short: false,
            parts: None,
            completing,
            initial: Vec::new(),
            rounds: None,
            violated_rounds: None,
        }
    }

    /// What items hold before everything.
    pub(super) fn initial(&mut self, cells: Vec<Cell>) {
        for cell in &cells {
            self.verifier.initial(*cell);
        }
        self.window.initial(&cells);
        self.initial = cells;
    }

    /// Watches until all sources are done, and everything that they left is verified.
    pub(super) fn run(mut self, are_sources_done: &AtomicBool) {
        let (sender, receiver) = sync_channel(16);
        self.parts = Some(sender);
        let setting = Arc::clone(&self.setting);
        std::thread::scope(|scope| {
            if let Err(error) = threads::start(scope, "judge", || judge(&setting, receiver)) {
                let text = format!("no history around a violation is saved: {error}");
                setting.output.note("judge", &text);
                self.parts = None;
            }
            let completing = self.completing.and_then(|completing| {
                let (sender, receiver) = sync_channel(BATCHES_MAX);
                let (telling, told) = channel();
                let setting = Arc::clone(&self.setting);
                let initial = std::mem::take(&mut self.initial);
                let work = move || complete(completing, &initial, &setting, receiver, telling);
                match threads::start(scope, "complete checker", work) {
                    Ok(thread) => {
                        (self.rounds, self.violated_rounds) = (Some(sender), Some(told));
                        Some(thread)
                    }
                    Err(error) => {
                        cannot_start(&self.setting, &error);
                        None
                    }
                }
            });
            loop {
                let is_last = are_sources_done.load(Ordering::Acquire);
                let count = self.round(is_last);
                if is_last {
                    self.told_next = now();
                }
                self.tell_if_due();
                if is_last {
                    break;
                }
                if count == 0 {
                    std::thread::sleep(PAUSE);
                }
            }
            self.verifier.finish();
            // The others end when nobody can ask them any more.
            self.rounds = None;
            if let Some(completing) = completing {
                completing.join().expect("the complete checker does not panic");
            }
            self.end();
        });
    }

    /// Tells what was found last.
    fn end(&mut self) {
        self.find();
        self.parts = None;
        self.count(now());
        self.setting.status().is_over = true;
    }

    /// What a thread of its own does, a step at a time, and nobody is asked for an opinion.
    #[cfg(test)]
    pub(super) fn step(&mut self, is_last: bool) {
        self.round(is_last);
        if is_last {
            self.verifier.finish();
            self.end();
        }
    }

    /// Tells how it stands and what was found, now and then: also while much is verified at
    /// once.
    fn tell_if_due(&mut self) {
        let now = now();
        if now < self.told_next {
            return;
        }
        self.told_next = now + STATUS_PAUSE;
        self.find();
        self.count(now);
        self.setting.output.tell(&self.setting.status());
    }

    /// Takes what there is, and has it verified: how many events.
    fn round(&mut self, is_last: bool) -> usize {
        // Before any inbox is looked at: a client that is not among them comes later.
        let reached = match &self.clock {
            Clock::Read(clock) => Some(clock()),
            Clock::Elsewhere { .. } | Clock::Recorded { .. } => None,
        };
        for inbox in self.setting.hub.inboxes() {
            if self.opened.insert(inbox.id.0) {
                self.pipeline.open(inbox.id, inbox.bound());
            }
            let (bound, state) = (inbox.bound(), inbox.state());
            self.setting.hub.take(&inbox, &mut self.batch);
            let _ = self.pipeline.push(inbox.id, &self.batch);
            self.batch.clear();
            self.pipeline.advance(inbox.id, bound);
            if bound > self.foremost {
                (self.foremost, self.foremost_since) = (bound, now());
            }
            if state != State::Open {
                self.pipeline.close(inbox.id);
                self.setting.hub.forget(inbox.id);
                self.opened.remove(&inbox.id.0);
            }
            self.tell_loss(inbox.id, state, bound);
        }
        match (reached, &self.clock) {
            _ if is_last => self.pipeline.close(KEEPER),
            (Some(reached), _) => self.pipeline.advance(KEEPER, reached),
            (None, &Clock::Recorded { slack }) if self.foremost != ALWAYS => {
                // What is not read because too much waits cannot be waited for.
                let slack = if self.setting.hub.is_full() { 0 } else { slack };
                self.pipeline.advance(KEEPER, self.foremost.saturating_sub(slack));
            }
            (None, &Clock::Elsewhere { slack }) if self.foremost != ALWAYS => {
                let known = self.known_elsewhere(slack);
                self.pipeline.advance(KEEPER, known);
            }
            _ => {}
        }
        let hub = Arc::clone(&self.setting.hub);
        hub.while_busy(|| self.verify())
    }

    /// What is lost with a client that ended like this, and had told all until this time.
    fn tell_loss(&mut self, client: ClientId, state: State, since: Time) {
        let text = match state {
            State::Open | State::Closed => return,
            State::Lost => "ended within a transaction",
            // As it should when the watch ends: only what it may explain is not judged.
            State::CutOff => return self.broken.push((client, since)),
            State::Broken => {
                self.broken.push((client, since));
                self.setting.status().broken += 1;
                "was ended, and what it did since then is missing"
            }
        };
        let name = self.setting.hub.name(client);
        self.setting.output.note("lost", &format!("{name} {text}"));
    }

    /// Until when a client that connects now can have nothing to tell: so much before the
    /// last events that came, and no more than that after them once nothing comes any more.
    /// So what came last does not wait for others. While clients are held back, their silence
    /// is our doing.
    fn known_elsewhere(&mut self, slack: Time) -> Time {
        if self.setting.hub.is_full() {
            self.foremost_since = now();
        }
        let silence = Time::try_from((now() - self.foremost_since).as_nanos());
        let passed = silence.unwrap_or(Time::MAX).saturating_sub(slack);
        self.foremost.saturating_add(passed.min(1))
    }

    fn verify(&mut self) -> usize {
        self.merged.clear();
        let watermark = self.pipeline.drain(&mut self.merged);
        self.unblock(watermark);
        for client in self.pipeline.take_returned() {
            self.verifier.readmit(client);
            let name = self.setting.hub.name(client);
            let mut status = self.setting.status();
            if let Some(place) = status.stalled.iter().position(|stalled| *stalled == name) {
                status.stalled.remove(place);
            }
            drop(status);
            self.setting.output.note("returned", &format!("{name} is back"));
        }
        // After those that are back: one that had stalled is not back if it ended like this.
        for (client, since) in std::mem::take(&mut self.broken) {
            self.verifier.give_up(client, since);
        }
        for client in self.pipeline.take_stalled() {
            self.verifier.set_aside(client);
            let name = self.setting.hub.name(client);
            self.setting.output.note("stalled", &format!("{name} has stalled, the others go on"));
            self.setting.status().stalled.push(name);
        }
        for complaint in self.setting.hub.take_complaints() {
            self.complaints += 1;
            if self.complaints <= COMPLAINTS_TOLD_MAX {
                self.setting.output.note("unreadable", &format!("a stream was ended: {complaint}"));
            }
        }
        if self.origin.is_none() {
            self.origin = self.merged.events.first().map(|event| event.interval.invoked);
        }
        if let Some(rounds) = &self.rounds
            && !self.merged.events.is_empty()
        {
            // A checker that is too slow holds up the watch, and that the clients.
            let _ = rounds.send(self.merged.clone());
        }
        self.window.keep(&self.merged);
        for start in (0..self.merged.events.len()).step_by(EVENTS_TOGETHER) {
            let end = (start + EVENTS_TOGETHER).min(self.merged.events.len());
            self.verifier.take_some(&self.merged, start..end, watermark);
            self.tell_if_due();
        }
        self.verifier.take(&Batch::default(), watermark);
        for client in self.pipeline.take_gone() {
            self.verifier.forget_client(client);
            self.setting.hub.release_name(client);
        }
        let count = self.merged.events.len();
        self.setting.hub.behind(self.pipeline.buffered());
        self.find();
        count
    }

    /// If clients are held back because others do not move, those are left behind. The times
    /// in the traces do not tell: they stand still while clients are held back.
    fn unblock(&mut self, watermark: Time) {
        if watermark > self.moved.0 || !self.setting.hub.is_full() {
            self.moved = (watermark, now());
            return;
        }
        if (now() - self.moved.1) < BLOCKED_MAX {
            return;
        }
        // What a client that connects now may have to tell cannot be waited for, either.
        self.pipeline.advance(KEEPER, self.foremost);
        for inbox in self.setting.hub.inboxes() {
            if inbox.bound() <= watermark && self.pipeline.leave_behind(inbox.id) {
                self.verifier.set_aside(inbox.id);
                let name = self.setting.hub.name(inbox.id);
                let text = format!("{name} holds up the others and is left behind");
                self.setting.output.note("stalled", &text);
                self.setting.status().stalled.push(name);
            }
        }
        self.moved.1 = now();
    }

    fn find(&mut self) {
        for found in self.verifier.take_contradictions() {
            self.clocks.contradict(&found, &self.setting, self.origin.unwrap_or(0));
        }
        for finding in self.verifier.take_findings() {
            self.found(&finding);
        }
        let rounds = self.violated_rounds.iter().flat_map(Receiver::try_iter);
        let rounds: Vec<ViolatedRound> = rounds.collect();
        for round in rounds {
            self.round_violated(round);
        }
    }

    /// A round of the complete checker violates the level.
    fn round_violated(&mut self, round: ViolatedRound) {
        let mark = self.mark(false);
        let ViolatedRound { number: round, level, anomaly, argument, history } = round;
        *self.setting.status().violations.entry(level.name()).or_default() += 1;
        if let Some(stop) = &self.setting.stop_when_violated {
            stop.store(true, Ordering::Relaxed);
        }
        if mark.number > self.setting.told_max {
            return;
        }
        let txns = history.txn_count();
        let story = Narrative {
            name: level.name(),
            mechanism: COMPLETE_CHECKER,
            summary: format!("round {round}, of {txns} transactions, violates it ({anomaly})"),
            reasons: argument,
        };
        self.tell(mark, story);
        self.hand_over(Part { mark, around: Around { history, plain: None } });
    }

    fn tell(&mut self, mark: Mark, story: Narrative) {
        let text = story.to_text(mark);
        let told = Told::new(mark, (now() - self.started).as_secs_f64(), story);
        // A closed pipe does not end a watch.
        let _ = self.setting.output.violation(&told, &text);
        let mut status = self.setting.status();
        if status.stories.len() < STORIES_MAX {
            status.stories.push(told);
        }
    }

    /// The next number of its kind.
    fn mark(&mut self, is_documented: bool) -> Mark {
        let (kind, count) = if is_documented {
            (Kind::Deviation, &mut self.deviations)
        } else {
            (Kind::Violation, &mut self.violations)
        };
        *count += 1;
        Mark { kind, number: *count }
    }

    fn found(&mut self, finding: &Finding) {
        let setting = Arc::clone(&self.setting);
        let documented = setting.deviations.iter().find(|known| known.name == finding.name);
        let mark = self.mark(documented.is_some());
        {
            let mut status = setting.status();
            let status = &mut *status;
            let counts = match documented {
                Some(_) => &mut status.documented,
                None => &mut status.violations,
            };
            *counts.entry(finding.name.name()).or_default() += 1;
        }
        if let (Some(stop), None) = (&setting.stop_when_violated, documented) {
            stop.store(true, Ordering::Relaxed);
        }
        if mark.number > setting.told_max {
            return;
        }
        let mut story = Narrative::of(finding, &setting.hub, self.origin.unwrap_or(0));
        if let Some(known) = documented {
            story
                .reasons
                .push(format!("this is documented, and counts as no violation: {}", known.text));
        }
        self.tell(mark, story);
        let is_blind = self.verifier.is_anything_missing();
        match self.window.around(finding, &setting.hub, is_blind) {
            Ok(around) => self.hand_over(Part { mark, around }),
            Err(error) => {
                let text = format!("the history around it cannot be saved: {error}");
                let _ = setting.output.more(mark, "window", &text);
            }
        }
    }

    /// Hands a part to the judge, who may be busy: then it is not judged, and that is said.
    fn hand_over(&mut self, part: Part) {
        let Some(parts) = &self.parts else { return };
        match parts.try_send(part) {
            Ok(()) => {}
            Err(TrySendError::Full(part) | TrySendError::Disconnected(part)) => {
                let text = "the history around it was not saved, others are being judged";
                let _ = self.setting.output.more(part.mark, "window", text);
            }
        }
    }

    /// Brings the status up to date.
    fn count(&mut self, at: Instant) {
        let counters = self.verifier.counters();
        let elapsed = at.duration_since(self.rate.at);
        if elapsed >= Duration::from_secs(1) {
            #[expect(clippy::cast_precision_loss, reason = "a rate that is shown")]
            let done = (counters.operations - self.rate.operations) as f64;
            let per_second = done / elapsed.as_secs_f64();
            self.rate = Rate { operations: counters.operations, at, per_second };
        }
        let ahead = match &self.clock {
            Clock::Read(clock) => clock(),
            Clock::Elsewhere { .. } | Clock::Recorded { .. } => self.foremost,
        };
        let watermark = self.pipeline.watermark();
        let hub = &self.setting.hub;
        let mut status = self.setting.status();
        status.seconds = (at - self.started).as_secs_f64();
        status.counters = counters;
        let disorder = self.pipeline.disorder();
        let total = &mut status.counters.disorder;
        total.backwards += disorder.backwards;
        total.unplaced += disorder.unplaced;
        total.inverted += disorder.inverted;
        total.duplicates += disorder.duplicates;
        total.late += disorder.late;
        status.rate = self.rate.per_second;
        status.lag = if watermark == NEVER || watermark == ALWAYS || ahead == ALWAYS {
            0.0
        } else {
            Duration::from_nanos(ahead.saturating_sub(watermark).max(0).unsigned_abs())
                .as_secs_f64()
        };
        status.waiting = self.pipeline.buffered();
        (status.clients, status.clients_open) = hub.counts();
        status.malformed = hub.malformed.load(Ordering::Relaxed);
        status.refused = hub.refused.load(Ordering::Relaxed);
        status.untold = hub.untold.load(Ordering::Relaxed);
        status.absences = hub.absences.load(Ordering::Relaxed);
        status.sent_again = hub.sent_again.load(Ordering::Relaxed);
        status.held_back = hub.held_back.load(Ordering::Relaxed);
        status.unseen = hub.unseen.load(Ordering::Relaxed);
        status.memory = memory();
        drop(status);
        hub.watch_memory();
        if hub.is_memory_short() && !std::mem::replace(&mut self.is_memory_short, true) {
            let text = "the memory is full: rows that were not seen before are not looked at, \
                        and clients are held back sooner";
            self.setting.output.note("memory", text);
        }
    }
}

//! Driving a database: every client on a thread of its own, recorded.
//!
//! A transaction that the database refuses is over; the client goes on with another
//! plan. A session whose connection broke is over too; the client connects again, as a
//! new session. What ends the run early is kept in the log like everything else.

use crate::database::{Access, Claim, Database, Failure, Session, Style};
use crate::evidence::{Evidence, VersionCounts, Versions};
use crate::recorder::{Log, SessionLog};
use crate::request::Request;
use crate::workload::{Client, Workload};
use isolde_history::Interval;
use std::fmt;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// A run: who is driven, by what, into which log, and when it ends.
pub struct Drive<'a> {
    /// The database, prepared.
    pub database: &'a dyn Database,
    /// One of its claims: the isolation setting to use.
    pub claim: &'a Claim,
    /// What the clients do. Its parameters say how many there are and how many
    /// transactions they commit.
    pub workload: &'a Workload,
    /// Where it is recorded.
    pub log: &'a Log,
    /// What ends the run in its time.
    pub extent: Extent,
    /// Ends the run soon after it is set.
    pub stop: &'a AtomicBool,
    /// Counts as the run goes.
    pub progress: &'a Progress,
    /// What the database tells beside its answers.
    pub evidence: Option<Mutex<Box<dyn Evidence>>>,
}

/// How much of a workload is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As many transactions as its parameters say.
    Counted,
    /// This long, however many transactions are committed.
    Lasting(Duration),
    /// As many as its parameters say, but no longer than this.
    CountedWithin(Duration),
}

impl Extent {
    /// How long it takes at most.
    fn limit(self) -> Option<Duration> {
        match self {
            Extent::Counted => None,
            Extent::Lasting(limit) | Extent::CountedWithin(limit) => Some(limit),
        }
    }
}

/// How many transactions ended how, so far.
#[derive(Debug, Default)]
pub struct Progress {
    committed: AtomicU64,
    aborted: AtomicU64,
    unknown: AtomicU64,
    snapshots: AtomicU64,
    told: Mutex<Option<Result<VersionCounts, String>>>,
}

/// [`Progress`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Committed transactions.
    pub committed: u64,
    /// Aborted ones.
    pub aborted: u64,
    /// Those of which nobody knows.
    pub unknown: u64,
}

impl Progress {
    /// The counts now.
    pub fn counts(&self) -> Counts {
        Counts {
            committed: self.committed.load(Ordering::Relaxed),
            aborted: self.aborted.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
        }
    }

    /// How many transactions and requests the database told the snapshot of.
    pub fn snapshots(&self) -> u64 {
        self.snapshots.load(Ordering::Relaxed)
    }

    /// What the database told of its versions, or why it stopped; `None` if it was not
    /// asked, or the run goes on.
    pub fn told(&self) -> Option<Result<VersionCounts, String>> {
        self.told.lock().expect("nobody panics while setting it").clone()
    }
}

/// What ended a run before its time. What was recorded until then is in the log.
#[derive(Debug)]
pub enum DriveError {
    /// The database refuses something, or is gone.
    Database(String),
    /// The log cannot be written.
    Log(io::Error),
}

impl fmt::Display for DriveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriveError::Database(message) => out.write_str(message),
            DriveError::Log(error) => write!(out, "cannot write the history: {error}"),
        }
    }
}

impl std::error::Error for DriveError {}

impl From<io::Error> for DriveError {
    fn from(error: io::Error) -> Self {
        DriveError::Log(error)
    }
}

/// How long a client tries to connect again.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// A client that is refused again and again waits twice as long each time, from the
/// first of these up to the second: else those that were refused keep refusing each other.
const WAITS: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(20)];
/// How long clients may still wait for answers after the end of the run.
const GRACE: Duration = Duration::from_secs(2);
/// Refused transactions for each committed one, before a client gives up.
const REFUSALS_MAX: u64 = 1000;

impl Drive<'_> {
    /// Drives the database until the run ends, and completes the log.
    pub fn run(&self) -> Result<(), DriveError> {
        let started = Instant::now();
        let failed = Failed::default();
        let is_done = AtomicBool::new(false);
        let told = std::thread::scope(|scope| {
            let follow = |evidence: &Mutex<Box<dyn Evidence>>| {
                let mut evidence = evidence.lock().expect("nobody else asks");
                Versions::collected(evidence.as_mut(), &is_done)
            };
            let follower = self
                .evidence
                .as_ref()
                .map(|evidence| Builder::new().spawn_scoped(scope, move || follow(evidence)));
            let follower = match follower.transpose() {
                Ok(follower) => follower,
                Err(error) => {
                    failed.set(no_thread(&error));
                    None
                }
            };
            self.run_clients(started, &failed);
            is_done.store(true, Ordering::Release);
            follower.map(|thread| {
                thread.thread().unpark();
                thread.join().expect("asking does not panic")
            })
        });
        if let Some(told) = told
            && let Err(error) = self.write_versions(told)
        {
            failed.set(error.into());
        }
        // A log that cannot be written has no end either.
        let finished = self.log.finish();
        match failed.error.into_inner().expect("nobody panics while setting it") {
            Some(error) => Err(error),
            None => Ok(finished?),
        }
    }

    /// Runs all clients to their end.
    fn run_clients(&self, started: Instant, failed: &Failed) {
        let parameters = self.workload.parameters();
        std::thread::scope(|outer| {
            let (working, done) = std::sync::mpsc::channel::<()>();
            let end_waiting = move || self.end_waiting(started, failed, &done);
            if let Err(error) = Builder::new().spawn_scoped(outer, end_waiting) {
                failed.set(no_thread(&error));
                return;
            }
            self.spawn_clients(parameters.sessions, started, failed);
            drop(working);
        });
    }

    /// When the run is over for some time and clients still wait, their sessions are
    /// given up: an answer that never comes must not keep what was recorded.
    fn end_waiting(&self, started: Instant, failed: &Failed, done: &Receiver<()>) {
        let deadline = self.extent.limit().map(|limit| started + limit);
        let mut over_since = None;
        while let Err(RecvTimeoutError::Timeout) = done.recv_timeout(PAUSE) {
            let now = Instant::now();
            let is_over = self.stop.load(Ordering::Relaxed)
                || failed.is_set.load(Ordering::Relaxed)
                || deadline.is_some_and(|deadline| now >= deadline);
            if is_over && *over_since.get_or_insert(now) + GRACE <= now {
                self.database.abandon();
            }
        }
    }

    fn spawn_clients(&self, sessions: u32, started: Instant, failed: &Failed) {
        std::thread::scope(|scope| {
            for number in 0..sessions {
                let client = move || {
                    let mut client = self.connection(number, started, failed);
                    if let Err(error) = client.work() {
                        failed.set(error);
                    }
                };
                let spawned = Builder::new()
                    .name(format!("session {}", number + 1))
                    .stack_size(1 << 20)
                    .spawn_scoped(scope, client);
                if let Err(error) = spawned {
                    failed.set(DriveError::Database(format!(
                        "cannot start {sessions} sessions: {error}"
                    )));
                }
            }
        });
    }

    /// What the database told goes into the log, also that it stopped telling.
    fn write_versions(&self, told: Result<Versions, Failure>) -> io::Result<()> {
        let written = match told {
            Ok(versions) => versions.write(self.log).map(|()| Ok(versions.counts())),
            Err(failure) => {
                let text = format!("the order of versions is not known: {failure}");
                self.log.event(&text).map(|()| Err(failure.to_string()))
            }
        }?;
        *self.progress.told.lock().expect("nobody panics while setting it") = Some(written);
        Ok(())
    }

    fn connection<'a>(
        &'a self,
        number: u32,
        started: Instant,
        failed: &'a Failed,
    ) -> Connection<'a> {
        let endpoints = self.database.endpoints();
        let endpoint = number as usize % endpoints.len();
        let parameters = self.workload.parameters();
        let share = parameters.transactions / parameters.sessions
            + u32::from(number < parameters.transactions % parameters.sessions);
        Connection {
            drive: self,
            endpoint,
            client: self.workload.client(number, endpoints[endpoint].access),
            left: match self.extent {
                Extent::Lasting(_) => u64::MAX,
                Extent::Counted | Extent::CountedWithin(_) => u64::from(share),
            },
            refused: 0,
            slowness: 1 + number % 4,
            deadline: self.extent.limit().map(|limit| started + limit),
            failed,
        }
    }
}

/// Nobody may be missing without a word.
fn no_thread(error: &io::Error) -> DriveError {
    DriveError::Database(format!("cannot start a thread: {error}"))
}

/// The first error of any client; it ends all of them.
#[derive(Default)]
struct Failed {
    is_set: AtomicBool,
    error: Mutex<Option<DriveError>>,
}

impl Failed {
    fn set(&self, error: DriveError) {
        let mut first = self.error.lock().expect("nobody panics while setting it");
        first.get_or_insert(error);
        self.is_set.store(true, Ordering::Relaxed);
    }
}

/// How a transaction ended, for its session.
enum Ended {
    Committed,
    Aborted,
    /// And the session with it.
    Broken,
}

struct Connection<'a> {
    drive: &'a Drive<'a>,
    endpoint: usize,
    client: Client,
    /// Transactions to commit.
    left: u64,
    /// Transactions refused since the last commit.
    refused: u64,
    /// Keeps clients that wait from waking together.
    slowness: u32,
    deadline: Option<Instant>,
    failed: &'a Failed,
}

impl Connection<'_> {
    fn is_over(&self) -> bool {
        self.left == 0
            || self.drive.stop.load(Ordering::Relaxed)
            || self.failed.is_set.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn work(&mut self) -> Result<(), DriveError> {
        let mut requests = Vec::new();
        while !self.is_over() {
            let Some(mut session) = self.connect()? else { return Ok(()) };
            let name = &self.drive.database.endpoints()[self.endpoint].name;
            let mut log = self.drive.log.session(name, self.drive.claim.snapshot)?;
            let mut is_connected = true;
            while is_connected && !self.is_over() {
                log.ready();
                self.client.plan(&mut requests);
                let ended = match self.drive.database.style() {
                    Style::Interactive => self.interactive(&mut *session, &mut log, &requests),
                    Style::Whole => self.whole(&mut *session, &mut log, &requests),
                };
                match ended {
                    Ok(Ended::Committed) => self.committed(),
                    Ok(Ended::Aborted) => self.aborted()?,
                    Ok(Ended::Broken) => is_connected = false,
                    Err(error) => {
                        // What was seen until then is worth keeping.
                        log.end()?;
                        return Err(error);
                    }
                }
            }
            log.end()?;
        }
        Ok(())
    }

    /// A session, or nothing if the run ended meanwhile.
    fn connect(&self) -> Result<Option<Box<dyn Session>>, DriveError> {
        let started = Instant::now();
        loop {
            let tried = self.drive.database.connect(self.endpoint, &self.drive.claim.isolation);
            match tried {
                Ok(session) => return Ok(Some(session)),
                Err(Failure::Refused(reason)) => return Err(DriveError::Database(reason)),
                Err(failure) if started.elapsed() > PATIENCE => {
                    let name = &self.drive.database.endpoints()[self.endpoint].name;
                    let reason = failure.reason();
                    // Most reasons name the server.
                    let to =
                        if reason.contains(name) { String::new() } else { format!(" to {name}") };
                    return Err(DriveError::Database(format!(
                        "no connection{to} for {} s: {reason}",
                        PATIENCE.as_secs()
                    )));
                }
                Err(_) if self.is_over() => return Ok(None),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn committed(&mut self) {
        self.drive.progress.committed.fetch_add(1, Ordering::Relaxed);
        self.left -= 1;
        self.refused = 0;
    }

    fn aborted(&mut self) -> Result<(), DriveError> {
        self.refused += 1;
        if self.refused < REFUSALS_MAX || self.deadline.is_some() {
            // Two refusals are the luck of the draw.
            if let Some(doublings) = self.refused.checked_sub(3) {
                let wait = WAITS[0] * (1 << doublings.min(16)) * self.slowness;
                std::thread::sleep(wait.min(WAITS[1]));
            }
            return Ok(());
        }
        Err(DriveError::Database(format!(
            "the database refused {REFUSALS_MAX} transactions of a session in a row: use more \
             keys, fewer sessions or shorter transactions"
        )))
    }

    /// Whether the database is asked for more than answers.
    fn asked(&self) -> Option<()> {
        self.drive.evidence.is_some().then_some(())
    }

    fn count(&self, failure: &Failure) {
        let counter = match failure {
            Failure::Unknown(_) => &self.drive.progress.unknown,
            _ => &self.drive.progress.aborted,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn interactive(
        &mut self,
        session: &mut dyn Session,
        log: &mut SessionLog<'_>,
        requests: &[Request],
    ) -> Result<Ended, DriveError> {
        let is_reading = requests.iter().all(|request| request.kind().is_read());
        let access = if is_reading { Access::ReadOnly } else { Access::ReadWrite };
        let invoked = log.now();
        let begun = session.begin(access);
        let mut interval = Interval { invoked, completed: log.now() };
        log.begin(interval);
        if let Err(failure) = begun {
            return self.failed(log, &failure, interval);
        }
        for (place, planned) in requests.iter().enumerate() {
            let settled = self.client.settled(place, planned);
            let request = settled.as_ref();
            let invoked = log.now();
            let answer = session.execute(request);
            interval = Interval { invoked, completed: log.now() };
            match answer {
                Ok(answer) => {
                    log.answered(request, &answer, interval);
                    if let Some(snapshot) = self.asked().and_then(|()| session.snapshot()) {
                        log.executed_on(&snapshot);
                        self.drive.progress.snapshots.fetch_add(1, Ordering::Relaxed);
                    }
                    self.client.saw(request, &answer);
                }
                Err(failure) => {
                    log.unanswered(request, interval);
                    return self.failed(log, &failure, interval);
                }
            }
        }
        if self.asked().is_some() {
            match session.identity() {
                Ok(identity) => {
                    log.identity(&identity);
                    let told = u64::from(identity.snapshot.is_some());
                    self.drive.progress.snapshots.fetch_add(told, Ordering::Relaxed);
                }
                Err(failure) => return self.failed(log, &failure, interval),
            }
        }
        if let Err(error) = log.before_commit() {
            // Nothing that is not in the log may happen.
            let _ = session.rollback();
            return Err(error.into());
        }
        let invoked = log.now();
        let committed = session.commit();
        interval = Interval { invoked, completed: log.now() };
        match committed {
            Ok(()) => {
                log.committed(interval);
                Ok(Ended::Committed)
            }
            Err(failure) => self.failed(log, &failure, interval),
        }
    }

    fn whole(
        &mut self,
        session: &mut dyn Session,
        log: &mut SessionLog<'_>,
        requests: &[Request],
    ) -> Result<Ended, DriveError> {
        log.before_whole(requests, log.now())?;
        let invoked = log.now();
        let answers = session.whole(requests);
        let interval = Interval { invoked, completed: log.now() };
        match answers {
            Ok(answers) => {
                log.whole(requests, &answers, interval);
                for (request, answer) in requests.iter().zip(&answers) {
                    self.client.saw(request, answer);
                }
                log.committed(interval);
                Ok(Ended::Committed)
            }
            Err(failure) => {
                log.unanswered_whole(requests, interval);
                self.failed(log, &failure, interval)
            }
        }
    }

    fn failed(
        &self,
        log: &mut SessionLog<'_>,
        failure: &Failure,
        interval: Interval,
    ) -> Result<Ended, DriveError> {
        log.failed(failure, interval);
        match failure {
            Failure::Refused(reason) => Err(DriveError::Database(reason.clone())),
            Failure::Aborted(_) => {
                self.count(failure);
                Ok(Ended::Aborted)
            }
            Failure::Unknown(_) | Failure::Lost(_) => {
                self.count(failure);
                Ok(Ended::Broken)
            }
        }
    }
}

//! Runs a template: every session on a thread of its own, one step after another.
//!
//! A step that is not answered soon is blocked, and the others go on; its session's later
//! steps wait behind it. What soon means depends on how long other steps took: a busy machine
//! is slow to answer, too. After every step blocked sessions get a moment, because what they
//! wait for may just have happened. A session whose transaction was aborted leaves out its
//! steps up to the next begin.

use super::{Step, Template};
use crate::database::{Access, Claim, Database, Endpoint, Failure, Session};
use crate::drive::DriveError;
use crate::recorder::{Log, SessionLog};
use crate::request::Answer;
use isolde_history::Interval;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A step that takes longer is blocked, and that takes so many times as long as the slowest
/// step that was not.
const PATIENCE: Duration = Duration::from_millis(300);
const SLOWER: u32 = 20;
const PATIENCE_MAX: Duration = Duration::from_secs(3);
/// Two blocked steps in a row take less than databases wait for a lock.
const BRISK_PATIENCE_MAX: Duration = Duration::from_millis(600);
/// What blocked sessions get after a step of another.
const MOMENT: Duration = Duration::from_millis(50);
/// Databases give up waiting for locks sooner than this.
const LIMIT: Duration = Duration::from_mins(1);

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutcome {
    /// Who made it.
    pub session: char,
    /// What it was.
    pub step: Step,
    /// Whether it had to wait for others.
    pub blocked: bool,
    /// How it ended.
    pub happened: Happened,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It was done.
    Done,
    /// It was answered.
    Answered(Answer),
    /// It ended its transaction.
    Failed(Failure),
    /// Its transaction was over.
    LeftOut,
}

/// Which servers the sessions of a template use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// All the first one that takes writes.
    First,
    /// Each another one, as far as there are several. Those that take no writes are for
    /// sessions that only read.
    Spread,
}

/// How long a step may take on a busy machine before it counts as blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Long: what is slow is not taken for blocked.
    Patient,
    /// Less than a lock is waited for: who holds it goes on in time.
    Brisk,
}

impl Pace {
    fn patience_max(self) -> Duration {
        match self {
            Pace::Patient => PATIENCE_MAX,
            Pace::Brisk => BRISK_PATIENCE_MAX,
        }
    }
}

/// How a template is run.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The first of its keys.
    pub first_key: u64,
    /// Where its sessions are.
    pub servers: Servers,
    /// How soon others go on.
    pub pace: Pace,
}

impl Servers {
    /// The place of each session's server, by the sessions' names in their order.
    fn assigned(self, endpoints: &[Endpoint], steps: &[(char, Step)]) -> Vec<(char, usize)> {
        let with = |access: Access| -> Vec<usize> {
            let has = |place: &usize| endpoints[*place].access == access;
            (0..endpoints.len()).filter(has).collect()
        };
        let (writable, readable) = (with(Access::ReadWrite), with(Access::ReadOnly));
        let first = writable.first().copied().unwrap_or(0);
        let mut names: Vec<char> = steps.iter().map(|step| step.0).collect();
        names.sort_unstable();
        names.dedup();
        if self == Servers::First {
            return names.into_iter().map(|name| (name, first)).collect();
        }
        // Who only reads is where writes arrive late, if there is such a place.
        let readers = if readable.is_empty() { &writable } else { &readable };
        let (mut written, mut read) = (0, 0);
        let mut server = |name: char| {
            let (servers, next) =
                if writes(name, steps) { (&writable, &mut written) } else { (readers, &mut read) };
            let server = servers.get(*next % servers.len().max(1)).copied().unwrap_or(first);
            *next += 1;
            (name, server)
        };
        names.into_iter().map(&mut server).collect()
    }
}

/// Whether a session writes anything.
fn writes(name: char, steps: &[(char, Step)]) -> bool {
    let mut own = steps.iter().filter(|step| step.0 == name).map(|step| &step.1);
    own.any(|step| matches!(step, Step::Execute(request) if !request.kind().is_read()))
}

/// Runs a template at the isolation setting of this claim.
pub fn run(
    database: &dyn Database,
    claim: &Claim,
    template: &Template,
    Trial { first_key, servers, pace }: Trial,
    log: &Log,
) -> Result<Vec<StepOutcome>, DriveError> {
    let steps = template.steps(first_key);
    let endpoints = database.endpoints();
    let assigned = servers.assigned(endpoints, &steps);
    let outcomes = std::thread::scope(|scope| {
        let (done, results) = channel();
        let mut senders = Vec::new();
        for &(name, endpoint) in &assigned {
            let session = database
                .connect(endpoint, &claim.isolation)
                .map_err(|failure| DriveError::Database(failure.to_string()))?;
            let label = match servers {
                Servers::First => format!("session {name}"),
                Servers::Spread => format!("session {name} at {}", endpoints[endpoint].name),
            };
            let log = log.session(&label, claim.snapshot)?;
            let (sender, receiver) = channel();
            let done = done.clone();
            let access = endpoints[endpoint].access;
            let work = move || work(session, (log, access), &receiver, &done);
            std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(|error| DriveError::Database(format!("cannot start {label}: {error}")))?;
            senders.push((name, sender));
        }
        drop(done);
        step_by_step(&steps, senders, &results, pace)
    })?;
    log.finish()?;
    Ok(outcomes)
}

/// The number of a step and how it ended, or what ended the log.
type Report = (usize, Result<Happened, DriveError>);

fn step_by_step(
    steps: &[(char, Step)],
    senders: Vec<(char, Sender<(usize, Step)>)>,
    results: &Receiver<Report>,
    pace: Pace,
) -> Result<Vec<StepOutcome>, DriveError> {
    let mut ended: Vec<Option<Happened>> = vec![None; steps.len()];
    let mut blocked = vec![false; steps.len()];
    let mut slowest = Duration::ZERO;
    for (place, (name, step)) in steps.iter().enumerate() {
        let is_behind = (0..place).any(|other| steps[other].0 == *name && ended[other].is_none());
        let (_, sender) = senders.iter().find(|sender| sender.0 == *name).expect("all are there");
        // A thread that is gone has said why.
        let _ = sender.send((place, step.clone()));
        let sent = Instant::now();
        let patience = (slowest * SLOWER).clamp(PATIENCE, pace.patience_max());
        let deadline = sent + if is_behind { MOMENT } else { patience };
        while ended[place].is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || take(results, left, &mut ended)? != Taken::One {
                break;
            }
        }
        blocked[place] = ended[place].is_none();
        if !blocked[place] {
            slowest = slowest.max(sent.elapsed());
        }
        if (0..place).any(|other| ended[other].is_none()) {
            while take(results, MOMENT, &mut ended)? == Taken::One {}
        }
    }
    drop(senders);
    let deadline = Instant::now() + LIMIT;
    while ended.iter().any(Option::is_none) && Instant::now() < deadline {
        if take(results, PATIENCE, &mut ended)? == Taken::Last {
            break;
        }
    }
    let outcome = |(place, happened): (usize, Option<Happened>)| {
        let (session, step) = steps[place].clone();
        let happened = happened.ok_or_else(|| {
            DriveError::Database(format!("step {} of session {session} never ended", place + 1))
        })?;
        Ok(StepOutcome { session, step, blocked: blocked[place], happened })
    };
    ended.into_iter().enumerate().map(outcome).collect()
}

#[derive(PartialEq, Eq)]
enum Taken {
    One,
    /// Nothing happened meanwhile.
    Nothing,
    /// Nothing will.
    Last,
}

/// Takes note of the next step that ends, if one does.
fn take(
    results: &Receiver<Report>,
    wait: Duration,
    ended: &mut [Option<Happened>],
) -> Result<Taken, DriveError> {
    match results.recv_timeout(wait) {
        Ok((place, happened)) => {
            ended[place] = Some(happened?);
            Ok(Taken::One)
        }
        Err(RecvTimeoutError::Timeout) => Ok(Taken::Nothing),
        Err(RecvTimeoutError::Disconnected) => Ok(Taken::Last),
    }
}

/// One session: makes its steps and records them.
fn work(
    mut session: Box<dyn Session>,
    (mut log, access): (SessionLog<'_>, Access),
    steps: &Receiver<(usize, Step)>,
    done: &Sender<Report>,
) {
    let mut is_open = false;
    while let Ok((place, step)) = steps.recv() {
        let happened = if is_open || step == Step::Begin {
            perform(&mut *session, access, &mut log, &step)
        } else {
            Ok(Happened::LeftOut)
        };
        is_open = match &happened {
            Ok(Happened::Failed(_)) | Err(_) => false,
            Ok(_) => match step {
                Step::Begin => true,
                Step::Commit | Step::Rollback => false,
                Step::Execute(_) => is_open,
            },
        };
        // The runner may have given up.
        let _ = done.send((place, happened));
    }
    if let Err(error) = log.end() {
        let _ = done.send((0, Err(error.into())));
    }
}

fn perform(
    session: &mut dyn Session,
    access: Access,
    log: &mut SessionLog<'_>,
    step: &Step,
) -> Result<Happened, DriveError> {
    if *step == Step::Commit {
        log.before_commit()?;
    }
    let invoked = log.now();
    let result = match step {
        Step::Begin => session.begin(access).map(|()| Happened::Done),
        Step::Execute(request) => session.execute(request).map(Happened::Answered),
        Step::Commit => session.commit().map(|()| Happened::Done),
        Step::Rollback => session.rollback().map(|()| Happened::Done),
    };
    let interval = Interval { invoked, completed: log.now() };
    match (step, &result) {
        (Step::Begin, _) => log.begin(interval),
        (Step::Execute(request), Ok(Happened::Answered(answer))) => {
            log.answered(request, answer, interval);
        }
        (Step::Execute(request), _) => log.unanswered(request, interval),
        (Step::Commit, Ok(_)) => log.committed(interval),
        (Step::Rollback, Ok(_)) => {
            log.failed(&Failure::Aborted("rolled back".to_owned()), interval);
        }
        (Step::Commit | Step::Rollback, Err(_)) => {}
    }
    match result {
        Ok(happened) => Ok(happened),
        Err(Failure::Refused(reason)) => Err(DriveError::Database(reason)),
        Err(failure) => {
            log.failed(&failure, interval);
            Ok(Happened::Failed(failure))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::TEMPLATES;

    #[test]
    fn sessions_are_spread_and_none_writes_where_it_cannot() {
        let endpoint = |name: &str, access| Endpoint { name: name.to_owned(), access };
        let long_fork = TEMPLATES.iter().find(|it| it.name == "long-fork").expect("it is there");
        let steps = long_fork.steps(0);
        let alike = [(); 2].map(|()| endpoint("node", Access::ReadWrite));
        let places = |servers: Servers, endpoints: &[Endpoint]| -> Vec<usize> {
            servers.assigned(endpoints, &steps).iter().map(|row| row.1).collect()
        };
        // A, B and I write, C and D read.
        assert_eq!(places(Servers::First, &alike), [0, 0, 0, 0, 0]);
        assert_eq!(places(Servers::Spread, &alike), [0, 1, 0, 1, 0]);
        let standby = [endpoint("standby", Access::ReadOnly), endpoint("p", Access::ReadWrite)];
        assert_eq!(places(Servers::First, &standby), [1, 1, 1, 1, 1]);
        assert_eq!(places(Servers::Spread, &standby), [1, 1, 0, 0, 1]);
    }
}

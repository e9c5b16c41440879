//! Runs a template: every session on a thread of its own, one step after another.
//!
//! A step that is not answered soon is blocked, and the others go on; its session's later
//! steps wait behind it. After every step blocked sessions get a moment, because what they
//! wait for may just have happened. A session whose transaction was aborted leaves out its
//! steps up to the next begin.

use super::{Step, Template};
use crate::database::{Access, Claim, Database, Failure, Session};
use crate::drive::DriveError;
use crate::recorder::{Log, SessionLog};
use crate::request::Answer;
use isolde_history::Interval;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// A step that takes longer is blocked.
const PATIENCE: Duration = Duration::from_millis(300);
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

/// Runs a template on keys from this one, at the isolation setting of this claim.
pub fn run(
    database: &dyn Database,
    claim: &Claim,
    template: &Template,
    first_key: u64,
    log: &Log,
) -> Result<Vec<StepOutcome>, DriveError> {
    let steps = template.steps(first_key);
    let is_writable = |endpoint: &crate::Endpoint| endpoint.access == Access::ReadWrite;
    let endpoint = database.endpoints().iter().position(is_writable).unwrap_or(0);
    let mut names: Vec<char> = steps.iter().map(|step| step.0).collect();
    names.sort_unstable();
    names.dedup();
    let outcomes = std::thread::scope(|scope| {
        let (done, results) = channel();
        let mut senders = Vec::new();
        for &name in &names {
            let session = database
                .connect(endpoint, &claim.isolation)
                .map_err(|failure| DriveError::Database(failure.to_string()))?;
            let log = log.session(&format!("session {name}"), claim.snapshot)?;
            let (sender, receiver) = channel();
            let done = done.clone();
            scope.spawn(move || work(session, log, &receiver, &done));
            senders.push((name, sender));
        }
        drop(done);
        step_by_step(&steps, senders, &results)
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
) -> Result<Vec<StepOutcome>, DriveError> {
    let mut ended: Vec<Option<Happened>> = vec![None; steps.len()];
    let mut blocked = vec![false; steps.len()];
    for (place, (name, step)) in steps.iter().enumerate() {
        let is_behind = (0..place).any(|other| steps[other].0 == *name && ended[other].is_none());
        let (_, sender) = senders.iter().find(|sender| sender.0 == *name).expect("all are there");
        // A thread that is gone has said why.
        let _ = sender.send((place, step.clone()));
        let deadline = Instant::now() + if is_behind { MOMENT } else { PATIENCE };
        while ended[place].is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || take(results, left, &mut ended)? != Taken::One {
                break;
            }
        }
        blocked[place] = ended[place].is_none();
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
    mut log: SessionLog<'_>,
    steps: &Receiver<(usize, Step)>,
    done: &Sender<Report>,
) {
    let mut is_open = false;
    while let Ok((place, step)) = steps.recv() {
        let happened = if is_open || step == Step::Begin {
            perform(&mut *session, &mut log, &step)
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
    log: &mut SessionLog<'_>,
    step: &Step,
) -> Result<Happened, DriveError> {
    if *step == Step::Commit {
        log.before_commit()?;
    }
    let invoked = log.now();
    let result = match step {
        Step::Begin => session.begin(Access::ReadWrite).map(|()| Happened::Done),
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

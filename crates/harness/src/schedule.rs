//! Clients of the simulated database that take turns: one seed, one history.
//!
//! Workloads of rows need a database that answers requests, so this drives one as a run would,
//! but without threads and without a clock. Whose turn it is follows from the seed; a turn is
//! one request, and a moment of time passes before and after it. What the clients saw goes
//! through the same log as that of a run, into memory, with the order of versions and the snapshots
//! that the database tells.

use crate::database::{Access, Database, Failure, Needs, Session, SnapshotPoint, Style};
use crate::evidence::Versions;
use crate::parameters::{ParameterError, Parameters, Times};
use crate::random::Random;
use crate::recorder::{Log, SessionLog};
use crate::request::Request;
use crate::simulated::Simulated;
use crate::workload::{Client, Workload};
use isolde_history::format::{self, Input, ReadOptions};
use isolde_history::{History, Interval, Source};
use std::sync::atomic::AtomicBool;

/// Refused transactions for each that is asked for, before a workload is given up.
const REFUSALS_MAX: u64 = 1000;

/// The history of a workload of rows. Transactions that the database refused are in it.
pub(crate) fn generate(parameters: &Parameters) -> Result<History, ParameterError> {
    let workload = Workload::new(*parameters, None)?;
    let database = Simulated::new(Some(parameters.isolation), parameters.bug, parameters.seed);
    let mut database = database.in_turns();
    let needs = Needs { prefix: "isolde_turns_".to_owned(), requests: workload.requests() };
    database.prepare(&needs).map_err(|failure| refused(&failure))?;
    let log = Log::in_memory();
    // Without the order of versions, what conditions found could seldom be judged.
    let mut evidence = database.evidence().ok();
    let mut clients = Vec::with_capacity(parameters.sessions as usize);
    for number in 0..parameters.sessions {
        clients.push(
            Turns::new(&database, &workload, &log, number).map_err(|failure| refused(&failure))?,
        );
    }
    let mut random = Random::new(parameters.seed);
    let mut refusals = REFUSALS_MAX * u64::from(parameters.transactions);
    let mut busy: Vec<usize> = (0..clients.len()).filter(|&at| clients[at].left > 0).collect();
    while !busy.is_empty() {
        let turn = random.below(busy.len() as u32) as usize;
        let client = &mut clients[busy[turn]];
        match client.step(&log) {
            Ok(()) => {}
            Err(Failure::Aborted(_)) if refusals > 0 => refusals -= 1,
            Err(failure) => return Err(refused(&failure)),
        }
        if client.left == 0 {
            busy.swap_remove(turn);
        }
    }
    for client in clients {
        client.log.end().map_err(|error| ParameterError::new(error.to_string()))?;
    }
    if let Some(evidence) = &mut evidence {
        let told = Versions::collected(evidence.as_mut(), &AtomicBool::new(true));
        let written = told.map_err(|failure| refused(&failure))?.write(&log);
        written.map_err(|error| ParameterError::new(error.to_string()))?;
    }
    log.finish().map_err(|error| ParameterError::new(error.to_string()))?;
    read(&log.into_bytes(), parameters.times)
}

fn refused(failure: &Failure) -> ParameterError {
    ParameterError::new(failure.reason().to_owned())
}

fn read(log: &[u8], times: Times) -> Result<History, ParameterError> {
    let input = Input::File(Source::from_bytes("generated", log));
    let read = format::read_detected(input, ReadOptions::default());
    let (history, _) = read.map_err(|error| ParameterError::new(error.message))?;
    Ok(if times == Times::None { history.without_times() } else { history })
}

/// One client, between two requests.
struct Turns<'a> {
    session: Box<dyn Session>,
    client: Client,
    log: SessionLog<'a>,
    style: Style,
    /// Whether the database tells what it did.
    is_told: bool,
    /// Transactions to commit.
    left: u32,
    requests: Vec<Request>,
    /// The next of them; `None` before the transaction begins.
    next: Option<usize>,
}

impl<'a> Turns<'a> {
    fn new(
        database: &Simulated,
        workload: &Workload,
        log: &'a Log,
        number: u32,
    ) -> Result<Turns<'a>, Failure> {
        let parameters = workload.parameters();
        let endpoints = database.endpoints();
        let endpoint = number as usize % endpoints.len();
        let more = u32::from(number < parameters.transactions % parameters.sessions);
        let snapshot = database.claims().first().map_or(SnapshotPoint::Begin, |it| it.snapshot);
        let session = log.session(&endpoints[endpoint].name, snapshot);
        Ok(Turns {
            session: database.connect(endpoint, database.default_isolation())?,
            client: workload.client(number, Access::ReadWrite),
            log: session.map_err(|error| Failure::Refused(error.to_string()))?,
            style: database.style(),
            is_told: parameters.isolation.has_one_order(),
            left: parameters.transactions / parameters.sessions + more,
            requests: Vec::new(),
            next: None,
        })
    }

    /// The next request, or the begin or the commit.
    fn step(&mut self, log: &Log) -> Result<(), Failure> {
        let invoked = log.now();
        let Some(next) = self.next else {
            self.client.plan(&mut self.requests);
            if self.style == Style::Whole {
                return self.whole(log, invoked);
            }
            self.session.begin(Access::ReadWrite)?;
            self.log.begin(Interval { invoked, completed: log.now() });
            self.next = Some(0);
            return Ok(());
        };
        let done = if let Some(request) = self.requests.get(next) {
            self.session.execute(request).map(Some)
        } else {
            if self.is_told {
                self.log.identity(&self.session.identity()?);
            }
            self.session.commit().map(|()| None)
        };
        let interval = Interval { invoked, completed: log.now() };
        match done {
            Ok(Some(answer)) => {
                self.log.answered(&self.requests[next], &answer, interval);
                if let Some(snapshot) = self.session.snapshot().filter(|_| self.is_told) {
                    self.log.executed_on(&snapshot);
                }
                self.client.saw(&self.requests[next], &answer);
                self.next = Some(next + 1);
                Ok(())
            }
            Ok(None) => {
                self.before_commit()?;
                self.log.committed(interval);
                (self.left, self.next) = (self.left - 1, None);
                Ok(())
            }
            Err(failure) => {
                if let Some(request) = self.requests.get(next) {
                    self.log.unanswered(request, interval);
                }
                self.log.failed(&failure, interval);
                self.next = None;
                Err(failure)
            }
        }
    }

    fn before_commit(&mut self) -> Result<(), Failure> {
        self.log.before_commit().map_err(|error| Failure::Refused(error.to_string()))
    }

    fn whole(&mut self, log: &Log, invoked: isolde_history::Time) -> Result<(), Failure> {
        let sent = self.log.before_whole(&self.requests, invoked);
        sent.map_err(|error| Failure::Refused(error.to_string()))?;
        let answers = self.session.whole(&self.requests);
        let interval = Interval { invoked, completed: log.now() };
        match answers {
            Ok(answers) => {
                self.log.whole(&self.requests, &answers, interval);
                self.log.committed(interval);
                self.left -= 1;
                Ok(())
            }
            Err(failure) => {
                self.log.unanswered_whole(&self.requests, interval);
                self.log.failed(&failure, interval);
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bug, Isolation, preset};
    use isolde::{Check, Level, Limits, Verdict};
    use isolde_history::Index;
    use isolde_history::format::to_text;

    fn parameters(name: &str, seed: u64) -> Parameters {
        let parameters = preset(name).expect("a preset").parameters;
        Parameters { transactions: 200, sessions: 4, keys: 12, seed, ..parameters }
    }

    fn verdict(parameters: &Parameters, level: Level) -> Verdict {
        let history = crate::generate(parameters).expect("a history");
        let index = Index::new(&history);
        Check::new(&history, &index, &Limits::NONE).decide(level)
    }

    #[test]
    fn one_seed_is_one_history() {
        let text = |seed| to_text(&crate::generate(&parameters("predicates", seed)).expect("one"));
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    #[test]
    fn every_preset_of_rows_keeps_its_level() {
        for preset in crate::PRESETS {
            if matches!(preset.parameters.kind, crate::TxnKind::Rows(_)) {
                let verdict = verdict(&parameters(preset.name, 3), Level::Serializable);
                assert!(matches!(verdict, Verdict::Satisfied(_)), "{}: {verdict:?}", preset.name);
            }
        }
    }

    /// Levels of real time would hold for want of times.
    #[test]
    fn rows_without_times_have_none() {
        for preset in crate::PRESETS {
            let without = Parameters { times: Times::None, ..parameters(preset.name, 1) };
            let history = crate::generate(&without).expect("a history");
            assert!(!history.has_times() && !history.has_op_times(), "{}", preset.name);
        }
    }

    #[test]
    fn a_bug_of_conditions_shows() {
        let parameters = Parameters {
            bug: Some(Bug::Phantom),
            isolation: Isolation::SnapshotIsolation,
            ..parameters("phantoms", 1)
        };
        let verdict = verdict(&parameters, Level::SnapshotIsolation);
        assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
    }
}

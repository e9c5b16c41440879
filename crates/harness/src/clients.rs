//! The clients: sessions that take turns, one request at a time.
//!
//! Whose turn it is, what it does and what the store copies when all come from one
//! sequence of numbers, so that the seed decides everything. Nothing runs in
//! parallel and nothing looks at a real clock.

use crate::clock::Clock;
use crate::parameters::{Aborts, Isolation, ParameterError, Parameters, Times, TxnKind};
use crate::plan::{Action, Planner};
use crate::random::Random;
use crate::record::Recorder;
use crate::store::{self, Conflict, Content, Done, Faults, OpenTxn, Store};
use isolde_history::{History, Outcome};

/// The history that these parameters stand for.
///
/// It satisfies the level of [`Parameters::isolation`], session order included,
/// unless the store has a bug or an anomaly is injected. Levels above it are usually
/// violated by a history of some size, but nothing forces them to be.
pub fn generate(parameters: &Parameters) -> Result<History, ParameterError> {
    parameters.validate()?;
    if let Some(bug) = parameters.bug {
        bug.validate(parameters)?;
    }
    if let TxnKind::Rows(_) = parameters.kind {
        return crate::schedule::generate(parameters);
    }
    let lists = parameters.kind == TxnKind::ListAppend;
    let content = if lists { Content::Lists } else { Content::Registers };
    let faults = parameters.bug.map(|bug| Faults::new(bug, parameters.seed));
    let mut clients = Clients::new(parameters, store::open(parameters.isolation, content, faults));
    while !clients.busy.is_empty() {
        let turn = clients.random.below(clients.busy.len() as u32) as usize;
        clients.step(turn);
        if clients.last_value >= VALUES_MAX {
            return Err(ParameterError::new(format!(
                "expected a workload that makes progress, found {VALUES_MAX} writes and still \
                 sessions with transactions left: use more keys or fewer sessions"
            )));
        }
    }
    let Clients { mut recorder, clock, planner, last_value, .. } = clients;
    if let Some(anomaly) = parameters.anomaly {
        anomaly.inject(&mut recorder, planner.key_count(), last_value, clock.after_all());
    }
    recorder.finish().map_err(|error| ParameterError::new(error.message))
}

/// Written values are numbers of 31 bits, some of which anomalies need.
const VALUES_MAX: u32 = (1 << 31) - (1 << 20);

struct Clients {
    random: Random,
    planner: Planner,
    store: Box<dyn Store + Send>,
    recorder: Recorder,
    clock: Clock,
    /// The transaction of each session; one without a plan has not begun.
    txns: Vec<OpenTxn>,
    /// Transactions that each session has yet to commit.
    left: Vec<u32>,
    /// Sessions that have any left.
    busy: Vec<u32>,
    last_value: u32,
    lists: bool,
    times: Times,
    record_aborts: bool,
}

impl Clients {
    fn new(parameters: &Parameters, store: Box<dyn Store + Send>) -> Self {
        let sessions = parameters.sessions;
        let share = |session| {
            let more = u32::from(session < parameters.transactions % sessions);
            parameters.transactions / sessions + more
        };
        let left: Vec<u32> = (0..sessions).map(share).collect();
        // What a refused transaction wrote in place, or left behind, may have been read.
        let must_record =
            parameters.isolation == Isolation::ReadUncommitted || parameters.bug.is_some();
        Clients {
            random: Random::new(parameters.seed),
            planner: Planner::new(parameters),
            store,
            recorder: Recorder::new(parameters),
            clock: Clock::default(),
            txns: (0..sessions).map(|session| OpenTxn { session, ..OpenTxn::default() }).collect(),
            busy: (0..sessions).filter(|&session| left[session as usize] > 0).collect(),
            left,
            last_value: 0,
            lists: parameters.kind == TxnKind::ListAppend,
            times: parameters.times,
            record_aborts: must_record || parameters.aborts == Aborts::Recorded,
        }
    }

    /// The next request of the busy session at this place.
    fn step(&mut self, turn: usize) {
        let session = self.busy[turn] as usize;
        let txn = &mut self.txns[session];
        if self.times != Times::None {
            self.clock.note(&mut txn.stamps, &mut self.random);
        }
        if txn.plan.is_empty() {
            self.planner.plan(&mut self.random, &mut txn.plan);
            self.store.begin(txn, &mut self.random);
        } else if txn.done.len() < txn.plan.len() {
            if self.request(session) == Err(Conflict) {
                self.end(session, Outcome::Aborted);
            }
        } else if self.store.commit(txn).is_ok() {
            self.end(session, Outcome::Committed);
            self.left[session] -= 1;
            if self.left[session] == 0 {
                self.busy.swap_remove(turn);
            }
        } else {
            self.end(session, Outcome::Aborted);
        }
    }

    fn request(&mut self, session: usize) -> Result<(), Conflict> {
        let txn = &mut self.txns[session];
        let intent = txn.plan[txn.done.len()];
        let (action, key) = (intent.action, intent.key);
        let value = match action {
            // Of a list the store's part is read; the rest is in the record.
            Action::Read if self.lists => self.store.read(txn, key),
            Action::Read => match txn.own_value(key) {
                Some(own) => self.store.read_own(txn, key, own),
                None if txn.is_future(key) && self.store.foresees() => {
                    self.last_value += 1;
                    txn.foreseen.push((key, self.last_value));
                    self.last_value
                }
                None => self.store.read(txn, key),
            },
            Action::Write => {
                let value = txn.foretold(key).unwrap_or_else(|| {
                    self.last_value += 1;
                    self.last_value
                });
                self.store.write(txn, key, value)?;
                value
            }
        };
        txn.done.push(Done { action, key, value });
        Ok(())
    }

    fn end(&mut self, session: usize, outcome: Outcome) {
        let txn = &mut self.txns[session];
        if outcome == Outcome::Aborted {
            self.store.undo(txn);
        }
        if outcome == Outcome::Committed || self.record_aborts {
            self.recorder.record(txn, outcome);
        }
        txn.plan.clear();
        txn.done.clear();
        txn.foreseen.clear();
        txn.stamps.clear();
    }
}

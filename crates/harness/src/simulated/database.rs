//! The simulated database as one that can be driven.
//!
//! Every request takes effect at one instant, under one lock, and never waits for
//! another transaction: who comes second is refused. There is a store for each isolation
//! setting, so sessions of different settings do not meet.

use super::Bug;
use crate::database::{
    Access, Answer, Claim, Database, Endpoint, Failure, Needs, Request, RequestKind, Session,
    SnapshotPoint, Style,
};
use crate::evidence::{Evidence, Installed};
use crate::parameters::Isolation;
use crate::plan::Action;
use crate::random::Random;
use crate::store::{self, Content, Done, Faults, OpenTxn, REPLICAS, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The simulated database.
pub struct Simulated {
    claims: Vec<Claim>,
    endpoints: Vec<Endpoint>,
    default: Isolation,
    has_lists: bool,
    bug: Option<Bug>,
    seed: u64,
    /// One for each isolation setting; empty until [`Database::prepare`].
    worlds: Vec<Arc<Mutex<World>>>,
}

impl Simulated {
    /// A database of this level with this bug. Without a level it has all of them as
    /// isolation settings, but then no lists, because not all of them can have lists.
    pub fn new(level: Option<Isolation>, bug: Option<Bug>, seed: u64) -> Simulated {
        let default = level.unwrap_or(Isolation::Serializable);
        let levels = level.map_or(Isolation::ALL.to_vec(), |level| vec![level]);
        let claim = |isolation: Isolation| {
            // Snapshots are of the last commit, and checks look at everything before.
            let (promise, snapshot) = match isolation {
                Isolation::SnapshotIsolation => ("strong-snapshot-isolation", SnapshotPoint::Begin),
                Isolation::Serializable => ("strict-serializable", SnapshotPoint::Begin),
                Isolation::ReadAtomic | Isolation::Causal => {
                    (isolation.name(), SnapshotPoint::Begin)
                }
                _ => (isolation.name(), SnapshotPoint::EachRequest),
            };
            Claim::new(isolation.name(), &[promise], snapshot)
        };
        let replicated = matches!(default, Isolation::ReadAtomic | Isolation::Causal);
        let count = if replicated { REPLICAS } else { 1 };
        let endpoint =
            |number| Endpoint { name: format!("replica-{number}"), access: Access::ReadWrite };
        Simulated {
            has_lists: level.is_some_and(Isolation::has_one_order),
            claims: levels.into_iter().map(claim).collect(),
            endpoints: (1..=count).map(endpoint).collect(),
            default,
            bug,
            seed,
            worlds: Vec::new(),
        }
    }
}

impl Database for Simulated {
    fn name(&self) -> &'static str {
        "simulated database"
    }

    fn version(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self.bug {
            Some(bug) => format!("{version} with {}", bug.row().name),
            None => version.to_owned(),
        }
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        self.default.name()
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        if !kind.is_list() {
            return true;
        }
        self.has_lists && self.bug.is_none_or(|bug| bug.row().on_lists)
    }

    fn style(&self) -> Style {
        // A read can only be executed after a later request if that is known.
        if self.bug == Some(Bug::FutureRead) { Style::Whole } else { Style::Interactive }
    }

    fn prepare(&mut self, _needs: &Needs) -> Result<(), Failure> {
        let world = |isolation| {
            let bug = self.bug.filter(|bug| bug.fits(isolation));
            Arc::new(Mutex::new(World::new(isolation, bug, self.seed)))
        };
        self.worlds = Isolation::ALL.map(world).into();
        Ok(())
    }

    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let place = Isolation::ALL.iter().position(|level| level.name() == isolation);
        let world = place.and_then(|place| self.worlds.get(place)).ok_or_else(|| {
            Failure::Refused(format!("the simulated database has no {isolation}"))
        })?;
        let number = {
            let mut world = locked(world);
            world.sessions += 1;
            world.sessions
        };
        // A session's replica is its number's remainder.
        let session = number * REPLICAS as u32 + (endpoint % REPLICAS) as u32;
        let txn = OpenTxn { session, ..OpenTxn::default() };
        Ok(Box::new(SimulatedSession { world: Arc::clone(world), txn }))
    }

    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        if !self.default.has_one_order() {
            return Err(Failure::Refused(format!(
                "expected a level whose versions have one order for --white-box, found {}",
                self.default.name()
            )));
        }
        // Those without one order tell nothing, whatever setting is used.
        let ordered = Isolation::ALL.iter().zip(&self.worlds);
        let ordered = ordered.filter(|(level, _)| level.has_one_order());
        let worlds: Vec<_> = ordered.map(|(_, world)| Arc::clone(world)).collect();
        for world in &worlds {
            locked(world).installed = Some(Vec::new());
        }
        Ok(Box::new(Watched { worlds }))
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        self.worlds.clear();
        Ok(())
    }
}

/// Versions of all stores, as they were installed.
struct Watched {
    worlds: Vec<Arc<Mutex<World>>>,
}

impl Evidence for Watched {
    fn collect(&mut self, found: &mut Vec<Installed>) -> Result<(), Failure> {
        for world in &self.worlds {
            found.extend(locked(world).installed.iter_mut().flat_map(std::mem::take));
        }
        Ok(())
    }
}

/// The widest range that is read at once.
const RANGE_MAX: u64 = 1 << 16;

/// One store, and what its small numbers stand for.
struct World {
    store: Box<dyn Store + Send>,
    random: Random,
    bug: Option<Bug>,
    /// Numbers of registers, which are even, and of lists, which are odd.
    keys: HashMap<(u64, Kind), u32>,
    /// The keys of these numbers, by half of them.
    names: Vec<u64>,
    /// Values, by their number; the number 0 is that of no value.
    values: Vec<u64>,
    /// Committed elements of each list.
    elements: HashMap<u32, Vec<u64>>,
    sessions: u32,
    /// Committed versions that nobody has collected yet; `None` if nobody is going to.
    installed: Option<Vec<Installed>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Register,
    List,
}

impl World {
    fn new(isolation: Isolation, bug: Option<Bug>, seed: u64) -> World {
        let faults = bug.map(|bug| Faults::new(bug, seed));
        World {
            store: store::open(isolation, Content::Both, faults),
            random: Random::new(seed),
            bug,
            keys: HashMap::new(),
            names: Vec::new(),
            values: Vec::new(),
            elements: HashMap::new(),
            sessions: 0,
            installed: None,
        }
    }

    fn key(&mut self, key: u64, kind: Kind) -> u32 {
        let next = (self.keys.len() * 2) as u32;
        *self.keys.entry((key, kind)).or_insert_with(|| {
            self.names.push(key);
            next + u32::from(kind == Kind::List)
        })
    }

    fn number(&mut self, value: u64) -> u32 {
        self.values.push(value);
        self.values.len() as u32
    }

    fn value(&self, number: u32) -> Option<u64> {
        let place = (number as usize).checked_sub(1)?;
        // A number that the store invented stands for a value that nobody has.
        Some(self.values.get(place).copied().unwrap_or((1 << 62) + u64::from(number)))
    }

    fn read(&mut self, txn: &mut OpenTxn, key: u32) -> Option<u64> {
        let number = match txn.own_value(key) {
            Some(own) => self.store.read_own(txn, key, own),
            None => self.store.read(txn, key),
        };
        txn.done.push(Done { action: Action::Read, key, value: number });
        self.value(number)
    }

    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: Option<u64>) -> Result<(), Failure> {
        let number = value.map_or(0, |value| self.number(value));
        if self.store.write(txn, key, number).is_err() {
            self.undo(txn);
            return Err(refused());
        }
        txn.done.push(Done { action: Action::Write, key, value: number });
        Ok(())
    }

    fn rows(&mut self, txn: &mut OpenTxn, low: u64, high: u64) -> Result<Vec<(u64, u64)>, Failure> {
        if high.saturating_sub(low) >= RANGE_MAX {
            return Err(Failure::Refused(format!(
                "expected a range of at most {RANGE_MAX} keys, found {low} to {high}"
            )));
        }
        let mut rows = Vec::new();
        for name in low..=high {
            let key = self.key(name, Kind::Register);
            let value = self.read(txn, key);
            if value.is_none() && self.bug == Some(Bug::Phantom) {
                txn.done.pop();
            }
            rows.extend(value.map(|value| (name, value)));
        }
        Ok(rows)
    }

    fn list(&mut self, txn: &mut OpenTxn, key: u32) -> Vec<u64> {
        let length = self.store.read(txn, key);
        let committed = self.elements.get(&key).map_or(&[][..], Vec::as_slice);
        let mut seen = committed[..length as usize].to_vec();
        let own = txn.writes().filter(|write| write.0 == key);
        seen.extend(own.filter_map(|write| self.value(write.1)));
        txn.done.push(Done { action: Action::Read, key, value: length });
        seen
    }

    fn answer(&mut self, txn: &mut OpenTxn, request: &Request) -> Result<Answer, Failure> {
        Ok(match *request {
            Request::Read { key } => {
                let key = self.key(key, Kind::Register);
                Answer::Value(self.read(txn, key))
            }
            Request::Write { key, value } => {
                let key = self.key(key, Kind::Register);
                self.write(txn, key, Some(value))?;
                Answer::Done
            }
            Request::ReadList { key } => {
                let key = self.key(key, Kind::List);
                Answer::List(self.list(txn, key))
            }
            Request::Append { key, value } => {
                let key = self.key(key, Kind::List);
                self.write(txn, key, Some(value))?;
                Answer::Done
            }
            Request::Insert { key, value } => self.replace(txn, key, None, Some(value))?,
            Request::CompareAndSet { key, expected, value } => {
                self.replace(txn, key, expected, Some(value))?
            }
            Request::Delete { key } => {
                let key = self.key(key, Kind::Register);
                let is_there = self.read(txn, key).is_some();
                if is_there {
                    self.write(txn, key, None)?;
                }
                Answer::Applied(is_there)
            }
            Request::Range { low, high } => Answer::Rows(self.rows(txn, low, high)?),
            Request::UpdateRange { low, high, first } => {
                let mut rows = self.rows(txn, low, high)?;
                for (name, value) in &mut rows {
                    *value = first + (*name - low);
                    let key = self.key(*name, Kind::Register);
                    self.write(txn, key, Some(*value))?;
                }
                Answer::Rows(rows)
            }
        })
    }

    /// Writes a register that has the expected value.
    fn replace(
        &mut self,
        txn: &mut OpenTxn,
        key: u64,
        expected: Option<u64>,
        value: Option<u64>,
    ) -> Result<Answer, Failure> {
        let key = self.key(key, Kind::Register);
        let applies = self.read(txn, key) == expected;
        if applies {
            self.write(txn, key, value)?;
        }
        Ok(Answer::Applied(applies))
    }

    fn begin(&mut self, txn: &mut OpenTxn) {
        txn.done.clear();
        self.store.begin(txn, &mut self.random);
    }

    fn commit(&mut self, txn: &mut OpenTxn) -> Result<(), Failure> {
        if self.store.commit(txn).is_err() {
            self.undo(txn);
            return Err(refused());
        }
        for (key, number) in txn.writes().filter(|write| write.0 % 2 == 1) {
            let value = self.value(number);
            self.elements.entry(key).or_default().extend(value);
        }
        self.note_installed(txn);
        txn.done.clear();
        txn.replaced.clear();
        Ok(())
    }

    /// Versions are installed when their transaction commits.
    fn note_installed(&mut self, txn: &OpenTxn) {
        let Some(mut installed) = self.installed.take() else { return };
        for (number, value) in txn.writes().filter(|write| write.0 % 2 == 0) {
            let key = self.names[number as usize / 2];
            installed.push(Installed { key, value: self.value(value) });
        }
        self.installed = Some(installed);
    }

    fn undo(&mut self, txn: &mut OpenTxn) {
        self.store.undo(txn);
        txn.done.clear();
        txn.replaced.clear();
    }
}

fn refused() -> Failure {
    Failure::Aborted("conflict".to_owned())
}

fn locked(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().expect("no request panics")
}

struct SimulatedSession {
    world: Arc<Mutex<World>>,
    txn: OpenTxn,
}

impl Session for SimulatedSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        locked(&self.world).begin(&mut self.txn);
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        // A server would be some way off: without that, transactions would seldom meet. Who
        // is alone meets nobody.
        if locked(&self.world).sessions > 1 {
            std::thread::yield_now();
        }
        locked(&self.world).answer(&mut self.txn, request)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        locked(&self.world).commit(&mut self.txn)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        locked(&self.world).undo(&mut self.txn);
        Ok(())
    }

    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        let mut world = locked(&self.world);
        world.begin(&mut self.txn);
        let mut answers = Vec::with_capacity(requests.len());
        for (place, request) in requests.iter().enumerate() {
            let mut answer = world.answer(&mut self.txn, request)?;
            if let Request::Read { key } = *request
                && let Some(value) = written(&requests[place..], key)
                && written(&requests[..place], key).is_none()
                && world.store.foresees()
            {
                answer = Answer::Value(Some(value));
            }
            answers.push(answer);
        }
        world.commit(&mut self.txn)?;
        Ok(answers)
    }
}

impl Drop for SimulatedSession {
    fn drop(&mut self) {
        if let Ok(mut world) = self.world.lock() {
            world.undo(&mut self.txn);
        }
    }
}

/// The value that the first write of `key` among these requests has.
fn written(requests: &[Request], key: u64) -> Option<u64> {
    requests.iter().find_map(|request| match *request {
        Request::Write { key: other, value } if other == key => Some(value),
        _ => None,
    })
}

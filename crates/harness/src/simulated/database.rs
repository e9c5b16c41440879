//! The simulated database as one that can be driven.
//!
//! Every request takes effect at one instant, under one lock, and never waits for
//! another transaction: who comes second is refused. There is a store for each isolation
//! setting, so sessions of different settings do not meet.

use super::Bug;
use super::world::World;
use crate::database::{
    Access, Claim, Database, Endpoint, Failure, Identity, Needs, Session, SnapshotPoint, Style,
};
use crate::evidence::{Evidence, Installed};
use crate::parameters::Isolation;
use crate::request::{Answer, Request, RequestKind};
use crate::store::{OpenTxn, REPLICAS};
use isolde_history::Snapshot;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The simulated database.
pub struct Simulated {
    claims: Vec<Claim>,
    endpoints: Vec<Endpoint>,
    default: Isolation,
    has_lists: bool,
    bug: Option<Bug>,
    seed: u64,
    /// Whether one thread makes all requests, so that nobody waits for others.
    is_in_turns: bool,
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
            is_in_turns: false,
            worlds: Vec::new(),
        }
    }

    /// The same for one thread that makes the requests of all clients.
    #[must_use]
    pub(crate) fn in_turns(self) -> Simulated {
        Simulated { is_in_turns: true, ..self }
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

    fn bug(&self) -> Option<Bug> {
        self.bug
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
        let (world, is_in_turns) = (Arc::clone(world), self.is_in_turns);
        Ok(Box::new(SimulatedSession { world, txn, is_in_turns }))
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

/// How far off a server with a bug is.
const WAY: Duration = Duration::from_micros(20);

fn locked(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().expect("no request panics")
}

struct SimulatedSession {
    world: Arc<Mutex<World>>,
    txn: OpenTxn,
    is_in_turns: bool,
}

impl Session for SimulatedSession {
    fn begin(&mut self, _access: Access) -> Result<(), Failure> {
        locked(&self.world).begin(&mut self.txn);
        Ok(())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        // A server would be some way off: without that, transactions would seldom meet. Who
        // is alone, or makes the requests of all, waits for nobody. A bug takes more than two
        // that meet, so each one waits for the others there.
        let (is_alone, has_bug) = {
            let world = locked(&self.world);
            (self.is_in_turns || world.sessions < 2, world.has_bug())
        };
        match (is_alone, has_bug) {
            (true, _) => {}
            (false, true) => std::thread::sleep(WAY),
            (false, false) => std::thread::yield_now(),
        }
        locked(&self.world).answer(&mut self.txn, request)
    }

    fn snapshot(&mut self) -> Option<Snapshot> {
        let has_one = locked(&self.world).has_snapshots();
        if has_one { self.txn.strayed.take() } else { self.txn.snapshot.clone() }
    }

    fn identity(&mut self) -> Result<Identity, Failure> {
        let has_one = locked(&self.world).has_snapshots();
        let snapshot = self.txn.snapshot.clone().filter(|_| has_one);
        Ok(Identity { number: Some(self.txn.number), snapshot })
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

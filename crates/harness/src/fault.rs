//! Faults: what is done to servers while clients use them, and when.
//!
//! Which fault comes next, how long after the one before and how long it lasts is a
//! function of the seed. One is over before the next begins. Every one is in the log.

use crate::database::{Database, Failure};
use crate::random::Random;
use crate::recorder::Log;
use isolde_history::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What can be done to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is ended without warning, and started again.
    Kill,
    /// It is held, and goes on.
    Pause,
    /// It is asked to end, and started again.
    Restart,
    /// Its connections are cut, and for a while there are no new ones.
    Partition,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 4] = [Fault::Kill, Fault::Pause, Fault::Restart, Fault::Partition];

    /// Its name, as it is typed and shown.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Pause => "pause",
            Fault::Restart => "restart",
            Fault::Partition => "partition",
        }
    }
}

/// How long a fault may last: clients give up after a few times that.
const LASTS_MAX: Duration = Duration::from_secs(2);

/// How often the end of the run is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// Faults to come, without end.
pub struct FaultPlan {
    faults: Vec<Fault>,
    /// Those that come before any is repeated.
    next: Vec<Fault>,
    every: Duration,
    random: Random,
}

/// One fault to come.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Planned {
    fault: Fault,
    /// A number that says which server.
    server: u32,
    /// After the end of the fault before.
    wait: Duration,
    lasts: Duration,
}

/// A fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    /// What was done.
    pub fault: Fault,
    /// The name of the endpoint that it was done to.
    pub server: String,
    /// When it began, in the log's time.
    pub began: Time,
    /// When all was well again, in the log's time.
    pub ended: Time,
}

impl FaultPlan {
    /// Faults of these kinds, at least one, about as often as this.
    pub fn new(faults: &[Fault], every: Duration, seed: u64) -> FaultPlan {
        assert!(!faults.is_empty(), "a plan of something");
        // Clients use the seed itself.
        let random = Random::new(seed ^ 0x6661_756c_7473);
        FaultPlan { faults: faults.to_vec(), next: Vec::new(), every, random }
    }

    fn plan(&mut self) -> Planned {
        if self.next.is_empty() {
            self.next.clone_from(&self.faults);
        }
        let count = u32::try_from(self.next.len()).expect("a handful");
        let fault = self.next.swap_remove(self.random.below(count) as usize);
        let server = self.random.below(u32::MAX);
        let wait = self.every.mul_f64(0.5 + self.random.fraction());
        let lasts = self.every.mul_f64(0.1 + 0.3 * self.random.fraction()).min(LASTS_MAX);
        Planned { fault, server, wait, lasts }
    }

    /// Disturbs the database until the run is over, and leaves it well. Returns what
    /// happened, and what could not be made well again.
    pub fn carry_out(
        mut self,
        database: &dyn Database,
        log: &Log,
        is_over: &AtomicBool,
    ) -> (Vec<Happened>, Result<(), Failure>) {
        let mut happened = Vec::new();
        loop {
            let planned = self.plan();
            if !sleep(planned.wait, is_over) {
                return (happened, Ok(()));
            }
            match planned.carry_out(database, log, is_over) {
                Ok(one) => happened.push(one),
                Err(failure) => return (happened, Err(failure)),
            }
        }
    }
}

impl Planned {
    fn carry_out(
        self,
        database: &dyn Database,
        log: &Log,
        is_over: &AtomicBool,
    ) -> Result<Happened, Failure> {
        let endpoints = database.endpoints();
        let server = self.server as usize % endpoints.len();
        let (name, fault) = (&endpoints[server].name, self.fault.name());
        // A log that cannot be written ends the run by itself.
        let _ = log.event(&format!("fault {fault} of {name}"));
        let began = log.now();
        let disturbed = database.disturb(self.fault, server);
        sleep(self.lasts, is_over);
        // Also after a failure: what was begun is to be taken back.
        let recovered = database.recover(self.fault, server);
        let ended = log.now();
        if !is_over.load(Ordering::Relaxed) {
            let _ = log.event(&format!("fault {fault} of {name} is over"));
        }
        disturbed.and(recovered)?;
        Ok(Happened { fault: self.fault, server: name.clone(), began, ended })
    }
}

/// Sleeps this long, or until the run is over; whether it is not.
fn sleep(time: Duration, is_over: &AtomicBool) -> bool {
    let deadline = Instant::now() + time;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if is_over.load(Ordering::Relaxed) || left.is_zero() {
            return !is_over.load(Ordering::Relaxed);
        }
        std::thread::sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(seed: u64, count: usize) -> Vec<Planned> {
        let mut plan = FaultPlan::new(&Fault::ALL, Duration::from_secs(5), seed);
        (0..count).map(|_| plan.plan()).collect()
    }

    #[test]
    fn a_plan_is_a_function_of_its_seed() {
        assert_eq!(planned(7, 20), planned(7, 20));
        assert_ne!(planned(7, 20), planned(8, 20));
    }

    #[test]
    fn every_fault_comes_before_any_is_repeated() {
        for turn in planned(3, 40).chunks(4) {
            let mut names: Vec<&str> = turn.iter().map(|planned| planned.fault.name()).collect();
            names.sort_unstable();
            assert_eq!(names, ["kill", "partition", "pause", "restart"]);
        }
    }

    #[test]
    fn faults_are_about_as_far_apart_as_asked_and_shorter_than_clients_wait() {
        for planned in planned(1, 200) {
            let apart = Duration::from_millis(2500)..Duration::from_millis(7500);
            assert!(apart.contains(&planned.wait), "{planned:?}");
            assert!(planned.lasts <= LASTS_MAX, "{planned:?}");
        }
    }
}

//! A database that is driven and watched: as `isolde run` drives it, with a tap.

use super::barrier::Barrier;
use super::tap::Tap;
use super::threads;
use crate::exit::Failure;
use crate::run::prefix;
use isolde_harness::{Claim, Database, Drive, Extent, FaultPlan, Log, Needs, Progress, Workload};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A watch that no duration ends.
const ENDLESS: Duration = Duration::from_hours(24 * 36_500);

/// What is driven, and for how long.
pub(super) struct Driving<'a> {
    pub(super) claim: &'a Claim,
    pub(super) workload: &'a Workload,
    pub(super) faults: Option<FaultPlan>,
    pub(super) duration: Option<Duration>,
    /// Whether the number of transactions ends it.
    pub(super) is_counted: bool,
    /// Puts all sessions between transactions this often.
    pub(super) barrier: Option<(&'a Barrier, Duration)>,
    pub(super) stop: &'a AtomicBool,
}

/// The log, which the tap looks on at, and which is written if a path is given.
pub(super) fn log(path: Option<&Path>, tap: Arc<Tap>) -> Result<Log, Failure> {
    let log = match path {
        None => Log::unwritten(),
        Some(path) => Log::create(path)
            .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?,
    };
    Ok(log.observed_by(tap))
}

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("watch: {message}"))
}

/// Creates what the workload needs.
pub(super) fn prepare(database: &mut dyn Database, workload: &Workload) -> Result<(), Failure> {
    let requests = workload.requests();
    if let Some(kind) = requests.iter().find(|&&kind| !database.supports(kind)) {
        let message =
            format!("{} has no {}, which this workload needs", database.name(), kind.name());
        return Err(usage(&message));
    }
    database.prepare(&Needs { prefix: prefix(), requests }).map_err(|failure| {
        // Something may exist already.
        let _ = database.clean_up();
        usage(&failure.to_string())
    })
}

impl Driving<'_> {
    /// Drives until it ends: what ended it before its time, if anything did.
    pub(super) fn run(mut self, database: &dyn Database, log: &Log) -> Option<String> {
        let progress = Progress::default();
        let endless = (!self.is_counted).then_some(ENDLESS);
        let drive = Drive {
            database,
            claim: self.claim,
            workload: self.workload,
            log,
            extent: self.duration.or(endless).map_or(Extent::Counted, Extent::Lasting),
            stop: self.stop,
            progress: &progress,
            evidence: None,
        };
        let is_done = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            let barrier = self.barrier.map(|(barrier, every)| {
                threads::start(scope, "barrier", move || barrier.keep(every, is_done)).map(drop)
            });
            let disturber = self.faults.take().map(|plan| {
                threads::start(scope, "faults", move || plan.carry_out(database, log, is_done))
            });
            let (disturber, barrier) = (disturber.transpose(), barrier.transpose());
            let refused =
                disturber.as_ref().err().or(barrier.as_ref().err()).map(ToString::to_string);
            let mut ended_by = refused.or_else(|| drive.run().err().map(|error| error.to_string()));
            is_done.store(true, Ordering::Relaxed);
            if let Ok(Some(thread)) = disturber
                && let (_, Err(failure)) = thread.join().expect("faults do not panic")
            {
                ended_by.get_or_insert_with(|| failure.to_string());
            }
            ended_by
        })
    }
}

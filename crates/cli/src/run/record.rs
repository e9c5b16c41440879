//! The first half of a run: prepare, drive, record, clean up.

use super::live::Live;
use super::usage;
use crate::exit::Failure;
use crate::interruption::Interruption;
use crate::{say, status_line};
use isolde::Level;
use isolde_harness::{
    Claim, Counts, Database, Drive, DriveError, Extent, FaultPlan, Happened, Log, Needs, Progress,
    VersionCounts, Workload, clean_up_after, fresh_prefix, remains,
};
use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// What is recorded, and where.
pub(super) struct Recording<'a> {
    pub(super) claim: &'a Claim,
    /// What is looked at while the run goes on.
    pub(super) levels: &'a [Level],
    pub(super) workload: &'a Workload,
    pub(super) history: PathBuf,
    pub(super) faults: Option<FaultPlan>,
    pub(super) extent: Extent,
    pub(super) interruption: &'a Interruption,
    pub(super) quiet: bool,
    /// Whether it ends when an anomaly is seen.
    pub(super) until_violation: bool,
    /// Whether the database is asked for the order of its versions.
    pub(super) white_box: bool,
}

/// What came of it.
#[derive(Clone)]
pub(super) struct Recorded {
    pub(super) history: PathBuf,
    pub(super) counts: Counts,
    pub(super) seconds: f64,
    /// What happened to its servers; `None` if nothing was to happen.
    pub(super) faults: Option<Vec<Happened>>,
    /// What ended it before its time.
    pub(super) ended_by: Option<String>,
    /// Whether a signal ended it.
    pub(super) is_stopped: bool,
    /// What the database told of the order of its versions, or why it stopped; `None` if it
    /// was not asked.
    pub(super) told: Option<Result<VersionCounts, String>>,
    /// Transactions and requests whose snapshot it told.
    pub(super) snapshots: u64,
}

impl Recording<'_> {
    pub(super) fn run(mut self, database: &mut dyn Database) -> Result<Recorded, Failure> {
        let requests = self.workload.requests();
        if let Some(kind) = requests.iter().find(|&&kind| !database.supports(kind)) {
            let message =
                format!("{} has no {}, which this workload needs", database.name(), kind.name());
            return Err(usage(&message));
        }
        let log = Log::create(&self.history)
            .map_err(|error| Failure::Write(self.history.display().to_string(), error.into()))?;
        let needs = Needs { prefix: fresh_prefix(), requests };
        let prepared = database.prepare(&needs);
        if let Err(failure) = prepared {
            // Something may exist already.
            let _ = database.clean_up();
            return Err(usage(&failure.to_string()));
        }
        self.interruption.leaves(remains(database).into_iter().chain([self.recorded()]));
        let evidence = if self.white_box {
            match database.evidence() {
                Ok(evidence) => Some(Mutex::new(evidence)),
                Err(failure) => {
                    let _ = database.clean_up();
                    return Err(usage(&failure.to_string()));
                }
            }
        } else {
            None
        };
        let started = Instant::now();
        let (progress, stop) = (Progress::default(), AtomicBool::new(false));
        let drive = Drive {
            database: &*database,
            claim: self.claim,
            workload: self.workload,
            log: &log,
            extent: self.extent,
            stop: &stop,
            progress: &progress,
            evidence,
        };
        let plan = self.faults.take();
        let (driven, disturbed) = self.watched(&drive, &stop, plan, started);
        let is_stopped = self.interruption.is_wanted();
        drop(drive);
        let seconds = started.elapsed().as_secs_f64();
        let mut ended_by = driven.err().map(|error| error.to_string());
        let faults = disturbed.map(|(happened, result)| {
            if let Err(failure) = result {
                ended_by.get_or_insert_with(|| failure.to_string());
            }
            happened
        });
        let ended_by = clean_up_after(database, ended_by);
        self.interruption.leaves([self.recorded()]);
        Ok(Recorded {
            history: self.history,
            counts: progress.counts(),
            seconds,
            faults,
            ended_by,
            is_stopped,
            told: progress.told(),
            snapshots: progress.snapshots(),
        })
    }

    /// What a program that ends at once says of the history.
    fn recorded(&self) -> String {
        format!("what was recorded was not checked: {}", self.history.display())
    }

    /// Drives, and meanwhile disturbs the servers and tells how it goes.
    fn watched(
        &self,
        drive: &Drive<'_>,
        stop: &AtomicBool,
        plan: Option<FaultPlan>,
        started: Instant,
    ) -> (Result<(), DriveError>, Option<Disturbed>) {
        let is_done = AtomicBool::new(false);
        let live = Live::default();
        std::thread::scope(|scope| {
            // Without a thread to tell it, nothing is told meanwhile.
            if !self.quiet || self.until_violation {
                let watch = || live.watch(&self.history, self.levels, &is_done);
                let _ = Builder::new().spawn_scoped(scope, watch);
            }
            let tell = || self.tell_until(&is_done, drive.progress, &live, started, stop);
            let teller = Builder::new().spawn_scoped(scope, tell);
            let disturb = |plan: FaultPlan| plan.carry_out(drive.database, drive.log, &is_done);
            let disturber =
                plan.map(|plan| Builder::new().spawn_scoped(scope, move || disturb(plan)));
            let driven = drive.run();
            is_done.store(true, Ordering::Relaxed);
            if let Ok(teller) = teller {
                teller.thread().unpark();
            }
            let disturbed = disturber.map(|thread| match thread {
                Ok(thread) => thread.join().expect("faults do not panic"),
                Err(error) => {
                    let message = format!("no faults: cannot start a thread: {error}");
                    (Vec::new(), Err(isolde_harness::Failure::Refused(message)))
                }
            });
            (driven, disturbed)
        })
    }

    /// Tells how it goes, and ends it for a signal, or for an anomaly if that is all that was
    /// waited for.
    fn tell_until(
        &self,
        is_done: &AtomicBool,
        progress: &Progress,
        live: &Live,
        started: Instant,
        stop: &AtomicBool,
    ) {
        const LOOK: Duration = Duration::from_millis(50);
        let terminal = std::io::stderr().is_terminal();
        let interval = if terminal { Duration::from_millis(250) } else { Duration::from_secs(5) };
        let mut next = interval;
        let mut told = BTreeSet::new();
        while !is_done.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK);
            if self.interruption.is_wanted() || (self.until_violation && live.has_found()) {
                stop.store(true, Ordering::Relaxed);
            }
            if !self.quiet && started.elapsed() >= next {
                next += interval;
                if terminal {
                    tell_found(live, &mut told);
                }
                tell(progress.counts(), started.elapsed(), &live.told(), terminal);
            }
        }
        if terminal && !self.quiet {
            tell_found(live, &mut told);
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Tells a terminal of each anomaly once, on a line that stays: the line of the counts is short.
fn tell_found(live: &Live, told: &mut BTreeSet<&'static str>) {
    for name in live.anomalies() {
        if told.insert(name) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            say(&format!("isolde: found while recording: {name}"));
        }
    }
}

/// What happened to the servers, and whether they are well again.
type Disturbed = (Vec<Happened>, Result<(), isolde_harness::Failure>);

fn tell(counts: Counts, elapsed: Duration, found: &str, terminal: bool) {
    let text = format!(
        "isolde: {:.0} s: {} committed, {} aborted, {} unknown{found}",
        elapsed.as_secs_f64(),
        counts.committed,
        counts.aborted,
        counts.unknown
    );
    if terminal {
        let _ = write!(std::io::stderr(), "\r{}\x1b[K", status_line::fitting(&text));
    } else {
        say(&text);
    }
}

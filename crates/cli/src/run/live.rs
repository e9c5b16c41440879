//! Looks at what was recorded while the recording goes on: anomalies so far.
//!
//! Every few seconds the log is read up to its last whole line and checked like any history,
//! on one thread of its own that waits nine times as long as it worked. What is found stays
//! found: whatever follows, no order of the rest explains what a part contradicts, unless
//! the part lacks what a transaction that had not committed wrote. The verdicts come from
//! the check of the whole log, in the end.

use isolde::{AnomalyKind, Check, Level, Limits, Options, counterexamples};
use isolde_history::Index;
use isolde_history::format::{self, ReadOptions};
use isolde_report::NAMES;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Before the first look, and between two of them at least.
const PAUSE: Duration = Duration::from_secs(2);
/// How much longer than the last look the next pause is: a tenth of one core is used.
const REST: u32 = 9;
/// How long deciding may take in one look.
const BUDGET: Duration = Duration::from_secs(1);
/// Logs that take more memory are not looked at any more.
const MEMORY_MAX: usize = 1 << 28;

/// What the looks have found.
#[derive(Default)]
pub(super) struct Live {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Transactions that the last look saw.
    transactions: usize,
    anomalies: BTreeSet<&'static str>,
    /// Whether a look has come to an end with a verdict.
    is_decided: bool,
}

impl Live {
    /// Looks again and again until the recording is over.
    pub(super) fn watch(&self, history: &Path, levels: &[Level], is_over: &AtomicBool) {
        // Reading and checking would take every core.
        let Ok(pool) = rayon::ThreadPoolBuilder::new().num_threads(1).build() else { return };
        let mut pause = PAUSE;
        while wait(pause, is_over) {
            let started = Instant::now();
            if pool.install(|| self.look(history, levels, is_over)).is_none() {
                return;
            }
            pause = PAUSE.max(started.elapsed() * REST);
        }
    }

    /// One look; nothing if there is no point in another one.
    fn look(&self, history: &Path, levels: &[Level], is_over: &AtomicBool) -> Option<()> {
        let options = ReadOptions { memory_max: Some(MEMORY_MAX), ..ReadOptions::default() };
        let (history, _) = format::read_detected(format::open(history).ok()?, options).ok()?;
        let index = Index::new(&history);
        let deadline = Instant::now() + BUDGET;
        let stop = || is_over.load(Ordering::Relaxed) || Instant::now() >= deadline;
        let limits = Limits { stop: &stop, working_bytes_max: Some(MEMORY_MAX), ..Limits::NONE };
        let mut check = Check::new(&history, &index, &limits);
        let verdicts: Vec<_> = levels.iter().map(|&level| check.decide(level)).collect();
        // By the names that they have in the end: what shows a violation first is seldom what
        // tells it best.
        let violations = levels.iter().copied().zip(&verdicts);
        let options = Options::default();
        let shown = counterexamples((&history, &index), violations, options, &limits, &|_| {});
        let names =
            shown.iter().filter_map(|level| Some(everyday(level.all.first()?.anomaly.kind)));
        let mut state = self.state.lock().expect("nobody panics while holding it");
        state.anomalies.extend(names);
        if verdicts.iter().all(|verdict| verdict.name() != "unknown") {
            state.transactions = history.txn_count();
            state.is_decided = true;
        }
        Some(())
    }

    /// Whether an anomaly was found.
    pub(super) fn has_found(&self) -> bool {
        !self.state.lock().expect("nobody panics while holding it").anomalies.is_empty()
    }

    /// What was found so far, by the names that the report uses.
    pub(super) fn anomalies(&self) -> BTreeSet<&'static str> {
        self.state.lock().expect("nobody panics while holding it").anomalies.clone()
    }

    /// What there is to tell, to follow the counts.
    pub(super) fn told(&self) -> String {
        let state = self.state.lock().expect("nobody panics while holding it");
        if !state.anomalies.is_empty() {
            let names: Vec<&str> = state.anomalies.iter().copied().collect();
            return format!("; anomalies so far: {}", names.join(", "));
        }
        if state.is_decided {
            return format!("; no anomalies in the first {}", state.transactions);
        }
        String::new()
    }
}

/// What the report calls it.
fn everyday(kind: AnomalyKind) -> &'static str {
    NAMES.iter().find(|row| row.kind == kind).map_or(kind.name(), |row| row.everyday)
}

/// Waits, unless the recording is over.
fn wait(pause: Duration, is_over: &AtomicBool) -> bool {
    const LOOK: Duration = Duration::from_millis(50);
    let started = Instant::now();
    while started.elapsed() < pause {
        if is_over.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    !is_over.load(Ordering::Relaxed)
}

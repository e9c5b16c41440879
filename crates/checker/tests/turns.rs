//! Several levels in turns: what they say depends on neither threads nor the speed of the machine.

use isolde_checker::{Check, Level, Limits, Verdict};
use isolde_harness::{Isolation, Parameters, generate, preset};
use isolde_history::{History, Index};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Blind writes without snapshots: a puzzle at some levels, and soon refuted at others.
fn puzzle() -> History {
    let parameters = Parameters {
        isolation: Isolation::ReadAtomic,
        transactions: 800,
        keys: 1_200,
        ..preset("BlindW-RW").expect("a preset of this name").parameters
    };
    generate(&parameters).expect("valid parameters")
}

const LEVELS: [Level; 5] = [
    Level::ReadAtomic,
    Level::Causal,
    Level::ParallelSnapshotIsolation,
    Level::SnapshotIsolation,
    Level::Serializable,
];

/// What is told of each level, in turn, if every so many looks at the clock take a while.
fn told(history: &History, threads: usize, pause_every: u64) -> Vec<(Level, Verdict)> {
    let index = Index::new(history);
    let looks = AtomicU64::new(1);
    let stop = || {
        if looks.fetch_add(1, Relaxed).is_multiple_of(pause_every) {
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    };
    let limits = Limits { stop: &stop, ..Limits::NONE };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    pool.install(|| {
        let mut told = Vec::new();
        let mut check = Check::new(history, &index, &limits);
        let _ =
            check.decide_in_turns(&LEVELS, |level, verdict| told.push((level, verdict.clone())));
        told
    })
}

/// Turns were parts of the time that was left: a slow machine left open what a fast one decided.
#[test]
fn a_slow_machine_with_many_threads_tells_the_same_in_the_same_order() {
    let history = puzzle();
    let fast = told(&history, 1, u64::MAX);
    assert_eq!(fast.len(), LEVELS.len());
    assert_eq!(told(&history, 4, 16), fast);
}

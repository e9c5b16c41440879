//! A barrier between transactions: now and then all sessions wait until none is in one.
//!
//! Everything before such an instant precedes everything after it, so that the complete
//! checker can decide what came before by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often those who wait look again.
const LOOK: Duration = Duration::from_micros(100);
/// How long sessions wait for the longest transaction.
const WAIT_MAX: Duration = Duration::from_millis(500);

/// See the file's first line.
#[derive(Default)]
pub(super) struct Barrier {
    is_up: AtomicBool,
    sessions: AtomicUsize,
    waiting: AtomicUsize,
}

/// A session that has to pass.
pub(super) struct Passage(Arc<Barrier>);

impl Barrier {
    /// A session that is there from now on.
    pub(super) fn enter(barrier: &Arc<Barrier>) -> Passage {
        barrier.sessions.fetch_add(1, Ordering::SeqCst);
        Passage(Arc::clone(barrier))
    }

    /// Puts the barrier up this often, until it is over.
    pub(super) fn keep(&self, every: Duration, is_over: &AtomicBool) {
        let mut next = Instant::now() + every;
        while !is_over.load(Ordering::Relaxed) {
            if Instant::now() < next {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            let started = Instant::now();
            self.is_up.store(true, Ordering::SeqCst);
            let is_busy =
                || self.waiting.load(Ordering::SeqCst) < self.sessions.load(Ordering::SeqCst);
            while is_busy() && started.elapsed() < WAIT_MAX && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
            self.is_up.store(false, Ordering::SeqCst);
            next = Instant::now() + every;
        }
        self.is_up.store(false, Ordering::SeqCst);
    }
}

impl Passage {
    /// Waits while the barrier is up.
    pub(super) fn pass(&self, is_over: &AtomicBool) {
        let barrier = &self.0;
        if !barrier.is_up.load(Ordering::SeqCst) {
            return;
        }
        barrier.waiting.fetch_add(1, Ordering::SeqCst);
        while barrier.is_up.load(Ordering::SeqCst) && !is_over.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        barrier.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::SeqCst);
    }
}

//! What Ctrl-C does: the first ends the work, the second the program, at once. So does a terminal
//! that is closed, unless `nohup` says that nothing should.

use crate::exit::Failure;
use crate::say;
use isolde_harness::{Address, Database};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Signals that end the work, and what is said if they end the program.
pub(crate) struct Interruption {
    /// Set by the first signal.
    pub(crate) stop: Arc<AtomicBool>,
    left: Arc<Mutex<Vec<String>>>,
    command: &'static str,
}

/// The exit status of a program that a second signal ended.
const INTERRUPTED: i32 = 130;

/// Between two looks whether a signal came.
const LOOK: Duration = Duration::from_millis(20);

/// How long a database that is being opened may take to give up. What it leaves behind then is
/// removed by whoever watches over it, as after any other end of the program.
const GIVING_UP: Duration = Duration::from_secs(5);

impl Interruption {
    /// Waits for signals from now on, for the command of this name.
    pub(crate) fn of(command: &'static str) -> Result<Interruption, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Usage(format!("{command}: cannot wait for signals: {error}"))
        };
        let came = Arc::new(AtomicBool::new(false));
        let hang_up = (!ignores(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
            signal_hook::flag::register(signal, Arc::clone(&came)).map_err(failed)?;
        }
        let (stop, left) = (Arc::default(), Arc::default());
        let interruption =
            Interruption { stop: Arc::clone(&stop), left: Arc::clone(&left), command };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || wait(command, &came, &stop, &left))
            .map_err(|error| no_thread(command, &error))?;
        Ok(interruption)
    }

    /// Whether the work is to end.
    pub(crate) fn is_wanted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Opens a database. A signal ends that too: starting servers, or waiting for the answer of
    /// one that is far away, takes time.
    pub(crate) fn opened(&self, address: &Address) -> Result<Box<dyn Database>, Failure> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (address, stop) = (address.clone(), Arc::clone(&self.stop));
        let name = address.to_string();
        let opening = std::thread::Builder::new().name("opening".to_owned()).spawn(move || {
            // If nobody waits any more, the database is closed here.
            let _ = sender.send(isolde_drivers::open_until(&address, &stop));
        });
        opening.map_err(|error| no_thread(self.command, &error))?;
        let mut given_up: Option<Instant> = None;
        loop {
            if self.is_wanted() && given_up.is_none() {
                given_up = Some(Instant::now() + GIVING_UP);
            }
            match receiver.recv_timeout(LOOK) {
                Ok(opened) if given_up.is_none() && !self.is_wanted() => {
                    return opened
                        .map_err(|error| Failure::Usage(format!("{}: {error}", self.command)));
                }
                Err(RecvTimeoutError::Timeout)
                    if given_up.is_none_or(|limit| Instant::now() < limit) => {}
                // Dropped here if it was opened all the same, with servers of our own.
                _ => {
                    return Err(Failure::Interrupted(format!(
                        "{}: interrupted by a signal while {name} was being opened: nothing was \
                         done",
                        self.command
                    )));
                }
            }
        }
    }

    /// Takes note of what is there if the program ends at once, in place of what was noted
    /// before: nobody else will name it then.
    pub(crate) fn leaves(&self, what: impl IntoIterator<Item = String>) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = what.into_iter().collect();
    }
}

fn no_thread(command: &str, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{command}: the system refuses another thread: {error}"))
}

/// Whether this program was started with a signal ignored, as far as the system tells.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.unwrap_or(0) >> (signal - 1) & 1 == 1
}

/// Takes one signal after another. A handler could not say anything, a thread can.
fn wait(command: &str, came: &AtomicBool, stop: &AtomicBool, left: &Mutex<Vec<String>>) {
    let mut is_first = true;
    loop {
        if came.swap(false, Ordering::Relaxed) {
            if !is_first {
                let left = left.lock().unwrap_or_else(PoisonError::into_inner);
                for what in &*left {
                    say(&format!("isolde: {command}: {what}"));
                }
                // Nothing of ours is waited for: servers and temporary places are removed by
                // whoever watches over them.
                signal_hook::low_level::exit(INTERRUPTED);
            }
            is_first = false;
            stop.store(true, Ordering::Relaxed);
        }
        std::thread::sleep(LOOK);
    }
}

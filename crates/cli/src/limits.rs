//! Limits of time and memory: how they are written and how they are kept.

use crate::exit::{Failure, Status};
use crate::{heap, input, say};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time that a check may use, and its resources.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Answer `unknown` for what is not decided after this long, such as 30s, 5m or 500ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) resources: Resources,
}

impl Arguments {
    pub(crate) fn deadline(&self, start: Instant) -> Option<Instant> {
        self.timeout.map(|timeout| start + timeout)
    }
}

/// The limit that work was given up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    Time,
    Memory,
}

impl Reached {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Reached::Time => "the time limit was reached",
            Reached::Memory => "the memory limit was reached",
        }
    }

    /// A history too large to be read is bad input, and nothing is said about it.
    pub(crate) fn while_reading(self, file: &Path, resources: &Resources) -> Option<Failure> {
        let is_too_large = self == Reached::Memory && input::is_reading();
        is_too_large.then(|| input::too_large(file, resources.memory_max()))
    }

    /// How a command ends that has nothing else to say.
    pub(crate) fn end(self, file: &Path, resources: &Resources) -> Result<Status, Failure> {
        if let Some(failure) = self.while_reading(file, resources) {
            return Err(failure);
        }
        say(&format!("isolde: {}: {}", input::name(file), self.message()));
        Ok(Status::Unknown)
    }
}

/// Does the work on another thread, and gives up waiting for it soon after the deadline,
/// or when it wants much more memory than allowed, whatever the work is at.
pub(crate) fn within<T: Send + 'static>(
    deadline: Option<Instant>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Reached> {
    const GRACE: Duration = Duration::from_millis(200);
    const LOOK: Duration = Duration::from_millis(20);
    /// As much as the first thread of a process has.
    const STACK: usize = 8 << 20;
    let (sender, receiver) = mpsc::channel();
    heap::hold_others();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        // The receiver is gone only if a limit was reached.
        let _ = sender.send(work());
    });
    let worker = worker.expect("a process may have a second thread");
    let left = || deadline.map(|at| (at + GRACE).saturating_duration_since(Instant::now()));
    loop {
        match receiver.recv_timeout(left().map_or(LOOK, |left| left.min(LOOK))) {
            Ok(result) => {
                heap::hold_nobody();
                return Ok(result);
            }
            Err(RecvTimeoutError::Timeout) if heap::is_exceeded() => return Err(Reached::Memory),
            Err(RecvTimeoutError::Timeout) if left() == Some(Duration::ZERO) => {
                return Err(Reached::Time);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the worker sends its result before it ends"),
            },
        }
    }
}

/// Says when a check has to end, and remembers why it said so.
pub(crate) struct Stop {
    deadline: Option<Instant>,
    is_memory: AtomicBool,
}

impl Stop {
    pub(crate) const fn at(deadline: Option<Instant>) -> Stop {
        Stop { deadline, is_memory: AtomicBool::new(false) }
    }

    pub(crate) fn is_now(&self) -> bool {
        let is_full = heap::is_full();
        let stops = is_full || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if stops {
            self.is_memory.store(is_full, Relaxed);
        }
        stops
    }

    /// Whether it was memory that ran out, and not time.
    pub(crate) fn is_memory(&self) -> bool {
        self.is_memory.load(Relaxed)
    }
}

/// Memory and threads that a command may use.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub(crate) struct Resources {
    /// Use no more memory than this, such as 4G or 500M, beside the program and files that are
    /// mapped [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<usize>,
    /// Use this many threads [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

impl Resources {
    /// Sets up the worker threads and the limit of memory; once per process.
    pub(crate) fn apply(&self) {
        if let Some(bytes) = self.memory_max() {
            heap::limit(bytes);
        }
        if let Some(threads) = self.threads {
            // Fails only if the pool exists already, and then it is as wished.
            let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build_global();
        }
    }

    /// The memory limit: as given, or nine tenths of what the machine has to spare,
    /// so that a history too large for it ends in a message and not in a kill.
    pub(crate) fn memory_max(&self) -> Option<usize> {
        self.memory.or_else(|| available_memory().map(|bytes| bytes / 10 * 9))
    }
}

fn available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a time such as 30s, 5m, 2h or 500ms, found `{text}`");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let milliseconds: u64 = match &text[digits..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)
}

/// A time as [`parse_duration`] takes it, in its largest unit.
pub(crate) fn typed(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let whole =
        units.into_iter().find(|unit| milliseconds.is_multiple_of(unit.1) && milliseconds > 0);
    let (name, length) = whole.unwrap_or(("ms", 1));
    format!("{}{name}", milliseconds / length)
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err(format!("expected a number of threads from 1 to 256, found `{text}`")),
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a size such as 4G, 500M or 100K, found `{text}`");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().map_err(|_| wrong())?;
    let unit: usize = match text[digits..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_need_a_number_and_a_known_unit() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_mins(2)));
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("12"), Ok(12));
        for wrong in ["", "5", "s", "5 s", "-1s", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "G", "4T", "99999999999999999999", "18446744073709551615G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}

//! Limits of time and memory: how they are written and how they are kept.

use crate::exit::{Failure, Status};
use crate::{heap, input, say};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
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

/// Tells when a check has to end: at a deadline, or because the memory is full. Remembers why it
/// said so.
pub(crate) struct Clock {
    start: Instant,
    /// In nanoseconds since the start; the largest number is never.
    deadline: AtomicU64,
    is_memory: AtomicBool,
}

impl Clock {
    pub(crate) fn new(start: Instant, deadline: Option<Instant>) -> Clock {
        let deadline_ns = AtomicU64::new(u64::MAX);
        let clock = Clock { start, deadline: deadline_ns, is_memory: AtomicBool::new(false) };
        if let Some(deadline) = deadline {
            clock.ends_at(deadline);
        }
        clock
    }

    /// One that starts now.
    pub(crate) fn until(deadline: Option<Instant>) -> Clock {
        Clock::new(Instant::now(), deadline)
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.load(Relaxed) != u64::MAX
    }

    /// Another deadline in place of the one that there is.
    pub(crate) fn ends_at(&self, deadline: Instant) {
        self.deadline.store(self.since_start(deadline), Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        let is_full = heap::is_full();
        let is_over = is_full
            || self.has_deadline()
                && self.since_start(Instant::now()) >= self.deadline.load(Relaxed);
        if is_over {
            self.is_memory.store(is_full, Relaxed);
        }
        is_over
    }

    /// Whether it was memory that ran out, and not time.
    pub(crate) fn is_memory(&self) -> bool {
        self.is_memory.load(Relaxed)
    }

    fn since_start(&self, instant: Instant) -> u64 {
        let nanoseconds = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
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
    let wrong = || format!("expected a time such as 30s, 5m, 2h, 500ms or 3us, found `{text}`");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let milliseconds: u64 = match &text[digits..] {
        "" if number == 0 => return Ok(Duration::ZERO),
        "ns" => return Ok(Duration::from_nanos(number)),
        "us" | "µs" => return Ok(Duration::from_micros(number)),
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(milliseconds).map(Duration::from_millis).ok_or_else(wrong)
}

/// How long something is to go on: nothing of it would be a misunderstanding.
pub(crate) fn parse_lasting(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        Duration::ZERO => {
            Err(format!("expected a time longer than nothing, such as 30s, found `{text}`"))
        }
        lasting => Ok(lasting),
    }
}

/// A time as [`parse_duration`] takes it, in its largest unit.
pub(crate) fn typed(duration: Duration) -> String {
    const MILLISECOND: u128 = 1_000_000;
    let nanoseconds = duration.as_nanos();
    let units = [
        ("h", 3_600_000 * MILLISECOND),
        ("m", 60_000 * MILLISECOND),
        ("s", 1000 * MILLISECOND),
        ("ms", MILLISECOND),
        ("us", 1000),
        ("ns", 1),
    ];
    let whole =
        units.into_iter().find(|unit| nanoseconds.is_multiple_of(unit.1) && nanoseconds > 0);
    let (name, length) = whole.unwrap_or(("ms", MILLISECOND));
    format!("{}{name}", nanoseconds / length)
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err(format!("expected a number of threads from 1 to 256, found `{text}`")),
    }
}

fn parse_size(text: &str) -> Result<usize, String> {
    let wrong = || format!("expected a size such as 1T, 4G, 500M or 100K, found `{text}`");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().map_err(|_| wrong())?;
    let unit: usize = match text[digits..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
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
        assert_eq!(parse_duration("3us"), parse_duration("3µs"));
        assert_eq!(parse_duration("3ns"), Ok(Duration::from_nanos(3)));
        assert_eq!(parse_duration("0"), Ok(Duration::ZERO));
        assert_eq!(parse_size("1T"), Ok(1 << 40));
        assert_eq!(parse_size("4G"), Ok(4 << 30));
        assert_eq!(parse_size("12"), Ok(12));
        for wrong in ["", "5", "s", "5 s", "-1s", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "G", "4P", "99999999999999999999", "18446744073709551615G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    #[should_panic(expected = "what went wrong")]
    fn a_panic_under_a_deadline_is_one() {
        let deadline = Instant::now() + Duration::from_mins(1);
        let _: Result<(), Reached> = within(Some(deadline), || panic!("what went wrong"));
    }

    #[test]
    fn a_deadline_can_be_brought_forward_and_put_off() {
        let now = Instant::now();
        let clock = Clock::until(Some(now + Duration::from_hours(1)));
        assert!(!clock.is_over());
        clock.ends_at(now);
        assert!(clock.is_over());
        clock.ends_at(now + Duration::from_hours(1));
        assert!(!clock.is_over());
    }

    #[test]
    fn a_time_is_typed_as_it_is_read() {
        for text in ["2h", "90m", "30s", "500ms", "3us", "1500ns", "0ms"] {
            assert_eq!(parse_duration(text).map(typed), Ok(text.to_owned()));
        }
    }
}

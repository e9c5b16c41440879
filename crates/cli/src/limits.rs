//! Limits of time and memory: how they are written and how they are kept.

use std::sync::atomic::{AtomicU64, Ordering};
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

/// Tells when a deadline is over, or the part of the time until then whose turn it is.
pub(crate) struct Clock {
    start: Instant,
    deadline: Option<Instant>,
    /// In nanoseconds since the start.
    turn_ends: AtomicU64,
}

impl Clock {
    pub(crate) fn new(start: Instant, deadline: Option<Instant>) -> Clock {
        Clock { start, deadline, turn_ends: AtomicU64::new(u64::MAX) }
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.is_some()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| {
            let now = Instant::now();
            now >= deadline || self.since_start(now) >= self.turn_ends.load(Ordering::Relaxed)
        })
    }

    /// Begins a turn that takes one in so many parts of what is left.
    pub(crate) fn turn(&self, parts: u32) {
        let Some(deadline) = self.deadline else { return };
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        self.turn_ends.store(self.since_start(now + left / parts), Ordering::Relaxed);
    }

    fn since_start(&self, instant: Instant) -> u64 {
        let nanoseconds = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

/// Does the work on another thread if there is a deadline, and gives up waiting for
/// it soon after, whatever the work is at: `None`.
pub(crate) fn within<T: Send + 'static>(
    deadline: Option<Instant>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    const GRACE: Duration = Duration::from_millis(200);
    let Some(deadline) = deadline else { return Some(work()) };
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        // The receiver is gone only if the time was up.
        let _ = sender.send(work());
    });
    match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now()) + GRACE) {
        Ok(result) => Some(result),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => match worker.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the worker sends its result before it ends"),
        },
    }
}

/// Memory and threads that a command may use.
#[derive(clap::Args, Clone)]
#[group(skip)]
pub(crate) struct Resources {
    /// Use no more memory than this, such as 4G or 500M [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<usize>,
    /// Use this many threads [default: one per core]
    #[arg(long, value_name = "NUMBER", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

impl Resources {
    /// Sets up the worker threads; once per process.
    pub(crate) fn apply_threads(&self) {
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
        let _: Option<()> = within(Some(deadline), || panic!("what went wrong"));
    }

    #[test]
    fn a_turn_ends_before_the_deadline_and_a_new_one_begins() {
        let start = Instant::now();
        let clock = Clock::new(start, Some(start + Duration::from_hours(1)));
        assert!(!clock.is_over());
        clock.turn(u32::MAX);
        std::thread::sleep(Duration::from_millis(1));
        assert!(clock.is_over());
        clock.turn(1);
        assert!(!clock.is_over());
        assert!(Clock::new(start, Some(start)).is_over());
    }

    #[test]
    fn a_time_is_typed_as_it_is_read() {
        for text in ["2h", "90m", "30s", "500ms", "3us", "1500ns", "0ms"] {
            assert_eq!(parse_duration(text).map(typed), Ok(text.to_owned()));
        }
    }
}

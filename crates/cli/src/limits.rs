//! Limits of time and memory: how they are written and how they are kept.

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::{heap, input, say, status_line};
use isolde::{Limit, Unknown, Verdict};
use isolde_report::Decided;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How long a command that decides levels may take, unless the user says otherwise.
pub(crate) const USUAL_TIME: Duration = Duration::from_mins(5);
/// Explaining what was found may take so long, whatever deciding took.
const EXPLAINING_MAX: Duration = Duration::from_secs(10);
/// Of a time limit, one part in so many is kept for it, if that is less.
const EXPLAINING_PARTS: u32 = 8;

/// Time that a check may use, and its resources.
#[derive(clap::Args, Clone)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Arguments {
    /// End after this long, such as 30s, 5m or 500ms, with what is known by then: what is not
    /// decided is `unknown`. `none` is no limit [default: 5m where levels are decided]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    pub(crate) timeout: Option<Timeout>,
    #[command(flatten)]
    pub(crate) resources: Resources,
}

/// What `--timeout` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timeout {
    /// However long it takes.
    None,
    After(Duration),
}

impl Timeout {
    /// As it is typed.
    pub(crate) fn typed(self) -> String {
        match self {
            Timeout::None => "none".to_owned(),
            Timeout::After(time) => typed(time),
        }
    }
}

impl Arguments {
    /// How long it may take: as asked for, or as usual.
    pub(crate) fn time(&self, usual: Option<Duration>) -> Option<Duration> {
        match self.timeout {
            None => usual,
            Some(Timeout::None) => None,
            Some(Timeout::After(time)) => Some(time),
        }
    }

    /// The clock of a command that starts now.
    pub(crate) fn clock(&self, usual: Option<Duration>) -> Clock {
        let start = Instant::now();
        Clock::new(start, self.time(usual).map(|time| start + time))
    }
}

/// Tells when work has to end: at a deadline, at the end of the part of the time until then
/// whose turn it is, because the memory is full, or for a signal. Remembers why it said so.
///
/// One clock is passed down to all that a command does. Who works asks it now and then; who
/// waits for the work ([`within`]) asks it too, and answers without it if it does not end.
pub(crate) struct Clock {
    start: Instant,
    /// When all of it has to be over.
    last: Option<Instant>,
    /// How long it may take, as it was asked for.
    budget: Option<Duration>,
    /// In nanoseconds since the start, like the next; the largest number is never.
    deadline: AtomicU64,
    turn_ends: AtomicU64,
    is_memory: AtomicBool,
    /// Set by a signal.
    interrupted: Arc<AtomicBool>,
}

impl Clock {
    pub(crate) fn new(start: Instant, last: Option<Instant>) -> Clock {
        let never = || AtomicU64::new(u64::MAX);
        let is_memory = AtomicBool::new(false);
        let (deadline, turn_ends, interrupted) = (never(), never(), Arc::default());
        let budget = last.map(|last| last.saturating_duration_since(start));
        let clock = Clock { start, last, budget, deadline, turn_ends, is_memory, interrupted };
        if let Some(last) = last {
            clock.ends_at(last);
        }
        clock
    }

    /// The same, where somebody asked for less.
    pub(crate) fn asked_for(self, budget: Option<Duration>) -> Clock {
        Clock { budget, ..self }
    }

    /// The same, and a signal ends it.
    pub(crate) fn interrupted_by(self, interruption: &Interruption) -> Clock {
        Clock { interrupted: Arc::clone(&interruption.stop), ..self }
    }

    /// Since it began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How much of the time is needed in the end, so that what is found can be explained.
    pub(crate) fn explaining_share(&self) -> Duration {
        EXPLAINING_MAX.min(self.share(EXPLAINING_PARTS))
    }

    /// One of so many parts of all the time; nothing if it has no end.
    pub(crate) fn share(&self, parts: u32) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last.saturating_duration_since(self.start) / parts)
    }

    /// What goes on now ends so long before the work as a whole.
    pub(crate) fn keep(&self, kept: Duration) {
        if let Some(last) = self.last {
            self.ends_at(last.checked_sub(kept).unwrap_or(self.start));
        }
    }

    /// Ends at this time, if that is sooner than it would.
    pub(crate) fn brings_forward(&self, deadline: Instant) -> bool {
        let is_sooner = self.since_start(deadline) < self.deadline.load(Relaxed);
        if is_sooner {
            self.ends_at(deadline);
        }
        is_sooner
    }

    /// From now on it is the time for explaining that runs.
    pub(crate) fn begin_explaining(&self) {
        let end = Instant::now() + EXPLAINING_MAX;
        self.ends_at(self.last.map_or(end, |last| last.min(end)));
    }

    /// From now on it is all that is left which runs.
    pub(crate) fn use_the_rest(&self) {
        self.deadline.store(self.last.map_or(u64::MAX, |last| self.since_start(last)), Relaxed);
        self.turn_ends.store(u64::MAX, Relaxed);
    }

    /// Whether a signal has ended the work.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Relaxed)
    }

    /// Says of levels that are open because of a signal that it was one: the engine knows no
    /// signals.
    pub(crate) fn name_signal(&self, decided: &mut [Decided]) {
        if !self.is_interrupted() {
            return;
        }
        for (_, verdict, _) in decided {
            name_limit(verdict, Limit::Interruption);
        }
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
        self.turn_ends.store(u64::MAX, Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        let is_full = heap::is_full();
        let is_over = is_full
            || self.interrupted.load(Relaxed)
            || self.has_deadline() && {
                let now = self.since_start(Instant::now());
                now >= self.deadline.load(Relaxed) || now >= self.turn_ends.load(Relaxed)
            };
        if is_over {
            self.is_memory.store(is_full, Relaxed);
        }
        is_over
    }

    /// Whether it was memory that ran out, and not time.
    pub(crate) fn is_memory(&self) -> bool {
        self.is_memory.load(Relaxed)
    }

    /// Begins a turn that takes one in so many parts of what is left.
    pub(crate) fn turn(&self, parts: u32) {
        if !self.has_deadline() {
            return;
        }
        let now = self.since_start(Instant::now());
        let left = self.deadline.load(Relaxed).saturating_sub(now);
        self.turn_ends.store(now + left / u64::from(parts), Relaxed);
    }

    fn since_start(&self, instant: Instant) -> u64 {
        let nanoseconds = instant.saturating_duration_since(self.start).as_nanos();
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

/// Says of a level that is open because its time was up what ended it.
pub(crate) fn name_limit(verdict: &mut Verdict, why: Limit) {
    if let Verdict::Unknown(Unknown::Limit(limit)) = verdict
        && limit.is_time()
    {
        *limit = why;
    }
}

/// A history too large to be read is bad input, and nothing is said about it.
pub(crate) fn while_reading(reached: Limit, file: &Path, resources: &Resources) -> Option<Failure> {
    let is_too_large = reached == Limit::Memory && input::is_reading();
    is_too_large.then(|| input::too_large(file, resources.memory_max()))
}

/// How a command ends at a limit if it has nothing else to say.
pub(crate) fn end(reached: Limit, file: &Path, resources: &Resources) -> Result<Status, Failure> {
    if let Some(failure) = while_reading(reached, file, resources) {
        return Err(failure);
    }
    say(&format!("isolde: {}: {reached}", input::name(file)));
    Ok(Status::Unknown)
}

/// Does the work on another thread, and gives up waiting for it soon after the clock says that
/// it is over, or when it wants much more memory than allowed, whatever the work is at.
pub(crate) fn within<T: Send + 'static>(
    clock: &Clock,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Limit> {
    within_and(clock, work, || {})
}

/// The same; whoever waits does something now and then.
pub(crate) fn within_and<T: Send + 'static>(
    clock: &Clock,
    work: impl FnOnce() -> T + Send + 'static,
    mut look: impl FnMut(),
) -> Result<T, Limit> {
    const LOOK: Duration = Duration::from_millis(20);
    /// As much as the first thread of a process has.
    const STACK: usize = 8 << 20;
    let (sender, receiver) = mpsc::channel();
    heap::hold_others();
    let worker = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        // The receiver is gone only if a limit was reached.
        let _ = sender.send(work());
    });
    let worker = worker.map_err(|error| {
        say(&format!("isolde: cannot start a thread: {error}"));
        Limit::Threads
    })?;
    status_line::begin(clock.budget);
    let mut patience = Patience::default();
    let result = loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => {
                heap::hold_nobody();
                break Ok(result);
            }
            Err(RecvTimeoutError::Timeout) if heap::is_exceeded() => break Err(Limit::Memory),
            Err(RecvTimeoutError::Timeout) => {
                if let Some(reached) = patience.ended(clock) {
                    break Err(reached);
                }
                look();
                status_line::draw();
            }
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("the worker sends its result before it ends"),
            },
        }
    };
    status_line::end();
    result
}

/// How long work that should be over is waited for: who works looks at the clock now and then,
/// and still has to say what is known.
#[derive(Default)]
struct Patience {
    signal: Option<Instant>,
}

impl Patience {
    const AFTER_TIME: Duration = Duration::from_millis(200);
    const AFTER_SIGNAL: Duration = Duration::from_secs(3);

    /// Why nobody waits any more.
    fn ended(&mut self, clock: &Clock) -> Option<Limit> {
        if clock.interrupted.load(Relaxed) {
            let signal = self.signal.get_or_insert_with(Instant::now);
            return (signal.elapsed() >= Self::AFTER_SIGNAL).then_some(Limit::Interruption);
        }
        let is_late = |last: Instant| Instant::now() >= last + Self::AFTER_TIME;
        clock.last.is_some_and(is_late).then_some(Limit::Time)
    }
}

/// Memory and threads that a command may use.
#[derive(clap::Args, Clone)]
#[group(skip)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Resources {
    /// Use no more memory than this, such as 4G or 500M, beside the program [default: what
    /// is available]
    #[arg(long, hide_short_help = true, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory: Option<usize>,
    /// Use this many threads [default: one per core]
    #[arg(long, hide_short_help = true, value_name = "NUMBER", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
}

impl Resources {
    /// Sets up the worker threads and the limit of memory; once per process.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        if let Some(bytes) = self.memory_max() {
            heap::limit(bytes);
        }
        start_threads(self.threads)
    }

    /// The memory limit: as given, or nine tenths of what the machine has to spare,
    /// so that a history too large for it ends in a message and not in a kill.
    pub(crate) fn memory_max(&self) -> Option<usize> {
        self.memory.or_else(|| available_memory().map(|bytes| bytes / 10 * 9))
    }
}

/// Starts the worker threads, as many as there are cores if not given; once per process. Here and
/// not when they are first needed: then it could not be said that there are none.
pub(crate) fn start_threads(count: Option<usize>) -> Result<(), Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(count.unwrap_or(0));
    pool.build_global().map_err(|error| {
        Failure::Usage(format!("cannot start threads: {error}; ask for fewer with --threads 1"))
    })
}

fn available_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).ok();
    // Some times are so long that no clock gets there.
    time.filter(|&time| Instant::now().checked_add(time).is_some())
        .ok_or_else(|| format!("expected a time such as 30s, 5m, 2h, 500ms or 3us, found `{text}`"))
}

fn parse_timeout(text: &str) -> Result<Timeout, String> {
    if text == "none" {
        return Ok(Timeout::None);
    }
    let time = parse_duration(text)
        .map_err(|message| message.replacen("expected a time", "expected `none` or a time", 1))?;
    Ok(Timeout::After(time))
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

/// A time as [`parse_duration`] takes it, in one word.
pub(crate) fn typed(duration: Duration) -> String {
    humantime::format_duration(duration).to_string().replace(' ', "")
}

fn parse_threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=256) => Ok(threads),
        _ => Err(format!("expected a number of threads from 1 to 256, found `{text}`")),
    }
}

/// By hand: G is 2^30 as systems count memory, for libraries of sizes it is 10^9.
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
        for wrong in ["", "5", "s", "-1s", "99999999999999999999s", "9223372036854775807s"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "G", "4P", "99999999999999999999", "18446744073709551615G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    #[should_panic(expected = "what went wrong")]
    fn a_panic_under_a_deadline_is_one() {
        let clock = Clock::until(Some(Instant::now() + Duration::from_mins(1)));
        let _: Result<(), Limit> = within(&clock, || panic!("what went wrong"));
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
        for text in ["2h", "1h30m", "30s", "500ms", "3us", "1us500ns", "0s"] {
            assert_eq!(parse_duration(text).map(typed), Ok(text.to_owned()));
        }
    }
}

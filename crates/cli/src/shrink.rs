//! `isolde shrink`: the smallest part of a history that still violates a level.

use crate::check::{self, parse_level};
use crate::exit::{Failure, Status};
use crate::{explain, input, limits, out, output, say};
use isolde::{Check, Level, Limits, Progress, Unknown, Verdict, applicable_levels, shrink};
use isolde_history::format::to_text;
use isolde_history::{History, Index};
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What to expect at other levels is found out for so long after the time is up,
const EXPECTED_AFTER: Duration = Duration::from_secs(1);
/// and for so long if there is no limit.
const EXPECTED_MAX: Duration = Duration::from_secs(30);

/// Options of `isolde shrink`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The history: a file, or a directory of client logs; `-` is standard input
    file: PathBuf,
    /// The level that stays violated [default: the weakest that is violated]
    #[arg(long, short, value_name = "LEVEL", value_parser = parse_level)]
    level: Option<Level>,
    /// Write the smaller history to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How far the clocks of clients may be apart, such as 5ms, for levels of real time
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration)]
    clock_drift: Option<Duration>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

/// What came of it.
enum Shrunk {
    /// The text of a smaller history.
    Smaller(String),
    Satisfied,
    Undecided,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply();
    let name = input::name(&arguments.file);
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let start = Instant::now();
    let options = arguments.clone();
    // What was found in time is worth an answer after it, so only memory cuts it off.
    let shrunk = match limits::within(None, move || shrunk(&options, start)) {
        Ok(shrunk) => shrunk?,
        Err(reached) => return reached.end(&arguments.file, &arguments.limits.resources),
    };
    match shrunk {
        Shrunk::Smaller(text) => {
            match &arguments.output {
                None => out(&text)?,
                Some(path) => std::fs::write(path, text)
                    .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?,
            }
            Ok(Status::Violated)
        }
        Shrunk::Satisfied => {
            say(&format!("isolde: {name}: nothing is violated, so there is nothing to shrink"));
            Ok(Status::Satisfied)
        }
        Shrunk::Undecided => {
            say(&format!("isolde: {name}: no violation was found, and not all is decided"));
            Ok(Status::Unknown)
        }
    }
}

fn shrunk(arguments: &Arguments, start: Instant) -> Result<Shrunk, Failure> {
    let memory_max = arguments.limits.resources.memory_max();
    let (history, _) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let index = Index::new(&history);
    let deadline = arguments.limits.deadline(start);
    let clock = limits::Clock::until(deadline);
    let limits = Limits {
        stop: &|| clock.is_over(),
        is_memory: &|| clock.is_memory(),
        working_bytes_max: memory_max,
        ..Limits::NONE
    };
    let options = check::options_with(arguments.clock_drift);
    let levels = match arguments.level {
        Some(level) => vec![level],
        None => applicable_levels(&history),
    };
    let mut checking = Check::new(&history, &index, &limits).with_options(options);
    let (level, violated) = match explain::first_violated(&mut checking, &levels) {
        (Some(found), _) => found,
        (None, true) => return Ok(Shrunk::Undecided),
        (None, false) => return Ok(Shrunk::Satisfied),
    };
    let line = ProgressLine::new();
    let given_up = Cell::new(0);
    let observe = |progress: Progress| {
        given_up.set(progress.given_up);
        line.show(progress);
    };
    let whole = (&history, &index);
    let part = shrink(whole, level, &violated, options, &limits, &observe);
    line.clear();
    let left = &part.history;
    say(&format!(
        "isolde: {}: {} of {} transactions, {} of {} operations still violate {level}, found in \
         {:.1} s",
        input::name(&arguments.file),
        left.txn_count(),
        history.txn_count(),
        left.op_count(),
        history.op_count(),
        start.elapsed().as_secs_f64()
    ));
    if given_up.get() > 0 {
        say(&format!(
            "isolde: {}: {} smaller parts took too long to decide, so it may not be the smallest",
            input::name(&arguments.file),
            given_up.get()
        ));
    }
    let now = Instant::now();
    let clock = limits::Clock::until(Some(match deadline {
        Some(deadline) => deadline.max(now + EXPECTED_AFTER),
        None => now + EXPECTED_MAX,
    }));
    let limits = Limits { stop: &|| clock.is_over(), ..limits };
    let file = input::name(&arguments.file);
    Ok(Shrunk::Smaller(with_header(left, level, &file, options, &limits)))
}

/// The text of a history with its story and what to expect of it, as far as that is found out
/// within the limits.
pub(crate) fn with_header(
    history: &History,
    violated: Level,
    file: &str,
    options: isolde::Options,
    limits: &Limits<'_>,
) -> String {
    let text = to_text(history);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let file: String = file.chars().map(|it| if it.is_control() { '?' } else { it }).collect();
    let mut header = format!("{first}\n# The part of {file} that is not {violated}.\n#\n");
    let index = Index::new(history);
    let mut checking = Check::new(history, &index, limits).with_options(options);
    let mut levels = applicable_levels(history);
    levels.sort_unstable();
    for &level in levels.iter().rev() {
        let _ = checking.decide(level);
    }
    for level in levels {
        let name = match checking.decide(level) {
            _ if level == violated => "violated",
            Verdict::Unknown(Unknown::Limit(_)) => continue,
            verdict => verdict.name(),
        };
        writeln!(header, "# expect {level} {name}").expect("a string grows");
    }
    header + rest
}

/// One line on a terminal that says how far it is.
struct ProgressLine {
    is_terminal: bool,
    last: Cell<Option<Instant>>,
}

impl ProgressLine {
    const EVERY: Duration = Duration::from_millis(200);

    fn new() -> Self {
        ProgressLine { is_terminal: std::io::stderr().is_terminal(), last: Cell::new(None) }
    }

    fn show(&self, progress: Progress) {
        let is_due = self.last.get().is_none_or(|last| last.elapsed() >= Self::EVERY);
        if !self.is_terminal || !is_due {
            return;
        }
        self.last.set(Some(Instant::now()));
        let Progress { transactions, operations, checks, .. } = progress;
        let mut stderr = std::io::stderr().lock();
        let _ = write!(
            stderr,
            "\r\x1b[Kshrinking: {transactions} transactions, {operations} operations left after \
             {checks} checks"
        );
        let _ = stderr.flush();
    }

    fn clear(&self) {
        if self.is_terminal && self.last.get().is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

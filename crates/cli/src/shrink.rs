//! `isolde shrink`: the smallest part of a history that still violates a level.

use crate::check::{self, parse_level};
use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::{explain, input, limits, out, output, say, status_line};
use isolde::{Check, Level, Limits, Progress, Unknown, Verdict, applicable_levels, shrink};
use isolde_history::format::to_text;
use isolde_history::{History, Index};
use std::cell::Cell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
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
    arguments.limits.resources.apply()?;
    let name = input::name(&arguments.file);
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let interruption = Interruption::of("shrink")?;
    let start = Instant::now();
    let time = arguments.limits.time(Some(limits::USUAL_TIME));
    // What was found in time is worth an answer after it.
    let clock = limits::Clock::new(start, time.map(|time| start + time + EXPECTED_AFTER));
    let clock = clock.asked_for(time).interrupted_by(&interruption);
    let job = Arc::new(Job::new(clock, &arguments.limits.resources, true).keeping_half());
    let options = arguments.clone();
    let shrunk = match job.within(move |job| shrunk(&options, job, start)) {
        Ok(shrunk) => shrunk?,
        Err(reached) => return limits::end(reached, &arguments.file, &arguments.limits.resources),
    };
    match shrunk {
        Shrunk::Smaller(text) => {
            match &arguments.output {
                None => out(&text)?,
                Some(path) => output::write_whole(path, |out| out.write_all(text.as_bytes()))?,
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

fn shrunk(arguments: &Arguments, job: &Job, start: Instant) -> Result<Shrunk, Failure> {
    let (history, format) = input::read(&arguments.file, &arguments.input, job.memory_max)?;
    let options = check::options_with(arguments.clock_drift);
    let mut levels = match arguments.level {
        Some(level) => vec![level],
        None => applicable_levels(&history),
    };
    levels.sort_unstable();
    job.has_read(&history, format.name, &levels);
    let index = Index::new(&history);
    let given_up = Cell::new(0);
    let found = job.limited((&history, &index), |limits| {
        let mut checking = Check::new(&history, &index, limits).with_options(options);
        let decided = job.decide(&mut checking, &levels, |_, _, _| {});
        let Some((level, violated)) = explain::first_violated(&decided) else {
            let is_open = decided.iter().any(|it| matches!(it.1, Verdict::Unknown(_)));
            return Err(if is_open { Shrunk::Undecided } else { Shrunk::Satisfied });
        };
        job.clock.keep(EXPECTED_AFTER);
        let observe = |progress: Progress| {
            given_up.set(progress.given_up);
            let Progress { transactions, operations, checks, .. } = progress;
            status_line::tell(format!(
                "{transactions} transactions, {operations} operations left after {checks} checks"
            ));
        };
        job.progress.explain();
        let whole = (&history, &index);
        Ok((level, shrink(whole, level, violated, options, limits, &observe)))
    });
    let (level, part) = match found {
        Ok(found) => found,
        Err(nothing) => return Ok(nothing),
    };
    let (left, name) = (&part.history, input::name(&arguments.file));
    say(&format!(
        "isolde: {name}: {} of {} transactions, {} of {} operations still violate {level}, found \
         in {:.1} s",
        left.txn_count(),
        history.txn_count(),
        left.op_count(),
        history.op_count(),
        start.elapsed().as_secs_f64()
    ));
    if job.clock.is_over() {
        say(&format!("isolde: {name}: it was ended early, so it may not be the smallest"));
    } else if given_up.get() > 0 {
        say(&format!(
            "isolde: {name}: {} smaller parts took too long to decide, so it may not be the \
             smallest",
            given_up.get()
        ));
    }
    status_line::tell("deciding what to expect at other levels".to_owned());
    let now = Instant::now();
    let clock = limits::Clock::until(Some(match arguments.limits.time(Some(limits::USUAL_TIME)) {
        Some(time) => (start + time).clamp(now + EXPECTED_AFTER, now + EXPECTED_MAX),
        None => now + EXPECTED_MAX,
    }));
    let stop = || clock.is_over() || job.clock.is_interrupted();
    let limits = Limits { stop: &stop, working_bytes_max: job.memory_max, ..Limits::NONE };
    Ok(Shrunk::Smaller(with_header(left, level, &name, options, &limits)))
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

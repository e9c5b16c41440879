//! `isolde explain`: violations as whole arguments, with everything they follow from.

use crate::beside::Beside;
use crate::check::{self, parse_level};
use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat};
use crate::{input, limits};
use isolde::{Check, Level, Limits, Options, Verdict, applicable_levels};
use isolde_history::Index;
use isolde_report::{Report, Which, to_explanations};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of `isolde explain`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The history: a file, or a directory of client logs; `-` is standard input
    file: PathBuf,
    /// Explain why this level does not hold; may be given several times
    /// [default: the weakest levels that are violated]
    #[arg(long = "level", short, value_name = "LEVEL", value_parser = parse_level)]
    levels: Vec<Level>,
    /// Explain every violation that was found, not one for each level
    #[arg(long)]
    all: bool,
    /// Write the explanations to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How far the clocks of clients may be apart, such as 5ms, for levels of real time
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration)]
    clock_drift: Option<Duration>,
    /// Do without this source of version order, as `check` does
    #[arg(long, value_enum, value_name = "SOURCE")]
    without: Vec<check::Source>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply();
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let start = Instant::now();
    let options = arguments.clone();
    let explained = move || explained(&options, start);
    let (text, status) = match limits::within(arguments.limits.deadline(start), explained) {
        Ok(result) => result?,
        Err(reached) => return reached.end(&arguments.file, &arguments.limits.resources),
    };
    output::write(&text, OutputFormat::Text, arguments.output.as_deref())?;
    Ok(status)
}

fn explained(arguments: &Arguments, start: Instant) -> Result<(String, Status), Failure> {
    let memory_max = arguments.limits.resources.memory_max();
    let (mut history, format) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let sources = check::sources(&arguments.without);
    if !sources.given {
        history = history.without_version_orders();
    }
    let index = Index::new(&history);
    let clock = limits::Clock::new(start, arguments.limits.deadline(start));
    let used = history.memory() + index.memory();
    let limits = Limits {
        stop: &|| clock.is_over(),
        is_memory: &|| clock.is_memory(),
        working_bytes_max: memory_max.map(|bytes| bytes.saturating_sub(used)),
        ..Limits::NONE
    };
    let options = Options { sources, ..check::options_with(arguments.clock_drift) };
    let mut levels = arguments.levels.clone();
    if levels.is_empty() {
        levels = applicable_levels(&history);
    }
    levels.sort_unstable();
    levels.dedup();
    let mut checking = Check::new(&history, &index, &limits).with_options(options);
    let decided = check::decide_within(&mut checking, &levels, &clock, |_, _, _| {});
    let beside = Beside::of(&arguments.file, memory_max);
    let found = checking.found();
    let source = (beside.source.as_str(), format.name);
    let mut report = Report::with_options(&history, &index, source, &decided, found, options);
    beside.note(&arguments.file, &mut report);
    let all = arguments.all || !arguments.levels.is_empty();
    let text = to_explanations(&report, if all { Which::All } else { Which::Broken });
    let is = |wanted: &str| decided.iter().any(|(_, verdict, _)| verdict.name() == wanted);
    let status = match arguments.levels.is_empty() {
        false if is("violated") => Status::Violated,
        _ if is("unknown") => Status::Unknown,
        _ => Status::Satisfied,
    };
    Ok((text, status))
}

/// The first violation among levels, weakest first.
pub(crate) fn first_violated(
    checking: &mut Check<'_>,
    levels: &[Level],
) -> (Option<(Level, isolde::Violated)>, bool) {
    let decided = check::decide(checking, levels, |_, _, _| {});
    let is_open = decided.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Unknown(_)));
    let violated = decided.into_iter().find_map(|(level, verdict, _)| match verdict {
        Verdict::Violated(violated) => Some((level, violated)),
        _ => None,
    });
    (violated, is_open)
}

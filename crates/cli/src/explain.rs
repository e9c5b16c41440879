//! `isolde explain`: violations as whole arguments, with everything they follow from.

use crate::check::{self, parse_level};
use crate::exit::{Failure, Status};
use crate::output::{self, OutputFormat};
use crate::{input, limits};
use isolde::{Check, Level, Limits, Verdict, applicable_levels};
use isolde_history::Index;
use isolde_report::{Report, Which, to_explanations};
use std::path::{Path, PathBuf};
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
    let (history, format) = input::read(&arguments.file, &arguments.input, memory_max)?;
    let index = Index::new(&history);
    let deadline = arguments.limits.deadline(start);
    let stop = limits::Stop::at(deadline);
    let used = history.memory() + index.memory();
    let limits = Limits {
        stop: &|| stop.is_now(),
        is_memory: &|| stop.is_memory(),
        working_bytes_max: memory_max.map(|bytes| bytes.saturating_sub(used)),
        observe: &|_| {},
    };
    let options = check::options_with(arguments.clock_drift);
    let mut levels = arguments.levels.clone();
    if levels.is_empty() {
        levels = applicable_levels(&history);
    }
    levels.sort_unstable();
    levels.dedup();
    let mut checking = Check::new(&history, &index, &limits).with_options(options);
    let decided = check::decide(&mut checking, &levels, |_, _, _| {});
    let name = input::name(&arguments.file);
    let found = checking.found();
    let source = (name.as_str(), format.name);
    let mut report = Report::with_options(&history, &index, source, &decided, found, options);
    for (level, text) in documented(&arguments.file) {
        report.note_documented(level, &text);
    }
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

/// What the run that recorded a log knew about its database: deviations that are documented,
/// by level. Anything else than a log beside its `run.json` knows nothing.
fn documented(file: &Path) -> Vec<(Level, String)> {
    let beside = file.with_file_name("run.json");
    let Ok(text) = std::fs::read_to_string(beside) else { return Vec::new() };
    let Ok(run) = serde_json::from_str::<serde_json::Value>(&text) else { return Vec::new() };
    let is_of_this = run["history"].as_str().map(|name| Path::new(name).file_name());
    if is_of_this != Some(file.file_name()) {
        return Vec::new();
    }
    let gates = run["gate"].as_array().into_iter().flatten();
    let row = |gate: &serde_json::Value| {
        let level = Level::parse(gate["level"].as_str()?)?;
        Some((level, gate["documented"].as_str()?.to_owned()))
    };
    gates.filter_map(row).collect()
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

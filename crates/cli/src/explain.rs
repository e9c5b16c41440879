//! `isolde explain`: violations as whole arguments, with everything they follow from.

use crate::check::{self, parse_level};
use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::output::{self, OutputFormat};
use crate::partial_result::PartialResult;
use crate::run_metadata::RunMetadata;
use crate::without::{Source, sources};
use crate::{input, limits};
use isolde::{Check, Level, Limit, Options, Verdict, Violated, applicable_levels};
use isolde_history::Index;
use isolde_report::{Decided, Findings, Report, Which, to_explanations};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

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
    without: Vec<Source>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let interruption = Interruption::of("explain")?;
    let clock = arguments.limits.clock(Some(limits::USUAL_TIME)).interrupted_by(&interruption);
    let job = Arc::new(Job::new(clock, &arguments.limits.resources, true));
    let options = arguments.clone();
    let (text, status) = match job.within(move |job| explained(&options, job)) {
        Ok(result) => result?,
        Err(reached) => match given_up(arguments, reached, &job.partial_result) {
            Some(known) => known,
            None => return limits::end(reached, &arguments.file, &arguments.limits.resources),
        },
    };
    output::write(&text, OutputFormat::Text, arguments.output.as_deref())?;
    Ok(status)
}

/// What is known by the time that a limit is reached: which levels are violated. Nothing if the
/// history was not even read.
fn given_up(
    arguments: &Arguments,
    reached: Limit,
    partial_result: &PartialResult,
) -> Option<(String, Status)> {
    let decided = partial_result.decided(partial_result.levels()?, reached);
    let report = partial_result.report(&input::name(&arguments.file), &decided, reached);
    Some((arguments.told(&report), arguments.status(&decided)))
}

fn explained(arguments: &Arguments, job: &Job) -> Result<(String, Status), Failure> {
    let (mut history, format) = input::read(&arguments.file, &arguments.input, job.memory_max)?;
    let sources = sources(&arguments.without);
    if !sources.database_order {
        history = history.without_version_orders();
    }
    let mut levels = arguments.levels.clone();
    if levels.is_empty() {
        levels = applicable_levels(&history);
    }
    levels.sort_unstable();
    levels.dedup();
    job.has_read(&history, format.name, &levels);
    let index = Index::new(&history);
    let options = Options { sources, ..check::options_with(arguments.clock_drift) };
    let (decided, by_reading) = job.limited((&history, &index), |limits| {
        let mut checking = Check::new(&history, &index, limits).with_options(options);
        let decided = job.decide(&mut checking, &levels, |_, _, _| {});
        (decided, checking.found().to_vec())
    });
    job.clock.use_the_rest();
    let shown = job.explain((&history, &index), &decided, options);
    let metadata = RunMetadata::of(&arguments.file, job.memory_max);
    let findings =
        Findings { decided: &decided, counterexamples: &shown, by_reading: &by_reading, options };
    let names = (metadata.source.as_str(), format.name);
    let mut report = Report::new(&history, &index, names, &findings);
    metadata.note(&arguments.file, &mut report);
    Ok((arguments.told(&report), arguments.status(&decided)))
}

impl Arguments {
    fn told(&self, report: &Report) -> String {
        let all = self.all || !self.levels.is_empty();
        to_explanations(report, if all { Which::All } else { Which::Broken })
    }

    fn status(&self, decided: &[Decided]) -> Status {
        let is = |wanted: &str| decided.iter().any(|(_, verdict, _)| verdict.name() == wanted);
        match self.levels.is_empty() {
            false if is("violated") => Status::Violated,
            _ if is("unknown") => Status::Unknown,
            _ => Status::Satisfied,
        }
    }
}

/// The first violation among levels, weakest first.
pub(crate) fn first_violated(decided: &[Decided]) -> Option<(Level, &Violated)> {
    decided.iter().find_map(|(level, verdict, _)| match verdict {
        Verdict::Violated(violated) => Some((*level, violated)),
        _ => None,
    })
}

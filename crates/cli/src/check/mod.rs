//! `isolde check`: decide the levels of recorded histories.
//!
//! Without `--level` it is a report and not a gate: it exits 0 once every level is
//! decided. With levels it passes only if all of them hold.

mod workers;

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::output;
use crate::partial_result::PartialResult;
use crate::reports::{self, Form, Rendered, Wanted};
use crate::run_metadata::RunMetadata;
use crate::without::{Source, Without, sources, sources_of, strategies_of};
use crate::{input, limits, say, suggestion};
use clap::ValueEnum;
use isolde::reference::{self, Reference};
use isolde::{
    Check, Level, Limit, Options, Satisfied, Unknown, Verdict, Violated, applicable_levels,
    decided_levels,
};
use isolde_certificate::Certificate;
use isolde_history::format::Format;
use isolde_history::{History, Index};
use isolde_report::{Decided, Detail, Findings, Report, Unreadable, to_text};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Without a time limit, some searches are given up after so many contradictions, or the work
/// that these usually take: about a minute for ten thousand transactions.
const CONFLICTS_MAX: u64 = 20_000;

/// Options of `isolde check`.
#[derive(clap::Args, Clone)]
#[command(after_help = reports::help())]
pub(crate) struct Arguments {
    /// Histories: files, or directories of client logs; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Pass only if this level holds; may be given several times [default: report all levels]
    #[arg(long = "level", short, value_name = "LEVEL", value_parser = parse_level)]
    levels: Vec<Level>,
    /// The form of the result; see below
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = reports::parse_form)]
    format: Form,
    /// Write the result to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the result in another form to a file as well; may be given several times
    #[arg(long = "report", value_name = "FORM=FILE", value_parser = reports::parse_wanted)]
    reports: Vec<Wanted>,
    /// Write proofs of the verdicts to this file, for `isolde verify`
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// What decides: the engine, the definitions by brute force (small histories only), or the
    /// engine with CaDiCaL for its search (if it was built with it)
    #[arg(long, value_enum, default_value = "fast")]
    engine: Engine,
    /// How far the clocks of clients may be apart, such as 5ms, for levels of real time
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration)]
    clock_drift: Option<Duration>,
    /// Do without this source of order or this strategy; may be given several times. Lists and
    /// given orders are part of what levels mean: without them another question is answered.
    /// Levels that session order or real time are part of are then violated or unknown. Without a
    /// strategy verdicts stay the same, or become unknown
    #[arg(long, value_enum, value_name = "NAME")]
    without: Vec<Without>,
    /// Fail also if something that the database told about itself is refuted: its serialization
    /// order, its timestamps, or two things that contradict each other
    #[arg(long)]
    claims: bool,
    /// What an undecided level, or a recording without a committed transaction, means for the exit
    /// status: 0 or 1 instead of 2
    #[arg(long, value_enum, value_name = "AS")]
    unknown: Option<UnknownAs>,
    /// List every level, those that follow from others too, and tell where the time went
    #[arg(long, short)]
    verbose: bool,
    /// Print the verdicts alone
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    workers: workers::Arguments,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Fast,
    Reference,
    Cadical,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UnknownAs {
    Pass,
    Fail,
}

pub(crate) fn parse_level(name: &str) -> Result<Level, String> {
    Level::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Level::ALL.iter().map(|level| level.name()).collect();
        suggestion::expected("a level", name, &names)
    })
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    if arguments.engine == Engine::Cadical && !cfg!(feature = "cadical") {
        let message = "this isolde was built without CaDiCaL; with it: \
                       cargo build --release -p isolde-cli --features cadical";
        return Err(Failure::Usage(message.into()));
    }
    if arguments.certificate.is_some() {
        refuse_certificate(arguments)?;
    }
    if arguments.engine == Engine::Reference
        && arguments.without.iter().any(|it| *it != Without::Source(Source::Given))
    {
        let message = "the definitions use all there is: expected --engine reference without \
                       --without, or with --without given alone";
        return Err(Failure::Usage(message.into()));
    }
    refuse_forms_of_one(arguments)?;
    refuse_shared_files(arguments)?;
    input::refuse_second_standard_input(&arguments.files)?;
    arguments.limits.resources.apply()?;
    let interruption = Interruption::of("check")?;
    let mut worst = Status::Satisfied;
    let mut rendered: Vec<Vec<Rendered>> = arguments.forms().map(|_| Vec::new()).collect();
    for (place, file) in arguments.files.iter().enumerate() {
        if interruption.is_wanted() {
            let left = arguments.files.len() - place;
            say(&format!("isolde: interrupted by a signal: {left} more files were not looked at"));
            worst = worst.max(undecided(arguments));
            break;
        }
        match one(file, arguments, &interruption) {
            Ok((forms, status)) => {
                worst = worst.max(status);
                for (all, form) in rendered.iter_mut().zip(forms) {
                    all.push(form);
                }
            }
            Err(failure @ Failure::Read(_)) => {
                say(&format!("isolde: {failure}"));
                worst = Status::BadInput;
                let unreadable = Unreadable::new(&input::name(file), failure.to_string());
                for (all, form) in rendered.iter_mut().zip(arguments.forms()) {
                    all.extend(form.unreadable(&unreadable));
                }
            }
            Err(other) => return Err(other),
        }
    }
    let several = arguments.files.len() > 1;
    for (wanted, rendered) in arguments.reports.iter().zip(&rendered[1..]) {
        wanted.write(rendered, several)?;
    }
    let mut printed = rendered.swap_remove(0);
    if arguments.quiet && arguments.format.is("text") {
        // Lines of one table: nothing between them.
        printed = vec![Rendered::together(printed)];
    }
    arguments.format.write(&printed, several, arguments.output.as_deref())?;
    Ok(worst)
}

/// Every result has a file of its own, which is none of the histories.
fn refuse_shared_files(arguments: &Arguments) -> Result<(), Failure> {
    let reports = arguments.reports.iter().map(|wanted| wanted.path.as_path());
    let results = arguments.output.iter().chain(&arguments.certificate).map(PathBuf::as_path);
    let results: Vec<&Path> = results.chain(reports).collect();
    for (place, result) in results.iter().enumerate() {
        for file in &arguments.files {
            output::refuse_input(Some(result), file)?;
        }
        let is_device = result.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
        if results[..place].contains(result) && !is_device {
            let name = result.display();
            return Err(Failure::Usage(format!("{name}: expected a file for each result")));
        }
    }
    Ok(())
}

impl Arguments {
    /// What is printed, then what is written beside it.
    fn forms(&self) -> impl Iterator<Item = Form> {
        std::iter::once(self.format).chain(self.reports.iter().map(|wanted| wanted.form))
    }
}

/// A picture, a page and a directory are about one history.
fn refuse_forms_of_one(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.files.len() > 1 && !arguments.forms().all(Form::takes_several) {
        let message = "svg, html and elle are for one history at a time";
        return Err(Failure::Usage(message.into()));
    }
    Ok(())
}

/// A certificate is about one history, and about what the engine finds.
fn refuse_certificate(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.files.len() > 1 {
        return Err(Failure::Usage("--certificate is for one history at a time".into()));
    }
    let unproven = match arguments.engine {
        Engine::Fast => None,
        Engine::Reference => Some("the reference"),
        Engine::Cadical => Some("CaDiCaL"),
    };
    if let Some(engine) = unproven {
        let message = format!("--certificate needs the fast engine: {engine} proves nothing");
        return Err(Failure::Usage(message));
    }
    let changes_levels =
        |it: &Without| matches!(it, Without::Source(Source::Lists | Source::Given));
    if arguments.without.iter().any(changes_levels) {
        let message = "--certificate proves what levels mean by themselves: expected it without \
                       --without lists or given";
        return Err(Failure::Usage(message.into()));
    }
    Ok(())
}

/// The result for one history. The work is done on another thread, and this one answers
/// when time or memory are up, whatever the work is at.
fn one(
    file: &Path,
    arguments: &Arguments,
    interruption: &Interruption,
) -> Result<(Vec<Rendered>, Status), Failure> {
    let clock = arguments.limits.clock(Some(limits::USUAL_TIME)).interrupted_by(interruption);
    let tells = !(arguments.quiet || arguments.verbose);
    let job = Arc::new(Job::new(clock, &arguments.limits.resources, tells));
    let (path, options) = (file.to_owned(), arguments.clone());
    let is_for_workers = options.workers.are_for(&path);
    let checked = if is_for_workers { workers::checked } else { checked };
    let result = job.within(move |job| checked(&path, &options, job));
    result.unwrap_or_else(|reached| given_up(file, arguments, reached, &job.partial_result))
}

/// The result where something did not end within the limits: what is known by then.
fn given_up(
    file: &Path,
    arguments: &Arguments,
    reached: Limit,
    partial_result: &PartialResult,
) -> Result<(Vec<Rendered>, Status), Failure> {
    if let Some(failure) = limits::while_reading(reached, file, &arguments.limits.resources) {
        return Err(failure);
    }
    let levels =
        partial_result.levels().map_or_else(|| levels_of(arguments, None), <[Level]>::to_vec);
    let decided = partial_result.decided(&levels, reached);
    if let Some(path) =
        arguments.certificate.as_ref().filter(|_| partial_result.certificate.give_up())
    {
        say(&format!("isolde: {}: no certificate was written: {reached}", path.display()));
    }
    let report = partial_result.report(&input::name(file), &decided, reached);
    Ok((rendered(&report, None, file, arguments)?, status_of(&decided, arguments)))
}

/// The levels asked for: without any, those that the history can tell something about.
fn levels_of(arguments: &Arguments, history: Option<&History>) -> Vec<Level> {
    let mut levels = if arguments.levels.is_empty() {
        history.map_or_else(decided_levels, applicable_levels)
    } else {
        arguments.levels.clone()
    };
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// The usual options, with clocks that may be so far apart.
pub(crate) fn options_with(clock_drift: Option<Duration>) -> Options {
    let drift = clock_drift.unwrap_or_default().as_nanos();
    Options { clock_drift: i64::try_from(drift).unwrap_or(i64::MAX), ..Options::default() }
}

fn options(arguments: &Arguments) -> Options {
    Options {
        sources: sources(&sources_of(&arguments.without)),
        without: strategies_of(&arguments.without),
        clock_drift: options_with(arguments.clock_drift).clock_drift,
        engine: match arguments.engine {
            #[cfg(feature = "cadical")]
            Engine::Cadical => isolde::Engine::Cadical,
            _ => isolde::Engine::Own,
        },
        conflicts_max: (arguments.limits.timeout.is_none()).then_some(CONFLICTS_MAX),
    }
}

/// Reads a history, with what its database told unless nobody wants it.
fn with_evidence(
    file: &Path,
    arguments: &Arguments,
    job: &Job,
) -> Result<(History, &'static Format), Failure> {
    let (history, format) = input::read(file, &arguments.input, job.memory_max)?;
    let is_wanted = !arguments.without.contains(&Without::Source(Source::Given));
    Ok((if is_wanted { history } else { history.without_version_orders() }, format))
}

fn checked(
    file: &Path,
    arguments: &Arguments,
    job: &Job,
) -> Result<(Vec<Rendered>, Status), Failure> {
    let start = Instant::now();
    let (history, format) = with_evidence(file, arguments, job)?;
    let levels = levels_of(arguments, Some(&history));
    job.has_read(&history, format.name, &levels);
    let read_at = Instant::now();
    let index = Index::new(&history);
    let indexed_at = Instant::now();
    let (name, metadata) = (input::name(file), RunMetadata::of(file, job.memory_max));
    if arguments.verbose {
        tell_sizes(&name, [start, read_at, indexed_at], (&history, &index));
    }
    let options = options(arguments);
    let decided = job.limited((&history, &index), |limits| {
        let mut check = Check::new(&history, &index, limits).with_options(options);
        let decided = match arguments.engine {
            Engine::Fast | Engine::Cadical => {
                job.decide(&mut check, &levels, |level, verdict, seconds| {
                    if arguments.verbose {
                        job.say_decided(&name, level, verdict, seconds);
                    }
                })
            }
            Engine::Reference => by_definition(&history, &levels, options),
        };
        if let Some(path) = &arguments.certificate {
            job.clock.use_the_rest();
            let certificate = certified(&mut check, &levels);
            let write = |out: &mut dyn Write| isolde_certificate::write(&certificate, out);
            job.partial_result.certificate.write(|| output::write_whole(path, write))?;
        }
        Ok::<_, Failure>((decided, check.found().to_vec()))
    });
    let (decided, by_reading) = decided?;
    // Nobody waits for what explains a verdict if it is not shown.
    let shows = arguments.forms().any(|form| !(arguments.quiet && form.is("text")));
    job.clock.begin_explaining();
    let explained = shows.then(|| job.explain((&history, &index), &decided, options));
    let shown = explained.unwrap_or_default();
    job.clock.use_the_rest();
    let findings =
        Findings { decided: &decided, counterexamples: &shown, by_reading: &by_reading, options };
    let names = (metadata.source.as_str(), format.name);
    let mut report = Report::new(&history, &index, names, &findings);
    metadata.note(file, &mut report);
    let given = shows && options.sources.database_order && history.has_evidence();
    let status = with_claims(status_of(&decided, arguments), &report, arguments);
    let status = tested(status, &report, arguments);
    if given && arguments.engine != Engine::Reference {
        // The history is given up for it: read again where a page shows it.
        drop(index);
        job.without_given(history, &decided, options, &mut report);
        if !arguments.forms().any(|form| matches!(form, Form::Page)) {
            return Ok((rendered(&report, None, file, arguments)?, status));
        }
        let (history, _) = input::read_again(file, &arguments.input, job.memory_max)?;
        let index = Index::new(&history);
        return Ok((rendered(&report, Some((&history, &index)), file, arguments)?, status));
    }
    Ok((rendered(&report, Some((&history, &index)), file, arguments)?, status))
}

/// Says how long reading took until these times, and what came of it.
fn tell_sizes(
    name: &str,
    [start, read_at, indexed_at]: [Instant; 3],
    (history, index): (&History, &Index),
) {
    say(&format!(
        "isolde: {name}: parse {:.3} s, index {:.3} s; history {} MiB, index {} MiB",
        (read_at - start).as_secs_f64(),
        (indexed_at - read_at).as_secs_f64(),
        history.memory() >> 20,
        index.memory() >> 20,
    ));
}

/// Makes a certificate, and tells which levels are not in it.
fn certified(check: &mut Check<'_>, levels: &[Level]) -> Certificate {
    let certified = check.certify(levels);
    for (level, reason) in &certified.left_out {
        say(&format!("isolde: {level} is not in the certificate: {reason}"));
    }
    certified.certificate
}

fn by_definition(history: &History, levels: &[Level], options: Options) -> Vec<Decided> {
    let decide = |&level: &Level| {
        let start = Instant::now();
        let verdict = match reference::decide_with_drift(history, level, options.clock_drift) {
            Reference::Satisfied => Verdict::Satisfied(Satisfied::Definition),
            Reference::Violated => Verdict::Violated(Violated::by(Vec::new())),
            Reference::Unknown(reason) => Verdict::Unknown(Unknown::Unsupported(reason)),
        };
        (level, verdict, start.elapsed().as_secs_f64())
    };
    levels.iter().map(decide).collect()
}

/// The report in every form that was asked for.
fn rendered(
    report: &Report,
    history: Option<(&History, &Index)>,
    file: &Path,
    arguments: &Arguments,
) -> Result<Vec<Rendered>, Failure> {
    if arguments.forms().any(|form| form.is("github")) {
        reports::summarize(report)?;
    }
    let mut all = Vec::new();
    for (place, form) in arguments.forms().enumerate() {
        all.push(match place {
            0 if form.is("text") => Rendered::Text(printed(report, file, arguments)),
            _ => form.render(report, history)?,
        });
    }
    Ok(all)
}

fn printed(report: &Report, file: &Path, arguments: &Arguments) -> String {
    // Who names levels wants to hear about each.
    let is_every = arguments.verbose || !arguments.levels.is_empty();
    let detail = match arguments.quiet {
        true => Detail::Verdicts,
        false if is_every => Detail::Every,
        false => Detail::Full,
    };
    let asked = asked(arguments);
    let gate = arguments.levels.is_empty().then(|| gate(report, file, &asked)).flatten();
    let text = to_text(report, detail, gate.as_deref());
    if arguments.quiet || report.weakest_violated.is_empty() {
        return text;
    }
    let levels: Vec<String> =
        arguments.levels.iter().map(|level| format!(" --level {level}")).collect();
    let file = file_for_a_shell(file);
    format!("{text}why: isolde explain {file}{}{asked}\n", levels.concat())
}

/// The options without which a command would ask something else.
fn asked(arguments: &Arguments) -> String {
    let drift = arguments.clock_drift.filter(|drift| !drift.is_zero());
    let drift = drift.map(|drift| format!(" --clock-drift {}", limits::typed(drift)));
    let sources = arguments.without.iter().filter_map(ValueEnum::to_possible_value);
    let without = sources.map(|source| format!(" --without {}", source.get_name()));
    let complete_log = arguments.input.complete_log.then(|| " --complete-log".to_owned());
    drift.into_iter().chain(without).chain(complete_log).collect()
}

/// The command that fails once what holds now no longer holds. Of nothing, everything holds.
fn gate(report: &Report, file: &Path, asked: &str) -> Option<String> {
    if report.strongest.is_empty() || report.history.committed == 0 {
        return None;
    }
    let levels: Vec<String> =
        report.strongest.iter().map(|level| format!("--level {level}")).collect();
    let file = file_for_a_shell(file);
    Some(format!("isolde check {file} {}{asked}", levels.join(" ")))
}

/// The same for a file. One that begins like an option is named by its folder; a dash alone is
/// standard input.
pub(crate) fn file_for_a_shell(file: &Path) -> String {
    let name = file.display().to_string();
    let is_like_option = name.len() > 1 && name.starts_with('-');
    for_a_shell(&if is_like_option { format!("./{name}") } else { name })
}

/// A word that a shell takes as it is, with nothing in it that a terminal obeys.
pub(crate) fn for_a_shell(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,+@%=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    if word.chars().any(char::is_control) {
        let escaped = word.chars().map(|character| match character {
            '\'' | '\\' => format!("\\{character}"),
            other if other.is_control() => format!("\\u{:04x}", other as u32),
            other => other.to_string(),
        });
        return format!("$'{}'", escaped.collect::<String>());
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The same, or worse if claims matter and one is refuted.
fn with_claims(status: Status, report: &Report, arguments: &Arguments) -> Status {
    if arguments.claims && !report.refuted.is_empty() {
        return Status::Violated.max(status);
    }
    status
}

/// The same, unless a gate would open for nothing: what holds of a recording without a
/// committed transaction was not tested.
fn tested(status: Status, report: &Report, arguments: &Arguments) -> Status {
    let is_gate = !arguments.levels.is_empty() || arguments.claims;
    if status != Status::Satisfied || !is_gate || report.history.committed > 0 {
        return status;
    }
    let name = &report.file;
    say(&format!("isolde: {name}: no transaction committed, so nothing was tested"));
    undecided(arguments)
}

/// What an undecided level means.
fn undecided(arguments: &Arguments) -> Status {
    match arguments.unknown {
        None => Status::Unknown,
        Some(UnknownAs::Pass) => Status::Satisfied,
        Some(UnknownAs::Fail) => Status::Violated,
    }
}

fn status_of(decided: &[Decided], arguments: &Arguments) -> Status {
    let gate = !arguments.levels.is_empty();
    let worst = decided.iter().map(|(_, verdict, _)| match verdict {
        Verdict::Violated(_) if gate => Status::Violated,
        Verdict::Satisfied(_) | Verdict::Violated(_) => Status::Satisfied,
        Verdict::Unknown(_) => undecided(arguments),
    });
    worst.max().unwrap_or(Status::Satisfied)
}

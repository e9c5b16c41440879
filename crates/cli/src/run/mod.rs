//! `isolde run`: drive a database, record what its clients see, check what it promises.
//!
//! The history is on disk before it is checked, in a folder with `run.json` beside it.
//! Whatever ends the run early (Ctrl-C, a server that is gone, a full disk), what was
//! recorded until then is kept and checked.

mod bank;
pub(crate) mod faults;
mod goal;
mod live;
mod outcome;
mod record;
pub(crate) mod strongest_levels;

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::output::{self, OutputFormat};
use crate::reports::{self, Form, Wanted};
use crate::subject::{HISTORY_FILE, Opening};
use crate::{address, check, clean, input, limits, report, say, suggestion, workload};
use clap::ValueEnum;
use isolde::Level;
use isolde_drivers::{DEFAULT_TARGET, PASSWORD_VARIABLE, TARGETS};
pub(crate) use isolde_harness::fresh_prefix as prefix;
use isolde_harness::{Claim, Database, Extent, Isolation, Parameters, Workload};
use outcome::Outcome;
use record::{Recorded, Recording};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Options of `isolde run`.
#[derive(clap::Args, Clone)]
#[command(after_help = SHORT_HELP, after_long_help = after_help())]
pub(crate) struct Arguments {
    /// The database: a name, or a URL such as the examples below [default: sqlite]
    target: Option<String>,
    /// The isolation setting, as the database calls it [default: what its users get]
    #[arg(long, value_name = "NAME")]
    isolation: Option<String>,
    /// Pass only if this level holds; may be given several times [default: what is promised]
    #[arg(long = "level", short, value_name = "LEVEL", value_parser = check::parse_level)]
    levels: Vec<Level>,
    #[command(flatten)]
    workload: workload::Arguments,
    /// Clients take new keys after this many transactions
    #[arg(long, help_heading = "Workload", hide_short_help = true, value_name = "NUMBER")]
    rotate: Option<u64>,
    /// What deleting a row by its key does
    #[arg(
        long,
        help_heading = "Workload",
        hide_short_help = true,
        value_enum,
        value_name = "WHAT",
        default_value = "remove"
    )]
    deletes: Deletes,
    /// End after this long, such as 30s, however many transactions were committed
    #[arg(long, value_name = "TIME", value_parser = limits::parse_lasting)]
    duration: Option<Duration>,
    /// Go on, with the next seed each time, until a level is violated; --duration ends that
    #[arg(long)]
    until_violation: bool,
    /// Also ask the database for the order in which it installed versions, and judge by that
    #[arg(long, hide_short_help = true)]
    white_box: bool,
    #[command(flatten)]
    faults: faults::Arguments,
    /// The folder for the history, which must not exist [default: one in isolde-runs]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Also write the result in another form, such as junit=report.xml or html=page.html; the
    /// forms are those of `check`. May be given several times
    #[arg(long = "report", value_name = "FORM=FILE", value_parser = reports::parse_wanted)]
    reports: Vec<Wanted>,
    /// How to print the result
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    /// Print the verdicts alone, and search for no other level
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    limits: limits::Arguments,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Deletes {
    /// The row is gone
    Remove,
    /// The row stays with a value of its own, a tombstone, so that ranges show deleted keys too
    Mark,
}

impl Arguments {
    /// What clients do.
    fn workload_of(&self, parameters: Parameters) -> Result<Workload, Failure> {
        let workload = Workload::new(parameters, self.rotate);
        let workload = match self.deletes {
            Deletes::Remove => workload,
            Deletes::Mark => workload.and_then(Workload::with_tombstones),
        };
        workload.map_err(|error| usage(&error.to_string()))
    }
}

/// The workload if none is named: small transactions whose order is known, over few
/// enough keys that clients meet.
const DEFAULT_PRESET: &str = "MTC";

/// A round of `--until-violation` that could last only this long is not begun: it might commit
/// nothing, and the ones before it would be forgotten.
const ROUND_MIN: Duration = Duration::from_millis(250);

/// Presets whose answers leave open what they were found in.
const WHITE_BOX_PRESETS: &str = "\
The presets phantoms and predicate-deletes want --white-box, where the database has it: what
conditions did not find, clients alone cannot tell, and the verdict is mostly `unknown`.";

/// What `-h` says in place of the tables.
const SHORT_HELP: &str = "\
isolde run                                      SQLite, and what it promises
isolde run postgres --isolation serializable    a private PostgreSQL
isolde run --help                               all options, databases and presets";

fn after_help() -> String {
    let mut text = String::from("Databases:\n");
    for target in TARGETS {
        writeln!(text, "  {:30}  {}", target.example, target.title).expect("a string grows");
    }
    format!("{text}\n{}\n{WHITE_BOX_PRESETS}", workload::presets(DEFAULT_PRESET))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    let target = arguments.target.as_deref().unwrap_or(DEFAULT_TARGET);
    let address = address::of(target).map_err(|message| usage(&message))?;
    let preset = arguments.workload.preset_or(DEFAULT_PRESET);
    let parameters = arguments.workload.applied_to(preset.parameters);
    // Before anything is opened, because it is the user's own doing.
    arguments.workload_of(parameters)?;
    arguments.faults.refuse_address(&address).map_err(|message| usage(&message))?;
    let interruption = Interruption::of("run")?;
    let mut database = interruption.opened(&address)?;
    let claim = claim(database.as_ref(), arguments.isolation.as_deref())
        .map_err(|message| usage(&message))?;
    refuse_bug_that_hides(database.as_ref(), &claim, &parameters)
        .map_err(|message| usage(&message))?;
    arguments.faults.announce(database.as_mut()).map_err(|error| usage(&error.to_string()))?;
    let run = Run {
        arguments,
        levels: levels(arguments, &claim)?,
        claim,
        target: address.to_string(),
        has_password: address.password.is_some(),
        scheme: address.scheme.clone(),
        preset: preset.name,
        interruption,
    };
    clean::tell_of_leftovers(database.as_ref());
    let folder = run.folder(parameters.seed)?;
    let outcome = run.rounds(database.as_mut(), parameters, &folder)?;
    run.interruption.leaves([]);
    let json = outcome.to_json();
    // Told before anything else is written: a full disk must not hide what was found. And a
    // terminal that is gone must not keep it from being written.
    let printed = match arguments.format {
        OutputFormat::Json => json.clone(),
        OutputFormat::Text => outcome.to_text(arguments.quiet),
    };
    let told = output::write(&printed, arguments.format, None);
    let is_told = arguments.format == OutputFormat::Text && !arguments.quiet;
    if let Some(message) = outcome.complaint(is_told) {
        say(&format!("isolde: run: {message}"));
    }
    if let Some(bug) = database.bug().filter(|&bug| outcome.hides(bug)) {
        say(&format!("isolde: run: {}", bug.not_shown()));
    }
    let kept = kept(&folder, &json, (arguments, &outcome));
    match (told.and(kept), outcome.status()) {
        (Ok(()), status) => Ok(status),
        (Err(failure), Status::Violated) => {
            say(&format!("isolde: {failure}"));
            Ok(Status::Violated)
        }
        (Err(failure), _) => Err(failure),
    }
}

/// Writes what is known of the run beside its history, and the other forms that are wanted.
fn kept(
    folder: &Path,
    json: &str,
    (arguments, outcome): (&Arguments, &Outcome),
) -> Result<(), Failure> {
    output::write_whole(&folder.join("run.json"), |out| writeln_all(out, json))?;
    for wanted in &arguments.reports {
        match wanted.form {
            Form::Page => write_page(folder, &wanted.path, &arguments.limits)?,
            form => wanted.write(&[form.render(&outcome.gated, None)?], false)?,
        }
    }
    Ok(())
}

/// Writes the page of the run in this folder.
fn write_page(folder: &Path, path: &Path, limits: &limits::Arguments) -> Result<(), Failure> {
    let input = input::Arguments { from: None, initial: None, complete_log: false };
    let job = Job::new(limits.clock(Some(limits::USUAL_TIME)), &limits.resources, false);
    let subject = Opening { input: &input, job: &job }.open(folder)?;
    let page = report::to_page(&subject, &input::name(folder))?;
    let path = if path.is_dir() { path.join("report.html") } else { path.to_owned() };
    output::write_whole(&path, |out| out.write_all(page.as_bytes()))?;
    say(&format!("isolde: wrote {}", path.display()));
    Ok(())
}

fn writeln_all(out: &mut dyn std::io::Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("run: {message}"))
}

/// The claim of this isolation setting, in whatever way its words are put together.
pub(crate) fn claim(database: &dyn Database, isolation: Option<&str>) -> Result<Claim, String> {
    let wanted = isolation.unwrap_or_else(|| database.default_isolation());
    let wanted = wanted.trim().to_ascii_lowercase().replace([' ', '_'], "-");
    let found = database.claims().iter().find(|claim| claim.isolation == wanted);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> =
            database.claims().iter().map(|claim| claim.isolation.as_str()).collect();
        let what = format!("an isolation setting of {}", database.name());
        suggestion::expected(&what, &wanted, &names)
    })
}

/// Refuses a workload in which the bug of a simulated database never shows.
pub(crate) fn refuse_bug_that_hides(
    database: &dyn Database,
    claim: &Claim,
    parameters: &Parameters,
) -> Result<(), String> {
    let Some(bug) = database.bug() else { return Ok(()) };
    let isolation = Isolation::by_name(&claim.isolation).unwrap_or(parameters.isolation);
    let parameters = Parameters { isolation, ..*parameters };
    bug.validate(&parameters).map_err(|error| error.to_string())
}

/// The levels that decide how the command ends.
fn levels(arguments: &Arguments, claim: &Claim) -> Result<Vec<Level>, Failure> {
    let mut levels = arguments.levels.clone();
    if levels.is_empty() {
        for name in &claim.promises {
            levels.push(check::parse_level(name).map_err(|message| usage(&message))?);
        }
    }
    levels.sort_unstable();
    levels.dedup();
    Ok(levels)
}

/// What does not change from round to round.
struct Run<'a> {
    arguments: &'a Arguments,
    levels: Vec<Level>,
    claim: Claim,
    target: String,
    has_password: bool,
    scheme: String,
    preset: &'static str,
    interruption: Interruption,
}

impl Run<'_> {
    /// Creates the folder of the run.
    fn folder(&self, seed: u64) -> Result<PathBuf, Failure> {
        let folder = self.arguments.output.clone().unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let name = format!("{}-seed{seed}-{}", self.scheme, now.as_millis());
            Path::new("isolde-runs").join(name)
        });
        let failed = |error: std::io::Error| {
            usage(&format!("cannot create the folder {}: {error}", folder.display()))
        };
        if let Some(parent) = folder.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::create_dir(&folder).map_err(failed)?;
        Ok(folder)
    }

    /// Removes the folder of a run that failed before its first transaction.
    fn forget(&self, folder: &Path) {
        let _ = std::fs::remove_file(folder.join(HISTORY_FILE));
        // Whatever else is there stays.
        let _ = std::fs::remove_dir(folder);
        if self.arguments.output.is_none() {
            let _ = folder.parent().map(std::fs::remove_dir);
        }
    }

    /// Records and checks, once or until a level is violated.
    fn rounds(
        &self,
        database: &mut dyn Database,
        mut parameters: Parameters,
        folder: &Path,
    ) -> Result<Outcome, Failure> {
        let started = Instant::now();
        // What is left in the end is too short for another round.
        let is_late = || {
            let overall = self.arguments.duration.filter(|_| self.arguments.until_violation);
            overall.is_some_and(|duration| started.elapsed() + ROUND_MIN >= duration)
        };
        let mut rounds = 1;
        loop {
            let recorded = self.record(database, parameters, (folder, started.elapsed()));
            let recorded = recorded.inspect_err(|_| self.forget(folder))?;
            let is_over = !self.arguments.until_violation
                || recorded.ended_by.is_some()
                || self.interruption.is_wanted()
                || is_late();
            let judged = |database: &dyn Database, is_last| {
                Outcome::of(self, database, parameters, recorded.clone(), rounds, is_last)
            };
            let outcome = judged(database, is_over)?;
            // A signal may have come while it was checked.
            let is_over = is_over || self.interruption.is_wanted();
            if is_over || outcome.status() == Status::Violated {
                return Ok(outcome);
            }
            // So may the end of the time: all levels are told of the last round.
            if is_late() {
                return judged(database, true);
            }
            std::fs::remove_file(&outcome.history)
                .map_err(|error| Failure::Write(outcome.history.clone(), error.into()))?;
            parameters.seed = parameters.seed.wrapping_add(1);
            rounds += 1;
        }
    }

    fn record(
        &self,
        database: &mut dyn Database,
        parameters: Parameters,
        (folder, elapsed): (&Path, Duration),
    ) -> Result<Recorded, Failure> {
        let workload = self.arguments.workload_of(parameters)?;
        let recording = Recording {
            claim: &self.claim,
            levels: &self.levels,
            workload: &workload,
            history: folder.join(HISTORY_FILE),
            faults: self.arguments.faults.plan(parameters.seed),
            extent: match self.arguments.duration {
                None => Extent::Counted,
                Some(all) if self.arguments.until_violation => {
                    Extent::CountedWithin(all.saturating_sub(elapsed))
                }
                Some(duration) => Extent::Lasting(duration),
            },
            interruption: &self.interruption,
            quiet: self.arguments.quiet,
            until_violation: self.arguments.until_violation,
            white_box: self.arguments.white_box,
        };
        recording.run(database)
    }

    /// The command that does the same again.
    fn command(&self, seed: u64) -> String {
        let password = if self.has_password { password_for_a_shell() } else { String::new() };
        let mut text = format!(
            "{password}isolde run {} --isolation {}",
            check::for_a_shell(&self.target),
            self.claim.isolation
        );
        for level in &self.arguments.levels {
            write!(text, " --level {level}").expect("a string grows");
        }
        text.push_str(&self.arguments.workload.typed());
        if let Some(rotate) = self.arguments.rotate {
            write!(text, " --rotate {rotate}").expect("a string grows");
        }
        if self.arguments.deletes == Deletes::Mark {
            text.push_str(" --deletes mark");
        }
        if self.arguments.white_box {
            text.push_str(" --white-box");
        }
        text.push_str(&self.arguments.faults.typed());
        if let Some(duration) = self.arguments.duration.filter(|_| !self.arguments.until_violation)
        {
            write!(text, " --duration {}", limits::typed(duration)).expect("a string grows");
        }
        if let Some(timeout) = self.arguments.limits.timeout {
            write!(text, " --timeout {}", timeout.typed()).expect("a string grows");
        }
        write!(text, " --seed {seed}").expect("a string grows");
        text
    }
}

/// What stands before a command in place of its password, which is never repeated. A shell
/// says if the variable is missing.
fn password_for_a_shell() -> String {
    format!("{PASSWORD_VARIABLE}=\"${{{PASSWORD_VARIABLE}:?}}\" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shell_is_told_which_variable_has_the_password() {
        let expected = "ISOLDE_PASSWORD=\"${ISOLDE_PASSWORD:?}\" ";
        assert_eq!(super::password_for_a_shell(), expected);
    }
}

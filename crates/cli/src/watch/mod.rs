//! `isolde watch`: verify a database while it runs.
//!
//! | file | what it does |
//! |---|---|
//! | `target.rs`, `tap.rs` | drives a database as `isolde run` does, and looks on |
//! | `listen.rs`, `admission.rs`, `connection.rs`, `stream.rs`, `resume.rs`, `save_file.rs` | takes traces of others |
//! | `file.rs` | takes traces from files |
//! | `complete.rs`, `barrier.rs` | the complete checker in rounds, and instants without open transactions |
//! | `hub.rs` | where all of them leave their events |
//! | `monitor.rs` | takes the events, has them verified, tells what is found |
//! | `threads.rs`, `now.rs` | threads that the system may refuse, and the time |
//! | `clocks.rs` | clocks that are further apart than was promised |
//! | `window/`, `judge.rs`, `opinion.rs` | the history around a violation, and what the complete checker says of it |
//! | `narrative.rs`, `status.rs`, `output.rs`, `page.rs` | what is printed and shown, and how |
//! | `simulation` | tests of all of this, with a network, a disk and a clock that obey a seed |

mod admission;
mod barrier;
mod clocks;
mod complete;
mod connection;
mod file;
mod hub;
mod judge;
mod listen;
mod monitor;
mod narrative;
mod now;
mod opinion;
mod output;
mod page;
mod profile;
mod resume;
mod save_file;
#[cfg(test)]
mod simulation;
mod status;
mod stream;
mod tap;
mod target;
mod threads;
mod window;

use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::run::{self, faults};
use crate::run_metadata::{self, Driven};
use crate::subject::RUN_FILE;
use crate::{address, limits, say, suggestion, workload};
use hub::Hub;
use isolde::Level;
use isolde::online::{
    Content, EXACT_LEVELS, IMPLIED_LEVELS, Options, PipelineOptions, Time, Verifier,
};
use isolde_drivers::DEFAULT_TARGET;
use isolde_harness::{Workload, clean_up_after, remains};
use listen::{ListenAddress, Listener, parse_address};
use monitor::{Clock, Completing, Monitor, Setting};
use now::now;
use output::Output;
use profile::NamedProfile;
use save_file::SaveFile;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tap::Tap;
use window::Known;

/// Options of `isolde watch`.
#[derive(clap::Args, Clone)]
#[command(after_help = after_help())]
pub(crate) struct Arguments {
    /// The database to drive and watch: a name or URL, as for `isolde run` [default: sqlite]
    #[arg(conflicts_with_all = ["listen", "from"])]
    target: Option<String>,
    /// Watch what others send to this address instead: a port of this machine, ADDRESS:PORT, or
    /// unix:PATH
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "from")]
    listen: Option<ListenAddress>,
    /// Watch traces or histories in files instead; `-` is standard input
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// The isolation setting, as the database calls it [default: what its users get]
    #[arg(long, value_name = "NAME")]
    isolation: Option<String>,
    /// What the database is held to, such as postgres/serializable or snapshot-isolation
    /// [default: what the target promises, or that of the run whose log is watched]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// The same from a file of `name = value` lines
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    profile_file: Option<PathBuf>,
    #[command(flatten)]
    workload: workload::Arguments,
    /// Clients take new keys after this many transactions
    #[arg(long, value_name = "NUMBER")]
    rotate: Option<u64>,
    /// End after this long, such as 30s [default: with the transactions, else at Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = limits::parse_lasting)]
    duration: Option<Duration>,
    /// End with the first violation
    #[arg(long)]
    until_violation: bool,
    #[command(flatten)]
    faults: faults::Arguments,
    /// Also write the history of a driven database to this file, as `isolde run` does
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Also write the traces that others send to this file
    #[arg(long, value_name = "FILE", requires = "listen")]
    save: Option<PathBuf>,
    /// Senders must know this
    #[arg(long, value_name = "TEXT", requires = "listen", conflicts_with = "token_file")]
    token: Option<String>,
    /// Senders must know the first line of this file
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// End after this many connections have ended, without those that were turned away
    #[arg(long, value_name = "NUMBER", requires = "listen")]
    connections: Option<usize>,
    /// What rows hold that nobody has written: `absent`, or `unknown`, and then the first read
    /// tells [default: absent for a driven database, else unknown]
    #[arg(long, value_enum, value_name = "WHAT")]
    initial: Option<Initial>,
    /// How far the clocks of clients may be apart, such as 5ms
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration)]
    clock_drift: Option<Duration>,
    /// A client that stays behind the others for longer is set aside
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration, default_value = "10s")]
    stall_after: Duration,
    /// How much older than the latest events those of a new client may be [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = limits::parse_duration)]
    slack: Option<Duration>,
    /// Also decide this level completely, in rounds: strict-serializable, serializable,
    /// strong-snapshot-isolation or snapshot-isolation
    #[arg(long, value_name = "LEVEL", value_parser = parse_complete)]
    complete: Option<Level>,
    /// Show a live page and metrics on this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    http: Option<SocketAddr>,
    /// Write what happens to this file as lines of JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The folder for histories around violations [default: one in isolde-watch]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Tell this many violations in full; the rest are counted
    #[arg(long, value_name = "NUMBER", default_value = "10")]
    explain: u64,
    /// Say nothing but violations and the summary
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    resources: limits::Resources,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Initial {
    Absent,
    Unknown,
}

/// Between two instants at which no session is in a transaction.
const BARRIER_EVERY: Duration = Duration::from_secs(1);

fn parse_complete(name: &str) -> Result<Level, String> {
    let levels = [EXACT_LEVELS, IMPLIED_LEVELS].concat();
    let known = Level::parse(name).filter(|level| levels.contains(level));
    known.ok_or_else(|| {
        let names: Vec<&str> = levels.iter().map(|level| level.name()).collect();
        suggestion::expected("a level that can be verified completely", name, &names)
    })
}

const EXIT_STATUS: &str = "\
Exit status: 0 no violation, 1 violations, 2 nothing was committed, not all could be verified, the
watch ended early, a round was not decided or clocks are further apart than --clock-drift says,
3 bad usage or input.";

const DEFAULT_PRESET: &str = "MTC";

fn after_help() -> String {
    format!("{}\n{EXIT_STATUS}", workload::presets(DEFAULT_PRESET))
}

fn usage(message: &str) -> Failure {
    Failure::Usage(format!("watch: {message}"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.refuse_what_has_no_effect()?;
    arguments.resources.apply()?;
    let watch = Watch {
        arguments,
        hub: Arc::new(Hub::new(arguments.resources.memory_max())),
        interruption: Interruption::of("watch")?,
        output: Arc::new(Output::new(arguments.quiet, arguments.events.as_deref())?),
        status: Arc::default(),
    };
    if let Some(address) = &arguments.listen {
        return watch.listen(address);
    }
    if !arguments.from.is_empty() {
        return watch.files(&arguments.from);
    }
    watch.target(arguments.target.as_deref().unwrap_or(DEFAULT_TARGET))
}

impl Arguments {
    /// An option that changes nothing is a misunderstanding, and better told now.
    fn refuse_what_has_no_effect(&self) -> Result<(), Failure> {
        let of_driving = [
            (self.isolation.is_some(), "--isolation"),
            (!self.workload.is_empty(), "an option of the workload"),
            (self.rotate.is_some(), "--rotate"),
            (!self.faults.is_empty(), "--fault"),
            (self.log.is_some(), "--log"),
        ];
        let refused = |given: &[(bool, &str)], why: &str| {
            let found = given.iter().find(|(is_given, _)| *is_given);
            found.map_or(Ok(()), |(_, name)| Err(usage(&format!("{name} has no effect {why}"))))
        };
        let is_packed =
            |path: &Path| path.extension().is_some_and(|ending| ending == "zst" || ending == "gz");
        if let Some(path) = self.save.as_deref().filter(|path| is_packed(path)) {
            let path = path.display();
            return Err(usage(&format!(
                "expected --save without .zst or .gz, found `{path}`: lines are written as they \
                 are acknowledged, and can be compressed afterwards"
            )));
        }
        if self.listen.is_some() {
            return refused(
                &of_driving,
                "with --listen: nothing is driven, the traces are as sent",
            );
        }
        if self.from.is_empty() {
            let why = "without --listen or --from: the clock of a driven database is read";
            return refused(&[(self.slack.is_some(), "--slack")], why);
        }
        refused(&of_driving, "with --from: nothing is driven, the traces are as written")?;
        refused(&[(self.duration.is_some(), "--duration")], "with --from: the files end it")
    }
}

struct Watch<'a> {
    arguments: &'a Arguments,
    hub: Arc<Hub>,
    interruption: Interruption,
    output: Arc<Output>,
    status: Arc<Mutex<status::Status>>,
}

fn nanoseconds(duration: Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}

impl Watch<'_> {
    /// The profile that was asked for, if one was.
    fn asked_profile(&self) -> Result<Option<NamedProfile>, Failure> {
        if let Some(path) = &self.arguments.profile_file {
            return profile::from_file(path).map(Some);
        }
        let asked = self.arguments.profile.as_deref().map(profile::named);
        asked.transpose().map_err(|message| usage(&message))
    }

    fn slack(&self) -> Duration {
        self.arguments.slack.unwrap_or(Duration::from_millis(100))
    }

    fn needed_profile(&self) -> Result<NamedProfile, Failure> {
        self.asked_profile()?.ok_or_else(|| {
            usage("expected --profile: what the database of these traces is held to")
        })
    }

    /// What rows hold that nobody has written.
    fn unwritten(&self, default: Initial) -> Option<Content> {
        match self.arguments.initial.unwrap_or(default) {
            Initial::Absent => Some(Content::ABSENT),
            Initial::Unknown => None,
        }
    }

    fn monitor(
        &self,
        title: String,
        profile: &NamedProfile,
        clock: Clock,
        unwritten: Option<Content>,
        is_unique: bool,
    ) -> Monitor {
        {
            let mut status = self.status.lock().expect("nobody else is there yet");
            status.title = title;
            status.profile.clone_from(&profile.name);
        }
        let drift = self.arguments.clock_drift.map_or(0, nanoseconds);
        let verifier =
            Verifier::new(profile.profile, Options { drift, unwritten, ..Options::default() });
        let options = PipelineOptions {
            stall_after: nanoseconds(self.arguments.stall_after),
            ..PipelineOptions::default()
        };
        let setting = Arc::new(Setting {
            hub: Arc::clone(&self.hub),
            status: Arc::clone(&self.status),
            output: Arc::clone(&self.output),
            folder: self.folder(),
            told_max: self.arguments.explain,
            deviations: profile.deviations.clone(),
            stop_when_violated: self
                .arguments
                .until_violation
                .then(|| Arc::clone(&self.interruption.stop)),
        });
        let reads = profile.profile.reads;
        let completing =
            self.arguments.complete.map(|level| Completing { level, unwritten, drift, reads });
        let known = Known { reads, unwritten, is_unique, drift };
        Monitor::new(setting, clock, verifier, options, known, completing)
    }

    fn folder(&self) -> PathBuf {
        self.arguments.output.clone().unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Path::new("isolde-watch").join(now.as_millis().to_string())
        })
    }

    /// Watches while `feed` leaves events, and ends after it: what `feed` returned.
    fn while_fed<T>(
        &self,
        monitor: Monitor,
        feed: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let page = self.arguments.http.map(page::LivePage::open).transpose()?;
        if let Some(page) = &page {
            say(&format!("isolde: watch: live page at http://{}/", page.address));
            if !page.address.ip().is_loopback() {
                say("isolde: watch: other machines can see this page, there is no password");
            }
        }
        let (are_sources_done, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let fed = std::thread::scope(|scope| {
            let watching = threads::start(scope, "watch", || monitor.run(&are_sources_done))?;
            let page = match &page {
                Some(page) => {
                    threads::start(scope, "page", || page.run(&self.status, &is_over)).map(drop)
                }
                None => Ok(()),
            };
            let fed = match page {
                Ok(()) => feed(),
                Err(error) => Err(error.into()),
            };
            are_sources_done.store(true, Ordering::Release);
            watching.join().expect("the watch does not panic");
            is_over.store(true, Ordering::Relaxed);
            fed
        });
        let status = self.status.lock().expect("nobody else is there any more");
        self.output.end(&status)?;
        fed
    }

    /// How the command ends.
    fn outcome(&self, is_early: bool) -> Status {
        self.status.lock().expect("nobody else is there any more").outcome(is_early)
    }

    /// Drives a database and watches it.
    fn target(&self, target: &str) -> Result<Status, Failure> {
        let arguments = self.arguments;
        let address = address::of(target).map_err(|message| usage(&message))?;
        let preset = arguments.workload.preset_or(DEFAULT_PRESET);
        let parameters = arguments.workload.applied_to(preset.parameters);
        let workload = Workload::new(parameters, arguments.rotate)
            .map_err(|error| usage(&error.to_string()))?;
        if arguments.complete.is_some() && parameters.kind.has_repeated_values() {
            let message =
                "expected a workload of unique values for --complete, found one that repeats them";
            return Err(usage(message));
        }
        let asked = self.asked_profile()?;
        arguments.faults.refuse_address(&address).map_err(|message| usage(&message))?;
        let mut database = self.interruption.opened(&address)?;
        let claim = run::claim(database.as_ref(), arguments.isolation.as_deref())
            .map_err(|message| usage(&message))?;
        run::refuse_bug_that_hides(database.as_ref(), &claim, &parameters)
            .map_err(|message| usage(&message))?;
        let profile = match asked {
            Some(profile) => profile,
            None => {
                profile::of(&address.scheme, &claim.isolation).map_err(|message| usage(&message))?
            }
        };
        arguments.faults.announce(database.as_mut()).map_err(|error| usage(&error.to_string()))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let barrier: Arc<barrier::Barrier> = Arc::default();
        let tap = Arc::new(Tap {
            hub: Arc::clone(&self.hub),
            is_over,
            barrier: Arc::clone(&barrier),
            output: Arc::clone(&self.output),
        });
        let log = Arc::new(target::log(arguments.log.as_deref(), Arc::clone(&tap))?);
        target::prepare(database.as_mut(), &workload)?;
        self.interruption.leaves(remains(database.as_ref()));
        let clock = {
            let log = Arc::clone(&log);
            Clock::Read(Box::new(move || log.now()))
        };
        let title = format!("{} {}, {}", database.name(), database.version(), claim.isolation);
        let is_unique = !parameters.kind.has_repeated_values();
        let unwritten = self.unwritten(Initial::Absent);
        let monitor = self.monitor(title, &profile, clock, unwritten, is_unique);
        let driving = target::Driving {
            claim: &claim,
            workload: &workload,
            faults: arguments.faults.plan(parameters.seed),
            duration: arguments.duration,
            is_counted: arguments.workload.is_counted(),
            barrier: arguments.complete.map(|_| (barrier.as_ref(), BARRIER_EVERY)),
            stop: &self.interruption.stop,
        };
        let fed = self.while_fed(monitor, || {
            let ended_by = driving.run(database.as_ref(), &log);
            self.is_ended_by(ended_by.as_deref());
            Ok(ended_by)
        });
        let (ended_by, failure) = match fed {
            Ok(ended_by) => (ended_by, None),
            Err(failure) => (Some(failure.to_string()), Some(failure)),
        };
        let ended_by = clean_up_after(database.as_mut(), ended_by);
        failure.map_or(Ok(()), Err)?;
        if let Some(message) = &ended_by {
            say(&format!("isolde: watch: {message}"));
        }
        Ok(self.outcome(ended_by.is_some()))
    }

    /// Watches what others send.
    fn listen(&self, address: &ListenAddress) -> Result<Status, Failure> {
        let profile = self.needed_profile()?;
        let saved = match &self.arguments.save {
            None => None,
            Some(path) => Some(Arc::new(
                SaveFile::create(path)
                    .map_err(|error| Failure::Write(path.display().to_string(), error.into()))?,
            )),
        };
        let token = self.token()?;
        let (listener, place) = Listener::bind(address, &self.hub, token.clone(), saved)?;
        if listener.is_public() && token.is_none() {
            say("isolde: watch: other machines can send traces, and there is no --token");
        }
        say(&format!("isolde: watch: listening on {place}"));
        let clock = Clock::Elsewhere { slack: nanoseconds(self.slack()) };
        let title = format!("traces sent to {place}");
        let monitor = self.monitor(title, &profile, clock, self.unwritten(Initial::Unknown), false);
        let deadline = self.arguments.duration.map(|duration| now() + duration);
        self.while_fed(monitor, || {
            listener.run(&self.interruption.stop, deadline, self.arguments.connections);
            self.is_ended_by(listener.failure().as_deref());
            Ok(())
        })?;
        if let Some(message) = listener.failure() {
            say(&format!("isolde: watch: {message}"));
        }
        Ok(self.outcome(listener.failure().is_some()))
    }

    /// Notes what ended the watch before its time, if anything did.
    fn is_ended_by(&self, what: Option<&str>) {
        let mut status = self.status.lock().expect("the watch does not panic");
        status.ended_by = what.map(str::to_owned);
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let Some(path) = &self.arguments.token_file else {
            return Ok(self.arguments.token.clone());
        };
        let text = std::fs::read_to_string(path).map_err(|error| {
            usage(&format!("cannot read the token in {}: {error}", path.display()))
        })?;
        match text.lines().next().map(str::trim) {
            Some(token) if !token.is_empty() => Ok(Some(token.to_owned())),
            _ => Err(usage(&format!("expected a token in {}, found none", path.display()))),
        }
    }

    /// The profile of files: the one that was asked for, or that of the run which recorded them.
    fn profile_of_files(&self, paths: &[PathBuf]) -> Result<NamedProfile, Failure> {
        if let Some(profile) = self.asked_profile()? {
            return Ok(profile);
        }
        let recorded = |path: &PathBuf| {
            let Driven { target, isolation } = run_metadata::driven(path)?;
            let address = address::of(&target).ok()?;
            Some((path.with_file_name(RUN_FILE), address.scheme, isolation))
        };
        // A history is watched alone.
        let [path] = paths else { return self.needed_profile() };
        let Some((noted_in, scheme, isolation)) = recorded(path) else {
            return self.needed_profile();
        };
        let profile = profile::of(&scheme, &isolation).map_err(|message| usage(&message))?;
        if !self.arguments.quiet {
            say(&format!(
                "isolde: watch: held to {}, which {} names; --profile takes another",
                profile.name,
                noted_in.display()
            ));
        }
        Ok(profile)
    }

    /// Watches what is in files.
    fn files(&self, paths: &[PathBuf]) -> Result<Status, Failure> {
        let profile = self.profile_of_files(paths)?;
        let files = file::open(paths, &self.hub, self.arguments.resources.memory_max())?;
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let clock = Clock::Recorded { slack: nanoseconds(self.slack()) };
        let (unwritten, initial) = match &files {
            file::Files::Traces(_) => (self.unwritten(Initial::Unknown), Vec::new()),
            // A history says itself what its keys hold.
            file::Files::History(recorded) => (Some(recorded.unwritten), recorded.initial.clone()),
        };
        let mut monitor = self.monitor(names.join(", "), &profile, clock, unwritten, false);
        monitor.initial(initial);
        self.while_fed(monitor, || files.feed(&self.hub, &self.interruption.stop))?;
        Ok(self.outcome(false))
    }
}

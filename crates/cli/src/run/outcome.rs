//! The second half of a run: check what was recorded, and tell.

use super::bank::Total;
use super::faults::{self, Seen};
use super::goal::Goal;
use super::record::Recorded;
use super::strongest_levels;
use super::{Arguments, Run};
use crate::exit::{Failure, Status};
use crate::job::Job;
use crate::output::OutputFormat;
use crate::partial_result::PartialResult;
use crate::reports::{Form, Wanted};
use crate::{decision, input, limits};
use isolde::{Check, Level, Limit, Options, Verdict, applicable_levels};
use isolde_harness::{
    Application, Bug, Claim, Counts, Database, Endpoint, Found, Parameters, TxnKind, VersionCounts,
};
use isolde_history::format;
use isolde_history::{History, Index, OpKind};
use isolde_report::{Decided, Detail, Findings, Report, Size, to_json, to_text};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a run found. This is what `run.json` and `--format json` have.
#[derive(Serialize)]
pub(super) struct Outcome {
    /// The version of this form.
    schema: u32,
    version: &'static str,
    database: String,
    database_version: String,
    target: String,
    isolation: String,
    /// What the isolation setting promises.
    promises: Vec<String>,
    preset: &'static str,
    sessions: u32,
    seed: u64,
    /// How many times it ran, with one seed after another.
    rounds: u32,
    committed: u64,
    aborted: u64,
    unknown: u64,
    seconds: f64,
    /// What happened to the servers, if anything was to happen.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Vec<Seen>>,
    /// All servers, disturbed or not.
    #[serde(skip)]
    servers: Vec<Endpoint>,
    /// What the database told of the order of its versions, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    white_box: Option<Told>,
    /// What all accounts hold together, if they are those of a bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    bank: Option<Total>,
    pub(super) history: String,
    command: String,
    /// What would have ended the run in its time.
    #[serde(rename = "asked")]
    goal: Goal,
    /// What ended it before.
    ended_by: Option<String>,
    /// Whether that was the user, by a signal.
    #[serde(skip)]
    is_interrupted: bool,
    /// Whether everything that was asked for is recorded, whatever became of its check.
    #[serde(skip)]
    is_recorded: bool,
    /// Levels that decide the exit status.
    gate: Vec<Gate>,
    /// The strongest levels that hold, promised or not.
    strongest: Vec<&'static str>,
    /// Levels that may hold as well or not: nobody knows.
    undecided: Vec<&'static str>,
    /// The whole report, as `isolde check` has it.
    report: Report,
    /// The same of the levels that decide, which is what other forms than JSON and the page have.
    #[serde(skip)]
    pub(super) gated: Report,
}

/// What a database told beside its answers.
#[derive(Serialize)]
struct Told {
    /// Versions whose place in the order of their key is known.
    versions: u64,
    /// Keys they belong to.
    keys: u64,
    /// Transactions and requests of which it told what they saw.
    snapshots: u64,
    /// Why nothing of it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
}

impl Told {
    fn of(told: Result<VersionCounts, String>, snapshots: u64) -> Told {
        match told {
            Ok(VersionCounts { versions, keys }) => Told { versions, keys, snapshots, lost: None },
            Err(reason) => Told { versions: 0, keys: 0, snapshots, lost: Some(reason) },
        }
    }

    fn to_text(&self) -> String {
        match &self.lost {
            None if self.snapshots == 0 => format!(
                "white box: the database told the order of {} versions of {} keys",
                self.versions, self.keys
            ),
            None => format!(
                "white box: the database told the order of {} versions of {} keys, and {} snapshots",
                self.versions, self.keys, self.snapshots
            ),
            Some(reason) => format!(
                "white box: the order of versions was lost ({reason}), so what clients saw is \
                 judged alone"
            ),
        }
    }
}

#[derive(Serialize)]
struct Gate {
    level: &'static str,
    verdict: &'static str,
    /// Why a violation is no surprise.
    #[serde(skip_serializing_if = "Option::is_none")]
    documented: Option<String>,
}

/// What is said of a run without a committed transaction.
const NOTHING_TESTED: &str = "nothing was committed, so nothing was tested";

/// How long checking may take, unless the user says otherwise: a run must answer.
const CHECK_TIME: Duration = Duration::from_mins(1);

/// Levels beside those that decide get as much time as those took, and this: what was asked
/// for is known by then, and the rest must not make the answer wait.
const BESIDE_TIME: Duration = Duration::from_secs(5);

impl Run<'_> {
    /// Checks what was recorded, within the limits, or until a signal.
    fn judged(
        &self,
        recorded: &Recorded,
        parameters: Parameters,
        is_last: bool,
    ) -> Result<Judged, Failure> {
        let limits = &self.arguments.limits;
        let clock = limits.clock(Some(CHECK_TIME));
        // If a signal ended the recording, the next one is the second, and ends the program.
        let clock =
            if recorded.is_stopped { clock } else { clock.interrupted_by(&self.interruption) };
        let quiet = self.arguments.quiet;
        let announcement =
            (!quiet).then_some("isolde: checking what was recorded; Ctrl-C ends that");
        let mut job = Job::new(clock, &limits.resources, !quiet);
        job.announcement = announcement;
        let job = Arc::new(job);
        let when_all = if is_last { WhenAll::Always } else { WhenAll::IfViolated };
        let question = Arc::new(Question {
            path: recorded.history.clone(),
            levels: self.levels.clone(),
            claim: self.claim.clone(),
            all: self.tells_all_levels().then_some(when_all),
            is_bank: parameters.kind == TxnKind::Application(Application::Bank),
        });
        let asked = Arc::clone(&question);
        match job.within(move |job| Judged::of(&asked, job)) {
            Ok(judged) => judged,
            Err(reached) => Ok(Judged::partial_result(&question, &job.partial_result, reached)),
        }
    }

    /// Whether anybody is shown more than the levels that decide.
    fn tells_all_levels(&self) -> bool {
        let Arguments { quiet, format, reports, .. } = self.arguments;
        let shows_all = |wanted: &Wanted| matches!(wanted.form, Form::Page);
        !quiet || *format == OutputFormat::Json || reports.iter().any(shows_all)
    }
}

/// What is to be found out about a recorded history.
struct Question {
    path: PathBuf,
    /// The levels of the gate.
    levels: Vec<Level>,
    claim: Claim,
    /// Whether all other levels that the history can tell about are decided too: `None` if
    /// nobody is shown more than the gate.
    all: Option<WhenAll>,
    is_bank: bool,
}

/// When levels beside the gate are decided.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WhenAll {
    Always,
    /// Another round follows otherwise.
    IfViolated,
}

/// What the check of a recorded history came to.
struct Judged {
    report: Report,
    gate: Vec<Gate>,
    undecided: Vec<&'static str>,
    gated: Report,
    bank: Option<Total>,
}

impl Judged {
    /// Checks what was recorded: the levels of the gate, and all others that the history
    /// can tell about, if they are asked for.
    fn of(question: &Question, job: &Job) -> Result<Judged, Failure> {
        let name = question.path.display().to_string();
        let input = format::open(&question.path)?;
        let (history, format) = format::read_detected(input, input::options(job.memory_max, None))?;
        let index = Index::new(&history);
        let levels = question.levels_with(applicable_levels(&history));
        job.has_read(&history, format.name, &levels);
        let (gate, all, by_reading) = job.limited((&history, &index), |limits| {
            let mut checking = Check::new(&history, &index, limits);
            let (gate, all) = question.decided(&mut checking, &levels, job);
            (gate, all, checking.found().to_vec())
        });
        let is_violated = gate.iter().any(|(_, verdict, _)| verdict.name() == "violated");
        let undecided = strongest_levels::undecided(&levels, &all);
        let options = Options::default();
        job.clock.begin_explaining();
        let shown = job.explain((&history, &index), &all, options);
        job.clock.use_the_rest();
        let of = |decided: &[Decided]| {
            let (counterexamples, by_reading) = (shown.as_slice(), by_reading.as_slice());
            let findings = Findings { decided, counterexamples, by_reading, options };
            Report::new(&history, &index, (&name, format.name), &findings)
        };
        let (mut report, mut gated) = (of(&all), of(&gate));
        let bank = question.is_bank.then(|| Total::of(&history));
        let gate: Vec<Gate> = (gate.iter())
            .map(|(level, verdict, _)| Gate::of(&question.claim, &history, *level, verdict))
            .collect();
        if is_violated && history.has_evidence() {
            drop(index);
            job.without_given(history, &all, options, &mut report);
            gated.take_without_given(&report);
        }
        note_documented(&gate, &mut report);
        Ok(Judged { report, gate, undecided, gated, bank })
    }

    /// What is known when a limit is reached, whatever the check is at.
    fn partial_result(
        question: &Question,
        partial_result: &PartialResult,
        reached: Limit,
    ) -> Judged {
        let name = question.path.display().to_string();
        let levels = partial_result.levels().unwrap_or(&question.levels);
        let of = |levels: &[Level]| {
            let decided = partial_result.decided(levels, reached);
            (partial_result.report(&name, &decided, reached), decided)
        };
        let ((report, all), (gated, gate)) = (of(levels), of(&question.levels));
        let gate = gate.iter().map(|(level, verdict, _)| Gate::alone(*level, verdict)).collect();
        let undecided = strongest_levels::undecided(levels, &all);
        Judged { report, gate, undecided, gated, bank: None }
    }
}

impl Question {
    /// The levels that decide among those that the history can tell about.
    fn levels_with(&self, mut others: Vec<Level>) -> Vec<Level> {
        others.extend(&self.levels);
        others.sort_unstable();
        others.dedup();
        others
    }

    /// The verdicts of the gate, and of all levels that are asked for.
    fn decided(
        &self,
        checking: &mut Check<'_>,
        levels: &[Level],
        job: &Job,
    ) -> (Vec<Decided>, Vec<Decided>) {
        let begun = Instant::now();
        job.clock.keep(job.clock.explaining_share());
        let mut gate = decision::decide(checking, &self.levels, |level, verdict, seconds| {
            job.note(level, verdict, seconds);
        });
        job.clock.name_signal(&mut gate);
        let is_violated = gate.iter().any(|(_, verdict, _)| verdict.name() == "violated");
        let is_asked = match self.all {
            Some(WhenAll::Always) => true,
            Some(WhenAll::IfViolated) => is_violated,
            None => false,
        };
        if !is_asked {
            return (gate.clone(), gate);
        }
        // Where no level decides, the others are what was asked for.
        let sooner = Instant::now() + begun.elapsed() + BESIDE_TIME;
        let is_sooner = !self.levels.is_empty() && job.clock.brings_forward(sooner);
        let mut all =
            decision::decide_within(checking, levels, &job.clock, |level, verdict, time| {
                job.note(level, verdict, time);
            });
        job.clock.name_signal(&mut all);
        for (_, verdict, _) in all.iter_mut().filter(|_| is_sooner) {
            limits::name_limit(verdict, Limit::Unasked);
        }
        (gate, all)
    }
}

impl Outcome {
    /// Checks what was recorded, and keeps what there is to tell.
    pub(super) fn of(
        run: &Run<'_>,
        database: &dyn Database,
        parameters: Parameters,
        recorded: Recorded,
        rounds: u32,
        is_last: bool,
    ) -> Result<Outcome, Failure> {
        let Judged { report, mut gate, undecided, gated, bank } =
            run.judged(&recorded, parameters, is_last)?;
        let counts = counts(&recorded, &report);
        // A run that committed nothing satisfies whatever needs no times, but has tested nothing.
        for gate in gate.iter_mut().filter(|_| counts.committed == 0) {
            if gate.verdict == "satisfied" {
                gate.verdict = "unknown";
            }
        }
        let goal = Goal::of(run.arguments, parameters);
        let interrupted = interrupted(run, &recorded, &goal);
        let is_recorded = recorded.ended_by.is_none() && !goal.is_more_than(&recorded);
        Ok(Outcome {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            database: database.name().to_owned(),
            database_version: database.version(),
            target: run.target.clone(),
            isolation: run.claim.isolation.clone(),
            promises: run.claim.promises.clone(),
            preset: run.preset,
            sessions: parameters.sessions,
            seed: parameters.seed,
            rounds,
            committed: counts.committed,
            aborted: counts.aborted,
            unknown: counts.unknown,
            seconds: recorded.seconds,
            faults: recorded.faults.map(|all| all.iter().map(Seen::of).collect()),
            servers: database.endpoints().to_vec(),
            white_box: recorded.told.map(|told| Told::of(told, recorded.snapshots)),
            bank,
            command: run.command(parameters.seed),
            goal,
            is_recorded,
            is_interrupted: recorded.ended_by.is_none() && interrupted.is_some(),
            ended_by: recorded.ended_by.or(interrupted),
            gate,
            strongest: report.strongest.clone(),
            undecided,
            report,
            gated,
            history: recorded.history.display().to_string(),
        })
    }

    /// A violation is one, however the run ended; without one, a run that was cut short by
    /// something other than the user is no answer, and one that committed nothing has
    /// tested nothing.
    pub(super) fn status(&self) -> Status {
        let worst = |verdict| self.gate.iter().any(|gate| gate.verdict == verdict);
        // Who asks for a white box asks whether what it tells is so.
        if worst("violated") || !self.refuted().is_empty() {
            Status::Violated
        } else if self.ended_by.is_some() && !self.is_interrupted {
            Status::BadInput
        } else if worst("unknown") || self.committed == 0 {
            Status::Unknown
        } else {
            Status::Satisfied
        }
    }

    /// What ended the run early, and how much was done by then, unless that is all.
    fn early_end(&self) -> Option<String> {
        if self.is_recorded {
            return self.ended_by.clone();
        }
        let done = self.goal.done(self.committed, self.seconds, self.rounds);
        self.ended_by.as_ref().map(|by| format!("ended early, after {done}: {by}"))
    }

    /// What is said beside the result. That the user ended the run is no error, and said only
    /// where the result does not tell it.
    pub(super) fn complaint(&self, is_told: bool) -> Option<String> {
        match self.is_interrupted {
            false => self.ended_by.clone(),
            true if is_told => None,
            true => self.early_end(),
        }
    }

    /// Whether a level holds that a database with this bug is to violate.
    pub(super) fn hides(&self, bug: Bug) -> bool {
        let violates = bug.row().violates;
        let is_or_implies = |name: &str| {
            name == violates
                || Level::parse(name).is_some_and(|level| {
                    level.weaker_than().iter().any(|weaker| weaker.name() == violates)
                })
        };
        let holds = |gate: &Gate| gate.verdict == "satisfied" && is_or_implies(gate.level);
        self.committed > 0 && self.gate.iter().any(holds)
    }

    /// What the database told about itself and is not so.
    fn refuted(&self) -> &[String] {
        &self.report.refuted
    }

    pub(super) fn to_json(&self) -> String {
        to_json(self)
    }

    pub(super) fn to_text(&self, quiet: bool) -> String {
        let mut out = String::new();
        if !quiet {
            self.head(&mut out);
            let is_wrong = |gate: &Gate| gate.verdict != "satisfied";
            // Nothing has no times either, for one: what kept it from being decided is plain.
            let is_tested = self.committed > 0 && self.gate.iter().any(is_wrong);
            if is_tested || !self.refuted().is_empty() {
                let explained = to_text(&self.gated, Detail::Every, None);
                writeln!(out, "{explained}").expect("a string grows");
            }
        }
        let alone = self.caution();
        for gate in &self.gate {
            writeln!(out, "{}: {}{alone}", gate.level, gate.verdict).expect("a string grows");
            if let Some(documented) = &gate.documented {
                writeln!(out, "  documented: {documented}").expect("a string grows");
            }
        }
        for claim in self.refuted() {
            writeln!(out, "refuted: {claim}").expect("a string grows");
        }
        if quiet {
            return out;
        }
        if self.gate.is_empty() {
            writeln!(out, "nothing is promised, so nothing can be broken").expect("a string grows");
        }
        let strongest = match self.committed {
            0 => String::new(),
            _ => strongest_levels::to_text(&self.strongest, &self.undecided),
        };
        for (name, value) in
            [("strongest seen", &strongest), ("history", &self.history), ("again", &self.command)]
        {
            if !value.is_empty() {
                writeln!(out, "{name}: {value}").expect("a string grows");
            }
        }
        out
    }

    /// What who reads the verdicts alone must not miss: that nothing was tested, or that
    /// those who asked for a white box have the verdicts of a black one.
    fn caution(&self) -> String {
        let lost = self.white_box.as_ref().and_then(|told| told.lost.as_deref());
        let lost = lost.map(|why| format!(" (white box lost: {why})")).unwrap_or_default();
        if self.committed == 0 { format!(" ({NOTHING_TESTED}){lost}") } else { lost }
    }

    fn head(&self, out: &mut String) {
        let promises = match self.promises.join(", ") {
            none if none.is_empty() => "nothing".to_owned(),
            promises => promises,
        };
        let rounds =
            if self.rounds > 1 { format!(", round {}", self.rounds) } else { String::new() };
        write!(
            out,
            "{} {}, isolation {}, which promises {promises}\n\
             workload {}: {} sessions, seed {}{rounds}\n\
             recorded: {} committed, {} aborted, {} unknown in {:.1} s\n",
            self.database,
            self.database_version,
            self.isolation,
            self.preset,
            self.sessions,
            self.seed,
            self.committed,
            self.aborted,
            self.unknown,
            self.seconds,
        )
        .expect("a string grows");
        if let Some(ended) = self.early_end() {
            writeln!(out, "{ended}").expect("a string grows");
        }
        if self.committed == 0 {
            writeln!(out, "{NOTHING_TESTED}").expect("a string grows");
        }
        if let Some(seen) = &self.faults {
            writeln!(out, "{}", faults::to_text(seen, &self.servers)).expect("a string grows");
        }
        if let Some(told) = &self.white_box {
            writeln!(out, "{}", told.to_text()).expect("a string grows");
        }
        if let Some(bank) = &self.bank {
            writeln!(out, "{}", bank.to_text()).expect("a string grows");
        }
        out.push('\n');
    }
}

/// What the user cut short by a signal, if anything.
fn interrupted(run: &Run<'_>, recorded: &Recorded, goal: &Goal) -> Option<String> {
    let what = match recorded.is_stopped {
        true if goal.is_more_than(recorded) => "",
        false if run.interruption.is_wanted() => " while the history was checked",
        _ => return None,
    };
    Some(format!("interrupted by a signal{what}"))
}

/// How many transactions the log has. What ended a run early, such as a full disk, may have
/// kept some of those that clients made out of it.
fn counts(recorded: &Recorded, report: &Report) -> Counts {
    let Size { committed, aborted, unknown, .. } = report.history;
    match recorded.ended_by {
        None => recorded.counts,
        Some(_) => {
            Counts { committed: committed as u64, aborted: aborted as u64, unknown: unknown as u64 }
        }
    }
}

/// Says beside the violations of a gate what the database documents of them.
fn note_documented(gates: &[Gate], report: &mut Report) {
    for gate in gates {
        if let (Some(level), Some(text)) = (Level::parse(gate.level), &gate.documented) {
            report.note_documented(level, text);
        }
    }
}

impl Gate {
    fn of(claim: &Claim, history: &History, level: Level, verdict: &Verdict) -> Gate {
        let deviation = match verdict {
            Verdict::Violated(violated) => {
                let names: Vec<&str> = violated.anomalies.iter().map(|it| it.kind.name()).collect();
                let txns = violated.anomalies.iter().flat_map(|it| &it.txns);
                let mut ops = txns.flat_map(|&txn| history.ops_of(txn));
                let has_refused_inserts = ops.any(|op| history.op(op).kind == OpKind::ReadOther);
                let found = Found { names: &names, has_refused_inserts };
                claim.deviation(level.name(), found)
            }
            _ => None,
        };
        let documented = deviation.map(|deviation| deviation.text.clone());
        Gate { documented, ..Gate::alone(level, verdict) }
    }

    fn alone(level: Level, verdict: &Verdict) -> Gate {
        Gate { level: level.name(), verdict: verdict.name(), documented: None }
    }
}

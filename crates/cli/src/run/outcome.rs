//! The second half of a run: check what was recorded, and tell.

use super::asked::Asked;
use super::bank::Total;
use super::faults::{self, Seen};
use super::record::Recorded;
use super::strongest;
use super::{Arguments, Run};
use crate::exit::{Failure, Status};
use crate::output::OutputFormat;
use crate::{check, input, limits, say};
use isolde::{Check, Level, Limits, Options, Unknown, Verdict, applicable_levels};
use isolde_harness::{
    Application, Bug, Counts, Database, Endpoint, Found, Parameters, TxnKind, VersionCounts,
};
use isolde_history::format;
use isolde_history::{History, Index, OpKind};
use isolde_report::{Decided, Detail, Report, Size, to_json, to_text};
use serde::Serialize;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    asked: Asked,
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
    #[serde(skip)]
    explained: String,
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

/// Why such a level is open.
const BESIDE_REASON: &str = "it is not asked for, and got no more than five seconds beside the \
                             time of the levels that are";

/// The first signal while a history is checked ends that; the second one ends the program.
struct Ending<'a> {
    stop: &'a AtomicBool,
    /// Whether a signal had ended the recording: then the next one is the second.
    is_spent: bool,
    begun: Instant,
    is_told: AtomicBool,
}

impl Ending<'_> {
    fn new<'a>(run: &'a Run<'_>, recorded: &Recorded) -> Ending<'a> {
        Ending {
            stop: &run.interruption.stop,
            is_spent: recorded.is_stopped,
            begun: Instant::now(),
            is_told: AtomicBool::new(run.arguments.quiet),
        }
    }

    fn is_wanted(&self) -> bool {
        /// Who waits for so long wants to know for what.
        const PATIENCE: Duration = Duration::from_secs(2);
        if self.begun.elapsed() >= PATIENCE && !self.is_told.swap(true, Relaxed) {
            say("isolde: checking what was recorded; Ctrl-C ends that");
        }
        !self.is_spent && self.stop.load(Relaxed)
    }

    /// Says of levels that are open why they are, if it was not for the time limit: because of
    /// a signal, or else for the reason that is given, if one is.
    fn explain(&self, decided: &mut [Decided], other: Option<&'static str>) {
        let interrupted = self.is_wanted().then_some("interrupted");
        let Some(why) = interrupted.or(other) else { return };
        for (_, verdict, _) in decided {
            if let Verdict::Unknown(Unknown::Limit(reason)) = verdict
                && (*reason == limits::Reached::Time.message() || reason.starts_with("time is up"))
            {
                *reason = why.into();
            }
        }
    }
}

impl Run<'_> {
    /// Whether anybody is shown more than the levels that decide.
    fn tells_all_levels(&self) -> bool {
        let Arguments { quiet, format, report, .. } = self.arguments;
        !quiet || *format == OutputFormat::Json || report.is_some()
    }

    /// The levels that decide among those that the history can tell about.
    fn levels_with(&self, mut others: Vec<Level>) -> Vec<Level> {
        others.extend(&self.levels);
        others.sort_unstable();
        others.dedup();
        others
    }

    /// When the search for levels beside those that decide ends, if that is before the deadline.
    /// Where none decides, the others are what was asked for.
    fn sooner(&self, checking: &Ending<'_>, deadline: Instant) -> Option<Instant> {
        let end = Instant::now() + checking.begun.elapsed() + BESIDE_TIME;
        (end < deadline && !self.levels.is_empty()).then_some(end)
    }
}

/// What the check of a recorded history came to.
struct Judged {
    report: Report,
    gate: Vec<Gate>,
    undecided: Vec<&'static str>,
    explained: String,
    bank: Option<Total>,
    counts: Counts,
}

impl Judged {
    /// Checks what was recorded: the levels of the gate, and all others that the history
    /// can tell about, if this was the last round.
    fn of(
        run: &Run<'_>,
        recorded: &Recorded,
        parameters: Parameters,
        is_last: bool,
    ) -> Result<Judged, Failure> {
        let path = &recorded.history;
        let memory_max = run.arguments.limits.resources.memory_max();
        let name = path.display().to_string();
        let input = format::open(path)?;
        let options = input::options(memory_max, None);
        let (history, format) = format::read_detected(input, options)?;
        let index = Index::new(&history);
        let deadline = Instant::now() + run.arguments.limits.timeout.unwrap_or(CHECK_TIME);
        let clock = limits::Clock::until(Some(deadline));
        let ending = Ending::new(run, recorded);
        let used = history.memory() + index.memory();
        let limits = Limits {
            stop: &|| clock.is_over() || ending.is_wanted(),
            is_memory: &|| clock.is_memory(),
            working_bytes_max: memory_max.map(|bytes| bytes.saturating_sub(used)),
            ..Limits::NONE
        };
        let mut checking = Check::new(&history, &index, &limits);
        let mut gate = check::decide(&mut checking, &run.levels, |_, _, _| {});
        ending.explain(&mut gate, None);
        let is_violated = gate.iter().any(|(_, verdict, _)| verdict.name() == "violated");
        let levels = run.levels_with(applicable_levels(&history));
        let all = if (is_last || is_violated) && run.tells_all_levels() {
            let sooner = run.sooner(&ending, deadline);
            clock.ends_at(sooner.unwrap_or(deadline));
            let mut all = check::decide_within(&mut checking, &levels, &clock, |_, _, _| {});
            ending.explain(&mut all, sooner.map(|_| BESIDE_REASON));
            clock.ends_at(deadline);
            all
        } else {
            gate.clone()
        };
        let undecided = strongest::undecided(&levels, &all);
        let of = |decided: &[Decided]| {
            Report::new(&history, &index, (&name, format.name), decided, checking.found())
        };
        let (mut report, mut gated) = (of(&all), of(&gate));
        let bank = (parameters.kind == TxnKind::Application(Application::Bank))
            .then(|| Total::of(&history));
        let counts = counts(recorded, &report);
        let is_tested = counts.committed > 0;
        let gate: Vec<Gate> = (gate.iter())
            .map(|(level, verdict, _)| Gate::of(run, &history, (*level, verdict), is_tested))
            .collect();
        if is_violated && history.has_evidence() {
            drop(index);
            check::without_given(history, &all, (&limits, Options::default()), &mut report);
            gated.take_without_given(&report);
        }
        note_documented(&gate, &mut report);
        let explained = to_text(&gated, Detail::Full, None);
        Ok(Judged { report, gate, undecided, explained, bank, counts })
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
        let Judged { report, gate, undecided, explained, bank, counts } =
            Judged::of(run, &recorded, parameters, is_last)?;
        let asked = Asked::of(run.arguments, parameters);
        let interrupted = interrupted(run, &recorded, &asked);
        let is_recorded = recorded.ended_by.is_none() && !asked.is_more_than(&recorded);
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
            asked,
            is_recorded,
            is_interrupted: recorded.ended_by.is_none() && interrupted.is_some(),
            ended_by: recorded.ended_by.or(interrupted),
            gate,
            strongest: report.strongest.clone(),
            undecided,
            report,
            explained,
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
        let done = self.asked.done(self.committed, self.seconds, self.rounds);
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
                writeln!(out, "{}", self.explained).expect("a string grows");
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
            _ => strongest::to_text(&self.strongest, &self.undecided),
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
fn interrupted(run: &Run<'_>, recorded: &Recorded, asked: &Asked) -> Option<String> {
    let what = match recorded.is_stopped {
        true if asked.is_more_than(recorded) => "",
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

/// The verdict of a gate. A run that committed nothing satisfies whatever needs no times, but
/// has tested nothing.
fn tested(verdict: &Verdict, is_tested: bool) -> &'static str {
    match verdict.name() {
        "satisfied" if !is_tested => "unknown",
        name => name,
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
    fn of(
        run: &Run<'_>,
        history: &History,
        (level, verdict): (Level, &Verdict),
        is_tested: bool,
    ) -> Gate {
        let deviation = match verdict {
            Verdict::Violated(violated) => {
                let names: Vec<&str> = violated.anomalies.iter().map(|it| it.kind.name()).collect();
                let txns = violated.anomalies.iter().flat_map(|it| &it.txns);
                let mut ops = txns.flat_map(|&txn| history.ops_of(txn));
                let has_refused_inserts = ops.any(|op| history.op(op).kind == OpKind::ReadOther);
                let found = Found { names: &names, has_refused_inserts };
                run.claim.deviation(level.name(), found)
            }
            _ => None,
        };
        Gate {
            level: level.name(),
            verdict: tested(verdict, is_tested),
            documented: deviation.map(|deviation| deviation.text.clone()),
        }
    }
}

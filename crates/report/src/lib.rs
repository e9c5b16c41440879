//! What a check found: one versioned [`Report`], in every form that people and programs want.

mod argument;
mod counterexample;
mod database_evidence;
mod disabled_sources;
mod dot;
mod drawing;
mod elle_directory;
mod escape;
mod github;
mod headline;
mod json;
mod junit;
mod lattice;
mod lint;
pub mod live_page;
mod markdown;
mod names;
mod outputs;
mod page;
mod prose;
mod real_time;
mod reasons;
mod replay;
mod runs_page;
pub mod scenario;
pub mod statements;
pub mod stats;
mod stats_text;
mod svg;
mod terminal;
mod terminal_style;
mod unlogged;
mod window;

pub use database_evidence::{ConflictReport, FailedAxiom, GivenOrderReport, TimestampsReport};
pub use elle_directory::to_elle_directory;
pub use escape::visible;
pub use headline::headline;
pub use json::to_json;
pub use lint::{FindingReport, LintReport, lint_to_text};
pub use names::{NAMES, NameRow};
pub use outputs::{OUTPUTS, Output, to_step_summary};
pub use page::{Page, refuse_other_schema};
pub use prose::{Prose, explain, tell};
pub use runs_page::{RunRow, runs_to_html};
pub use scenario::Scenario;
pub use stats::Stats;
pub use stats_text::stats_to_text;
pub use terminal::{Detail, Which, to_explanations, to_text};
pub use terminal_style::TerminalStyle;
pub use unlogged::{UNLOGGED_SHOWN_MAX, UnloggedReport};

use database_evidence::LeftOut;
use isolde::lint::{Rule, untimed, vacuity, wrongly_read, wrongly_told};
use isolde::{Anomaly, COUNTEREXAMPLES_MAX, Counterexamples, Level, Options, Verdict, Violated};
use isolde_history::{History, Index, Outcome};
use serde::Serialize;

/// The version of the report's JSON form; it grows when a field is added or changes its
/// meaning.
pub const SCHEMA: u32 = 4;

/// The version of the JSON of `lint` and `stats`, which change by themselves.
pub(crate) const TABLES_SCHEMA: u32 = 1;

/// Everything a check found about one history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of this program.
    pub version: &'static str,
    /// The file, as it was named.
    pub file: String,
    /// Its format.
    pub format: String,
    /// How large the history is.
    pub history: Size,
    /// What a database told of its own execution that verdicts rest on, beside what clients
    /// saw.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The verdicts, from weak to strong.
    #[serde(serialize_with = "json::as_map")]
    pub levels: Vec<LevelReport>,
    /// Transactions that are in no log, if a level is satisfied: it is so if they committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlogged: Option<UnloggedReport>,
    /// Levels that hold and imply every other level that holds.
    pub strongest: Vec<&'static str>,
    /// Levels that do not hold and are implied by every other level that does not.
    pub weakest_violated: Vec<&'static str>,
    /// What became of the serialization order that came with the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serialization_order: Option<GivenOrderReport>,
    /// What became of the timestamps that came with the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<TimestampsReport>,
    /// Where two things that the database told, or one and what was read, contradict each
    /// other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictReport>,
    /// Names of what the database told about itself and is not so, whatever the levels are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refuted: Vec<String>,
    /// Anomalies that were seen beside those that show the levels asked for violated.
    pub remarks: Vec<AnomalyReport>,
    /// Why levels that hold were not tested by this history, what is wrong with what a
    /// database told, initial values that it seems to have, and what was left out by request.
    pub notes: Vec<NoteReport>,
}

/// A history that could not be read, in place of its [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of this program.
    pub version: &'static str,
    /// The file, as it was named.
    pub file: String,
    /// Where, what was expected and what was found.
    pub error: String,
}

impl Unreadable {
    /// For a file that could not be read because of this.
    pub fn new(file: &str, error: String) -> Unreadable {
        let version = env!("CARGO_PKG_VERSION");
        Unreadable { schema: SCHEMA, version, file: file.to_owned(), error }
    }
}

/// Something to know before a verdict is believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoteReport {
    /// The name of the linter's rule, or of what was left out.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub advice: &'static str,
    /// A place where it applies, if there is one in particular.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// How large a history is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Sessions.
    pub sessions: usize,
    /// Transactions, whatever their outcome.
    pub transactions: usize,
    /// Operations.
    pub operations: usize,
    /// Keys.
    pub keys: usize,
    /// Transactions that committed.
    pub committed: usize,
    /// Transactions that aborted.
    pub aborted: usize,
    /// Transactions whose outcome is not known.
    pub unknown: usize,
}

/// One level's verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelReport {
    /// The level's name.
    #[serde(skip)]
    pub level: &'static str,
    /// The weaker level whose violation settled this one.
    #[serde(skip)]
    pub settled_by: Option<&'static str>,
    /// `satisfied`, `violated` or `unknown`.
    pub verdict: &'static str,
    /// What shows a violation.
    pub anomalies: Vec<AnomalyReport>,
    /// Why the level is not decided, which other level decided it, or what it was judged
    /// without because the database contradicts itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The verdict without the version orders that a database gave, where they may have
    /// made the difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_given: Option<&'static str>,
    /// Whether the verdict follows from that on another level, and nothing else is to be said.
    #[serde(skip)]
    pub follows: bool,
    /// Time spent on this level alone.
    pub seconds: f64,
}

/// One anomaly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnomalyReport {
    /// Its name.
    pub name: &'static str,
    /// Adya's or Elle's name, where they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The transactions involved.
    pub transactions: Vec<String>,
    /// Why, one sentence a line.
    pub explanation: String,
    /// The same as data: transactions, dependencies, and what each follows from.
    pub scenario: Scenario,
}

/// A level, its verdict and the seconds it took.
pub type Decided = (Level, Verdict, f64);

/// What was found out about a history.
#[derive(Clone, Copy)]
pub struct Findings<'a> {
    /// The verdicts, from weak to strong.
    pub decided: &'a [Decided],
    /// What shows the violated ones. Of a level that is not among these, only its verdict is
    /// told.
    pub counterexamples: &'a [Counterexamples],
    /// Anomalies that reading alone shows.
    pub by_reading: &'a [Anomaly],
    /// What was decided with.
    pub options: Options,
}

impl Report {
    /// A report on what was found out about a history read from `file`.
    pub fn new(
        history: &History,
        index: &Index,
        (file, format): (&str, &str),
        findings: &Findings<'_>,
    ) -> Report {
        let Findings { decided, by_reading, options, .. } = *findings;
        let prose = Prose::new(history, index, file);
        let levels = decided.iter().map(|decided| {
            let level = decided.0;
            let found = findings.counterexamples.iter().find(|it| it.level == level);
            level_report(&prose, decided, found)
        });
        let mut levels: Vec<LevelReport> = levels.collect();
        let left_out = database_evidence::left_out(history);
        if options.sources.database_order {
            for level in &mut levels {
                note_left_out(level, &left_out);
            }
        }
        let refutes_one = |anomaly: &Anomaly| {
            let weakest = anomaly.kind.refutes();
            decided.iter().any(|(level, ..)| {
                weakest.iter().any(|it| it == level || level.weaker_than().contains(it))
            })
        };
        let mut remarks: Vec<AnomalyReport> = Vec::new();
        let beside = by_reading.iter().filter(|it| !refutes_one(it));
        for anomaly in beside.take(COUNTEREXAMPLES_MAX) {
            remarks.push(anomaly_report(&prose, anomaly, &[]));
        }
        let serialization_order = GivenOrderReport::new(&prose, index, decided);
        let timestamps = TimestampsReport::new(&prose, index);
        let conflicts = ConflictReport::all(&prose, index);
        let refuted = database_evidence::refuted(
            serialization_order.as_ref(),
            timestamps.as_ref(),
            &conflicts,
            &left_out,
        );
        let mut report = Report {
            evidence: database_evidence::evidence(history, index, options),
            serialization_order,
            timestamps,
            conflicts,
            refuted,
            remarks,
            notes: notes_on(history, index, decided, options),
            ..Report::of_levels((file, format), Size::of(history), decided, levels)
        };
        report.note_unlogged(UnloggedReport::of(history));
        report
    }

    /// A report on verdicts alone, for when the history is not at hand. `reason` says why
    /// violations are not explained.
    pub fn of_verdicts(
        names: (&str, &str),
        size: Size,
        decided: &[Decided],
        reason: &str,
    ) -> Report {
        let alone = |(level, verdict, seconds): &Decided| {
            let mut report = LevelReport::of_verdict(*level, verdict, *seconds);
            if matches!(verdict, Verdict::Violated(_)) {
                report.reason.get_or_insert_with(|| format!("{reason} before it was explained"));
            }
            report
        };
        let levels = decided.iter().map(alone).collect();
        Report::of_levels(names, size, decided, levels)
    }

    fn of_levels(
        (file, format): (&str, &str),
        size: Size,
        decided: &[Decided],
        levels: Vec<LevelReport>,
    ) -> Report {
        Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            file: file.to_owned(),
            format: format.to_owned(),
            history: size,
            evidence: Vec::new(),
            levels,
            unlogged: None,
            strongest: lattice::strongest(decided),
            weakest_violated: lattice::weakest_violated(decided),
            serialization_order: None,
            timestamps: None,
            conflicts: Vec::new(),
            refuted: Vec::new(),
            remarks: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Notes transactions that are in no log. They matter if a level is satisfied: what is
    /// violated without their commits is violated with them.
    pub fn note_unlogged(&mut self, unlogged: Option<UnloggedReport>) {
        let holds = self.levels.iter().any(|level| level.verdict == "satisfied");
        self.unlogged = unlogged.filter(|_| holds);
    }

    /// Notes what the documentation of a database says about the violation of a level, at
    /// whatever levels the same is shown for.
    pub fn note_documented(&mut self, level: Level, text: &str) {
        let named = |name: &str| self.levels.iter().find(|it| it.level == name);
        let Some(report) = named(level.name()) else { return };
        let settling = report.settled_by.and_then(named).filter(|_| report.anomalies.is_empty());
        let shown: Vec<String> = (settling.unwrap_or(report).anomalies.iter())
            .map(|anomaly| anomaly.explanation.clone())
            .collect();
        let all = self.levels.iter_mut().flat_map(|level| &mut level.anomalies);
        for anomaly in all.filter(|it| shown.contains(&it.explanation)) {
            anomaly.scenario.documented = Some(prose::safe(text));
        }
    }

    /// Notes the verdict that a violated level has without the version orders that a
    /// database gave: whether the level is violated outright, or only the order.
    pub fn note_without_given(&mut self, level: Level, verdict: &Verdict) {
        let Some(report) = self.levels.iter_mut().find(|it| it.level == level.name()) else {
            return;
        };
        report.without_given = Some(verdict.name());
    }

    /// Takes these notes over from a report on the same history.
    pub fn take_without_given(&mut self, other: &Report) {
        for report in &mut self.levels {
            let same = other.levels.iter().find(|it| it.level == report.level);
            report.without_given = same.and_then(|it| it.without_given);
        }
    }
}

/// What to know before the verdicts are believed.
fn notes_on(
    history: &History,
    index: &Index,
    decided: &[Decided],
    options: Options,
) -> Vec<NoteReport> {
    // Only what holds can hold for want of a test, and what fails was tested.
    let holds = decided.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Satisfied(_)));
    let fails = decided.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Violated(_)));
    let rules = if holds && !fails { vacuity(history, index) } else { Vec::new() };
    let note = |rule: &'static Rule, example| NoteReport {
        name: rule.name,
        meaning: rule.meaning,
        advice: rule.advice,
        example,
    };
    let mut notes: Vec<NoteReport> = rules.into_iter().map(|rule| note(rule, None)).collect();
    let held = decided.iter().filter(|it| matches!(it.1, Verdict::Satisfied(_))).map(|it| it.0);
    let mut wrong = wrongly_told(history, index);
    wrong.extend(untimed(history, index, held));
    wrong.extend(wrongly_read(history, index));
    notes.extend(wrong.into_iter().map(|(rule, example)| note(rule, Some(example))));
    notes.extend(disabled_sources::notes(history, options));
    notes
}

impl LevelReport {
    /// What the verdict alone says of a level.
    fn of_verdict(level: Level, verdict: &Verdict, seconds: f64) -> LevelReport {
        let reason = match verdict {
            Verdict::Satisfied(isolde::Satisfied::Implied(stronger)) => {
                Some(format!("implied by {}", stronger.name()))
            }
            Verdict::Satisfied(isolde::Satisfied::Definition) => {
                Some("all orders were tried".into())
            }
            Verdict::Satisfied(isolde::Satisfied::Interpretation) => {
                Some("in one of the ways to take what the history leaves open".into())
            }
            Verdict::Satisfied(isolde::Satisfied::Order(_) | isolde::Satisfied::Events(_)) => None,
            Verdict::Violated(violated) => {
                violated.settled_by.map(|weaker| format!("{} is violated", weaker.name()))
            }
            Verdict::Unknown(reason) => Some(reason.to_string()),
        };
        let settled_by = match verdict {
            Verdict::Violated(violated) => violated.settled_by.map(Level::name),
            _ => None,
        };
        LevelReport {
            level: level.name(),
            follows: settled_by.is_some()
                || matches!(verdict, Verdict::Satisfied(isolde::Satisfied::Implied(_))),
            settled_by,
            verdict: verdict.name(),
            anomalies: Vec::new(),
            reason,
            without_given: None,
            seconds,
        }
    }
}

/// What is told of a level, with what shows its violation if that was looked for.
fn level_report(
    prose: &Prose<'_>,
    (level, verdict, seconds): &Decided,
    found: Option<&Counterexamples>,
) -> LevelReport {
    let mut report = LevelReport::of_verdict(*level, verdict, *seconds);
    if let (Verdict::Violated(violated), Some(found)) = (verdict, found) {
        let told = found.all.iter().map(|it| {
            let rules_out: Vec<&str> = it.rules_out.iter().map(|level| level.name()).collect();
            anomaly_report(prose, &it.anomaly, &rules_out)
        });
        report.anomalies = told.collect();
        report.reason = report.reason.or_else(|| what_is_missing(found, violated));
    }
    report
}

/// What the counterexamples of a level lack, if anything.
fn what_is_missing(found: &Counterexamples, violated: &Violated) -> Option<String> {
    let all = violated.anomalies.len();
    if found.all.is_empty() && found.is_cut_short {
        Some("a limit was reached before it was explained".into())
    } else if found.all.is_empty() {
        Some("all orders were tried, none explains it".into())
    } else if all > COUNTEREXAMPLES_MAX {
        Some(format!("{COUNTEREXAMPLES_MAX} of {all} anomalies are shown"))
    } else if !found.is_minimal {
        Some("the counterexample is as it was found: a smaller one may exist".into())
    } else {
        None
    }
}

/// Says of a level that is not violated what it was judged without: with that it might be.
fn note_left_out(report: &mut LevelReport, left_out: &[LeftOut]) {
    if report.verdict == "violated" || left_out.is_empty() {
        return;
    }
    let known = report.reason.iter().map(String::as_str);
    let reasons: Vec<&str> = known.chain(left_out.iter().map(|it| it.reason)).collect();
    report.follows = false;
    report.reason = Some(reasons.join("; "));
}

fn anomaly_report(prose: &Prose<'_>, anomaly: &Anomaly, also: &[&str]) -> AnomalyReport {
    AnomalyReport {
        name: anomaly.kind.name(),
        code: anomaly.kind.code(),
        transactions: anomaly.txns.iter().map(|&txn| prose.txn(txn)).collect(),
        explanation: explain(prose, anomaly),
        scenario: scenario::scenario(prose, anomaly, also),
    }
}

impl Size {
    /// That of no history.
    pub const NOTHING: Size = Size {
        sessions: 0,
        transactions: 0,
        operations: 0,
        keys: 0,
        committed: 0,
        aborted: 0,
        unknown: 0,
    };

    /// The size of a history.
    pub fn of(history: &History) -> Size {
        let count = |wanted| history.outcomes().iter().filter(|&&it| it == wanted).count();
        Size {
            sessions: history.session_count(),
            transactions: history.txn_count(),
            operations: history.op_count(),
            keys: history.key_count(),
            committed: count(Outcome::Committed),
            aborted: count(Outcome::Aborted),
            unknown: count(Outcome::Unknown),
        }
    }
}

/// A report with all counterexamples, however long they take.
#[cfg(test)]
pub(crate) fn explained(
    (history, index): (&History, &Index),
    names: (&str, &str),
    decided: &[Decided],
    by_reading: &[Anomaly],
) -> Report {
    let options = Options::default();
    let verdicts = decided.iter().map(|it| (it.0, &it.1));
    let none = isolde::Limits::NONE;
    let counterexamples =
        isolde::counterexamples((history, index), verdicts, options, &none, &|_| {});
    let findings = Findings { decided, counterexamples: &counterexamples, by_reading, options };
    Report::new(history, index, names, &findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::{Check, Limits, counterexamples};
    use isolde_history::format::parse_text;

    /// A report computed what it was to tell: nothing could stop it, and verdicts alone were
    /// made by forgetting what was found, and then looked for anew.
    #[test]
    fn a_report_tells_what_was_found_and_looks_for_nothing() {
        let history = parse_text("A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)").expect("a history");
        let index = Index::new(&history);
        let (level, options) = (Level::CursorStability, Options::default());
        let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
        let (whole, none) = ((&history, &index), Limits::NONE);
        let shown = counterexamples(whole, [(level, &verdict)], options, &none, &|_| {});
        let nothing = Verdict::Violated(Violated::by(Vec::new()));
        for verdict in [verdict, nothing] {
            let decided = [(level, verdict, 0.0)];
            let of = |counterexamples| {
                let findings =
                    Findings { decided: &decided, counterexamples, by_reading: &[], options };
                Report::new(&history, &index, ("x.txt", "text"), &findings)
            };
            let told = of(&shown);
            assert_eq!((told.levels[0].verdict, told.levels[0].anomalies.len()), ("violated", 1));
            let expected = LevelReport { anomalies: Vec::new(), ..told.levels[0].clone() };
            assert_eq!(of(&[]).levels, [expected]);
        }
    }
}

//! What a check found: one versioned [`Report`], in every form that people and programs want.

mod argument;
mod counterexample;
mod dot;
mod drawing;
mod dress;
mod elle_directory;
mod escape;
mod github;
mod given;
mod json;
mod junit;
mod lattice;
mod left_out;
mod lint;
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
pub mod stats;
mod stats_text;
mod svg;
mod terminal;
mod unlogged;
mod window;

pub use dress::Dress;
pub use elle_directory::to_elle_directory;
pub use escape::visible;
pub use given::{ConflictReport, FailedAxiom, GivenOrderReport, TimestampsReport};
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
pub use unlogged::{UNLOGGED_SHOWN_MAX, UnloggedReport};

use given::LeftOut;
use isolde::lint::{Rule, untimed, vacuity, wrongly_read, wrongly_told};
use isolde::{Anomaly, Explanation, Level, Limits, Options, Verdict, Violated};
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

/// At most this many anomalies are reported for a level; the rest are counted.
pub const ANOMALIES_MAX: usize = 10;

impl Report {
    /// A report on the verdicts for a history read from `file`.
    pub fn new(
        history: &History,
        index: &Index,
        (file, format): (&str, &str),
        decided: &[Decided],
        found: &[Anomaly],
    ) -> Report {
        Report::with_options(history, index, (file, format), decided, found, Options::default())
    }

    /// The same for verdicts that were decided with these options.
    pub fn with_options(
        history: &History,
        index: &Index,
        names: (&str, &str),
        decided: &[Decided],
        found: &[Anomaly],
        options: Options,
    ) -> Report {
        let prose = Prose::new(history, index, names.0);
        let mut explainer = Explainer { prose: &prose, options, known: Vec::new() };
        let levels = decided.iter().map(|decided| level_report(Some(&mut explainer), decided));
        let levels = levels.collect();
        Report::of_levels(&prose, index, names, (decided, levels), found, options)
    }

    /// The same without anomalies of violated levels: finding the smallest may take much longer
    /// than deciding.
    pub fn of_verdicts(
        history: &History,
        index: &Index,
        names: (&str, &str),
        decided: &[Decided],
        found: &[Anomaly],
        options: Options,
    ) -> Report {
        let prose = Prose::new(history, index, names.0);
        let levels = decided.iter().map(|decided| level_report(None, decided)).collect();
        Report::of_levels(&prose, index, names, (decided, levels), found, options)
    }

    fn of_levels(
        prose: &Prose<'_>,
        index: &Index,
        (file, format): (&str, &str),
        (decided, mut levels): (&[Decided], Vec<LevelReport>),
        found: &[Anomaly],
        options: Options,
    ) -> Report {
        let history = prose.history;
        let left_out = given::left_out(history);
        if options.sources.given {
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
        for anomaly in found.iter().filter(|it| !refutes_one(it)).take(ANOMALIES_MAX) {
            remarks.push(anomaly_report(prose, anomaly, &[]));
        }
        let serialization_order = GivenOrderReport::new(prose, index, decided);
        let timestamps = TimestampsReport::new(prose, index);
        let conflicts = ConflictReport::all(prose, index);
        let refuted = given::refuted(
            serialization_order.as_ref(),
            timestamps.as_ref(),
            &conflicts,
            &left_out,
        );
        let mut report = Report {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            file: file.to_owned(),
            format: format.to_owned(),
            history: Size::of(history),
            evidence: given::evidence(history, index, options),
            strongest: lattice::strongest(decided),
            weakest_violated: lattice::weakest_violated(decided),
            serialization_order,
            timestamps,
            conflicts,
            refuted,
            levels,
            remarks,
            notes: notes_on(history, index, decided, options),
            unlogged: None,
        };
        report.note_unlogged(UnloggedReport::of(history));
        report
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
    notes.extend(left_out::notes(history, options));
    notes
}

/// What is told of a level; of one that is violated no more than that, if nobody explains it.
fn level_report(
    explainer: Option<&mut Explainer<'_>>,
    (level, verdict, seconds): &Decided,
) -> LevelReport {
    let mut report = LevelReport {
        level: level.name(),
        settled_by: None,
        verdict: verdict.name(),
        anomalies: Vec::new(),
        reason: None,
        without_given: None,
        seconds: *seconds,
    };
    match verdict {
        Verdict::Satisfied(isolde::Satisfied::Implied(stronger)) => {
            report.reason = Some(format!("implied by {}", stronger.name()));
        }
        Verdict::Satisfied(isolde::Satisfied::Definition) => {
            report.reason = Some("all orders were tried".into());
        }
        Verdict::Satisfied(isolde::Satisfied::Order(_) | isolde::Satisfied::Events(_)) => {}
        Verdict::Violated(violated) => {
            let all = &violated.anomalies;
            let is_explained = explainer.is_some();
            let mut is_minimal = false;
            if let Some(explainer) = explainer {
                (report.anomalies, is_minimal) = explainer.anomalies(*level, violated);
            }
            report.settled_by = violated.settled_by.map(Level::name);
            report.reason = match violated.settled_by {
                Some(weaker) => Some(format!("{} is violated", weaker.name())),
                None if !is_explained => None,
                None if report.anomalies.is_empty() => {
                    Some("all orders were tried, none explains it".into())
                }
                None if all.len() > ANOMALIES_MAX => {
                    Some(format!("{} of {} anomalies are shown", ANOMALIES_MAX, all.len()))
                }
                None if !is_minimal => {
                    Some("the counterexample is as it was found: a smaller one may exist".into())
                }
                None => None,
            };
        }
        Verdict::Unknown(reason) => report.reason = Some(reason.to_string()),
    }
    report
}

/// Says of a level that is not violated what it was judged without: with that it might be.
fn note_left_out(report: &mut LevelReport, left_out: &[LeftOut]) {
    if report.verdict == "violated" || left_out.is_empty() {
        return;
    }
    let known = report.reason.iter().map(String::as_str);
    let reasons: Vec<&str> = known.chain(left_out.iter().map(|it| it.reason)).collect();
    report.reason = Some(reasons.join("; "));
}

/// Explains violations, each once: several levels often have the same.
struct Explainer<'a> {
    prose: &'a Prose<'a>,
    options: Options,
    known: Vec<(Option<Anomaly>, Option<Explanation>)>,
}

impl Explainer<'_> {
    /// The anomalies of a level, at most so many, the first of them as small as can be, and
    /// whether it is.
    fn anomalies(&mut self, level: Level, violated: &Violated) -> (Vec<AnomalyReport>, bool) {
        let (first, others) = match violated.anomalies.split_first() {
            Some((first, others)) => (Some(first), others),
            None => (None, [].as_slice()),
        };
        let mut also: Vec<Level> = level.stronger_than();
        also.push(level);
        also.sort_unstable();
        // What rules out a weaker level too says more than what this level alone forbids.
        let history = self.prose.history;
        let known = self.known.iter().find(|(anomaly, explanation)| match explanation {
            Some(it) => it.holds_for(history, level),
            None => first.is_some() && anomaly.as_ref() == first,
        });
        let explanation = if let Some((_, explanation)) = known {
            explanation.clone()
        } else if first.is_none() && violated.settled_by.is_some() {
            None
        } else {
            let whole = (self.prose.history, self.prose.index);
            let found = isolde::explain(whole, level, violated, self.options, &Limits::NONE);
            self.known.push((first.cloned(), found.clone()));
            found
        };
        let is_minimal = explanation.as_ref().is_some_and(|it| it.is_minimal);
        let first = match (&explanation, first) {
            (Some(it), _) => anomaly_report(self.prose, &it.anomaly, &names_of(&it.rules_out)),
            (None, Some(first)) => {
                let first = self.in_depth(level, first, violated);
                anomaly_report(self.prose, &first, &names_of(&also))
            }
            (None, None) => return (Vec::new(), true),
        };
        let others = others.iter().take(ANOMALIES_MAX - 1);
        let others = others.map(|it| anomaly_report(self.prose, it, &names_of(&also)));
        (std::iter::once(first).chain(others).collect(), is_minimal)
    }
}

impl Explainer<'_> {
    /// An anomaly with all that the proof of its violation knows.
    fn in_depth(&self, level: Level, anomaly: &Anomaly, violated: &Violated) -> Anomaly {
        let whole = (self.prose.history, self.prose.index);
        let anomaly = match &violated.proof {
            Some(proof) => isolde::in_depth(whole, anomaly.clone(), proof),
            None => anomaly.clone(),
        };
        isolde::with_conflicts(whole, violated.settled_by.unwrap_or(level), anomaly)
    }
}

fn names_of(levels: &[Level]) -> Vec<&'static str> {
    levels.iter().map(|level| level.name()).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::Check;
    use isolde_history::format::parse_text;

    /// Verdicts alone were made by forgetting what was found, and then looked for anew.
    #[test]
    fn verdicts_alone_are_not_explained() {
        let history = parse_text("A: r(x,nil) w(x,1)\nB: r(x,nil) w(x,2)").expect("a history");
        let index = Index::new(&history);
        let level = Level::CursorStability;
        let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
        let nothing = Verdict::Violated(Violated::by(Vec::new()));
        let names = ("x.txt", "text");
        for verdict in [verdict, nothing] {
            let decided = [(level, verdict, 0.0)];
            let told = Report::new(&history, &index, names, &decided, &[]);
            assert_eq!((told.levels[0].verdict, told.levels[0].anomalies.len()), ("violated", 1));
            let options = Options::default();
            let alone = Report::of_verdicts(&history, &index, names, &decided, &[], options);
            let expected = LevelReport { anomalies: Vec::new(), ..told.levels[0].clone() };
            assert_eq!(alone.levels, [expected]);
        }
    }
}

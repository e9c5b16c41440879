//! One call that decides levels, and an answer that prints as an engineer reads it.

use isolde_checker::{Check, Level, Limits, Options, Verdict, applicable_levels, counterexamples};
use isolde_history::{History, Index};
use isolde_report::{Detail, Findings, Report, TerminalStyle, Which, to_explanations, to_text};
use std::fmt;
use std::time::{Duration, Instant};

/// How places in a history are cited, and what it is instead of a format.
const NAMES: (&str, &str) = ("transcript", "in memory");
/// Printed lines are no longer than this.
const COLUMNS: usize = 80;

/// What is known of each level. Printed, it lists the levels and explains those that are violated.
#[derive(Clone, Debug)]
pub struct Answer {
    verdicts: Vec<(Level, Verdict)>,
    report: Report,
}

/// Decides every level that the history can tell something about.
pub fn check(history: &History) -> Answer {
    answer(history, &applicable_levels(history), &Limits::NONE)
}

/// Decides one level.
pub fn check_level(history: &History, level: Level) -> Answer {
    answer(history, &[level], &Limits::NONE)
}

/// Decides every level that the history can tell something about, as far as the time suffices.
/// What is still open then is [`Verdict::Unknown`].
pub fn check_within(history: &History, time: Duration) -> Answer {
    let end = Instant::now() + time;
    let limits = Limits { stop: &|| Instant::now() >= end, ..Limits::NONE };
    answer(history, &applicable_levels(history), &limits)
}

fn answer(history: &History, levels: &[Level], limits: &Limits<'_>) -> Answer {
    let (index, options) = (Index::new(history), Options::default());
    let mut checking = Check::new(history, &index, limits);
    let mut levels = levels.to_vec();
    levels.sort_unstable();
    let verdicts = checking.decide_all(&levels);
    let shown = counterexamples(
        (history, &index),
        verdicts.iter().map(|it| (it.0, &it.1)),
        options,
        limits,
        &|_| {},
    );
    let decided: Vec<_> = verdicts.iter().map(|it| (it.0, it.1.clone(), 0.0)).collect();
    let findings = Findings {
        decided: &decided,
        counterexamples: &shown,
        by_reading: checking.found(),
        options,
    };
    let report = Report::new(history, &index, NAMES, &findings);
    Answer { verdicts, report }
}

impl Answer {
    /// The verdict on a level, if it was asked about.
    pub fn verdict(&self, level: Level) -> Option<&Verdict> {
        self.verdicts.iter().find(|it| it.0 == level).map(|it| &it.1)
    }

    /// Whether a level holds; `None` if that is not known.
    pub fn holds(&self, level: Level) -> Option<bool> {
        match self.verdict(level)? {
            Verdict::Satisfied(_) => Some(true),
            Verdict::Violated(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }

    /// All verdicts, from the weakest level to the strongest.
    pub fn verdicts(&self) -> &[(Level, Verdict)] {
        &self.verdicts
    }

    /// The same for programs, pages and pictures.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The whole argument against the weakest levels that are violated, down to operations.
    pub fn explanation(&self) -> String {
        fitted(&to_explanations(&self.report, Which::Broken))
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&fitted(&to_text(&self.report, Detail::Full, None)))
    }
}

fn fitted(text: &str) -> String {
    TerminalStyle { width: Some(COLUMNS), colour: false }.apply(text)
}

//! Work on one history: how long it may take, what is known of it, and who is told.
//!
//! One thread works, another waits, as [`limits::within`] has it. What the first finds is left in
//! [`PartialResult`] for the second, and told on a terminal as it is found.

use crate::limits::{self, Clock};
use crate::partial_result::PartialResult;
use crate::progress::Progress;
use crate::{decision, say, status_line};
use isolde::{
    Check, Counterexamples, Level, Limit, Limits, Options, Verdict, counterexamples, implied,
};
use isolde_history::{History, Index};
use isolde_report::{Decided, Report};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One history that is worked on.
pub(crate) struct Job {
    pub(crate) clock: Clock,
    pub(crate) memory_max: Option<usize>,
    pub(crate) partial_result: PartialResult,
    pub(crate) progress: Progress,
    /// How much of the time is for what comes after deciding.
    kept: Duration,
    /// What is said if it takes long, terminal or not.
    pub(crate) announcement: Option<&'static str>,
    /// Whether verdicts are told as they are found, where there is a terminal.
    pub(crate) tells: bool,
}

impl Job {
    /// One that begins now.
    pub(crate) fn new(clock: Clock, resources: &limits::Resources, tells: bool) -> Job {
        let (kept, memory_max) = (clock.explaining_share(), resources.memory_max());
        let (partial_result, progress, announcement) = Default::default();
        Job { clock, memory_max, partial_result, progress, kept, announcement, tells }
    }

    /// The same, with half of the time for what comes after deciding.
    pub(crate) fn keeping_half(self) -> Job {
        Job { kept: self.clock.share(2), ..self }
    }

    /// Does the work on another thread, within the limits.
    pub(crate) fn within<T: Send + 'static>(
        self: &Arc<Job>,
        work: impl FnOnce(&Job) -> T + Send + 'static,
    ) -> Result<T, Limit> {
        /// Who waits for so long wants to know for what.
        const PATIENCE: Duration = Duration::from_secs(2);
        let (job, begun) = (Arc::clone(self), Instant::now());
        let mut announcement = self.announcement;
        let look = || {
            if begun.elapsed() >= PATIENCE
                && let Some(text) = announcement.take()
            {
                say(text);
            }
        };
        limits::within_and(&self.clock, move || work(&job), look)
    }

    /// Does something with the limits as the engine knows them.
    pub(crate) fn limited<T>(
        &self,
        (history, index): (&History, &Index),
        work: impl FnOnce(&Limits<'_>) -> T,
    ) -> T {
        let used = history.memory() + index.memory();
        work(&Limits {
            stop: &|| self.clock.is_over(),
            is_memory: &|| self.clock.is_memory(),
            working_bytes_max: self.memory_max.map(|bytes| bytes.saturating_sub(used)),
            observe: &|stage| self.progress.note(stage),
            ..Limits::NONE
        })
    }

    /// Takes note of a history that was read, and of the levels to be decided.
    pub(crate) fn has_read(&self, history: &History, format: &'static str, levels: &[Level]) {
        self.partial_result.note_read(history, format, levels);
        self.progress.begin(levels.len());
    }

    /// Decides levels, and leaves a part of the time for what comes after that.
    pub(crate) fn decide(
        &self,
        check: &mut Check<'_>,
        levels: &[Level],
        tell: impl Fn(Level, &Verdict, f64),
    ) -> Vec<Decided> {
        self.clock.keep(self.kept);
        let mut decided =
            decision::decide_within(check, levels, &self.clock, |level, verdict, time| {
                self.note(level, verdict, time);
                tell(level, verdict, time);
            });
        self.clock.name_signal(&mut decided);
        decided
    }

    /// A level was decided, as far as it could.
    pub(crate) fn note(&self, level: Level, verdict: &Verdict, seconds: f64) {
        self.progress.decided(level, verdict);
        if self.tells && status_line::is_there() && !matches!(verdict, Verdict::Unknown(_)) {
            let known = self.partial_result.known();
            let is_told = known.iter().any(|it| it.0 == level && it.1.name() == verdict.name());
            let follows = || implied(level, known.iter().map(|it| (it.0, &it.1))).is_some();
            // What was told before, or follows from it, is no news.
            if !is_told && !follows() {
                let after = self.clock.elapsed().as_secs_f64();
                status_line::find(format!("{level}: {}, after {after:.1} s", verdict.name()));
            }
        }
        self.partial_result.note(level, verdict, seconds);
    }

    /// Says how long a level took, and what it took it for.
    pub(crate) fn say_decided(&self, name: &str, level: Level, verdict: &Verdict, seconds: f64) {
        let stages = self.progress.take();
        let stages = if stages.is_empty() { stages } else { format!(" ({stages})") };
        let by = match (self.progress.by(level), verdict) {
            (Some(by), Verdict::Satisfied(_) | Verdict::Violated(_)) => format!(" by {by}"),
            _ => String::new(),
        };
        let verdict = verdict.name();
        say(&format!("isolde: {name}: {level} {verdict} in {seconds:.3} s{by}{stages}"));
    }

    /// What shows the violations, as briefly as can be found until the clock says that it is
    /// enough.
    pub(crate) fn explain(
        &self,
        (history, index): (&History, &Index),
        decided: &[Decided],
        options: Options,
    ) -> Vec<Counterexamples> {
        self.progress.explain();
        let verdicts = decided.iter().map(|it| (it.0, &it.1));
        self.limited((history, index), |limits| {
            let turn = |parts| self.clock.turn(parts);
            counterexamples((history, index), verdicts, options, limits, &turn)
        })
    }

    /// Decides violated levels again without the version orders that a database gave, to tell a
    /// level that is violated outright from an order that does not show it.
    pub(crate) fn without_given(
        &self,
        history: History,
        decided: &[Decided],
        options: Options,
        report: &mut Report,
    ) {
        if !decided.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Violated(_))) {
            return;
        }
        let history = history.without_version_orders();
        let index = Index::new(&history);
        self.limited((&history, &index), |limits| {
            let mut check = Check::new(&history, &index, limits).with_options(options);
            for (level, verdict, _) in decided.iter().rev() {
                if matches!(verdict, Verdict::Violated(_)) {
                    report.note_without_given(*level, &check.decide(*level));
                }
            }
        });
    }
}

//! Where the time of a check went: the engine says what it is at, this looks at the clock.

use crate::status_line;
use isolde::{Level, Stage, StrategyName, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Times and counts of the stages so far.
#[derive(Default)]
pub(crate) struct Progress {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<(&'static str, Instant)>,
    /// Stages in the order they were first entered.
    spent: Vec<(&'static str, Duration)>,
    counts: Vec<String>,
    /// The level that is being decided.
    level: Option<Level>,
    /// How many levels there are, and which of them are decided.
    levels: usize,
    decided: BTreeSet<Level>,
    is_explaining: bool,
    /// The strategies that decided levels.
    by: BTreeMap<Level, StrategyName>,
}

impl Progress {
    /// The history was read: so many levels are to be decided.
    pub(crate) fn begin(&self, levels: usize) {
        self.with(|state| state.levels = levels);
        status_line::tell("indexing".to_owned());
    }

    /// A level was decided, as far as it could.
    pub(crate) fn decided(&self, level: Level, verdict: &Verdict) {
        self.with(|state| {
            if !matches!(verdict, Verdict::Unknown(_)) {
                state.decided.insert(level);
            }
        });
    }

    /// All levels are decided, and what is violated gets explained.
    pub(crate) fn explain(&self) {
        self.with(|state| state.is_explaining = true);
        status_line::tell("explaining what is violated".to_owned());
    }

    /// Notes what the engine is at.
    pub(crate) fn note(&self, stage: Stage) {
        let mut state = self.locked();
        let name = match stage {
            Stage::Decide(level) => {
                state.level = Some(level);
                state.enter(None);
                state.tell();
                return;
            }
            Stage::Decided { level, by } => {
                state.by.insert(level, by);
                return;
            }
            Stage::Infer => "infer",
            Stage::Witness => "witness",
            Stage::Interleave => "interleave",
            Stage::Choose => "choose",
            Stage::Enumerate => "enumerate",
            Stage::Solve => "solve",
            Stage::Saturate => "saturate",
            Stage::Explain => "explain",
            Stage::Versions { pairs, open_keys } => {
                state.counts.push(format!("{pairs} pairs of versions on {open_keys} open keys"));
                return;
            }
            Stage::Replayed { repairs } => {
                state.counts.push(format!("repairs of the order of times: {repairs}"));
                return;
            }
            Stage::Solved { choices, conflicts } => {
                state.counts.push(format!("{choices} pairs decided, {conflicts} conflicts"));
                return;
            }
            Stage::Saturated { rounds, derived, open } => {
                state.counts.push(format!(
                    "{derived} edges derived in {rounds} rounds, {open} pairs left open"
                ));
                return;
            }
        };
        state.enter(Some(name));
        state.tell();
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.locked());
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while holding it")
    }

    /// The strategy that decided a level.
    pub(crate) fn by(&self, level: Level) -> Option<StrategyName> {
        self.locked().by.get(&level).copied()
    }

    /// What was spent since the last time, as `infer 0.001 s, …`; empty if nothing.
    pub(crate) fn take(&self) -> String {
        let mut state = self.locked();
        state.enter(None);
        let mut text = String::new();
        for (name, spent) in state.spent.drain(..) {
            let comma = if text.is_empty() { "" } else { ", " };
            write!(text, "{comma}{name} {:.3} s", spent.as_secs_f64()).expect("a string grows");
        }
        for count in state.counts.drain(..) {
            write!(text, "; {count}").expect("a string grows");
        }
        text
    }
}

impl State {
    /// Tells a terminal, if there is one, what goes on.
    fn tell(&self) {
        let Some(level) = self.level.filter(|_| !self.is_explaining && status_line::is_there())
        else {
            return;
        };
        let stage = self.current.map(|(name, _)| format!(" ({name})")).unwrap_or_default();
        let (decided, all) = (self.decided.len(), self.levels);
        status_line::tell(format!("{level}{stage}, {decided} of {all} decided"));
    }

    fn enter(&mut self, next: Option<&'static str>) {
        let now = Instant::now();
        if let Some((name, since)) = self.current.take() {
            match self.spent.iter_mut().find(|spent| spent.0 == name) {
                Some(spent) => spent.1 += now - since,
                None => self.spent.push((name, now - since)),
            }
        }
        self.current = next.map(|name| (name, now));
    }
}

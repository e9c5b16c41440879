//! Where the time of a check went: the engine says what it is at, this looks at the clock.

use isolde::{ComponentCounts, Stage};
use std::fmt::Write;
use std::sync::Mutex;
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
}

impl Progress {
    /// Notes what the engine is at.
    pub(crate) fn note(&self, stage: Stage) {
        let mut state = self.state.lock().expect("nobody panics while holding it");
        let name = match stage {
            Stage::Infer => "infer",
            Stage::Witness => "witness",
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
            Stage::Components(ComponentCounts { parts, largest, .. }) => {
                state.counts.push(format!("{parts} parts apart, the largest of {largest} events"));
                return;
            }
        };
        state.enter(Some(name));
    }

    /// What was spent since the last time, as `infer 0.001 s, …`; empty if nothing.
    pub(crate) fn take(&self) -> String {
        let mut state = self.state.lock().expect("nobody panics while holding it");
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

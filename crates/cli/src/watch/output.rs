//! What a watch says: a view in place on a terminal, lines elsewhere, and events for programs.

use super::status::{Mark, Status, Told};
use crate::exit::Failure;
use crate::{out, say};
use isolde_history::is_visible;
use serde_json::json;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often a terminal is drawn anew, and how often a line is written elsewhere.
const PAUSES: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(5)];
/// Between two events that tell how it is going.
const STATUS_PAUSE: Duration = Duration::from_secs(1);

/// Says things, one at a time.
pub(super) struct Output {
    is_quiet: bool,
    is_terminal: bool,
    state: Mutex<State>,
}

struct State {
    /// Lines of the view that are on the terminal.
    drawn: usize,
    next: Instant,
    next_status: Instant,
    events: Option<Box<dyn Write + Send>>,
    /// Whether the events are on standard output, and with them everything else.
    are_results: bool,
}

/// A file that is emptied when the first event comes: a watch that is refused before it began
/// leaves the events of the last one.
struct Emptied {
    file: File,
    is_empty: bool,
}

impl Write for Emptied {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_empty, true) {
            // What is no file, such as a pipe, has nothing to be emptied.
            let _ = self.file.set_len(0);
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output {
    /// One that also writes events to a file, or to standard output for `-`.
    pub(super) fn new(is_quiet: bool, events: Option<&Path>) -> Result<Output, Failure> {
        let are_results = events == Some(Path::new("-"));
        let events: Option<Box<dyn Write + Send>> = match events {
            None => None,
            Some(path) if path == Path::new("-") => Some(Box::new(io::stdout())),
            Some(path) => {
                let file = File::options().write(true).create(true).truncate(false).open(path);
                let file =
                    file.map_err(|error| Failure::Write(path.display().to_string(), error.into()))?;
                Some(Box::new(Emptied { file, is_empty: false }))
            }
        };
        let now = Instant::now();
        let state =
            State { drawn: 0, next: now + PAUSES[0], next_status: now, events, are_results };
        let is_terminal = io::stderr().is_terminal();
        Ok(Output { is_quiet, is_terminal, state: Mutex::new(state) })
    }

    /// One that says nothing.
    #[cfg(test)]
    pub(super) fn silent() -> Output {
        let now = Instant::now();
        let events: Option<Box<dyn Write + Send>> = None;
        let state = State { drawn: 0, next: now, next_status: now, events, are_results: true };
        Output { is_quiet: true, is_terminal: false, state: Mutex::new(state) }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while speaking")
    }

    /// Tells how it is going, if it is time to.
    pub(super) fn tell(&self, status: &Status) {
        let mut state = self.state();
        let now = Instant::now();
        if state.events.is_some() && now >= state.next_status {
            state.next_status = now + STATUS_PAUSE;
            state.event("status", status.to_json());
        }
        if self.is_quiet || now < state.next {
            return;
        }
        if self.is_terminal {
            state.next = now + PAUSES[0];
            state.draw(&status.to_block());
        } else {
            state.next = now + PAUSES[1];
            say(&format!("isolde: {}", status.to_line()));
        }
    }

    /// A violation that is told in full, before its window is saved.
    pub(super) fn violation(&self, told: &Told, text: &str) -> Result<(), Failure> {
        let mut state = self.state();
        let value = serde_json::to_value(told).expect("texts and numbers");
        state.event(told.kind.event(), value);
        if state.are_results {
            return Ok(());
        }
        state.erase();
        out(text)
    }

    /// More about a violation.
    pub(super) fn more(&self, mark: Mark, event: &'static str, text: &str) -> Result<(), Failure> {
        let mut state = self.state();
        let Mark { kind, number } = mark;
        state.event(event, json!({ "kind": kind, "number": number, "text": text }));
        if state.are_results {
            return Ok(());
        }
        state.erase();
        out(&format!("  {} {number}: {text}.\n", kind.name()))
    }

    /// Something beside violations: a client that stalled, a fault.
    pub(super) fn note(&self, kind: &'static str, text: &str) {
        let mut state = self.state();
        state.event(kind, json!({ "text": text }));
        if !self.is_quiet {
            state.erase();
            say(&format!("isolde: {text}"));
        }
    }

    /// The last word.
    pub(super) fn end(&self, status: &Status) -> Result<(), Failure> {
        let mut state = self.state();
        state.event("end", status.to_json());
        if let Some(events) = &mut state.events {
            events.flush()?;
        }
        if state.are_results {
            return Ok(());
        }
        state.erase();
        out(&status.to_summary())
    }
}

impl State {
    fn event(&mut self, kind: &str, mut value: serde_json::Value) {
        let Some(events) = &mut self.events else { return };
        if let Some(fields) = value.as_object_mut() {
            fields.insert("event".into(), kind.into());
        }
        // A reader that is gone does not change what is found.
        let _ = writeln!(events, "{value}");
        let _ = events.flush();
    }

    /// Takes the view from the terminal.
    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(io::stderr(), "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }

    fn draw(&mut self, block: &str) {
        self.erase();
        // Names come from others; a terminal must not take them as commands.
        let clean: String = block
            .chars()
            .map(|letter| if is_visible(letter) || letter == '\n' { letter } else { '\u{fffd}' })
            .collect();
        // Lines that a terminal would break cannot be taken back by their number.
        let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).unwrap_or(79);
        let lines: Vec<String> =
            clean.lines().map(|line| line.chars().take(width).collect()).collect();
        self.drawn = lines.len();
        let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
    }
}

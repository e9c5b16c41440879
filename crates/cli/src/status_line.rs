//! One line on a terminal that says what is being done, since when, and for how long at most.
//!
//! It appears when something takes longer than a moment, stands below all else that is said, is
//! narrower than the terminal, and is gone when the work is done. By hand, because whoever waits
//! for the work looks at the clock anyway, and draws: a library would have a thread of its own
//! and its own way to write to standard error.

use crate::limits;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// Nobody needs to be told of what takes no longer.
const DELAY: Duration = Duration::from_secs(1);
/// Between two times that it is drawn.
const EVERY: Duration = Duration::from_millis(200);
/// How wide a terminal is that does not say.
const COLUMNS: usize = 80;

static LINE: Mutex<Option<Line>> = Mutex::new(None);

struct Line {
    begun: Instant,
    budget: Option<Duration>,
    doing: String,
    /// What was found, to be said once the line appears.
    news: Vec<String>,
    drawn: Option<Instant>,
}

/// Something begins that may take as long as the budget says. Nothing is shown if standard error
/// is no terminal.
pub(crate) fn begin(budget: Option<Duration>) {
    let is_plain = std::env::var_os("TERM").is_none_or(|it| it == "dumb");
    if is_plain || !std::io::stderr().is_terminal() {
        return;
    }
    let doing = "reading".to_owned();
    let line = Line { begun: Instant::now(), budget, doing, news: Vec::new(), drawn: None };
    if let Some(mut place) = locked() {
        *place = Some(line);
    }
}

/// Whether there is a line, or will be one if it takes long enough.
pub(crate) fn is_there() -> bool {
    locked().is_some_and(|line| line.is_some())
}

/// What is done now.
pub(crate) fn tell(doing: String) {
    if let Some(line) = locked().as_deref_mut().and_then(Option::as_mut) {
        line.doing = doing;
    }
}

/// Something that was found: it stays above the line, if there is a line.
pub(crate) fn find(news: String) {
    if let Some(line) = locked().as_deref_mut().and_then(Option::as_mut) {
        line.news.push(news);
    }
}

/// Draws the line if it is time to.
pub(crate) fn draw() {
    let mut line = locked();
    let Some(line) = line.as_deref_mut().and_then(Option::as_mut) else { return };
    let elapsed = line.begun.elapsed();
    if elapsed < DELAY || line.drawn.is_some_and(|drawn| drawn.elapsed() < EVERY) {
        return;
    }
    let text = line.news();
    let now = fitting(&line.text(elapsed));
    line.drawn = Some(Instant::now());
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{text}\r{now}\x1b[K").and_then(|()| stderr.flush());
}

/// Says something above the line, if there is one.
pub(crate) fn above(say: impl FnOnce()) {
    let mut line = locked();
    if let Some(line) = line.as_deref_mut().and_then(Option::as_mut)
        && line.drawn.take().is_some()
    {
        // What was found before comes first.
        let _ = write!(std::io::stderr().lock(), "{}\r\x1b[K", line.news());
    }
    say();
}

/// What was begun is over: nothing of the line stays.
pub(crate) fn end() {
    let line = locked().and_then(|mut line| line.take());
    if line.is_some_and(|line| line.drawn.is_some()) {
        erase();
    }
}

impl Line {
    /// What was found since the last time, each on a line of its own.
    fn news(&mut self) -> String {
        let visible = self.news.drain(..).map(|news| isolde_report::visible(&news));
        visible.fold(String::new(), |lines, news| lines + "\r" + &news + "\x1b[K\n")
    }

    fn text(&self, elapsed: Duration) -> String {
        let budget = self.budget.map(limits::typed);
        let budget = budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
        format!("{} s{budget}: {}", elapsed.as_secs(), self.doing)
    }
}

/// Nothing if somebody has it for long: who works is held by the limit of memory wherever it
/// is, in here too, and who waits for the work must not wait for that.
fn locked() -> Option<MutexGuard<'static, Option<Line>>> {
    const LOOKS: u32 = 100;
    for _ in 0..LOOKS {
        match LINE.try_lock() {
            Ok(line) => return Some(line),
            Err(TryLockError::Poisoned(line)) => return Some(line.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

fn erase() {
    let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
}

/// As much of a text as fits on a line of the terminal.
pub(crate) fn fitting(text: &str) -> String {
    shortened(text, columns() - 1)
}

/// As much of a text as fits.
fn shortened(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let start: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{start}…")
}

/// How wide the terminal is that standard error goes to.
fn columns() -> usize {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(std::io::stderr())
        && size.ws_col > 1
    {
        return usize::from(size.ws_col);
    }
    COLUMNS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_once_above_the_line() {
        let news = vec!["serializable: violated".to_owned(), "prefix: satisfied".to_owned()];
        let doing = String::new();
        let mut line = Line { begun: Instant::now(), budget: None, doing, news, drawn: None };
        let both = "\rserializable: violated\x1b[K\n\rprefix: satisfied\x1b[K\n";
        assert_eq!([line.news(), line.news()], [both, ""]);
    }

    #[test]
    fn the_line_of_the_longest_level_fits_an_old_terminal() {
        let doing = "prefix-consistent-snapshot-isolation (saturate), 12 of 24 decided".to_owned();
        let line = |doing| Line {
            begun: Instant::now(),
            budget: Some(Duration::from_mins(5)),
            doing,
            news: Vec::new(),
            drawn: None,
        };
        let text = line(doing).text(Duration::from_secs(299));
        assert_eq!(
            text,
            "299 s of 5m: prefix-consistent-snapshot-isolation (saturate), 12 of 24 decided"
        );
        assert_eq!(shortened(&text, COLUMNS - 1), text);
        assert_eq!(shortened("reading", 5), "read…");
    }
}

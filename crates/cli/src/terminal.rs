//! Whether standard output is a terminal, how wide it is, and whether it wants colour.

use clap::ValueEnum;
use isolde_report::TerminalStyle;
use std::io::IsTerminal;
use std::sync::OnceLock;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless the environment has `NO_COLOR`
    #[default]
    Auto,
    /// Also in files and pipes
    Always,
    /// Not at all
    Never,
}

static ASKED: OnceLock<Colour> = OnceLock::new();

/// Notes what was asked for; the first to do so is heard.
pub(crate) fn ask(colour: Colour) {
    let _ = ASKED.set(colour);
}

/// A text for people, as standard output shows it best.
pub(crate) fn dressed(text: &str) -> String {
    let asked = ASKED.get().copied().unwrap_or_default();
    let is_terminal = std::io::stdout().is_terminal();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_plain =
        variable("NO_COLOR").is_some() || variable("TERM").is_some_and(|it| it == "dumb");
    let colour = asked == Colour::Always || (asked == Colour::Auto && is_terminal && !is_plain);
    let width = is_terminal.then(width).flatten();
    TerminalStyle { width, colour }.apply(text)
}

/// Columns of the terminal that standard output is.
#[cfg(unix)]
fn width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

#[cfg(not(unix))]
fn width() -> Option<usize> {
    None
}

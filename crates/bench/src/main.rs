//! Measurements of Isolde: `isolde-bench table`, `strong`, `runs`, `watch` and the others
//! write them down.
//!
//! Programs are measured as their users run them, as processes, parsing included;
//! other checkers are programs given by path. Stages inside the program are measured
//! by the benches of this crate, which `table` runs too if asked.

mod benches;
mod machine;
mod measure;
mod memory;
mod peers;
mod plot;
mod runs;
mod strategies;
mod strong;
mod table;
mod watch;
mod white_box;
mod workspace;

use clap::{Parser, Subcommand};
use isolde_history::format;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Isolde, and other checkers beside it.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure everything and write the table
    Table(table::Arguments),
    /// Measure the strong levels, hold them to their bars and write the page
    Strong(strong::Arguments),
    /// Decide histories without one strategy after the other, and write what each is worth
    Strategies(strategies::Arguments),
    /// Run workloads on a private `PostgreSQL` and write how they compare
    Runs(runs::Arguments),
    /// Verify streams and a private `PostgreSQL` while they run, and write how fast that goes
    Watch(watch::Arguments),
    /// Measure what orders and snapshots that a database tells are worth, and write the page
    WhiteBox(white_box::Arguments),
    /// Read one history and do nothing with it; what `table` measures reading by
    Read {
        /// The history
        file: PathBuf,
    },
    /// Hold memory and give it back as another process takes it, so that the machine has it ready
    Hold {
        /// How much that process will take
        mebibytes: usize,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Table(arguments) => table::run(&arguments),
        Command::Strong(arguments) => strong::run(&arguments),
        Command::Strategies(arguments) => strategies::run(&arguments),
        Command::Runs(arguments) => runs::run(&arguments),
        Command::Watch(arguments) => watch::run(&arguments),
        Command::WhiteBox(arguments) => white_box::run(&arguments),
        Command::Read { file } => read(&file),
        Command::Hold { mebibytes } => memory::hold(mebibytes),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&format!("isolde-bench: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn read(file: &Path) -> Result<(), String> {
    let input = format::open(file).map_err(|error| error.to_string())?;
    let history = format::read_detected(input, format::ReadOptions::default());
    let (history, _) = history.map_err(|error| error.to_string())?;
    // Giving the memory back is no part of reading.
    std::mem::forget(history);
    Ok(())
}

/// Tells the user how it goes, on standard error.
fn say(text: &str) {
    // If standard error is closed nobody is left to tell.
    let _ = writeln!(std::io::stderr(), "{text}");
}

//! The command line: `isolde COMMAND`.
//!
//! Results go to standard output, everything else to standard error. The exit
//! status is the answer: see [`exit`].

mod address;
mod advise;
mod archive;
mod bundle;
mod certificate;
mod check;
mod clean;
mod completions;
mod convert;
mod decision;
mod demo;
mod edn;
mod elle;
mod exit;
mod explain;
mod formats;
mod generate;
mod heap;
mod http;
mod input;
mod interruption;
mod job;
mod limits;
mod lint;
mod man;
mod matrix;
mod output;
mod partial_result;
mod progress;
mod proxy;
mod recorded;
mod recover;
mod report;
mod reports;
mod run;
mod run_metadata;
mod serve;
mod shrink;
mod stats;
mod status_line;
mod subject;
mod suggestion;
mod terminal;
mod verify;
mod watch;
mod without;
mod workload;

use clap::{Parser, Subcommand};
use exit::Status;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// What `--version` says; `-V` has the version alone.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("ISOLDE_COMMIT"),
    "\nfeatures: ",
    env!("ISOLDE_FEATURES"),
    "\ntarget: ",
    env!("ISOLDE_TARGET"),
);

/// Tells which isolation levels a database really gave its clients.
#[derive(Parser)]
#[command(name = "isolde", version, long_version = LONG_VERSION, max_term_width = 100, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[arg(
        long = "color",
        global = true,
        value_name = "WHEN",
        help = "When to use colour: auto \
        (on a terminal, unless NO_COLOR is set), always or never"
    )]
    #[arg(value_enum, default_value_t, hide_default_value = true, hide_possible_values = true)]
    colour: terminal::Colour,
}

#[derive(Subcommand)]
enum Command {
    /// Watch a simulated bank lose money, and see why: a first look, without a database
    Demo(demo::Arguments),
    /// Drive a database, record what its clients see, and check what it promises
    Run(Box<run::Arguments>),
    /// Verify a database while it runs: one that is driven, or one of which others send traces
    Watch(Box<watch::Arguments>),
    /// Pass an application's connections on to its database, record them, and check them
    Proxy(Box<proxy::Arguments>),
    /// Tell what is wrong with a recording, by the statements of its application
    Advise(advise::Arguments),
    /// Tell which anomalies each isolation setting of a database prevents
    Matrix(matrix::Arguments),
    /// Ask a database for the order of versions of a history that was recorded before
    Recover(recover::Arguments),
    /// List what killed runs have left in a database, and remove it
    Clean(clean::Arguments),
    /// Decide the isolation levels of recorded histories
    Check(check::Arguments),
    /// Tell why levels are violated, as arguments with everything they follow from
    Explain(explain::Arguments),
    /// Write the smallest part of a history that still violates a level
    Shrink(shrink::Arguments),
    /// Show a run, a history, a report or a bundle as one HTML file
    Report(report::Arguments),
    /// Browse finished runs
    Serve(serve::Arguments),
    /// Pack everything about a run or a history into one archive
    Bundle(bundle::Arguments),
    /// Check the proofs of a certificate against its history
    Verify(verify::Arguments),
    /// Look for mistakes of the recording, before the database is accused
    Lint(lint::Arguments),
    /// Tell what is in a history
    Stats(stats::Arguments),
    /// Answer as elle-cli does: `true`, `false` or `unknown` for each file
    Elle(elle::Arguments),
    /// Write a history in another format
    Convert(convert::Arguments),
    /// Generate a history without a database
    Gen(generate::Arguments),
    /// List the formats that are read and written
    Formats(formats::Arguments),
    /// Print what a shell completes after `isolde`
    Completions(completions::Arguments),
    /// Print a manual page, or write all of them
    Man(man::Arguments),
}

const WHAT_TO_TYPE: &str = "\
isolde tells which isolation levels a database really gave its clients.

  isolde demo                         a first look: a bug, found and explained, in a second
  isolde run                          drive a database (SQLite, if no other is named) and check it
  isolde watch                        drive it and verify it while it runs
  isolde proxy URL --record DIR       record an application as it is, and check it
  isolde advise DIR                   which of its statements go wrong together
  isolde matrix                       which anomalies each isolation setting of it prevents
  isolde recover URL FILE             ask a database for the order of a history's versions
  isolde clean URL                    remove what killed runs have left in a database
  isolde check FILE                   decide every level of a recorded history
  isolde check FILE --level causal    fail (exit 1) unless this level holds
  isolde explain FILE                 why levels are violated, step by step
  isolde shrink FILE -o SMALL         the smallest part that is violated still
  isolde report FILE                  the same as a page: graph, timeline, plots
  isolde serve                        browse finished runs
  isolde bundle RUN                   everything about a run in one archive
  isolde verify CERTIFICATE FILE      check the proofs that `check --certificate` wrote
  isolde lint FILE                    is it the database, or the recording?
  isolde stats FILE                   what is in it
  isolde elle -m list-append FILE     answer as elle-cli does
  isolde convert FILE --to plume      write it for another checker
  isolde gen -o FILE                  a history without a database
  isolde formats                      formats that are read and written

`isolde help` lists all commands, `isolde COMMAND --help` their options.
";

fn main() -> ExitCode {
    heap::return_large_arrays();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are answers, everything else is bad usage.
            let status = if error.use_stderr() { Status::BadInput } else { Status::Satisfied };
            // Nobody saw the answer if it could not be printed.
            let printed = error.print().and_then(|()| std::io::stdout().flush());
            return match printed {
                Err(error) if error.kind() != ErrorKind::BrokenPipe => Status::BadInput.into(),
                _ => status.into(),
            };
        }
    };
    terminal::ask(arguments.colour);
    // Others go on for long, and what they do not use belongs to the databases beside them.
    if let Some(Command::Check(_) | Command::Verify(_) | Command::Elle(_)) = arguments.command {
        heap::kept::keep();
    }
    let result = match arguments.command {
        None => out(WHAT_TO_TYPE).map(|()| Status::Satisfied),
        Some(Command::Demo(arguments)) => demo::run(&arguments),
        Some(Command::Matrix(arguments)) => matrix::run(&arguments),
        Some(Command::Run(arguments)) => run::run(&arguments),
        Some(Command::Proxy(arguments)) => proxy::run(&arguments),
        Some(Command::Advise(arguments)) => advise::run(&arguments),
        Some(Command::Recover(arguments)) => recover::run(&arguments),
        Some(Command::Clean(arguments)) => clean::run(&arguments),
        Some(Command::Watch(arguments)) => watch::run(&arguments),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Report(arguments)) => report::run(&arguments),
        Some(Command::Serve(arguments)) => serve::run(&arguments),
        Some(Command::Bundle(arguments)) => bundle::run(&arguments),
        Some(Command::Explain(arguments)) => explain::run(&arguments),
        Some(Command::Shrink(arguments)) => shrink::run(&arguments),
        Some(Command::Verify(arguments)) => verify::run(&arguments),
        Some(Command::Lint(arguments)) => lint::run(&arguments),
        Some(Command::Stats(arguments)) => stats::run(&arguments),
        Some(Command::Elle(arguments)) => elle::run(&arguments),
        Some(Command::Convert(arguments)) => convert::run(&arguments),
        Some(Command::Gen(arguments)) => generate::run(&arguments),
        Some(Command::Formats(arguments)) => formats::run(&arguments),
        Some(Command::Completions(arguments)) => completions::run(&arguments),
        Some(Command::Man(arguments)) => man::run(&arguments),
    };
    match result {
        Ok(status) => status.into(),
        // Whoever read our output has seen enough of it.
        Err(failure) if failure.is_broken_pipe() => Status::Satisfied.into(),
        Err(failure) => {
            say(&format!("isolde: {failure}"));
            failure.status().into()
        }
    }
}

/// Writes a result to standard output. A reader that has seen enough and closed the
/// pipe does not change the answer, and so not the exit status.
fn out(text: &str) -> Result<(), exit::Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Tells the user something beside the result, on standard error. Names of files and
/// words of programs are in it, which may contain commands to a terminal.
fn say(text: &str) {
    let text = isolde_report::visible(text);
    status_line::above(|| {
        // If standard error is closed nobody is left to tell.
        let _ = writeln!(std::io::stderr(), "{text}");
    });
}

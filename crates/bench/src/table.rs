//! `isolde-bench table`: generates the histories, measures, writes the table.

use crate::measure::{Program, Usage, counted};
use crate::peers::{AWDIT, AWDIT_TRANSACTIONS, Awdit};
use crate::workspace::{Folder, built, in_tree, line, megabytes, target, written};
use crate::{benches, machine, say};
use std::path::{Path, PathBuf};

/// Options of `isolde-bench table`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Transactions of the register history
    #[arg(long, value_name = "NUMBER", default_value_t = AWDIT_TRANSACTIONS)]
    transactions: u32,
    /// Transactions of the list history; the default makes about 100 MB of EDN
    #[arg(long, value_name = "NUMBER", default_value_t = 133_000)]
    list_transactions: u32,
    /// Runs of each program; the best counts
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    runs: u32,
    /// The program to measure [default: the release build of this tree]
    #[arg(long, value_name = "PATH")]
    isolde: Option<PathBuf>,
    /// AWDIT's program, to be measured beside it [default: its known figures]
    #[arg(long, value_name = "PATH")]
    awdit: Option<PathBuf>,
    /// Run the bench of the stages too
    #[arg(long)]
    stages: bool,
    /// Count the instructions of the stages too, where valgrind is
    #[arg(long)]
    instructions: bool,
    /// Where to put the histories [default: a temporary directory, removed at the end]
    #[arg(long, value_name = "DIRECTORY")]
    histories: Option<PathBuf>,
    /// Where to write the table
    #[arg(long, short, value_name = "FILE", default_value_os_t = default_output())]
    output: PathBuf,
}

fn default_output() -> PathBuf {
    in_tree("docs/benchmarks.md")
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let isolde = arguments.isolde.clone().map_or_else(built, Ok)?;
    let folder = Folder::new(arguments.histories.as_deref())?;
    written(&arguments.output, &measured(arguments, &isolde, folder.path())?)
}

/// The histories on disk.
struct Files {
    plume: PathBuf,
    binary: PathBuf,
    edn: PathBuf,
}

fn measured(arguments: &Arguments, isolde: &Path, folder: &Path) -> Result<String, String> {
    let load = machine::load();
    let files = generated(arguments, isolde, folder)?;
    let mut text = String::from("# Benchmarks\n\n");
    line(&mut text, &format!("Written by `{}`; do not edit.\n", command(arguments)));
    let machine = machine::describe();
    line(&mut text, &format!("Machine: {machine}; load before the first run: {load}."));
    line(
        &mut text,
        &format!(
            "The least of {}, each figure for itself, as processes, reading the file included.\n",
            counted(arguments.runs)
        ),
    );
    checks(&mut text, arguments, isolde, &files)?;
    reading(&mut text, arguments, &files)?;
    if arguments.stages {
        say("measuring the stages");
        let figures = benches::stages(&target()?)?;
        line(&mut text, "## Stages\n");
        line(&mut text, "Mean wall clock of one stage, 100,000 transactions (25,000 for EDN).\n");
        line(&mut text, "| stage | ms |\n|---|---:|");
        for (name, seconds) in figures {
            line(&mut text, &format!("| {name} | {:.1} |", seconds * 1e3));
        }
        line(&mut text, "");
    }
    if arguments.instructions
        && let Some(figures) = benches::instructions()?
    {
        line(&mut text, "## Instructions\n");
        line(&mut text, "Instructions of one stage under valgrind, 5,000 transactions.\n");
        line(&mut text, "| stage | million |\n|---|---:|");
        for (name, count) in figures {
            line(&mut text, &format!("| {name} | {:.1} |", count / 1e6));
        }
        line(&mut text, "");
    }
    Ok(format!("{}\n", text.trim_end()))
}

/// What to type for the same table.
fn command(arguments: &Arguments) -> String {
    let mut command = String::from("cargo run --release -p isolde-bench -- table");
    for (given, flag) in
        [(arguments.stages, " --stages"), (arguments.instructions, " --instructions")]
    {
        if given {
            command.push_str(flag);
        }
    }
    command
}

fn generated(arguments: &Arguments, isolde: &Path, folder: &Path) -> Result<Files, String> {
    let files = Files {
        plume: folder.join("weak.txt"),
        binary: folder.join("weak.isolde"),
        edn: folder.join("list-append.edn"),
    };
    let registers = arguments.transactions.to_string();
    let lists = arguments.list_transactions.to_string();
    let wanted = [
        ("weak", &registers, "plume", &files.plume),
        ("weak", &registers, "binary", &files.binary),
        ("list-append", &lists, "jepsen-edn", &files.edn),
    ];
    for (preset, transactions, format, path) in wanted {
        say(&format!("generating {preset} as {format}"));
        let options =
            ["gen", "--preset", preset, "--transactions", transactions, "--to", format, "--output"];
        let mut program = Program::new(isolde, options);
        program.arguments.push(path.into());
        program.run()?;
    }
    Ok(files)
}

/// The weak levels, one at a time and together, beside AWDIT.
fn checks(
    text: &mut String,
    arguments: &Arguments,
    isolde: &Path,
    files: &Files,
) -> Result<(), String> {
    let levels = AWDIT.map(|row| row.level);
    let check = |file: &Path, levels: &[&str]| {
        say(&format!("checking {} of {}", levels.join(", "), file.display()));
        let mut program = Program::new(isolde, ["check"]);
        for level in levels {
            program.arguments.extend(["--level".into(), level.into()]);
        }
        program.arguments.push(file.into());
        program.best_of(arguments.runs)
    };
    line(text, "## Checking\n");
    line(
        text,
        &format!(
            "{} transactions in 50 sessions, 8 operations each, half of them reads, 100,000 keys \
             (preset `weak`), from the PolySI text file ({:.0} MB).\n",
            arguments.transactions,
            megabytes(&files.plume)
        ),
    );
    line(text, awdit_note(arguments));
    line(text, "| check | CPU s | wall s | peak MiB | AWDIT CPU s | ratio | AWDIT MiB | ratio |");
    line(text, "|---|---:|---:|---:|---:|---:|---:|---:|");
    for row in &AWDIT {
        let ours = check(&files.plume, &[row.level])?;
        let theirs = awdit(arguments, row, &files.plume)?;
        line(text, &format!("| {} {}", row.level, compared(ours, theirs)));
    }
    let together = check(&files.plume, &levels)?;
    line(text, &format!("| all three in one run {}", compared(together, None)));
    let lattice = check(&files.plume, &[])?;
    line(text, &format!("| every level in one run {}", compared(lattice, None)));
    let binary = check(&files.binary, &levels)?;
    let note = format!("all three, from the binary format ({:.0} MB)", megabytes(&files.binary));
    line(text, &format!("| {note} {}\n", compared(binary, None)));
    Ok(())
}

fn awdit_note(arguments: &Arguments) -> &'static str {
    if arguments.awdit.is_some() {
        "AWDIT was run on the same file.\n"
    } else if arguments.transactions == AWDIT_TRANSACTIONS {
        "AWDIT's figures are known ones, of a history with the same parameters on a machine of \
         two cores; `--awdit PATH` measures it anew.\n"
    } else {
        "AWDIT's known figures are of a million transactions and are left out.\n"
    }
}

/// CPU seconds and MiB of AWDIT: measured, known, or neither.
fn awdit(arguments: &Arguments, row: &Awdit, file: &Path) -> Result<Option<(f64, f64)>, String> {
    let Some(path) = &arguments.awdit else {
        let known = arguments.transactions == AWDIT_TRANSACTIONS;
        return Ok(known.then_some((row.cpu, row.peak)));
    };
    say(&format!("AWDIT: checking {}", row.level));
    let mut program = Program::new(path, ["check", "-i", row.level]);
    program.arguments.push(file.into());
    let usage = program.best_of(arguments.runs)?;
    Ok(Some((usage.cpu, usage.peak)))
}

/// The cells of a row after its first.
fn compared(ours: Usage, theirs: Option<(f64, f64)>) -> String {
    let mut cells = format!("| {:.2} | {:.2} | {:.0} |", ours.cpu, ours.wall, ours.peak);
    match theirs {
        Some((cpu, peak)) => {
            let (less_cpu, less_peak) = (cpu / ours.cpu, peak / ours.peak);
            let theirs = format!(" {cpu:.1} | {less_cpu:.1}× | {peak:.0} | {less_peak:.1}× |");
            cells.push_str(&theirs);
        }
        None => cells.push_str(" | | | |"),
    }
    cells
}

/// Reading alone, by this very program.
fn reading(text: &mut String, arguments: &Arguments, files: &Files) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    line(text, "## Reading\n");
    line(text, "Reading a file into memory and nothing more; MB/s are of one core.\n");
    line(
        text,
        "| file | MB | CPU s | wall s | peak MiB | MB per CPU s |\n|---|---:|---:|---:|---:|---:|",
    );
    let rows = [
        ("PolySI text, `weak`", &files.plume),
        ("binary, `weak`", &files.binary),
        ("Jepsen EDN, `list-append`", &files.edn),
    ];
    for (name, path) in rows {
        say(&format!("reading {}", path.display()));
        let mut program = Program::new(&own, ["read"]);
        program.arguments.push(path.into());
        let Usage { cpu, wall, peak } = program.best_of(arguments.runs)?;
        let (size, speed) = (megabytes(path), megabytes(path) / cpu);
        let row = format!("| {name} | {size:.0} | {cpu:.2} | {wall:.2} | {peak:.0} | {speed:.0} |");
        line(text, &row);
    }
    line(text, "");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_how_many_times_less_was_needed() {
        let ours = Usage { cpu: 2.0, wall: 1.5, peak: 250.0 };
        assert_eq!(
            compared(ours, Some((5.2, 695.0))),
            "| 2.00 | 1.50 | 250 | 5.2 | 2.6× | 695 | 2.8× |"
        );
        assert_eq!(compared(ours, None), "| 2.00 | 1.50 | 250 | | | | |");
    }
}

//! How many operations of a trace are verified in a second, and what is kept of long ones.

use super::{Bench, add, last_event};
use crate::measure::{Program, Usage};
use crate::plot::{Plot, Scale, Series};
use crate::workspace::{line, megabytes, written};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Clients of the trace.
const CLIENTS: u32 = 24;
/// What one core has to verify in a second.
const BAR: f64 = 500_000.0;
/// How much more memory ten times as many transactions may take.
const MEMORY_BAR: f64 = 1.2;
/// Transactions of the traces, in millions.
const MILLIONS: [u64; 4] = [1, 2, 5, 10];
/// What the trace is held to.
const PROFILES: [&str; 2] = ["snapshot-isolation", "postgres/serializable"];

/// What verifying a trace took.
struct Run {
    txns: u64,
    operations: u64,
    usage: Usage,
}

impl Run {
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn rate(&self) -> f64 {
        self.operations as f64 / self.usage.cpu.max(0.001)
    }

    fn cells(&self) -> String {
        let Usage { cpu, wall, peak } = self.usage;
        let (txns, operations, rate) = (self.txns, self.operations, self.rate());
        format!("{txns} | {operations} | {cpu:.1} | {wall:.1} | {rate:.0} | {peak:.0}")
    }
}

const HEAD: &str = "transactions | operations | CPU s | wall s | operations/CPU s | peak memory, \
                    MiB |";

/// From a file, by profile.
pub(super) fn speed(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    let file = bench.folder.join("trace.bin");
    let txns = bench.txns(MILLIONS[0]);
    let operations = File::create(&file)
        .and_then(|file| {
            let mut out = BufWriter::with_capacity(1 << 16, file);
            let operations = super::frames::write(&mut out, txns, CLIENTS)?;
            out.flush()?;
            Ok(operations)
        })
        .map_err(|error| format!("{}: {error}", file.display()))?;
    line(text, "\n## Speed\n");
    line(
        text,
        &format!(
            "A trace file of BlindW-RW+ with {CLIENTS} clients, {:.0} MB of binary frames, by \
             `isolde watch --from FILE --profile PROFILE`. CPU seconds are of all threads \
             together, reading included, so that operations/CPU s is what one core verifies. At \
             least {BAR:.0} have to be.\n",
            megabytes(&file)
        ),
    );
    line(text, &format!("| profile | {HEAD} bar |\n|---|---:|---:|---:|---:|---:|---:|---|"));
    for profile in PROFILES {
        let words = words(bench, profile, &file);
        let ended = Program::new(&bench.isolde, words).best_ending_in(0, bench.arguments.runs)?;
        let run = verified(bench, txns, operations, ended)?;
        let bar = if run.rate() >= BAR { "kept" } else { "missed" };
        add(text, &format!("| {profile} | {} | {bar} |", run.cells()));
    }
    std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Through a pipe, by size.
pub(super) fn growth(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "\n## Growth\n");
    line(
        text,
        &format!(
            "The same, made while it is read, through a pipe, under `{}`; each size is a process of \
             its own. CPU seconds are those of `isolde watch`. The memory of the longest may be {MEMORY_BAR} times \
             that of the shortest.\n",
            PROFILES[1]
        ),
    );
    line(text, &format!("| {HEAD}\n|---:|---:|---:|---:|---:|---:|"));
    let mut runs = Vec::new();
    for millions in MILLIONS {
        let txns = bench.txns(millions);
        let program = Program::new(&bench.isolde, words(bench, PROFILES[1], Path::new("-")));
        let mut operations = 0;
        let ended = program.fed(|out| {
            operations = super::frames::write(out, txns, CLIENTS)?;
            Ok(())
        })?;
        let run = verified(bench, txns, operations, ended)?;
        add(text, &format!("| {} |", run.cells()));
        runs.push(run);
    }
    let (first, last) = (&runs[0], &runs[runs.len() - 1]);
    let ratio = last.usage.peak / first.usage.peak;
    let slowdown = first.rate() / last.rate();
    let bar = if ratio <= MEMORY_BAR { "kept" } else { "missed" };
    line(
        text,
        &format!(
            "\nMemory of the longest: {ratio:.2} times that of the shortest (bar {bar}); CPU time for \
             each operation: {slowdown:.2} times."
        ),
    );
    let names: Vec<String> = MILLIONS.iter().map(|millions| format!("{millions} M")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut plot = Plot::new("", Scale { least: 1.0, decades: 3 }, &names);
    let figures = |of: fn(&Run) -> f64| runs.iter().map(of).collect();
    let seconds = Series { name: "CPU seconds", figures: figures(|run| run.usage.cpu) };
    let memory = Series { name: "peak memory, MiB", figures: figures(|run| run.usage.peak) };
    plot.series.extend([seconds, memory]);
    written(&bench.arguments.images.join("watch-growth.svg"), &plot.svg())?;
    line(text, "\n![CPU time and memory by transactions](images/watch-growth.svg)");
    Ok(())
}

fn words(bench: &Bench<'_>, profile: &str, file: &Path) -> Vec<String> {
    let mut words = ["watch", "--from"].map(str::to_owned).to_vec();
    words.push(file.display().to_string());
    words.extend(["--initial", "absent", "--quiet", "--profile", profile].map(str::to_owned));
    words.extend(bench.events_and_output());
    words
}

/// Holds a run to what was written: nothing may be left out, nothing accused.
fn verified(
    bench: &Bench<'_>,
    txns: u64,
    operations: u64,
    ended: crate::measure::Ended,
) -> Result<Run, String> {
    let (json, _) = last_event(&bench.events())?;
    let found = json["operations"].as_u64().unwrap_or(0);
    if ended.status != Some(0) || found != operations {
        return Err(format!(
            "expected a clean watch of {operations} operations, found status {:?} and {found}",
            ended.status
        ));
    }
    Ok(Run { txns, operations, usage: ended.usage })
}

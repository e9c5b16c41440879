//! Histories that double: time and memory at most double too.

use super::workload::{BINARY, HOT, TIMED, Workload, short};
use super::{Bench, ending, names};
use crate::benches::in_path;
use crate::measure::{Ended, Program, Usage, in_turns, median};
use crate::workspace::line;
use std::fs;

struct Series {
    title: &'static str,
    preset: &'static str,
    options: &'static [&'static str],
    keys: Keys,
    levels: &'static [&'static str],
    /// The largest history, if smaller than that of others.
    most: u32,
}

/// How many keys a history has.
enum Keys {
    OfPreset,
    Always(u32),
    /// One for so many transactions.
    OneFor(u32),
}

const SERIES: [Series; 6] = [
    Series {
        title: "read-modify-write",
        preset: "mini-transactions",
        options: &[],
        keys: Keys::OfPreset,
        levels: &["session-snapshot-isolation"],
        most: u32::MAX,
    },
    Series {
        title: "lists",
        preset: "list-append",
        options: &[],
        keys: Keys::OfPreset,
        levels: &[],
        most: u32::MAX,
    },
    Series {
        title: "timed",
        preset: "BlindW-RW",
        options: TIMED,
        keys: Keys::OneFor(5),
        levels: &["strict-serializable"],
        most: u32::MAX,
    },
    Series {
        title: "timed, always 20k keys",
        preset: "BlindW-RW",
        options: TIMED,
        keys: Keys::Always(20_000),
        levels: &["strict-serializable"],
        most: u32::MAX,
    },
    Series {
        title: "single operations",
        preset: "registers",
        options: TIMED,
        keys: Keys::OfPreset,
        levels: &["linearizable"],
        most: u32::MAX,
    },
    Series {
        title: "hot keys",
        preset: "GeneralRW",
        options: HOT,
        keys: Keys::Always(50),
        levels: &["serializable"],
        most: 500_000,
    },
];

/// Transactions of the smallest history.
const FIRST: u32 = 125_000;
/// The largest history whose instructions are counted: that takes fifty times as long.
const COUNTED_MAX: u32 = 500_000;
/// What doubling may cost, noise included.
const RATIO_MAX: f64 = 2.1;

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Growth\n");
    line(
        text,
        "Each history is twice the one above it; all are in the binary format. The first timed ones \
         have a key for five transactions, all others always the same keys. The sizes run in turns, since the speed of a machine changes \
         within minutes, and short runs several times in each, for three seconds or as long as the largest takes: a figure is the \
         median of all turns, a ratio the median of what was used in each turn compared with half the size just before. \
         Beside each run another process holds memory and gives it back as the run takes it, \
         since a virtual machine hands out memory slowly that nobody used for a while. The bar is a ratio of 2, and 5 % for noise. \
         Where seconds grow faster and instructions do not, steps to memory have become longer: the smaller \
         histories fit into the caches of the processor.\n",
    );
    let counts = bench.arguments.instructions && in_path("valgrind");
    line(
        text,
        "| series | history | level | CPU s | ratio | 10⁹ instructions | ratio | peak MiB | ratio | met |",
    );
    line(text, "|---|---|---|---:|---:|---:|---:|---:|---:|---|");
    for series in &SERIES {
        let most = series.most.min(bench.arguments.growth_max);
        let doubled = |&size: &u32| size.checked_mul(2).filter(|&it| it <= most);
        let first = Some(FIRST).filter(|&first| first <= most);
        let sizes: Vec<u32> = std::iter::successors(first, doubled).collect();
        let mut last: Option<Measured> = None;
        for (&transactions, measured) in sizes.iter().zip(measured(bench, series, &sizes, counts)?)
        {
            line(text, &row(series, transactions, last.as_ref(), &measured, bench.is_full_size()));
            last = Some(measured);
        }
    }
    line(text, "");
    Ok(())
}

/// What was measured of one history.
struct Measured {
    /// One in each turn.
    runs: Vec<Ended>,
    instructions: Option<f64>,
}

fn measured(
    bench: &Bench<'_>,
    series: &Series,
    sizes: &[u32],
    counts: bool,
) -> Result<Vec<Measured>, String> {
    let mut files = Vec::new();
    for &transactions in sizes {
        let keys = match series.keys {
            Keys::OfPreset => 0,
            Keys::Always(keys) => keys,
            Keys::OneFor(txns) => transactions / txns,
        };
        let history = Workload {
            keys,
            options: series.options,
            format: BINARY,
            ..Workload::new(series.preset, transactions)
        };
        files.push(bench.generated(&history)?);
    }
    crate::say(&format!("checking {} of these in turns", names(series.levels)));
    let programs: Vec<Program> =
        files.iter().map(|file| bench.checking(file, series.levels, &[])).collect();
    let mut all = Vec::new();
    for (runs, (program, &size)) in
        in_turns(&programs, bench.arguments.runs)?.into_iter().zip(programs.iter().zip(sizes))
    {
        let counts = counts && size <= COUNTED_MAX;
        let instructions = counts.then(|| program.instructions()).transpose()?;
        all.push(Measured { runs, instructions });
    }
    if bench.arguments.histories.is_none() {
        // The largest ones are larger than all others together.
        for file in &files {
            let _ = fs::remove_file(file);
        }
    }
    Ok(all)
}

/// The figures of runs by which sizes are compared.
const CPU: fn(&Usage) -> f64 = |usage| usage.cpu;
const PEAK: fn(&Usage) -> f64 = |usage| usage.peak;

impl Measured {
    fn median(&self, figure: fn(&Usage) -> f64) -> f64 {
        median(self.runs.iter().map(|run| figure(&run.usage)))
    }

    /// How much more of it there is than in the run of the same turn of half the size.
    fn ratio(&self, half: &Measured, figure: fn(&Usage) -> f64) -> f64 {
        let pairs = self.runs.iter().zip(&half.runs);
        median(pairs.map(|(run, half)| figure(&run.usage) / figure(&half.usage)))
    }

    /// How all ended, or else one that did not succeed.
    fn status(&self) -> Option<i32> {
        let failed = self.runs.iter().find(|run| run.status != Some(0));
        failed.map_or(Some(0), |run| run.status)
    }
}

fn row(
    series: &Series,
    transactions: u32,
    half: Option<&Measured>,
    measured: &Measured,
    is_full_size: bool,
) -> String {
    let [cpu, peak] = [CPU, PEAK].map(|figure| measured.median(figure));
    let [slower, larger] = [CPU, PEAK].map(|figure| half.map(|half| measured.ratio(half, figure)));
    let more = half.and_then(|half| Some(measured.instructions? / half.instructions?));
    let met = match (measured.status(), slower, larger) {
        (Some(0), Some(slower), Some(larger)) if is_full_size => {
            if slower.max(larger) <= RATIO_MAX { "yes" } else { "no" }
        }
        (Some(0), ..) => "",
        (other, ..) => ending(other),
    };
    let shown = |figure: Option<f64>| figure.map_or(String::new(), |it| format!("{it:.2}"));
    let (slower, larger, more) = (shown(slower), shown(larger), shown(more));
    let counted = shown(measured.instructions.map(|count| count / 1e9));
    let (title, preset, levels) = (series.title, series.preset, names(series.levels));
    let size = short(transactions);
    format!(
        "| {title} | {preset} {size} | {levels} | {cpu:.2} | {slower} | {counted} | {more} | {peak:.0} \
         | {larger} | {met} |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_compares_its_runs_with_those_before_in_the_same_turns() {
        let measured = |runs: &[(f64, f64)], instructions| {
            let ended = |&(cpu, peak): &(f64, f64)| Ended {
                usage: Usage { cpu, wall: 0.0, peak },
                status: Some(0),
            };
            Measured { runs: runs.iter().map(ended).collect(), instructions }
        };
        let lists = &SERIES[1];
        // The machine was slower for a turn.
        let first = measured(&[(1.0, 100.0), (1.5, 100.0), (1.1, 100.0)], Some(3e9));
        assert_eq!(
            row(lists, 125_000, None, &first, true),
            "| lists | list-append 125k | every level | 1.10 |  | 3.00 |  | 100 |  |  |"
        );
        let twice = measured(&[(2.05, 190.0), (3.0, 190.0), (2.31, 190.0)], Some(6.03e9));
        assert_eq!(
            row(lists, 250_000, Some(&first), &twice, true),
            "| lists | list-append 250k | every level | 2.31 | 2.05 | 6.03 | 2.01 | 190 | 1.90 | yes |"
        );
        let larger = measured(&[(2.0, 220.0), (3.0, 220.0), (2.2, 220.0)], None);
        assert_eq!(
            row(lists, 250_000, Some(&first), &larger, true),
            "| lists | list-append 250k | every level | 2.20 | 2.00 |  |  | 220 | 2.20 | no |"
        );
    }
}

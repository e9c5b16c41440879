//! Histories that double: time and memory at most double too.

use super::workload::{BINARY, TIMED, Workload, short};
use super::{Bench, ending, names};
use crate::benches::in_path;
use crate::measure::{Ended, Usage};
use crate::workspace::line;
use std::fs;

struct Series {
    title: &'static str,
    preset: &'static str,
    options: &'static [&'static str],
    keys: Keys,
    levels: &'static [&'static str],
}

/// How many keys a history has.
enum Keys {
    OfPreset,
    Always(u32),
    /// One for so many transactions.
    OneFor(u32),
}

const SERIES: [Series; 4] = [
    Series {
        title: "read-modify-write",
        preset: "mini-transactions",
        options: &[],
        keys: Keys::OfPreset,
        levels: &["session-snapshot-isolation"],
    },
    Series {
        title: "lists",
        preset: "list-append",
        options: &[],
        keys: Keys::OfPreset,
        levels: &[],
    },
    Series {
        title: "timed",
        preset: "BlindW-RW",
        options: TIMED,
        keys: Keys::OneFor(5),
        levels: &["strict-serializable"],
    },
    Series {
        title: "timed, always 20k keys",
        preset: "BlindW-RW",
        options: TIMED,
        keys: Keys::Always(20_000),
        levels: &["strict-serializable"],
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
         have a key for five transactions, all others always the same keys. Each figure is the least of equally \
         many runs. The bar is a ratio of 2, and 5 % for noise. \
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
        let mut last: Option<Measured> = None;
        let mut transactions = FIRST;
        while transactions <= bench.arguments.growth_max {
            let counts = counts && transactions <= COUNTED_MAX;
            let measured = measured(bench, series, transactions, counts)?;
            line(text, &row(series, transactions, last, measured, bench.is_full_size()));
            last = Some(measured);
            transactions *= 2;
        }
    }
    line(text, "");
    Ok(())
}

/// What was measured of one history.
#[derive(Clone, Copy)]
struct Measured {
    ended: Ended,
    instructions: Option<f64>,
}

fn measured(
    bench: &Bench<'_>,
    series: &Series,
    transactions: u32,
    counts: bool,
) -> Result<Measured, String> {
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
    let file = bench.generated(&history)?;
    crate::say(&format!("checking {} of {}", names(series.levels), file.display()));
    let program = bench.checking(&file, series.levels, &[]);
    let ended = program.best_of_as_many(0, bench.arguments.runs)?;
    let instructions = counts.then(|| program.instructions()).transpose()?;
    if bench.arguments.histories.is_none() {
        // The largest ones are larger than all others together.
        let _ = fs::remove_file(&file);
    }
    Ok(Measured { ended, instructions })
}

fn row(
    series: &Series,
    transactions: u32,
    last: Option<Measured>,
    measured: Measured,
    is_full_size: bool,
) -> String {
    let Usage { cpu, peak, .. } = measured.ended.usage;
    let slower = last.map(|last| cpu / last.ended.usage.cpu);
    let larger = last.map(|last| peak / last.ended.usage.peak);
    let more = last.and_then(|last| Some(measured.instructions? / last.instructions?));
    let met = match (measured.ended.status, slower, larger) {
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
    fn a_row_compares_itself_with_the_one_before() {
        let measured = |cpu, peak, instructions| {
            let usage = Usage { cpu, wall: 0.0, peak };
            Measured { ended: Ended { usage, status: Some(0) }, instructions }
        };
        let lists = &SERIES[1];
        let first = measured(1.0, 100.0, Some(3e9));
        assert_eq!(
            row(lists, 125_000, None, first, true),
            "| lists | list-append 125k | every level | 1.00 |  | 3.00 |  | 100 |  |  |"
        );
        assert_eq!(
            row(lists, 250_000, Some(first), measured(2.05, 190.0, Some(6.03e9)), true),
            "| lists | list-append 250k | every level | 2.05 | 2.05 | 6.03 | 2.01 | 190 | 1.90 | yes |"
        );
        assert_eq!(
            row(lists, 250_000, Some(first), measured(2.0, 220.0, None), true),
            "| lists | list-append 250k | every level | 2.00 | 2.00 |  |  | 220 | 2.20 | no |"
        );
    }
}

//! Histories that double: time and memory at most double too.

use super::workload::{BINARY, TIMED, Workload, short};
use super::{Bench, ending, names};
use crate::measure::{Ended, Usage};
use crate::workspace::line;
use std::fs;

struct Series {
    title: &'static str,
    preset: &'static str,
    options: &'static [&'static str],
    /// One key for so many transactions; the preset's keys if 0.
    txns_per_key: u32,
    levels: &'static [&'static str],
}

const SERIES: [Series; 3] = [
    Series {
        title: "read-modify-write",
        preset: "mini-transactions",
        options: &[],
        txns_per_key: 0,
        levels: &["session-snapshot-isolation"],
    },
    Series { title: "lists", preset: "list-append", options: &[], txns_per_key: 0, levels: &[] },
    Series {
        title: "timed",
        preset: "BlindW-RW",
        options: TIMED,
        txns_per_key: 5,
        levels: &["strict-serializable"],
    },
];

/// Transactions of the smallest history.
const FIRST: u32 = 125_000;
/// What doubling may cost, noise included.
const RATIO_MAX: f64 = 2.1;

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Growth\n");
    line(
        text,
        "Each history is twice the one above it; all are in the binary format. Timed ones have a key for \
         five transactions, the others always the same keys. The bar is a ratio of 2, and 5 % for noise.\n",
    );
    line(text, "| series | history | level | CPU s | ratio | peak MiB | ratio | met |");
    line(text, "|---|---|---|---:|---:|---:|---:|---|");
    for series in &SERIES {
        let mut last: Option<Usage> = None;
        let mut transactions = FIRST;
        while transactions <= bench.arguments.growth_max {
            let ended = measured(bench, series, transactions)?;
            line(text, &row(series, transactions, last, ended, bench.is_full_size()));
            last = Some(ended.usage);
            transactions *= 2;
        }
    }
    line(text, "");
    Ok(())
}

fn measured(bench: &Bench<'_>, series: &Series, transactions: u32) -> Result<Ended, String> {
    let keys = transactions.checked_div(series.txns_per_key).unwrap_or(0);
    let history = Workload {
        keys,
        options: series.options,
        format: BINARY,
        ..Workload::new(series.preset, transactions)
    };
    let file = bench.generated(&history)?;
    let ended = bench.check(&file, series.levels, 0)?;
    if bench.arguments.histories.is_none() {
        // The largest ones are larger than all others together.
        let _ = fs::remove_file(&file);
    }
    Ok(ended)
}

fn row(
    series: &Series,
    transactions: u32,
    last: Option<Usage>,
    ended: Ended,
    is_full_size: bool,
) -> String {
    let Usage { cpu, peak, .. } = ended.usage;
    let ratios = last.map(|last| (cpu / last.cpu, peak / last.peak));
    let met =
        match (ended.status, ratios) {
            (Some(0), Some((slower, larger))) if is_full_size => {
                if slower.max(larger) <= RATIO_MAX { "yes" } else { "no" }
            }
            (Some(0), _) => "",
            (other, _) => ending(other),
        };
    let (slower, larger) = ratios.map_or((String::new(), String::new()), |(slower, larger)| {
        (format!("{slower:.2}"), format!("{larger:.2}"))
    });
    let (title, preset, levels) = (series.title, series.preset, names(series.levels));
    let size = short(transactions);
    format!(
        "| {title} | {preset} {size} | {levels} | {cpu:.2} | {slower} | {peak:.0} | {larger} | {met} |"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_compares_itself_with_the_one_before() {
        let usage = |cpu, peak| Usage { cpu, wall: 0.0, peak };
        let ended = |cpu, peak| Ended { usage: usage(cpu, peak), status: Some(0) };
        let lists = &SERIES[1];
        assert_eq!(
            row(lists, 125_000, None, ended(1.0, 100.0), true),
            "| lists | list-append 125k | every level | 1.00 |  | 100 |  |  |"
        );
        assert_eq!(
            row(lists, 250_000, Some(usage(1.0, 100.0)), ended(2.05, 190.0), true),
            "| lists | list-append 250k | every level | 2.05 | 2.05 | 190 | 1.90 | yes |"
        );
        assert_eq!(
            row(lists, 250_000, Some(usage(1.0, 100.0)), ended(2.0, 220.0), true),
            "| lists | list-append 250k | every level | 2.00 | 2.00 | 220 | 2.20 | no |"
        );
    }
}

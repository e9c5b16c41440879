//! How many choices are left, as Table 3 of `PolySI` counts them.

use super::Bench;
use super::workload::Workload;
use crate::say;
use crate::workspace::{in_tree, line};
use isolde::{Check, Level, Limits, Pruned, Stage, Verdict, constraints};
use isolde_history::{History, Index, format};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const LEVEL: Level = Level::SessionSnapshotIsolation;

struct Row {
    name: &'static str,
    /// The recorded history, in the folder of data.
    recorded: Option<&'static str>,
    /// The history to generate if there is no recorded one.
    generated: Option<Workload>,
    /// Constraints and dependencies, before and after, as the paper has them.
    polysi: [&'static str; 4],
}

const ROWS: [Row; 6] = [
    Row {
        name: "TPC-C",
        recorded: None,
        // Read-only and read-modify-write transactions alone, as TPC-C has them.
        generated: Some(Workload {
            options: &["--operations", "40"],
            keys: 10_000,
            ..Workload::new("mini-transactions", 10_000)
        }),
        polysi: ["386k", "0", "3628k", "0"],
    },
    Row {
        name: "GeneralRH",
        recorded: Some("polysi/valid/25_400_8_10000_0.95_uniform/hist-00000/history.bincode"),
        generated: Some(Workload::new("GeneralRH", 10_000)),
        polysi: ["4k", "29", "39k", "77"],
    },
    Row {
        name: "RUBiS",
        recorded: Some("cobra/valid/rubis-10000"),
        generated: None,
        polysi: ["14k", "149", "171k", "839"],
    },
    Row {
        name: "C-Twitter",
        recorded: Some("cobra/valid/twitter-10000"),
        generated: None,
        polysi: ["59k", "277", "307k", "776"],
    },
    Row {
        name: "GeneralRW",
        recorded: Some("polysi/valid/25_400_8_10000_0.5_uniform/hist-00000/history.bincode"),
        generated: Some(Workload::new("GeneralRW", 10_000)),
        polysi: ["90k", "2565", "401k", "5435"],
    },
    Row {
        name: "GeneralWH",
        recorded: Some("polysi/valid/25_400_8_10000_0.3_uniform/hist-00000/history.bincode"),
        generated: Some(Workload::new("GeneralWH", 10_000)),
        polysi: ["167k", "6962", "468k", "14376"],
    },
];

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Choices\n");
    line(
        text,
        "Session snapshot isolation, counted as Table 3 of Huang et al. 2023 does, whose figures stand \
         behind ours. A constraint is two transactions that write the same key, its dependencies are \
         the edges that follow from either order; before, the initial state \
         is a writer of the keys whose initial value was read, which the paper leaves open and which \
         was chosen because it comes closest to its figures. \
         `open` are those of keys that are not one chain of read-modify-writes, `after` those that \
         saturation leaves. A check need not saturate: `asked` are the pairs that its solver looked at. \
         Recorded histories are PolySI's and Cobra's, where there are any, and need not be \
         those of the paper; the others are generated, with read-modify-writes alone in place of TPC-C.\n",
    );
    line(
        text,
        "| benchmark | history | constraints before | open | after | asked | dependencies before | after | PolySI constraints before | after | PolySI dependencies before | after |",
    );
    line(text, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let data = bench.arguments.data.clone().unwrap_or_else(|| in_tree("../shared/data"));
    for row in &ROWS {
        let recorded = row.recorded.map(|path| data.join(path)).filter(|path| path.exists());
        let (path, from) = match (recorded, row.generated) {
            (Some(path), _) => (path, "recorded".to_owned()),
            (None, Some(workload)) => (bench.generated(&workload)?, workload.title()),
            (None, None) => {
                say(&format!("skipped: no recorded history of {}", row.name));
                continue;
            }
        };
        say(&format!("counting choices of {}", path.display()));
        let counts = counted(&path)?;
        line(text, &format!("| {} | {from} {} |", row.name, cells(counts, row.polysi)));
    }
    line(text, "");
    Ok(())
}

/// Choices of a history, and pairs that the solver was asked about.
fn counted(path: &Path) -> Result<(Pruned, u64), String> {
    let input = format::open(path).map_err(|error| error.to_string())?;
    let history = format::read_detected(input, format::ReadOptions::default());
    let (history, _) = history.map_err(|error| error.to_string())?;
    let index = Index::new(&history);
    let pruned = constraints(&history, &index, LEVEL)
        .ok_or_else(|| format!("{}: expected {}, found otherwise", path.display(), LEVEL.name()))?;
    Ok((pruned, asked(&history, &index, path)?))
}

fn asked(history: &History, index: &Index, path: &Path) -> Result<u64, String> {
    let asked = AtomicU64::new(0);
    let observe = |stage| {
        if let Stage::Solved { choices, .. } = stage {
            asked.fetch_add(choices, Ordering::Relaxed);
        }
    };
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let verdict = Check::new(history, index, &limits).decide(LEVEL);
    match verdict {
        Verdict::Satisfied(_) => Ok(asked.load(Ordering::Relaxed)),
        _ => Err(format!("{}: expected {}, found otherwise", path.display(), LEVEL.name())),
    }
}

fn cells((pruned, asked): (Pruned, u64), polysi: [&str; 4]) -> String {
    let Pruned { before, open, after } = pruned;
    let [pairs_before, pairs_after, dependencies_before, dependencies_after] = polysi;
    format!(
        "| {} | {} | {} | {asked} | {} | {} | {pairs_before} | {pairs_after} | {dependencies_before} \
         | {dependencies_after}",
        before.pairs, open.pairs, after.pairs, before.dependencies, after.dependencies,
    )
}

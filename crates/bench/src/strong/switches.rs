//! What the switches of a check are worth: histories with and without each source of order that
//! matters to them.

use super::workload::{BINARY, HOT, SERIALIZABLE, TIMED, Workload};
use super::{Bench, ending};
use crate::measure::Usage;
use crate::workspace::line;

/// A source of order that is done without.
#[derive(Clone, Copy)]
struct Switch {
    source: &'static str,
    /// How a check of a level that holds ends.
    status: i32,
    /// What the answer means.
    meaning: &'static str,
}

const SAME: &str = "the same verdict";

const READ_MODIFY_WRITE: Switch = Switch { source: "read-modify-write", status: 0, meaning: SAME };
const SESSION: Switch = Switch { source: "session", status: 0, meaning: SAME };
const REAL_TIME: Switch = Switch { source: "real-time", status: 0, meaning: SAME };
/// Real time is what such a level is about.
const PART_OF_LEVEL: Switch = Switch {
    source: "real-time",
    status: 2,
    meaning: "part of the level: unknown, unless the rest refutes it",
};
const LISTS: Switch = Switch {
    source: "lists",
    status: 0,
    meaning: "another question: whether some order of versions explains the reads",
};

/// Histories, levels that hold in them, and what is done without.
const CASES: [(Workload, &str, &[Switch]); 12] = [
    (
        Workload::new("mini-transactions", 100_000),
        "session-snapshot-isolation",
        &[READ_MODIFY_WRITE],
    ),
    (Workload::new("BlindW-RW", 10_000), "session-snapshot-isolation", &[READ_MODIFY_WRITE]),
    // Few keys and many blind writes: much is left to the solver.
    (
        Workload { keys: 300, ..Workload::new("GeneralWH", 10_000) },
        "snapshot-isolation",
        &[READ_MODIFY_WRITE],
    ),
    (
        Workload { keys: 300, options: SERIALIZABLE, ..Workload::new("GeneralWH", 10_000) },
        "serializable",
        &[READ_MODIFY_WRITE],
    ),
    // Without sessions to begin with, four times as many transactions take half a minute.
    (Workload::new("GeneralRW", 5_000), "serializable", &[SESSION]),
    (Workload::new("GeneralRW", 5_000), "snapshot-isolation", &[SESSION]),
    (Workload::new("BlindW-RW", 10_000), "serializable", &[SESSION]),
    (Workload::new("BlindW-W", 10_000), "serializable", &[SESSION]),
    (
        Workload { keys: 50, options: HOT, ..Workload::new("GeneralRW", 10_000) },
        "serializable",
        &[SESSION],
    ),
    (
        Workload { options: TIMED, format: BINARY, ..Workload::new("BlindW-RW", 100_000) },
        "serializable",
        &[REAL_TIME],
    ),
    (
        Workload { options: TIMED, format: BINARY, ..Workload::new("BlindW-RW", 100_000) },
        "strict-serializable",
        &[PART_OF_LEVEL],
    ),
    (
        Workload { format: BINARY, ..Workload::new("list-append", 100_000) },
        "serializable",
        &[LISTS],
    ),
];

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Switches\n");
    line(
        text,
        "What each source of order is worth: the same check without it (`--without`). Chains of read-modify-writes \
         order versions before anything is searched; sessions and times are what a search begins with, also where they \
         are no part of the level; lists tell the order of versions, and without them any order will do. What a database \
         told (`--without given`) is measured with [white-box evidence](benchmarks-white-box.md). The ratio is that of CPU \
         seconds to those with all sources.\n",
    );
    line(
        text,
        "| history | level | without | CPU s | wall s | peak MiB | ratio | what it means | |",
    );
    line(text, "|---|---|---|---:|---:|---:|---:|---|---|");
    for (history, level, switches) in CASES {
        let usual = row(bench, (&history, level), None, text)?;
        for &switch in switches {
            row(bench, (&history, level), Some((switch, usual)), text)?;
        }
    }
    line(text, "");
    Ok(())
}

/// A row with all sources, or without one and with what it took with all; the CPU seconds.
fn row(
    bench: &Bench<'_>,
    (history, level): (&Workload, &str),
    switched: Option<(Switch, f64)>,
    text: &mut String,
) -> Result<f64, String> {
    let file = bench.generated(history)?;
    let status = switched.map_or(0, |(switch, _)| switch.status);
    let found = match switched {
        None => bench.check_with(&file, &[level], &[], status)?,
        Some((switch, _)) => {
            bench.check_with(&file, &[level], &["--without", switch.source], status)?
        }
    };
    let Usage { cpu, wall, peak } = found.usage;
    let (source, meaning, usual) = match switched {
        None => ("nothing", "", cpu),
        Some((switch, usual)) => (switch.source, switch.meaning, usual),
    };
    let ratio = cpu / usual;
    let wrong = if found.status == Some(status) { "" } else { ending(found.status) };
    let title = history.title();
    line(
        text,
        &format!(
            "| {title} | {level} | {source} | {cpu:.3} | {wall:.3} | {peak:.0} | {ratio:.2} | {meaning} | {wrong} |"
        ),
    );
    Ok(cpu)
}

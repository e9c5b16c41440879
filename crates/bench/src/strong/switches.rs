//! What the switches of a check are worth: the same history with each of them.

use super::workload::{SERIALIZABLE, Workload};
use super::{Bench, ending};
use crate::measure::Usage;
use crate::workspace::line;

/// Options of `check`; the first is what nobody has to ask for.
const SWITCHES: [&[&str]; 2] = [&[], &["--without", "read-modify-write"]];

/// Histories, levels and the status that is expected.
const CASES: [(Workload, &str, i32); 4] = [
    (Workload::new("mini-transactions", 100_000), "session-snapshot-isolation", 0),
    (Workload::new("BlindW-RW", 10_000), "session-snapshot-isolation", 0),
    // Few keys and many blind writes: much is left to the solver.
    (Workload { keys: 300, ..Workload::new("GeneralWH", 10_000) }, "snapshot-isolation", 0),
    (
        Workload { keys: 300, options: SERIALIZABLE, ..Workload::new("GeneralWH", 10_000) },
        "serializable",
        0,
    ),
];

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Switches\n");
    line(
        text,
        "What each switch of `isolde check` changes. Verdicts are the same with all of them. Chains of \
         read-modify-writes order versions before anything is searched. The ratio is that of CPU seconds to those without a switch.\n",
    );
    line(text, "| history | level | switch | CPU s | wall s | peak MiB | ratio | |");
    line(text, "|---|---|---|---:|---:|---:|---:|---|");
    for (history, level, status) in CASES {
        let file = bench.generated(&history)?;
        let mut usual: Option<f64> = None;
        for switch in SWITCHES {
            let found = bench.check_with(&file, &[level], switch, status)?;
            let Usage { cpu, wall, peak } = found.usage;
            let ratio = cpu / *usual.get_or_insert(cpu);
            let wrong = if found.status == Some(status) { "" } else { ending(found.status) };
            let switch = if switch.is_empty() { "none".into() } else { switch.join(" ") };
            line(
                text,
                &format!(
                    "| {} | {level} | {switch} | {cpu:.3} | {wall:.3} | {peak:.0} | {ratio:.2} | {wrong} |",
                    history.title()
                ),
            );
        }
    }
    line(text, "");
    Ok(())
}

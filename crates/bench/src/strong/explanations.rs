//! Explaining a fault hidden in a large history takes less time than finding it.

use super::Bench;
use super::workload::Workload;
use crate::say;
use crate::workspace::line;
use isolde::{Check, Level, Limits, Options, Verdict, explain};
use isolde_history::{History, Index, format};
use std::path::Path;
use std::time::Instant;

const LEVELS: [Level; 2] = [Level::SessionSnapshotIsolation, Level::Serializable];

const FAULTS: [&[&str]; 3] =
    [&["--anomaly", "lost-update"], &["--anomaly", "long-fork"], &["--anomaly", "g-sib"]];

const HISTORY: Workload = Workload { keys: 100_000, ..Workload::new("GeneralRW", 100_000) };

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Explaining hidden faults\n");
    line(
        text,
        "In one process, wall seconds: reading and indexing aside, deciding the level, and making the \
         smallest explanation of its violation. The bar: explaining takes less time than finding.\n",
    );
    line(
        text,
        "| history | level | fault | found in s | explained in s | transactions left | met |",
    );
    line(text, "|---|---|---|---:|---:|---:|---|");
    let title = HISTORY.title();
    for options in FAULTS {
        let file = bench.generated(&Workload { options, ..HISTORY })?;
        let history = read(&file)?;
        let index = Index::new(&history);
        for level in LEVELS {
            say(&format!("explaining {level} of {}", file.display()));
            let start = Instant::now();
            let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
            let found = start.elapsed().as_secs_f64();
            let fault = options[1];
            let Verdict::Violated(violated) = verdict else {
                line(
                    text,
                    &format!("| {title} | {level} | {fault} | {found:.3} | | | no: not found |"),
                );
                continue;
            };
            let start = Instant::now();
            let whole = (&history, &index);
            let explained = explain(whole, level, &violated, Options::default(), &Limits::NONE);
            let seconds = start.elapsed().as_secs_f64();
            let left = explained.map_or(0, |it| it.rests_on.txns(&history).len());
            let met = match seconds < found {
                _ if !bench.is_full_size() => "",
                true => "yes",
                false => "no: slower",
            };
            let figures = format!("{found:.3} | {seconds:.3} | {left}");
            line(text, &format!("| {title} | {level} | {fault} | {figures} | {met} |"));
        }
    }
    line(text, "");
    Ok(())
}

fn read(file: &Path) -> Result<History, String> {
    let options = format::ReadOptions::default();
    let input = format::open(file).map_err(|error| error.to_string())?;
    let (history, _) = format::read_detected(input, options).map_err(|error| error.to_string())?;
    Ok(history)
}

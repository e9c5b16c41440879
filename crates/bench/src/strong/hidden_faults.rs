//! Faults hidden in large histories: finding one takes no longer than finding none.

use super::workload::Workload;
use super::{Bench, ending};
use crate::measure::Usage;
use crate::workspace::line;

/// Options that add each fault.
const FAULTS: [&[&str]; 3] =
    [&["--anomaly", "lost-update"], &["--anomaly", "long-fork"], &["--anomaly", "g-sib"]];

const LEVELS: [&str; 2] = ["session-snapshot-isolation", "snapshot-isolation"];

const CLEAN: [Workload; 2] = [
    Workload::new("GeneralRW", 10_000),
    Workload { keys: 100_000, ..Workload::new("GeneralRW", 100_000) },
];

/// Differences that say nothing: such a share, or so many seconds or MiB.
const NOISE_SHARE: f64 = 1.05;
const NOISE_SECONDS: f64 = 0.005;
const NOISE_MIB: f64 = 2.0;

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Hidden faults\n");
    line(
        text,
        "The same history with a fault at its end, on keys of its own, beside the clean one. The ratio \
         is that of CPU seconds; the bar is 1, give or take 5 % or 5 ms.\n",
    );
    line(text, "| history | level | fault | CPU s | wall s | peak MiB | ratio | met |");
    line(text, "|---|---|---|---:|---:|---:|---:|---|");
    for history in CLEAN {
        let title = history.title();
        let clean_file = bench.generated(&history)?;
        for level in LEVELS {
            let clean = bench.check(&clean_file, &[level], 0)?;
            let wrong = if clean.status == Some(0) { "" } else { ending(clean.status) };
            let row = format!("| {title} | {level} | none {} 1.00 | {wrong} |", cells(clean.usage));
            line(text, &row);
            for options in FAULTS {
                let file = bench.generated(&Workload { options, ..history })?;
                let found = bench.check(&file, &[level], 1)?;
                let met = match found.status {
                    Some(1) if !bench.is_full_size() => String::new(),
                    Some(1) => met(clean.usage, found.usage).to_owned(),
                    other => format!("no: {}", ending(other)),
                };
                let ratio = found.usage.cpu / clean.usage.cpu;
                let (fault, cells) = (options[1], cells(found.usage));
                line(text, &format!("| {title} | {level} | {fault} {cells} {ratio:.2} | {met} |"));
            }
        }
    }
    line(text, "");
    Ok(())
}

fn cells(usage: Usage) -> String {
    format!("| {:.3} | {:.3} | {:.0} |", usage.cpu, usage.wall, usage.peak)
}

fn met(clean: Usage, found: Usage) -> &'static str {
    let as_fast = found.cpu <= (clean.cpu * NOISE_SHARE).max(clean.cpu + NOISE_SECONDS);
    let as_small = found.peak <= (clean.peak * NOISE_SHARE).max(clean.peak + NOISE_MIB);
    match (as_fast, as_small) {
        (true, true) => "yes",
        (true, false) => "yes, with more memory",
        (false, _) => "no: slower",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_not_slowness() {
        let usage = |cpu, peak| Usage { cpu, wall: 0.0, peak };
        assert_eq!(met(usage(0.030, 10.0), usage(0.034, 10.0)), "yes");
        assert_eq!(met(usage(0.030, 10.0), usage(0.036, 10.0)), "no: slower");
        assert_eq!(met(usage(1.0, 100.0), usage(1.04, 110.0)), "yes, with more memory");
        assert_eq!(met(usage(1.0, 100.0), usage(1.06, 100.0)), "no: slower");
    }
}

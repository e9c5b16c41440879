//! Histories with a bar: what a check may need at most.

use super::workload::{BINARY, SERIALIZABLE, TIMED, Workload};
use super::{Bench, ending, names};
use crate::measure::Usage;
use crate::peers::{
    BLINDW_SERIALIZABLE, BLINDW_SNAPSHOT, BLINDW_STRICT, Clock, GENERAL_RW_SERIALIZABLE,
    GENERAL_RW_SNAPSHOT, GENERAL_WH, LIST_APPEND, MINI_STRICT, POLYSI, Peer,
};
use crate::workspace::line;

struct Row {
    history: Workload,
    /// Every level if empty.
    levels: &'static [&'static str],
    bar: Bar,
}

/// What is allowed.
#[derive(Clone, Copy)]
enum Bar {
    /// Parts of what another checker needs: one in so many.
    Part { of: Peer, cpu: f64, peak: f64 },
    /// CPU seconds and MiB.
    Absolute { cpu: f64, peak: f64 },
}

impl Bar {
    /// Seconds and MiB.
    fn most(self) -> (f64, f64) {
        match self {
            Bar::Part { of, cpu, peak } => (of.seconds / cpu, of.peak / peak),
            Bar::Absolute { cpu, peak } => (cpu, peak),
        }
    }

    /// What of a check is compared with the bar's seconds.
    fn seconds(self, usage: Usage) -> f64 {
        match self {
            Bar::Part { of: Peer { clock: Clock::Wall, .. }, .. } => usage.wall,
            _ => usage.cpu,
        }
    }
}

const SESSION_SERIALIZABLE: &[&str] = &["session-serializable"];
const SESSION_SNAPSHOT: &[&str] = &["session-snapshot-isolation"];
const PLAIN_SERIALIZABLE: &[&str] = &["serializable"];
const PLAIN_SNAPSHOT: &[&str] = &["snapshot-isolation"];
const FROM_WEAK_TO_STRONG: &[&str] =
    &["read-committed", "causal", "snapshot-isolation", "serializable"];
const STRICT: &[&str] = &["strict-serializable"];

/// A million bytes, in MiB.
const MB: f64 = 1e6 / 1_048_576.0;

/// A workload that `VeriStrong` was measured with.
struct Ten {
    serializable: Workload,
    snapshot: Workload,
    by_serializable: Peer,
    by_snapshot: Peer,
    /// The part of the time of `VeriStrong` that is allowed with session order.
    part: f64,
}

const fn general(preset: &'static str, by_serializable: Peer, by_snapshot: Peer) -> Ten {
    let snapshot = Workload::new(preset, 10_000);
    let serializable = Workload { options: SERIALIZABLE, ..snapshot };
    Ten { serializable, snapshot, by_serializable, by_snapshot, part: 200.0 }
}

const TENS: [Ten; 4] = [
    Ten {
        // The preset is serializable.
        serializable: Workload::new("BlindW-RW", 10_000),
        snapshot: Workload::new("BlindW-RW", 10_000),
        by_serializable: BLINDW_SERIALIZABLE,
        by_snapshot: BLINDW_SNAPSHOT,
        part: 500.0,
    },
    general("GeneralRW", GENERAL_RW_SERIALIZABLE, GENERAL_RW_SNAPSHOT),
    general("GeneralWH", GENERAL_WH, GENERAL_WH),
    general("PolySI", POLYSI, POLYSI),
];

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for Ten { serializable, snapshot, by_serializable, by_snapshot, part } in TENS {
        let bar = |of| Bar::Part { of, cpu: part, peak: 20.0 };
        rows.extend([
            Row { history: serializable, levels: SESSION_SERIALIZABLE, bar: bar(by_serializable) },
            Row { history: snapshot, levels: SESSION_SNAPSHOT, bar: bar(by_snapshot) },
        ]);
    }
    for Ten { serializable, snapshot, by_serializable, by_snapshot, .. } in TENS {
        let bar = |of| Bar::Part { of, cpu: 20.0, peak: 20.0 };
        rows.extend([
            Row { history: serializable, levels: PLAIN_SERIALIZABLE, bar: bar(by_serializable) },
            Row { history: snapshot, levels: PLAIN_SNAPSHOT, bar: bar(by_snapshot) },
        ]);
    }
    rows.extend(large());
    rows
}

fn large() -> Vec<Row> {
    let blind = Workload { keys: 20_000, ..Workload::new("BlindW-RW", 100_000) };
    let mini = Workload::new("mini-transactions", 1_000_000);
    let timed = |workload| Workload { options: TIMED, format: BINARY, ..workload };
    let general = Workload {
        keys: 1_000_000,
        options: &["--sessions", "20"],
        ..Workload::new("GeneralRW", 1_000_000)
    };
    let lists = Workload::new("list-append", 1_000_000);
    let mini_bar = Bar::Part { of: MINI_STRICT, cpu: 10.0, peak: 10.0 };
    let list_bar = Bar::Part { of: LIST_APPEND, cpu: 10.0, peak: 10.0 };
    vec![
        Row {
            history: blind,
            levels: SESSION_SNAPSHOT,
            bar: Bar::Absolute { cpu: 1.0, peak: 200.0 * MB },
        },
        Row {
            history: timed(blind),
            levels: STRICT,
            bar: Bar::Part { of: BLINDW_STRICT, cpu: 4.0, peak: 4.0 },
        },
        Row { history: mini, levels: SESSION_SERIALIZABLE, bar: mini_bar },
        Row { history: mini, levels: SESSION_SNAPSHOT, bar: mini_bar },
        Row { history: timed(mini), levels: STRICT, bar: mini_bar },
        Row {
            history: general,
            levels: SESSION_SNAPSHOT,
            bar: Bar::Absolute { cpu: 30.0, peak: 4000.0 * MB },
        },
        Row { history: Workload { format: "jepsen-edn", ..lists }, levels: &[], bar: list_bar },
        Row { history: Workload { format: BINARY, ..lists }, levels: &[], bar: list_bar },
        // Values that repeat: no other checker answers.
        Row {
            history: Workload { keys: 20, ..Workload::new("few-values", 500) },
            levels: FROM_WEAK_TO_STRONG,
            bar: Bar::Absolute { cpu: 10.0, peak: 1000.0 * MB },
        },
        Row {
            history: Workload::new("few-values", 2_000),
            levels: FROM_WEAK_TO_STRONG,
            bar: Bar::Absolute { cpu: 10.0, peak: 1000.0 * MB },
        },
        Row {
            history: timed(Workload::new("registers", 100_000)),
            levels: &["linearizable"],
            bar: Bar::Absolute { cpu: 1.0, peak: 200.0 * MB },
        },
    ]
}

/// Writes the part of the page.
pub(super) fn write(bench: &Bench<'_>, text: &mut String) -> Result<(), String> {
    line(text, "## Bars\n");
    line(
        text,
        "Serializability is checked of histories generated at it, snapshot isolation of those at it or \
         above. VeriStrong was not measured for snapshot isolation of GeneralWH and PolySI; its figure \
         for serializability stands in, which was smaller wherever there are both. `met` compares \
         CPU seconds and memory with the bar; adya's seconds are known of the wall clock alone, so \
         there it is wall seconds that are compared.\n",
    );
    line(
        text,
        "| history | file | level | CPU s | wall s | peak MiB | other checker | its s | its MiB | bar s | bar MiB | met |",
    );
    line(text, "|---|---|---|---:|---:|---:|---|---:|---:|---:|---:|---|");
    for row in rows() {
        let file = bench.generated(&row.history)?;
        let ended = bench.check(&file, row.levels, 0)?;
        let Usage { cpu, wall, peak } = ended.usage;
        let (title, format) = (row.history.title(), row.history.format);
        let levels = names(row.levels);
        let measured =
            format!("| {title} | {format} | {levels} | {cpu:.3} | {wall:.3} | {peak:.0} |");
        let met = match ended.status {
            Some(0) => met(row.bar, ended.usage).to_owned(),
            other => format!("no: {}", ending(other)),
        };
        let met = if bench.is_full_size() || ended.status != Some(0) { &met } else { "" };
        line(text, &format!("{measured}{} {met} |", allowed(row.bar)));
    }
    line(text, "");
    Ok(())
}

/// The cells of the other checker and the bar.
fn allowed(bar: Bar) -> String {
    let (seconds, peak) = bar.most();
    let other = match bar {
        Bar::Part { of, .. } => format!(" {} | {} | {:.0} |", of.name, of.seconds, of.peak),
        Bar::Absolute { .. } => " | | |".into(),
    };
    format!("{other} {seconds:.3} | {peak:.0} |")
}

fn met(bar: Bar, usage: Usage) -> &'static str {
    let (seconds, peak) = bar.most();
    match (bar.seconds(usage) <= seconds, usage.peak <= peak) {
        (true, true) => "yes",
        (false, true) => "no: time",
        (true, false) => "no: memory",
        (false, false) => "no: time and memory",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_part_of_what_another_needs() {
        let bar = Bar::Part { of: BLINDW_SNAPSHOT, cpu: 500.0, peak: 20.0 };
        assert_eq!(allowed(bar), " VeriStrong SI | 42.7 | 1686 | 0.085 | 84 |");
        let usage = |cpu, peak| Usage { cpu, wall: 0.0, peak };
        assert_eq!(met(bar, usage(0.085, 84.0)), "yes");
        assert_eq!(met(bar, usage(0.086, 84.0)), "no: time");
        assert_eq!(met(bar, usage(0.085, 85.0)), "no: memory");
        assert_eq!(met(bar, usage(0.086, 85.0)), "no: time and memory");
        let of = Peer { clock: Clock::Wall, ..BLINDW_SNAPSHOT };
        let bar = Bar::Part { of, cpu: 500.0, peak: 20.0 };
        assert_eq!(met(bar, Usage { cpu: 0.086, wall: 0.085, peak: 84.0 }), "yes");
    }

    #[test]
    fn an_absolute_bar_names_nobody() {
        assert_eq!(allowed(Bar::Absolute { cpu: 1.0, peak: 200.0 * MB }), " | | | 1.000 | 191 |");
    }
}

//! The figures of a history as text for a terminal.

use crate::stats::{Share, Spread, Stats};
use std::fmt::Write;

/// The figures as text: one line each, what does not apply left out.
pub fn stats_to_text(stats: &Stats) -> String {
    let size = &stats.history;
    let mut rows: Vec<(&str, String)> = vec![
        ("sessions", size.sessions.to_string()),
        (
            "transactions",
            format!(
                "{} ({} committed, {} aborted, {} unknown)",
                size.transactions, size.committed, size.aborted, size.unknown
            ),
        ),
        ("operations", operations(stats)),
        ("keys", size.keys.to_string()),
        ("reads from", reads(stats)),
    ];
    let mut spread = |name, spread: Option<Spread>| {
        if let Some(Spread { min, median, max }) = spread {
            rows.push((name, format!("{min} to {max}, median {median}")));
        }
    };
    spread("writes per key", stats.writes_per_key);
    spread("operations per transaction", stats.transaction_length);
    spread("elements per list read", stats.list_length);
    rows.push(("read-modify-write", share(stats.read_modify_write)));
    rows.push(("times", times(stats)));
    if !stats.endpoints.is_empty() {
        let named: Vec<String> = stats
            .endpoints
            .iter()
            .map(|endpoint| format!("{} ({})", endpoint.endpoint, endpoint.sessions))
            .collect();
        rows.push(("endpoints (sessions)", named.join(", ")));
    }
    if stats.events > 0 {
        rows.push(("events", stats.events.to_string()));
    }
    rows.push(("memory", bytes(stats.memory_bytes)));
    let mut out = format!("{} ({})\n\n", stats.file, stats.format);
    let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
    for (name, figure) in &rows {
        line(&mut out, format_args!("  {name:width$}  {figure}"));
    }
    if !stats.remarks.is_empty() {
        line(&mut out, format_args!("\nnoticed while reading:"));
    }
    for remark in &stats.remarks {
        line(&mut out, format_args!("  {} × {}: {}", remark.count, remark.kind, remark.first));
    }
    out
}

fn operations(stats: &Stats) -> String {
    let kinds: Vec<String> =
        stats.operations.iter().map(|kind| format!("{} {}", kind.count, kind.kind)).collect();
    match kinds.len() {
        0 => stats.history.operations.to_string(),
        _ => format!("{} ({})", stats.history.operations, kinds.join(", ")),
    }
}

fn reads(stats: &Stats) -> String {
    let reads = &stats.reads;
    let parts = [
        (reads.other, "other transactions"),
        (reads.initial, "the initial state"),
        (reads.own, "the transaction itself"),
        (reads.several, "one of several writers"),
        (reads.unresolved, "no write of the history"),
    ];
    let shown: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{name} {count}"))
        .collect();
    if shown.is_empty() { "nowhere: there are no reads".into() } else { shown.join(", ") }
}

fn share(share: Share) -> String {
    let percent = match share.of {
        0 => String::new(),
        of => format!(" ({} %)", (share.count * 100 + of / 2) / of),
    };
    format!("{} of {} writes of a key by a transaction{percent}", share.count, share.of)
}

fn times(stats: &Stats) -> String {
    let Some(times) = &stats.times else { return "not recorded".into() };
    let mut text = format!("{:.3} s", times.span_seconds);
    if let Some(throughput) = times.transactions_per_second {
        let _ = write!(text, ", {throughput:.0} transactions/s");
    }
    let (median, p99) = (times.latency_median_ms, times.latency_p99_ms);
    let _ = write!(text, ", latency median {median:.3} ms, p99 {p99:.3} ms");
    if times.timed < stats.history.transactions {
        let _ = write!(text, " ({} transactions have both ends)", times.timed);
    }
    text
}

fn bytes(count: usize) -> String {
    match count {
        0..0x0010_0000 => format!("{} KiB", count.div_ceil(1 << 10)),
        _ => format!("{} MiB", count.div_ceil(1 << 20)),
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::Index;
    use isolde_history::format::parse_text;

    #[test]
    fn figures_that_do_not_apply_are_left_out() {
        let text = "A: r(x,nil) w(x,1)\nB: r(x,1) r(x,9)\nB: w(x,2) aborted";
        let history = parse_text(text).expect("a well-formed history");
        let stats = Stats::new(&history, &Index::new(&history), ("test", "text"));
        assert_eq!(
            stats_to_text(&Stats { memory_bytes: 2048, ..stats }),
            "\
test (text)

  sessions                    2
  transactions                3 (2 committed, 1 aborted, 0 unknown)
  operations                  5 (3 read, 2 write)
  keys                        1
  reads from                  other transactions 1, the initial state 1, no write of the history 1
  writes per key              2 to 2, median 2
  operations per transaction  1 to 2, median 2
  read-modify-write           1 of 1 writes of a key by a transaction (100 %)
  times                       not recorded
  memory                      2 KiB
"
        );
    }
}

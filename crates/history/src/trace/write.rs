//! Messages as lines of JSON, for files.

use super::{Kind, Row, Scalar, VERSION};
use crate::history::{Interval, NEVER};
use std::io::Write;

/// The head of a file.
pub fn head() -> String {
    format!("{{\"isolde\":\"trace {VERSION}\"}}\n")
}

/// The head of a file that merges the streams of several connections.
pub fn merged_head() -> String {
    format!("{{\"isolde\":\"trace {VERSION}\",\"merged\":true}}\n")
}

/// The head of a file whose values are versions, named by the numbers of their writers.
pub fn head_of_versions() -> String {
    format!("{{\"isolde\":\"trace {VERSION}\",\"values\":\"versions\"}}\n")
}

/// The lowest number of a transaction that was not over when the recording began.
pub fn running(number: u64) -> String {
    format!("{{\"running\":{number}}}\n")
}

/// The text of a statement, and where it stands in a program.
pub fn statement(out: &mut Vec<u8>, number: u64, sql: &str, tags: &str) {
    push(out, format_args!("{{\"statement\":{number},\"text\":"));
    text(out, sql);
    if !tags.is_empty() {
        out.extend_from_slice(b",\"tags\":");
        text(out, tags);
    }
    out.extend_from_slice(b"}\n");
}

/// Bytes after which the rows of an event go on in another line: frames say in fewer bytes
/// what lines say in more, and nobody reads lines that are too long.
const LINE_BYTES_FULL: usize = 1 << 18;

/// An event as a line, or as several if it has many rows.
pub fn event(
    out: &mut Vec<u8>,
    client: &str,
    txn: u64,
    kind: Kind,
    interval: Interval,
    rows: &[Row<'_>],
) {
    requested(out, (client, txn), kind, interval, rows, None);
}

/// The same, by the statement of this number.
pub fn requested(
    out: &mut Vec<u8>,
    (client, txn): (&str, u64),
    kind: Kind,
    interval: Interval,
    rows: &[Row<'_>],
    by: Option<u64>,
) {
    let word = Kind::ALL.iter().find(|known| known.1 == kind).expect("all are listed").0;
    let begin_event = |out: &mut Vec<u8>| begin_event(out, (client, txn), word, interval, by);
    let mut start = out.len();
    begin_event(out);
    for (place, row) in rows.iter().enumerate() {
        let is_full = out.len() - start > LINE_BYTES_FULL;
        if place > 0 && is_full {
            out.extend_from_slice(b"]}\n");
            start = out.len();
            begin_event(out);
        }
        let is_first = place == 0 || is_full;
        out.extend_from_slice(if is_first { b",\"rows\":[[" } else { b",[" });
        text(out, row.table);
        out.push(b',');
        scalar(out, row.key);
        if let Some(column) = row.column {
            out.push(b',');
            text(out, column);
        }
        out.push(b',');
        scalar(out, row.value);
        out.push(b']');
    }
    out.extend_from_slice(if rows.is_empty() { b"}\n" } else { b"]}\n" });
}

/// A request that may have written rows that are not told.
pub fn unseen(out: &mut Vec<u8>, (client, txn): (&str, u64), interval: Interval, by: Option<u64>) {
    begin_event(out, (client, txn), "unseen", interval, by);
    out.extend_from_slice(b"}\n");
}

/// Everything of an event but its rows.
fn begin_event(
    out: &mut Vec<u8>,
    (client, txn): (&str, u64),
    word: &str,
    interval: Interval,
    by: Option<u64>,
) {
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    push(out, format_args!(",\"txn\":{txn},\"{word}\":[{},", interval.invoked));
    match interval.completed {
        NEVER => out.extend_from_slice(b"null]"),
        completed => push(out, format_args!("{completed}]")),
    }
    if let Some(statement) = by {
        push(out, format_args!(",\"by\":{statement}"));
    }
}

/// The end of a client as a line.
pub fn bye(out: &mut Vec<u8>, client: &str) {
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    out.extend_from_slice(b",\"bye\":true}\n");
}

/// The end of a client of which more is missing, as a line.
pub fn broken(out: &mut Vec<u8>, client: &str) {
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    out.extend_from_slice(b",\"broken\":true}\n");
}

/// The end of all clients, as a line.
pub fn bye_of_all(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"bye\":true}\n");
}

fn push(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("memory grows");
}

fn text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a text is JSON, and memory grows");
}

fn scalar(out: &mut Vec<u8>, value: Scalar<'_>) {
    match value {
        Scalar::Absent => out.extend_from_slice(b"null"),
        Scalar::Integer(number) => push(out, format_args!("{number}")),
        Scalar::Text(value) => text(out, value),
    }
}

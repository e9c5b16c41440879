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
    let mut start = out.len();
    begin_event(out, client, txn, kind, interval);
    for (place, row) in rows.iter().enumerate() {
        let is_full = out.len() - start > LINE_BYTES_FULL;
        if place > 0 && is_full {
            out.extend_from_slice(b"]}\n");
            start = out.len();
            begin_event(out, client, txn, kind, interval);
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

/// Everything of an event but its rows.
fn begin_event(out: &mut Vec<u8>, client: &str, txn: u64, kind: Kind, interval: Interval) {
    let word = Kind::ALL.iter().find(|known| known.1 == kind).expect("all are listed").0;
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    push(out, format_args!(",\"txn\":{txn},\"{word}\":[{},", interval.invoked));
    match interval.completed {
        NEVER => out.extend_from_slice(b"null]"),
        completed => push(out, format_args!("{completed}]")),
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

//! Messages as lines of JSON, for files.

use super::{Kind, Row, Scalar, VERSION};
use isolde_history::{Interval, NEVER};
use std::io::Write;

/// The head of a file.
pub(in super::super) fn head() -> String {
    format!("{{\"isolde\":\"trace {VERSION}\"}}\n")
}

/// An event as a line.
pub(in super::super) fn event(
    out: &mut Vec<u8>,
    client: &str,
    txn: u64,
    kind: Kind,
    interval: Interval,
    rows: &[Row<'_>],
) {
    let word = Kind::ALL.iter().find(|known| known.1 == kind).expect("all are listed").0;
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    push(out, format_args!(",\"txn\":{txn},\"{word}\":[{},", interval.invoked));
    match interval.completed {
        NEVER => out.extend_from_slice(b"null]"),
        completed => push(out, format_args!("{completed}]")),
    }
    for (place, row) in rows.iter().enumerate() {
        out.extend_from_slice(if place == 0 { b",\"rows\":[[" } else { b",[" });
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

/// The end of a client as a line.
pub(in super::super) fn bye(out: &mut Vec<u8>, client: &str) {
    out.extend_from_slice(b"{\"client\":");
    text(out, client);
    out.extend_from_slice(b",\"bye\":true}\n");
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

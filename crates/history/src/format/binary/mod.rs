//! The native binary format: the columns of a history, to be loaded at once.
//!
//! Described in `docs/formats/binary.md`. It keeps everything the model has. A
//! file is framed columns in a fixed order; each is stored as it lies in memory
//! or compressed. Nothing is tolerated: every byte of a file is under a checksum
//! or compared with the one byte it may be, and what passes is still checked
//! against the invariants of the model, since a checksum only tells accidents.

mod check;
mod frame;
mod read;
mod snapshots;
mod write;

use super::{Format, Sample, Writer};
use frame::Storage;

pub(super) const FORMAT: Format = Format {
    name: "binary",
    title: "Isolde's binary format, compressed",
    detect: |sample| sample.names.is_none() && is_binary(sample.head),
    read: read::read,
    write: Some(Writer::File(|history, out| write::write(history, Storage::Compressed, out))),
};

/// The same format for reading, written so that other programs can use columns from a map of
/// the file.
pub(super) const RAW_FORMAT: Format = Format {
    name: "binary-raw",
    title: "Isolde's binary format, not compressed: larger, loads faster",
    detect: |_: &Sample<'_>| false,
    read: read::read,
    write: Some(Writer::File(|history, out| write::write(history, Storage::Raw, out))),
};

/// Whether a file that begins like this is in this format, of whatever version.
pub(super) fn is_binary(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Not ASCII, so that no text begins like it, and with a line end, so that a
/// transfer that changes line ends is noticed.
pub(super) const MAGIC: [u8; 8] = *b"\x89ISOLDE\n";
const VERSION: u32 = 3;

/// The outcome of a transaction that is in no log.
const UNLOGGED: u8 = 3;

/// Bytes of one entry of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Byte = 1,
    Word = 4,
    Long = 8,
}

/// All columns of a file, in their order.
const SCHEMA: &[(&str, Width)] = &[
    ("value.kinds", Width::Byte),
    ("value.payloads", Width::Long),
    ("value.text", Width::Byte),
    ("keys", Width::Word),
    ("initial.default", Width::Word),
    ("initial.keys", Width::Word),
    ("initial.values", Width::Word),
    ("session.labels", Width::Word),
    ("session.endpoints", Width::Word),
    ("session.origins", Width::Word),
    ("session.txns", Width::Word),
    ("txn.ops", Width::Word),
    ("txn.outcomes", Width::Byte),
    ("txn.labels", Width::Word),
    ("txn.errors", Width::Word),
    ("txn.invoked", Width::Long),
    ("txn.completed", Width::Long),
    ("txn.begun", Width::Long),
    ("txn.committing", Width::Long),
    ("timestamp.given", Width::Byte),
    ("timestamp.start", Width::Long),
    ("timestamp.start.logical", Width::Long),
    ("timestamp.commit", Width::Long),
    ("timestamp.commit.logical", Width::Long),
    ("txn.numbers", Width::Long),
    ("txn.snapshots", Width::Word),
    ("op.kinds", Width::Byte),
    ("op.keys", Width::Word),
    ("op.values", Width::Word),
    ("op.positions", Width::Word),
    ("op.invoked", Width::Long),
    ("op.completed", Width::Long),
    ("list.starts", Width::Word),
    ("list.lengths", Width::Word),
    ("list.elements", Width::Word),
    ("predicate.kinds", Width::Byte),
    ("predicate.first", Width::Long),
    ("predicate.second", Width::Long),
    ("predicate.third", Width::Long),
    ("predicate.functions", Width::Byte),
    ("predicate.results", Width::Word),
    ("predicate.rows", Width::Long),
    ("predicate.row.keys", Width::Word),
    ("predicate.row.values", Width::Word),
    ("predicate.row.matched", Width::Byte),
    ("row.ops", Width::Word),
    ("row.columns", Width::Word),
    ("row.contents", Width::Word),
    ("snapshot.below", Width::Long),
    ("snapshot.exceptions", Width::Long),
    ("snapshot.except", Width::Long),
    ("snapshot.ops", Width::Word),
    ("snapshot.places", Width::Word),
    ("version.keys", Width::Word),
    ("version.complete", Width::Byte),
    ("version.chains", Width::Long),
    ("version.values", Width::Word),
    ("version.numbered", Width::Word),
    ("version.numbers", Width::Long),
    ("serial.given", Width::Byte),
    ("serial.txns", Width::Word),
    ("event.timed", Width::Byte),
    ("event.times", Width::Long),
    ("event.positions", Width::Word),
    ("event.lengths", Width::Long),
    ("event.text", Width::Byte),
    ("remark.positions", Width::Word),
    ("remark.kind.lengths", Width::Long),
    ("remark.kind.text", Width::Byte),
    ("remark.lengths", Width::Long),
    ("remark.text", Width::Byte),
    ("position.unit", Width::Byte),
];

#[cfg(test)]
mod tests;

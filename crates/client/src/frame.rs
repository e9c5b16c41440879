//! Frames as the listener reads them: `docs/formats/trace.md`.

use crate::row::Scalar;

/// How a stream begins.
pub(crate) const HEAD: &[u8; 8] = b"ISOLDET1";

pub(crate) const HELLO: u8 = 0;
pub(crate) const NAME: u8 = 1;
pub(crate) const CLIENT: u8 = 2;
pub(crate) const BEGIN: u8 = 3;
pub(crate) const READ: u8 = 4;
pub(crate) const LOCK: u8 = 5;
pub(crate) const WRITE: u8 = 6;
pub(crate) const COMMIT: u8 = 7;
pub(crate) const ABORT: u8 = 8;
pub(crate) const LOST: u8 = 9;
pub(crate) const HEARTBEAT: u8 = 10;
pub(crate) const BYE: u8 = 11;
/// What the listener answers.
pub(crate) const TAKEN: u8 = 128;
pub(crate) const REFUSED: u8 = 129;

/// An event without its rows.
pub(crate) struct Event {
    pub(crate) kind: u8,
    pub(crate) client: u64,
    pub(crate) txn: u64,
    pub(crate) start: i64,
    pub(crate) completed: i64,
}

/// A row with numbers for names; a column is one more than its number, or 0.
pub(crate) struct NamedRow<'a> {
    pub(crate) table: u64,
    pub(crate) key: Scalar<'a>,
    pub(crate) column: u64,
    pub(crate) value: Scalar<'a>,
}

impl Event {
    pub(crate) fn write(&self, out: &mut Vec<u8>, rows: &[NamedRow<'_>]) {
        framed(out, |out| {
            out.push(self.kind);
            varint(out, self.client);
            varint(out, self.txn);
            out.extend_from_slice(&self.start.to_le_bytes());
            out.extend_from_slice(&self.completed.to_le_bytes());
            if (READ..=WRITE).contains(&self.kind) {
                varint(out, rows.len() as u64);
                for row in rows {
                    varint(out, row.table);
                    scalar(out, row.key);
                    varint(out, row.column);
                    scalar(out, row.value);
                }
            }
        });
    }
}

/// What is written becomes a frame: its length stands before it.
pub(crate) fn framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn scalar(out: &mut Vec<u8>, value: Scalar<'_>) {
    match value {
        Scalar::Absent => out.push(0),
        Scalar::Integer(number) => {
            out.push(1);
            varint(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
        }
        Scalar::Text(value) => {
            out.push(2);
            text(out, value);
        }
    }
}

//! BlindW-RW+ as frames, written as they are made: no file would be large enough.

use super::blind_write::BlindWrite;
use isolde::online::{Batch, Event, EventKind, Time};
use std::io::{self, Write};

/// Transactions that are made at a time.
const ROUND: u64 = 2000;
/// The number of the first kind of event among the kinds of frames.
const EVENTS: u8 = 3;
const TABLE: &[u8] = b"t";

/// Writes a trace of so many transactions, and returns how many operations it has.
pub(super) fn write(out: &mut dyn Write, txns: u64, clients: u32) -> io::Result<u64> {
    out.write_all(b"ISOLDET1")?;
    let mut scratch = Vec::new();
    // The first client is in the head, with no token and nanoseconds.
    frame(&mut scratch, |bytes| {
        bytes.push(0);
        text(bytes, b"client 0");
        bytes.extend_from_slice(&[0, 0]);
    });
    frame(&mut scratch, |bytes| {
        bytes.push(1);
        text(bytes, TABLE);
    });
    for client in 1..clients {
        frame(&mut scratch, |bytes| {
            bytes.push(2);
            text(bytes, format!("client {client}").as_bytes());
        });
    }
    out.write_all(&scratch)?;
    let mut store = BlindWrite::new(clients);
    let mut order: Vec<(Time, usize, usize)> = Vec::new();
    while store.txns < txns {
        scratch.clear();
        order.clear();
        store.run(ROUND, |_, batch, _| {
            for event in &batch.events {
                let start = scratch.len();
                frame(&mut scratch, |bytes| encode(bytes, event, batch));
                order.push((event.interval.invoked, start, scratch.len()));
            }
        });
        // As a proxy would see them that all clients go through.
        order.sort_unstable();
        for &(_, start, end) in &order {
            out.write_all(&scratch[start..end])?;
        }
    }
    scratch.clear();
    for client in 0..clients {
        frame(&mut scratch, |bytes| {
            bytes.push(11);
            varint(bytes, u64::from(client));
        });
    }
    out.write_all(&scratch)?;
    Ok(store.operations)
}

/// One frame with its length before it.
fn frame(out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    payload(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

fn encode(out: &mut Vec<u8>, event: &Event, batch: &Batch) {
    out.push(EVENTS + event.kind as u8);
    varint(out, u64::from(event.client.0));
    varint(out, event.txn);
    out.extend_from_slice(&event.interval.invoked.to_le_bytes());
    out.extend_from_slice(&event.interval.completed.to_le_bytes());
    if !matches!(event.kind, EventKind::Read | EventKind::LockingRead | EventKind::Write) {
        return;
    }
    let cells = batch.cells_of(event);
    varint(out, cells.len() as u64);
    for cell in cells {
        out.extend_from_slice(&[0, 1]);
        varint(out, 2 * u64::from(cell.item));
        out.push(0);
        match cell.content.as_integer() {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                varint(out, 2 * value.cast_unsigned());
            }
        }
    }
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

//! Line logs of Jepsen: `history.txt`, and the etcd logs of Porcupine's tests.
//!
//! `history.txt` has a line `process \t :type \t :f \t value [\t error]` for each
//! operation, fields in EDN. The etcd logs have the same after
//! `INFO  jepsen.util - `, with blanks for tabs in some files, and `:timed-out` in
//! place of a value; lines of other loggers stand between them and are counted,
//! not read. They test one register that starts absent, and a compare-and-set that
//! fails is an answer: the register held another value.

use super::meaning::RefusedSet;
use super::{Assembly, Batch, Record, Step};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::format::edn::Scanner;
use crate::format::form::Node;
use crate::format::{Format, Sample};
use crate::source::Source;

/// The row of the table of formats.
pub(in crate::format) const FORMAT: Format = Format {
    name: "jepsen-txt",
    title: "Jepsen's history.txt",
    detect: |sample| {
        let mut batch = Batch::default();
        sample.first_line().is_some_and(|line| {
            line.contains('\t') && record(line.as_bytes(), 1, &mut batch).is_some()
        })
    },
    read: |input, builder| {
        let source = input.file()?;
        read(source, builder, RefusedSet::Nothing, |line| Some(line))
    },
    write: None,
};

/// The row of the table of formats.
pub(in crate::format) const PORCUPINE_ETCD: Format = Format {
    name: "porcupine-etcd",
    title: "Porcupine's etcd logs",
    detect: |sample| sample.names.is_none() && is_etcd_log(sample),
    read: |input, builder| {
        let source = input.file()?;
        read(source, builder, RefusedSet::AnotherValue, after_logger)
    },
    write: None,
};

fn is_etcd_log(sample: &Sample<'_>) -> bool {
    let mut batch = Batch::default();
    let mut lines = sample.head.split(|&byte| byte == b'\n').take(100);
    lines.any(|line| after_logger(line).is_some_and(|line| record(line, 1, &mut batch).is_some()))
}

/// What stands after `INFO  jepsen.util - `.
fn after_logger(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"INFO")?;
    let rest = rest.trim_ascii_start().strip_prefix(b"jepsen.util")?;
    Some(rest.trim_ascii_start().strip_prefix(b"-")?.trim_ascii())
}

fn read(
    mut source: Source<'_>,
    builder: &mut HistoryBuilder,
    refused_set: RefusedSet,
    content: fn(&[u8]) -> Option<&[u8]>,
) -> Result<(), ReadError> {
    let name = source.name().to_owned();
    let mut left_out: u64 = 0;
    let mut assembly = Assembly::new(builder, &name, refused_set);
    let mut batch = Batch::default();
    loop {
        let number = source.line();
        let Some(line) = source.next_line()? else {
            break;
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(line) = content(line) else {
            left_out += 1;
            continue;
        };
        batch.clear();
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let found = record(line, number, &mut batch).ok_or_else(|| {
            let place = Place::Line(u64::from(number));
            ReadError::expected(&name, place, "`process :type :f value`", line)
        })?;
        batch.records.push(found);
        assembly.add(&batch)?;
    }
    assembly.finish()?;
    if left_out > 0 {
        builder.position(0);
        let text = format!("{left_out} lines of other loggers were left out");
        builder.remark("other-lines", text);
    }
    Ok(())
}

/// The record on a line; `None` if it is none.
fn record(line: &[u8], number: u32, batch: &mut Batch) -> Option<Record> {
    std::str::from_utf8(line).ok()?;
    let first_node = batch.nodes.len();
    let mut scanner = Scanner::new(line, true);
    let mut record = Record::new(number);
    record.process = scanner.leaf().ok()?;
    scanner.blank().ok()?;
    record.step = Step::named(scanner.keyword().ok()??)?;
    record.function = scanner.leaf().ok()?;
    if !matches!(record.function, Node::Keyword(_) | Node::Nil) {
        return None;
    }
    let is_failure = matches!(record.step, Step::Fail | Step::Info);
    for field in 0..2 {
        if scanner.blank().ok()?.is_none() {
            break;
        }
        let place = batch.nodes.len();
        scanner.form(&mut batch.nodes).ok()?;
        let place_in_record = Some((place - first_node) as u32);
        // The etcd logs have the reason of a failure where the value belongs.
        let is_reason = is_failure && matches!(batch.nodes[place], Node::Keyword(_));
        if field == 1 || is_reason {
            record.error = place_in_record;
        } else {
            record.value = place_in_record;
        }
    }
    if scanner.blank().ok()?.is_some() {
        return None;
    }
    batch.bytes.clear();
    batch.bytes.extend_from_slice(line);
    record.nodes = (first_node as u32, (batch.nodes.len() - first_node) as u32);
    record.bytes = (0, line.len() as u32);
    Some(record)
}

//! Traces as text: one event on a line.
//!
//! `A1 w 2-3 x=1 y=2`: client A, transaction 1, write, sent at 2, answered at 3. Kinds are
//! `b` begin, `r` read, `l` locking read, `w` write, `c` commit, `a` abort, `?` lost.
//! `_` is a row that is not there; `x.b` is column b of row x; `2-` was never answered;
//! `*%7=3` says that all rows that leave 3 when divided by 7 are listed.

use isolde_checker::online::{
    Batch, Cell, CellSpan, ClientId, Condition, Content, Event, EventKind, Finding, Interval,
    NEVER, Options, Profile, Verifier,
};
use std::fmt::Write;

/// Items that no transaction has written are not there.
pub(crate) const OPTIONS: Options =
    Options { drift: 0, unwritten: Some(Content::ABSENT), findings_max: 100 };

pub(crate) fn parse(text: &str) -> Batch {
    let mut batch = Batch::default();
    let mut items: Vec<String> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    let number_of = |names: &mut Vec<String>, name: &str| {
        let found = names.iter().position(|known| known == name);
        found.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        }) as u32
    };
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (client, txn) = words[0].split_at(1);
        let kind = match words[1] {
            "b" => EventKind::Begin,
            "r" => EventKind::Read,
            "l" => EventKind::LockingRead,
            "w" => EventKind::Write,
            "c" => EventKind::Commit,
            "a" => EventKind::Abort,
            _ => EventKind::Lost,
        };
        let (invoked, completed) = words[2].split_once('-').expect("an interval");
        let cells: Vec<Cell> = (words[3..].iter())
            .map(|word| {
                let (name, content) = word.split_once('=').expect("an item and its content");
                if let Some(modulus) = name.strip_prefix("*%") {
                    let modulus = modulus.parse().expect("a number");
                    let remainder = content.parse().expect("a number");
                    let condition = Condition::Remainder { modulus, remainder };
                    return Cell::all_of(condition).expect("few digits");
                }
                let row = name.split('.').next().expect("a row");
                let content = match content {
                    "_" => Content::ABSENT,
                    number => Content::integer(number.parse().expect("a number")),
                };
                let (item, row) = (number_of(&mut items, name), number_of(&mut rows, row));
                Cell { item, row, content }
            })
            .collect();
        let event = Event {
            client: ClientId(u32::from(client.as_bytes()[0] - b'A')),
            txn: txn.parse().expect("a number"),
            interval: Interval {
                invoked: invoked.parse().expect("a time"),
                completed: if completed.is_empty() {
                    NEVER
                } else {
                    completed.parse().expect("a time")
                },
            },
            kind,
            cells: CellSpan::NONE,
        };
        batch.push(event, &cells);
    }
    batch
}

/// Lines of an expectation, without their indentation.
pub(crate) fn lines(text: &str) -> String {
    text.lines().flat_map(|line| [line.trim(), "\n"]).collect()
}

/// The trace as it is written.
pub(crate) fn show(batch: &Batch) -> String {
    let mut text = String::new();
    for event in &batch.events {
        let kind = ["b", "r", "l", "w", "c", "a", "?"][event.kind as usize];
        let client = char::from(b'A' + event.client.0 as u8);
        let _ = write!(text, "{client}{} {kind} {}-", event.txn, event.interval.invoked);
        if event.interval.completed != NEVER {
            let _ = write!(text, "{}", event.interval.completed);
        }
        for cell in batch.cells_of(event) {
            let item = char::from(b'u' + cell.item as u8);
            let _ = match cell.content.as_integer() {
                Some(number) => write!(text, " {item}={number}"),
                None => write!(text, " {item}=_"),
            };
        }
        text.push('\n');
    }
    text
}

pub(crate) fn verify(batch: &Batch, profile: Profile) -> Vec<Finding> {
    let mut verifier = Verifier::new(profile, OPTIONS);
    verifier.take(batch, NEVER);
    verifier.finish();
    verifier.take_findings()
}

/// As [`verify`], but one event after another, so that everything is judged and given up
/// as early as it can be.
pub(crate) fn verify_stepwise(batch: &Batch, profile: Profile) -> Vec<Finding> {
    let mut verifier = Verifier::new(profile, OPTIONS);
    let mut one = Batch::default();
    for event in &batch.events {
        one.clear();
        one.push(*event, batch.cells_of(event));
        verifier.take(&one, event.interval.invoked);
    }
    verifier.finish();
    verifier.take_findings()
}

/// What is found, one line each: name, offender, then the others.
pub(crate) fn told(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let step = |client: ClientId, txn: u64, operation: u32| {
            format!("{}{txn}.{operation}", char::from(b'A' + client.0 as u8))
        };
        let offender = finding.offender;
        let _ = write!(
            text,
            "{} {}",
            finding.name.name(),
            step(offender.client, offender.txn, offender.operation)
        );
        for other in &finding.others {
            let place = step(other.client, other.txn, other.operation);
            let _ = write!(text, " {:?} {place}", other.role);
        }
        text.push('\n');
    }
    text
}

//! Read committed as Biswas and Enea define it.
//!
//! **Definition.** `other` is visible to a read if an earlier operation of the same
//! transaction read from `other` [Biswas19, Def. 2.4]; the commit order contains
//! session order. Stronger than Adya's PL-2 on registers: `T1: w(x,1) w(y,1)`,
//! `T2: r(x,1) r(y,nil)` is allowed there and not here.
//!
//! **Method.** Each transaction's reads are scanned backwards, keeping per key the
//! two nearest later writers. Of the reads of a key that follow a read from
//! `other`, only the first from a different writer matters: it is itself read
//! before the ones behind it, so they are ordered after it by the same rule. Two
//! are kept because the nearest may be `other` itself. [`AWDIT`, §3.1]

use super::{Facts, Forced, Halt, Rule};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use hashbrown::HashMap;
use isolde_history::{Candidates, KeyId, KeyMarks, Origin, ReadId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::ReadCommitted,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Final,
    broken: AnomalyKind::ObservedTransactionVanishes,
    forced,
    visible,
};

pub(super) fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    facts.by_txns(|txns, forced| {
        facts.with_seen(txns, |reader, seen| of_reader(facts, reader, seen, forced));
    })
}

/// A later read of a key.
#[derive(Clone, Copy)]
struct Later {
    writer: TxnId,
    read: ReadId,
}

/// The two nearest later reads of a key from different writers.
#[derive(Clone, Copy)]
struct Nearest {
    first: Later,
    second: Option<Later>,
}

const READS_SHORT: usize = 24;

fn of_reader(facts: &Facts<'_>, reader: TxnId, seen: &[KeyMarks], forced: &mut Vec<Forced>) {
    let range = facts.index.read_range(reader);
    if range.len() < 2 {
        return;
    }
    if range.len() > READS_SHORT {
        return of_long_reader(facts, reader, forced);
    }
    // Few reads: each pair is looked at, which needs no table. Nearly never is a key
    // read that the writer of an earlier read writes too, and marks tell that.
    let mut keys = [KeyMarks::default(); READS_SHORT];
    let keys = super::marks_of_keys(facts, range.clone(), &mut keys);
    for (place, read) in range.enumerate() {
        if keys[place + 1..].iter().any(|&key| seen[place].may_contain(key)) {
            of_earlier_read(facts, reader, ReadId(read), forced);
        }
    }
}

/// What the reads of `reader` behind `earlier` force.
fn of_earlier_read(facts: &Facts<'_>, reader: TxnId, earlier: ReadId, forced: &mut Vec<Forced>) {
    let seen = facts.index.read(earlier);
    let Origin::Txn(other) = seen.origin else { return };
    for later in earlier.0 + 1..facts.index.read_range(reader).end {
        let read = facts.index.read(ReadId(later));
        // Rows of one predicate are one operation, none earlier than the other.
        if read.origin != seen.origin
            && read.op != seen.op
            && facts.index.writes(other, read.key)
            && let Some(after) = Facts::writer(read.origin)
        {
            forced.push(Forced { before: other, after, read: ReadId(later) });
        }
    }
}

fn of_long_reader(facts: &Facts<'_>, reader: TxnId, forced: &mut Vec<Forced>) {
    let index = facts.index;
    let range = index.read_range(reader);
    // A writer's earliest read has the most reads behind it.
    let mut earliest: HashMap<TxnId, u32> = HashMap::new();
    for read in range.clone() {
        if let Origin::Txn(writer) = index.read(ReadId(read)).origin {
            earliest.entry(writer).or_insert(read);
        }
    }
    let mut nearest: HashMap<KeyId, Nearest> = HashMap::new();
    // Rows of one predicate are one operation: they become later reads together.
    let mut held: Vec<(KeyId, Later)> = Vec::new();
    let mut last_op = None;
    for position in range.rev() {
        let read = index.read(ReadId(position));
        if last_op != Some(read.op) {
            held.drain(..).for_each(|(key, later)| remember(&mut nearest, key, later));
            last_op = Some(read.op);
        }
        let Some(writer) = Facts::writer(read.origin) else { continue };
        if earliest.get(&writer) == Some(&position) {
            let mut force = |nearest: &Nearest| {
                let later = [Some(nearest.first), nearest.second];
                if let Some(later) =
                    later.into_iter().flatten().find(|later| later.writer != writer)
                {
                    let Later { writer: after, read } = later;
                    forced.push(Forced { before: writer, after, read });
                }
            };
            let written = index.written_by(writer);
            if written.len() <= nearest.len() {
                written.iter().filter_map(|key| nearest.get(key)).for_each(&mut force);
            } else {
                let both = nearest.iter().filter(|entry| written.binary_search(entry.0).is_ok());
                both.for_each(|entry| force(entry.1));
            }
        }
        held.push((read.key, Later { writer, read: ReadId(position) }));
    }
}

fn remember(nearest: &mut HashMap<KeyId, Nearest>, key: KeyId, later: Later) {
    nearest
        .entry(key)
        .and_modify(|nearest| {
            if nearest.first.writer != later.writer {
                *nearest = Nearest { first: later, second: Some(nearest.first) };
            }
        })
        .or_insert(Nearest { first: later, second: None });
}

pub(super) fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    let start = facts.index.read_range(reader).start;
    (start..forced.read.0)
        .map(|read| facts.index.read(ReadId(read)))
        .filter(|read| read.op != facts.index.read(forced.read).op)
        .find(|read| read.origin == Origin::Txn(forced.before))
        .map(|read| Edge::reads_from(forced.before, reader, read.op, read.key))
        .into_iter()
        .collect()
}

//! Evidence of a database that contradicts itself is left out, with a remark.
//!
//! An order of versions is believed because the database is: two orders of a key that
//! cannot both be true are no reason to accuse it of a dirty write, they are a mistake of
//! whoever recovered them. Numbers of transactions that two of them share are no numbers.

use crate::history::{Columns, KeyId, OpKind, PositionUnit, Remark, VersionChain};
use crate::snapshot::NO_NUMBER;
use crate::value::Value;
use hashbrown::{HashMap, HashSet};
use std::fmt::Write;

/// The kind of a remark about orders of versions that cannot all be true.
pub const CONTRADICTING_ORDERS: &str = "contradicting-orders";
/// The kind of a remark about a number that several transactions have.
pub const REPEATED_NUMBER: &str = "repeated-number";

/// One version is told to come before another.
#[derive(Clone, Copy)]
struct Step {
    from: Value,
    to: Value,
    /// The number of the chain that tells it.
    chain: usize,
}

/// Leaves out orders of versions that contradict each other; `positions` tells where each
/// chain stands, as far as that is known.
pub(super) fn leave_out_contradicting_orders(columns: &mut Columns, positions: &[u32]) {
    let suspects = suspects(&columns.orders.versions);
    if suspects.is_empty() {
        return;
    }
    let writes = writes_of(columns, &suspects);
    let mut refuted: HashSet<KeyId> = HashSet::new();
    let mut keys: Vec<KeyId> = suspects.into_iter().collect();
    keys.sort_unstable();
    for key in keys {
        let steps = steps(&columns.orders.versions, key, &writes);
        if let Some(circle) = circle(&steps) {
            refuted.insert(key);
            let remark = contradiction(columns, key, &circle, positions);
            columns.remarks.push(remark);
        }
    }
    columns.orders.versions.retain(|chain| !refuted.contains(&chain.key));
}

/// Keys with several chains, or with a value that stands twice in one.
fn suspects(chains: &[VersionChain]) -> HashSet<KeyId> {
    let (mut seen, mut suspects) = (HashSet::new(), HashSet::new());
    let mut values = HashSet::new();
    for chain in chains {
        values.clear();
        let is_new = seen.insert(chain.key);
        let mut named = chain.values.iter().filter(|&&value| value != Value::NIL);
        if !is_new || !named.all(|&value| values.insert(value)) {
            suspects.insert(chain.key);
        }
    }
    suspects
}

/// How often each value was written to these keys.
fn writes_of(columns: &Columns, keys: &HashSet<KeyId>) -> HashMap<(KeyId, Value), u32> {
    let mut counts = HashMap::new();
    let ops = columns.kinds.iter().zip(&columns.op_keys).zip(&columns.op_values);
    for ((&kind, &key), &value) in ops {
        let writes =
            matches!(kind, OpKind::Write | OpKind::Insert | OpKind::Append | OpKind::Delete);
        if writes && keys.contains(&key) {
            *counts.entry((key, value)).or_default() += 1;
        }
    }
    counts
}

/// What the chains of a key tell about versions that are one write each. A value that was
/// written twice, or a removal, may well stand in several places.
fn steps(chains: &[VersionChain], key: KeyId, writes: &HashMap<(KeyId, Value), u32>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, chain) in chains.iter().enumerate().filter(|(_, chain)| chain.key == key) {
        let is_one = |value: &Value| {
            *value != Value::NIL && writes.get(&(key, *value)).is_none_or(|&count| count <= 1)
        };
        let versions: Vec<Value> = chain.values.iter().copied().filter(is_one).collect();
        for pair in versions.windows(2) {
            steps.push(Step { from: pair[0], to: pair[1], chain: number });
        }
    }
    steps
}

/// Steps that lead back to where they began.
fn circle(steps: &[Step]) -> Option<Vec<Step>> {
    let mut next: HashMap<Value, Vec<Step>> = HashMap::new();
    for &step in steps {
        next.entry(step.from).or_default().push(step);
    }
    let mut done: HashSet<Value> = HashSet::new();
    for first in steps {
        let mut way: Vec<(Step, usize)> = Vec::new();
        let mut on_way: HashMap<Value, usize> = HashMap::new();
        let (mut at, mut turn) = (first.from, 0);
        loop {
            let step = next.get(&at).and_then(|steps| steps.get(turn));
            if let Some(step) = step.filter(|_| !done.contains(&at)) {
                on_way.insert(at, way.len());
                way.push((*step, turn));
                if let Some(&start) = on_way.get(&step.to) {
                    return Some(way[start..].iter().map(|it| it.0).collect());
                }
                (at, turn) = (step.to, 0);
                continue;
            }
            done.insert(at);
            on_way.remove(&at);
            let Some((back, last)) = way.pop() else { break };
            on_way.remove(&back.from);
            (at, turn) = (back.from, last + 1);
        }
    }
    None
}

/// Says which orders contradict each other, and where they stand.
fn contradiction(columns: &Columns, key: KeyId, circle: &[Step], positions: &[u32]) -> Remark {
    // A chain tells of any two of its versions, not of neighbours alone.
    let mut claims: Vec<Step> = Vec::new();
    for &step in circle {
        match claims.last_mut() {
            Some(last) if last.chain == step.chain && last.from != step.to => last.to = step.to,
            _ => claims.push(step),
        }
    }
    let datum = |value| columns.values.datum(value);
    let unit = match columns.unit {
        PositionUnit::Line => "line",
        PositionUnit::Record => "record",
        PositionUnit::Index => "index",
    };
    let mut text = format!(
        "the orders of {} contradict each other and are not used: ",
        datum(columns.keys[key.index()])
    );
    for (number, claim) in claims.iter().enumerate() {
        let comma = if number == 0 { "" } else { ", " };
        write!(text, "{comma}{} before {}", datum(claim.from), datum(claim.to))
            .expect("a string grows");
        if let Some(&position) = positions.get(claim.chain).filter(|&&it| it > 0) {
            write!(text, " ({unit} {position})").expect("a string grows");
        }
    }
    let position = claims.last().and_then(|claim| positions.get(claim.chain)).copied();
    Remark { kind: CONTRADICTING_ORDERS.into(), position: position.unwrap_or(0), text }
}

/// Takes the numbers of transactions that share theirs.
pub(super) fn leave_out_repeated_numbers(columns: &mut Columns) {
    let mut owners: HashMap<u64, u32> = HashMap::new();
    for &number in columns.snapshots.numbers.iter().filter(|&&number| number != NO_NUMBER) {
        *owners.entry(number).or_default() += 1;
    }
    let mut repeated: Vec<(u64, u32)> = owners.into_iter().filter(|it| it.1 > 1).collect();
    repeated.sort_unstable();
    for &(number, count) in &repeated {
        let text = format!("{count} transactions have the number {number}, which is not used");
        columns.remarks.push(Remark { kind: REPEATED_NUMBER.into(), position: 0, text });
    }
    for number in &mut columns.snapshots.numbers {
        if repeated.binary_search_by_key(number, |it| it.0).is_ok() {
            *number = NO_NUMBER;
        }
    }
}

//! Every history of registers up to a size, up to symmetry.
//!
//! Each write has a value of its own; each read sees nil or any value written to
//! its key, before or after, by others or by its own transaction. Sessions of one
//! length are interchangeable and so are the keys: of histories that differ in
//! such names only, one is enough (a few more come where sessions do the same).

use super::Size;
use std::fmt::Write;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Read,
    Write,
}

/// The key stands first, so that of two sessions the one that begins with the
/// lower key sorts first: then all histories begin with key 0, up to symmetry.
type Op = (usize, Kind);
type Txn = Vec<Op>;

/// Calls `visit` with the text of every history.
pub(crate) fn every_history(size: Size, visit: &mut dyn FnMut(&str)) {
    let txns = every_txn(size);
    for count in 1..=size.txns_max {
        for lengths in partitions(count, count) {
            let mut chosen = Vec::new();
            choose_txns(&txns, &lengths, count, &mut chosen, visit);
        }
    }
}

fn every_txn(size: Size) -> Vec<Txn> {
    let ops: Vec<Op> =
        (0..size.keys_max).flat_map(|key| [(key, Kind::Read), (key, Kind::Write)]).collect();
    let mut longest: Vec<Txn> = vec![Vec::new()];
    let mut all = Vec::new();
    for _ in 0..size.ops_max {
        longest = longest
            .iter()
            .flat_map(|txn| ops.iter().map(|&op| [txn.as_slice(), &[op]].concat()))
            .collect();
        all.extend(longest.iter().cloned());
    }
    all
}

/// Every way to write `sum` as a sum of numbers up to `largest`, largest first.
fn partitions(sum: usize, largest: usize) -> Vec<Vec<usize>> {
    if sum == 0 {
        return vec![Vec::new()];
    }
    (1..=largest.min(sum))
        .flat_map(|first| {
            let rests = partitions(sum - first, first).into_iter();
            rests.map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}

fn choose_txns(
    txns: &[Txn],
    lengths: &[usize],
    missing: usize,
    chosen: &mut Vec<Txn>,
    visit: &mut dyn FnMut(&str),
) {
    if missing == 0 {
        if is_representative(lengths, chosen) {
            choose_values(lengths, chosen, visit);
        }
        return;
    }
    for txn in txns {
        chosen.push(txn.clone());
        choose_txns(txns, lengths, missing - 1, chosen, visit);
        chosen.pop();
    }
}

fn is_representative(lengths: &[usize], txns: &[Txn]) -> bool {
    let mut rest = txns;
    let mut sessions = Vec::new();
    for &length in lengths {
        let (session, others) = rest.split_at(length);
        sessions.push(session);
        rest = others;
    }
    let in_order =
        sessions.windows(2).all(|pair| pair[0].len() != pair[1].len() || pair[0] <= pair[1]);
    in_order && txns[0][0].0 == 0
}

/// Writes get the numbers 1, 2, 3, …; every combination of what reads see is visited.
fn choose_values(lengths: &[usize], txns: &[Txn], visit: &mut dyn FnMut(&str)) {
    let ops: Vec<Op> = txns.iter().flatten().copied().collect();
    let choices: Vec<Vec<usize>> = (ops.iter().enumerate())
        .map(|(place, &(key, kind))| match kind {
            Kind::Write => vec![place + 1],
            Kind::Read => {
                let writes = (1..=ops.len()).filter(|&value| ops[value - 1] == (key, Kind::Write));
                std::iter::once(0).chain(writes).collect()
            }
        })
        .collect();
    let count: usize = choices.iter().map(Vec::len).product();
    for mut number in 0..count {
        let values: Vec<usize> = (choices.iter())
            .map(|choice| {
                let value = choice[number % choice.len()];
                number /= choice.len();
                value
            })
            .collect();
        visit(&text(lengths, txns, &values));
    }
}

fn text(lengths: &[usize], txns: &[Txn], values: &[usize]) -> String {
    let mut text = String::from("init *=0\n");
    let mut values = values.iter();
    let mut txns = txns.iter();
    for (session, &length) in lengths.iter().enumerate() {
        for txn in txns.by_ref().take(length) {
            write!(text, "{}:", ["A", "B", "C", "D"][session]).expect("a string grows");
            for (&(key, kind), value) in txn.iter().zip(values.by_ref()) {
                let letter = if kind == Kind::Read { 'r' } else { 'w' };
                let key = ["x", "y", "z"][key];
                write!(text, " {letter}({key},{value})").expect("a string grows");
            }
            text.push('\n');
        }
    }
    text
}

//! The verifier accepts some witness of a level exactly if the definition says that the
//! level holds: every order of every small history is tried.

use crate::support::{Size, every_history, history, random_history};
use isolde_certificate::{ChosenOrigin, Claim, Node, Proof, Verifier, Witness};
use isolde_checker::Level;
use isolde_checker::reference::{self, Reference};
use isolde_history::{History, KeyId, OpId, OpKind, Outcome, TxnId, Value};
use std::collections::BTreeMap;

/// Histories with more combinations of origins are left out.
const ORIGINS_MAX: usize = 128;

/// Whether a level asks for begins and commits, for one event each, or for commits.
fn shape(level: Level) -> Shape {
    match level {
        Level::Prefix
        | Level::SnapshotIsolation
        | Level::GeneralizedSnapshotIsolation
        | Level::SessionSnapshotIsolation
        | Level::PrefixConsistentSnapshotIsolation
        | Level::StrongSnapshotIsolation => Shape::BeginsAndCommits,
        Level::RepeatableRead
        | Level::Serializable
        | Level::SessionSerializable
        | Level::StrictSerializable
        | Level::Linearizable => Shape::Events,
        _ => Shape::Commits,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    BeginsAndCommits,
    Events,
    Commits,
}

/// Every order of begins and commits, or of commits alone.
fn orders(txns: &[TxnId], shape: Shape) -> Vec<Vec<Node>> {
    let mut orders: Vec<Vec<Node>> = vec![Vec::new()];
    for &txn in txns {
        let mut longer = Vec::new();
        for order in &orders {
            for at in 0..=order.len() {
                let mut with = order.clone();
                with.insert(at, Node::commit(txn));
                if shape != Shape::BeginsAndCommits {
                    longer.push(with);
                    continue;
                }
                for begin in 0..=at {
                    let mut with = with.clone();
                    with.insert(begin, Node::begin(txn));
                    longer.push(with);
                }
            }
        }
        orders = longer;
    }
    orders
}

/// Every set of transactions that a witness may be about.
fn sets_of_txns(history: &History) -> Vec<Vec<TxnId>> {
    let mut sets: Vec<Vec<TxnId>> = vec![Vec::new()];
    for txn in history.txns() {
        let without = match history.outcome(txn) {
            Outcome::Committed => Vec::new(),
            Outcome::Aborted => continue,
            Outcome::Unknown => sets.clone(),
        };
        for set in &mut sets {
            set.push(txn);
        }
        sets.extend(without);
    }
    sets
}

/// Every choice of origins for reads whose value is not written once; `None` if there
/// are too many.
fn choices_of_origins(history: &History) -> Option<Vec<Vec<ChosenOrigin>>> {
    let mut choices: Vec<Vec<ChosenOrigin>> = vec![Vec::new()];
    for op in (0..history.op_count() as u32).map(OpId) {
        let found = history.op(op);
        let reads: Vec<(KeyId, Value)> = match found.kind {
            OpKind::Read | OpKind::ReadOther => vec![(found.key, found.value)],
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                history.predicate(op).rows.iter().map(|row| (row.key, row.value)).collect()
            }
            _ => continue,
        };
        for (key, value) in reads {
            let admits = |other: Value| (found.kind == OpKind::ReadOther) != (other == value);
            let writes = (0..history.op_count() as u32).map(OpId).filter(|&write| {
                let write = history.op(write);
                write.kind.is_write() && write.key == key && admits(write.value)
            });
            let mut writers: Vec<Option<TxnId>> =
                writes.map(|write| Some(history.txn_of(write))).collect();
            writers.extend(admits(history.initial(key)).then_some(None));
            writers.dedup();
            if writers.len() < 2 {
                continue;
            }
            let chosen = choices.iter().flat_map(|choice| {
                writers.iter().map(move |&writer| {
                    [choice.as_slice(), &[ChosenOrigin { read: op, key, writer }]].concat()
                })
            });
            // A read after an own write has no origin to choose.
            choices = chosen.chain(choices.clone()).collect();
            if choices.len() > ORIGINS_MAX {
                return None;
            }
        }
    }
    Some(choices)
}

/// A claim with a witness that the verifier accepts.
fn claim_of(history: &History, level: Level, choices: &[Vec<ChosenOrigin>]) -> Option<Claim> {
    let verifier = Verifier::new(history);
    let accepts = |witness: Witness| {
        let name = level.name().to_string();
        let proof = Proof::Witness(witness);
        let claim = Claim { shown_at: name.clone(), levels: vec![name], proof };
        verifier.check(&claim).is_ok().then_some(claim)
    };
    let shape = shape(level);
    sets_of_txns(history).into_iter().find_map(|txns| {
        orders(&txns, shape).into_iter().find_map(|order| {
            if shape != Shape::Commits {
                return accepts(Witness::Events(order));
            }
            let order: Vec<TxnId> = order.iter().map(|node| node.txn()).collect();
            choices.iter().find_map(|origins| {
                accepts(Witness::Commits {
                    order: order.clone(),
                    origins: origins.clone(),
                    appends: Vec::new(),
                })
            })
        })
    })
}

/// A claim with a witness, if some order is accepted as one.
pub(crate) fn satisfied(history: &History, level: Level) -> Option<Claim> {
    let choices = choices_of_origins(history).unwrap_or_else(|| vec![Vec::new()]);
    claim_of(history, level, &choices)
}

/// Lists in which an element was appended twice: commit orders of such are not accepted.
fn repeats_elements(history: &History) -> bool {
    let mut appended = std::collections::HashSet::new();
    (0..history.op_count() as u32)
        .map(|op| history.op(OpId(op)))
        .any(|op| op.kind == OpKind::Append && !appended.insert((op.key, op.value)))
}

#[derive(Default)]
struct Compared {
    histories: usize,
    satisfied: BTreeMap<Level, usize>,
    violated: BTreeMap<Level, usize>,
}

impl Compared {
    fn compare(&mut self, text: &str) {
        let history = history(text);
        let choices = choices_of_origins(&history);
        let has_all = choices.is_some() && !repeats_elements(&history);
        let choices = choices.unwrap_or_else(|| vec![Vec::new()]);
        self.histories += 1;
        for level in Level::ALL {
            let expected = match reference::decide(&history, level) {
                Reference::Satisfied if has_all || shape(level) != Shape::Commits => true,
                Reference::Violated => false,
                _ => continue,
            };
            let seen = if expected { &mut self.satisfied } else { &mut self.violated };
            *seen.entry(level).or_default() += 1;
            let found = claim_of(&history, level, &choices).is_some();
            assert_eq!(found, expected, "{level}\n{text}");
        }
    }

    /// Levels of which not both verdicts were seen.
    fn one_sided(&self) -> Vec<Level> {
        let both =
            |level: &Level| self.satisfied.contains_key(level) && self.violated.contains_key(level);
        Level::ALL.into_iter().filter(|level| !both(level)).collect()
    }
}

#[test]
fn small_histories_have_a_witness_if_the_level_holds() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let mut compared = Compared::default();
    let mut number = 0;
    every_history(size, &mut |text| {
        number += 1;
        // Every twenty-ninth: all of them would take minutes.
        if number % 29 == 0 {
            compared.compare(text);
        }
    });
    assert_eq!(compared.histories, 80_165 / 29);
}

#[test]
fn random_histories_have_a_witness_if_the_level_holds() {
    let size = Size { txns_max: 4, ops_max: 4, keys_max: 2 };
    let mut compared = Compared::default();
    for seed in 0..800 {
        compared.compare(&random_history(seed, size));
    }
    assert_eq!(compared.one_sided(), []);
}

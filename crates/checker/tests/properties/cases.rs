//! Proofs by cases: whatever stands in the cases, a level that holds is not refuted.

use crate::support::{Size, each_seed, history, random_histories, random_history};
use isolde_certificate::{Case, Cases, Claim, Open, Proof, Refutation, Taken, Verifier};
use isolde_checker::reference::{Reference, decide_all};
use isolde_checker::{Check, Limits, decided_levels};
use isolde_history::{History, Index, OpId, OpKind, Outcome, TxnId};

/// A refutation that needs no cases, and the level that it is about.
type Leaf = (String, Refutation);

/// What is open, and every way to take it: as a case, and as a history of which it is so.
type Splits = Vec<(Open, Vec<(Taken, Option<History>)>)>;

fn leaves(shown_at: &str, refutation: &Refutation, found: &mut Vec<Leaf>) {
    if let Refutation::Cases(cases) = refutation {
        for case in &cases.cases {
            leaves(&case.shown_at, &case.refutation, found);
        }
    } else {
        let leaf = (shown_at.to_string(), refutation.clone());
        if !found.contains(&leaf) {
            found.push(leaf);
        }
    }
}

/// Everything that refutes a level of this history, or a case of one.
fn refutations(history: &History, found: &mut Vec<Leaf>) {
    let index = Index::new(history);
    let mut check = Check::new(history, &index, &Limits::NONE);
    for claim in check.certify(&decided_levels()).certificate.claims {
        if let Proof::Refutation(refutation) = &claim.proof {
            leaves(&claim.shown_at, refutation, found);
        }
    }
}

fn splits(history: &History) -> Splits {
    let mut splits: Splits = Vec::new();
    for txn in history.txns().filter(|&txn| history.outcome(txn) == Outcome::Unknown) {
        let taken = |outcome| Some(history.taken_as(&[(txn, outcome)], &[]));
        let counts = (Taken::Counts, taken(Outcome::Committed));
        let not = (Taken::CountsNot, taken(Outcome::Aborted));
        splits.push((Open::Outcome(txn), vec![counts, not]));
    }
    let ops = || (0..history.op_count() as u32).map(OpId);
    for op in ops() {
        let same: Vec<OpId> = ops().filter(|&it| history.op(it) == history.op(op)).collect();
        let kind = history.op(op).kind;
        if kind == OpKind::Append && same.len() > 1 && same[0] == op {
            let others = |taken: OpId| -> Vec<OpId> {
                same.iter().copied().filter(|&it| it != taken).collect()
            };
            let ways = same.iter().map(|&append| {
                (Taken::Append(append), Some(history.taken_as(&[], &others(append))))
            });
            splits.push((Open::Element(op), ways.collect()));
        }
        if matches!(kind, OpKind::Read | OpKind::ReadOther) {
            let key = history.op(op).key;
            splits.push((Open::Origin { read: op, key }, writers(history, op)));
        }
    }
    splits
}

/// Writers that the read of a register may have seen.
fn writers(history: &History, read: OpId) -> Vec<(Taken, Option<History>)> {
    let seen = history.op(read);
    let fits = |value| (value == seen.value) == (seen.kind == OpKind::Read);
    let writes = |txn: &TxnId| {
        let mut ops = history.ops_of(*txn).map(|op| history.op(op));
        ops.any(|op| op.kind.is_write() && op.key == seen.key && fits(op.value))
    };
    let others = history.txns().filter(|&txn| txn != history.txn_of(read));
    let mut taken: Vec<Taken> = others.filter(writes).map(|txn| Taken::Writer(Some(txn))).collect();
    if fits(history.initial(seen.key)) {
        taken.push(Taken::Writer(None));
    }
    taken.into_iter().map(|taken| (taken, None)).collect()
}

/// Every way to give each case one of the leaves, of many some.
fn fillings(open: Open, taken: &[Taken], leaves: &[Leaf]) -> Vec<Cases> {
    const FILLINGS_MAX: usize = 64;
    let count = leaves.len().saturating_pow(taken.len() as u32);
    let step = count.div_ceil(FILLINGS_MAX).max(1) | 1;
    let filling = |mut number: usize| {
        let cases = taken.iter().map(|&taken| {
            let (shown_at, refutation) = leaves[number % leaves.len()].clone();
            number /= leaves.len();
            Case { shown_at, taken, refutation }
        });
        Cases { open, cases: cases.collect() }
    };
    (0..count).step_by(step).map(filling).collect()
}

/// How many proofs by cases were accepted and refused.
fn compare(text: &str) -> (usize, usize) {
    let history = history(text);
    let verifier = Verifier::new(&history);
    let verdicts = decide_all(&history);
    let (mut accepted, mut refused) = (0, 0);
    for (open, ways) in splits(&history) {
        let mut found = Vec::new();
        refutations(&history, &mut found);
        for way in ways.iter().filter_map(|way| way.1.as_ref()) {
            refutations(way, &mut found);
        }
        let taken: Vec<Taken> = ways.iter().map(|way| way.0).collect();
        for cases in fillings(open, &taken, &found) {
            for (level, verdict) in &verdicts {
                let name = level.name().to_string();
                let proof = Proof::Refutation(Refutation::Cases(cases.clone()));
                let claim = Claim { shown_at: name.clone(), levels: vec![name], proof };
                let is_accepted = verifier.check(&claim).is_ok();
                let is_wrong = is_accepted && *verdict == Reference::Satisfied;
                assert!(!is_wrong, "{level}: {cases:?}\n{text}");
                accepted += usize::from(is_accepted);
                refused += usize::from(!is_accepted);
            }
        }
    }
    (accepted, refused)
}

#[test]
fn no_cases_refute_a_level_that_holds() {
    let size = Size { txns_max: 5, ops_max: 3, keys_max: 2 };
    let (mut accepted, mut refused) = (0, 0);
    let count = random_histories(400);
    each_seed(0..count, |seed| {
        let here = compare(&random_history(seed, size));
        accepted += here.0;
        refused += here.1;
    });
    let enough = 5 * count as usize;
    assert!(accepted > enough && refused > enough, "{accepted} accepted, {refused} refused");
}

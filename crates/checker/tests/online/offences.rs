//! Bugs of the simulated database are found at the operation that they spoil.
//!
//! Values of generated histories are unique, so whoever looks at all of the history knows which
//! reads no store without a bug would have answered so, and which two writers should not both
//! have committed. What is found is held against that.

use crate::simulated::{seeds, watch_history, with_bug};
use isolde_checker::online::{Finding, Name, Step};
use isolde_harness::{BUGS, generate};
use isolde_history::{History, KeyId, Op, OpId, OpKind, Outcome, SessionId, TxnId, Value};
use std::collections::{BTreeMap, HashMap};

/// Who wrote each value of each key.
struct Known<'a> {
    history: &'a History,
    writes: HashMap<(KeyId, Value), OpId>,
}

impl Known<'_> {
    fn of(history: &History) -> Known<'_> {
        let ops = history.txns().flat_map(|txn| history.ops_of(txn));
        let writes = ops.filter(|&op| history.op(op).kind == OpKind::Write);
        let named = writes.map(|id| {
            let Op { key, value, .. } = history.op(id);
            ((key, value), id)
        });
        Known { history, writes: named.collect() }
    }

    fn txn(&self, step: &Step) -> TxnId {
        let mut own = self.history.txns_of(SessionId(step.client.0));
        own.nth(usize::try_from(step.txn).expect("small")).expect("a transaction")
    }

    fn op(&self, step: &Step) -> Option<OpId> {
        let place = (step.operation as usize).checked_sub(1)?;
        self.history.ops_of(self.txn(step)).nth(place)
    }

    /// What a read is called that no order of commits explains, whenever they were.
    fn impossible(&self, txn: TxnId, read: OpId) -> Option<Name> {
        let Op { key, value, kind } = self.history.op(read);
        if kind != OpKind::Read {
            return None;
        }
        let own = self.history.ops_of(txn).filter(|op| op.0 < read.0);
        let mut own = own.map(|op| self.history.op(op)).filter(|op| op.key == key);
        if let Some(last) = own.rfind(|op| op.kind == OpKind::Write) {
            return (last.value != value).then_some(Name::OwnWriteMissed);
        }
        if value == self.history.initial(key) {
            return None;
        }
        let Some(&write) = self.writes.get(&(key, value)) else {
            return Some(Name::UnexplainedRead);
        };
        let writer = self.history.txn_of(write);
        if writer == txn {
            return Some(Name::FutureRead);
        }
        if self.history.outcome(writer) == Outcome::Aborted {
            return Some(Name::AbortedRead);
        }
        let later = self.history.ops_of(writer).filter(|op| op.0 > write.0);
        let mut later = later.map(|op| self.history.op(op));
        let is_replaced = later.any(|op| op.kind == OpKind::Write && op.key == key);
        is_replaced.then_some(Name::IntermediateRead)
    }

    /// Whether what was read was replaced before the reader began, whenever commits were.
    fn is_stale(&self, txn: TxnId, read: OpId) -> bool {
        let Op { key, value, .. } = self.history.op(read);
        let begun = self.history.txn_times(txn).begin.invoked;
        let written = match self.writes.get(&(key, value)) {
            Some(&write) => self.history.txn_times(self.history.txn_of(write)).commit.completed,
            None => i64::MIN,
        };
        let mut writes = self.writes.iter().filter(|(named, _)| named.0 == key);
        writes.any(|(_, &write)| {
            let writer = self.history.txn_of(write);
            let commit = self.history.txn_times(writer).commit;
            self.history.outcome(writer) == Outcome::Committed
                && commit.completed < begun
                && commit.invoked > written
        })
    }

    /// Whether two transactions were there at the same time, and both committed.
    fn are_concurrent(&self, one: TxnId, other: TxnId) -> bool {
        let [first, second] = [one, other].map(|txn| self.history.txn_times(txn));
        [one, other].iter().all(|&txn| self.history.outcome(txn) == Outcome::Committed)
            && first.begin.invoked <= second.commit.completed
            && second.begin.invoked <= first.commit.completed
    }

    /// Why a finding does not name the operation that should not have been, if so.
    fn objection(&self, finding: &Finding) -> Option<String> {
        let txn = self.txn(&finding.offender);
        let place = format!("{:?}", (finding.name, finding.offender));
        if finding.name == Name::FailedValidation || finding.name == Name::SerializationCycle {
            let is_end = self.op(&finding.offender).is_none();
            return (!is_end).then(|| format!("not the commit: {place}"));
        }
        let Some(op) = self.op(&finding.offender) else {
            return Some(format!("no such operation: {place}"));
        };
        let is_right = match finding.name {
            Name::LostUpdate => {
                let other = self.op(&finding.others[0]).expect("the other write");
                let keys = [op, other].map(|op| self.history.op(op).key);
                let kinds = [op, other].map(|op| self.history.op(op).kind);
                kinds == [OpKind::Write; 2]
                    && keys[0] == keys[1]
                    && self.are_concurrent(txn, self.history.txn_of(other))
            }
            Name::StaleRead => self.is_stale(txn, op),
            // Other reads of the transaction say where its snapshot was, or its begin does.
            Name::ReadSkew | Name::DirtyRead | Name::FutureRead => {
                self.history.op(op).kind == OpKind::Read
            }
            name => self.impossible(txn, op).is_some_and(|it| may_be_called(it, name)),
        };
        (!is_right).then(|| format!("not the offending operation: {place}"))
    }
}

/// Names under which a read that is impossible may be reported: its writer may still be open
/// when it is judged.
fn may_be_called(impossible: Name, found: Name) -> bool {
    let others: &[Name] = match impossible {
        // Its writer may have replaced it before it was refused.
        Name::AbortedRead => &[Name::DirtyRead, Name::IntermediateRead, Name::UnexplainedRead],
        // A refused transaction has not written it yet, and never will.
        Name::FutureRead => &[Name::UnexplainedRead],
        Name::IntermediateRead => &[Name::DirtyRead],
        _ => &[],
    };
    impossible == found || others.contains(&found)
}

#[test]
fn every_bug_is_found_at_the_operation_that_it_spoils() {
    let mut wrong: Vec<String> = Vec::new();
    for row in BUGS.iter().filter(|row| !row.bug.is_of_rows()) {
        for seed in seeds(3) {
            let parameters = with_bug(row, seed);
            let history = generate(&parameters).expect("a history");
            let known = Known::of(&history);
            let (findings, _) = watch_history(&parameters, &history);
            let mut object = |what: String| wrong.push(format!("{} seed {seed}: {what}", row.name));
            match findings.first() {
                None => object("nothing is found".to_owned()),
                // Later answers are held to what a store said that had gone wrong before.
                Some(first) => known.objection(first).into_iter().for_each(&mut object),
            }
            let found: BTreeMap<OpId, Name> = (findings.iter())
                .filter_map(|finding| Some((known.op(&finding.offender)?, finding.name)))
                .collect();
            for txn in history.txns() {
                for op in history.ops_of(txn) {
                    let Some(impossible) = known.impossible(txn, op) else { continue };
                    match found.get(&op) {
                        Some(&name) if may_be_called(impossible, name) => {}
                        other => object(format!("{impossible:?} at {op:?} is {other:?}")),
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

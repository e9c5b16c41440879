//! What clients called and were told, whatever a history made of it.
//!
//! A history keeps functions it does not know as calls, and takes `read`, `write` and
//! `cas` for operations on registers where nothing speaks against it. Both are calls
//! again here. A value `[key value]`, which a register takes for its key and value, is
//! put together again.

use isolde_history::{Datum, History, Interval, OpId, OpKind, Outcome, Time, Tree, Value};

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) op: OpId,
    pub(super) function: &'a str,
    /// The result if there is one, else the argument.
    pub(super) value: Tree,
    pub(super) outcome: Outcome,
    pub(super) invoked: Time,
    pub(super) completed: Time,
}

impl Call<'_> {
    /// Whether the client was told that it succeeded.
    pub(super) fn is_done(&self) -> bool {
        self.outcome == Outcome::Committed
    }

    /// Whether it may have taken effect.
    pub(super) fn is_possible(&self) -> bool {
        self.outcome != Outcome::Aborted
    }
}

/// The calls of a history in order of completion. A transaction that is no call has
/// an empty function.
pub(super) fn calls(history: &History) -> Vec<Call<'_>> {
    let mut calls: Vec<Call<'_>> = Vec::with_capacity(history.txn_count());
    for txn in history.txns() {
        let Some(last) = history.ops_of(txn).next_back() else { continue };
        let (function, value) = function(history, last, history.op_range(txn).len());
        let Interval { invoked, completed } = history.txn_interval(txn);
        let outcome = history.outcome(txn);
        calls.push(Call { op: last, function, value, outcome, invoked, completed });
    }
    calls.sort_by_key(|call| (call.completed, history.position(call.op)));
    calls
}

fn function(history: &History, op: OpId, ops: usize) -> (&str, Tree) {
    let it = history.op(op);
    // A predicate has no key, and no workload has predicates.
    if !it.kind.has_key() {
        return ("", Tree::Nil);
    }
    let name = history.datum(history.key_name(it.key));
    let value = || Tree::of(history.datum(it.value));
    let argument = || match name {
        Datum::Keyword("register") => value(),
        key => Tree::Sequence(vec![Tree::of(key), value()]),
    };
    match (it.kind, ops) {
        (OpKind::Call, 1) => match name {
            Datum::Keyword(name) | Datum::Text(name) => (name, value()),
            _ => ("", Tree::Nil),
        },
        (OpKind::Read, 1) if it.value == Value::UNKNOWN => ("read", Tree::Nil),
        (OpKind::Read, 1) => ("read", argument()),
        // A failed compare-and-set is its write alone, and looks like one.
        (OpKind::Write, 1) => ("write", argument()),
        (OpKind::ReadOther, 1) | (OpKind::Write, 2) => ("cas", Tree::Nil),
        _ => ("", Tree::Nil),
    }
}

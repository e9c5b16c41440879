//! Who held a lock when it was acquired a second time: for explanations.
//!
//! **Definition.** A lock that is free at first is acquired and released in turn. So whenever
//! it is, the acquires that have completed are at most one more than the releases that may have
//! taken effect, and the releases that have completed are no more than the acquires. Where both
//! always hold there is an order: take each as late as its end allows.

use isolde_history::{Datum, History, OpId, OpKind, Outcome, Time, TxnId};

/// What is wrong with a lock at the completion of one of its operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Whether it was acquired once too often; else released.
    pub is_acquired: bool,
    /// Operations of the same kind that had succeeded by then, this one too.
    pub succeeded: usize,
    /// Operations of the other kind that had begun by then.
    pub begun: usize,
    /// The last acquires of sessions that had not begun to release it, in order of completion.
    pub held_by: Vec<OpId>,
}

/// Why an operation on a lock cannot be, if it is one and counting shows it.
pub(super) fn lock_at(history: &History, unexplained: OpId) -> Option<Lock> {
    let is_acquire = acquires(history, unexplained)?;
    let end = history.txn_interval(history.txn_of(unexplained)).completed;
    let (mut succeeded, mut begun) = (0, 0);
    for txn in history.txns() {
        let Some(kind) = history.ops_of(txn).next().and_then(|op| acquires(history, op)) else {
            continue;
        };
        let time = history.txn_interval(txn);
        match history.outcome(txn) {
            Outcome::Committed if kind == is_acquire => {
                succeeded += usize::from(time.completed <= end);
            }
            Outcome::Committed | Outcome::Unknown if kind != is_acquire => {
                begun += usize::from(time.invoked <= end);
            }
            _ => {}
        }
    }
    let allowed = if is_acquire { begun + 1 } else { begun };
    (succeeded > allowed).then(|| Lock {
        is_acquired: is_acquire,
        succeeded,
        begun,
        held_by: if is_acquire { holders(history, unexplained, end) } else { Vec::new() },
    })
}

/// The last acquire of each session that had not begun to release it.
fn holders(history: &History, unexplained: OpId, end: Time) -> Vec<OpId> {
    let mut holders = Vec::new();
    for session in history.sessions() {
        let begun = |&txn: &TxnId| {
            history.outcome(txn) != Outcome::Aborted && history.txn_interval(txn).invoked <= end
        };
        let mut held: Option<OpId> = None;
        for op in
            history.txns_of(session).filter(begun).filter_map(|txn| history.ops_of(txn).next())
        {
            let is_done = history.outcome(history.txn_of(op)) == Outcome::Committed
                && history.txn_interval(history.txn_of(op)).completed <= end;
            match acquires(history, op) {
                Some(true) if is_done && op != unexplained => held = Some(op),
                Some(false) => held = None,
                _ => {}
            }
        }
        holders.extend(held);
    }
    holders.sort_by_key(|&op| history.txn_interval(history.txn_of(op)).completed);
    holders
}

/// Whether an operation acquires a lock, if it is one of a lock.
fn acquires(history: &History, op: OpId) -> Option<bool> {
    let it = history.op(op);
    match history.datum(history.key_name(it.key)) {
        Datum::Keyword("acquire") if it.kind == OpKind::Call => Some(true),
        Datum::Keyword("release") if it.kind == OpKind::Call => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    /// What is wrong at the last operation.
    fn check(text: &str, expected: &str) {
        let history = parse_text(text).expect("a well-formed history");
        let last = history.txns().max_by_key(|&txn| history.txn_interval(txn).completed);
        let op = history.ops_of(last.expect("one")).next().expect("one");
        let told = lock_at(&history, op).map_or("nothing".to_owned(), |lock| {
            let name = |&op: &OpId| history.txn_name(history.txn_of(op));
            let held_by: Vec<String> = lock.held_by.iter().map(name).collect();
            format!("{} to {}, held by {held_by:?}", lock.succeeded, lock.begun)
        });
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn a_lock_that_is_held_is_not_acquired() {
        let turn = "A @1..2: c(:acquire,nil)\nA @3..4: c(:release,nil)\nB @5..6: c(:acquire,nil)\n";
        check(&format!("{turn}C @7..9: c(:acquire,nil)"), "3 to 1, held by [\"B\"]");
        check(
            &format!("{turn}C @7..9: c(:acquire,nil)\nB @8..12: c(:release,nil) unknown"),
            "nothing",
        );
    }

    #[test]
    fn a_lock_that_is_free_is_not_released() {
        check("A @1..2: c(:release,nil)", "1 to 0, held by []");
        check("A @1..2: c(:acquire,nil)\nB @3..4: c(:release,nil)", "nothing");
    }
}

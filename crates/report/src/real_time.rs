//! Why single operations do not fit real time, in words.

use crate::prose::Prose;
use isolde::AnomalyKind;
use isolde::linearizable::{Lock, left_while_open, lock_at};
use isolde_history::{Datum, History, KeyId, OpId, OpKind, Outcome, Tree, Value};

/// Sentences on lines of their own about operations of an anomaly of linearizability.
pub(crate) fn explain(prose: &Prose<'_>, kind: AnomalyKind, ops: &[OpId]) -> String {
    let done = |op: OpId| format!("{} {}", did(prose, op), prose.at(op));
    let name = |op: OpId| prose.txn(prose.history.txn_of(op));
    match (kind, ops) {
        (AnomalyKind::ReadBeforeWrite, &[write, read]) => {
            format!("{}\n{}, and began only after that", done(read), done(write))
        }
        (AnomalyKind::StaleRead, &[earlier, later]) => format!(
            "{}\n{}, which comes before that, and began only after it",
            done(later),
            done(earlier)
        ),
        // Of the initial value: what replaced it, and who was done with that before
        // another read began.
        (AnomalyKind::StaleRead, &[_, second, last]) => format!(
            "{}\n{} began only after that and saw what was there before anybody wrote: {}",
            done(second),
            name(last),
            done(last)
        ),
        (AnomalyKind::StaleRead, &[first, other, second, last]) => format!(
            "{}, before {} began\n{}\n{}, before {} began\n{}\nso each of the two values would \
             have to come before the other",
            done(first),
            name(other),
            done(other),
            done(second),
            name(last),
            done(last)
        ),
        (AnomalyKind::CompareAndSetTwice, &[first, second]) => {
            format!("{}\n{}\nwhat both found was there only once", done(first), done(second))
        }
        _ => unexplained(prose, ops),
    }
}

/// What an operation did that nothing explains, what its object held instead, and what else
/// was open.
fn unexplained(prose: &Prose<'_>, ops: &[OpId]) -> String {
    let done = |op: OpId| format!("{} {}", did(prose, op), prose.at(op));
    let Some((&first, beside)) = ops.split_first() else { return String::new() };
    let mut lines = vec![done(first)];
    let told: Vec<OpId> = if let Some(lock) = lock_at(prose.history, first) {
        lines.extend(held(prose, &lock));
        lock.held_by
    } else if let Some(left) = left_while_open(prose.history, first) {
        let by = |left: &Option<OpId>| left.map_or("nobody had changed it yet".to_owned(), done);
        let all: Vec<String> = left.iter().map(by).collect();
        lines.push(format!(
            "but whatever the order, all that time it was as another had left it: {}",
            all.join(", or ")
        ));
        if let [left] = left[..] {
            lines.extend(others_of_the_value(prose, first, left));
        }
        left.into_iter().flatten().collect()
    } else {
        lines = vec![format!("no order explains that {}", done(first))];
        Vec::new()
    };
    let mut open = beside.iter().filter(|&op| !told.contains(op)).peekable();
    if open.peek().is_some() {
        let is_all = told.is_empty() && prose.history.op(first).kind != OpKind::Call;
        let title = if is_all {
            "beside it, in any order that their times allow:"
        } else {
            "open meanwhile:"
        };
        lines.push(title.to_owned());
        lines.extend(open.map(|&op| format!("  {}", done(op))));
    }
    lines.join("\n")
}

/// Who held a lock, and how that is known.
fn held(prose: &Prose<'_>, lock: &Lock) -> Vec<String> {
    let Lock { succeeded, begun, .. } = lock;
    let (s, were) = if *begun == 1 { ("", "was") } else { ("s", "were") };
    if !lock.is_acquired {
        return vec![format!(
            "but nobody held it: that is the release number {succeeded} to succeed, and only \
             {begun} acquire{s} had begun"
        )];
    }
    let holder = |&op: &OpId| {
        let name = prose.txn(prose.history.txn_of(op));
        let session = prose.history.session_of(prose.history.txn_of(op));
        let session = prose.history.datum(prose.history.session_label(session));
        let at = prose.at(op);
        format!("{name} had acquired it {at}, and session {session} had not begun to release it")
    };
    let mut lines: Vec<String> = lock.held_by.iter().map(holder).collect();
    lines.push(format!(
        "that is the acquire number {succeeded} to succeed, and only {begun} release{s} {were} \
         begun before it ended: so two held the lock at once"
    ));
    lines
}

/// Where the other writes of a value are that was read in vain: none of them can have been the
/// last.
fn others_of_the_value(prose: &Prose<'_>, found: OpId, left: Option<OpId>) -> Option<String> {
    let history = prose.history;
    let it = history.op(found);
    let last = history.txn_interval(history.txn_of(left?));
    let end = history.txn_interval(history.txn_of(found)).completed;
    if it.kind != OpKind::Read {
        return None;
    }
    let (mut before, mut refused, mut after) = (0, 0, 0);
    for version in
        prose.index.versions_of(it.key).iter().filter(|version| version.value == it.value)
    {
        let write = history.txn_interval(version.txn);
        match history.outcome(version.txn) {
            Outcome::Aborted => refused += 1,
            Outcome::Committed if write.completed < last.invoked => before += 1,
            _ if write.invoked > end => after += 1,
            _ => return None,
        }
    }
    let earlier = format!("ended before {} began", prose.txn(history.txn_of(left?)));
    let told =
        [(before, earlier.as_str()), (refused, "failed"), (after, "began only after the read")];
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, what)| format!("{count} {what}")).collect();
    let content = prose.content(found, it.key);
    (!told.is_empty()).then(|| format!("of the writes of {content}, {}", told.join(", ")))
}

/// The function of a call, and its value.
fn called(history: &History, op: OpId) -> Option<(&str, Tree)> {
    let it = history.op(op);
    match history.datum(history.key_name(it.key)) {
        Datum::Keyword(function) | Datum::Text(function) if it.kind == OpKind::Call => {
            Some((function, Tree::of(history.datum(it.value))))
        }
        _ => None,
    }
}

/// What a transaction of one operation did. `op` is its last.
fn did(prose: &Prose<'_>, op: OpId) -> String {
    let history = prose.history;
    let txn = history.txn_of(op);
    let name = prose.txn(txn);
    let it = history.op(op);
    let first = history.ops_of(txn).next().map_or(it, |first| history.op(first));
    match it.kind {
        OpKind::Call => format!("{name} {}", call(prose, op, it.key)),
        OpKind::Read | OpKind::ReadOther => format!("{name} read {}", prose.content(op, it.key)),
        _ if history.op_range(txn).len() == 2 => format!(
            "{name} replaced {} = {} by {}",
            prose.key(it.key),
            prose.value(first.value),
            prose.value(it.value)
        ),
        _ => format!("{name} wrote {}", prose.content(op, it.key)),
    }
}

/// A call in words: that of a lock, of a store, or its name.
fn call(prose: &Prose<'_>, op: OpId, key: KeyId) -> String {
    match called(prose.history, op) {
        Some(("acquire", _)) => "acquired the lock".to_owned(),
        Some(("release", _)) => "released the lock".to_owned(),
        Some((function @ ("get" | "put" | "append"), Tree::Sequence(parts)))
            if parts.len() == 2 =>
        {
            let (name, content) = (&parts[0], &parts[1]);
            match function {
                "get" => format!("read {name} = {content}"),
                "put" => format!("wrote {name} = {content}"),
                _ => format!("appended {content} to {name}"),
            }
        }
        _ if prose.history.op(op).value == Value::NIL => format!("did {}", prose.key(key)),
        _ => format!("did {} {}", prose.key(key), prose.value(prose.history.op(op).value)),
    }
}

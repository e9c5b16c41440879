//! Why single operations do not fit real time, in words.

use crate::prose::Prose;
use crate::window::observation;
use isolde::linearizable::{Account, Lock, account};
use isolde::{AnomalyKind, Limits};
use isolde_history::{
    ALWAYS, Datum, History, KeyId, OpId, OpKind, Outcome, Time, Tree, TxnId, Value,
};

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
    let account = account(prose.history, first, &Limits::NONE);
    match &account {
        Some(Account::Lock(lock)) => lines.extend(held(prose, lock)),
        Some(Account::Left(left)) => lines.extend(left_instead(prose, first, left)),
        Some(Account::Window(window)) => {
            lines.extend(crate::window::told(prose, window, first));
            let elsewhere = writes_of_the_value(
                prose,
                first,
                &[window.beginning],
                &window.all().collect::<Vec<_>>(),
            );
            lines.extend(elsewhere);
            return lines.join("\n");
        }
        None => lines = vec![format!("no order explains that {}", done(first))],
    }
    let told = account.map_or(Vec::new(), |account| account.ops());
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

/// Who had left something else than an operation found.
fn left_instead(prose: &Prose<'_>, found: OpId, left: &[Option<OpId>]) -> Vec<String> {
    let by = |left: &Option<OpId>| match *left {
        None => "nobody had changed it yet".to_owned(),
        Some(op) => format!("{} {}", did(prose, op), prose.at(op)),
    };
    let seen = |left: &Option<OpId>| match *left {
        Some(op) if prose.history.op(op).kind != OpKind::Call => observation(prose, op, found),
        _ => String::new(),
    };
    let mut all: Vec<String> = left.iter().map(by).collect();
    if left.len() > 1 {
        all = all.into_iter().zip(left).map(|(by, left)| by + &seen(left)).collect();
    }
    let mut lines = vec![format!(
        "but whatever the order, all that time it was as another had left it: {}",
        all.join(", or ")
    )];
    if let [left] = *left {
        lines.extend(took_effect(prose, found, left));
    }
    lines.extend(writes_of_the_value(prose, found, left, &[]));
    lines
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

/// Where the writes of a value are that was found though others had left something else: none
/// of them can have been the last.
/// Nothing is said of those that are told already.
fn writes_of_the_value(
    prose: &Prose<'_>,
    found: OpId,
    left: &[Option<OpId>],
    told: &[OpId],
) -> Option<String> {
    let history = prose.history;
    let txn = history.txn_of(found);
    let read = history.ops_of(txn).find(|&op| history.op(op).kind == OpKind::Read)?;
    let (key, value) = (history.op(read).key, history.op(read).value);
    let (since, earlier) = left_since(prose, found, left)?;
    let end = history.txn_interval(txn).completed;
    let (mut before, mut refused, mut after, mut open) = (0, 0, 0, Vec::new());
    let versions = prose.index.versions_of(prose.history, key).iter();
    let is_told = |write: TxnId| told.iter().any(|&op| history.txn_of(op) == write);
    for version in versions.filter(|version| version.value == value && version.txn != txn) {
        if is_told(version.txn) {
            continue;
        }
        let write = history.txn_interval(version.txn);
        match history.outcome(version.txn) {
            Outcome::Aborted => refused += 1,
            Outcome::Committed if write.completed < since => before += 1,
            _ if write.invoked > end => after += 1,
            _ => open.push(version.txn),
        }
    }
    let counts =
        [(before, earlier.as_str()), (refused, "failed"), (after, "began only after it ended")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let mut told: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    told.extend(open.into_iter().map(|write| {
        let name = prose.txn(write);
        let unknown = history.outcome(write) == Outcome::Unknown;
        let seen = seen_by(prose, (key, value), history.txn_interval(write).invoked, since);
        match seen {
            Some(seen) if unknown => format!(
                "that of {name}, of unknown outcome, before that, as {} may have read it {}",
                prose.txn(history.txn_of(seen)),
                prose.at(seen)
            ),
            _ if unknown => format!("that of {name}, of unknown outcome, before, later or never"),
            _ => format!("that of {name} before or later"),
        }
    }));
    let content = prose.content(read, key);
    (!told.is_empty()).then(|| format!("of the writes of {content}, {}", told.join(", ")))
}

/// Since when something else was there, as far as one time tells, and what ended before that.
fn left_since(prose: &Prose<'_>, found: OpId, left: &[Option<OpId>]) -> Option<(Time, String)> {
    let history = prose.history;
    let interval = |op: OpId| history.txn_interval(history.txn_of(op));
    let began = |left: &Option<OpId>| left.map_or(ALWAYS, |op| interval(op).invoked);
    let since = left.iter().map(began).min()?;
    let &[Some(only)] = left else {
        return Some((since, "ended before these began".to_owned()));
    };
    let it = history.op(only);
    // Whoever saw what was left was open later than its writer began.
    let seen = seen_by(prose, (it.key, it.value), since, interval(found).completed)
        .filter(|&seen| seen != found && interval(seen).invoked > since);
    let (since, what) = match seen {
        Some(seen) => (interval(seen).invoked, seen),
        None => (since, only),
    };
    Some((since, format!("ended before {} began", prose.txn(history.txn_of(what)))))
}

/// The last read of a value that ended between two times.
pub(crate) fn seen_by(
    prose: &Prose<'_>,
    (key, value): (KeyId, Value),
    from: Time,
    to: Time,
) -> Option<OpId> {
    let history = prose.history;
    let reads = history.txns().flat_map(|txn| history.ops_of(txn)).filter(|&op| {
        let it = history.op(op);
        let ended = history.txn_interval(history.txn_of(op)).completed;
        it.kind == OpKind::Read
            && (it.key, it.value) == (key, value)
            && history.outcome(history.txn_of(op)) == Outcome::Committed
            && (from..=to).contains(&ended)
    });
    reads.max_by_key(|&op| history.txn_interval(history.txn_of(op)).completed)
}

/// How it is known that a write of unknown outcome took effect, which nothing else can have left.
fn took_effect(prose: &Prose<'_>, found: OpId, left: Option<OpId>) -> Option<String> {
    let history = prose.history;
    let end = history.txn_interval(history.txn_of(found)).completed;
    let (txn, it) = (history.txn_of(left?), history.op(left?));
    if history.outcome(txn) != Outcome::Unknown || !it.kind.is_write() {
        return None;
    }
    let begun = history.txn_interval(txn).invoked;
    let read = seen_by(prose, (it.key, it.value), begun, end).filter(|&read| read != found)?;
    let reader = prose.txn(history.txn_of(read));
    let (name, content, at) = (prose.txn(txn), prose.content(read, it.key), prose.at(read));
    Some(format!("{name} took effect, though it had no answer: {reader} read {content} {at}"))
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
pub(crate) fn did(prose: &Prose<'_>, op: OpId) -> String {
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
pub(crate) fn call(prose: &Prose<'_>, op: OpId, key: KeyId) -> String {
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

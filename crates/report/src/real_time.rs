//! Why single operations do not fit real time, in words.

use crate::prose::Prose;
use isolde::AnomalyKind;
use isolde_history::{OpId, OpKind, Value};

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

fn unexplained(prose: &Prose<'_>, ops: &[OpId]) -> String {
    let done = |op: &OpId| format!("{} {}", did(prose, *op), prose.at(*op));
    let Some((first, beside)) = ops.split_first() else { return String::new() };
    // Of calls nothing is left out, and those that had ended are too many to tell.
    let is_all = prose.history.op(*first).kind != OpKind::Call;
    let (what, others) = if is_all {
        ("no order explains that", "beside it, in any order that their times allow:")
    } else {
        ("no order of this and all before it explains that", "meanwhile open, in any order:")
    };
    let mut lines = vec![format!("{what} {}", done(first))];
    if !beside.is_empty() {
        lines.push(others.to_owned());
        lines.extend(beside.iter().map(|op| format!("  {}", done(op))));
    }
    lines.join("\n")
}

/// What a transaction of one operation did. `op` is its last.
fn did(prose: &Prose<'_>, op: OpId) -> String {
    let history = prose.history;
    let txn = history.txn_of(op);
    let name = prose.txn(txn);
    let it = history.op(op);
    let first = history.ops_of(txn).next().map_or(it, |first| history.op(first));
    match it.kind {
        OpKind::Call if it.value == Value::NIL => format!("{name} did {}", prose.key(it.key)),
        OpKind::Call => format!("{name} did {} {}", prose.key(it.key), prose.value(it.value)),
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

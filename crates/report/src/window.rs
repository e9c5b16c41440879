//! Why no order explains calls of a register, in words: what it held, who did what when, and
//! where each order ends.

use crate::prose::Prose;
use crate::real_time::{did, seen_by};
use crate::scenario::sentence::time;
use isolde::linearizable::{Attempt, Window};
use isolde_history::{NEVER, OpId, OpKind, Outcome, Value};
use std::collections::BTreeSet;

/// Lines of the argument that an operation has no explanation.
pub(crate) fn told(prose: &Prose<'_>, window: &Window, unexplained: OpId) -> Vec<String> {
    let mut lines = vec![beginning(prose, window)];
    if window.calls == [unexplained] {
        let open = open(prose, unexplained);
        lines.push(format!(
            "it was open {open}, and nothing that can have taken effect in between left what it \
             found"
        ));
        return lines;
    }
    lines.push("these calls then had to take effect, each while it was open:".to_owned());
    let calls = window.calls.iter();
    lines.extend(calls.map(|&call| format!("  {}", placed(prose, window, call, unexplained))));
    lines.extend(window.earlier.iter().map(|&(call, by)| {
        format!(
            "{} without an answer {}, but earlier: nothing else explains that {} {}",
            did(prose, call),
            prose.at(call),
            did(prose, by),
            prose.at(by)
        )
    }));
    lines.push("no order of them fits:".to_owned());
    let mut observed = BTreeSet::new();
    let orders = window.orders.iter();
    lines.extend(orders.map(|order| format!("  {}", ending(prose, window, order, &mut observed))));
    let is_told = |call: &OpId| {
        window.orders.iter().any(|order| order.placed.contains(call) || order.stuck == *call)
    };
    lines.extend(window.calls.iter().filter(|call| !is_told(call)).map(|&call| {
        let found = prose.value(found(prose, call));
        format!("  {} in none of these: it found {found}", name(prose, call))
    }));
    lines
}

fn name(prose: &Prose<'_>, op: OpId) -> String {
    prose.txn(prose.history.txn_of(op))
}

/// What the register held at first, and how that is known.
fn beginning(prose: &Prose<'_>, window: &Window) -> String {
    match window.beginning {
        Some(call) => format!("before that, {} {}", timed(prose, call), prose.at(call)),
        None => "nobody had changed it at first".to_owned(),
    }
}

/// What a call did, and when.
fn timed(prose: &Prose<'_>, call: OpId) -> String {
    format!("{} {}", did(prose, call), open(prose, call))
}

/// When a call was open.
fn open(prose: &Prose<'_>, call: OpId) -> String {
    let interval = prose.history.txn_interval(prose.history.txn_of(call));
    let (from, to) = (time(interval.invoked), interval.completed);
    let until = if to == NEVER { "on".to_owned() } else { format!("to {}", time(to)) };
    format!("from {from} {until}")
}

/// What a call saw.
fn found(prose: &Prose<'_>, call: OpId) -> Value {
    let ops = prose.history.ops_of(prose.history.txn_of(call)).map(|op| prose.history.op(op));
    let mut reads = ops.filter(|op| op.kind == OpKind::Read).map(|op| op.value);
    reads.next().unwrap_or(Value::NIL)
}

/// The same of a call in the window, and whether it may have been without effect there.
fn placed(prose: &Prose<'_>, window: &Window, call: OpId, unexplained: OpId) -> String {
    let history = prose.history;
    let interval = |op: OpId| history.txn_interval(history.txn_of(op));
    let ended = window.beginning.map(|op| interval(op).completed);
    let maybe = if history.outcome(history.txn_of(call)) == Outcome::Unknown {
        ", with unknown outcome, so perhaps never"
    } else if ended.is_some_and(|ended| interval(call).invoked <= ended) {
        ", or before all that"
    } else if interval(call).completed > interval(unexplained).completed {
        ", or later"
    } else {
        ""
    };
    format!("{} {}{maybe}", timed(prose, call), prose.at(call))
}

/// Where an order ends.
fn ending(
    prose: &Prose<'_>,
    window: &Window,
    order: &Attempt,
    observed: &mut BTreeSet<OpId>,
) -> String {
    let history = prose.history;
    let names: Vec<String> = order.placed.iter().map(|&op| name(prose, op)).collect();
    let stuck = name(prose, order.stuck);
    let found = prose.value(found(prose, order.stuck));
    let key = prose.key(history.op(order.stuck).key);
    let holder = order.left_by.or(window.beginning);
    let held =
        holder.map_or(history.initial(history.op(order.stuck).key), |op| history.op(op).value);
    let held = prose.value(held);
    let mut by = String::new();
    if let Some(left_by) = order.left_by
        && observed.insert(left_by)
    {
        by = observation(prose, left_by, order.stuck);
    }
    if names.is_empty() {
        return format!("{stuck} first: it found {key} = {found}, and there was {held}");
    }
    format!("{}: then {key} = {held}{by}, and {stuck} found {found}", names.join(", then "))
}

/// Who saw what a call left, before another one ended.
pub(crate) fn observation(prose: &Prose<'_>, left_by: OpId, before: OpId) -> String {
    let history = prose.history;
    let it = history.op(left_by);
    let from = history.txn_interval(history.txn_of(left_by)).invoked;
    let to = history.txn_interval(history.txn_of(before)).completed;
    match seen_by(prose, (it.key, it.value), from, to) {
        Some(read) if history.txn_of(read) != history.txn_of(left_by) => {
            format!(" (which {} may have found {})", name(prose, read), prose.at(read))
        }
        _ => " (which nobody found)".to_owned(),
    }
}

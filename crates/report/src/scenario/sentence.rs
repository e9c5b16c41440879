//! One sentence for each part of a scenario.

use super::build::{neighbours, source, unnamed_writer};
use super::summary::written_at_once;
use crate::prose::Prose;
use isolde::{Cases, Cycle, Edge, EdgeKind, INITIAL, Reason, Rule, Seen, Way};
use isolde_history::{
    ALWAYS, KeyId, NEVER, OpId, OpKind, Origin, Time, TxnId, VersionEvidence, VersionStep,
};

/// The contradiction that a cycle is.
pub(super) fn conclusion(prose: &Prose<'_>, cycle: &Cycle) -> String {
    let edges = &cycle.edges;
    if edges.iter().any(|edge| edge.before == INITIAL) {
        return "no order explains that".to_owned();
    }
    let name = |txn| prose.txn(txn);
    match &edges[..] {
        [] => "no order explains that".to_owned(),
        [one] => format!("{} would have to come before itself", name(one.before)),
        [one, other] => format!(
            "{0} would have to come before {1} and {1} before {0}",
            name(one.before),
            name(other.before)
        ),
        _ => {
            let chain: Vec<String> = edges.iter().map(|edge| name(edge.before)).collect();
            format!("{} before {}: no order exists", chain.join(" before "), chain[0])
        }
    }
}

/// Why two transactions cannot have missed each other, to follow the contradiction.
pub(super) fn apart(prose: &Prose<'_>, one: TxnId, other: TxnId, key: KeyId) -> String {
    let writer = |txn| match prose.index.final_write(prose.history, txn, key) {
        Some(write) => format!("{} {}", prose.txn(txn), prose.at(write)),
        None => prose.txn(txn),
    };
    let key = prose.key(key);
    format!("; {} and {} both wrote {key}, so one had to see the other", writer(one), writer(other))
}

/// What the assumptions of a case are.
pub(super) fn assumption<'a>(
    prose: &Prose<'_>,
    cycle: &Cycle,
    way: Option<&Way>,
    seen: impl Iterator<Item = &'a Seen>,
) -> String {
    let mut assumptions: Vec<String> = way.map(|way| taken(prose, way)).unwrap_or_default();
    assumptions.extend(seen.map(|seen| looked_past(prose, seen)));
    let mut open: Vec<&Edge> = cycle.edges.iter().rev().collect();
    while let Some(edge) = open.pop() {
        open.extend(edge.premises().iter().rev());
        let assumed = match edge.reason {
            Reason::Assumed { key, first, second } => earlier(prose, key, first, second),
            Reason::Supposed { first, second } => {
                format!("{} comes before {}", prose.txn(first), prose.txn(second))
            }
            _ => match chosen(prose, edge) {
                // A way says who appended what was read.
                Some((read, ..)) if way.is_some() && is_list(prose, read) => continue,
                Some((read, key, writer)) => {
                    let reader = prose.txn(prose.history.txn_of(read));
                    let content = prose.seen(read, key);
                    match writer {
                        INITIAL => format!("{reader} read {content}, the initial value"),
                        _ => format!("{reader} read the {content} of {}", prose.txn(writer)),
                    }
                }
                None => continue,
            },
        };
        if !assumptions.contains(&assumed) {
            assumptions.push(assumed);
        }
    }
    assumptions.join(", and ")
}

/// Which version of a key an operation by condition saw, and passed over unless it computed
/// something.
fn looked_past(prose: &Prose<'_>, &Seen { read, key, writer, .. }: &Seen) -> String {
    let (name, key) = (prose.txn(prose.history.txn_of(read)), prose.key(key));
    let left = match writer {
        INITIAL => "as it was at first".to_owned(),
        writer => format!("as {} left it", prose.txn(writer)),
    };
    format!("{name} {} when {key} was {left}", prose.looked(read))
}

/// How a history is understood.
fn taken(prose: &Prose<'_>, way: &Way) -> Vec<String> {
    let history = prose.history;
    let added = way.added.iter().map(|&append| {
        let it = history.op(append);
        let (element, key) = (prose.value(it.value), prose.key(it.key));
        let name = prose.txn(history.txn_of(append));
        format!("{name} appended the {element} of {key} that was read")
    });
    let happened = way.happened.iter().map(|&txn| format!("{} took effect", prose.txn(txn)));
    let never = way.never_happened.iter();
    let never = never.map(|&txn| format!("{} did not take effect", prose.txn(txn)));
    added.chain(happened).chain(never).collect()
}

fn is_list(prose: &Prose<'_>, read: OpId) -> bool {
    prose.history.op(read).kind == OpKind::ReadList
}

/// What follows from all cases together.
pub(super) fn conclusion_of_cases(cases: &Cases) -> &'static str {
    if written_at_once(cases).is_some() {
        return "neither of them can have come first";
    }
    if !cases.ways.is_empty() {
        return "no choice of who wrote it explains what was read";
    }
    let mut edges = cases.cycles.iter().flat_map(|cycle| &cycle.edges);
    let is_order =
        |edge: &Edge| matches!(edge.reason, Reason::Assumed { .. } | Reason::Supposed { .. });
    if edges.any(is_order) {
        "no order of versions explains the reads"
    } else {
        "no choice of writers explains the reads"
    }
}

/// The read of a repeated value that an edge rests on, and the writer it is taken to have
/// seen.
pub(super) fn chosen(prose: &Prose<'_>, edge: &Edge) -> Option<(OpId, KeyId, TxnId)> {
    let (read, key) = (edge.read()?, edge.key()?);
    let writer = match edge.reason {
        Reason::FirstVersion { .. } => INITIAL,
        Reason::Rule(Rule::Visible { .. }) => edge.after,
        _ => match edge.kind() {
            EdgeKind::Wr => edge.before,
            EdgeKind::Rw => replaced(prose, edge.after, key, edge.premises())?,
            _ => return None,
        },
    };
    let index = prose.index;
    let is_open = index.several().iter().any(|several| {
        let open = index.read(several.read);
        open.op == read && open.key == key
    });
    is_open.then_some((read, key, writer))
}

/// Whose version of a key a transaction replaced, for these reasons.
fn replaced(prose: &Prose<'_>, by: TxnId, key: KeyId, because: &[Edge]) -> Option<TxnId> {
    if let Some(step) = because.first() {
        return Some(step.before);
    }
    // It read that version too, or nobody wrote one before.
    let own = prose.index.reads_of(by).find(|read| read.key == key);
    match own.map(|read| read.origin) {
        Some(Origin::Txn(writer)) => Some(writer),
        Some(Origin::Several | Origin::Nobody) => None,
        Some(Origin::Initial) | None => Some(INITIAL),
    }
}

/// That one version comes before another.
fn earlier(prose: &Prose<'_>, key: KeyId, first: TxnId, second: TxnId) -> String {
    let (key, first, second) = (prose.key(key), prose.txn(first), prose.txn(second));
    format!("the {key} of {first} comes before the {key} of {second}")
}

/// Why an edge holds, given its premises.
pub(super) fn because(prose: &Prose<'_>, edge: &Edge) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    match &edge.reason {
        Reason::Rule(rule) => by_rule(prose, edge, rule),
        Reason::FirstVersion { read, key } => format!(
            "{before} read {}, the initial value, and wrote it: so its version comes before that \
             of {after}",
            prose.seen(*read, *key)
        ),
        Reason::Assumed { key, first, second } if edge.before == *first => {
            format!("by assumption, {}", earlier(prose, *key, *first, *second))
        }
        Reason::Assumed { key, first, second } => format!(
            "{before} read the {0} of {1}, and by assumption that of {2} replaced it",
            prose.key(*key),
            prose.txn(*first),
            prose.txn(*second)
        ),
        Reason::Supposed { first, second } => {
            format!("by assumption, {} comes before {}", prose.txn(*first), prose.txn(*second))
        }
        Reason::AsTold => format!("{before} comes before {after}, as told before"),
        Reason::Untold { .. } => format!("{before} comes before {after}"),
    }
}

/// What a rule says of an edge.
fn by_rule(prose: &Prose<'_>, edge: &Edge, rule: &Rule<Vec<Edge>>) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    match *rule {
        Rule::InitialFirst => "the initial state precedes everything".to_owned(),
        Rule::Session => format!("{before} ran before {after} in the same session"),
        Rule::RealTime => in_real_time(prose, edge),
        Rule::ReadsFrom { read, key } | Rule::SawChange { read, key } => {
            saw(prose, edge, read, key)
        }
        Rule::ListOrder { read, key } => {
            let is_shown = neighbours(prose, edge, read).is_some();
            let shown_by =
                if is_shown { VersionEvidence::ListRead } else { VersionEvidence::NotInList };
            prose.version(&version(edge, key, shown_by(read)))
        }
        Rule::GivenOrder { key } => prose.version(&version(edge, key, VersionEvidence::Given)),
        Rule::AntiDependency { read, key, .. }
        | Rule::InitialRead { read, key }
        | Rule::MissedChange { read, key } => {
            let missed = missed(prose, edge, read, key);
            format!("{missed}{}", conflicting(prose, edge.before, edge.after, edge.conflict))
        }
        Rule::Pair { key, ref path } => follows(prose, edge, key, path),
        Rule::Visible { read, key, .. } => overwritten(prose, edge, read, key),
    }
}

fn version(edge: &Edge, key: KeyId, evidence: VersionEvidence) -> VersionStep {
    VersionStep { before: edge.before, after: edge.after, key, evidence }
}

/// That a reader had to see a version and read another.
fn overwritten(prose: &Prose<'_>, edge: &Edge, read: OpId, key: KeyId) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let (name, content) = (prose.key(key), prose.seen(read, key));
    let reader = prose.history.txn_of(read);
    let conflicting = conflicting(prose, reader, edge.before, edge.conflict);
    let reader = prose.txn(reader);
    if edge.after == INITIAL {
        return format!(
            "{reader} had to see {before}, which wrote {name}, yet read {content}, its initial \
             value{conflicting}"
        );
    }
    format!(
        "{reader} came after {before}, which wrote {name}, and read {content} of {after}: so \
         {after} replaced what {before} wrote{conflicting}"
    )
}

/// That two transactions both write a key and so had to see each other, to follow what one missed.
fn conflicting(prose: &Prose<'_>, reader: TxnId, other: TxnId, conflict: Option<KeyId>) -> String {
    let Some(key) = conflict else { return String::new() };
    let (reader, other) = (prose.txn(reader), prose.txn(other));
    format!("; {reader} and {other} both wrote {}, so one had to see the other", prose.key(key))
}

/// What was read from another transaction.
fn saw(prose: &Prose<'_>, edge: &Edge, read: OpId, key: KeyId) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let (content, history) = (prose.seen(read, key), prose.history);
    let write = source(prose, edge.before, read, key).map(|write| history.op(write));
    let is_row =
        |predicate: &isolde_history::Predicate| predicate.item_rows().any(|row| row.key == key);
    let is_replaced = prose.is_replaced(read, key);
    if !history.op(read).kind.has_key() && (is_replaced || !is_row(history.predicate(read))) {
        let looked = prose.looked(read);
        let name = prose.key(key);
        let wrote = prose.index.final_write(history, edge.before, key);
        let wrote = wrote.map_or_else(|| name.clone(), |write| prose.content(write, key));
        if history.predicate(read).aggregate.is_some() {
            return format!("{after} {looked}, with {name} as {before} left it: {wrote}");
        }
        let found = if is_replaced { "found" } else { "did not find" };
        return format!("{after} {looked} and {found} {name}, as {before} left it: {wrote}");
    }
    match write {
        Some(write) if write.kind == OpKind::Append => {
            let element = prose.value(write.value);
            format!("{after} read {content}, where {before} had appended {element}")
        }
        _ => format!("{after} read {content}, which {before} wrote"),
    }
}

/// An anti-dependency: what was read, and who replaced it.
fn missed(prose: &Prose<'_>, edge: &Edge, read: OpId, key: KeyId) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let history = prose.history;
    let written = prose.written(edge.after, key);
    let write = prose.index.final_write(history, edge.after, key).map(|write| history.op(write));
    if let Some(write) = write.filter(|write| write.kind == OpKind::Append) {
        let (content, element) = (prose.seen(read, key), prose.value(write.value));
        return format!("{before} read {content}, to which {after} appended {element}");
    }
    if !history.op(read).kind.has_key() {
        let predicate = history.predicate(read);
        let looked = prose.looked(read);
        let is_replaced = prose.is_replaced(read, key);
        if is_replaced || !predicate.item_rows().any(|row| row.key == key) {
            let name = prose.key(key);
            if predicate.aggregate.is_some() {
                return format!("{before} {looked} before {after} replaced {name}{written}");
            }
            let found = if is_replaced { "found" } else { "did not find" };
            return format!(
                "{before} {looked} and {found} {name} before {after} wrote it{written}"
            );
        }
        return format!(
            "{before} {looked} and saw {}, which {after} replaced{written}",
            prose.content(read, key)
        );
    }
    let wrote = unnamed_writer(edge).map(|writer| format!(" {} wrote and", prose.txn(writer)));
    let wrote = wrote.unwrap_or_default();
    format!("{before} read {}, which{wrote} {after} replaced{written}", prose.seen(read, key))
}

/// Why the version of one writer follows that of another.
fn follows(prose: &Prose<'_>, edge: &Edge, key: KeyId, because: &[Edge]) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let name = prose.key(key);
    let shown_by = match because {
        [only] if only.key() == Some(key) && only.premises().is_empty() => {
            only.read().map(|read| (only.kind(), prose.seen(read, key)))
        }
        _ => None,
    };
    match shown_by {
        Some((EdgeKind::Wr, content)) => {
            format!("{after} read {content} of {before} and replaced it")
        }
        Some((EdgeKind::Rw, content)) => {
            format!("{before} wrote {name} and read {content}, which {after} had not changed yet")
        }
        _ => format!(
            "{before} and {after} both wrote {name}, and {before} comes first: so {after} replaced \
             the {name} of {before}"
        ),
    }
}

fn in_real_time(prose: &Prose<'_>, edge: &Edge) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let ended = prose.history.txn_interval(edge.before).completed;
    let begun = prose.history.txn_interval(edge.after).invoked;
    if ended == NEVER || begun == ALWAYS || ended >= begun {
        return between_events(prose, edge);
    }
    format!("{before} had completed at {} when {after} was invoked at {}", time(ended), time(begun))
}

/// Of transactions that overlap, only some of their begins and commits are in order.
fn between_events(prose: &Prose<'_>, edge: &Edge) -> String {
    let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
    let first = prose.history.txn_times(edge.before);
    let second = prose.history.txn_times(edge.after);
    for (had, completed) in
        [("committed", first.commit.completed), ("begun", first.begin.completed)]
    {
        for (did, invoked) in
            [("began", second.begin.invoked), ("committed", second.commit.invoked)]
        {
            if completed != NEVER && invoked != ALWAYS && completed < invoked {
                let (completed, invoked) = (time(completed), time(invoked));
                return format!(
                    "{before} had {had} by {completed}, before {after} {did}, from {invoked} on"
                );
            }
        }
    }
    format!("{before} had completed when {after} was invoked")
}

/// A time with its unit.
pub(crate) fn time(nanoseconds: Time) -> String {
    let size = nanoseconds.unsigned_abs();
    let with = |unit: u64, name: &str| {
        let sign = if nanoseconds < 0 { "-" } else { "" };
        let digits = unit.ilog10() as usize;
        let parts = format!("{:0digits$}", size % unit);
        let parts = parts.trim_end_matches('0');
        let dot = if parts.is_empty() { "" } else { "." };
        format!("{sign}{}{dot}{parts} {name}", size / unit)
    };
    match size {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => with(1_000, "µs"),
        1_000_000..1_000_000_000 => with(1_000_000, "ms"),
        _ => with(1_000_000_000, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_the_unit_that_fits() {
        let told = [0, 999, 1_500, -2_000_000, 3_000_000_001].map(time);
        assert_eq!(told, ["0 ns", "999 ns", "1.5 µs", "-2 ms", "3.000000001 s"]);
    }
}

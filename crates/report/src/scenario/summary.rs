//! What happened, in one sentence of everyday words.

use super::sentence::chosen;
use crate::prose::{Prose, explain};
use isolde::{Anomaly, AnomalyKind, Cases, Cycle, Edge, EdgeKind, Evidence, INITIAL, Reason, Seen};
use isolde_history::{KeyId, OpId, OpKind, TxnId};

/// The sentence for an anomaly, without a full stop.
pub(super) fn summary(prose: &Prose<'_>, anomaly: &Anomaly) -> String {
    match &anomaly.evidence {
        Evidence::Operations { key, ops } => of_operations(prose, anomaly, *key, ops),
        Evidence::Cycle(cycle) => of_cycle(prose, anomaly.kind, cycle),
        Evidence::Cases(cases) => of_cases(prose, anomaly.kind, cases),
    }
}

fn of_operations(prose: &Prose<'_>, anomaly: &Anomaly, key: KeyId, ops: &[OpId]) -> String {
    let name = |op: OpId| prose.txn(prose.history.txn_of(op));
    let content = |op: OpId| prose.content(op, key);
    let first = ops[0];
    match (anomaly.kind, ops) {
        (AnomalyKind::ThinAirRead, _) => {
            format!("{}, which nobody wrote", prose.saw(first, key))
        }
        (AnomalyKind::AbortedRead, [read, write, ..]) => format!(
            "{} read {}, which {} wrote and rolled back",
            name(*read),
            content(*read),
            name(*write)
        ),
        (AnomalyKind::IntermediateRead, [read, write, ..]) => format!(
            "{} read {}, which {} replaced before it committed",
            name(*read),
            content(*read),
            name(*write)
        ),
        (AnomalyKind::FutureRead, [read, ..]) => {
            format!("{} read {} before it wrote it", name(*read), content(*read))
        }
        (AnomalyKind::NotMyOwnWrite, [read, write, ..]) => {
            format!("{} wrote {} and then read {}", name(*read), content(*write), content(*read))
        }
        (AnomalyKind::NotMyLastWrite, [read, write, ..]) => format!(
            "{} wrote {} and then read {}, an earlier write of its own",
            name(*read),
            content(*write),
            content(*read)
        ),
        // A database that is wrong may return a row twice.
        (AnomalyKind::NonRepeatableRead, [one, other, ..]) if one == other => {
            format!("{} {}: two versions of one row", name(*one), prose.found(*one, key))
        }
        (AnomalyKind::NonRepeatableRead, [one, other, ..]) => {
            let (found, later) = (prose.found(*one, key), prose.found_later(*one, *other, key));
            format!("{} {found} and then {later}", name(*one))
        }
        (AnomalyKind::DuplicateWrite, [one, other, ..]) => {
            format!("{} and {} both wrote {}", name(*one), name(*other), content(*one))
        }
        (AnomalyKind::DuplicateElements, _) => {
            let appended = prose.appended_again(first, key);
            let appended = appended.map_or(String::new(), |appended| format!("; {appended}"));
            format!("{} read {}, with an element twice{appended}", name(first), content(first))
        }
        _ => {
            let text = explain(prose, anomaly);
            text.lines().map(str::trim).collect::<Vec<_>>().join("; ").replace(":; ", ": ")
        }
    }
}

/// What a reader saw and who replaced it.
struct Missed {
    reader: String,
    read: Option<OpId>,
    key: KeyId,
    by: String,
    /// As `x = 1`.
    wrote: String,
}

fn missed(prose: &Prose<'_>, edge: &Edge) -> Option<Missed> {
    let key = edge.key().filter(|_| edge.kind() == EdgeKind::Rw)?;
    let read = edge.read().or_else(|| {
        let mut reads = prose.index.reads_of(edge.before);
        reads.find(|read| read.key == key).map(|read| read.op)
    });
    let write = prose.index.final_write(prose.history, edge.after, key);
    let wrote = match write {
        Some(write) if prose.history.op(write).kind == OpKind::Delete => {
            format!("deletion of {}", prose.key(key))
        }
        Some(write) => prose.content(write, key),
        None => prose.key(key),
    };
    let (reader, by) = (prose.txn(edge.before), prose.txn(edge.after));
    Some(Missed { reader, read, key, by, wrote })
}

impl Missed {
    /// How the read by condition looked, if it was one.
    fn looked(&self, prose: &Prose<'_>) -> Option<String> {
        let read = self.read.filter(|&read| !prose.history.op(read).kind.has_key())?;
        Some(prose.looked(read))
    }

    fn is_aggregate(&self, prose: &Prose<'_>) -> bool {
        self.read.is_some_and(|read| {
            !prose.history.op(read).kind.has_key()
                && prose.history.predicate(read).aggregate.is_some()
        })
    }

    /// As `x = 0`.
    fn saw(&self, prose: &Prose<'_>) -> String {
        self.read.map_or_else(|| prose.key(self.key), |read| prose.seen(read, self.key))
    }

    /// That it looked and missed `what`, to follow the reader's name. What it read instead comes
    /// first.
    fn told(&self, prose: &Prose<'_>, what: &str) -> String {
        match self.looked(prose) {
            Some(looked) if self.is_aggregate(prose) => format!("{looked} without {what}"),
            Some(looked) => format!("{looked} and missed {what}"),
            None => format!("read {} and missed {what}", self.saw(prose)),
        }
    }

    /// The same, what it read instead last.
    fn told_last(&self, prose: &Prose<'_>, what: &str) -> String {
        match self.looked(prose) {
            Some(_) => self.told(prose, what),
            None => format!("missed {what}: it read {}", self.saw(prose)),
        }
    }

    /// That it looked in vain for what it should have seen.
    fn still(&self, prose: &Prose<'_>) -> String {
        match self.looked(prose) {
            Some(_) => self.told(prose, "that"),
            None => format!("read {}", self.saw(prose)),
        }
    }
}

fn of_cycle(prose: &Prose<'_>, kind: AnomalyKind, cycle: &Cycle) -> String {
    let edges = &cycle.edges;
    let name = |txn: TxnId| prose.txn(txn);
    let mut all: Vec<Missed> = edges.iter().filter_map(|edge| missed(prose, edge)).collect();
    if edges.len() == 2 && matches!(kind, AnomalyKind::WriteSkew | AnomalyKind::ReadSkew) {
        // That one of two writers of a key comes first may follow from what it missed.
        all = edges.iter().filter_map(|edge| missed(prose, behind(edge))).collect();
    }
    let chain: Vec<String> =
        edges.iter().filter(|edge| edge.before != INITIAL).map(|edge| name(edge.before)).collect();
    match kind {
        AnomalyKind::LostUpdate => return lost_update(prose, edges),
        AnomalyKind::LostInsert => return lost_insert(prose, edges, &all),
        _ => {}
    }
    match (&all[..], &edges[..]) {
        ([], _) => without_misses(prose, kind, &chain, edges),
        ([it], _) => {
            let place = edges.iter().position(|edge| missed(prose, edge).is_some()).unwrap_or(0);
            let path: Vec<&Edge> = edges[place + 1..].iter().chain(&edges[..place]).collect();
            one_miss(prose, it, &path)
        }
        ([one, other], [_, _]) => {
            let told = |it: &Missed| {
                let what = format!("{} of {}", it.wrote, it.by);
                format!("{} {}", it.reader, it.told(prose, &what))
            };
            format!("{}, {}: neither saw the other", told(one), told(other))
        }
        _ if matches!(
            kind,
            AnomalyKind::LongFork | AnomalyKind::SessionLongFork | AnomalyKind::RealTimeLongFork
        ) && all.len() == 2 =>
        {
            format!(
                "{} had seen {} and missed {}, while {} had seen {} and missed {}",
                all[0].reader, all[1].by, all[0].by, all[1].reader, all[0].by, all[1].by
            )
        }
        _ => {
            let told = |it: &Missed| format!("{} missed {} of {}", it.reader, it.wrote, it.by);
            let told: Vec<String> = all.iter().map(told).collect();
            format!("{}: that closes a circle", told.join(", "))
        }
    }
}

/// The anti-dependency between the same transactions that an order of writers follows from.
fn behind(edge: &Edge) -> &Edge {
    match edge.pair() {
        Some((_, [only])) if (only.before, only.after) == (edge.before, edge.after) => only,
        _ => edge,
    }
}

/// One transaction missed what it had to see, because of a path that leads from the one to
/// the other.
fn one_miss(prose: &Prose<'_>, it: &Missed, path: &[&Edge]) -> String {
    let Missed { reader, by, wrote, .. } = it;
    let its = format!("its {wrote}");
    let only = match path {
        [only] => (Some(only.kind()), only.read().zip(only.key())),
        _ => (None, None),
    };
    match only {
        (Some(EdgeKind::Wr), Some((read, key))) if key == it.key => {
            seen_and_missed(prose, it, read)
        }
        (Some(EdgeKind::Wr), Some((read, key))) => {
            let saw = saw_of(prose, read, key, by);
            match it.looked(prose) {
                Some(_) if it.read == Some(read) => format!("{reader} {saw}, but missed {its}"),
                Some(_) => format!("{reader} {saw}, but also {}", it.told(prose, &its)),
                None => format!("{reader} {saw}, but {}", it.told_last(prose, &its)),
            }
        }
        (Some(EdgeKind::RealTime), _) => format!(
            "{reader} began after {by} had written {wrote} and ended, and still {}",
            it.still(prose)
        ),
        (Some(EdgeKind::Session), _) => format!(
            "{by} wrote {wrote}, and {reader}, later in the same session, still {}",
            it.still(prose)
        ),
        _ => {
            let between: Vec<String> =
                path.iter().skip(1).map(|edge| prose.txn(edge.before)).collect();
            let by_way = match &between[..] {
                [] => String::new(),
                names => format!(", by way of {}", names.join(" and ")),
            };
            format!("{reader} comes after {by}{by_way}, but {}", it.told_last(prose, &its))
        }
    }
}

/// One transaction saw a version and missed the same.
fn seen_and_missed(prose: &Prose<'_>, it: &Missed, read: OpId) -> String {
    let (reader, saw) = (&it.reader, saw_of(prose, read, it.key, &it.by));
    match it.looked(prose) {
        Some(looked) if it.read == Some(read) => {
            format!("{reader} {looked} and read {}: two versions of one row", it.saw(prose))
        }
        Some(_) => format!("{reader} {saw}, but also {}", it.told(prose, "it")),
        None => format!("{reader} {saw}, but also read {}", it.saw(prose)),
    }
}

/// What was seen of another transaction, and how.
fn saw_of(prose: &Prose<'_>, read: OpId, key: KeyId, by: &str) -> String {
    let history = prose.history;
    if history.op(read).kind.has_key() {
        return format!("saw {} of {by}", prose.seen(read, key));
    }
    let looked = prose.looked(read);
    let predicate = history.predicate(read);
    let name = prose.key(key);
    if predicate.aggregate.is_some() {
        return format!("{looked}, with {name} as {by} left it");
    }
    if prose.is_replaced(read, key) {
        return format!("{looked} and found {name}, as {by} left it");
    }
    if predicate.item_rows().any(|row| row.key == key && row.matched) {
        return format!("{looked} and saw {} of {by}", prose.content(read, key));
    }
    format!("{looked} and did not find {name}, as {by} left it")
}

fn without_misses(
    prose: &Prose<'_>,
    kind: AnomalyKind,
    chain: &[String],
    edges: &[Edge],
) -> String {
    let names = chain.join(", ");
    match kind {
        AnomalyKind::DirtyWrite => {
            format!("{names} each overwrote something of the next one")
        }
        AnomalyKind::SessionDirtyWrite => {
            format!("writes of {names} were installed against the order of their session")
        }
        AnomalyKind::RealTimeDirtyWrite => {
            format!("writes of {names} were installed against the order in which they ended")
        }
        _ => in_a_circle(prose, edges).unwrap_or_else(|| {
            format!("each of {names} saw something of the one before it, in a circle")
        }),
    }
}

/// Who saw whom, where not every step is of that kind.
fn in_a_circle(prose: &Prose<'_>, edges: &[Edge]) -> Option<String> {
    let step = |edge: &Edge| {
        let (before, after) = (prose.txn(edge.before), prose.txn(edge.after));
        match edge.kind() {
            EdgeKind::Wr => {
                Some(format!("{after} {}", saw_of(prose, edge.read()?, edge.key()?, &before)))
            }
            EdgeKind::Session => Some(format!("{after} followed {before} in its session")),
            EdgeKind::RealTime => Some(format!("{after} came later than {before} by the clock")),
            _ => None,
        }
    };
    let is_seen = |edge: &Edge| edge.kind() == EdgeKind::Wr;
    if edges.iter().all(is_seen) {
        return None;
    }
    let steps: Option<Vec<String>> = edges.iter().map(step).collect();
    Some(format!("{}: that closes a circle", steps?.join(", ")))
}

fn lost_update(prose: &Prose<'_>, edges: &[Edge]) -> String {
    let read_of = |edge: &Edge| edge.read().zip(edge.key()).filter(|_| edge.kind() == EdgeKind::Rw);
    let (one, other) = (prose.txn(edges[0].before), prose.txn(edges[1].before));
    let seen: Vec<(OpId, KeyId)> = edges.iter().filter_map(read_of).collect();
    let written = |txn: TxnId, key| prose.written(txn, key);
    match seen[..] {
        [(first, key), (second, _)] if prose.seen(first, key) == prose.seen(second, key) => {
            let content = prose.seen(first, key);
            let (a, b) = (edges[0].before, edges[1].before);
            if let (Some(a), Some(b)) = (appended(prose, a, key), appended(prose, b, key)) {
                return format!(
                    "{one} and {other} both read {content} and both appended to that, {one} {a} and \
                     {other} {b}: one of them did not see the other"
                );
            }
            format!(
                "{one} and {other} both read {content} and both replaced it, {one}{} and {other}{}: \
                 one of the updates is lost",
                written(edges[0].before, key),
                written(edges[1].before, key)
            )
        }
        [(read, key), ..] => {
            let edge = edges.iter().find(|edge| read_of(edge).is_some()).unwrap_or(&edges[0]);
            if let (false, Some(write)) = (
                prose.history.op(read).kind.has_key(),
                prose.index.final_write(prose.history, edge.after, key),
            ) {
                return format!(
                    "{0} {1} and missed {2} of {3}; {0} then replaced that without having seen it",
                    prose.txn(edge.before),
                    prose.looked(read),
                    prose.content(write, key),
                    prose.txn(edge.after)
                );
            }
            if let Some(element) = appended(prose, edge.after, key) {
                return format!(
                    "{0} read {1}, to which {2} appended {element}; {0} appended without having \
                     seen that",
                    prose.txn(edge.before),
                    prose.seen(read, key),
                    prose.txn(edge.after),
                );
            }
            format!(
                "{0} read {1}, which {2} replaced{3}; {0} then replaced that without having seen \
                 it",
                prose.txn(edge.before),
                prose.seen(read, key),
                prose.txn(edge.after),
                written(edge.after, key)
            )
        }
        [] => format!("{one} and {other} each replaced what the other wrote"),
    }
}

/// What a transaction last appended to a list.
fn appended(prose: &Prose<'_>, txn: TxnId, key: KeyId) -> Option<String> {
    let write = prose.index.final_write(prose.history, txn, key)?;
    let write = prose.history.op(write);
    (write.kind == OpKind::Append).then(|| prose.value(write.value))
}

fn lost_insert(prose: &Prose<'_>, edges: &[Edge], all: &[Missed]) -> String {
    let (one, other) = (edges[0].before, edges[1].before);
    let Some(key) = all.first().map(|it| it.key) else { return lost_update(prose, edges) };
    format!(
        "{0} and {1} both found no {2} and both inserted it, {0}{3} and {1}{4}: one of the two is \
         lost",
        prose.txn(one),
        prose.txn(other),
        prose.key(key),
        prose.written(one, key),
        prose.written(other, key)
    )
}

/// The first anti-dependency of a cycle.
fn anti_dependency(cycle: &Cycle) -> Option<Edge> {
    let mut edges = cycle.edges.iter();
    edges.find(|edge| edge.kind() == EdgeKind::Rw && edge.read().is_some()).cloned()
}

fn of_cases(prose: &Prose<'_>, kind: AnomalyKind, cases: &Cases) -> String {
    if let Some(told) = whoever_appended(prose, cases) {
        return told;
    }
    if let [one, other] = &cases.cycles[..]
        && let (Some(one), Some(other)) = (anti_dependency(one), anti_dependency(other))
    {
        // Each case has the anti-dependency that the other one lacks.
        let edges = vec![one, other];
        match kind {
            AnomalyKind::LostUpdate => return lost_update(prose, &edges),
            AnomalyKind::ReadSkew if is_between_two(&edges) => {
                return of_cycle(prose, kind, &Cycle { edges });
            }
            _ => {}
        }
    }
    if let Some((key, one, other)) = written_at_once(cases) {
        return format!(
            "{} and {} ran at the same time, both wrote {}, and neither was refused",
            prose.txn(one),
            prose.txn(other),
            prose.key(key)
        );
    }
    if let Some(told) = whatever_was_seen(prose, cases) {
        return told;
    }
    let assumed =
        cases.cycles.iter().flat_map(|cycle| &cycle.edges).find_map(|edge| match edge.reason {
            Reason::Assumed { key, first, second } => Some((key, first, second)),
            _ => None,
        });
    match assumed {
        Some((key, first, second)) => format!(
            "whichever of {} and {} wrote {} first, somebody saw what cannot have been",
            prose.txn(first),
            prose.txn(second),
            prose.key(key)
        ),
        None => whoever_wrote(prose, cases).unwrap_or_else(|| {
            "whatever the order of the versions, somebody saw what cannot have been".to_owned()
        }),
    }
}

/// Whether two transactions missed each other.
fn is_between_two(edges: &[Edge]) -> bool {
    matches!(edges, [one, other] if (one.before, one.after) == (other.after, other.before))
}

/// Of cases that differ in what an operation by condition saw.
fn whatever_was_seen(prose: &Prose<'_>, cases: &Cases) -> Option<String> {
    let first = cases.seen.first()?;
    let is_other = |seen: &Seen| {
        (seen.read, seen.key) == (first.read, first.key) && seen.writer != first.writer
    };
    cases.seen.iter().any(is_other).then(|| {
        format!(
            "{} {}: whichever version of {} was there, somebody saw what cannot have been",
            prose.txn(prose.history.txn_of(first.read)),
            prose.looked(first.read),
            prose.key(first.key)
        )
    })
}

/// Of cases that differ in who appended an element that was read.
fn whoever_appended(prose: &Prose<'_>, cases: &Cases) -> Option<String> {
    let history = prose.history;
    let first = *cases.ways.first()?.added.first()?;
    let (element, key) = (history.op(first).value, history.op(first).key);
    let mut names: Vec<String> = Vec::new();
    for &append in cases.ways.iter().flat_map(|way| &way.added) {
        let (it, name) = (history.op(append), prose.txn(history.txn_of(append)));
        if (it.value, it.key) == (element, key) && !names.contains(&name) {
            names.push(name);
        }
    }
    let last = names.pop()?;
    Some(format!(
        "whichever of {} and {last} appended the {} of {} that was read, somebody saw what cannot \
         have been",
        names.join(", "),
        prose.value(element),
        prose.key(key)
    ))
}

/// Two writers of a key neither of which can have come first, by nothing but the times at
/// which they ran.
pub(super) fn written_at_once(cases: &Cases) -> Option<(KeyId, TxnId, TxnId)> {
    let of_case = |cycle: &Cycle| match &cycle.edges[..] {
        [Edge { reason: Reason::Assumed { key, first, second }, .. }, other]
            if other.kind() == EdgeKind::RealTime =>
        {
            Some((*key, *first, *second))
        }
        _ => None,
    };
    let [one, other] = &cases.cycles[..] else { return None };
    let ((key, first, second), again) = (of_case(one)?, of_case(other)?);
    (again == (key, second, first)).then_some((key, first, second))
}

/// The same of writers, if cases differ in whose value a read saw.
fn whoever_wrote(prose: &Prose<'_>, cases: &Cases) -> Option<String> {
    let mut choices = Vec::new();
    let mut open: Vec<&Edge> = cases.cycles.iter().flat_map(|cycle| &cycle.edges).rev().collect();
    while let Some(edge) = open.pop() {
        choices.extend(chosen(prose, edge));
        open.extend(edge.premises().iter().rev());
    }
    let &(read, key, first) = choices.first()?;
    let mut writers = vec![prose.txn(first)];
    for &(other, _, writer) in &choices {
        let name = prose.txn(writer);
        if other == read && !writers.contains(&name) {
            writers.push(name);
        }
    }
    let last = writers.pop().expect("one at least");
    let reader = prose.txn(prose.history.txn_of(read));
    let whoever = match writers.as_slice() {
        [] => format!("if {last} wrote"),
        others => format!("whichever of {} and {last} wrote", others.join(", ")),
    };
    Some(format!(
        "{whoever} the {} that {reader} read, somebody saw what cannot have been",
        prose.seen(read, key)
    ))
}

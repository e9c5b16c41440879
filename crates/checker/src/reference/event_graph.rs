//! Levels that ask for an order of begins and commits.
//!
//! **Definition** [Adya99; the table of events is Isolde's]. Each counted
//! transaction has a begin B and a commit C with B → C, or one event where the
//! level does not tell them apart. Each key has a version order: a total order of
//! its counted writers that contains what is known of it. That makes the
//! dependencies `wr` (writer to reader), `ww` (earlier to later writer) and `rw`
//! (reader to every writer of a later version). The level says which edge between
//! events each dependency means, and is satisfied if some version orders leave the
//! graph without a cycle.
//!
//! Real time: an event precedes another if the client saw the first complete
//! before it invoked the second. A transaction of unknown outcome precedes
//! nothing. Levels with real time and sessions include session order, because a
//! client does one thing after another even if its clock does not tell.
//!
//! Reads by condition add dependencies of their own; see `conditions`. Repeatable read and
//! parallel snapshot isolation have none of them.
//!
//! Parallel snapshot isolation has no event for this: it asks that no cycle has
//! fewer than two `rw`.

use super::conditions::{self, Constraint};
use super::execution::{Counted, Execution};
use super::relation::{Relation, permutations};
use crate::level::Level;
use crate::unknown::{Obstacle, Size};
use isolde_history::{KeyId, Outcome};

/// More graphs are refused.
const GRAPHS_MAX: usize = 100_000;
/// More keys with several writers are refused.
const KEYS_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Begin = 0,
    Commit = 1,
}
use Event::{Begin, Commit};

type Edge = (Event, Event);

/// What a level makes of dependencies.
struct Rules {
    events: Events,
    wr: Edge,
    ww: Edge,
    rw: Edge,
    so: Option<Edge>,
    rt: &'static [Edge],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Events {
    BeginAndCommit,
    One,
}

const SNAPSHOT: Rules = Rules {
    events: Events::BeginAndCommit,
    wr: (Commit, Begin),
    ww: (Commit, Begin),
    rw: (Begin, Commit),
    so: None,
    rt: &[],
};

const SERIAL: Rules = Rules { events: Events::One, ..SNAPSHOT };

const IN_SESSION: Option<Edge> = Some((Commit, Begin));

/// What the level makes of dependencies. Parallel snapshot isolation uses none of it.
fn rules(level: Level) -> Rules {
    match level {
        Level::Prefix => Rules { ww: (Commit, Commit), so: IN_SESSION, ..SNAPSHOT },
        Level::GeneralizedSnapshotIsolation => {
            Rules { rt: &[(Begin, Commit), (Commit, Commit)], ..SNAPSHOT }
        }
        Level::SessionSnapshotIsolation => Rules { so: IN_SESSION, ..SNAPSHOT },
        Level::PrefixConsistentSnapshotIsolation => {
            Rules { so: IN_SESSION, rt: &[(Begin, Commit), (Commit, Commit)], ..SNAPSHOT }
        }
        Level::StrongSnapshotIsolation => Rules {
            so: IN_SESSION,
            rt: &[(Begin, Commit), (Commit, Commit), (Commit, Begin)],
            ..SNAPSHOT
        },
        Level::Serializable | Level::RepeatableRead => SERIAL,
        Level::SessionSerializable => Rules { so: IN_SESSION, ..SERIAL },
        Level::StrictSerializable | Level::Linearizable => {
            Rules { so: IN_SESSION, rt: &[(Commit, Begin)], ..SERIAL }
        }
        _ => SNAPSHOT,
    }
}

/// Whether the level can only be decided with times.
pub(super) fn needs_times(level: Level) -> bool {
    !rules(level).rt.is_empty()
}

/// Whether some version orders satisfy the level, or why that was not found out.
pub(super) fn is_satisfied(execution: &Execution<'_>, level: Level) -> Result<bool, Obstacle> {
    let candidates: Vec<(KeyId, Vec<Vec<Counted>>)> = (execution.writers.iter())
        .map(|(&key, writers)| (key, version_orders(execution, key, writers)))
        .collect();
    if candidates.iter().any(|(_, orders)| orders.is_empty()) {
        return Ok(false);
    }
    let (open, settled): (Vec<_>, Vec<_>) =
        (candidates.into_iter()).partition(|(_, orders)| orders.len() > 1);
    if open.len() > KEYS_MAX {
        return Err(Obstacle::TooLarge(Size::OpenKeys(open.len(), KEYS_MAX)));
    }
    let mut chosen: Vec<(KeyId, &[Counted])> =
        (settled.iter()).map(|(key, orders)| (*key, orders[0].as_slice())).collect();
    let mut graphs_left = GRAPHS_MAX;
    extend(execution, level, &open, &mut chosen, &mut graphs_left)
}

fn version_orders(execution: &Execution<'_>, key: KeyId, writers: &[Counted]) -> Vec<Vec<Counted>> {
    let known = execution.versions.get(&key).copied().unwrap_or_default();
    let mut orders = permutations(writers);
    orders.retain(|order| known.is_within(Relation::total(order)));
    orders
}

/// Tries every version order of the open keys. Another key only adds edges, so a
/// cycle found early stays.
fn extend<'o>(
    execution: &Execution<'_>,
    level: Level,
    open: &'o [(KeyId, Vec<Vec<Counted>>)],
    chosen: &mut Vec<(KeyId, &'o [Counted])>,
    graphs_left: &mut usize,
) -> Result<bool, Obstacle> {
    if *graphs_left == 0 {
        return Err(Obstacle::TooLarge(Size::VersionOrders(GRAPHS_MAX)));
    }
    *graphs_left -= 1;
    if !permits(execution, level, &dependencies(execution, level, chosen)) {
        return Ok(false);
    }
    let Some(((key, orders), rest)) = open.split_first() else {
        let dependencies = dependencies(execution, level, chosen);
        if matches!(level, Level::RepeatableRead | Level::ParallelSnapshotIsolation) {
            return Ok(true);
        }
        let constraints = conditions::constraints(execution, chosen)?;
        return meets(execution, level, dependencies, &constraints, graphs_left);
    };
    for order in orders {
        chosen.push((*key, order));
        let found = extend(execution, level, rest, chosen, graphs_left)?;
        chosen.pop();
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tries every way to meet what reads by condition ask for.
fn meets(
    execution: &Execution<'_>,
    level: Level,
    dependencies: Dependencies,
    constraints: &[Constraint],
    graphs_left: &mut usize,
) -> Result<bool, Obstacle> {
    if *graphs_left == 0 {
        return Err(Obstacle::TooLarge(Size::Predicates(GRAPHS_MAX)));
    }
    *graphs_left -= 1;
    if !permits(execution, level, &dependencies) {
        return Ok(false);
    }
    let Some((constraint, rest)) = constraints.split_first() else {
        return Ok(true);
    };
    for alternative in constraint {
        let more = Dependencies {
            wr: dependencies.wr.or(alternative.wr),
            ww: dependencies.ww,
            rw: dependencies.rw.or(alternative.rw),
        };
        if meets(execution, level, more, rest, graphs_left)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Clone, Copy)]
struct Dependencies {
    wr: Relation,
    ww: Relation,
    rw: Relation,
}

fn dependencies(
    execution: &Execution<'_>,
    level: Level,
    version_orders: &[(KeyId, &[Counted])],
) -> Dependencies {
    let mut found =
        Dependencies { wr: execution.reads_from, ww: Relation::default(), rw: Relation::default() };
    for &(key, order) in version_orders {
        found.ww = found.ww.or(Relation::total(order));
        for read in execution.reads.iter().filter(|read| read.key == key) {
            // Repeatable read does not protect what was read by condition.
            if read.is_row && level == Level::RepeatableRead {
                continue;
            }
            let seen = (order.iter()).position(|&writer| Some(writer) == read.writer);
            let later = seen.map_or(order, |place| &order[place + 1..]);
            for &writer in later.iter().filter(|&&writer| writer != read.reader) {
                found.rw.insert(read.reader, writer);
            }
        }
    }
    found
}

fn permits(execution: &Execution<'_>, level: Level, dependencies: &Dependencies) -> bool {
    let Dependencies { wr, ww, rw } = *dependencies;
    if level == Level::ParallelSnapshotIsolation {
        let depends = wr.or(ww).closure();
        return depends.is_irreflexive() && depends.then(rw).is_irreflexive();
    }
    let rules = rules(level);
    let event = |txn: Counted, event: Event| match rules.events {
        Events::BeginAndCommit => 2 * txn + event as usize,
        Events::One => txn,
    };
    let txns = 0..execution.counted.len();
    let mut graph = Relation::default();
    let mut add = |order: Relation, edge: Edge| {
        for first in txns.clone() {
            for second in txns.clone().filter(|&second| order.contains(first, second)) {
                graph.insert(event(first, edge.0), event(second, edge.1));
            }
        }
    };
    add(wr, rules.wr);
    add(ww, rules.ww);
    add(rw, rules.rw);
    if let Some(edge) = rules.so {
        add(execution.session_order, edge);
    }
    for &edge in rules.rt {
        add(real_time(execution, edge), edge);
    }
    if rules.events == Events::BeginAndCommit {
        for txn in txns {
            graph.insert(event(txn, Begin), event(txn, Commit));
        }
    }
    graph.is_acyclic()
}

/// Transactions whose event of the first kind completed before another's event of
/// the second kind was invoked, whatever the drift of their clocks.
fn real_time(execution: &Execution<'_>, edge: Edge) -> Relation {
    let history = execution.history;
    let interval = |txn: Counted, event: Event| {
        let times = history.txn_times(execution.counted[txn]);
        match event {
            Begin => times.begin,
            Commit => times.commit,
        }
    };
    let mut order = Relation::default();
    for first in 0..execution.counted.len() {
        if history.outcome(execution.counted[first]) == Outcome::Unknown {
            continue;
        }
        for second in (0..execution.counted.len()).filter(|&second| second != first) {
            let completed = interval(first, edge.0).completed.saturating_add(execution.clock_drift);
            if completed < interval(second, edge.1).invoked {
                order.insert(first, second);
            }
        }
    }
    order
}

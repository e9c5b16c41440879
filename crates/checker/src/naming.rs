//! Cycles by name: what the kinds of their edges say.
//!
//! **Definition** [Adya99, and Elle's names]. Without an anti-dependency a cycle is G1c if
//! something was read, else G0. With one it is G-single, with several none of which follows
//! another G-nonadjacent, else G2; `-item` if no read by condition is part of it. What needs
//! session order to be a cycle is `-process`, what needs real time `-realtime`.
//!
//! An edge may be derived, and then what it is derived from counts too: a version order that
//! only real time shows makes a cycle one of real time, and one that only holds because
//! writers of a key do not overlap counts as the dependencies between these writers. If the
//! level allows what that gives, the order of the writers counts by itself: that they must not
//! overlap is what the level is violated by. A name is one that the level forbids.

use crate::anomaly::{Anomaly, AnomalyKind, Cases, Evidence, of_named_cycle};
use crate::evidence::{Cycle, Edge, EdgeKind, INITIAL, Reason, with_premises};
use crate::level::Level;
use isolde_certificate::Rule;
use isolde_history::{History, KeyId, OpId, OpKind, TxnId};

/// How often a cycle is turned until no edge of it says that something was overwritten.
const TURNS_MAX: usize = 16;

impl Anomaly {
    /// Elle's name of a cycle; `None` for what is no cycle.
    pub fn elle_name(&self, history: &History) -> Option<String> {
        let Evidence::Cycle(cycle) = &self.evidence else { return None };
        let cycle = plain(history, cycle.clone());
        let [dependencies, as_told] = shapes(history, &cycle);
        let shape =
            if is_named_as_told(history, &cycle, self.kind) { as_told } else { dependencies };
        Some(shape.elle_name())
    }
}

impl Cycle {
    /// The dependencies that a cycle is named by: in place of an order of two writers of a key
    /// that only holds because such writers do not overlap, the path that it follows from, if
    /// the name is of that.
    #[must_use]
    pub fn dependencies(&self, history: &History, kind: AnomalyKind) -> Cycle {
        if is_named_as_told(history, self, kind) {
            return self.clone();
        }
        Cycle { edges: raw(history, &self.edges).into_iter().cloned().collect() }
    }

    /// Elle's name of the cycle; `None` if some of what it follows from is told elsewhere, and
    /// with it perhaps who missed what.
    pub(crate) fn elle_name(&self, history: &History) -> Option<String> {
        let cycle = plain(history, self.clone());
        let is_open = |edge: &&Edge| edge.is_overwriting() || is_elsewhere(edge);
        let dependencies = raw(history, &cycle.edges);
        let is_whole = !dependencies.iter().any(is_open);
        is_whole.then(|| Shape::of(history, &dependencies).elle_name())
    }

    /// Pairs of writers of a key that these dependencies need not to overlap.
    pub fn apart(&self, history: &History, kind: AnomalyKind) -> Vec<(TxnId, TxnId, KeyId)> {
        let mut apart = Vec::new();
        let mut open: Vec<&Edge> = self.edges.iter().rev().collect();
        if is_named_as_told(history, self, kind) {
            return apart;
        }
        while let Some(edge) = open.pop() {
            if let Some((key, because)) = path(history, edge) {
                apart.push((edge.before, edge.after, key));
                open.extend(because.iter().rev());
            }
        }
        apart
    }
}

/// The anomaly of a cycle of begins and commits that violates a level.
pub(crate) fn of_event_cycle(history: &History, level: Level, cycle: Cycle) -> Anomaly {
    let cycle = plain(history, cycle);
    let kind = kind_at(history, level, &cycle);
    of_named_cycle(history, cycle, kind)
}

/// The same for cycles, one of which there is in any case.
pub(crate) fn of_argument(history: &History, level: Level, evidence: Evidence) -> Anomaly {
    match evidence {
        Evidence::Cycle(cycle) => of_event_cycle(history, level, cycle),
        Evidence::Cases(cases) => {
            let mut kinds: Vec<AnomalyKind> =
                cases.cycles.iter().map(|cycle| kind_at(history, level, cycle)).collect();
            kinds.dedup();
            let named = match kinds[..] {
                [kind] => kind,
                _ => AnomalyKind::NoVersionOrder,
            };
            Anomaly { kind: named, ..of_cases(cases) }
        }
        Evidence::Operations { .. } => unreachable!("operations need no argument"),
    }
}

/// The same anomaly, its cycle told by who missed what.
pub(crate) fn plainly(history: &History, anomaly: Anomaly) -> Anomaly {
    match anomaly.evidence {
        Evidence::Cycle(cycle) => of_named_cycle(history, plain(history, cycle), anomaly.kind),
        _ => anomaly,
    }
}

/// The anomaly of a history that no order of versions explains.
pub(crate) fn of_cases(cases: Cases) -> Anomaly {
    let mut txns: Vec<TxnId> = Vec::new();
    for txn in cases.cycles.iter().flat_map(Cycle::txns) {
        if !txns.contains(&txn) {
            txns.push(txn);
        }
    }
    Anomaly { kind: AnomalyKind::NoVersionOrder, txns, evidence: Evidence::Cases(cases) }
}

/// An edge that says "this was overwritten, because a reader had to see it and did not"
/// hides an anti-dependency. The same cycle begins with that: the reader missed what it had to
/// see, whose version is later because of the rest of the cycle. Not so if the rest has
/// anti-dependencies that follow each other: then it is they that matter, and snapshots may be
/// what the reader saw.
pub(crate) fn plain(history: &History, mut cycle: Cycle) -> Cycle {
    for _ in 0..TURNS_MAX {
        let is_hiding = |edge: &Edge| edge.is_overwriting() && is_told(edge.premises());
        let Some(place) = cycle.edges.iter().position(is_hiding) else { break };
        cycle.edges.rotate_left(place);
        if cycle.edges[1..].windows(2).any(|pair| pair.iter().all(is_anti)) {
            break;
        }
        let rest = cycle.edges.split_off(1);
        let Some(Edge { before: missed, after: writer, reason, conflict }) = cycle.edges.pop()
        else {
            break;
        };
        let Reason::Rule(Rule::Visible { read, key, path: visible }) = reason else { break };
        let path = match &rest[..] {
            _ if writer == INITIAL => Vec::new(),
            [only] if only.key() == Some(key) && only.is_version() => rest,
            _ => vec![Edge::by(Rule::Pair { key, path: rest }, writer, missed)],
        };
        let rule = Rule::AntiDependency { read, key, path };
        cycle.edges = vec![Edge { conflict, ..Edge::by(rule, history.txn_of(read), missed) }];
        cycle.edges.extend(visible);
    }
    cycle
}

fn is_anti(edge: &Edge) -> bool {
    edge.kind() == EdgeKind::Rw
}

/// What a name depends on.
struct Shape {
    edges: usize,
    anti: usize,
    /// Whether one anti-dependency follows another.
    adjacent: bool,
    reads: bool,
    by_condition: bool,
    needs: Needs,
}

/// What beside dependencies makes a cycle one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Needs {
    Nothing,
    Session,
    RealTime,
}

/// The edges of a cycle, with the path that it follows from in place of a version order that
/// follows from one.
fn raw<'a>(history: &History, edges: &'a [Edge]) -> Vec<&'a Edge> {
    let mut raw = Vec::new();
    let mut open: Vec<&Edge> = edges.iter().rev().collect();
    while let Some(edge) = open.pop() {
        match path(history, edge) {
            Some((_, because)) => open.extend(because.iter().rev()),
            None => raw.push(edge),
        }
    }
    raw
}

/// The path that an order of two writers of a key follows from, if it follows from one.
fn path<'a>(history: &History, edge: &'a Edge) -> Option<(KeyId, &'a [Edge])> {
    edge.pair().filter(|&(_, path)| is_told(path) && !is_shown_by_list(history, edge))
}

/// Whether what an edge follows from stands here.
fn is_told(premises: &[Edge]) -> bool {
    !premises.is_empty() && !premises.iter().any(is_elsewhere)
}

fn is_elsewhere(edge: &Edge) -> bool {
    matches!(edge.reason, Reason::AsTold | Reason::Untold { .. })
}

/// Whether the earlier writer read a list with its own element and without that of the later
/// one: that shows the order of the two whatever the level.
fn is_shown_by_list(history: &History, edge: &Edge) -> bool {
    let Some((key, [only])) = edge.pair() else { return false };
    let Some(read) = only.read().filter(|_| is_anti(only) && only.key() == Some(key)) else {
        return false;
    };
    if history.op(read).kind != OpKind::ReadList {
        return false;
    }
    let is_own = |op: OpId| history.op(op).kind.is_write() && history.op(op).key == key;
    let mut own = history.ops_of(edge.before).filter(|&op| is_own(op));
    own.any(|op| history.list(read).contains(&history.op(op).value))
}

/// The shapes that a cycle is named by: of its dependencies, and as it is told.
fn shapes(history: &History, cycle: &Cycle) -> [Shape; 2] {
    [raw(history, &cycle.edges), cycle.edges.iter().collect()]
        .map(|edges| Shape::of(history, &edges))
}

/// Whether a cycle is called by the orders of writers that are told, and not by what these
/// follow from.
fn is_named_as_told(history: &History, cycle: &Cycle, kind: AnomalyKind) -> bool {
    let [by_dependencies, as_told] =
        shapes(history, cycle).map(|shape| kind_of(history, cycle, &shape));
    as_told == kind && by_dependencies != kind
}

/// What a level forbids of what a cycle can be called.
fn kind_at(history: &History, level: Level, cycle: &Cycle) -> AnomalyKind {
    let [by_dependencies, as_told] =
        shapes(history, cycle).map(|shape| kind_of(history, cycle, &shape));
    match [by_dependencies, as_told].map(|kind| level.forbids(kind)) {
        [true, _] => by_dependencies,
        [_, true] => as_told,
        // Who missed what replaced an item, and wrote the item, has replaced that.
        _ if level == Level::CursorStability => AnomalyKind::LostUpdate,
        _ => by_dependencies,
    }
}

impl Shape {
    fn of(history: &History, edges: &[&Edge]) -> Shape {
        let next = |place: usize| edges[(place + 1) % edges.len()];
        let all = with_premises(edges.iter().copied());
        let needs = all.into_iter().map(|edge| match edge.kind() {
            EdgeKind::Session => Needs::Session,
            EdgeKind::RealTime => Needs::RealTime,
            _ => Needs::Nothing,
        });
        let by_condition = |read: OpId| !history.op(read).kind.has_key();
        Shape {
            edges: edges.len(),
            anti: edges.iter().filter(|edge| is_anti(edge)).count(),
            adjacent: (0..edges.len())
                .any(|place| is_anti(edges[place]) && is_anti(next(place)) && edges.len() > 1),
            reads: edges.iter().any(|edge| edge.kind() == EdgeKind::Wr),
            by_condition: (edges.iter().filter(|edge| is_anti(edge)))
                .any(|edge| edge.read().is_some_and(by_condition)),
            needs: needs.max().unwrap_or(Needs::Nothing),
        }
    }

    fn elle_name(&self) -> String {
        let kind = match self.anti {
            0 if self.reads => "G1c",
            0 => "G0",
            1 => "G-single",
            _ if !self.adjacent => "G-nonadjacent",
            _ => "G2",
        };
        let item = if self.anti > 0 && !self.by_condition { "-item" } else { "" };
        let needs = match self.needs {
            Needs::RealTime => "-realtime",
            Needs::Session => "-process",
            Needs::Nothing => "",
        };
        format!("{kind}{item}{needs}")
    }
}

fn kind_of(history: &History, cycle: &Cycle, shape: &Shape) -> AnomalyKind {
    let pick = |plain, in_session, in_real_time| match shape.needs {
        Needs::RealTime => in_real_time,
        Needs::Session => in_session,
        Needs::Nothing => plain,
    };
    let is_plain = shape.needs == Needs::Nothing;
    match shape.anti {
        0 if shape.reads => pick(
            AnomalyKind::CircularInformationFlow,
            AnomalyKind::SessionCircularInformationFlow,
            AnomalyKind::RealTimeCircularInformationFlow,
        ),
        0 => pick(
            AnomalyKind::DirtyWrite,
            AnomalyKind::SessionDirtyWrite,
            AnomalyKind::RealTimeDirtyWrite,
        ),
        _ if is_plain && is_lost_update(&cycle.edges) => {
            let is_insert = shape.by_condition && is_of_inserts(history, &cycle.edges);
            if is_insert { AnomalyKind::LostInsert } else { AnomalyKind::LostUpdate }
        }
        1 if is_plain && shape.by_condition => seen_by_condition(history, &cycle.edges),
        1 if shape.edges == 2
            && cycle.edges.iter().any(|edge| edge.kind() == EdgeKind::RealTime) =>
        {
            AnomalyKind::StaleRead
        }
        1 => {
            pick(AnomalyKind::ReadSkew, AnomalyKind::SessionReadSkew, AnomalyKind::RealTimeReadSkew)
        }
        _ if !shape.adjacent => {
            pick(AnomalyKind::LongFork, AnomalyKind::SessionLongFork, AnomalyKind::RealTimeLongFork)
        }
        2 if shape.by_condition && shape.edges == 2 => AnomalyKind::PredicateWriteSkew,
        _ if shape.by_condition => AnomalyKind::PredicateAntiDependencyCycle,
        2 if shape.edges == 2 => AnomalyKind::WriteSkew,
        2 if is_plain && is_read_only_anomaly(history, &cycle.edges) => {
            AnomalyKind::ReadOnlyTransactionAnomaly
        }
        _ => pick(
            AnomalyKind::AntiDependencyCycle,
            AnomalyKind::SessionAntiDependencyCycle,
            AnomalyKind::RealTimeAntiDependencyCycle,
        ),
    }
}

/// Two transactions, each of which precedes the other because of the same key, which
/// both write.
fn is_lost_update(edges: &[Edge]) -> bool {
    edges.len() == 2 && key_of(&edges[0]).is_some() && key_of(&edges[0]) == key_of(&edges[1])
}

/// The key that an edge is about, whose writers it orders.
fn key_of(edge: &Edge) -> Option<KeyId> {
    edge.key().filter(|_| matches!(edge.kind(), EdgeKind::Ww | EdgeKind::Rw))
}

/// Whether both transactions make the row that each found missing.
fn is_of_inserts(history: &History, edges: &[Edge]) -> bool {
    let inserts = |edge: &Edge| {
        let mut ops = history.ops_of(edge.before).map(|op| history.op(op));
        ops.any(|op| op.kind == OpKind::Insert && Some(op.key) == key_of(edge))
    };
    edges.iter().all(inserts)
}

/// Who missed a change by condition and saw it after all: by the same condition it is a
/// phantom, by another one the many preceders of Hermitage.
fn seen_by_condition(history: &History, edges: &[Edge]) -> AnomalyKind {
    let condition =
        |read: OpId| (!history.op(read).kind.has_key()).then(|| &history.predicate(read).condition);
    let first = |kind| {
        let mut edges = edges.iter().filter(|edge| edge.kind() == kind);
        edges.find_map(|edge| condition(edge.read()?))
    };
    let (missed, saw) = (first(EdgeKind::Rw), first(EdgeKind::Wr));
    match (missed, saw) {
        (Some(missed), Some(saw)) if missed != saw => AnomalyKind::PredicateManyPreceders,
        _ => AnomalyKind::Phantom,
    }
}

/// Whether who read atomically missed a row by one condition that it saw by another
/// operation: what others call a phantom.
pub(crate) fn missed_by_condition(history: &History, cycle: &Cycle) -> bool {
    cycle.edges.iter().any(|edge| {
        let Reason::Rule(Rule::Visible { read, key, path }) = &edge.reason else { return false };
        let saw = |edge: &Edge| edge.kind() == EdgeKind::Wr && edge.read() != Some(*read);
        !history.op(*read).kind.has_key()
            && history.predicate(*read).rows.iter().any(|row| row.key == *key && !row.matched)
            && path.iter().any(saw)
    })
}

/// Three transactions, of which one that writes nothing saw the last and missed the first
/// [Fekete04].
fn is_read_only_anomaly(history: &History, edges: &[Edge]) -> bool {
    let writes = |txn: TxnId| history.ops_of(txn).any(|op| history.op(op).kind.is_write());
    let saw = edges.iter().find(|edge| edge.kind() == EdgeKind::Wr);
    edges.len() == 3 && saw.is_some_and(|edge| !writes(edge.after))
}

//! Scenarios of anomalies: collects the transactions, then turns every reason into an edge.

use super::{
    Names, OpRef, Role, Scenario, ScenarioCase, ScenarioEdge, ScenarioOp, ScenarioRow, ScenarioTxn,
    Span,
};
use super::{facts, sentence, summary};
use crate::prose::Prose;
use crate::stats::kind_name;
use isolde::{Anomaly, AnomalyKind, Cycle, Edge, EdgeKind, Evidence, INITIAL, Reason, Rule};
use isolde_history::{
    ALWAYS, Datum, History, Interval, KeyId, NEVER, OpId, OpKind, Origin, Outcome, TxnId, Value,
};
use std::collections::HashSet;

/// Operations of one transaction that are listed, involved or not.
const OPS_LISTED_MAX: usize = 64;

/// The scenario of an anomaly, which rules out the levels `also`.
pub(crate) fn scenario(prose: &Prose<'_>, anomaly: &Anomaly, also: &[&str]) -> Scenario {
    let mut cast = Cast { prose, txns: Vec::new() };
    match &anomaly.evidence {
        Evidence::Operations { ops, .. } => {
            for &op in ops {
                cast.involve(op, Role::Cycle);
            }
        }
        Evidence::Cycle(cycle) => {
            cast.add_cycle(&cycle.dependencies(prose.history, anomaly.kind));
            for (one, other, key) in cycle.apart(prose.history, anomaly.kind) {
                let write = |txn| prose.index.final_write(prose.history, txn, key);
                let writes = [one, other].into_iter().filter_map(write);
                writes.for_each(|write| cast.involve(write, Role::Evidence));
            }
        }
        Evidence::Cases(cases) => {
            cases.cycles.iter().for_each(|cycle| cast.add_cycle(cycle));
            for &op in cases.ways.iter().flat_map(|way| &way.added) {
                cast.involve(op, Role::Evidence);
            }
        }
    }
    let transactions: Vec<ScenarioTxn> = cast.txns.iter().map(|it| cast.listed(it)).collect();
    let mut scenario = Scenario {
        names: Names::of(anomaly, prose.history),
        transactions,
        meaning: meaning(prose, anomaly).to_owned(),
        also: also.iter().map(|&level| level.to_owned()).collect(),
        ..Scenario::default()
    };
    match &anomaly.evidence {
        Evidence::Operations { .. } => {}
        Evidence::Cycle(cycle) => {
            let shown = cycle.dependencies(prose.history, anomaly.kind);
            scenario.edges = shown.edges.iter().map(|edge| cast.edge(edge)).collect();
            scenario.conclusion = sentence::conclusion(prose, &shown);
            for (one, other, key) in cycle.apart(prose.history, anomaly.kind) {
                scenario.conclusion += &sentence::apart(prose, one, other, key);
            }
        }
        Evidence::Cases(cases) => {
            let ways = cases.ways.iter().map(Some).chain(std::iter::repeat(None));
            let each = cases.cycles.iter().zip(ways).enumerate();
            let seen = |case: usize| cases.seen.iter().filter(move |seen| seen.case == case);
            let told = each.map(|(place, (cycle, way))| ScenarioCase {
                assumption: sentence::assumption(prose, cycle, way, seen(place)),
                edges: cycle.edges.iter().map(|edge| cast.edge(edge)).collect(),
                conclusion: sentence::conclusion(prose, cycle),
            });
            scenario.cases = told.collect();
            scenario.cases_left_out = cases.count - cases.cycles.len();
            scenario.conclusion = sentence::conclusion_of_cases(cases).into();
        }
    }
    facts::gather(&mut scenario);
    scenario.summary = summary::summary(prose, anomaly);
    scenario
}

/// What an anomaly means for an application.
fn meaning(prose: &Prose<'_>, anomaly: &Anomaly) -> &'static str {
    let history = prose.history;
    match &anomaly.evidence {
        Evidence::Operations { key, ops }
            if anomaly.kind == AnomalyKind::DuplicateElements
                && prose.appended_again(ops[0], *key).is_some() =>
        {
            "Elements are taken to be appended once each, so that a list tells which appends it \
             shows. This one was appended more than once, so it may be that no write took effect \
             twice: let the workload append a new element each time."
        }
        Evidence::Cycle(cycle)
            if anomaly.kind == AnomalyKind::Phantom && is_of_one_query(cycle, history) =>
        {
            "A query finds one part of what others changed and misses another: a total or list \
             shows a state that never was."
        }
        Evidence::Cases(cases) if summary::written_at_once(cases).is_some() => {
            "Two clients changed the same thing at the same time and both were told that it \
             worked: what the first of them had checked before is not what the second replaced."
        }
        _ => crate::names::row_of(anomaly.kind).meaning,
    }
}

/// Whether one operation by condition, and no other, says what was seen and what was missed.
fn is_of_one_query(cycle: &Cycle, history: &History) -> bool {
    let queries: HashSet<OpId> =
        cycle.edges.iter().filter_map(|edge| by_condition(edge, history)).collect();
    queries.len() == 1
}

/// The operation by condition that saw or missed something, if an edge says so of one.
fn by_condition(edge: &Edge, history: &History) -> Option<OpId> {
    let is_read = matches!(edge.kind(), EdgeKind::Wr | EdgeKind::Rw);
    edge.read().filter(|&read| is_read && !history.op(read).kind.has_key())
}

/// The transactions of a scenario while it is made.
struct Cast<'a> {
    prose: &'a Prose<'a>,
    txns: Vec<Member>,
}

struct Member {
    txn: TxnId,
    role: Role,
    /// In program order.
    involved: Vec<OpId>,
}

impl Cast<'_> {
    fn place_of(&self, txn: TxnId) -> Option<usize> {
        self.txns.iter().position(|member| member.txn == txn)
    }

    fn add(&mut self, txn: TxnId, role: Role) -> usize {
        if let Some(place) = self.place_of(txn) {
            return place;
        }
        let role = if txn == INITIAL { Role::Initial } else { role };
        self.txns.push(Member { txn, role, involved: Vec::new() });
        self.txns.len() - 1
    }

    fn involve(&mut self, op: OpId, role: Role) {
        let place = self.add(self.prose.history.txn_of(op), role);
        let involved = &mut self.txns[place].involved;
        if let Err(at) = involved.binary_search(&op) {
            involved.insert(at, op);
        }
    }

    /// Those on the cycle first, then what is needed for the edges.
    fn add_cycle(&mut self, cycle: &Cycle) {
        for edge in &cycle.edges {
            self.add(edge.before, Role::Cycle);
        }
        let mut open: Vec<&Edge> = cycle.edges.iter().rev().collect();
        while let Some(edge) = open.pop() {
            self.add(edge.before, Role::Evidence);
            self.add(edge.after, Role::Evidence);
            for op in operations(self.prose, edge) {
                self.involve(op, Role::Evidence);
            }
            open.extend(edge.premises().iter().rev());
        }
    }

    /// Reasons are nested no deeper than the checker tells them, so this may recurse.
    /// What stands for others that are told elsewhere or not at all becomes a mark.
    fn edge(&self, edge: &Edge) -> ScenarioEdge {
        let place = |txn| self.place_of(txn).expect("every transaction was collected");
        let assumed = matches!(edge.reason, Reason::Assumed { .. } | Reason::Supposed { .. });
        let (because, fact, left_out) = match edge.premises() {
            [Edge { reason: Reason::AsTold, .. }] => (Vec::new(), Some(facts::AS_TOLD), None),
            [Edge { reason: Reason::Untold { steps }, .. }] => {
                (Vec::new(), None, Some(steps.unwrap_or(0)))
            }
            steps => (steps.iter().map(|step| self.edge(step)).collect(), None, None),
        };
        ScenarioEdge {
            from: place(edge.before),
            to: place(edge.after),
            kind: edge.kind(),
            key: edge.key().map(|key| self.prose.key(key)),
            by_condition: by_condition(edge, self.prose.history).is_some(),
            assumed,
            explanation: sentence::because(self.prose, edge),
            operations: operations(self.prose, edge).iter().map(|&op| self.op_ref(op)).collect(),
            because,
            fact,
            left_out,
        }
    }

    fn op_ref(&self, op: OpId) -> OpRef {
        let transaction = self.place_of(self.prose.history.txn_of(op)).expect("collected");
        let listed = self.ops_listed(&self.txns[transaction]);
        let operation = listed.iter().position(|&it| it == op).expect("an involved operation");
        OpRef { transaction, operation }
    }

    /// Those involved, and others as long as there is room.
    fn ops_listed(&self, member: &Member) -> Vec<OpId> {
        if member.txn == INITIAL {
            return Vec::new();
        }
        let mut room = OPS_LISTED_MAX.saturating_sub(member.involved.len());
        let mut listed = Vec::new();
        for op in self.prose.history.ops_of(member.txn) {
            let is_involved = member.involved.binary_search(&op).is_ok();
            if is_involved || room > 0 {
                room -= usize::from(!is_involved);
                listed.push(op);
            }
            if room == 0 && member.involved.last().is_none_or(|&last| op >= last) {
                break;
            }
        }
        listed
    }

    fn listed(&self, member: &Member) -> ScenarioTxn {
        let (txn, history) = (member.txn, self.prose.history);
        if txn == INITIAL {
            let (name, role) = (self.prose.txn(txn), member.role);
            return ScenarioTxn { name, role, ..ScenarioTxn::default() };
        }
        let session = history.session_of(txn);
        let ops = self.ops_listed(member);
        let times = history.txn_times(txn);
        let has_times = history.has_times();
        let endpoint = history.endpoint(session);
        ScenarioTxn {
            name: self.prose.txn(txn),
            role: member.role,
            session: history.datum(history.session_label(session)).to_string(),
            place_in_session: (txn.0 - history.session_range(session).start) as usize + 1,
            outcome: match history.outcome(txn) {
                Outcome::Committed => "committed",
                Outcome::Aborted => "aborted",
                Outcome::Unknown => "unknown",
            }
            .to_owned(),
            place: history.ops_of(txn).next().map(|op| self.prose.place_of(op)).unwrap_or_default(),
            endpoint: (endpoint != Value::NIL).then(|| match history.datum(endpoint) {
                Datum::Text(text) => crate::prose::safe(text),
                other => other.to_string(),
            }),
            begin: has_times.then(|| span(times.begin)),
            commit: has_times.then(|| span(times.commit)),
            operations_left_out: history.op_range(txn).len() - ops.len(),
            operations: ops.iter().map(|&op| self.op(op, member)).collect(),
        }
    }

    fn op(&self, op: OpId, member: &Member) -> ScenarioOp {
        let (prose, history) = (self.prose, self.prose.history);
        let it = history.op(op);
        let (value, rows) = match it.kind {
            OpKind::ReadList => (prose.list(op), Vec::new()),
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let predicate = history.predicate(op);
                let row = |row: &isolde_history::PredicateRow| ScenarioRow {
                    key: prose.key(row.key),
                    value: prose.value(row.value),
                    matched: row.matched,
                };
                // Rows that an update replaced are told by its writes alone.
                let replaced = history.replaced(op).map(|key| isolde_history::PredicateRow {
                    key,
                    value: Value::UNKNOWN,
                    matched: true,
                });
                let rows = predicate.rows.iter().copied().chain(replaced);
                let rows = rows.take(OPS_LISTED_MAX).map(|it| row(&it)).collect();
                (predicate.display(history.values()).to_string(), rows)
            }
            _ => (prose.value(it.value), Vec::new()),
        };
        ScenarioOp {
            kind: kind_name(it.kind).to_owned(),
            key: it.kind.has_key().then(|| prose.key(it.key)),
            value,
            words: (it.kind == OpKind::Call).then(|| crate::real_time::call(prose, op, it.key)),
            rows,
            time: history.has_op_times().then(|| span(history.op_interval(op))),
            statement: match history.datum(history.statement(op)) {
                Datum::Text(text) => Some(text.to_owned()),
                _ => None,
            },
            place: prose.place_of(op),
            involved: member.involved.binary_search(&op).is_ok(),
        }
    }
}

fn span(interval: Interval) -> Span {
    let known = |time| (time != ALWAYS && time != NEVER).then_some(time);
    Span { invoked: known(interval.invoked), completed: known(interval.completed) }
}

/// Who wrote what the earlier transaction of an anti-dependency read, unless the first of the
/// orders that it follows from says that.
pub(super) fn unnamed_writer(edge: &Edge) -> Option<TxnId> {
    let first = edge.premises().first().filter(|first| first.before != INITIAL)?;
    let says_it = matches!(first.kind(), EdgeKind::Wr | EdgeKind::Ww) && first.key() == edge.key();
    (edge.kind() == EdgeKind::Rw && !says_it).then_some(first.before)
}

/// The write of a transaction that a read saw: its last, unless the read shows an earlier one.
pub(super) fn source(prose: &Prose<'_>, writer: TxnId, read: OpId, key: KeyId) -> Option<OpId> {
    let history = prose.history;
    if writer == INITIAL {
        return None;
    }
    let is_shown = |op: &OpId| {
        let it = history.op(*op);
        it.kind.is_write()
            && it.key == key
            && match history.op(read).kind {
                OpKind::Read => it.value == history.op(read).value,
                OpKind::ReadList => history.list(read).contains(&it.value),
                _ => true,
            }
    };
    let shown = history.ops_of(writer).rev().find(is_shown);
    shown.or_else(|| prose.index.final_write(history, writer, key))
}

/// The write that a read saw of a transaction that replaced it itself.
fn replaced_write(prose: &Prose<'_>, writer: TxnId, read: OpId, key: KeyId) -> Option<OpId> {
    let seen = source(prose, writer, read, key)?;
    (prose.index.final_write(prose.history, writer, key) != Some(seen)).then_some(seen)
}

/// The appends of two transactions that a list shows in this order, as near to each other as any.
pub(super) fn neighbours(prose: &Prose<'_>, edge: &Edge, read: OpId) -> Option<(OpId, OpId)> {
    let (history, key) = (prose.history, edge.key());
    let append = |txn: TxnId, element: Value| {
        history.ops_of(txn).find(|&op| {
            let it = history.op(op);
            it.kind == OpKind::Append && Some(it.key) == key && it.value == element
        })
    };
    let mut earlier = None;
    history.list(read).iter().find_map(|&element| {
        earlier = append(edge.before, element).or(earlier);
        earlier.zip(append(edge.after, element))
    })
}

/// The operations that an edge rests on by itself.
pub(super) fn operations(prose: &Prose<'_>, edge: &Edge) -> Vec<OpId> {
    let write = |txn: TxnId, key: KeyId| {
        (txn != INITIAL).then(|| prose.index.final_write(prose.history, txn, key)).flatten()
    };
    let (before, after) = (edge.before, edge.after);
    let mut ops: Vec<OpId> = Vec::new();
    match edge.reason {
        Reason::Assumed { key, first, second } => {
            if before != first {
                let mut reads = prose.index.reads_of(before);
                let read = reads.find(|read| read.key == key && read.origin == Origin::Txn(first));
                ops.extend(read.map(|read| read.op));
            }
            ops.extend(write(first, key));
            ops.extend(write(second, key));
        }
        Reason::Rule(Rule::ListOrder { read, key }) => {
            let shown = neighbours(prose, edge, read)
                .or_else(|| source(prose, before, read, key).zip(write(after, key)));
            ops.push(read);
            match shown {
                Some((earlier, later)) => ops.extend([earlier, later]),
                None => ops.extend([before, after].into_iter().filter_map(|it| write(it, key))),
            }
        }
        _ => {
            let Some(key) = edge.key() else { return ops };
            match (edge.kind(), edge.read()) {
                (EdgeKind::Wr, Some(read)) => {
                    ops.extend(source(prose, before, read, key));
                    ops.push(read);
                }
                (EdgeKind::Rw, Some(read)) => {
                    ops.push(read);
                    ops.extend(unnamed_writer(edge).and_then(|writer| write(writer, key)));
                    let seen = edge.premises().first().map(|first| first.before);
                    ops.extend(seen.and_then(|seen| replaced_write(prose, seen, read, key)));
                    ops.extend(write(after, key));
                }
                (_, read) => {
                    ops.extend(read);
                    ops.extend(write(before, key));
                    ops.extend(write(after, key));
                    let seen = read.filter(|_| edge.is_overwriting());
                    ops.extend(seen.and_then(|read| replaced_write(prose, after, read, key)));
                }
            }
        }
    }
    if let Some(key) = edge.conflict {
        let other = overwriting_reader(prose, edge).unwrap_or(after);
        ops.extend([before, other].into_iter().filter_map(|txn| write(txn, key)));
    }
    ops
}

/// Who had to see the earlier version and read the later one, if an edge follows from that.
pub(super) fn overwriting_reader(prose: &Prose<'_>, edge: &Edge) -> Option<TxnId> {
    let read = edge.read().filter(|_| edge.is_overwriting());
    read.map(|read| prose.history.txn_of(read))
}

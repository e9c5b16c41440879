//! Refutations by derivation: every step follows from the history and the steps before.
//!
//! **Why this is sound.** Suppose that some order explains the history. Transactions of
//! unknown outcome that do not count in it are added at its end, where nobody sees them: then
//! every transaction that was not aborted has a place, the writers of each key stand in
//! one order of versions, and what is known of transactions that surely count still holds. Each
//! rule concludes something about that order which it needs from facts about it, so no
//! step can fail to hold, and a cycle of steps contradicts that there is such an order.
//!
//! So a rule may speak of any *writer* that was not aborted, but takes session order, given
//! orders and what was read only from transactions that surely count.

use super::facts::{Facts, Origin, Read, Seen, Sole};
use super::{lists, search, versions};
use crate::level::{Commits, EventKind, Level, Meaning, Reads, Rows, Visible};
use crate::proof::{Derivation, End, Node, Step};
use crate::rule::{Rule, StepId};
use isolde_history::{KeyId, OpId, Outcome, TxnId};
use std::collections::HashSet;

/// Checks that the level does not hold by this derivation.
pub(super) fn check(
    facts: &Facts<'_>,
    level: &'static Level,
    derivation: &Derivation,
) -> Result<(), String> {
    let mut prover = Prover { facts, level, steps: &derivation.steps, are_anti: Vec::new() };
    for (place, step) in derivation.steps.iter().enumerate() {
        let kind = prover.check_step(step).map_err(|why| format!("step {place}: {why}"))?;
        prover.are_anti.push(kind == Kind::AntiDependency);
    }
    match &derivation.end {
        End::Cycle(path) => {
            let mut walk = Walk::new(&prover);
            for &step in path {
                walk.step(step).map_err(|why| format!("cycle: {why}"))?;
            }
            walk.close().map_err(|why| format!("cycle: {why}"))
        }
        End::Search(refutation) => search::check(&prover, refutation),
    }
}

/// What an edge means to parallel snapshot isolation, which counts one kind of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AntiDependency,
    Other,
}

/// A derivation as far as it has been checked.
pub(super) struct Prover<'f, 'a> {
    pub(super) facts: &'f Facts<'a>,
    pub(super) level: &'static Level,
    steps: &'f [Step],
    /// By step that has been checked, whether it is an anti-dependency.
    are_anti: Vec<bool>,
}

impl<'a> Prover<'_, 'a> {
    pub(super) fn reads(&self) -> Reads {
        self.level.reads()
    }

    pub(super) fn is_parallel(&self) -> bool {
        matches!(self.level.meaning, Meaning::Parallel)
    }

    /// Whether version orders and anti-dependencies are part of the definition.
    /// Cursor stability has them for items that the reader also writes: a version
    /// between the one it read and its own would have to precede the former.
    pub(super) fn has_versions(&self) -> bool {
        self.is_cursor_stability() || !matches!(self.level.meaning, Meaning::Commits(_))
    }

    fn is_cursor_stability(&self) -> bool {
        let before_update = |level: &Commits| level.visible == Visible::BeforeUpdate;
        matches!(&self.level.meaning, Meaning::Commits(level) if before_update(level))
    }

    /// Whether a writer that precedes a reader must be seen by it if both write a common
    /// key: at update atomic, which has no version order of its own.
    ///
    /// Three rules for version orders hold there too, of a reader and another writer of the key
    /// that share a key. Were the writer before the reader, the definition would put it before
    /// what the reader saw. Nothing precedes the initial state, so after an `initial-read` the
    /// reader comes first; nor does the writer if a path leads to it from what was seen, so
    /// it does for an `anti-dependency`; and a `seen-or-after` leaves both ways open. A
    /// writer that does not count stands at the end of the order, after the reader. The definition
    /// speaks of all reads, rows included, and of all writes, so no read is unprotected.
    pub(super) fn sees_common_writers(&self) -> bool {
        let common = |level: &Commits| level.visible == Visible::CommonWriter;
        matches!(&self.level.meaning, Meaning::Commits(level) if common(level))
    }

    /// Whether a reader of the initial state of a key precedes a writer of it.
    pub(super) fn precedes_overwriter(&self, reader: TxnId, writer: TxnId) -> bool {
        self.has_versions() || (self.sees_common_writers() && self.share_a_key(writer, reader))
    }

    fn has_begins(&self) -> bool {
        matches!(self.level.meaning, Meaning::Events(events) if !events.one)
    }

    pub(super) fn begin(&self, txn: TxnId) -> Node {
        if self.has_begins() { Node::begin(txn) } else { Node::commit(txn) }
    }

    /// Where version order leads to.
    pub(super) fn overwriter(&self, txn: TxnId) -> Node {
        match self.level.meaning {
            Meaning::Events(events) if events.overwriter == EventKind::Begin => self.begin(txn),
            _ => Node::commit(txn),
        }
    }

    /// Whether a read is protected from later writes at this level.
    pub(super) fn is_protected(&self, read: &Read<'_>) -> bool {
        match self.level.meaning {
            Meaning::Events(events) => events.rows != Rows::ReadsFrom || read.row.is_none(),
            Meaning::Commits(_) if self.sees_common_writers() => true,
            Meaning::Commits(_) => read.row.is_none() && self.facts.writes(read.txn, read.key),
            Meaning::Parallel => true,
        }
    }

    /// An event of this level, of a transaction that may count.
    pub(super) fn check_node(&self, node: Node) -> Result<(), String> {
        let known = node != Node::INITIAL && node.txn().index() < self.facts.history.txn_count();
        if !known {
            return Err(format!("{node} is no event of the history"));
        }
        if node.is_begin() && !self.has_begins() {
            return Err(format!("the level has no begins, as {node}"));
        }
        if self.facts.may_count(node.txn()) {
            return Ok(());
        }
        Err(format!("transaction {} was aborted", node.txn().0))
    }

    pub(super) fn check_surely_counts(&self, txn: TxnId) -> Result<(), String> {
        if self.facts.surely_counts(txn, self.reads()) {
            return Ok(());
        }
        Err(format!("it is open whether transaction {} counts", txn.0))
    }

    pub(super) fn check_writer(&self, txn: TxnId, key: KeyId) -> Result<(), String> {
        if txn.index() < self.facts.history.txn_count() && self.facts.writes(txn, key) {
            return Ok(());
        }
        Err(format!("transaction {} does not write key {}", txn.0, key.0))
    }

    fn check_step(&self, step: &Step) -> Result<Kind, String> {
        if !matches!(step.rule, Rule::InitialFirst) {
            self.check_node(step.from)?;
        }
        let overwrites_initial = step.to == Node::INITIAL && !self.has_versions();
        if !(overwrites_initial && matches!(step.rule, Rule::Visible { .. })) {
            self.check_node(step.to)?;
        }
        match &step.rule {
            Rule::Session => self.check_session(step)?,
            Rule::RealTime => self.check_real_time(step)?,
            Rule::InitialFirst => self.check_initial_first(step)?,
            Rule::ReadsFrom { read, key } => self.check_reads_from(step, *read, *key)?,
            Rule::ListOrder { read, key } => self.check_list_order(step, *read, *key)?,
            Rule::GivenOrder { key } => self.check_given_order(step, *key)?,
            Rule::InitialRead { read, key } => self.check_initial_read(step, *read, *key)?,
            Rule::Pair { key, path } => self.check_pair(step, *key, path)?,
            Rule::Visible { read, key, path } => match &self.level.meaning {
                Meaning::Commits(level) => {
                    self.check_visible(level.visible, step, (*read, *key), path)?;
                }
                _ => self.check_read_before(step, (*read, *key), path)?,
            },
            Rule::AntiDependency { read, key, path } => {
                self.check_anti_dependency(step, (*read, *key), path)?;
            }
            Rule::SawChange { read, key } => self.check_change(step, (*read, *key), true)?,
            Rule::MissedChange { read, key } => self.check_change(step, (*read, *key), false)?,
        }
        Ok(match step.rule {
            Rule::InitialRead { .. } | Rule::AntiDependency { .. } | Rule::MissedChange { .. } => {
                Kind::AntiDependency
            }
            _ => Kind::Other,
        })
    }

    fn check_session(&self, step: &Step) -> Result<(), String> {
        let sessions = match self.level.meaning {
            Meaning::Commits(level) => level.sessions,
            Meaning::Events(level) => level.sessions,
            Meaning::Parallel => false,
        };
        if !sessions {
            return Err("the level does not contain session order".into());
        }
        let (early, late) = (step.from.txn(), step.to.txn());
        let history = self.facts.history;
        let ordered = early < late && history.session_of(early) == history.session_of(late);
        let shape = step.from == Node::commit(early) && step.to == self.begin(late);
        if !ordered || !shape {
            return Err(
                "expected a commit and a begin of a later transaction of its session".into()
            );
        }
        self.check_surely_counts(early)?;
        self.check_surely_counts(late)
    }

    fn check_real_time(&self, step: &Step) -> Result<(), String> {
        let Meaning::Events(level) = self.level.meaning else {
            return Err("the level does not contain real time".into());
        };
        let history = self.facts.history;
        let kind = |node: Node, at_once| match node.is_begin() {
            _ if level.one => at_once,
            true => EventKind::Begin,
            false => EventKind::Commit,
        };
        let edge = (kind(step.from, EventKind::Commit), kind(step.to, EventKind::Begin));
        if !level.real_time.contains(&edge) {
            return Err("the level does not contain real time between such events".into());
        }
        let (early, late) = (step.from.txn(), step.to.txn());
        if history.outcome(early) != Outcome::Committed {
            return Err(format!("transaction {} may never have ended", early.0));
        }
        let completed = self.facts.completed(early, edge.0);
        if early == late || completed >= self.facts.invoked(late, edge.1) {
            return Err("the first was not completed before the second was invoked".into());
        }
        Ok(())
    }

    fn check_initial_first(&self, step: &Step) -> Result<(), String> {
        if self.has_versions() || step.from != Node::INITIAL {
            return Err("expected the initial transaction, at a level of one commit order".into());
        }
        Ok(())
    }

    /// The read at this place that tells its origin at this level.
    pub(super) fn seen(&self, op: OpId, key: KeyId) -> Result<(Read<'a>, Origin), String> {
        if self.reads() == Reads::Ignored {
            return Err("reads mean nothing at this level".into());
        }
        let reads = self.facts.reads_at(op, key);
        for read in reads.into_iter().filter(Read::is_external) {
            if let Sole::One(origin) = self.facts.sole_origin(&read, self.reads()) {
                self.check_surely_counts(read.txn)?;
                return Ok((read, origin));
            }
        }
        Err(format!("operation {} does not tell what it saw of key {}", op.0, key.0))
    }

    /// The transaction that was read from, by a read that is protected.
    fn seen_writer(&self, op: OpId, key: KeyId) -> Result<(Read<'a>, TxnId), String> {
        match self.seen(op, key)? {
            (read, Origin::Txn(writer)) if self.is_protected(&read) => Ok((read, writer)),
            _ => Err(format!("operation {} saw no transaction, or is not protected", op.0)),
        }
    }

    fn check_reads_from(&self, step: &Step, read: OpId, key: KeyId) -> Result<(), String> {
        let (read, origin) = self.seen(read, key)?;
        let Origin::Txn(writer) = origin else {
            return Err("the read saw no transaction".into());
        };
        expect_edge(step, Node::commit(writer), self.begin(read.txn))
    }

    /// The ends of a step of version order.
    fn version_ends(&self, step: &Step) -> Result<(TxnId, TxnId), String> {
        let (early, late) = (step.from.txn(), step.to.txn());
        expect_edge(step, Node::commit(early), self.overwriter(late))?;
        if early == late {
            return Err("expected two transactions".into());
        }
        Ok((early, late))
    }

    fn check_list_order(&self, step: &Step, read: OpId, key: KeyId) -> Result<(), String> {
        let (early, late) = self.version_ends(step)?;
        let history = self.facts.history;
        let reads = self.facts.reads_at(read, key);
        let Some(Read { txn: reader, seen: Seen::List(Some(others)), .. }) = reads.first() else {
            return Err(format!("operation {} reads no list of key {}", read.0, key.0));
        };
        self.check_surely_counts(*reader)?;
        if self.reads() == Reads::Any {
            lists::check_agreement(self.facts, key)?;
        }
        // Where an append stands in the list, if it is the one that is shown.
        let appends = |txn: TxnId| {
            let is_append = move |op: &OpId| {
                let op = history.op(*op);
                op.kind.is_write() && op.key == key
            };
            history.ops_of(txn).filter(is_append)
        };
        let shown_at = |append: OpId| {
            let element = history.op(append).value;
            let only = self.facts.append_of(*reader, key, element, self.reads());
            let place = others.iter().position(|&other| other == element);
            place.filter(|_| only == Some(append))
        };
        let is_missing = |append: OpId| {
            !others.contains(&history.op(append).value) || !self.facts.may_be_seen(append)
        };
        let first = appends(early).filter_map(shown_at).min();
        let Some(first) = first else {
            return Err(format!("the list shows no append of transaction {}", early.0));
        };
        let follows = |append| is_missing(append) || shown_at(append) > Some(first);
        if appends(late).any(follows) {
            return Ok(());
        }
        Err("the list does not show this order".into())
    }

    fn check_given_order(&self, step: &Step, key: KeyId) -> Result<(), String> {
        let (early, late) = self.version_ends(step)?;
        self.check_surely_counts(early)?;
        self.check_surely_counts(late)?;
        let txn_of = |write: &OpId| self.facts.history.txn_of(*write);
        for chain in self.facts.history.orders().versions.iter().filter(|it| it.key == key) {
            let given = versions::given_writes(self.facts, chain);
            if self.reads() == Reads::Any && !self.keeps_programs(&given.writes) {
                continue;
            }
            let first = given.writes.iter().position(|write| txn_of(write) == early);
            let last = given.writes.iter().rposition(|write| txn_of(write) == late);
            if first.is_some() && first < last {
                return Ok(());
            }
        }
        Err("no given order says so".into())
    }

    /// Whether levels that allow wrong reads take a given order: they take none that
    /// contradicts the program of a transaction that counts.
    fn keeps_programs(&self, given: &[OpId]) -> bool {
        let keeps = |never_counting: &HashSet<TxnId>| {
            versions::keeps_programs(self.facts, given.to_vec(), never_counting)
        };
        keeps(&HashSet::new()) || keeps(&lists::never_counting(self.facts))
    }

    fn check_initial_read(&self, step: &Step, read: OpId, key: KeyId) -> Result<(), String> {
        let (read, origin) = self.seen(read, key)?;
        if !self.precedes_overwriter(read.txn, step.to.txn()) {
            return Err("the level has no such anti-dependencies".into());
        }
        if origin != Origin::Initial || !self.is_protected(&read) {
            return Err("the read did not see the initial state, or is not protected".into());
        }
        self.check_overwriting(step, &read)
    }

    /// From the begin of the reader to the commit of another writer of the key.
    fn check_overwriting(&self, step: &Step, read: &Read<'_>) -> Result<(), String> {
        let writer = step.to.txn();
        expect_edge(step, self.begin(read.txn), Node::commit(writer))?;
        self.check_writer(writer, read.key)?;
        if writer == read.txn {
            return Err("a transaction does not depend on itself".into());
        }
        // At levels of one commit order a reader need not precede whom it did not see,
        // unless whatever precedes it in that order is visible to it.
        let precedes = match self.level.meaning {
            Meaning::Commits(level) => self.sees_all_before(level.visible, writer, read),
            Meaning::Events(_) | Meaning::Parallel => true,
        };
        if precedes { Ok(()) } else { Err("the level has no such anti-dependency".into()) }
    }

    /// Whether `other`, if it precedes the reader in the commit order, is visible to it.
    fn sees_all_before(&self, visible: Visible, other: TxnId, read: &Read<'_>) -> bool {
        match visible {
            Visible::BeforeUpdate => read.row.is_none() && self.facts.writes(read.txn, read.key),
            Visible::CommonWriter => self.share_a_key(other, read.txn),
            _ => false,
        }
    }

    /// Shows that the version of one writer precedes that of another: the other way round
    /// there would be a cycle with the path.
    fn check_precedes(&self, early: TxnId, late: TxnId, path: &[StepId]) -> Result<(), String> {
        let start = match self.overwriter(early) {
            begin if begin.is_begin() => begin,
            _ => Node::commit(early),
        };
        self.check_path(path, start, Node::commit(late))
    }

    fn check_pair(&self, step: &Step, key: KeyId, path: &[StepId]) -> Result<(), String> {
        if !self.has_versions() {
            return Err("the level has no version order of its own".into());
        }
        let (early, late) = self.version_ends(step)?;
        self.check_writer(early, key)?;
        self.check_writer(late, key)?;
        self.check_precedes(early, late, path)
    }

    fn check_read_before(
        &self,
        step: &Step,
        (read, key): (OpId, KeyId),
        path: &[StepId],
    ) -> Result<(), String> {
        let (early, late) = self.version_ends(step)?;
        let (read, writer) = self.seen_writer(read, key)?;
        if writer != late || early == read.txn {
            return Err("expected another writer, and the transaction that was read from".into());
        }
        self.check_writer(early, key)?;
        self.check_path(path, Node::commit(early), self.begin(read.txn))
    }

    fn check_anti_dependency(
        &self,
        step: &Step,
        (read, key): (OpId, KeyId),
        path: &[StepId],
    ) -> Result<(), String> {
        let (read, writer) = self.seen_writer(read, key)?;
        self.check_overwriting(step, &read)?;
        let late = step.to.txn();
        if writer == late {
            return Err("the reader read from this transaction".into());
        }
        self.check_precedes(writer, late, path)
    }

    /// At levels of one commit order: the path is one that makes visible.
    fn check_visible(
        &self,
        visible: Visible,
        step: &Step,
        (op, key): (OpId, KeyId),
        path: &[StepId],
    ) -> Result<(), String> {
        let (read, origin) = self.seen(op, key)?;
        let writer = match origin {
            Origin::Txn(writer) => Node::commit(writer),
            Origin::Initial => Node::INITIAL,
            Origin::Nowhere => return Err("the read saw no transaction that counts".into()),
        };
        let other = step.from.txn();
        expect_edge(step, Node::commit(other), writer)?;
        if step.from == step.to || other == read.txn {
            return Err("expected another writer, and the transaction that was read from".into());
        }
        self.check_writer(other, key)?;
        self.check_path(path, step.from, Node::commit(read.txn))?;
        let rules: Vec<&Rule> = path.iter().map(|step| &self.steps[step.0 as usize].rule).collect();
        if self.makes_visible(visible, other, &read, &rules) {
            return Ok(());
        }
        Err("such a path does not make visible at this level".into())
    }

    fn makes_visible(
        &self,
        visible: Visible,
        other: TxnId,
        read: &Read<'_>,
        path: &[&Rule],
    ) -> bool {
        let is_step = |rule: &&Rule| matches!(rule, Rule::Session | Rule::ReadsFrom { .. });
        match (visible, path) {
            (Visible::EarlierRead, [Rule::ReadsFrom { read: earlier, .. }]) => *earlier < read.op,
            (Visible::OneStep, [rule]) => is_step(rule),
            (Visible::AnySteps, path) => !path.is_empty() && path.iter().all(is_step),
            (Visible::Session, [Rule::Session])
            | (Visible::ReadThenSession, [Rule::ReadsFrom { .. }, Rule::Session])
            | (Visible::SessionThenRead, [Rule::Session, Rule::ReadsFrom { .. }])
            | (
                Visible::ReadThenSessionThenRead,
                [Rule::ReadsFrom { .. }, Rule::Session, Rule::ReadsFrom { .. }],
            )
            | (Visible::CommonWriter, [Rule::ReadsFrom { .. }]) => true,
            (visible, path) => !path.is_empty() && self.sees_all_before(visible, other, read),
        }
    }

    pub(super) fn share_a_key(&self, one: TxnId, other: TxnId) -> bool {
        let history = self.facts.history;
        let mut writes = history.ops_of(one).filter(|op| history.op(*op).kind.is_write());
        writes.any(|op| self.facts.writes(other, history.op(op).key))
    }

    /// A path of steps that have been checked; for parallel snapshot isolation without
    /// anti-dependencies.
    fn check_path(&self, path: &[StepId], from: Node, to: Node) -> Result<(), String> {
        let mut walk = Walk::new(self);
        walk.start_at(from);
        path.iter().try_for_each(|&step| walk.step(step))?;
        walk.end_at(to)?;
        if self.is_parallel() && walk.anti_dependencies > 0 {
            return Err("the path contains an anti-dependency".into());
        }
        Ok(())
    }
}

pub(super) fn expect_edge(step: &Step, from: Node, to: Node) -> Result<(), String> {
    if (step.from, step.to) == (from, to) {
        return Ok(());
    }
    Err(format!("expected {from} before {to}, found {} before {}", step.from, step.to))
}

/// Follows edges, each from where the one before ended. From a begin to the commit of the same
/// transaction no edge is needed.
pub(super) struct Walk<'p, 'f, 'a> {
    prover: &'p Prover<'f, 'a>,
    start: Option<Node>,
    at: Node,
    anti_dependencies: usize,
}

impl<'p, 'f, 'a> Walk<'p, 'f, 'a> {
    pub(super) fn new(prover: &'p Prover<'f, 'a>) -> Self {
        Walk { prover, start: None, at: Node::INITIAL, anti_dependencies: 0 }
    }

    fn start_at(&mut self, node: Node) {
        self.start = Some(node);
        self.at = node;
    }

    pub(super) fn step(&mut self, step: StepId) -> Result<(), String> {
        let place = step.0 as usize;
        let Some(&is_anti) = self.prover.are_anti.get(place) else {
            return Err(format!("there is no step {place} before it"));
        };
        let Step { from, to, .. } = self.prover.steps[place];
        self.edge(from, to, if is_anti { Kind::AntiDependency } else { Kind::Other })
    }

    pub(super) fn edge(&mut self, from: Node, to: Node, kind: Kind) -> Result<(), String> {
        if self.start.is_none() {
            self.start_at(from);
        }
        self.end_at(from)?;
        self.at = to;
        self.anti_dependencies += usize::from(kind == Kind::AntiDependency);
        Ok(())
    }

    fn end_at(&self, node: Node) -> Result<(), String> {
        let is_commit_of = |at: Node| at != Node::INITIAL && node == Node::commit(at.txn());
        if self.at == node || (self.at.is_begin() && is_commit_of(self.at)) {
            return Ok(());
        }
        Err(format!("expected to go on from {}, found {node}", self.at))
    }

    /// Ends where it started, with few enough anti-dependencies.
    pub(super) fn close(&self) -> Result<(), String> {
        self.end_at(self.start.ok_or("there are no edges")?)?;
        if self.prover.is_parallel() && self.anti_dependencies > 1 {
            return Err("the level allows cycles with two anti-dependencies".into());
        }
        Ok(())
    }
}

//! Refutations by reading: operations that no order explains.
//!
//! What refutes is checked first and does not depend on the name of the anomaly: the read has
//! no possible origin, two reads of one key cannot have the same, or lists and given orders
//! fit no version order. Then the operations must show the anomaly that is named.

use super::facts::{Facts, Origin, Read, Seen, Sole};
use super::versions;
use crate::level::{Level, Meaning, Reads, Rows};
use crate::proof::{Reading, ReadingKind};
use isolde_history::{KeyId, Op, OpId, OpKind, TxnId, Value};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// Checks that the level does not hold because of these operations.
pub(super) fn check(facts: &Facts<'_>, level: &Level, reading: &Reading) -> Result<(), String> {
    let Reading { kind, key, ref ops } = *reading;
    if let Some(op) = ops.iter().find(|op| op.index() >= facts.history.op_count()) {
        return Err(format!("there is no operation {}", op.0));
    }
    let shown = Shown { facts, level, key };
    match (kind, &ops[..]) {
        (ReadingKind::NonRepeatable, &[first, second]) => shown.non_repeatable(first, second),
        (ReadingKind::DuplicateElements, &[read]) => shown.duplicate_elements(read),
        (ReadingKind::IncompatibleOrder, ops) => shown.incompatible_order(ops),
        (ReadingKind::ResultSetMismatch, &[read]) => shown.result_set_mismatch(read, None),
        (ReadingKind::ResultSetMismatch, &[read, write]) => {
            shown.result_set_mismatch(read, Some(write))
        }
        (ReadingKind::ThinAir, &[read]) => shown.misread(kind, read, None),
        (ReadingKind::Intermediate, &[read, write, last]) => {
            shown.misread(kind, read, Some(write))?;
            shown.overwritten_by(write, last)
        }
        (
            ReadingKind::Aborted
            | ReadingKind::Future
            | ReadingKind::NotMyOwnWrite
            | ReadingKind::NotMyLastWrite,
            &[read, write],
        ) => shown.misread(kind, read, Some(write)),
        _ => Err("it does not have the operations that its kind needs".into()),
    }
}

struct Shown<'f, 'a> {
    facts: &'f Facts<'a>,
    level: &'f Level,
    key: KeyId,
}

impl<'a> Shown<'_, 'a> {
    fn reads_at(&self, op: OpId) -> Result<Vec<Read<'a>>, String> {
        let reads = self.facts.reads_at(op, self.key);
        match reads.first() {
            Some(read) => self.check_counts(read.txn).map(|()| reads),
            None => Err(format!("operation {} does not read key {}", op.0, self.key.0)),
        }
    }

    fn check_counts(&self, txn: TxnId) -> Result<(), String> {
        if self.facts.surely_counts(txn, self.level.reads()) {
            return Ok(());
        }
        Err(format!("it is open whether transaction {} counts", txn.0))
    }

    /// A read that no transaction which may count explains.
    fn misread(&self, kind: ReadingKind, op: OpId, write: Option<OpId>) -> Result<(), String> {
        if self.level.reads() != Reads::Final {
            return Err("the level allows such reads".into());
        }
        let mut wrong = self.reads_at(op)?;
        wrong.retain(|read| self.facts.is_wrong(read));
        if wrong.is_empty() {
            return Err("the read can be explained".into());
        }
        if wrong.iter().any(|read| self.is_shown(kind, read, write)) {
            return Ok(());
        }
        Err("the operations do not show this".into())
    }

    fn is_shown(&self, kind: ReadingKind, read: &Read<'_>, write: Option<OpId>) -> bool {
        let history = self.facts.history;
        let Some(write) = write else {
            return kind == ReadingKind::ThinAir && self.is_unwritten(read);
        };
        let Op { kind: written, key, value } = history.op(write);
        if !written.is_write() || key != self.key {
            return false;
        }
        let is_seen = match read.seen {
            Seen::List(others) => others.unwrap_or_default().contains(&value),
            seen => read.own.is_none() && seen.admits(value),
        };
        let is_last_seen = match read.seen {
            Seen::List(others) => others.unwrap_or_default().last() == Some(&value),
            _ => is_seen,
        };
        let txn = history.txn_of(write);
        match kind {
            ReadingKind::Aborted => is_seen && txn != read.txn && !self.facts.may_count(txn),
            ReadingKind::Intermediate => {
                is_last_seen && txn != read.txn && !self.facts.is_final(write)
            }
            // In a list an own element may also stand before its time.
            ReadingKind::Future => {
                let is_list = matches!(read.seen, Seen::List(_));
                is_seen && txn == read.txn && (write > read.op || is_list)
            }
            ReadingKind::NotMyOwnWrite => read.own == Some(write) && !self.saw_own(read, write),
            ReadingKind::NotMyLastWrite => read.own == Some(write) && self.saw_own(read, write),
            _ => false,
        }
    }

    /// Whether something that was seen was never written by anybody.
    fn is_unwritten(&self, read: &Read<'_>) -> bool {
        let unwritten = |value| self.facts.writes_of_value(self.key, value).next().is_none();
        match read.seen {
            Seen::List(others) => others.unwrap_or_default().iter().any(|&value| unwritten(value)),
            Seen::This(value) => read.own.is_none() && unwritten(value),
            Seen::NotThis(_) => {
                let mut writes = self.facts.writes_of(self.key);
                read.own.is_none()
                    && !writes.any(|write| read.seen.admits(self.facts.history.op(write).value))
            }
            Seen::Fitting => false,
        }
    }

    /// Whether a read, instead of the own `last` write, saw an own one before that.
    fn saw_own(&self, read: &Read<'_>, last: OpId) -> bool {
        let history = self.facts.history;
        let saw = |value: Value| match read.seen {
            Seen::List(_) => history.list(read.op).contains(&value),
            Seen::This(seen) => seen == value,
            Seen::NotThis(_) | Seen::Fitting => false,
        };
        let mut earlier = (history.op_range(read.txn).start..last.0)
            .map(OpId)
            .filter(|&op| history.op(op).kind.is_write() && history.op(op).key == self.key);
        !saw(history.op(last).value) && earlier.any(|op| saw(history.op(op).value))
    }

    fn overwritten_by(&self, write: OpId, last: OpId) -> Result<(), String> {
        let history = self.facts.history;
        let same = history.txn_of(write) == history.txn_of(last)
            && history.op(last).key == self.key
            && history.op(last).kind.is_write();
        if same && write < last && self.facts.is_final(last) {
            return Ok(());
        }
        Err(format!("operation {} is not the final write", last.0))
    }

    /// Two reads of one key that cannot have the same origin. A transaction that sees each
    /// other one entirely or not at all has one origin for each key.
    fn non_repeatable(&self, first: OpId, second: OpId) -> Result<(), String> {
        let history = self.facts.history;
        if history.txn_of(first) != history.txn_of(second) || first == second {
            return Err("expected two reads of one transaction".into());
        }
        let (one, other) = (self.reads_at(first)?, self.reads_at(second)?);
        let differ = |one: &Read<'_>, other: &Read<'_>| {
            one.is_external()
                && other.is_external()
                && self.forbids_non_repeatable(one, other)
                && self.differ(one, other)
        };
        if one.iter().any(|one| other.iter().any(|other| differ(one, other))) {
            return Ok(());
        }
        Err("the level allows this, or the reads may have seen the same".into())
    }

    fn forbids_non_repeatable(&self, one: &Read<'_>, other: &Read<'_>) -> bool {
        let are_items = one.row.is_none() && other.row.is_none();
        self.level.implies("read-atomic")
            || self.level.implies("update-atomic")
            || matches!(self.level.meaning, Meaning::Events(events) if events.rows != Rows::ReadsFrom || are_items)
    }

    fn differ(&self, one: &Read<'_>, other: &Read<'_>) -> bool {
        if let (Seen::This(first), Seen::This(second)) = (one.seen, other.seen)
            && first != second
        {
            return true;
        }
        // One value may have several origins, of which a case takes one for each read.
        let origin = |read| self.facts.sole_origin(read, Reads::Final);
        match (origin(one), origin(other)) {
            (Sole::One(first), Sole::One(second)) => first != second,
            _ => false,
        }
    }

    /// Whether what contradicts version orders refutes the level.
    fn check_versions_matter(&self) -> Result<(), String> {
        if self.level.reads() == Reads::Any {
            return Err("the level takes no order from lists that contradict themselves".into());
        }
        Ok(())
    }

    fn duplicate_elements(&self, read: OpId) -> Result<(), String> {
        self.check_versions_matter()?;
        self.reads_at(read)?;
        if self.facts.history.op(read).kind != OpKind::ReadList {
            return Err(format!("operation {} reads no list", read.0));
        }
        if versions::has_repeats(self.facts.history.list(read)) {
            return Ok(());
        }
        Err("all elements differ".into())
    }

    fn incompatible_order(&self, ops: &[OpId]) -> Result<(), String> {
        self.check_versions_matter()?;
        let history = self.facts.history;
        let is_list = |op: OpId| history.op(op).kind == OpKind::ReadList;
        match *ops {
            [first, second] if is_list(first) && is_list(second) => {
                let (first, second) = (self.others(first)?, self.others(second)?);
                if first.starts_with(second) || second.starts_with(first) {
                    return Err("one list is the beginning of the other".into());
                }
                Ok(())
            }
            [read, earlier, later] if is_list(read) => {
                self.list_against_program(read, earlier, later)
            }
            [earlier, later] => self.given_against_program(earlier, later),
            [write] => self.late_initial(write),
            _ => Err("it does not have the operations that its kind needs".into()),
        }
    }

    /// What others had appended to a list.
    fn others(&self, read: OpId) -> Result<&'a [Value], String> {
        match self.reads_at(read)?.first().map(|read| read.seen) {
            Some(Seen::List(Some(others))) => Ok(others),
            _ => Err(format!("operation {} tells no state of the list", read.0)),
        }
    }

    /// Two writes of the key by one transaction that surely counts.
    fn check_program(&self, earlier: OpId, later: OpId) -> Result<(), String> {
        let history = self.facts.history;
        let is_write = |op: OpId| history.op(op).kind.is_write() && history.op(op).key == self.key;
        let txn = history.txn_of(earlier);
        if earlier >= later
            || history.txn_of(later) != txn
            || !is_write(earlier)
            || !is_write(later)
        {
            return Err("expected two writes of the key by one transaction".into());
        }
        self.check_counts(txn)
    }

    /// The list shows the later append before the earlier one, or without it.
    fn list_against_program(&self, read: OpId, earlier: OpId, later: OpId) -> Result<(), String> {
        let history = self.facts.history;
        let others = self.others(read)?;
        let reader = history.txn_of(read);
        self.check_program(earlier, later)?;
        let place = |append: OpId| {
            let element = history.op(append).value;
            let place = others.iter().position(|&other| other == element);
            place.filter(|_| self.facts.may_be_seen(append))
        };
        let is_only = |append: OpId| {
            let element = history.op(append).value;
            self.facts.append_of(reader, self.key, element, self.level.reads()) == Some(append)
        };
        let shown = match (place(earlier), place(later)) {
            (None, Some(_)) => is_only(later),
            (Some(early), Some(late)) => early > late && is_only(earlier) && is_only(later),
            (_, None) => false,
        };
        if shown { Ok(()) } else { Err("the list shows them in the order of the program".into()) }
    }

    fn given_against_program(&self, earlier: OpId, later: OpId) -> Result<(), String> {
        self.check_program(earlier, later)?;
        for chain in self.facts.history.orders().versions.iter().filter(|it| it.key == self.key) {
            let given = versions::given_writes(self.facts, chain);
            let place = |write| given.writes.iter().position(|&given| given == write);
            let last = given.writes.iter().rposition(|&given| given == earlier);
            if place(later).is_some() && place(later) < last {
                return Ok(());
            }
        }
        Err("no given order has them the other way round".into())
    }

    fn late_initial(&self, write: OpId) -> Result<(), String> {
        for chain in self.facts.history.orders().versions.iter().filter(|it| it.key == self.key) {
            let given = versions::given_writes(self.facts, chain);
            if given.late_initial && given.writes.first() == Some(&write) {
                return Ok(());
            }
        }
        Err("no given order puts the initial state after this write".into())
    }

    fn result_set_mismatch(&self, op: OpId, write: Option<OpId>) -> Result<(), String> {
        let asks =
            matches!(self.level.meaning, Meaning::Events(level) if level.rows != Rows::ReadsFrom);
        let writes_key = |write: &OpId| {
            let Op { kind, key, .. } = self.facts.history.op(*write);
            kind.is_write() && key == self.key
        };
        if let Some(other) = write.filter(|write| !writes_key(write)) {
            return Err(format!("operation {} does not write key {}", other.0, self.key.0));
        }
        let history = self.facts.history;
        let reads = self.facts.reads_at(op, self.key);
        // More than the rows that are listed tells what was seen.
        let is_aggregate =
            || !history.op(op).kind.has_key() && history.predicate(op).aggregate.is_some();
        let tells_more =
            |read: &Read<'_>| history.snapshot(read.txn, op).is_some() || is_aggregate();
        if asks && reads.first().is_none_or(tells_more) {
            let reader = match write {
                Some(write) if is_aggregate() => {
                    let of = write.0;
                    Err(format!("an aggregate is wrong by itself, and not by operation {of}"))
                }
                _ => super::conditions::check_mismatch(self.facts, op, self.key),
            };
            if reads.is_empty() || reader.is_ok() {
                return reader.and_then(|reader| self.check_counts(reader));
            }
        }
        if !self.level.implies("snapshot-isolation") {
            return Err("the level allows such results".into());
        }
        let reads = self.reads_at(op)?;
        let is_wrong = |read: &Read<'_>| {
            let origins = read.own.map_or_else(|| self.origins(read), |own| vec![Some(own)]);
            origins.iter().all(|&origin| self.facts.contradicts_condition(read, origin))
                && origins.contains(&write)
        };
        if reads.iter().any(is_wrong) {
            return Ok(());
        }
        Err("the row may fit the condition".into())
    }

    /// The writes that a row may have come from; `None` is the initial state.
    fn origins(&self, read: &Read<'_>) -> Vec<Option<OpId>> {
        let history = self.facts.history;
        let mut txns = HashSet::new();
        let mut origins = Vec::new();
        let _ = self.facts.visit_origins(read, Reads::Final, |origin| {
            match origin {
                Origin::Txn(txn) => {
                    txns.insert(txn);
                }
                Origin::Initial => origins.push(None),
                Origin::Nowhere => {}
            }
            ControlFlow::Continue(())
        });
        let is_origin = |op: &OpId| self.facts.is_final(*op) && txns.contains(&history.txn_of(*op));
        let Seen::This(value) = read.seen else { return origins };
        origins.extend(self.facts.writes_of_value(self.key, value).filter(is_origin).map(Some));
        origins
    }
}

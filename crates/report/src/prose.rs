//! Anomalies in words: who saw what, and what follows from it.

use crate::{argument, scenario};
use isolde::elle::Problem;
use isolde::{Anomaly, AnomalyKind, Evidence, INITIAL};
use isolde_history::{
    Aggregate, Condition, Datum, History, Index, KeyId, OpId, OpKind, Outcome, PositionUnit, TxnId,
    Value, VersionEvidence, VersionStep, is_visible,
};
use std::collections::HashSet;

/// What prose needs to name things.
pub struct Prose<'a> {
    pub(crate) history: &'a History,
    pub(crate) index: &'a Index,
    file: &'a str,
}

impl<'a> Prose<'a> {
    /// Prose about a history read from `file`.
    pub fn new(history: &'a History, index: &'a Index, file: &'a str) -> Self {
        Prose { history, index, file }
    }

    /// The name of a transaction.
    pub fn txn(&self, txn: TxnId) -> String {
        if txn == INITIAL { "the initial state".into() } else { self.history.readable_name(txn) }
    }

    /// What an operation by condition did.
    pub(crate) fn looked(&self, read: OpId) -> String {
        let predicate = self.history.predicate(read);
        let rows = match predicate.condition {
            Condition::All => "all rows".to_owned(),
            ref condition => format!("rows with {}", condition.display(self.history.values())),
        };
        let is_update = self.history.op(read).kind == OpKind::PredicateUpdate;
        match predicate.aggregate {
            None if is_update => format!("updated {rows}"),
            None => format!("selected {rows}"),
            Some(Aggregate { function, result }) => {
                format!("computed the {} of {rows} as {}", function.name(), self.value(result))
            }
        }
    }

    /// Whether an update found a row without telling what it was.
    pub(crate) fn is_replaced(&self, update: OpId, key: KeyId) -> bool {
        let history = self.history;
        if history.op(update).kind != OpKind::PredicateUpdate {
            return false;
        }
        let rows = &history.predicate(update).rows;
        let mut untold = rows.iter().filter(|row| row.matched && row.value == Value::UNKNOWN);
        untold.any(|row| row.key == key) || history.replaced(update).any(|row| row == key)
    }

    /// Who appended an element that a list shows twice, if it was appended more than once.
    pub(crate) fn appended_again(&self, read: OpId, key: KeyId) -> Option<String> {
        let (history, list) = (self.history, self.history.list(read));
        let mut met = HashSet::new();
        let element = *list.iter().find(|&&element| !met.insert(element))?;
        let versions = self.index.versions_of(history, key).iter();
        let same = versions.filter(|version| version.value == element).map(|it| it.op());
        let may_count = |op: &OpId| history.outcome(history.txn_of(*op)) != Outcome::Aborted;
        let appends: Vec<OpId> = same.filter(may_count).collect();
        if appends.len() < 2 {
            return None;
        }
        let names = everybody(self, &appends);
        let element = self.value(element);
        Some(if names == self.txn(history.txn_of(appends[0])) {
            format!("{names} appended {element} more than once")
        } else {
            format!("{names} each appended {element}")
        })
    }

    /// What an operation saw of a key, and by which condition, if by one.
    pub(crate) fn found(&self, read: OpId, key: KeyId) -> String {
        let content = self.content(read, key);
        if self.history.op(read).kind.has_key() {
            format!("read {content}")
        } else {
            format!("{} and read {content}", self.looked(read))
        }
    }

    /// Who read what. A call of a store has its function in place of the key.
    pub(crate) fn saw(&self, read: OpId, key: KeyId) -> String {
        if self.history.op(read).kind == OpKind::Call {
            return crate::real_time::did(self, read);
        }
        format!("{} read {}", self.txn(self.history.txn_of(read)), self.content(read, key))
    }

    /// The same of a second operation, which repeats nothing of the first if both name the key.
    pub(crate) fn found_later(&self, first: OpId, second: OpId, key: KeyId) -> String {
        let has_key = |op: OpId| self.history.op(op).kind.has_key();
        if has_key(first) && has_key(second) {
            self.content(second, key)
        } else {
            self.found(second, key)
        }
    }

    pub(crate) fn key(&self, key: KeyId) -> String {
        if key.index() >= self.history.key_count() {
            return "no row".into();
        }
        self.history.datum(self.history.key_name(key)).to_string()
    }

    /// A value, cut if it is long.
    pub(crate) fn value(&self, value: Value) -> String {
        const CHARACTERS_MAX: usize = 100;
        let whole = self.history.datum(value).to_string();
        match whole.char_indices().nth(CHARACTERS_MAX) {
            Some((end, _)) => format!("{}…", &whole[..end]),
            None => whole,
        }
    }

    /// What an operation saw or wrote, as `x = 1`.
    pub(crate) fn content(&self, op: OpId, key: KeyId) -> String {
        let name = self.key(key);
        let it = self.history.op(op);
        match it.kind {
            OpKind::ReadList => format!("{name} = {}", self.list(op)),
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                let predicate = self.history.predicate(op);
                // A database that is wrong may return a row twice.
                let rows = predicate.rows.iter().filter(|row| row.key == key);
                let rows: Vec<String> =
                    rows.map(|row| format!("{name} = {}", self.value(row.value))).collect();
                if rows.is_empty() { name } else { rows.join(" and ") }
            }
            OpKind::ReadOther => format!("{name} other than {}", self.value(it.value)),
            OpKind::Delete if it.value == Value::NIL => format!("{name} deleted"),
            _ => format!("{name} = {}", self.value(it.value)),
        }
    }

    /// What a read saw of others: of a list, what stands before the reader's own appends.
    pub(crate) fn seen(&self, read: OpId, key: KeyId) -> String {
        let history = self.history;
        if history.op(read).kind != OpKind::ReadList {
            return self.content(read, key);
        }
        let start = history.op_range(history.txn_of(read)).start;
        let earlier = (start..read.0).map(|op| history.op(OpId(op)));
        let own: Vec<Value> = earlier
            .filter(|op| op.kind == OpKind::Append && op.key == key)
            .map(|op| op.value)
            .collect();
        match history.list(read).strip_suffix(&own[..]) {
            Some(others) if !own.is_empty() => {
                let own: Vec<String> = own.iter().map(|&element| self.value(element)).collect();
                let (name, others) = (self.key(key), self.elements(others));
                format!("{name} = {others} before its own {}", own.join(" and "))
            }
            _ => self.content(read, key),
        }
    }

    /// A list, its middle left out if it is long.
    pub(crate) fn list(&self, op: OpId) -> String {
        self.elements(self.history.list(op))
    }

    fn elements(&self, list: &[Value]) -> String {
        const ENDS: usize = 6;
        let show = |elements: &[Value]| {
            elements.iter().map(|&element| self.value(element)).collect::<Vec<_>>().join(" ")
        };
        if list.len() <= 2 * ENDS {
            return format!("[{}]", show(list));
        }
        let (head, tail) = (&list[..ENDS], &list[list.len() - ENDS..]);
        format!("[{} … {}] ({} elements)", show(head), show(tail), list.len())
    }

    /// Where an operation stands.
    pub(crate) fn place_of(&self, op: OpId) -> String {
        let place = self.history.position(op);
        let session = self.history.session_of(self.history.txn_of(op));
        let file = match self.history.datum(self.history.origin(session)) {
            Datum::Text(origin) => safe(origin),
            _ => safe(self.file.rsplit('/').next().unwrap_or(self.file)),
        };
        match self.history.position_unit() {
            // The source had no places, or nobody noted them.
            PositionUnit::Line | PositionUnit::Record if place == 0 => file,
            PositionUnit::Line => format!("{file}:{place}"),
            PositionUnit::Record => format!("{file}, record {place}"),
            PositionUnit::Index => format!("{file}, index {place}"),
        }
    }

    /// Where an operation stands, in parentheses.
    pub fn at(&self, op: OpId) -> String {
        format!("({})", self.place_of(op))
    }

    /// Where a transaction wrote a key, to follow a place.
    pub(crate) fn written_at(&self, txn: TxnId, key: KeyId) -> String {
        match self.index.final_write(self.history, txn, key) {
            Some(write) => format!(" with {} {}", self.content(write, key), self.at(write)),
            None => String::new(),
        }
    }

    /// What a transaction wrote to a key, to follow a name.
    pub(crate) fn written(&self, txn: TxnId, key: KeyId) -> String {
        match self.index.final_write(self.history, txn, key) {
            Some(write) => format!(" with {}", self.content(write, key)),
            None => String::new(),
        }
    }

    /// Why one version of a key comes before another.
    pub(crate) fn version(&self, step: &VersionStep) -> String {
        let (before, after) = (self.txn(step.before), self.txn(step.after));
        let key = self.key(step.key);
        match step.evidence {
            VersionEvidence::ListRead(read) => {
                let reader = self.txn(self.history.txn_of(read));
                format!("{before} appended to {key} before {after}, as {reader} read it")
            }
            VersionEvidence::NotInList(read) => {
                let reader = self.txn(self.history.txn_of(read));
                format!(
                    "{before} appended to {key} before {after}, whose element the longest list, \
                     read by {reader}, does not have"
                )
            }
            VersionEvidence::Given => {
                format!("the database installed {key} of {before} before that of {after}")
            }
        }
    }

    /// The same with the place of what shows it, where nothing else names it.
    pub(crate) fn version_at(&self, step: &VersionStep) -> String {
        match step.evidence {
            VersionEvidence::ListRead(read) | VersionEvidence::NotInList(read) => {
                format!("{} {}", self.version(step), self.at(read))
            }
            VersionEvidence::Given => self.version(step),
        }
    }
}

/// Text from outside without characters that would command a terminal or hide others.
pub(crate) fn safe(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_visible(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_unicode());
        }
    }
    shown
}

/// A mistake that a workload of its own kind shows: its sentence, and where its operations are.
pub fn tell(prose: &Prose<'_>, problem: &Problem) -> String {
    let places: Vec<String> = problem.ops.iter().map(|&op| prose.place_of(op)).collect();
    match argument::joined(places.iter().map(String::as_str)).as_str() {
        "" => problem.text.clone(),
        places => format!("{} ({places})", problem.text),
    }
}

/// Why an anomaly is one: sentences on lines of their own.
pub fn explain(prose: &Prose<'_>, anomaly: &Anomaly) -> String {
    match &anomaly.evidence {
        Evidence::Operations { key, ops } => by_operations(prose, anomaly.kind, *key, ops),
        Evidence::Cycle(_) | Evidence::Cases(_) => {
            argument::short(&scenario::scenario(prose, anomaly, &[])).join("\n")
        }
    }
}

fn by_operations(prose: &Prose<'_>, kind: AnomalyKind, key: KeyId, ops: &[OpId]) -> String {
    let txn = |op: OpId| prose.txn(prose.history.txn_of(op));
    let read = ops[0];
    let saw = format!("{} {}", prose.saw(read, key), prose.at(read));
    let other = ops.get(1).copied();
    let wrote = |op: OpId| format!("{} {}", prose.content(op, key), prose.at(op));
    match (kind, other) {
        (
            AnomalyKind::ReadBeforeWrite
            | AnomalyKind::StaleRead
            | AnomalyKind::CompareAndSetTwice
            | AnomalyKind::UnexplainedOperation,
            _,
        ) => crate::real_time::explain(prose, kind, ops),
        (AnomalyKind::NoVersionOrder, _) => {
            format!(
                "no order of {} that the level allows explains what they saw: all were tried",
                everybody(prose, ops)
            )
        }
        (AnomalyKind::AbortedRead, Some(write)) => {
            format!("{saw}\n{} wrote {} and was aborted", txn(write), wrote(write))
        }
        (AnomalyKind::IntermediateRead, Some(write)) => {
            let last = ops.get(2).map_or(String::new(), |&last| wrote(last));
            format!("{saw}\n{} wrote {} and later {last}", txn(write), wrote(write))
        }
        (AnomalyKind::FutureRead, Some(write)) => {
            format!("{saw}\n{} itself wrote it only later: {}", txn(write), wrote(write))
        }
        (AnomalyKind::NotMyOwnWrite, Some(write)) => {
            format!("{} had written {}\n{saw}", txn(write), wrote(write))
        }
        (AnomalyKind::NotMyLastWrite, Some(write)) => {
            format!(
                "{} had last written {}\n{saw}, an earlier write of its own",
                txn(write),
                wrote(write)
            )
        }
        (AnomalyKind::NonRepeatableRead, Some(second)) => differing(prose, key, read, second),
        (AnomalyKind::DuplicateWrite, Some(second)) => format!(
            "{} wrote {}\n{} wrote it too {}",
            txn(read),
            wrote(read),
            txn(second),
            prose.at(second)
        ),
        (AnomalyKind::IncompatibleOrder, _)
            if prose.history.op(ops[ops.len() - 1]).kind.is_write() =>
        {
            against_program(prose, key, ops)
        }
        (AnomalyKind::IncompatibleOrder, Some(second)) => {
            let other = format!("{} read {}", txn(second), wrote(second));
            format!("{saw}\n{other}\nneither is a prefix of the other")
        }
        (AnomalyKind::DuplicateElements, _) => {
            let appended = prose.appended_again(read, key);
            let appended = appended.map_or(String::new(), |appended| format!("\n{appended}"));
            format!("{saw}: an element stands in it twice{appended}")
        }
        (AnomalyKind::ResultSetMismatch, _) => mismatch(prose, key, ops),
        _ => format!("{saw}, which nobody wrote"),
    }
}

/// Two reads of a key that differ, or one that returned two versions of it.
fn differing(prose: &Prose<'_>, key: KeyId, read: OpId, second: OpId) -> String {
    let reader = prose.txn(prose.history.txn_of(read));
    let first = format!("{reader} {} {}", prose.found(read, key), prose.at(read));
    if second == read {
        return format!("{first}: two versions of one row");
    }
    format!("{first}\nand later {} {}", prose.found_later(read, second, key), prose.at(second))
}

/// The transactions of these operations, each once.
fn everybody(prose: &Prose<'_>, ops: &[OpId]) -> String {
    let mut names: Vec<String> = Vec::new();
    for &op in ops {
        let name = prose.txn(prose.history.txn_of(op));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let last = names.pop().unwrap_or_default();
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// Versions installed against the program of their transaction, or before the
/// initial one.
fn against_program(prose: &Prose<'_>, key: KeyId, ops: &[OpId]) -> String {
    let wrote = |op: OpId| format!("{} {}", prose.content(op, key), prose.at(op));
    let txn = |op: OpId| prose.txn(prose.history.txn_of(op));
    match *ops {
        [read, earlier, later] => {
            let element = |op: OpId| prose.history.op(op).value;
            let appended = |op: OpId| format!("{} {}", prose.value(element(op)), prose.at(op));
            let is_there = prose.history.list(read).contains(&element(earlier));
            let instead =
                if is_there { "the later one comes first" } else { "the earlier one is missing" };
            format!(
                "{} appended {} to {} before {}\n{} read {}, in which {instead}",
                txn(earlier),
                appended(earlier),
                prose.key(key),
                appended(later),
                txn(read),
                wrote(read)
            )
        }
        [earlier, later] => format!(
            "{} wrote {} before {}\nthe database installed them the other way round",
            txn(earlier),
            wrote(earlier),
            wrote(later)
        ),
        _ => format!("the database installed {} before the initial version", wrote(ops[0])),
    }
}

/// A result that fits its condition, and not the snapshot that the database told.
fn mismatched_snapshot(prose: &Prose<'_>, key: KeyId, read: OpId) -> Option<String> {
    let history = prose.history;
    let predicate = history.predicate(read);
    let looked = prose.looked(read);
    let (reader, at) = (prose.txn(history.txn_of(read)), prose.at(read));
    if predicate.aggregate.is_some() {
        return Some(format!(
            "{reader} {looked}, which the rows of the snapshot that the database told do not give \
             {at}"
        ));
    }
    if prose.is_replaced(read, key) {
        let name = prose.key(key);
        return Some(format!(
            "{reader} {looked} and with them {name}, which does not meet that in the snapshot that \
             the database told {at}"
        ));
    }
    let Some(row) = predicate.rows.iter().find(|row| row.key == key) else {
        let name = prose.key(key);
        return Some(format!(
            "{reader} {looked} and did not return {name}, which meets it in the snapshot that the \
             database told {at}"
        ));
    };
    let holds = predicate.condition.holds(history.values(), history.key_name(key), row.value, &[]);
    let content = prose.content(read, key);
    (holds == Some(row.matched)).then(|| {
        format!(
            "{reader} {looked} and saw {content}, which is not the version in the snapshot that the \
             database told {at}"
        )
    })
}

/// A result that rows do not give: of the operation, and the writes that it is told by, if any.
fn mismatch(prose: &Prose<'_>, key: KeyId, ops: &[OpId]) -> String {
    let read = ops[0];
    let predicate = prose.history.predicate(read);
    let looked = prose.looked(read);
    let reader = prose.txn(prose.history.txn_of(read));
    let row = predicate.rows.iter().find(|row| row.key == key);
    if prose.history.snapshot(prose.history.txn_of(read), read).is_some()
        && let Some(told) = mismatched_snapshot(prose, key, read)
    {
        return told;
    }
    if predicate.aggregate.is_some() && ops.len() > 1 && row.is_none() {
        let (writers, at) = (everybody(prose, &ops[1..]), prose.at(read));
        return format!("{reader} {looked}, which what {writers} wrote gives in no order {at}");
    }
    if predicate.aggregate.is_some() {
        let at = prose.at(read);
        return format!("{reader} {looked}, which the rows that it saw do not give {at}");
    }
    if prose.is_replaced(read, key) {
        let (name, at) = (prose.key(key), prose.at(read));
        return format!(
            "{reader} {looked} and with them {name}, no version of which it can have seen meets \
             that {at}"
        );
    }
    if row.is_none() {
        let (name, at) = (prose.key(key), prose.at(read));
        return format!(
            "{reader} {looked} and did not return {name}, every version of which it can have seen \
             meets it {at}"
        );
    }
    let matched = row.is_some_and(|row| row.matched);
    let (did, does) =
        if matched { ("returned", "does not meet") } else { ("did not return", "meets") };
    let (content, at) = (prose.content(read, key), prose.at(read));
    format!("{reader} {looked} and {did} {content}, which {does} it {at}")
}

//! One store of the simulated database: requests, and what its small numbers stand for.

use super::Bug;
use super::numbers::Numbers;
use crate::database::Failure;
use crate::evidence::Installed;
use crate::parameters::Isolation;
use crate::plan::Action;
use crate::random::Random;
use crate::request::{Answer, BLOCK, Filter, Function, Request};
use crate::store::{self, Content, Done, Faults, OpenTxn, Store};
use std::collections::{HashMap, VecDeque};

/// The widest range that is read at once.
const RANGE_MAX: u64 = 1 << 16;

/// One store, and what its small numbers stand for.
pub(super) struct World {
    pub(super) store: Box<dyn Store + Send>,
    random: Random,
    bug: Option<Bug>,
    /// Numbers of registers, which are even, and of lists, which are odd.
    keys: HashMap<(u64, Kind), u32>,
    /// The keys of these numbers, by half of them.
    names: Vec<u64>,
    /// Values, by their number; the number 0 is that of no value.
    values: Vec<u64>,
    /// Committed elements of each list.
    elements: HashMap<u32, Vec<u64>>,
    pub(super) sessions: u32,
    /// Committed versions that nobody has collected yet; `None` if nobody is going to.
    pub(super) installed: Option<Vec<Installed>>,
    isolation: Isolation,
    /// Numbers of all registers that were ever named.
    registers: Vec<u32>,
    /// The last committed value of each register, and what commits changed lately.
    current: HashMap<u32, u64>,
    changes: VecDeque<Change>,
    numbers: Numbers,
}

/// A committed change of a register.
struct Change {
    /// Its commit, in the store's numbers.
    commit: u32,
    key: u64,
    before: Option<u64>,
    after: Option<u64>,
}

/// Changes that are remembered. A transaction that is older than all of them is refused.
const CHANGES_MAX: usize = 1 << 14;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Register,
    List,
}

impl World {
    pub(super) fn new(isolation: Isolation, bug: Option<Bug>, seed: u64) -> World {
        let faults = bug.map(|bug| Faults::new(bug, seed));
        World {
            store: store::open(isolation, Content::Both, faults),
            random: Random::new(seed),
            bug,
            keys: HashMap::new(),
            names: Vec::new(),
            values: Vec::new(),
            elements: HashMap::new(),
            sessions: 0,
            installed: None,
            isolation,
            registers: Vec::new(),
            current: HashMap::new(),
            changes: VecDeque::new(),
            numbers: Numbers::default(),
        }
    }

    fn key(&mut self, key: u64, kind: Kind) -> u32 {
        let next = (self.keys.len() * 2) as u32 + u32::from(kind == Kind::List);
        *self.keys.entry((key, kind)).or_insert_with(|| {
            self.names.push(key);
            if kind == Kind::Register {
                self.registers.push(next);
            }
            next
        })
    }

    fn number(&mut self, value: u64) -> u32 {
        self.values.push(value);
        self.values.len() as u32
    }

    fn value(&self, number: u32) -> Option<u64> {
        let place = (number as usize).checked_sub(1)?;
        // A number that the store invented stands for a value that nobody has.
        Some(self.values.get(place).copied().unwrap_or((1 << 62) + u64::from(number)))
    }

    fn read(&mut self, txn: &mut OpenTxn, key: u32) -> Option<u64> {
        let number = match txn.own_value(key) {
            Some(own) => self.store.read_own(txn, key, own),
            None => self.store.read(txn, key),
        };
        txn.done.push(Done { action: Action::Read, key, value: number });
        self.value(number)
    }

    fn write(&mut self, txn: &mut OpenTxn, key: u32, value: Option<u64>) -> Result<(), Failure> {
        let number = value.map_or(0, |value| self.number(value));
        if self.store.write(txn, key, number).is_err() {
            self.undo(txn);
            return Err(refused());
        }
        txn.done.push(Done { action: Action::Write, key, value: number });
        Ok(())
    }

    fn rows(&mut self, txn: &mut OpenTxn, low: u64, high: u64) -> Result<Vec<(u64, u64)>, Failure> {
        if high.saturating_sub(low) >= RANGE_MAX {
            return Err(Failure::Refused(format!(
                "expected a range of at most {RANGE_MAX} keys, found {low} to {high}"
            )));
        }
        let mut rows = Vec::new();
        for name in low..=high {
            let key = self.key(name, Kind::Register);
            let value = self.read(txn, key);
            if value.is_none() && self.bug == Some(Bug::PredicateWriteSkew) {
                txn.done.pop();
            }
            rows.extend(value.map(|value| (name, value)));
        }
        Ok(rows)
    }

    /// The rows that meet a condition. Those are read; that no others meet it is checked
    /// by the condition.
    fn rows_where(
        &mut self,
        txn: &mut OpenTxn,
        filter: Filter,
    ) -> Result<Vec<(u64, u64)>, Failure> {
        let is_again = txn.filters.contains(&filter);
        let is_first = txn.filters.is_empty();
        txn.filters.push(filter);
        let can_stray = match self.bug {
            Some(Bug::Phantom) => is_again,
            Some(Bug::PredicateManyPreceders) => !is_first && !is_again,
            _ => false,
        };
        if !can_stray || !self.store.strays() {
            return self.found(txn, filter);
        }
        let (began, hidden) = (txn.began, txn.hidden);
        (txn.began, txn.hidden) = (self.store.commits(), 0);
        txn.strayed = Some(self.numbers.snapshot(txn.began, 0));
        let rows = self.found(txn, filter);
        (txn.began, txn.hidden) = (began, hidden);
        rows
    }

    /// The rows of the snapshot that meet a condition.
    fn found(&mut self, txn: &mut OpenTxn, filter: Filter) -> Result<Vec<(u64, u64)>, Failure> {
        if let Filter::Keys { low, high } = filter {
            return self.rows(txn, low, high);
        }
        let mut rows = Vec::new();
        for place in 0..self.registers.len() {
            let number = self.registers[place];
            let name = self.names[number as usize / 2];
            match self.read(txn, number) {
                Some(value) if filter.holds(name, value) => rows.push((name, value)),
                _ => {
                    txn.done.pop();
                }
            }
        }
        Ok(rows)
    }

    fn list(&mut self, txn: &mut OpenTxn, key: u32) -> Vec<u64> {
        let length = self.store.read(txn, key);
        let committed = self.elements.get(&key).map_or(&[][..], Vec::as_slice);
        let mut seen = committed[..length as usize].to_vec();
        let own = txn.writes().filter(|write| write.0 == key);
        seen.extend(own.filter_map(|write| self.value(write.1)));
        txn.done.push(Done { action: Action::Read, key, value: length });
        seen
    }

    pub(super) fn answer(
        &mut self,
        txn: &mut OpenTxn,
        request: &Request,
    ) -> Result<Answer, Failure> {
        txn.strayed = None;
        self.look(txn);
        Ok(match *request {
            Request::Read { key } => {
                let key = self.key(key, Kind::Register);
                Answer::Value(self.read(txn, key))
            }
            Request::Write { key, value } => {
                let key = self.key(key, Kind::Register);
                self.write(txn, key, Some(value))?;
                Answer::Done
            }
            Request::ReadList { key } => {
                let key = self.key(key, Kind::List);
                Answer::List(self.list(txn, key))
            }
            Request::Append { key, value } => {
                let key = self.key(key, Kind::List);
                self.write(txn, key, Some(value))?;
                Answer::Done
            }
            Request::Insert { key, value } => self.replace(txn, key, None, Some(value))?,
            Request::CompareAndSet { key, expected, value } => {
                self.replace(txn, key, expected, Some(value))?
            }
            Request::Delete { key } => {
                let key = self.key(key, Kind::Register);
                let is_there = self.read(txn, key).is_some();
                if is_there {
                    self.write(txn, key, None)?;
                }
                Answer::Applied(is_there)
            }
            Request::Range { low, high } => {
                Answer::Rows(self.rows_where(txn, Filter::Keys { low, high })?)
            }
            Request::UpdateRange { low, high, first } => {
                let filter = Filter::Keys { low, high };
                Answer::Rows(self.updated(txn, filter, |name| first + (name - low))?)
            }
            Request::Select { filter } => Answer::Rows(self.rows_where(txn, filter)?),
            Request::Aggregate { function, filter } => {
                let rows = self.rows_where(txn, filter)?;
                Answer::Value(aggregated(function, &rows))
            }
            Request::UpdateWhere { filter, first } => {
                Answer::Rows(self.updated(txn, filter, |name| first + name % BLOCK)?)
            }
            Request::DeleteWhere { filter } => {
                let rows = self.rows_where(txn, filter)?;
                for (name, _) in &rows {
                    let key = self.key(*name, Kind::Register);
                    self.write(txn, key, None)?;
                }
                Answer::Rows(rows)
            }
        })
    }

    /// Rows that meet a condition, with the values they are given.
    fn updated(
        &mut self,
        txn: &mut OpenTxn,
        filter: Filter,
        new: impl Fn(u64) -> u64,
    ) -> Result<Vec<(u64, u64)>, Failure> {
        let mut rows = self.rows_where(txn, filter)?;
        for (name, value) in &mut rows {
            *value = new(*name);
            let key = self.key(*name, Kind::Register);
            self.write(txn, key, Some(*value))?;
        }
        Ok(rows)
    }

    /// Takes note of what a request is going to see, if somebody wants to know.
    fn look(&self, txn: &mut OpenTxn) {
        if self.installed.is_some() && !self.has_snapshots() {
            txn.snapshot = Some(self.numbers.snapshot(self.store.commits(), 0));
        }
    }

    pub(super) fn has_bug(&self) -> bool {
        self.bug.is_some()
    }

    /// Whether a transaction has one snapshot for all of its requests.
    pub(super) fn has_snapshots(&self) -> bool {
        matches!(self.isolation, Isolation::SnapshotIsolation | Isolation::Serializable)
    }

    /// Writes a register that has the expected value.
    fn replace(
        &mut self,
        txn: &mut OpenTxn,
        key: u64,
        expected: Option<u64>,
        value: Option<u64>,
    ) -> Result<Answer, Failure> {
        let key = self.key(key, Kind::Register);
        let found = self.read(txn, key);
        if found != expected {
            return Ok(Answer::Found(found));
        }
        self.write(txn, key, value)?;
        Ok(Answer::Applied(true))
    }

    pub(super) fn begin(&mut self, txn: &mut OpenTxn) {
        txn.done.clear();
        txn.filters.clear();
        self.store.begin(txn, &mut self.random);
        txn.snapshot = (self.installed.is_some() && self.has_snapshots())
            .then(|| self.numbers.snapshot(txn.began, txn.hidden));
        txn.number = self.numbers.begin();
    }

    pub(super) fn commit(&mut self, txn: &mut OpenTxn) -> Result<(), Failure> {
        if self.is_outdated(txn) || self.store.commit(txn).is_err() {
            self.undo(txn);
            return Err(refused());
        }
        for (key, number) in txn.writes().filter(|write| write.0 % 2 == 1) {
            let value = self.value(number);
            self.elements.entry(key).or_default().extend(value);
        }
        self.note_installed(txn);
        self.note_changes(txn);
        self.numbers.committed(txn.number, self.store.commits());
        txn.done.clear();
        txn.replaced.clear();
        Ok(())
    }

    /// Whether rows have come to meet a condition of a transaction, or do so no more, since
    /// its snapshot. Those that only read need no such check.
    fn is_outdated(&self, txn: &OpenTxn) -> bool {
        let is_checked = self.isolation == Isolation::Serializable
            && !txn.filters.is_empty()
            && txn.writes().next().is_some();
        if !is_checked {
            return false;
        }
        let later = || self.changes.iter().rev().take_while(|it| it.commit > txn.began);
        let is_forgotten =
            self.changes.len() == CHANGES_MAX && later().count() == self.changes.len();
        // Whether two may insert the same row is for the store to decide, wrongly.
        let is_own = |change: &Change| {
            self.bug == Some(Bug::LostInsert)
                && change.before.is_none()
                && txn.writes().any(|write| self.names[write.0 as usize / 2] == change.key)
        };
        let mut others = later().filter(|change| !is_own(change));
        is_forgotten || others.any(|change| txn.filters.iter().any(|&it| self.matters(it, change)))
    }

    fn matters(&self, filter: Filter, change: &Change) -> bool {
        let met = |value: Option<u64>| value.is_some_and(|value| filter.holds(change.key, value));
        match self.bug {
            Some(Bug::PredicateWriteSkew) => met(change.before),
            _ => met(change.before) || met(change.after),
        }
    }

    fn note_changes(&mut self, txn: &OpenTxn) {
        if self.isolation != Isolation::Serializable {
            return;
        }
        let commit = self.store.commits();
        for (number, value) in txn.writes().filter(|write| write.0 % 2 == 0) {
            let after = self.value(value);
            let before = match after {
                Some(after) => self.current.insert(number, after),
                None => self.current.remove(&number),
            };
            let key = self.names[number as usize / 2];
            if self.changes.len() == CHANGES_MAX {
                self.changes.pop_front();
            }
            self.changes.push_back(Change { commit, key, before, after });
        }
    }

    /// Versions are installed when their transaction commits.
    fn note_installed(&mut self, txn: &OpenTxn) {
        let Some(mut installed) = self.installed.take() else { return };
        for (number, value) in txn.writes().filter(|write| write.0 % 2 == 0) {
            let key = self.names[number as usize / 2];
            let value = self.value(value);
            let number = value.is_none().then_some(txn.number);
            installed.push(Installed { key, value, number });
        }
        self.installed = Some(installed);
    }

    pub(super) fn undo(&mut self, txn: &mut OpenTxn) {
        self.store.undo(txn);
        self.numbers.ended(txn.number);
        txn.done.clear();
        txn.replaced.clear();
    }
}

fn refused() -> Failure {
    Failure::Aborted("conflict".to_owned())
}

fn aggregated(function: Function, rows: &[(u64, u64)]) -> Option<u64> {
    let values = rows.iter().map(|row| row.1);
    match function {
        Function::Count => Some(rows.len() as u64),
        Function::Min => values.min(),
        Function::Max => values.max(),
        Function::Sum => values.reduce(u64::wrapping_add),
    }
}

//! Histories of a serial store that tells as much about itself as is asked for.

use isolde_history::format::{Writer, by_name};
use isolde_history::{
    Aggregate, Condition, DraftTxn, Function, History, HistoryBuilder, KeyId, OpKind, Predicate,
    PredicateRow, Snapshot, Value, VersionChain,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fs;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Shares of kinds of operations in percent; what is left is updates by condition.
#[derive(Clone, Copy)]
pub(super) struct Mix {
    pub(super) reads: u32,
    pub(super) writes: u32,
    /// Reads of a key followed by a write of it.
    pub(super) updates: u32,
    pub(super) inserts: u32,
    /// Reads of rows, and least and largest values, by condition.
    pub(super) selects: u32,
}

impl Mix {
    pub(super) const NONE: Mix = Mix { reads: 0, writes: 0, updates: 0, inserts: 0, selects: 0 };

    /// Emme's: 10 % inserts, then reads and updates in equal parts, of which this share is by
    /// condition.
    pub(super) fn by_condition(share: u32) -> Mix {
        let half = (90 - share) / 2;
        Mix {
            reads: half,
            writes: 90 - share - half,
            inserts: 10,
            selects: share - share / 2,
            ..Mix::NONE
        }
    }
}

/// What is told.
#[derive(Clone, Copy)]
pub(super) struct Evidence {
    /// Who ran which transactions.
    pub(super) sessions: bool,
    /// How much of the order of versions, in percent.
    pub(super) share: u32,
    pub(super) snapshots: bool,
    pub(super) serial: bool,
}

impl Evidence {
    pub(super) const NONE: Evidence =
        Evidence { sessions: false, share: 0, snapshots: false, serial: false };
    pub(super) const CERTIFICATE: Evidence =
        Evidence { sessions: true, share: 100, snapshots: true, serial: false };
    pub(super) const SERIAL: Evidence = Evidence { sessions: true, serial: true, ..Evidence::NONE };
}

pub(super) struct Workload<'a> {
    pub(super) name: &'a str,
    pub(super) txns: u32,
    pub(super) clients: u32,
    pub(super) operations: u32,
    pub(super) keys: u32,
    pub(super) mix: Mix,
    pub(super) evidence: Evidence,
}

impl Workload<'_> {
    /// The file of the history, in the binary format.
    pub(super) fn written(&self, folder: &Path, scale: u32) -> Result<PathBuf, String> {
        let Evidence { sessions, share, snapshots, serial } = self.evidence;
        let name: String =
            self.name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
        let path = folder.join(format!(
            "{name}-{}-{sessions}-{share}-{snapshots}-{serial}.isolde",
            self.txns / scale
        ));
        if path.exists() {
            return Ok(path);
        }
        let history = Generator::new(self, self.txns / scale).run();
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = fs::File::create(&path).map_err(|error| failed(&error))?;
        let format = by_name("binary").ok_or("expected the binary format")?;
        let Some(Writer::File(write)) = format.write else {
            return Err("expected a format that is written as one file".into());
        };
        write(&history, &mut BufWriter::new(file)).map_err(|error| failed(&error))?;
        Ok(path)
    }
}

/// A store that runs one transaction after another.
struct Generator<'a> {
    workload: &'a Workload<'a>,
    txns: u32,
    builder: HistoryBuilder,
    random: SplitMix64,
    /// By key, its current number.
    rows: BTreeMap<u32, u64>,
    /// By key, all of its numbers in order.
    versions: Vec<Vec<u64>>,
    written: u64,
}

impl<'a> Generator<'a> {
    fn new(workload: &'a Workload<'a>, txns: u32) -> Self {
        Generator {
            workload,
            txns,
            builder: HistoryBuilder::new(),
            random: SplitMix64::seed_from_u64(1),
            rows: BTreeMap::new(),
            versions: vec![Vec::new(); workload.keys as usize],
            written: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn value(&mut self, number: u64) -> Value {
        self.builder.values().unsigned(number)
    }

    fn key(&mut self, key: u32) -> KeyId {
        let name = self.value(key.into());
        self.builder.key(name)
    }

    /// All numbers that are written, each once; spread, so that ranges of them mean something.
    fn space(&self) -> u64 {
        (u64::from(self.txns) * u64::from(self.workload.operations) * 16).next_power_of_two()
    }

    fn fresh(&mut self) -> u64 {
        self.written += 1;
        // Odd factors permute the numbers below a power of two.
        self.written.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (self.space() - 1)
    }

    fn run(mut self) -> History {
        let evidence = self.workload.evidence;
        let mut serial: Vec<DraftTxn> = Vec::new();
        for number in 0..self.txns {
            let client = if evidence.sessions {
                self.below(self.workload.clients.into())
            } else {
                number.into()
            };
            let label = self.value(client);
            let session = self.builder.session(label);
            let txn = self.builder.begin(session);
            serial.push(txn);
            if evidence.snapshots {
                self.builder.number(txn, number.into());
                let snapshot = Snapshot { below: number.into(), except: Vec::new() };
                self.builder.txn_snapshot(txn, snapshot);
            }
            for _ in 0..self.workload.operations {
                self.operation();
            }
        }
        if evidence.serial {
            self.builder.total_order(serial);
        }
        self.orders();
        self.builder.finish("white-box").expect("no limit was given")
    }

    fn operation(&mut self) {
        let Mix { reads, writes, updates, inserts, selects, .. } = self.workload.mix;
        let key = self.below(self.workload.keys.into()) as u32;
        let mut kind = self.below(100) as u32;
        let mut is = |share: u32| {
            let hit = kind < share;
            kind = kind.wrapping_sub(share);
            hit
        };
        if is(reads) {
            self.read(key);
        } else if is(writes) {
            self.write(key, OpKind::Write);
        } else if is(updates) {
            self.read(key);
            self.write(key, OpKind::Write);
        } else if is(inserts) {
            self.write(key, OpKind::Insert);
        } else if is(selects) {
            self.select();
        } else {
            self.change();
        }
    }

    fn read(&mut self, key: u32) {
        let value = self.rows.get(&key).copied().map_or(Value::NIL, |number| self.value(number));
        let key = self.key(key);
        self.builder.op(OpKind::Read, key, value);
    }

    fn write(&mut self, key: u32, kind: OpKind) {
        let number = self.fresh();
        self.rows.insert(key, number);
        self.versions[key as usize].push(number);
        let (value, key) = (self.value(number), self.key(key));
        self.builder.op(kind, key, value);
    }

    /// A range that a tenth of all numbers lie in, and the rows that do.
    fn range(&mut self) -> (Condition, Vec<(u32, u64)>) {
        let space = self.space();
        let low = self.below(space - space / 10);
        let high = low + space / 10;
        let found = self.rows.iter().map(|(&key, &number)| (key, number));
        let found = found.filter(|row| (low..=high).contains(&row.1)).collect();
        let (low, high) = (self.value(low), self.value(high));
        (Condition::ValueRange { low, high }, found)
    }

    fn select(&mut self) {
        let (condition, found) = self.range();
        let numbers = found.iter().map(|row| row.1);
        let (function, number) = match self.below(4) {
            0 => (Function::Min, numbers.min()),
            1 => (Function::Max, numbers.max()),
            _ => return self.rows_found(condition, &found),
        };
        let result = number.map_or(Value::NIL, |number| self.value(number));
        let aggregate = Some(Aggregate { function, result });
        let predicate = Predicate { condition, rows: Vec::new(), aggregate };
        self.builder.predicate(OpKind::PredicateRead, predicate);
    }

    fn rows_found(&mut self, condition: Condition, found: &[(u32, u64)]) {
        let mut rows = Vec::with_capacity(found.len());
        for &(key, number) in found {
            let (key, value) = (self.key(key), self.value(number));
            rows.push(PredicateRow { key, value, matched: true });
        }
        let predicate = Predicate { condition, rows, aggregate: None };
        self.builder.predicate(OpKind::PredicateRead, predicate);
    }

    fn change(&mut self) {
        let (condition, found) = self.range();
        if found.is_empty() {
            // The writes behind an update are its own, so one that finds nothing is a read.
            return self.rows_found(condition, &found);
        }
        let mut rows = Vec::with_capacity(found.len());
        for &(key, number) in &found {
            let (key, value) = (self.key(key), self.value(number));
            rows.push(PredicateRow { key, value, matched: true });
        }
        let predicate = Predicate { condition, rows, aggregate: None };
        self.builder.predicate(OpKind::PredicateUpdate, predicate);
        for (key, _) in found.into_iter().take(2) {
            self.write(key, OpKind::Write);
        }
    }

    /// As much of the order of versions as is asked for.
    fn orders(&mut self) {
        let share = u64::from(self.workload.evidence.share);
        if share == 0 {
            return;
        }
        for key in 0..self.workload.keys {
            let numbers = std::mem::take(&mut self.versions[key as usize]);
            let kept: Vec<u64> = numbers.into_iter().filter(|_| self.below(100) < share).collect();
            let values = kept.into_iter().map(|number| self.value(number)).collect();
            let key = self.key(key);
            self.builder.version_chain(VersionChain {
                key,
                values,
                numbers: Vec::new(),
                complete: share == 100,
            });
        }
    }
}

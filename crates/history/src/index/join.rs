//! Joining reads to writes.

use super::lists::external_part;
use super::versions::{Version, Versions};
use super::{
    Candidates, Choice, Misread, MisreadKind, Origin, PackedOrigin, ReadId, SeveralOrigins,
    may_count,
};
use crate::history::{History, KeyId, Op, OpId, OpKind, Outcome, TxnId};
use crate::value::Value;
use hashbrown::HashMap;
use rayon::prelude::*;

/// The result of the join, in the order of transactions.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) starts: Vec<u32>,
    pub(super) keys: Vec<KeyId>,
    pub(super) origins: Vec<PackedOrigin>,
    pub(super) ops: Vec<OpId>,
    pub(super) misreads: Vec<Misread>,
    pub(super) several: Vec<SeveralOrigins>,
    /// Whether a read has candidates that [`Candidates::Final`] leaves out.
    pub(super) has_lesser: bool,
}

/// Joins all reads, in parallel over transactions.
pub(super) fn join(history: &History, versions: &Versions, allowed: Candidates) -> Joined {
    let txns = history.txn_count();
    // Large tasks look up many reads of each key together, small ones share better.
    let share = (txns / (2 * rayon::current_num_threads())).clamp(1 << 12, 1 << 16);
    let tasks: Vec<usize> = (0..txns).step_by(share).collect();
    let parts: Vec<Joined> = tasks
        .into_par_iter()
        .map(|start| {
            let mut joiner = Joiner {
                history,
                versions,
                allowed,
                own: Vec::new(),
                is_long: false,
                open: Vec::new(),
                out: Joined::default(),
            };
            for txn in start..(start + share).min(txns) {
                joiner.out.starts.push(joiner.out.ops.len() as u32);
                joiner.txn(TxnId(txn as u32));
            }
            joiner.resolve();
            joiner.out
        })
        .collect();
    concatenate(parts)
}

fn concatenate(parts: Vec<Joined>) -> Joined {
    let total = parts.iter().map(|part| part.ops.len()).sum();
    let mut all = Joined::default();
    all.keys.reserve_exact(total);
    all.origins.reserve_exact(total);
    all.ops.reserve_exact(total);
    for part in parts {
        let base = all.ops.len() as u32;
        all.starts.extend(part.starts.iter().map(|start| base + start));
        all.keys.extend_from_slice(&part.keys);
        all.origins.extend_from_slice(&part.origins);
        all.ops.extend_from_slice(&part.ops);
        all.misreads.extend(part.misreads);
        all.has_lesser |= part.has_lesser;
        all.several.extend(part.several.into_iter().map(|mut several| {
            several.read.0 += base;
            several
        }));
    }
    all.starts.push(total as u32);
    all
}

impl Joined {
    /// Settles reads of repeated values.
    pub(super) fn choose(&mut self, choices: &[Choice]) {
        if choices.is_empty() {
            return;
        }
        let chosen: HashMap<(OpId, KeyId), Origin> =
            choices.iter().map(|choice| ((choice.op, choice.key), choice.origin)).collect();
        let Joined { ops, keys, origins, several, .. } = self;
        several.retain(|several| {
            let read = several.read.0 as usize;
            match chosen.get(&(ops[read], keys[read])) {
                Some(Origin::Txn(txn)) => origins[read] = PackedOrigin(txn.0),
                Some(Origin::Initial) => origins[read] = PackedOrigin::INITIAL,
                Some(Origin::Nobody) => origins[read] = PackedOrigin::NOBODY,
                Some(Origin::Several) | None => return true,
            }
            false
        });
    }

    /// Which transactions count: committed ones, and unknown ones that a counted
    /// one observed.
    pub(super) fn counted(&self, history: &History, versions: &Versions) -> Vec<bool> {
        let outcomes = history.outcomes();
        let mut counted: Vec<bool> =
            outcomes.iter().map(|&outcome| outcome == Outcome::Committed).collect();
        if !outcomes.contains(&Outcome::Unknown) {
            return counted;
        }
        let mut open: Vec<TxnId> = history.txns().filter(|txn| counted[txn.index()]).collect();
        // Lists that share their elements are looked at once, up to the longest.
        let mut seen_to: HashMap<u32, usize> = HashMap::new();
        let mut observed: Vec<TxnId> = Vec::new();
        while let Some(txn) = open.pop() {
            observed.clear();
            let range = self.starts[txn.index()] as usize..self.starts[txn.index() + 1] as usize;
            for origin in &self.origins[range] {
                if let Origin::Txn(writer) = origin.unpack() {
                    observed.push(writer);
                }
            }
            for op in history.ops_of(txn) {
                let Op { kind, key, .. } = history.op(op);
                if kind == OpKind::ReadList {
                    let Some(list) = external_part(history, txn, op) else { continue };
                    let seen = seen_to.entry(history.list_span(op).0).or_insert(0);
                    for &element in list.iter().skip(*seen) {
                        if let [only] = versions.with_value(key, element) {
                            observed.push(only.txn);
                        }
                    }
                    *seen = list.len().max(*seen);
                }
            }
            for &writer in &observed {
                if !counted[writer.index()] && may_count(history, writer) {
                    counted[writer.index()] = true;
                    open.push(writer);
                }
            }
        }
        counted
    }

    /// Drops what transactions that do not count read.
    pub(super) fn forget_uncounted(&mut self, history: &History, counted: &[bool]) {
        self.misreads.retain(|misread| counted[history.txn_of(misread.read).index()]);
        let mut moved: Vec<u32> = Vec::new();
        let several = !self.several.is_empty();
        let mut kept = 0;
        for (txn, &counts) in counted.iter().enumerate() {
            let range = self.starts[txn] as usize..self.starts[txn + 1] as usize;
            self.starts[txn] = kept as u32;
            for index in range {
                if several {
                    moved.push(if counts { kept as u32 } else { u32::MAX });
                }
                if counts {
                    self.keys[kept] = self.keys[index];
                    self.origins[kept] = self.origins[index];
                    self.ops[kept] = self.ops[index];
                    kept += 1;
                }
            }
        }
        self.starts[counted.len()] = kept as u32;
        self.keys.truncate(kept);
        self.origins.truncate(kept);
        self.ops.truncate(kept);
        self.several.retain_mut(|several| {
            several.read = ReadId(moved[several.read.0 as usize]);
            several.read.0 != u32::MAX
        });
    }
}

/// Of a value that repeats more often, only so many writers are candidates, and no
/// choice among them refutes a level.
const CANDIDATES_MAX: usize = 32;

struct Joiner<'a> {
    history: &'a History,
    versions: &'a Versions,
    allowed: Candidates,
    /// The writes of a long transaction by key and operation; empty for a short one.
    own: Vec<(KeyId, OpId)>,
    is_long: bool,
    /// Register reads whose writers are looked up together at the end.
    open: Vec<OpenRead>,
    out: Joined,
}

/// A register read without its origin.
#[derive(Clone, Copy)]
struct OpenRead {
    txn: TxnId,
    read: ReadId,
    key: KeyId,
    value: Value,
}

/// The same reads, those of neighbouring keys together: the versions that a few
/// keys have fit in a cache, those of all keys do not.
fn grouped_by_key(reads: Vec<OpenRead>, keys: usize) -> Vec<OpenRead> {
    const GROUPS_MAX: usize = 1 << 10;
    let shift = (keys / GROUPS_MAX).checked_ilog2().map_or(0, |bits| bits + 1);
    let group = |read: &OpenRead| (read.key.0 >> shift) as usize;
    let mut next = vec![0u32; (keys >> shift) + 2];
    for read in &reads {
        next[group(read) + 1] += 1;
    }
    for index in 1..next.len() {
        next[index] += next[index - 1];
    }
    let mut grouped = reads.clone();
    for read in reads {
        let slot = &mut next[group(&read)];
        grouped[*slot as usize] = read;
        *slot += 1;
    }
    grouped
}

/// Transactions up to this length are searched for their own writes one by one.
const OPS_SHORT: u32 = 64;

impl Joiner<'_> {
    fn txn(&mut self, txn: TxnId) {
        let history = self.history;
        self.own.clear();
        self.is_long = history.op_range(txn).len() as u32 > OPS_SHORT;
        if self.is_long {
            let writes = history.ops_of(txn).filter(|&op| history.op(op).kind.is_write());
            self.own.extend(writes.map(|op| (history.op(op).key, op)));
            self.own.sort_unstable();
        }
        for op in history.ops_of(txn) {
            let Op { kind, key, value } = history.op(op);
            match kind {
                OpKind::Read => self.read(txn, op, key, value),
                OpKind::ReadList => self.read_list(txn, op, key),
                OpKind::ReadOther => self.read_other(txn, op, key, value),
                OpKind::PredicateRead | OpKind::PredicateUpdate => {
                    for row in &history.predicate(op).rows {
                        self.read(txn, op, row.key, row.value);
                    }
                }
                OpKind::Write | OpKind::Append | OpKind::Insert | OpKind::Delete | OpKind::Call => {
                }
            }
        }
    }

    /// The transaction's writes of `key` before `op`, last first.
    #[inline]
    fn own_writes(&self, txn: TxnId, op: OpId, key: KeyId) -> impl Iterator<Item = OpId> + use<'_> {
        let start = self.history.op_range(txn).start;
        let (kinds, keys) = (self.history.op_kinds(), self.history.op_keys());
        let indexed = {
            let from = self.own.partition_point(|&write| write < (key, OpId(0)));
            let to = self.own.partition_point(|&write| write < (key, op));
            self.own[from..to].iter().rev().map(|write| write.1)
        };
        let short = if self.is_long { 0..0 } else { start..op.0 };
        let searched = short.rev().map(OpId).filter(move |earlier| {
            keys[earlier.index()] == key && kinds[earlier.index()].is_write()
        });
        indexed.chain(searched)
    }

    #[inline]
    fn read(&mut self, txn: TxnId, op: OpId, key: KeyId, value: Value) {
        if value == Value::UNKNOWN {
            return;
        }
        let values = self.history.op_values();
        let mut own = self.own_writes(txn, op, key);
        if let Some(write) = own.next() {
            if values[write.index()] == value {
                return;
            }
            let kind = if own.any(|write| values[write.index()] == value) {
                MisreadKind::NotMyLastWrite { write }
            } else {
                MisreadKind::NotMyOwnWrite { write }
            };
            drop(own);
            self.out.misreads.push(Misread { read: op, key, kind });
            return;
        }
        drop(own);
        self.open.push(OpenRead { txn, read: ReadId(self.out.ops.len() as u32), key, value });
        self.push(op, key, PackedOrigin::NOBODY);
    }

    /// Looks up the writers of all open reads.
    fn resolve(&mut self) {
        const READS_TOGETHER: usize = 256;
        let versions = self.versions;
        let open = grouped_by_key(std::mem::take(&mut self.open), self.history.key_count());
        let mut wanted: Vec<(KeyId, Value)> = Vec::with_capacity(READS_TOGETHER);
        let mut places: Vec<u32> = Vec::with_capacity(READS_TOGETHER);
        for reads in open.chunks(READS_TOGETHER) {
            wanted.clear();
            wanted.extend(reads.iter().map(|it| (it.key, it.value)));
            versions.search(&wanted, &mut places);
            for ((open, &(key, value)), &place) in reads.iter().zip(&wanted).zip(&places) {
                let initial = self.history.initial(key) == value;
                let candidates = versions.at(place, key, value);
                let origin = match candidates {
                    [] if initial => PackedOrigin::INITIAL,
                    [only] if !initial && self.is_good(open.txn, only) => PackedOrigin(only.txn.0),
                    _ => self.choose(open.txn, open.read, initial, candidates),
                };
                self.out.origins[open.read.0 as usize] = origin;
            }
        }
        self.out.several.sort_unstable_by_key(|several| several.read);
    }

    fn is_good(&self, reader: TxnId, version: &Version) -> bool {
        version.is_final() && version.txn != reader && may_count(self.history, version.txn)
    }

    /// The origin of a read that is not plainly one final write of another
    /// transaction.
    fn choose(
        &mut self,
        txn: TxnId,
        read: ReadId,
        initial: bool,
        versions: &[Version],
    ) -> PackedOrigin {
        let mut candidates: Vec<Origin> = Vec::new();
        let mut lesser: Vec<Origin> = Vec::new();
        candidates.extend(initial.then_some(Origin::Initial));
        for version in versions.iter().filter(|version| version.txn != txn) {
            // A value that everybody writes would cost the square of the history.
            if candidates.len() >= CANDIDATES_MAX {
                break;
            }
            if self.is_good(txn, version) {
                candidates.push(Origin::Txn(version.txn));
            } else if lesser.len() >= CANDIDATES_MAX {
                self.out.has_lesser = true;
            } else if may_count(self.history, version.txn) {
                lesser.push(Origin::Txn(version.txn));
            } else {
                lesser.push(Origin::Nobody);
            }
        }
        let lesser_count = lesser.len();
        if candidates.len() + lesser.len() > 1 && !lesser.is_empty() {
            self.out.has_lesser = true;
            if self.allowed == Candidates::Any {
                candidates.extend(lesser);
                candidates.sort_unstable();
                candidates.dedup();
            }
        }
        match candidates[..] {
            [Origin::Initial] => PackedOrigin::INITIAL,
            [Origin::Txn(only)] => PackedOrigin(only.0),
            [Origin::Nobody] => PackedOrigin::NOBODY,
            [] => self.misread(txn, read, versions),
            _ => {
                let complete = candidates.len() < CANDIDATES_MAX && lesser_count < CANDIDATES_MAX;
                self.out.several.push(SeveralOrigins { read, candidates, complete });
                PackedOrigin::SEVERAL
            }
        }
    }

    /// No write explains the read: says why, and what still counts as its origin
    /// for levels that allow intermediate reads.
    fn misread(&mut self, txn: TxnId, read: ReadId, found: &[Version]) -> PackedOrigin {
        let others = || found.iter().filter(|version| version.txn != txn);
        let intermediate = others().find(|version| may_count(self.history, version.txn));
        let (kind, origin) = if let Some(version) = intermediate {
            (MisreadKind::Intermediate { write: version.op() }, PackedOrigin(version.txn.0))
        } else if let Some(version) = others().next() {
            (MisreadKind::Aborted { write: version.op() }, PackedOrigin::NOBODY)
        } else if let Some(version) = found.first() {
            (MisreadKind::Future { write: version.op() }, PackedOrigin::NOBODY)
        } else {
            (MisreadKind::ThinAir, PackedOrigin::NOBODY)
        };
        let (op, key) = (self.out.ops[read.0 as usize], self.out.keys[read.0 as usize]);
        self.out.misreads.push(Misread { read: op, key, kind });
        origin
    }

    /// A read of any value but one: a choice unless only one other exists.
    fn read_other(&mut self, txn: TxnId, op: OpId, key: KeyId, value: Value) {
        let own = self.own_writes(txn, op, key).next();
        if let Some(write) = own {
            if self.history.op_values()[write.index()] == value {
                let kind = MisreadKind::NotMyOwnWrite { write };
                self.out.misreads.push(Misread { read: op, key, kind });
            }
            return;
        }
        let initial = self.history.initial(key) != value;
        let others = || self.versions.of(key).iter().filter(|version| version.value != value);
        let good = others().filter(|version| self.is_good(txn, version)).take(CANDIDATES_MAX);
        let lesser = others().filter(|version| !self.is_good(txn, version)).take(2);
        let others: Vec<Version> = good.chain(lesser).copied().collect();
        let read = self.push(op, key, PackedOrigin::NOBODY);
        self.out.origins[read.0 as usize] = self.choose(txn, read, initial, &others);
    }

    /// A list read's external part comes from the writer of its last element. What
    /// the elements before it say is for [`super::lists`].
    fn read_list(&mut self, txn: TxnId, op: OpId, key: KeyId) {
        let Some(external) = external_part(self.history, txn, op) else {
            let kind = self.missing_own(txn, op, key);
            return self.out.misreads.push(Misread { read: op, key, kind });
        };
        let read = self.push(op, key, PackedOrigin::INITIAL);
        let Some(&element) = external.last() else { return };
        let found = self.versions.with_value(key, element);
        self.out.origins[read.0 as usize] = match found {
            [only] if self.is_good(txn, only) => PackedOrigin(only.txn.0),
            [] | [_] => self.choose(txn, read, false, found),
            _ => self.repeated_element(txn, read, found),
        };
    }

    /// An element appended more than once. All lists that show it mean the same
    /// append, so one that this reader cannot have seen still is a candidate.
    fn repeated_element(&mut self, txn: TxnId, read: ReadId, found: &[Version]) -> PackedOrigin {
        self.out.has_lesser = true;
        let seen = found.iter().any(|version| self.is_good(txn, version));
        if self.allowed == Candidates::Final && !seen {
            return self.misread(txn, read, found);
        }
        let shown = found.iter().take(CANDIDATES_MAX);
        let candidates = shown.map(|version| Origin::Txn(version.txn)).collect();
        let complete = found.len() < CANDIDATES_MAX;
        self.out.several.push(SeveralOrigins { read, candidates, complete });
        PackedOrigin::SEVERAL
    }

    /// Why a list read that does not end with its transaction's own appends is wrong.
    fn missing_own(&self, txn: TxnId, op: OpId, key: KeyId) -> MisreadKind {
        let (list, values) = (self.history.list(op), self.history.op_values());
        let mut own = self.own_writes(txn, op, key);
        let write = own.next().expect("there is one that was not seen");
        let missing = !list.contains(&values[write.index()]);
        if missing && own.any(|write| list.contains(&values[write.index()])) {
            MisreadKind::NotMyLastWrite { write }
        } else {
            MisreadKind::NotMyOwnWrite { write }
        }
    }

    #[inline]
    fn push(&mut self, op: OpId, key: KeyId, origin: PackedOrigin) -> ReadId {
        self.out.ops.push(op);
        self.out.keys.push(key);
        self.out.origins.push(origin);
        ReadId(self.out.ops.len() as u32 - 1)
    }
}

//! Joining reads to writes.

use super::join_result::{Found, Joined};
use super::lists::external_part;
use super::own::OwnWrites;
use super::unique::UniqueWrites;
use super::versions::Version;
use super::writes::Writes;
use super::{
    Candidates, KeyMarks, Misread, MisreadKind, Origin, PackedOrigin, ReadId, SeveralOrigins,
    may_count,
};
use crate::history::{History, KeyId, Op, OpId, OpKind, Outcome, TxnId};
use crate::value::Value;
use hashbrown::HashMap;
use rayon::prelude::*;
use std::mem;
use std::ops::Range;

/// Joins all reads, in parallel over transactions. Each task fills its own part of
/// the final columns.
pub(super) fn join(
    history: &History,
    writes: &Writes,
    own: &OwnWrites<'_>,
    allowed: Candidates,
) -> Joined {
    let parts = parts(history, writes);
    let rooms: Vec<usize> = parts.iter().map(|part| reads_max(history, part)).collect();
    let room = rooms.iter().sum();
    let mut all = Joined {
        starts: vec![0; history.txn_count() + 1],
        keys: vec![KeyId(0); room],
        origins: vec![PackedOrigin::NOBODY; room],
        ops: vec![OpId(0); room],
        ..Joined::default()
    };
    let mut tasks: Vec<Option<Reads<'_>>> = parts.iter().map(|_| None).collect();
    let mut by_txn: Vec<usize> = (0..parts.len()).collect();
    by_txn.sort_unstable_by_key(|&part| parts[part].start);
    let mut starts = &mut all.starts[..];
    let (mut keys, mut origins, mut ops) =
        (&mut all.keys[..], &mut all.origins[..], &mut all.ops[..]);
    for &part in &by_txn {
        let room = rooms[part];
        tasks[part] = Some(Reads {
            first: TxnId(parts[part].start),
            starts: starts.split_off_mut(..parts[part].len()).expect("it has that many"),
            keys: keys.split_off_mut(..room).expect("it has that many"),
            origins: origins.split_off_mut(..room).expect("it has that many"),
            ops: ops.split_off_mut(..room).expect("it has that many"),
            count: 0,
        });
    }
    let all_may_count = !history.outcomes().contains(&Outcome::Aborted);
    let mut found: Vec<Found> = tasks
        .into_par_iter()
        .flatten()
        .map(|reads| Joiner::new(history, (writes, own), (allowed, all_may_count), reads).join())
        .collect();
    let found =
        by_txn.iter().map(|&part| (parts[part].clone(), rooms[part], mem::take(&mut found[part])));
    all.put_together(found);
    all
}

/// Ranges of transactions that are joined together, in the order in which this is done.
///
/// Where a table tells who wrote a value, those at the same place of their sessions are
/// neighbours: their values lie together in it. Else large parts look up many reads of each
/// key together, while small ones share better.
fn parts(history: &History, writes: &Writes) -> Vec<Range<u32>> {
    const PART_MIN: usize = 1 << 6;
    let txns = history.txn_count();
    if writes.unique().is_some() && history.session_count() * PART_MIN <= txns {
        return history.parts_interleaved().collect();
    }
    let share = (txns / (2 * rayon::current_num_threads())).clamp(1 << 12, 1 << 16);
    let part = |start: usize| start as u32..(start + share).min(txns) as u32;
    (0..txns).step_by(share).map(part).collect()
}

/// How many reads these transactions have, own ones included.
fn reads_max(history: &History, txns: &Range<u32>) -> usize {
    if txns.is_empty() {
        return 0;
    }
    let ops = history.op_range(TxnId(txns.start)).start as usize
        ..history.op_range(TxnId(txns.end - 1)).end as usize;
    let reads_item =
        |kind: &&OpKind| matches!(kind, OpKind::Read | OpKind::ReadList | OpKind::ReadOther);
    let items = history.op_kinds()[ops.clone()].iter().filter(reads_item).count();
    if !history.has_predicates() {
        return items;
    }
    let rows = |op: usize| match history.op_kinds()[op] {
        OpKind::PredicateRead | OpKind::PredicateUpdate => {
            history.predicate(OpId(op as u32)).rows.len()
        }
        _ => 0,
    };
    items + ops.map(rows).sum::<usize>()
}

/// A task's part of the columns, of which the first `count` places are filled.
struct Reads<'a> {
    first: TxnId,
    starts: &'a mut [u32],
    keys: &'a mut [KeyId],
    origins: &'a mut [PackedOrigin],
    ops: &'a mut [OpId],
    count: usize,
}

/// Of a value that repeats more often, only so many writers are candidates, and no
/// choice among them refutes a level.
const CANDIDATES_MAX: usize = 32;

/// Reads that are looked up together.
const READS_TOGETHER: usize = 256;

struct Joiner<'a> {
    history: &'a History,
    writes: &'a Writes,
    own_lists: &'a OwnWrites<'a>,
    allowed: Candidates,
    /// Whether no transaction aborted.
    all_may_count: bool,
    /// The writes of a long transaction by key and operation; empty for a short one.
    own: Vec<(KeyId, OpId)>,
    is_long: bool,
    /// What the transaction has written so far.
    own_marks: KeyMarks,
    /// Register reads whose writers are looked up together at the end.
    open: Vec<OpenRead>,
    /// Writes of a key that nobody reads as they should, found for its first refused
    /// compare-and-set: to look for them at each would cost the square of the history.
    lesser: HashMap<KeyId, Vec<Version>>,
    reads: Reads<'a>,
    found: Found,
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

impl<'a> Joiner<'a> {
    fn new(
        history: &'a History,
        (writes, own_lists): (&'a Writes, &'a OwnWrites<'a>),
        (allowed, all_may_count): (Candidates, bool),
        reads: Reads<'a>,
    ) -> Self {
        Joiner {
            history,
            writes,
            own_lists,
            allowed,
            all_may_count,
            own: Vec::new(),
            is_long: false,
            own_marks: KeyMarks::default(),
            open: Vec::new(),
            lesser: HashMap::new(),
            reads,
            found: Found::default(),
        }
    }

    /// Joins as many transactions as there is room for.
    fn join(mut self) -> Found {
        let first = self.reads.first.index();
        for place in 0..self.reads.starts.len() {
            self.reads.starts[place] = self.reads.count as u32;
            self.txn(TxnId((first + place) as u32));
            if let Some(unique) = self.writes.unique()
                && self.open.len() >= READS_TOGETHER
            {
                self.look_up(unique);
            }
        }
        match self.writes.unique() {
            Some(unique) => self.look_up(unique),
            None => self.search(),
        }
        self.found.reads = self.reads.count;
        self.found
    }

    fn txn(&mut self, txn: TxnId) {
        let history = self.history;
        self.own.clear();
        self.own_marks = KeyMarks::default();
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
                    for row in history.predicate(op).item_rows() {
                        self.read(txn, op, row.key, row.value);
                    }
                }
                OpKind::Write | OpKind::Append | OpKind::Insert | OpKind::Delete => {
                    self.own_marks.add(KeyMarks::of(key));
                }
                OpKind::Call => {}
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
        if self.own_marks.may_contain(KeyMarks::of(key)) && self.read_own(txn, op, key, value) {
            return;
        }
        let read = self.push(op, key, PackedOrigin::NOBODY);
        if let Some(unique) = self.writes.unique() {
            unique.expect(value);
        }
        self.open.push(OpenRead { txn, read, key, value });
    }

    /// Whether the transaction had written the key itself.
    fn read_own(&mut self, txn: TxnId, op: OpId, key: KeyId, value: Value) -> bool {
        let values = self.history.op_values();
        let mut own = self.own_writes(txn, op, key);
        let Some(write) = own.next() else { return false };
        if values[write.index()] == value {
            return true;
        }
        let kind = if own.any(|write| values[write.index()] == value) {
            MisreadKind::NotMyLastWrite { write }
        } else {
            MisreadKind::NotMyOwnWrite { write }
        };
        drop(own);
        self.found.misreads.push(Misread { read: op, key, kind });
        true
    }

    /// Looks up the writers of all open reads by their values, which memory was asked for
    /// when the reads were met.
    fn look_up(&mut self, unique: &UniqueWrites) {
        let open = mem::take(&mut self.open);
        for read in &open {
            self.settle(*read, unique.find(read.key, read.value).as_slice());
        }
        self.open = open;
        self.open.clear();
    }

    /// Searches the writers of all open reads, those of neighbouring keys together.
    fn search(&mut self) {
        let versions = self.writes.by_key(self.history);
        let open = grouped_by_key(mem::take(&mut self.open), self.history.key_count());
        let mut wanted: Vec<(KeyId, Value)> = Vec::with_capacity(READS_TOGETHER);
        let mut places: Vec<u32> = Vec::with_capacity(READS_TOGETHER);
        for reads in open.chunks(READS_TOGETHER) {
            wanted.clear();
            wanted.extend(reads.iter().map(|it| (it.key, it.value)));
            versions.search(&wanted, &mut places);
            for (open, &place) in reads.iter().zip(&places) {
                self.settle(*open, versions.at(place, open.key, open.value));
            }
        }
        self.found.several.sort_unstable_by_key(|several| several.read);
    }

    /// Finds the origin of a read among the writes of its value.
    #[inline]
    fn settle(&mut self, open: OpenRead, candidates: &[Version]) {
        let initial = self.history.initial(open.key) == open.value;
        let origin = match candidates {
            [] if initial => PackedOrigin::INITIAL,
            [only] if !initial && self.is_good(open.txn, only) => PackedOrigin(only.txn.0),
            _ => self.choose(open.txn, open.read, initial, candidates),
        };
        self.reads.origins[open.read.0 as usize] = origin;
    }

    fn is_good(&self, reader: TxnId, version: &Version) -> bool {
        version.is_final()
            && version.txn != reader
            && (self.all_may_count || may_count(self.history, version.txn))
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
                self.found.has_lesser = true;
            } else if may_count(self.history, version.txn) {
                lesser.push(Origin::Txn(version.txn));
            } else {
                lesser.push(Origin::Nobody);
            }
        }
        let lesser_count = lesser.len();
        if candidates.len() + lesser.len() > 1 && !lesser.is_empty() {
            self.found.has_lesser = true;
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
                self.found.several.push(SeveralOrigins { read, candidates, complete });
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
        let (op, key) = (self.reads.ops[read.0 as usize], self.reads.keys[read.0 as usize]);
        self.found.misreads.push(Misread { read: op, key, kind });
        origin
    }

    /// A read of any value but one: a choice unless only one other exists.
    fn read_other(&mut self, txn: TxnId, op: OpId, key: KeyId, value: Value) {
        let own = self.own_writes(txn, op, key).next();
        if let Some(write) = own {
            if self.history.op_values()[write.index()] == value {
                let kind = MisreadKind::NotMyOwnWrite { write };
                self.found.misreads.push(Misread { read: op, key, kind });
            }
            return;
        }
        let initial = self.history.initial(key) != value;
        let (history, all_may_count) = (self.history, self.all_may_count);
        let all = self.writes.by_key(history).of(key);
        let is_lesser = |version: &&Version| {
            !version.is_final() || !(all_may_count || may_count(history, version.txn))
        };
        let lesser = self
            .lesser
            .entry(key)
            .or_insert_with(|| all.iter().filter(is_lesser).copied().collect());
        let lesser = lesser.iter().filter(|version| version.txn != txn && version.value != value);
        let lesser: Vec<Version> = lesser.take(CANDIDATES_MAX).copied().collect();
        let differs = |version: &&Version| version.value != value;
        let good = all.iter().filter(differs).filter(|version| self.is_good(txn, version));
        let mut others: Vec<Version> = good.take(CANDIDATES_MAX).copied().collect();
        others.extend(lesser);
        if others.is_empty() {
            // Only to tell why no other write explains the read.
            others.extend(all.iter().filter(differs).take(1));
        }
        let read = self.push(op, key, PackedOrigin::NOBODY);
        self.reads.origins[read.0 as usize] = self.choose(txn, read, initial, &others);
    }

    /// A list read's external part comes from the writer of its last element. What
    /// the elements before it say is for [`super::lists`].
    fn read_list(&mut self, txn: TxnId, op: OpId, key: KeyId) {
        let Some(external) = external_part(self.history, self.own_lists, txn, op) else {
            let kind = self.missing_own(txn, op, key);
            return self.found.misreads.push(Misread { read: op, key, kind });
        };
        let read = self.push(op, key, PackedOrigin::INITIAL);
        let Some(&element) = external.last() else { return };
        let found = &*self.writes.with_value(self.history, key, element);
        self.reads.origins[read.0 as usize] = match found {
            [only] if self.is_good(txn, only) => PackedOrigin(only.txn.0),
            [] | [_] => self.choose(txn, read, false, found),
            _ => self.repeated_element(txn, read, found),
        };
    }

    /// An element appended more than once. All lists that show it mean the same
    /// append, so one that this reader cannot have seen still is a candidate.
    fn repeated_element(&mut self, txn: TxnId, read: ReadId, found: &[Version]) -> PackedOrigin {
        self.found.has_lesser = true;
        let seen = found.iter().any(|version| self.is_good(txn, version));
        if self.allowed == Candidates::Final && !seen {
            return self.misread(txn, read, found);
        }
        let shown = found.iter().take(CANDIDATES_MAX);
        let candidates = shown.map(|version| Origin::Txn(version.txn)).collect();
        let complete = found.len() < CANDIDATES_MAX;
        self.found.several.push(SeveralOrigins { read, candidates, complete });
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
        let place = self.reads.count;
        self.reads.ops[place] = op;
        self.reads.keys[place] = key;
        self.reads.origins[place] = origin;
        self.reads.count += 1;
        ReadId(place as u32)
    }
}

#[cfg(test)]
mod tests {
    use crate::format::parse_text;
    use crate::index::Index;
    use std::fmt::Write;

    /// Transactions of three sessions in several rounds: of others' writes and own ones, of
    /// initial values and of some that nobody wrote.
    fn long_history() -> String {
        let mut text = String::from("init *=0\n");
        let mut last = [0; 50];
        for txn in 1..40_000_usize {
            let (key, session) = (txn * 7 % 50, ["A", "B", "C"][txn * 5 % 11 % 3]);
            let read = if txn % 9_000 == 0 { 70_000 } else { last[key] };
            write!(text, "{session}: r({key},{read})").expect("memory takes all");
            if txn % 3 > 0 {
                write!(text, " w({key},{txn})").expect("memory takes all");
                last[key] = txn;
            }
            let own = if txn % 3 == 1 { format!(" r({key},{txn})") } else { String::new() };
            writeln!(text, "{own}").expect("memory takes all");
        }
        text
    }

    #[test]
    fn the_order_in_which_parts_are_joined_does_not_matter() {
        let text = long_history();
        let one = parse_text(&text).expect("a history");
        // A value that is written twice, by a last session: there is no table by value.
        let other = parse_text(&(text + "D: w(y,1)\n")).expect("a history");
        let (index, expected) = (Index::new(&one), Index::new(&other));
        assert!(index.values_are_unique() && !expected.values_are_unique());
        assert!(one.parts_interleaved().count() > one.session_count());
        for txn in one.txns() {
            assert_eq!(index.read_range(txn), expected.read_range(txn));
            assert!(index.reads_of(txn).eq(expected.reads_of(txn)), "{txn:?}");
        }
        assert_eq!((index.misreads(), index.misreads().len()), (expected.misreads(), 4));
    }
}

//! The index: which transaction each read read from, and who writes each key.
//!
//! Built once, in time linear in the history but for sorting the versions of each
//! key, and shared by every level. A transaction is *counted* if it committed, or
//! if its outcome is unknown and a counted transaction observed one of its writes;
//! leaving out the others never makes a valid history invalid.
//!
//! Reads that no single counted write explains are set apart: [`Misread`]s, which
//! are anomalies by themselves, and [`Index::several`], where repeated values leave
//! more than one candidate.

mod database_order;
mod join;
mod join_result;
mod lists;
mod marks;
mod own;
mod unique;
mod versions;
mod writes;

pub use marks::KeyMarks;
pub use versions::Version;

use crate::history::{History, KeyId, OpId, OpKind, Outcome, TxnId};
use crate::prefetch::prefetch;
use own::OwnWrites;
use std::ops::Range;
use std::sync::OnceLock;
use versions::group_starts;
use writes::Writes;

/// Where a read's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The state before every transaction.
    Initial,
    /// A counted transaction's write.
    Txn(TxnId),
    /// One of several writes of a repeated value; see [`Index::several`].
    Several,
    /// No counted transaction: a [`Misread`].
    Nobody,
}

/// An [`Origin`] in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PackedOrigin(u32);

impl PackedOrigin {
    const INITIAL: PackedOrigin = PackedOrigin(u32::MAX);
    const SEVERAL: PackedOrigin = PackedOrigin(u32::MAX - 1);
    const NOBODY: PackedOrigin = PackedOrigin(u32::MAX - 2);

    #[inline]
    fn unpack(self) -> Origin {
        match self {
            PackedOrigin::INITIAL => Origin::Initial,
            PackedOrigin::SEVERAL => Origin::Several,
            PackedOrigin::NOBODY => Origin::Nobody,
            PackedOrigin(txn) => Origin::Txn(TxnId(txn)),
        }
    }
}

/// A read not preceded by its transaction's own write of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalRead {
    /// The operation; several reads share one if it is a predicate.
    pub op: OpId,
    /// The key.
    pub key: KeyId,
    /// Where the value came from.
    pub origin: Origin,
}

/// A read that is wrong by itself, whatever else happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Misread {
    /// The reading operation.
    pub read: OpId,
    /// Its key.
    pub key: KeyId,
    /// What is wrong.
    pub kind: MisreadKind,
}

/// What is wrong with a [`Misread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MisreadKind {
    /// Nobody wrote the value.
    ThinAir,
    /// Only an aborted transaction wrote it.
    Aborted {
        /// Its write.
        write: OpId,
    },
    /// Its writer overwrote it later in the same transaction.
    Intermediate {
        /// The write that was read.
        write: OpId,
    },
    /// The reading transaction itself writes it, but later.
    Future {
        /// The later write.
        write: OpId,
    },
    /// The transaction had written the key and did not see its own value.
    NotMyOwnWrite {
        /// Its last write of the key before the read.
        write: OpId,
    },
    /// The transaction saw an earlier one of its own writes, not its last.
    NotMyLastWrite {
        /// Its last write of the key before the read.
        write: OpId,
    },
}

/// A read of a repeated value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeveralOrigins {
    /// The position of the read among [`Index::reads_of`] its transaction.
    pub read: ReadId,
    /// Transactions that may have written it, each not aborted and with this as
    /// its final write of the key; [`Origin::Initial`] first, if possible.
    pub candidates: Vec<Origin>,
    /// Whether these are all: of values that repeat very often only some are kept.
    pub complete: bool,
}

/// A decision for a read with several origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The reading operation.
    pub op: OpId,
    /// The key, of which a predicate has several.
    pub key: KeyId,
    /// One of the candidates.
    pub origin: Origin,
}

/// The place of an external read in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReadId(pub u32);

/// A known step of a key's version order: `before` was installed before `after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionStep {
    /// The earlier writer.
    pub before: TxnId,
    /// The later writer.
    pub after: TxnId,
    /// The key.
    pub key: KeyId,
    /// What shows it.
    pub evidence: VersionEvidence,
}

/// What shows a [`VersionStep`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VersionEvidence {
    /// This list read shows both elements in this order.
    ListRead(OpId),
    /// This list read, the longest of its key, does not show the later element.
    NotInList(OpId),
    /// The database said so.
    Given,
}

/// List reads or given orders of a key that no version order fits. No
/// [`VersionStep`] is taken from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VersionConflict {
    /// Two list reads, neither of which is a prefix of the other.
    Incompatible {
        /// The longer one.
        first: OpId,
        /// The other.
        second: OpId,
    },
    /// A list read with an element twice.
    Duplicate {
        /// The read.
        read: OpId,
        /// The place of the second occurrence.
        place: u32,
    },
    /// Two writes of one transaction were installed against its program.
    Program {
        /// The read that shows it; `None` if the database said so.
        read: Option<OpId>,
        /// The write that comes first in the program.
        earlier: OpId,
        /// The write that was installed first.
        later: OpId,
    },
    /// The database said that the initial version came after this write.
    LateInitial {
        /// The write.
        write: OpId,
    },
}

/// Which writes may explain a read of a repeated value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Candidates {
    /// Final writes of transactions that did not abort; others only if there is
    /// none of these.
    Final,
    /// Every write, for levels that allow intermediate and aborted reads.
    Any,
}

/// See the module's documentation.
pub struct Index {
    counted: Vec<bool>,
    all_counted: bool,
    writes: Writes,
    /// Per transaction, where its external reads start.
    read_starts: Vec<u32>,
    read_keys: Vec<KeyId>,
    read_origins: Vec<PackedOrigin>,
    read_ops: Vec<OpId>,
    /// Per transaction, where the keys it writes start; ascending, each once.
    write_starts: Vec<u32>,
    write_keys: Vec<KeyId>,
    /// Per transaction, the keys it writes.
    write_marks: Vec<KeyMarks>,
    key_count: usize,
    /// Not every level needs it, so it is made when first asked for.
    writers: OnceLock<Writers>,
    misreads: Vec<Misread>,
    several: Vec<SeveralOrigins>,
    has_lesser: bool,
    has_repeated_elements: bool,
    steps: Vec<VersionStep>,
    conflicts: Vec<VersionConflict>,
}

/// The counted writers of every key.
struct Writers {
    /// Per key, where its writers start; ascending, each once.
    starts: Vec<u32>,
    txns: Vec<TxnId>,
}

impl Index {
    /// Indexes a history.
    pub fn new(history: &History) -> Index {
        Index::choosing(history, Candidates::Final, &[])
    }

    /// Indexes a history in which these reads of repeated values are taken to have
    /// come from these origins.
    pub fn choosing(history: &History, candidates: Candidates, choices: &[Choice]) -> Index {
        let (mut writes, own) = (Writes::new(history), OwnWrites::new(history));
        let mut joined = join::join(history, &writes, &own, candidates);
        joined.choose(choices);
        let counted = joined.counted(history, &writes, &own);
        let all_counted = counted.iter().all(|&counted| counted);
        if !all_counted {
            joined.forget_uncounted(history, &counted);
        }
        let written = written_keys(history, &counted);
        let lists = lists::orders(history, &writes, &own, &counted);
        // Where lists contradict each other, the longest may not show what others do.
        let is_list = |several: &SeveralOrigins| {
            let op = joined.ops[several.read.0 as usize];
            history.op_kinds()[op.index()] == OpKind::ReadList
        };
        let has_repeated_elements = lists.has_repeated || joined.several.iter().any(is_list);
        let (mut steps, mut conflicts) = (lists.steps, lists.conflicts);
        database_order::orders(history, &writes, &counted, &mut steps, &mut conflicts);
        conflicts.sort_unstable();
        conflicts.dedup();
        joined.misreads.extend(lists.misreads);
        joined.misreads.sort_unstable();
        joined.misreads.dedup();
        writes.forget_unique();
        Index {
            counted,
            all_counted,
            writes,
            read_starts: joined.starts,
            read_keys: joined.keys,
            read_origins: joined.origins,
            read_ops: joined.ops,
            write_starts: written.starts,
            write_keys: written.keys,
            write_marks: written.marks,
            writers: OnceLock::new(),
            key_count: history.key_count(),
            misreads: joined.misreads,
            several: joined.several,
            has_lesser: joined.has_lesser,
            has_repeated_elements,
            steps,
            conflicts,
        }
    }

    /// Whether a transaction takes part in the history.
    #[inline]
    pub fn is_counted(&self, txn: TxnId) -> bool {
        self.counted[txn.index()]
    }

    /// Whether every transaction takes part.
    pub fn all_counted(&self) -> bool {
        self.all_counted
    }

    /// How many transactions take part.
    pub fn counted_txns(&self) -> usize {
        self.counted.iter().filter(|&&counted| counted).count()
    }

    /// How many external reads there are.
    pub fn read_count(&self) -> usize {
        self.read_ops.len()
    }

    /// The external reads of a transaction as a range of [`ReadId`]s. Empty for a
    /// transaction that is not counted.
    #[inline]
    pub fn read_range(&self, txn: TxnId) -> Range<u32> {
        self.read_starts[txn.index()]..self.read_starts[txn.index() + 1]
    }

    /// One external read.
    #[inline]
    pub fn read(&self, read: ReadId) -> ExternalRead {
        let index = read.0 as usize;
        ExternalRead {
            op: self.read_ops[index],
            key: self.read_keys[index],
            origin: self.read_origins[index].unpack(),
        }
    }

    /// The external reads of a transaction in program order.
    #[inline]
    pub fn reads_of(&self, txn: TxnId) -> impl ExactSizeIterator<Item = ExternalRead> + Clone {
        self.read_range(txn).map(|read| self.read(ReadId(read)))
    }

    /// The keys a counted transaction writes, ascending, each once.
    #[inline]
    pub fn written_by(&self, txn: TxnId) -> &[KeyId] {
        &self.write_keys[self.written_range(txn)]
    }

    /// Where [`Index::written_by`] a transaction lies among the written keys of all
    /// transactions, for columns beside them.
    #[inline]
    pub fn written_range(&self, txn: TxnId) -> Range<usize> {
        self.write_starts[txn.index()] as usize..self.write_starts[txn.index() + 1] as usize
    }

    /// Whether a counted transaction writes a key.
    #[inline]
    pub fn writes(&self, txn: TxnId, key: KeyId) -> bool {
        self.write_marks[txn.index()].may_contain(KeyMarks::of(key))
            && self.written_by(txn).binary_search(&key).is_ok()
    }

    /// For each of these reads, what the transaction it read from writes; nothing
    /// where that is not one transaction. Looked up for many reads at once, because
    /// memory then answers all of them together.
    pub fn written_by_origins(&self, reads: Range<u32>, marks: &mut Vec<KeyMarks>) {
        let origins = &self.read_origins[reads.start as usize..reads.end as usize];
        let written = |origin: &PackedOrigin| self.write_marks.get(origin.0 as usize).copied();
        marks.clear();
        marks.extend(origins.iter().map(|origin| written(origin).unwrap_or_default()));
    }

    /// The keys of these reads.
    #[inline]
    pub fn read_keys(&self, reads: Range<u32>) -> &[KeyId] {
        &self.read_keys[reads.start as usize..reads.end as usize]
    }

    /// The counted transactions that write a key, ascending: by session, and within
    /// a session in session order.
    #[inline]
    pub fn writers_of(&self, key: KeyId) -> &[TxnId] {
        let Writers { starts, txns } = self.writers_by_key();
        &txns[starts[key.index()] as usize..starts[key.index() + 1] as usize]
    }

    /// Where [`Index::writers_of`] a key lie among the writers of all keys, for
    /// columns beside them.
    #[inline]
    pub fn writer_range(&self, key: KeyId) -> Range<usize> {
        let starts = &self.writers_by_key().starts;
        starts[key.index()] as usize..starts[key.index() + 1] as usize
    }

    /// The writers of all keys, key by key.
    pub fn writers(&self) -> &[TxnId] {
        &self.writers_by_key().txns
    }

    #[inline]
    fn writers_by_key(&self) -> &Writers {
        self.writers.get_or_init(|| {
            let starts = group_starts(self.key_count, self.write_keys.iter().copied());
            let mut next = starts.clone();
            let mut txns = vec![TxnId(0); self.write_keys.len()];
            for (txn, pair) in (0..).zip(self.write_starts.windows(2)) {
                for place in pair[0] as usize..pair[1] as usize {
                    if let Some(later) = self.write_keys.get(place + 16) {
                        prefetch(&txns, next[later.index()] as usize);
                    }
                    let slot = &mut next[self.write_keys[place].index()];
                    txns[*slot as usize] = TxnId(txn);
                    *slot += 1;
                }
            }
            Writers { starts, txns }
        })
    }

    /// All writes of a key, sorted by value; also of transactions that do not count.
    pub fn versions_of(&self, history: &History, key: KeyId) -> &[Version] {
        self.writes.by_key(history).of(key)
    }

    /// Whether it is plain that no value is written twice, to whatever key.
    pub fn values_are_unique(&self) -> bool {
        self.writes.are_unique()
    }

    /// Reads that are wrong by themselves, in order of their operations.
    pub fn misreads(&self) -> &[Misread] {
        &self.misreads
    }

    /// Reads whose value several transactions wrote.
    pub fn several(&self) -> &[SeveralOrigins] {
        &self.several
    }

    /// Known steps of version orders.
    pub fn steps(&self) -> &[VersionStep] {
        &self.steps
    }

    /// List reads and given orders that contradict each other or themselves.
    pub fn conflicts(&self) -> &[VersionConflict] {
        &self.conflicts
    }

    /// Whether [`Candidates::Any`] would give some read more candidates.
    pub fn has_lesser_candidates(&self) -> bool {
        self.has_lesser
    }

    /// Whether an element of a list was appended more than once and read: the version
    /// steps then leave out what depends on which append it was.
    pub fn has_repeated_elements(&self) -> bool {
        self.has_repeated_elements
    }

    /// A transaction's final write of a key.
    pub fn final_write(&self, history: &History, txn: TxnId, key: KeyId) -> Option<OpId> {
        history.ops_of(txn).rev().find(|&op| {
            let op = history.op(op);
            op.kind.is_write() && op.key == key
        })
    }

    /// Bytes of memory that the index holds, or will once all of it was asked for.
    pub fn memory(&self) -> usize {
        self.counted.capacity()
            + self.writes.memory()
            + 4 * (self.read_starts.capacity()
                + self.read_keys.capacity()
                + self.read_origins.capacity()
                + self.read_ops.capacity()
                + self.write_starts.capacity()
                + 2 * self.write_keys.capacity()
                + self.key_count)
            + 8 * self.write_marks.capacity()
            + self.steps.capacity() * size_of::<VersionStep>()
            + self.misreads.capacity() * size_of::<Misread>()
    }
}

/// What each transaction writes.
struct WrittenKeys {
    starts: Vec<u32>,
    keys: Vec<KeyId>,
    marks: Vec<KeyMarks>,
}

/// Per counted transaction the keys it writes, ascending and each once.
fn written_keys(history: &History, counted: &[bool]) -> WrittenKeys {
    let (kinds, op_keys) = (history.op_kinds(), history.op_keys());
    let mut starts = Vec::with_capacity(history.txn_count() + 1);
    starts.push(0);
    let mut marks: Vec<KeyMarks> = Vec::with_capacity(history.txn_count());
    let writes = kinds.iter().filter(|kind| kind.is_write()).count();
    let mut keys: Vec<KeyId> = Vec::with_capacity(writes);
    let mut found: Vec<KeyId> = Vec::new();
    for txn in history.txns() {
        found.clear();
        if counted[txn.index()] {
            let range = history.op_range(txn).start as usize..history.op_range(txn).end as usize;
            found.resize(range.len(), KeyId(0));
            // Which operations write is a coin's toss that no branch predicts.
            let mut count = 0;
            for (kind, &key) in kinds[range.clone()].iter().zip(&op_keys[range]) {
                found[count] = key;
                count += usize::from(kind.is_write());
            }
            found.truncate(count);
            found.sort_unstable();
            found.dedup();
        }
        let mut marked = KeyMarks::default();
        for &key in &found {
            marked.add(KeyMarks::of(key));
        }
        keys.extend_from_slice(&found);
        marks.push(marked);
        starts.push(keys.len() as u32);
    }
    WrittenKeys { starts, keys, marks }
}

/// Whether a transaction may count: it did not abort.
fn may_count(history: &History, txn: TxnId) -> bool {
    history.outcome(txn) != Outcome::Aborted
}

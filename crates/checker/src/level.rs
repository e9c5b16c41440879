//! The isolation levels: their names, what they promise, and which implies which.
//!
//! Names follow the literature. Where two authors mean different things by one
//! name, both readings are levels of their own; where several names mean one
//! thing, they are synonyms. A new level is a variant, a row of [`LEVELS`] and its
//! rows of [`IMPLICATIONS`].

use std::collections::BTreeSet;
use std::fmt;

/// An isolation level. The order of the variants is the order of reports, from
/// weak to strong as far as levels can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Versions have an order (Adya's PL-1).
    ReadUncommitted,
    /// Only final committed versions are read (Adya's PL-2, Elle's reading).
    AdyaReadCommitted,
    /// What was seen of a transaction stays seen within one reader.
    MonotonicAtomicView,
    /// Monotonic atomic view with session order (Biswas and Enea's reading).
    ReadCommitted,
    /// Transactions are seen entirely or not at all.
    ReadAtomic,
    /// A session sees what it wrote.
    ReadYourWrites,
    /// A session sees no less than it saw.
    MonotonicReads,
    /// A session's writes are seen in their order.
    MonotonicWrites,
    /// A write is seen only with what its session had read before it.
    WritesFollowReads,
    /// Causes are seen with their effects.
    Causal,
    /// No update of an item is lost.
    CursorStability,
    /// Updates are atomic and none is lost.
    UpdateAtomic,
    /// Reads come from a prefix of one commit order.
    Prefix,
    /// Snapshots without lost updates, and without one order of snapshots.
    ParallelSnapshotIsolation,
    /// Serializable as far as single items go (Adya's PL-2.99).
    RepeatableRead,
    /// Snapshots without lost updates (Adya's PL-SI).
    SnapshotIsolation,
    /// Snapshot isolation whose snapshots are not from the future.
    GeneralizedSnapshotIsolation,
    /// Snapshot isolation whose snapshots contain the session's past.
    SessionSnapshotIsolation,
    /// Session snapshot isolation whose snapshots are not from the future.
    PrefixConsistentSnapshotIsolation,
    /// Snapshot isolation whose snapshots are the latest.
    StrongSnapshotIsolation,
    /// As if one transaction ran after another (Adya's PL-3).
    Serializable,
    /// Serializable in an order that keeps session order.
    SessionSerializable,
    /// Serializable in an order that keeps real time.
    StrictSerializable,
    /// Strict serializability of single operations.
    Linearizable,
}

/// What people call a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelRow {
    /// The level.
    pub level: Level,
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names for the same thing, lower case with hyphens.
    pub synonyms: &'static [&'static str],
    /// Its name in prose.
    pub title: &'static str,
    /// What it promises, one line, no full stop.
    pub summary: &'static str,
}

const fn row(
    level: Level,
    name: &'static str,
    synonyms: &'static [&'static str],
    title: &'static str,
    summary: &'static str,
) -> LevelRow {
    LevelRow { level, name, synonyms, title, summary }
}

/// Every level, in the order of the variants.
#[rustfmt::skip]
pub static LEVELS: &[LevelRow] = &[
    row(Level::ReadUncommitted, "read-uncommitted", &["ru", "pl-1"],
        "read uncommitted",
        "the versions of all keys are installed in one order of transactions"),
    row(Level::AdyaReadCommitted, "adya-read-committed", &["pl-2", "adya-rc"],
        "read committed (Adya)",
        "reads see final versions of committed transactions, and information flows one way"),
    row(Level::MonotonicAtomicView, "monotonic-atomic-view", &["mav", "pl-2l"],
        "monotonic atomic view",
        "after seeing one write of a transaction, a reader misses none of its others"),
    row(Level::ReadCommitted, "read-committed", &["rc"],
        "read committed",
        "monotonic atomic view in a commit order that keeps session order"),
    row(Level::ReadAtomic, "read-atomic", &["ra"],
        "read atomic",
        "a reader sees all or nothing of each transaction, and all of its session's past"),
    row(Level::ReadYourWrites, "read-your-writes", &["ryw"],
        "read your writes",
        "a session sees what it wrote itself"),
    row(Level::MonotonicReads, "monotonic-reads", &["mr"],
        "monotonic reads",
        "a session does not forget what it saw"),
    row(Level::MonotonicWrites, "monotonic-writes", &["mw"],
        "monotonic writes",
        "who sees a write sees its session's earlier writes"),
    row(Level::WritesFollowReads, "writes-follow-reads", &["wfr"],
        "writes follow reads",
        "who sees a write sees what its session had read before"),
    row(Level::Causal, "causal",
        &["cc", "tcc", "causal-consistency", "transactional-causal-consistency"],
        "causal consistency",
        "who sees an effect sees all its causes"),
    row(Level::CursorStability, "cursor-stability", &["cs", "pl-cs"],
        "cursor stability",
        "an item read and then written was not written by others in between"),
    row(Level::UpdateAtomic, "update-atomic", &["ua"],
        "update atomic",
        "transactions are seen entirely, and writers of a common key see each other"),
    row(Level::Prefix, "prefix", &["pc", "prefix-consistency"],
        "prefix consistency",
        "every transaction reads from a prefix of one commit order, its session's past included"),
    row(Level::ParallelSnapshotIsolation, "parallel-snapshot-isolation", &["psi"],
        "parallel snapshot isolation",
        "snapshots without lost updates, which may disagree on the order of unrelated writes"),
    row(Level::RepeatableRead, "repeatable-read", &["rr", "pl-2.99"],
        "repeatable read",
        "serializable if reads by condition are not protected from later writes"),
    row(Level::SnapshotIsolation, "snapshot-isolation", &["si", "pl-si", "adya-si"],
        "snapshot isolation",
        "every transaction reads from a snapshot, and of two concurrent writers of a key one fails"),
    row(Level::GeneralizedSnapshotIsolation, "generalized-snapshot-isolation",
        &["gsi", "ansi-si"],
        "generalized snapshot isolation",
        "snapshot isolation with snapshots of the present or the past in real time"),
    row(Level::SessionSnapshotIsolation, "session-snapshot-isolation",
        &["session-si", "strong-session-si", "strong-session-snapshot-isolation"],
        "session snapshot isolation",
        "snapshot isolation with snapshots that contain the session's past"),
    row(Level::PrefixConsistentSnapshotIsolation, "prefix-consistent-snapshot-isolation",
        &["pcsi"],
        "prefix-consistent snapshot isolation",
        "generalized snapshot isolation with snapshots that contain the session's past"),
    row(Level::StrongSnapshotIsolation, "strong-snapshot-isolation", &["strong-si", "ssi"],
        "strong snapshot isolation",
        "snapshot isolation with snapshots of the latest state in real time"),
    row(Level::Serializable, "serializable", &["ser", "pl-3", "serializability"],
        "serializability",
        "as if the transactions ran one after another"),
    row(Level::SessionSerializable, "session-serializable", &["strong-session-serializable"],
        "session serializability",
        "as if the transactions ran one after another, each session's in its order"),
    row(Level::StrictSerializable, "strict-serializable",
        &["sser", "pl-ss", "strong-serializable", "strict-serializability"],
        "strict serializability",
        "as if the transactions ran one after another, each at some time while it was open"),
    row(Level::Linearizable, "linearizable", &["lin", "linearizability"],
        "linearizability",
        "as if each operation took effect at once at some time while it was open"),
];

impl Level {
    /// Every level, in the order of the variants.
    pub const ALL: [Level; 24] = [
        Level::ReadUncommitted,
        Level::AdyaReadCommitted,
        Level::MonotonicAtomicView,
        Level::ReadCommitted,
        Level::ReadAtomic,
        Level::ReadYourWrites,
        Level::MonotonicReads,
        Level::MonotonicWrites,
        Level::WritesFollowReads,
        Level::Causal,
        Level::CursorStability,
        Level::UpdateAtomic,
        Level::Prefix,
        Level::ParallelSnapshotIsolation,
        Level::RepeatableRead,
        Level::SnapshotIsolation,
        Level::GeneralizedSnapshotIsolation,
        Level::SessionSnapshotIsolation,
        Level::PrefixConsistentSnapshotIsolation,
        Level::StrongSnapshotIsolation,
        Level::Serializable,
        Level::SessionSerializable,
        Level::StrictSerializable,
        Level::Linearizable,
    ];

    /// The level of this name or synonym. Case does not matter, and `_` and space
    /// are as good as `-`.
    pub fn parse(name: &str) -> Option<Level> {
        let wanted = name.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        let named = |row: &&LevelRow| row.name == wanted || row.synonyms.contains(&&*wanted);
        LEVELS.iter().find(named).map(|row| row.level)
    }

    /// What people call it.
    pub fn row(self) -> &'static LevelRow {
        &LEVELS[self as usize]
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Every level that follows from this one, itself left out.
    pub fn weaker_than(self) -> Vec<Level> {
        reachable(self, |row, from| (row.stronger == from).then_some(row.weaker))
    }

    /// Every level that this one follows from, itself left out.
    pub fn stronger_than(self) -> Vec<Level> {
        reachable(self, |row, from| (row.weaker == from).then_some(row.stronger))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

fn reachable(start: Level, step: fn(&Implication, Level) -> Option<Level>) -> Vec<Level> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(from) = open.pop() {
        for to in IMPLICATIONS.iter().filter_map(|row| step(row, from)) {
            if found.insert(to) {
                open.push(to);
            }
        }
    }
    found.into_iter().collect()
}

/// Every history that satisfies `stronger` satisfies `weaker`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implication {
    /// The level that implies.
    pub stronger: Level,
    /// The level that is implied.
    pub weaker: Level,
    /// Why, one line, no full stop.
    pub reason: &'static str,
}

const fn implies(stronger: Level, weaker: Level, reason: &'static str) -> Implication {
    Implication { stronger, weaker, reason }
}

/// The implications that do not follow from others.
///
/// Strict serializability does not imply strong snapshot isolation here: where
/// begin and commit have times of their own, strong snapshot isolation orders
/// events of transactions that overlap, and strict serializability does not.
#[rustfmt::skip]
pub static IMPLICATIONS: &[Implication] = &[
    implies(Level::AdyaReadCommitted, Level::ReadUncommitted,
        "an order that contains reads-from and the version order contains the version order"),
    implies(Level::MonotonicAtomicView, Level::AdyaReadCommitted,
        "the same order without the condition on reads"),
    implies(Level::ReadCommitted, Level::MonotonicAtomicView,
        "the same condition on an order that also contains session order"),
    implies(Level::ReadAtomic, Level::ReadCommitted,
        "what an earlier operation read from is before the reader in reads-from"),
    implies(Level::ReadAtomic, Level::ReadYourWrites,
        "session order is part of what a reader must see"),
    implies(Level::Causal, Level::ReadAtomic,
        "one step of session order or reads-from is a causal path"),
    implies(Level::Causal, Level::ReadYourWrites,
        "session order is a causal path"),
    implies(Level::Causal, Level::MonotonicReads,
        "reads-from followed by session order is a causal path"),
    implies(Level::Causal, Level::MonotonicWrites,
        "session order followed by reads-from is a causal path"),
    implies(Level::Causal, Level::WritesFollowReads,
        "reads-from, session order, reads-from is a causal path"),
    implies(Level::CursorStability, Level::AdyaReadCommitted,
        "the same order without the condition on reads"),
    implies(Level::UpdateAtomic, Level::CursorStability,
        "a reader that writes the key it read has that key in common with its other writers"),
    implies(Level::UpdateAtomic, Level::MonotonicAtomicView,
        "what an earlier operation read from is before the reader in reads-from"),
    implies(Level::ParallelSnapshotIsolation, Level::UpdateAtomic,
        "a reader that missed what it depends on closes a cycle with one anti-dependency"),
    implies(Level::Prefix, Level::Causal,
        "a prefix of an order that contains causality is closed under causes"),
    implies(Level::SnapshotIsolation, Level::ParallelSnapshotIsolation,
        "a cycle with at most one anti-dependency is a cycle of begins and commits"),
    implies(Level::SessionSnapshotIsolation, Level::SnapshotIsolation,
        "the same without session order"),
    implies(Level::SessionSnapshotIsolation, Level::Prefix,
        "writers that commit before another begins commit before it commits"),
    implies(Level::GeneralizedSnapshotIsolation, Level::SnapshotIsolation,
        "the same without real time"),
    implies(Level::PrefixConsistentSnapshotIsolation, Level::SessionSnapshotIsolation,
        "the same without real time"),
    implies(Level::PrefixConsistentSnapshotIsolation, Level::GeneralizedSnapshotIsolation,
        "the same without session order"),
    implies(Level::StrongSnapshotIsolation, Level::PrefixConsistentSnapshotIsolation,
        "the same without real time from commits to begins"),
    implies(Level::RepeatableRead, Level::CursorStability,
        "a lost update of an item is a cycle of a version order and an item anti-dependency"),
    implies(Level::Serializable, Level::SnapshotIsolation,
        "a serial order is an order of events in which each commit follows its begin at once"),
    implies(Level::Serializable, Level::RepeatableRead,
        "the same without anti-dependencies of reads by condition"),
    implies(Level::SessionSerializable, Level::Serializable,
        "the same without session order"),
    implies(Level::SessionSerializable, Level::SessionSnapshotIsolation,
        "a serial order is an order of events in which each commit follows its begin at once"),
    implies(Level::StrictSerializable, Level::SessionSerializable,
        "the same without real time: a client is sequential, so session order is part of both"),
    implies(Level::Linearizable, Level::StrictSerializable,
        "the same, for transactions of one operation"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn rows_stand_in_the_order_of_the_variants() {
        let rows: Vec<Level> = LEVELS.iter().map(|row| row.level).collect();
        assert_eq!(rows, Level::ALL);
        assert!(Level::ALL.is_sorted());
    }

    #[test]
    fn every_name_and_synonym_means_one_level() {
        let mut meanings: HashMap<&str, Level> = HashMap::new();
        for row in LEVELS {
            for &name in std::iter::once(&row.name).chain(row.synonyms) {
                assert_eq!(meanings.insert(name, row.level), None, "{name}");
                assert_eq!(Level::parse(name), Some(row.level), "{name}");
            }
        }
    }

    #[test]
    fn names_are_read_in_any_case_with_any_separator() {
        assert_eq!(Level::parse("PL-2.99"), Some(Level::RepeatableRead));
        assert_eq!(Level::parse("Strong_Session SI"), Some(Level::SessionSnapshotIsolation));
        assert_eq!(Level::parse("snapshot"), None);
        assert_eq!(Level::parse(""), None);
    }

    #[test]
    fn no_level_implies_itself() {
        for level in Level::ALL {
            assert!(!level.weaker_than().contains(&level), "{level}");
        }
    }

    #[test]
    fn weaker_and_stronger_mirror_each_other() {
        for one in Level::ALL {
            for other in Level::ALL {
                assert_eq!(
                    one.weaker_than().contains(&other),
                    other.stronger_than().contains(&one),
                    "{one}, {other}"
                );
            }
        }
    }

    #[test]
    fn closure_follows_several_rows() {
        assert_eq!(
            Level::ReadAtomic.weaker_than(),
            [
                Level::ReadUncommitted,
                Level::AdyaReadCommitted,
                Level::MonotonicAtomicView,
                Level::ReadCommitted,
                Level::ReadYourWrites,
            ]
        );
        assert_eq!(
            Level::SessionSerializable.stronger_than(),
            [Level::StrictSerializable, Level::Linearizable]
        );
    }
}

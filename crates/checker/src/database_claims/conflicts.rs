//! Claims of a database about itself that cannot all be true.
//!
//! A database may tell the order of versions, a serialization order, timestamps and snapshots.
//! Two of them that put the same two transactions in opposite orders are a finding, whatever
//! clients saw: one of the two was recovered wrongly, or the database is wrong about itself. So
//! is a snapshot beside a read of something else.
//!
//! | sources | they part if |
//! |---|---|
//! | timestamps, version order | a version was installed after one with a later commit timestamp |
//! | timestamps, serialization order | a transaction stands behind one that started after it had committed, or behind a writer of the same key with a later commit timestamp |
//! | snapshot, read | what was read is by a transaction that the snapshot does not see, or was replaced by one that it sees |
//!
//! What the serialization order and timestamps say of what was read is looked at beside this
//! (`replay`, `timestamps`).

use hashbrown::{HashMap, HashSet};
use isolde_history::{
    ExternalRead, History, Index, KeyId, OpId, Origin, Snapshot, Timestamp, TxnId, VersionEvidence,
    VersionStep,
};

/// Where two sources of order part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The database installed the first version before the second one, which has the earlier
    /// commit timestamp.
    TimestampsAndVersions(VersionStep),
    /// The serialization order has `first` before `second`, and the timestamps the other way
    /// round.
    TimestampsAndSerialOrder {
        /// The first in the serialization order.
        first: TxnId,
        /// The second there.
        second: TxnId,
        /// What both write; none if the second committed before the first started.
        key: Option<KeyId>,
    },
    /// The snapshot of a read does not see who wrote what it read.
    SnapshotMissesRead {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// Who wrote it.
        writer: TxnId,
    },
    /// The snapshot of a read sees a later version than the one that it read.
    SnapshotSeesMore {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// Who wrote what it read; none for the initial version.
        saw: Option<TxnId>,
        /// Who wrote the later version, by the order of versions.
        later: TxnId,
    },
}

impl Conflict {
    /// The names of the two sources.
    pub const fn sources(&self) -> [&'static str; 2] {
        match self {
            Conflict::TimestampsAndVersions(_) => ["timestamps", "version-order"],
            Conflict::TimestampsAndSerialOrder { .. } => ["timestamps", "serialization-order"],
            Conflict::SnapshotMissesRead { .. } | Conflict::SnapshotSeesMore { .. } => {
                ["snapshot", "read"]
            }
        }
    }
}

/// The first place where each two sources part.
pub fn conflicts(history: &History, index: &Index) -> Vec<Conflict> {
    let found = [
        timestamps_and_versions(history, index),
        timestamps_and_serial_order(history, index),
        snapshots_and_reads(history, index),
    ];
    found.into_iter().flatten().collect()
}

/// Steps of version orders that the database told.
fn told(index: &Index) -> impl Iterator<Item = &VersionStep> {
    index.steps().iter().filter(|step| step.evidence == VersionEvidence::Given)
}

fn timestamps_and_versions(history: &History, index: &Index) -> Option<Conflict> {
    let is_reversed = |step: &&VersionStep| {
        let given = |txn| history.timestamps(txn).map(|given| given.commit);
        given(step.before).zip(given(step.after)).is_some_and(|(before, after)| before > after)
    };
    let step = told(index).find(is_reversed)?;
    Some(Conflict::TimestampsAndVersions(*step))
}

fn timestamps_and_serial_order(history: &History, index: &Index) -> Option<Conflict> {
    let total = history.orders().total.as_deref()?;
    let mut last_started: Option<(Timestamp, TxnId)> = None;
    let mut last_committed: HashMap<KeyId, (Timestamp, TxnId)> = HashMap::new();
    for &second in total.iter().filter(|&&txn| index.is_counted(txn)) {
        let Some(given) = history.timestamps(second) else { continue };
        if let Some((start, first)) = last_started
            && given.commit < start
        {
            return Some(Conflict::TimestampsAndSerialOrder { first, second, key: None });
        }
        for &key in index.written_by(second) {
            let last = last_committed.entry(key).or_insert((given.commit, second));
            if given.commit < last.0 {
                let (first, key) = (last.1, Some(key));
                return Some(Conflict::TimestampsAndSerialOrder { first, second, key });
            }
            *last = (given.commit, second);
        }
        if last_started.is_none_or(|(start, _)| start < given.start) {
            last_started = Some((given.start, second));
        }
    }
    None
}

fn snapshots_and_reads(history: &History, index: &Index) -> Option<Conflict> {
    if !history.has_snapshots() {
        return None;
    }
    let versions = ToldVersions::new(history, index);
    for reader in history.txns().filter(|&txn| index.is_counted(txn)) {
        for ExternalRead { op, key, origin } in index.reads_of(reader) {
            // What was found by condition is judged by its version set.
            if !history.op(op).kind.has_key() {
                continue;
            }
            let Some(snapshot) = history.snapshot(reader, op) else { continue };
            let saw = match origin {
                Origin::Txn(writer) => Some(writer),
                Origin::Initial => None,
                Origin::Several | Origin::Nobody => continue,
            };
            if let Some(writer) = saw
                && history.number(writer).is_some_and(|number| !snapshot.sees(number))
            {
                return Some(Conflict::SnapshotMissesRead { read: op, key, writer });
            }
            if let Some(later) = versions.seen_after(history, key, saw, (reader, snapshot)) {
                return Some(Conflict::SnapshotSeesMore { read: op, key, saw, later });
            }
        }
    }
    None
}

/// The versions of each key in the order that the database told.
struct ToldVersions {
    writers: HashMap<KeyId, Vec<TxnId>>,
    /// By key and place, the least number of a writer from there on.
    least_from: HashMap<KeyId, Vec<u64>>,
    places: HashMap<(KeyId, TxnId), usize>,
    /// By key, all that write it and have a number, by their numbers.
    numbered: HashMap<KeyId, Vec<(u64, TxnId)>>,
}

impl ToldVersions {
    fn new(history: &History, index: &Index) -> ToldVersions {
        let mut writers: HashMap<KeyId, Vec<TxnId>> = HashMap::new();
        let mut broken: HashSet<KeyId> = HashSet::new();
        for step in told(index) {
            let chain = writers.entry(step.key).or_insert_with(|| vec![step.before]);
            if chain.last() == Some(&step.before) {
                chain.push(step.after);
            } else {
                // Told in pieces, which order nothing between them.
                broken.insert(step.key);
            }
        }
        writers.retain(|key, _| !broken.contains(key));
        let numbered = numbered_writers(history, index);
        let (least_from, places) = (HashMap::new(), HashMap::new());
        let mut told = ToldVersions { writers, least_from, places, numbered };
        for (&key, chain) in &told.writers {
            told.places.extend(chain.iter().enumerate().map(|(at, &txn)| ((key, txn), at)));
            let mut least: Vec<u64> =
                chain.iter().map(|&txn| history.number(txn).unwrap_or(u64::MAX)).collect();
            for place in (1..least.len()).rev() {
                least[place - 1] = least[place - 1].min(least[place]);
            }
            told.least_from.insert(key, least);
        }
        told
    }

    /// The first version after what was read that a snapshot sees. After the initial one come
    /// all others, told or not; after another one those that the database told to be later.
    fn seen_after(
        &self,
        history: &History,
        key: KeyId,
        saw: Option<TxnId>,
        (reader, snapshot): (TxnId, &Snapshot),
    ) -> Option<TxnId> {
        let Some(writer) = saw else {
            let below = self.numbered.get(&key)?.iter().take_while(|it| it.0 < snapshot.below);
            let mut seen = below.filter(|it| it.1 != reader && snapshot.sees(it.0));
            return seen.next().map(|it| it.1);
        };
        let chain = self.writers.get(&key)?;
        let after = self.places.get(&(key, writer))? + 1;
        let least = &self.least_from[&key];
        // From where the least number is beyond the bound, nothing is seen.
        let end = after + least[after..].partition_point(|&least| least < snapshot.below);
        let is_seen = |txn: &&TxnId| {
            **txn != reader && history.number(**txn).is_some_and(|number| snapshot.sees(number))
        };
        chain[after..end].iter().find(is_seen).copied()
    }
}

/// By key, the transactions that write it and have a number, by their numbers.
fn numbered_writers(history: &History, index: &Index) -> HashMap<KeyId, Vec<(u64, TxnId)>> {
    let mut numbered: HashMap<KeyId, Vec<(u64, TxnId)>> = HashMap::new();
    for txn in history.txns().filter(|&txn| index.is_counted(txn)) {
        let Some(number) = history.number(txn) else { continue };
        for &key in index.written_by(txn) {
            numbered.entry(key).or_default().push((number, txn));
        }
    }
    for writers in numbered.values_mut() {
        writers.sort_unstable();
    }
    numbered
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    /// The conflicts of a history, by sources and transactions.
    fn check(text: &str, expected: &[&str]) {
        let history = parse_text(text).expect("a well-formed history");
        let name = |txn: TxnId| history.txn_name(txn);
        let found = conflicts(&history, &Index::new(&history)).into_iter().map(|conflict| {
            let what = match conflict {
                Conflict::TimestampsAndVersions(step) => {
                    format!("{} {}", name(step.before), name(step.after))
                }
                Conflict::TimestampsAndSerialOrder { first, second, key } => {
                    let why = if key.is_some() { "one key" } else { "apart" };
                    format!("{} {} {why}", name(first), name(second))
                }
                Conflict::SnapshotMissesRead { read, writer, .. } => {
                    format!("{} misses {}", name(history.txn_of(read)), name(writer))
                }
                Conflict::SnapshotSeesMore { read, saw, later, .. } => {
                    let saw = saw.map_or("initial".to_owned(), name);
                    format!("{} after {saw} sees {}", name(history.txn_of(read)), name(later))
                }
            };
            format!("{}: {what}", conflict.sources().join(" "))
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
    }

    #[test]
    fn timestamps_and_versions_part_where_a_later_version_commits_earlier() {
        let order = "order x: 1 2\n";
        check(&format!("A ts=1..2: w(x,1)\nB ts=3..4: w(x,2)\n{order}"), &[]);
        check(
            &format!("A ts=3..4: w(x,1)\nB ts=1..2: w(x,2)\n{order}"),
            &["timestamps version-order: A B"],
        );
    }

    #[test]
    fn timestamps_and_serial_order_part_where_nothing_overlaps_or_one_key_is_written() {
        let apart = "A ts=3..4: w(x,1)\nB ts=1..2: w(y,2)\n";
        check(&format!("{apart}serial: B A\n"), &[]);
        check(&format!("{apart}serial: A B\n"), &["timestamps serialization-order: A B apart"]);
        let overlapping = "A ts=1..4: w(x,1)\nB ts=2..3: ";
        check(&format!("{overlapping}w(y,2)\nserial: A B\n"), &[]);
        check(
            &format!("{overlapping}w(x,2)\nserial: A B\n"),
            &["timestamps serialization-order: A B one key"],
        );
        check(&format!("{overlapping}w(x,2)\nserial: B A\n"), &[]);
    }

    #[test]
    fn a_snapshot_sees_who_wrote_what_was_read_and_nobody_later() {
        let writes = "A id=1: w(x,1)\nB id=2: w(x,2)\norder x complete: 1 2\n";
        check(&format!("{writes}C sees=2: r(x,1)\n"), &[]);
        check(&format!("{writes}C sees=2: r(x,2)\n"), &["snapshot read: C misses B"]);
        check(&format!("{writes}C sees=3: r(x,1)\n"), &["snapshot read: C after A sees B"]);
        check(&format!("{writes}C sees=3!2: r(x,1)\n"), &[]);
        check(&format!("{writes}C sees=2: r(x,nil)\n"), &["snapshot read: C after initial sees A"]);
        check(&format!("{writes}C sees=1: r(x,nil)\n"), &[]);
        // Without the order of versions nobody knows which one is the later.
        check("A id=1: w(x,1)\nB id=2: w(x,2)\nC sees=3: r(x,1)\n", &[]);
    }

    #[test]
    fn a_snapshot_that_sees_a_writer_does_not_read_the_initial_version() {
        let initial = "A id=1: w(x,1)\nB id=2 sees=2: r(x,nil)\n";
        let expected = ["snapshot read: B after initial sees A"];
        check(initial, &expected);
        check(&format!("{initial}order x complete: 1\n"), &expected);
        check("A id=1: w(x,1)\nB id=2 sees=1: r(x,nil)\n", &[]);
        check("A id=1: w(x,1)\nB id=2 sees=2!1: r(x,nil)\n", &[]);
        check("A id=1: w(x,1) aborted\nB id=2 sees=2: r(x,nil)\n", &[]);
        check("A id=1 sees=2: r(x,nil) w(x,1)\n", &[]);
    }

    #[test]
    fn own_writes_and_rows_of_conditions_are_no_matter_of_it() {
        let writes = "A id=1: w(x,1)\nB id=2: r(x,1) w(x,2)\norder x complete: 1 2\n";
        check(&format!("{writes}C sees=2: p(all; x=2)\n"), &[]);
        check(&format!("{writes}C sees=3: w(x,3) r(x,3)\n"), &[]);
    }
}

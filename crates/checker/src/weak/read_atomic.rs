//! Read atomic: a transaction is seen entirely or not at all.
//!
//! **Definition.** `other` is visible to a reader if it comes earlier in its session
//! or the reader reads from it [Biswas19, Def. 2.4; Bailis14].
//!
//! **Method.** The session's part as in [read your writes](super::read_your_writes).
//! For the rest, per writer that a reader reads from, the keys both touch: the
//! shorter list is walked and looked up in the longer, so that no transaction pays
//! for a large one it merely reads from. [`AWDIT`, §3.2]

use super::session_state::LastWriters;
use super::{Facts, Forced, Halt, Rule, read_your_writes};
use crate::anomaly::AnomalyKind;
use crate::evidence::Edge;
use crate::level::Level;
use isolde_history::{Candidates, KeyId, KeyMarks, Origin, ReadId, TxnId};

pub(super) const RULE: Rule = Rule {
    level: Level::ReadAtomic,
    reads_from: true,
    session_order: true,
    candidates: Candidates::Final,
    broken: AnomalyKind::FracturedRead,
    forced,
    visible,
};

fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let scratch = || (LastWriters::new(facts), Reader::default());
    let walk = |(last, reader): &mut (LastWriters, Reader), session, forced: &mut Vec<Forced>| {
        last.enter(facts, session);
        facts.with_seen(facts.history.session_range(session), |txn, seen| {
            read_your_writes::of_reader(facts, last, txn, forced);
            reader.forced(facts, txn, seen, forced);
            last.wrote(facts, txn);
        });
    };
    facts.by_session(scratch, walk)
}

/// Readers up to this many reads are searched pair by pair.
const READS_SHORT: usize = 24;

/// Few reads: each pair is looked at, which needs no table. Nearly never is a key
/// read that the writer of another read writes too, and marks tell that.
fn of_short_reader(facts: &Facts<'_>, reader: TxnId, seen: &[KeyMarks], forced: &mut Vec<Forced>) {
    let range = facts.index.read_range(reader);
    let mut keys = [KeyMarks::default(); READS_SHORT];
    let keys = super::marks_of_keys(facts, range.clone(), &mut keys);
    for (place, read) in range.enumerate() {
        let (earlier, later) = (&keys[..place], &keys[place + 1..]);
        if earlier.iter().chain(later).any(|&key| seen[place].may_contain(key)) {
            of_read(facts, reader, ReadId(read), forced);
        }
    }
}

/// What the other reads of `reader` force, given what it saw in this one.
fn of_read(facts: &Facts<'_>, reader: TxnId, seen: ReadId, forced: &mut Vec<Forced>) {
    let seen = facts.index.read(seen);
    let Origin::Txn(other) = seen.origin else { return };
    for read in facts.index.read_range(reader).map(ReadId) {
        let external = facts.index.read(read);
        if external.origin != seen.origin
            && facts.index.writes(other, external.key)
            && let Some(after) = Facts::writer(external.origin)
        {
            forced.push(Forced { before: other, after, read });
        }
    }
}

/// The reads of one transaction by key, and the writers it reads from.
#[derive(Default)]
struct Reader {
    by_key: Vec<(KeyId, TxnId, ReadId)>,
    writers: Vec<TxnId>,
}

impl Reader {
    fn forced(
        &mut self,
        facts: &Facts<'_>,
        reader: TxnId,
        seen: &[KeyMarks],
        forced: &mut Vec<Forced>,
    ) {
        if seen.len() <= READS_SHORT {
            return of_short_reader(facts, reader, seen, forced);
        }
        self.by_key.clear();
        self.writers.clear();
        for read in facts.index.read_range(reader).map(ReadId) {
            let external = facts.index.read(read);
            if let Some(writer) = Facts::writer(external.origin) {
                self.by_key.push((external.key, writer, read));
            }
            if let Origin::Txn(writer) = external.origin {
                self.writers.push(writer);
            }
        }
        if self.by_key.len() < 2 {
            return;
        }
        self.by_key.sort_unstable_by_key(|entry| (entry.0, entry.2));
        self.writers.sort_unstable();
        self.writers.dedup();
        for &other in &self.writers {
            let written = facts.index.written_by(other);
            if written.len() < self.by_key.len() {
                for &key in written {
                    let from = self.by_key.partition_point(|entry| entry.0 < key);
                    let same = self.by_key[from..].iter().take_while(|entry| entry.0 == key);
                    same.for_each(|entry| force(other, *entry, forced));
                }
            } else {
                for entry in &self.by_key {
                    if entry.1 != other && written.binary_search(&entry.0).is_ok() {
                        force(other, *entry, forced);
                    }
                }
            }
        }
    }
}

fn force(other: TxnId, (_, after, read): (KeyId, TxnId, ReadId), forced: &mut Vec<Forced>) {
    if other != after {
        forced.push(Forced { before: other, after, read });
    }
}

fn visible(facts: &Facts<'_>, forced: Forced) -> Vec<Edge> {
    let reader = facts.reader(forced);
    let direct = facts.reads_from(reader, forced.before);
    vec![direct.unwrap_or_else(|| Edge::session(forced.before, reader))]
}

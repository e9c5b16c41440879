//! The timestamps that a database gave its transactions, held against the history.
//!
//! **Definition** [Chronos]. A transaction sees what was committed up to its start timestamp,
//! and its writes take effect at its commit timestamp. Four things must hold:
//!
//! - SESSION: a session's transactions do not start before the one before has committed;
//! - INT: within a transaction, reads see its own last write;
//! - EXT: all else that it reads, or finds by condition, is what was committed last up to its
//!   start;
//! - NOCONFLICT: of two transactions that write one key, one starts after the other committed.
//!
//! If all four hold, the timestamps show snapshot isolation in sessions. If not, only the claim
//! is refuted: the verdict on the level tells whether the history is.
//!
//! **Method.** One pass over starts and commits in the order of their timestamps, which keeps the
//! last writer of each key, the rows that exist, and who is writing what.

use super::state::State;
use super::{Contradiction, Found, first_misreads, found_by, misread};
use hashbrown::HashMap;
use isolde_history::{
    History, Index, KeyId, Misread, MisreadKind, OpId, Origin, ReadId, Timestamp, TxnId,
};

/// Which of the four does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axiom {
    /// A session's transactions start after the one before has committed.
    Session,
    /// Reads see their own transaction's last write.
    Int,
    /// Other reads see what was committed last up to their start.
    Ext,
    /// Writers of one key do not overlap.
    NoConflict,
}

impl Axiom {
    /// The name in the literature.
    pub const fn name(self) -> &'static str {
        match self {
            Axiom::Session => "SESSION",
            Axiom::Int => "INT",
            Axiom::Ext => "EXT",
            Axiom::NoConflict => "NOCONFLICT",
        }
    }
}

/// Where timestamps and history part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// This transaction counts and has no timestamps.
    Missing(TxnId),
    /// This transaction commits before it starts.
    Backwards(TxnId),
    /// The second starts before the first of its session commits.
    Session(TxnId, TxnId),
    /// A read that does not see its own transaction's last write.
    Internal {
        /// The read.
        read: OpId,
        /// Its key.
        key: KeyId,
        /// The own last write.
        write: OpId,
    },
    /// A read, or a result by condition, that is not what was committed last.
    External(Contradiction),
    /// Both write the key and overlap.
    Conflict(KeyId, TxnId, TxnId),
}

impl Clash {
    /// Which of the four it is about; none if the timestamps are no evidence at all.
    pub const fn axiom(&self) -> Option<Axiom> {
        match self {
            Clash::Missing(_) | Clash::Backwards(_) => None,
            Clash::Session(..) => Some(Axiom::Session),
            Clash::Internal { .. } => Some(Axiom::Int),
            Clash::External(_) => Some(Axiom::Ext),
            Clash::Conflict(..) => Some(Axiom::NoConflict),
        }
    }
}

/// The first clash with each of the four, if the history has timestamps; none if they explain
/// every read.
pub fn timestamps(history: &History, index: &Index) -> Option<Vec<Clash>> {
    history.txns().find(|&txn| history.timestamps(txn).is_some())?;
    let counted = || history.txns().filter(|&txn| index.is_counted(txn));
    let is_backwards =
        |&txn: &TxnId| history.timestamps(txn).is_some_and(|given| given.start > given.commit);
    if let Some(txn) = counted().find(is_backwards) {
        return Some(vec![Clash::Backwards(txn)]);
    }
    if let Some(txn) = counted().find(|&txn| history.timestamps(txn).is_none()) {
        return Some(vec![Clash::Missing(txn)]);
    }
    let session = in_sessions(history, index);
    let internal = index.misreads().iter().find_map(|misread| match misread.kind {
        MisreadKind::NotMyOwnWrite { write } | MisreadKind::NotMyLastWrite { write } => {
            Some(Clash::Internal { read: misread.read, key: misread.key, write })
        }
        _ => None,
    });
    let (external, conflict) = Sweep::new(history, index).run();
    Some([session, internal, external, conflict].into_iter().flatten().collect())
}

/// Whether a read is wrong beside its own transaction's writes.
const fn is_internal(kind: MisreadKind) -> bool {
    matches!(kind, MisreadKind::NotMyOwnWrite { .. } | MisreadKind::NotMyLastWrite { .. })
}

fn in_sessions(history: &History, index: &Index) -> Option<Clash> {
    for session in history.sessions() {
        let mut last: Option<TxnId> = None;
        for txn in history.txns_of(session).filter(|&txn| index.is_counted(txn)) {
            if let Some(last) = last
                && history.timestamps(last)?.commit > history.timestamps(txn)?.start
            {
                return Some(Clash::Session(last, txn));
            }
            last = Some(txn);
        }
    }
    None
}

/// Starts and commits at one time: who commits when it starts does both at once, and others see
/// what was committed up to their start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    StartAtOnce,
    Commit,
    Start,
}

struct Sweep<'a> {
    history: &'a History,
    index: &'a Index,
    several: HashMap<ReadId, &'a [Origin]>,
    /// Reads of others' writes that nothing committed explains.
    wrong: HashMap<TxnId, Misread>,
    last: Vec<Option<TxnId>>,
    /// By key, who writes it and has not committed yet.
    writing: HashMap<KeyId, TxnId>,
    state: Option<State<'a>>,
}

impl<'a> Sweep<'a> {
    fn new(history: &'a History, index: &'a Index) -> Self {
        Sweep {
            history,
            index,
            several: index.several().iter().map(|it| (it.read, &it.candidates[..])).collect(),
            wrong: first_misreads(history, index, |kind| !is_internal(kind)),
            last: vec![None; history.key_count()],
            writing: HashMap::new(),
            state: history.has_predicates().then(|| State::new(history)),
        }
    }

    /// The first clash with EXT and the first with NOCONFLICT.
    fn run(mut self) -> (Option<Clash>, Option<Clash>) {
        let (mut external, mut conflict) = (None, None);
        let mut events: Vec<(Timestamp, Kind, TxnId)> = Vec::new();
        for txn in self.history.txns().filter(|&txn| self.index.is_counted(txn)) {
            let Some(given) = self.history.timestamps(txn) else { continue };
            let at_once = given.start == given.commit;
            events.push((given.start, if at_once { Kind::StartAtOnce } else { Kind::Start }, txn));
            events.push((given.commit, Kind::Commit, txn));
        }
        events.sort_unstable();
        for (_, kind, txn) in events {
            if kind == Kind::Commit {
                self.commit(txn);
                continue;
            }
            if external.is_none() {
                external = self.reads(txn);
            }
            for &key in self.index.written_by(txn) {
                if let Some(other) = self.writing.insert(key, txn) {
                    conflict.get_or_insert(Clash::Conflict(key, other, txn));
                }
            }
        }
        (external.map(Clash::External), conflict)
    }

    fn reads(&mut self, txn: TxnId) -> Option<Contradiction> {
        let wrong = self.wrong.get(&txn).copied().map(Contradiction::Misread);
        wrong
            .or_else(|| misread(self.index, txn, &self.several, &self.last))
            .or_else(|| self.conditions(txn))
    }

    /// Operations by condition, which see own writes that have not taken effect for others.
    fn conditions(&mut self, txn: TxnId) -> Option<Contradiction> {
        let (history, state) = (self.history, self.state.as_mut()?);
        if history.ops_of(txn).all(|op| history.op(op).kind.has_key()) {
            return None;
        }
        let mut before: Vec<(KeyId, Option<OpId>)> = Vec::new();
        let mut found = None;
        for op in history.ops_of(txn) {
            let it = history.op(op);
            if it.kind.is_write() {
                before.push((it.key, state.version(it.key)));
                state.put(it.key, Some(op));
            } else if !it.kind.has_key()
                && found.is_none()
                && let Found::Otherwise(wrong) = found_by(history, state, op)
            {
                found = Some(wrong);
            }
        }
        for (key, version) in before.into_iter().rev() {
            state.put(key, version);
        }
        found
    }

    fn commit(&mut self, txn: TxnId) {
        for &key in self.index.written_by(txn) {
            self.last[key.index()] = Some(txn);
            if self.writing.get(&key) == Some(&txn) {
                self.writing.remove(&key);
            }
        }
        if let Some(state) = &mut self.state {
            for op in self.history.ops_of(txn) {
                let it = self.history.op(op);
                if it.kind.is_write() {
                    state.put(it.key, Some(op));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde_history::format::parse_text;

    /// The names of what does not hold.
    fn check(text: &str, expected: &str) {
        let history = parse_text(text).expect("a well-formed history");
        let index = Index::new(&history);
        let clashes = timestamps(&history, &index).expect("a history with timestamps");
        let names: Vec<&str> =
            clashes.iter().map(|clash| clash.axiom().map_or("none", Axiom::name)).collect();
        assert_eq!(names.join(" "), expected, "{text}\n{clashes:?}");
    }

    #[test]
    fn what_was_committed_up_to_the_start_is_seen() {
        check("A ts=1..2: w(x,1)\nB ts=2..3: r(x,1)\n", "");
        check("A ts=1..3: w(x,1)\nB ts=2..4: r(x,1)\n", "EXT");
        check("A ts=1..2: w(x,1)\nB ts=2..3: r(x,nil)\n", "EXT");
    }

    #[test]
    fn writers_of_a_key_that_overlap_conflict() {
        check("A ts=1..3: w(x,1)\nB ts=2..4: w(x,2)\n", "NOCONFLICT");
        check("A ts=1..2: w(x,1)\nB ts=2..4: w(x,2)\n", "");
    }

    #[test]
    fn sessions_go_forward() {
        check("A ts=1..5: w(x,1)\nA ts=4..6: w(y,2)\n", "SESSION");
    }

    #[test]
    fn own_writes_are_read() {
        check("A ts=1..2: w(x,1) w(x,2) r(x,1)\n", "INT");
    }

    #[test]
    fn what_nobody_committed_is_not_what_was_committed_last() {
        check("A ts=1..2: w(x,1)\nB ts=30..31: r(x,7)\n", "EXT");
        check("A ts=1..2: w(x,1) aborted\nB ts=30..31: r(x,1)\n", "EXT");
        check("A ts=1..2: w(x,1) w(x,2)\nB ts=30..31: r(x,1)\n", "EXT");
        check("A ts=1..2: r(x,1) w(x,1)\n", "EXT");
        check("A ts=1..2: w(x,1)\nB ts=30..31: p(all; x=7)\n", "EXT");
        check("A ts=1..2: w(x,1)\nB ts=30..31: r(x,?)\n", "");
    }

    #[test]
    fn timestamps_that_are_not_there_or_run_backwards_are_no_evidence() {
        check("A ts=1..2: w(x,1)\nB: r(x,1)\n", "none");
        check("A ts=2..1: w(x,1)\n", "none");
    }

    #[test]
    fn a_result_by_condition_is_that_of_its_start() {
        check("A ts=1..2: w(x,1)\nB ts=3..4: p(value 1..9; x=1)\n", "");
        check("A ts=1..2: w(x,1)\nB ts=3..4: p(value 1..9)\n", "EXT");
        check("A ts=1..2: w(x,1)\nB ts=3..4: w(y,5) p(count all -> 2) w(y,6)\n", "");
        check("A ts=1..1: w(x,1)\nB ts=2..2: p(sum all -> 1)\n", "");
    }
}

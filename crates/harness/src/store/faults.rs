//! The decisions that a store with a bug gets wrong.
//!
//! Only the store of versions has them. It asks here at every decision; what is
//! answered depends on the bug, on what the last commits did, and on a sequence of
//! numbers of its own, so that a store without bugs is not touched.

use super::OpenTxn;
use crate::plan::Action;
use crate::random::Random;
use crate::simulated::Bug;
use std::collections::VecDeque;

/// How often an opportunity is taken.
const CHANCE: f64 = 0.5;
/// How often a transaction's begin comes after a crash.
const CRASH_CHANCE: f64 = 0.02;
/// Commits that are remembered.
const RECENT: usize = 32;
/// A stale snapshot misses so many commits at most.
const STALE_MAX: u32 = 4;
/// Above all values that are written.
const INVENTED: u32 = (1 << 31) - 1;

/// See the module's documentation.
pub(crate) struct Faults {
    pub(crate) bug: Bug,
    random: Random,
    commits: VecDeque<Commit>,
    /// For each session, up to which commit it has seen everything.
    seen: Vec<u32>,
    /// Writes of open transactions: session, key, value.
    pending: Vec<(u32, u32, u32)>,
    /// Crashes so far.
    pub(crate) epoch: u32,
    invented: u32,
}

/// What a transaction did.
pub(crate) struct Commit {
    pub(crate) number: u32,
    session: u32,
    reads: Vec<u32>,
    pub(crate) writes: Vec<u32>,
    /// Keys and values of writes that it replaced itself.
    replaced: Vec<(u32, u32)>,
}

impl Commit {
    /// Whether it replaced a write of `other`.
    fn overwrites(&self, other: &Commit) -> bool {
        other.writes.iter().any(|key| self.writes.contains(key))
    }

    /// Whether it read a key that `other` wrote.
    fn reads_from(&self, other: &Commit) -> bool {
        other.writes.iter().any(|key| self.reads.contains(key))
    }

    /// The value of a key that it replaced itself.
    pub(crate) fn intermediate(&self, key: u32) -> Option<u32> {
        self.replaced.iter().find(|replaced| replaced.0 == key).map(|replaced| replaced.1)
    }
}

impl Faults {
    pub(crate) fn new(bug: Bug, seed: u64) -> Faults {
        Faults {
            bug,
            random: Random::new(seed ^ 0x6275_6773_2061_6e64),
            commits: VecDeque::new(),
            seen: Vec::new(),
            pending: Vec::new(),
            epoch: 0,
            invented: 0,
        }
    }

    /// Whether an opportunity is taken.
    pub(crate) fn strikes(&mut self) -> bool {
        self.random.chance(CHANCE)
    }

    /// The recent commit of this number.
    pub(crate) fn commit(&self, number: u32) -> Option<&Commit> {
        let first = self.commits.front()?.number;
        self.commits.get(number.checked_sub(first)? as usize)
    }

    /// Whether the database crashes before the next begin; if so, the last commit that
    /// survives.
    pub(crate) fn crash(&mut self, now: u32) -> Option<u32> {
        if self.bug != Bug::LostCommit || now < 2 || !self.random.chance(CRASH_CHANCE) {
            return None;
        }
        self.epoch += 1;
        Some(now - 1 - self.random.below(2))
    }

    /// Commits after this one.
    pub(crate) fn commits_after(&self, number: u32) -> impl Iterator<Item = &Commit> {
        self.commits.iter().filter(move |commit| commit.number > number)
    }

    /// Changes the snapshot that a beginning transaction is going to have.
    pub(crate) fn begin(&mut self, txn: &mut OpenTxn) {
        txn.epoch = self.epoch;
        txn.hidden = 0;
        let session = txn.session as usize;
        if self.seen.len() <= session {
            self.seen.resize(session + 1, 0);
        }
        let now = txn.began;
        match self.bug {
            Bug::StaleSnapshot => {
                let behind = if self.strikes() { 1 + self.random.below(STALE_MAX) } else { 0 };
                txn.began = now.saturating_sub(behind).max(self.seen[session]).min(now);
            }
            Bug::SessionGuaranteeViolation => {
                let own = (self.commits.iter().rev())
                    .find(|commit| commit.session == txn.session && !commit.writes.is_empty());
                if let Some(number) = own.map(|commit| commit.number)
                    && self.strikes()
                {
                    txn.began = number - 1;
                }
            }
            Bug::LongFork | Bug::CausalityViolation => {
                let missed = self.missed(self.seen[session]);
                // It takes another transaction that sees the opposite, so each is taken.
                if missed != 0 && (self.bug == Bug::LongFork || self.strikes()) {
                    txn.hidden = missed;
                }
            }
            _ => {}
        }
        let complete = if txn.hidden == 0 { txn.began } else { txn.hidden - 1 };
        self.seen[session] = self.seen[session].max(complete);
    }

    /// The first commit that a snapshot can miss, or 0.
    fn missed(&self, seen: u32) -> u32 {
        let mut possible = (self.commits.iter().enumerate())
            .filter(|(place, commit)| commit.number > seen && self.can_be_missed(*place));
        possible.next().map_or(0, |(_, commit)| commit.number)
    }

    /// Whether a snapshot can miss this commit: nobody has replaced what it wrote, and others
    /// have read from it or not, as the bug wants it.
    fn can_be_missed(&self, place: usize) -> bool {
        let commit = &self.commits[place];
        let later = || self.commits.range(place + 1..);
        if commit.writes.is_empty()
            || later().next().is_none()
            || later().any(|other| other.overwrites(commit))
        {
            return false;
        }
        if self.bug == Bug::LongFork {
            return !later().any(|other| other.reads_from(commit));
        }
        // Who sees later writes of the same session and misses this one sees writes out of
        // order, which has a name of its own.
        later().any(|other| other.reads_from(commit) && !other.writes.is_empty())
            && !later().any(|other| other.session == commit.session && !other.writes.is_empty())
    }

    /// A value that nobody wrote.
    pub(crate) fn invent(&mut self) -> u32 {
        self.invented = (self.invented + 1) % (1 << 19);
        INVENTED - self.invented
    }

    /// What another open transaction wrote to `key`.
    pub(crate) fn uncommitted(&self, txn: &OpenTxn, key: u32) -> Option<u32> {
        let others = self.pending.iter().rev();
        let mut found = others.filter(|write| write.0 != txn.session && write.1 == key);
        found.next().map(|write| write.2)
    }

    /// Takes note of a write.
    pub(crate) fn wrote(&mut self, txn: &OpenTxn, key: u32, value: u32) {
        if self.bug == Bug::DirtyRead {
            self.pending.push((txn.session, key, value));
        }
    }

    /// Whether a transaction commits although these keys have changed; the last commits
    /// that changed them have these numbers.
    pub(crate) fn overlooks(&mut self, txn: &OpenTxn, changed: &[(u32, u32)]) -> bool {
        let writes = |key| txn.writes().any(|write| write.0 == key);
        let reads = |key| {
            let first = txn.done.iter().find(|done| done.key == key);
            first.is_some_and(|done| done.action == Action::Read)
        };
        let possible = match self.bug {
            Bug::LostUpdate => changed.iter().all(|&(key, _)| writes(key) && reads(key)),
            Bug::LostInsert => {
                let is_new = |key| {
                    let first = txn.done.iter().find(|done| done.key == key);
                    first.is_some_and(|done| done.action == Action::Read && done.value == 0)
                };
                changed.iter().all(|&(key, _)| writes(key) && is_new(key))
            }
            Bug::WriteSkew => {
                let skewed = |&(_, number): &(u32, u32)| {
                    let reads = self.commit(number).map_or(&[][..], |commit| &commit.reads);
                    reads.iter().any(|&key| writes(key))
                };
                !changed.iter().any(|&(key, _)| writes(key)) && changed.iter().any(skewed)
            }
            _ => false,
        };
        possible && self.strikes()
    }

    /// Whether the writes of a refused transaction stay.
    pub(crate) fn keeps(&mut self, txn: &OpenTxn) -> bool {
        self.pending.retain(|write| write.0 != txn.session);
        self.bug == Bug::AbortedRead && txn.writes().next().is_some() && self.strikes()
    }

    /// Takes note of a commit.
    pub(crate) fn committed(&mut self, txn: &OpenTxn, number: u32) {
        self.pending.retain(|write| write.0 != txn.session);
        let mut commit = Commit {
            number,
            session: txn.session,
            reads: Vec::new(),
            writes: Vec::new(),
            replaced: Vec::new(),
        };
        for done in &txn.done {
            match done.action {
                Action::Read => commit.reads.push(done.key),
                Action::Write => commit.writes.push(done.key),
            }
        }
        for (place, (key, value)) in txn.writes().enumerate() {
            if txn.writes().skip(place + 1).any(|later| later.0 == key) {
                commit.replaced.push((key, value));
            }
        }
        let seen = &mut self.seen[txn.session as usize];
        *seen = (*seen).max(number);
        self.commits.push_back(commit);
        if self.commits.len() > RECENT {
            self.commits.pop_front();
        }
    }
}

//! Numbers of transactions, and snapshots by them.
//!
//! A transaction gets its number when it begins. A snapshot sees everything that was
//! committed by then: all smaller numbers but for those of transactions that are still open.
//! Bugs make snapshots that lack some of the last commits, and these lack them too: what
//! is told is what the store does.

use isolde_history::Snapshot;
use std::collections::{BTreeSet, VecDeque};

/// Commits that are remembered: more than a bug can hide.
const RECENT: usize = 64;

/// Gives out numbers.
#[derive(Default)]
pub(super) struct Numbers {
    /// The last one that was given out.
    last: u64,
    open: BTreeSet<u64>,
    /// The last commits: the store's number, and the transaction's.
    recent: VecDeque<(u32, u64)>,
}

impl Numbers {
    /// A transaction begins.
    pub(super) fn begin(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last);
        self.last
    }

    /// It is over.
    pub(super) fn ended(&mut self, number: u64) {
        self.open.remove(&number);
    }

    /// It is over, by this commit of the store.
    pub(super) fn committed(&mut self, number: u64, commit: u32) {
        self.ended(number);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((commit, number));
    }

    /// What a transaction sees whose snapshot has all commits up to one, but not the hidden
    /// one.
    pub(super) fn snapshot(&self, last: u32, hidden: u32) -> Snapshot {
        let missed = self.recent.iter().filter(|(commit, _)| *commit > last || *commit == hidden);
        let mut except: Vec<u64> = self.open.iter().copied().collect();
        except.extend(missed.map(|(_, number)| number));
        except.sort_unstable();
        Snapshot { below: self.last + 1, except }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_sees_what_was_committed_before_it() {
        let mut numbers = Numbers::default();
        let [first, second, third] = [(); 3].map(|()| numbers.begin());
        numbers.committed(second, 1);
        assert_eq!(numbers.snapshot(1, 0), Snapshot { below: 4, except: vec![first, third] });
        numbers.ended(first);
        numbers.committed(third, 2);
        assert_eq!(numbers.snapshot(2, 0), Snapshot { below: 4, except: vec![] });
        assert_eq!(numbers.snapshot(2, 1), Snapshot { below: 4, except: vec![second] });
        assert_eq!(numbers.snapshot(1, 0), Snapshot { below: 4, except: vec![third] });
    }
}

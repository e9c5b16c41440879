//! The writers of each open key, chain by chain in the order of the chain.

use super::cover::Cover;
use super::versions::{Slot, Versions};
use isolde_history::KeyId;

/// A key whose order is known.
const SETTLED: u32 = u32::MAX;

/// See the module's documentation.
pub(super) struct Runs {
    /// Per key, its number among the open ones.
    open: Vec<u32>,
    /// Per open key, where its runs start.
    starts: Vec<u32>,
    segments: Vec<Run>,
    writers: Vec<Writer>,
}

/// Writers of one key that lie on one chain.
#[derive(Clone, Copy)]
struct Run {
    chain: u32,
    /// Where its writers start; they end where the next run's start.
    start: u32,
}

/// A writer on its chain.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub(super) rank: u32,
    pub(super) slot: Slot,
}

impl Runs {
    /// The runs of all open keys.
    pub(super) fn new(versions: &Versions<'_>, cover: &Cover) -> Runs {
        let mut runs = Runs {
            open: vec![SETTLED; versions.history.key_count()],
            starts: vec![0],
            segments: Vec::new(),
            writers: Vec::new(),
        };
        let mut of_key: Vec<(u32, Writer)> = Vec::new();
        for key in versions.open_keys() {
            of_key.clear();
            for slot in versions.slots_of(key) {
                let txn = versions.writer(slot);
                if cover.covers(txn) {
                    let rank = cover.rank[txn.index()];
                    of_key.push((cover.chain[txn.index()], Writer { rank, slot }));
                }
            }
            of_key.sort_unstable_by_key(|(_, writer)| writer.rank);
            let mut last = None;
            for &(chain, writer) in &of_key {
                if last != Some(chain) {
                    runs.segments.push(Run { chain, start: runs.writers.len() as u32 });
                    last = Some(chain);
                }
                runs.writers.push(writer);
            }
            runs.open[key.index()] = runs.starts.len() as u32 - 1;
            runs.starts.push(runs.segments.len() as u32);
        }
        runs.segments.push(Run { chain: u32::MAX, start: runs.writers.len() as u32 });
        runs
    }

    /// Whether a key's order is open.
    #[inline]
    pub(super) fn is_open(&self, key: KeyId) -> bool {
        self.open[key.index()] != SETTLED
    }

    /// The writers of a key, chain by chain.
    #[inline]
    pub(super) fn of(&self, key: KeyId) -> impl Iterator<Item = (u32, &[Writer])> {
        let number = self.open[key.index()] as usize;
        let range = match self.open[key.index()] {
            SETTLED => 0..0,
            _ => self.starts[number] as usize..self.starts[number + 1] as usize,
        };
        range.map(|run| {
            let (start, end) = (self.segments[run].start, self.segments[run + 1].start);
            (self.segments[run].chain, &self.writers[start as usize..end as usize])
        })
    }
}

/// The last writer of a run whose rank is below `bound`, and how many are before it.
#[inline]
pub(super) fn last_below(run: &[Writer], bound: u32) -> Option<(usize, Writer)> {
    let below = match run {
        [only] => usize::from(only.rank < bound),
        _ => run.partition_point(|writer| writer.rank < bound),
    };
    let place = below.checked_sub(1)?;
    Some((place, run[place]))
}

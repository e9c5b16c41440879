//! Where workers get transactions from: a history in memory, or a folder of parts of one.

use crate::event::TxnNumber;
use isolde_history::{History, NEVER, Time, TxnId};
use std::sync::Arc;
use timely::worker::Worker;

/// Transactions of one in memory that are handed out together.
const SHARE: usize = 1 << 12;

/// A piece of a history, as far as it is known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When the last of its transactions completed.
    pub completed: Time,
}

/// Reads a part of a history by its number.
pub type Reader = dyn Fn(usize) -> Result<History, String> + Send + Sync;

/// A history in pieces.
#[derive(Clone)]
pub enum Pieces {
    /// In memory.
    Whole {
        /// All of it.
        history: Arc<History>,
        /// Transactions by the time of their completion, the last ones first.
        order: Arc<Vec<TxnId>>,
    },
    /// Parts that are read when they are needed, each in the order of their sessions. All have
    /// the same sessions.
    Parts {
        /// One for each part, in the order of time.
        parts: Vec<Piece>,
        /// Reads one.
        read: Arc<Reader>,
    },
}

/// Transactions of a piece, the last ones first.
pub(crate) struct Loaded {
    pub(crate) history: Arc<History>,
    pub(crate) txns: Vec<TxnId>,
    /// The number of its first transaction.
    first: TxnNumber,
}

impl Loaded {
    /// Transactions of a history that is not in parts.
    pub(crate) fn new(history: Arc<History>, txns: Vec<TxnId>) -> Loaded {
        Loaded { history, txns, first: 0 }
    }

    pub(crate) fn number(&self, txn: TxnId) -> TxnNumber {
        self.first + TxnNumber::from(txn.0)
    }
}

impl Pieces {
    /// A history that is in memory.
    pub fn of(history: History) -> Pieces {
        let order = Arc::new(by_completion(&history));
        Pieces::Whole { history: Arc::new(history), order }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Pieces::Whole { order, .. } => order.len().div_ceil(SHARE),
            Pieces::Parts { parts, .. } => parts.len(),
        }
    }

    /// The piece that comes at this place, the last one in time first.
    pub(crate) fn load(&self, place: usize) -> Result<Loaded, String> {
        match self {
            Pieces::Whole { history, order } => {
                let end = order.len().min((place + 1) * SHARE);
                let txns = order[place * SHARE..end].to_vec();
                Ok(Loaded::new(Arc::clone(history), txns))
            }
            Pieces::Parts { parts, read } => {
                let part = parts.len() - 1 - place;
                let history = read(part)?;
                let txns = by_completion(&history);
                Ok(Loaded { history: Arc::new(history), txns, first: (part as u64) << 32 })
            }
        }
    }

    /// Nothing of the piece at this place, or of a later one, completed after this time.
    pub(crate) fn completed(&self, place: usize) -> Time {
        match self {
            Pieces::Whole { history, order } => {
                order.get(place * SHARE).map_or(Time::MIN, |&txn| completion(history, txn))
            }
            Pieces::Parts { parts, .. } => {
                let left = parts.len().saturating_sub(place);
                parts[..left].iter().map(|it| it.completed).max().unwrap_or(Time::MIN)
            }
        }
    }
}

/// The pieces that a worker hands out.
pub(crate) fn own_places(worker: &Worker, pieces: &Pieces) -> impl Iterator<Item = usize> + use<> {
    (worker.index()..pieces.count()).step_by(worker.peers())
}

/// When a transaction completed, as far as its client knows.
pub(crate) fn completion(history: &History, txn: TxnId) -> Time {
    let times = history.txn_times(txn);
    times.begin.completed.max(times.commit.completed)
}

/// The last ones first; those that never completed are the first of all.
fn by_completion(history: &History) -> Vec<TxnId> {
    let mut keyed: Vec<(Time, TxnId)> = history
        .txns()
        .map(|txn| (completion(history, txn), txn))
        .map(|(time, txn)| (if time == NEVER { Time::MAX } else { time }, txn))
        .collect();
    keyed.sort_unstable_by(|one, other| other.cmp(one));
    keyed.into_iter().map(|it| it.1).collect()
}

//! What causality forces, by windows: for histories of many short sessions.
//!
//! Clocks have an entry for each session, which is hopeless where every transaction
//! has a session of its own. Here the transactions are put in an order that agrees
//! with happens-before, and cut into windows. For one window after the other, a row of
//! bits says of every transaction which of the window happen before it. Few rows are
//! ever stored: what comes before the window has none of it, and most of what comes
//! long after it has all. n²/64 steps at worst, and memory as the limit allows, because
//! a window is as wide as fits. Windows are independent of each other: all cores work.
//!
//! For a read, the writers of its key in the window that are visible to the reader, and
//! do not happen before the writer that was read, are forced before that one, unless
//! they happen before another one that is.

use crate::evidence::INITIAL;
use crate::weak::happens_before::HappensBefore;
use crate::weak::{Facts, Forced, Halt};
use isolde_history::{KeyId, Origin, ReadId, TxnId};
use rayon::prelude::*;

/// Rows of one window in all threads together may take this much.
const ROW_BYTES_MAX: usize = 256 << 20;

/// Wider rows gain nothing: a row should stay in the nearest cache.
const WORDS_MAX: usize = 64;

/// How many transactions are visited before limits are looked at again.
const TXNS_BETWEEN: usize = 1 << 12;

pub(super) fn forced(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    let order = Order::new(facts)?;
    let words = order.window_words()?;
    in_windows(&order, words)
}

/// With windows of exactly one word, for tests: small histories have several then.
#[cfg(test)]
pub(super) fn forced_narrowly(facts: &Facts<'_>) -> Result<Vec<Forced>, Halt> {
    in_windows(&Order::new(facts)?, 1)
}

fn in_windows(order: &Order<'_>, words: usize) -> Result<Vec<Forced>, Halt> {
    let width = 64 * words;
    let windows = order.txns.len().div_ceil(width);
    let parts: Vec<Vec<Forced>> = (0..windows)
        .into_par_iter()
        .map_init(
            || Window::new(order, words),
            |window, number| {
                let end = ((number + 1) * width).min(order.txns.len());
                window.enter(number * width, end);
                window.walk()?;
                order.facts.count(&window.forced)?;
                Ok(std::mem::take(&mut window.forced))
            },
        )
        .collect::<Result<_, Halt>>()?;
    Ok(parts.concat())
}

/// The counted transactions, those that happen before others first. A transaction is
/// called by its place from here on.
struct Order<'a> {
    facts: &'a Facts<'a>,
    txns: Vec<TxnId>,
    /// The place of each transaction.
    places: Vec<u32>,
    /// Per place, where the places that happen directly before it start.
    cause_starts: Vec<u32>,
    causes: Vec<u32>,
}

impl<'a> Order<'a> {
    fn new(facts: &'a Facts<'a>) -> Result<Self, Halt> {
        let mut txns = Vec::with_capacity(facts.index.counted_txns());
        let mut places = vec![u32::MAX; facts.history.txn_count()];
        let (mut causes, mut cause_starts) = (Vec::new(), vec![0]);
        HappensBefore::new(facts).walk(|order, txn| {
            if txns.len() % TXNS_BETWEEN == 0 {
                facts.stop_if_asked(4 * causes.len())?;
            }
            places[txn.index()] = txns.len() as u32;
            txns.push(txn);
            let start = causes.len();
            let previous = order.previous[txn.index()];
            if previous != INITIAL {
                causes.push(places[previous.index()]);
            }
            for read in facts.index.reads_of(txn) {
                if let Origin::Txn(writer) = read.origin {
                    causes.push(places[writer.index()]);
                }
            }
            causes[start..].sort_unstable();
            let mut kept = start;
            for at in start..causes.len() {
                if at == start || causes[at] != causes[at - 1] {
                    causes[kept] = causes[at];
                    kept += 1;
                }
            }
            causes.truncate(kept);
            cause_starts.push(causes.len() as u32);
            Ok(())
        })?;
        Ok(Order { facts, txns, places, cause_starts, causes })
    }

    /// How many words a row has, so that the rows of a window fit.
    fn window_words(&self) -> Result<usize, Halt> {
        let least = self.txns.len() * size_of::<u64>() * rayon::current_num_threads();
        let most = match self.facts.limits.working_bytes_max {
            // The other half is for what is forced.
            Some(most) => ROW_BYTES_MAX.min(most / 2),
            None => ROW_BYTES_MAX,
        };
        if least > most {
            self.facts.stop_if_asked(2 * least)?;
        }
        Ok((most / least.max(1)).clamp(1, WORDS_MAX).min(self.txns.len().div_ceil(64).max(1)))
    }

    fn causes_of(&self, place: usize) -> &[u32] {
        &self.causes[self.cause_starts[place] as usize..self.cause_starts[place + 1] as usize]
    }
}

/// Which row a transaction has: one of these two, or a number from [`STORED`] on.
const EMPTY: u32 = 0;
const FULL: u32 = 1;
const STORED: u32 = 2;

/// A key without writers in the window.
const NOT_WRITTEN: u32 = u32::MAX;

/// A window of the order, and the rows of what comes after its start.
struct Window<'a> {
    order: &'a Order<'a>,
    words: usize,
    start: usize,
    end: usize,
    /// Per place from `start` on, its row: itself, and what of the window happens
    /// before it.
    row_of: Vec<u32>,
    /// The rows, after one with no bit and one with all of the window's.
    rows: Vec<u64>,
    /// Per key, its place in `written`, or [`NOT_WRITTEN`].
    written_of: Vec<u32>,
    written: Vec<Written>,
    /// The writers of the keys, by key, ascending.
    columns: Vec<u32>,
    /// Writers as bits, for keys of which there are many.
    masks: Vec<u64>,
    visible: Vec<u64>,
    covered: Vec<u64>,
    forced: Vec<Forced>,
}

/// The writers of one key in a window.
struct Written {
    key: KeyId,
    start: u32,
    end: u32,
    /// Where the mask starts, if there is one.
    mask: Option<u32>,
}

impl<'a> Window<'a> {
    fn new(order: &'a Order<'a>, words: usize) -> Self {
        Window {
            order,
            words,
            start: 0,
            end: 0,
            row_of: Vec::new(),
            rows: Vec::new(),
            written_of: vec![NOT_WRITTEN; order.facts.history.key_count()],
            written: Vec::new(),
            columns: Vec::new(),
            masks: Vec::new(),
            visible: vec![0; words],
            covered: vec![0; words],
            forced: Vec::new(),
        }
    }

    /// Starts with the transactions at places from `start` to `end`.
    fn enter(&mut self, start: usize, end: usize) {
        (self.start, self.end) = (start, end);
        self.row_of.clear();
        self.rows.clear();
        self.rows.resize(2 * self.words, 0);
        let full = &mut self.rows[self.words..];
        (0..end - start).for_each(|column| set(full, column));
        for written in self.written.drain(..) {
            self.written_of[written.key.index()] = NOT_WRITTEN;
        }
        self.find_writers();
    }

    fn find_writers(&mut self) {
        let index = self.order.facts.index;
        let mut writes: Vec<(KeyId, u32)> = Vec::new();
        for (column, &txn) in (0..).zip(&self.order.txns[self.start..self.end]) {
            writes.extend(index.written_by(txn).iter().map(|&key| (key, column)));
        }
        writes.sort_unstable();
        self.columns.clear();
        self.columns.extend(writes.iter().map(|write| write.1));
        self.masks.clear();
        let mut start = 0;
        for writers in writes.chunk_by(|one, other| one.0 == other.0) {
            let mut mask = None;
            if writers.len() > self.words {
                let first = self.masks.len();
                mask = Some(first as u32);
                self.masks.resize(first + self.words, 0);
                for &(_, column) in writers {
                    set(&mut self.masks[first..], column as usize);
                }
            }
            let (key, end) = (writers[0].0, start + writers.len() as u32);
            self.written_of[key.index()] = self.written.len() as u32;
            self.written.push(Written { key, start, end, mask });
            start = end;
        }
    }

    /// Gives every transaction from the window's start on its row.
    fn walk(&mut self) -> Result<(), Halt> {
        let order = self.order;
        for place in self.start..order.txns.len() {
            if place % TXNS_BETWEEN == 0 {
                order.facts.stop_if_asked(8 * self.rows.capacity())?;
            }
            let row = self.merge(place);
            if row != EMPTY {
                for read in order.facts.index.read_range(order.txns[place]).map(ReadId) {
                    self.force(read);
                }
            }
            let inside = place < self.end;
            if inside {
                set(&mut self.visible, place - self.start);
            }
            self.row_of.push(if inside || row == STORED {
                self.rows.extend_from_slice(&self.visible);
                (self.rows.len() / self.words) as u32 - 1
            } else {
                row
            });
        }
        Ok(())
    }

    /// Makes `visible` what happens before the transaction, and says which row that is.
    fn merge(&mut self, place: usize) -> u32 {
        let causes = self.order.causes_of(place);
        let first = causes.partition_point(|&cause| (cause as usize) < self.start);
        let rows = causes[first..].iter().map(|&cause| self.row_of[cause as usize - self.start]);
        let mut merged = EMPTY;
        for row in rows.clone() {
            if row == FULL {
                merged = FULL;
                break;
            }
            merged = merged.max(row.min(STORED));
        }
        let (empty, full) = self.rows[..2 * self.words].split_at(self.words);
        if merged == FULL {
            self.visible.copy_from_slice(full);
            return FULL;
        }
        self.visible.copy_from_slice(empty);
        for row in rows.filter(|&row| row != EMPTY) {
            let row = &self.rows[row as usize * self.words..][..self.words];
            for (sum, &bits) in self.visible.iter_mut().zip(row) {
                *sum |= bits;
            }
        }
        if merged == STORED && self.visible == *full {
            return FULL;
        }
        merged
    }

    /// What one read forces, given what is visible to its transaction.
    fn force(&mut self, read: ReadId) {
        let external = self.order.facts.index.read(read);
        let Some(after) = Facts::writer(external.origin) else { return };
        let written = self.written_of[external.key.index()];
        if written == NOT_WRITTEN {
            return;
        }
        let known = match after {
            INITIAL => EMPTY,
            after => match self.order.places[after.index()].checked_sub(self.start as u32) {
                Some(place) => self.row_of[place as usize],
                None => EMPTY,
            },
        };
        if known == FULL {
            return;
        }
        let Window { words, rows, visible, covered, .. } = self;
        // Only the rows of the window's own transactions and `known` are asked for.
        covered.copy_from_slice(&rows[known as usize * *words..][..*words]);
        let written = &self.written[written as usize];
        let mut force = |column: usize, covered: &mut [u64]| {
            let before = self.order.txns[self.start + column];
            self.forced.push(Forced { before, after, read });
            let row = self.row_of[column] as usize;
            for (sum, &bits) in covered.iter_mut().zip(&rows[row * *words..][..*words]) {
                *sum |= bits;
            }
        };
        if let Some(mask) = written.mask {
            let mask = &self.masks[mask as usize..][..*words];
            for word in (0..*words).rev() {
                loop {
                    let open = visible[word] & mask[word] & !covered[word];
                    let Some(bit) = open.checked_ilog2() else { break };
                    force(64 * word + bit as usize, covered);
                }
            }
            return;
        }
        for &column in self.columns[written.start as usize..written.end as usize].iter().rev() {
            let column = column as usize;
            if is_set(visible, column) && !is_set(covered, column) {
                force(column, covered);
            }
        }
    }
}

#[inline]
fn set(bits: &mut [u64], place: usize) {
    bits[place / 64] |= 1 << (place % 64);
}

#[inline]
fn is_set(bits: &[u64], place: usize) -> bool {
    bits[place / 64] >> (place % 64) & 1 == 1
}

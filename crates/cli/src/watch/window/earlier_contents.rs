//! What is remembered of events that are not kept any more: which contents items had.
//!
//! Contents are kept as a Bloom filter of fixed size, so that memory stays flat. It may say of a
//! content that an item had it though it had not: then a read of it tells less, and accuses
//! nobody.

use super::{Txn, TxnName};
use isolde::online::{ALWAYS, Batch, Content, Event, EventKind, Interval, NEVER, Time};
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Words of the filter: 1 MiB. A million contents, of which one in forty is taken for one of
/// another item.
const WORDS: usize = 1 << 17;
/// Bits that each content sets.
const BITS: u32 = 4;

/// See the file's first line.
pub(super) struct EarlierContents {
    drift: Time,
    /// Made for the first events that are not kept.
    filter: Option<Box<[u64]>>,
    /// When all of the transactions had ended that are not kept.
    until: Time,
    /// By client, the transaction with events that are not kept, and no end among those.
    cut: HashMap<u32, u64>,
    /// What the first event of each item says of what it held.
    first: Vec<First>,
}

/// What an item held before everything, as far as that is known.
#[derive(Clone, Copy)]
struct First {
    /// [`Content::UNKNOWN`] if it cannot be told.
    content: Content,
    /// When the read that tells was answered: a write that was sent before may be what it saw.
    /// [`ALWAYS`] while the item was not used.
    answered: Time,
}

impl First {
    const UNUSED: First = First { content: Content::UNKNOWN, answered: ALWAYS };
    const LOST: First = First { content: Content::UNKNOWN, answered: NEVER };
}

impl EarlierContents {
    pub(super) fn new(drift: Time) -> EarlierContents {
        EarlierContents {
            drift,
            filter: None,
            until: ALWAYS,
            cut: HashMap::new(),
            first: Vec::new(),
        }
    }

    /// Looks whether events are the first of their items. They come in the order in which they
    /// were sent.
    pub(super) fn look_for_first(&mut self, batch: &Batch) {
        for event in &batch.events {
            let cells = batch.cells_of(event).iter();
            for cell in cells.filter(|cell| cell.content.condition().is_none()) {
                let place = cell.item as usize;
                if self.first.len() <= place {
                    self.first.resize(place + 1, First::UNUSED);
                }
                let first = &mut self.first[place];
                let Interval { invoked, completed } = event.interval;
                let is_read = event.kind != EventKind::Write;
                let known_until = first.answered.saturating_add(2 * self.drift);
                let is_placed = invoked != ALWAYS && completed != NEVER;
                if first.answered == ALWAYS && is_read && is_placed {
                    *first = First { content: cell.content, answered: completed };
                } else if first.answered == ALWAYS || (!is_read && invoked <= known_until) {
                    *first = First::LOST;
                }
            }
        }
    }

    /// What an item held before everything, if its first read tells.
    pub(super) fn initial(&self, item: u32) -> Option<Content> {
        let first = self.first.get(item as usize)?;
        (first.content != Content::UNKNOWN).then_some(first.content)
    }

    /// Takes note of events that are not kept from now on.
    pub(super) fn remember(&mut self, batch: &Batch) {
        for event in &batch.events {
            for cell in batch.cells_of(event) {
                // A condition is found nowhere, and does no harm.
                self.add(cell.item, cell.content);
            }
            self.follow(event);
        }
        self.filter.get_or_insert_with(empty);
    }

    fn follow(&mut self, event: &Event) {
        let client = event.client.0;
        let open = match event.kind {
            kind if kind.is_end() => self.cut.remove(&client),
            _ => self.cut.insert(client, event.txn),
        };
        // Of one that has no end, nobody knows when it took effect.
        let is_known = open.is_none_or(|open| open == event.txn);
        self.until = match event.kind {
            EventKind::Commit | EventKind::Abort if is_known => {
                self.until.max(event.interval.completed)
            }
            EventKind::Lost => NEVER,
            _ if is_known => self.until,
            _ => NEVER,
        };
    }

    /// Whether events of a transaction that has something kept are not.
    pub(super) fn is_cut(&self, (client, number): TxnName) -> bool {
        self.cut.get(&client) == Some(&number)
    }

    /// When all that is not kept had taken effect, or never will; these are the transactions of
    /// which something is kept.
    pub(super) fn until(&self, txns: &BTreeMap<TxnName, Txn>) -> Time {
        let names = self.cut.iter().map(|(&client, &number)| (client, number));
        let ends = names.map(|name| match txns.get(&name).and_then(|txn| txn.end) {
            Some((EventKind::Commit | EventKind::Abort, interval)) => interval.completed,
            _ => NEVER,
        });
        ends.fold(self.until, Time::max)
    }

    fn add(&mut self, item: u32, content: Content) {
        let filter = self.filter.get_or_insert_with(empty);
        for (word, bit) in places(item, content) {
            filter[word] |= bit;
        }
    }

    /// Whether an item may have had a content in an event that is not kept.
    pub(super) fn may_have_had(&self, item: u32, content: Content) -> bool {
        let Some(filter) = &self.filter else { return false };
        places(item, content).all(|(word, bit)| filter[word] & bit != 0)
    }
}

fn empty() -> Box<[u64]> {
    vec![0; WORDS].into_boxed_slice()
}

/// The words and bits of a content.
fn places(item: u32, content: Content) -> impl Iterator<Item = (usize, u64)> {
    let mut hasher = DefaultHasher::new();
    (item, content).hash(&mut hasher);
    let code = hasher.finish();
    // Two halves of one code make as many as are needed [Kirsch and Mitzenmacher, 2006].
    let (start, step) = (code as u32, (code >> 32) as u32 | 1);
    (0..BITS).map(move |number| {
        let place = start.wrapping_add(number.wrapping_mul(step)) as usize % (WORDS * 64);
        (place / 64, 1 << (place % 64))
    })
}

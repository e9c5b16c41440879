//! What clients did, as a stream: events with the times between which they took effect.
//!
//! An event is one request of one client. The cells it read or wrote stand in a column
//! beside the events, so that a [`Batch`] is two arrays that are filled, handed on and
//! filled again, and no operation costs an allocation.

use super::condition::Condition;
pub use isolde_history::{ALWAYS, Interval, NEVER, Time};

/// A client: one connection, with one transaction at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The id as an index into columns.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// The transaction began. A transaction without one begins with its first request.
    Begin = 0,
    /// A read without a lock of its own; its cells are what was seen.
    Read = 1,
    /// A read that locks what it reads against writers, as `SELECT … FOR UPDATE`.
    LockingRead = 2,
    /// An insert, update or delete that succeeded; its cells are what is there now.
    Write = 3,
    /// The database confirmed the commit.
    Commit = 4,
    /// The transaction was refused or rolled back, or its client died before it had sent
    /// the commit; completed is [`NEVER`] where nobody knows when.
    Abort = 5,
    /// The commit was sent and has no answer: it may take effect at any time after it
    /// was sent, or never. Completed is [`NEVER`].
    Lost = 6,
}

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [EventKind; 7] = [
        EventKind::Begin,
        EventKind::Read,
        EventKind::LockingRead,
        EventKind::Write,
        EventKind::Commit,
        EventKind::Abort,
        EventKind::Lost,
    ];

    /// Whether it is the last event of its transaction.
    pub const fn is_end(self) -> bool {
        matches!(self, EventKind::Commit | EventKind::Abort | EventKind::Lost)
    }

    /// Whether it is a request that reads or writes.
    pub const fn is_operation(self) -> bool {
        matches!(self, EventKind::Read | EventKind::LockingRead | EventKind::Write)
    }
}

/// A range of the cells of a [`Batch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CellSpan {
    /// The first cell.
    pub start: u32,
    /// One after the last cell.
    pub end: u32,
}

impl CellSpan {
    /// No cells.
    pub const NONE: CellSpan = CellSpan { start: 0, end: 0 };

    /// The span as a range of indices.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Who made it.
    pub client: ClientId,
    /// The transaction, by its number within the client; later ones have higher numbers.
    pub txn: u64,
    /// When it was sent and answered.
    pub interval: Interval,
    /// What it is.
    pub kind: EventKind,
    /// What it read or wrote.
    pub cells: CellSpan,
}

/// The content of an item as 64 bits. Equal contents have equal codes; different ones
/// have different codes but for collisions of hashes, which can hide a violation and
/// never invent one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Content(u64);

/// Contents are told apart by their two highest bits.
const TAG_SHIFT: u32 = 62;
const TAG_INTEGER: u64 = 1 << TAG_SHIFT;
const TAG_HASH: u64 = 2 << TAG_SHIFT;
const TAG_CONDITION: u64 = 3 << TAG_SHIFT;
const PAYLOAD: u64 = TAG_INTEGER - 1;

impl Content {
    /// There is no such row.
    pub const ABSENT: Content = Content(0);
    /// The row is there and has no value: SQL's null.
    pub const NULL: Content = Content(1);
    /// Nobody knows; a cell of this content is not checked.
    pub const UNKNOWN: Content = Content(2);

    /// An integer; those of up to 61 bits are kept as they are.
    pub const fn integer(number: i64) -> Content {
        const REACH: i64 = 1 << 61;
        if number >= -REACH && number < REACH {
            return Content(TAG_INTEGER | (number.cast_unsigned() & PAYLOAD));
        }
        Content::hashed(&number.to_le_bytes(), 1)
    }

    /// Text, or anything else in a notation of its own.
    pub const fn text(text: &str) -> Content {
        Content::hashed(text.as_bytes(), 2)
    }

    /// Bytes.
    pub const fn bytes(bytes: &[u8]) -> Content {
        Content::hashed(bytes, 3)
    }

    /// What a row has that a read by this condition did not list. Conditions whose numbers
    /// have too many digits say nothing.
    pub const fn unlisted(condition: Condition) -> Content {
        const DIGITS: u32 = 28;
        const REACH: i64 = 1 << DIGITS;
        match condition {
            Condition::Remainder { modulus, remainder }
                if modulus > 0 && modulus < REACH && remainder >= 0 && remainder < REACH =>
            {
                Content(TAG_CONDITION | 1 << 61 | ((modulus << DIGITS) | remainder).cast_unsigned())
            }
            Condition::Between { low, high } if low >= 0 && high >= low => {
                let zeros = (low | (high - low)).trailing_zeros();
                let shift = if zeros > 31 { 31 } else { zeros };
                let (first, length) = (low >> shift, (high - low) >> shift);
                if first >= REACH || length >= REACH {
                    return Content::UNKNOWN;
                }
                let numbers = ((shift as i64) << (2 * DIGITS)) | (first << DIGITS) | length;
                Content(TAG_CONDITION | numbers.cast_unsigned())
            }
            _ => Content::UNKNOWN,
        }
    }

    /// The condition of [`Content::unlisted`].
    pub const fn condition(self) -> Option<Condition> {
        const DIGITS: u32 = 28;
        const LOWEST: u64 = (1 << DIGITS) - 1;
        if self.0 >> TAG_SHIFT != 3 {
            return None;
        }
        let first = ((self.0 >> DIGITS) & LOWEST).cast_signed();
        let second = (self.0 & LOWEST).cast_signed();
        if self.0 & (1 << 61) != 0 {
            return Some(Condition::Remainder { modulus: first, remainder: second });
        }
        let shift = (self.0 >> (2 * DIGITS)) & 31;
        let low = first << shift;
        Some(Condition::Between { low, high: low + (second << shift) })
    }

    /// The raw 64 bits, for files and frames.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The content with these raw bits.
    pub const fn from_bits(bits: u64) -> Content {
        Content(bits)
    }

    /// The integer that it is, if it is one that was kept.
    pub const fn as_integer(self) -> Option<i64> {
        if self.0 >> TAG_SHIFT != 1 {
            return None;
        }
        // The sign is the highest bit of the payload.
        Some(((self.0 << 2).cast_signed()) >> 2)
    }

    /// Multiply and fold, eight bytes at a time. The sequence is part of the frames that
    /// processes exchange, hence written out.
    const fn hashed(bytes: &[u8], kind: u64) -> Content {
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ kind ^ (bytes.len() as u64).rotate_left(32);
        let mut place = 0;
        while place < bytes.len() {
            let mut word = 0;
            let mut byte = 0;
            while byte < 8 && place + byte < bytes.len() {
                word |= (bytes[place + byte] as u64) << (8 * byte);
                byte += 1;
            }
            let product = (state ^ word) as u128 * 0xa076_1d64_78bd_642f;
            state = (product as u64) ^ ((product >> 64) as u64) ^ word.rotate_left(29);
            place += 8;
        }
        let mixed = (state ^ (state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        Content(TAG_HASH | ((mixed ^ (mixed >> 29)) & PAYLOAD))
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (*self, self.as_integer()) {
            (Content::ABSENT, _) => out.write_str("absent"),
            (Content::NULL, _) => out.write_str("null"),
            (Content::UNKNOWN, _) => out.write_str("?"),
            (_, Some(number)) => write!(out, "{number}"),
            _ => write!(out, "#{:x}", self.0 & PAYLOAD),
        }
    }
}

/// What an event read or wrote of one item.
///
/// An item is a column of a row, or the row itself where columns are not told apart.
/// Versions are those of items; locks, and what updaters of a row do to one another, are
/// matters of rows. Ids are dense: a [`Catalogue`](super::Catalogue) gives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The item.
    pub item: u32,
    /// Its row.
    pub row: u32,
    /// What was seen, or what is there after the write.
    pub content: Content,
}

impl Cell {
    /// That a read by a condition lists all that meet it; none if the condition has too many
    /// digits. It is a cell of no item.
    pub fn all_of(condition: Condition) -> Option<Cell> {
        let content = Content::unlisted(condition);
        let is_told = content != Content::UNKNOWN;
        is_told.then_some(Cell { item: u32::MAX, row: u32::MAX, content })
    }
}

/// Events and their cells, in columns. Filled, handed on, cleared and filled again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The events.
    pub events: Vec<Event>,
    /// The cells of all of them.
    pub cells: Vec<Cell>,
}

impl Batch {
    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        self.cells.clear();
    }

    /// The cells of one of its events.
    pub fn cells_of(&self, event: &Event) -> &[Cell] {
        &self.cells[event.cells.range()]
    }

    /// Adds an event with these cells; its own span is replaced.
    pub fn push(&mut self, event: Event, cells: &[Cell]) {
        let start = self.cells.len() as u32;
        self.cells.extend_from_slice(cells);
        let end = self.cells.len() as u32;
        self.events.push(Event { cells: CellSpan { start, end }, ..event });
    }

    /// Adds an event whose cells are those from `start` to the end, which are there already.
    pub fn push_with_cells_from(&mut self, event: Event, start: usize) {
        let (start, end) = (start as u32, self.cells.len() as u32);
        self.events.push(Event { cells: CellSpan { start, end }, ..event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_come_back_or_say_nothing() {
        for condition in [
            Condition::Remainder { modulus: 7, remainder: 3 },
            Condition::Between { low: 0, high: 0 },
            Condition::Between { low: 3, high: 70 },
            Condition::Between { low: 5 << 40, high: 7 << 40 },
        ] {
            assert_eq!(Content::unlisted(condition).condition(), Some(condition));
        }
        for condition in [
            Condition::Remainder { modulus: 1 << 28, remainder: 3 },
            Condition::Between { low: 1, high: 1 << 40 },
            Condition::Between { low: -1, high: 1 },
        ] {
            assert_eq!(Content::unlisted(condition), Content::UNKNOWN);
        }
        assert_eq!(Content::integer(-1).condition(), None);
    }

    #[test]
    fn integers_are_kept_and_everything_else_differs() {
        for number in [0, 1, -1, 7, i64::MAX >> 2, i64::MIN >> 2] {
            assert_eq!(Content::integer(number).as_integer(), Some(number));
        }
        assert_eq!(Content::integer(i64::MAX).as_integer(), None);
        let all = [
            Content::unlisted(Condition::Remainder { modulus: 7, remainder: 3 }),
            Content::unlisted(Condition::Between { low: 7, high: 9 }),
            Content::ABSENT,
            Content::NULL,
            Content::UNKNOWN,
            Content::integer(0),
            Content::integer(1),
            Content::integer(i64::MAX),
            Content::integer(i64::MIN),
            Content::text(""),
            Content::text("1"),
            Content::text("12345678"),
            Content::text("123456789"),
            Content::bytes(b"1"),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all[place + 1..].iter().all(|other| other != one), "{one:?}");
        }
    }
}

//! Values, keys and labels as 32-bit ids.
//!
//! Almost every value in a recorded history is a small integer, so those are
//! the id itself and cost nothing to intern. Everything else (wide integers,
//! text, keywords, other notation) lives in a [`Values`] table. Equal data have
//! equal ids within one history; ids of two histories are not comparable.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::fmt;
use std::hash::BuildHasher;

/// A datum of a history, interned. Resolve it with [`Values::datum`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(u32);

const TABLE: u32 = 1 << 31;
/// How many values a table holds at most, the reserved ones not counted.
pub(crate) const VALUES_MAX: usize = (TABLE - 2) as usize;

impl Value {
    /// The absent value: a key nobody has written, an empty column.
    pub const NIL: Value = Value(TABLE);
    /// A result the client never learned. Equal to no value, not even itself
    /// as far as checking goes.
    pub const UNKNOWN: Value = Value(TABLE | 1);

    /// The integer `number` if it is small enough to need no table.
    pub const fn small(number: u64) -> Option<Value> {
        if number < TABLE as u64 { Some(Value(number as u32)) } else { None }
    }

    /// The raw 32 bits, for columns and files.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The value with these raw bits. Only meaningful with the table it came from.
    pub const fn from_bits(bits: u32) -> Value {
        Value(bits)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Value::NIL => out.write_str("nil"),
            Value::UNKNOWN => out.write_str("?"),
            Value(bits) if bits & TABLE == 0 => write!(out, "{bits}"),
            Value(bits) => write!(out, "#{}", bits & !TABLE),
        }
    }
}

/// What a [`Value`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Datum<'a> {
    /// Absent.
    Nil,
    /// Never learned.
    Unknown,
    /// An integer; formats reach from the smallest `i64` to the largest `u64`.
    Int(i128),
    /// Text.
    Text(&'a str),
    /// An EDN keyword, without its colon.
    Keyword(&'a str),
    /// Anything else, in the notation it arrived in (a float, a map, a boolean).
    Other(&'a str),
}

impl fmt::Display for Datum<'_> {
    /// As the native text format writes it; reading it back gives the same datum.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Datum::Nil => out.write_str("nil"),
            Datum::Unknown => out.write_str("?"),
            Datum::Int(number) => write!(out, "{number}"),
            Datum::Text(text) if is_bare_word(text) => out.write_str(text),
            Datum::Text(text) => write_quoted(out, "", text),
            Datum::Keyword(word) if is_bare_word(word) => write!(out, ":{word}"),
            Datum::Keyword(word) => write_quoted(out, ":", word),
            Datum::Other(notation) => write_quoted(out, "~", notation),
        }
    }
}

/// Whether the native text format writes `text` without quotes.
pub fn is_bare_word(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte))
        && text != "nil"
}

/// Whether a character only shows itself: it commands no terminal, and neither hides what
/// stands around it nor turns its direction.
pub fn is_visible(character: char) -> bool {
    let hides = matches!(character,
        '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}');
    !character.is_control() && !hides
}

fn write_quoted(out: &mut fmt::Formatter<'_>, prefix: &str, text: &str) -> fmt::Result {
    write!(out, "{prefix}\"")?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            // Control characters would otherwise reach a terminal as commands, and others
            // would hide or turn what stands around them.
            hidden if !is_visible(hidden) => write!(out, "\\u{{{:x}}}", hidden as u32)?,
            other => write!(out, "{other}")?,
        }
    }
    out.write_str("\"")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reserved,
    Signed,
    Unsigned,
    Text,
    Keyword,
    Other,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The number's bits, or where the text starts in the arena.
    payload: u64,
    length: u32,
    kind: Kind,
}

/// The table behind the ids that are not small integers.
#[derive(Clone)]
pub struct Values {
    entries: Vec<Entry>,
    arena: String,
    lookup: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Default for Values {
    fn default() -> Self {
        let reserved = Entry { payload: 0, length: 0, kind: Kind::Reserved };
        Values {
            entries: vec![reserved; 2],
            arena: String::new(),
            lookup: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl Values {
    /// The id of an integer.
    pub fn int(&mut self, number: i64) -> Value {
        match u64::try_from(number) {
            Ok(natural) => self.unsigned(natural),
            Err(_) => self.intern(Kind::Signed, number.cast_unsigned(), ""),
        }
    }

    /// The id of a natural number.
    #[inline]
    pub fn unsigned(&mut self, number: u64) -> Value {
        match Value::small(number) {
            Some(value) => value,
            None => self.intern(Kind::Unsigned, number, ""),
        }
    }

    /// The id of a text.
    pub fn text(&mut self, text: &str) -> Value {
        self.intern(Kind::Text, 0, text)
    }

    /// The id of an EDN keyword, given without its colon.
    pub fn keyword(&mut self, word: &str) -> Value {
        self.intern(Kind::Keyword, 0, word)
    }

    /// The id of anything else, in its own notation.
    pub fn other(&mut self, notation: &str) -> Value {
        self.intern(Kind::Other, 0, notation)
    }

    /// The id of `datum`, whatever it is. Integers outside `i64::MIN..=u64::MAX`
    /// keep their notation instead.
    pub fn intern_datum(&mut self, datum: Datum<'_>) -> Value {
        match datum {
            Datum::Nil => Value::NIL,
            Datum::Unknown => Value::UNKNOWN,
            Datum::Int(number) => {
                if let Ok(natural) = u64::try_from(number) {
                    self.unsigned(natural)
                } else if let Ok(signed) = i64::try_from(number) {
                    self.int(signed)
                } else {
                    self.other(&number.to_string())
                }
            }
            Datum::Text(text) => self.text(text),
            Datum::Keyword(word) => self.keyword(word),
            Datum::Other(notation) => self.other(notation),
        }
    }

    /// What `value` stands for.
    ///
    /// # Panics
    /// If `value` came from another history's table.
    pub fn datum(&self, value: Value) -> Datum<'_> {
        if value.0 & TABLE == 0 {
            return Datum::Int(i128::from(value.0));
        }
        let id = value.0 & !TABLE;
        let entry = self.entries[id as usize];
        match entry.kind {
            Kind::Reserved if id == 0 => Datum::Nil,
            Kind::Reserved => Datum::Unknown,
            Kind::Signed => Datum::Int(i128::from(entry.payload.cast_signed())),
            Kind::Unsigned => Datum::Int(i128::from(entry.payload)),
            Kind::Text => Datum::Text(self.slice(entry)),
            Kind::Keyword => Datum::Keyword(self.slice(entry)),
            Kind::Other => Datum::Other(self.slice(entry)),
        }
    }

    /// Every datum of the table in order of its id, the two reserved ones left out.
    /// Interning them in this order into an empty table gives the same ids.
    pub fn table(&self) -> impl Iterator<Item = Datum<'_>> {
        (2..self.entries.len()).map(|id| self.datum(Value(TABLE | id as u32)))
    }

    /// The value of the table's entry at `index`, the two reserved ones not counted.
    pub(crate) const fn nth(index: usize) -> Value {
        Value(TABLE | (index as u32 + 2))
    }

    /// Makes room for this many further entries and bytes of text.
    pub(crate) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.entries.reserve_exact(entries);
        self.arena.reserve_exact(bytes);
        // The table is grown by what is hashed again, so it must be told how.
        debug_assert!(self.lookup.is_empty(), "room is made in an empty table");
        self.lookup = HashTable::with_capacity(entries);
    }

    /// Whether `value` is small, reserved, or in this table.
    pub fn contains(&self, value: Value) -> bool {
        value.0 & TABLE == 0 || ((value.0 & !TABLE) as usize) < self.entries.len()
    }

    /// Bytes of memory the table holds.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.arena.capacity()
            + self.lookup.capacity() * 5
    }

    fn slice(&self, entry: Entry) -> &str {
        let start = entry.payload as usize;
        &self.arena[start..start + entry.length as usize]
    }

    fn intern(&mut self, kind: Kind, number: u64, text: &str) -> Value {
        let hash = self.hasher.hash_one((kind as u8, number, text));
        let (entries, arena) = (&self.entries, &self.arena);
        let same = |&id: &u32| {
            let entry = entries[id as usize];
            entry.kind == kind && {
                match kind {
                    Kind::Reserved | Kind::Signed | Kind::Unsigned => entry.payload == number,
                    Kind::Text | Kind::Keyword | Kind::Other => {
                        let start = entry.payload as usize;
                        &arena[start..start + entry.length as usize] == text
                    }
                }
            }
        };
        if let Some(&id) = self.lookup.find(hash, same) {
            return Value(TABLE | id);
        }
        let id = self.entries.len() as u32;
        assert!(id < TABLE, "a history holds fewer than 2^31 distinct values");
        let payload = match kind {
            Kind::Reserved | Kind::Signed | Kind::Unsigned => number,
            Kind::Text | Kind::Keyword | Kind::Other => self.arena.len() as u64,
        };
        self.arena.push_str(text);
        self.entries.push(Entry { payload, length: text.len() as u32, kind });
        let (entries, arena, hasher) = (&self.entries, &self.arena, &self.hasher);
        self.lookup.insert_unique(hash, id, |&id| {
            let entry = entries[id as usize];
            match entry.kind {
                Kind::Reserved | Kind::Signed | Kind::Unsigned => {
                    hasher.hash_one((entry.kind as u8, entry.payload, ""))
                }
                Kind::Text | Kind::Keyword | Kind::Other => {
                    let start = entry.payload as usize;
                    let text = &arena[start..start + entry.length as usize];
                    hasher.hash_one((entry.kind as u8, 0u64, text))
                }
            }
        });
        Value(TABLE | id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_data_have_equal_ids_and_come_back_as_they_were() {
        let mut values = Values::default();
        let data = [
            Datum::Nil,
            Datum::Unknown,
            Datum::Int(0),
            Datum::Int(-1),
            Datum::Int(i128::from(i64::MIN)),
            Datum::Int(i128::from(u64::MAX)),
            Datum::Int(i128::from(u32::MAX)),
            Datum::Text("x"),
            Datum::Text(""),
            Datum::Keyword("x"),
            Datum::Other("1.5"),
        ];
        let ids: Vec<Value> = data.iter().map(|&datum| values.intern_datum(datum)).collect();
        for (&datum, &id) in data.iter().zip(&ids) {
            assert_eq!(values.intern_datum(datum), id);
            assert_eq!(values.datum(id), datum);
        }
        let distinct: std::collections::HashSet<Value> = ids.iter().copied().collect();
        assert_eq!(distinct.len(), data.len());
    }

    #[test]
    fn a_signed_and_an_unsigned_number_with_the_same_bits_differ() {
        let mut values = Values::default();
        assert_ne!(values.int(-1), values.unsigned(u64::MAX));
    }

    #[test]
    fn text_that_could_be_misread_is_quoted() {
        assert_eq!(Datum::Text("x-1").to_string(), "x-1");
        assert_eq!(Datum::Text("nil").to_string(), "\"nil\"");
        assert_eq!(Datum::Text("7").to_string(), "\"7\"");
        assert_eq!(Datum::Text("a b\u{1b}[31m").to_string(), "\"a b\\u{1b}[31m\"");
    }
}

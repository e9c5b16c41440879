//! Lists while a history is collected.
//!
//! Reads of one key are nearly always prefixes of one another, so the longest one, the
//! key's spine, stands for all of them. Where a source writes lists as text, the text of
//! the spine is kept as well: comparing it is many times faster than reading numbers
//! that were read before, and histories of lists are made of little else.

use crate::builder::NO_KEY;
use crate::history::KeyId;
use crate::value::{Value, Values};

/// All list reads so far.
#[derive(Default)]
pub(crate) struct Lists {
    /// By key.
    spines: Vec<Spine>,
    /// Per list read: the key whose spine it is a prefix of, or `NO_KEY` and a place
    /// among the elements of others; and its length.
    reads: Vec<(u32, u32, u32)>,
    /// Elements of reads that are no prefixes.
    others: Vec<Value>,
    /// What was read from a text last.
    parsed: Vec<Value>,
    memory: usize,
}

/// The longest list of a key of which all others shared so far are prefixes.
#[derive(Default)]
struct Spine {
    elements: Vec<Value>,
    /// The first `told` elements, as a source wrote them: numbers with a space between.
    text: Vec<u8>,
    told: usize,
}

impl Lists {
    /// Adds a read and returns its number.
    pub(crate) fn read(&mut self, key: KeyId, elements: &[Value]) -> u32 {
        let spine = spine(&mut self.spines, key);
        let length = elements.len() as u32;
        let entry = if let Some(bytes) = spine.takes(0, elements) {
            self.memory += bytes;
            (key.0, 0, length)
        } else {
            self.memory += size_of_val(elements);
            self.others.extend_from_slice(elements);
            (NO_KEY, (self.others.len() - elements.len()) as u32, length)
        };
        self.push(entry)
    }

    /// Adds a read of `count` natural numbers, as text with one space between two, and
    /// returns its number.
    pub(crate) fn read_text(
        &mut self,
        key: KeyId,
        text: &[u8],
        count: u32,
        values: &mut Values,
    ) -> u32 {
        let spine = spine(&mut self.spines, key);
        let shared = text.len().min(spine.text.len());
        let ends_a_number = |text: &[u8]| text.get(shared).is_none_or(|&byte| byte == b' ');
        if spine.text[..shared] == text[..shared]
            && (shared == 0 || ends_a_number(text) && ends_a_number(&spine.text))
        {
            if shared == text.len() {
                return self.push((key.0, 0, count));
            }
            self.parsed.clear();
            numbers(&text[shared..], values, &mut self.parsed);
            if let Some(bytes) = spine.takes(spine.told, &self.parsed) {
                spine.text.extend_from_slice(&text[shared..]);
                spine.told = count as usize;
                self.memory += bytes + (text.len() - shared);
                return self.push((key.0, 0, count));
            }
        }
        let mut parsed = std::mem::take(&mut self.parsed);
        parsed.clear();
        numbers(text, values, &mut parsed);
        let number = self.read(key, &parsed);
        self.parsed = parsed;
        number
    }

    fn push(&mut self, entry: (u32, u32, u32)) -> u32 {
        self.reads.push(entry);
        self.reads.len() as u32 - 1
    }

    /// Bytes in use.
    pub(crate) fn memory(&self) -> usize {
        self.memory + self.reads.capacity() * 12 + self.spines.capacity() * size_of::<Spine>()
    }

    /// All elements in one column, and per read where in it its elements begin, and how
    /// many they are.
    pub(crate) fn laid_out(self) -> (Vec<Value>, Vec<(u32, u32)>) {
        let mut elements = self.others;
        let mut starts = Vec::with_capacity(self.spines.len());
        for spine in self.spines {
            starts.push(elements.len() as u32);
            elements.extend_from_slice(&spine.elements);
        }
        let place = |(key, start, length): (u32, u32, u32)| {
            (if key == NO_KEY { start } else { starts[key as usize] }, length)
        };
        (elements, self.reads.into_iter().map(place).collect())
    }
}

impl Spine {
    /// If these elements, from place `from` on, agree with it, makes it as long as they
    /// are, and returns the bytes by which it grew.
    fn takes(&mut self, from: usize, elements: &[Value]) -> Option<usize> {
        let there = &self.elements[from..];
        let common = there.len().min(elements.len());
        if there[..common] != elements[..common] {
            return None;
        }
        self.elements.extend_from_slice(&elements[common..]);
        Some(size_of_val(&elements[common..]))
    }
}

#[inline]
fn spine(spines: &mut Vec<Spine>, key: KeyId) -> &mut Spine {
    if spines.len() <= key.index() {
        spines.resize_with(key.index() + 1, Spine::default);
    }
    &mut spines[key.index()]
}

/// Adds the values of natural numbers with a space between two.
fn numbers(text: &[u8], values: &mut Values, found: &mut Vec<Value>) {
    for digits in text.trim_ascii_start().split(|&byte| byte == b' ') {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        found.push(match digits.parse::<u64>() {
            Ok(number) => values.unsigned(number),
            Err(_) => values.other(digits),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the reads come out as, and how many elements are kept.
    fn kept(reads: &[(u32, &str)]) -> (Vec<Vec<u64>>, usize) {
        let (mut lists, mut values) = (Lists::default(), Values::default());
        for (key, text) in reads {
            let count = text.split(' ').count() as u32;
            lists.read_text(KeyId(*key), text.as_bytes(), count, &mut values);
        }
        let (elements, reads) = lists.laid_out();
        let list = |&(start, length): &(u32, u32)| {
            let range = start as usize..(start + length) as usize;
            elements[range].iter().map(|value| u64::from(value.bits())).collect()
        };
        (reads.iter().map(list).collect(), elements.len())
    }

    #[test]
    fn prefixes_are_kept_once() {
        let reads = [(0, "1 2"), (1, "7"), (0, "1 2 30"), (0, "1"), (0, "1 2 30"), (1, "7 8")];
        let lists = vec![vec![1, 2], vec![7], vec![1, 2, 30], vec![1], vec![1, 2, 30], vec![7, 8]];
        assert_eq!(kept(&reads), (lists, 5));
    }

    #[test]
    fn a_number_that_begins_like_another_is_another() {
        let reads = [(0, "1 23"), (0, "1 2"), (0, "1 234"), (0, "1 23 4")];
        let lists = vec![vec![1, 23], vec![1, 2], vec![1, 234], vec![1, 23, 4]];
        // Two of them are no prefixes.
        assert_eq!(kept(&reads), (lists, 3 + 4));
    }

    #[test]
    fn lists_as_values_and_as_text_share_a_spine() {
        let (mut lists, mut values) = (Lists::default(), Values::default());
        let small = |number| Value::small(number).expect("a small number");
        lists.read_text(KeyId(0), b"1 2", 2, &mut values);
        lists.read(KeyId(0), &[small(1), small(2), small(3), small(4)]);
        lists.read_text(KeyId(0), b"1 2 3", 3, &mut values);
        lists.read_text(KeyId(0), b"1 2 3 4 5", 5, &mut values);
        lists.read_text(KeyId(0), b"1 2 3 9", 4, &mut values);
        let (elements, reads) = lists.laid_out();
        let numbers: Vec<u32> = elements.iter().map(|value| value.bits()).collect();
        assert_eq!(numbers, [1, 2, 3, 9, 1, 2, 3, 4, 5]);
        assert_eq!(reads, [(4, 2), (4, 4), (4, 3), (4, 5), (0, 4)]);
    }

    #[test]
    fn numbers_of_any_length_are_what_they_are() {
        let mut values = Values::default();
        let mut found = Vec::new();
        numbers(b" 5 4294967296 123456789012345678901234567890", &mut values, &mut found);
        let shown: Vec<String> = found.iter().map(|&it| values.datum(it).to_string()).collect();
        assert_eq!(shown, ["5", "4294967296", "~\"123456789012345678901234567890\""]);
    }
}

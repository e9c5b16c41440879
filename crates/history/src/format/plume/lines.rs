//! The lines of [`super`] as records, without allocating.

use crate::error::{Place, ReadError};
use crate::history::OpKind;

/// The first half of a line: an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: u64,
    pub(super) value: u64,
    pub(super) kind: Line,
}

/// The second half of a line: whose operation it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) session: u64,
    /// [`ABORTED`] for `-1`.
    pub(super) txn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Read,
    Write,
    /// Holds a place so that records and lines count alike.
    Blank,
}

impl Line {
    /// What a line that is not blank says.
    #[inline]
    pub(super) fn op(self) -> OpKind {
        if self == Line::Write { OpKind::Write } else { OpKind::Read }
    }
}

pub(super) const ABORTED: u64 = u64::MAX;

/// Lines that follow one another.
#[derive(Default)]
pub(super) struct Block {
    pub(super) records: Vec<Record>,
    /// Whose the records from this one on are, up to the next.
    pub(super) runs: Vec<(usize, Owner)>,
    pub(super) has_blanks: bool,
    pub(super) first_line: u64,
}

pub(super) fn parse_block(file: &str, lines: &[u8], block: &mut Block) -> Result<(), ReadError> {
    block.records.clear();
    block.runs.clear();
    block.has_blanks = false;
    let mut ending = Ending::default();
    let mut at = 0;
    while at < lines.len() {
        let start = at;
        if let Some(record) = parse_record(lines, &mut at) {
            let second_half = at;
            if ending.is_at(lines, &mut at) {
                block.records.push(record);
                continue;
            }
            if let Some(owner) = parse_owner(lines, &mut at) {
                ending = Ending::new(&lines[second_half..at]);
                block.runs.push((block.records.len(), owner));
                block.records.push(record);
                continue;
            }
        }
        let rest = &lines[start..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        if !line.trim_ascii().is_empty() {
            let number = block.first_line + block.records.len() as u64;
            let expected = "`r(key,value,session,transaction)` or `w(…)` in decimal digits";
            return Err(ReadError::expected(file, Place::Line(number), expected, line));
        }
        block.records.push(Record { key: 0, value: 0, kind: Line::Blank });
        block.has_blanks = true;
        at = start + end + 1;
    }
    Ok(())
}

/// How the last line ended. Lines of one transaction mostly follow one another and
/// end alike, and comparing is faster than reading two numbers again.
#[derive(Default)]
struct Ending {
    bytes: u128,
    mask: u128,
    /// 0 if it is too long to be kept.
    length: usize,
}

impl Ending {
    fn new(ending: &[u8]) -> Ending {
        let mut bytes = [0; 16];
        // A last line that is not ended is not like any other.
        if ending.len() > bytes.len() || !ending.ends_with(b"\n") {
            return Ending::default();
        }
        bytes[..ending.len()].copy_from_slice(ending);
        let mask = u128::MAX >> (128 - 8 * ending.len());
        Ending { bytes: u128::from_le_bytes(bytes), mask, length: ending.len() }
    }

    /// Whether the line that is read up to `at` ends like this; `at` then moves
    /// behind it.
    #[inline]
    fn is_at(&self, lines: &[u8], at: &mut usize) -> bool {
        let Some(chunk) = lines.get(*at..).and_then(<[u8]>::first_chunk::<16>) else {
            return false;
        };
        let same = self.length > 0 && u128::from_le_bytes(*chunk) & self.mask == self.bytes;
        *at += if same { self.length } else { 0 };
        same
    }
}

/// The operation at `at`, which moves behind its value; `None` if there is none, and
/// `at` is then of no use.
#[inline]
fn parse_record(bytes: &[u8], at: &mut usize) -> Option<Record> {
    let kind = match bytes.get(*at)? {
        b'r' => Line::Read,
        b'w' => Line::Write,
        _ => return None,
    };
    *at += 1;
    expect(bytes, at, b'(')?;
    let key = number(bytes, at)?;
    expect(bytes, at, b',')?;
    let value = number(bytes, at)?;
    Some(Record { key, value, kind })
}

/// The rest of the line, which `at` moves behind; `None` as above.
fn parse_owner(bytes: &[u8], at: &mut usize) -> Option<Owner> {
    expect(bytes, at, b',')?;
    let session = number(bytes, at)?;
    expect(bytes, at, b',')?;
    let txn = if bytes.get(*at) == Some(&b'-') {
        *at += 1;
        expect(bytes, at, b'1')?;
        ABORTED
    } else {
        number(bytes, at).filter(|&txn| txn != ABORTED)?
    };
    expect(bytes, at, b')')?;
    if bytes.get(*at) == Some(&b'\r') {
        *at += 1;
    }
    match bytes.get(*at) {
        None => {}
        Some(b'\n') => *at += 1,
        Some(_) => return None,
    }
    Some(Owner { session, txn })
}

#[inline]
fn expect(bytes: &[u8], at: &mut usize, wanted: u8) -> Option<()> {
    if *bytes.get(*at)? != wanted {
        return None;
    }
    *at += 1;
    Some(())
}

/// The decimal number at `at`, which moves behind it.
#[inline]
fn number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    if let Some(chunk) = bytes.get(*at..).and_then(<[u8]>::first_chunk::<8>) {
        let digits = u64::from_le_bytes(*chunk) ^ 0x3030_3030_3030_3030;
        // The high bit of each byte that is above 9. A carry leaves such a byte and
        // spoils only later ones, which do not count.
        let others = (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080;
        let count = others.trailing_zeros() / 8;
        if (1..8).contains(&count) {
            *at += count as usize;
            return Some(eight_digits(digits << (64 - 8 * count)));
        }
    }
    long_number(bytes, at)
}

/// The number whose digits are the bytes, the first digit lowest.
#[inline]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(1 + (10 << 8)) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(1 + (100 << 16)) >> 16 & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// A number of any length, digit by digit.
fn long_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let start = *at;
    let mut number = 0u64;
    while let Some(digit) = bytes.get(*at).map(|byte| byte.wrapping_sub(b'0'))
        && digit < 10
    {
        number = number.checked_mul(10)?.checked_add(digit.into())?;
        *at += 1;
    }
    (*at > start).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_read_whole() {
        let digits = "18446744073709551615";
        for length in 1..=digits.len() {
            for padding in ["", ",", ")\r\n........", "/////////"] {
                let text = format!("{}{padding}", &digits[..length]);
                let mut at = 0;
                let found = number(text.as_bytes(), &mut at);
                assert_eq!(found, digits[..length].parse().ok(), "{text}");
                assert_eq!(at, length, "{text}");
            }
        }
        assert_eq!(number(b"18446744073709551616", &mut 0), None);
        for not_a_number in ["", "x", ":12345678", "-1", "/"] {
            assert_eq!(number(not_a_number.as_bytes(), &mut 0), None);
        }
    }
}

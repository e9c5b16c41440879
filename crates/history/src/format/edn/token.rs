//! Leaves of EDN: numbers, names, strings and characters.

use super::{Scanner, Stop};
use crate::format::form::Node;

/// What a byte is where a form may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Token,
    Digit,
    Colon,
    Blank,
    Open,
    Close,
    Quote,
    Comment,
    Hash,
    Backslash,
    Wrong,
}

static CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Token; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b',' | b'\t'..=b'\r' | 0x1c..=0x1f => Class::Blank,
            b'0'..=b'9' => Class::Digit,
            b':' => Class::Colon,
            b'(' | b'[' | b'{' => Class::Open,
            b')' | b']' | b'}' => Class::Close,
            b'"' => Class::Quote,
            b';' => Class::Comment,
            b'#' => Class::Hash,
            b'\\' => Class::Backslash,
            0..=0x1b | 0x7f | b'@' | b'^' | b'`' | b'~' => Class::Wrong,
            _ => Class::Token,
        };
        byte += 1;
    }
    classes
}

#[inline]
pub(super) fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

/// Whether a token goes on with this byte.
#[inline]
pub(super) fn continues_token(byte: u8) -> bool {
    matches!(class(byte), Class::Token | Class::Digit | Class::Colon | Class::Hash)
}

impl<'a> Scanner<'a> {
    #[inline]
    pub(super) fn plain_leaf(&mut self, class: Class) -> Result<Node, Stop> {
        match class {
            Class::Digit => self.digits(),
            Class::Colon => {
                let start = self.at;
                self.keyword_end()?;
                Ok(Node::Keyword(self.span(start + 1, self.at)))
            }
            Class::Quote => self.string(),
            Class::Backslash => self.character(),
            Class::Token => self.symbol_or_number(),
            _ => Err(self.wrong("a form")),
        }
    }

    /// A natural number that fits, which nearly every leaf of a history is; else
    /// whatever begins with a digit.
    #[inline]
    pub(super) fn digits(&mut self) -> Result<Node, Stop> {
        let start = self.at;
        let (number, at) = leading_number(self.bytes, start);
        let leads_with_zero = self.bytes[start] == b'0' && at - start > 1;
        match self.bytes.get(at) {
            Some(&byte) if !leads_with_zero && !continues_token(byte) => {
                self.at = at;
                Ok(Node::Int(number))
            }
            _ => self.symbol_or_number(),
        }
    }

    fn symbol_or_number(&mut self) -> Result<Node, Stop> {
        let start = self.at;
        let token = self.token()?;
        let unsigned = token.strip_prefix(b"-").or(token.strip_prefix(b"+"));
        if unsigned.unwrap_or(token).first().is_some_and(u8::is_ascii_digit) {
            if !is_number(unsigned.unwrap_or(token)) {
                self.at = start;
                return Err(self.wrong("a number"));
            }
            let integer = token.strip_suffix(b"N").unwrap_or(token);
            let number = std::str::from_utf8(integer).map(str::parse);
            return Ok(match number {
                Ok(Ok(number)) => Node::Int(number),
                _ => Node::Other(self.span(start, self.at)),
            });
        }
        if token == b"nil" {
            return Ok(Node::Nil);
        }
        if !is_symbol(token) {
            self.at = start;
            return Err(self.wrong("a form"));
        }
        Ok(Node::Other(self.span(start, self.at)))
    }

    #[inline]
    pub(super) fn keyword_end(&mut self) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        let end = lowercase_end(self.bytes, self.at);
        if end > self.at && matches!(self.bytes.get(end), Some(b' ' | b',' | b']' | b'}')) {
            self.at = end;
            return Ok(());
        }
        self.longer_keyword_end(start)
    }

    fn longer_keyword_end(&mut self, start: usize) -> Result<(), Stop> {
        let name = self.token()?;
        // The common case first: a name that begins with a letter and has no
        // second part needs no closer look.
        if name.first().is_some_and(u8::is_ascii_alphabetic) && !name.contains(&b'/') {
            if name.last() == Some(&b':') {
                self.at = start;
                return Err(self.wrong("a keyword that does not end in a colon"));
            }
            return Ok(());
        }
        if !is_keyword_name(name) {
            self.at = start;
            return Err(self.wrong("a keyword"));
        }
        Ok(())
    }

    /// The bytes up to the end of the token that the scanner stands in.
    #[inline]
    pub(super) fn token(&mut self) -> Result<&'a [u8], Stop> {
        let start = self.at;
        let rest = &self.bytes[start..];
        match rest.iter().position(|&byte| !continues_token(byte)) {
            Some(length) => {
                self.at += length;
                if class(rest[length]) == Class::Wrong {
                    return Err(self.wrong("a form"));
                }
                Ok(&rest[..length])
            }
            None if self.ends => {
                self.at = self.bytes.len();
                Ok(rest)
            }
            None => Err(Stop::Incomplete),
        }
    }

    fn string(&mut self) -> Result<Node, Stop> {
        let start = self.at + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            let Some(length) = memchr::memchr2(b'"', b'\\', rest) else {
                return Err(Stop::Incomplete);
            };
            if rest[length] == b'"' {
                self.at = at + length + 1;
                let span = self.span(start, at + length);
                return Ok(if is_escaped { Node::EscapedText(span) } else { Node::Text(span) });
            }
            is_escaped = true;
            let escape = &rest[length + 1..];
            let hexadecimal = escape.get(1..5);
            match escape.first() {
                None => return Err(Stop::Incomplete),
                Some(b'"' | b'\\' | b'n' | b't' | b'r' | b'b' | b'f' | b'0'..=b'7') => {}
                Some(b'u') if hexadecimal.is_none() && !self.ends => return Err(Stop::Incomplete),
                Some(b'u')
                    if hexadecimal
                        .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) => {}
                Some(_) => {
                    self.at = at + length;
                    return Err(self.wrong("an escape that EDN knows"));
                }
            }
            at += length + 2;
        }
    }

    fn character(&mut self) -> Result<Node, Stop> {
        let start = self.at;
        let Some(&first) = self.bytes.get(start + 1) else {
            return Err(self.cut_off("a character"));
        };
        let width = match first {
            0xf0.. => 4,
            0xe0.. => 3,
            0xc0.. => 2,
            _ => 1,
        };
        self.at = (start + 1 + width).min(self.bytes.len());
        let tail = self.token()?;
        let name = &self.bytes[start + 1..self.at];
        let is_known = tail.is_empty() && !first.is_ascii_whitespace()
            || [&b"newline"[..], b"return", b"space", b"tab", b"formfeed", b"backspace"]
                .contains(&name)
            || first == b'u' && tail.len() == 4 && tail.iter().all(u8::is_ascii_hexdigit)
            || first == b'o'
                && matches!(tail.len(), 1..=3)
                && tail.iter().all(|byte| (b'0'..=b'7').contains(byte));
        if !is_known {
            self.at = start;
            return Err(self.wrong("a character"));
        }
        Ok(Node::Other(self.span(start, self.at)))
    }
}

/// The number that the digits at `start` make, as many as surely fit, and where
/// they end.
#[inline]
pub(super) fn leading_number(bytes: &[u8], start: usize) -> (i64, usize) {
    let mut number: i64 = 0;
    let mut at = start;
    if let Some((digits, count)) = eight_digits(bytes, start) {
        if count < 8 {
            return (digits, start + count);
        }
        (number, at) = (digits, start + 8);
    }
    // Eighteen digits fit whatever they are.
    let limit = bytes.len().min(start + 18);
    while at < limit {
        let digit = bytes[at].wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        number = number * 10 + i64::from(digit);
        at += 1;
    }
    (number, at)
}

/// Hands natural numbers of less than eight digits, each with one space after it, to
/// `take`, and returns where the first thing that is none begins. Long lists are most of
/// what a history of lists is made of.
#[inline]
pub(super) fn spaced_numbers(bytes: &[u8], start: usize, mut take: impl FnMut(i64)) -> usize {
    let mut at = start;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let (digits, count) = counted_digits(*chunk);
        // A zero before other digits is for the slow way to judge.
        let leads_with_zero = digits.trailing_zeros() >= 8 && count > 1;
        if count == 0 || count == 8 || leads_with_zero || chunk[count as usize] != b' ' {
            break;
        }
        take(number_of(digits, count));
        at += count as usize + 1;
    }
    at
}

/// The number that up to eight digits at `start` make and how many they are, if
/// eight bytes and a digit are there. All at once: numbers of a history differ in
/// length, and a loop over their digits would be mispredicted at nearly each one.
#[inline]
fn eight_digits(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let chunk = bytes.get(start..)?.first_chunk::<8>()?;
    let (digits, count) = counted_digits(*chunk);
    (count > 0).then(|| (number_of(digits, count), count as usize))
}

/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The bytes with digits as 0 to 9, the first lowest, and how many digits they begin with.
#[inline]
fn counted_digits(chunk: [u8; 8]) -> (u64, u32) {
    let digits = u64::from_le_bytes(chunk) ^ (ONES * u64::from(b'0'));
    let beyond_nine = (digits.wrapping_add(ONES * 0x76) | digits) & (ONES * 0x80);
    (digits, beyond_nine.trailing_zeros() / 8)
}

/// The number that the first `count` of these digits make, at least one of them.
#[inline]
fn number_of(digits: u64, count: u32) -> i64 {
    // What follows the digits falls out at the top, zeros come before them.
    let aligned = digits << (64 - 8 * count);
    let pairs = aligned.wrapping_mul(10 * 256 + 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100 * 65_536 + 1) >> 16 & 0x0000_ffff_0000_ffff;
    let eight = fours.wrapping_mul(10_000 * 4_294_967_296 + 1) >> 32;
    // Eight digits are less than 2^27.
    i64::from(eight as u32)
}

#[inline]
pub(super) fn lowercase_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_lowercase) {
        at += 1;
    }
    at
}

/// Whether the token that ends at `end` is followed by what usually follows one.
#[inline]
pub(super) fn ends_plainly(bytes: &[u8], end: usize) -> bool {
    matches!(bytes.get(end), Some(b' ' | b']' | b','))
}

/// Whether a token that begins with a digit, its sign taken off, is a number.
fn is_number(token: &[u8]) -> bool {
    let all_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_natural = |part: &[u8]| all_digits(part) && (part.len() == 1 || part[0] != b'0');
    if let [b'0', b'x' | b'X', digits @ ..] = token {
        let digits = digits.strip_suffix(b"N").unwrap_or(digits);
        return !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    }
    if let Some(slash) = token.iter().position(|&byte| byte == b'/') {
        return all_digits(&token[..slash]) && all_digits(&token[slash + 1..]);
    }
    if is_natural(token.strip_suffix(b"N").unwrap_or(token)) {
        return true;
    }
    let decimal = token.strip_suffix(b"M").unwrap_or(token);
    let (mantissa, exponent) = match decimal.iter().position(|byte| b"eE".contains(byte)) {
        Some(at) => (&decimal[..at], Some(&decimal[at + 1..])),
        None => (decimal, None),
    };
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+"));
        all_digits(digits.unwrap_or(exponent))
    });
    let (whole, fraction) = match mantissa.iter().position(|&byte| byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    exponent_is_fine && is_natural(whole) && fraction.iter().all(u8::is_ascii_digit)
}

/// Whether a token that begins neither with a digit nor with a colon is a symbol.
fn is_symbol(token: &[u8]) -> bool {
    token == b"/" || (!token.starts_with(b"/") && is_name(token))
}

fn is_keyword_name(name: &[u8]) -> bool {
    !name.starts_with(b":") && !name.starts_with(b"/") && is_name(name)
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.ends_with(b":") && !name.ends_with(b"/")
}

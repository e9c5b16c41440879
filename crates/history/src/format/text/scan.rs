//! One line of the text format, read from left to right.

use crate::history::Time;
use crate::value::{Value, Values};

/// What was expected at a place of a line where something else stands.
#[derive(Debug)]
pub(super) struct Fault {
    /// Where the thing begins that is not as expected.
    pub(super) at: usize,
    pub(super) expected: String,
    pub(super) hint: Option<&'static str>,
}

impl Fault {
    pub(super) fn new(at: usize, expected: impl Into<String>) -> Self {
        Fault { at, expected: expected.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// Where a value stands, which decides what ends a bare word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Any character that is not part of a word.
    Plain,
    /// Also `/`: in front of a transaction's name.
    Session,
    /// Also `..`: in a range.
    Bound,
}

/// A line and how far it has been read.
pub(super) struct Line<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Line { text, at: 0 }
    }

    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The text from `start` up to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// Skips spaces. Whether any stood here.
    #[inline]
    pub(super) fn spaces(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    /// Skips `byte`, which must be ASCII, if it stands here.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Skips `text` if it stands here.
    pub(super) fn take_text(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Skips `byte`, which must stand here, and spaces around it.
    #[inline]
    pub(super) fn punctuation(&mut self, byte: u8, expected: &str) -> Result<(), Fault> {
        self.spaces();
        let at = self.at;
        if !self.take(byte) {
            return Err(Fault::new(at, expected));
        }
        self.spaces();
        Ok(())
    }

    /// Whether nothing but spaces or a comment is left; skips the spaces.
    pub(super) fn is_over(&mut self) -> bool {
        self.spaces();
        match self.peek() {
            None => true,
            Some(b'#') => self.text[..self.at].ends_with([' ', '\t']),
            Some(_) => false,
        }
    }

    /// Like [`Line::is_over`], with nothing else allowed.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.is_over() {
            return Ok(());
        }
        Err(Fault::new(self.at, "the end of the line"))
    }

    /// The letters from here on, skipped.
    #[inline]
    pub(super) fn letters(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            self.at += 1;
        }
        self.since(start)
    }

    /// The first word of a declaration, skipped with the spaces after it. `None`
    /// if the line is a transaction.
    pub(super) fn declaration(&mut self) -> Option<&'static str> {
        let word = self.letters();
        let known = super::DECLARATIONS.iter().find(|&&known| known == word);
        let follows = match self.peek() {
            Some(b' ' | b'\t') => true,
            Some(b':') => word == "serial",
            _ => false,
        };
        match known {
            Some(&known) if follows => {
                self.spaces();
                Some(known)
            }
            _ => {
                self.at = 0;
                None
            }
        }
    }

    /// Everything up to the next space outside of quotes, skipped.
    pub(super) fn token(&mut self) -> &'a str {
        let start = self.at;
        let mut quoted = false;
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' if !quoted => break,
                b'"' => quoted = !quoted,
                b'\\' if quoted => self.at += 1,
                _ => {}
            }
            self.at += 1;
        }
        // An escape may have pointed beyond the end or into a wide character.
        self.at = self.at.min(self.text.len());
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        self.since(start)
    }

    /// A value in any notation.
    #[inline]
    pub(super) fn value(&mut self, values: &mut Values, scope: Scope) -> Result<Value, Fault> {
        let start = self.at;
        let value = self.notation(values, scope)?;
        // `5y` is no value and must not be read as two.
        let ended = match self.peek() {
            None | Some(b')' | b',' | b' ' | b'\t' | b'=' | b'}' | b']' | b';' | b':' | b'@') => {
                true
            }
            Some(b'/') => scope == Scope::Session,
            Some(b'.') => scope == Scope::Bound && self.rest().starts_with(".."),
            Some(_) => false,
        };
        if ended { Ok(value) } else { Err(no_value(start)) }
    }

    #[inline]
    fn notation(&mut self, values: &mut Values, scope: Scope) -> Result<Value, Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'0'..=b'9') => {
                let number = self.natural()?;
                Ok(values.unsigned(number))
            }
            Some(b'-') => Ok(values.int(self.integer()?)),
            Some(b'?') => {
                self.at += 1;
                Ok(Value::UNKNOWN)
            }
            Some(b'"') => Ok(values.text(&self.quoted()?)),
            Some(b'~') => {
                self.at += 1;
                Ok(values.other(&self.quoted()?))
            }
            Some(b':') => {
                self.at += 1;
                if self.peek() == Some(b'"') {
                    return Ok(values.keyword(&self.quoted()?));
                }
                match self.word(scope) {
                    "" => Err(Fault::new(start, "a keyword like `:name`")),
                    word => Ok(values.keyword(word)),
                }
            }
            _ => match self.word(scope) {
                "" => Err(no_value(start)),
                "nil" => Ok(Value::NIL),
                word => Ok(values.text(word)),
            },
        }
    }

    /// A bare word, skipped; empty if none begins here.
    fn word(&mut self, scope: Scope) -> &'a str {
        let start = self.at;
        if !self.peek().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_') {
            return "";
        }
        while let Some(byte) = self.peek() {
            let part = match byte {
                b'/' => scope != Scope::Session,
                b'.' => scope != Scope::Bound || !self.rest().starts_with(".."),
                _ => byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-',
            };
            if !part {
                break;
            }
            self.at += 1;
        }
        self.since(start)
    }

    /// A natural number.
    #[inline]
    pub(super) fn natural(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let mut number = Some(0u64);
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(digit - b'0');
            number = number.and_then(|number| number.checked_mul(10)?.checked_add(digit));
            self.at += 1;
        }
        if self.at == start {
            return Err(Fault::new(start, "a number"));
        }
        number.ok_or_else(|| {
            Fault::new(start, "an integer from -2^63 to 2^64-1")
                .hint("write a larger one as ~\"NUMBER\"")
        })
    }

    /// A number that may be negative.
    pub(super) fn integer(&mut self) -> Result<i64, Fault> {
        let start = self.at;
        let negative = self.take(b'-');
        let magnitude = i128::from(self.natural()?);
        let number = if negative { -magnitude } else { magnitude };
        i64::try_from(number).map_err(|_| {
            Fault::new(start, "an integer from -2^63 to 2^63-1")
                .hint("write a value out of this range as ~\"NUMBER\"")
        })
    }

    /// A time, or `?` for `missing`.
    pub(super) fn time(&mut self, missing: Time) -> Result<Time, Fault> {
        if self.take(b'?') {
            return Ok(missing);
        }
        self.integer()
    }

    /// Skips the `..` of a range.
    pub(super) fn dots(&mut self) -> Result<(), Fault> {
        let at = self.at;
        if self.take_text("..") { Ok(()) } else { Err(Fault::new(at, "`..`")) }
    }

    /// A text in quotes, with its escapes resolved.
    pub(super) fn quoted(&mut self) -> Result<std::borrow::Cow<'a, str>, Fault> {
        let start = self.at;
        if !self.take(b'"') {
            return Err(Fault::new(start, "a text in quotes"));
        }
        let mut text = String::new();
        loop {
            let from = self.at;
            let Some(length) = memchr::memchr2(b'"', b'\\', self.rest().as_bytes()) else {
                return Err(Fault::new(start, "a closing quote"));
            };
            self.at += length;
            let part = self.since(from);
            if self.take(b'"') {
                if text.is_empty() {
                    return Ok(part.into());
                }
                text.push_str(part);
                return Ok(text.into());
            }
            text.push_str(part);
            text.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let wrong = || Fault::new(start, r#"`\"`, `\\`, `\n`, `\r`, `\t` or `\u{1f}`"#);
        self.at += 1;
        let letter = self.peek().ok_or_else(wrong)?;
        let character = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let digits = self.rest().strip_prefix("u{").ok_or_else(wrong)?;
                let (digits, _) = digits.split_once('}').ok_or_else(wrong)?;
                if digits.is_empty() || digits.len() > 6 || digits.starts_with('+') {
                    return Err(wrong());
                }
                let code = u32::from_str_radix(digits, 16).map_err(|_| wrong())?;
                self.at += digits.len() + "u{}".len();
                return char::from_u32(code).ok_or_else(wrong);
            }
            _ => return Err(wrong()),
        };
        self.at += 1;
        Ok(character)
    }
}

fn no_value(at: usize) -> Fault {
    Fault::new(at, "a value")
        .hint("text of other characters than letters, digits and `_-./` is quoted")
}

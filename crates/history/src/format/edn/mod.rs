//! EDN as a stream of forms in a window of bytes.
//!
//! Histories of Jepsen are hundreds of megabytes of short maps of which a few
//! fields matter, so nothing is built for what nobody asks for: a [`Scanner`]
//! either steps over a form or leaves it as flat [`Node`]s. It never recurses,
//! refuses forms nested deeper than [`DEPTH_MAX`], and tells a form that is wrong
//! from one that the window merely cuts off, which is tried again when the window
//! has grown.
//!
//! The notation is that of <https://github.com/edn-format/edn>, with what Clojure
//! prints beside it: ratios, `##NaN`, octal and hexadecimal escapes, `#:name{…}`.
//! Tolerated: repeated map keys and set members, any Unicode character above ASCII
//! in symbols, symbols with several slashes.

mod token;

use self::token::{Class, class, ends_plainly, leading_number, lowercase_end, spaced_numbers};
use super::form::{Bracket, Node, Span};
use super::number_list::number_list;

/// Forms inside one another.
pub(crate) const DEPTH_MAX: usize = 512;

/// Vectors inside one another that are read the fast way.
const PLAIN_DEPTH_MAX: usize = 4;

/// How nearly every tagged map of a history begins.
const RECORD: &[u8] = b"#jepsen.history.Op{";

/// Why a form could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The window ends inside the form.
    Incomplete,
    /// The bytes at this place of the window are not EDN.
    Malformed { at: usize, expected: &'static str },
}

/// A place in a window of EDN.
pub(crate) struct Scanner<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Whether the source ends where the window does.
    pub(super) ends: bool,
    /// Spans count from here.
    base: usize,
    /// Whether lists of numbers that were read are left as text.
    keeps_number_lists: bool,
    frames: Vec<Frame>,
}

/// A form that has begun and not ended.
#[derive(Clone, Copy)]
struct Frame {
    kind: FrameKind,
    /// How many nodes there were before it.
    node: usize,
    /// Where it begins.
    start: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Sequence(Bracket),
    /// A map in which a key still lacks its value.
    MapAfterKey,
    /// Waits for the form that the tag belongs to.
    Tag,
    /// Waits for the form to be left out.
    Discard,
}

impl<'a> Scanner<'a> {
    /// A scanner at the beginning of `bytes`. `ends` tells whether the source
    /// ends where they do.
    pub(crate) fn new(bytes: &'a [u8], ends: bool) -> Self {
        Scanner { bytes, at: 0, ends, base: 0, keeps_number_lists: false, frames: Vec::new() }
    }

    /// The same, and lists of numbers in operations such as `[:r 1 [2 3]]` become
    /// [`Node::Numbers`].
    pub(crate) fn with_number_lists(mut self) -> Self {
        self.keeps_number_lists = true;
        self
    }

    /// Where in the window the scanner is.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Spans of nodes count from here on.
    pub(crate) fn rebase(&mut self) {
        self.base = self.at;
    }

    /// Steps over `count` bytes that the caller has looked at.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.at += count;
    }

    /// The window from the scanner on.
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Steps over blanks, comments and discarded forms; the byte that the next
    /// form begins with, or `None` at the end of the window.
    #[inline]
    pub(crate) fn blank(&mut self) -> Result<Option<u8>, Stop> {
        loop {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Ok(None);
            };
            match class(byte) {
                Class::Blank => self.at += 1,
                Class::Comment => self.comment()?,
                Class::Hash if self.bytes.get(self.at + 1) == Some(&b'_') => {
                    self.at += 2;
                    self.skip()?;
                }
                _ => return Ok(Some(byte)),
            }
        }
    }

    /// Steps over the next form.
    pub(crate) fn skip(&mut self) -> Result<(), Stop> {
        self.walk::<false>(&mut Vec::new())
    }

    /// Adds the next form to `nodes`.
    #[inline]
    pub(crate) fn form(&mut self, nodes: &mut Vec<Node>) -> Result<(), Stop> {
        if self.bytes.get(self.at) == Some(&b'[') && self.plain_vector(nodes) {
            return Ok(());
        }
        self.walk::<true>(nodes)
    }

    /// Adds the vector that the scanner stands on if it holds nothing but vectors,
    /// natural numbers, `nil` and short keywords, as nearly every value of a
    /// history does; else leaves everything as it was and returns `false`.
    fn plain_vector(&mut self, nodes: &mut Vec<Node>) -> bool {
        let first_node = nodes.len();
        let bytes = self.bytes;
        let mut at = self.at;
        let mut open = [0; PLAIN_DEPTH_MAX];
        let mut depth = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b' ' | b',' => at += 1,
                b'0'..=b'9' => {
                    at = spaced_numbers(bytes, at, |number| nodes.push(Node::Int(number)));
                    if !bytes.get(at).is_some_and(u8::is_ascii_digit) {
                        continue;
                    }
                    let (number, end) = leading_number(bytes, at);
                    let is_plain = bytes[at] != b'0' || end == at + 1;
                    match bytes.get(end) {
                        Some(b' ') if is_plain => at = end + 1,
                        Some(b']' | b',') if is_plain => at = end,
                        _ => break,
                    }
                    nodes.push(Node::Int(number));
                }
                b'[' if depth < PLAIN_DEPTH_MAX => {
                    let operation = depth.checked_sub(1).map_or(nodes.len(), |last| open[last]);
                    if let Some((length, count)) = self.number_list(at, &nodes[operation..]) {
                        nodes.push(Node::Numbers(self.span(at + 1, at + 1 + length), count));
                        at += length + 2;
                        continue;
                    }
                    open[depth] = nodes.len();
                    depth += 1;
                    nodes.push(Node::Open(Bracket::Vector, 1));
                    at += 1;
                    if let Some(length) = common_name(&bytes[at..]) {
                        nodes.push(Node::Keyword(self.span(at + 1, at + 1 + length)));
                        at += length + 2;
                    }
                }
                b']' => {
                    depth -= 1;
                    let node = open[depth];
                    nodes[node] = Node::Open(Bracket::Vector, (nodes.len() - node) as u32);
                    at += 1;
                    if depth == 0 {
                        self.at = at;
                        return true;
                    }
                }
                b':' => {
                    let end = lowercase_end(bytes, at + 1);
                    if end == at + 1 || !ends_plainly(bytes, end) {
                        break;
                    }
                    nodes.push(Node::Keyword(self.span(at + 1, end)));
                    at = end;
                }
                b'n' if bytes[at..].starts_with(b"nil") && ends_plainly(bytes, at + 3) => {
                    nodes.push(Node::Nil);
                    at += 3;
                }
                _ => break,
            }
        }
        nodes.truncate(first_node);
        false
    }

    /// The length and number of a list of numbers that begins at `at`, if it is what the
    /// operation whose nodes these are has read.
    #[inline]
    fn number_list(&self, at: usize, operation: &[Node]) -> Option<(usize, u32)> {
        let is_read = match *operation {
            [Node::Open(..), Node::Keyword(Span { length: 1, .. }), _] => self.keeps_number_lists,
            _ => false,
        };
        if is_read { number_list(&self.bytes[at + 1..]) } else { None }
    }

    /// The next form if it is a leaf; a sequence becomes its notation.
    #[inline]
    pub(crate) fn leaf(&mut self) -> Result<Node, Stop> {
        let Some(byte) = self.blank()? else {
            return Err(Stop::Incomplete);
        };
        match class(byte) {
            Class::Digit => self.digits(),
            Class::Open | Class::Close | Class::Hash => {
                let start = self.at;
                self.skip()?;
                Ok(Node::Other(self.span(start, self.at)))
            }
            other => self.plain_leaf(other),
        }
    }

    /// The keyword that the scanner stands on, without its colon; `None` if it
    /// stands on something else.
    #[inline]
    pub(crate) fn keyword(&mut self) -> Result<Option<&'a [u8]>, Stop> {
        if self.bytes.get(self.at) != Some(&b':') {
            return Ok(None);
        }
        let start = self.at;
        self.keyword_end()?;
        Ok(Some(&self.bytes[start + 1..self.at]))
    }

    /// Steps over the opening brace of a map and the tag before it, if any;
    /// `false` if the scanner stands on something else.
    pub(crate) fn enter_map(&mut self) -> Result<bool, Stop> {
        if self.rest().starts_with(RECORD) {
            self.at += RECORD.len();
            return Ok(true);
        }
        if self.bytes.get(self.at) == Some(&b'#') && self.bytes.get(self.at + 1) != Some(&b'{') {
            self.at += 1;
            self.token()?;
            if self.blank()?.is_none() {
                return Err(Stop::Incomplete);
            }
        }
        if self.bytes.get(self.at) != Some(&b'{') {
            return Ok(false);
        }
        self.at += 1;
        Ok(true)
    }

    fn walk<const KEEP: bool>(&mut self, nodes: &mut Vec<Node>) -> Result<(), Stop> {
        self.frames.clear();
        loop {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(Stop::Incomplete);
            };
            match class(byte) {
                Class::Blank => {
                    self.at += 1;
                    continue;
                }
                Class::Comment => {
                    self.comment()?;
                    continue;
                }
                Class::Open => {
                    let bracket = match byte {
                        b'[' => Bracket::Vector,
                        b'(' => Bracket::List,
                        _ => Bracket::Map,
                    };
                    self.open::<KEEP>(bracket, 1, nodes)?;
                    continue;
                }
                Class::Close => self.close::<KEEP>(byte, nodes)?,
                Class::Hash => match self.dispatch::<KEEP>(nodes)? {
                    None => continue,
                    Some(leaf) => push::<KEEP>(nodes, leaf),
                },
                other => {
                    let leaf = self.plain_leaf(other)?;
                    push::<KEEP>(nodes, leaf);
                }
            }
            if self.is_whole::<KEEP>(nodes) {
                return Ok(());
            }
        }
    }

    /// A form has ended: whether it was the one asked for.
    #[inline]
    fn is_whole<const KEEP: bool>(&mut self, nodes: &mut Vec<Node>) -> bool {
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return true;
            };
            match frame.kind {
                FrameKind::Sequence(Bracket::Map) => frame.kind = FrameKind::MapAfterKey,
                FrameKind::MapAfterKey => frame.kind = FrameKind::Sequence(Bracket::Map),
                FrameKind::Sequence(_) => {}
                FrameKind::Tag => {
                    let frame = *frame;
                    self.frames.pop();
                    if KEEP {
                        nodes.truncate(frame.node);
                        nodes.push(Node::Other(self.span(frame.start, self.at)));
                    }
                    continue;
                }
                FrameKind::Discard => {
                    nodes.truncate(frame.node);
                    self.frames.pop();
                }
            }
            return false;
        }
    }

    #[inline]
    fn enter(&mut self, kind: FrameKind, node: usize) -> Result<(), Stop> {
        if self.frames.len() == DEPTH_MAX {
            return Err(self.wrong("at most 512 forms inside one another"));
        }
        self.frames.push(Frame { kind, node, start: self.at });
        Ok(())
    }

    #[inline]
    fn open<const KEEP: bool>(
        &mut self,
        bracket: Bracket,
        length: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), Stop> {
        self.enter(FrameKind::Sequence(bracket), nodes.len())?;
        self.at += length;
        push::<KEEP>(nodes, Node::Open(bracket, 1));
        Ok(())
    }

    #[inline]
    fn close<const KEEP: bool>(&mut self, byte: u8, nodes: &mut [Node]) -> Result<(), Stop> {
        let frame = self.frames.last();
        let closer = match frame.map(|frame| frame.kind) {
            Some(FrameKind::Sequence(Bracket::Vector)) => b']',
            Some(FrameKind::Sequence(Bracket::List)) => b')',
            Some(FrameKind::Sequence(Bracket::Set | Bracket::Map)) => b'}',
            Some(FrameKind::MapAfterKey) => return Err(self.wrong("a value for the last key")),
            Some(FrameKind::Tag | FrameKind::Discard) | None => return Err(self.wrong("a form")),
        };
        if byte != closer {
            return Err(self.wrong(match closer {
                b']' => "a form or `]`",
                b')' => "a form or `)`",
                _ => "a form or `}`",
            }));
        }
        self.at += 1;
        let node = frame.map_or(0, |frame| frame.node);
        if KEEP {
            let spans = (nodes.len() - node) as u32;
            if let Node::Open(bracket, _) = nodes[node] {
                nodes[node] = Node::Open(bracket, spans);
            }
        }
        self.frames.pop();
        Ok(())
    }

    /// What begins with `#`: a leaf, or the beginning of something longer.
    fn dispatch<const KEEP: bool>(&mut self, nodes: &mut Vec<Node>) -> Result<Option<Node>, Stop> {
        let Some(&next) = self.bytes.get(self.at + 1) else {
            return Err(self.cut_off("a tag, a set or a discarded form"));
        };
        match next {
            b'{' => self.open::<KEEP>(Bracket::Set, 2, nodes)?,
            b'_' => {
                self.enter(FrameKind::Discard, nodes.len())?;
                self.at += 2;
            }
            b'#' => {
                let start = self.at;
                self.at += 2;
                let name = self.token()?;
                if ![&b"Inf"[..], b"-Inf", b"NaN"].contains(&name) {
                    self.at = start;
                    return Err(self.wrong("`##Inf`, `##-Inf` or `##NaN`"));
                }
                return Ok(Some(Node::Other(self.span(start, self.at))));
            }
            b':' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => {
                self.enter(FrameKind::Tag, nodes.len())?;
                self.at += 1;
                self.token()?;
                if next == b':' && self.bytes.get(self.at) != Some(&b'{') {
                    return Err(self.cut_off("the map that the namespace belongs to"));
                }
            }
            _ => return Err(self.wrong("a tag, a set or a discarded form")),
        }
        Ok(None)
    }

    fn comment(&mut self) -> Result<(), Stop> {
        match memchr::memchr(b'\n', &self.bytes[self.at..]) {
            Some(length) => self.at += length + 1,
            None if self.ends => self.at = self.bytes.len(),
            None => return Err(Stop::Incomplete),
        }
        Ok(())
    }

    #[inline]
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        Span { start: (start - self.base) as u32, length: (end - start) as u32 }
    }

    /// The error of something else than `expected` at the scanner's place.
    pub(crate) fn wrong(&self, expected: &'static str) -> Stop {
        Stop::Malformed { at: self.at, expected }
    }

    /// The error of a window that ends here: more may come, unless the source ends.
    pub(super) fn cut_off(&self, expected: &'static str) -> Stop {
        if self.ends || self.at + 1 < self.bytes.len() {
            self.wrong(expected)
        } else {
            Stop::Incomplete
        }
    }
}

/// The length of the name, if it is one of the two that open most vectors of a history.
#[inline]
fn common_name(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b':', b'r', b' ', ..] => Some(1),
        [b':', b'a', b'p', b'p', b'e', b'n', b'd', b' ', ..] => Some(6),
        _ => None,
    }
}

#[inline]
fn push<const KEEP: bool>(nodes: &mut Vec<Node>, node: Node) {
    if KEEP {
        nodes.push(node);
    }
}

#[cfg(test)]
mod tests;

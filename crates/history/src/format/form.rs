//! A form of EDN or JSON, flat: what a reader leaves for the one who understands it.
//!
//! Nodes stand in the order of the text. A sequence says how many nodes it
//! spans, itself included, so that stepping over a form is one addition and a
//! copy of a form is a copy of two slices. Text is named by its place in the
//! bytes it came from and decoded only when somebody asks.

use crate::value::{Value, Values};
use std::borrow::Cow;
use std::fmt::Write;

/// A place in the bytes that belong to a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) length: u32,
}

/// How a sequence is bracketed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    Vector,
    List,
    Set,
    Map,
}

impl Bracket {
    fn notation(self) -> (&'static str, char) {
        match self {
            Bracket::Vector => ("[", ']'),
            Bracket::List => ("(", ')'),
            Bracket::Set => ("#{", '}'),
            Bracket::Map => ("{", '}'),
        }
    }
}

/// A leaf, or the beginning of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Node {
    #[default]
    Nil,
    Int(i64),
    /// What stands between the quotes.
    Text(Span),
    /// The same, with escapes in it.
    EscapedText(Span),
    /// Without its colon.
    Keyword(Span),
    /// Anything else in its own notation, tagged forms whole.
    Other(Span),
    /// A vector of natural numbers, by the text between its brackets, one space between
    /// two, and how many they are. Only [`Scanner::with_number_lists`] makes them.
    ///
    /// [`Scanner::with_number_lists`]: super::edn::Scanner::with_number_lists
    Numbers(Span, u32),
    /// A sequence and how many nodes it spans, this one included.
    Open(Bracket, u32),
}

/// A form among the nodes and bytes it lies in.
#[derive(Clone, Copy)]
pub(crate) struct Form<'a> {
    nodes: &'a [Node],
    bytes: &'a [u8],
}

impl<'a> Form<'a> {
    /// The form that begins with the first of `nodes`; nil if there is none.
    #[inline]
    pub(crate) fn new(nodes: &'a [Node], bytes: &'a [u8]) -> Self {
        Form { nodes, bytes }
    }

    #[inline]
    pub(crate) fn node(self) -> Node {
        self.nodes.first().copied().unwrap_or_default()
    }

    pub(crate) fn is_nil(self) -> bool {
        self.node() == Node::Nil
    }

    /// The members of a sequence (of a map: key, value, key, value); nothing for
    /// a leaf.
    #[inline]
    pub(crate) fn members(self) -> Members<'a> {
        let nodes = match self.node() {
            Node::Open(_, spans) => self.nodes.get(1..spans as usize).unwrap_or_default(),
            _ => &[],
        };
        Members { nodes, bytes: self.bytes }
    }

    /// Adds the values of the members of a sequence, most often small numbers.
    pub(crate) fn member_values(self, values: &mut Values, found: &mut Vec<Value>) {
        let mut members = self.members();
        let small = members.nodes.iter().map_while(|node| match *node {
            Node::Int(number) => u64::try_from(number).ok().and_then(Value::small),
            _ => None,
        });
        let before = found.len();
        found.extend(small);
        members.nodes = &members.nodes[found.len() - before..];
        found.extend(members.map(|member| member.value(values)));
    }

    /// Whether both are of one kind: two numbers, two vectors.
    pub(crate) fn is_like(self, other: Form<'_>) -> bool {
        std::mem::discriminant(&self.node()) == std::mem::discriminant(&other.node())
    }

    /// Whether it is a vector or list.
    #[inline]
    pub(crate) fn is_sequence(self) -> bool {
        matches!(self.node(), Node::Open(Bracket::Vector | Bracket::List, _) | Node::Numbers(..))
    }

    /// The text and number of a vector of natural numbers, if it was kept as one.
    #[inline]
    pub(crate) fn numbers(self) -> Option<(&'a [u8], u32)> {
        match self.node() {
            Node::Numbers(span, count) => Some((slice(self.bytes, span), count)),
            _ => None,
        }
    }

    pub(crate) fn is_map(self) -> bool {
        matches!(self.node(), Node::Open(Bracket::Map, _))
    }

    /// A keyword, or what JSON has in its place: a text.
    #[inline]
    pub(crate) fn word(self) -> Option<&'a [u8]> {
        match self.node() {
            Node::Keyword(span) | Node::Text(span) => Some(slice(self.bytes, span)),
            _ => None,
        }
    }

    /// The form as a value of a history: leaves as what they are, everything else
    /// in EDN notation.
    #[inline]
    pub(crate) fn value(self, values: &mut Values) -> Value {
        match self.node() {
            Node::Nil => Value::NIL,
            Node::Int(number) => match u64::try_from(number) {
                Ok(natural) => values.unsigned(natural),
                Err(_) => values.int(number),
            },
            _ => self.long_value(values),
        }
    }

    fn long_value(self, values: &mut Values) -> Value {
        match self.node() {
            Node::Nil => Value::NIL,
            Node::Int(number) => values.int(number),
            Node::Keyword(span) => values.keyword(&String::from_utf8_lossy(self.slice(span))),
            Node::Text(span) => values.text(&String::from_utf8_lossy(self.slice(span))),
            Node::EscapedText(span) => values.text(&unescaped(self.slice(span))),
            Node::Other(span) => {
                let notation = String::from_utf8_lossy(self.slice(span));
                match notation.trim_end_matches('N').parse::<u64>() {
                    Ok(number) => values.unsigned(number),
                    Err(_) => values.other(&notation),
                }
            }
            Node::Open(..) | Node::Numbers(..) => values.other(&self.notation()),
        }
    }

    /// The form in EDN, one space between members, whatever it was written like.
    pub(crate) fn notation(self) -> String {
        let mut out = String::new();
        let mut ends: Vec<(usize, char)> = Vec::new();
        let spans = match self.node() {
            Node::Open(_, spans) => spans as usize,
            _ => 1,
        };
        let mut is_first = true;
        for (index, &node) in self.nodes.iter().take(spans).enumerate() {
            while let Some(&(end, closer)) = ends.last()
                && end <= index
            {
                out.push(closer);
                ends.pop();
                is_first = false;
            }
            if !is_first {
                out.push(' ');
            }
            is_first = matches!(node, Node::Open(..));
            match node {
                Node::Open(bracket, spans) => {
                    let (opener, closer) = bracket.notation();
                    out.push_str(opener);
                    ends.push((index + spans as usize, closer));
                }
                leaf => self.write_leaf(&mut out, leaf),
            }
        }
        while let Some((_, closer)) = ends.pop() {
            out.push(closer);
        }
        if out.is_empty() {
            out.push_str("nil");
        }
        out
    }

    fn write_leaf(self, out: &mut String, leaf: Node) {
        match leaf {
            Node::Nil | Node::Open(..) => out.push_str("nil"),
            Node::Int(number) => out.push_str(&number.to_string()),
            Node::Text(span) => {
                out.push('"');
                out.push_str(&escaped(&String::from_utf8_lossy(self.slice(span))));
                out.push('"');
            }
            Node::EscapedText(span) => {
                out.push('"');
                out.push_str(&String::from_utf8_lossy(self.slice(span)));
                out.push('"');
            }
            Node::Keyword(span) => {
                out.push(':');
                out.push_str(&String::from_utf8_lossy(self.slice(span)));
            }
            Node::Other(span) => out.push_str(&String::from_utf8_lossy(self.slice(span))),
            Node::Numbers(span, _) => {
                out.push('[');
                out.push_str(&String::from_utf8_lossy(self.slice(span)));
                out.push(']');
            }
        }
    }

    fn slice(self, span: Span) -> &'a [u8] {
        slice(self.bytes, span)
    }
}

fn slice(bytes: &[u8], span: Span) -> &[u8] {
    let start = span.start as usize;
    bytes.get(start..start + span.length as usize).unwrap_or_default()
}

/// Goes over the members of a sequence.
#[derive(Clone)]
pub(crate) struct Members<'a> {
    nodes: &'a [Node],
    bytes: &'a [u8],
}

impl<'a> Iterator for Members<'a> {
    type Item = Form<'a>;

    #[inline]
    fn next(&mut self) -> Option<Form<'a>> {
        let spans = match self.nodes.first()? {
            Node::Open(_, spans) => *spans as usize,
            _ => 1,
        };
        let form = Form { nodes: self.nodes, bytes: self.bytes };
        self.nodes = self.nodes.get(spans.max(1)..).unwrap_or_default();
        Some(form)
    }
}

/// The text that an EDN string with escapes stands for. An escape that EDN does
/// not know stands for itself.
fn unescaped(raw: &[u8]) -> Cow<'_, str> {
    let raw = match String::from_utf8_lossy(raw) {
        Cow::Borrowed(text) if !text.contains('\\') => return Cow::Borrowed(text),
        text => text,
    };
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match rest.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('u') => {
                let digits: String = rest.clone().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                for _ in digits.chars() {
                    rest.next();
                }
                text.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(octal @ '0'..='7') => {
                let mut code = octal as u32 - '0' as u32;
                while let Some(digit) = rest.clone().next().and_then(|next| next.to_digit(8))
                    && code < 0o40
                {
                    code = code * 8 + digit;
                    rest.next();
                }
                text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(itself) => text.push(itself),
            None => {}
        }
    }
    Cow::Owned(text)
}

/// What an EDN string of this text has between its quotes.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(|character: char| character.is_control() || "\"\\".contains(character)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control.is_control() => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["", "plain", "a\"b\\c\nd\te\r", "\u{1b}[31m", "\u{85}ü"] {
            assert_eq!(unescaped(escaped(text).as_bytes()), text);
        }
        assert_eq!(unescaped(br"\u0041\101\b\f"), "AA\u{8}\u{c}");
    }
}

//! Data that a history keeps in their notation, taken apart.
//!
//! Maps, vectors and sets are single values to a history: most of them mean
//! something only to the test that recorded them. Who knows the test asks for the
//! [`Tree`] of such a value.

use crate::format::members_of;
use crate::value::Datum;

/// A datum with the data inside it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tree {
    /// Absent.
    Nil,
    /// An integer.
    Int(i128),
    /// Text.
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// A leaf of another kind, or a datum whose notation is no EDN.
    Other(String),
    /// A vector or a list.
    Sequence(Vec<Tree>),
    /// A set, in the order it was written in.
    Set(Vec<Tree>),
    /// A map: key, value, key, value.
    Map(Vec<(Tree, Tree)>),
}

impl Tree {
    /// The datum, taken apart as far as it goes.
    pub fn of(datum: Datum<'_>) -> Tree {
        match datum {
            Datum::Nil | Datum::Unknown => Tree::Nil,
            Datum::Int(number) => Tree::Int(number),
            Datum::Text(text) => Tree::Text(text.to_owned()),
            Datum::Keyword(word) => Tree::Keyword(word.to_owned()),
            Datum::Other(notation) => {
                members_of(notation).unwrap_or_else(|| Tree::Other(notation.to_owned()))
            }
        }
    }

    /// The members of a sequence or set.
    pub fn members(&self) -> Option<&[Tree]> {
        match self {
            Tree::Sequence(members) | Tree::Set(members) => Some(members),
            _ => None,
        }
    }
}

impl std::fmt::Display for Tree {
    /// As EDN writes it.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = |out: &mut std::fmt::Formatter<'_>, members: &[Tree]| {
            for (place, member) in members.iter().enumerate() {
                let blank = if place > 0 { " " } else { "" };
                write!(out, "{blank}{member}")?;
            }
            Ok(())
        };
        match self {
            Tree::Nil => out.write_str("nil"),
            Tree::Int(number) => write!(out, "{number}"),
            Tree::Text(text) => write!(out, "{text:?}"),
            Tree::Keyword(word) => write!(out, ":{word}"),
            Tree::Other(notation) => out.write_str(notation),
            Tree::Sequence(members) => {
                out.write_str("[")?;
                all(out, members)?;
                out.write_str("]")
            }
            Tree::Set(members) => {
                out.write_str("#{")?;
                all(out, members)?;
                out.write_str("}")
            }
            Tree::Map(pairs) => {
                out.write_str("{")?;
                for (place, (key, value)) in pairs.iter().enumerate() {
                    let comma = if place > 0 { ", " } else { "" };
                    write!(out, "{comma}{key} {value}")?;
                }
                out.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notation_is_taken_apart_to_the_leaves() {
        let tree = Tree::of(Datum::Other(r#"{0 10, :b [nil "a\"b" #{2}], 3.5 (-1)}"#));
        let leaf = |text: &str| Tree::Other(text.into());
        let inner = Tree::Sequence(vec![
            Tree::Nil,
            Tree::Text("a\"b".into()),
            Tree::Set(vec![Tree::Int(2)]),
        ]);
        let expected = Tree::Map(vec![
            (Tree::Int(0), Tree::Int(10)),
            (Tree::Keyword("b".into()), inner),
            (leaf("3.5"), Tree::Sequence(vec![Tree::Int(-1)])),
        ]);
        assert_eq!(tree, expected);
        assert_eq!(tree.to_string(), r#"{0 10, :b [nil "a\"b" #{2}], 3.5 [-1]}"#);
    }

    #[test]
    fn what_is_no_edn_stays_as_it_is() {
        for notation in ["[1", "1 2", "", "}", &"[".repeat(10_000)] {
            assert_eq!(Tree::of(Datum::Other(notation)), Tree::Other(notation.into()));
        }
    }
}

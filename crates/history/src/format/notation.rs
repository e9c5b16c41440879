//! The EDN notation in which a history keeps maps, vectors and sets, read again.

use super::edn::Scanner;
use super::form::{Bracket, Form, Node};
use crate::tree::Tree;
use crate::value::Datum;

/// What a notation says; `None` if it is not exactly one form of EDN.
pub(crate) fn members_of(notation: &str) -> Option<Tree> {
    let mut nodes = Vec::new();
    let mut scanner = Scanner::new(notation.as_bytes(), true);
    scanner.blank().ok()??;
    scanner.form(&mut nodes).ok()?;
    let is_all = scanner.blank().ok()?.is_none();
    (is_all && !nodes.is_empty()).then(|| tree(Form::new(&nodes, notation.as_bytes())))
}

/// Recursion ends where the scanner's limit on depth does.
fn tree(form: Form<'_>) -> Tree {
    match form.node() {
        Node::Open(Bracket::Map, _) => {
            let mut members = form.members();
            let mut pairs = Vec::new();
            while let (Some(key), Some(value)) = (members.next(), members.next()) {
                pairs.push((tree(key), tree(value)));
            }
            Tree::Map(pairs)
        }
        Node::Open(Bracket::Set, _) => Tree::Set(form.members().map(tree).collect()),
        Node::Open(_, _) => Tree::Sequence(form.members().map(tree).collect()),
        Node::Nil => Tree::Nil,
        Node::Int(number) => Tree::Int(number.into()),
        _ => leaf(form),
    }
}

fn leaf(form: Form<'_>) -> Tree {
    let mut values = crate::value::Values::default();
    let value = form.value(&mut values);
    match values.datum(value) {
        // A leaf is not taken apart again.
        Datum::Other(notation) => Tree::Other(notation.to_owned()),
        datum => Tree::of(datum),
    }
}

//! What a statement is, as far as a recording needs it: its tokens, its shape, its normal form.

mod lexer;
mod normal;
mod select;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use lexer::{Token, TokenKind, tokens};
pub(crate) use normal::{Statement, normalised};
pub(crate) use shape::{Shape, TableRef, Verb, shape, statements};

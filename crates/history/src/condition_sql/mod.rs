//! Conditions in SQL: which rows a `WHERE` finds, by a small evaluator.
//!
//! A condition is about the columns `key` and `value` and those that a row has beside them.
//! It is evaluated by the rules that databases agree on: three truth values, comparisons of
//! numbers with numbers and of text with text, `BETWEEN`, `IN`, `IS NULL`, `AND`, `OR`, `NOT`,
//! and `+ - * %` on integers of 64 bits. A row is found if the condition is true of it,
//! neither false nor unknown.
//!
//! **Choice.** Where databases differ (division, text beside numbers, results that do not
//! fit, the remainder by zero, `LIKE`), and for everything else that SQL has, the answer is that it
//! cannot be told. A wrong answer would accuse a database; no answer says so.

use crate::value::{Datum, Value, Values};
use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value as Literal};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Longer texts are not looked at, so that no tree is deep.
const TEXT_MAX: usize = 4096;
/// Conditions that are remembered, by thread.
const REMEMBERED_MAX: usize = 1024;

thread_local! {
    /// One condition is evaluated on many rows.
    static PARSED: RefCell<HashMap<String, Option<Rc<Node>>>> = RefCell::default();
}

/// A row that conditions are evaluated on.
pub(crate) struct Row<'a> {
    pub(crate) values: &'a Values,
    pub(crate) key: Value,
    pub(crate) value: Value,
    pub(crate) columns: &'a [(Value, Value)],
}

/// Whether a condition finds a row; `None` if that cannot be told.
pub(crate) fn holds(text: &str, row: &Row<'_>) -> Option<bool> {
    let parsed = PARSED.with_borrow_mut(|parsed| {
        if let Some(known) = parsed.get(text) {
            return known.clone();
        }
        if parsed.len() >= REMEMBERED_MAX {
            parsed.clear();
        }
        let fresh = parse(text).map(Rc::new);
        parsed.insert(text.to_owned(), fresh.clone());
        fresh
    });
    match parsed?.content(row)? {
        Content::Truth(truth) => Some(truth == Some(true)),
        Content::Null => Some(false),
        Content::Number(_) | Content::Text(_) => None,
    }
}

/// A condition, as far as it is understood.
enum Node {
    Column(String),
    Literal(Content),
    Not(Box<Node>),
    Minus(Box<Node>),
    IsNull(Box<Node>),
    All(Box<[Node; 2]>),
    Any(Box<[Node; 2]>),
    Compare(Comparison, Box<[Node; 2]>),
    Calculate(Calculation, Box<[Node; 2]>),
    In(Box<Node>, Vec<Node>),
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    Less,
    AtMost,
}

#[derive(Clone, Copy)]
enum Calculation {
    Add,
    Subtract,
    Multiply,
    Remainder,
}

/// What a part of a condition is for a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Null,
    Number(i64),
    Text(String),
    /// `None` is SQL's unknown.
    Truth(Option<bool>),
}

fn parse(text: &str) -> Option<Node> {
    if text.len() > TEXT_MAX {
        return None;
    }
    let mut parser = Parser::new(&GenericDialect {}).try_with_sql(text).ok()?;
    let expression = parser.parse_expr().ok()?;
    let is_whole = parser.peek_token().token == sqlparser::tokenizer::Token::EOF;
    if is_whole { node(&expression) } else { None }
}

/// The depth is bounded by the length of the text.
fn node(expression: &Expr) -> Option<Node> {
    let boxed = |inner: &Expr| node(inner).map(Box::new);
    let two = |left: &Expr, right: &Expr| Some(Box::new([node(left)?, node(right)?]));
    let not = |inner: Node, is_negated: bool| {
        if is_negated { Node::Not(Box::new(inner)) } else { inner }
    };
    Some(match expression {
        Expr::Nested(inner) => node(inner)?,
        Expr::Identifier(name) => column(name),
        Expr::CompoundIdentifier(parts) => column(parts.last()?),
        Expr::Value(value) => Node::Literal(literal(&value.value)?),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => Node::Not(boxed(expr)?),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => Node::Minus(boxed(expr)?),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => node(expr)?,
        Expr::IsNull(inner) => Node::IsNull(boxed(inner)?),
        Expr::IsNotNull(inner) => not(Node::IsNull(boxed(inner)?), true),
        Expr::Between { expr, negated, low, high } => {
            let low = Node::Compare(Comparison::AtMost, two(low, expr)?);
            let high = Node::Compare(Comparison::AtMost, two(expr, high)?);
            not(Node::All(Box::new([low, high])), *negated)
        }
        Expr::InList { expr, list, negated } => {
            let list = list.iter().map(node).collect::<Option<Vec<Node>>>()?;
            not(Node::In(boxed(expr)?, list), *negated)
        }
        Expr::BinaryOp { left, op, right } => match op {
            BinaryOperator::And => Node::All(two(left, right)?),
            BinaryOperator::Or => Node::Any(two(left, right)?),
            BinaryOperator::Eq => Node::Compare(Comparison::Equal, two(left, right)?),
            BinaryOperator::NotEq => not(Node::Compare(Comparison::Equal, two(left, right)?), true),
            BinaryOperator::Lt => Node::Compare(Comparison::Less, two(left, right)?),
            BinaryOperator::LtEq => Node::Compare(Comparison::AtMost, two(left, right)?),
            BinaryOperator::Gt => Node::Compare(Comparison::Less, two(right, left)?),
            BinaryOperator::GtEq => Node::Compare(Comparison::AtMost, two(right, left)?),
            BinaryOperator::Plus => Node::Calculate(Calculation::Add, two(left, right)?),
            BinaryOperator::Minus => Node::Calculate(Calculation::Subtract, two(left, right)?),
            BinaryOperator::Multiply => Node::Calculate(Calculation::Multiply, two(left, right)?),
            BinaryOperator::Modulo => Node::Calculate(Calculation::Remainder, two(left, right)?),
            _ => return None,
        },
        _ => return None,
    })
}

/// Names without quotes are the same in capitals.
fn column(name: &sqlparser::ast::Ident) -> Node {
    Node::Column(match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_ascii_lowercase(),
    })
}

fn literal(literal: &Literal) -> Option<Content> {
    Some(match literal {
        Literal::Number(digits, false) => Content::Number(digits.parse().ok()?),
        Literal::SingleQuotedString(text) => Content::Text(text.clone()),
        Literal::Boolean(truth) => Content::Truth(Some(*truth)),
        Literal::Null => Content::Null,
        _ => return None,
    })
}

impl Node {
    /// What it is for a row; `None` if that cannot be told.
    fn content(&self, row: &Row<'_>) -> Option<Content> {
        Some(match self {
            Node::Column(name) => row.column(name)?,
            Node::Literal(content) => content.clone(),
            Node::Not(inner) => Content::Truth(inner.truth(row)?.map(|truth| !truth)),
            Node::Minus(inner) => match inner.content(row)? {
                Content::Number(number) => Content::Number(number.checked_neg()?),
                Content::Null => Content::Null,
                _ => return None,
            },
            Node::IsNull(inner) => {
                let content = inner.content(row)?;
                Content::Truth(Some(matches!(content, Content::Null | Content::Truth(None))))
            }
            // Both sides are looked at: one that cannot be told may be an error.
            Node::All(two) => Content::Truth(match (two[0].truth(row)?, two[1].truth(row)?) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            }),
            Node::Any(two) => Content::Truth(match (two[0].truth(row)?, two[1].truth(row)?) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            }),
            Node::Compare(comparison, two) => {
                Content::Truth(compare(*comparison, &two[0].content(row)?, &two[1].content(row)?)?)
            }
            Node::Calculate(calculation, two) => {
                calculate(*calculation, &two[0].content(row)?, &two[1].content(row)?)?
            }
            Node::In(wanted, list) => {
                let wanted = wanted.content(row)?;
                let mut found = Some(false);
                for one in list {
                    match compare(Comparison::Equal, &wanted, &one.content(row)?)? {
                        Some(true) => found = Some(true),
                        None if found == Some(false) => found = None,
                        _ => {}
                    }
                }
                Content::Truth(found)
            }
        })
    }

    #[expect(clippy::option_option, reason = "SQL's truth has three values, and may not be told")]
    fn truth(&self, row: &Row<'_>) -> Option<Option<bool>> {
        match self.content(row)? {
            Content::Truth(truth) => Some(truth),
            Content::Null => Some(None),
            // Some databases take numbers for truth, others refuse them.
            Content::Number(_) | Content::Text(_) => None,
        }
    }
}

impl Row<'_> {
    fn column(&self, name: &str) -> Option<Content> {
        let named = |entry: &&(Value, Value)| match self.values.datum(entry.0) {
            Datum::Text(text) | Datum::Keyword(text) => text.eq_ignore_ascii_case(name),
            _ => false,
        };
        let value = match self.columns.iter().find(named) {
            Some(entry) => entry.1,
            None if name == "key" => self.key,
            None if name == "value" => self.value,
            None => return None,
        };
        Some(match self.values.datum(value) {
            Datum::Nil => Content::Null,
            Datum::Int(number) => Content::Number(i64::try_from(number).ok()?),
            Datum::Text(text) => Content::Text(text.to_owned()),
            _ => return None,
        })
    }
}

#[expect(clippy::option_option, reason = "SQL's truth has three values, and may not be told")]
fn compare(comparison: Comparison, left: &Content, right: &Content) -> Option<Option<bool>> {
    let order = match (left, right) {
        (Content::Null, _) | (_, Content::Null) => return Some(None),
        (Content::Number(left), Content::Number(right)) => left.cmp(right),
        (Content::Text(left), Content::Text(right)) => left.cmp(right),
        _ => return None,
    };
    Some(Some(match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::Less => order.is_lt(),
        Comparison::AtMost => order.is_le(),
    }))
}

fn calculate(calculation: Calculation, left: &Content, right: &Content) -> Option<Content> {
    let (left, right) = match (left, right) {
        (Content::Number(left), Content::Number(right)) => (*left, *right),
        (Content::Null, Content::Null | Content::Number(_))
        | (Content::Number(_), Content::Null) => {
            return Some(Content::Null);
        }
        _ => return None,
    };
    Some(Content::Number(match calculation {
        Calculation::Add => left.checked_add(right)?,
        Calculation::Subtract => left.checked_sub(right)?,
        Calculation::Multiply => left.checked_mul(right)?,
        Calculation::Remainder => left.checked_rem(right)?,
    }))
}

#[cfg(test)]
mod tests;

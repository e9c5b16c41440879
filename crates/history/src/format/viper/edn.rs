//! Viper's EDN logs: `{:type :ok :f :txn :value [[:r k v dead] [:w k v success] …]}`,
//! one transaction a line.
//!
//! The same operations as in [`super::json`], written as EDN. They differ from
//! Jepsen's in their flags: a read tells whether the row was dead, a write whether
//! it succeeded. A value may be a bare word of any characters, digits first.

use super::{Fields, ViperOp, ViperTxn};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError, excerpt};
use crate::format::{Format, Input, Sample, names};
use crate::value::{Value, Values};

pub(in crate::format) const FORMAT: Format =
    Format { name: "viper-edn", title: "Viper's logs in EDN", detect, read, write: None };

/// A transaction whose first operation has a flag, or is a range.
fn detect(sample: &Sample<'_>) -> bool {
    let line = sample.head.split(|&byte| byte == b'\n').next();
    let line = line.unwrap_or_default().trim_ascii();
    let Ok(form) = parse(line) else {
        return false;
    };
    let Some(Form::Vector(operations)) = form.field("value") else {
        return false;
    };
    let Some(Form::Vector(fields)) = operations.first() else {
        return false;
    };
    match fields.first() {
        Some(Form::Keyword("range")) => true,
        Some(Form::Keyword("r" | "w" | "i" | "d")) => {
            fields.len() >= 4 && matches!(fields.last(), Some(Form::Word("true" | "false")))
        }
        _ => false,
    }
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    super::read(input, builder, |line, values| {
        let form = parse(line.text);
        form.and_then(|form| txn(&form, values)).map_err(|(expected, found)| {
            ReadError::new(line.file, format!("expected {expected}, found {found}"))
                .at(Place::Line(line.number))
        })
    })
}

/// What was expected and what was found.
type Mismatch = (&'static str, String);

fn txn(form: &Form<'_>, values: &mut Values) -> Result<ViperTxn, Mismatch> {
    match (form.field("type"), form.field("f")) {
        (Some(Form::Keyword("ok")), Some(Form::Keyword("txn"))) => {}
        _ => return Err(("`:type :ok :f :txn`", form.summary())),
    }
    let Some(Form::Vector(fields)) = form.field("value") else {
        return Err(("a vector of operations under `:value`", form.summary()));
    };
    let operations = fields
        .iter()
        .map(|form| {
            let expected = "an operation [:r|:w|:i|:d|:range …] with its flags";
            operation(form, values).ok_or_else(|| (expected, form.summary()))
        })
        .collect::<Result<_, _>>()?;
    Ok(ViperTxn { times: None, operations, initial: false })
}

fn operation(form: &Form<'_>, values: &mut Values) -> Option<ViperOp> {
    let Form::Vector(fields) = form else {
        return None;
    };
    super::operation(fields, values)
}

impl Fields for Vec<Form<'_>> {
    fn tag(&self) -> Option<&str> {
        match self.first() {
            Some(Form::Keyword(tag)) => Some(tag),
            _ => None,
        }
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn datum(&self, index: usize, values: &mut Values) -> Option<Value> {
        self.get(index)?.value(values)
    }

    fn flag(&self, index: usize) -> Option<bool> {
        match self.get(index) {
            None | Some(Form::Word("true")) => Some(true),
            Some(Form::Word("false")) => Some(false),
            Some(_) => None,
        }
    }

    fn rows(&self, index: usize, values: &mut Values) -> Option<Vec<(Value, Value)>> {
        let Form::Vector(rows) = self.get(index)? else {
            return None;
        };
        rows.iter()
            .map(|row| Some((row.field("id")?.value(values)?, row.field("val")?.value(values)?)))
            .collect()
    }
}

/// As much of EDN as these logs use.
#[derive(Debug, PartialEq, Eq)]
enum Form<'l> {
    Keyword(&'l str),
    /// A number, symbol, boolean or nil.
    Word(&'l str),
    Text(&'l str),
    Vector(Vec<Form<'l>>),
    /// Keys and values in turn.
    Map(Vec<Form<'l>>),
}

impl<'l> Form<'l> {
    fn field(&self, name: &str) -> Option<&Form<'l>> {
        let Form::Map(entries) = self else {
            return None;
        };
        entries.chunks_exact(2).find(|entry| entry[0] == Form::Keyword(name)).map(|entry| &entry[1])
    }

    fn value(&self, values: &mut Values) -> Option<Value> {
        match *self {
            Form::Word("nil") | Form::Text("nil") => Some(Value::NIL),
            Form::Word("true" | "false") | Form::Vector(_) | Form::Map(_) => None,
            Form::Word(word) => Some(names::number_or_text(values, word)),
            Form::Text(text) => Some(values.text(text)),
            Form::Keyword(word) => Some(values.keyword(word)),
        }
    }

    fn summary(&self) -> String {
        match *self {
            Form::Keyword(word) => excerpt(format!(":{word}").as_bytes()),
            Form::Word(word) | Form::Text(word) => excerpt(word.as_bytes()),
            Form::Vector(ref forms) => format!("a vector of {} forms", forms.len()),
            Form::Map(ref entries) => format!("a map of {} entries", entries.len() / 2),
        }
    }
}

const DEPTH_MAX: usize = 16;

/// The one form of a line.
fn parse(line: &[u8]) -> Result<Form<'_>, Mismatch> {
    let text = std::str::from_utf8(line).map_err(|_| ("UTF-8", excerpt(line)))?;
    let mut rest = text;
    // Forms that are open, innermost last.
    let mut open: Vec<Form<'_>> = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let Some(first) = rest.chars().next() else {
            return Err(("the end of the form", "the end of the line".into()));
        };
        let complete = match first {
            '[' | '{' => {
                if open.len() == DEPTH_MAX {
                    return Err(("forms less deep", excerpt(rest.as_bytes())));
                }
                open.push(match first {
                    '[' => Form::Vector(Vec::new()),
                    _ => Form::Map(Vec::new()),
                });
                rest = &rest[1..];
                continue;
            }
            ']' | '}' => {
                let closed = open.pop();
                let fits = match &closed {
                    Some(Form::Vector(_)) => first == ']',
                    Some(Form::Map(entries)) => first == '}' && entries.len() % 2 == 0,
                    _ => false,
                };
                let Some(closed) = closed.filter(|_| fits) else {
                    return Err(("a form that matches its brackets", excerpt(rest.as_bytes())));
                };
                rest = &rest[1..];
                closed
            }
            _ => {
                let (form, after) = atom(rest)?;
                rest = after;
                form
            }
        };
        match open.last_mut() {
            Some(Form::Vector(forms) | Form::Map(forms)) => forms.push(complete),
            _ if rest.trim().is_empty() => return Ok(complete),
            _ => return Err(("one form on the line", excerpt(rest.as_bytes()))),
        }
    }
}

/// The word, keyword or text at the beginning, and what follows it.
fn atom(text: &str) -> Result<(Form<'_>, &str), Mismatch> {
    if let Some(inside) = text.strip_prefix('"') {
        // The recorder escapes nothing.
        return match inside.split_once('"') {
            Some((content, after)) => Ok((Form::Text(content), after)),
            None => Err(("`\"` at the end of a text", excerpt(text.as_bytes()))),
        };
    }
    let delimiter = |c: char| c.is_whitespace() || "[]{}(),\"".contains(c);
    let (word, after) = text.split_at(text.find(delimiter).unwrap_or(text.len()));
    if word.is_empty() {
        return Err(("a form", excerpt(text.as_bytes())));
    }
    Ok(match word.strip_prefix(':') {
        Some(keyword) => (Form::Keyword(keyword), after),
        None => (Form::Word(word), after),
    })
}

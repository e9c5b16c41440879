//! Lines of a Jepsen history in EDN or JSON, piece by piece.

use crate::format::WriteError;
use crate::format::edn::Scanner;
use crate::format::form::escaped;
use crate::value::Datum;

/// The two notations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    Edn,
    Json,
}

/// A line being written.
pub(super) struct Line {
    text: String,
    notation: Notation,
    /// Whether the next piece is the first after an opening bracket or a name.
    is_first: bool,
}

impl Line {
    pub(super) fn new(notation: Notation) -> Self {
        Line { text: String::new(), notation, is_first: true }
    }

    /// Begins a line with its type and function.
    pub(super) fn begin(&mut self, step: &str, function: &str) {
        self.text.clear();
        self.text.push('{');
        self.field("type");
        self.word(step);
        self.field("f");
        self.word(function);
    }

    /// Begins a line with its type and a function of any name.
    pub(super) fn begin_call(&mut self, step: &str, function: &str) -> Result<(), WriteError> {
        if self.notation == Notation::Edn && !is_keyword(function) {
            return Err(inexpressible("EDN", Datum::Keyword(function)));
        }
        self.begin(step, function);
        Ok(())
    }

    /// Ends the line; the whole of it.
    pub(super) fn end(&mut self) -> &str {
        self.text.push_str("}\n");
        &self.text
    }

    /// The name of a field; its value follows.
    pub(super) fn field(&mut self, name: &str) {
        let first = self.text == "{";
        self.is_first = true;
        match self.notation {
            Notation::Edn => {
                self.text.push_str(if first { ":" } else { ", :" });
                self.text.push_str(name);
                self.text.push(' ');
            }
            Notation::Json => {
                self.text.push_str(if first { "\"" } else { ",\"" });
                self.text.push_str(name);
                self.text.push_str("\":");
            }
        }
    }

    pub(super) fn number(&mut self, name: &str, number: i128) {
        self.field(name);
        self.separate();
        self.text.push_str(&number.to_string());
    }

    pub(super) fn open(&mut self) {
        self.separate();
        self.text.push('[');
        self.is_first = true;
    }

    pub(super) fn close(&mut self) {
        self.text.push(']');
        self.is_first = false;
    }

    pub(super) fn open_map(&mut self) {
        self.separate();
        self.text.push('{');
        self.is_first = true;
    }

    pub(super) fn close_map(&mut self) {
        self.text.push('}');
        self.is_first = false;
    }

    /// The key of a map's next entry.
    pub(super) fn entry(&mut self, key: Datum<'_>) -> Result<(), WriteError> {
        match (self.notation, key) {
            (Notation::Edn, key) => self.datum(key),
            (Notation::Json, Datum::Int(number)) => {
                self.separate();
                self.text.push('"');
                self.text.push_str(&number.to_string());
                self.text.push_str("\":");
                self.is_first = true;
                Ok(())
            }
            (Notation::Json, Datum::Text(text)) if text.parse::<i64>().is_err() => {
                self.datum(key)?;
                self.text.push(':');
                self.is_first = true;
                Ok(())
            }
            (Notation::Json, other) => Err(inexpressible("a key of a JSON object", other)),
        }
    }

    /// A keyword of the notation itself.
    pub(super) fn word(&mut self, word: &str) {
        self.separate();
        match self.notation {
            Notation::Edn => {
                self.text.push(':');
                self.text.push_str(word);
            }
            Notation::Json => self.push_json_text(word),
        }
    }

    pub(super) fn nil(&mut self) {
        self.separate();
        self.text.push_str(match self.notation {
            Notation::Edn => "nil",
            Notation::Json => "null",
        });
    }

    /// A datum that must come back as it was.
    pub(super) fn datum(&mut self, datum: Datum<'_>) -> Result<(), WriteError> {
        match datum {
            Datum::Nil => self.nil(),
            Datum::Int(number) => {
                self.separate();
                self.text.push_str(&number.to_string());
            }
            Datum::Text(text) => {
                self.separate();
                self.push_text(text);
            }
            Datum::Keyword(word) if self.notation == Notation::Edn && is_keyword(word) => {
                self.word(word);
            }
            Datum::Other(notation) if self.keeps(notation) => {
                self.separate();
                self.text.push_str(notation);
            }
            Datum::Unknown | Datum::Keyword(_) | Datum::Other(_) => {
                return Err(inexpressible(
                    match self.notation {
                        Notation::Edn => "EDN",
                        Notation::Json => "JSON",
                    },
                    datum,
                ));
            }
        }
        Ok(())
    }

    /// A datum that only people read: as text where the notation has no better.
    pub(super) fn any(&mut self, datum: Datum<'_>) {
        if self.datum(datum).is_err() {
            self.separate();
            match datum {
                Datum::Keyword(text) | Datum::Other(text) => self.push_text(text),
                other => self.push_text(&other.to_string()),
            }
        }
    }

    /// A small operation that is kept in its own notation.
    pub(super) fn mop_notation(&mut self, datum: Datum<'_>) -> Result<(), WriteError> {
        self.datum(datum)
    }

    /// Whether a notation would be read back as itself.
    fn keeps(&self, notation: &str) -> bool {
        match self.notation {
            Notation::Edn => {
                let mut scanner = Scanner::new(notation.as_bytes(), true);
                scanner.skip().is_ok() && scanner.rest().is_empty() && !notation.contains('\n')
            }
            Notation::Json => {
                matches!(notation, "true" | "false")
                    || (notation.parse::<f64>().is_ok()
                        && serde_json::from_str::<serde_json::Number>(notation)
                            .is_ok_and(|number| number.to_string() == notation))
            }
        }
    }

    fn separate(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.text.push(match self.notation {
                Notation::Edn => ' ',
                Notation::Json => ',',
            });
        }
    }

    fn push_text(&mut self, text: &str) {
        match self.notation {
            Notation::Edn => {
                self.text.push('"');
                self.text.push_str(&escaped(text));
                self.text.push('"');
            }
            Notation::Json => self.push_json_text(text),
        }
    }

    fn push_json_text(&mut self, text: &str) {
        self.text.push_str(&serde_json::Value::from(text).to_string());
    }
}

fn is_keyword(word: &str) -> bool {
    let text = format!(":{word}");
    let mut scanner = Scanner::new(text.as_bytes(), true);
    matches!(scanner.keyword(), Ok(Some(_))) && scanner.rest().is_empty()
}

fn inexpressible(notation: &str, datum: Datum<'_>) -> WriteError {
    WriteError::Inexpressible(format!("{datum} cannot be written in {notation}"))
}

//! Operations by condition in the text format.

use super::read::{Reader, close};
use super::scan::{Fault, Line, Scope};
use crate::history::OpKind;
use crate::predicate::{Aggregate, Condition, Function, Predicate, PredicateRow};
use crate::value::Value;

impl Reader<'_> {
    /// An operation by condition, behind its opening parenthesis.
    pub(super) fn predicate(
        &mut self,
        line: &mut Line<'_>,
        start: usize,
        kind: OpKind,
    ) -> Result<(), Fault> {
        line.spaces();
        let function =
            Function::ALL.into_iter().find(|function| starts_with_word(line, function.name()));
        if let Some(function) = function {
            line.take_text(function.name());
            line.spaces();
        }
        let condition = self.condition(line)?;
        let mut aggregate = None;
        if let Some(function) = function {
            line.spaces();
            let at = line.at();
            if !line.take_text("->") {
                return Err(Fault::new(at, "`->` and the result after the condition"));
            }
            line.spaces();
            aggregate = Some(Aggregate { function, result: self.value(line)? });
        }
        let mut rows = Vec::new();
        let mut kind = kind;
        let mut is_told = kind == OpKind::PredicateRead;
        for matched in [true, false] {
            line.spaces();
            if !line.take(b';') {
                break;
            }
            line.spaces();
            if matched && !is_told {
                is_told = takes_mark(line, "?");
                // One that changed nothing has only read.
                if takes_mark(line, "none") {
                    (is_told, kind) = (true, OpKind::PredicateRead);
                }
                line.spaces();
            }
            while !matches!(line.peek(), None | Some(b';' | b')')) {
                let name = self.value(line)?;
                let key = self.builder.key(name);
                line.punctuation(b'=', "`=` and the row's value after its key")?;
                let value = self.value(line)?;
                rows.push(PredicateRow { key, value, matched });
                line.spaces();
            }
        }
        is_told |= rows.iter().any(|row| row.matched);
        self.unlisted = (!is_told).then_some(start);
        self.builder.predicate(kind, Predicate { condition, rows, aggregate });
        close(line)
    }

    fn condition(&mut self, line: &mut Line<'_>) -> Result<Condition, Fault> {
        let start = line.at();
        let word = line.letters();
        let unknown = || {
            Fault::new(
                start,
                "`all`, `value = V`, `value mod M = R`, `value LOW..HIGH`, `key LOW..HIGH`, \
                 `column C LOW..HIGH` or `where \"TEXT\"`",
            )
        };
        if word == "all" {
            return Ok(Condition::All);
        }
        if !line.spaces() {
            return Err(unknown());
        }
        match word {
            "value" => self.condition_on_value(line),
            "key" => {
                let (low, high) = self.bounds(line)?;
                Ok(Condition::KeyRange { low, high })
            }
            "column" => {
                let column = self.value(line)?;
                line.spaces();
                let (low, high) = self.bounds(line)?;
                Ok(Condition::ColumnRange { column, low, high })
            }
            "where" => Ok(Condition::Notation(self.value(line)?)),
            _ => Err(unknown()),
        }
    }

    fn condition_on_value(&mut self, line: &mut Line<'_>) -> Result<Condition, Fault> {
        let at = line.at();
        if line.take_text("mod") && line.spaces() {
            let at = line.at();
            let modulus = line.natural()?;
            if modulus == 0 {
                return Err(Fault::new(at, "a divisor of at least 1"));
            }
            line.punctuation(b'=', "`=` and a remainder")?;
            let remainder = line.natural()?;
            return Ok(Condition::Modulo { modulus, remainder });
        }
        if line.take(b'=') {
            line.spaces();
            return Ok(Condition::Equals(self.value(line)?));
        }
        match self.bounds(line) {
            Ok((low, high)) => Ok(Condition::ValueRange { low, high }),
            Err(_) => Err(Fault::new(at, "`= V`, `mod M = R` or `LOW..HIGH`")),
        }
    }

    fn bounds(&mut self, line: &mut Line<'_>) -> Result<(Value, Value), Fault> {
        let low = line.value(self.builder.values(), Scope::Bound)?;
        line.dots()?;
        let high = line.value(self.builder.values(), Scope::Bound)?;
        Ok((low, high))
    }
}

fn starts_with_word(line: &Line<'_>, word: &str) -> bool {
    line.rest().strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// Takes a word that stands in place of rows.
fn takes_mark(line: &mut Line<'_>, mark: &str) -> bool {
    let behind = line.rest().strip_prefix(mark).map(str::trim_start);
    behind.is_some_and(|behind| behind.starts_with([';', ')'])) && line.take_text(mark)
}

//! One step of a template, and its notation.

use crate::request::{Filter, Request};
use std::fmt;

/// What a session does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins a transaction.
    Begin,
    /// Executes a request.
    Execute(Request),
    /// Commits.
    Commit,
    /// Takes the transaction back.
    Rollback,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Step::Execute(request) = self else {
            return out.write_str(match self {
                Step::Begin => "begin",
                Step::Commit => "commit",
                _ => "rollback",
            });
        };
        match *request {
            Request::Read { key } => write!(out, "read {key}"),
            Request::Write { key, value } => write!(out, "write {key} = {value}"),
            Request::ReadList { key } => write!(out, "read list {key}"),
            Request::Append { key, value } => write!(out, "append {value} to {key}"),
            Request::Insert { key, value } => write!(out, "insert {key} = {value}"),
            Request::Delete { key } => write!(out, "delete {key}"),
            Request::Range { low, high } => write!(out, "read {low} to {high}"),
            Request::CompareAndSet { key, expected: Some(expected), value } => {
                write!(out, "set {key} from {expected} to {value}")
            }
            Request::CompareAndSet { key, expected: None, value } => {
                write!(out, "set {key} from nothing to {value}")
            }
            Request::UpdateRange { low, high, first } => {
                write!(out, "update {low} to {high} from {first}")
            }
            Request::Select { filter: Filter::Values { low, high } } => {
                write!(out, "read rows with values from {low} to {high}")
            }
            Request::DeleteWhere { filter: Filter::Values { low, high } } => {
                write!(out, "delete rows with values from {low} to {high}")
            }
            ref other => write!(out, "{}", other.kind().name()),
        }
    }
}

/// Values of a template are below this.
const VALUES: u64 = 1000;

/// Reads `A.w(x,1)`: the session and the step. Keys are the letters `x`, `y`, `z` and `v`,
/// in this order from `first_key`. Values are those of no other keys, so that conditions on
/// them do not find the rows of others.
pub(super) fn parse(word: &str, first_key: u64) -> Option<(char, Step)> {
    let (session, rest) = word.split_once('.')?;
    let session = session.chars().next()?;
    let step = match rest {
        "begin" => Step::Begin,
        "commit" => Step::Commit,
        "abort" => Step::Rollback,
        _ => {
            let (verb, arguments) = rest.strip_suffix(')')?.split_once('(')?;
            let arguments: Vec<&str> = arguments.split(',').collect();
            let key = |place: usize| {
                let place = "xyzv".find(*arguments.get(place)?)?;
                Some(first_key + place as u64)
            };
            let number = |place: usize| {
                let value: u64 = arguments.get(place)?.parse().ok()?;
                (value < VALUES).then_some(first_key * VALUES + value)
            };
            let values = || Some(Filter::Values { low: number(0)?, high: number(1)? });
            Step::Execute(match verb {
                "r" => Request::Read { key: key(0)? },
                "w" => Request::Write { key: key(0)?, value: number(1)? },
                "l" => Request::ReadList { key: key(0)? },
                "a" => Request::Append { key: key(0)?, value: number(1)? },
                "i" => Request::Insert { key: key(0)?, value: number(1)? },
                "d" => Request::Delete { key: key(0)? },
                "q" => Request::Range { low: key(0)?, high: key(1)? },
                "s" => Request::Select { filter: values()? },
                "e" => Request::DeleteWhere { filter: values()? },
                "u" => Request::UpdateRange { low: key(0)?, high: key(1)?, first: number(2)? },
                "c" => Request::CompareAndSet {
                    key: key(0)?,
                    expected: Some(number(1)?),
                    value: number(2)?,
                },
                _ => return None,
            })
        }
    };
    Some((session, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_steps() {
        let shown = |word| parse(word, 8).map(|(session, step)| format!("{session} {step}"));
        assert_eq!(shown("A.begin").as_deref(), Some("A begin"));
        assert_eq!(shown("B.w(y,7)").as_deref(), Some("B write 9 = 8007"));
        assert_eq!(shown("C.q(x,v)").as_deref(), Some("C read 8 to 11"));
        assert_eq!(shown("C.c(x,1,2)").as_deref(), Some("C set 8 from 8001 to 8002"));
        let read = "C read rows with values from 8010 to 8019";
        assert_eq!(shown("C.s(10,19)").as_deref(), Some(read));
        for wrong in
            ["", "A.w(x,1000)", "A", "A.w", "A.w(x)", "A.w(k,1)", "A.w(x,y)", "A.z(x)", "A.r(x"]
        {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}

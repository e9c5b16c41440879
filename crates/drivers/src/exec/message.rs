//! Requests and answers as JSON.

use isolde_harness::{Answer, Failure, Filter, Request, RequestKind};
use serde_json::{Value, json};

/// What requests are called in messages.
pub(super) const NAMES: &[(RequestKind, &str)] = &[
    (RequestKind::Read, "read"),
    (RequestKind::Write, "write"),
    (RequestKind::ReadList, "read-list"),
    (RequestKind::Append, "append"),
    (RequestKind::Insert, "insert"),
    (RequestKind::Delete, "delete"),
    (RequestKind::Range, "range"),
    (RequestKind::CompareAndSet, "compare-and-set"),
    (RequestKind::UpdateRange, "update-range"),
    (RequestKind::Select, "select"),
    (RequestKind::Aggregate, "aggregate"),
    (RequestKind::UpdateWhere, "update-where"),
    (RequestKind::DeleteWhere, "delete-where"),
];

/// What a kind of request is called.
pub(super) fn name(kind: RequestKind) -> Option<&'static str> {
    NAMES.iter().find(|row| row.0 == kind).map(|row| row.1)
}

/// A request as a message.
pub(super) fn message(request: &Request) -> Result<Value, Failure> {
    let name = name(request.kind()).ok_or_else(|| Failure::unsupported(request))?;
    let mut message = match *request {
        Request::Read { key } | Request::ReadList { key } | Request::Delete { key } => {
            json!({ "key": key })
        }
        Request::Write { key, value }
        | Request::Append { key, value }
        | Request::Insert { key, value } => json!({ "key": key, "value": value }),
        Request::Range { low, high } => json!({ "low": low, "high": high }),
        Request::CompareAndSet { key, expected, value } => {
            json!({ "key": key, "expected": expected, "value": value })
        }
        Request::UpdateRange { low, high, first } => {
            json!({ "low": low, "high": high, "first": first })
        }
        Request::Select { filter } | Request::DeleteWhere { filter } => {
            json!({ "where": condition(filter) })
        }
        Request::Aggregate { function, filter } => {
            json!({ "function": function.name(), "where": condition(filter) })
        }
        Request::UpdateWhere { filter, first } => {
            json!({ "where": condition(filter), "first": first })
        }
        ref other => return Err(Failure::unsupported(other)),
    };
    message["do"] = name.into();
    Ok(message)
}

/// A condition with its two numbers.
fn condition(filter: Filter) -> Value {
    let numbers = filter.numbers();
    match filter {
        Filter::Keys { .. } => json!({ "keys": numbers }),
        Filter::Values { .. } => json!({ "values": numbers }),
        Filter::Remainder { .. } => json!({ "remainder": numbers }),
    }
}

/// The answer to a request.
pub(super) fn answer(request: &Request, found: &Value) -> Result<Answer, Failure> {
    let wrong = |expected: &str| {
        let name = name(request.kind()).unwrap_or_default();
        Failure::Refused(format!(
            "expected {expected} in the program's answer to {name}, found {found}"
        ))
    };
    Ok(match request.kind() {
        RequestKind::Read | RequestKind::Aggregate => match found.get("value") {
            Some(Value::Null) => Answer::Value(None),
            Some(value) => Answer::Value(Some(value.as_u64().ok_or_else(|| wrong("a value"))?)),
            None => return Err(wrong("a value")),
        },
        RequestKind::ReadList => {
            let elements = found.get("list").and_then(Value::as_array);
            let elements = elements.ok_or_else(|| wrong("a list"))?.iter().map(Value::as_u64);
            Answer::List(elements.collect::<Option<_>>().ok_or_else(|| wrong("a list"))?)
        }
        RequestKind::Insert | RequestKind::Delete | RequestKind::CompareAndSet => {
            let applied = found.get("applied").and_then(Value::as_bool);
            let there = found.get("found").filter(|_| request.kind() != RequestKind::Delete);
            match (applied.ok_or_else(|| wrong("whether it was applied"))?, there) {
                (false, Some(Value::Null)) => Answer::Found(None),
                (false, Some(value)) => {
                    Answer::Found(Some(value.as_u64().ok_or_else(|| wrong("a value found"))?))
                }
                (applied, _) => Answer::Applied(applied),
            }
        }
        RequestKind::Range
        | RequestKind::UpdateRange
        | RequestKind::Select
        | RequestKind::UpdateWhere
        | RequestKind::DeleteWhere => {
            let row = |row: &Value| match row.as_array().map(Vec::as_slice) {
                Some([key, value]) => key.as_u64().zip(value.as_u64()),
                _ => None,
            };
            let rows = found.get("rows").and_then(Value::as_array);
            let rows = rows.ok_or_else(|| wrong("rows"))?.iter().map(row);
            Answer::Rows(rows.collect::<Option<_>>().ok_or_else(|| wrong("rows"))?)
        }
        _ => Answer::Done,
    })
}

/// The failure that an answer tells, if it does.
pub(super) fn failure(found: &Value) -> Option<Failure> {
    let kind = found.get("failure")?.as_str().unwrap_or_default();
    let reason = found.get("reason").and_then(Value::as_str).unwrap_or("no reason given");
    let reason = reason.to_owned();
    Some(match kind {
        "aborted" => Failure::Aborted(reason),
        "unknown" => Failure::Unknown(reason),
        "lost" => Failure::Lost(reason),
        _ => Failure::Refused(reason),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_name_and_a_message() {
        for kind in RequestKind::ALL {
            assert!(name(kind).is_some(), "{}", kind.name());
        }
        let swap = Request::CompareAndSet { key: 1, expected: None, value: 2 };
        let expected = json!({ "do": "compare-and-set", "key": 1, "expected": null, "value": 2 });
        assert_eq!(message(&swap), Ok(expected));
    }

    #[test]
    fn answers_are_read_and_others_refused() {
        let read = Request::Read { key: 1 };
        assert_eq!(answer(&read, &json!({ "value": 5 })), Ok(Answer::Value(Some(5))));
        assert_eq!(answer(&read, &json!({ "value": null })), Ok(Answer::Value(None)));
        for wrong in [json!({}), json!({ "value": -1 }), json!({ "value": "5" }), json!(5)] {
            assert!(answer(&read, &wrong).is_err(), "{wrong}");
        }
        let range = Request::Range { low: 1, high: 3 };
        let rows = json!({ "rows": [[1, 5], [3, 6]] });
        assert_eq!(answer(&range, &rows), Ok(Answer::Rows(vec![(1, 5), (3, 6)])));
        assert!(answer(&range, &json!({ "rows": [[1]] })).is_err());
        let swap = Request::CompareAndSet { key: 1, expected: Some(5), value: 6 };
        for (told, expected) in [
            (json!({ "applied": true }), Answer::Applied(true)),
            (json!({ "applied": false }), Answer::Applied(false)),
            (json!({ "applied": false, "found": 7 }), Answer::Found(Some(7))),
            (json!({ "applied": false, "found": null }), Answer::Found(None)),
        ] {
            assert_eq!(answer(&swap, &told), Ok(expected), "{told}");
        }
        assert!(answer(&swap, &json!({ "applied": false, "found": "7" })).is_err());
    }

    #[test]
    fn failures_are_told() {
        let told = |text: &str| failure(&json!({ "failure": text, "reason": "why" }));
        assert_eq!(told("aborted"), Some(Failure::Aborted("why".into())));
        assert_eq!(told("unknown"), Some(Failure::Unknown("why".into())));
        assert_eq!(told("lost"), Some(Failure::Lost("why".into())));
        assert_eq!(told("else"), Some(Failure::Refused("why".into())));
        assert_eq!(failure(&json!({ "value": 1 })), None);
    }
}

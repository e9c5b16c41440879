//! Messages of etcd's gateway: keys and values are base64, numbers are texts.

use super::errors::lacks;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use isolde_harness::Failure;
use serde_json::{Value, json};

/// A key as etcd has it. Digits are padded, so that the order of keys is that of numbers.
pub(super) fn register(prefix: &str, key: u64) -> String {
    format!("{prefix}r{key:020}")
}

/// The key of a list.
pub(super) fn list(prefix: &str, key: u64) -> String {
    format!("{prefix}l{key:020}")
}

/// Reads one key.
pub(super) fn read(name: &str) -> Value {
    json!({ "key": BASE64_STANDARD.encode(name) })
}

/// Reads all keys from `first` up to and without `end`.
pub(super) fn read_range(first: &str, end: &str) -> Value {
    json!({ "key": BASE64_STANDARD.encode(first), "range_end": BASE64_STANDARD.encode(end) })
}

/// Writes a key, or removes it.
pub(super) fn change(name: &str, value: Option<&str>) -> Value {
    let key = BASE64_STANDARD.encode(name);
    match value {
        Some(value) => {
            json!({ "request_put": { "key": key, "value": BASE64_STANDARD.encode(value) } })
        }
        None => json!({ "request_delete_range": { "key": key } }),
    }
}

/// Requires that a key was last changed at this revision; 0 if it must not exist.
pub(super) fn unchanged(name: &str, revision: u64) -> Value {
    json!({
        "target": "MOD",
        "result": "EQUAL",
        "key": BASE64_STANDARD.encode(name),
        "mod_revision": revision.to_string(),
    })
}

/// Requires that no key of a range was changed after this revision.
pub(super) fn unchanged_range(first: &str, end: &str, revision: u64) -> Value {
    json!({
        "target": "MOD",
        "result": "LESS",
        "key": BASE64_STANDARD.encode(first),
        "range_end": BASE64_STANDARD.encode(end),
        "mod_revision": (revision + 1).to_string(),
    })
}

/// Requires that a key has this value.
pub(super) fn has_value(name: &str, value: &str) -> Value {
    json!({
        "target": "VALUE",
        "result": "EQUAL",
        "key": BASE64_STANDARD.encode(name),
        "value": BASE64_STANDARD.encode(value),
    })
}

/// One key that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) revision: u64,
}

/// The keys in the answer to a read.
pub(super) fn found(answer: &Value) -> Result<Vec<Found>, Failure> {
    let Some(rows) = answer.get("kvs") else { return Ok(Vec::new()) };
    let rows = rows.as_array().ok_or_else(|| lacks("keys"))?;
    let row = |row: &Value| {
        let text = |name: &str| {
            let encoded = row.get(name).and_then(Value::as_str).unwrap_or_default();
            let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| lacks("base64"))?;
            String::from_utf8(bytes).map_err(|_| lacks("text"))
        };
        Ok(Found {
            name: text("key")?,
            value: text("value")?,
            revision: number(row.get("mod_revision")).ok_or_else(|| lacks("a revision"))?,
        })
    };
    rows.iter().map(row).collect()
}

/// The revision of the whole store when an answer was made.
pub(super) fn revision(answer: &Value) -> Result<u64, Failure> {
    let header = answer.get("header").and_then(|header| header.get("revision"));
    number(header).ok_or_else(|| lacks("the store's revision"))
}

/// A number that is a text, as the gateway writes those of 64 bits.
pub(super) fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    }
}

/// The value of a register. What is no number shows as one that nobody wrote.
pub(super) fn value(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_order_of_their_numbers() {
        assert!(register("p_", 9) < register("p_", 10));
        assert!(register("p_", u64::MAX - 1) < register("p_", u64::MAX));
    }
}

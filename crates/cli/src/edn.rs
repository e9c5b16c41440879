//! A map as Elle returns it, in EDN: keys and names of anomalies and levels are keywords.

use serde_json::Value;
use std::fmt::Write;

/// The entries whose texts are names.
const NAMES: [&str; 2] = ["anomaly-types", "not"];
/// The entry that is a set.
const SET: &str = "not";

/// The value in EDN.
pub(crate) fn to_edn(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, false);
    out
}

fn write(out: &mut String, value: &Value, is_name: bool) {
    match value {
        Value::Null => out.push_str("nil"),
        Value::Bool(_) | Value::Number(_) => write!(out, "{value}").expect("a string grows"),
        Value::String(name) if is_name => write!(out, ":{name}").expect("a string grows"),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            separated(out, items.iter(), |out, item| write(out, item, is_name));
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            separated(out, entries.iter(), |out, (key, value)| {
                write!(out, ":{key} ").expect("a string grows");
                if key == SET && value.is_array() {
                    out.push('#');
                    let start = out.len();
                    write(out, value, true);
                    out.replace_range(start..=start, "{");
                    out.pop();
                    out.push('}');
                } else {
                    // The answer that nobody knows is a name as well.
                    let is_name = NAMES.contains(&key.as_str()) || key == "valid?";
                    write(out, value, is_name);
                }
            });
            out.push('}');
        }
    }
}

fn separated<T>(out: &mut String, items: impl Iterator<Item = T>, write: impl Fn(&mut String, T)) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push_str(", ");
        }
        write(out, item);
    }
}

/// EDN knows fewer escapes than JSON, and takes other characters as they are.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            hidden if hidden.is_control() => {
                write!(out, "\\u{:04x}", hidden as u32).expect("a string grows");
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_keywords_and_texts_are_quoted() {
        let map = json!({
            "anomaly-types": ["G1a"],
            "anomalies": {"G1a": ["A read \"x\"\nwhich nobody wrote"]},
            "not": ["read-committed", "read-atomic"],
            "read-count": 3,
            "valid?": false,
        });
        assert_eq!(
            to_edn(&map),
            "{:anomalies {:G1a [\"A read \\\"x\\\"\\nwhich nobody wrote\"]}, :anomaly-types [:G1a], \
             :not #{:read-committed, :read-atomic}, :read-count 3, :valid? false}"
        );
        assert_eq!(to_edn(&json!({"valid?": "unknown"})), "{:valid? :unknown}");
    }
}

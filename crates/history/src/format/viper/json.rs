//! Viper's JSON logs: a directory of `J*.log`, one transaction a line.
//!
//! `{"value": [operation, …]}`, before it perhaps four times and behind it whether
//! the transaction is the initial one. Operations: `["r", key, value, dead]`,
//! `["w", key, value, success]`, `["i", key, value, seen, dead, success]`, the same
//! with `d`, and `["range", low, high, [row, …], [dead row, …]]` with rows
//! `{"id": key, "val": value}`. What they mean is in [`super`].

use super::writer;
use super::{Fields, ViperTxn};
use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::format::json_stream::json_error;
use crate::format::{Format, Input, Sample, Writer, client_logs};
use crate::value::{Value, Values};
use serde::Deserialize;
use serde_json::Value as Json;

pub(in crate::format) const FORMAT: Format = Format {
    name: "viper-json",
    title: "Viper's logs in JSON (directory of J*.log)",
    detect,
    read,
    write: Some(Writer::Directory(writer::write)),
};

/// An object with `value` and without what Jepsen's operations have.
fn detect(sample: &Sample<'_>) -> bool {
    if client_logs::are_called(sample, 'J') {
        return true;
    }
    let line = sample.head.split(|&byte| byte == b'\n').next();
    let line = line.unwrap_or_default().trim_ascii();
    if !line.starts_with(b"{") {
        return false;
    }
    if line.len() == sample.head.len() {
        // Perhaps cut off: the recorder's own order of fields must do.
        let start = crate::format::json_stream::squeezed(line, 20);
        if start.starts_with(b"{\"value\":[[") || start.starts_with(b"{\"preBeginTS\":") {
            return true;
        }
    }
    match serde_json::from_slice::<Json>(line) {
        Ok(Json::Object(fields)) => {
            let jepsen = ["type", "f", "process"];
            fields.get("value").is_some_and(Json::is_array)
                && !jepsen.iter().any(|&name| fields.contains_key(name))
        }
        _ => false,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JsonTxn {
    #[serde(rename = "preBeginTS")]
    pre_begin: Option<i64>,
    #[serde(rename = "postBeginTS")]
    post_begin: Option<i64>,
    #[serde(rename = "preCommitTS")]
    pre_commit: Option<i64>,
    #[serde(rename = "postCommitTS")]
    post_commit: Option<i64>,
    value: Vec<Vec<Json>>,
    #[serde(default)]
    is_initial: bool,
}

fn read(input: Input<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    super::read(input, builder, |line, values| {
        let what = "a transaction of Viper";
        let json: JsonTxn = serde_json::from_slice(line.text)
            .map_err(|error| json_error(line.file, what, &error, line.number - 1))?;
        txn(json, values).map_err(|operation| {
            let expected = "an operation [\"r\"|\"w\"|\"i\"|\"d\"|\"range\", …]";
            let found = operation.to_string();
            ReadError::expected(line.file, Place::Line(line.number), expected, found.as_bytes())
        })
    })
}

/// The transaction, or the operation that is none.
fn txn(json: JsonTxn, values: &mut Values) -> Result<ViperTxn, Json> {
    let times = [json.pre_begin, json.post_begin, json.pre_commit, json.post_commit];
    let times = match times {
        [Some(invoked), Some(begun), Some(committing), Some(completed)] => {
            Some([invoked, begun, committing, completed])
        }
        _ => None,
    };
    let mut operations = Vec::with_capacity(json.value.len());
    for fields in json.value {
        match super::operation(&fields, values) {
            Some(operation) => operations.push(operation),
            None => return Err(Json::Array(fields)),
        }
    }
    Ok(ViperTxn { times, initial: json.is_initial, operations })
}

impl Fields for Vec<Json> {
    fn tag(&self) -> Option<&str> {
        self.first()?.as_str()
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn datum(&self, index: usize, values: &mut Values) -> Option<Value> {
        value(self.get(index)?, values)
    }

    fn flag(&self, index: usize) -> Option<bool> {
        self.get(index).map_or(Some(true), Json::as_bool)
    }

    fn rows(&self, index: usize, values: &mut Values) -> Option<Vec<(Value, Value)>> {
        let rows = self.get(index)?.as_array()?.iter();
        rows.map(|row| Some((value(row.get("id")?, values)?, value(row.get("val")?, values)?)))
            .collect()
    }
}

fn value(json: &Json, values: &mut Values) -> Option<Value> {
    match json {
        Json::Null => Some(Value::NIL),
        Json::String(text) if text == "nil" => Some(Value::NIL),
        Json::String(text) => Some(values.text(text)),
        Json::Number(number) => Some(match (number.as_u64(), number.as_i64()) {
            (Some(natural), _) => values.unsigned(natural),
            (_, Some(integer)) => values.int(integer),
            _ => values.other(&number.to_string()),
        }),
        Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
    }
}

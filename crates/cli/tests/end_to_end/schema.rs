//! The JSON of `isolde check` is what `docs/schema/report.schema.json` says.

use crate::support::{FRACTURED, Folder, GOOD};
use isolde::Level;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../../docs/schema/report.schema.json");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("a schema in JSON")
}

/// What is wrong with a value, one line each: place and reason. Knows the keywords
/// that our schema uses, and refuses to skip one it does not know.
pub(crate) fn mistakes(root: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let wrong = |reason: String| vec![format!("{place}: {reason}")];
        found.extend(match &**keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" => vec![],
            "$ref" => {
                let name = rule.as_str().and_then(|name| name.strip_prefix("#/$defs/"));
                let target = &root["$defs"][name.expect("a local reference")];
                mistakes(root, target, value, place)
            }
            "type" if has_type(rule, value) => vec![],
            "const" if rule == value => vec![],
            "type" | "const" => wrong(format!("expected {rule}, found {value}")),
            "enum" if rule.as_array().expect("an array").contains(value) => vec![],
            "enum" => wrong(format!("{value} is not one of {rule}")),
            "minimum" if value.as_f64() >= rule.as_f64() => vec![],
            "minimum" => wrong(format!("{value} is below {rule}")),
            "required" => required(rule, value, place),
            "items" => each(value.as_array().into_iter().flatten().enumerate(), |(at, item)| {
                mistakes(root, rule, item, &format!("{place}/{at}"))
            }),
            "properties" => each(rule.as_object().expect("an object"), |(name, rule)| {
                let member = value.get(name).into_iter();
                each(member, |member| mistakes(root, rule, member, &format!("{place}/{name}")))
            }),
            "propertyNames" => each(value.as_object().into_iter().flatten(), |(name, _)| {
                mistakes(root, rule, &json!(name), place)
            }),
            "additionalProperties" => {
                let known = |name: &String| schema["properties"].get(name).is_some();
                let others = value.as_object().into_iter().flatten();
                each(others.filter(|(name, _)| !known(name)), |(name, member)| match rule {
                    Value::Bool(false) => wrong(format!("{name} is not expected")),
                    rule => mistakes(root, rule, member, &format!("{place}/{name}")),
                })
            }
            unknown => panic!("the schema uses {unknown}, which is not understood here"),
        });
    }
    found
}

fn each<T>(items: impl IntoIterator<Item = T>, find: impl Fn(T) -> Vec<String>) -> Vec<String> {
    items.into_iter().flat_map(find).collect()
}

fn required(names: &Value, value: &Value, place: &str) -> Vec<String> {
    let names = names.as_array().expect("an array").iter().filter_map(Value::as_str);
    let missing = names.filter(|name| value.get(name).is_none());
    missing.map(|name| format!("{place}: {name} is missing")).collect()
}

fn has_type(name: &Value, value: &Value) -> bool {
    if let Some(names) = name.as_array() {
        return names.iter().any(|name| has_type(name, value));
    }
    match name.as_str().expect("one type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("the schema has the type {other}, which is not understood here"),
    }
}

fn report(folder: &Folder, arguments: &str) -> Value {
    let run = folder.isolde(&format!("check --format json {arguments}"));
    serde_json::from_str(&run.stdout).expect("JSON")
}

fn folder() -> Folder {
    Folder::with(&[
        ("good", GOOD),
        ("fractured", FRACTURED),
        ("aborted", "A: w(x,1) aborted\nB: r(x,1)\nC: w(y,1) unknown\n"),
        ("unread", "A: w(x,1)\nB: w(x,2)\n"),
        ("lists", "A: a(x,1)\nB: r(x,[1])\n"),
        ("repeated", "A: w(x,1)\nB: w(x,1)\nC: r(x,1)\n"),
    ])
}

#[test]
fn every_report_follows_the_schema() {
    let (schema, folder) = (schema(), folder());
    for arguments in [
        "good",
        "fractured",
        "aborted",
        "repeated",
        "good --level causal --timeout 0ms",
        "fractured --level serializable --level linearizable",
        "fractured --engine reference",
        "lists --without lists --without given",
        "fractured --without session --without real-time",
        "unread",
    ] {
        let report = report(&folder, arguments);
        assert_eq!(mistakes(&schema, &schema, &report, ""), [""; 0], "{arguments}");
    }
}

#[test]
fn several_histories_are_an_array_of_reports_even_if_one_cannot_be_read() {
    let (schema, folder) = (schema(), folder());
    folder.write("bad", b"A: w(");
    let reports = report(&folder, "good bad fractured");
    let [good, bad, other] = &reports.as_array().expect("an array")[..] else {
        panic!("expected three, found {reports}")
    };
    for report in [good, other] {
        assert_eq!(mistakes(&schema, &schema, report, ""), [""; 0]);
    }
    assert_eq!(mistakes(&schema, &schema["$defs"]["unreadable"], bad, ""), [""; 0]);
    assert_eq!(bad["file"], json!("bad"));
    assert_eq!(report(&folder, "bad"), *bad);
}

#[test]
fn the_schema_refuses_what_is_no_report() {
    let schema = schema();
    let good = report(&folder(), "fractured");
    let wrong = |change: fn(&mut Value)| {
        let mut changed = good.clone();
        change(&mut changed);
        mistakes(&schema, &schema, &changed, "").join("\n")
    };
    assert_eq!(wrong(|_| ()), "");
    assert_eq!(wrong(|report| report["schema"] = json!(1)), "/schema: expected 4, found 1");
    assert_eq!(
        wrong(|report| report["levels"]["causal"]["verdict"] = json!("fine")),
        "/levels/causal/verdict: \"fine\" is not one of [\"satisfied\",\"violated\",\"unknown\"]"
    );
    assert_eq!(
        wrong(|report| report["history"]["keys"] = json!(-1)),
        "/history/keys: -1 is below 0"
    );
    assert_eq!(
        wrong(|report| drop(report.as_object_mut().expect("an object").remove("strongest"))),
        ": strongest is missing"
    );
    assert_eq!(wrong(|report| report["more"] = json!(1)), ": more is not expected");
    assert_eq!(
        wrong(|report| report["levels"]["causal"]["anomalies"][0]["transactions"] = json!("A")),
        "/levels/causal/anomalies/0/transactions: expected \"array\", found \"A\""
    );
}

#[test]
fn the_schema_names_every_level() {
    let names: Vec<&str> = Level::ALL.iter().map(|level| level.name()).collect();
    assert_eq!(schema()["$defs"]["level-name"]["enum"], json!(names));
}

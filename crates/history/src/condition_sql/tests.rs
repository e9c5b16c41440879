//! Conditions find what they say.

use super::{Row, TEXT_MAX, holds};
use crate::value::{Value, Values};

/// Key 5, value 12, an age of 30, and nobody knows the name.
fn found(text: &str) -> Option<bool> {
    let mut values = Values::default();
    let [key, value, age] = [5, 12, 30].map(|number| values.unsigned(number));
    let columns = [(values.text("age"), age), (values.text("name"), Value::NIL)];
    holds(text, &Row { values: &values, key, value, columns: &columns })
}

#[test]
fn a_row_is_found_if_the_condition_is_true() {
    for text in [
        "value = 12",
        "key <> 4 and VALUE >= 12",
        "value between 10 and 12",
        "not (value in (1, 2, 3))",
        "age % 7 = 2",
        "value * 2 + 1 = 25",
        "-value < 0",
        "name is null",
        "t.age is not null",
        "age > 40 or `key` = 5",
        "\"value\" != 3",
    ] {
        assert_eq!(found(text), Some(true), "{text}");
    }
}

#[test]
fn a_row_is_not_found_if_the_condition_is_false_or_unknown() {
    for text in [
        "value = 13",
        "name = 'Ann'",
        "not (name = 'Ann')",
        "name is not null",
        "value in (1, null)",
        "value not in (1, null)",
        "name = 'Ann' and value = 12",
        "null",
        "value + name > 0",
    ] {
        assert_eq!(found(text), Some(false), "{text}");
    }
}

#[test]
fn what_databases_disagree_on_cannot_be_told() {
    for text in [
        "value",
        "value = '12'",
        "value / 5 = 2",
        "value % 0 = 0",
        "value * 9223372036854775807 > 0",
        "name like 'A%'",
        "weight = 3",
        "value = 12 garbage",
        "value =",
        "",
        "exists (select 1)",
    ] {
        assert_eq!(found(text), None, "{text}");
    }
}

#[test]
fn deep_and_long_conditions_are_refused_and_end() {
    for text in [
        "(".repeat(TEXT_MAX - 1),
        "not ".repeat(TEXT_MAX / 4),
        format!("value = 1{}", " or value = 1".repeat(TEXT_MAX)),
    ] {
        assert_eq!(found(&text), None);
    }
    let long = format!("value = 12{}", " and 1 = 1".repeat(400));
    assert_eq!(found(&long), Some(true));
}

//! What the target of SQL predicates does with its bytes: take them for a condition, and for the
//! choices of one that is understood.
//!
//! A condition that cannot be evaluated leaves open what it finds. None keeps a history from being
//! written, read again and checked.

use crate::structured::Choices;
use isolde::{Limits, check, decided_levels};
use isolde_history::Index;
use isolde_history::format::{parse_text, to_text};

/// Deeper conditions are longer than what is looked at.
const DEPTH_MAX: usize = 40;

/// Takes bytes for a condition, and for one of a tree.
pub fn evaluated(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        evaluate(text);
    }
    let mut text = String::new();
    condition(&mut Choices(bytes), 0, &mut text);
    evaluate(&text);
}

fn evaluate(condition: &str) {
    let quoted = condition.chars().map(|character| match character {
        '"' | '\\' => format!("\\{character}"),
        other if other.is_control() => format!("\\u{{{:x}}}", other as u32),
        other => other.to_string(),
    });
    let quoted: String = quoted.collect();
    let text = format!(
        "A: w(1,7){{age=30 name=Ann}} w(2,-3)\n\
         B: p(where \"{quoted}\"; 1=7; 2=-3)\n\
         B: p(where \"{quoted}\"; 2=-3)\n"
    );
    let history = parse_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let written = to_text(&history);
    let again = parse_text(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(to_text(&again), written);
    check(&history, &Index::new(&history), &decided_levels(), &Limits::NONE);
}

/// A condition as people write them, and numbers where they go wrong.
fn condition(choices: &mut Choices<'_>, depth: usize, text: &mut String) {
    const LEAVES: &[&str] = &[
        "key",
        "value",
        "age",
        "name",
        "NULL",
        "'Ann'",
        "0",
        "1",
        "9223372036854775807",
        "-9223372036854775808",
        "t.value",
        "TRUE",
    ];
    const OPERATORS: &[&str] =
        &[" = ", " <> ", " < ", " >= ", " AND ", " OR ", " + ", " - ", " * ", " % ", " / "];
    if depth >= DEPTH_MAX || !choices.are_left() {
        text.push_str(choices.of(LEAVES));
        return;
    }
    let inner = |choices: &mut Choices<'_>, text: &mut String| condition(choices, depth + 1, text);
    match choices.below(9) {
        0 | 1 => text.push_str(choices.of(LEAVES)),
        2..5 => {
            inner(choices, text);
            text.push_str(choices.of(OPERATORS));
            inner(choices, text);
        }
        5 => {
            text.push_str(choices.of(&["NOT ", "-"]));
            inner(choices, text);
        }
        6 => {
            inner(choices, text);
            text.push_str(choices.of(&[" BETWEEN 1 AND ", " IN (1, NULL) AND ", " IS NULL OR "]));
            inner(choices, text);
        }
        _ => {
            text.push('(');
            inner(choices, text);
            text.push(')');
        }
    }
}

//! Lists as a script has them: one text, with a space before each element.

use crate::scenario::Scenario;
use std::collections::BTreeMap;

/// What lists held before the transactions of a scenario, as far as a read tells: the elements
/// in front of the first one that is appended here.
pub(super) fn first(scenario: &Scenario) -> BTreeMap<&str, String> {
    let ops = || {
        let ops = scenario.transactions.iter().flat_map(|txn| &txn.operations);
        ops.filter_map(|op| Some((op.key.as_deref()?, op)))
    };
    let appended: Vec<(&str, &str)> = ops()
        .filter(|(_, op)| op.kind == "append")
        .map(|(key, op)| (key, op.value.as_str()))
        .collect();
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, op) in ops().filter(|(_, op)| op.kind == "read-list") {
        let elements = elements(&op.value);
        let is_older = |element: &&str| !appended.contains(&(key, *element));
        let older: Vec<&str> = elements.into_iter().take_while(is_older).collect();
        let known = found.entry(key).or_default();
        if older.len() > known.len() {
            *known = older;
        }
    }
    found.retain(|_, elements| !elements.is_empty());
    found.into_iter().map(|(key, elements)| (key, format!(" {}", elements.join(" ")))).collect()
}

/// The elements of `[1 2 3]`, or of `[1 2 … 8 9] (20 elements)`, in which dots stay dots.
/// Quoted elements have spaces of their own: the list is told up to them.
fn elements(list: &str) -> Vec<&str> {
    let inside = list.strip_prefix('[').and_then(|it| it.split_once(']'));
    let words = inside.map_or("", |(inside, _)| inside).split_whitespace();
    let plain = words.take_while(|word| !word.contains('"'));
    plain.map(|word| if word == "…" { "..." } else { word }).collect()
}

//! What may be done to a small history of any kind without changing its verdicts: aborted and
//! unknown transactions, repeated values, lists, rows, intervals and given orders among them.

use crate::conditions::random_conditions;
use crate::support::{Size, each_seed, history, random_histories, random_history};
use isolde_checker::{IMPLICATIONS, Level, Limits, applicable_levels, check, decided_levels};
use isolde_history::format::{self, FORMATS, Input, ReadOptions, Writer, to_text};
use isolde_history::{History, Index, Source};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

const SIZE: Size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };

/// What of a history decides its verdicts, as writers call it when they leave it out.
const DECIDING: [&str; 6] = [
    "orders given by the database",
    "version orders",
    "snapshots of the database",
    "initial values",
    "rows that a condition",
    "results of reads",
];

fn histories() -> u64 {
    random_histories(1_500)
}

/// The verdicts of levels, by name.
fn verdicts(history: &History, levels: &[Level]) -> BTreeMap<Level, &'static str> {
    let index = Index::new(history);
    let verdicts = check(history, &index, levels, &Limits::NONE);
    verdicts.into_iter().map(|(level, verdict)| (level, verdict.name())).collect()
}

#[test]
fn what_satisfies_a_level_satisfies_the_weaker_ones() {
    each_seed(0..histories(), |seed| {
        for text in [random_history(seed, SIZE), random_conditions(seed)] {
            let history = history(&text);
            // Each by itself, so that none is settled by another.
            let alone: BTreeMap<Level, &str> = decided_levels()
                .into_iter()
                .map(|level| (level, verdicts(&history, &[level])[&level]))
                .collect();
            for row in IMPLICATIONS {
                let both = (alone.get(&row.stronger), alone.get(&row.weaker));
                let broken = both == (Some(&"satisfied"), Some(&"violated"));
                let (stronger, weaker) = (row.stronger, row.weaker);
                assert!(!broken, "{stronger} holds and {weaker} does not\n{text}");
            }
        }
    });
}

#[test]
fn names_of_keys_values_and_sessions_mean_nothing() {
    each_seed(0..histories(), |seed| {
        let text = random_history(seed, SIZE);
        let other = renamed(&text);
        let expected = verdicts(&history(&text), &decided_levels());
        assert_eq!(verdicts(&history(&other), &decided_levels()), expected, "{text}{other}");
    });
}

#[test]
fn the_order_of_sessions_means_nothing() {
    each_seed(0..histories(), |seed| {
        for text in [random_history(seed, SIZE), random_conditions(seed)] {
            let is_session = |line: &&str| line.starts_with(['A', 'B', 'C', 'D']);
            let (mut txns, others): (Vec<&str>, Vec<&str>) = text.lines().partition(is_session);
            // Stable, so that each session keeps its order.
            txns.sort_by_key(|line| Reverse(line.as_bytes()[0]));
            let other = [others, txns].concat().join("\n") + "\n";
            let expected = verdicts(&history(&text), &decided_levels());
            assert_eq!(verdicts(&history(&other), &decided_levels()), expected, "{text}{other}");
        }
    });
}

#[test]
fn converting_a_history_changes_no_verdict() {
    let mut converted: BTreeMap<&str, usize> = BTreeMap::new();
    // In the last one, somebody saw a write of a transaction of unknown outcome in place of its own.
    each_seed((0..histories()).chain([19_939]), |seed| {
        for text in [random_history(seed, SIZE), random_conditions(seed)] {
            let original = history(&text);
            let expected = verdicts(&original, &decided_levels());
            for format in FORMATS {
                let Some(Writer::File(write)) = format.write else { continue };
                let mut bytes = Vec::new();
                let Ok(lost) = write(&original, &mut bytes) else { continue };
                let is_lost = |what: &str| lost.iter().any(|sentence| sentence.contains(what));
                if DECIDING.into_iter().any(is_lost) {
                    continue;
                }
                let input = Input::File(Source::from_bytes("converted", &bytes));
                let other = format::read(format, input, ReadOptions::default())
                    .unwrap_or_else(|error| panic!("as {}: {error}\n{text}", format.name));
                let mut found = verdicts(&other, &decided_levels());
                let mut expected = expected.clone();
                if is_lost("times") {
                    let untimed = applicable_levels(&history("A: w(x,1)\n"));
                    found.retain(|level, _| untimed.contains(level));
                    expected.retain(|level, _| untimed.contains(level));
                }
                let again = to_text(&other);
                assert_eq!(found, expected, "as {}, without {lost:?}\n{text}{again}", format.name);
                *converted.entry(format.name).or_default() += 1;
            }
        }
    });
    assert!(converted.len() > 5 && converted.values().all(|&count| count > 20), "{converted:?}");
}

/// Other names for keys, values and sessions; nil and times stay what they are.
fn renamed(text: &str) -> String {
    let mut renamed = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (head, body) = line.split_once(':').expect("a session and operations, or an order");
        match head.strip_prefix("order ") {
            Some(key) => write!(renamed, "order {}:", word_renamed(key)),
            None => write!(renamed, "client-{head}:"),
        }
        .expect("a string grows");
        let mut word = String::new();
        for letter in body.chars().chain(['\n']) {
            if letter.is_ascii_alphanumeric() {
                word.push(letter);
                continue;
            }
            renamed.push_str(&word_renamed(&word));
            renamed.push(letter);
            word.clear();
        }
    }
    renamed
}

/// Another name for a key, another number for a number; other words stay.
fn word_renamed(word: &str) -> String {
    match (word, word.parse::<i64>()) {
        ("x" | "y" | "z" | "l" | "m" | "n", _) => format!("key-{word}"),
        (_, Ok(number)) => (1_000_003 - 7 * number).to_string(),
        _ => word.to_owned(),
    }
}

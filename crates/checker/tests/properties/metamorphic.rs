//! What may be done to a history without changing its verdicts, on histories that are
//! large enough for the solver and for saturation to have work.

use crate::support::{Random, history};
use isolde_certificate::verify;
use isolde_checker::{
    Check, IMPLICATIONS, Level, Limits, Options, Strategies, StrategyName, Verdict,
    applicable_levels, check,
};
use isolde_harness::{
    Aborts, Distribution, INJECTED, Isolation, Parameters, Times, TxnKind, generate,
};
use isolde_history::format::{self, FORMATS, Input, ReadOptions, Writer, to_text};
use isolde_history::{History, Index, Source};
use std::collections::BTreeMap;
use std::fmt::Write;

const MEDIUM: Parameters = Parameters {
    sessions: 8,
    transactions: 300,
    operations: 6,
    read_share: 0.5,
    keys: 40,
    distribution: Distribution::Zipf { theta: 0.8 },
    kind: TxnKind::Mixed,
    isolation: Isolation::Serializable,
    times: Times::Transactions,
    aborts: Aborts::Recorded,
    bug: None,
    anomaly: None,
    seed: 1,
};

const KINDS: [TxnKind; 4] =
    [TxnKind::Mixed, TxnKind::BlindWrite, TxnKind::ReadModifyWrite, TxnKind::ListAppend];

/// One history for each store and kind of transaction, the size of the first two of
/// each store being larger.
fn medium() -> Vec<(String, History)> {
    let mut histories = Vec::new();
    for isolation in Isolation::ALL {
        for (number, kind) in (1..).zip(KINDS) {
            let transactions = if number < 3 { 800 } else { 300 };
            let parameters = Parameters { isolation, kind, transactions, seed: number, ..MEDIUM };
            if parameters.validate().is_ok() {
                let history = generate(&parameters).expect("valid parameters");
                histories.push((format!("{} {kind:?}", isolation.name()), history));
            }
        }
    }
    histories
}

/// The verdicts of levels, by name.
fn verdicts(history: &History, levels: &[Level]) -> BTreeMap<Level, &'static str> {
    let index = Index::new(history);
    let verdicts = check(history, &index, levels, &Limits::NONE);
    verdicts.into_iter().map(|(level, verdict)| (level, verdict.name())).collect()
}

fn decide(history: &History, level: Level, without: Strategies) -> Verdict {
    let index = Index::new(history);
    let options = Options { without, ..Options::default() };
    Check::new(history, &index, &Limits::NONE).with_options(options).decide(level)
}

/// Levels whose verdict does not rest on times.
fn untimed() -> Vec<Level> {
    applicable_levels(&history("A: w(x,1)\n"))
}

#[test]
fn what_satisfies_a_level_satisfies_the_weaker_ones() {
    for (name, history) in medium() {
        let alone: BTreeMap<Level, &str> = applicable_levels(&history)
            .into_iter()
            .map(|level| (level, decide(&history, level, Strategies::NONE).name()))
            .collect();
        for row in IMPLICATIONS {
            let both = (alone.get(&row.stronger), alone.get(&row.weaker));
            let broken = both == (Some(&"satisfied"), Some(&"violated"));
            assert!(!broken, "{name}: {} holds and {} does not", row.stronger, row.weaker);
        }
        assert_eq!(alone, verdicts(&history, &applicable_levels(&history)), "{name}");
    }
}

#[test]
fn when_saturation_runs_does_not_change_a_verdict() {
    for (name, history) in medium() {
        for level in applicable_levels(&history).into_iter().filter(|level| *level > Level::Causal)
        {
            let usual = decide(&history, level, Strategies::NONE).name();
            assert_ne!(usual, "unknown", "{name}: {level}");
            for name_off in [StrategyName::Search, StrategyName::Saturation] {
                let without = Strategies::NONE.and(name_off);
                let found = decide(&history, level, without).name();
                assert_eq!(found, usual, "{name}: {level} without {name_off}");
            }
        }
    }
}

#[test]
fn every_verdict_is_certified_whenever_saturation_runs() {
    for (name, history) in medium() {
        let index = Index::new(&history);
        for without in [Strategies::NONE.and(StrategyName::Search), Strategies::NONE] {
            let options = Options { without, ..Options::default() };
            let mut check = Check::new(&history, &index, &Limits::NONE).with_options(options);
            let certified = check.certify(&applicable_levels(&history));
            assert_eq!(certified.left_out, [], "{name}");
            let results = verify(&certified.certificate, &history).expect("the same history");
            for (claim, result) in certified.certificate.claims.iter().zip(results) {
                let levels = claim.levels.join(", ");
                assert!(result.is_ok(), "{name}: {levels}, without {without:?}: {result:?}");
            }
        }
    }
}

#[test]
fn names_of_keys_values_and_sessions_mean_nothing() {
    for (name, original) in medium() {
        let levels = applicable_levels(&original);
        let other = history(&renamed(&to_text(&original)));
        assert_eq!(verdicts(&other, &levels), verdicts(&original, &levels), "{name}");
    }
}

#[test]
fn the_order_of_sessions_means_nothing() {
    for (name, original) in medium() {
        let levels = applicable_levels(&original);
        let text = to_text(&original);
        let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        // Stable, so that each session keeps its order.
        lines.sort_by_key(|line| std::cmp::Reverse(line.split([' ', ':']).next()));
        let other = history(&(lines.join("\n") + "\n"));
        assert_eq!(verdicts(&other, &levels), verdicts(&original, &levels), "{name}");
    }
}

#[test]
fn converting_a_history_changes_no_verdict() {
    let mut converted: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, original) in medium_without_times() {
        let expected = verdicts(&original, &untimed());
        for format in FORMATS {
            let Some(Writer::File(write)) = format.write else { continue };
            let mut bytes = Vec::new();
            // What a format cannot express it refuses.
            if write(&original, &mut bytes).is_err() {
                continue;
            }
            let input = Input::File(Source::from_bytes("converted", &bytes));
            let other = format::read(format, input, ReadOptions::default())
                .unwrap_or_else(|error| panic!("{name} as {}: {error}", format.name));
            assert_eq!(verdicts(&other, &untimed()), expected, "{name} as {}", format.name);
            *converted.entry(format.name).or_default() += 1;
        }
    }
    let written = FORMATS.iter().filter(|format| matches!(format.write, Some(Writer::File(_))));
    let never: Vec<&str> =
        written.map(|format| format.name).filter(|name| !converted.contains_key(name)).collect();
    assert_eq!(never, Vec::<&str>::new(), "formats to which nothing was converted");
}

/// A format without an initial state must still say that it came first.
#[test]
fn converting_keeps_the_initial_state_before_everything() {
    let original = history("A: w(x,1) w(y,1)\nB: r(y,1) r(x,nil)\n");
    let expected = verdicts(&original, &untimed());
    assert_eq!(expected[&Level::ReadAtomic], "violated");
    for format in FORMATS {
        let Some(Writer::File(write)) = format.write else { continue };
        let mut bytes = Vec::new();
        if write(&original, &mut bytes).is_ok() {
            let input = Input::File(Source::from_bytes("converted", &bytes));
            let other = format::read(format, input, ReadOptions::default()).expect("readable");
            assert_eq!(verdicts(&other, &untimed()), expected, "as {}", format.name);
        }
    }
}

/// Committed transactions without times, which every format can express.
fn medium_without_times() -> Vec<(String, History)> {
    let (times, aborts) = (Times::None, Aborts::LeftOut);
    let of = |isolation, kind| {
        let parameters = Parameters { isolation, kind, times, aborts, ..MEDIUM };
        let history = generate(&parameters).expect("valid parameters");
        (format!("{} {kind:?}", isolation.name()), history)
    };
    vec![
        of(Isolation::Causal, TxnKind::Mixed),
        of(Isolation::SnapshotIsolation, TxnKind::Mixed),
        of(Isolation::Serializable, TxnKind::BlindWrite),
        of(Isolation::SnapshotIsolation, TxnKind::ListAppend),
    ]
}

#[test]
fn a_store_gives_the_level_that_was_chosen() {
    for isolation in Isolation::ALL {
        let given = match isolation {
            Isolation::SnapshotIsolation => Level::StrongSnapshotIsolation,
            Isolation::Serializable => Level::StrictSerializable,
            other => Level::parse(other.name()).expect("a level"),
        };
        for (number, kind) in (1..).zip(KINDS) {
            let transactions = 500 * number;
            let parameters = Parameters { isolation, kind, transactions, seed: 7, ..MEDIUM };
            if parameters.validate().is_err() {
                continue;
            }
            let history = generate(&parameters).expect("valid parameters");
            let verdict = decide(&history, given, Strategies::NONE);
            assert_eq!(verdict.name(), "satisfied", "{kind:?} at {given}");
        }
    }
}

#[test]
fn a_fault_is_found_at_exactly_the_levels_that_forbid_it() {
    for row in INJECTED {
        for kind in [TxnKind::Mixed, TxnKind::BlindWrite, TxnKind::ListAppend] {
            let parameters =
                Parameters { transactions: 1000, kind, anomaly: Some(row.anomaly), ..MEDIUM };
            let history = generate(&parameters).expect("valid parameters");
            let mut expected = "satisfied";
            for isolation in Isolation::ALL {
                if isolation == row.forbidden_by {
                    expected = "violated";
                }
                let level = Level::parse(isolation.name()).expect("a level");
                let found = decide(&history, level, Strategies::NONE);
                assert_eq!(found.name(), expected, "{} among {kind:?} at {level}", row.name);
            }
        }
    }
}

/// Levels without session order are tried with it first. Here it is wrong nearly
/// everywhere, so nearly all of it has to be given up.
#[test]
fn sessions_in_disorder_are_no_matter_to_levels_without_them() {
    for (number, kind) in (1..).zip(KINDS) {
        for (isolation, holds) in [
            (Isolation::Serializable, Level::Serializable),
            (Isolation::SnapshotIsolation, Level::SnapshotIsolation),
        ] {
            let (times, aborts) = (Times::None, Aborts::LeftOut);
            let transactions = [2000, 1000, 400, 400][number as usize - 1];
            let parameters = Parameters {
                isolation,
                kind,
                transactions,
                keys: 100,
                times,
                aborts,
                seed: number,
                ..MEDIUM
            };
            let text = to_text(&generate(&parameters).expect("valid parameters"));
            let history = history(&dealt_anew(&text, number));
            let index = Index::new(&history);
            let mut check = Check::new(&history, &index, &Limits::NONE);
            for level in [Level::SessionSerializable, Level::SessionSnapshotIsolation] {
                assert_eq!(check.decide(level).name(), "violated", "{kind:?} at {level}");
            }
            assert_eq!(check.decide(holds).name(), "satisfied", "{kind:?} at {holds}");
        }
    }
}

/// The same transactions in other sessions, in another order.
fn dealt_anew(text: &str, seed: u64) -> String {
    let mut random = Random::new(seed);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let (mut sessions, mut txns): (Vec<&str>, Vec<&str>) =
        lines.map(|line| line.split_once(':').expect("a session and operations")).unzip();
    sessions.sort_unstable();
    for place in (1..txns.len()).rev() {
        txns.swap(place, random.below(place + 1));
    }
    let lines = sessions.iter().zip(txns).map(|(session, txn)| format!("{session}:{txn}\n"));
    lines.collect()
}

/// Other names for keys, values and sessions; nil and times stay what they are.
fn renamed(text: &str) -> String {
    let mut renamed = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (head, ops) = line.split_once(':').expect("a session and operations");
        write!(renamed, "client-{head}:").expect("a string grows");
        for op in ops.split_inclusive(['(', ')']) {
            match op.strip_suffix(')').and_then(|inside| inside.split_once(',')) {
                Some((key, value)) => {
                    let value = numbers_mapped(value, |number| 1_000_003 - 7 * number);
                    let key = 1_000_000 - parsed(key);
                    write!(renamed, "key-{key},{value})").expect("a string grows");
                }
                None => renamed.push_str(op),
            }
        }
        renamed.push('\n');
    }
    renamed
}

fn parsed(number: &str) -> i64 {
    number.parse().expect("keys and values are numbers")
}

/// Replaces the numbers of a value or of a list.
fn numbers_mapped(value: &str, map: impl Fn(i64) -> i64) -> String {
    let is_digit = |character: char| character.is_ascii_digit();
    let mut mapped = String::new();
    let mut rest = value;
    while let Some(start) = rest.find(is_digit) {
        let end = rest[start..].find(|character| !is_digit(character));
        let end = end.map_or(rest.len(), |length| start + length);
        mapped.push_str(&rest[..start]);
        mapped.push_str(&map(parsed(&rest[start..end])).to_string());
        rest = &rest[end..];
    }
    mapped + rest
}

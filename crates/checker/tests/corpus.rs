//! The corpus: what every engine must say about the histories of `corpus/`.
//!
//! Each file states its own expectations, see `corpus/README.md`. One function
//! holds an engine to all of them, so that another engine is one more test of
//! one line.

use isolde_certificate::verify;
use isolde_checker::elle::{Expectations, MODELS, Question, WORKLOADS, Workload, answer};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{
    AnomalyKind, Check, IMPLICATIONS, Level, Limits, Options, Strategies, StrategyName,
    applicable_levels,
};
use isolde_history::format::{expectations, parse_text, to_text};
use isolde_history::{History, Index};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus");
/// The reference engine tries every order of transactions and refuses more.
const REFERENCE_TXNS_MAX: usize = 7;

#[test]
fn the_reference_says_what_the_corpus_expects() {
    hold_to_the_corpus(|history, level| match reference::decide(history, level) {
        Reference::Satisfied => Some(Verdict::Satisfied),
        Reference::Violated => Some(Verdict::Violated),
        Reference::Unknown(_) if history.txn_count() > REFERENCE_TXNS_MAX => None,
        Reference::Unknown(_) => Some(Verdict::Unknown),
    });
}

#[test]
fn the_engine_says_what_the_corpus_expects() {
    hold_to_the_corpus(|history, level| {
        let index = Index::new(history);
        match Check::new(history, &index, &Limits::NONE).decide(level) {
            isolde_checker::Verdict::Satisfied(_) => Some(Verdict::Satisfied),
            isolde_checker::Verdict::Violated(_) => Some(Verdict::Violated),
            isolde_checker::Verdict::Unknown(_) => Some(Verdict::Unknown),
        }
    });
}

/// Saturation is seldom needed for histories as small as these; here there is nothing else.
#[test]
fn the_engine_says_the_same_if_it_saturates_first() {
    hold_to_the_corpus(|history, level| {
        let index = Index::new(history);
        let without = Strategies::NONE.and(StrategyName::Search);
        let options = Options { without, ..Options::default() };
        let mut check = Check::new(history, &index, &Limits::NONE).with_options(options);
        match check.decide(level) {
            isolde_checker::Verdict::Satisfied(_) => Some(Verdict::Satisfied),
            isolde_checker::Verdict::Violated(_) => Some(Verdict::Violated),
            isolde_checker::Verdict::Unknown(_) => Some(Verdict::Unknown),
        }
    });
}

/// Without a strategy a level may be open, and nothing else changes.
#[test]
fn the_engine_says_nothing_else_without_a_strategy() {
    for &(off, ..) in StrategyName::ALL {
        let options = Options { without: Strategies::NONE.and(off), ..Options::default() };
        hold_to_the_corpus(|history, level| {
            let index = Index::new(history);
            let mut check = Check::new(history, &index, &Limits::NONE).with_options(options);
            match check.decide(level) {
                isolde_checker::Verdict::Satisfied(_) => Some(Verdict::Satisfied),
                isolde_checker::Verdict::Violated(_) => Some(Verdict::Violated),
                isolde_checker::Verdict::Unknown(_) => None,
            }
        });
    }
}

#[test]
fn every_anomaly_is_shown_by_a_history_of_the_anomalies() {
    let mut shown: BTreeMap<AnomalyKind, Vec<String>> = BTreeMap::new();
    for Entry { name, history, .. } in corpus() {
        if !name.starts_with("anomalies/") {
            continue;
        }
        let index = Index::new(&history);
        for level in applicable_levels(&history) {
            let verdict = Check::new(&history, &index, &Limits::NONE).decide(level);
            let isolde_checker::Verdict::Violated(violated) = verdict else { continue };
            for anomaly in violated.anomalies {
                shown.entry(anomaly.kind).or_default().push(format!("{name} {level}"));
            }
        }
        for anomaly in Check::new(&history, &index, &Limits::NONE).found() {
            shown.entry(anomaly.kind).or_default().push(name.clone());
        }
    }
    let missing: Vec<&str> = (AnomalyKind::ALL.iter())
        .filter(|kind| !shown.contains_key(kind))
        .map(|kind| kind.name())
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn claims_are_refuted_as_the_corpus_says_and_no_others() {
    for Entry { name, text, history, .. } in corpus() {
        if !name.starts_with("claims/") {
            continue;
        }
        let index = Index::new(&history);
        let mut found: Vec<String> = Vec::new();
        let is_refuted = matches!(isolde_checker::replay(&history, &index), Some(Some(_)));
        found.extend(is_refuted.then(|| "serialization-order".to_owned()));
        let clashes = isolde_checker::timestamps(&history, &index).unwrap_or_default();
        found.extend((!clashes.is_empty()).then(|| "timestamps".to_owned()));
        let conflicts = isolde_checker::conflicts(&history, &index).into_iter();
        found.extend(conflicts.map(|conflict| conflict.sources().join(" against ")));
        let expected: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# refuted ")).collect();
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_history_has_a_header_with_a_story() {
    let is_complete = |text: &str| {
        let mut lines = text.lines();
        let first = lines.next();
        let story = lines
            .take_while(|line| line.starts_with("# ") && !line.starts_with("# expect "))
            .count();
        first == Some("# isolde-history 1") && (1..=4).contains(&story)
    };
    let incomplete: Vec<String> = (corpus().into_iter())
        .filter(|entry| !is_complete(&entry.text))
        .map(|entry| entry.name)
        .collect();
    assert_eq!(incomplete, Vec::<String>::new());
}

#[test]
fn expectations_follow_the_implications_between_levels() {
    let mut broken = Vec::new();
    for Entry { name, expected, .. } in corpus() {
        for row in IMPLICATIONS {
            let verdicts = (expected.get(&row.stronger), expected.get(&row.weaker));
            if verdicts == (Some(&Verdict::Satisfied), Some(&Verdict::Violated)) {
                broken.push(format!("{name}: {} without {}", row.stronger, row.weaker));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
}

#[test]
fn every_implication_has_a_history_that_shows_it_is_no_equivalence() {
    let entries = corpus();
    let is_shown = |weaker: Level, stronger: Level| {
        let name = format!("boundaries/{weaker}-not-{stronger}.txt");
        entries.iter().any(|entry| {
            entry.name == name
                && entry.expected.get(&weaker) == Some(&Verdict::Satisfied)
                && entry.expected.get(&stronger) == Some(&Verdict::Violated)
        })
    };
    let missing: Vec<String> = (IMPLICATIONS.iter())
        // Where linearizability is decided at all, the two are the same.
        .filter(|row| row.stronger != Level::Linearizable)
        .filter(|row| !is_shown(row.weaker, row.stronger))
        .map(|row| format!("{}-not-{}", row.weaker, row.stronger))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn writing_a_history_and_reading_it_back_changes_nothing() {
    for Entry { name, history, .. } in corpus() {
        let written = to_text(&history);
        let again = parse_text(&written).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(to_text(&again), written, "{name}");
    }
}

#[test]
fn every_verdict_on_the_corpus_has_a_certificate() {
    let mut without = Vec::new();
    for Entry { name, history, .. } in corpus() {
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let certified = check.certify(&applicable_levels(&history));
        let results = verify(&certified.certificate, &history).expect("the same history");
        for (claim, result) in certified.certificate.claims.iter().zip(results) {
            assert!(result.is_ok(), "{name}: {claim:?}: {result:?}");
        }
        let left_out = certified.left_out.iter();
        without.extend(left_out.map(|(level, reason)| format!("{name}: {level}: {reason}")));
    }
    assert!(without.is_empty(), "{}", without.join("\n"));
}

/// Predicates have no key, which once stopped the program. A misfit is an answer as well.
#[test]
fn every_workload_of_elle_answers_or_refuses_every_history() {
    for Entry { history, .. } in corpus() {
        for workload in WORKLOADS {
            let _ = workload.check(&history, Expectations::default(), &Limits::NONE);
        }
        let fits = |workload: Workload| workload.misfit(&history).is_none();
        if fits(Workload::RwRegister) || fits(Workload::ListAppend) {
            let question = Question { models: MODELS.iter().collect(), ..Question::default() };
            let _ = answer(&history, &Index::new(&history), &question, &Limits::NONE);
        }
    }
}

/// Collects every disagreement before failing: one mistake in an engine shows in
/// many histories, and which ones tells what it is. An engine answers `None` to
/// histories that are too large for it.
fn hold_to_the_corpus(engine: impl Fn(&History, Level) -> Option<Verdict>) {
    let mut disagreements = Vec::new();
    for entry in corpus() {
        for (&level, &expected) in &entry.expected {
            let found = engine(&entry.history, level).unwrap_or(expected);
            if found != expected {
                let name = &entry.name;
                disagreements
                    .push(format!("{name}: {level}: expected {expected:?}, found {found:?}"));
            }
        }
    }
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Satisfied,
    Violated,
    Unknown,
}

struct Entry {
    /// The path below the corpus.
    name: String,
    text: String,
    history: History,
    /// Invariant: not empty. A history without expectations tests nothing.
    expected: BTreeMap<Level, Verdict>,
}

/// Every history of the corpus, in order of their names.
fn corpus() -> Vec<Entry> {
    let mut files = Vec::new();
    collect(Path::new(ROOT), &mut files);
    files.sort();
    assert!(!files.is_empty(), "{ROOT} has histories");
    files.iter().map(|file| entry(file)).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the corpus");
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            // Files that were trouble to a reader need not be histories.
            if !path.ends_with("fuzz") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
}

fn entry(file: &Path) -> Entry {
    let below = file.strip_prefix(ROOT).expect("a file below the corpus");
    let name = below.to_string_lossy().replace('\\', "/");
    let text = fs::read_to_string(file).expect("a text file");
    let history = parse_text(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut expected = BTreeMap::new();
    for (level, verdict) in expectations(&text) {
        let level = Level::parse(&level).unwrap_or_else(|| panic!("{name}: no level `{level}`"));
        let verdict = match verdict.as_str() {
            "satisfied" => Verdict::Satisfied,
            "violated" => Verdict::Violated,
            "unknown" => Verdict::Unknown,
            other => panic!("{name}: {level}: no verdict `{other}`"),
        };
        let earlier = expected.insert(level, verdict);
        assert_eq!(earlier, None, "{name}: {level} is expected twice");
    }
    assert!(!expected.is_empty(), "{name}: expects nothing");
    Entry { name, text, history, expected }
}

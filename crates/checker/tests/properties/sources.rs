//! Sources of order that are switched off refute nothing and show nothing by themselves.

use crate::support::{Size, each_seed, history, random_histories, random_history};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{Check, Level, Limits, Options, Sources, Unknown, Verdict, decided_levels};
use isolde_history::Index;

/// Levels that are the same without session order and without real time.
const WITHOUT_EITHER: [Level; 9] = [
    Level::ReadUncommitted,
    Level::AdyaReadCommitted,
    Level::MonotonicAtomicView,
    Level::CursorStability,
    Level::UpdateAtomic,
    Level::ParallelSnapshotIsolation,
    Level::RepeatableRead,
    Level::SnapshotIsolation,
    Level::Serializable,
];
/// Levels that real time is part of.
const OF_REAL_TIME: [Level; 4] = [
    Level::GeneralizedSnapshotIsolation,
    Level::PrefixConsistentSnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::StrictSerializable,
];

/// Compares one level with the definition; whether it was violated without the source.
fn compare(text: &str, level: Level, sources: Sources) -> bool {
    let history = history(text);
    let index = Index::new(&history);
    let options = Options { sources, ..Options::default() };
    let verdict = Check::new(&history, &index, &Limits::NONE).with_options(options).decide(level);
    let expected = reference::decide(&history, level);
    let is_whole = WITHOUT_EITHER.contains(&level)
        || (sources.session && !OF_REAL_TIME.contains(&level))
        || (sources.real_time && level == Level::GeneralizedSnapshotIsolation);
    match (&verdict, expected) {
        (Verdict::Satisfied(_), Reference::Satisfied) => {
            assert!(is_whole, "{level} cannot be shown\n{text}");
        }
        (Verdict::Violated(_), Reference::Violated) => return true,
        (Verdict::Unknown(Unknown::Unsupported(_)), _) if !is_whole => {}
        (_, Reference::Unknown(_)) => {}
        (found, expected) => panic!("{level}: expected {expected:?}, found {found:?}\n{text}"),
    }
    false
}

#[test]
fn without_a_source_verdicts_stay_true() {
    let size = Size { txns_max: 5, ops_max: 3, keys_max: 2 };
    for off in [
        Sources { session: false, ..Sources::ALL },
        Sources { real_time: false, ..Sources::ALL },
        Sources { session: false, real_time: false, ..Sources::ALL },
    ] {
        let mut violated = Vec::new();
        each_seed(0..random_histories(600), |seed| {
            let text = random_history(seed, size);
            violated.extend(decided_levels().into_iter().filter(|&it| compare(&text, it, off)));
        });
        for level in decided_levels() {
            assert!(violated.contains(&level), "{level} is never violated");
        }
    }
}

//! Switching a strategy off changes no verdict: it may leave one open.

use crate::support::{Size, each_seed, history, random_histories, random_history};
use isolde_checker::{
    Check, Level, Limits, Options, Strategies, StrategyName, Verdict, decided_levels,
};
use isolde_history::{History, Index};

/// Every level by itself, so that no level settles another unless it is asked to.
fn verdicts(history: &History, without: Strategies) -> Vec<(Level, Verdict)> {
    let index = Index::new(history);
    let options = Options { without, ..Options::default() };
    let decide = |level| {
        let mut check = Check::new(history, &index, &Limits::NONE).with_options(options);
        (level, check.decide(level))
    };
    let levels = decided_levels().into_iter().chain([Level::Linearizable]);
    levels.map(decide).collect()
}

fn is_open(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(_))
}

#[test]
fn a_strategy_that_is_off_changes_no_verdict() {
    let size = Size { txns_max: 5, ops_max: 3, keys_max: 2 };
    let mut left_open = Vec::new();
    each_seed(0..random_histories(150), |seed| {
        let text = random_history(seed, size);
        let history = history(&text);
        let usual = verdicts(&history, Strategies::NONE);
        // Histories as small as these are decided by their definitions in the end.
        for without in [Strategies::NONE, Strategies::NONE.and(StrategyName::Definition)] {
            for &(off, ..) in StrategyName::ALL {
                let found = verdicts(&history, without.and(off));
                for ((level, usual), (_, found)) in usual.iter().zip(found) {
                    let is_same = found.name() == usual.name();
                    assert!(is_same || is_open(&found), "{level} without {off}: {found:?}\n{text}");
                    left_open.extend((!is_same).then_some(off));
                }
            }
        }
    });
    // What nothing else knows.
    let needed = [StrategyName::Reading, StrategyName::Rule, StrategyName::Orders];
    for needed in needed.into_iter().chain([StrategyName::Commits]) {
        assert!(left_open.contains(&needed), "nothing is open without {needed}");
    }
}

/// The last strategies take over what the first ones do sooner.
#[test]
fn most_is_decided_without_the_strategies_that_only_save_time() {
    let sooner = [
        StrategyName::Weaker,
        StrategyName::Stronger,
        StrategyName::Equivalent,
        StrategyName::Interleaving,
        StrategyName::Replay,
        StrategyName::Refused,
        StrategyName::Times,
        StrategyName::Search,
        StrategyName::ForcedOrders,
        StrategyName::AskStronger,
    ];
    let without = sooner.into_iter().fold(Strategies::NONE, Strategies::and);
    let size = Size { txns_max: 5, ops_max: 3, keys_max: 2 };
    each_seed(0..random_histories(300), |seed| {
        let text = random_history(seed, size);
        let history = history(&text);
        let found = verdicts(&history, without);
        for ((level, usual), (_, found)) in verdicts(&history, Strategies::NONE).iter().zip(found) {
            assert_eq!(found.name(), usual.name(), "{level}\n{text}");
        }
    });
}

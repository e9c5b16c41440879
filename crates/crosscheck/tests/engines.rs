//! Both engines give every strong level the same verdict: on the corpus, on small
//! histories, on random ones, and on some that are large enough for a search.
//!
//! Graph, sources and explanations are the same in both. What is compared is the search:
//! CaDiCaL with cycles as clauses against the solver that keeps an order.

#[path = "../../checker/tests/properties/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "these tests need a part of it")]
mod support;

use isolde::{
    Check, Engine, Level, Limits, Options, Stage, Strategies, StrategyName, applicable_levels,
    decided_levels,
};
use isolde_harness::{
    Aborts, Distribution, INJECTED, Isolation, Parameters, Times, TxnKind, generate,
};
use isolde_history::format::parse_text;
use isolde_history::{History, Index};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Size, every_history, history, random_histories, random_history};

/// One in so many of all small histories is tried.
const ONE_IN: usize = 4;

#[derive(Default)]
struct Compared {
    /// By verdict, how many there were.
    verdicts: BTreeMap<&'static str, usize>,
    /// How often CaDiCaL was asked.
    searches: usize,
}

impl Compared {
    /// Every level by itself, so that no level settles another.
    fn compare(&mut self, name: &str, history: &History, levels: &[Level]) {
        let index = Index::new(history);
        for &level in levels {
            let without = Strategies::NONE.and(StrategyName::Saturation);
            let own = Options { without, ..Options::default() };
            let expected = Check::new(history, &index, &Limits::NONE).decide(level).name();
            let searches = AtomicUsize::new(0);
            let observe = |stage| {
                if matches!(stage, Stage::Solved { .. }) {
                    searches.fetch_add(1, Ordering::Relaxed);
                }
            };
            let limits = Limits { observe: &observe, ..Limits::NONE };
            let options = Options { engine: Engine::Cadical, ..own };
            let found = Check::new(history, &index, &limits).with_options(options).decide(level);
            assert_eq!(found.name(), expected, "{level}: {name}");
            *self.verdicts.entry(expected).or_default() += 1;
            self.searches += searches.into_inner();
        }
    }

    /// Fails if there was little to compare.
    fn expect(&self, least: usize) {
        let count = |name| self.verdicts.get(name).copied().unwrap_or(0);
        let (satisfied, violated) = (count("satisfied"), count("violated"));
        let enough = satisfied >= least && violated >= least && self.searches >= least;
        assert!(enough, "{:?}, {} searches", self.verdicts, self.searches);
    }
}

/// Levels that take a search.
fn strong(levels: Vec<Level>) -> Vec<Level> {
    let searched = |level: &Level| {
        level.weaker_than().contains(&Level::ReadAtomic)
            || [Level::UpdateAtomic, Level::CursorStability].contains(level)
    };
    levels.into_iter().filter(searched).collect()
}

#[test]
fn engines_agree_on_the_corpus() {
    let mut compared = Compared::default();
    let mut folders = vec![PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus"))];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the corpus") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() {
                // Files that were trouble to a reader need not be histories.
                folders.extend((!path.ends_with("fuzz")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                compare_file(&mut compared, &path);
            }
        }
    }
    compared.expect(50);
}

fn compare_file(compared: &mut Compared, path: &Path) {
    let text = std::fs::read_to_string(path).expect("a text file");
    let history = parse_text(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let levels = strong(applicable_levels(&history));
    compared.compare(&path.display().to_string(), &history, &levels);
}

#[test]
fn engines_agree_on_small_histories() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let (mut compared, mut number) = (Compared::default(), 0);
    every_history(size, &mut |text| {
        number += 1;
        if number % ONE_IN == 0 {
            let history = history(text);
            compared.compare(text, &history, &strong(applicable_levels(&history)));
        }
    });
    compared.expect(1_000);
}

#[test]
fn engines_agree_on_random_histories() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    let levels = strong(decided_levels());
    let mut compared = Compared::default();
    for seed in 0..random_histories(5_000) {
        let text = random_history(seed, size);
        compared.compare(&text, &history(&text), &levels);
    }
    compared.expect(1_000);
}

const STORE: Parameters = Parameters {
    sessions: 6,
    transactions: 150,
    operations: 5,
    read_share: 0.5,
    keys: 25,
    distribution: Distribution::Zipf { theta: 0.8 },
    kind: TxnKind::Mixed,
    isolation: Isolation::Serializable,
    times: Times::Transactions,
    aborts: Aborts::Recorded,
    anomaly: None,
    bug: None,
    seed: 1,
};

#[test]
fn engines_agree_on_histories_of_a_store() {
    let mut compared = Compared::default();
    for isolation in Isolation::ALL {
        for (seed, kind) in (1..).zip([TxnKind::Mixed, TxnKind::BlindWrite]) {
            // Times leave little to search for.
            for (times, more) in [(Times::None, 0), (Times::None, 2), (Times::Transactions, 0)] {
                let seed = seed + more;
                let parameters = Parameters { isolation, kind, seed, times, ..STORE };
                let history = generate(&parameters).expect("valid parameters");
                let name = format!("{} {kind:?} {times:?} seed {seed}", isolation.name());
                compared.compare(&name, &history, &strong(applicable_levels(&history)));
            }
        }
    }
    for injected in INJECTED {
        let parameters = Parameters { anomaly: Some(injected.anomaly), ..STORE };
        if parameters.validate().is_ok() {
            let history = generate(&parameters).expect("valid parameters");
            let name = format!("injected {}", injected.name);
            compared.compare(&name, &history, &strong(applicable_levels(&history)));
        }
    }
    compared.expect(50);
}

//! The engine answers as the definitions do, and its evidence hangs together.

use crate::support::{Size, each_seed, every_history, history, random_histories, random_history};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{
    Check, Edge, Evidence, INITIAL, Level, Limits, Options, Satisfied, Strategies, StrategyName,
    Verdict, decided_levels,
};
use isolde_history::{History, Index, OpKind, Outcome, Time, TxnId};
use std::collections::BTreeMap;

#[derive(Default)]
struct Compared {
    histories: usize,
    satisfied: BTreeMap<Level, usize>,
    violated: BTreeMap<Level, usize>,
}

impl Compared {
    /// Compares every decided level, asked for together with the others, and alone with
    /// saturation first: histories as small as these never need it otherwise.
    fn compare(&mut self, text: &str, clock_drift: Time) {
        let usual = Options { clock_drift, ..Options::default() };
        let without = Strategies::NONE.and(StrategyName::Search);
        let saturating = Options { without, ..usual };
        let history = history(text);
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE).with_options(usual);
        let together = check.decide_all(&decided_levels());
        self.histories += 1;
        for (level, verdict) in together {
            let expected = reference::decide_with_drift(&history, level, clock_drift);
            let mut check = Check::new(&history, &index, &Limits::NONE).with_options(saturating);
            let alone = check.decide(level);
            for verdict in [&verdict, &alone] {
                self.agree(text, (level, verdict), &expected);
            }
            consistent(text, &history, &index, &verdict);
            consistent(text, &history, &index, &alone);
        }
    }

    fn agree(&mut self, text: &str, (level, verdict): (Level, &Verdict), expected: &Reference) {
        match (verdict, expected) {
            (Verdict::Satisfied(_), Reference::Satisfied) => {
                *self.satisfied.entry(level).or_default() += 1;
            }
            (Verdict::Violated(_), Reference::Violated) => {
                *self.violated.entry(level).or_default() += 1;
            }
            (_, Reference::Unknown(_)) => {}
            _ => panic!("{level}: expected {expected:?}, found {verdict:?}\n{text}"),
        }
    }
}

/// A commit order has every counted transaction once; a cycle closes, and every
/// forced step says why its first transaction was visible.
fn consistent(text: &str, history: &History, index: &Index, verdict: &Verdict) {
    // What was found by condition may be due to whoever never learned its outcome.
    let is_open = |txn| history.outcome(txn) == Outcome::Unknown && !index.is_counted(txn);
    let outcomes = history.has_predicates() && history.txns().any(is_open);
    match verdict {
        Verdict::Satisfied(Satisfied::Order(order))
            if index.several().is_empty()
                && !index.has_lesser_candidates()
                // Which transactions count may depend on whose element was read.
                && !index.has_repeated_elements()
                && !outcomes =>
        {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            let counted: Vec<_> = history.txns().filter(|&txn| index.is_counted(txn)).collect();
            assert_eq!(sorted, counted, "{text}");
        }
        Verdict::Violated(violated) => {
            // Repeated elements of lists, and repeated values that may be those of a
            // transaction nobody else observed, are decided by trying all orders.
            let lists = history.op_kinds().contains(&OpKind::ReadList);
            let tried =
                lists || outcomes || !index.several().is_empty() || index.has_lesser_candidates();
            assert!(!violated.anomalies.is_empty() || tried, "{text}");
            for anomaly in &violated.anomalies {
                let Evidence::Cycle(cycle) = &anomaly.evidence else { continue };
                let first = cycle.edges[0].before;
                assert_eq!(chain((text, history), first, &cycle.edges), first, "{text}");
            }
        }
        _ => {}
    }
}

/// Follows steps from `start` to where they end.
fn chain((text, history): (&str, &History), start: TxnId, edges: &[Edge]) -> TxnId {
    let mut at = start;
    for edge in edges {
        assert_eq!(edge.before, at, "{text}");
        at = edge.after;
        let premises = edge.premises();
        let Some(first) = premises.first() else { continue };
        if edge.is_overwriting() {
            let reader = edge.read().map(|read| history.txn_of(read));
            assert_ne!(edge.before, INITIAL, "{text}");
            assert_eq!(Some(chain((text, history), edge.before, premises)), reader, "{text}");
        } else {
            // An anti-dependency follows from an order of versions, and not from its reader.
            let start = if edge.pair().is_some() { edge.before } else { first.before };
            assert_eq!(chain((text, history), start, premises), edge.after, "{text}");
        }
    }
    at
}

#[test]
fn every_small_history_gets_the_verdicts_of_the_definition() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let mut compared = Compared::default();
    every_history(size, &mut |text| compared.compare(text, 0));
    assert_eq!(compared.histories, 80_165);
    let both = |level: &Level| {
        compared.satisfied.contains_key(level) && compared.violated.contains_key(level)
    };
    let one_sided: Vec<Level> = decided_levels().into_iter().filter(|level| !both(level)).collect();
    // Registers alone never violate read uncommitted, and these histories have no times.
    let without_times = [
        Level::ReadUncommitted,
        Level::GeneralizedSnapshotIsolation,
        Level::PrefixConsistentSnapshotIsolation,
        Level::StrongSnapshotIsolation,
        Level::StrictSerializable,
    ];
    assert_eq!(one_sided, without_times);
}

#[test]
fn random_histories_get_the_verdicts_of_the_definition() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    let mut compared = Compared::default();
    each_seed(0..random_histories(8_000), |seed| {
        let clock_drift = if seed.is_multiple_of(3) { 40 } else { 0 };
        compared.compare(&random_history(seed, size), clock_drift);
    });
    for level in decided_levels() {
        assert!(compared.satisfied.contains_key(&level), "{level} is never satisfied");
        assert!(compared.violated.contains_key(&level), "{level} is never violated");
    }
}

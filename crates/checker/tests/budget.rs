//! A search that meets too many contradictions can be given up, and then says so.

use isolde::{Check, Level, Limits, Options, Unknown, Verdict};
use isolde_harness::{Isolation, Parameters, generate, preset};
use isolde_history::Index;

#[test]
fn a_search_that_is_given_up_leaves_the_level_unknown() {
    // Blind writes without snapshots: the order of versions is a puzzle.
    let preset = preset("BlindW-RW").expect("a preset of this name");
    let parameters =
        Parameters { isolation: Isolation::ReadAtomic, transactions: 800, ..preset.parameters };
    let history = generate(&parameters).expect("valid parameters");
    let index = Index::new(&history);
    let decide = |conflicts_max| {
        let options = Options { conflicts_max, ..Options::default() };
        let mut check = Check::new(&history, &index, &Limits::NONE).with_options(options);
        check.decide(Level::ParallelSnapshotIsolation)
    };
    assert_eq!(decide(None).name(), "satisfied");
    let reason = "the search met too many contradictions and was given up; with a time limit it \
                  goes on until then";
    assert_eq!(decide(Some(1)), Verdict::Unknown(Unknown::Limit(reason.into())));
}

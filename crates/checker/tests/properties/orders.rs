//! Proofs by all orders are accepted where the definition says `violated`, and nowhere else.

use crate::support::{
    Size, each_seed, history, random_histories, random_history, random_operations,
};
use isolde_certificate::{Claim, Proof, Refutation, Verifier};
use isolde_checker::Level;
use isolde_checker::reference::{Reference, decide_with_drift};
use isolde_history::{History, KeyId, Time};

/// Every choice of some keys, all of them last.
fn some_keys(history: &History) -> impl Iterator<Item = Vec<KeyId>> {
    let keys: Vec<KeyId> = history.keys().collect();
    (1_usize..1 << keys.len()).map(move |set| {
        let is_in = |place: &usize| set & (1 << place) != 0;
        (0..keys.len()).filter(is_in).map(|place| keys[place]).collect()
    })
}

fn claim(level: Level, keys: Vec<KeyId>) -> Claim {
    let proof = Proof::Refutation(Refutation::Orders(keys));
    Claim { shown_at: level.name().into(), levels: vec![level.name().into()], proof }
}

/// How many violations there are and how many proofs of violations were accepted.
fn compare(text: &str, clock_drift: Time) -> (usize, usize) {
    let history = history(text);
    let verifier = Verifier::new(&history).with_clock_drift(clock_drift);
    let (mut violated, mut accepted) = (0, 0);
    for level in Level::ALL {
        let verdict = decide_with_drift(&history, level, clock_drift);
        let mut last = Ok(());
        for keys in some_keys(&history) {
            last = verifier.check(&claim(level, keys.clone())).map(drop);
            accepted += usize::from(last.is_ok());
            let is_wrong = last.is_ok() && verdict == Reference::Satisfied;
            assert!(!is_wrong, "{level} by keys {keys:?} with drift {clock_drift}\n{text}");
        }
        let is_outside = last.clone().is_err_and(|why| {
            why.0.contains("no order of events") || why.0.contains("about single operations")
        });
        if !is_outside && verdict == Reference::Violated {
            violated += 1;
            assert_eq!(last, Ok(()), "{level} with drift {clock_drift}\n{text}");
        }
    }
    (violated, accepted)
}

/// How far clocks may be apart in the history of this seed.
fn drift(seed: u64) -> Time {
    if seed.is_multiple_of(3) { 20 } else { 0 }
}

#[test]
fn all_orders_refute_what_the_definition_does() {
    let size = Size { txns_max: 5, ops_max: 3, keys_max: 3 };
    let (mut violated, mut accepted) = (0, 0);
    let count = random_histories(2_000);
    each_seed(0..count, |seed| {
        let here = compare(&random_history(seed, size), drift(seed));
        violated += here.0;
        accepted += here.1;
    });
    assert!(violated > count as usize / 10 && accepted > count as usize, "{violated} {accepted}");
}

#[test]
fn all_orders_refute_operations_as_the_definition_does() {
    let (mut violated, mut accepted) = (0, 0);
    let count = random_histories(2_000);
    each_seed(0..count, |seed| {
        let here = compare(&random_operations(seed, 6), drift(seed));
        violated += here.0;
        accepted += here.1;
    });
    assert!(violated > count as usize / 10 && accepted > count as usize, "{violated} {accepted}");
}

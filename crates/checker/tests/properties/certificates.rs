//! What the engine decides it certifies, and the verifier accepts every certificate.

use crate::support::{Size, every_history, history, random_history};
use isolde::reference::{self, Reference};
use isolde::{Check, Level, Limits, Options, Saturate, decided_levels};
use isolde_certificate::{Certificate, Claim, Proof, Verifier, read, verify, write};
use isolde_history::{History, Index, Source};

/// The certificate of all decided levels, written and read again, and levels left out.
fn certified(history: &History, saturate: Saturate) -> (Certificate, Vec<(Level, String)>) {
    let index = Index::new(history);
    let options = Options { saturate, ..Options::default() };
    let mut check = Check::new(history, &index, &Limits::NONE).with_options(options);
    let certified = check.certify(&decided_levels());
    let mut text = Vec::new();
    write(&certified.certificate, &mut text).expect("memory");
    let again = read(&mut Source::from_bytes("certificate", &text)).expect("what was written");
    assert_eq!(again, certified.certificate);
    (again, certified.left_out)
}

/// Fails unless every claim is accepted; how many levels are claimed and left out.
fn certify(text: &str, saturate: Saturate) -> (usize, usize) {
    let history = history(text);
    let (certificate, left_out) = certified(&history, saturate);
    let results = verify(&certificate, &history).expect("the same history");
    let mut claimed = 0;
    for (claim, result) in certificate.claims.iter().zip(results) {
        let levels = claim.levels.join(", ");
        assert!(result.is_ok(), "{levels}: {result:?}\n{claim:?}\n{text}");
        claimed += claim.levels.len();
    }
    for (level, reason) in &left_out {
        let repeats = reason.starts_with("values repeat");
        assert!(repeats, "{level} is left out: {reason}\n{text}");
    }
    (claimed, left_out.len())
}

/// Small histories never need saturation; every second one gets it, since proofs then
/// have derived steps.
fn other_than(saturate: Saturate) -> Saturate {
    if saturate == Saturate::First { Saturate::WhenHard } else { Saturate::First }
}

#[test]
fn every_verdict_on_a_small_history_is_certified() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let (mut claimed, mut saturate) = (0, Saturate::WhenHard);
    every_history(size, &mut |text| {
        saturate = other_than(saturate);
        let (here, left_out) = certify(text, saturate);
        assert_eq!(left_out, 0, "{text}");
        claimed += here;
    });
    // Without times, four levels of real time are violated by what a weaker one shows,
    // or unknown.
    let timed = 4;
    assert!(claimed >= 80_165 * (decided_levels().len() - timed), "{claimed}");
}

#[test]
fn verdicts_on_random_histories_are_certified() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    let (mut claimed, mut left_out) = (0, 0);
    let mut saturate = Saturate::WhenHard;
    for seed in 0..8_000 {
        saturate = other_than(saturate);
        let (here, missing) = certify(&random_history(seed, size), saturate);
        claimed += here;
        left_out += missing;
    }
    assert!(left_out * 50 < claimed, "{left_out} left out, {claimed} claimed");
}

/// The verdict of each claim is turned around by giving it another claim's proof.
#[test]
fn no_proof_is_accepted_for_a_level_with_the_opposite_verdict() {
    let size = Size { txns_max: 4, ops_max: 3, keys_max: 2 };
    for seed in 0..1_000 {
        let text = random_history(seed, size);
        let history = history(&text);
        let verifier = Verifier::new(&history);
        let (certificate, _) = certified(&history, Saturate::WhenHard);
        for claim in &certificate.claims {
            let satisfied = matches!(claim.proof, Proof::Witness(_));
            for level in Level::ALL {
                let opposite = match reference::decide(&history, level) {
                    Reference::Satisfied => !satisfied,
                    Reference::Violated => satisfied,
                    Reference::Unknown(_) => continue,
                };
                let name = level.name().to_string();
                for shown_at in [name.clone(), claim.shown_at.clone()] {
                    let levels = vec![name.clone()];
                    let other = Claim { shown_at, levels, proof: claim.proof.clone() };
                    let accepted = verifier.check(&other).is_ok();
                    assert!(!(accepted && opposite), "{other:?}\n{text}");
                }
            }
        }
    }
}

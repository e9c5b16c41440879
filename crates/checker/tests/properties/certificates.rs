//! What the engine decides it certifies, and the verifier accepts every certificate.

use crate::support::{Size, each_seed, every_history, history, random_histories, random_history};
use crate::{derivations, witnesses};
use isolde_certificate::{
    Certificate, Claim, Clause, Derivation, End, Fingerprint, Link, Proof, Refutation, Verifier,
    read, verify, write,
};
use isolde_checker::reference::{self, Reference};
use isolde_checker::{Check, Level, Limits, Options, Strategies, StrategyName, decided_levels};
use isolde_history::{History, Index, Source};

/// The certificate of all decided levels, written and read again, and levels left out.
fn certified(history: &History, without: Strategies) -> (Certificate, Vec<(Level, String)>) {
    let index = Index::new(history);
    let options = Options { without, ..Options::default() };
    let mut check = Check::new(history, &index, &Limits::NONE).with_options(options);
    let certified = check.certify(&decided_levels());
    let mut text = Vec::new();
    write(&certified.certificate, &mut text).expect("memory");
    let again = read(&mut Source::from_bytes("certificate", &text)).expect("what was written");
    assert_eq!(again, certified.certificate);
    (again, certified.left_out)
}

/// What one of several writers of a value did is a part of one derivation, and no cases.
#[test]
fn what_a_choice_of_writers_comes_to_is_derived() {
    let written = "A: w(x,1) w(a,1)\nB: w(x,1) w(b,1)\nC: r(a,1) r(b,1) w(x,2) w(y,1)\n";
    let search_of = |rest: &str, level: Level| {
        let history = history(&format!("{written}{rest}"));
        let (certificate, _) = certified(&history, Strategies::NONE);
        let is_about = |claim: &&Claim| claim.shown_at == level.name();
        let claim = certificate.claims.iter().find(is_about).expect("it is violated");
        match &claim.proof {
            Proof::Refutation(Refutation::Derivation(Derivation {
                end: End::Search(search),
                ..
            })) => search.clauses.clone(),
            other => panic!("{other:?}"),
        }
    };
    let together = search_of("D: r(x,1) r(y,1)\n", Level::UpdateAtomic);
    assert!(together.iter().any(|clause| matches!(clause, Clause::SeenTogether { .. })));
    let missed =
        search_of("E: r(y,1) w(z,1)\nD: r(x,1) r(z,1)\n", Level::ParallelSnapshotIsolation);
    let is_overwritten = |link: &Link| matches!(link, Link::Overwritten { .. });
    assert!(
        missed.iter().any(
            |clause| matches!(clause, Clause::Cycle(links) if links.iter().any(is_overwritten))
        )
    );
}

/// Fails unless every claim is accepted; how many levels are claimed and left out.
fn certify(text: &str, without: Strategies) -> (usize, usize) {
    let history = history(text);
    let (certificate, left_out) = certified(&history, without);
    let results = verify(&certificate, &history).expect("the same history");
    let mut claimed = 0;
    for (claim, result) in certificate.claims.iter().zip(results) {
        let levels = claim.levels.join(", ");
        assert!(result.is_ok(), "{levels}: {result:?}\n{claim:?}\n{text}");
        claimed += claim.levels.len();
    }
    for (level, reason) in &left_out {
        // What rows or what reads that a level ignores say may depend on more than cases.
        assert!(reason.contains("values repeat"), "{level} is left out: {reason}\n{text}");
    }
    (claimed, left_out.len())
}

/// Small histories never need saturation; every second one gets it, since proofs then
/// have derived steps.
fn other_than(without: Strategies) -> Strategies {
    let searched = Strategies::NONE.and(StrategyName::Search);
    if without == searched { Strategies::NONE } else { searched }
}

#[test]
fn verdicts_on_small_histories_are_certified() {
    let size = Size { txns_max: 3, ops_max: 2, keys_max: 2 };
    let (mut claimed, mut number) = (0, 0);
    let mut without = Strategies::NONE;
    every_history(size, &mut |text| {
        number += 1;
        if number % 5 != 0 {
            return;
        }
        without = other_than(without);
        let (here, left_out) = certify(text, without);
        assert_eq!(left_out, 0, "{text}");
        claimed += here;
    });
    // Without times, four levels of real time are violated by what a weaker one shows,
    // or unknown.
    let timed = 4;
    assert!(claimed >= 80_165 / 5 * (decided_levels().len() - timed), "{claimed}");
}

#[test]
fn verdicts_on_random_histories_are_certified() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    let mut without = Strategies::NONE;
    let (count, mut incomplete) = (random_histories(3_000), Vec::new());
    each_seed(0..count, |seed| {
        without = other_than(without);
        let (_, left_out) = certify(&random_history(seed, size), without);
        incomplete.extend((left_out > 0).then_some(seed));
    });
    assert!(incomplete.is_empty(), "seeds {incomplete:?}");
}

/// Rows that contradict their condition once named a write that they cannot have been read from;
/// others were decided by trying all orders although a weaker level shows why, or took reads of
/// one value to have seen two writers.
#[test]
fn violations_are_certified_where_values_repeat() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    for seed in [1542, 4679, 8390, 8399, 11026, 13456, 15412, 20269] {
        let (_, left_out) = certify(&random_history(seed, size), Strategies::NONE);
        assert_eq!(left_out, 0, "seed {seed}");
    }
}

/// Their orders once named writers of unknown outcome that were not in them.
#[test]
fn guarantees_are_certified_where_outcomes_and_elements_are_open() {
    let size = Size { txns_max: 6, ops_max: 4, keys_max: 3 };
    // Nor did they tell what the readers of unknown outcome that are in them saw: of 100,000
    // histories, the last three.
    for seed in [1497, 2516, 4123, 18605, 26968, 54448, 82868] {
        let (_, left_out) = certify(&random_history(seed, size), Strategies::NONE);
        assert_eq!(left_out, 0, "seed {seed}");
    }
}

/// The verdict of each claim is turned around by giving it another claim's proof.
/// All orders of these are tried, with what no derivation is about.
#[test]
fn what_only_trying_all_orders_shows_is_certified() {
    let texts = [
        "A: p(max all -> 0)",
        "A: w(3,1) w(2,2)\nB: p(value = 2; ; 3=1) d(3)",
        "A: w(y,2)\nB: w(y,0)\nC: r(z,nil)\nD: r(z,nil)\nE: r(z,nil)\n\
         F id=5 sees=5: p(value nil..3; ) p(value nil..3; y=0)",
        "A: p(sum value 1..2 -> 1)\nA: w(x,1)\nB: r(y,nil)\nC @14..19: w(x,0)",
    ];
    for text in texts {
        let (_, left_out) = certify(text, Strategies::NONE);
        assert_eq!(left_out, 0, "{text}");
    }
}

#[test]
fn no_proof_is_accepted_for_a_level_with_the_opposite_verdict() {
    let size = Size { txns_max: 4, ops_max: 3, keys_max: 2 };
    for seed in 0..400 {
        let text = random_history(seed, size);
        let history = history(&text);
        let verifier = Verifier::new(&history);
        let (certificate, _) = certified(&history, Strategies::NONE);
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

/// A proof for every level that has one, of every kind.
fn everything(history: &History) -> Certificate {
    let mut claims = certified(history, Strategies::NONE).0.claims;
    let is_claimed = |claims: &[Claim], level: Level| {
        claims.iter().any(|claim| claim.levels.iter().any(|name| name == level.name()))
    };
    for level in Level::ALL {
        if !is_claimed(&claims, level) {
            claims.extend(match reference::decide(history, level) {
                Reference::Satisfied => witnesses::satisfied(history, level),
                Reference::Violated => derivations::violated(history, level),
                Reference::Unknown(_) => None,
            });
        }
    }
    Certificate { history: Fingerprint::of(history), clock_drift: 0, claims }
}

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

/// The same text with one word, line or letter changed.
fn damaged(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    // What comes before the claims is not of interest.
    let line = 3 + random.below(lines.len() - 3);
    let other = 3 + random.below(lines.len() - 3);
    match random.below(6) {
        0 => drop(lines.remove(line)),
        1 => lines.insert(line, lines[other].clone()),
        2 => lines.swap(line, other),
        _ => {
            let words: Vec<&str> = lines[line].split(' ').collect();
            let place = random.below(words.len());
            let mut words: Vec<String> = words.into_iter().map(String::from).collect();
            let others: Vec<&str> = text.split_whitespace().collect();
            match random.below(4) {
                0 => drop(words.remove(place)),
                1 if place + 1 < words.len() => words.swap(place, place + 1),
                _ => words[place] = others[random.below(others.len())].into(),
            }
            lines[line] = words.join(" ");
        }
    }
    lines.join("\n") + "\n"
}

/// Whatever is accepted is true, however the certificate came to be.
#[test]
fn damaged_certificates_are_refused_or_right() {
    let size = Size { txns_max: 4, ops_max: 3, keys_max: 2 };
    let (mut read_again, mut accepted, mut refused) = (0, 0, 0);
    for seed in 0..100 {
        let text = random_history(seed, size);
        let history = history(&text);
        let mut proofs = Vec::new();
        write(&everything(&history), &mut proofs).expect("memory");
        let proofs = String::from_utf8(proofs).expect("text");
        let verdicts = reference::decide_all(&history);
        let mut random = Random(seed);
        for _ in 0..400 {
            let damaged = damaged(&proofs, &mut random);
            let source = &mut Source::from_bytes("certificate", damaged.as_bytes());
            let Ok(certificate) = read(source) else { continue };
            read_again += 1;
            let results = verify(&certificate, &history).expect("the same history");
            for (claim, result) in certificate.claims.iter().zip(results) {
                refused += usize::from(result.is_err());
                if result.is_err() {
                    continue;
                }
                accepted += 1;
                let opposite = match claim.proof {
                    Proof::Witness(_) => Reference::Violated,
                    Proof::Refutation(_) => Reference::Satisfied,
                };
                for (level, verdict) in &verdicts {
                    let is_claimed = claim.levels.iter().any(|name| name == level.name());
                    assert!(!is_claimed || *verdict != opposite, "{claim:?}\n{text}\n{damaged}");
                }
            }
        }
    }
    assert!(read_again > 3_000 && accepted > 1_000 && refused > 1_000);
}

//! A history of parts that share neither keys nor sessions is what its parts are.

use crate::support::{Random, history};
use isolde::{Check, Level, Limits, Options, Stage, Strategies, StrategyName};
use isolde_certificate::verify;
use isolde_history::Index;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

const LEVELS: [Level; 4] = [
    Level::SnapshotIsolation,
    Level::SessionSnapshotIsolation,
    Level::Serializable,
    Level::SessionSerializable,
];

/// Blind writes of a few keys, and reads of what was written last or a little earlier, in a
/// few sessions; names begin with `prefix`.
fn part(random: &mut Random, prefix: &str) -> String {
    let mut text = String::new();
    let mut written = vec![vec![0]; 3];
    let mut next = 1;
    for _ in 0..4 + random.below(4) {
        write!(text, "{prefix}{}:", random.below(4)).expect("a string grows");
        for (key, versions) in written.iter_mut().enumerate() {
            if random.below(3) == 0 {
                let back = if random.below(3) == 0 { 1 + random.below(versions.len()) } else { 1 };
                let value = versions[versions.len() - back];
                write!(text, " r({prefix}k{key},{value})").expect("a string grows");
            } else if key == 0 || random.below(2) == 0 {
                versions.push(next);
                write!(text, " w({prefix}k{key},{next})").expect("a string grows");
                next += 1;
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn parts_that_share_nothing_are_decided_as_if_they_were_alone() {
    let mut random = Random::new(6);
    let apart = AtomicUsize::new(0);
    let observe = |stage| {
        if matches!(stage, Stage::Components(_)) {
            apart.fetch_add(1, Ordering::Relaxed);
        }
    };
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let without = Strategies::NONE.and(StrategyName::Search);
    let options = Options { without, ..Options::default() };
    let (mut satisfied, mut violated) = (0, 0);
    for _ in 0..400 {
        let parts: Vec<String> =
            ["a", "b", "c"].iter().map(|prefix| part(&mut random, prefix)).collect();
        let whole = history(&format!("init *=0\n{}", parts.concat()));
        let index = Index::new(&whole);
        for level in LEVELS {
            let holds = parts.iter().all(|part| {
                let part = history(&format!("init *=0\n{part}"));
                let index = Index::new(&part);
                Check::new(&part, &index, &Limits::NONE).decide(level).name() == "satisfied"
            });
            let mut check = Check::new(&whole, &index, &limits).with_options(options);
            let found = check.decide(level).name();
            let expected = if holds { "satisfied" } else { "violated" };
            assert_eq!(found, expected, "{level}\n{}", parts.concat());
            *(if holds { &mut satisfied } else { &mut violated }) += 1;
            let certified = check.certify(&[level]);
            let results = verify(&certified.certificate, &whole).expect("the same history");
            assert!(results.iter().all(Result::is_ok), "{level}\n{}", parts.concat());
        }
    }
    assert!(satisfied > 100 && violated > 100, "{satisfied} satisfied, {violated} violated");
    assert!(apart.into_inner() > 100, "no history was decided part by part");
}

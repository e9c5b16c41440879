//! A short and repeatable part of what fuzzers do for hours: the targets of `fuzz/` that are no
//! format, with the same inputs each time.
//!
//! Those of formats are in the tests of `isolde-history`.
#![allow(unreachable_pub, reason = "the fuzzer is another crate")]

#[path = "../../src/archive.rs"]
#[allow(dead_code, reason = "of the program too")]
mod archive;
#[path = "../../../../fuzz/src/bundle.rs"]
mod bundle;
#[path = "../../../../fuzz/src/elle.rs"]
mod elle;
#[path = "../../../../fuzz/src/explanation.rs"]
mod explanation;
#[path = "../../src/http.rs"]
#[allow(dead_code, reason = "of the program too")]
mod http;
#[path = "../../../../fuzz/src/predicate.rs"]
mod predicate;
#[path = "../../../../fuzz/src/report.rs"]
mod report;
#[path = "../../../../fuzz/src/request.rs"]
mod request;
#[path = "../../../../fuzz/src/structured.rs"]
mod structured;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::panic::catch_unwind;
use std::path::PathBuf;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Inputs are at most this long.
const LENGTH_MAX: usize = 160;

/// Gives a target so many inputs: bytes by chance, and seeds with some of them changed.
fn attempt(target: fn(&[u8]), seeds: &[Vec<u8>], rounds: u64) {
    let rounds =
        std::env::var("ISOLDE_FUZZ_ROUNDS").map_or(rounds, |it| it.parse().expect("a number"));
    let mut chance = Chance(Xoshiro256PlusPlus::seed_from_u64(1));
    for round in 0..rounds {
        let input = match seeds {
            [_, ..] if round % 2 == 0 => {
                let seed = &seeds[chance.below(seeds.len())];
                chance.changed(seed)
            }
            _ => (0..chance.below(LENGTH_MAX)).map(|_| chance.below(256) as u8).collect(),
        };
        let is_sound = catch_unwind(|| target(&input)).is_ok();
        assert!(is_sound, "round {round}: {}", input.escape_ascii());
    }
}

/// A sequence of numbers that is the same each time.
struct Chance(Xoshiro256PlusPlus);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0.random_range(0..limit.max(1))
    }

    fn changed(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut input = seed.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(input.len() + 1);
            let end = (at + self.below(30)).min(input.len());
            match self.below(3) {
                0 => drop(input.drain(at..end)),
                1 => {
                    let again = input[at..end].to_vec();
                    let place = self.below(input.len() + 1);
                    input.splice(place..place, again);
                }
                _ if at < input.len() => input[at] = self.below(256) as u8,
                _ => {}
            }
        }
        input
    }
}

/// The files of a folder that end so, in the order of their names.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(format!("{ROOT}/{folder}")).expect("a folder of the tree");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == ending));
    paths.sort();
    let seeds: Vec<Vec<u8>> =
        paths.iter().map(|path| std::fs::read(path).expect("a seed")).collect();
    assert!(!seeds.is_empty(), "{folder} has seeds");
    seeds
}

#[test]
fn every_question_of_elle_is_answered_or_refused() {
    attempt(elle::asked, &files("fuzz/seeds/jepsen-edn", "edn"), 2_000);
}

#[test]
fn every_form_of_a_report_can_be_made_and_a_changed_one_is_refused() {
    attempt(report::reported, &[], 150);
}

#[test]
fn an_archive_is_a_bundle_or_refused() {
    attempt(bundle::opened, &[], 2_000);
}

#[test]
fn bytes_are_a_request_or_none() {
    let seed = b"GET /run/a%20b?x=1 HTTP/1.1\r\nHost: localhost:1\r\nAccept: */*\r\n\r\n".to_vec();
    attempt(request::requested, &[seed], 50_000);
}

#[test]
fn a_condition_in_sql_is_evaluated_or_leaves_open_what_it_finds() {
    let seed = b"age BETWEEN 18 AND 30 AND (name = 'Ann' OR value % 2 = 1)".to_vec();
    attempt(predicate::evaluated, &[seed], 2_000);
}

#[test]
fn what_is_said_of_a_history_is_what_the_definitions_say() {
    attempt(explanation::explained, &[], 300);
}

//! Histories for comparing engines and for properties: all small ones, and random ones.
//!
//! Both come as text, so that a failure shows what failed.

mod enumerate;
mod operations;
mod random;

pub(crate) use enumerate::every_history;
pub(crate) use operations::random_operations;
pub(crate) use random::{Random, random_history};

use isolde_history::History;
use isolde_history::format::parse_text;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The history written in `text`.
pub(crate) fn history(text: &str) -> History {
    parse_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// How many random histories to try: as many as the test command does, or as
/// `ISOLDE_RANDOM_HISTORIES` says.
pub(crate) fn random_histories(usual: u64) -> u64 {
    let count = std::env::var("ISOLDE_RANDOM_HISTORIES").ok();
    count.map_or(usual, |count| count.parse().expect("a number of histories"))
}

/// Tries random histories by their seeds. What fails says so where it fails; the others are
/// tried all the same, so that a long run tells more than its first failure.
pub(crate) fn each_seed(seeds: impl Iterator<Item = u64>, mut try_one: impl FnMut(u64)) {
    const FAILURES_MAX: usize = 20;
    let fails = |seed: &u64| catch_unwind(AssertUnwindSafe(|| try_one(*seed))).is_err();
    let failed: Vec<u64> = seeds.filter(fails).take(FAILURES_MAX).collect();
    assert!(failed.is_empty(), "failed: seeds {failed:?}");
}

/// How large histories get.
#[derive(Clone, Copy)]
#[expect(clippy::struct_field_names, reason = "a limit says which end it is")]
pub(crate) struct Size {
    /// Transactions in all sessions together.
    pub(crate) txns_max: usize,
    /// Operations of one transaction, at least one.
    pub(crate) ops_max: usize,
    /// Registers, at most three; random histories have as many lists.
    pub(crate) keys_max: usize,
}

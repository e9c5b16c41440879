//! Clocks and windows say the same of every history.

use super::{RULE, clocks, windows};
use crate::limits::Limits;
use crate::weak::samples::stale_reads;
use crate::weak::{Decision, Facts, Forced, Halt, Rule, decide};
use isolde_history::format::parse_text;
use isolde_history::{History, Index};
use std::fmt::Write;

type Method = fn(&Facts<'_>) -> Result<Vec<Forced>, Halt>;

const METHODS: [Method; 3] = [clocks::forced, windows::forced, windows::forced_narrowly];

/// Whether the level holds, by each method.
fn verdicts(history: &History) -> [bool; 3] {
    let index = Index::new(history);
    METHODS.map(|forced| {
        let facts = Facts::new(history, &index, &Limits::NONE);
        match decide(&Rule { forced, ..RULE }, &facts) {
            Decision::Satisfied(order) => {
                assert_eq!(order.len(), index.counted_txns());
                true
            }
            Decision::Violated(_) => false,
            Decision::Limit(limit) => panic!("{limit}"),
        }
    })
}

#[test]
fn clocks_and_windows_agree() {
    let mut satisfied = 0;
    for seed in 0..400 {
        let [clocks, windows, narrow] = verdicts(&stale_reads(seed, 2));
        assert_eq!((windows, narrow), (clocks, clocks), "seed {seed}");
        satisfied += u32::from(clocks);
    }
    assert!((50..350).contains(&satisfied), "{satisfied} of 400 hold: too much of one kind");
}

/// A session for each transaction. Everyone's clock is needed until the end.
#[test]
fn many_sessions_of_one_transaction_need_little_memory() {
    let mut text = String::from("# isolde-history 1\n");
    let writers = 15_000;
    for txn in 1..=writers {
        writeln!(text, "{txn}: w({txn},{txn})").expect("a string takes all");
    }
    for txn in 1..writers {
        writeln!(text, "{}: r({txn},{txn}) r({1},{1})", writers + txn, txn + 1)
            .expect("a string takes all");
    }
    let history = parse_text(&text).expect("it is well formed");
    let index = Index::new(&history);
    let limits = Limits { working_bytes_max: Some(16 << 20), ..Limits::NONE };
    let facts = Facts::new(&history, &index, &limits);
    assert!(matches!(decide(&RULE, &facts), Decision::Satisfied(_)));
}

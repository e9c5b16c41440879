//! Clocks and windows say the same of every history.

use super::{RULE, clocks, windows};
use crate::check::Limits;
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

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One store runs everything; reads see a version that is a little old, sometimes.
fn history(seed: u64) -> History {
    let mut random = Random(seed);
    let txns = 2 + random.below(300);
    let sessions = 1 + random.below(txns);
    let keys = 1 + random.below(30);
    let stale = random.below(txns / 4 + 2);
    let mut versions: Vec<Vec<String>> = vec![vec!["nil".into()]; keys];
    let mut text = String::from("# isolde-history 1\n");
    for txn in 0..txns {
        let mut line = format!("s{}:", random.below(sessions));
        for op in 0..=random.below(5) {
            let key = random.below(keys);
            if random.below(3) == 0 {
                let value = (10 * txn + op).to_string();
                write!(line, " w(k{key},{value})").expect("a string takes all");
                versions[key].push(value);
            } else {
                let age = if random.below(1000) < stale { random.below(2) } else { 0 };
                let seen = &versions[key][versions[key].len().saturating_sub(age + 1)];
                write!(line, " r(k{key},{seen})").expect("a string takes all");
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
    parse_text(&text).expect("it is well formed")
}

#[test]
fn clocks_and_windows_agree() {
    let mut satisfied = 0;
    for seed in 0..400 {
        let [clocks, windows, narrow] = verdicts(&history(seed));
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

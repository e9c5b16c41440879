//! Random histories of a few hundred transactions, for tests that compare methods.

use isolde_history::History;
use isolde_history::format::parse_text;
use std::fmt::Write;

pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One store runs everything; reads see a version that is a little old, sometimes: the more
/// `ages` there are, the older and the more often.
pub(super) fn stale_reads(seed: u64, ages: usize) -> History {
    let mut random = Random(seed);
    let txns = 2 + random.below(300);
    let sessions = 1 + random.below(txns);
    let keys = 1 + random.below(30);
    let stale = random.below(txns / 4 + 2) * ages / 2;
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
                let age = if random.below(1000) < stale { random.below(ages) } else { 0 };
                let seen = &versions[key][versions[key].len().saturating_sub(age + 1)];
                write!(line, " r(k{key},{seen})").expect("a string takes all");
            }
        }
        text.push_str(&line);
        text.push('\n');
    }
    parse_text(&text).expect("it is well formed")
}

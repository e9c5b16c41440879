//! Random histories of single operations with times, linearizable in parts.
//!
//! Clients take turns on registers at instants inside the time their operations were
//! open; some answers are then changed. Each seed switches features on and off:
//! repeated values, compare-and-sets and refused ones, unknown and aborted outcomes,
//! clocks so coarse that a client's next operation begins when the last one ended or
//! before.

use super::random::Random;
use std::collections::BTreeMap;
use std::fmt::Write;

#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
struct Features {
    keys: usize,
    repeated: bool,
    sets: bool,
    refused: bool,
    outcomes: bool,
    /// How many ticks lie between two operations of a client, and one more.
    pause: usize,
    noise: usize,
}

/// An operation that a client sends.
struct Planned {
    session: usize,
    invoked: usize,
    completed: usize,
    /// When it takes effect, in tenths of a tick.
    instant: usize,
}

/// The text of the history of this seed, with up to `operations_max` operations.
pub(crate) fn random_operations(seed: u64, operations_max: usize) -> String {
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let features = Features {
        keys: 1 + random.below(2),
        repeated: random.percent(50),
        sets: random.percent(60),
        refused: random.percent(40),
        outcomes: random.percent(50),
        pause: random.pick(&[0, 1, 2, 2, 2]),
        noise: random.pick(&[0, 10, 30]),
    };
    let planned = plan(&mut random, &features, operations_max);
    let mut by_instant: Vec<usize> = (0..planned.len()).collect();
    by_instant.sort_by_key(|&place| planned[place].instant);
    let mut registers: BTreeMap<usize, usize> = BTreeMap::new();
    let mut lines = vec![String::new(); planned.len()];
    let mut written = 0;
    for place in by_instant {
        let outcome = match random.below(6) {
            0 if features.outcomes => " aborted",
            1 | 2 if features.outcomes => " unknown",
            _ => "",
        };
        let has_effect = outcome.is_empty() || (outcome == " unknown" && random.percent(60));
        let key = random.below(features.keys);
        let held = registers.get(&key).copied().unwrap_or(0);
        let (text, left) = operation(&mut random, &features, key, held, &mut written);
        if let Some(left) = left.filter(|_| has_effect) {
            registers.insert(key, left);
        }
        let Planned { session, invoked, completed, .. } = planned[place];
        let session = ["A", "B", "C", "D"][session];
        lines[place] = format!("{session} @{invoked}..{completed}: {text}{outcome}\n");
    }
    format!("# seed {seed}\ninit *=0\n{}", lines.concat())
}

fn plan(random: &mut Random, features: &Features, operations_max: usize) -> Vec<Planned> {
    let sessions = 1 + random.below(4);
    let mut free = [10; 4];
    let count = 1 + random.below(operations_max);
    let length = random.pick(&[2, 5]);
    (0..count)
        .map(|_| {
            let session = random.below(sessions);
            let invoked = free[session] + random.below(3);
            let completed = invoked + 1 + random.below(length);
            free[session] = completed + features.pause - 1;
            let ticks = 10 * (completed - invoked);
            let instant = 10 * invoked + random.below(ticks);
            Planned { session, invoked, completed, instant }
        })
        .collect()
}

/// What a client does and is told, and what the register holds afterwards.
fn operation(
    random: &mut Random,
    features: &Features,
    key: usize,
    held: usize,
    written: &mut usize,
) -> (String, Option<usize>) {
    let name = ["x", "y"][key];
    let seen = if random.percent(features.noise) { random.below(*written + 2) } else { held };
    let mut fresh = || {
        *written += 1;
        if features.repeated { *written % 3 } else { *written }
    };
    let mut text = String::new();
    let left = match random.below(10) {
        0..=2 => {
            let value = fresh();
            write!(text, "w({name},{value})").expect("a string grows");
            Some(value)
        }
        3..=5 if features.sets => {
            let value = fresh();
            write!(text, "r({name},{seen}) w({name},{value})").expect("a string grows");
            Some(value)
        }
        6 if features.refused => {
            write!(text, "r({name},!{})", held + 1).expect("a string grows");
            None
        }
        7 if random.percent(30) => {
            write!(text, "r({name},?)").expect("a string grows");
            None
        }
        _ => {
            write!(text, "r({name},{seen})").expect("a string grows");
            None
        }
    };
    (text, left)
}

//! Watches from listener to verdict in a world that follows from a seed.
//!
//! Applications drive a simulated database and send their traces; connections deliver them in
//! pieces, late, or not at all; the disk of `--save` is slow, full or broken; threads are refused,
//! time jumps, processes are killed, and at some moment the watch ends or dies. One thread does
//! all of it, a step at a time, so that a seed is the same world each time. What listens, parses,
//! saves, takes up again, orders and verifies is the program's own code.
//!
//! What must hold in every world:
//!
//! 1. What was acknowledged is in the file, from before it was acknowledged.
//! 2. No false alarm: of a database that keeps its promise no violation is told, neither by the
//!    watch nor of what it left in its file.
//! 3. No lost alarm: if the watch ends with status 0, what it acknowledged violates nothing.
//! 4. What it acknowledged was verified, if it ends with status 0.
//! 5. Status 2 has a reason: if nothing went wrong that a sender could not mend, it is not 2, and
//!    violations are found that are found with all of the trace at hand.
//!
//! The tests take some hundred seeds. More, and others:
//!
//! ```text
//! ISOLDE_SIMULATIONS=1000000 cargo test --release -p isolde-cli --bin isolde simulation
//! ISOLDE_SIMULATION_SEED=17 cargo test -p isolde-cli --bin isolde simulation
//! ```

mod application;
mod chance;
mod database;
mod machine;
mod world;

use chance::Chance;
use world::{Ending, World};

/// Seeds that the tests take.
const SEEDS: u64 = 200;

/// Seeds of which it is told what is wrong, and lines of that, unless one seed is asked for.
const TOLD_MAX: usize = 20;
const LINES_MAX: usize = 3;

/// What worlds were like, so that none of it is missing.
#[derive(Debug, Default)]
struct Tally {
    violated: u64,
    satisfied: u64,
    unknown: u64,
    crashed: u64,
    acknowledged: u64,
    sent_again: u64,
}

fn simulated(seeds: std::ops::Range<u64>) -> Tally {
    let (mut seen, mut wrong) = (Tally::default(), Vec::new());
    for seed in seeds.clone() {
        let world = std::panic::catch_unwind(|| {
            let mut world = World::new(Chance::new(seed));
            let ending = world.run();
            (world.complaint(ending), ending, world.acknowledged(), world.sent_again())
        });
        let Ok((complaint, ending, acknowledged, sent_again)) = world else {
            wrong.push((seed, "it panics".to_owned()));
            continue;
        };
        wrong.extend(complaint.map(|complaint| (seed, complaint)));
        seen.acknowledged += acknowledged;
        seen.sent_again += u64::from(sent_again);
        *match ending {
            Ending::Violated => &mut seen.violated,
            Ending::Satisfied => &mut seen.satisfied,
            Ending::Unknown => &mut seen.unknown,
            Ending::Crashed => &mut seen.crashed,
        } += 1;
    }
    let is_one = seeds.end - seeds.start == 1;
    let brief = |text: &String| {
        let lines = text.lines().take(if is_one { usize::MAX } else { LINES_MAX });
        lines.collect::<Vec<&str>>().join("\n")
    };
    let told = wrong.iter().take(TOLD_MAX);
    let told: Vec<String> =
        told.map(|(seed, text)| format!("seed {seed}: {}", brief(text))).collect();
    assert!(wrong.is_empty(), "{} of {seeds:?} worlds:\n{}", wrong.len(), told.join("\n"));
    seen
}

#[test]
#[allow(clippy::print_stdout, reason = "it says what it tried")]
fn acknowledgements_and_verdicts_hold_in_every_world() {
    let number =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = number("ISOLDE_SIMULATION_SEED") {
        println!("{:?}", simulated(seed..seed + 1));
        return;
    }
    let (seeds, begun) = (number("ISOLDE_SIMULATIONS").unwrap_or(SEEDS), std::time::Instant::now());
    let first = number("ISOLDE_SIMULATIONS_FROM").unwrap_or(0);
    let seen = simulated(first..first + seeds);
    println!("{seeds} worlds in {:?}: {seen:?}", begun.elapsed());
    // Worlds that are all alike would show nothing.
    for count in [seen.violated, seen.satisfied, seen.unknown, seen.crashed, seen.sent_again] {
        assert!(count > 0, "{seen:?}");
    }
}

#[test]
fn a_seed_is_the_same_world_each_time() {
    for seed in 0..20 {
        let once = || {
            let mut world = World::new(Chance::new(seed));
            let ending = world.run();
            (ending, world.acknowledged(), world.file())
        };
        assert_eq!(once(), once(), "seed {seed}");
    }
}

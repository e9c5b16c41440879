//! Deciding levels one after another, and how long each takes.

use crate::limits;
use isolde::{Check, Level, Verdict};
use isolde_report::Decided;
use std::collections::HashMap;
use std::time::Instant;

/// The part of the time that the level has which a history is about: one in so many.
const FIRST_PARTS: u32 = 4;

/// Strong levels first: what holds for them holds for the weaker ones.
pub(crate) fn decide(
    check: &mut Check<'_>,
    levels: &[Level],
    tell: impl Fn(Level, &Verdict, f64),
) -> Vec<Decided> {
    let mut seconds = vec![0.0; levels.len()];
    for (level, seconds) in levels.iter().zip(&mut seconds).rev() {
        let start = Instant::now();
        let verdict = check.decide(*level);
        *seconds = start.elapsed().as_secs_f64();
        tell(*level, &verdict, *seconds);
    }
    levels.iter().zip(seconds).map(|(&level, time)| (level, check.decide(level), time)).collect()
}

/// The same, such that levels which wait have their turn if time or memory are limited. What
/// single operations are about comes first: other levels say little of them, and take long.
pub(crate) fn decide_within(
    check: &mut Check<'_>,
    levels: &[Level],
    clock: &limits::Clock,
    tell: impl Fn(Level, &Verdict, f64),
) -> Vec<Decided> {
    if !clock.has_deadline() && !check.is_short_of_memory() {
        return decide(check, levels, tell);
    }
    let mut seconds: HashMap<Level, f64> = HashMap::new();
    let mut begun = Instant::now();
    let mut told: Vec<Level> = Vec::new();
    let mut note = |level: Level, verdict: &Verdict| {
        let total = seconds.entry(level).or_default();
        *total += begun.elapsed().as_secs_f64();
        begun = Instant::now();
        if !told.contains(&level) {
            tell(level, verdict, *total);
        }
        if !matches!(verdict, Verdict::Unknown(_)) {
            told.push(level);
        }
    };
    if levels.contains(&Level::Linearizable) {
        clock.turn(FIRST_PARTS);
        note(Level::Linearizable, &check.decide(Level::Linearizable));
        clock.turn(1);
    }
    let decided = check.decide_in_turns(levels, note);
    let timed = |(level, verdict): (Level, Verdict)| {
        (level, verdict, seconds.get(&level).copied().unwrap_or(0.0))
    };
    decided.into_iter().map(timed).collect()
}

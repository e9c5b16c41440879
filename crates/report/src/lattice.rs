//! The edges of what holds: the strongest levels satisfied, the weakest violated.

use crate::Decided;
use isolde::{Level, Verdict};

/// Satisfied levels that no other satisfied level implies.
pub(crate) fn strongest(decided: &[Decided]) -> Vec<&'static str> {
    let holds = with(decided, |verdict| matches!(verdict, Verdict::Satisfied(_)));
    let implied = |level: Level| level.stronger_than().iter().any(|above| holds.contains(above));
    holds.iter().filter(|&&level| !implied(level)).map(|level| level.name()).collect()
}

/// Violated levels none of whose weaker levels is violated.
pub(crate) fn weakest_violated(decided: &[Decided]) -> Vec<&'static str> {
    let broken = with(decided, |verdict| matches!(verdict, Verdict::Violated(_)));
    let settled = |level: Level| level.weaker_than().iter().any(|below| broken.contains(below));
    broken.iter().filter(|&&level| !settled(level)).map(|level| level.name()).collect()
}

fn with(decided: &[Decided], is: impl Fn(&Verdict) -> bool) -> Vec<Level> {
    decided.iter().filter(|(_, verdict, _)| is(verdict)).map(|(level, ..)| *level).collect()
}

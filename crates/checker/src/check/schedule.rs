//! Several levels in a limited time: what needs no search goes first, and no search takes the
//! time of levels that wait.
//!
//! Without a limit the order is another one: a witness of a strong level settles the weaker
//! ones, so that they cost nothing. But a search may take all the time there is, and then the
//! levels behind it would be left open, however easy they are. So each search has turns, each
//! longer than the one before, and begins anew with each; all of them together take half as long
//! again as the last. How long a turn is, is counted as [`Work`](crate::limits::Work) and not
//! timed: what is decided before the time is up is decided in every run. Only the strongest level
//! is asked before the levels without a search, for one turn: most histories satisfy it at once.
//! Memory is another matter: a search that wants more than there is ends the whole check, so
//! where that is likely nothing is searched before the other levels are decided.

use crate::check::Check;
use crate::check::implied::implied;
use crate::level::Level;
use crate::unknown::Unknown;
use crate::verdict::{Satisfied, Verdict};
use crate::weak::RULES;

/// Work of the first turn of a search, about a second, and for each operation of the history.
const FIRST_TURN: u64 = 1 << 22;
const FIRST_TURN_PER_OP: u64 = 64;
/// How much longer each turn is than the one before.
const LONGER: u64 = 4;
/// A search seldom takes more than so many times the memory of the index.
const MEMORY_OF_A_SEARCH: usize = 32;

impl Check<'_> {
    /// Decides levels that are in the order of [`Level`] while `stop` of the limits keeps a time
    /// limit; every verdict is told, the last one of a level counts.
    ///
    /// Levels without a search come first, but for one turn of the strongest level unless memory
    /// is short; where values repeat there are none.
    pub fn decide_in_turns(
        &mut self,
        levels: &[Level],
        mut tell: impl FnMut(Level, &Verdict),
    ) -> Vec<(Level, Verdict)> {
        let values_repeat = self.values_repeat();
        let is_searched =
            |level: &Level| values_repeat || !RULES.iter().any(|rule| rule.level == *level);
        let (mut open, quick): (Vec<Level>, Vec<Level>) =
            levels.iter().rev().copied().partition(is_searched);
        let tries_first = !quick.is_empty() && !self.is_short_of_memory();
        let mut turn = self.first_turn();
        let mut had_turn = None;
        if let Some(&strongest) = open.first().filter(|_| tries_first) {
            had_turn = (!self.has_turn(strongest, turn)).then_some(strongest);
        }
        self.work.allow(u64::MAX);
        for level in self.easiest_first(quick) {
            self.forget_limit(level);
            tell(level, &self.decide(level));
        }
        while !open.is_empty() && !(self.limits().stop)() {
            // Nobody waits for the last one.
            turn = if open.len() == 1 { u64::MAX } else { turn };
            open.retain(|&level| {
                if had_turn.take_if(|it| *it == level).is_some() || !self.has_turn(level, turn) {
                    return true;
                }
                tell(level, &self.decide(level));
                false
            });
            turn = turn.saturating_mul(LONGER);
            // Others may have asked for levels that have no turn of their own.
            let is_settled = |level: &Level| levels.contains(level) && !open.contains(level);
            self.verdicts.retain(|(level, verdict)| is_settled(level) || !is_limit(verdict));
        }
        self.work.allow(u64::MAX);
        for level in open {
            let known = self.verdicts.iter().map(|(level, verdict)| (*level, verdict));
            let limit = || Verdict::Unknown(Unknown::Limit(self.limits().reached()));
            let verdict = implied(level, known).unwrap_or_else(limit);
            self.forget_limit(level);
            tell(level, &verdict);
            self.verdicts.push((level, verdict));
        }
        let verdicts = levels.iter().map(|&level| (level, self.implied_or_decided(level)));
        let verdicts: Vec<(Level, Verdict)> = verdicts.collect();
        // What shows a level is what shows the one that implies it.
        self.verdicts.retain(|(level, _)| !levels.contains(level));
        self.verdicts.extend(verdicts.iter().cloned());
        verdicts
    }

    /// The work of a first turn.
    pub(crate) fn first_turn(&self) -> u64 {
        FIRST_TURN + FIRST_TURN_PER_OP * self.history.op_count() as u64
    }

    /// Decides a level within so much work; whether that was enough.
    fn has_turn(&mut self, level: Level, turn: u64) -> bool {
        self.work.allow(turn);
        // It may have been asked for in the turn of another.
        self.forget_limit(level);
        let verdict = self.decide(level);
        !(is_limit(&verdict) && self.work.is_done())
    }

    /// Whether a search may want more memory than there is.
    pub fn is_short_of_memory(&self) -> bool {
        let wanted = self.index.memory().saturating_mul(MEMORY_OF_A_SEARCH);
        self.limits().working_bytes_max.is_some_and(|most| most < wanted)
    }

    /// The strongest settles the others if it holds; if not, they go by what they take.
    fn easiest_first(&mut self, strongest_first: Vec<Level>) -> Vec<Level> {
        let mut levels = strongest_first;
        if let [strongest, weaker @ ..] = &mut levels[..] {
            self.forget_limit(*strongest);
            if !matches!(self.decide(*strongest), Verdict::Satisfied(_)) {
                weaker.reverse();
            }
        }
        levels
    }

    /// Forgets that a level met a limit: it was asked for in the turn of another.
    fn forget_limit(&mut self, level: Level) {
        self.verdicts.retain(|(known, verdict)| *known != level || !is_limit(verdict));
    }

    /// Whether it has to be tried who wrote what was read, at any level.
    pub(crate) fn values_repeat(&self) -> bool {
        !self.index.several().is_empty()
            || self.index.has_repeated_elements()
            || self.index.has_lesser_candidates()
    }

    /// The verdict as it would be if strong levels had been asked first.
    fn implied_or_decided(&mut self, level: Level) -> Verdict {
        let verdict = self.decide(level);
        let stronger = level.stronger_than();
        let holds = |(other, verdict): &&(Level, Verdict)| {
            stronger.contains(other) && matches!(verdict, Verdict::Satisfied(_))
        };
        let strongest = self.verdicts.iter().filter(holds).map(|known| known.0).max();
        match (verdict, strongest) {
            // Locks and stores are objects, and nothing to isolation.
            (verdict @ Verdict::Unknown(Unknown::Calls { .. }), _) => verdict,
            (Verdict::Satisfied(_) | Verdict::Unknown(_), Some(strongest)) => {
                Verdict::Satisfied(Satisfied::Implied(strongest))
            }
            (verdict, _) => verdict,
        }
    }
}

fn is_limit(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Unknown(Unknown::Limit(_)))
}

#[cfg(test)]
mod tests {
    use crate::check::{Check, applicable_levels};
    use crate::level::Level;
    use crate::limits::{Limits, Stage};
    use crate::unknown::{Limit, Unknown};
    use crate::verdict::Verdict;
    use isolde_history::Index;
    use isolde_history::format::parse_text;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    const SKEW: &str = "init *=0\nA: r(x,0) w(y,1)\nB: r(y,0) w(x,1)\n";

    #[test]
    fn verdicts_are_those_of_strong_levels_first() {
        for text in [SKEW, "A: w(x,1)\nB: r(x,1)\n", "A: w(x,1) w(y,1)\nB: r(x,1) r(y,nil)\n"] {
            let history = parse_text(text).expect("a well-formed history");
            let index = Index::new(&history);
            let levels = applicable_levels(&history);
            let usual = Check::new(&history, &index, &Limits::NONE).decide_all(&levels);
            let turns =
                Check::new(&history, &index, &Limits::NONE).decide_in_turns(&levels, |_, _| {});
            assert_eq!(turns, usual, "{text}");
        }
    }

    /// Who was stopped while replaying a history along its times took the long way afterwards.
    #[test]
    fn a_replay_that_was_stopped_is_tried_again() {
        let history =
            parse_text("A @1..2: w(x,1) w(y,1)\nB @3..4: r(x,1) r(y,1)\n").expect("well-formed");
        let index = Index::new(&history);
        let is_over = AtomicBool::new(true);
        let stages = Mutex::new(Vec::new());
        let limits = Limits {
            stop: &|| is_over.load(Ordering::Relaxed),
            observe: &|stage| stages.lock().expect("nobody panics").push(stage),
            ..Limits::NONE
        };
        let mut check = Check::new(&history, &index, &limits);
        let level = Level::StrictSerializable;
        assert!(matches!(check.decide(level), Verdict::Unknown(Unknown::Limit(_))));
        is_over.store(false, Ordering::Relaxed);
        check.forget_limit(level);
        assert!(matches!(check.decide(level), Verdict::Satisfied(_)));
        let stages = stages.lock().expect("nobody panics");
        assert!(stages.contains(&Stage::Replayed { repairs: 0 }), "{stages:?}");
    }

    /// A search that wanted more memory than there was ended the check, and nothing was known of
    /// the levels that need little.
    #[test]
    fn nothing_is_searched_before_other_levels_where_memory_is_short() {
        let history = parse_text("A: w(x,1)\nB: r(x,1)\n").expect("a well-formed history");
        let index = Index::new(&history);
        let levels = [Level::ReadCommitted, Level::Causal, Level::Serializable];
        let enough = super::MEMORY_OF_A_SEARCH * index.memory();
        for (bytes, is_short) in [(enough, false), (enough - 1, true)] {
            let is_searched = AtomicBool::new(false);
            let limits = Limits {
                working_bytes_max: Some(bytes),
                observe: &|stage| {
                    let is_search = !matches!(stage, Stage::Decide(_) | Stage::Decided { .. });
                    is_searched.fetch_or(is_search, Ordering::Relaxed);
                },
                ..Limits::NONE
            };
            let mut told = Vec::new();
            let mut check = Check::new(&history, &index, &limits);
            let _ = check.decide_in_turns(&levels, |level, _| {
                told.push((level, is_searched.load(Ordering::Relaxed)));
            });
            assert_eq!(told[0], (Level::Causal, !is_short), "{bytes}");
        }
    }

    /// Who wrote a value that repeats has to be tried, which took the time of a stronger level
    /// that settles all of them.
    #[test]
    fn strong_levels_come_first_where_values_repeat() {
        let history = parse_text("A: w(x,1)\nB: w(x,1)\nC: r(x,1)\n").expect("well-formed");
        let index = Index::new(&history);
        let mut told = Vec::new();
        let levels = [Level::ReadCommitted, Level::Causal, Level::Serializable];
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let _ = check.decide_in_turns(&levels, |level, _| told.push(level));
        assert_eq!(told, [Level::Serializable, Level::Causal, Level::ReadCommitted]);
    }

    #[test]
    fn a_search_whose_turn_is_over_goes_on_in_the_next() {
        let history = parse_text(SKEW).expect("a well-formed history");
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        assert!(!check.has_turn(Level::Serializable, 0));
        assert!(check.has_turn(Level::Serializable, 1 << 10));
        assert_eq!(check.decide(Level::Serializable).name(), "violated");
    }

    /// What was open when the time was up said that its turn was over.
    #[test]
    fn the_limit_that_is_named_is_the_one_that_ended_the_check() {
        let history = parse_text(SKEW).expect("a well-formed history");
        let index = Index::new(&history);
        let is_over = AtomicBool::new(false);
        let limits = Limits { stop: &|| is_over.load(Ordering::Relaxed), ..Limits::NONE };
        let mut check = Check::new(&history, &index, &limits);
        assert!(!check.has_turn(Level::Serializable, 0));
        is_over.store(true, Ordering::Relaxed);
        let decided = check.decide_in_turns(&[Level::Serializable], |_, _| {});
        let limit = Verdict::Unknown(Unknown::Limit(Limit::Time));
        assert_eq!(decided, [(Level::Serializable, limit)]);
    }

    /// A level that another asked for when that one's turn was over was left `unknown`, with
    /// most of the time unused.
    #[test]
    fn a_limit_met_in_the_turn_of_another_is_not_the_answer() {
        let history = parse_text(SKEW).expect("a well-formed history");
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let limit = Verdict::Unknown(Unknown::Limit(Limit::Time));
        check.verdicts.push((Level::Serializable, limit));
        let decided = check.decide_in_turns(&[Level::Serializable], |_, _| {});
        assert_eq!(decided[0].1.name(), "violated");
    }
}

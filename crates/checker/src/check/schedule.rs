//! Several levels in a limited time: what needs no search goes first, and no search takes the
//! time of levels that wait.
//!
//! Without a limit the order is another one: a witness of a strong level settles the weaker
//! ones, so that they cost nothing. But a search may take all the time there is, and then the
//! levels behind it would be left open, however easy they are. So only the strongest level is
//! asked before them, for its part of the time: most histories satisfy it at once. Memory is
//! another matter: a search that wants more than there is ends the whole check, so where that
//! is likely nothing is searched before the other levels are decided.

use crate::check::Check;
use crate::level::Level;
use crate::verdict::{Satisfied, Unknown, Verdict};
use crate::weak::RULES;

/// The part of the time that the first attempt at the strongest level has: one in so many.
const FIRST_PARTS: u32 = 4;
/// A search seldom takes more than so many times the memory of the index.
const MEMORY_OF_A_SEARCH: usize = 32;

impl Check<'_> {
    /// Decides levels that are in the order of [`Level`] while `stop` of the limits keeps a time
    /// limit; every verdict is told, the last one of a level counts.
    ///
    /// Levels without a search come first, but for one attempt at the strongest level unless
    /// memory is short; where values repeat there are none. Then half of the time is shared equally among the searches,
    /// and so is all that is left among those which are open after that. `turn` is called before
    /// each level with the part of the time that is left which it may use: one in so many. `stop`
    /// has to keep to that, until the next turn.
    pub fn decide_in_turns(
        &mut self,
        levels: &[Level],
        turn: &dyn Fn(u32),
        mut tell: impl FnMut(Level, &Verdict),
    ) -> Vec<(Level, Verdict)> {
        let values_repeat = self.values_repeat();
        let is_searched =
            |level: &Level| values_repeat || !RULES.iter().any(|rule| rule.level == *level);
        let (searched, quick): (Vec<Level>, Vec<Level>) =
            levels.iter().rev().copied().partition(is_searched);
        let count = searched.len() as u32;
        let tries_first = !quick.is_empty() && !self.is_short_of_memory();
        if let Some(&strongest) = searched.first().filter(|_| tries_first) {
            turn(FIRST_PARTS);
            let _ = self.decide(strongest);
        }
        turn(1);
        for level in self.easiest_first(quick) {
            self.forget_limit(level);
            tell(level, &self.decide(level));
        }
        let mut open: Vec<Level> = Vec::new();
        for (place, &level) in (0..count).zip(&searched) {
            turn(if count == 1 { 1 } else { 2 * count - place });
            self.forget_limit(level);
            let verdict = self.decide(level);
            tell(level, &verdict);
            if matches!(verdict, Verdict::Unknown(Unknown::Limit(_))) && (self.limits.stop)() {
                open.push(level);
            }
        }
        self.verdicts.retain(|(level, _)| !open.contains(level));
        for (left, level) in (1..=open.len() as u32).rev().zip(open) {
            turn(left);
            tell(level, &self.decide(level));
        }
        turn(1);
        levels.iter().map(|&level| (level, self.implied_or_decided(level))).collect()
    }

    /// Whether a search may want more memory than there is.
    pub fn is_short_of_memory(&self) -> bool {
        let wanted = self.index.memory().saturating_mul(MEMORY_OF_A_SEARCH);
        self.limits.working_bytes_max.is_some_and(|most| most < wanted)
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
        let is_limit = |verdict: &Verdict| matches!(verdict, Verdict::Unknown(Unknown::Limit(_)));
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

#[cfg(test)]
mod tests {
    use crate::check::{Check, applicable_levels};
    use crate::level::Level;
    use crate::limits::{Limits, Stage};
    use crate::verdict::{Unknown, Verdict};
    use isolde_history::Index;
    use isolde_history::format::parse_text;
    use std::cell::RefCell;
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
            let turns = Check::new(&history, &index, &Limits::NONE).decide_in_turns(
                &levels,
                &|_| {},
                |_, _| {},
            );
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
        assert_eq!(stages.last(), Some(&Stage::Replayed { repairs: 0 }));
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
                    let is_search = !matches!(stage, Stage::Decide(_));
                    is_searched.fetch_or(is_search, Ordering::Relaxed);
                },
                ..Limits::NONE
            };
            let mut told = Vec::new();
            let mut check = Check::new(&history, &index, &limits);
            let _ = check.decide_in_turns(&levels, &|_| {}, |level, _| {
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
        let _ = Check::new(&history, &index, &Limits::NONE).decide_in_turns(
            &levels,
            &|_| {},
            |level, _| told.push(level),
        );
        assert_eq!(told, [Level::Serializable, Level::Causal, Level::ReadCommitted]);
    }

    #[test]
    fn a_search_whose_turn_is_over_leaves_the_others_theirs() {
        let history = parse_text(SKEW).expect("a well-formed history");
        let index = Index::new(&history);
        // The first two turns of a search end before they begin.
        let is_over = AtomicBool::new(false);
        let stop = || is_over.load(Ordering::Relaxed);
        let limits = Limits { stop: &stop, ..Limits::NONE };
        let turns = RefCell::new(Vec::new());
        let turn = |parts| {
            turns.borrow_mut().push(parts);
            is_over.store([1, 3].contains(&turns.borrow().len()), Ordering::Relaxed);
        };
        let levels = [Level::ReadCommitted, Level::SnapshotIsolation, Level::Serializable];
        let mut told = Vec::new();
        let decided = Check::new(&history, &index, &limits).decide_in_turns(
            &levels,
            &turn,
            |level, verdict| told.push((level, verdict.name())),
        );
        assert_eq!(*turns.borrow(), [4, 1, 4, 3, 1, 1]);
        let expected = [
            (Level::ReadCommitted, "satisfied"),
            (Level::Serializable, "unknown"),
            (Level::SnapshotIsolation, "satisfied"),
            (Level::Serializable, "violated"),
        ];
        assert_eq!(told, expected);
        let names: Vec<&str> = decided.iter().map(|(_, verdict)| verdict.name()).collect();
        assert_eq!(names, ["satisfied", "satisfied", "violated"]);
    }

    /// A level that another asked for when that one's turn was over was left `unknown`, with
    /// most of the time unused.
    #[test]
    fn a_limit_met_in_the_turn_of_another_is_not_the_answer() {
        let history = parse_text(SKEW).expect("a well-formed history");
        let index = Index::new(&history);
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let limit = Verdict::Unknown(Unknown::Limit("the time limit was reached".into()));
        check.verdicts.push((Level::Serializable, limit));
        let decided = check.decide_in_turns(&[Level::Serializable], &|_| {}, |_, _| {});
        assert_eq!(decided[0].1.name(), "violated");
    }
}

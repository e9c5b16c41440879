//! Assertions on histories, which fail with the counterexample.

use crate::answer::check_level;
use isolde_checker::{Level, Verdict};
use isolde_history::History;

/// Panics unless a history satisfies a level. The message is the counterexample, or why the level
/// could not be decided.
///
/// ```
/// use isolde::{History, Level, Txn, assert_level};
///
/// let mut history = History::builder();
/// history.commit(Txn::of("alice").write("x", 1));
/// history.commit(Txn::of("bob").read("x", 1));
/// assert_level!(history.finish()?, Level::Causal);
/// # Ok::<(), isolde::ReadError>(())
/// ```
#[macro_export]
macro_rules! assert_level {
    ($history:expr, $level:expr $(,)?) => {
        $crate::assert_holds(&$history, $level)
    };
}

/// Panics unless a history is serializable, with the counterexample.
///
/// ```
/// use isolde::{History, Txn, assert_serializable};
///
/// let mut history = History::builder();
/// history.commit(Txn::of("alice").write("x", 1));
/// history.commit(Txn::of("bob").read("x", 1).write("x", 2));
/// assert_serializable!(history.finish()?);
/// # Ok::<(), isolde::ReadError>(())
/// ```
#[macro_export]
macro_rules! assert_serializable {
    ($history:expr $(,)?) => {
        $crate::assert_holds(&$history, $crate::Level::Serializable)
    };
}

/// What the macros call.
#[track_caller]
pub fn assert_holds(history: &History, level: Level) {
    let answer = check_level(history, level);
    match answer.verdict(level) {
        Some(Verdict::Satisfied(_)) => {}
        Some(Verdict::Unknown(reason)) => panic!("{level} is not decided: {reason}"),
        Some(Verdict::Violated(_)) | None => panic!("{}", answer.explanation().trim_end()),
    }
}

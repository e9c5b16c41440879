//! Violations that show within a short time.
//!
//! A proof takes whatever transactions it meets, and two of them may be far apart in time. What
//! happened between them is then a question that nobody can answer, though the same went wrong a
//! hundred times within milliseconds. So where transactions of a counterexample are apart, parts
//! of the history are tried that are short in time: a few transactions that follow each other,
//! then more.
//!
//! **Invariant: no guess.** Each is a part of the history, and shows the violation by itself.

use super::seeds;
use super::shrink::work_of;
use super::{WORK_FACTOR, WORK_LEAST, WORK_MAX, is_violated};
use crate::level::Level;
use crate::limits::Limits;
use crate::strong::Options;
use isolde_history::{History, Index, Interval, Part, Selection, TxnId};

/// Transactions are apart if none was open for so many times as long as they took.
const APART_FACTOR: i128 = 10;
/// So many transactions are tried first,
const WINDOW: usize = 16;
/// then so many times more.
const WINDOW_FACTOR: usize = 4;

/// Whether some of these transactions are apart from the others in time.
pub(super) fn is_apart(history: &History, txns: &[TxnId]) -> bool {
    if !history.has_times() || txns.len() < 2 || history.txn_count() <= WINDOW {
        return false;
    }
    let mut intervals: Vec<Interval> = txns.iter().map(|&txn| history.txn_interval(txn)).collect();
    if intervals.iter().any(|it| {
        it.invoked == Interval::UNKNOWN.invoked || it.completed == Interval::UNKNOWN.completed
    }) {
        return false;
    }
    intervals.sort_unstable_by_key(|it| it.invoked);
    let length = |it: &Interval| i128::from(it.completed) - i128::from(it.invoked);
    let open: i128 = intervals.iter().map(length).sum();
    let mut end = intervals[0].completed;
    let mut idle: i128 = 0;
    for it in &intervals[1..] {
        idle += (i128::from(it.invoked) - i128::from(end)).max(0);
        end = end.max(it.completed);
    }
    idle > APART_FACTOR * open
}

/// The first of the shortest parts that were tried and violate the level.
pub(super) fn part(
    (history, index): (&History, &Index),
    level: Level,
    options: Options,
    limits: &Limits<'_>,
) -> Option<Selection> {
    let mut txns: Vec<TxnId> = history.txns().collect();
    txns.sort_by_key(|&txn| history.txn_interval(txn).invoked);
    let mut work_left = (WORK_FACTOR * work_of(history)).clamp(WORK_LEAST, WORK_MAX);
    let mut size = WINDOW;
    while size < txns.len() {
        // Half of each is in the next one, too.
        for start in (0..txns.len()).step_by(size / 2) {
            let window = &txns[start..txns.len().min(start + size)];
            let selection = seeds::of_txns(history, index, window);
            let part = Part::new(history, index, &selection);
            work_left = work_left.saturating_sub(work_of(&part.history) + 1);
            if work_left == 0 || (limits.stop)() {
                return None;
            }
            if is_violated(&part.history, level, options, limits) {
                return Some(selection);
            }
        }
        size *= WINDOW_FACTOR;
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::check::Check;
    use crate::explain::explain;
    use crate::level::Level;
    use crate::limits::Limits;
    use crate::strong::Options;
    use crate::verdict::Verdict;
    use isolde_history::Index;
    use isolde_history::format::parse_text;
    use std::fmt::Write;

    /// A lost update was shown as two transactions of one session that were 22 seconds apart,
    /// although others had met within milliseconds.
    #[test]
    fn a_counterexample_is_near_in_time_if_one_is() {
        let mut text = String::from("A @0..10: r(x,nil) w(x,1)\n");
        for number in 0..40 {
            let begin = 1_000 + 20 * number;
            writeln!(text, "C @{begin}..{}: w(other{number},1)", begin + 10).expect("it grows");
        }
        text.push_str("B @9000..9010: r(y,nil) w(y,1)\nD @9005..9015: r(y,nil) w(y,2)\n");
        text.push_str("A @90000..90010: r(x,nil) w(x,2)\n");
        let history = parse_text(&text).expect("a well-formed history");
        let index = Index::new(&history);
        let level = Level::CursorStability;
        let mut check = Check::new(&history, &index, &Limits::NONE);
        let Verdict::Violated(violated) = check.decide(level) else { panic!("it is violated") };
        let options = Options::default();
        let shown = explain((&history, &index), level, &violated, options, &Limits::NONE);
        let shown = shown.expect("two transactions show it");
        let begun = shown.anomaly.txns.iter().map(|&txn| history.txn_interval(txn).invoked);
        assert_eq!(begun.collect::<Vec<_>>(), [9000, 9005]);
    }
}

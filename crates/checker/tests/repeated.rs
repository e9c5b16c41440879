//! Repeated values in histories that are too long for trying all choices of writers.

use isolde_checker::{Check, Level, Limits, Satisfied, Stage, Verdict};
use isolde_history::Index;
use isolde_history::format::parse_text;
use std::fmt::Write;
use std::sync::Mutex;

/// So many reads with two possible writers each: not all choices can be tried.
const PARTS: usize = 60;

/// Whoever read the value of `a` saw `Q`: who sees `P` also sees its `b`. Without times the
/// last writer is tried first, which is the wrong one.
fn parts(count: usize) -> String {
    let mut text = String::new();
    for part in 0..count {
        writeln!(text, "Q{part}: w(a{part},1)").expect("a string grows");
        writeln!(text, "P{part}: w(a{part},1) w(b{part},2)").expect("a string grows");
        writeln!(text, "R{part}: r(a{part},1) r(b{part},nil)").expect("a string grows");
    }
    text
}

fn verdicts(text: &str, levels: &[Level]) -> Vec<Verdict> {
    let history = parse_text(text).expect("a well-formed history");
    let index = Index::new(&history);
    let decide = |&level: &Level| Check::new(&history, &index, &Limits::NONE).decide(level);
    levels.iter().map(decide).collect()
}

const LEVELS: [Level; 4] =
    [Level::MonotonicAtomicView, Level::ReadCommitted, Level::ReadAtomic, Level::Causal];

#[test]
fn the_one_choice_that_fits_is_found_among_many() {
    // Each part alone refuses the guess; read committed only if `b` is read after `a`.
    for verdict in verdicts(&parts(PARTS), &LEVELS) {
        assert!(matches!(verdict, Verdict::Satisfied(_)), "{verdict:?}");
    }
}

#[test]
fn a_fractured_read_from_either_of_two_writers_is_found_among_many() {
    let text = parts(PARTS)
        + "U: w(x,1) w(y,1)
           V: w(x,1) w(y,1)
           W: r(x,1) r(y,nil)";
    for verdict in verdicts(&text, &LEVELS) {
        let Verdict::Violated(violated) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(violated.anomalies.len(), 1, "{:?}", violated.anomalies);
    }
}

/// Only `U` can have written what `R` saw. It then counts, and no writer explains what it read
/// itself.
#[test]
fn reads_of_a_transaction_that_counts_by_a_choice_are_not_overlooked() {
    let text = parts(PARTS)
        + "M: w(x,5) w(y,6)
           N: w(x,5) w(y,7)
           U: r(x,5) r(y,nil) w(c,1) unknown
           Q: w(c,1) w(d,2)
           R: r(c,1) r(d,nil)";
    for verdict in verdicts(&text, &[Level::ReadAtomic, Level::Causal]) {
        assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
    }
}

/// Hundreds of contradictions were searched for at a weak level, each by indexing the history
/// anew, where a stronger level holds at once.
#[test]
fn a_stronger_level_is_asked_before_a_long_search() {
    let asked = [Level::ReadAtomic, Level::Causal];
    for verdict in verdicts(&parts(300), &asked) {
        assert_eq!(verdict, Verdict::Satisfied(Satisfied::Implied(Level::SessionSerializable)));
    }
}

/// Nothing was said of what took most of the time.
#[test]
fn what_is_tried_where_values_repeat_is_told() {
    let history = parse_text(&parts(300)).expect("a well-formed history");
    let index = Index::new(&history);
    let stages = Mutex::new(Vec::new());
    let observe = |stage| stages.lock().expect("nobody panics").push(stage);
    let limits = Limits { observe: &observe, ..Limits::NONE };
    let verdict = Check::new(&history, &index, &limits).decide(Level::ReadAtomic);
    assert!(matches!(verdict, Verdict::Satisfied(_)), "{verdict:?}");
    let stages = stages.lock().expect("nobody panics");
    assert!(stages.contains(&Stage::Choose) && stages.contains(&Stage::Interleave), "{stages:?}");
}

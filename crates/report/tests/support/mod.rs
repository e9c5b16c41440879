//! The report on a history, with everything explained, however long it takes.

use isolde::{Check, Level, Limits, Options, counterexamples};
use isolde_history::{History, Index};
use isolde_report::{Decided, Findings, Report};

/// The report on these levels of a history, which are in the order of [`Level`].
pub(crate) fn report(history: &History, names: (&str, &str), levels: &[Level]) -> Report {
    let (index, options) = (Index::new(history), Options::default());
    let mut check = Check::new(history, &index, &Limits::NONE);
    let decided: Vec<Decided> =
        check.decide_all(levels).into_iter().map(|it| (it.0, it.1, 0.0)).collect();
    let verdicts = decided.iter().map(|it| (it.0, &it.1));
    let shown = counterexamples((history, &index), verdicts, options, &Limits::NONE, &|_| {});
    let by_reading = check.found();
    let findings = Findings { decided: &decided, counterexamples: &shown, by_reading, options };
    Report::new(history, &index, names, &findings)
}

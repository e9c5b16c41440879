//! Mistakes of a harness, looked for before a database is accused.
//!
//! A rule is one row of [`RULES`]: what it means, what to do, how certain it is,
//! and a function that finds examples in a history. Rules by subject: `times`,
//! `outcomes`, `values`, `size`, `evidence`; what an importer noticed while reading
//! arrives as remarks and has rows too.

mod evidence;
mod outcomes;
mod remarks;
mod size;
mod times;
mod values;

use crate::level::Level;
use crate::strong::needs_times;
use isolde_history::{History, Index, KeyId, OpId, Remark, TxnId, Value};

/// How sure a rule is that the recording is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Certainty {
    /// No database, however broken, explains it.
    Certain,
    /// A database could do this; harnesses do it far more often.
    Likely,
    /// A weak or broken database looks just like this.
    Possible,
}

impl Certainty {
    /// `certain`, `likely` or `possible`.
    pub const fn name(self) -> &'static str {
        match self {
            Certainty::Certain => "certain",
            Certainty::Likely => "likely",
            Certainty::Possible => "possible",
        }
    }
}

/// One kind of mistake.
pub struct Rule {
    /// Its name, in kebab case.
    pub name: &'static str,
    /// How sure it is.
    pub certainty: Certainty,
    /// What it means, one sentence, lower case, no full stop.
    pub meaning: &'static str,
    /// What to do about it, one sentence, lower case, no full stop.
    pub advice: &'static str,
    find: fn(&Recording<'_>) -> Examples,
}

/// All rules, the gravest first.
pub static RULES: &[Rule] = &[
    times::COMPLETED_BEFORE_INVOKED,
    times::ENDS_BEFORE_ITS_OPERATIONS,
    times::READ_BEFORE_IT_WAS_SENT,
    times::CLOCK_WENT_BACK,
    times::OVERLAPPING_SESSION,
    times::MISSING_TIMES,
    remarks::REUSED_PROCESS,
    remarks::COMPLETION_WITHOUT_INVOCATION,
    remarks::DUPLICATE_INDEX,
    remarks::REUSED_TRANSACTION_ID,
    evidence::UNKNOWN_VERSION,
    evidence::MISSING_VERSION,
    evidence::ABORTED_VERSION,
    evidence::UNKNOWN_NUMBER,
    evidence::CONTRADICTING_ORDERS,
    evidence::REPEATED_NUMBER,
    evidence::REVERSED_TIMESTAMPS,
    evidence::UNNUMBERED_WRITER,
    evidence::AGAINST_READS,
    outcomes::TIMEOUT_AS_FAILURE,
    outcomes::FAILED_BUT_SEEN,
    outcomes::RECORDED_BEFORE_COMMIT,
    values::OTHER_INITIAL_VALUE,
    values::MISSING_WRITER,
    values::REPEATED_WRITE,
    size::NOTHING_COMMITTED,
    size::NO_DEPENDENCY,
    size::NO_CONCURRENCY,
    size::KEYS_NEVER_READ,
];

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's [name](Rule::name).
    pub rule: &'static str,
    /// How often.
    pub total: usize,
    /// The first of them, at most [`EXAMPLES_MAX`].
    pub examples: Vec<Example>,
}

/// One place where a rule applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// What is there, one sentence, lower case but for names, no full stop.
    pub text: String,
    /// Where, if at an operation.
    pub op: Option<OpId>,
    /// Where, if known otherwise; 0 if nowhere in particular.
    pub position: u32,
}

/// A finding shows at most this many examples; the rest are counted.
pub const EXAMPLES_MAX: usize = 5;

/// Looks for every mistake that [`RULES`] names; findings are in its order.
pub fn lint(history: &History, index: &Index) -> Vec<Finding> {
    let recording = Recording { history, index };
    let found = RULES.iter().map(|rule| {
        let Examples { total, shown } = (rule.find)(&recording);
        Finding { rule: rule.name, total, examples: shown }
    });
    found.filter(|finding| finding.total > 0).collect()
}

/// Rules by which a level that holds was not tested at all.
static VACUITY: &[&Rule] = &[&size::NOTHING_COMMITTED, &size::NO_DEPENDENCY];

/// Rules about what a database told, and about times that cannot be what they are said to be.
static TOLD: &[&Rule] = &[
    &times::COMPLETED_BEFORE_INVOKED,
    &evidence::UNKNOWN_VERSION,
    &evidence::MISSING_VERSION,
    &evidence::ABORTED_VERSION,
    &evidence::UNKNOWN_NUMBER,
    &evidence::CONTRADICTING_ORDERS,
    &evidence::REPEATED_NUMBER,
    &evidence::UNNUMBERED_WRITER,
    &evidence::AGAINST_READS,
];

/// Why levels that hold for this history say nothing about the database.
pub fn vacuity(history: &History, index: &Index) -> Vec<&'static Rule> {
    let recording = Recording { history, index };
    VACUITY.iter().copied().filter(|rule| (rule.find)(&recording).total > 0).collect()
}

/// What is wrong with orders and snapshots that a database told and with times that verdicts
/// rest on, each with an example.
pub fn wrongly_told(history: &History, index: &Index) -> Vec<(&'static Rule, String)> {
    first_of(TOLD, history, index)
}

/// Why levels of real time, if they are among those that hold, say less than they seem to, with
/// an example.
pub fn untimed(
    history: &History,
    index: &Index,
    mut held: impl Iterator<Item = Level>,
) -> Vec<(&'static Rule, String)> {
    let is_timed = |level: Level| level == Level::Linearizable || needs_times(level);
    let rules: &[&Rule] = if held.any(is_timed) { &[&times::MISSING_TIMES] } else { &[] };
    first_of(rules, history, index)
}

/// Mistakes of a recording that make reads look wrong which are not, each with an example.
pub fn wrongly_read(history: &History, index: &Index) -> Vec<(&'static Rule, String)> {
    first_of(&[&values::OTHER_INITIAL_VALUE], history, index)
}

fn first_of(
    rules: &[&'static Rule],
    history: &History,
    index: &Index,
) -> Vec<(&'static Rule, String)> {
    let recording = Recording { history, index };
    let first = |&rule: &&'static Rule| {
        let found = (rule.find)(&recording).shown.into_iter().next();
        found.map(|example| (rule, example.text))
    };
    rules.iter().filter_map(first).collect()
}

/// The rule of this name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// A history and its index, with the names that examples use.
struct Recording<'a> {
    history: &'a History,
    index: &'a Index,
}

impl Recording<'_> {
    fn txn(&self, txn: TxnId) -> String {
        self.history.readable_name(txn)
    }

    fn txn_of(&self, op: OpId) -> String {
        self.txn(self.history.txn_of(op))
    }

    fn value(&self, value: Value) -> String {
        self.history.datum(value).to_string()
    }

    fn key(&self, key: KeyId) -> String {
        self.value(self.history.key_name(key))
    }
}

/// Collects examples: all are counted, the first few are told.
#[derive(Default)]
struct Examples {
    total: usize,
    shown: Vec<Example>,
}

impl Examples {
    /// Counts one; the text is made only if it is shown.
    fn add(&mut self, op: Option<OpId>, text: impl FnOnce() -> String) {
        self.total += 1;
        if self.shown.len() < EXAMPLES_MAX {
            self.shown.push(Example { text: text(), op, position: 0 });
        }
    }

    /// Counts what an importer noticed.
    fn add_remark(&mut self, remark: &Remark) {
        self.total += 1;
        if self.shown.len() < EXAMPLES_MAX {
            let (text, position) = (remark.text.clone(), remark.position);
            self.shown.push(Example { text, op: None, position });
        }
    }

    fn add_remarks(&mut self, recording: &Recording<'_>, kind: &str) {
        let remarks = recording.history.remarks().iter();
        remarks.filter(|remark| remark.kind == kind).for_each(|remark| self.add_remark(remark));
    }
}

#[cfg(test)]
mod tests;

//! The tests of Jepsen and Knossos that elle-cli checks beside Elle's own two.
//!
//! A workload is one row of [`WORKLOADS`] and one file. Each looks for one kind of
//! mistake in what clients called and were told; none but the first three says
//! anything about isolation in general. A test that read nothing passes most of them,
//! as it does elle-cli's; the finding says so.

mod bank;
mod calls;
mod cas_register;
mod comments;
mod counter;
mod long_fork;
mod mutex;
mod sequential;
mod set;
mod set_full;
#[cfg(test)]
mod tests;

use super::Valid;
use crate::anomaly::Anomaly;
use crate::limits::Limits;
use crate::linearizable::{self, Reading};
use crate::verdict::Verdict;
use calls::{Call, calls};
use isolde_history::{History, OpId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// As many problems of one name are told one by one.
const SHOWN_MAX: usize = 8;

/// A workload that elle-cli knows.
pub struct JepsenWorkload {
    /// elle-cli's name.
    pub name: &'static str,
    /// What its clients do, in a few words.
    pub title: &'static str,
    functions: &'static [&'static str],
    check: fn(&Recorded<'_>) -> Result<Finding, Misfit>,
}

/// Every workload beside those of Elle.
#[rustfmt::skip]
pub static WORKLOADS: &[JepsenWorkload] = &[
    row("cas-register", "reads, writes and compare-and-sets of one register",
        &["read", "write", "cas"], cas_register::check),
    row("mutex", "a lock that is acquired and released",
        &["acquire", "release"], mutex::check),
    row("long-fork", "keys written once, read in groups", &[], long_fork::check),
    row("bank", "transfers between accounts, and reads of all of them",
        &["read", "transfer"], bank::check),
    row("set", "elements added to a set, which is read at the end",
        &["add", "read"], set::check),
    row("set-full", "elements added to a set, which is read now and then",
        &["add", "read"], set_full::check),
    row("counter", "a counter that is added to and read",
        &["add", "read"], counter::check),
    row("sequential", "keys written in order and read in the opposite one",
        &["add", "write", "read"], sequential::check),
    row("comments", "comments written one by one and read together",
        &["write", "read"], comments::check),
];

const fn row(
    name: &'static str,
    title: &'static str,
    functions: &'static [&'static str],
    check: fn(&Recorded<'_>) -> Result<Finding, Misfit>,
) -> JepsenWorkload {
    JepsenWorkload { name, title, functions, check }
}

/// What elle-cli lets one say about a workload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Expectations {
    /// Bank: accounts may be overdrawn.
    pub negative_balances: bool,
    /// Bank: what all accounts hold together; that of the first read if not given.
    pub total: Option<i128>,
    /// Long fork: how many keys are read together; any number if not given.
    pub group_size: Option<usize>,
    /// Full set: an element has to be seen by every read after it was added.
    pub linearizable: bool,
    /// Long fork: snapshot isolation has to hold as a whole.
    pub complete: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether the history is as it should be.
    pub valid: Valid,
    /// What shows that it is not.
    pub problems: Vec<Problem>,
    /// The same, where linearizability or an isolation level shows it.
    pub anomalies: Vec<Anomaly>,
    /// Numbers that tell how much was tested.
    pub counts: Vec<(&'static str, usize)>,
    /// Why the answer says nothing about the database, if so.
    pub vacuous: Option<&'static str>,
}

impl Finding {
    /// Valid if there are no problems.
    fn of(problems: Vec<Problem>, counts: Vec<(&'static str, usize)>) -> Finding {
        let valid = if problems.is_empty() { Valid::True } else { Valid::False };
        Finding { valid, problems, anomalies: Vec::new(), counts, vacuous: None }
    }

    /// Valid because there was nothing to look at.
    fn vacuous(reason: &'static str) -> Finding {
        Finding { vacuous: Some(reason), ..Finding::of(Vec::new(), Vec::new()) }
    }

    fn unknown(reason: impl Into<String>) -> Finding {
        let valid = Valid::Unknown(reason.into());
        Finding { valid, ..Finding::of(Vec::new(), Vec::new()) }
    }
}

/// One mistake of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is, in kebab case.
    pub name: &'static str,
    /// The operations that show it.
    pub ops: Vec<OpId>,
    /// One sentence, no full stop.
    pub text: String,
}

/// An operation that is none of the workload's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The operation.
    pub op: OpId,
    /// What it should have been.
    pub expected: Cow<'static, str>,
}

/// A history being looked at.
struct Recorded<'a> {
    history: &'a History,
    /// In order of completion.
    calls: Vec<Call<'a>>,
    expectations: Expectations,
    limits: &'a Limits<'a>,
}

impl JepsenWorkload {
    /// The workload of this name.
    pub fn parse(name: &str) -> Option<&'static JepsenWorkload> {
        WORKLOADS.iter().find(|workload| workload.name == name)
    }

    /// Looks for mistakes, or says which operation does not belong to the workload.
    pub fn check(
        &self,
        history: &History,
        expectations: Expectations,
        limits: &Limits<'_>,
    ) -> Result<Finding, Misfit> {
        let calls = if self.functions.is_empty() { Vec::new() } else { calls(history) };
        if let Some(call) = calls.iter().find(|call| !self.functions.contains(&call.function)) {
            let expected = self.functions.join(" or ").into();
            return Err(Misfit { op: call.op, expected });
        }
        let recorded = Recorded { history, calls, expectations, limits };
        let finding = (self.check)(&recorded)?;
        Ok(Finding { problems: shortened(finding.problems), ..finding })
    }
}

/// The first problems of each name; the rest is counted in one more.
fn shortened(problems: Vec<Problem>) -> Vec<Problem> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut shown = Vec::new();
    for problem in problems {
        let count = counts.entry(problem.name).or_default();
        *count += 1;
        if *count <= SHOWN_MAX {
            shown.push(problem);
        }
    }
    for (name, count) in counts.into_iter().filter(|&(_, count)| count > SHOWN_MAX) {
        let text = format!("{} more like these", count - SHOWN_MAX);
        shown.push(Problem { name, ops: Vec::new(), text });
    }
    shown
}

impl<'a> Recorded<'a> {
    /// Successful calls of this function in order of completion.
    fn done(&self, function: &'static str) -> impl Iterator<Item = &Call<'a>> {
        self.calls.iter().filter(move |call| call.is_done() && call.function == function)
    }

    /// Calls of this function that may have taken effect.
    fn possible(&self, function: &'static str) -> impl Iterator<Item = &Call<'a>> {
        self.calls.iter().filter(move |call| call.is_possible() && call.function == function)
    }

    fn linearizable(&self, reading: Reading, expected: &'static str) -> Result<Finding, Misfit> {
        let counts = vec![("operations", self.calls.len())];
        match linearizable::decide(self.history, self.limits, reading) {
            Some(Verdict::Satisfied(_)) => Ok(Finding::of(Vec::new(), counts)),
            Some(Verdict::Violated(violated)) => Ok(Finding {
                valid: Valid::False,
                anomalies: violated.anomalies,
                ..Finding::of(Vec::new(), counts)
            }),
            Some(Verdict::Unknown(reason)) => Ok(Finding::unknown(reason.to_string())),
            None => Err(Misfit { op: OpId(0), expected: expected.into() }),
        }
    }
}

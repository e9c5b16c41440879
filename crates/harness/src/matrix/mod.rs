//! Anomalies as small scripts of several sessions, to be tried at every isolation setting.
//!
//! A [`Template`] says who does what in which order; [`run`] does it step by step and
//! records it. Whether the anomaly happened is not decided here: the history is checked
//! against a level that forbids it. The first ones are those of Hermitage
//! [Kleppmann, *Hermitage: Testing transaction isolation levels*, 2014], put into reads
//! and writes of registers, rows and lists.

mod runner;
mod step;

pub use runner::{Happened, Pace, Servers, StepOutcome, Trial, run};
pub use step::Step;

use crate::request::RequestKind;

/// An anomaly to try.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its short name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The name of the weakest level that forbids it.
    pub forbidden_by: &'static str,
    /// The steps: `session.verb(key,value)`, in order. `r` reads and `w` writes a register,
    /// `l` reads and `a` appends to a list, `i` inserts and `d` deletes a row, `q` reads a
    /// range, `u` updates one, `c` compares and sets; `s` reads and `e` deletes the rows whose
    /// values lie between two numbers. Keys are letters.
    script: &'static str,
}

const fn template(
    name: &'static str,
    title: &'static str,
    forbidden_by: &'static str,
    script: &'static str,
) -> Template {
    Template { name, title, forbidden_by, script }
}

/// All of them, from weak to strong. A new one is a row.
#[rustfmt::skip]
pub static TEMPLATES: &[Template] = &[
    template("G0", "writes of two transactions interleave", "read-uncommitted",
        "I.begin I.a(x,10) I.a(y,20) I.commit
         A.begin B.begin A.a(x,11) B.a(x,12) B.a(y,22) A.a(y,21) A.commit B.commit
         C.begin C.l(x) C.l(y) C.commit"),
    template("G1a", "a value that is taken back is read", "adya-read-committed",
        "I.begin I.w(x,10) I.commit
         A.begin B.begin A.w(x,101) B.r(x) A.abort B.r(x) B.commit"),
    template("G1b", "a value that is replaced before the commit is read", "adya-read-committed",
        "I.begin I.w(x,10) I.commit
         A.begin B.begin A.w(x,101) B.r(x) A.w(x,11) A.commit B.r(x) B.commit"),
    template("G1c", "two transactions read from each other", "adya-read-committed",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.w(x,11) B.w(y,22) A.r(y) B.r(x) A.commit B.commit"),
    template("OTV", "a transaction that was seen vanishes", "monotonic-atomic-view",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin C.begin A.w(x,11) A.w(y,19) B.w(x,12) A.commit C.r(x) C.r(y)
         B.w(y,18) B.commit C.r(y) C.r(x) C.commit"),
    template("P2", "a value changes between two reads", "read-atomic",
        "I.begin I.w(x,10) I.commit
         A.begin A.r(x) B.begin B.w(x,11) B.commit A.r(x) A.commit"),
    template("PMP", "a row appears between two reads of a range", "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.q(x,v) B.i(z,30) B.commit A.q(x,v) A.commit"),
    template("PMP-value", "a row appears between two reads of rows with certain values",
        "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.s(30,39) B.i(z,30) B.commit A.s(30,39) A.commit"),
    template("PMP-write", "a row that a read missed is there for a write", "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.q(x,v) B.i(z,30) B.commit A.c(z,30,31) A.commit"),
    template("PMP-delete", "a delete of rows with certain values meets others than a read found",
        "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.w(x,21) A.w(y,30) B.s(10,29) B.e(20,29) A.commit B.commit"),
    template("P4", "an update is lost", "cursor-stability",
        "I.begin I.w(x,10) I.commit
         A.begin B.begin A.r(x) B.r(x) A.w(x,11) B.w(x,12) A.commit B.commit"),
    template("P4-list", "an append comes between a read and its append", "cursor-stability",
        "I.begin I.a(x,10) I.commit
         A.begin B.begin A.l(x) B.l(x) A.a(x,11) B.a(x,12) A.commit B.commit
         C.begin C.l(x) C.commit"),
    template("G-single", "one write of a transaction is seen, the other is not", "read-atomic",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.r(x) B.r(x) B.r(y) B.w(x,12) B.w(y,18) B.commit A.r(y) A.commit"),
    template("G-single-range", "the same, where ranges are read", "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.q(x,x) B.w(x,12) B.w(y,18) B.commit A.q(y,v) A.commit"),
    template("G-single-value", "the same, where rows with certain values are read",
        "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.s(10,29) B.w(x,32) B.commit A.s(30,39) A.commit"),
    template("G-single-write", "the same, where a write depends on what is seen",
        "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.r(x) B.w(x,12) B.w(y,18) B.commit A.c(y,18,21) A.commit"),
    template("G-single-delete", "the same, where rows with certain values are deleted",
        "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.r(x) B.r(x) B.r(y) B.w(x,12) B.w(y,18) B.commit A.e(20,29) A.commit"),
    template("causality", "an effect is seen without its cause", "causal",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         C.begin C.r(x) A.begin A.r(x) A.w(x,11) A.commit B.begin B.r(x) B.w(y,21) B.commit
         C.r(y) C.commit"),
    template("long-fork", "unrelated writes are seen in opposite orders", "snapshot-isolation",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         C.begin C.r(y) D.begin D.r(x) A.begin A.w(x,11) A.commit B.begin B.w(y,21) B.commit
         C.r(x) D.r(y) C.commit D.commit"),
    template("G2-item", "each misses what the other writes", "repeatable-read",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.r(x) A.r(y) B.r(x) B.r(y) A.w(x,11) B.w(y,21) A.commit B.commit"),
    template("G2", "each misses the row that the other inserts", "serializable",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.q(x,v) B.q(x,v) A.i(z,30) B.i(v,42) A.commit B.commit"),
    template("G2-value", "each misses the row with a certain value that the other inserts",
        "serializable",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin B.begin A.s(30,49) B.s(30,49) A.i(z,30) B.i(v,42) A.commit B.commit"),
    template("read-only", "a reader makes two writers inconsistent", "repeatable-read",
        "I.begin I.w(x,10) I.w(y,20) I.commit
         A.begin A.r(x) A.r(y) B.begin B.r(y) B.w(y,25) B.commit
         C.begin C.r(x) C.r(y) C.commit A.w(x,15) A.commit"),
];

impl Template {
    /// Its steps, on keys from this one.
    pub fn steps(&self, first_key: u64) -> Vec<(char, Step)> {
        let parsed = self.script.split_whitespace().map(|word| step::parse(word, first_key));
        parsed.map(|step| step.expect("templates are tested")).collect()
    }

    /// The requests that it makes.
    pub fn requests(&self) -> Vec<RequestKind> {
        let mut kinds: Vec<RequestKind> = (self.steps(0).iter())
            .filter_map(|(_, step)| match step {
                Step::Execute(request) => Some(request.kind()),
                _ => None,
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// Keys that it uses, at most.
    pub const KEYS: u64 = 8;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn every_script_is_one_and_every_transaction_ends() {
        for template in TEMPLATES {
            let mut open: HashMap<char, bool> = HashMap::new();
            for (session, step) in template.steps(0) {
                let is_open = open.entry(session).or_default();
                let should_be_open = step != Step::Begin;
                assert_eq!(*is_open, should_be_open, "{}: {session} {step:?}", template.name);
                *is_open = !matches!(step, Step::Commit | Step::Rollback);
            }
            assert!(open.values().all(|is_open| !is_open), "{}", template.name);
        }
    }

    #[test]
    fn names_are_unique_and_values_too() {
        let names: HashSet<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        assert_eq!(names.len(), TEMPLATES.len());
        for template in TEMPLATES {
            let mut written = HashSet::new();
            for (_, step) in template.steps(0) {
                let Step::Execute(request) = &step else { continue };
                if !request.kind().is_read() {
                    assert!(written.insert(format!("{request:?}")), "{}", template.name);
                }
            }
        }
    }
}

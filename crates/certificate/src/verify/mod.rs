//! The verifier: whether a certificate proves what it claims of a history.
//!
//! Every claim is checked against the history alone, at the level whose definition its
//! proof is about; the levels that it settles must then follow by the implications between
//! levels. Witnesses of levels of begins and commits are replayed in one pass; derivations
//! take time in proportion to their size.

mod aggregate;
mod calls;
mod cases;
mod commits;
mod conditions;
mod derivation;
mod facts;
mod lists;
mod orders;
mod parallel;
mod propagation;
mod reading;
mod replay;
mod search;
mod versions;
mod visible;

use crate::fingerprint::Fingerprint;
use crate::level::{Level, Meaning};
use crate::proof::{Certificate, Claim, End, Node, Proof, Refutation, Witness};
use calls::Calls;
use facts::Facts;
use isolde_history::{History, OpId, OpKind, Time, Value};
use std::fmt;

/// A certificate is about another history than the one it was held against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherHistory {
    /// What the certificate is about.
    pub certificate: Fingerprint,
    /// What was given.
    pub history: Fingerprint,
}

impl fmt::Display for OtherHistory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OtherHistory { certificate, history } = self;
        write!(out, "certificate of another history: expected {certificate}; found {history}")
    }
}

impl std::error::Error for OtherHistory {}

/// What a proof that was accepted consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// An order of this many events.
    Events(usize),
    /// A commit order of this many transactions.
    Commits(usize),
    /// This many operations.
    Operations(usize),
    /// All orders, by way of this many configurations.
    Configurations(usize),
    /// So many cases, each by itself.
    Cases(usize),
    /// Steps, and clauses if they end in a search.
    Derivation {
        /// How many steps.
        steps: usize,
        /// How many clauses.
        clauses: usize,
    },
}

impl fmt::Display for Extent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match *self {
            Extent::Events(count) => write!(out, "{count} event{} replayed", plural(count)),
            Extent::Commits(count) => write!(out, "{count} commit{} in order", plural(count)),
            Extent::Operations(count) => write!(out, "{count} operation{}", plural(count)),
            Extent::Configurations(count) => {
                write!(out, "{count} configuration{} of all orders", plural(count))
            }
            Extent::Cases(count) => write!(out, "{count} case{}", plural(count)),
            Extent::Derivation { steps, clauses: 0 } => {
                write!(out, "{steps} step{}", plural(steps))
            }
            Extent::Derivation { steps, clauses } => {
                write!(out, "{steps} step{}, {clauses} clause{}", plural(steps), plural(clauses))
            }
        }
    }
}

/// Why a claim was not accepted, in a sentence that follows "refused: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Checks every claim, in the order of the certificate.
pub fn verify(
    certificate: &Certificate,
    history: &History,
) -> Result<Vec<Result<Extent, Refused>>, OtherHistory> {
    let found = Fingerprint::of(history);
    if found != certificate.history {
        return Err(OtherHistory { certificate: certificate.history, history: found });
    }
    let verifier = Verifier::new(history).with_clock_drift(certificate.clock_drift);
    let mut settled: Vec<&str> = Vec::new();
    let mut results = Vec::new();
    for claim in &certificate.claims {
        let twice = claim.levels.iter().find(|level| settled.contains(&level.as_str()));
        results.push(match twice {
            Some(level) => Err(Refused(format!("{level} is claimed before"))),
            None => verifier.check(claim),
        });
        settled.extend(claim.levels.iter().map(String::as_str));
    }
    Ok(results)
}

/// One history, against which any number of claims can be held.
pub struct Verifier<'a> {
    facts: Facts<'a>,
    outside: Option<String>,
}

impl<'a> Verifier<'a> {
    /// Looks at what the history is made of.
    pub fn new(history: &'a History) -> Self {
        Verifier { facts: Facts::new(history), outside: outside(history) }
    }

    /// The same if clocks may be apart, in nanoseconds.
    #[must_use]
    pub fn with_clock_drift(mut self, drift: Time) -> Self {
        // A negative bound would order what overlaps.
        self.facts.clock_drift = drift.max(0);
        self
    }

    /// Why nothing can be proved about a level of the history, if so: its definition says
    /// nothing about what is in it.
    pub fn outside(&self, level: &str) -> Option<&str> {
        if self.calls(level).is_some() { None } else { self.outside.as_deref() }
    }

    /// The calls of locks and stores, if that is what the history consists of and the level is
    /// about.
    fn calls(&self, level: &str) -> Option<Calls<'a>> {
        if self.outside.is_none() || level != "linearizable" {
            return None;
        }
        Calls::of(&self.facts)
    }

    /// Checks one claim.
    pub fn check(&self, claim: &Claim) -> Result<Extent, Refused> {
        self.checked(claim).map_err(Refused)
    }

    fn checked(&self, claim: &Claim) -> Result<Extent, String> {
        let level = Level::named(&claim.shown_at)
            .ok_or_else(|| format!("there is no level {}", claim.shown_at))?;
        if claim.levels.is_empty() {
            return Err("it settles no level".into());
        }
        for (place, name) in claim.levels.iter().enumerate() {
            let settled = Level::named(name).ok_or_else(|| format!("there is no level {name}"))?;
            let follows = match claim.proof {
                Proof::Witness(_) => level.implies(settled.name),
                Proof::Refutation(_) => settled.implies(level.name),
            };
            if !follows {
                return Err(format!("a proof about {} does not settle {name}", level.name));
            }
            if claim.levels[..place].contains(name) {
                return Err(format!("{name} stands there twice"));
            }
        }
        // What calls show says nothing about levels of reads and writes.
        let mut names = claim.levels.iter().chain([&claim.shown_at]);
        if let Some(outside) = names.find_map(|name| self.outside(name)) {
            return Err(outside.into());
        }
        if let Some(calls) = self.calls(level.name) {
            return check_calls(&calls, &claim.proof);
        }
        match &claim.proof {
            Proof::Witness(witness) => self.check_witness(level, witness),
            Proof::Refutation(refutation) => check_refutation(&self.facts, level, refutation),
        }
    }

    /// An order of events by which a level of begins and commits holds, of a small history, if
    /// there is one.
    pub fn order(&self, level: &str) -> Option<Vec<Node>> {
        match Level::named(level)?.meaning {
            Meaning::Events(events) if self.outside.is_none() => orders::first(&self.facts, events),
            _ => None,
        }
    }

    fn check_witness(&self, level: &Level, witness: &Witness) -> Result<Extent, String> {
        match (witness, level.meaning) {
            (Witness::Events(order), Meaning::Events(events)) => {
                replay::check(&self.facts, &events, order).map(|()| Extent::Events(order.len()))
            }
            (Witness::Commits { order, origins, appends }, Meaning::Commits(commits)) => {
                let facts = cases::with_appends(&self.facts, appends)?;
                commits::check(&facts, commits, order, origins)
                    .map(|()| Extent::Commits(order.len()))
            }
            (Witness::Commits { order, origins, appends }, Meaning::Parallel) => {
                let facts = cases::with_appends(&self.facts, appends)?;
                commits::check_parallel(&facts, order, origins)
                    .map(|()| Extent::Commits(order.len()))
            }
            (Witness::Events(_), _) => Err("the level asks for an order of commits".into()),
            (Witness::Commits { .. }, _) => Err("the level asks for an order of events".into()),
        }
    }
}

fn check_calls(calls: &Calls<'_>, proof: &Proof) -> Result<Extent, String> {
    match proof {
        Proof::Witness(Witness::Events(order)) => {
            calls.check_order(order).map(|()| Extent::Events(order.len()))
        }
        Proof::Refutation(Refutation::Orders(_)) => calls.check_none().map(Extent::Configurations),
        Proof::Witness(_) | Proof::Refutation(_) => {
            Err("of calls there are orders, or none: expected `events` or `orders`".into())
        }
    }
}

fn check_refutation(
    facts: &Facts<'_>,
    level: &'static Level,
    refutation: &Refutation,
) -> Result<Extent, String> {
    match refutation {
        Refutation::Reading(reading) => {
            reading::check(facts, level, reading).map(|()| Extent::Operations(reading.ops.len()))
        }
        Refutation::Orders(keys) => match level.meaning {
            Meaning::Events(events) => {
                orders::check(facts, events, keys).map(Extent::Configurations)
            }
            _ => Err("the level asks for no order of events".into()),
        },
        Refutation::Cases(cases) => cases::check(facts, level, cases).map(Extent::Cases),
        Refutation::Derivation(derivation) => {
            derivation::check(facts, level, derivation)?;
            let clauses = match &derivation.end {
                End::Cycle(_) => 0,
                End::Search(search) => search.clauses.len(),
            };
            Ok(Extent::Derivation { steps: derivation.steps.len(), clauses })
        }
    }
}

/// Why the definitions do not apply to a history, if so.
fn outside(history: &History) -> Option<String> {
    const REGISTER: u8 = 1;
    const LIST: u8 = 2;
    if history.txn_count() >= Node::TXNS_MAX as usize {
        return Some("the history has more transactions than can be numbered".into());
    }
    let mut uses = vec![0u8; history.key_count()];
    for op in (0..history.op_count() as u32).map(OpId) {
        let isolde_history::Op { kind, key, value } = history.op(op);
        match kind {
            OpKind::Call => {
                return Some("the history has operations that are neither read nor write".into());
            }
            OpKind::ReadList if history.list(op).contains(&Value::UNKNOWN) => {
                return Some("the history has a list with an element never learned".into());
            }
            OpKind::PredicateRead | OpKind::PredicateUpdate => {
                for row in &history.predicate(op).rows {
                    uses[row.key.index()] |= REGISTER;
                }
            }
            kind if kind.is_write() && value == Value::UNKNOWN => {
                return Some("the history has a write whose value was never learned".into());
            }
            OpKind::Append | OpKind::ReadList => uses[key.index()] |= LIST,
            OpKind::Read if value == Value::UNKNOWN => {}
            _ => uses[key.index()] |= REGISTER,
        }
    }
    for key in history.keys() {
        let uses = uses[key.index()];
        if uses == REGISTER | LIST {
            return Some("the history uses a key both as a register and as a list".into());
        }
        if uses == REGISTER && history.initial(key) == Value::UNKNOWN {
            return Some("the history has a key whose initial value is not known".into());
        }
    }
    None
}

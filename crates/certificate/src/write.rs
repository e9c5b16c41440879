//! Writing a certificate as text; `docs/certificate.md` specifies it.

use crate::proof::{
    Case, Cases, Certificate, ChosenOrigin, Claim, Clause, Derivation, End, Link, Open, Proof,
    Reading, Refutation, Step, Taken, Variable, Witness,
};
use crate::rule::{Rule, StepId};
use std::fmt::{self, Display};
use std::io::{self, Write};

/// The first line of every certificate of this version.
pub(crate) const FIRST_LINE: &str = "isolde-certificate 2";

/// Ids on one line of an order.
const IDS_ON_A_LINE: usize = 16;

/// Writes a certificate. Whoever calls this buffers.
pub fn write(certificate: &Certificate, out: &mut dyn Write) -> io::Result<()> {
    let history = &certificate.history;
    writeln!(out, "{FIRST_LINE}")?;
    writeln!(
        out,
        "history {:032x} sessions {} transactions {} operations {}",
        history.hash, history.sessions, history.transactions, history.operations
    )?;
    if certificate.clock_drift != 0 {
        writeln!(out, "clock-drift {}", certificate.clock_drift)?;
    }
    writeln!(out, "claims {}", certificate.claims.len())?;
    certificate.claims.iter().try_for_each(|claim| write_claim(claim, out))
}

fn write_claim(claim: &Claim, out: &mut dyn Write) -> io::Result<()> {
    let verdict = match claim.proof {
        Proof::Witness(_) => "satisfied",
        Proof::Refutation(_) => "violated",
    };
    writeln!(out, "claim {verdict} {}", claim.shown_at)?;
    writeln!(out, "levels {}", Spaced(&claim.levels))?;
    match &claim.proof {
        Proof::Witness(Witness::Events(events)) => write_ids("events", events, out)?,
        Proof::Witness(Witness::Commits { order, origins, appends }) => {
            let order: Vec<u32> = order.iter().map(|txn| txn.0).collect();
            write_ids("commits", &order, out)?;
            for origin in origins {
                writeln!(out, "origin {}", Origin(origin))?;
            }
            for append in appends {
                writeln!(out, "append {}", append.0)?;
            }
        }
        Proof::Refutation(refutation) => write_refutation(refutation, out)?,
    }
    writeln!(out, "end")
}

fn write_refutation(refutation: &Refutation, out: &mut dyn Write) -> io::Result<()> {
    match refutation {
        Refutation::Reading(reading) => write_reading(reading, out),
        Refutation::Derivation(derivation) => write_derivation(derivation, out),
        Refutation::Orders(keys) => {
            let keys: Vec<u32> = keys.iter().map(|key| key.0).collect();
            write_ids("orders", &keys, out)
        }
        Refutation::Cases(cases) => write_cases(cases, out),
    }
}

/// As deep as cases are in cases, which [`read`](crate::read()) bounds.
fn write_cases(Cases { open, cases }: &Cases, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "cases {open}")?;
    for Case { shown_at, taken, refutation } in cases {
        writeln!(out, "case {shown_at} {taken}")?;
        write_refutation(refutation, out)?;
    }
    writeln!(out, "no-other-case")
}

impl Display for Open {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Open::Outcome(txn) => write!(out, "outcome {}", txn.0),
            Open::Element(append) => write!(out, "element {}", append.0),
            Open::Origin { read, key } => write!(out, "origin {} {}", read.0, key.0),
        }
    }
}

impl Display for Taken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Taken::Counts => write!(out, "counts"),
            Taken::CountsNot => write!(out, "counts-not"),
            Taken::Append(append) => write!(out, "append {}", append.0),
            Taken::Writer(Some(writer)) => write!(out, "saw {}", writer.0),
            Taken::Writer(None) => write!(out, "saw initial"),
            Taken::Nowhere => write!(out, "saw nobody"),
        }
    }
}

fn write_ids(word: &str, ids: &[impl Display], out: &mut dyn Write) -> io::Result<()> {
    if ids.is_empty() {
        return writeln!(out, "{word}");
    }
    ids.chunks(IDS_ON_A_LINE).try_for_each(|line| writeln!(out, "{word} {}", Spaced(line)))
}

fn write_reading(reading: &Reading, out: &mut dyn Write) -> io::Result<()> {
    let ops: Vec<u32> = reading.ops.iter().map(|op| op.0).collect();
    writeln!(out, "reading {} {} {}", reading.kind.name(), reading.key.0, Spaced(&ops))
}

fn write_derivation(derivation: &Derivation, out: &mut dyn Write) -> io::Result<()> {
    for step in &derivation.steps {
        write_step(step, out)?;
    }
    match &derivation.end {
        End::Cycle(path) => writeln!(out, "cycle{}", Path(path)),
        End::Search(search) => {
            for variable in &search.variables {
                write_variable(variable, out)?;
            }
            search.clauses.iter().try_for_each(|clause| write_clause(clause, out))
        }
    }
}

fn write_step(step: &Step, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "step {} {} {}", step.from, step.to, step.rule.name())?;
    match &step.rule {
        Rule::Session | Rule::RealTime | Rule::InitialFirst => writeln!(out),
        Rule::ReadsFrom { read, key }
        | Rule::ListOrder { read, key }
        | Rule::InitialRead { read, key }
        | Rule::SawChange { read, key }
        | Rule::MissedChange { read, key } => writeln!(out, " {} {}", read.0, key.0),
        Rule::GivenOrder { key } => writeln!(out, " {}", key.0),
        Rule::Pair { key, path } => writeln!(out, " {}{}", key.0, Path(path)),
        Rule::Visible { read, key, path } | Rule::AntiDependency { read, key, path } => {
            writeln!(out, " {} {}{}", read.0, key.0, Path(path))
        }
    }
}

fn write_variable(variable: &Variable, out: &mut dyn Write) -> io::Result<()> {
    match variable {
        Variable::Order { key, first, second } => {
            writeln!(out, "variable order {} {} {}", key.0, first.0, second.0)
        }
        Variable::Origin(origin) => writeln!(out, "variable origin {}", Origin(origin)),
        Variable::Before { from, to } => writeln!(out, "variable before {from} {to}"),
    }
}

fn write_clause(clause: &Clause, out: &mut dyn Write) -> io::Result<()> {
    match clause {
        Clause::Cycle(links) => {
            write!(out, "clause cycle")?;
            for link in links {
                match link {
                    Link::Step(step) => write!(out, " {}", step.0)?,
                    Link::Literal { literal, from, to } => write!(out, " {literal}:{from}:{to}")?,
                    Link::Overwritten { order, origin, from, to } => {
                        write!(out, " {order}:{origin}:{from}:{to}")?;
                    }
                }
            }
            writeln!(out)
        }
        Clause::OneOrigin { read, key } => {
            writeln!(out, "clause one-origin {} {}", read.0, key.0)
        }
        Clause::SeenOrAfter { read, key, writer, other } => {
            writeln!(out, "clause seen-or-after {} {} {} {}", read.0, key.0, writer.0, other.0)
        }
        Clause::SeenTogether { one, other } => {
            writeln!(out, "clause seen-together {} {}", Origin(one), Origin(other))
        }
        Clause::Lemma(literals) => {
            write!(out, "clause lemma")?;
            literals.iter().try_for_each(|literal| write!(out, " {literal}"))?;
            writeln!(out)
        }
    }
}

/// Things with a space between them.
struct Spaced<'a, T>(&'a [T]);

impl<T: Display> Display for Spaced<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, thing) in self.0.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(out, "{space}{thing}")?;
        }
        Ok(())
    }
}

/// Steps with a space before each.
struct Path<'a>(&'a [StepId]);

impl Display for Path<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(out, " {}", step.0))
    }
}

struct Origin<'a>(&'a ChosenOrigin);

impl Display for Origin<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} ", self.0.read.0, self.0.key.0)?;
        match self.0.writer {
            Some(writer) => write!(out, "{}", writer.0),
            None => out.write_str("initial"),
        }
    }
}

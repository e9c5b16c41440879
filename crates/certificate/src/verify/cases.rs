//! Case analysis: whatever is taken for true of what a history leaves open, it is refuted.
//!
//! **Definition.** A level holds if it does for some choice of what every read saw, of which
//! append added each element that was seen, and so of which transactions of unknown outcome
//! count.
//!
//! **Why that refutes.** Each case is refuted among the choices in which it is so, and
//! every choice belongs to a case: a transaction counts or not; an element that others saw
//! was added by one of its appends, whatever became of it; a read that counts saw one of its
//! possible origins, and what one that does not count saw makes no difference.
//!
//! A case may be refuted at a weaker level, which the other implies for each choice by
//! itself. Whether a read can be ignored is not the same at all levels, so where cases speak
//! of what a read saw, both levels ask the same of reads.

use super::check_refutation;
use super::facts::{Assumed, Facts, Origin, Read, Seen};
use crate::level::{Level, Reads};
use crate::proof::{Case, Cases, Open, Taken};
use isolde_history::{KeyId, Op, OpId, OpKind, Outcome};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// How many cases there are, those in cases among them.
pub(super) fn check(
    facts: &Facts<'_>,
    level: &'static Level,
    Cases { open, cases }: &Cases,
) -> Result<usize, String> {
    let possible = possible(facts, level, *open)?;
    if let Some(missing) = possible.iter().find(|it| !cases.iter().any(|case| case.taken == **it)) {
        return Err(format!("the case `{missing}` of `{open}` is missing"));
    }
    let mut count = 0;
    for (place, Case { shown_at, taken, refutation }) in cases.iter().enumerate() {
        if !possible.contains(taken) || cases[..place].iter().any(|case| case.taken == *taken) {
            return Err(format!("the case `{taken}` of `{open}` is none, or stands there twice"));
        }
        let at = Level::named(shown_at).ok_or_else(|| format!("there is no level {shown_at}"))?;
        let is_same_of_reads = level.reads() == at.reads() || !matches!(open, Open::Origin { .. });
        if !level.implies(at.name) || !is_same_of_reads {
            return Err(format!("a case at {shown_at} is none at {}", level.name));
        }
        let facts = facts.assuming(|assumed| assume(assumed, facts, *open, *taken));
        let extent = check_refutation(&facts, at, refutation);
        let extent = extent.map_err(|why| format!("case `{taken}` of `{open}`: {why}"))?;
        count += if let super::Extent::Cases(inner) = extent { inner } else { 1 };
    }
    Ok(count)
}

/// A history in which these appends are taken to be the ones that others saw.
pub(super) fn with_appends<'a>(facts: &Facts<'a>, appends: &[OpId]) -> Result<Facts<'a>, String> {
    let history = facts.history;
    let mut known = HashSet::new();
    for &append in appends {
        let is_append =
            append.index() < history.op_count() && history.op(append).kind == OpKind::Append;
        if !is_append || !known.insert((history.op(append).key, history.op(append).value)) {
            return Err(format!("operation {} appends nothing, or nothing new", append.0));
        }
    }
    Ok(facts.assuming(|assumed| {
        for &append in appends {
            assume(assumed, facts, Open::Element(append), Taken::Append(append));
        }
    }))
}

/// All that can be taken for true.
fn possible(facts: &Facts<'_>, level: &Level, open: Open) -> Result<Vec<Taken>, String> {
    let history = facts.history;
    match open {
        Open::Outcome(txn) => {
            let is_known = txn.index() >= history.txn_count();
            if is_known || history.outcome(txn) != Outcome::Unknown {
                return Err(format!("transaction {} is none of unknown outcome", txn.0));
            }
            Ok(vec![Taken::Counts, Taken::CountsNot])
        }
        Open::Element(append) => {
            let is_known = append.index() < history.op_count();
            if !is_known || history.op(append).kind != OpKind::Append {
                return Err(format!("operation {} appends nothing", append.0));
            }
            let Op { key, value, .. } = history.op(append);
            Ok(facts.writes_of_value(key, value).map(Taken::Append).collect())
        }
        Open::Origin { read, key } => origins(facts, level.reads(), read, key),
    }
}

fn origins(facts: &Facts<'_>, reads: Reads, op: OpId, key: KeyId) -> Result<Vec<Taken>, String> {
    let found = facts.reads_at(op, key);
    let external: Vec<&Read<'_>> = found.iter().filter(|read| read.is_external()).collect();
    let read = match external[..] {
        [read] if !matches!(read.seen, Seen::List(_)) && reads != Reads::Ignored => read,
        _ => return Err(format!("operation {} does not read one value of key {}", op.0, key.0)),
    };
    let mut possible = Vec::new();
    let _ = facts.visit_origins(read, reads, |origin| {
        let taken = match origin {
            Origin::Initial => Taken::Writer(None),
            Origin::Txn(writer) => Taken::Writer(Some(writer)),
            Origin::Nowhere => Taken::Nowhere,
        };
        if !possible.contains(&taken) {
            possible.push(taken);
        }
        ControlFlow::Continue(())
    });
    // Without any, only one that counts would be refuted.
    if possible.is_empty() {
        return Err(format!("operation {} can have seen nothing of key {}", op.0, key.0));
    }
    Ok(possible)
}

fn assume(assumed: &mut Assumed, facts: &Facts<'_>, open: Open, taken: Taken) {
    match (open, taken) {
        (Open::Outcome(txn), taken) => drop(assumed.counts.insert(txn, taken == Taken::Counts)),
        (Open::Element(_), Taken::Append(append)) => {
            let Op { key, value, .. } = facts.history.op(append);
            assumed.appends.insert((key, value), append);
        }
        (Open::Origin { read, key }, taken) => {
            let origin = match taken {
                Taken::Writer(None) => Origin::Initial,
                Taken::Writer(Some(writer)) => Origin::Txn(writer),
                _ => Origin::Nowhere,
            };
            assumed.origins.insert((read, key), origin);
        }
        (Open::Element(_), _) => unreachable!("only what is possible is assumed"),
    }
}

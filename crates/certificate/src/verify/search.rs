//! Refutations by search: clauses over what is open, the last of which is empty.
//!
//! An order that explains the history gives every variable a value (see `derivation.rs` on
//! transactions that do not count). A cycle of steps and edges that hold if their literals
//! do says that the literals do not all hold. The other clauses say what the definition of a
//! version order, or of a read, says. Lemmas follow by unit propagation.

use super::conditions::Looked;
use super::derivation::{Kind, Prover, Walk};
use super::facts::{Origin, Read, Reader, Sole};
use super::propagation::Propagation;
use crate::level::{Meaning, Reads, Rows};
use crate::proof::{ChosenOrigin, Clause, Link, Literal, Node, Search, Variable};
use isolde_history::{KeyId, OpId, TxnId};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Checks that the clauses follow and end with the empty one.
pub(super) fn check(prover: &Prover<'_, '_>, search: &Search) -> Result<(), String> {
    let mut places: HashMap<Variable, u32> = HashMap::new();
    for (place, variable) in search.variables.iter().enumerate() {
        let fail = |why| format!("variable {place}: {why}");
        check_variable(prover, variable).map_err(fail)?;
        if places.insert(*variable, place as u32).is_some() {
            return Err(fail("it stands there twice".into()));
        }
    }
    let clauses = Clauses { prover, search, places };
    let mut propagation = Propagation::new(search.variables.len());
    let mut last_is_empty = false;
    for (place, clause) in search.clauses.iter().enumerate() {
        let fail = |why| format!("clause {place}: {why}");
        let literals = clauses.literals(clause).map_err(fail)?;
        if matches!(clause, Clause::Lemma(_)) && !propagation.implies(&literals) {
            return Err(fail("unit propagation does not show it".into()));
        }
        last_is_empty = literals.is_empty();
        propagation.add(&literals);
    }
    if last_is_empty { Ok(()) } else { Err("the last clause is not empty".into()) }
}

fn check_variable(prover: &Prover<'_, '_>, variable: &Variable) -> Result<(), String> {
    match *variable {
        Variable::Order { key, first, second } => {
            if !prover.has_versions() {
                return Err("the level has no version order of its own".into());
            }
            for txn in [first, second] {
                prover.check_writer(txn, key)?;
                prover.check_node(Node::commit(txn))?;
            }
            if first == second { Err("expected two writers".into()) } else { Ok(()) }
        }
        Variable::Origin(origin) => origin_of(prover, &origin).map(|_| ()),
        Variable::Before { from, to } => {
            if prover.is_parallel() {
                return Err("the level has no order of all events".into());
            }
            prover.check_node(from)?;
            prover.check_node(to)?;
            if from == to { Err("expected two events".into()) } else { Ok(()) }
        }
    }
}

/// The read of an origin variable.
fn origin_of<'a>(prover: &Prover<'_, 'a>, origin: &ChosenOrigin) -> Result<Read<'a>, String> {
    let read = read_at(prover, origin.read, origin.key)?;
    let wanted = origin.writer.map_or(Origin::Initial, Origin::Txn);
    if prover.facts.may_have(&read, prover.reads(), wanted) {
        return Ok(read);
    }
    Err("the read cannot have seen this".into())
}

fn read_at<'a>(prover: &Prover<'_, 'a>, op: OpId, key: KeyId) -> Result<Read<'a>, String> {
    if prover.reads() == Reads::Ignored {
        return Err("reads mean nothing at this level".into());
    }
    let mut reads = prover.facts.reads_at(op, key);
    reads.retain(Read::is_external);
    let asks_all =
        matches!(prover.level.meaning, Meaning::Events(it) if it.rows != Rows::ReadsFrom);
    if reads.is_empty() && asks_all {
        let looked = Looked::new(prover.facts.history, op, key);
        reads.extend(looked.and_then(|looked| looked.as_read(prover.facts)));
    }
    match reads[..] {
        [read] => {
            prover.check_surely_counts(read.txn)?;
            Ok(read)
        }
        _ => Err(format!("expected one external read of key {} by operation {}", key.0, op.0)),
    }
}

struct Clauses<'p, 'f, 'a> {
    prover: &'p Prover<'f, 'a>,
    search: &'p Search,
    places: HashMap<Variable, u32>,
}

impl Clauses<'_, '_, '_> {
    /// What a clause says; whether a lemma follows is not looked at here.
    fn literals(&self, clause: &Clause) -> Result<Vec<Literal>, String> {
        match clause {
            Clause::Cycle(links) => self.cycle(links),
            Clause::OneOrigin { read, key } => self.one_origin(*read, *key),
            Clause::SeenOrAfter { read, key, writer, other } => {
                self.seen_or_after(*read, *key, *writer, *other)
            }
            Clause::Lemma(literals) => {
                literals.iter().try_for_each(|&literal| self.variable(literal).map(|_| ()))?;
                Ok(literals.clone())
            }
        }
    }

    fn variable(&self, literal: Literal) -> Result<&Variable, String> {
        let variable = self.search.variables.get(literal.variable() as usize);
        variable.ok_or_else(|| format!("there is no variable {}", literal.variable()))
    }

    fn cycle(&self, links: &[Link]) -> Result<Vec<Literal>, String> {
        let mut walk = Walk::new(self.prover);
        let mut literals = Vec::new();
        for link in links {
            match *link {
                Link::Step(step) => walk.step(step)?,
                Link::Literal { literal, from, to } => {
                    walk.edge(from, to, self.edge(literal, from, to)?)?;
                    literals.push(!literal);
                }
            }
        }
        walk.close()?;
        Ok(literals)
    }

    /// Checks that an edge holds if the literal does.
    fn edge(&self, literal: Literal, from: Node, to: Node) -> Result<Kind, String> {
        let prover = self.prover;
        prover.check_node(from)?;
        prover.check_node(to)?;
        let refused = || format!("{literal} does not mean {from} before {to}");
        match *self.variable(literal)? {
            Variable::Order { key, first, second } => {
                let (first, second) =
                    if literal.is_yes() { (first, second) } else { (second, first) };
                if (from, to) == (Node::commit(first), prover.overwriter(second)) {
                    return Ok(Kind::Other);
                }
                let reader = from.txn();
                let ends = (prover.begin(reader), Node::commit(second));
                let overwrites = (from, to) == ends && reader != second;
                if overwrites && self.reads_from(reader, key, first)? {
                    return Ok(Kind::AntiDependency);
                }
                Err(refused())
            }
            Variable::Origin(origin) if literal.is_yes() => {
                let read = origin_of(prover, &origin)?;
                let begin = prover.begin(read.txn);
                match origin.writer {
                    Some(writer) if (from, to) == (Node::commit(writer), begin) => Ok(Kind::Other),
                    None if from == begin
                        && prover.precedes_overwriter(read.txn, to.txn())
                        && prover.is_protected(&read)
                        && to == Node::commit(to.txn())
                        && to.txn() != read.txn =>
                    {
                        prover.check_writer(to.txn(), origin.key)?;
                        Ok(Kind::AntiDependency)
                    }
                    _ => Err(refused()),
                }
            }
            Variable::Before { from: first, to: second } => {
                let ends = if literal.is_yes() { (first, second) } else { (second, first) };
                if (from, to) == ends { Ok(Kind::Other) } else { Err(refused()) }
            }
            Variable::Origin(_) => Err(refused()),
        }
    }

    /// Whether a transaction surely reads a key from another, by a protected read.
    fn reads_from(&self, reader: TxnId, key: KeyId, writer: TxnId) -> Result<bool, String> {
        let prover = self.prover;
        prover.check_surely_counts(reader)?;
        let mut found = false;
        Reader::default().visit(prover.facts.history, reader, |read| {
            found |= read.key == key
                && read.is_external()
                && prover.is_protected(&read)
                && prover.facts.sole_origin(&read, prover.reads())
                    == Sole::One(Origin::Txn(writer));
        });
        Ok(found)
    }

    fn one_origin(&self, op: OpId, key: KeyId) -> Result<Vec<Literal>, String> {
        let read = read_at(self.prover, op, key)?;
        let mut literals = Vec::new();
        let mut missing = None;
        let _ = self.prover.facts.visit_origins(&read, self.prover.reads(), |origin| {
            let writer = match origin {
                Origin::Txn(writer) => Some(writer),
                Origin::Initial => None,
                Origin::Nowhere => {
                    missing = Some("the read may have seen nothing that counts".to_string());
                    return ControlFlow::Break(());
                }
            };
            let variable = Variable::Origin(ChosenOrigin { read: op, key, writer });
            match self.places.get(&variable) {
                Some(&place) => literals.push(Literal::yes(place)),
                None => missing = Some(format!("there is no variable for {origin:?}")),
            }
            if missing.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match missing {
            Some(missing) => Err(missing),
            // Only where reads must make sense is a read without an origin a contradiction.
            None if literals.is_empty() && self.prover.reads() != Reads::Final => {
                Err("the read may have seen nothing that counts".into())
            }
            None => Ok(literals),
        }
    }

    fn seen_or_after(
        &self,
        op: OpId,
        key: KeyId,
        writer: TxnId,
        other: TxnId,
    ) -> Result<Vec<Literal>, String> {
        let origin = ChosenOrigin { read: op, key, writer: Some(writer) };
        let read = read_at(self.prover, op, key)?;
        self.prover.check_writer(other, key)?;
        if other == read.txn || other == writer || !self.prover.is_protected(&read) {
            return Err("expected another writer of what a protected read read".into());
        }
        if self.prover.sees_common_writers() && !self.prover.share_a_key(other, read.txn) {
            return Err("the reader and the other writer write no common key".into());
        }
        let place = |variable: Variable| self.places.get(&variable).copied();
        let before = |from, to| {
            let yes = place(Variable::Before { from, to }).map(Literal::yes);
            yes.or_else(|| place(Variable::Before { from: to, to: from }).map(Literal::no))
        };
        let order = |first, second| Variable::Order { key, first, second };
        let overwritten = if self.prover.sees_common_writers() {
            before(Node::commit(other), Node::commit(writer))
        } else {
            (place(order(other, writer)).map(Literal::yes))
                .or_else(|| place(order(writer, other)).map(Literal::no))
        };
        let overwritten = overwritten.ok_or("there is no variable for the order of the writers")?;
        let after = before(self.prover.begin(read.txn), Node::commit(other))
            .ok_or("there is no variable for the events of reader and writer")?;
        let seen = place(Variable::Origin(origin)).map(Literal::no);
        let sole = || self.prover.facts.sole_origin(&read, self.prover.reads());
        if seen.is_none() && sole() != Sole::One(Origin::Txn(writer)) {
            return Err("there is no variable for the origin".into());
        }
        Ok([overwritten, after].into_iter().chain(seen).collect())
    }
}

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
            Clause::SeenTogether { one, other } => self.seen_together(one, other),
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
                Link::Overwritten { order, origin, from, to } => {
                    self.check_overwritten((order, origin), from, to)?;
                    walk.edge(from, to, Kind::AntiDependency)?;
                    literals.extend([!order, !origin]);
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

    /// Checks that who saw the first of two versions precedes the writer of the second.
    fn check_overwritten(
        &self,
        (order, origin): (Literal, Literal),
        from: Node,
        to: Node,
    ) -> Result<(), String> {
        let prover = self.prover;
        prover.check_node(from)?;
        prover.check_node(to)?;
        let refused = || Err(format!("{order} and {origin} do not mean {from} before {to}"));
        let (Variable::Order { key, first, second }, Variable::Origin(seen)) =
            (*self.variable(order)?, *self.variable(origin)?)
        else {
            return refused();
        };
        let (first, second) = if order.is_yes() { (first, second) } else { (second, first) };
        let read = origin_of(prover, &seen)?;
        let is_meant = origin.is_yes()
            && (seen.key, seen.writer) == (key, Some(first))
            && (from, to) == (prover.begin(read.txn), Node::commit(second))
            && read.txn != second
            && prover.is_protected(&read);
        if is_meant { Ok(()) } else { refused() }
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
        let order = |first, second| Variable::Order { key, first, second };
        let overwritten = if self.prover.sees_common_writers() {
            self.before(Node::commit(other), Node::commit(writer))
        } else {
            (place(order(other, writer)).map(Literal::yes))
                .or_else(|| place(order(writer, other)).map(Literal::no))
        };
        let overwritten = overwritten.ok_or("there is no variable for the order of the writers")?;
        let after = (self.before(self.prover.begin(read.txn), Node::commit(other)))
            .ok_or("there is no variable for the events of reader and writer")?;
        Ok([overwritten, after].into_iter().chain(self.not_seen(&read, origin)?).collect())
    }

    /// A reader sees all of whom it reads from.
    fn seen_together(
        &self,
        one: &ChosenOrigin,
        other: &ChosenOrigin,
    ) -> Result<Vec<Literal>, String> {
        let prover = self.prover;
        let (read, source) = (origin_of(prover, one)?, origin_of(prover, other)?);
        if !prover.sees_common_writers() {
            return Err("the level does not say this of what is seen together".into());
        }
        let seen = other.writer.ok_or("expected a transaction that was seen")?;
        prover.check_writer(seen, one.key)?;
        if read.txn != source.txn || seen == read.txn || Some(seen) == one.writer {
            return Err("expected two reads of one transaction that saw others".into());
        }
        let before = one.writer.map(|writer| {
            let before = self.before(Node::commit(seen), Node::commit(writer));
            before.ok_or("there is no variable for the order of the writers")
        });
        let mut literals: Vec<Literal> = before.transpose()?.into_iter().collect();
        literals.extend(self.not_seen(&read, *one)?);
        literals.extend(self.not_seen(&source, *other)?);
        Ok(literals)
    }

    /// The literal that one event precedes another.
    fn before(&self, from: Node, to: Node) -> Option<Literal> {
        let place = |from, to| self.places.get(&Variable::Before { from, to }).copied();
        place(from, to).map(Literal::yes).or_else(|| place(to, from).map(Literal::no))
    }

    /// The literal that a read did not see what it is said to have seen; none if it surely did.
    fn not_seen(&self, read: &Read<'_>, origin: ChosenOrigin) -> Result<Option<Literal>, String> {
        let seen = self.places.get(&Variable::Origin(origin)).copied().map(Literal::no);
        let wanted = origin.writer.map_or(Origin::Initial, Origin::Txn);
        let sole = || self.prover.facts.sole_origin(read, self.prover.reads());
        if seen.is_none() && sole() != Sole::One(wanted) {
            return Err("there is no variable for the origin".into());
        }
        Ok(seen)
    }
}

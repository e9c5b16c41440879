//! Witnesses of levels of one commit order, and of parallel snapshot isolation.
//!
//! The order must contain what the level says: known version order, reads-from, session
//! order. Then every read is explained: each other writer of its key that was visible to
//! the reader precedes the writer that it read from. What is visible is found per level, in
//! `visible.rs`; for parallel snapshot isolation `parallel.rs` looks for cycles.

use super::facts::{Facts, Origin, Read, Reader, Seen, Sole};
use super::versions::{self, Faults};
use super::{parallel, visible};
use crate::level::{Commits, Reads, Visible};
use crate::proof::ChosenOrigin;
use isolde_history::{KeyId, OpId, Outcome, SessionId, TxnId};
use std::collections::HashMap;

/// Stands for "not in the order" and "the initial state".
pub(super) const NONE: u32 = u32::MAX;

/// Checks that a level of one commit order holds by this one.
pub(super) fn check(
    facts: &Facts<'_>,
    level: Commits,
    order: &[TxnId],
    origins: &[ChosenOrigin],
) -> Result<(), String> {
    let ordered = Ordered::new(facts, level.reads, order, origins)?;
    if level.sessions {
        ordered.check_sessions()?;
    }
    let faults = if level.reads == Reads::Any { Faults::Ignored } else { Faults::Refused };
    versions::check_lists(facts, &ordered.position, level.reads, faults)?;
    versions::check_given(facts, &ordered.position, faults)?;
    if level.reads != Reads::Ignored {
        ordered.check_reads_from()?;
    }
    if level.visible == Visible::Nothing {
        return Ok(());
    }
    visible::check(&ordered, level.visible)
}

/// Checks that parallel snapshot isolation holds by this order.
pub(super) fn check_parallel(
    facts: &Facts<'_>,
    order: &[TxnId],
    origins: &[ChosenOrigin],
) -> Result<(), String> {
    let ordered = Ordered::new(facts, Reads::Final, order, origins)?;
    versions::check_lists(facts, &ordered.position, Reads::Final, Faults::Refused)?;
    versions::check_given(facts, &ordered.position, Faults::Refused)?;
    ordered.check_reads_from()?;
    parallel::check(&ordered)
}

/// A history with a commit order.
pub(super) struct Ordered<'f, 'a> {
    pub(super) facts: &'f Facts<'a>,
    pub(super) order: &'f [TxnId],
    /// By transaction, its place in the order.
    pub(super) position: Vec<u32>,
    /// By transaction, where its reads start.
    starts: Vec<u32>,
    reads: Vec<SeenFrom>,
    /// By key, where its writers start.
    writer_starts: Vec<u32>,
    /// Those that are in the order, ascending by transaction, so those of one session
    /// are together and in session order.
    writers: Vec<TxnId>,
}

/// What a transaction saw of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenFrom {
    pub(super) op: OpId,
    pub(super) key: KeyId,
    /// `None` is the initial state.
    pub(super) writer: Option<TxnId>,
    pub(super) is_row: bool,
}

impl<'f, 'a> Ordered<'f, 'a> {
    fn new(
        facts: &'f Facts<'a>,
        reads: Reads,
        order: &'f [TxnId],
        origins: &[ChosenOrigin],
    ) -> Result<Self, String> {
        let position = positions(facts, order)?;
        let (writer_starts, writers) = writers(facts, &position);
        let mut ordered = Ordered {
            facts,
            order,
            position,
            starts: vec![0],
            reads: Vec::new(),
            writer_starts,
            writers,
        };
        ordered.resolve(reads, origins)?;
        Ok(ordered)
    }

    pub(super) fn takes_part(&self, txn: TxnId) -> bool {
        self.position[txn.index()] != NONE
    }

    pub(super) fn place(&self, txn: TxnId) -> u32 {
        self.position[txn.index()]
    }

    /// What a transaction saw of others, in program order.
    pub(super) fn reads_of(&self, txn: TxnId) -> &[SeenFrom] {
        &self.reads[self.starts[txn.index()] as usize..self.starts[txn.index() + 1] as usize]
    }

    pub(super) fn writers_of(&self, key: KeyId) -> &[TxnId] {
        let starts = &self.writer_starts;
        &self.writers[starts[key.index()] as usize..starts[key.index() + 1] as usize]
    }

    pub(super) fn writes(&self, txn: TxnId, key: KeyId) -> bool {
        self.writers_of(key).binary_search(&txn).is_ok()
    }

    /// The last writer of a key in a session before a transaction of it.
    pub(super) fn last_writer_before(
        &self,
        session: SessionId,
        txn: TxnId,
        key: KeyId,
    ) -> Option<TxnId> {
        let writers = self.writers_of(key);
        let place = writers.partition_point(|&writer| writer < txn);
        let last = *writers[..place].last()?;
        (last.0 >= self.facts.history.session_range(session).start).then_some(last)
    }

    /// Finds what every read saw.
    fn resolve(&mut self, reads: Reads, origins: &[ChosenOrigin]) -> Result<(), String> {
        let mut chosen = Chosen::new(origins)?;
        let history = self.facts.history;
        let mut reader = Reader::default();
        for txn in history.txns() {
            let mut wrong = None;
            if self.takes_part(txn) {
                reader.visit(history, txn, |read| {
                    if wrong.is_some() {
                        return;
                    }
                    if let Err(why) = self.see(&read, reads, &mut chosen) {
                        wrong = Some(format!(
                            "operation {} reads key {}: {why}",
                            read.op.0, read.key.0
                        ));
                    }
                });
            }
            if let Some(wrong) = wrong {
                return Err(wrong);
            }
            self.starts.push(self.reads.len() as u32);
        }
        chosen.all_used()
    }

    fn see(&mut self, read: &Read<'_>, reads: Reads, chosen: &mut Chosen) -> Result<(), String> {
        if reads == Reads::Final && self.facts.is_wrong(read) {
            return Err("no transaction that may count explains it".into());
        }
        if let Seen::List(Some(elements)) = read.seen {
            self.see_elements(read, elements, reads)?;
        }
        if !read.is_external() {
            return Ok(());
        }
        let origin = match (chosen.of(read), self.facts.sole_origin(read, reads)) {
            (Some(choice), _) => self.chosen(read, choice.writer, reads)?,
            (None, Sole::One(origin)) => origin,
            (None, Sole::None) => Origin::Nowhere,
            (None, Sole::Several) if reads == Reads::Ignored => self.some_origin(read),
            (None, Sole::Several) => return Err("it has several possible origins".into()),
        };
        let writer = match origin {
            Origin::Nowhere => return Ok(()),
            Origin::Initial => None,
            Origin::Txn(writer) if self.takes_part(writer) => Some(writer),
            Origin::Txn(writer) => {
                return Err(format!("transaction {} is not in the order", writer.0));
            }
        };
        let is_row = read.row.is_some();
        self.reads.push(SeenFrom { op: read.op, key: read.key, writer, is_row });
        Ok(())
    }

    /// What a chosen writer means; an aborted one that the read is ignored.
    fn chosen(
        &self,
        read: &Read<'_>,
        writer: Option<TxnId>,
        reads: Reads,
    ) -> Result<Origin, String> {
        let origin = match writer {
            None => Origin::Initial,
            Some(writer) if writer.index() >= self.position.len() => {
                return Err(format!("there is no transaction {}", writer.0));
            }
            Some(writer) if self.facts.may_count(writer) => Origin::Txn(writer),
            Some(writer) if self.facts.writes(writer, read.key) => Origin::Nowhere,
            Some(writer) => return Err(format!("transaction {} does not write it", writer.0)),
        };
        if self.facts.may_have(read, reads, origin) {
            return Ok(origin);
        }
        Err("it cannot have the chosen origin".into())
    }

    /// An origin that asks for nothing, if there is one, where reads mean nothing.
    fn some_origin(&self, read: &Read<'_>) -> Origin {
        let mut found = Origin::Nowhere;
        let _ = self.facts.visit_origins(read, Reads::Ignored, |origin| {
            found = origin;
            match origin {
                Origin::Txn(txn) if !self.takes_part(txn) => std::ops::ControlFlow::Continue(()),
                _ => std::ops::ControlFlow::Break(()),
            }
        });
        found
    }

    /// Whose appends a list shows takes part, unless it is aborted.
    fn see_elements(
        &self,
        read: &Read<'_>,
        elements: &[isolde_history::Value],
        reads: Reads,
    ) -> Result<(), String> {
        for &element in elements {
            if self.facts.writes_of_value(read.key, element).next().is_none() {
                continue;
            }
            let append = self.facts.append_of(read.txn, read.key, element, reads);
            let append = append.ok_or("it is open which append it saw")?;
            let writer = self.facts.history.txn_of(append);
            if self.facts.may_count(writer) && !self.takes_part(writer) {
                return Err(format!("transaction {} is not in the order", writer.0));
            }
        }
        Ok(())
    }

    fn check_sessions(&self) -> Result<(), String> {
        for session in self.facts.history.sessions() {
            let mut last: Option<TxnId> = None;
            for txn in self.facts.history.txns_of(session).filter(|&txn| self.takes_part(txn)) {
                if let Some(last) = last.filter(|&last| self.place(last) > self.place(txn)) {
                    return Err(format!(
                        "transaction {} comes after {} of the same session",
                        last.0, txn.0
                    ));
                }
                last = Some(txn);
            }
        }
        Ok(())
    }

    fn check_reads_from(&self) -> Result<(), String> {
        for &txn in self.order {
            for read in self.reads_of(txn) {
                if let Some(writer) = read.writer.filter(|&it| self.place(it) >= self.place(txn)) {
                    return Err(format!(
                        "transaction {} comes after {}, which read from it",
                        writer.0, txn.0
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Every committed transaction stands once in the order, and no aborted one does.
fn positions(facts: &Facts<'_>, order: &[TxnId]) -> Result<Vec<u32>, String> {
    let history = facts.history;
    let mut position = vec![NONE; history.txn_count()];
    for (place, &txn) in order.iter().enumerate() {
        if txn.index() >= history.txn_count() {
            return Err(format!("there is no transaction {}", txn.0));
        }
        if !facts.may_count(txn) {
            return Err(format!("transaction {} was aborted", txn.0));
        }
        if position[txn.index()] != NONE {
            return Err(format!("transaction {} stands twice in the order", txn.0));
        }
        position[txn.index()] = place as u32;
    }
    let is_missing =
        |txn: &TxnId| history.outcome(*txn) == Outcome::Committed && position[txn.index()] == NONE;
    match history.txns().find(is_missing) {
        Some(txn) => Err(format!("transaction {} committed and is not in the order", txn.0)),
        None => Ok(position),
    }
}

fn writers(facts: &Facts<'_>, position: &[u32]) -> (Vec<u32>, Vec<TxnId>) {
    let history = facts.history;
    let (mut starts, mut writers) = (vec![0], Vec::new());
    for key in history.keys() {
        let start = writers.len();
        for write in facts.writes_of(key) {
            let txn = history.txn_of(write);
            if position[txn.index()] != NONE && writers[start..].last() != Some(&txn) {
                writers.push(txn);
            }
        }
        starts.push(writers.len() as u32);
    }
    (starts, writers)
}

/// The origins that a witness chose.
struct Chosen {
    /// With whether a read asked for it.
    choices: HashMap<(OpId, KeyId), (ChosenOrigin, bool)>,
}

impl Chosen {
    fn new(chosen: &[ChosenOrigin]) -> Result<Self, String> {
        let mut choices = HashMap::new();
        for choice in chosen {
            if choices.insert((choice.read, choice.key), (*choice, false)).is_some() {
                return Err(format!("operation {} has two chosen origins", choice.read.0));
            }
        }
        Ok(Chosen { choices })
    }

    fn of(&mut self, read: &Read<'_>) -> Option<ChosenOrigin> {
        if self.choices.is_empty() {
            return None;
        }
        let (choice, used) = self.choices.get_mut(&(read.op, read.key))?;
        *used = true;
        Some(*choice)
    }

    fn all_used(&self) -> Result<(), String> {
        let unused = self.choices.iter().filter(|(_, (_, used))| !used).map(|(read, _)| read);
        match unused.min() {
            Some((op, key)) => Err(format!("operation {} reads no key {}", op.0, key.0)),
            None => Ok(()),
        }
    }
}

//! Values that are versions: which transaction wrote what others read.
//!
//! A value is the number of the transaction that wrote the version, or of a part of it that was
//! nested; `12.1` is a version that the same transaction has replaced since. So every read names
//! its writer, and what is missing in the trace accuses nobody:
//! - a version whose writer has no number in the trace, and was over when that began, was there
//!   before;
//! - else a transaction in no log wrote it;
//! - one whose writer is in the trace was written by a request of it that is not told, such as a
//!   trigger. A transaction's read of a version of its own comes behind a write of it.
//!
//! A transaction with a request that may have written more, under any number, may read versions of
//! its own behind it. These reads are held back until all numbers are known.
//!
//! **Order.** Who writes a row keeps others from writing it until he ends, as in every database
//! that numbers versions by their writers. So of two writers of a row the one came first whose
//! write was answered before the other's commit was sent. Where that orders all writers of a
//! key, their order is given with the history; else nothing is said.

use super::{Events, Uses};
use crate::builder::DraftTxn;
use crate::history::{Interval, KeyId, NEVER, OpKind, Outcome, Time, VersionChain};
use crate::value::{Datum, Value};
use hashbrown::{HashMap, HashSet};

/// What is known of versions.
#[derive(Default)]
pub(super) struct Versions {
    /// Transactions with lower numbers were over when the trace began.
    pub(super) running: Option<u64>,
    /// Who has which number.
    writers: HashMap<u64, DraftTxn>,
    /// Versions by committed transactions, with when their writes were answered and their
    /// commits sent.
    installed: Vec<(KeyId, Value, Time, Time)>,
    /// Keys whose writers have no order: somebody removed the row, or may not have committed.
    unordered: HashSet<KeyId>,
    /// Reads that may be of their own transactions.
    held: Vec<Held>,
}

/// A read that is held back.
struct Held {
    draft: DraftTxn,
    key: KeyId,
    value: Value,
    interval: Interval,
    position: u32,
}

impl Versions {
    /// A transaction ended.
    pub(super) fn end(
        &mut self,
        written: impl Iterator<Item = ((KeyId, Value), Time)>,
        outcome: Outcome,
        commit: Time,
    ) {
        if outcome == Outcome::Aborted {
            return;
        }
        for ((key, value), answered) in written {
            if value == Value::NIL || outcome == Outcome::Unknown {
                self.unordered.insert(key);
            } else {
                self.installed.push((key, value, answered, commit));
            }
        }
    }

    /// Whether a writer was over when the trace began. Versions have the lower 32 bits of its
    /// number, which come again after four thousand million transactions; the least are of no
    /// transaction.
    fn was_over(&self, number: u64) -> bool {
        let Some(running) = self.running else { return false };
        let ahead = (running as u32).wrapping_sub(number as u32).cast_signed();
        number < 3 || ahead > 0
    }
}

impl Events<'_> {
    /// The number of the writer that a value names.
    fn number(&mut self, value: Value) -> Option<u64> {
        match self.builder.values().datum(value) {
            Datum::Int(number) => u64::try_from(number).ok(),
            Datum::Text(text) => text.split('.').next()?.parse().ok(),
            _ => None,
        }
    }

    /// Takes note of a version; false if its read is held back.
    pub(super) fn take_version(
        &mut self,
        client: usize,
        is_write: bool,
        key: KeyId,
        value: Value,
        interval: Interval,
    ) -> bool {
        let Some(number) = self.number(value) else { return true };
        let open = self.clients[client].open.as_mut().expect("it was entered");
        let versions = self.versions.as_mut().expect("values are versions");
        let draft = open.draft;
        if is_write {
            versions.writers.insert(number, draft);
            return true;
        }
        if open.written.contains(&(key, value)) {
            return true;
        }
        if versions.writers.get(&number) == Some(&draft) {
            // A trigger of its own, or the like.
            open.written.push((key, value));
            open.answered.push(interval.completed);
            versions.unordered.insert(key);
            self.builder.op(OpKind::Write, key, value);
            self.builder.op_interval(interval);
            self.uses.entry((key, value)).or_insert(super::UNUSED).asked = interval.invoked;
            return true;
        }
        if open.has_unseen && !versions.was_over(number) {
            let position = u32::try_from(self.message).unwrap_or(u32::MAX);
            versions.held.push(Held { draft, key, value, interval, position });
            return false;
        }
        true
    }

    /// Says who wrote what was read, and in which order versions were installed.
    pub(super) fn settle_versions(&mut self, mut versions: Versions) {
        for held in std::mem::take(&mut versions.held) {
            self.builder.position(held.position);
            self.builder.resume(held.draft);
            let number = self.number(held.value).expect("it was one when it was held");
            let own = *versions.writers.entry(number).or_insert(held.draft) == held.draft;
            let uses = self.uses.entry((held.key, held.value)).or_insert(super::UNUSED);
            if own && uses.asked == NEVER {
                uses.asked = held.interval.invoked;
                versions.unordered.insert(held.key);
                self.builder.op(OpKind::Write, held.key, held.value);
                self.builder.op_interval(held.interval);
            }
            uses.read = uses.read.min(held.interval.completed);
            self.builder.op(OpKind::Read, held.key, held.value);
            self.builder.op_interval(held.interval);
        }
        if !self.builder.is_complete_log() {
            self.find_writers(&mut versions);
        }
        self.order(versions);
    }

    fn find_writers(&mut self, versions: &mut Versions) {
        let is_unwritten =
            |(_, uses): &(&(KeyId, Value), &Uses)| uses.asked == NEVER && uses.read != NEVER;
        let mut unwritten: Vec<(KeyId, Value)> =
            self.uses.iter().filter(is_unwritten).map(|(name, _)| *name).collect();
        unwritten.sort_unstable_by_key(|(key, value)| (*key, value.bits()));
        let mut last_initial = None;
        let mut unlogged: HashMap<u64, DraftTxn> = HashMap::new();
        for (key, value) in unwritten {
            let Some(number) = self.number(value) else { continue };
            if let Some(&writer) = versions.writers.get(&number) {
                self.builder.resume(writer);
                self.builder.op(OpKind::Write, key, value);
                versions.unordered.insert(key);
            } else if versions.was_over(number) && last_initial != Some(key) {
                self.builder.initial(key, value);
                last_initial = Some(key);
            } else {
                let writer = unlogged.get(&number).copied();
                let writer = writer.unwrap_or_else(|| self.unlogged_writer(number));
                unlogged.insert(number, writer);
                self.builder.resume(writer);
                self.builder.op(OpKind::Write, key, value);
            }
        }
    }

    fn unlogged_writer(&mut self, number: u64) -> DraftTxn {
        let label = self.builder.values().text(&format!("not recorded {number}"));
        let session = self.builder.new_session(label);
        let txn = self.builder.begin(session);
        self.builder.unlogged(txn);
        txn
    }

    fn order(&mut self, versions: Versions) {
        let mut installed = versions.installed;
        installed.sort_by_key(|&(key, _, answered, _)| (key, answered));
        for of_key in installed.chunk_by(|left, right| left.0 == right.0) {
            let key = of_key[0].0;
            let is_ordered = |pair: &[(KeyId, Value, Time, Time)]| {
                let ((_, _, answered, ended), (_, _, _, commit)) = (pair[0], pair[1]);
                // Of one transaction, they come as it wrote them.
                ended == commit || answered < commit
            };
            if of_key.len() < 2
                || versions.unordered.contains(&key)
                || !of_key.windows(2).all(is_ordered)
            {
                continue;
            }
            let values = of_key.iter().map(|it| it.1).collect();
            let chain = VersionChain { key, values, numbers: Vec::new(), complete: false };
            self.builder.version_chain(chain);
        }
    }
}

#[cfg(test)]
mod tests;

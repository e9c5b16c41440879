//! Clocks that contradict what was seen: a value was read before its only writer sent it.
//!
//! No database shows what nobody has sent to it yet. If, as the clocks have it, a read was
//! answered before all that wrote its value was sent, the clocks of the two clients are further
//! apart than was promised. That is told, with the least drift that would explain it, and is no
//! violation.
//!
//! The write is known only after its time has come. So a read that nobody is known to have
//! written waits for a while before it is called a violation. And the drift has to explain that
//! what was read was committed, so it is told when the writer ends.

use super::finding::{Finding, Role, Step};
use super::misread::step_of;
use super::reads::Reading;
use super::tables::{Fate, NONE, Version};
use super::trace::{Cell, ClientId, Content, Event, EventKind, Interval, NEVER, Time};
use super::verifier::Verifier;
use std::collections::VecDeque;

/// Nanoseconds that a read which nobody is known to have written waits for its writer.
const PATIENCE: Time = 500_000_000;
/// Reads that wait.
const SUSPECTS_MAX: usize = 1 << 10;
/// Contradictions that are kept until they are fetched.
const CONTRADICTIONS_MAX: usize = 100;

/// A read that saw a value before its writer sent it, as the clocks have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The read.
    pub read: Step,
    /// The first that wrote what was read.
    pub write: Step,
    /// The least drift of clocks that would explain it, in nanoseconds.
    pub drift: Time,
}

/// Reads that nobody is known to have written so far, and what became of others.
#[derive(Default)]
pub(super) struct Suspects {
    findings: VecDeque<Finding>,
    /// Reads whose writer has not ended.
    pending: Vec<Pending>,
    contradictions: Vec<Contradiction>,
}

/// A contradiction whose drift is not known yet.
struct Pending {
    read: Step,
    write: Step,
    /// When the read's snapshot was taken, at the latest, and when the write was sent.
    seen: Time,
    invoked: Time,
}

impl Suspects {
    /// Whether the end of a transaction may tell something.
    pub(super) fn is_any_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn take_contradictions(&mut self) -> Vec<Contradiction> {
        std::mem::take(&mut self.contradictions)
    }
}

impl Verifier {
    /// Keeps a read that nobody is known to have written.
    pub(super) fn suspect(&mut self, finding: Finding) {
        if self.suspects.findings.len() == SUSPECTS_MAX
            && let Some(oldest) = self.suspects.findings.pop_front()
        {
            self.report(oldest);
        }
        self.suspects.findings.push_back(finding);
    }

    /// Reports reads that have waited for long enough.
    pub(super) fn report_suspects(&mut self, known: Time) {
        while let Some(oldest) = self.suspects.findings.front() {
            let due = oldest.offender.interval.completed.saturating_add(PATIENCE);
            if due >= known && self.watermark != NEVER {
                break;
            }
            if let Some(oldest) = self.suspects.findings.pop_front() {
                self.report(oldest);
            }
        }
        if self.watermark == NEVER {
            for pending in std::mem::take(&mut self.suspects.pending) {
                self.contradict(&pending, pending.invoked);
            }
        }
    }

    /// What somebody has sent from `since` on will never be known: it may be what was read after
    /// that. What everybody who was waited for had said before is not touched by it.
    pub(super) fn drop_suspects(&mut self, since: Time) {
        let since = since.saturating_sub(self.options.drift);
        let before = self.suspects.findings.len();
        self.suspects.findings.retain(|finding| finding.offender.interval.completed < since);
        let dropped = before - self.suspects.findings.len();
        self.counters.unchecked.events_missing += dropped as u64;
    }

    /// The end of a transaction tells how much drift explains what was read of it.
    pub(super) fn end_contradictions(&mut self, event: &Event) {
        let is_of_it = |pending: &Pending| {
            (pending.write.client, pending.write.txn) == (event.client, event.txn)
        };
        let mut place = 0;
        while place < self.suspects.pending.len() {
            if !is_of_it(&self.suspects.pending[place]) {
                place += 1;
                continue;
            }
            let pending = self.suspects.pending.swap_remove(place);
            let committed = event.interval.invoked.saturating_sub(self.options.drift);
            let is_known = event.kind == EventKind::Commit && event.interval != Interval::UNKNOWN;
            self.contradict(&pending, if is_known { committed } else { pending.invoked });
        }
    }

    /// A write that comes now may be what a suspect read.
    pub(super) fn compare_with_suspects(&mut self, event: &Event, cells: &[Cell]) {
        if self.suspects.findings.is_empty() {
            return;
        }
        let invoked = event.interval.invoked.saturating_sub(self.options.drift);
        for &cell in cells {
            let is_it = |finding: &Finding| {
                let read = &finding.offender;
                read.client != event.client
                    && read
                        .cell
                        .is_some_and(|read| (read.item, read.content) == (cell.item, cell.content))
            };
            let mut place = 0;
            while place < self.suspects.findings.len() {
                if !is_it(&self.suspects.findings[place]) {
                    place += 1;
                    continue;
                }
                let Some(finding) = self.suspects.findings.remove(place) else { break };
                let write = Step {
                    client: event.client,
                    txn: event.txn,
                    operation: 0,
                    kind: EventKind::Write,
                    interval: event.interval,
                    cell: Some(cell),
                    role: Role::WroteWhatWasRead,
                };
                let read = finding.offender;
                if invoked > read.interval.completed {
                    let seen = finding.snapshot.map_or(NEVER, |snapshot| snapshot.completed);
                    let seen = seen.min(read.interval.completed);
                    self.suspects.pending.push(Pending { read, write, seen, invoked });
                } else {
                    // It came too late, or has no time.
                    self.counters.unchecked.unplaced += 1;
                }
            }
        }
    }

    fn contradict(&mut self, pending: &Pending, committed: Time) {
        self.counters.contradictions += 1;
        let Pending { read, write, seen, .. } = *pending;
        let apart = committed.saturating_sub(seen).max(0);
        // Both sides are widened.
        let drift = self.options.drift.saturating_add(apart / 2 + apart % 2);
        if self.suspects.contradictions.len() < CONTRADICTIONS_MAX {
            self.suspects.contradictions.push(Contradiction { read, write, drift });
        }
    }

    /// Whether all that is known to have written what was read was sent by others after the
    /// read was answered. Then that is noted.
    pub(super) fn is_contradiction(&mut self, reading: Reading, cell: Cell) -> bool {
        let reader = self.tables.txns[reading.txn].client;
        let Some(first) = self.first_written(cell) else { return false };
        let is_later = first.written.invoked > reading.interval.completed;
        if !is_later || first.is_initial() || self.is_written_by(cell, reader) {
            return false;
        }
        let Some(write) = first.step(cell.row, Role::WroteWhatWasRead) else { return false };
        let reader = &self.tables.txns[reading.txn];
        let read = step_of(reader, reading, cell);
        let taken = reader.snapshot.map_or(NEVER, |_| reader.snapshot_event.2.completed);
        let seen = taken.min(reading.interval.completed);
        let pending = Pending { read, write, seen, invoked: first.written.invoked };
        match first.fate {
            Fate::Pending | Fate::Intermediate => self.suspects.pending.push(pending),
            Fate::Committed => self.contradict(&pending, first.commit.invoked),
            Fate::Aborted | Fate::Lost => self.contradict(&pending, first.written.invoked),
        }
        true
    }

    /// The version with this content that was sent first.
    fn first_written(&self, cell: Cell) -> Option<Version> {
        self.versions_with(cell).min_by_key(|version| version.written.invoked)
    }

    fn is_written_by(&self, cell: Cell, client: ClientId) -> bool {
        self.versions_with(cell).any(|version| version.client == client)
    }

    /// Versions with the content of a cell, also those that were given up.
    fn versions_with(&self, cell: Cell) -> impl Iterator<Item = Version> {
        let newest = self.tables.items[cell.item as usize].newest;
        let kept = std::iter::successors((newest != NONE).then_some(newest), |&place| {
            let older = self.tables.versions[place].older;
            (older != NONE).then_some(older)
        });
        let kept = kept.map(|place| self.tables.versions[place]);
        let buried = self.graveyard.iter().copied();
        kept.chain(buried.filter(move |version| version.item == cell.item)).filter(move |version| {
            version.content == cell.content || version.content == Content::UNKNOWN
        })
    }
}

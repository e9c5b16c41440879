//! A violation in full sentences: which operation, what it saw, what it could have seen.

use super::hub::Hub;
use super::status::{COMPLETE_CHECKER, Mark};
use super::window::item_name;
use isolde::online::{
    ALWAYS, Candidate, Content, Contradiction, Dependency, DependencyKind, EventKind, Finding,
    Interval, NEVER, Name, Role, Step, Time,
};
use isolde_history::is_visible;
use std::fmt::Write;

/// What is told of a violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Narrative {
    pub(super) name: &'static str,
    pub(super) mechanism: &'static str,
    /// One sentence.
    pub(super) summary: String,
    /// What it rests on, one sentence each.
    pub(super) reasons: Vec<String>,
}

impl Narrative {
    /// The story of a finding. Times are told from `origin` on.
    pub(super) fn of(finding: &Finding, hub: &Hub, origin: Time) -> Narrative {
        let steps = std::iter::once(&finding.offender).chain(&finding.others);
        let teller = Teller::new(hub, origin, steps);
        let mut reasons: Vec<String> =
            finding.others.iter().map(|step| teller.reason(step)).collect();
        reasons.extend(finding.dependencies.iter().map(|edge| teller.dependency(edge)));
        if let Some(snapshot) = finding.snapshot {
            reasons.push(format!("the snapshot lay {}", teller.between(snapshot)));
        }
        if !finding.candidates.is_empty() {
            let each: Vec<String> =
                finding.candidates.iter().map(|candidate| teller.candidate(candidate)).collect();
            reasons.push(format!("it could have seen {}", each.join(", or ")));
        }
        Narrative {
            name: finding.name.name(),
            mechanism: finding.mechanism().name(),
            summary: teller.summary(finding),
            reasons,
        }
    }

    /// As it is printed.
    pub(super) fn to_text(&self, mark: Mark) -> String {
        let Mark { kind, number } = mark;
        let kind = kind.name();
        let mut text = format!("{kind} {number}: {} ({})\n", self.name, self.mechanism);
        writeln!(text, "  {}.", self.summary).expect("a string grows");
        for reason in &self.reasons {
            match self.mechanism {
                // A whole argument, in lines of its own.
                COMPLETE_CHECKER => writeln!(text, "  {reason}"),
                _ => writeln!(text, "  - {reason}."),
            }
            .expect("a string grows");
        }
        text
    }
}

/// That a value was read before it was written, as the clocks have it.
pub(super) fn contradiction(found: &Contradiction, hub: &Hub, origin: Time) -> String {
    let teller = Teller::new(hub, origin, [&found.read, &found.write].into_iter());
    let Step { client, txn, interval, .. } = found.write;
    let writer = format!("{}, transaction {txn}, wrote it", hub.name(client));
    format!("{} before {writer} {}", teller.done(&found.read), teller.at(interval))
}

struct Teller<'a> {
    hub: &'a Hub,
    origin: Time,
    /// Whether microseconds would hide what came first.
    is_fine: bool,
}

impl<'a> Teller<'a> {
    fn new<'s>(hub: &'a Hub, origin: Time, steps: impl Iterator<Item = &'s Step>) -> Teller<'a> {
        const SHORT: Time = 10_000;
        let is_fine = |step: &Step| {
            let Interval { invoked, completed } = step.interval;
            completed.saturating_sub(invoked) < SHORT
                && (invoked.saturating_sub(origin) % 1000 != 0
                    || completed.saturating_sub(origin) % 1000 != 0)
        };
        Teller { hub, origin, is_fine: { steps }.any(is_fine) }
    }
}

impl Teller<'_> {
    fn summary(&self, finding: &Finding) -> String {
        let step = &finding.offender;
        let why = match finding.name {
            Name::UnexplainedRead => "which nobody is known to have written",
            Name::AbortedRead => "which was written by a transaction that was aborted",
            Name::DirtyRead => "which could not have been committed yet",
            Name::IntermediateRead => "which its writer had replaced before it committed",
            Name::OwnWriteMissed => "which is not what its own transaction had written last",
            Name::StaleRead => "which had certainly been replaced before its snapshot",
            Name::FutureRead => "which was certainly committed after its snapshot",
            Name::ReadSkew => "which was never there together with what the same snapshot showed",
            Name::MissedRow => "although all that its snapshot can have shown there meets it",
            Name::LockViolation => "while another transaction certainly held a lock against that",
            Name::LostUpdate => {
                "although a concurrent transaction wrote the same row, and both committed"
            }
            Name::SerializationCycle => "although no serial order has it after what it depends on",
            Name::DangerousStructure => {
                "although two anti-dependencies in a row between concurrent transactions had to \
                 be refused"
            }
            Name::FailedValidation => "although what it had read was replaced before that",
            Name::TimestampInversion => "although one that it comes after began when it was over",
        };
        format!("{}, {why}", self.done(step))
    }

    fn done(&self, step: &Step) -> String {
        format!(
            "{}, transaction {}, {} {}",
            self.hub.name(step.client),
            step.txn,
            self.what(step),
            self.at(step.interval)
        )
    }

    fn what(&self, step: &Step) -> String {
        let cell = step.cell.map(|cell| (self.item(cell.item), self.value(cell.content)));
        if let Some(cell) = step.cell.filter(|cell| cell.content.condition().is_some()) {
            let item = self.item(cell.item);
            return format!("did not list {item} by condition in operation {}", step.operation);
        }
        match (step.kind, cell) {
            (EventKind::Begin, _) => "began".into(),
            (EventKind::Commit, _) => "committed".into(),
            (EventKind::Abort, _) => "was aborted".into(),
            (EventKind::Lost, _) => "sent a commit that nobody answered".into(),
            (EventKind::Read, Some((item, value))) => {
                format!("read {value} in {item} by operation {}", step.operation)
            }
            (EventKind::LockingRead, Some((item, value))) => {
                format!("read and locked {value} in {item} by operation {}", step.operation)
            }
            (EventKind::Write, Some((item, value))) => {
                format!("wrote {value} to {item} by operation {}", step.operation)
            }
            (EventKind::Write, None) => format!("wrote by operation {}", step.operation),
            (_, None) => format!("read by operation {}", step.operation),
        }
    }

    fn value(&self, content: Content) -> String {
        match content {
            Content::ABSENT => "nothing".into(),
            content => clean(&self.hub.catalogue().content_text(content)),
        }
    }

    fn item(&self, item: u32) -> String {
        clean(&item_name(self.hub, item))
    }

    fn reason(&self, step: &Step) -> String {
        let done = self.done(step);
        match step.role {
            Role::Offender => done,
            Role::Snapshot => format!("its snapshot was taken when {done}"),
            Role::WroteWhatWasRead => format!("that was written when {done}"),
            Role::EndOfWriter => format!("its writer: {done}"),
            Role::Replaced => format!("it was replaced when {done}"),
            Role::EndOfReplacer => format!("that became visible when {done}"),
            Role::Earlier => format!("earlier, {done}"),
            Role::OtherLock => format!("the other lock was taken when {done}"),
            Role::EndOfOther => format!("it ended when {done}"),
            Role::OtherWrite => format!("the same row was written when {done}"),
            Role::Next => format!("one of them: {done}"),
        }
    }

    fn dependency(&self, edge: &Dependency) -> String {
        let txn = |(client, txn)| format!("{}, transaction {txn},", self.hub.name(client));
        let item = self.item(edge.item);
        let why = match edge.kind {
            DependencyKind::WriteRead => format!("which read what it wrote in {item}"),
            DependencyKind::WriteWrite => format!("which replaced what it wrote in {item}"),
            DependencyKind::ReadWrite => format!("which replaced what it read in {item}"),
        };
        format!("{} comes before {} {why}", txn(edge.from), txn(edge.to))
    }

    fn candidate(&self, candidate: &Candidate) -> String {
        let value = match candidate.content {
            Content::UNKNOWN => "what was there before everything".to_owned(),
            content => self.value(content),
        };
        match candidate.writer {
            None => value,
            Some((client, txn)) if candidate.committed.invoked == NEVER => {
                let name = self.hub.name(client);
                format!("{value} ({name}, transaction {txn}, of which no commit is known)")
            }
            Some((client, txn)) => format!(
                "{value} ({}, transaction {txn}, committed {})",
                self.hub.name(client),
                self.between(candidate.committed)
            ),
        }
    }

    fn at(&self, interval: Interval) -> String {
        match interval.completed {
            NEVER => format!("(from {} on)", self.time(interval.invoked)),
            completed => format!("({} to {})", self.time(interval.invoked), self.time(completed)),
        }
    }

    fn between(&self, interval: Interval) -> String {
        match (interval.invoked, interval.completed) {
            (ALWAYS, NEVER) => "at an unknown time".into(),
            (ALWAYS, until) => format!("before {}", self.time(until)),
            (from, NEVER) => format!("after {}", self.time(from)),
            (from, until) => format!("between {} and {}", self.time(from), self.time(until)),
        }
    }

    fn time(&self, time: Time) -> String {
        seconds(time.saturating_sub(self.origin), self.is_fine)
    }
}

/// A text of others, short and without anything that commands a terminal or turns the direction
/// of what stands around it.
pub(super) fn clean(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let shown = |letter| if is_visible(letter) { letter } else { '\u{fffd}' };
    let mut short: String = text.chars().take(CHARACTERS_MAX).map(shown).collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        short.push('…');
    }
    short
}

/// Nanoseconds as seconds, to the microsecond or as fine as they are.
fn seconds(nanoseconds: Time, is_fine: bool) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    if is_fine {
        return format!(
            "{sign}{}.{:09} s",
            nanoseconds / 1_000_000_000,
            nanoseconds % 1_000_000_000
        );
    }
    let microseconds = nanoseconds / 1000;
    format!("{sign}{}.{:06} s", microseconds / 1_000_000, microseconds % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::status::Kind;
    use isolde::online::{Cell, Key};
    use std::sync::Arc;

    #[test]
    fn a_stale_read_is_told_with_what_replaced_it_and_what_was_possible() {
        let hub = Arc::new(Hub::new(None));
        let (one, two) = (hub.open("one", 0).id(), hub.open("two", 0).id());
        let place = hub.catalogue().place("accounts", Key::Number(5), Some("balance"));
        let cell = |number| {
            let content = Content::integer(number);
            Some(Cell { item: place.item, row: place.row, content })
        };
        let step = |client, txn, operation, kind, times: (Time, Time), cell, role| {
            let interval = Interval { invoked: times.0 * 1000, completed: times.1 * 1000 };
            Step { client, txn, operation, kind, interval, cell, role }
        };
        let finding = Finding {
            name: Name::StaleRead,
            offender: step(one, 3, 2, EventKind::Read, (30, 31), cell(7), Role::Offender),
            others: vec![
                step(two, 4, 1, EventKind::Write, (10, 11), cell(8), Role::Replaced),
                step(two, 4, 2, EventKind::Commit, (12, 13), None, Role::EndOfReplacer),
            ],
            candidates: vec![Candidate {
                content: Content::integer(8),
                writer: Some((two, 4)),
                committed: Interval { invoked: 12_000, completed: 13_000 },
            }],
            snapshot: Some(Interval { invoked: 30_000, completed: 31_000 }),
            dependencies: Vec::new(),
        };
        assert_eq!(
            Narrative::of(&finding, &hub, 0).to_text(Mark { kind: Kind::Violation, number: 1 }),
            "violation 1: stale-read (consistent-read)\n\
             \x20 one, transaction 3, read 7 in accounts/5/balance by operation 2 (0.000030 s to \
             0.000031 s), which had certainly been replaced before its snapshot.\n\
             \x20 - it was replaced when two, transaction 4, wrote 8 to accounts/5/balance by \
             operation 1 (0.000010 s to 0.000011 s).\n\
             \x20 - that became visible when two, transaction 4, committed (0.000012 s to \
             0.000013 s).\n\
             \x20 - the snapshot lay between 0.000030 s and 0.000031 s.\n\
             \x20 - it could have seen 8 (two, transaction 4, committed between 0.000012 s and \
             0.000013 s).\n"
        );
    }
}

//! The live tap: what the sessions of a run see becomes events at once.
//!
//! Registers are rows of the table `registers`, lists those of `lists`. A list is known by
//! its last element: elements are unique, so the last one tells which append it was.

use super::barrier::{Barrier, Passage};
use super::hub::{Hub, Producer};
use super::output::Output;
use isolde::online::{
    Cell, CellSpan, Condition, Content, Event, EventKind, Interval, Key, NEVER, Place, Time,
};
use isolde_harness::{Answer, Failure, Filter, Observer, Request, SessionObserver};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The names of the tables.
pub(super) const REGISTERS: &str = "registers";
const LISTS: &str = "lists";

/// Events that a session collects before it leaves them, within a transaction.
const PENDING_MAX: usize = 32;
/// Nanoseconds after which it leaves them anyway.
const PENDING_TIME_MAX: Time = 20_000_000;
/// Places that a session remembers; then it asks for them again.
const PLACES_MAX: usize = 1 << 16;

/// Looks on at a run.
pub(super) struct Tap {
    pub(super) hub: Arc<Hub>,
    /// Once it is set, no session is held back.
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) barrier: Arc<Barrier>,
    /// Is told what happens beside the transactions.
    pub(super) output: Arc<Output>,
}

impl Observer for Tap {
    fn session(&self, number: u64, endpoint: &str, now: Time) -> Box<dyn SessionObserver> {
        Box::new(SessionTap {
            producer: self.hub.open(&format!("session {number} ({endpoint})"), now),
            is_over: Arc::clone(&self.is_over),
            barrier: Barrier::enter(&self.barrier),
            txn: 0,
            cells: Vec::new(),
            unanswered: Vec::new(),
            places: HashMap::new(),
            sent: Time::MIN,
        })
    }

    fn event(&self, now: Time, what: &str) {
        #[expect(clippy::cast_precision_loss, reason = "seconds with one digit")]
        let seconds = now as f64 / 1e9;
        self.output.note("happened", &format!("{seconds:.1} s: {what}"));
    }
}

/// Looks on at one session.
struct SessionTap {
    producer: Producer,
    is_over: Arc<AtomicBool>,
    barrier: Passage,
    txn: u64,
    cells: Vec<Cell>,
    /// Requests of the transaction that were not answered.
    unanswered: Vec<(Request, Interval)>,
    places: HashMap<(&'static str, u64), Place>,
    /// When the last operation was sent. Those of a transaction that is sent as a whole have
    /// the same time; a nanosecond between them keeps their order, and none takes so little.
    sent: Time,
}

impl SessionObserver for SessionTap {
    fn ready(&mut self) {
        self.producer.hub().wait_for_room(&self.is_over);
        self.barrier.pass(&self.is_over);
    }

    fn begun(&mut self, interval: Interval) {
        self.txn += 1;
        self.event(EventKind::Begin, interval);
    }

    fn answered(&mut self, request: &Request, answer: &Answer, interval: Interval) {
        if is_by_condition(request) {
            self.producer.hub().conditions.fetch_add(1, Ordering::Relaxed);
        }
        match (request, answer) {
            (Request::Read { key }, Answer::Value(value)) => {
                self.cell(REGISTERS, *key, value.map_or(Content::ABSENT, number));
                self.operation(EventKind::Read, interval);
            }
            (Request::ReadList { key }, Answer::List(elements)) => {
                let last = elements.last().copied();
                self.cell(LISTS, *key, last.map_or(Content::ABSENT, number));
                self.operation(EventKind::Read, interval);
            }
            (Request::Range { low, high }, Answer::Rows(rows)) => {
                let is_missing = |key: &u64| rows.iter().all(|row| row.0 != *key);
                for key in (*low..=*high).filter(is_missing) {
                    self.cell(REGISTERS, key, Content::ABSENT);
                }
                for &(key, value) in rows {
                    self.cell(REGISTERS, key, number(value));
                }
                self.operation(EventKind::Read, interval);
            }
            // Rows that do not meet the condition are not in the answer, nor their versions.
            (Request::Select { filter }, Answer::Rows(rows)) => {
                for &(key, value) in rows {
                    self.cell(REGISTERS, key, number(value));
                }
                self.cells.extend(condition(*filter).and_then(Cell::all_of));
                self.operation(EventKind::Read, interval);
            }
            (Request::CompareAndSet { key, expected, .. }, Answer::Applied(true)) => {
                self.cell(REGISTERS, *key, expected.map_or(Content::ABSENT, number));
                self.operation(EventKind::LockingRead, interval);
                self.written(request, Some(answer), interval);
            }
            (
                Request::CompareAndSet { key, .. } | Request::Insert { key, .. },
                Answer::Found(found),
            ) => {
                self.cell(REGISTERS, *key, found.map_or(Content::ABSENT, number));
                self.operation(EventKind::LockingRead, interval);
            }
            // That it was something else, or was there, is not which version it was.
            (
                Request::CompareAndSet { .. } | Request::Insert { .. } | Request::Delete { .. },
                Answer::Applied(false),
            ) => {
                self.producer.hub().untold.fetch_add(1, Ordering::Relaxed);
                self.operation(EventKind::LockingRead, interval);
            }
            // What it was computed from is not told, but a snapshot may be taken for it.
            (Request::Aggregate { .. }, _) => {
                self.producer.hub().untold.fetch_add(1, Ordering::Relaxed);
                self.operation(EventKind::Read, interval);
            }
            _ => self.written(request, Some(answer), interval),
        }
    }

    fn unanswered(&mut self, request: &Request, interval: Interval) {
        self.unanswered.push((request.clone(), interval));
    }

    fn committed(&mut self, interval: Interval) {
        self.ended(EventKind::Commit, interval);
    }

    fn failed(&mut self, failure: &Failure, interval: Interval) {
        // A write that failed is none, unless nobody knows whether its transaction took effect.
        for (request, interval) in std::mem::take(&mut self.unanswered) {
            if matches!(failure, Failure::Unknown(_)) {
                // It may be carried out after the client has given up.
                self.written(&request, None, Interval { completed: NEVER, ..interval });
            }
        }
        let never = Interval { completed: NEVER, ..interval };
        match failure {
            Failure::Aborted(_) | Failure::Refused(_) => self.ended(EventKind::Abort, interval),
            // When the server notices, and lets go of the locks, nobody knows.
            Failure::Lost(_) => self.ended(EventKind::Abort, never),
            Failure::Unknown(_) => self.ended(EventKind::Lost, never),
        }
    }
}

impl SessionTap {
    /// What a request wrote; without an answer, what it may have written.
    fn written(&mut self, request: &Request, answer: Option<&Answer>, interval: Interval) {
        match *request {
            Request::Write { key, value }
            | Request::Insert { key, value }
            | Request::CompareAndSet { key, value, .. } => {
                self.cell(REGISTERS, key, number(value));
            }
            Request::Append { key, value } => self.cell(LISTS, key, number(value)),
            Request::Delete { key } => self.cell(REGISTERS, key, Content::ABSENT),
            Request::UpdateRange { low, high, first } => match answer {
                Some(Answer::Rows(rows)) => {
                    for &(key, value) in rows {
                        self.cell(REGISTERS, key, number(value));
                    }
                }
                _ => {
                    for key in low..=high {
                        self.cell(REGISTERS, key, number(first + (key - low)));
                    }
                }
            },
            Request::UpdateWhere { .. } | Request::DeleteWhere { .. } => match answer {
                Some(Answer::Rows(rows)) => {
                    let is_deleting = matches!(request, Request::DeleteWhere { .. });
                    for &(key, value) in rows {
                        let content = if is_deleting { Content::ABSENT } else { number(value) };
                        self.cell(REGISTERS, key, content);
                    }
                }
                // Nobody knows which rows it found.
                _ => {
                    self.producer.hub().untold.fetch_add(1, Ordering::Relaxed);
                }
            },
            // A read without an answer tells nothing.
            _ => {}
        }
        if !self.cells.is_empty() {
            self.operation(EventKind::Write, interval);
        } else if answer.is_some() {
            // It changed nothing, and a snapshot may have been taken for it.
            self.operation(EventKind::LockingRead, interval);
        }
    }

    fn cell(&mut self, table: &'static str, key: u64, content: Content) {
        if self.places.len() >= PLACES_MAX {
            self.places.clear();
        }
        let hub = self.producer.hub();
        let known = self.places.get(&(table, key)).copied();
        let place = known.or_else(|| {
            let name = Key::Number(key.cast_signed());
            let place = hub.catalogue().place_if_room(table, name, None)?;
            self.places.insert((table, key), place);
            Some(place)
        });
        match place {
            Some(place) => self.cells.push(Cell { item: place.item, row: place.row, content }),
            None => {
                hub.unseen.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn operation(&mut self, kind: EventKind, mut interval: Interval) {
        if interval.invoked <= self.sent {
            interval.invoked = self.sent.saturating_add(1).min(interval.completed);
        }
        self.sent = interval.invoked;
        self.event(kind, interval);
    }

    fn event(&mut self, kind: EventKind, interval: Interval) {
        let cells = CellSpan::NONE;
        let event = Event { client: self.producer.id(), txn: self.txn, interval, kind, cells };
        self.producer.push(event, &self.cells);
        self.cells.clear();
        let pending = self.producer.pending();
        let first = pending.first().map_or(interval.invoked, |event| event.interval.invoked);
        if pending.len() >= PENDING_MAX || interval.invoked - first > PENDING_TIME_MAX {
            self.publish(interval);
        }
    }

    fn ended(&mut self, kind: EventKind, interval: Interval) {
        self.event(kind, interval);
        self.publish(interval);
    }

    /// What follows is sent after this was answered; one without an answer is among the last.
    fn publish(&mut self, last: Interval) {
        let known = if last.completed == NEVER { last.invoked } else { last.completed };
        self.producer.publish(known);
    }
}

/// Whether a request says more than the rows of its answer: which others are not in it. A
/// range lists those, too.
fn is_by_condition(request: &Request) -> bool {
    matches!(
        request,
        Request::Select { .. }
            | Request::Aggregate { .. }
            | Request::UpdateWhere { .. }
            | Request::DeleteWhere { .. }
    )
}

/// A condition on values; one on keys is not about contents.
fn condition(filter: Filter) -> Option<Condition> {
    let signed = |number: u64| i64::try_from(number).ok();
    match filter {
        Filter::Keys { .. } => None,
        Filter::Values { low, high } => {
            Some(Condition::Between { low: signed(low)?, high: signed(high)? })
        }
        Filter::Remainder { modulus, remainder } => {
            Some(Condition::Remainder { modulus: signed(modulus)?, remainder: signed(remainder)? })
        }
    }
}

/// Values of a run are natural numbers.
fn number(value: u64) -> Content {
    i64::try_from(value).map_or_else(|_| Content::text(&value.to_string()), Content::integer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolde::online::Batch;

    #[test]
    fn what_a_session_sees_becomes_events_in_order() {
        let hub = Arc::new(Hub::new(None));
        let is_over = Arc::new(AtomicBool::new(false));
        let output = Arc::new(Output::new(true, None).expect("it writes nowhere"));
        let tap = Tap { hub: Arc::clone(&hub), is_over, barrier: Arc::default(), output };
        let mut session = tap.session(1, "here", 5);
        let at = |invoked, completed| Interval { invoked, completed };
        session.begun(at(10, 11));
        session.answered(&Request::Read { key: 7 }, &Answer::Value(None), at(12, 13));
        session.answered(&Request::Write { key: 7, value: 3 }, &Answer::Done, at(14, 15));
        let rows = Answer::Rows(vec![(7, 3)]);
        session.answered(&Request::Range { low: 6, high: 7 }, &rows, at(16, 17));
        let filter = Filter::Keys { low: 8, high: 9 };
        let nothing = Answer::Rows(vec![]);
        session.answered(&Request::DeleteWhere { filter }, &nothing, at(17, 18));
        session.failed(&Failure::Unknown("gone".into()), at(18, 19));

        let inbox = &hub.inboxes()[0];
        assert_eq!((inbox.bound(), hub.name(inbox.id)), (18, "session 1 (here)".into()));
        let mut batch = Batch::default();
        hub.take(inbox, &mut batch);
        let seen: Vec<String> = (batch.events.iter())
            .map(|event| {
                let cells: Vec<String> = (batch.cells_of(event).iter())
                    .map(|cell| format!("{}={:?}", cell.item, cell.content))
                    .collect();
                format!("{:?} {} {}", event.kind, event.interval.invoked, cells.join(" "))
            })
            .collect();
        assert_eq!(
            seen,
            [
                "Begin 10 ",
                "Read 12 0=absent",
                "Write 14 0=3",
                "Read 16 1=absent 0=3",
                "LockingRead 17 ",
                "Lost 18 ",
            ]
        );
    }
}

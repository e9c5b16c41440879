//! A recorded history as a trace, for files and for tests.
//!
//! A key is an item and a row of its own. A list is known by its last element: equal
//! last elements may hide a violation, never invent one. Operations without times of
//! their own may have taken effect at any time of their transaction. Rows that an update by
//! condition changed to nobody knows what are written with unknown content.

use super::trace::{
    Batch, Cell, CellSpan, ClientId, Content, Event, EventKind, Interval, NEVER, Time,
};
use isolde_history::{
    Condition, Datum, History, KeyId, OpId, OpKind, Outcome, Predicate, TxnId, Value,
};

/// A history as a trace.
pub struct Traced {
    /// All events, in the order in which they were sent. Clients are sessions,
    /// transactions are numbered within them from 0, items and rows are keys.
    pub batch: Batch,
    /// What keys hold that declare it.
    pub initial: Vec<Cell>,
    /// What all others hold.
    pub unwritten: Content,
    /// Rows that were read and not there, and are left out because rows are changed by
    /// condition.
    pub absences: u64,
}

/// The events of a history; none if its transactions have no times.
pub fn from_history(history: &History) -> Option<Traced> {
    if !history.has_times() {
        return None;
    }
    let mut converter = Converter {
        history,
        numbered: numbered_keys(history),
        has_changes_by_condition: history.op_kinds().contains(&OpKind::PredicateUpdate),
        absences: 0,
        cells: vec![],
    };
    let mut events = Vec::new();
    for session in history.sessions() {
        for (number, txn) in history.txns_of(session).enumerate() {
            converter.txn(ClientId(session.0), number as u64, txn, &mut events);
        }
    }
    // Within a client the order stays, whatever its clock did.
    let mut latest: Vec<Time> = vec![Time::MIN; history.session_count()];
    let mut order: Vec<(Time, u32)> = Vec::with_capacity(events.len());
    for (place, event) in events.iter().enumerate() {
        let time = &mut latest[event.client.index()];
        *time = event.interval.invoked.max(*time);
        order.push((*time, place as u32));
    }
    order.sort_unstable();
    let events = order.iter().map(|&(_, place)| events[place as usize]).collect();
    let initial = history.declared_initial().iter();
    Some(Traced {
        batch: Batch { events, cells: converter.cells },
        initial: initial.map(|&(key, value)| cell(key, content(history, value))).collect(),
        unwritten: content(history, history.initial_default()),
        absences: converter.absences,
    })
}

struct Converter<'a> {
    history: &'a History,
    /// Keys that are numbers, in their order, if rows that are not there read as nil.
    numbered: Vec<(i128, KeyId)>,
    has_changes_by_condition: bool,
    absences: u64,
    cells: Vec<Cell>,
}

impl Converter<'_> {
    fn txn(&mut self, client: ClientId, number: u64, txn: TxnId, events: &mut Vec<Event>) {
        let times = self.history.txn_times(txn);
        let event = |interval, kind, cells| Event { client, txn: number, interval, kind, cells };
        events.push(event(times.begin, EventKind::Begin, CellSpan::NONE));
        let whole = Interval { invoked: times.begin.invoked, completed: times.commit.completed };
        for op in self.history.ops_of(txn) {
            if self.is_refused(op, txn) {
                continue;
            }
            let start = self.cells.len() as u32;
            let Some(kind) = self.op(op) else { continue };
            let cells = CellSpan { start, end: self.cells.len() as u32 };
            let own = self.history.op_interval(op);
            let interval = if own == Interval::UNKNOWN { whole } else { own };
            events.push(event(interval, kind, cells));
            let cells = self.changed_untold(op, txn);
            if cells != CellSpan::NONE {
                events.push(event(interval, EventKind::Write, cells));
            }
        }
        let (kind, completed) = match self.history.outcome(txn) {
            Outcome::Committed => (EventKind::Commit, times.commit.completed),
            Outcome::Aborted => (EventKind::Abort, times.commit.completed),
            Outcome::Unknown => (EventKind::Lost, NEVER),
        };
        events.push(event(Interval { completed, ..times.commit }, kind, CellSpan::NONE));
    }

    /// Whether an operation is the one whose refusal ended its transaction: it has no answer
    /// of its own, and what it would have written was never there. Taken for an answered one,
    /// it would hold the locks of its transaction until the client heard of the end.
    fn is_refused(&self, op: OpId, txn: TxnId) -> bool {
        let (own, end) = (self.history.op_interval(op), self.history.txn_times(txn).commit);
        self.history.outcome(txn) == Outcome::Aborted
            && own != Interval::UNKNOWN
            && end != Interval::UNKNOWN
            && own.completed > end.invoked
    }

    /// Adds the cells of an operation and tells what it is; nothing if it says nothing.
    fn op(&mut self, id: OpId) -> Option<EventKind> {
        let start = self.cells.len();
        let kind = self.said(id)?;
        // Where rows were changed by condition, the log does not tell all that became of
        // rows which a statement found only after it had waited: one that is missing may be
        // one of those.
        if kind != EventKind::Write && self.has_changes_by_condition {
            let absences = self.cells.extract_if(start.., |cell| cell.content == Content::ABSENT);
            self.absences += absences.count() as u64;
        }
        Some(kind)
    }

    fn said(&mut self, id: OpId) -> Option<EventKind> {
        let op = self.history.op(id);
        let (value, kind) = match op.kind {
            OpKind::Read => (op.value, EventKind::Read),
            OpKind::Write | OpKind::Append | OpKind::Insert | OpKind::Delete => {
                (op.value, EventKind::Write)
            }
            OpKind::ReadList => {
                let last = self.history.list(id).last().copied();
                (last.unwrap_or(Value::NIL), EventKind::Read)
            }
            OpKind::PredicateRead => {
                let predicate = self.history.predicate(id);
                // An aggregate lists no rows, and takes a snapshot all the same.
                if predicate.aggregate.is_none() {
                    self.rows(predicate);
                    self.absent_rows(predicate);
                }
                return Some(EventKind::Read);
            }
            OpKind::PredicateUpdate => {
                // What it made of the rows that it found stands behind it, as writes. Rows
                // that it looked at and left alone are not locked.
                let predicate = self.history.predicate(id);
                let matched = predicate.rows.iter().filter(|row| row.matched);
                let history = self.history;
                self.cells.extend(matched.map(|row| cell(row.key, content(history, row.value))));
                return Some(EventKind::LockingRead);
            }
            OpKind::ReadOther | OpKind::Call => return None,
        };
        self.cells.push(cell(op.key, content(self.history, value)));
        Some(kind)
    }

    /// Rows that an update by condition changed, without a write behind it that says to what:
    /// whoever reads them next may see anything.
    fn changed_untold(&mut self, id: OpId, txn: TxnId) -> CellSpan {
        let history = self.history;
        if history.op(id).kind != OpKind::PredicateUpdate {
            return CellSpan::NONE;
        }
        let is_write = |kind| matches!(kind, OpKind::Write | OpKind::Insert | OpKind::Delete);
        let behind = (history.ops_of(txn).filter(|op| op.0 > id.0))
            .map(|op| history.op(op))
            .take_while(|op| is_write(op.kind));
        let told: Vec<KeyId> = behind.map(|op| op.key).collect();
        let start = self.cells.len() as u32;
        for row in history.predicate(id).rows.iter().filter(|row| row.matched) {
            if !told.contains(&row.key) {
                self.cells.push(cell(row.key, Content::UNKNOWN));
            }
        }
        let end = self.cells.len() as u32;
        if start == end { CellSpan::NONE } else { CellSpan { start, end } }
    }

    /// The rows that were told.
    fn rows(&mut self, predicate: &Predicate) {
        for row in &predicate.rows {
            self.cells.push(cell(row.key, content(self.history, row.value)));
        }
    }

    /// The keys of a range that had no row.
    fn absent_rows(&mut self, predicate: &Predicate) {
        let Condition::KeyRange { low, high } = predicate.condition else { return };
        let bound = |value| match self.history.datum(value) {
            Datum::Int(number) => Some(number),
            _ => None,
        };
        let (Some(low), Some(high)) = (bound(low), bound(high)) else { return };
        let start = self.numbered.partition_point(|known| known.0 < low);
        let inside = self.numbered[start..].iter().take_while(|known| known.0 <= high);
        for &(_, key) in inside {
            if !predicate.rows.iter().any(|row| row.key == key) {
                self.cells.push(cell(key, Content::ABSENT));
            }
        }
    }
}

/// Keys that are numbers, in their order; none where tombstones have names, since then it
/// is not known what a row that is not there reads as.
fn numbered_keys(history: &History) -> Vec<(i128, KeyId)> {
    let deletes = history.op_kinds().iter().zip(history.op_values());
    let mut deletes = deletes.filter(|(kind, _)| **kind == OpKind::Delete);
    if !history.has_predicates() || !deletes.all(|(_, value)| *value == Value::NIL) {
        return Vec::new();
    }
    let number = |key| match history.datum(history.key_name(key)) {
        Datum::Int(number) => Some((number, key)),
        _ => None,
    };
    let mut numbered: Vec<(i128, KeyId)> = history.keys().filter_map(number).collect();
    numbered.sort_unstable_by_key(|known| known.0);
    numbered
}

fn cell(key: KeyId, content: Content) -> Cell {
    Cell { item: key.0, row: key.0, content }
}

fn content(history: &History, value: Value) -> Content {
    match history.datum(value) {
        Datum::Nil => Content::ABSENT,
        Datum::Unknown => Content::UNKNOWN,
        Datum::Int(number) => match i64::try_from(number) {
            Ok(number) => Content::integer(number),
            Err(_) => Content::text(&number.to_string()),
        },
        datum => Content::text(&datum.to_string()),
    }
}

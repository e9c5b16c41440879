//! One stream of traces, from a connection or a file: its clients, and what they did.

use super::hub::{Hub, Producer, State};
use super::resume::{Clients, Parking, Taken};
use super::save_file::{SaveFile, Unsaved};
use isolde::online::{
    ALWAYS, Cell, CellSpan, Content, Event, EventKind, Interval, Key, NEVER, Time,
};
use isolde_history::trace::{Hello, Kind, Row, Scalar, Sink, write};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Clients of one stream.
const CLIENTS_MAX: usize = 1 << 16;
/// What messages call those that a stream was still to name.
const UNNAMED: &str = "whoever was not named yet";

/// A stream, as whoever reads it sees it.
pub(super) struct Stream {
    hub: Arc<Hub>,
    token: Option<String>,
    saved: Option<Arc<SaveFile>>,
    numbers: HashMap<String, u32>,
    clients: Vec<StreamClient>,
    /// Where clients wait for another connection, and by which identity.
    parking: Option<Arc<Parking>>,
    identity: Option<String>,
    /// Clients of an earlier connection that this one has not named yet.
    parked: Clients,
    /// Whether its head was taken.
    is_admitted: bool,
    /// Whether it merges streams, and whether all of it has come then.
    is_merged: bool,
    is_over: bool,
    /// Clients with something to leave.
    touched: Vec<u32>,
    cells: Vec<Cell>,
    /// What goes into the file.
    lines: Vec<u8>,
}

/// How a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As its sender wants it to.
    Whole,
    /// As the watch wants it to, or what saved it; it may have gone on.
    CutOff,
    /// Some of it is missing.
    Broken,
}

pub(super) struct StreamClient {
    /// `None` once it is done.
    producer: Option<Producer>,
    /// Its name in the file, which is its own among all streams.
    saved_as: String,
    /// The transaction that has no end.
    open: Option<u64>,
    /// The last that has one: what comes of it, or of earlier ones, is too late.
    last_ended: Option<u64>,
    /// Nothing that follows was sent before this.
    bound: Time,
    is_touched: bool,
    /// What would be known again after a cut.
    taken: Taken,
}

impl Stream {
    pub(super) fn new(
        hub: &Arc<Hub>,
        token: Option<String>,
        saved: Option<Arc<SaveFile>>,
    ) -> Stream {
        Stream {
            hub: Arc::clone(hub),
            token,
            saved,
            numbers: HashMap::new(),
            clients: Vec::new(),
            parking: None,
            identity: None,
            parked: Clients::new(),
            is_admitted: false,
            is_merged: false,
            is_over: false,
            touched: Vec::new(),
            cells: Vec::new(),
            lines: Vec::new(),
        }
    }

    /// The same, which may go on in another connection if it has an identity.
    pub(super) fn with_parking(mut self, parking: &Arc<Parking>) -> Stream {
        self.parking = Some(Arc::clone(parking));
        self
    }

    /// Clients of a stream that did not come back.
    pub(super) fn with_clients(mut self, clients: Clients) -> Stream {
        self.clients = clients.into_values().collect();
        self
    }

    /// Whether its head was taken, and with it the token if one is asked for.
    pub(super) fn is_admitted(&self) -> bool {
        self.is_admitted
    }

    /// Whether all of its clients are done.
    pub(super) fn is_over(&self) -> bool {
        self.clients.iter().all(|client| client.producer.is_none()) && self.parked.is_empty()
    }

    /// Whether it may go on in another connection.
    pub(super) fn is_resumable(&self) -> bool {
        self.identity.is_some()
    }

    /// The stream breaks off. If none of its clients is there any more, others were perhaps about
    /// to be named, as sessions are after the goodbye of the head's own client, and what they did
    /// was on its way: somebody stands for them, until they come or never will.
    pub(super) fn miss_unnamed(&mut self) {
        let mut clients = self.clients.iter().chain(self.parked.values());
        if !self.is_over && !clients.any(|client| client.producer.is_some()) {
            let unnamed = self.open(UNNAMED);
            self.add(UNNAMED, unnamed);
        }
    }

    /// The connection is over, or cut: clients that may come back wait for that. Whether there
    /// is room for them.
    pub(super) fn park(&mut self) -> bool {
        let (Some(parking), Some(identity)) = (&self.parking, self.identity.take()) else {
            return false;
        };
        let mut clients = std::mem::take(&mut self.parked);
        let mut known: Vec<Option<StreamClient>> = self.clients.drain(..).map(Some).collect();
        for (name, number) in self.numbers.drain() {
            clients.extend(known[number as usize].take().map(|client| (name, client)));
        }
        self.touched.clear();
        self.clients = parking.leave(&identity, clients).into_values().collect();
        self.clients.is_empty()
    }

    /// Leaves everything for the watch, and writes it to the file: after that it may be
    /// acknowledged.
    ///
    /// If it cannot be written, nothing that comes is acknowledged any more.
    pub(super) fn publish(&mut self) -> Result<(), Unsaved> {
        self.hub.watch_memory();
        if let Some(saved) = &self.saved
            && !self.lines.is_empty()
        {
            saved.append(&self.lines)?;
        }
        self.lines.clear();
        for client in self.touched.drain(..) {
            let client = &mut self.clients[client as usize];
            client.is_touched = false;
            if let Some(producer) = &mut client.producer {
                producer.publish(client.bound);
            }
        }
        Ok(())
    }

    /// The stream is over. Who has not said goodbye within a transaction is lost: the commit
    /// may have been sent. If the stream is not whole, more may be missing.
    pub(super) fn end(&mut self, mut end: End) {
        if self.is_merged && !self.is_over && end == End::Whole {
            end = End::CutOff;
            // Of clients that it does not tell of, too.
            self.hub.open("what was not saved", ALWAYS).close(State::CutOff);
        }
        self.name_parked();
        if let (Some(parking), Some(identity)) = (&self.parking, self.identity.take()) {
            parking.give_up(&identity);
        }
        for number in 0..self.clients.len() as u32 {
            let client = &mut self.clients[number as usize];
            if client.producer.is_some() {
                let state = match (end, client.open) {
                    (End::Broken, _) => State::Broken,
                    (End::CutOff, _) => State::CutOff,
                    (End::Whole, Some(_)) => State::Lost,
                    (End::Whole, None) => State::Closed,
                };
                self.close(number, state);
            }
        }
    }

    fn close(&mut self, number: u32, state: State) {
        let client = &mut self.clients[number as usize];
        let Some(mut producer) = client.producer.take() else { return };
        if let Some(txn) = client.open.take() {
            let interval = Interval { invoked: client.bound, completed: NEVER };
            let (kind, cells) = (EventKind::Lost, CellSpan::NONE);
            producer.push(Event { client: producer.id(), txn, interval, kind, cells }, &[]);
            if self.saved.is_some() {
                let name = &client.saved_as;
                write::event(&mut self.lines, name, txn, Kind::Lost, interval, &[]);
            }
        }
        // It may have said goodbye before anything of it was left.
        producer.publish(client.bound);
        if self.saved.is_some() {
            match state {
                State::Broken => write::broken(&mut self.lines, &client.saved_as),
                State::CutOff | State::Open => {}
                State::Closed | State::Lost => write::bye(&mut self.lines, &client.saved_as),
            }
        }
        producer.close(state);
    }

    /// Everything that belongs to the stream is known to this connection from now on.
    fn name_parked(&mut self) {
        for (name, client) in std::mem::take(&mut self.parked) {
            self.add(&name, client);
        }
    }

    fn open(&self, name: &str) -> StreamClient {
        let producer = self.hub.open(name, ALWAYS);
        let saved_as = format!("{name} #{}", producer.id().0);
        StreamClient {
            producer: Some(producer),
            saved_as,
            open: None,
            last_ended: None,
            bound: ALWAYS,
            is_touched: false,
            taken: Taken::default(),
        }
    }

    fn add(&mut self, name: &str, client: StreamClient) -> u32 {
        let number = self.clients.len() as u32;
        self.clients.push(client);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn touch(&mut self, number: u32) {
        let client = &mut self.clients[number as usize];
        if !std::mem::replace(&mut client.is_touched, true) {
            self.touched.push(number);
        }
    }
}

/// Whether two texts are equal, in a time that tells nothing of where they differ.
fn is_same_secret(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut difference = one.len() ^ other.len();
    for (place, byte) in other.iter().enumerate() {
        difference |= usize::from(byte ^ one.get(place).copied().unwrap_or(0));
    }
    std::hint::black_box(difference) == 0
}

impl Sink for Stream {
    fn hello(&mut self, hello: Hello<'_>) -> Result<(), String> {
        match &self.token {
            Some(token) if !is_same_secret(hello.token.unwrap_or(""), token) => {
                return Err("expected the token of this listener, found another or none".into());
            }
            _ => {}
        }
        if let (Some(parking), Some(identity)) = (&self.parking, hello.resume) {
            self.parked = parking.enter(identity)?;
            self.identity = Some(identity.to_owned());
        }
        self.is_admitted = true;
        self.is_merged = hello.is_merged;
        Ok(())
    }

    fn client(&mut self, name: &str) -> Result<u32, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if self.clients.len() == CLIENTS_MAX {
            return Err(format!("expected at most {CLIENTS_MAX} clients in one stream"));
        }
        if let Some(mut client) = self.parked.remove(name) {
            client.taken.again();
            client.is_touched = false;
            return Ok(self.add(name, client));
        }
        let client = self.open(name);
        // Now others wait for this one.
        if let Some(unnamed) = self.parked.remove(UNNAMED) {
            let number = self.add(UNNAMED, unnamed);
            self.close(number, State::Closed);
        }
        Ok(self.add(name, client))
    }

    fn event(
        &mut self,
        client: u32,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String> {
        let known = &mut self.clients[client as usize];
        if self.identity.is_some() && !known.taken.is_new(txn, kind, interval, rows) {
            self.hub.sent_again.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        self.cells.clear();
        if !rows.is_empty() {
            let mut catalogue = self.hub.catalogue();
            for row in rows {
                let key = match row.key {
                    Scalar::Integer(number) => Key::Number(number),
                    Scalar::Text(text) => Key::Text(text),
                    Scalar::Absent => return Err("expected the key of a row".into()),
                };
                let Some(place) = catalogue.place_if_room(row.table, key, row.column) else {
                    self.hub.unseen.fetch_add(1, Ordering::Relaxed);
                    continue;
                };
                let content = match row.value {
                    Scalar::Absent => Content::ABSENT,
                    Scalar::Integer(number) => Content::integer(number),
                    Scalar::Text(text) => catalogue.content(text),
                };
                self.cells.push(Cell { item: place.item, row: place.row, content });
            }
            if let Some(table) = catalogue.take_mixed() {
                return Err(format!(
                    "expected table `{table}` by rows or by columns, found both: \
                     a row and its columns are different items"
                ));
            }
        }
        let known = &mut self.clients[client as usize];
        let Some(producer) = &mut known.producer else {
            return Err("expected nothing more of a client that said goodbye".into());
        };
        let kind_there = match kind {
            Kind::Begin => EventKind::Begin,
            Kind::Read => EventKind::Read,
            Kind::LockingRead => EventKind::LockingRead,
            Kind::Write => EventKind::Write,
            Kind::Commit => EventKind::Commit,
            Kind::Abort => EventKind::Abort,
            Kind::Lost => EventKind::Lost,
        };
        let cells = CellSpan::NONE;
        let event = Event { client: producer.id(), txn, interval, kind: kind_there, cells };
        producer.push(event, &self.cells);
        if known.last_ended.is_none_or(|last| last < txn) {
            let is_end = kind_there.is_end();
            known.last_ended = if is_end { Some(txn) } else { known.last_ended };
            known.open = (!is_end).then_some(txn);
        }
        let answered =
            if interval.completed == NEVER { interval.invoked } else { interval.completed };
        known.bound = known.bound.max(answered);
        if self.saved.is_some() {
            write::event(&mut self.lines, &known.saved_as, txn, kind, interval, rows);
        }
        self.touch(client);
        Ok(())
    }

    fn heartbeat(&mut self, client: Option<u32>, time: Time) -> Result<(), String> {
        let numbers = match client {
            Some(client) => client..client + 1,
            None => 0..self.clients.len() as u32,
        };
        for number in numbers {
            let known = &mut self.clients[number as usize];
            known.bound = known.bound.max(time);
            self.touch(number);
        }
        Ok(())
    }

    fn bye(&mut self, client: Option<u32>) -> Result<(), String> {
        let numbers = if let Some(client) = client {
            client..client + 1
        } else {
            self.name_parked();
            self.is_over = true;
            0..self.clients.len() as u32
        };
        for number in numbers {
            self.close(number, State::Closed);
        }
        Ok(())
    }

    fn broken(&mut self, client: u32) -> Result<(), String> {
        self.close(client, State::Broken);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same_secret("abc", "abc"));
        assert!(is_same_secret("", ""));
        for other in ["", "ab", "abd", "abcd"] {
            assert!(!is_same_secret("abc", other), "{other}");
            assert!(!is_same_secret(other, "abc"), "{other}");
        }
    }
}

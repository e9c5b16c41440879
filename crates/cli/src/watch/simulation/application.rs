//! An application that is traced: its clients and what sends their trace, as
//! `docs/formats/trace.md` asks it of senders.

use super::chance::Chance;
use super::database::{Database, ROWS, Session};
use super::machine::Line;
use isolde::online::{Interval, NEVER, Time};
use isolde_history::trace::{Kind, Row, Scalar, write};
use std::collections::VecDeque;

/// An event, by what no other has: its client, its transaction, its kind and when it was sent.
pub(super) type EventName = (String, u64, &'static str, Time);

/// A message that was not acknowledged yet.
struct Message {
    text: Vec<u8>,
    event: Option<EventName>,
    /// Whether every connection begins with it anew.
    is_beginning: bool,
}

/// How an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It works.
    Working,
    /// It has no more to do than to say so.
    Ending,
    /// It has said so, and all is acknowledged.
    Done,
    /// It knows that it is not traced any more, and has stopped.
    Stopped,
    /// Its process was killed.
    Killed,
}

/// See the file's first line.
pub(super) struct Application {
    number: usize,
    /// By which it would go on after a cut.
    identity: Option<String>,
    pub(super) line: Option<Line>,
    /// The connection before it.
    before: Option<Line>,
    messages: VecDeque<Message>,
    /// Of these, so many were sent on this connection, and so many bytes of the next.
    sent: usize,
    sent_bytes: usize,
    /// Messages of this connection that are acknowledged.
    acknowledged: usize,
    /// Whether the head of any connection was.
    is_admitted: bool,
    /// Events that were acknowledged, and how long the file was then.
    pub(super) taken: Vec<(EventName, usize)>,
    pub(super) stage: Stage,
    has_said_goodbye: bool,
    clients: Vec<Client>,
    chance: Chance,
}

/// A connection to the database.
struct Client {
    name: String,
    owner: usize,
    txn: u64,
    session: Session,
    phase: Phase,
    /// Requests that the transaction still makes.
    left: usize,
    /// When it was answered last.
    answered: Time,
}

enum Phase {
    Idle,
    /// In a transaction, between two requests.
    Open,
    /// A request is on its way since then.
    Asked(Request, Time),
    /// It took effect.
    Answered(Kind, Time, Vec<(usize, Option<i64>)>),
}

#[derive(Clone, Copy)]
enum Request {
    Begin,
    Read(usize),
    ReadAll,
    Write(usize),
    Commit,
    Abort,
}

impl std::fmt::Debug for Application {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Application { number, identity, stage, sent, acknowledged, .. } = self;
        let (line, waiting) = (self.line.is_some(), self.messages.len());
        write!(
            out,
            "application {number} ({identity:?}, {stage:?}, connected {line}): {waiting} messages \
             wait, {sent} of them sent, {acknowledged} taken"
        )
    }
}

impl Application {
    pub(super) fn new(number: usize, mut chance: Chance) -> Application {
        let identity = chance.one_in(2).then(|| format!("application {number}"));
        let clients = (0..=chance.below(2)).map(|client| Client {
            name: format!("client {number}.{client}"),
            owner: number * 8 + client,
            txn: 0,
            session: Session::default(),
            phase: Phase::Idle,
            left: 0,
            answered: 0,
        });
        Application {
            number,
            identity,
            line: None,
            before: None,
            messages: VecDeque::new(),
            sent: 0,
            sent_bytes: 0,
            acknowledged: 0,
            is_admitted: false,
            taken: Vec::new(),
            stage: Stage::Working,
            has_said_goodbye: false,
            clients: clients.collect(),
            chance,
        }
    }

    pub(super) fn is_resumable(&self) -> bool {
        self.identity.is_some()
    }

    /// Whether it still does something.
    pub(super) fn is_alive(&self) -> bool {
        matches!(self.stage, Stage::Working | Stage::Ending)
    }

    /// Whether it is to connect. The listener waits for the end of the connection before, and here
    /// the application does.
    pub(super) fn is_alone(&self) -> bool {
        let is_left = self.before.as_ref().is_none_or(Line::is_left);
        self.is_alive() && self.line.is_none() && is_left
    }

    /// Connects, or connects again: what was not acknowledged is sent once more.
    pub(super) fn connect(&mut self, line: Line) {
        self.line = Some(line);
        (self.sent, self.sent_bytes, self.acknowledged) = (0, 0, 0);
        self.messages.retain(|message| !message.is_beginning);
        let identity = self.identity.as_ref().map(|it| format!(",\"resume\":\"{it}\""));
        let (number, identity) = (self.number, identity.unwrap_or_default());
        // The head's own client does nothing.
        let mut beginning = vec![
            format!("{{\"isolde\":\"trace 1\",\"client\":\"process {number}\"{identity}}}\n"),
            format!("{{\"client\":\"process {number}\",\"bye\":true}}\n"),
        ];
        let names = self.clients.iter().map(|client| &client.name);
        beginning.extend(names.map(|name| format!("{{\"client\":\"{name}\"}}\n")));
        for text in beginning.into_iter().rev() {
            let text = text.into_bytes();
            self.messages.push_front(Message { text, event: None, is_beginning: true });
        }
    }

    fn say(&mut self, text: String) {
        let text = text.into_bytes();
        self.messages.push_back(Message { text, event: None, is_beginning: false });
    }

    /// Its process is no more; what it has sent arrives.
    pub(super) fn kill(&mut self, database: &mut Database) {
        self.end(database, Stage::Killed);
        if let Some(line) = self.line.take() {
            line.end();
        }
    }

    /// It commits nothing any more.
    fn end(&mut self, database: &mut Database, stage: Stage) {
        self.stage = stage;
        for client in &mut self.clients {
            // A commit that is on its way may still arrive.
            if matches!(client.phase, Phase::Asked(Request::Commit, _)) && self.chance.one_in(2) {
                continue;
            }
            database.abort(&mut client.session, client.owner);
            client.phase = Phase::Idle;
        }
    }

    /// A commit that was on its way when the application ended arrives.
    pub(super) fn arrive(&mut self, database: &mut Database, now: Time) {
        for client in &mut self.clients {
            if matches!(client.phase, Phase::Asked(Request::Commit, _)) {
                database.commit(&mut client.session, client.owner, now);
                client.phase = Phase::Idle;
            }
        }
    }

    /// Begins nothing new.
    pub(super) fn finish(&mut self) {
        if self.stage == Stage::Working {
            self.stage = Stage::Ending;
        }
    }

    /// Does one thing, or nothing.
    pub(super) fn step(&mut self, database: &mut Database, now: Time) {
        if !self.is_alive() {
            return self.arrive(database, now);
        }
        self.say_goodbye();
        match self.chance.below(8) {
            0..4 => {
                let client = self.chance.below(self.clients.len());
                self.step_client(client, database, now);
            }
            4 | 5 => self.send(database),
            6 => self.hear(database),
            _ if !self.has_said_goodbye && self.chance.one_in(3) => self.beat(now),
            _ => {}
        }
    }

    fn is_everything_sent(&self) -> bool {
        self.sent == self.messages.len()
    }

    /// Sends some of what waits.
    fn send(&mut self, database: &mut Database) {
        let Some(line) = &self.line else { return };
        while let Some(message) = self.messages.get(self.sent) {
            match line.send(&message.text[self.sent_bytes..]) {
                Some(count) => self.sent_bytes += count,
                None => return self.lose(database),
            }
            if self.sent_bytes < message.text.len() {
                return;
            }
            (self.sent, self.sent_bytes) = (self.sent + 1, 0);
        }
        if self.has_said_goodbye && self.chance.one_in(2) {
            line.end();
        }
    }

    /// The connection is gone.
    fn lose(&mut self, database: &mut Database) {
        self.before = self.line.take();
        if !self.is_resumable() {
            self.end(database, Stage::Stopped);
        }
    }

    /// Hears what the listener has answered.
    fn hear(&mut self, database: &mut Database) {
        let Some(line) = &self.line else { return };
        let Some((answer, length)) = line.answers() else { return self.lose(database) };
        let answer = String::from_utf8(answer).expect("answers are lines of JSON");
        for answer in answer.lines() {
            let Some(count) = answer.strip_prefix("{\"taken\":") else {
                // Where there is no thread now, there may be one later.
                if !self.is_resumable() || !answer.contains("another thread") {
                    self.end(database, Stage::Stopped);
                }
                self.before = self.line.take();
                return;
            };
            let count: usize = count.trim_end_matches('}').parse().expect("a number");
            self.is_admitted |= count > 0;
            for _ in self.acknowledged..count {
                let message = self.messages.pop_front().expect("it was sent");
                self.sent = self.sent.checked_sub(1).expect("only what was sent is acknowledged");
                self.taken.extend(message.event.map(|event| (event, length)));
            }
            self.acknowledged = self.acknowledged.max(count);
        }
        if self.has_said_goodbye && self.messages.is_empty() {
            self.stage = Stage::Done;
            line.end();
        }
    }

    fn is_idle(&self) -> bool {
        self.clients.iter().all(|client| matches!(client.phase, Phase::Idle))
    }

    /// Says how far its clients are.
    fn beat(&mut self, now: Time) {
        for client in 0..self.clients.len() {
            let client = &self.clients[client];
            let time = match client.phase {
                Phase::Idle | Phase::Open => now,
                Phase::Asked(_, since) | Phase::Answered(_, since, _) => since,
            };
            self.say(format!("{{\"client\":\"{}\",\"heartbeat\":{time}}}\n", client.name));
        }
    }

    /// Says goodbye, once nothing is open.
    fn say_goodbye(&mut self) {
        if self.stage == Stage::Ending && self.is_idle() && !self.has_said_goodbye {
            self.has_said_goodbye = true;
            self.say("{\"bye\":true}\n".to_owned());
        }
    }

    fn step_client(&mut self, number: usize, database: &mut Database, now: Time) {
        let is_committable = self.is_everything_sent() && self.is_admitted;
        let client = &mut self.clients[number];
        match std::mem::replace(&mut client.phase, Phase::Idle) {
            Phase::Idle => {
                // What is behind with its trace waits.
                if self.stage == Stage::Working && self.messages.len() < 30 && self.line.is_some() {
                    client.txn += 1;
                    client.left = 1 + self.chance.below(4);
                    client.phase = Phase::Open;
                    if self.chance.one_in(2) {
                        client.phase = Phase::Asked(Request::Begin, now);
                    }
                }
            }
            Phase::Open => client.phase = client.next(is_committable, &mut self.chance, now),
            Phase::Asked(request, since) => {
                client.phase = client.served(request, since, database, now, &mut self.chance);
            }
            Phase::Answered(kind, since, rows) => {
                let interval = Interval { invoked: since, completed: now };
                client.answered = now;
                if !kind_is_end(kind) {
                    client.phase = Phase::Open;
                }
                let message = client.told(kind, interval, &rows);
                self.messages.push_back(message);
            }
        }
    }
}

fn kind_is_end(kind: Kind) -> bool {
    matches!(kind, Kind::Commit | Kind::Abort | Kind::Lost)
}

impl Client {
    /// What it asks for next, if it may.
    fn next(&mut self, is_committable: bool, chance: &mut Chance, now: Time) -> Phase {
        if self.left == 0 {
            return match chance.one_in(12) {
                true => Phase::Asked(Request::Abort, now),
                // Nothing commits that was not sent, or before it is known that somebody listens.
                false if is_committable => Phase::Asked(Request::Commit, now),
                false => Phase::Open,
            };
        }
        self.left -= 1;
        let row = chance.below(ROWS);
        let request = match chance.below(5) {
            0 | 1 => Request::Read(row),
            2 => Request::ReadAll,
            _ => Request::Write(row),
        };
        Phase::Asked(request, now)
    }

    /// The request takes effect now.
    fn served(
        &mut self,
        request: Request,
        since: Time,
        database: &mut Database,
        now: Time,
        chance: &mut Chance,
    ) -> Phase {
        let session = &mut self.session;
        let mut read = |rows: std::ops::Range<usize>| {
            let seen = rows.map(|row| (row, database.read(session, row, now, chance)));
            Phase::Answered(Kind::Read, since, seen.collect())
        };
        match request {
            Request::Begin => Phase::Answered(Kind::Begin, since, Vec::new()),
            Request::Read(row) => read(row..row + 1),
            Request::ReadAll => read(0..ROWS),
            Request::Write(row) => {
                if let Some(value) = database.write(session, self.owner, row, now) {
                    Phase::Answered(Kind::Write, since, vec![(row, Some(value))])
                } else {
                    database.abort(session, self.owner);
                    Phase::Answered(Kind::Abort, since, Vec::new())
                }
            }
            Request::Commit => {
                database.commit(session, self.owner, now);
                Phase::Answered(Kind::Commit, since, Vec::new())
            }
            Request::Abort => {
                database.abort(session, self.owner);
                Phase::Answered(Kind::Abort, since, Vec::new())
            }
        }
    }

    fn told(&self, kind: Kind, interval: Interval, rows: &[(usize, Option<i64>)]) -> Message {
        let rows: Vec<Row<'_>> = (rows.iter())
            .map(|(row, value)| Row {
                table: "t",
                key: Scalar::Integer(i64::try_from(*row).expect("few rows")),
                column: None,
                value: value.map_or(Scalar::Absent, Scalar::Integer),
            })
            .collect();
        let mut text = Vec::new();
        write::event(&mut text, &self.name, self.txn, kind, interval, &rows);
        let word = Kind::ALL.iter().find(|known| known.1 == kind).expect("all are listed").0;
        let event = Some((self.name.clone(), self.txn, word, interval.invoked));
        Message { text, event, is_beginning: false }
    }
}

/// The events in a saved file, and where the message of each ends.
pub(super) fn events_in(file: &[u8]) -> Vec<(EventName, usize)> {
    let (mut found, mut end) = (Vec::new(), 0);
    for line in file.split_inclusive(|byte| *byte == b'\n') {
        end += line.len();
        let Ok(serde_json::Value::Object(message)) = serde_json::from_slice(line) else { continue };
        let word = Kind::ALL.iter().find(|(word, _)| message.contains_key(*word));
        if let (Some((word, _)), true) = (word, line.ends_with(b"\n")) {
            // In the file a number stands behind the name.
            let name = message["client"].as_str().expect("a text");
            let name = name.split(" #").next().unwrap_or(name).to_owned();
            let txn = message["txn"].as_u64().expect("a number");
            let since = message[*word][0].as_i64().unwrap_or(NEVER);
            found.push(((name, txn, *word, since), end));
        }
    }
    found
}

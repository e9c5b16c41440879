//! What every driver must do, as a suite that its test calls.
//!
//! The suite panics where a driver does otherwise. It asks only for what the database
//! says it supports, at every isolation setting, on the first endpoint that may write. It
//! says nothing about isolation itself: that is what runs are for.

use crate::database::{Access, Database, Failure, Needs, Session, Style};
use crate::request::{Answer, BLOCK, Filter, Function, Request, RequestKind};

/// Opens the database anew and tests all of it. `label` tells runs of the suite apart
/// that use one server at the same time.
pub fn conform(label: &str, open: &dyn Fn() -> Box<dyn Database>) {
    let mut database = open();
    claims_name_settings(database.as_ref());
    let number = label.bytes().fold(0, |number, byte| (number << 8) | u64::from(byte));
    let needs = |part: &str| Needs {
        prefix: format!("isolde_{number:x}_{part}_"),
        requests: supported(database.as_ref()),
    };
    let (first, second) = (needs("a"), needs("b"));
    database.prepare(&first).expect("the tables can be created");
    if let Some(removal) = database.removal() {
        // A file of its own is removed as a whole.
        let file = &database.endpoints()[0].name;
        let names_it = removal.contains(&first.prefix) || removal.contains(file);
        assert!(names_it, "it removes what was created: {removal}");
    }
    tables_of_others_are_refused(open, &first);
    let endpoint = writable(database.as_ref());
    let settings: Vec<String> =
        database.claims().iter().map(|claim| claim.isolation.clone()).collect();
    // Each setting uses keys of its own, so that none has to clean up for the next.
    for (place, isolation) in (0u64..).zip(&settings) {
        let first_key = 1000 * place;
        let suite = Suite { database: database.as_ref(), endpoint, isolation, first_key };
        suite.registers();
        suite.lists();
        suite.rows();
        suite.conditions();
        suite.aborts();
        suite.empty_transactions();
    }
    database.clean_up().expect("what was created can be removed");
    database.clean_up().expect("nothing is left to remove");
    assert_eq!(database.removal(), None, "nothing is left to remove");
    // Nothing is left: the same names can be created again, and are empty.
    let mut again = open();
    again.prepare(&first).expect("nothing was left behind");
    let isolation = settings[0].as_str();
    if again.supports(RequestKind::Read) {
        let suite = Suite { database: again.as_ref(), endpoint, isolation, first_key: 0 };
        suite.sees(&mut *suite.connect(), Request::Read { key: 1 }, &Answer::Value(None));
    }
    again.clean_up().expect("what was created can be removed");
    // And tables of another run are not ours to drop.
    let mut other = open();
    other.prepare(&second).expect("other names can be created");
    drop(again);
    let suite = Suite { database: other.as_ref(), endpoint, isolation, first_key: 0 };
    suite.registers();
    leftovers_are_found(other.as_mut(), &second.prefix, &first.prefix);
    other.clean_up().expect("what was created can be removed");
}

/// What a killed run would leave is found by its prefix and removed, and nothing else is. A
/// database may refuse to be asked.
fn leftovers_are_found(database: &mut dyn Database, prefix: &str, another: &str) {
    let Ok(found) = database.leftovers() else { return };
    assert!(found.iter().any(|it| it == prefix), "{prefix} in {found:?}");
    database.discard(another).expect("there is nothing to remove");
    assert_eq!(database.leftovers(), Ok(found), "another run was meant");
    database.discard(prefix).expect("what was created can be removed");
    let left = database.leftovers().expect("it was asked before");
    assert!(!left.iter().any(|it| it == prefix), "{prefix} in {left:?}");
}

/// An address that cannot be opened gives a message that shows no password.
pub fn refuses(result: Result<Box<dyn Database>, Failure>, secret: &str) -> String {
    match result {
        Ok(database) => panic!("expected a refusal, found {}", database.name()),
        Err(Failure::Refused(message)) => {
            assert!(secret.is_empty() || !message.contains(secret), "{message}");
            message
        }
        Err(other) => panic!("expected a refusal, found: {other}"),
    }
}

fn supported(database: &dyn Database) -> Vec<RequestKind> {
    RequestKind::ALL.into_iter().filter(|&kind| database.supports(kind)).collect()
}

fn writable(database: &dyn Database) -> usize {
    let is_writable = |endpoint: &crate::database::Endpoint| endpoint.access == Access::ReadWrite;
    database.endpoints().iter().position(is_writable).expect("an endpoint that takes writes")
}

fn claims_name_settings(database: &dyn Database) {
    assert!(!database.name().is_empty() && !database.version().is_empty());
    assert!(!database.endpoints().is_empty(), "there is an endpoint");
    let names: Vec<&str> = database.claims().iter().map(|claim| claim.isolation.as_str()).collect();
    assert!(names.contains(&database.default_isolation()), "the default is one of {names:?}");
    for name in &names {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        assert!(!name.is_empty() && name.bytes().all(is_word), "{name} is in lower case");
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name} is there once");
    }
}

/// A database that is emptied with its process has nothing of others.
fn tables_of_others_are_refused(open: &dyn Fn() -> Box<dyn Database>, taken: &Needs) {
    let mut other = open();
    match other.prepare(taken) {
        Err(Failure::Refused(_)) => {}
        Err(failure) => panic!("expected a refusal of names that exist, found: {failure}"),
        // Private stores share nothing.
        Ok(()) => other.clean_up().expect("what was created can be removed"),
    }
}

struct Suite<'a> {
    database: &'a dyn Database,
    endpoint: usize,
    isolation: &'a str,
    first_key: u64,
}

impl Suite<'_> {
    fn connect(&self) -> Box<dyn Session> {
        let session = self.database.connect(self.endpoint, self.isolation);
        session.unwrap_or_else(|failure| panic!("{}: cannot connect: {failure}", self.isolation))
    }

    fn supports(&self, kinds: &[RequestKind]) -> bool {
        kinds.iter().all(|&kind| self.database.supports(kind))
    }

    /// The answers to one transaction, which commits.
    fn answers(&self, session: &mut dyn Session, requests: &[Request]) -> Vec<Answer> {
        let result = self.transaction(session, requests);
        result.unwrap_or_else(|failure| panic!("{}: {requests:?}: {failure}", self.isolation))
    }

    fn transaction(
        &self,
        session: &mut dyn Session,
        requests: &[Request],
    ) -> Result<Vec<Answer>, Failure> {
        if self.database.style() == Style::Whole {
            return session.whole(requests);
        }
        let is_reading = requests.iter().all(|request| request.kind().is_read());
        session.begin(if is_reading { Access::ReadOnly } else { Access::ReadWrite })?;
        let answers = requests.iter().map(|request| session.execute(request));
        let answers = answers.collect::<Result<Vec<_>, _>>()?;
        session.commit()?;
        Ok(answers)
    }

    fn sees(&self, session: &mut dyn Session, request: Request, expected: &Answer) {
        let requests = [request];
        let found = self.answers(session, &requests);
        assert_eq!(sorted(&found[0]), *expected, "{}: {requests:?}", self.isolation);
    }

    /// The request does not apply; if the database tells why, it is because of this value.
    fn is_refused(&self, session: &mut dyn Session, request: &Request, found: Option<u64>) {
        let answers = self.answers(session, std::slice::from_ref(request));
        let is_right = [Answer::Applied(false), Answer::Found(found)].contains(&answers[0]);
        assert!(is_right, "{}: {request:?} found {found:?}: {answers:?}", self.isolation);
    }

    /// Reads see writes: of the same transaction, of another session, of a new one.
    fn registers(&self) {
        if !self.supports(&[RequestKind::Read, RequestKind::Write]) {
            return;
        }
        let (key, large) = (self.first_key + 1, (1 << 62) + 1);
        let mut session = self.connect();
        let requests = [
            Request::Read { key },
            Request::Write { key, value: 5 },
            Request::Read { key },
            Request::Write { key, value: large },
        ];
        let found = self.answers(&mut *session, &requests);
        let expected = [Answer::Value(None), Answer::Done, Answer::Value(Some(5)), Answer::Done];
        assert_eq!(found, expected, "{}", self.isolation);
        self.sees(&mut *session, Request::Read { key }, &Answer::Value(Some(large)));
        drop(session);
        self.sees(&mut *self.connect(), Request::Read { key }, &Answer::Value(Some(large)));
    }

    fn lists(&self) {
        if !self.supports(&[RequestKind::ReadList, RequestKind::Append]) {
            return;
        }
        let key = self.first_key + 2;
        let mut session = self.connect();
        let requests = [
            Request::ReadList { key },
            Request::Append { key, value: 7 },
            Request::Append { key, value: 3 },
            Request::ReadList { key },
        ];
        let found = self.answers(&mut *session, &requests);
        let expected = [Answer::List(vec![]), Answer::Done, Answer::Done, Answer::List(vec![7, 3])];
        assert_eq!(found, expected, "{}", self.isolation);
        self.answers(&mut *session, &[Request::Append { key, value: 9 }]);
        let mut other = self.connect();
        self.sees(&mut *other, Request::ReadList { key }, &Answer::List(vec![7, 3, 9]));
        self.sees(&mut *other, Request::ReadList { key: key + 1 }, &Answer::List(vec![]));
    }

    fn rows(&self) {
        let mut session = self.connect();
        let session = &mut *session;
        let (low, high) = (self.first_key + 10, self.first_key + 19);
        if self.supports(&[RequestKind::Insert, RequestKind::Delete]) {
            self.sees(session, Request::Insert { key: low, value: 1 }, &Answer::Applied(true));
            let again = self.transaction(session, &[Request::Insert { key: low, value: 2 }]);
            match again {
                Ok(answers) => assert!(
                    [Answer::Applied(false), Answer::Found(Some(1))].contains(&answers[0]),
                    "{}: a second insert: {answers:?}",
                    self.isolation
                ),
                Err(Failure::Aborted(_)) => {}
                Err(failure) => panic!("{}: a second insert: {failure}", self.isolation),
            }
            self.sees(session, Request::Delete { key: low }, &Answer::Applied(true));
            self.sees(session, Request::Delete { key: low }, &Answer::Applied(false));
            self.sees(session, Request::Insert { key: low, value: 3 }, &Answer::Applied(true));
            self.sees(session, Request::Insert { key: high, value: 4 }, &Answer::Applied(true));
            self.sees(session, Request::Insert { key: high + 1, value: 5 }, &Answer::Applied(true));
            if self.supports(&[RequestKind::Range]) {
                let rows = Answer::Rows(vec![(low, 3), (high, 4)]);
                self.sees(session, Request::Range { low, high }, &rows);
                let none = Request::Range { low: low + 1, high: high - 1 };
                self.sees(session, none, &Answer::Rows(vec![]));
            }
            if self.supports(&[RequestKind::UpdateRange]) {
                let update = Request::UpdateRange { low, high, first: 100 };
                let rows = Answer::Rows(vec![(low, 100), (high, 109)]);
                self.sees(session, update, &rows);
                let beyond = Request::Read { key: high + 1 };
                self.sees(session, beyond, &Answer::Value(Some(5)));
            }
        }
        if self.supports(&[RequestKind::CompareAndSet, RequestKind::Read]) {
            let key = self.first_key + 30;
            let swap = |expected, value| Request::CompareAndSet { key, expected, value };
            self.is_refused(session, &swap(Some(1), 2), None);
            self.sees(session, swap(None, 2), &Answer::Applied(true));
            self.is_refused(session, &swap(None, 3), Some(2));
            self.sees(session, swap(Some(2), 4), &Answer::Applied(true));
            self.sees(session, Request::Read { key }, &Answer::Value(Some(4)));
        }
    }

    /// Conditions on values: the rows of others meet them too, so these have values of
    /// their own.
    fn conditions(&self) {
        if !self.supports(&[RequestKind::Write]) {
            return;
        }
        let mut session = self.connect();
        let session = &mut *session;
        // Not above 2^52, so that every number of a database can be divided.
        let (key, first) = (self.first_key + 50, (1 << 40) + self.first_key * BLOCK);
        let written: Vec<Request> = (0..4)
            .map(|place| Request::Write { key: key + place, value: first + place * BLOCK })
            .collect();
        self.answers(session, &written);
        let values = |from: u64, to: u64| Filter::Values {
            low: first + from * BLOCK,
            high: first + to * BLOCK,
        };
        let modulus = first + BLOCK;
        let remainder = Filter::Remainder { modulus, remainder: BLOCK };
        let keys = Filter::Keys { low: key, high: key + 2 };
        let row = |place: u64| (key + place, first + place * BLOCK);
        if self.supports(&[RequestKind::Select]) {
            for (filter, expected) in [
                (values(1, 2), vec![row(1), row(2)]),
                (values(5, 9), vec![]),
                (remainder, vec![row(2)]),
                (keys, vec![row(0), row(1), row(2)]),
            ] {
                self.sees(session, Request::Select { filter }, &Answer::Rows(expected));
            }
        }
        if self.supports(&[RequestKind::Aggregate]) {
            for (function, filter, expected) in [
                (Function::Min, values(1, 3), Some(first + BLOCK)),
                (Function::Max, keys, Some(first + 2 * BLOCK)),
                (Function::Max, values(5, 9), None),
                (Function::Count, values(1, 3), Some(3)),
                (Function::Count, values(5, 9), Some(0)),
                (Function::Sum, values(0, 1), Some(2 * first + BLOCK)),
            ] {
                let request = Request::Aggregate { function, filter };
                self.sees(session, request, &Answer::Value(expected));
            }
        }
        self.changes_by_condition(session, key, first);
    }

    /// Rows at four keys from `key` on have the values `first` and multiples of [`BLOCK`].
    fn changes_by_condition(&self, session: &mut dyn Session, key: u64, first: u64) {
        let row = |place: u64| (key + place, first + place * BLOCK);
        let values = |from: u64, to: u64| Filter::Values {
            low: first + from * BLOCK,
            high: first + to * BLOCK,
        };
        if self.supports(&[RequestKind::DeleteWhere]) {
            let removed = Answer::Rows(vec![row(2), row(3)]);
            self.sees(session, Request::DeleteWhere { filter: values(2, 3) }, &removed);
            let again = Request::DeleteWhere { filter: values(2, 3) };
            self.sees(session, again, &Answer::Rows(vec![]));
        }
        if self.supports(&[RequestKind::UpdateWhere, RequestKind::Range]) {
            let fresh = first + 100 * BLOCK;
            let changed = (key + 1, fresh + (key + 1) % BLOCK);
            let update = Request::UpdateWhere { filter: values(1, 1), first: fresh };
            self.sees(session, update, &Answer::Rows(vec![changed]));
            let range = Request::Range { low: key, high: key + 1 };
            self.sees(session, range, &Answer::Rows(vec![row(0), changed]));
        }
    }

    /// What was rolled back, or lost with its connection, was never there.
    fn aborts(&self) {
        let is_interactive = self.database.style() == Style::Interactive;
        if !is_interactive || !self.supports(&[RequestKind::Read, RequestKind::Write]) {
            return;
        }
        let key = self.first_key + 40;
        let mut session = self.connect();
        let began = |session: &mut dyn Session| {
            session.begin(Access::ReadWrite).expect("a transaction can begin");
            session.execute(&Request::Write { key, value: 6 }).expect("nobody else writes");
        };
        began(&mut *session);
        session.rollback().expect("a transaction can be taken back");
        self.sees(&mut *session, Request::Read { key }, &Answer::Value(None));
        began(&mut *session);
        drop(session);
        let mut other = self.connect();
        // A server may need a moment to notice.
        for _ in 0..50 {
            if self.transaction(&mut *other, &[Request::Write { key: key + 1, value: 8 }]).is_ok() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        self.sees(&mut *other, Request::Read { key }, &Answer::Value(None));
    }

    fn empty_transactions(&self) {
        if self.database.style() == Style::Interactive {
            let mut session = self.connect();
            self.answers(&mut *session, &[]);
            self.answers(&mut *session, &[]);
        }
    }
}

/// Rows come in any order.
fn sorted(answer: &Answer) -> Answer {
    match answer {
        Answer::Rows(rows) => {
            let mut rows = rows.clone();
            rows.sort_unstable();
            Answer::Rows(rows)
        }
        other => other.clone(),
    }
}

//! `MongoDB`'s driver against a stand-in: no real server was met.
//!
//! The stand-in speaks the same messages and knows exactly the commands that the driver
//! sends. Their effect is that of the simulated database at snapshot isolation, so these
//! tests say nothing about `MongoDB` itself.

mod guard;

use super::document::{array, number, stored};
use super::protocol::{message, receive};
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};
use guard::Guard;
use isolde_harness::{
    Access, Address, Answer, Database, Failure, Needs, Request, RequestKind, Session, conformance,
};
use std::collections::HashMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Code and name of an error.
type Refusal = (i32, &'static str);
type Reply = Result<Document, Refusal>;

/// What all connections of a stand-in share.
struct StandIn {
    hello: Document,
    /// Whether nobody is answered who has not logged in.
    is_guarded: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By the prefix of their collections.
    stores: HashMap<String, Box<dyn Database>>,
    collections: Vec<String>,
    /// Transactions that are open, by the identifier of their session.
    open: HashMap<Vec<u8>, (i64, Box<dyn Session>)>,
}

/// Starts a stand-in; its thread ends with the process. The address is of the scheme.
fn stand_in(hello: Document) -> String {
    stand_in_with(hello, false)
}

fn stand_in_with(hello: Document, is_guarded: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let shared = Arc::new(StandIn { hello, is_guarded, state: Mutex::default() });
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || serve(&shared, stream));
        }
    });
    format!("mongodb://{address}")
}

fn primary() -> Document {
    doc! { "isWritablePrimary": true, "setName": "rs" }
}

fn serve(shared: &StandIn, mut stream: TcpStream) {
    let mut guard = Guard::default();
    while let Ok((numbers, command)) = receive(&mut stream) {
        let guarded = if shared.is_guarded { guard.reply(&command) } else { None };
        let reply = match guarded.unwrap_or_else(|| shared.reply(&command)) {
            Ok(mut reply) => {
                reply.insert("ok", 1.0);
                reply
            }
            Err((code, name)) => {
                let text = format!("the command was {command:?}");
                doc! { "ok": 0.0, "code": code, "codeName": name, "errmsg": text }
            }
        };
        let bytes = message(7, numbers.request, &reply).expect("a reply that fits");
        if stream.write_all(&bytes).is_err() {
            return;
        }
    }
}

const CONFLICT: (i32, &str) = (112, "WriteConflict");
const NO_TRANSACTION: (i32, &str) = (251, "NoSuchTransaction");
const BAD: (i32, &str) = (9, "FailedToParse");

impl StandIn {
    fn reply(&self, command: &Document) -> Reply {
        let mut state = self.state.lock().expect("no thread panics");
        let (name, first) = command.iter().next().expect("a command has a name");
        let collection = first.as_str().unwrap_or_default();
        match name.as_str() {
            "hello" => Ok(self.hello.clone()),
            "buildInfo" => Ok(doc! { "version": "0 (stand-in)" }),
            "listCollections" => {
                let wanted = command.get_document("filter").and_then(|it| it.get_str("name")).ok();
                let found = state.collections.iter().filter(|it| Some(it.as_str()) == wanted);
                Ok(batch(found.map(|_| Document::default()).collect()))
            }
            "create" => {
                state.create(collection);
                Ok(Document::default())
            }
            "drop" => {
                state.collections.retain(|it| it != collection);
                state.stores.remove(prefix(collection));
                Ok(Document::default())
            }
            "commitTransaction" => {
                let (_, mut session) = state.taken(command)?;
                session.commit().map(|()| Document::default()).map_err(|_| CONFLICT)
            }
            "abortTransaction" => {
                let (_, mut session) = state.taken(command)?;
                session.rollback().map(|()| Document::default()).map_err(|_| NO_TRANSACTION)
            }
            _ => state.execute(command, collection),
        }
    }
}

impl State {
    fn create(&mut self, collection: &str) {
        self.collections.push(collection.to_owned());
        self.stores.entry(prefix(collection).to_owned()).or_insert_with(|| {
            let address = Address::parse("sim://snapshot-isolation").expect("an address");
            let mut store = crate::open(&address).expect("a level");
            let requests = RequestKind::ALL.to_vec();
            store.prepare(&Needs { prefix: "isolde_x_".into(), requests }).expect("it is new");
            store
        });
    }

    fn taken(&mut self, command: &Document) -> Result<(i64, Box<dyn Session>), Refusal> {
        if !command.get_str("$db").is_ok_and(|it| it == "admin")
            || command.get_document("writeConcern").is_err()
        {
            return Err(BAD);
        }
        let open = self.open.remove(&identifier(command)).ok_or(NO_TRANSACTION)?;
        if Some(open.0) == number(command, "txnNumber") { Ok(open) } else { Err(NO_TRANSACTION) }
    }

    fn execute(&mut self, command: &Document, collection: &str) -> Reply {
        if command.get_bool("autocommit").unwrap_or(true) {
            return Err(BAD);
        }
        let transaction = number(command, "txnNumber").ok_or(BAD)?;
        let id = identifier(command);
        if command.get_bool("startTransaction").unwrap_or(false) {
            command.get_document("readConcern").map_err(|_| BAD)?;
            let store = self.stores.get(prefix(collection)).ok_or(BAD)?;
            let mut session = store.connect(0, store.default_isolation()).map_err(|_| BAD)?;
            session.begin(Access::ReadWrite).map_err(|_| BAD)?;
            self.open.insert(id.clone(), (transaction, session));
        }
        let (open, session) = self.open.get_mut(&id).ok_or(NO_TRANSACTION)?;
        if *open != transaction {
            return Err(NO_TRANSACTION);
        }
        let request = request(command, collection.ends_with("lists")).ok_or(BAD)?;
        if let Ok(answer) = session.execute(&request) {
            Ok(reply(&request, answer))
        } else {
            self.open.remove(&id);
            Err(CONFLICT)
        }
    }
}

fn prefix(collection: &str) -> &str {
    collection.trim_end_matches("registers").trim_end_matches("lists")
}

fn identifier(command: &Document) -> Vec<u8> {
    match command.get_document("lsid").ok().and_then(|it| it.get("id")) {
        Some(Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })) => bytes.clone(),
        other => panic!("expected an identifier, found {other:?}"),
    }
}

/// The request that a command is.
fn request(command: &Document, is_list: bool) -> Option<Request> {
    let unsigned = |document: &Document, name: &str| {
        number(document, name).and_then(|number| u64::try_from(number).ok())
    };
    if let Ok(filter) = command.get_document("filter") {
        if let Ok(bounds) = filter.get_document("_id") {
            return Some(Request::Range {
                low: unsigned(bounds, "$gte")?,
                high: unsigned(bounds, "$lte")?,
            });
        }
        let key = unsigned(filter, "_id")?;
        return Some(if is_list { Request::ReadList { key } } else { Request::Read { key } });
    }
    if let [Bson::Document(delete)] = array(command, "deletes") {
        return Some(Request::Delete { key: unsigned(delete.get_document("q").ok()?, "_id")? });
    }
    let [Bson::Document(update)] = array(command, "updates") else { return None };
    let (filter, change) = (update.get_document("q").ok()?, update.get_document("u").ok()?);
    let key = unsigned(filter, "_id")?;
    let (operator, Bson::Document(fields)) = change.iter().next()? else { return None };
    match operator.as_str() {
        "$push" => Some(Request::Append { key, value: unsigned(fields, "elements")? }),
        "$setOnInsert" => Some(Request::Insert { key, value: unsigned(fields, "value")? }),
        "$set" => {
            let value = unsigned(fields, "value")?;
            Some(match unsigned(filter, "value") {
                Some(expected) => Request::CompareAndSet { key, expected: Some(expected), value },
                None => Request::Write { key, value },
            })
        }
        _ => None,
    }
}

fn batch(rows: Vec<Document>) -> Document {
    doc! { "cursor": { "firstBatch": rows, "id": 0_i64 } }
}

fn reply(request: &Request, answer: Answer) -> Document {
    let row = |key, value| doc! { "_id": stored(key), "value": stored(value) };
    match (request, answer) {
        (&Request::Read { key }, Answer::Value(value)) => {
            batch(value.into_iter().map(|value| row(key, value)).collect())
        }
        (_, Answer::Rows(rows)) => {
            batch(rows.into_iter().map(|(key, value)| row(key, value)).collect())
        }
        (_, Answer::List(list)) => {
            let elements: Vec<i64> = list.into_iter().map(stored).collect();
            batch(vec![doc! { "elements": elements }])
        }
        (Request::Insert { .. }, Answer::Applied(true)) => {
            doc! { "n": 1, "upserted": [Bson::Null] }
        }
        // MongoDB does not say what it found instead.
        (_, Answer::Found(_)) => doc! { "n": 0 },
        (_, Answer::Applied(is_applied)) => doc! { "n": i32::from(is_applied) },
        _ => doc! { "n": 1 },
    }
}

fn open(address: &str) -> Result<Box<dyn Database>, Failure> {
    crate::open(&Address::parse(address).expect("an address"))
}

#[test]
fn the_driver_conforms_with_a_stand_in() {
    let address = stand_in(primary());
    conformance::conform("mongodb", &|| open(&address).expect("the stand-in answers"));
}

#[test]
fn who_writes_what_another_has_written_is_aborted() {
    let mut database = open(&stand_in(primary())).expect("the stand-in answers");
    let requests = vec![RequestKind::Read, RequestKind::Write];
    database.prepare(&Needs { prefix: "isolde_w_".into(), requests }).expect("it is new");
    let mut sessions = [(); 2].map(|()| database.connect(0, "snapshot").expect("a connection"));
    for session in &mut sessions {
        session.begin(Access::ReadWrite).expect("a transaction can begin");
        session.execute(&Request::Read { key: 1 }).expect("it can be read");
    }
    let ends = sessions.each_mut().map(|session| {
        session.execute(&Request::Write { key: 1, value: 2 }).and_then(|_| session.commit())
    });
    assert_eq!(ends, [Ok(()), Err(Failure::Aborted("WriteConflict".into()))]);
    sessions[1].begin(Access::ReadWrite).expect("the session goes on");
    assert_eq!(sessions[1].execute(&Request::Read { key: 1 }), Ok(Answer::Value(Some(2))));
}

#[test]
fn servers_without_transactions_are_refused() {
    let refused = |address: &str| conformance::refuses(open(address), "hunter2");
    let alone = stand_in(doc! { "isWritablePrimary": true });
    assert!(refused(&alone).starts_with("expected a replica set or a router, found a lone server"));
    let secondary = doc! { "setName": "rs" };
    let message = refused(&stand_in(secondary));
    assert!(
        message.starts_with("expected the primary or a router, found a secondary"),
        "{message}"
    );
    let message = refused("mongodb://127.0.0.1:1");
    assert!(message.starts_with("cannot connect to 127.0.0.1:1: "), "{message}");
    assert_eq!(refused("mongodb://h/?tls=yes"), "expected tls=true or tls=false, found yes");
}

#[test]
fn who_knows_the_password_comes_in() {
    let address = stand_in_with(primary(), true);
    let with = |login: &str, end: &str| address.replace("mongodb://", login) + end;
    let full = with("mongodb://eve,l:pencil@", "/?authSource=admin");
    conformance::conform("mongodb", &|| open(&full).expect("the stand-in answers"));
    drop(open(&with("mongodb://eve,l:pencil@", "")).expect("the source is admin"));
    let refused = |address: &str| conformance::refuses(open(address), "hunter2");
    let message = refused(&address);
    assert!(message.ends_with("(Unauthorized)"), "{message}");
    for wrong in [
        with("mongodb://eve,l:hunter2@", ""),
        with("mongodb://adam:pencil@", ""),
        with("mongodb://eve,l:pencil@", "/elsewhere"),
    ] {
        let message = refused(&wrong);
        assert!(message.ends_with("(AuthenticationFailed)"), "{message}");
    }
    let message = refused(&with("mongodb://impostor:hunter2@", ""));
    assert_eq!(
        message,
        "expected a server that knows the password, found one that cannot prove it"
    );
    for half in [with("mongodb://eve@", ""), address + "/?authSource=admin"] {
        let message = refused(&half);
        assert!(message.starts_with("expected user and password in the address"), "{message}");
    }
}

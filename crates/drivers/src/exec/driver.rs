//! Driving a program: one process to prepare and clean up, and one for each session.

use super::message::{self, NAMES};
use super::process::{Group, Process, Silence};
use crate::{Stop, Target};
use isolde_harness::{
    Access, Address, Answer, Claim, Database, Endpoint, Failure, Needs, Request, RequestKind,
    Session, SnapshotPoint, Style,
};
use serde_json::{Value, json};
use std::sync::{Mutex, Weak};

/// How a program is reached.
pub(crate) const TARGET: Target = Target {
    schemes: &["exec"],
    title: "any program that speaks JSON lines; see docs/databases/exec.md",
    example: "exec:python3 database.py file",
    open,
};

fn open(address: &Address, _: &Stop) -> Result<Box<dyn Database>, Failure> {
    let mut process = Process::start(&address.path)?;
    let hello = asked(&mut process, &json!({ "do": "hello", "protocol": 1 }), Meant::Nothing)
        .map_err(|failure| refused(&failure))?;
    let text = |name: &str| {
        let found = hello.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.map(str::to_owned).ok_or_else(|| lacks(name))
    };
    let claims = claims(&hello)?;
    let default = text("default")?;
    if !claims.iter().any(|claim| claim.isolation == default) {
        return Err(lacks("a default that is one of its isolations"));
    }
    let names = hello.get("requests").and_then(Value::as_array);
    let names: Vec<&Value> = names.ok_or_else(|| lacks("requests"))?.iter().collect();
    let supported = NAMES.iter().filter(|row| names.iter().any(|name| *name == row.1));
    Ok(Box::new(Exec {
        command: address.path.clone(),
        name: text("name")?,
        version: text("version")?,
        supported: supported.map(|row| row.0).collect(),
        style: match hello.get("style").and_then(Value::as_str) {
            None | Some("interactive") => Style::Interactive,
            Some("whole") => Style::Whole,
            Some(_) => return Err(lacks("style interactive or whole")),
        },
        endpoints: vec![Endpoint { name: address.path.clone(), access: Access::ReadWrite }],
        claims,
        default,
        control: Mutex::new(process),
        sessions: Mutex::default(),
        prefix: String::new(),
    }))
}

fn lacks(what: &str) -> Failure {
    Failure::Refused(format!("expected {what} in the program's answer to hello"))
}

fn claims(hello: &Value) -> Result<Vec<Claim>, Failure> {
    let rows = hello.get("isolations").and_then(Value::as_array);
    let rows = rows.filter(|rows| !rows.is_empty()).ok_or_else(|| lacks("isolations"))?;
    let claim = |row: &Value| {
        let name = row.get("name")?.as_str()?;
        let promises = row.get("promises")?.as_array()?.iter().map(Value::as_str);
        let promises: Vec<&str> = promises.collect::<Option<_>>()?;
        let snapshot = match row.get("snapshot").and_then(Value::as_str) {
            Some("begin") => SnapshotPoint::Begin,
            Some("each-request") => SnapshotPoint::EachRequest,
            Some("first-request") | None => SnapshotPoint::FirstRequest,
            Some(_) => return None,
        };
        Some(Claim::new(name, &promises, snapshot))
    };
    let claims: Option<Vec<Claim>> = rows.iter().map(claim).collect();
    claims.ok_or_else(|| lacks("name, promises and snapshot of each isolation"))
}

/// A program that cannot be talked to is the user's to mend.
fn refused(failure: &Failure) -> Failure {
    Failure::Refused(failure.reason().to_owned())
}

/// What a message that gets no answer may have done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meant {
    Nothing,
    Commit,
}

/// The answer to a message, unless it is a failure.
fn asked(process: &mut Process, message: &Value, meant: Meant) -> Result<Value, Failure> {
    let answer = process.ask(message).map_err(|silence| match (silence, meant) {
        (Silence::Gone(reason), Meant::Nothing) => Failure::Lost(reason),
        (Silence::Gone(reason), Meant::Commit) => Failure::Unknown(reason),
        (Silence::Wrong(reason), _) => Failure::Refused(reason),
    })?;
    message::failure(&answer).map_or(Ok(answer), Err)
}

struct Exec {
    command: String,
    name: String,
    version: String,
    supported: Vec<RequestKind>,
    style: Style,
    endpoints: Vec<Endpoint>,
    claims: Vec<Claim>,
    default: String,
    control: Mutex<Process>,
    sessions: Mutex<Vec<Weak<Group>>>,
    /// Empty if nothing was prepared.
    prefix: String,
}

impl Exec {
    fn control(&self, message: &Value) -> Result<(), Failure> {
        let mut process = self.control.lock().expect("nobody panics while asking");
        asked(&mut process, message, Meant::Nothing).map(|_| ())
    }
}

impl Database for Exec {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn claims(&self) -> &[Claim] {
        &self.claims
    }

    fn default_isolation(&self) -> &str {
        &self.default
    }

    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn supports(&self, kind: RequestKind) -> bool {
        self.supported.contains(&kind)
    }

    fn style(&self) -> Style {
        self.style
    }

    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure> {
        let names: Vec<_> = needs.requests.iter().filter_map(|&it| message::name(it)).collect();
        let message = json!({ "do": "prepare", "prefix": needs.prefix, "requests": names });
        self.control(&message).map_err(|failure| refused(&failure))?;
        self.prefix.clone_from(&needs.prefix);
        Ok(())
    }

    fn connect(&self, _endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure> {
        let mut process = Process::start(&self.command)?;
        let mut sessions = self.sessions.lock().expect("nobody panics while noting a session");
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(process.group());
        drop(sessions);
        let message = json!({ "do": "connect", "prefix": self.prefix, "isolation": isolation });
        asked(&mut process, &message, Meant::Nothing)?;
        Ok(Box::new(ExecSession { process }))
    }

    fn abandon(&self) {
        let sessions = self.sessions.lock().expect("nobody panics while noting a session");
        for session in sessions.iter().filter_map(Weak::upgrade) {
            session.end();
        }
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        let prefix = std::mem::take(&mut self.prefix);
        if prefix.is_empty() {
            return Ok(());
        }
        self.control(&json!({ "do": "clean-up", "prefix": prefix }))
            .map_err(|failure| refused(&failure))
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        let _ = self.clean_up();
    }
}

struct ExecSession {
    process: Process,
}

impl Session for ExecSession {
    fn begin(&mut self, access: Access) -> Result<(), Failure> {
        let access = if access == Access::ReadOnly { "read-only" } else { "read-write" };
        let message = json!({ "do": "begin", "access": access });
        asked(&mut self.process, &message, Meant::Nothing).map(|_| ())
    }

    fn execute(&mut self, request: &Request) -> Result<Answer, Failure> {
        let found = asked(&mut self.process, &message::message(request)?, Meant::Nothing)?;
        message::answer(request, &found)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        asked(&mut self.process, &json!({ "do": "commit" }), Meant::Commit).map(|_| ())
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        asked(&mut self.process, &json!({ "do": "rollback" }), Meant::Nothing).map(|_| ())
    }

    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        let messages: Vec<Value> =
            requests.iter().map(message::message).collect::<Result<_, _>>()?;
        let message = json!({ "do": "transaction", "requests": messages });
        let found = asked(&mut self.process, &message, Meant::Commit)?;
        let answers = found.get("answers").and_then(Value::as_array);
        let answers =
            answers.filter(|answers| answers.len() == requests.len()).ok_or_else(|| {
                Failure::Refused("expected an answer of the program to each request".to_owned())
            })?;
        requests
            .iter()
            .zip(answers)
            .map(|(request, found)| message::answer(request, found))
            .collect()
    }
}

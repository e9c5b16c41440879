//! What a database must be able to do to be driven, and what it promises.
//!
//! A driver implements [`Database`] and [`Session`]. Both are blocking: every
//! session has a thread of its own, and a request is a call that returns when the
//! answer is there. The recorder notes the time before and after each call, so a
//! driver does nothing else in it: no retries, no pauses, no pool.
//!
//! Keys and values are natural numbers below 2^63, so that every database has a
//! type for them. Nothing here knows how a level is checked: promises are names.

use crate::evidence::Evidence;
use crate::fault::Fault;
use std::fmt;
use std::net::SocketAddr;

/// One request of a client.
///
/// More may come: a driver refuses what it does not know by
/// [`Failure::unsupported`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// Reads a register. Answer: [`Answer::Value`].
    Read {
        /// Its key.
        key: u64,
    },
    /// Writes a register, whether or not it exists. Answer: [`Answer::Done`].
    Write {
        /// Its key.
        key: u64,
        /// Its new value.
        value: u64,
    },
    /// Reads a list. Answer: [`Answer::List`], empty if there is none.
    ReadList {
        /// Its key.
        key: u64,
    },
    /// Appends to a list, which may have to be created. Answer: [`Answer::Done`].
    Append {
        /// Its key.
        key: u64,
        /// The new last element.
        value: u64,
    },
    /// Creates a row of the registers. Answer: [`Answer::Applied`], with `false` if
    /// there was one; or the transaction is aborted.
    Insert {
        /// Its key.
        key: u64,
        /// Its value.
        value: u64,
    },
    /// Removes a row of the registers. Answer: [`Answer::Applied`], with `false` if
    /// there was none.
    Delete {
        /// Its key.
        key: u64,
    },
    /// Reads all registers with keys from `low` to `high`, both included, by one
    /// statement. Answer: [`Answer::Rows`].
    Range {
        /// The lowest key.
        low: u64,
        /// The highest key.
        high: u64,
    },
    /// Writes a register if it has the expected value, by one statement. Answer:
    /// [`Answer::Applied`].
    CompareAndSet {
        /// Its key.
        key: u64,
        /// The value it must have; `None` if it must not exist.
        expected: Option<u64>,
        /// Its new value.
        value: u64,
    },
    /// Updates every register with a key from `low` to `high`, both included, by one
    /// statement: the one at `key` gets the value `first + (key - low)`. Answer:
    /// [`Answer::Rows`], the updated rows with their new values.
    UpdateRange {
        /// The lowest key.
        low: u64,
        /// The highest key.
        high: u64,
        /// The value that the lowest key gets.
        first: u64,
    },
}

/// The kinds of requests, for what a workload needs and a database can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RequestKind {
    /// [`Request::Read`]
    Read,
    /// [`Request::Write`]
    Write,
    /// [`Request::ReadList`]
    ReadList,
    /// [`Request::Append`]
    Append,
    /// [`Request::Insert`]
    Insert,
    /// [`Request::Delete`]
    Delete,
    /// [`Request::Range`]
    Range,
    /// [`Request::CompareAndSet`]
    CompareAndSet,
    /// [`Request::UpdateRange`]
    UpdateRange,
}

impl RequestKind {
    /// All kinds.
    pub const ALL: [RequestKind; 9] = [
        RequestKind::Read,
        RequestKind::Write,
        RequestKind::ReadList,
        RequestKind::Append,
        RequestKind::Insert,
        RequestKind::Delete,
        RequestKind::Range,
        RequestKind::CompareAndSet,
        RequestKind::UpdateRange,
    ];

    /// What messages call it.
    pub const fn name(self) -> &'static str {
        match self {
            RequestKind::Read => "read",
            RequestKind::Write => "write",
            RequestKind::ReadList => "list read",
            RequestKind::Append => "append",
            RequestKind::Insert => "insert",
            RequestKind::Delete => "delete",
            RequestKind::Range => "range read",
            RequestKind::CompareAndSet => "compare-and-set",
            RequestKind::UpdateRange => "range update",
        }
    }

    /// Whether a transaction of such requests changes nothing.
    pub const fn is_read(self) -> bool {
        matches!(self, RequestKind::Read | RequestKind::ReadList | RequestKind::Range)
    }

    /// Whether it is about a list. All others are about registers.
    pub const fn is_list(self) -> bool {
        matches!(self, RequestKind::ReadList | RequestKind::Append)
    }
}

impl Request {
    /// Its kind.
    pub const fn kind(&self) -> RequestKind {
        match self {
            Request::Read { .. } => RequestKind::Read,
            Request::Write { .. } => RequestKind::Write,
            Request::ReadList { .. } => RequestKind::ReadList,
            Request::Append { .. } => RequestKind::Append,
            Request::Insert { .. } => RequestKind::Insert,
            Request::Delete { .. } => RequestKind::Delete,
            Request::Range { .. } => RequestKind::Range,
            Request::CompareAndSet { .. } => RequestKind::CompareAndSet,
            Request::UpdateRange { .. } => RequestKind::UpdateRange,
        }
    }
}

/// What a database answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was done, and there is nothing to tell.
    Done,
    /// The register's value; `None` if it does not exist.
    Value(Option<u64>),
    /// The elements of a list, first appended first.
    List(Vec<u64>),
    /// Keys and values of registers, in any order.
    Rows(Vec<(u64, u64)>),
    /// Whether the request changed anything.
    Applied(bool),
}

/// Why there is no answer. The texts are shown and recorded: a driver keeps
/// passwords and addresses with passwords out of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The transaction certainly has no effect: refused, rolled back, timed out before
    /// its commit. The driver has rolled it back; the session can begin another.
    /// The text is short and the same for the same reason, such as an error code.
    Aborted(String),
    /// The answer to a commit, or to a whole transaction, was lost: it may have had
    /// its effect. The session ends.
    Unknown(String),
    /// The connection broke at any other time. The transaction has no effect, because
    /// nobody asked for its commit. The session ends.
    Lost(String),
    /// Nothing that trying again can help: wrong usage, address or configuration.
    /// The run ends with this message.
    Refused(String),
}

impl Failure {
    /// The refusal of a request that a driver has no way to make.
    pub fn unsupported(request: &Request) -> Failure {
        Failure::Refused(format!("this database has no {}", request.kind().name()))
    }

    /// The reason, without what it means for the transaction.
    pub fn reason(&self) -> &str {
        match self {
            Failure::Aborted(reason)
            | Failure::Unknown(reason)
            | Failure::Lost(reason)
            | Failure::Refused(reason) => reason,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Aborted(reason) => write!(out, "aborted: {reason}"),
            Failure::Unknown(reason) => write!(out, "outcome unknown: {reason}"),
            Failure::Lost(reason) => write!(out, "connection lost: {reason}"),
            Failure::Refused(reason) => out.write_str(reason),
        }
    }
}

impl std::error::Error for Failure {}

/// When a transaction's snapshot is taken, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotPoint {
    /// When it begins.
    Begin,
    /// When its first request is executed: then its begin event, for levels in real
    /// time, lies anywhere up to the answer to that.
    FirstRequest,
    /// Each request has its own, or there are none.
    EachRequest,
}

/// What one isolation setting of a database promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The setting, as the database calls it, in lower case with hyphens.
    pub isolation: String,
    /// Names of the levels that it promises to satisfy, the strongest ones; what they
    /// imply need not be listed. Empty if it promises nothing.
    pub promises: Vec<String>,
    /// When snapshots are taken.
    pub snapshot: SnapshotPoint,
    /// What is known to be otherwise.
    pub deviations: Vec<Deviation>,
}

/// A promised level that a database is known not to satisfy, and says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deviation {
    /// The name of the level.
    pub level: String,
    /// What happens and where that is documented, in a sentence.
    pub text: String,
}

impl Claim {
    /// A claim without known deviations.
    pub fn new(isolation: &str, promises: &[&str], snapshot: SnapshotPoint) -> Claim {
        Claim {
            isolation: isolation.to_owned(),
            promises: promises.iter().map(|&name| name.to_owned()).collect(),
            snapshot,
            deviations: Vec::new(),
        }
    }

    /// The claim with one more known deviation.
    #[must_use]
    pub fn deviates(mut self, level: &str, text: &str) -> Claim {
        self.deviations.push(Deviation { level: level.to_owned(), text: text.to_owned() });
        self
    }
}

/// One server of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What reports call it: an address without secrets, or a role.
    pub name: String,
    /// Whether sessions on it may write.
    pub access: Access,
}

/// What a transaction, or a session, is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anything.
    ReadWrite,
    /// Reading alone.
    ReadOnly,
}

/// How transactions are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Request by request, between begin and commit.
    Interactive,
    /// All requests at once, by [`Session::whole`] alone.
    Whole,
}

/// What a run is going to need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// How the names of all tables or keys begin, different for each run:
    /// `isolde_` and some letters and digits, and an underscore.
    pub prefix: String,
    /// The requests that will be made.
    pub requests: Vec<RequestKind>,
}

impl Needs {
    /// Whether registers are used.
    pub fn registers(&self) -> bool {
        self.requests.iter().any(|kind| !kind.is_list())
    }

    /// Whether lists are used.
    pub fn lists(&self) -> bool {
        self.requests.iter().any(|kind| kind.is_list())
    }
}

/// A database that can be driven.
pub trait Database: Send + Sync {
    /// Its name in reports, such as its vendor writes it.
    fn name(&self) -> &str;

    /// The version of the server, for reports.
    fn version(&self) -> String;

    /// Its isolation settings, from weak to strong, and what they promise.
    fn claims(&self) -> &[Claim];

    /// The setting that its users get if they ask for nothing.
    fn default_isolation(&self) -> &str;

    /// Its servers, at least one. Sessions are dealt to them in turn.
    fn endpoints(&self) -> &[Endpoint];

    /// Whether it can serve such requests.
    fn supports(&self, kind: RequestKind) -> bool;

    /// How it takes transactions.
    fn style(&self) -> Style {
        Style::Interactive
    }

    /// Creates what the run needs, under names with its prefix. If anything of such a
    /// name exists, that is refused: it is not ours.
    fn prepare(&mut self, needs: &Needs) -> Result<(), Failure>;

    /// Opens a connection to the endpoint of this number, for transactions of the
    /// isolation setting of this name. All calls come after [`Database::prepare`], from
    /// any thread, during the whole run.
    fn connect(&self, endpoint: usize, isolation: &str) -> Result<Box<dyn Session>, Failure>;

    /// Makes ready for faults of these kinds; called before [`Database::prepare`]. Only
    /// what was started here can be disturbed.
    fn expect_faults(&mut self, faults: &[Fault]) -> Result<(), Failure> {
        let _ = faults;
        Err(Failure::Refused(format!(
            "expected a server that is started here, by the name of a database without an \
             address, for --fault; this {} can be disturbed by hand while a run with --duration \
             goes on",
            self.name()
        )))
    }

    /// Makes sessions on the endpoint of this number connect to another address, where
    /// everything is passed on. Reports go on to call the endpoint as before.
    fn reroute(&mut self, endpoint: usize, address: SocketAddr) -> Result<(), Failure> {
        let _ = (endpoint, address);
        Err(Failure::Refused(format!("connections to {} cannot be cut", self.name())))
    }

    /// Begins a fault that was to be expected, at the endpoint of this number.
    fn disturb(&self, fault: Fault, endpoint: usize) -> Result<(), Failure> {
        let _ = endpoint;
        Err(Failure::Refused(format!("{} knows no {}", self.name(), fault.name())))
    }

    /// Ends the fault, and waits until the endpoint answers.
    fn recover(&self, fault: Fault, endpoint: usize) -> Result<(), Failure> {
        let _ = (fault, endpoint);
        Ok(())
    }

    /// A way to ask for the order of versions of registers, from now on; called after
    /// [`Database::prepare`], before any session. What is missing for it is refused with
    /// what to do about it.
    fn evidence(&self) -> Result<Box<dyn Evidence>, Failure> {
        Err(Failure::Refused(format!(
            "{} has no way to tell the order of its versions; leave --white-box out, then what \
             clients saw is judged alone",
            self.name()
        )))
    }

    /// The run is over, and some sessions are still waiting for an answer: ends their
    /// waiting, if that is possible. They then fail as if their connection broke.
    fn abandon(&self) {}

    /// Removes what [`Database::prepare`] has created, and nothing else. Does nothing
    /// the second time. All sessions are closed by then.
    fn clean_up(&mut self) -> Result<(), Failure>;
}

/// A connection on which one transaction runs at a time.
///
/// After [`Failure::Aborted`] from any call the transaction is over, without a
/// rollback. After [`Failure::Unknown`] and [`Failure::Lost`] the session is dropped.
pub trait Session: Send {
    /// Begins a transaction. The access is a promise of the client; a database that
    /// has no use for it ignores it.
    fn begin(&mut self, access: Access) -> Result<(), Failure>;

    /// Executes one request of the transaction.
    fn execute(&mut self, request: &Request) -> Result<Answer, Failure>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Takes the transaction back.
    fn rollback(&mut self) -> Result<(), Failure>;

    /// Executes and commits a whole transaction, with one answer for each request. Only
    /// called for [`Style::Whole`], and then nothing else is.
    fn whole(&mut self, requests: &[Request]) -> Result<Vec<Answer>, Failure> {
        let _ = requests;
        Err(Failure::Refused("this database takes transactions request by request".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_its_message_and_others_say_what_they_mean() {
        let shown: Vec<String> = [
            Failure::Aborted("40001".into()),
            Failure::Unknown("end of file".into()),
            Failure::Lost("end of file".into()),
            Failure::Refused("expected a port".into()),
        ]
        .iter()
        .map(ToString::to_string)
        .collect();
        assert_eq!(
            shown,
            [
                "aborted: 40001",
                "outcome unknown: end of file",
                "connection lost: end of file",
                "expected a port"
            ]
        );
    }

    #[test]
    fn needs_tell_registers_from_lists() {
        let needs = |requests: &[RequestKind]| Needs {
            prefix: "isolde_1_".into(),
            requests: requests.into(),
        };
        let lists = needs(&[RequestKind::Append, RequestKind::ReadList]);
        assert_eq!((lists.registers(), lists.lists()), (false, true));
        let registers = needs(&[RequestKind::Range]);
        assert_eq!((registers.registers(), registers.lists()), (true, false));
    }
}

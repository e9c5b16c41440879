//! What a database must be able to do to be driven, and what it promises.
//!
//! A driver implements [`Database`] and [`Session`]. Both are blocking: every
//! session has a thread of its own, and a request is a call that returns when the
//! answer is there. The recorder notes the time before and after each call, so a
//! driver does nothing else in it: no retries, no pauses, no pool.
//!
//! Keys and values are natural numbers below 2^63, so that every database has a
//! type for them. Nothing here knows how a level is checked: promises are names.

use crate::evidence::{Evidence, Installed};
use crate::fault::Fault;
use crate::request::{Answer, Request, RequestKind};
use crate::simulated::Bug;
use isolde_history::Snapshot;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

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
    /// Names of the anomalies that it explains; if there are none, all that no other
    /// deviation of the level does.
    pub anomalies: Vec<String>,
    /// Whether it explains, instead, whatever transactions with refused inserts have a part in.
    pub of_refused_inserts: bool,
}

/// What was found of a level that is violated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found<'a> {
    /// The names of the anomalies.
    pub names: &'a [&'a str],
    /// Whether a transaction that has a part in them found a row where it wanted to insert one.
    pub has_refused_inserts: bool,
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
    pub fn deviates(self, level: &str, text: &str) -> Claim {
        self.deviates_by(level, &[], text)
    }

    /// The claim with one more known deviation, which explains these anomalies alone.
    #[must_use]
    pub fn deviates_by(mut self, level: &str, anomalies: &[&str], text: &str) -> Claim {
        self.deviations.push(Deviation {
            level: level.to_owned(),
            text: text.to_owned(),
            anomalies: anomalies.iter().map(|&name| name.to_owned()).collect(),
            of_refused_inserts: false,
        });
        self
    }

    /// The claim with one more known deviation, of transactions whose inserts were refused.
    #[must_use]
    pub fn deviates_by_refused_inserts(mut self, level: &str, text: &str) -> Claim {
        self = self.deviates(level, text);
        if let Some(last) = self.deviations.last_mut() {
            last.of_refused_inserts = true;
        }
        self
    }

    /// The deviation that explains why this level is violated by these anomalies.
    pub fn deviation(&self, level: &str, found: Found<'_>) -> Option<&Deviation> {
        let of_level = || self.deviations.iter().filter(|it| it.level == level);
        let is_known = |it: &Deviation, name: &&str| it.anomalies.iter().any(|of| of == name);
        let explains = |it: &&Deviation| {
            if it.of_refused_inserts {
                found.has_refused_inserts
            } else {
                !found.names.is_empty() && found.names.iter().all(|name| is_known(it, name))
            }
        };
        let of_the_rest = |it: &&Deviation| it.anomalies.is_empty() && !it.of_refused_inserts;
        of_level().find(explains).or_else(|| of_level().find(of_the_rest))
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

/// What a database tells about a transaction of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its number, which snapshots of others name it by. One that wrote nothing needs none.
    pub number: Option<u64>,
    /// Whose writes it saw, if that is the same for all of its requests.
    pub snapshot: Option<Snapshot>,
}

/// Where a database is to look for versions of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The table, whose first two columns are key and value; if not given, the one table
    /// that a run of ours created.
    pub table: Option<String>,
    /// What kept the log for us, where that takes something.
    pub slot: Option<String>,
    /// Keys and values that the history wrote, which tell its table from others.
    pub written: HashSet<(u64, u64)>,
}

impl Past {
    /// Whether the table of this name may be meant.
    pub fn is_wanted(&self, name: &str) -> bool {
        match &self.table {
            Some(table) => table == name,
            None => name.starts_with("isolde_") && name.ends_with("_registers"),
        }
    }

    /// Whether the history wrote all of these versions.
    fn fits(&self, versions: &[Installed]) -> bool {
        let written = |it: &Installed| it.value.is_none_or(|value| self.has(it.key, value));
        versions.iter().all(written)
    }

    fn has(&self, key: u64, value: u64) -> bool {
        self.written.contains(&(key, value))
    }

    /// Chooses among the versions of tables that may be meant: the one of which the history
    /// wrote all versions.
    pub fn choose(
        &self,
        mut tables: BTreeMap<String, Vec<Installed>>,
    ) -> Result<Vec<Installed>, Failure> {
        if tables.len() > 1 {
            let all: Vec<String> = tables.keys().cloned().collect();
            tables.retain(|_, versions| self.fits(versions));
            let fitting: Vec<&str> = tables.keys().map(String::as_str).collect();
            let refused = |found: &str, names: &str| {
                Failure::Refused(format!(
                    "expected one run in the log, found several, {found}; name the table of the \
                     one you mean by --table: {names}"
                ))
            };
            match fitting[..] {
                [_] => {}
                [] => {
                    let found = "and none that wrote what this history did";
                    return Err(refused(found, &all.join(", ")));
                }
                _ => {
                    let found = "of which these wrote what this history did";
                    return Err(refused(found, &fitting.join(", ")));
                }
            }
        }
        match (tables.pop_first(), &self.table) {
            (Some((_, versions)), _) => Ok(versions),
            (None, Some(table)) => Err(Failure::Refused(format!(
                "expected changes of the table {table} in the log, found none"
            ))),
            (None, None) => Err(Failure::Refused(
                "expected changes of a table isolde_..._registers in the log, found none: the \
                 part of the log that had them is gone, or the history was recorded elsewhere; \
                 another table is named by --table"
                    .to_owned(),
            )),
        }
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

    /// Whether a transaction that was aborted for this reason had waited too long, and not met
    /// a conflict: that it had no effect says nothing about its isolation.
    fn is_timeout(&self, reason: &str) -> bool {
        let _ = reason;
        false
    }

    /// The bug that it was given, if it is a simulated one.
    fn bug(&self) -> Option<Bug> {
        None
    }

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

    /// The versions that were installed in the past, as far as the database still knows:
    /// those of each key in their order. Nothing was prepared, and nothing is changed.
    fn recall(&self, past: &Past) -> Result<Vec<Installed>, Failure> {
        let _ = past;
        Err(Failure::Refused(format!(
            "{} does not know afterwards in which order it installed versions; ask it while it \
             is driven, by isolde run --white-box",
            self.name()
        )))
    }

    /// Removes what [`Database::prepare`] has created, and nothing else. Does nothing
    /// the second time, unless it failed the first time. All sessions are closed by then.
    fn clean_up(&mut self) -> Result<(), Failure>;

    /// The statement or command that removes what [`Database::prepare`] has created; `None`
    /// if nothing is there, or nothing that stays when the program ends.
    fn removal(&self) -> Option<String> {
        None
    }

    /// The prefixes of runs that have left something; called before [`Database::prepare`].
    fn leftovers(&self) -> Result<Vec<String>, Failure> {
        Err(Failure::Refused(format!("{} is not asked what was left in it", self.name())))
    }

    /// Removes everything whose name begins like this.
    fn discard(&mut self, prefix: &str) -> Result<(), Failure> {
        Err(Failure::Refused(format!("{} removes no {prefix}", self.name())))
    }
}

/// What is left behind if nobody cleans up, and how that is removed: nobody else knows what
/// is ours.
pub fn remains(database: &dyn Database) -> Option<String> {
    let removal = database.removal()?;
    Some(format!("what was created is left behind, remove it with: {removal}"))
}

/// Removes what a run has created: patiently, unless something had ended the run, which
/// patience does not mend. Returns what ended it, or was left behind.
pub fn clean_up_after(database: &mut dyn Database, ended_by: Option<String>) -> Option<String> {
    let cleaned = match ended_by {
        None => clean_up_patiently(database),
        Some(_) => database.clean_up(),
    };
    let Err(failure) = cleaned else { return ended_by };
    let message = ended_by.unwrap_or_else(|| format!("cannot clean up: {failure}"));
    Some(match remains(database) {
        Some(remains) => format!("{message}; {remains}"),
        None => message,
    })
}

/// Servers that were disturbed take transactions again within this time.
const CALM: Duration = Duration::from_secs(20);

/// [`Database::clean_up`], again and again for a while: a server that answers after a fault
/// may still load its data, or have no leader. The last failure, or one that trying again
/// cannot help.
fn clean_up_patiently(database: &mut dyn Database) -> Result<(), Failure> {
    tried_for(CALM, || database.clean_up())
}

fn tried_for(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    const PAUSE: Duration = Duration::from_millis(100);
    let deadline = Instant::now() + patience;
    loop {
        match attempt() {
            Err(Failure::Aborted(_) | Failure::Lost(_) | Failure::Unknown(_))
                if Instant::now() < deadline =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
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

    /// What the last request was executed on, where a request has a snapshot of its own
    /// and the database told it with the answer. Only asked for if [`Database::evidence`]
    /// was called before the session began.
    fn snapshot(&mut self) -> Option<Snapshot> {
        None
    }

    /// What the database calls the open transaction, and what all of it was executed on.
    /// Called before [`Session::commit`], under the same condition.
    fn identity(&mut self) -> Result<Identity, Failure> {
        Ok(Identity::default())
    }

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

    #[test]
    fn what_trying_again_can_help_is_tried_again() {
        let outcome = |patience: u64, failures: Vec<Failure>| {
            let mut failures = failures.into_iter();
            let done =
                tried_for(Duration::from_secs(patience), || failures.next().map_or(Ok(()), Err));
            (done, failures.len())
        };
        let lost = || Failure::Lost("gone".into());
        let refused = || Failure::Refused("no".into());
        let unknown = Failure::Unknown("cut".into());
        let loading = Failure::Aborted("LOADING".into());
        assert_eq!(outcome(60, vec![lost(), unknown, loading]), (Ok(()), 0));
        assert_eq!(outcome(60, vec![lost(), refused(), lost()]), (Err(refused()), 1));
        assert_eq!(outcome(0, vec![lost(), lost()]), (Err(lost()), 1));
    }

    #[test]
    fn the_table_of_a_history_is_the_one_whose_versions_it_wrote() {
        let version = |key, value| Installed { key, value: Some(value), number: None };
        let chosen = |written: &[(u64, u64)]| {
            let tables = BTreeMap::from([
                ("isolde_1_registers".to_owned(), vec![version(1, 10), version(1, 11)]),
                ("isolde_2_registers".to_owned(), vec![version(1, 10), version(1, 12)]),
            ]);
            let past = Past { written: written.iter().copied().collect(), ..Past::default() };
            past.choose(tables).map_err(|failure| failure.to_string())
        };
        assert_eq!(chosen(&[(1, 10), (1, 12)]), Ok(vec![version(1, 10), version(1, 12)]));
        let refusal = |found: &str| {
            Err(format!(
                "expected one run in the log, found several, {found}; name the table of the one \
                 you mean by --table: isolde_1_registers, isolde_2_registers"
            ))
        };
        assert_eq!(chosen(&[(7, 1)]), refusal("and none that wrote what this history did"));
        assert_eq!(
            chosen(&[(1, 10), (1, 11), (1, 12)]),
            refusal("of which these wrote what this history did")
        );
    }
}

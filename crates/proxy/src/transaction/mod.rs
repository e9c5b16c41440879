//! The transactions of one connection, from what the server answers.
//!
//! A transaction's operations are handed to the recording before its commit is sent, where the
//! application waits for answers; else with its outcome. What is read of a version names the
//! transaction that wrote it, so that a writer who is missing accuses nobody.

use crate::catalog::Table;
use crate::plan::Plan;
use crate::recording::Recording;
use crate::sql::Verb;
use isolde_history::trace::{Kind, Row, Scalar, write};
use isolde_history::{Interval, NEVER, Time};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A version of a row, by its writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) table: Arc<Table>,
    pub(crate) key: String,
    /// The lower 32 bits of its number, as the system column has them; nothing if it is
    /// not known.
    pub(crate) writer: Option<u32>,
}

/// What a statement did to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Lock,
    Write,
    Delete,
    Unseen,
}

struct Operation {
    access: Access,
    interval: Interval,
    statement: u32,
    versions: Vec<Version>,
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Committed,
    Aborted,
    Unknown,
}

struct Open {
    begin: Interval,
    is_block: bool,
    has_failed: bool,
    isolation: Option<String>,
    operations: Vec<Operation>,
    /// Names, and how many operations there were.
    savepoints: Vec<(String, usize)>,
    /// Its operations are in the recording.
    is_handed_over: bool,
}

/// What a connection is in the middle of.
pub(crate) struct Tracker {
    recording: Arc<Recording>,
    client: String,
    number: u64,
    open: Option<Open>,
    /// Lines that were not handed over yet, and the statements in them.
    lines: Vec<u8>,
    statements: Vec<u32>,
    /// The level of transactions that ask for none.
    pub(crate) isolation: Option<String>,
}

/// Lines of reads and of outcomes are handed over together.
const LINES_FULL: usize = 1 << 16;

impl Tracker {
    pub(crate) fn new(recording: Arc<Recording>, client: String) -> Tracker {
        Tracker {
            recording,
            client,
            number: 0,
            open: None,
            lines: Vec::new(),
            statements: Vec::new(),
            isolation: None,
        }
    }

    pub(crate) fn is_in_savepoint(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.savepoints.is_empty())
    }

    fn open(&mut self, begin: Interval) -> &mut Open {
        self.open.get_or_insert_with(|| Open {
            begin,
            is_block: false,
            has_failed: false,
            isolation: None,
            operations: Vec::new(),
            savepoints: Vec::new(),
            is_handed_over: false,
        })
    }

    /// A statement was carried out.
    pub(crate) fn completed(
        &mut self,
        plan: &Plan,
        versions: Vec<Version>,
        interval: Interval,
        tag: &[u8],
    ) {
        match &plan.verb {
            Verb::Begin => {
                let open = self.open(interval);
                open.is_block = true;
                open.isolation = plan.isolation.clone().or(open.isolation.take());
            }
            Verb::Commit | Verb::Rollback => {
                let is_commit = plan.verb == Verb::Commit && tag.starts_with(b"COMMIT");
                let level = self.open.as_ref().and_then(|open| open.isolation.clone());
                self.end(if is_commit { End::Committed } else { End::Aborted }, interval);
                if plan.is_chained {
                    let open = self.open(interval);
                    open.is_block = true;
                    open.isolation = level;
                }
            }
            Verb::Savepoint(name) => {
                let open = self.open(interval);
                let count = open.operations.len();
                open.savepoints.push((name.clone(), count));
            }
            Verb::Release(name) => {
                if let Some(open) = &mut self.open
                    && let Some(place) = open.savepoints.iter().rposition(|it| it.0 == *name)
                {
                    open.savepoints.truncate(place);
                }
            }
            Verb::RollbackTo(name) => self.roll_back_to(name),
            Verb::SessionLevel => self.isolation.clone_from(&plan.isolation),
            Verb::Setting => {
                if let (Some(level), Some(open)) = (&plan.isolation, &mut self.open) {
                    open.isolation = Some(level.clone());
                }
            }
            _ => self.operation(plan, versions, interval),
        }
    }

    fn operation(&mut self, plan: &Plan, mut versions: Vec<Version>, interval: Interval) {
        let mut is_unseen = plan.may_write_more;
        if plan.has_whole_number && self.is_in_savepoint() && !versions.is_empty() {
            self.recording.gap("a write of a partitioned table in a savepoint", plan.statement);
            versions.clear();
            is_unseen = true;
        }
        if versions.is_empty() && !is_unseen {
            // A block that does nothing else is no transaction of a history.
            return;
        }
        for version in &mut versions {
            version.key = self.recording.key(std::mem::take(&mut version.key));
        }
        let access = match plan.verb {
            Verb::Select { is_locking: true } => Access::Lock,
            Verb::Insert | Verb::Update => Access::Write,
            Verb::Delete => Access::Delete,
            _ => Access::Read,
        };
        let operations = &mut self.open(interval).operations;
        if !versions.is_empty() {
            operations.push(Operation { access, interval, statement: plan.statement, versions });
        }
        if is_unseen {
            let (access, statement) = (Access::Unseen, plan.statement);
            operations.push(Operation { access, interval, statement, versions: Vec::new() });
        }
    }

    /// What was written since a savepoint is gone, and what was read of it was of nobody.
    fn roll_back_to(&mut self, name: &str) {
        let Some(open) = &mut self.open else { return };
        open.has_failed = false;
        let Some(place) = open.savepoints.iter().rposition(|it| it.0 == name) else { return };
        let start = open.savepoints[place].1;
        // The savepoint itself stays.
        open.savepoints.truncate(place + 1);
        let undone = open.operations.split_off(start);
        let mut gone: Vec<(String, Option<u32>)> = Vec::new();
        for mut operation in undone {
            match operation.access {
                Access::Write => {
                    gone.extend(operation.versions.into_iter().map(|it| (it.key, it.writer)));
                    continue;
                }
                // What it found was there; that it is gone was undone.
                Access::Delete => operation.access = Access::Read,
                _ => {}
            }
            let is_left =
                |it: &Version| !gone.iter().any(|gone| gone.0 == it.key && gone.1 == it.writer);
            operation.versions.retain(is_left);
            if !operation.versions.is_empty() || operation.access == Access::Unseen {
                open.operations.push(operation);
            }
        }
    }

    /// The server refused something.
    pub(crate) fn failed(&mut self) {
        if let Some(open) = &mut self.open {
            open.has_failed = true;
        }
    }

    /// The server waits for the next request, in this state: `I`, `T` or `E`.
    pub(crate) fn ready(&mut self, status: u8, sent: Time) {
        let Some(open) = &mut self.open else { return };
        let interval = Interval { invoked: sent, completed: self.recording.now() };
        match (status, open.is_block) {
            (b'I', false) => {
                let end = if open.has_failed { End::Aborted } else { End::Committed };
                self.end(end, interval);
            }
            // Something ended it that was not understood.
            (b'I', true) => self.end(End::Unknown, Interval { completed: NEVER, ..interval }),
            (_, false) => open.is_block = true,
            _ => {}
        }
    }

    /// The connection is over. Nobody knows what became of a commit that was sent.
    pub(crate) fn closed(&mut self, commit_sent: Option<Time>) {
        let end = if commit_sent.is_some() { End::Unknown } else { End::Aborted };
        let invoked = commit_sent.unwrap_or_else(|| self.recording.now());
        self.end(end, Interval { invoked, completed: NEVER });
        write::bye(&mut self.lines, &self.client);
        self.flush();
    }

    /// A commit is about to be sent: what it commits is written down first.
    pub(crate) fn committing(&mut self) {
        let Some(open) = &mut self.open else { return };
        if open.is_handed_over || open.operations.is_empty() {
            return;
        }
        open.is_handed_over = true;
        let has_writes = open.operations.iter().any(Operation::is_write);
        self.write_operations();
        if has_writes || self.lines.len() > LINES_FULL {
            self.flush();
        }
    }

    fn end(&mut self, end: End, interval: Interval) {
        let Some(open) = &mut self.open else { return };
        if open.operations.is_empty() {
            self.open = None;
            return;
        }
        let level = open.isolation.as_deref().or(self.isolation.as_deref());
        self.recording.level(level.unwrap_or("unknown"));
        let has_writes = !open.is_handed_over && open.operations.iter().any(Operation::is_write);
        if !open.is_handed_over {
            self.write_operations();
        }
        let counts = &self.recording.counts;
        let (kind, counter) = match end {
            End::Committed => (Kind::Commit, &counts.committed),
            End::Aborted => (Kind::Abort, &counts.aborted),
            End::Unknown => (Kind::Lost, &counts.unknown),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        write::event(&mut self.lines, &self.client, self.number, kind, interval, &[]);
        self.open = None;
        // An outcome alone waits for what comes next: if it is lost, it is unknown.
        if has_writes || self.lines.len() > LINES_FULL {
            self.flush();
        }
    }

    /// Hands over what there is.
    pub(crate) fn flush(&mut self) {
        // The recording keeps the error, and tells it in the end.
        let _ = self.recording.append(&self.lines, &self.statements);
        self.lines.clear();
        self.statements.clear();
    }

    fn write_operations(&mut self) {
        self.number += 1;
        let Some(open) = &self.open else { return };
        let (client, number, out) = (&self.client, self.number, &mut self.lines);
        if open.is_block {
            write::event(out, client, number, Kind::Begin, open.begin, &[]);
        }
        let mut places = Places::of(&open.operations);
        for operation in &open.operations {
            if !self.statements.contains(&operation.statement) {
                self.statements.push(operation.statement);
            }
            let values = places.values(operation);
            let by = (operation.statement != 0).then_some(u64::from(operation.statement));
            let mut event = |kind, rows: &[Row<'_>]| {
                write::requested(out, (client, number), kind, operation.interval, rows, by);
            };
            let named = operation.versions.iter().zip(&values);
            let rows: Vec<Row<'_>> =
                named.map(|(version, value)| row(version, value.as_deref())).collect();
            match operation.access {
                Access::Read => event(Kind::Read, &rows),
                Access::Lock => event(Kind::LockingRead, &rows),
                Access::Write => event(Kind::Write, &rows),
                Access::Delete => {
                    let read: Vec<Row<'_>> =
                        rows.iter().filter(|it| it.value != Scalar::Absent).copied().collect();
                    if !read.is_empty() {
                        event(Kind::Read, &read);
                    }
                    let mut gone = rows;
                    for row in &mut gone {
                        row.value = Scalar::Absent;
                    }
                    event(Kind::Write, &gone);
                }
                Access::Unseen => {
                    write::unseen(out, (client, number), operation.interval, by);
                }
            }
        }
    }
}

impl Operation {
    fn is_write(&self) -> bool {
        matches!(self.access, Access::Write | Access::Delete)
    }
}

fn row<'a>(version: &'a Version, value: Option<&'a str>) -> Row<'a> {
    let key = match version.key.parse::<i64>() {
        // Only numbers as they are usually written: `007` is a text.
        Ok(number) if number.to_string() == version.key => Scalar::Integer(number),
        _ => Scalar::Text(&version.key),
    };
    let value = match value {
        None => Scalar::Absent,
        Some(text) => text.parse().map_or(Scalar::Text(text), Scalar::Integer),
    };
    Row { table: &version.table.name, key, column: None, value }
}

/// Which of several versions that one transaction wrote of a row each is: the last is called by
/// the number of the transaction alone, since that is the one that others find.
struct Places<'a> {
    /// By table, key and writer: how many there are, and how many came so far.
    counts: HashMap<(&'a str, &'a str, u32), (u32, u32)>,
}

impl<'a> Places<'a> {
    fn of(operations: &'a [Operation]) -> Places<'a> {
        let mut counts: HashMap<_, (u32, u32)> = HashMap::new();
        let writes = operations.iter().filter(|it| it.access == Access::Write);
        for version in writes.flat_map(|it| &it.versions) {
            if let Some(writer) = version.writer {
                let name = (version.table.name.as_str(), version.key.as_str(), writer);
                counts.entry(name).or_default().0 += 1;
            }
        }
        Places { counts }
    }

    fn values(&mut self, operation: &'a Operation) -> Vec<Option<String>> {
        let is_write = operation.access == Access::Write;
        let value = |version: &'a Version| {
            let writer = version.writer?;
            let name = (version.table.name.as_str(), version.key.as_str(), writer);
            let Some((all, so_far)) = self.counts.get_mut(&name) else {
                return Some(writer.to_string());
            };
            *so_far += u32::from(is_write);
            Some(match *so_far {
                place if place == *all || place == 0 => writer.to_string(),
                place => format!("{writer}.{place}"),
            })
        };
        operation.versions.iter().map(value).collect()
    }
}

#[cfg(test)]
mod tests;

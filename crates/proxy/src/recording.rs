//! What is written down: one trace for all connections, and what was not seen.
//!
//! Lines are appended and never changed, a whole hand-over at a time. So a recording whose
//! writer died, or whose disk is full, is read up to its last whole line.

use crate::sql::Statement;
use isolde_history::trace::write;
use isolde_history::{NEVER, Time};
use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// More statements than this are no statements that people wrote, but made by a program.
const STATEMENTS_MAX: usize = 10_000;
/// The statement of those that have no number of their own.
pub(crate) const OTHER: u32 = 0;

/// The recording of a run of the proxy.
pub struct Recording {
    start: Instant,
    /// `None` if nothing is recorded.
    file: Option<Mutex<Lines>>,
    statements: Mutex<HashMap<Statement, u32>>,
    texts: Mutex<Vec<Statement>>,
    gaps: Mutex<BTreeMap<(&'static str, u32), u64>>,
    levels: Mutex<BTreeMap<String, u64>>,
    /// Statements with what is added to them that the server understands, and those it refuses.
    tried: Mutex<HashMap<(u32, String), bool>>,
    /// Keys are told by their hashes.
    redaction: Option<RandomState>,
    failed: AtomicBool,
    knows_running: AtomicBool,
    pub(crate) counts: Counters,
    /// Changed by every statement after which names may mean something else.
    pub(crate) generation: AtomicU64,
}

struct Lines {
    file: File,
    /// The length up to the last whole hand-over.
    length: u64,
    error: Option<String>,
    /// Statements whose text was written.
    told: HashSet<u32>,
}

/// What was counted.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) unknown: AtomicU64,
    pub(crate) statements: AtomicU64,
    pub(crate) unseen: AtomicU64,
}

/// A part of what applications did that was not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub reason: &'static str,
    /// The statement, without its literals.
    pub statement: String,
    /// How often.
    pub count: u64,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Connections of clients.
    pub connections: u64,
    /// Transactions that read or wrote and were committed.
    pub committed: u64,
    /// Those that were rolled back.
    pub aborted: u64,
    /// Those whose end nobody knows.
    pub unknown: u64,
    /// Statements that were run.
    pub statements: u64,
    /// Those of which not everything was seen.
    pub unseen: u64,
    /// What was not seen, the most frequent first.
    pub gaps: Vec<Gap>,
    /// Transactions by the isolation level that they had.
    pub levels: Vec<(String, u64)>,
    /// Why the recording ended early.
    pub error: Option<String>,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recording {
    /// Creates the trace, which must not exist. With `redacts`, keys are told by their hashes.
    pub fn create(path: &Path, redacts: bool) -> io::Result<Recording> {
        let file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let lines = Lines { file, length: 0, error: None, told: HashSet::new() };
        let recording = Recording {
            file: Some(Mutex::new(lines)),
            redaction: redacts.then(RandomState::new),
            ..Recording::unwritten()
        };
        recording.append(write::head_of_versions().as_bytes(), &[])?;
        Ok(recording)
    }

    /// One that only passes on and counts.
    pub fn unwritten() -> Recording {
        Recording {
            start: Instant::now(),
            file: None,
            statements: Mutex::default(),
            texts: Mutex::default(),
            gaps: Mutex::default(),
            levels: Mutex::default(),
            tried: Mutex::default(),
            redaction: None,
            failed: AtomicBool::new(false),
            knows_running: AtomicBool::new(false),
            counts: Counters::default(),
            generation: AtomicU64::new(0),
        }
    }

    /// Takes note of the lowest number of a transaction that was not over, before anything else
    /// is written down: what has a lower one was there from the start.
    pub(crate) fn running(&self, number: u64) {
        if !self.knows_running.swap(true, Ordering::AcqRel) {
            let _ = self.append(write::running(number).as_bytes(), &[]);
        }
    }

    /// Whether statements are rewritten and recorded.
    pub(crate) fn is_recording(&self) -> bool {
        self.file.is_some() && !self.failed.load(Ordering::Relaxed)
    }

    /// Nanoseconds since it was created.
    pub(crate) fn now(&self) -> Time {
        Time::try_from(self.start.elapsed().as_nanos()).unwrap_or(NEVER - 1)
    }

    /// The number of a statement.
    pub(crate) fn statement(&self, statement: Statement) -> u32 {
        let mut numbers = held(&self.statements);
        if let Some(&number) = numbers.get(&statement) {
            return number;
        }
        if numbers.len() >= STATEMENTS_MAX {
            return OTHER;
        }
        let number = numbers.len() as u32 + 1;
        held(&self.texts).push(statement.clone());
        numbers.insert(statement, number);
        number
    }

    fn text(&self, number: u32) -> Option<Statement> {
        held(&self.texts).get((number as usize).checked_sub(1)?).cloned()
    }

    /// Whether the server understands a statement with this added; `None` if nobody knows yet.
    pub(crate) fn is_understood(&self, statement: u32, added: &str) -> Option<bool> {
        held(&self.tried).get(&(statement, added.to_owned())).copied()
    }

    pub(crate) fn understood(&self, statement: u32, added: String, is_understood: bool) {
        held(&self.tried).insert((statement, added), is_understood);
    }

    /// Something was not seen.
    pub(crate) fn gap(&self, reason: &'static str, statement: u32) {
        self.counts.unseen.fetch_add(1, Ordering::Relaxed);
        *held(&self.gaps).entry((reason, statement)).or_default() += 1;
    }

    pub(crate) fn level(&self, level: &str) {
        let mut levels = held(&self.levels);
        match levels.get_mut(level) {
            Some(count) => *count += 1,
            None => drop(levels.insert(level.to_owned(), 1)),
        }
    }

    /// The key as it is written down.
    pub(crate) fn key(&self, key: String) -> String {
        match &self.redaction {
            Some(state) => format!("#{:016x}", state.hash_one(key)),
            None => key,
        }
    }

    /// Writes lines, behind the texts of the statements in them. After the first failure nothing
    /// is written any more: what follows a gap would accuse the database.
    pub(crate) fn append(&self, lines: &[u8], statements: &[u32]) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut guard = held(file);
        let log = &mut *guard;
        if log.error.is_some() {
            return Ok(());
        }
        let mut texts = Vec::new();
        for &number in statements {
            if !log.told.contains(&number)
                && let Some(statement) = self.text(number)
            {
                write::statement(&mut texts, number.into(), &statement.text, &statement.tags);
                log.told.insert(number);
            }
        }
        let written = if texts.is_empty() {
            log.file.write_all(lines)
        } else {
            texts.extend_from_slice(lines);
            log.file.write_all(&texts)
        };
        match written {
            Ok(()) => {
                log.length += lines.len().max(texts.len()) as u64;
                Ok(())
            }
            Err(error) => {
                // On a full disk, a part of the lines may have been written.
                let _ = log.file.set_len(log.length);
                log.error = Some(error.to_string());
                self.failed.store(true, Ordering::Relaxed);
                Err(error)
            }
        }
    }

    /// Makes sure that everything is on the disk, and tells what came of it.
    pub fn finish(&self) -> Summary {
        let mut error = None;
        if let Some(file) = &self.file {
            let guard = held(file);
            let synced = guard.file.sync_data().map_err(|error| error.to_string());
            error = guard.error.clone().or(synced.err());
        }
        let mut gaps: Vec<Gap> = (held(&self.gaps).iter())
            .map(|(&(reason, statement), &count)| {
                let text = self.text(statement).map_or_else(String::new, |it| it.text);
                Gap { reason, statement: text, count }
            })
            .collect();
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.count));
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Summary {
            connections: count(&self.counts.connections),
            committed: count(&self.counts.committed),
            aborted: count(&self.counts.aborted),
            unknown: count(&self.counts.unknown),
            statements: count(&self.counts.statements),
            unseen: count(&self.counts.unseen),
            gaps,
            levels: held(&self.levels).iter().map(|(name, &count)| (name.clone(), count)).collect(),
            error,
        }
    }
}

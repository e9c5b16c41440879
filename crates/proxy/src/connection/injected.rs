//! Questions of our own, between those of the client: what its tables are, and whether the
//! server understands a statement with more columns.
//!
//! They are put where the client has sent everything of one request and nothing of the next, and
//! their answers are for nobody else. Inside of a batch a question is no request of its own, so
//! that it does not end the batch's transaction.

use super::Connection;
use super::pending::{Pending, Preparation};
use crate::wire::{Parts, put, put_query, put_text};
use std::collections::VecDeque;

/// What our own statement and portal are called.
const NAME: &[u8] = b"isolde_question";

/// A statement with what was added, to be tried.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) statement: u32,
    pub(super) added: String,
    pub(super) sql: String,
    /// The types of its parameters, as the client declared them.
    pub(super) types: Vec<u8>,
}

/// What is asked.
pub(super) enum Purpose {
    /// What names stand for.
    Catalog {
        tables: Vec<String>,
        functions: Vec<String>,
    },
    Trial(Trial),
}

/// A question that was sent.
pub(super) struct Injected {
    pub(super) purpose: Purpose,
    /// So often the server will be ready before it is answered; 0 inside of a batch.
    pub(super) ready_left: u8,
    /// Of our statement and our portal, inside of a batch.
    pub(super) closed: u8,
    pub(super) has_failed: bool,
    pub(super) rows: Vec<Vec<Option<String>>>,
}

impl Connection {
    /// Asks what names stand for. What the client sends meanwhile waits.
    pub(super) fn ask_catalog(&mut self, question: &str, names: (Vec<String>, Vec<String>)) {
        let out = &mut self.to_server.bytes;
        put(out, b'P', |out| {
            put_text(out, NAME);
            put_text(out, question.as_bytes());
            out.extend_from_slice(&[0, 0]);
        });
        put(out, b'B', |out| {
            put_text(out, NAME);
            put_text(out, NAME);
            out.extend_from_slice(&[0; 6]);
        });
        put(out, b'E', |out| {
            put_text(out, NAME);
            out.extend_from_slice(&[0; 4]);
        });
        for kind in [b'P', b'S'] {
            put(out, b'C', |out| {
                out.push(kind);
                put_text(out, NAME);
            });
        }
        put(out, if self.is_in_batch { b'H' } else { b'S' }, |_| {});
        let purpose = Purpose::Catalog { tables: names.0, functions: names.1 };
        self.wait_for(purpose, u8::from(!self.is_in_batch));
    }

    /// Lets the server read a statement without carrying it out. In a block of the client that
    /// is done in a savepoint, because a mistake would end the block.
    pub(super) fn try_statement(&mut self, trial: Trial) {
        const SAVEPOINT: &str = "isolde_trial";
        let is_block = self.status == b'T';
        let out = &mut self.to_server.bytes;
        if is_block {
            put_query(out, &format!("SAVEPOINT {SAVEPOINT}"));
        }
        put(out, b'P', |out| {
            put_text(out, NAME);
            put_text(out, trial.sql.as_bytes());
            out.extend_from_slice(&trial.types);
        });
        put(out, b'C', |out| {
            out.push(b'S');
            put_text(out, NAME);
        });
        put(out, b'S', |_| {});
        if is_block {
            put_query(out, &format!("ROLLBACK TO {SAVEPOINT}"));
            put_query(out, &format!("RELEASE {SAVEPOINT}"));
        }
        self.wait_for(Purpose::Trial(trial), if is_block { 4 } else { 1 });
    }

    fn wait_for(&mut self, purpose: Purpose, ready_left: u8) {
        let rows = Vec::new();
        let injected = Injected { purpose, ready_left, closed: 0, has_failed: false, rows };
        self.pending.push_back(Pending::Injected(Box::new(injected)));
        self.is_waiting = true;
    }

    /// Takes what the server says to a question of ours; true once that was everything.
    pub(super) fn take_answer(injected: &mut Injected, tag: u8, content: &[u8]) -> bool {
        match tag {
            b'D' => injected.rows.extend(row(content)),
            b'E' => injected.has_failed = true,
            b'3' => injected.closed += 1,
            b'Z' => injected.ready_left = injected.ready_left.saturating_sub(1),
            _ => return false,
        }
        match tag {
            b'Z' => injected.ready_left == 0,
            b'3' => injected.ready_left == 0 && injected.closed == 2,
            _ => false,
        }
    }

    /// A question was answered, or will never be.
    pub(super) fn answered(&mut self, injected: Injected) {
        self.is_waiting = false;
        match injected.purpose {
            Purpose::Catalog { tables, functions } => {
                for row in &injected.rows {
                    self.catalog.learn(row);
                }
                self.catalog.give_up(&tables, &functions);
                if let Some(running) = self.catalog.running {
                    self.recording.running(running);
                }
                if let Some(level) = &self.catalog.isolation {
                    self.tracker.isolation.get_or_insert_with(|| level.clone());
                }
            }
            Purpose::Trial(trial) => {
                self.recording.understood(trial.statement, trial.added, !injected.has_failed);
            }
        }
    }

    /// Takes out questions that the server has left out, with everything up to the next `Sync`.
    pub(super) fn give_up_until_sync(&mut self) {
        let is_end = |pending: &Pending| matches!(pending, Pending::Sync(_));
        let end = self.pending.iter().position(is_end);
        self.is_skipping |= end.is_none();
        let left = end.map_or_else(VecDeque::new, |place| self.pending.split_off(place));
        for pending in std::mem::replace(&mut self.pending, left).into_iter().rev() {
            match pending {
                // A batch that failed says nothing about the names in it.
                Pending::Injected(_) => self.is_waiting = false,
                Pending::Parse(Preparation { name, previous, .. }) => {
                    match previous {
                        Some(previous) => self.statements.insert(name, previous),
                        None => self.statements.remove(&name),
                    };
                }
                _ => {}
            }
        }
    }
}

/// The columns of a row as text.
fn row(content: &[u8]) -> Option<Vec<Option<String>>> {
    let mut parts = Parts::new(content);
    let count = parts.short()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (0..count).map(|_| Some(parts.column()?.map(text))).collect()
}

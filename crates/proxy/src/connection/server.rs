//! Messages of the server: what was added is taken out, and what it tells is recorded.

use super::pending::{Pending, Portal};
use super::{Connection, Phase};
use crate::plan::{Form, Plan};
use crate::sql::Verb;
use crate::transaction::Version;
use crate::wire::{self, Frame, Parts, put};
use isolde_history::{Interval, Time};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Rows of others are passed on in parts once they are longer.
const LONG: usize = 1 << 16;

/// What becomes of a message.
enum Fate {
    /// It is passed on as it is.
    Passes,
    /// The client does not see it.
    Ends,
    /// Something else was passed on.
    Changed,
}

impl Connection {
    /// Takes the messages of the server that are whole.
    pub(super) fn server_messages(&mut self) -> Result<(), String> {
        let mut bytes = std::mem::take(&mut self.from_server.bytes);
        let mut at = self.from_server.start;
        if self.server_passes > 0 {
            let length = (bytes.len() - at).min(self.server_passes);
            self.to_client.bytes.extend_from_slice(&bytes[at..at + length]);
            at += length;
            self.server_passes -= length;
        }
        // Messages that pass are copied together.
        let mut copied = at;
        while let Some(frame) = wire::frame(&bytes, at)? {
            at = frame.whole.end;
            let first = std::mem::replace(&mut copied, at);
            let before = first..frame.whole.start;
            match self.server_message(&mut bytes, &frame, before.clone()) {
                Fate::Passes => copied = first,
                Fate::Ends => self.to_client.bytes.extend_from_slice(&bytes[before]),
                Fate::Changed => {}
            }
        }
        if copied == 0 && at == bytes.len() && self.to_client.is_empty() {
            self.to_client.start = 0;
            std::mem::swap(&mut self.to_client.bytes, &mut bytes);
            bytes.clear();
            at = 0;
        } else {
            self.to_client.bytes.extend_from_slice(&bytes[copied..at]);
        }
        self.from_server.bytes = bytes;
        self.from_server.start = at;
        self.pass_long_row();
        Ok(())
    }

    /// Rows in which nothing is looked for need not be whole.
    fn pass_long_row(&mut self) {
        let rest = self.from_server.rest();
        if rest.len() < LONG || !matches!(rest[0], b'D' | b'd') {
            return;
        }
        let front = self.pending.front();
        let is_plain = !matches!(front, Some(Pending::Injected(_)));
        if is_plain && front.and_then(Pending::plan).is_none_or(|plan| plan.width == 0) {
            let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize + 1;
            self.server_passes = length - rest.len();
            self.to_client.bytes.extend_from_slice(rest);
            self.from_server.start = self.from_server.bytes.len();
        }
    }

    /// Takes one message. What passed `before` it is copied by whoever changes it.
    fn server_message(
        &mut self,
        bytes: &mut [u8],
        frame: &Frame,
        before: std::ops::Range<usize>,
    ) -> Fate {
        let content = frame.content();
        if frame.tag == b'S' {
            self.parameter(&bytes[content]);
            return Fate::Passes;
        }
        // Notices and notifications belong to nothing.
        if matches!(frame.tag, b'N' | b'A') {
            return Fate::Passes;
        }
        if self.phase == Phase::Login {
            if frame.tag == b'Z' {
                self.phase = Phase::Running;
            }
            return Fate::Passes;
        }
        if let Some(Pending::Injected(injected)) = self.pending.front_mut() {
            // Inside of a batch, a mistake of ours is one of the client's batch.
            let is_in_batch = injected.ready_left == 0;
            if !(is_in_batch && frame.tag == b'E') {
                if frame.tag == b'Z' {
                    self.status = bytes[content.start];
                }
                if Connection::take_answer(injected, frame.tag, &bytes[content])
                    && let Some(Pending::Injected(injected)) = self.pending.pop_front()
                {
                    self.answered(*injected);
                }
                return Fate::Ends;
            }
        }
        match frame.tag {
            b'T' | b'D' => self.row(bytes, frame, before),
            b'Z' => {
                self.ready(bytes[content.start]);
                Fate::Passes
            }
            b'E' => self.refused(bytes, frame, before),
            tag => {
                self.completed(tag, &bytes[content]);
                Fate::Passes
            }
        }
    }

    fn parameter(&mut self, content: &[u8]) {
        let mut parts = Parts::new(content);
        if parts.text() == Some(b"standard_conforming_strings") {
            self.has_standard_strings = parts.text() == Some(b"on");
        }
    }

    /// A row, or what rows will look like.
    fn row(&mut self, bytes: &mut [u8], frame: &Frame, before: std::ops::Range<usize>) -> Fate {
        let Some(pending) = self.pending.front_mut() else { return Fate::Passes };
        let is_describe = matches!(pending, Pending::Describe(_));
        let Some(plan) = pending.plan().filter(|plan| plan.width > 0) else {
            if is_describe && frame.tag == b'T' {
                self.pending.pop_front();
            }
            return Fate::Passes;
        };
        let content = frame.content();
        let Some((kept, end)) = wire::split(&bytes[content.clone()], plan.width, frame.tag) else {
            return Fate::Passes;
        };
        let is_silent = plan.is_silent;
        let end = content.start + end;
        if frame.tag == b'D' {
            let versions = versions(plan, &bytes[end..content.end], pending.is_binary());
            pending.add(versions);
        }
        if is_silent {
            if is_describe {
                self.pending.pop_front();
                self.to_client.bytes.extend_from_slice(&bytes[before]);
                put(&mut self.to_client.bytes, b'n', |_| {});
                return Fate::Changed;
            }
            return Fate::Ends;
        }
        if is_describe {
            self.pending.pop_front();
        }
        // The head is changed where it lies, and what follows the columns of the client is left
        // out.
        let start = frame.whole.start;
        let length = (end - start - 1) as u32;
        bytes[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
        bytes[start + 5..start + 7].copy_from_slice(&(kept as u16).to_be_bytes());
        self.to_client.bytes.extend_from_slice(&bytes[before.start..end]);
        Fate::Changed
    }

    /// Something is done.
    fn completed(&mut self, tag: u8, content: &[u8]) {
        match (tag, self.pending.front_mut()) {
            (b'1', Some(Pending::Parse(_)))
            | (b'2', Some(Pending::Bind))
            | (b'n', Some(Pending::Describe(_))) => {
                self.pending.pop_front();
            }
            (b'3', Some(Pending::Close(_))) => {
                if let Some(Pending::Close(Some(name))) = self.pending.pop_front() {
                    self.statements.remove(&name);
                }
            }
            (b'C' | b'I', Some(Pending::Query(query))) => {
                let versions = std::mem::take(&mut query.versions);
                let (plan, sent) = (query.plans.get(query.at).cloned(), query.sent);
                query.at += 1;
                if let (b'C', Some(plan)) = (tag, plan) {
                    self.done(&plan, versions, sent, content);
                }
            }
            (b'C' | b's' | b'I', Some(Pending::Execute(_))) => {
                let Some(Pending::Execute(execution)) = self.pending.pop_front() else { return };
                let Portal { plan, bound, .. } = execution.portal;
                if let (b'C' | b's', Some(plan)) = (tag, plan) {
                    self.done(&plan, execution.versions, bound, content);
                }
            }
            _ => {}
        }
    }

    /// A statement was carried out, or a part of it.
    fn done(&mut self, plan: &Arc<Plan>, versions: Vec<Version>, sent: Time, tag: &[u8]) {
        let interval = Interval { invoked: sent, completed: self.recording.now() };
        self.recording.counts.statements.fetch_add(1, Ordering::Relaxed);
        if let Some(reason) = plan.gap {
            self.recording.gap(reason, plan.statement);
        }
        match &plan.verb {
            Verb::Deallocate(Some(name)) => drop(self.statements.remove(name.as_bytes())),
            Verb::Deallocate(None) => {
                self.statements.clear();
                self.catalog.forget();
            }
            Verb::Rollback | Verb::RollbackTo(_) if self.has_changed_names => {
                self.catalog.forget();
            }
            _ => {}
        }
        self.tracker.completed(plan, versions, interval, tag);
        if plan.changes_names {
            self.catalog.forget();
            self.has_changed_names = true;
        }
    }

    /// The server waits for the next request.
    fn ready(&mut self, status: u8) {
        self.status = status;
        let sent = match self.pending.pop_front() {
            Some(Pending::Query(query)) => query.sent,
            Some(Pending::Sync(sent) | Pending::Function(sent)) => sent,
            _ => self.recording.now(),
        };
        self.tracker.ready(status, sent);
        if status == b'I' {
            self.portals.clear();
            // What was changed is there for all others now, or undone.
            if std::mem::take(&mut self.has_changed_names) {
                self.catalog.forget();
                self.recording.generation.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// An error: places in the text are those of the text that the client has sent.
    fn refused(&mut self, bytes: &[u8], frame: &Frame, before: std::ops::Range<usize>) -> Fate {
        self.tracker.failed();
        let content = &bytes[frame.content()];
        let place = wire::error_field(content, b'P')
            .and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok());
        let added = match self.pending.front() {
            Some(Pending::Query(query)) => query.added.clone(),
            Some(Pending::Parse(preparation)) => preparation.added.into_iter().collect(),
            _ => Vec::new(),
        };
        if !matches!(self.pending.front(), Some(Pending::Query(_) | Pending::Function(_))) {
            self.give_up_until_sync();
        }
        let Some(place) = place else { return Fate::Passes };
        // Places count from 1. Each addition before the place has moved it.
        let mut moved = 0;
        for (at, length) in added {
            if place > at + moved {
                moved += length;
            }
        }
        if moved == 0 {
            return Fate::Passes;
        }
        let place = place.saturating_sub(moved).to_string();
        self.to_client.bytes.extend_from_slice(&bytes[before]);
        put(&mut self.to_client.bytes, b'E', |out| {
            let mut parts = Parts::new(content);
            while let Some(field) = parts.take(1).filter(|field| field[0] != 0) {
                let Some(text) = parts.text() else { break };
                out.push(field[0]);
                wire::put_text(out, if field[0] == b'P' { place.as_bytes() } else { text });
            }
            out.push(0);
        });
        Fate::Changed
    }
}

impl Pending {
    fn is_binary(&self) -> bool {
        matches!(self, Pending::Execute(execution) if execution.portal.is_binary)
    }

    fn add(&mut self, versions: Vec<Version>) {
        match self {
            Pending::Query(query) => query.versions.extend(versions),
            Pending::Execute(execution) => execution.versions.extend(versions),
            _ => {}
        }
    }
}

/// The versions that the columns of a plan name.
fn versions(plan: &Plan, columns: &[u8], is_binary: bool) -> Vec<Version> {
    let mut parts = Parts::new(columns);
    let mut found = Vec::with_capacity(plan.hidden.len());
    for hidden in &plan.hidden {
        let first = parts.column().flatten();
        match hidden.form {
            Form::Row { keys } => {
                let keys: Vec<Option<&[u8]>> =
                    (0..keys).map(|_| parts.column().flatten()).collect();
                let keys: Option<Vec<String>> = keys.into_iter().map(|key| key.map(text)).collect();
                // Of an outer join, a row that is not there has no key.
                let Some(keys) = keys else { continue };
                // A number that was made text is text in binary, too.
                let is_binary = is_binary && !plan.has_whole_number;
                let writer = first.and_then(|bytes| number(bytes, is_binary));
                let key = key(&keys, hidden.table.keys.is_empty(), writer);
                found.push(Version { table: Arc::clone(&hidden.table), key, writer });
            }
            Form::Group => {
                let rows: Vec<Vec<Option<String>>> =
                    first.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
                for row in rows {
                    let row: Option<Vec<String>> = row.into_iter().collect();
                    let Some((writer, keys)) = row.as_deref().and_then(<[_]>::split_first) else {
                        continue;
                    };
                    let writer = number(writer.as_bytes(), false);
                    let key = key(keys, hidden.table.keys.is_empty(), writer);
                    found.push(Version { table: Arc::clone(&hidden.table), key, writer });
                }
            }
        }
    }
    found
}

fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

/// The number of a transaction. A system column has 32 bits of it, and in binary these as they
/// are; a function tells all.
fn number(bytes: &[u8], is_binary: bool) -> Option<u32> {
    match bytes {
        &[a, b, c, d] if is_binary => Some(u32::from_be_bytes([a, b, c, d])),
        _ => std::str::from_utf8(bytes).ok()?.parse::<u64>().ok().map(|number| number as u32),
    }
}

/// How a row is called. One without a key is known by where this version of it lies, which is
/// another row's place later: so its writer is a part of its name.
fn key(keys: &[String], has_no_key: bool, writer: Option<u32>) -> String {
    match keys {
        [place] if has_no_key => format!("{place} {}", writer.unwrap_or_default()),
        [one] => one.clone(),
        several => {
            let parts: Vec<String> =
                several.iter().map(|part| part.replace('\\', "\\\\").replace(',', "\\,")).collect();
            parts.join(",")
        }
    }
}

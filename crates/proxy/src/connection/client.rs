//! Messages of the client: statements are planned, and rewritten if they are to be told.

use super::injected::Trial;
use super::pending::{Execution, Pending, Portal, Preparation, Query};
use super::{Connection, Phase};
use crate::plan::Plan;
use crate::sql::{Shape, Token, Verb, normalised, shape, statements, tokens};
use crate::wire::{self, Frame, Parts, put, put_query, put_text};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is known of a text of statements.
enum Analysis {
    Planned(Vec<Planned>),
    /// The text is looked at again when the server has answered what it was sent.
    Waiting,
}

/// A statement with its place in its text.
struct Planned {
    plan: Plan,
    start: usize,
    end: usize,
}

/// The first message that is longer is passed on in parts, if it is only data.
const LONG: usize = 1 << 16;

impl Connection {
    /// Takes the messages of the client that are whole.
    pub(super) fn client_messages(&mut self) -> Result<(), String> {
        while !self.is_waiting {
            if self.client_passes > 0 {
                let rest = self.from_client.rest();
                let length = rest.len().min(self.client_passes);
                self.to_server.bytes.extend_from_slice(&rest[..length]);
                self.from_client.start += length;
                self.client_passes -= length;
                if self.client_passes > 0 {
                    return Ok(());
                }
            }
            let found = wire::frame(&self.from_client.bytes, self.from_client.start);
            let found = found.inspect_err(|message| {
                wire::put_error(&mut self.to_client.bytes, "08P01", message);
            })?;
            let Some(frame) = found else {
                self.pass_long_data();
                return Ok(());
            };
            // The message is taken out of the buffer so that it can be looked at beside the rest.
            let bytes = std::mem::take(&mut self.from_client.bytes);
            let is_taken = self.client_message(&bytes, &frame);
            self.from_client.bytes = bytes;
            self.is_held = !is_taken;
            if self.is_held {
                return Ok(());
            }
            self.from_client.start = frame.whole.end;
        }
        Ok(())
    }

    /// Data of a copy need not be whole.
    fn pass_long_data(&mut self) {
        let rest = self.from_client.rest();
        if rest.len() < LONG || rest[0] != b'd' {
            return;
        }
        let length = u32::from_be_bytes([rest[1], rest[2], rest[3], rest[4]]) as usize + 1;
        self.client_passes = length - rest.len();
        self.to_server.bytes.extend_from_slice(rest);
        self.from_client.start = self.from_client.bytes.len();
    }

    /// Takes one message; false if it has to wait.
    fn client_message(&mut self, bytes: &[u8], frame: &Frame) -> bool {
        let raw = &bytes[frame.whole.clone()];
        if self.phase != Phase::Running {
            self.to_server.bytes.extend_from_slice(raw);
            return true;
        }
        if self.has_open_names && !self.is_in_batch {
            self.has_open_names = !self.pending.is_empty();
            if self.has_open_names {
                return false;
            }
        }
        // Between two requests is time for what could not be tried before.
        if !self.is_in_batch
            && self.status != b'E'
            && self.pending.is_empty()
            && let Some(trial) = self.next_trial()
        {
            self.try_statement(trial);
            return false;
        }
        let content = &bytes[frame.content()];
        let is_taken = match frame.tag {
            b'Q' => self.query(content),
            b'P' => self.parse(content),
            b'B' => self.bind(content),
            b'D' => self.describe(content),
            b'E' => self.execute(content),
            b'C' => self.close(content),
            b'S' => {
                let now = self.recording.now();
                self.is_in_batch = false;
                self.pending.push_back(Pending::Sync(now));
                self.is_skipping = false;
                None
            }
            b'F' => {
                self.expect(Pending::Function(self.recording.now()));
                None
            }
            _ => None,
        };
        if is_taken.is_none() {
            self.to_server.bytes.extend_from_slice(raw);
        }
        self.is_in_batch |=
            matches!(frame.tag, b'P' | b'B' | b'D' | b'E' | b'C') && !self.is_waiting;
        is_taken.unwrap_or(true)
    }

    /// A statement that nobody has tried meanwhile.
    fn next_trial(&mut self) -> Option<Trial> {
        let is_known = |it: &Trial| self.recording.is_understood(it.statement, &it.added).is_some();
        while self.trials.last().is_some_and(is_known) {
            self.trials.pop();
        }
        self.trials.pop()
    }

    /// An answer to this will come, unless the server leaves it out.
    fn expect(&mut self, pending: Pending) {
        if !self.is_skipping {
            self.pending.push_back(pending);
        }
    }

    /// A simple query. The results of this and the others: `None` if the message is passed on
    /// as it is, else whether it was taken.
    fn query(&mut self, content: &[u8]) -> Option<bool> {
        let sql = content.strip_suffix(&[0])?;
        let planned = match self.analysed(sql, &[0, 0]) {
            Analysis::Planned(planned) => planned,
            Analysis::Waiting => return Some(false),
        };
        let commits = planned.iter().any(|it| it.plan.verb == Verb::Commit);
        if commits && self.pending.is_empty() {
            self.tracker.committing();
        }
        let text = std::str::from_utf8(sql).unwrap_or_default();
        let rewritten = rewritten(text, &planned);
        let plans: Vec<Arc<Plan>> = planned.into_iter().map(|it| Arc::new(it.plan)).collect();
        let added = plans.iter().filter_map(|plan| added_characters(text, plan)).collect();
        let sent = self.recording.now();
        self.expect(Pending::Query(Query { plans, at: 0, sent, added, versions: Vec::new() }));
        let rewritten = rewritten?;
        put_query(&mut self.to_server.bytes, &rewritten);
        Some(true)
    }

    fn parse(&mut self, content: &[u8]) -> Option<bool> {
        let mut parts = Parts::new(content);
        let (name, sql) = (parts.text()?, parts.text()?);
        let types = &content[parts.at..];
        let mut planned = match self.analysed(sql, types) {
            Analysis::Planned(planned) => planned,
            Analysis::Waiting => return Some(false),
        };
        let text = std::str::from_utf8(sql).unwrap_or_default();
        let rewritten = rewritten(text, &planned);
        let plan = planned.pop().map(|it| Arc::new(it.plan));
        if !self.is_skipping {
            let name = name.to_vec();
            let previous = self.statements.insert(name.clone(), plan.clone());
            self.has_open_names |= previous.is_some() && !name.is_empty();
            let added = plan.as_deref().and_then(|plan| added_characters(text, plan));
            self.expect(Pending::Parse(Preparation { name, plan, previous, added }));
        }
        let rewritten = rewritten?;
        put(&mut self.to_server.bytes, b'P', |out| {
            put_text(out, name);
            put_text(out, rewritten.as_bytes());
            out.extend_from_slice(types);
        });
        Some(true)
    }

    fn bind(&mut self, content: &[u8]) -> Option<bool> {
        let mut parts = Parts::new(content);
        let (portal, statement) = (parts.text()?, parts.text()?);
        let plan = self.statements.get(statement).cloned().flatten();
        let width = plan.as_ref().map_or(0, |plan| plan.width);
        let formats = if width > 0 { result_formats(&mut parts) } else { None };
        let is_binary = formats.as_ref().is_some_and(|it| it.count == 1 && it.first == 1);
        if !self.is_skipping {
            let bound = self.recording.now();
            self.portals.insert(portal.to_vec(), Portal { plan, is_binary, bound });
        }
        self.expect(Pending::Bind);
        // One format, or none, is that of all columns.
        let formats = formats.filter(|it| it.count > 1)?;
        put(&mut self.to_server.bytes, b'B', |out| {
            out.extend_from_slice(&content[..formats.at]);
            let count = formats.count + width;
            out.extend_from_slice(&(count as u16).to_be_bytes());
            out.extend_from_slice(&content[formats.at + 2..]);
            out.extend(std::iter::repeat_n(0, 2 * width));
        });
        Some(true)
    }

    fn describe(&mut self, content: &[u8]) -> Option<bool> {
        let mut parts = Parts::new(content);
        let (kind, name) = (parts.take(1)?[0], parts.text()?);
        let plan = if kind == b'S' {
            self.statements.get(name).cloned().flatten()
        } else {
            self.portals.get(name).and_then(|portal| portal.plan.clone())
        };
        self.expect(Pending::Describe(plan));
        None
    }

    fn execute(&mut self, content: &[u8]) -> Option<bool> {
        let mut parts = Parts::new(content);
        let (name, limit) = (parts.text()?, parts.long()?);
        let unknown = Portal { plan: None, is_binary: false, bound: self.recording.now() };
        let portal = self.portals.get(name).cloned().unwrap_or(unknown);
        let plan = portal.plan.clone();
        let is = |test: fn(&Plan) -> bool| plan.as_deref().is_some_and(test);
        if is(|plan| plan.verb == Verb::Commit) && self.has_only_preparations() {
            self.tracker.committing();
        }
        let sent = self.recording.now();
        self.expect(Pending::Execute(Execution { portal, sent, versions: Vec::new() }));
        // A limit of rows is none for a statement that returns no rows.
        if !is(|plan| plan.is_silent) || limit == 0 {
            return None;
        }
        put(&mut self.to_server.bytes, b'E', |out| {
            put_text(out, name);
            out.extend_from_slice(&[0; 4]);
        });
        Some(true)
    }

    /// Whether everything before was answered, but for what prepares the next statement.
    fn has_only_preparations(&self) -> bool {
        let mut all = self.pending.iter();
        all.all(|it| matches!(it, Pending::Parse(_) | Pending::Bind | Pending::Describe(_)))
    }

    fn close(&mut self, content: &[u8]) -> Option<bool> {
        let mut parts = Parts::new(content);
        let (kind, name) = (parts.take(1)?[0], parts.text()?);
        self.expect(Pending::Close((kind == b'S').then(|| name.to_vec())));
        None
    }

    /// Plans the statements of a text.
    fn analysed(&mut self, sql: &[u8], types: &[u8]) -> Analysis {
        let nothing = Analysis::Planned(Vec::new());
        if !self.recording.is_recording() {
            return nothing;
        }
        let Ok(text) = std::str::from_utf8(sql) else { return nothing };
        let Some((tokens, comments)) = tokens(text) else { return nothing };
        let parts = statements(&tokens);
        let shapes: Vec<Shape> = parts.iter().map(|part| shape(text, part)).collect();
        let may_rewrite = self.status != b'E' && !self.is_skipping && self.has_standard_strings;
        if may_rewrite && self.asks(&shapes) {
            return Analysis::Waiting;
        }
        let mut planned = Vec::with_capacity(parts.len());
        for (part, shape) in parts.iter().zip(&shapes) {
            let statement = self.recording.statement(normalised(text, part, &comments));
            let (start, end) = (part[0].start, part[part.len() - 1].end);
            let plan = if may_rewrite {
                match self.tried(
                    Plan::of(shape, statement, &self.catalog),
                    shape,
                    (text, part),
                    types,
                ) {
                    Some(plan) => plan,
                    None => return Analysis::Waiting,
                }
            } else {
                // Nothing is carried out in a transaction that has failed, but its end.
                Plan::unchanged(shape, statement, None)
            };
            planned.push(Planned { plan, start, end });
        }
        Analysis::Planned(planned)
    }

    /// Asks what the names in these statements stand for, if that is not known.
    fn asks(&mut self, shapes: &[Shape]) -> bool {
        let generation = self.recording.generation.load(Ordering::Relaxed);
        if generation != self.generation {
            self.generation = generation;
            self.catalog.forget();
        }
        let of_rows = |shape: &&Shape| {
            let verb = &shape.verb;
            shape.opaque.is_none()
                && matches!(verb, Verb::Select { .. } | Verb::Insert | Verb::Update | Verb::Delete)
        };
        let shapes = || shapes.iter().filter(of_rows);
        let tables: Vec<&str> =
            shapes().flat_map(|it| &it.tables).map(|it| it.name.as_str()).collect();
        let functions: Vec<&str> = shapes().flat_map(|it| &it.calls).map(String::as_str).collect();
        let Some(question) = self.catalog.unknown(&tables, &functions) else { return false };
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let names = (owned(&tables), owned(&functions));
        // Else what was sent before may still change what the question is asked in.
        if self.is_in_batch || self.pending.is_empty() {
            self.ask_catalog(&question, names);
        }
        true
    }

    /// The plan, if the server is known to understand it; nothing if that is being tried.
    fn tried(
        &mut self,
        plan: Plan,
        shape: &Shape,
        (text, part): (&str, &[Token]),
        types: &[u8],
    ) -> Option<Plan> {
        let Some((place, added)) = &plan.added else { return Some(plan) };
        let reason = match self.recording.is_understood(plan.statement, added) {
            Some(true) => return Some(plan),
            Some(false) => "the server refuses it with more columns",
            None => {
                let (start, end) = (part[0].start, part[part.len() - 1].end);
                let sql = format!("{}{added}{}", &text[start..*place], &text[*place..end]);
                let (added, types) = (added.clone(), types.to_vec());
                let trial = Trial { statement: plan.statement, added, sql, types };
                if !self.is_in_batch {
                    if self.pending.is_empty() {
                        self.try_statement(trial);
                    }
                    return None;
                }
                let is_noted =
                    |it: &Trial| it.statement == trial.statement && it.added == trial.added;
                if !self.trials.iter().any(is_noted) {
                    self.trials.push(trial);
                }
                "its first run, inside of a batch"
            }
        };
        Some(Plan::unchanged(shape, plan.statement, Some(reason)))
    }
}

/// The place of what was added, and its length, in characters.
fn added_characters(text: &str, plan: &Plan) -> Option<(usize, usize)> {
    let (place, added) = plan.added.as_ref()?;
    Some((text[..*place].chars().count(), added.chars().count()))
}

/// The text with what was added to its statements; nothing if that is nothing.
fn rewritten(text: &str, planned: &[Planned]) -> Option<String> {
    let mut result = String::new();
    let mut copied = 0;
    for it in planned {
        let Some((place, added)) = &it.plan.added else { continue };
        debug_assert!((it.start..=it.end).contains(place), "columns are added inside");
        result.push_str(&text[copied..*place]);
        result.push_str(added);
        copied = *place;
    }
    if copied == 0 {
        return None;
    }
    result.push_str(&text[copied..]);
    Some(result)
}

/// The formats of columns in a `Bind`.
struct Formats {
    /// Where their count stands.
    at: usize,
    count: usize,
    first: usize,
}

fn result_formats(parts: &mut Parts<'_>) -> Option<Formats> {
    let of_parameters = parts.short()?;
    parts.take(2 * of_parameters)?;
    let values = parts.short()?;
    for _ in 0..values {
        parts.column()?;
    }
    let at = parts.at;
    let count = parts.short()?;
    let first = if count > 0 { parts.short()? } else { 0 };
    Some(Formats { at, count, first })
}

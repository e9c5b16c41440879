//! Operations of Jepsen, however they are written down, become transactions.
//!
//! A harness records one line when a client sends an operation and one when it
//! learns the result. Readers of the notations (EDN, JSON, tab-separated text)
//! deliver [`Record`]s in batches; the [`Assembly`] pairs them by process, decides
//! how each pair ended, and hands the pair to [`Understanding`], which knows what
//! the values mean. See `docs/formats/jepsen.md` for the reading taken of each thing.

pub(super) mod edn;
pub(super) mod json;
mod meaning;
mod notation;
#[cfg(test)]
mod tests;
pub(super) mod txt;
mod value;
mod write;

use self::meaning::{Draft, Function, RefusedSet};
use self::value::Understanding;
use super::form::{Form, Node};
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::history::{ALWAYS, Interval, NEVER, PositionUnit, SessionId};
use crate::value::Value;
use hashbrown::{HashMap, HashSet};

/// What a line says about its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Invoke,
    Ok,
    Fail,
    Info,
}

impl Step {
    /// The step of this name.
    pub(crate) fn named(name: &[u8]) -> Option<Step> {
        match name {
            b"invoke" => Some(Step::Invoke),
            b"ok" => Some(Step::Ok),
            b"fail" => Some(Step::Fail),
            b"info" => Some(Step::Info),
            _ => None,
        }
    }
}

/// One line of a history. Places count from the record's own first node and byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) step: Step,
    pub(crate) line: u32,
    pub(crate) index: Option<i64>,
    pub(crate) time: Option<i64>,
    pub(crate) process: Node,
    pub(crate) function: Node,
    /// Key-value stores name their key beside the value.
    pub(crate) key: Node,
    /// The first node of the value.
    pub(crate) value: Option<u32>,
    /// The first node of the error.
    pub(crate) error: Option<u32>,
    /// Where the record's nodes and bytes begin in its batch, and how many there are.
    pub(crate) nodes: (u32, u32),
    pub(crate) bytes: (u32, u32),
}

impl Record {
    pub(crate) fn new(line: u32) -> Record {
        Record {
            step: Step::Info,
            line,
            index: None,
            time: None,
            process: Node::Nil,
            function: Node::Nil,
            key: Node::Nil,
            value: None,
            error: None,
            nodes: (0, 0),
            bytes: (0, 0),
        }
    }
}

/// Records with the nodes and bytes they refer to.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) records: Vec<Record>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) bytes: Vec<u8>,
}

impl Batch {
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.nodes.clear();
        self.bytes.clear();
    }

    #[inline]
    pub(crate) fn views(&self) -> impl Iterator<Item = View<'_>> {
        self.records.iter().map(|record| {
            let (node, nodes) = (record.nodes.0 as usize, record.nodes.1 as usize);
            let (byte, bytes) = (record.bytes.0 as usize, record.bytes.1 as usize);
            View {
                record,
                nodes: &self.nodes[node..node + nodes],
                bytes: &self.bytes[byte..byte + bytes],
            }
        })
    }
}

/// A record and what it refers to.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) record: &'a Record,
    nodes: &'a [Node],
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    #[inline]
    pub(crate) fn value(self) -> Form<'a> {
        self.at(self.record.value)
    }

    pub(crate) fn error(self) -> Form<'a> {
        self.at(self.record.error)
    }

    #[inline]
    pub(crate) fn function(self) -> Form<'a> {
        Form::new(std::slice::from_ref(&self.record.function), self.bytes)
    }

    pub(crate) fn key(self) -> Form<'a> {
        Form::new(std::slice::from_ref(&self.record.key), self.bytes)
    }

    #[inline]
    fn process(self) -> Form<'a> {
        Form::new(std::slice::from_ref(&self.record.process), self.bytes)
    }

    #[inline]
    fn at(self, node: Option<u32>) -> Form<'a> {
        let nodes = node.and_then(|node| self.nodes.get(node as usize..));
        Form::new(nodes.unwrap_or_default(), self.bytes)
    }
}

/// A record kept beyond its batch.
#[derive(Clone)]
pub(crate) struct Kept {
    record: Record,
    nodes: Vec<Node>,
    bytes: Vec<u8>,
}

impl Kept {
    pub(crate) fn new(view: View<'_>) -> Kept {
        Kept { record: *view.record, nodes: view.nodes.to_vec(), bytes: view.bytes.to_vec() }
    }

    /// The same as [`Kept::new`] in the memory of a record no longer needed.
    fn replace(&mut self, view: View<'_>) {
        self.record = *view.record;
        self.nodes.clear();
        self.nodes.extend_from_slice(view.nodes);
        self.bytes.clear();
        self.bytes.extend_from_slice(view.bytes);
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { record: &self.record, nodes: &self.nodes, bytes: &self.bytes }
    }
}

/// Remarks of one kind beyond this many are counted, not kept.
const REMARKS_MAX: u32 = 1000;
/// Indices up to here are remembered in a bit each.
const DENSE_INDEX_MAX: usize = 1 << 27;

/// Pairs invocations with completions and fills a builder.
pub(crate) struct Assembly<'b> {
    builder: &'b mut HistoryBuilder,
    understanding: Understanding,
    by_label: HashMap<Value, usize>,
    processes: Vec<Process>,
    /// Client records so far; their order stands for time where no time is given.
    ordinal: i64,
    has_time: bool,
    has_invocations: bool,
    /// Lines of completions whose invocation is missing, while it is not known
    /// whether the history has invocations at all.
    lonely: Vec<u32>,
    indices: Indices,
    remarks: HashMap<&'static str, u32>,
}

struct Process {
    label: Value,
    session: Option<SessionId>,
    open: bool,
    /// Meaningful while `open`; its memory is used again.
    invocation: Option<Kept>,
    invoked: i64,
    crashed: bool,
}

impl<'b> Assembly<'b> {
    pub(crate) fn new(
        builder: &'b mut HistoryBuilder,
        file: &str,
        refused_set: RefusedSet,
    ) -> Self {
        builder.position_unit(PositionUnit::Line);
        Assembly {
            builder,
            understanding: Understanding::new(file, refused_set),
            by_label: HashMap::new(),
            processes: Vec::new(),
            ordinal: 0,
            has_time: false,
            has_invocations: false,
            lonely: Vec::new(),
            indices: Indices::default(),
            remarks: HashMap::new(),
        }
    }

    /// Takes the next records of the source.
    pub(crate) fn add(&mut self, batch: &Batch) -> Result<(), ReadError> {
        for view in batch.views() {
            self.record(view)?;
        }
        Ok(())
    }

    /// Ends what is still open and settles what could only be known at the end.
    pub(crate) fn finish(mut self) -> Result<(), ReadError> {
        let mut open: Vec<usize> =
            (0..self.processes.len()).filter(|&process| self.processes[process].open).collect();
        open.sort_by_key(|&process| self.processes[process].invoked);
        for process in open {
            self.complete(process, None)?;
        }
        let order_is_time = self.has_invocations && !self.has_time;
        self.understanding.finish(self.builder, order_is_time)?;
        if order_is_time {
            self.remark("order-as-time", 0, || {
                "no operation has a time, so the order of the lines is taken as real time".into()
            });
        }
        if self.has_invocations {
            for line in std::mem::take(&mut self.lonely) {
                self.lonely(line);
            }
        }
        let mut beyond: Vec<(&'static str, u32)> = self.remarks.drain().collect();
        beyond.sort_unstable();
        for (kind, count) in beyond {
            if count > REMARKS_MAX {
                self.builder.position(0);
                let more = count - REMARKS_MAX;
                self.builder.remark(kind, format!("{more} more like these"));
            }
        }
        Ok(())
    }

    fn record(&mut self, view: View<'_>) -> Result<(), ReadError> {
        let record = view.record;
        if let Some(index) = record.index
            && !self.indices.insert(index)
        {
            self.remark("duplicate-index", record.line, || {
                format!("index {index} was used before")
            });
        }
        let process = self.process(view);
        let is_client = matches!(record.process, Node::Int(_) | Node::Nil)
            || (view.process().word() != Some(b"nemesis")
                && (record.step != Step::Info || self.processes[process].open));
        if !is_client {
            self.event(view);
            return Ok(());
        }
        self.has_time |= record.time.is_some();
        self.ordinal += 1;
        match record.step {
            Step::Invoke => self.invoke(process, view),
            _ => self.complete(process, Some(view)),
        }
    }

    #[inline]
    fn process(&mut self, view: View<'_>) -> usize {
        let label = view.process().value(self.builder.values());
        *self.by_label.entry(label).or_insert_with(|| {
            self.processes.push(Process {
                label,
                session: None,
                open: false,
                invocation: None,
                invoked: 0,
                crashed: false,
            });
            self.processes.len() - 1
        })
    }

    fn event(&mut self, view: View<'_>) {
        let parts = [view.process(), view.function(), view.value()];
        let text: Vec<String> =
            parts.iter().filter(|part| !part.is_nil()).map(|part| part.notation()).collect();
        self.builder.position(view.record.line);
        self.builder.event(view.record.time, text.join(" "));
    }

    fn invoke(&mut self, index: usize, view: View<'_>) -> Result<(), ReadError> {
        self.has_invocations = true;
        let line = view.record.line;
        let process = &self.processes[index];
        let label = process.label;
        if process.open {
            self.complete(index, None)?;
            if label != Value::NIL {
                let shown = view.process().notation();
                self.remark("reused-process", line, || {
                    format!("process {shown} sends an operation while its last one is open")
                });
            }
        } else if process.crashed && label != Value::NIL {
            let shown = view.process().notation();
            self.remark("reused-process", line, || {
                format!("process {shown} goes on after an operation whose result it never learned")
            });
        }
        let process = &mut self.processes[index];
        match &mut process.invocation {
            Some(kept) => kept.replace(view),
            None => process.invocation = Some(Kept::new(view)),
        }
        process.open = true;
        process.crashed = false;
        process.invoked = self.ordinal;
        Ok(())
    }

    /// Ends the open operation of a process, or one that never was invoked.
    fn complete(&mut self, index: usize, completion: Option<View<'_>>) -> Result<(), ReadError> {
        let session = self.session(index);
        let process = &mut self.processes[index];
        let was_open = std::mem::replace(&mut process.open, false);
        let step = completion.map_or(Step::Info, |view| view.record.step);
        process.crashed = step == Step::Info;
        let invoked = if was_open { process.invoked } else { ALWAYS };
        let kept = process.invocation.take();
        let invocation = kept.as_ref().filter(|_| was_open).map(Kept::view);
        let Some(last) = completion.or(invocation) else {
            return Ok(());
        };
        if invocation.is_none() {
            self.lonely(last.record.line);
        }
        if step == Step::Fail {
            self.remark_timeout(last);
        }
        let ends = matches!(step, Step::Ok | Step::Fail);
        let order = Interval { invoked, completed: if ends { self.ordinal } else { NEVER } };
        let values = self.builder.values();
        let draft = Draft {
            session,
            step,
            line: last.record.line,
            label: last.record.index.map_or(Value::NIL, |index| values.int(index)),
            error: last.error().value(values),
            function: Function::of(last, values).or_else(|| Function::of(invocation?, values)),
            interval: interval(invocation, completion.filter(|_| ends)),
            order: (!self.has_time).then_some(order),
        };
        let source = match (step, invocation, completion) {
            // What a client asked for is what it may have written. The completion
            // of a failure often carries nothing, or the error once more.
            (Step::Fail | Step::Info, Some(asked), Some(told))
                if !told.value().is_like(asked.value()) =>
            {
                asked
            }
            _ => last,
        };
        self.understanding.take(self.builder, draft, source)?;
        self.processes[index].invocation = kept;
        Ok(())
    }

    #[inline]
    fn session(&mut self, index: usize) -> SessionId {
        let process = &mut self.processes[index];
        match process.session {
            Some(session) => session,
            // Without a process nothing is known about the order of a client's
            // transactions, so each is a session of its own.
            None if process.label == Value::NIL => self.builder.new_session(Value::NIL),
            None => *process.session.insert(self.builder.session(process.label)),
        }
    }

    /// A completion whose invocation is missing, which is worth a remark only
    /// where others have theirs.
    fn lonely(&mut self, line: u32) {
        if self.has_invocations {
            self.remark("completion-without-invocation", line, || {
                "nothing was sent that this could be the result of".into()
            });
        } else if self.lonely.len() < REMARKS_MAX as usize {
            self.lonely.push(line);
        }
    }

    fn remark_timeout(&mut self, view: View<'_>) {
        // Some clients put a keyword that says why in the place of the value.
        let told = if view.error().is_nil() { view.value() } else { view.error() };
        let error = told.notation();
        if told.is_nil() || (view.error().is_nil() && !error.starts_with(':')) {
            return;
        }
        let lower = error.to_lowercase();
        // A refused connection is a certain failure: nothing was sent.
        let is_uncertain = ["timeout", "timed-out", "timed out", "unknown", "connection"]
            .iter()
            .any(|word| lower.contains(word))
            && !lower.contains("refused");
        if is_uncertain {
            self.remark("fail-after-timeout", view.record.line, || {
                format!("recorded as failed, although its result may be unknown: {error}")
            });
        }
    }

    fn remark(&mut self, kind: &'static str, line: u32, text: impl FnOnce() -> String) {
        let count = self.remarks.entry(kind).or_insert(0);
        *count += 1;
        if *count <= REMARKS_MAX {
            self.builder.position(line);
            self.builder.remark(kind, text());
        }
    }
}

fn interval(invocation: Option<View<'_>>, completion: Option<View<'_>>) -> Interval {
    let time = |view: Option<View<'_>>| view.and_then(|view| view.record.time);
    Interval {
        invoked: time(invocation).unwrap_or(ALWAYS),
        completed: time(completion).unwrap_or(NEVER),
    }
}

/// The indices seen so far.
#[derive(Default)]
struct Indices {
    dense: Vec<u64>,
    sparse: HashSet<i64>,
}

impl Indices {
    /// Whether the index is new.
    #[inline]
    fn insert(&mut self, index: i64) -> bool {
        let dense = usize::try_from(index).ok();
        let Some(dense) = dense.filter(|&index| index < DENSE_INDEX_MAX) else {
            return self.sparse.insert(index);
        };
        let (word, bit) = (dense >> 6, 1u64 << (dense & 63));
        if self.dense.len() <= word {
            self.dense.resize(word + 1, 0);
        }
        let is_new = self.dense[word] & bit == 0;
        self.dense[word] |= bit;
        is_new
    }
}

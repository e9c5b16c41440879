//! Traces from files: each is a stream like a connection, and several are read together. A
//! recorded history with times is a trace, too.

use super::hub::Hub;
use super::stream::{End, Stream};
use super::tap::REGISTERS;
use crate::exit::Failure;
use isolde::online::{Batch, Cell, Content, Key, Traced, from_history};
use isolde_history::format::{self, Input, ReadOptions};
use isolde_history::trace::{Decoder, Sink, is_trace};
use isolde_history::{Condition, Datum, History, Op, OpKind, Place, ReadError, Source, Value};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are taken of one file before the next one's turn.
const TURN_BYTES: usize = 1 << 16;
/// Events of a history that are left at a time.
const TURN_EVENTS: usize = 1 << 12;

/// Files that were opened.
pub(super) enum Files {
    Traces(Vec<Reading>),
    History(Recorded),
}

/// A trace that is being read.
pub(super) struct Reading {
    source: Source<'static>,
    decoder: Decoder,
    stream: Stream,
    is_done: bool,
}

/// A history as a trace.
pub(super) struct Recorded {
    batch: Batch,
    names: Vec<String>,
    pub(super) initial: Vec<Cell>,
    pub(super) unwritten: Content,
}

/// Opens traces, or one history.
pub(super) fn open(
    paths: &[PathBuf],
    hub: &Arc<Hub>,
    memory_max: Option<usize>,
) -> Result<Files, Failure> {
    let mut readings: Vec<Reading> = Vec::new();
    for path in paths {
        match open_one(path)? {
            Input::File(source) if is_trace(source.window()) => {
                let stream = Stream::new(hub, None, None);
                readings.push(Reading { source, decoder: Decoder::new(), stream, is_done: false });
            }
            history if paths.len() == 1 => return recorded(history, hub, memory_max),
            history => {
                let message = "expected a trace, or a history alone, found a history among others";
                return Err(ReadError::new(history.name(), message).into());
            }
        }
    }
    Ok(Files::Traces(readings))
}

/// Opens a file and looks at its first bytes.
fn open_one(path: &Path) -> Result<Input<'static>, ReadError> {
    let mut input = format::open(path)?;
    if let Input::File(source) = &mut input {
        source.fill_to(64)?;
    }
    Ok(input)
}

fn recorded(
    input: Input<'static>,
    hub: &Arc<Hub>,
    memory_max: Option<usize>,
) -> Result<Files, Failure> {
    let name = input.name().to_owned();
    let options = ReadOptions { memory_max, ..ReadOptions::default() };
    let (history, _) = format::read_detected(input, options).map_err(advised)?;
    if history.txn_count() == 0 {
        return Err(ReadError::new(&name, "expected transactions, found a history of none").into());
    }
    let Some(Traced { batch, initial, unwritten, absences }) = from_history(&history) else {
        let message = "expected a history with times, found one without";
        return Err(ReadError::new(&name, message).into());
    };
    hub.absences.fetch_add(absences, Ordering::Relaxed);
    name_keys(&history, hub);
    name_contents(&history, hub);
    let names = history
        .sessions()
        .map(|session| format!("session {}", history.datum(history.session_label(session))));
    let names = names.collect();
    Ok(Files::History(Recorded { batch, names, initial, unwritten }))
}

/// A format cannot be named here: what `--from` names is the file.
fn advised(error: ReadError) -> ReadError {
    if error.hint.as_deref() != Some(format::UNRECOGNISED_HINT) {
        return error;
    }
    error.hint(
        "watch takes traces, which begin with their head, and histories with times, which \
         `isolde convert FILE --from FORMAT --to log` makes of other formats",
    )
}

/// Keys get the ids that they have in the history: nobody has named anything before.
fn name_keys(history: &History, hub: &Hub) {
    let mut catalogue = hub.catalogue();
    for key in history.keys() {
        let name = history.datum(history.key_name(key));
        let mut text = name.to_string();
        if let Datum::Int(number) = name
            && let Ok(number) = i64::try_from(number)
        {
            catalogue.place(REGISTERS, Key::Number(number), None);
        }
        // A word and a text may be written alike, and are two keys.
        while catalogue.item_count() <= key.index() {
            catalogue.place(REGISTERS, Key::Text(&text), None);
            text.push('\'');
        }
    }
}

/// Values that are no numbers are told as they are written, the last of them if there are many.
/// Counts operations by condition by the way.
fn name_contents(history: &History, hub: &Hub) {
    let mut catalogue = hub.catalogue();
    let mut name = |value: Value| match history.datum(value) {
        Datum::Nil | Datum::Unknown => {}
        Datum::Int(number) if i64::try_from(number).is_ok() => {}
        datum => {
            catalogue.content(&datum.to_string());
        }
    };
    let mut conditions = 0;
    for op in history.txns().flat_map(|txn| history.ops_of(txn)) {
        match history.op(op) {
            Op { kind: OpKind::ReadList, .. } => {
                history.list(op).last().copied().into_iter().for_each(&mut name);
            }
            Op { kind, .. } if !kind.has_key() => {
                let predicate = history.predicate(op);
                let is_range = matches!(predicate.condition, Condition::KeyRange { .. });
                conditions += u64::from(!is_range || predicate.aggregate.is_some());
                predicate.rows.iter().for_each(|row| name(row.value));
            }
            Op { value, .. } => name(value),
        }
    }
    history.declared_initial().iter().for_each(|(_, value)| name(*value));
    hub.conditions.fetch_add(conditions, Ordering::Relaxed);
}

impl Files {
    /// Leaves everything for the watch.
    pub(super) fn feed(self, hub: &Arc<Hub>, stop: &AtomicBool) -> Result<(), Failure> {
        match self {
            Files::Traces(readings) => feed(readings, hub, stop).map_err(Failure::Read),
            Files::History(recorded) => {
                recorded.feed(hub, stop);
                Ok(())
            }
        }
    }
}

/// Reads all traces to their ends.
fn feed(mut readings: Vec<Reading>, hub: &Arc<Hub>, stop: &AtomicBool) -> Result<(), ReadError> {
    let mut result = Ok(());
    while result.is_ok() && readings.iter().any(|reading| !reading.is_done) {
        for reading in readings.iter_mut().filter(|reading| !reading.is_done) {
            hub.wait_for_room(stop);
            if stop.load(Ordering::Relaxed) {
                reading.is_done = true;
                continue;
            }
            result = result.and(reading.turn());
        }
    }
    for reading in &mut readings {
        let end = if reading.decoder.is_inside() { End::Broken } else { End::Whole };
        reading.stream.end(end);
        // Nothing is saved of files.
        let _ = reading.stream.publish();
    }
    result
}

impl Reading {
    fn turn(&mut self) -> Result<(), ReadError> {
        if self.source.window().is_empty() && !self.source.fill()? {
            self.is_done = true;
            if self.decoder.is_inside() {
                let message = "expected the end of a message, found the end of the file";
                return Err(self.error(message));
            }
            return Ok(());
        }
        let count = self.source.window().len().min(TURN_BYTES);
        let bytes = &self.source.window()[..count];
        let read = self.decoder.take(bytes, &mut self.stream as &mut dyn Sink);
        self.source.consume(count);
        // Nothing is saved of files.
        let _ = self.stream.publish();
        read.map_err(|message| self.error(&message))
    }

    fn error(&self, message: &str) -> ReadError {
        let number = self.decoder.messages() + 1;
        ReadError::new(self.source.name(), message).at(Place::Record(number))
    }
}

impl Recorded {
    fn feed(&self, hub: &Arc<Hub>, stop: &AtomicBool) {
        let first = self.batch.events.first().map_or(0, |event| event.interval.invoked);
        let mut producers: Vec<_> = self.names.iter().map(|name| hub.open(name, first)).collect();
        for turn in self.batch.events.chunks(TURN_EVENTS) {
            hub.wait_for_room(stop);
            if stop.load(Ordering::Relaxed) {
                return;
            }
            for event in turn {
                let producer = &mut producers[event.client.index()];
                let mut event = *event;
                event.client = producer.id();
                producer.push(event, self.batch.cells_of(&event));
            }
            // They are in order, so what follows comes later than the last of them.
            let last = turn.last().map_or(first, |event| event.interval.invoked);
            for producer in &mut producers {
                producer.publish(last);
            }
        }
    }
}

//! Traces from files: each is a stream like a connection, and several are read together.

use super::hub::Hub;
use super::protocol::{Decoder, Sink};
use super::stream::Stream;
use crate::exit::Failure;
use isolde_history::format;
use isolde_history::{Place, ReadError, Source};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are taken of one file before the next one's turn.
const TURN_BYTES: usize = 1 << 16;

struct Reading {
    source: Source<'static>,
    decoder: Decoder,
    stream: Stream,
    is_done: bool,
}

/// Reads all files to their ends.
pub(super) fn feed(paths: &[PathBuf], hub: &Arc<Hub>, stop: &AtomicBool) -> Result<(), Failure> {
    let mut readings: Vec<Reading> = Vec::new();
    for path in paths {
        readings.push(open(path, hub)?);
    }
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
        reading.stream.end(!reading.decoder.is_inside());
        // Nothing is saved of files.
        let _ = reading.stream.publish();
    }
    result.map_err(Failure::Read)
}

fn open(path: &Path, hub: &Arc<Hub>) -> Result<Reading, Failure> {
    let source = format::open(path)?.file()?;
    let stream = Stream::new(hub, None, None);
    Ok(Reading { source, decoder: Decoder::new(), stream, is_done: false })
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
        let read =
            self.decoder.take(&self.source.window()[..count], &mut self.stream as &mut dyn Sink);
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

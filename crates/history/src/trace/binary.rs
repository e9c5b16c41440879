//! A binary frame as a message.

use super::{Hello, Kind, MESSAGE_BYTES_MAX, ROWS_MAX, Row, Scalar, Sink, Unit};
use crate::history::NEVER;

/// Kinds of frames before, after and among the events.
const HELLO: u8 = 0;
const NAME: u8 = 1;
const CLIENT: u8 = 2;
/// The number of the first kind of event.
pub(super) const EVENTS: u8 = 3;
const HEARTBEAT: u8 = 10;
const BYE: u8 = 11;

/// Names of tables and columns in one stream.
const NAMES_MAX: usize = 1 << 16;
/// How long each of them may be. A row names them by number, so a long one would be a thousand
/// times as long where rows are written out.
const NAME_BYTES_MAX: usize = 255;
/// Clients in one stream.
const CLIENTS_MAX: usize = 1 << 16;

/// What frames before have said.
#[derive(Default)]
pub(super) struct Reader {
    unit: Option<Unit>,
    names: Vec<String>,
    /// Numbers that the sink gave, by numbers that the stream gives.
    clients: Vec<u32>,
}

/// The first frame without its length, and how long it is with it.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > MESSAGE_BYTES_MAX {
        return Err(format!(
            "expected a frame of 1 to {MESSAGE_BYTES_MAX} bytes, found a length of {length}"
        ));
    }
    Ok(rest.get(..length).map(|frame| (frame, 4 + length)))
}

impl Reader {
    pub(super) fn message(&mut self, bytes: &[u8], sink: &mut dyn Sink) -> Result<(), String> {
        let mut frame = Frame(bytes);
        let kind = frame.byte()?;
        let done = match (self.unit, kind) {
            (None, HELLO) => self.hello(&mut frame, sink),
            (None, _) => Err(format!("expected a head, which is of kind 0, found kind {kind}")),
            (Some(_), NAME) => self.name(&mut frame),
            (Some(_), CLIENT) => self.client(&mut frame, sink),
            (Some(unit), HEARTBEAT) => {
                let client = self.known_client(&mut frame)?;
                sink.heartbeat(Some(client), unit.time(frame.number()?)?)
            }
            (Some(_), BYE) => {
                let client = self.known_client(&mut frame)?;
                sink.bye(Some(client))
            }
            (Some(unit), _) => self.event(unit, kind, &mut frame, sink),
        };
        done?;
        if frame.0.is_empty() {
            return Ok(());
        }
        Err(format!("expected the end of the frame, found {} more bytes", frame.0.len()))
    }

    fn hello(&mut self, frame: &mut Frame<'_>, sink: &mut dyn Sink) -> Result<(), String> {
        let client = frame.text()?;
        let token = frame.text()?;
        let unit = frame.byte()?;
        let known = Unit::ALL.get(usize::from(unit));
        let (_, unit) =
            known.ok_or_else(|| format!("expected a unit from 0 to 3, found {unit}"))?;
        // Streams without an identity may leave it out.
        let resume = if frame.0.is_empty() { "" } else { frame.text()? };
        let token = (!token.is_empty()).then_some(token);
        let resume = (!resume.is_empty()).then_some(resume);
        sink.hello(Hello { client: Some(client), token, resume, is_merged: false })?;
        self.clients.push(sink.client(client)?);
        self.unit = Some(*unit);
        Ok(())
    }

    fn name(&mut self, frame: &mut Frame<'_>) -> Result<(), String> {
        if self.names.len() == NAMES_MAX {
            return Err(format!("expected at most {NAMES_MAX} names"));
        }
        let name = frame.text()?;
        if name.len() > NAME_BYTES_MAX {
            let length = name.len();
            return Err(format!(
                "expected a name of at most {NAME_BYTES_MAX} bytes, found {length}"
            ));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    fn client(&mut self, frame: &mut Frame<'_>, sink: &mut dyn Sink) -> Result<(), String> {
        if self.clients.len() == CLIENTS_MAX {
            return Err(format!("expected at most {CLIENTS_MAX} clients"));
        }
        self.clients.push(sink.client(frame.text()?)?);
        Ok(())
    }

    fn known_client(&self, frame: &mut Frame<'_>) -> Result<u32, String> {
        let number = frame.varint()?;
        let known = usize::try_from(number).ok().and_then(|number| self.clients.get(number));
        known.copied().ok_or_else(|| {
            format!("expected a client below {}, found {number}", self.clients.len())
        })
    }

    fn known_name(&self, number: u64) -> Result<&str, String> {
        let known = usize::try_from(number).ok().and_then(|number| self.names.get(number));
        known
            .map(String::as_str)
            .ok_or_else(|| format!("expected a name below {}, found {number}", self.names.len()))
    }

    fn event(
        &self,
        unit: Unit,
        kind: u8,
        frame: &mut Frame<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), String> {
        let known = kind.checked_sub(EVENTS).and_then(|place| Kind::ALL.get(usize::from(place)));
        let &(_, kind) =
            known.ok_or_else(|| format!("expected a kind from 0 to {BYE}, found {kind}"))?;
        let client = self.known_client(frame)?;
        let txn = frame.varint()?;
        let invoked = frame.number()?;
        let completed = frame.number()?;
        let interval = unit.interval(invoked, (completed != NEVER).then_some(completed))?;
        let mut rows = Vec::new();
        if kind.has_rows() {
            let count = frame.varint()?;
            // A row takes at least four bytes: no length is believed before they are there.
            if count > ROWS_MAX as u64 || count > frame.0.len() as u64 / 4 {
                return Err(format!("expected that many rows, found too few bytes for {count}"));
            }
            for _ in 0..count {
                rows.push(self.row(frame)?);
            }
            if rows.is_empty() && kind == Kind::Write {
                return Err("expected rows that were written, found none".into());
            }
        }
        sink.event(client, txn, kind, interval, &rows)
    }

    fn row<'row, 'frame: 'row>(&'row self, frame: &mut Frame<'frame>) -> Result<Row<'row>, String> {
        let table = self.known_name(frame.varint()?)?;
        let key = frame.scalar()?;
        if key == Scalar::Absent {
            return Err("expected the key of a row, found nothing".into());
        }
        let column = match frame.varint()?.checked_sub(1) {
            None => None,
            Some(name) => Some(self.known_name(name)?),
        };
        Ok(Row { table, key, column, value: frame.scalar()? })
    }
}

/// What is left of a frame.
struct Frame<'a>(&'a [u8]);

impl<'a> Frame<'a> {
    fn byte(&mut self) -> Result<u8, String> {
        let (&byte, rest) = self.0.split_first().ok_or_else(ended)?;
        self.0 = rest;
        Ok(byte)
    }

    /// Eight bytes, the lowest first.
    fn number(&mut self) -> Result<i64, String> {
        let (number, rest) = self.0.split_first_chunk().ok_or_else(ended)?;
        self.0 = rest;
        Ok(i64::from_le_bytes(*number))
    }

    /// Seven bits a byte, the lowest first; all but the last have the eighth bit set.
    fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("expected a number of at most 64 bits, found a longer one".into())
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let length = usize::try_from(self.varint()?).map_err(|_| ended())?;
        let (text, rest) = self.0.split_at_checked(length).ok_or_else(ended)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| "expected a text in UTF-8, found other bytes".into())
    }

    fn scalar(&mut self) -> Result<Scalar<'a>, String> {
        match self.byte()? {
            0 => Ok(Scalar::Absent),
            1 => {
                let number = self.varint()?;
                let magnitude = i64::try_from(number >> 1).expect("63 bits fit");
                Ok(Scalar::Integer(if number & 1 == 0 { magnitude } else { !magnitude }))
            }
            2 => Ok(Scalar::Text(self.text()?)),
            other => {
                Err(format!("expected nothing (0), a number (1) or a text (2), found {other}"))
            }
        }
    }
}

fn ended() -> String {
    "expected more, found the end of the frame".into()
}

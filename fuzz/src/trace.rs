//! What the target of traces does with its bytes: take them for a stream, and verify what it says.
//!
//! A stream says the same whole and in pieces. What it says can be written and read again.
//! Any stream can be verified: what is disorder in it is counted, and nothing panics.

use isolde::online::{
    Batch, Catalogue, Cell, CellSpan, Certifier, ClientId, Content, Dml, Event, EventKind, Interval,
    Key, Locks, Options, Pipeline, PipelineOptions, Profile, Reads, Room, Verifier, Writers,
};
use isolde_history::Time;
use isolde_history::trace::{Decoder, Hello, Kind, Row, Scalar, Sink, write};
use std::collections::BTreeMap;

/// Everything that a verifier can do at once.
const PROFILES: [Profile; 2] = [
    Profile {
        reads: Reads::FirstRequest,
        dml: Dml::Snapshot,
        writers: Writers::FirstUpdater,
        locks: Locks::Writes,
        certifier: Certifier::DangerousStructure,
        ..Profile::NONE
    },
    Profile {
        reads: Reads::Statement,
        dml: Dml::Current,
        locks: Locks::ReadsAndWrites,
        certifier: Certifier::Cycles,
        ..Profile::NONE
    },
];

/// Takes bytes for a trace.
pub fn watch(bytes: &[u8]) {
    let whole = Told::of(bytes, bytes.len().max(1));
    // Pieces of every length between one byte and all.
    let piece = 1 + bytes.first().map_or(0, |byte| usize::from(*byte) % 61);
    let pieces = Told::of(bytes, piece);
    assert_eq!(whole.error, pieces.error);
    assert_eq!(whole.lines, pieces.lines);
    if let Some(error) = &whole.error {
        assert!(error.len() < 2000 && !error.contains(char::is_control), "unreadable: {error:?}");
    }
    let again = Told::of(&whole.lines, whole.lines.len().max(1));
    assert_eq!(again.error, None, "{}", whole.lines.escape_ascii());
    assert_eq!(whole.lines.escape_ascii().to_string(), again.lines.escape_ascii().to_string());
    for profile in PROFILES {
        verify(profile, &whole);
    }
}

/// What a stream says, as lines and as events.
struct Told {
    lines: Vec<u8>,
    names: Vec<String>,
    catalogue: Catalogue,
    /// The events of each client.
    clients: BTreeMap<u32, Batch>,
    error: Option<String>,
}

impl Told {
    fn of(bytes: &[u8], piece: usize) -> Told {
        let mut told = Told {
            lines: write::head().into_bytes(),
            names: Vec::new(),
            catalogue: Catalogue::new(16),
            clients: BTreeMap::new(),
            error: None,
        };
        let mut decoder = Decoder::new();
        for bytes in bytes.chunks(piece) {
            if let Err(error) = decoder.take(bytes, &mut told) {
                told.error = Some(error);
                break;
            }
        }
        told
    }
}

impl Sink for Told {
    fn hello(&mut self, _: Hello<'_>) -> Result<(), String> {
        Ok(())
    }

    fn client(&mut self, name: &str) -> Result<u32, String> {
        let known = self.names.iter().position(|known| known == name);
        Ok(known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }) as u32)
    }

    fn event(
        &mut self,
        client: u32,
        txn: u64,
        kind: Kind,
        interval: Interval,
        rows: &[Row<'_>],
    ) -> Result<(), String> {
        let name = &self.names[client as usize];
        write::event(&mut self.lines, name, txn, kind, interval, rows);
        let batch = self.clients.entry(client).or_default();
        let mut cells = Vec::new();
        for Row { table, key, column, value } in rows {
            let key = match key {
                Scalar::Absent => Key::Text(""),
                Scalar::Integer(number) => Key::Number(*number),
                Scalar::Text(text) => Key::Text(text),
            };
            let content = match value {
                Scalar::Absent => Content::ABSENT,
                Scalar::Integer(number) => Content::integer(*number),
                Scalar::Text(text) => self.catalogue.content(text),
            };
            let place = self.catalogue.place(table, key, *column);
            cells.push(Cell { item: place.item, row: place.row, content });
        }
        let place = Kind::ALL.iter().position(|known| known.1 == kind).expect("all are listed");
        let kind = EventKind::ALL[place];
        let client = ClientId(client);
        batch.push(Event { client, txn, interval, kind, cells: CellSpan::NONE }, &cells);
        Ok(())
    }

    fn heartbeat(&mut self, _: Option<u32>, _: Time) -> Result<(), String> {
        Ok(())
    }

    fn bye(&mut self, _: Option<u32>) -> Result<(), String> {
        Ok(())
    }

    fn broken(&mut self, _: u32) -> Result<(), String> {
        Ok(())
    }
}

fn verify(profile: Profile, told: &Told) {
    let mut pipeline = Pipeline::new(PipelineOptions::default());
    let mut verifier = Verifier::new(profile, Options::default());
    for client in told.clients.keys() {
        pipeline.open(ClientId(*client), Time::MIN + 1);
    }
    let mut merged = Batch::default();
    for (client, batch) in &told.clients {
        assert_eq!(pipeline.push(ClientId(*client), batch), Room::Enough);
        pipeline.close(ClientId(*client));
        merged.clear();
        let watermark = pipeline.drain(&mut merged);
        verifier.take(&merged, watermark);
    }
    verifier.finish();
    let kept = verifier.counters();
    assert!(verifier.take_findings().len() as u64 <= kept.findings);
}

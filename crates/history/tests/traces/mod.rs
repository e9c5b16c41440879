//! Damaged traces: an error that names the message, or a stream that says the same in pieces.

use crate::{Damage, INPUT_MEMORY_BYTES_MAX, INPUT_TIME_MAX, INPUTS_PER_FORMAT, LONG_BYTES};
use crate::{Memory, ROOT, seeds_of};
use isolde_history::trace::{Decoder, Hello, Kind, Row, Scalar, Sink, write};
use isolde_history::{Interval, Time};
use std::path::Path;
use std::time::Instant;

/// What a stream says, as lines, and what was wrong with it.
#[derive(Default, PartialEq, Eq)]
struct Told {
    lines: Vec<u8>,
    names: Vec<String>,
    error: Option<String>,
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

fn told(bytes: &[u8], piece: usize) -> Told {
    let mut told = Told { lines: write::head().into_bytes(), ..Told::default() };
    let mut decoder = Decoder::new();
    for bytes in bytes.chunks(piece) {
        if let Err(error) = decoder.take(bytes, &mut told) {
            told.error = Some(error);
            break;
        }
    }
    told
}

/// Takes bytes for a trace.
pub(crate) fn attempt(bytes: &[u8], what: &str) {
    let start = &bytes[..bytes.len().min(500)];
    let place = || format!("{what}: {}", start.escape_ascii());
    let memory = Memory::measure();
    let begun = Instant::now();
    let whole = told(bytes, bytes.len().max(1));
    let (elapsed, kept) = (begun.elapsed(), memory.peak());
    assert!(elapsed < INPUT_TIME_MAX, "{elapsed:?}: {}", place());
    assert!(kept < INPUT_MEMORY_BYTES_MAX, "{kept} bytes: {}", place());
    assert!(whole == told(bytes, 1 + bytes.len() % 61), "pieces say something else: {}", place());
    if let Some(error) = &whole.error {
        let is_placed = error.starts_with("line ") || error.starts_with("frame ");
        assert!(is_placed && error.len() < 2000 && !error.contains(char::is_control), "{error:?}");
    }
    let again = told(&whole.lines, whole.lines.len());
    assert_eq!(again.error, None, "wrote what it cannot read: {}", place());
    assert!(again.lines == whole.lines, "wrote something else: {}", place());
}

#[test]
fn traces_have_a_target_and_seeds_that_can_be_read() {
    assert!(Path::new(&format!("{ROOT}/fuzz/targets/trace.rs")).is_file());
    for (file, seed) in seeds_of("trace") {
        assert_eq!(told(&seed, seed.len()).error, None, "{}", file.display());
    }
}

#[test]
fn damaged_traces_are_read_or_refused_quickly_and_in_little_memory() {
    let seeds: Vec<Vec<u8>> = seeds_of("trace").into_iter().map(|seed| seed.1).collect();
    let mut damage = Damage::new();
    for round in 0..INPUTS_PER_FORMAT {
        attempt(&damage.input(&seeds), &format!("round {round}"));
    }
    for seed in &seeds {
        let end = seed.len() / 2;
        for byte in *b" \n,[{\"0a\0\xff" {
            let long = vec![byte; LONG_BYTES];
            attempt(&[&seed[..end], &long].concat(), "one byte behind half a seed");
        }
        attempt(&seed.repeat(LONG_BYTES / seed.len()), "a seed again and again");
    }
}

/// A frame says in fewer bytes what a line says in more.
#[test]
fn an_event_of_many_rows_is_written_as_lines_that_can_be_read() {
    let rows: Vec<Row<'_>> = (0..60_000)
        .map(|number| Row {
            table: "accounts of customers",
            key: Scalar::Integer(number),
            column: Some("balance"),
            value: Scalar::Absent,
        })
        .collect();
    let mut written = Told { names: vec!["a".into()], ..Told::default() };
    written.lines = write::head().into_bytes();
    let at = Interval { invoked: 1, completed: 2 };
    written.event(0, 1, Kind::Read, at, &rows).expect("it is taken");
    let mut read = Told { lines: write::head().into_bytes(), ..Told::default() };
    let mut decoder = Decoder::new();
    decoder.take(&written.lines, &mut read).expect("lines that are short enough");
    assert!(decoder.messages() > 10, "{} lines", decoder.messages());
    assert!(read.lines == written.lines);
}

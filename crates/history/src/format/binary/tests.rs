//! That the binary format keeps everything and believes nothing.

use super::*;
use crate::builder::HistoryBuilder;
use crate::error::ReadError;
use crate::format::{Input, ReadOptions, read, read_detected};
use crate::history::{History, Interval, OpKind, Outcome, TxnTimes};
use crate::testing::{identical, random_history};
use crate::value::Value;
use crate::{Aggregate, Condition, Function, Predicate, PredicateRow, Snapshot, Source};
use crate::{Timestamp, Timestamps, VersionChain};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use xxhash_rust::xxh64::xxh64;

/// A history with an entry in every column.
fn everything() -> History {
    let mut builder = HistoryBuilder::new();
    let number = |number: u64| Value::small(number).expect("a small number");
    let wide = builder.values().int(-5);
    let (text, word) = (builder.values().text("x y"), builder.values().keyword("k"));
    let other = builder.values().other("1.5");
    let large = builder.values().unsigned(u64::MAX);
    let keys = [number(3), text, word].map(|name| builder.key(name));
    builder.initial_default(number(0));
    builder.initial(keys[1], other);
    let sessions = [number(1), text].map(|label| builder.session(label));
    builder.endpoint(sessions[0], text);
    builder.origin(sessions[1], word);
    builder.position(17);

    let first = builder.begin(sessions[0]);
    builder.label(first, word);
    builder.error(first, other);
    builder.outcome(first, Outcome::Unknown);
    let interval = |invoked, completed| Interval { invoked, completed };
    builder.times(first, TxnTimes { begin: interval(-3, 4), commit: interval(9, 12) });
    let stamp = |physical, logical| Timestamp { physical, logical };
    let timestamps = Timestamps { start: stamp(1, 2), commit: stamp(u64::MAX, 4) };
    builder.timestamps(first, timestamps);
    builder.op(OpKind::Write, keys[0], wide);
    builder.row_column(text, large);
    builder.op_interval(interval(-1, 1));
    builder.read_list(keys[1], &[number(1), text]);

    let second = builder.begin(sessions[1]);
    builder.outcome(second, Outcome::Aborted);
    let conditions = [
        Condition::All,
        Condition::Equals(large),
        Condition::Modulo { modulus: u64::MAX, remainder: 1 },
        Condition::KeyRange { low: Value::NIL, high: wide },
        Condition::ColumnRange { column: text, low: wide, high: word },
        Condition::Notation(other),
        Condition::ValueRange { low: number(1), high: Value::NIL },
    ];
    for condition in conditions {
        let row = |key, value, matched| PredicateRow { key, value, matched };
        let rows = vec![row(keys[0], wide, false), row(keys[2], number(1), true)];
        let aggregate = Some(Aggregate { function: Function::Max, result: wide });
        builder.predicate(OpKind::PredicateRead, Predicate { condition, rows, aggregate });
    }
    builder.op_snapshot(Snapshot { below: 9, except: vec![3, 5] });
    builder.number(second, 7);
    builder.txn_snapshot(first, Snapshot { below: 7, except: Vec::new() });
    builder.version_chain(VersionChain {
        key: keys[2],
        values: vec![number(1), wide],
        numbers: vec![(1, 7)],
        complete: true,
    });
    builder.total_order(vec![second, first]);
    builder.event(Some(-7), "partition".into());
    builder.event(None, "è".into());
    builder.remark("missing-writer", "nobody wrote it".into());
    builder.position_unit(crate::PositionUnit::Record);
    builder.finish("test").expect("small")
}

fn written(history: &History, format: &Format) -> Vec<u8> {
    let Some(Writer::File(write)) = format.write else {
        panic!("a format that is written as one file")
    };
    let mut bytes = Vec::new();
    let losses = write(history, &mut bytes).expect("in memory");
    assert_eq!(losses, Vec::<String>::new());
    bytes
}

fn reading(bytes: &[u8]) -> Result<History, ReadError> {
    let input = Input::File(Source::from_bytes("test.isolde", bytes));
    read(&FORMAT, input, ReadOptions::default())
}

fn refusal(bytes: &[u8]) -> String {
    reading(bytes).expect_err("must be refused").to_string()
}

/// Where the header of a column starts.
fn frame_of(bytes: &[u8], name: &str) -> usize {
    let mut padded = [0; 24];
    padded[..name.len()].copy_from_slice(name.as_bytes());
    (0..bytes.len())
        .step_by(8)
        .find(|&at| bytes[at..].starts_with(&padded))
        .expect("a column of this name")
}

/// The file with one entry of a raw column replaced, under a right checksum.
fn forged(bytes: &[u8], name: &str, index: usize, entry: u64) -> Vec<u8> {
    let column = SCHEMA.iter().find(|column| column.0 == name);
    let width = column.expect("a column of this name").1 as usize;
    let mut forged = bytes.to_vec();
    let at = frame_of(bytes, name) + 56 + index * width;
    forged[at..at + width].copy_from_slice(&entry.to_le_bytes()[..width]);
    sign(&mut forged, name);
    forged
}

/// Puts the right checksum into the frame of a column.
fn sign(bytes: &mut [u8], name: &str) {
    let at = frame_of(bytes, name);
    let length = u64::from_le_bytes(bytes[at + 40..at + 48].try_into().expect("eight"));
    let seed = xxh64(&bytes[at..at + 48], 0);
    let sum = xxh64(&bytes[at + 56..][..length as usize], seed);
    bytes[at + 48..at + 56].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn everything_survives_in_either_storage() {
    let history = everything();
    for format in [&FORMAT, &RAW_FORMAT] {
        let bytes = written(&history, format);
        let input = Input::File(Source::from_bytes("test.isolde", &bytes));
        let (again, detected) = read_detected(input, ReadOptions::default()).expect("valid");
        assert_eq!(detected.name, "binary");
        identical(&history, &again);
        assert_eq!(written(&again, format), bytes);
    }
}

#[test]
fn any_history_survives() {
    for seed in 0..500 {
        let history = random_history(seed);
        for format in [&FORMAT, &RAW_FORMAT] {
            let again = reading(&written(&history, format));
            let again = again.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            identical(&history, &again);
        }
    }
}

#[test]
fn an_empty_history_survives() {
    let history = HistoryBuilder::new().finish("test").expect("small");
    identical(&history, &reading(&written(&history, &FORMAT)).expect("valid"));
}

#[test]
fn raw_entries_are_aligned_for_use_in_a_map() {
    let bytes = written(&everything(), &RAW_FORMAT);
    for (name, _) in SCHEMA {
        assert_eq!(frame_of(&bytes, name) % 8, 0, "{name}");
    }
    let at = frame_of(&bytes, "op.keys") + 56;
    assert_eq!(bytes[at..at + 8], [0, 0, 0, 0, 1, 0, 0, 0]);
}

#[test]
fn a_file_reads_as_one_in_memory() {
    let history = everything();
    let name = format!("isolde-file-{}.isolde", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, written(&history, &RAW_FORMAT)).expect("a writable folder");
    let input = crate::format::open(&path).expect("a file");
    let (again, _) = read_detected(input, ReadOptions::default()).expect("valid");
    std::fs::remove_file(&path).expect("the file of this test");
    identical(&history, &again);
}

#[test]
fn every_prefix_of_a_file_is_refused() {
    for format in [&FORMAT, &RAW_FORMAT] {
        let bytes = written(&everything(), format);
        for length in 0..bytes.len() {
            assert!(reading(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(reading(&[&bytes[..], &[0]].concat()).is_err());
    }
    let bytes = written(&everything(), &FORMAT);
    assert_eq!(
        refusal(&bytes[..100]),
        "test.isolde: byte 100: expected column value.payloads, found the end of the file \
         (the file may have been cut)"
    );
}

#[test]
fn every_changed_byte_is_noticed() {
    for format in [&FORMAT, &RAW_FORMAT] {
        let mut bytes = written(&everything(), format);
        for at in 0..bytes.len() {
            let original = bytes[at];
            for changed in [original ^ 1, original ^ 0x80, !original] {
                bytes[at] = changed;
                assert!(reading(&bytes).is_err(), "byte {at} as {changed}");
            }
            bytes[at] = original;
        }
    }
}

#[test]
fn another_version_is_refused_with_advice() {
    let mut bytes = written(&everything(), &FORMAT);
    bytes[8] = 4;
    assert_eq!(
        refusal(&bytes),
        "test.isolde: byte 8: expected version 3 of the binary format, found 4 \
         (a newer isolde wrote it)"
    );
    bytes[8] = 2;
    assert_eq!(
        refusal(&bytes),
        "test.isolde: byte 8: expected version 3 of the binary format, found 2 \
         (an older isolde wrote it: let that one convert it to text, or record it again)"
    );
}

/// Column, place and new content of one entry, and what is expected instead.
const FORGERIES: &str = "\
value.kinds 0 9: a kind of value from 1 to 5, found 9
value.payloads 0 7: each value once and no small number, found another
value.payloads 1 99: the length of a text, found 99
value.text 0 255: UTF-8 text, found other bytes
keys 0 2147483747: the id of a value, found 2147483747
keys 1 3: each key once, found one again
initial.keys 0 3: a key below 3, found 3
session.labels 0 4294967295: the id of a value, found 4294967295
session.txns 1 3: offsets that ascend from 0, found 2
session.txns 0 1: offsets that ascend from 0, found 1
session.txns 2 1: offsets up to 2, found 1
txn.ops 1 10: offsets that ascend from 0, found 9
txn.outcomes 0 4: an outcome from 0 to 3, found 4
timestamp.given 0 2: 0 or 1, found 2
op.kinds 0 10: a kind of operation from 0 to 9, found 10
op.kinds 0 7: the key of a PredicateRead, found 0
op.keys 0 3: the key of a Write, found 3
op.values 0 2147483655: the value of a Write, found 2147483655
op.values 1 1: the value of a ReadList, found 1
op.values 2 7: the value of a PredicateRead, found 7
list.lengths 0 3: a list within 2 elements, found one beyond
list.starts 0 4294967295: a list within 2 elements, found one beyond
list.elements 0 4294967295: the id of a value, found 4294967295
predicate.kinds 0 7: a kind of condition from 0 to 6, found 7
predicate.first 1 4294967296: the id of a value, found 4294967296
predicate.first 2 0: a divisor of at least 1, found 0
predicate.rows 1 18446744073709551615: offsets that ascend from 0, found 4
predicate.row.keys 0 3: a key below 3, found 3
predicate.row.matched 0 2: 0 or 1, found 2
predicate.functions 0 5: a function from 0 to 4, found 5
predicate.results 0 4294967295: the id of a value, found 4294967295
row.ops 0 9: an operation below 9, found 9
txn.snapshots 0 2: a snapshot below 2, found 2
snapshot.ops 0 9: an operation below 9, found 9
snapshot.places 0 2: a snapshot below 2, found 2
snapshot.except 1 3: exceptions in ascending order, found another
version.keys 0 3: a key below 3, found 3
version.chains 1 3: offsets up to 2, found 3
version.numbered 0 2: a version below 2, found 2
serial.given 0 0: 0 entries, found 2
serial.txns 0 2: a transaction below 2, found 2
serial.txns 0 0: each transaction once, found one again
event.lengths 0 18446744073709551615: the length of a text, found 18446744073709551615
remark.lengths 0 1: the end of the last text, found more
position.unit 0 3: a unit from 0 to 2, found 3
";

#[test]
fn a_right_checksum_does_not_excuse_a_wrong_entry() {
    let bytes = written(&everything(), &RAW_FORMAT);
    for line in FORGERIES.lines() {
        let (forgery, expected) = line.split_once(": ").expect("two parts");
        let forgery: Vec<&str> = forgery.split(' ').collect();
        let column = forgery[0];
        let index: usize = forgery[1].parse().expect("a place");
        let entry: u64 = forgery[2].parse().expect("an entry");
        let message = refusal(&forged(&bytes, column, index, entry));
        let ending = format!(": expected {expected}");
        assert!(message.ends_with(&ending), "{column}: {message}");
        assert!(message.starts_with("test.isolde: byte "), "{message}");
    }
}

/// What a fuzzer cannot reach, since it guesses no checksum.
#[test]
fn any_entries_under_right_checksums_are_read_or_refused_with_a_place() {
    const ENTRIES: [u64; 12] =
        [0, 1, 2, 3, 4, 5, 7, 9, 0x8000_0000, u32::MAX as u64, 1 << 63, u64::MAX];
    let original = written(&everything(), &RAW_FORMAT);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    for _ in 0..5000 {
        let mut bytes = original.clone();
        for _ in 0..=random.random_range(0..3) {
            let (name, _) = SCHEMA[random.random_range(0..SCHEMA.len())];
            let at = frame_of(&bytes, name) + 32;
            let count = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
            if count > 0 {
                let entry = ENTRIES[random.random_range(0..ENTRIES.len())];
                bytes = forged(&bytes, name, random.random_range(0..count as usize), entry);
            }
        }
        match reading(&bytes) {
            Ok(history) => {
                let _ = crate::Index::new(&history);
                let text = crate::format::to_text(&history);
                let again = crate::format::parse_text(&text).expect("written text is read");
                assert_eq!(crate::format::to_text(&again), text);
            }
            Err(error) => assert_ne!(error.place, crate::Place::Whole, "{error}"),
        }
    }
}

#[test]
fn a_wrong_entry_is_found_at_its_byte() {
    let bytes = written(&everything(), &RAW_FORMAT);
    let at = frame_of(&bytes, "op.values") + 56 + 4;
    let forged = forged(&bytes, "op.values", 1, 1);
    assert_eq!(
        refusal(&forged),
        format!(
            "test.isolde: byte {at}: column op.values: expected the value of a ReadList, found 1"
        )
    );
}

/// A few bytes can decompress to very many, and a header can promise as many.
#[test]
fn a_promise_of_much_memory_is_not_believed() {
    let mut builder = HistoryBuilder::new();
    let session = builder.session(Value::NIL);
    let key = builder.key(Value::NIL);
    builder.begin(session);
    for _ in 0..10_000 {
        builder.op(OpKind::Write, key, Value::NIL);
    }
    let history = builder.finish("test").expect("small");
    let bytes = written(&history, &FORMAT);
    let mut promising = bytes.clone();
    let at = frame_of(&bytes, "op.keys");
    promising[at + 32..at + 40].copy_from_slice(&(1u64 << 61).to_le_bytes());
    sign(&mut promising, "op.keys");
    let message = refusal(&promising);
    assert!(
        message.ends_with("expected 9223372036854775808 bytes when decompressed, found fewer"),
        "{message}"
    );

    let input = Input::File(Source::from_bytes("test.isolde", &bytes));
    let options = ReadOptions { memory_max: Some(1 << 15), ..ReadOptions::default() };
    let message = read(&FORMAT, input, options).expect_err("too large").to_string();
    assert!(message.contains("fits in 32 KiB"), "{message}");
}

//! What the tests of log formats share: reading from memory, and histories as text.
#![allow(dead_code, reason = "every test file uses a part of it")]

use isolde_history::format::{self, Folder, Input, ReadOptions, Sample, Writer};
use isolde_history::{History, OpId, OpKind, Outcome, ReadError, Source, TxnId, Value};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};

/// The formats that these tests are about.
pub(crate) const LOGS: [&str; 12] = [
    "plume",
    "awdit",
    "dbcop-hist",
    "dbcop-json",
    "timekiller",
    "isopredict",
    "veristrong-list",
    "viper-json",
    "viper-edn",
    "cobra",
    "vbox",
    "dbcop-bincode",
];

/// A source in memory: one file, or a directory of files by name.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    One(Vec<u8>),
    Many(BTreeMap<String, Vec<u8>>),
}

impl Files {
    pub(crate) fn one(bytes: impl AsRef<[u8]>) -> Self {
        Files::One(bytes.as_ref().to_vec())
    }

    pub(crate) fn many(files: &[(&str, &[u8])]) -> Self {
        let owned = files.iter().map(|&(name, bytes)| (name.to_owned(), bytes.to_vec()));
        Files::Many(owned.collect())
    }

    pub(crate) fn input(&self) -> Input<'_> {
        match self {
            Files::One(bytes) => Input::File(Source::from_bytes("file", bytes)),
            Files::Many(files) => Input::Directory {
                name: "folder".into(),
                files: files
                    .iter()
                    .map(|(name, bytes)| Source::from_bytes(format!("folder/{name}"), bytes))
                    .collect(),
            },
        }
    }
}

struct Memory<'m>(&'m mut BTreeMap<String, Vec<u8>>);

impl Folder for Memory<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(self.0.entry(name.to_owned()).or_default()))
    }
}

/// Reads in a format that must also be the one detected.
pub(crate) fn read(name: &str, files: &Files) -> History {
    let (history, format) = format::read_detected(files.input(), ReadOptions::default())
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(format.name, name);
    history
}

/// Reads in a given format, whatever it looks like.
pub(crate) fn try_read(name: &str, files: &Files) -> Result<History, ReadError> {
    let format = format::by_name(name).expect("a known format");
    format::read(format, files.input(), ReadOptions::default())
}

/// The message of a source that cannot be read.
pub(crate) fn refused(name: &str, files: &Files) -> String {
    try_read(name, files).expect_err("bad input").to_string()
}

/// Writes a history; what it loses, or why it was refused.
pub(crate) fn write(name: &str, history: &History) -> Result<(Files, Vec<String>), String> {
    let format = format::by_name(name).expect("a known format");
    match format.write.expect("a format with a writer") {
        Writer::File(write) => {
            let mut bytes = Vec::new();
            let losses = write(history, &mut bytes).map_err(|error| error.to_string())?;
            Ok((Files::One(bytes), losses))
        }
        Writer::Directory(write) => {
            let mut files = BTreeMap::new();
            let losses =
                write(history, &mut Memory(&mut files)).map_err(|error| error.to_string())?;
            Ok((Files::Many(files), losses))
        }
    }
}

/// Whether a format says that these first bytes are its own.
pub(crate) fn detected(head: &[u8]) -> Option<&'static str> {
    format::detect(&Sample { names: None, head }).map(|format| format.name)
}

/// A history, one line a transaction: `session/label: operations outcome`, after
/// initial values, before remarks.
pub(crate) fn shown(history: &History) -> String {
    let datum = |value: Value| history.datum(value).to_string();
    let mut text = String::new();
    if history.initial_default() != Value::NIL {
        writeln!(text, "init *={}", datum(history.initial_default())).expect("memory");
    }
    for &(key, value) in history.declared_initial() {
        writeln!(text, "init {}={}", datum(history.key_name(key)), datum(value)).expect("memory");
    }
    for session in history.sessions() {
        for txn in history.txns_of(session) {
            text += &datum(history.session_label(session));
            if history.txn_label(txn) != Value::NIL {
                write!(text, "/{}", datum(history.txn_label(txn))).expect("memory");
            }
            text += ":";
            for op in history.ops_of(txn) {
                write!(text, " {}", shown_op(history, op)).expect("memory");
            }
            text += match history.outcome(txn) {
                Outcome::Committed => "\n",
                Outcome::Aborted => " aborted\n",
                Outcome::Unknown => " unknown\n",
            };
        }
    }
    for remark in history.remarks() {
        writeln!(text, "# {} at {}", remark.kind, remark.position).expect("memory");
    }
    text
}

fn shown_op(history: &History, id: OpId) -> String {
    let op = history.op(id);
    let datum = |value: Value| history.datum(value).to_string();
    if !op.kind.has_key() {
        let predicate = history.predicate(id);
        let rows = predicate.rows.iter().map(|row| {
            let sign = if row.matched { "=" } else { "!" };
            let key = datum(history.key_name(row.key));
            format!("{key}{sign}{}", datum(row.value))
        });
        let rows: Vec<String> = rows.collect();
        let condition = predicate.condition.display(history.values());
        return format!("p({condition}; {})", rows.join(" "));
    }
    let key = datum(history.key_name(op.key));
    if op.kind == OpKind::ReadList {
        let elements: Vec<String> = history.list(id).iter().map(|&value| datum(value)).collect();
        return format!("r({key},[{}])", elements.join(" "));
    }
    let letter = match op.kind {
        OpKind::Read => 'r',
        OpKind::Write => 'w',
        OpKind::Append => 'a',
        OpKind::Insert => 'i',
        OpKind::Delete => 'd',
        other => panic!("no log has {other:?}"),
    };
    let row: Vec<String> = history
        .row(id)
        .map(|(column, content)| format!("{}={}", datum(column), datum(content)))
        .collect();
    let row = if row.is_empty() { String::new() } else { format!("{{{}}}", row.join(" ")) };
    format!("{letter}({key},{}){row}", datum(op.value))
}

/// What a history says whatever its keys, values, sessions and transactions are
/// called: names are replaced by their order of appearance, initial values by 0.
/// Inserts and deletes are writes, and transactions without operations are nothing.
pub(crate) fn shape(history: &History) -> Vec<Vec<String>> {
    let mut keys = HashMap::new();
    let mut values = HashMap::new();
    let mut op = |id: OpId| {
        let op = history.op(id);
        let next = keys.len();
        let key = *keys.entry(op.key).or_insert(next);
        let next = values.len() + 1;
        let value = if op.value == history.initial(op.key) {
            0
        } else {
            *values.entry((op.key, op.value)).or_insert(next)
        };
        let letter = if op.kind.is_write() { 'w' } else { 'r' };
        format!("{letter}({key},{value})")
    };
    let mut txn = |txn: TxnId| {
        let ops: Vec<String> = history.ops_of(txn).map(&mut op).collect();
        format!("{} {:?}", ops.join(" "), history.outcome(txn))
    };
    history
        .sessions()
        .map(|session| {
            history
                .txns_of(session)
                .filter(|&txn| !history.op_range(txn).is_empty())
                .map(&mut txn)
                .collect()
        })
        .filter(|txns: &Vec<String>| !txns.is_empty())
        .collect()
}

//! A history in parts, as files of a folder: what each has, and whether it still has it.
//!
//! A part is a history in the binary format with all sessions of the whole and the transactions
//! that completed in one stretch of time. Transactions of a session are in ascending parts. The
//! manifest is a text: a head, a line for the whole, a line for each part. It is written last.

use crate::evidence::cut;
use crate::parts::{Piece, Pieces, completion};
use isolde_history::format::{self, ReadOptions, Writer};
use isolde_history::{History, NEVER, OpKind, Outcome, Time, TxnId};
use std::fmt;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the manifest in its folder.
pub const MANIFEST: &str = "parts.txt";
const HEAD: &str = "isolde-parts 1";
const FORMAT: &str = "binary";

/// Why a folder of parts could not be written or read: where, what was expected and what found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderError(String);

impl fmt::Display for FolderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for FolderError {}

fn error(path: &Path, message: impl fmt::Display) -> FolderError {
    FolderError(format!("{}: {message}", path.display()))
}

/// What a folder of parts says it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Sessions of the whole.
    pub sessions: u64,
    /// Keys of the whole.
    pub keys: u64,
    /// By part.
    parts: Vec<PartLine>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartLine {
    txns: u64,
    ops: u64,
    bytes: u64,
    /// When the first and the last of its transactions completed.
    completed: (Time, Time),
    sum: u64,
}

fn file_name(part: usize) -> String {
    format!("part-{part:05}.isolde")
}

/// Writes a history in so many parts into an empty folder; tells what parts do not have.
pub fn split(history: History, count: usize, folder: &Path) -> Result<Vec<String>, FolderError> {
    refuse_unfit(&history, folder)?;
    let history = Arc::new(history);
    let mut manifest = Manifest {
        sessions: history.session_count() as u64,
        keys: history.key_count() as u64,
        parts: Vec::new(),
    };
    for (part, txns) in stretches(&history, count).into_iter().enumerate() {
        let path = folder.join(file_name(part));
        let cut = cut(&history, &txns);
        let written = write_binary(&cut, &path);
        let (bytes, sum) = written.map_err(|it| error(&path, it))?;
        let completed = txns.iter().map(|&txn| placed_at(&history, txn));
        let wider = |it: (Time, Time), time| (it.0.min(time), it.1.max(time));
        let completed = completed.fold((Time::MAX, Time::MIN), wider);
        let (txns, ops) = (cut.txn_count() as u64, cut.op_count() as u64);
        manifest.parts.push(PartLine { txns, ops, bytes, completed, sum });
    }
    let path = folder.join(MANIFEST);
    std::fs::write(&path, manifest.to_text()).map_err(|it| error(&path, it))?;
    Ok(lost(&history))
}

fn refuse_unfit(history: &History, folder: &Path) -> Result<(), FolderError> {
    let refuse = |found: &str| {
        Err(error(folder, format!("expected a history that workers decide, found one {found}")))
    };
    let is_strange = |kind: &OpKind| !kind.has_key() || *kind == OpKind::Call;
    if !history.has_times() {
        return refuse("without times");
    }
    if history.op_kinds().iter().any(is_strange) {
        return refuse("with reads by condition or operations that are neither reads nor writes");
    }
    if !history.orders().versions.is_empty() {
        return refuse("with orders of versions that the database gave");
    }
    Ok(())
}

/// What parts do not have.
fn lost(history: &History) -> Vec<String> {
    let all = [
        (!history.events().is_empty(), "events beside the transactions"),
        (history.orders().total.is_some(), "the database's serialization order"),
        (history.has_rows(), "columns of rows"),
        (history.txns().any(|it| history.timestamps(it).is_some()), "the database's timestamps"),
    ];
    let there = all.into_iter().filter(|it| it.0);
    there.map(|it| format!("{} are in no part", it.1)).collect()
}

/// Transactions by the part they come in, each in the order of sessions.
fn stretches(history: &History, count: usize) -> Vec<Vec<TxnId>> {
    let mut order: Vec<TxnId> = history.txns().collect();
    order.sort_by_key(|&txn| (placed_at(history, txn), txn));
    let share = order.len().div_ceil(count.max(1)).max(1);
    let mut part_of = vec![0u32; order.len()];
    for (place, txn) in order.iter().enumerate() {
        part_of[txn.index()] = (place / share) as u32;
    }
    let mut parts: Vec<Vec<TxnId>> = vec![Vec::new(); order.len().div_ceil(share)];
    for session in history.sessions() {
        // A client whose clock was set back keeps its order.
        let mut least = 0;
        for txn in history.txns_of(session) {
            least = least.max(part_of[txn.index()]);
            parts[least as usize].push(txn);
        }
    }
    parts
}

/// The time that puts a transaction into a part: of one that never completed, its beginning.
fn placed_at(history: &History, txn: TxnId) -> Time {
    match completion(history, txn) {
        NEVER => history.txn_interval(txn).invoked,
        time => time,
    }
}

/// Writes, and tells how many bytes that are and their sum.
fn write_binary(history: &History, path: &Path) -> Result<(u64, u64), String> {
    let format = format::by_name(FORMAT).expect("a format of the table");
    let Some(Writer::File(write)) = format.write else { unreachable!("binary is one file") };
    let file = File::create_new(path).map_err(|error| error.to_string())?;
    let mut out = BufWriter::new(Summed { inner: file, bytes: 0, sum: Sum::default() });
    write(history, &mut out).map_err(|error| error.to_string())?;
    let summed = out.into_inner().map_err(|error| error.to_string())?;
    Ok((summed.bytes, summed.sum.0))
}

/// FNV-1a, so that a part that was put in the place of another is noticed.
#[derive(Clone, Copy)]
struct Sum(u64);

impl Default for Sum {
    fn default() -> Sum {
        Sum(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

struct Summed<F> {
    inner: F,
    bytes: u64,
    sum: Sum,
}

impl Write for Summed<File> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.sum.add(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

impl Manifest {
    /// Whether a path is a folder of parts.
    pub fn is_at(path: &Path) -> bool {
        path.join(MANIFEST).is_file()
    }

    /// Reads the manifest of a folder, and looks whether all parts are there.
    pub fn read(folder: &Path) -> Result<Manifest, FolderError> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|it| error(&path, it))?;
        let manifest = Manifest::parse(&text).map_err(|(line, expected)| {
            let found = text.lines().nth(line - 1).unwrap_or("the end of the file");
            error(&path, format!("line {line}: expected {expected}, found `{found}`"))
        })?;
        for (part, line) in manifest.parts.iter().enumerate() {
            let path = folder.join(file_name(part));
            let there = path.metadata().map_err(|it| error(&path, it))?.len();
            if there != line.bytes {
                let expected = line.bytes;
                return Err(error(&path, format!("expected {expected} bytes, found {there}")));
            }
        }
        Ok(manifest)
    }

    fn parse(text: &str) -> Result<Manifest, (usize, &'static str)> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err((1, "the head, `isolde-parts 1`"));
        }
        let whole = lines.next().and_then(|line| numbers(line, "whole"));
        let Some([parts, sessions, keys]) = whole else {
            return Err((2, "`whole` and the numbers of parts, sessions and keys"));
        };
        let mut manifest = Manifest {
            sessions: sessions.cast_unsigned(),
            keys: keys.cast_unsigned(),
            parts: Vec::new(),
        };
        let parts = usize::try_from(parts).map_err(|_| (2, "a number of parts"))?;
        for number in 0..parts {
            let line = lines.next().and_then(|line| numbers(line, "part"));
            let at = number + 3;
            let expected = "`part`, its number, transactions, operations, bytes, first and last \
                            completion, and sum";
            let Some([this, txns, ops, bytes, first, last, sum]) = line else {
                return Err((at, expected));
            };
            if usize::try_from(this) != Ok(number) {
                return Err((at, "the next part"));
            }
            // A client whose clock was set back may have more in a later part.
            let before = manifest.parts.last();
            if before.is_some_and(|before| {
                before.sum == sum.cast_unsigned() || before.completed.1 > last
            }) {
                return Err((at, "a part that begins after the one before, or parts overlap"));
            }
            manifest.parts.push(PartLine {
                txns: txns.cast_unsigned(),
                ops: ops.cast_unsigned(),
                bytes: bytes.cast_unsigned(),
                completed: (first, last),
                sum: sum.cast_unsigned(),
            });
        }
        match lines.next() {
            None => Ok(manifest),
            Some(_) => Err((parts + 3, "the end")),
        }
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let (parts, sessions, keys) = (self.parts.len(), self.sessions, self.keys);
        let mut line = |line: fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string grows");
        line(format_args!("{HEAD}"));
        line(format_args!("whole {parts} {sessions} {keys}"));
        for (number, it) in self.parts.iter().enumerate() {
            let PartLine { txns, ops, bytes, completed: (first, last), sum } = it;
            let sum = sum.cast_signed();
            line(format_args!("part {number} {txns} {ops} {bytes} {first} {last} {sum}"));
        }
        text
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// What tells this history from others, in a line.
    pub fn subject(&self) -> String {
        let mut sum = Sum::default();
        sum.add(self.to_text().as_bytes());
        format!("parts {} sum {:016x}", self.parts.len(), sum.0)
    }

    /// The parts of the folder, to be read when they are needed, within this memory each.
    pub fn pieces(self, folder: &Path, memory_max: Option<usize>) -> Pieces {
        let parts = self.parts.iter().map(|it| Piece { completed: it.completed.1 }).collect();
        let folder: PathBuf = folder.to_owned();
        let read = move |part: usize| {
            self.part(part, &folder, memory_max).map_err(|error| error.to_string())
        };
        Pieces::Parts { parts, read: Arc::new(read) }
    }

    /// Reads a part, and looks whether it is the one that was written.
    fn part(
        &self,
        part: usize,
        folder: &Path,
        memory_max: Option<usize>,
    ) -> Result<History, FolderError> {
        let path = folder.join(file_name(part));
        let line = &self.parts[part];
        let mut bytes = Vec::with_capacity(usize::try_from(line.bytes).unwrap_or(0));
        let file = File::open(&path).map_err(|it| error(&path, it))?;
        file.take(line.bytes + 1).read_to_end(&mut bytes).map_err(|it| error(&path, it))?;
        let mut sum = Sum::default();
        sum.add(&bytes);
        if sum.0 != line.sum {
            let message = "expected the part that the manifest was written for, found another, \
                           or a damaged one: split the history again";
            return Err(error(&path, message));
        }
        let format = format::by_name(FORMAT).expect("a format of the table");
        let source = isolde_history::Source::from_bytes(path.display().to_string(), &bytes);
        let options = ReadOptions { memory_max, ..ReadOptions::default() };
        let history = format::read(format, format::Input::File(source), options)
            .map_err(|it| FolderError(it.to_string()))?;
        self.compare(&history, line).map_err(|message| error(&path, message))?;
        Ok(history)
    }

    fn compare(&self, history: &History, line: &PartLine) -> Result<(), String> {
        let there = (history.txn_count() as u64, history.op_count() as u64);
        if there != (line.txns, line.ops) || history.session_count() as u64 != self.sessions {
            let (expected, found) = (line.txns, there.0);
            return Err(format!("expected {expected} transactions, found {found}"));
        }
        let (first, last) = line.completed;
        let is_outside = |&txn: &TxnId| {
            history.outcome(txn) == Outcome::Committed
                && !(first..=last).contains(&placed_at(history, txn))
        };
        match history.txns().find(is_outside) {
            None => Ok(()),
            Some(txn) => {
                let name = history.readable_name(txn);
                let expected = "expected transactions of its time alone";
                Err(format!("{expected}, found {name}, which overlaps another part"))
            }
        }
    }
}

/// The numbers of a line that begins with this word.
fn numbers<const COUNT: usize>(line: &str, word: &str) -> Option<[i64; COUNT]> {
    let rest = line.strip_prefix(word)?.strip_prefix(' ')?;
    let numbers: Option<Vec<i64>> = rest.split(' ').map(|it| it.parse().ok()).collect();
    numbers?.try_into().ok()
}

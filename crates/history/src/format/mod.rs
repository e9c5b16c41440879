//! Every file format that histories come in and go out in.
//!
//! A format is one file of this folder and one row of [`FORMATS`]. Its file says
//! where the format is described, what it cannot express and what is tolerated.

mod awdit;
mod binary;
mod client_logs;
mod cobra;
mod dbcop;
mod edn;
mod form;
mod isopredict;
mod jepsen;
mod json_stream;
mod likeliest;
mod names;
mod notation;
mod number_list;
mod open;
mod plume;
mod records;
mod registers;
mod run_log;
mod text;
mod timekiller;
mod trace;
mod vbox;
mod veristrong_list;
mod viper;

pub(crate) use notation::members_of;
pub use open::{OpenError, open};
pub use text::expectations;

use crate::builder::HistoryBuilder;
use crate::error::{Place, ReadError};
use crate::history::History;
use crate::source::Source;
use std::io::{self, Write};
use std::sync::atomic::Ordering;

/// What a format is and can do.
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Whether the beginning of a source looks like it. The first row of
    /// [`FORMATS`] that says so wins, so narrow formats come first.
    pub detect: fn(&Sample<'_>) -> bool,
    /// Reads a whole source.
    pub read: fn(Input<'_>, &mut HistoryBuilder) -> Result<(), ReadError>,
    /// Writes a history, if the format can be written.
    pub write: Option<Writer>,
}

/// How a format is written. The result names what of this history it could not
/// express, one sentence each.
#[derive(Clone, Copy)]
pub enum Writer {
    /// One file.
    File(fn(&History, &mut dyn Write) -> Result<Vec<String>, WriteError>),
    /// A directory of files.
    Directory(fn(&History, &mut dyn Folder) -> Result<Vec<String>, WriteError>),
}

/// Where a directory format puts its files.
pub trait Folder {
    /// Creates a file in the folder; it is complete when dropped.
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>>;
}

/// A history that could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The format has no way to say this, and leaving it out would change what
    /// the history means.
    Inexpressible(String),
    /// Writing failed.
    Io(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteError::Inexpressible(what) => out.write_str(what),
            WriteError::Io(error) => write!(out, "cannot be written: {error}"),
        }
    }
}

impl std::error::Error for WriteError {}

/// What is read: a file, or the files of a directory in order of their names.
pub enum Input<'a> {
    /// One file or stream.
    File(Source<'a>),
    /// A directory.
    Directory {
        /// What messages call it.
        name: String,
        /// Its files; subdirectories are left out.
        files: Vec<Source<'a>>,
    },
}

impl<'a> Input<'a> {
    /// What messages call it.
    pub fn name(&self) -> &str {
        match self {
            Input::File(source) => source.name(),
            Input::Directory { name, .. } => name,
        }
    }

    fn sources(&mut self) -> &mut [Source<'a>] {
        match self {
            Input::File(source) => std::slice::from_mut(source),
            Input::Directory { files, .. } => files,
        }
    }

    /// The source of a format that is one file.
    pub fn file(self) -> Result<Source<'a>, ReadError> {
        match self {
            Input::File(source) => Ok(source),
            Input::Directory { name, .. } => {
                Err(ReadError::new(&name, "expected a file, found a directory"))
            }
        }
    }

    /// The sources of a format that is a directory. A single file counts as a
    /// directory of one.
    pub fn files(self) -> Vec<Source<'a>> {
        match self {
            Input::File(source) => vec![source],
            Input::Directory { files, .. } => files,
        }
    }
}

/// The beginning of a source, for telling formats apart.
pub struct Sample<'a> {
    /// Names of a directory's files without their folder; `None` for a single file.
    pub names: Option<&'a [String]>,
    /// The first bytes of the file, or of the directory's first file that is a log.
    pub head: &'a [u8],
}

impl Sample<'_> {
    /// The first line that is not blank, as text, of a single file.
    pub fn first_line(&self) -> Option<&str> {
        if self.names.is_some() {
            return None;
        }
        let mut lines = self.head.split(|&byte| byte == b'\n');
        let line = lines.find(|line| !line.trim_ascii().is_empty())?;
        std::str::from_utf8(line.trim_ascii()).ok()
    }
}

/// How to read, beside what the source says itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// Refuse histories that need more memory than about this many bytes.
    pub memory_max: Option<usize>,
    /// Refuse the history once this is true: what readers hold beside it counts too.
    pub is_memory_full: Option<fn() -> bool>,
    /// Every key starts with this natural number instead of what the format says;
    /// a source that itself says otherwise is refused.
    pub initial: Option<u64>,
    /// The recording lacks nothing: a transaction that is in no log never happened, and who
    /// read from it read what nobody wrote.
    pub complete_log: bool,
}

/// All formats. Detection asks them in this order.
pub static FORMATS: &[Format] = &[
    binary::FORMAT,
    binary::RAW_FORMAT,
    run_log::FORMAT,
    trace::FORMAT,
    plume::FORMAT,
    awdit::FORMAT,
    dbcop::hist::FORMAT,
    dbcop::json::FORMAT,
    timekiller::FORMAT,
    isopredict::FORMAT,
    veristrong_list::FORMAT,
    viper::json::FORMAT,
    viper::edn::FORMAT,
    cobra::FORMAT,
    vbox::FORMAT,
    dbcop::bincode::FORMAT,
    jepsen::edn::PORCUPINE_KV,
    jepsen::edn::FORMAT,
    jepsen::json::FORMAT,
    jepsen::txt::PORCUPINE_ETCD,
    jepsen::txt::FORMAT,
    // The widest: whatever begins like a line of it.
    text::FORMAT,
];

/// How `test.jepsen` begins, in which Jepsen keeps a whole test.
const JEPSEN_FILE: &[u8] = b"JEPSEN\0";

/// The format of this name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format that a source looks like.
pub fn detect(sample: &Sample<'_>) -> Option<&'static Format> {
    FORMATS.iter().find(|format| (format.detect)(sample))
}

/// Reads a history in a known format.
pub fn read(
    format: &Format,
    mut input: Input<'_>,
    options: ReadOptions,
) -> Result<History, ReadError> {
    let name = input.name().to_owned();
    let mut builder =
        HistoryBuilder::with_memory_max(options.memory_max).refusing_when(options.is_memory_full);
    for source in input.sources() {
        source.stop_when(builder.refusal());
        if let Some(bytes) = options.memory_max {
            source.bound_memory(bytes);
        }
    }
    if options.complete_log {
        builder.complete_log();
    }
    let result = (format.read)(input, &mut builder);
    // What the reader says about a source cut short is not what is wrong with it.
    if !builder.refusal().load(Ordering::Relaxed) {
        result?;
    }
    if let Some(number) = options.initial {
        let value = builder.values().unsigned(number);
        if let Some(declared) = builder.declared_initial_default()
            && declared != value
        {
            let declared = builder.values().datum(declared);
            let message =
                format!("expected keys that start with {number}, found `init *={declared}`");
            return Err(ReadError::new(&name, message)
                .hint("leave --initial out: the history says what its keys start with"));
        }
        builder.initial_default(value);
    }
    builder.finish(&name)
}

/// Reads a history whose format is found from its content.
pub fn read_detected(
    mut input: Input<'_>,
    options: ReadOptions,
) -> Result<(History, &'static Format), ReadError> {
    match detect_input(&mut input)? {
        Some(format) => Ok((read(format, input, options)?, format)),
        None => Err(unrecognised(input, options)),
    }
}

/// Parses a history in the native text format, as tests and documentation write it.
pub fn parse_text(text: &str) -> Result<History, ReadError> {
    let input = Input::File(Source::from_bytes("text", text.as_bytes()));
    read(&text::FORMAT, input, ReadOptions::default())
}

/// The history in the native text format.
pub fn to_text(history: &History) -> String {
    let mut bytes = Vec::new();
    let Some(Writer::File(write)) = text::FORMAT.write else { unreachable!("text is written") };
    write(history, &mut bytes).expect("the native format expresses everything, in memory");
    String::from_utf8(bytes).expect("the native format is UTF-8")
}

const SAMPLE_BYTES: usize = 1 << 16;

fn detect_input(input: &mut Input<'_>) -> Result<Option<&'static Format>, ReadError> {
    if let Input::File(source) = input {
        source.fill_to(SAMPLE_BYTES)?;
        if source.window().trim_ascii().is_empty() {
            return Err(ReadError::new(source.name(), "expected a history, found an empty file"));
        }
    }
    with_sample(input, detect)
}

/// What `look` finds in the beginning of a source.
fn with_sample<T>(
    input: &mut Input<'_>,
    look: impl FnOnce(&Sample<'_>) -> T,
) -> Result<T, ReadError> {
    let (names, source) = match input {
        Input::File(source) => (None, Some(source)),
        Input::Directory { files, .. } => {
            let names: Vec<String> = files.iter().map(|file| base_name(file.name())).collect();
            let log = names.iter().position(|name| name.rsplit('.').next() == Some("log"));
            (Some(names), log.map(|index| &mut files[index]))
        }
    };
    let head: &[u8] = match source {
        Some(source) => {
            source.fill_to(SAMPLE_BYTES)?;
            &source.window()[..source.window().len().min(SAMPLE_BYTES)]
        }
        None => &[],
    };
    Ok(look(&Sample { names: names.as_deref(), head }))
}

/// What can be done about a source that looks like no format, where a format can be named.
pub const UNRECOGNISED_HINT: &str = "name it with --from; see `isolde formats`";

/// The error of a source that looks like no format: what the reader of the likeliest
/// one says of it, which tells more than that it is none.
fn unrecognised(mut input: Input<'_>, options: ReadOptions) -> ReadError {
    let name = input.name().to_owned();
    let unknown = match &input {
        Input::File(source) => {
            if source.window().starts_with(JEPSEN_FILE) {
                let found = "expected a history, found Jepsen's binary test file";
                return ReadError::new(&name, found)
                    .hint("the history of the test is `history.edn` in the same directory");
            }
            if let Some(error) = damaged_start(&name, source.window()) {
                return error;
            }
            let found = crate::error::excerpt(source.window());
            ReadError::new(&name, format!("expected a history in a known format, found {found}"))
                .hint(UNRECOGNISED_HINT)
        }
        Input::Directory { files, .. } => {
            let found = match files.len() {
                0 => "no files in it".to_owned(),
                1 => "one file that is none".to_owned(),
                count => format!("{count} files that are none"),
            };
            ReadError::new(&name, format!("expected a directory of client logs, found {found}"))
                .hint("for several histories name their files instead")
        }
    };
    let likeliest = match with_sample(&mut input, likeliest::likeliest) {
        Ok(Some(name)) => by_name(name).expect("likeliest formats are rows of the table"),
        Ok(None) => return unknown,
        Err(error) => return error,
    };
    match read(likeliest, input, options) {
        Ok(_) => unknown.hint(format!("--from {} reads it", likeliest.name)),
        Err(mut error) => {
            error.hint.get_or_insert_with(|| {
                format!("taken for {}; name another format with --from", likeliest.name)
            });
            error
        }
    }
}

/// The error of a file whose lines but the first are of a known format.
fn damaged_start(name: &str, window: &[u8]) -> Option<ReadError> {
    let head = &window[..window.len().min(SAMPLE_BYTES)];
    let (first, rest) = head.split_at(head.iter().position(|&byte| byte == b'\n')? + 1);
    let format = detect(&Sample { names: None, head: rest })?;
    let expected = format!("a line of the format {}, as those after it are", format.name);
    let error = ReadError::expected(name, Place::Line(1), &expected, first.trim_ascii_end());
    Some(error.hint(format!("--from {} tells more", format.name)))
}

fn base_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

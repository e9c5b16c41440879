//! What a page or a bundle is about: a run, a history, a report, or a bundle of them.

use crate::exit::Failure;
use crate::job::Job;
use crate::partial_result::PartialResult;
use crate::{archive, heap, input, run_metadata};
use isolde::{Check, Limit, Options, applicable_levels};
use isolde_history::format::{self, Format, Input, ReadOptions};
use isolde_history::{History, Index, ReadError, Source};
use isolde_report::{Findings, Report, refuse_other_schema};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// The file of a run's folder that tells about it.
pub(crate) const RUN_FILE: &str = "run.json";
/// The file of a recording's folder that tells what the proxy did not see.
pub(crate) const PROXY_FILE: &str = "proxy.json";
/// The file of a run's folder with what was recorded.
pub(crate) const HISTORY_FILE: &str = "history.log";
/// The first file of a bundle, by which it is known.
pub(crate) const MANIFEST: &str = "isolde-bundle.json";
/// The version of bundles.
pub(crate) const BUNDLE: u64 = 1;
/// What is wrong with an archive that ends too early.
const CUT_OFF: &str = "the bundle is cut off or damaged; copy it again";
/// What a file that may be JSON of ours or a bundle is known by.
const START_BYTES: usize = 1 << 16;

/// How to open something.
pub(crate) struct Opening<'a> {
    pub(crate) input: &'a input::Arguments,
    /// What a history that has to be checked may take.
    pub(crate) job: &'a Job,
}

/// Something that was opened.
pub(crate) struct Subject {
    /// The report, of the version that is understood here.
    pub(crate) report: Value,
    /// What `isolde run` noted, without the report.
    pub(crate) run: Option<Value>,
    /// The history, if it is at hand.
    pub(crate) history: Option<History>,
    /// The file of the history, if it is one.
    pub(crate) source: Option<PathBuf>,
}

impl Subject {
    /// What is known of a history that was not checked to the end when a limit was reached;
    /// nothing if it was not even read.
    pub(crate) fn partial_result(
        partial_result: &PartialResult,
        name: &str,
        reached: Limit,
    ) -> Option<Subject> {
        let decided = partial_result.decided(partial_result.levels()?, reached);
        let report = partial_result.report(name, &decided, reached);
        let report = serde_json::to_value(&report).expect("a report is plain data");
        Some(Subject { report, run: None, history: None, source: None })
    }
}

impl Opening<'_> {
    /// Opens a run's folder, a history, a report or a bundle, whichever it is.
    pub(crate) fn open(&self, path: &Path) -> Result<Subject, Failure> {
        if path.is_dir() && path.join(RUN_FILE).is_file() {
            let run = read_json(&path.join(RUN_FILE))?;
            return self.of_run(run, &path.join(HISTORY_FILE));
        }
        // A run that was ended from outside has no verdicts yet.
        if path.is_dir() && path.join(HISTORY_FILE).is_file() {
            return self.of_history(&path.join(HISTORY_FILE));
        }
        if path.is_file() {
            let start = start_of(path)?;
            if let Some(first) = first_of_archive(path, &start)? {
                return self.of_bundle(path, &first);
            }
            if let Some(shape) = Shape::of(&start) {
                return self.of_json(path, &shape);
            }
            // Another program may have put the fields in another order.
            if start.trim_ascii_start().starts_with(b"{")
                && let Ok(json) = read_json(path)
                && json.get("schema").is_some()
            {
                return self.of_verdicts(path, json);
            }
        }
        self.of_history(path)
    }

    /// A report, or what `isolde run` noted, with the history beside it.
    fn of_json(&self, path: &Path, shape: &Shape) -> Result<Subject, Failure> {
        let name = input::name(path);
        let wrong = |message: String| Failure::Read(ReadError::new(&name, message));
        if *shape == Shape::Several {
            let message = "expected a report of one history, found one of several; check each \
                           history by itself, or name it instead of the report";
            return Err(wrong(message.to_owned()));
        }
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let json = json_in(&name, file, |error| {
            format!("the report is cut off or damaged; check the history again ({error})")
        })?;
        self.of_verdicts(path, json)
    }

    fn of_verdicts(&self, path: &Path, json: Value) -> Result<Subject, Failure> {
        if json.get("report").is_some_and(|it| it.get("levels").is_some()) {
            return self.of_run(json, &path.with_file_name(HISTORY_FILE));
        }
        let name = input::name(path);
        if json.get("levels").is_some() {
            return of_report(&name, json);
        }
        let found = match json["error"].as_str() {
            Some(error) => format!("one of a history that could not be read: {error}"),
            None => "other JSON of isolde".to_owned(),
        };
        let message = format!("expected a report with verdicts, found {found}");
        Err(ReadError::new(&name, message).into())
    }

    fn options(&self) -> ReadOptions {
        self.input.options(self.job.memory_max)
    }

    /// A finished run: its verdicts are there, the history is shown if it still is.
    fn of_run(&self, mut run: Value, history: &Path) -> Result<Subject, Failure> {
        let name = history.with_file_name(RUN_FILE).display().to_string();
        let report = run.as_object_mut().and_then(|run| run.remove("report")).unwrap_or_default();
        refuse_other_schema(&report).map_err(|message| ReadError::new(&name, message))?;
        let (mut read, mut source) = (None, None);
        if history.is_file() {
            let recorded = format::read_detected(format::open(history)?, self.options())?.0;
            run_metadata::warn_of_counts_other_than(&report["history"], history, &recorded);
            read = Some(recorded);
            source = Some(history.to_owned());
        }
        Ok(Subject { report, run: Some(run), history: read, source })
    }

    /// A history is checked first.
    fn of_history(&self, path: &Path) -> Result<Subject, Failure> {
        let (history, format) = input::read(path, self.input, self.job.memory_max)?;
        let report = self.checked(&history, (&input::name(path), format.name));
        let source = path.is_file().then(|| path.to_owned());
        Ok(Subject { report, run: None, history: Some(history), source })
    }

    /// The report on all levels that a history can tell something about, as it is kept.
    pub(crate) fn checked(&self, history: &History, named: (&str, &'static str)) -> Value {
        let report = self.report(history, named);
        serde_json::to_value(&report).expect("a report is plain data")
    }

    /// The report on all levels that a history can tell something about.
    pub(crate) fn report(&self, history: &History, named: (&str, &'static str)) -> Report {
        let levels = applicable_levels(history);
        self.job.has_read(history, named.1, &levels);
        let (index, options) = (Index::new(history), Options::default());
        let (decided, by_reading) = self.job.limited((history, &index), |limits| {
            let mut checking = Check::new(history, &index, limits);
            let decided = self.job.decide(&mut checking, &levels, |_, _, _| {});
            (decided, checking.found().to_vec())
        });
        self.job.clock.begin_explaining();
        let shown = self.job.explain((history, &index), &decided, options);
        self.job.clock.use_the_rest();
        let findings = Findings {
            decided: &decided,
            counterexamples: &shown,
            by_reading: &by_reading,
            options,
        };
        Report::new(history, &index, named, &findings)
    }

    fn of_bundle(&self, path: &Path, first: &str) -> Result<Subject, Failure> {
        let bundle = Bundle::open(path, first, self.job.memory_max)?;
        let report = bundle.json("report.json")?;
        refuse_other_schema(&report).map_err(|message| bundle.wrong(message))?;
        let run = bundle.content(RUN_FILE).map(|_| bundle.json(RUN_FILE)).transpose()?;
        let history = bundle.history(self.options())?.map(|(history, _)| history);
        Ok(Subject { report, run, history, source: None })
    }
}

/// The history of a bundle, if the file is one.
pub(crate) fn bundled(
    path: &Path,
    options: ReadOptions,
) -> Result<Option<(History, &'static Format)>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let start = start_of(path)?;
    if Shape::of(&start).is_some() {
        let found = "expected a history, found a report of isolde";
        let error = ReadError::new(&input::name(path), found);
        return Err(error.hint("`isolde report` makes a page of it").into());
    }
    let Some(first) = first_of_archive(path, &start)? else { return Ok(None) };
    let bundle = Bundle::open(path, &first, options.memory_max)?;
    let history = bundle.history(options)?;
    let none = || bundle.wrong("it has no history: `isolde report` shows what it has".to_owned());
    history.ok_or_else(none).map(Some)
}

/// What the places of the history in a bundle are cited by, and what `isolde run` noted, if the
/// file is a bundle with a history.
pub(crate) fn bundled_run(
    path: &Path,
    memory_max: Option<usize>,
) -> Option<(String, Option<Value>)> {
    let start = path.is_file().then(|| start_of(path).ok()).flatten()?;
    let first = first_of_archive(path, &start).ok()??;
    let bundle = Bundle::open(path, &first, memory_max).ok()?;
    let history = bundle.manifest["history"].as_str()?;
    Some((format!("{}/{history}", bundle.name), bundle.json(RUN_FILE).ok()))
}

/// The name of the first file of an archive, if the file is one that begins so.
fn first_of_archive(path: &Path, start: &[u8]) -> Result<Option<String>, Failure> {
    let name = input::name(path);
    let wrong = |message: &str| ReadError::new(&name, message);
    match archive::start(start) {
        archive::Start::Archive(first) => Ok(Some(first)),
        archive::Start::Uncompressed(first) if first == MANIFEST => {
            let message = "expected a bundle as it was packed, found one without its compression";
            Err(wrong(message).hint("compress it again with gzip").into())
        }
        archive::Start::CutOff(known) if is_start_of_bundle(path, &known) => {
            Err(wrong(CUT_OFF).into())
        }
        archive::Start::Uncompressed(_) | archive::Start::CutOff(_) | archive::Start::Other => {
            Ok(None)
        }
    }
}

/// Whether so much of a compressed file was a bundle. If nothing of it can be told, its name
/// has to.
fn is_start_of_bundle(path: &Path, known: &[u8]) -> bool {
    if known.is_empty() {
        return input::name(path).ends_with(".tar.gz");
    }
    known.starts_with(MANIFEST.as_bytes()) || MANIFEST.as_bytes().starts_with(known)
}

/// JSON of ours, by its first bytes.
#[derive(PartialEq, Eq)]
enum Shape {
    One,
    Several,
}

impl Shape {
    fn of(start: &[u8]) -> Option<Shape> {
        let start = start.trim_ascii_start();
        let inside = start.strip_prefix(b"[");
        let object = inside.unwrap_or(start).trim_ascii_start().strip_prefix(b"{")?;
        let is_ours = object.trim_ascii_start().starts_with(b"\"schema\"");
        is_ours.then_some(if inside.is_some() { Shape::Several } else { Shape::One })
    }
}

/// The files of a bundle.
struct Bundle {
    name: String,
    entries: Vec<archive::Entry>,
    manifest: Value,
}

impl Bundle {
    fn open(path: &Path, first: &str, memory_max: Option<usize>) -> Result<Bundle, Failure> {
        let name = input::name(path);
        let wrong = |message: String| Failure::Read(ReadError::new(&name, message));
        if first != MANIFEST {
            return Err(wrong(format!(
                "expected a bundle of isolde, found an archive that begins with `{first}`"
            )));
        }
        let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
        let read = archive::read(file, memory_max.unwrap_or(usize::MAX));
        let entries = read.map_err(|damage| {
            wrong(match damage {
                archive::Damage::Broken => CUT_OFF.into(),
                archive::Damage::NotPlain => {
                    "expected plain files in the bundle, found more".into()
                }
                archive::Damage::TooMany => "expected a bundle of few files, found many".into(),
                archive::Damage::TooLarge => "the bundle needs more memory than allowed".into(),
            })
        })?;
        let mut bundle = Bundle { name, entries, manifest: Value::Null };
        bundle.manifest = bundle.json(MANIFEST)?;
        if bundle.manifest["bundle"].as_u64() != Some(BUNDLE) {
            let found = &bundle.manifest["bundle"];
            let message = format!("expected a bundle of version {BUNDLE}, found {found}");
            return Err(bundle.wrong(message));
        }
        Ok(bundle)
    }

    fn wrong(&self, message: String) -> Failure {
        Failure::Read(ReadError::new(&self.name, message))
    }

    fn content(&self, wanted: &str) -> Option<&[u8]> {
        let found = self.entries.iter().find(|it| it.name == wanted);
        found.map(|entry| entry.content.as_slice())
    }

    fn json(&self, wanted: &str) -> Result<Value, Failure> {
        let missing = || self.wrong(format!("it has no {wanted}"));
        let content = self.content(wanted).ok_or_else(missing)?;
        json_in(&self.name, content, |error| format!("{wanted}: {error}"))
    }

    fn history(&self, options: ReadOptions) -> Result<Option<(History, &'static Format)>, Failure> {
        let Some(file) = self.manifest["history"].as_str() else { return Ok(None) };
        let missing = || self.wrong(format!("it has no {file}"));
        let content = self.content(file).ok_or_else(missing)?;
        let source = Source::from_bytes(format!("{}/{file}", self.name), content);
        Ok(Some(format::read_detected(Input::File(source), options)?))
    }
}

fn of_report(name: &str, report: Value) -> Result<Subject, Failure> {
    refuse_other_schema(&report).map_err(|message| ReadError::new(name, message))?;
    Ok(Subject { report, run: None, history: None, source: None })
}

fn start_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut start = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(START_BYTES as u64).read_to_end(&mut start).map(|_| ()));
    read.map_err(|error| ReadError::new(&input::name(path), error.to_string()))?;
    Ok(start)
}

/// A file of JSON.
pub(crate) fn read_json(path: &Path) -> Result<Value, Failure> {
    let name = path.display().to_string();
    let wrong = |message: String| ReadError::new(&name, message);
    // A pipe would be waited for.
    let kind = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !kind.is_file() {
        return Err(wrong("expected a file, found a pipe, a device or a folder".into()).into());
    }
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    json_in(&name, file, |error| format!("expected JSON, found: {error}"))
}

/// What stands in JSON, as far as there is memory for it.
fn json_in(
    name: &str,
    input: impl Read,
    wrong: impl FnOnce(&serde_json::Error) -> String,
) -> Result<Value, Failure> {
    serde_json::from_reader(BufReader::new(Fitting(input))).map_err(|error| {
        let message = if error.is_io() { error.to_string() } else { wrong(&error) };
        ReadError::new(name, message).into()
    })
}

/// What is read ends with an error when memory does: a byte of JSON may become fifty in memory.
struct Fitting<R>(R);

impl<R: Read> Read for Fitting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if heap::is_full() {
            return Err(io::Error::other("it needs more memory than allowed"));
        }
        self.0.read(buffer)
    }
}

//! `isolde bundle`: everything about a run or a history in one archive, to be sent to somebody.
//!
//! It holds the history, its smallest part that violates a level, the report, proofs of the
//! verdicts, what the run was, and how to repeat it. `isolde report` opens it, and so does `tar`.

use crate::archive::{self, Entry, Member};
use crate::exit::{Failure, Status};
use crate::interruption::Interruption;
use crate::job::Job;
use crate::limits::Clock;
use crate::subject::{BUNDLE, MANIFEST, Opening, RUN_FILE, Subject};
use crate::{decision, explain, input, limits, output, run_metadata, say, shrink, status_line};
use isolde::{Check, Level, Limit, Options};
use isolde_history::format::{self, Writer};
use isolde_history::{History, Index, ReadError};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of `isolde bundle`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The folder of a run, or a history
    file: PathBuf,
    /// The archive to write [default: beside FILE, with .bundle.tar.gz behind its name]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Pack the smallest part that violates a level instead of the whole history
    #[arg(long)]
    shrunk: bool,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let path = match &arguments.output {
        Some(path) => path.clone(),
        None => place_of(&arguments.file)?,
    };
    let interruption = Interruption::of("bundle")?;
    let resources = &arguments.limits.resources;
    let time = arguments.limits.time(Some(limits::USUAL_TIME));
    let begun = Instant::now();
    let clock = |end: Option<Duration>| Clock::new(begun, end.map(|end| begun + end));
    // The rest of the time is for packing.
    let gathering = clock(time.map(|time| time.saturating_sub(time / PACKING_PARTS)));
    let gathering = gathering.interrupted_by(&interruption);
    let job = Arc::new(Job::new(gathering, resources, true).keeping_half());
    let options = arguments.clone();
    let files = match job.within(move |job| gathered(&options, job)) {
        Ok(files) => files?,
        Err(reached) => match gathered_so_far(arguments, &job, reached)? {
            Some(files) => files,
            None => return limits::end(reached, &arguments.file, resources),
        },
    };
    status_line::tell("packing".to_owned());
    let mut packing = clock(time);
    if !job.clock.is_interrupted() {
        packing = packing.interrupted_by(&interruption);
    }
    let place = path.clone();
    let written = limits::within(&packing, move || {
        output::filled_whole(&place, |out| files.pack(out))
            .map_err(|error| Failure::Write(place.display().to_string(), error.into()))
    });
    match written {
        Ok(written) => written?,
        Err(reached) => {
            output::forget_partial();
            return limits::end(reached, &arguments.file, resources);
        }
    }
    say(&format!("isolde: wrote {}; open it with: isolde report {0}", path.display()));
    Ok(Status::Satisfied)
}

/// Of the time, one part in so many is for packing what was found.
const PACKING_PARTS: u32 = 4;

/// What goes into the archive.
struct Files {
    entries: Vec<Entry>,
    /// The history as it was recorded, which is as large as it likes, and its name here. It stands
    /// behind the first entry.
    recorded: Option<(String, PathBuf, u64)>,
}

impl Files {
    fn pack(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut files: Vec<Member<'_>> = self.entries.iter().map(Member::from).collect();
        if let Some((name, path, length)) = &self.recorded {
            let unread = |error| io::Error::other(format!("{}: {error}", path.display()));
            let content = Box::new(File::open(path).map_err(unread)?);
            files.insert(1, Member { name, length: *length, content });
        }
        archive::write(files, out)
    }
}

fn gathered(arguments: &Arguments, job: &Job) -> Result<Files, Failure> {
    let opening = Opening { input: &arguments.input, job };
    let mut subject = opening.open(&arguments.file)?;
    if arguments.shrunk {
        subject = shrunk_alone(&opening, subject, arguments)?;
    }
    let found = findings(&subject, arguments, job);
    files(&subject, found, arguments)
}

/// The history and what is known of it, when a limit is reached; nothing if it was not read.
fn gathered_so_far(
    arguments: &Arguments,
    job: &Job,
    reached: Limit,
) -> Result<Option<Files>, Failure> {
    let (file, name) = (&arguments.file, input::name(&arguments.file));
    let Some(mut subject) = Subject::partial_result(&job.partial_result, &name, reached) else {
        return Ok(None);
    };
    subject.source = run_metadata::log_of(file).or_else(|| file.is_file().then(|| file.clone()));
    if arguments.shrunk || subject.source.is_none() {
        return Ok(None);
    }
    say(&format!("isolde: {name}: {reached}: the bundle has what was known by then"));
    files(&subject, Findings::default(), arguments).map(Some)
}

/// The same, about nothing but the smallest part that violates a level.
fn shrunk_alone(
    opening: &Opening<'_>,
    subject: Subject,
    arguments: &Arguments,
) -> Result<Subject, Failure> {
    let Some((_, history)) = findings(&subject, arguments, opening.job).shrunk else {
        let message = "bundle: no violation was found, so there is no part to be packed alone";
        return Err(Failure::Usage(message.into()));
    };
    let report = opening.checked(&history, (&input::name(&arguments.file), "text"));
    Ok(Subject { report, run: subject.run, history: Some(history), source: None })
}

/// Where the archive goes if the user does not say.
fn place_of(file: &Path) -> Result<PathBuf, Failure> {
    let Some(name) = file.file_name() else {
        return Err(Failure::Usage("bundle: name the archive with --output".into()));
    };
    let mut name = name.to_owned();
    name.push(".bundle.tar.gz");
    Ok(file.with_file_name(name))
}

fn files(subject: &Subject, found: Findings, arguments: &Arguments) -> Result<Files, Failure> {
    let (mut entries, mut recorded) = (Vec::new(), None);
    if let Some(source) = &subject.source {
        recorded = Some(recorded_at(source)?);
    } else if let Some(history) = &subject.history {
        entries.push(rewritten(history, arguments)?);
    }
    let history_name = match &recorded {
        Some((name, ..)) => Some(name.clone()),
        None => entries.first().map(|entry| entry.name.clone()),
    };
    entries.push(entry("report.json", pretty(&subject.report)));
    if let Some(run) = &subject.run {
        entries.push(entry(RUN_FILE, pretty(run)));
    }
    entries.extend(found.certificate.map(|text| entry("certificate.txt", text)));
    if !arguments.shrunk {
        entries.extend(found.shrunk.map(|(text, _)| entry("shrunk.txt", text.into_bytes())));
    }
    let again = again(subject, history_name.as_deref());
    entries.push(entry("README.txt", read_me(&again).into_bytes()));
    let noted = |name: &str| subject.run.as_ref().and_then(|run| run.get(name)).cloned();
    let lengths = (recorded.iter().map(|(name, _, length)| (name, *length)))
        .chain(entries.iter().map(|it| (&it.name, it.content.len() as u64)));
    let manifest = json!({
        "bundle": BUNDLE,
        "version": env!("CARGO_PKG_VERSION"),
        "history": history_name,
        "seed": noted("seed"),
        "database": noted("database"),
        "database_version": noted("database_version"),
        "again": again,
        "files": lengths.map(|(name, bytes)| json!({"name": name, "bytes": bytes}))
            .collect::<Vec<_>>(),
    });
    entries.insert(0, entry(MANIFEST, pretty(&manifest)));
    Ok(Files { entries, recorded })
}

fn entry(name: &str, content: Vec<u8>) -> Entry {
    Entry { name: name.to_owned(), content }
}

fn pretty(json: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(json).expect("plain data");
    text.push(b'\n');
    text
}

/// The history as it was recorded: its name in the archive, where it is and how long.
fn recorded_at(source: &Path) -> Result<(String, PathBuf, u64), Failure> {
    let noted = std::fs::metadata(source)
        .map_err(|error| ReadError::new(&source.display().to_string(), error.to_string()))?;
    let extension = source.extension().and_then(|it| it.to_str()).unwrap_or("txt");
    let plain = extension.len() < 10 && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    let extension = if plain { extension } else { "txt" };
    Ok((format!("history.{extension}"), source.to_owned(), noted.len()))
}

/// A history that is several files, in the binary format, which keeps everything.
fn rewritten(history: &History, arguments: &Arguments) -> Result<Entry, Failure> {
    let binary = format::by_name("binary").and_then(|format| format.write.as_ref());
    let Some(Writer::File(write)) = binary else { unreachable!("binary is one written file") };
    let mut content = Vec::new();
    write(history, &mut content)
        .map_err(|error| Failure::Write(input::name(&arguments.file), error))?;
    Ok(entry("history.isolde", content))
}

/// What is found out about the history for the bundle.
#[derive(Default)]
struct Findings {
    /// Proofs of the verdicts.
    certificate: Option<Vec<u8>>,
    /// The smallest part that still violates a level, as text, and its history.
    shrunk: Option<(String, History)>,
}

/// Proofs of the report's verdicts and the smallest part that violates one, as far as they are
/// found in time.
fn findings(subject: &Subject, arguments: &Arguments, job: &Job) -> Findings {
    let Some(history) = &subject.history else { return Findings::default() };
    let (index, options) = (Index::new(history), Options::default());
    let levels: Vec<Level> = (Level::ALL.into_iter())
        .filter(|level| subject.report["levels"].get(level.name()).is_some())
        .collect();
    status_line::tell("proving the verdicts".to_owned());
    job.limited((history, &index), |limits| {
        job.clock.keep(job.clock.share(4));
        let mut checking = Check::new(history, &index, limits);
        let decided = decision::decide_within(&mut checking, &levels, &job.clock, |_, _, _| {});
        let certified = checking.certify(&levels);
        let mut content = Vec::new();
        let written = isolde_certificate::write(&certified.certificate, &mut content);
        status_line::tell("looking for the smallest part".to_owned());
        job.clock.keep(job.clock.share(8));
        let shrunk = explain::first_violated(&decided).map(|(level, violated)| {
            let whole = (history, &index);
            let part = isolde::shrink(whole, level, violated, options, limits, &|_| {});
            job.clock.use_the_rest();
            let name = input::name(&arguments.file);
            (shrink::with_header(&part.history, level, &name, options, limits), part.history)
        });
        Findings { certificate: written.is_ok().then_some(content), shrunk }
    })
}

/// Commands that repeat what the bundle shows.
fn again(subject: &Subject, history: Option<&str>) -> Vec<String> {
    let mut commands = Vec::new();
    let run = subject.run.as_ref().and_then(|run| run.get("command")).and_then(Value::as_str);
    commands.extend(run.map(str::to_owned));
    if let Some(history) = history {
        commands.push(format!("isolde check {history}"));
        commands.push(format!("isolde verify certificate.txt {history}"));
    }
    commands
}

fn read_me(again: &[String]) -> String {
    let again = again.join("\n  ");
    format!(
        "A violation or verdict found by isolde {}, packed by `isolde bundle`.\n\n\
         Open the archive as it is:\n\n  isolde report THIS.tar.gz -o page.html\n\n\
         Repeat it, in the folder where the archive was unpacked:\n\n  {again}\n",
        env!("CARGO_PKG_VERSION")
    )
}

//! `isolde convert`: a history in another format.

use crate::exit::{Failure, Status};
use crate::output::{self, filled_whole};
use crate::{input, limits, say};
use isolde_history::History;
use isolde_history::format::{Folder, WriteError, Writer};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Options of `isolde convert`.
#[derive(clap::Args, Clone)]
pub(crate) struct Arguments {
    /// The history; `-` is standard input
    file: PathBuf,
    /// The format to write; see `isolde formats` [default: binary if the output ends in .isolde]
    #[arg(long, value_name = "FORMAT")]
    to: Option<String>,
    /// Where to write: a file, or a directory for formats that are one [default: standard output]
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Cut a history with times into so many parts, in the folder that --output names: for
    /// `isolde check --workers` and `--processes`
    #[arg(long, value_name = "NUMBER", requires = "output", conflicts_with = "to")]
    split: Option<u16>,
    #[command(flatten)]
    input: input::Arguments,
    #[command(flatten)]
    limits: limits::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Status, Failure> {
    arguments.limits.resources.apply()?;
    if let (Some(count), Some(folder)) = (arguments.split, &arguments.output) {
        return split(arguments, usize::from(count), folder);
    }
    let Some(to) = target(arguments.to.as_deref(), arguments.output.as_deref())? else {
        let message = "convert: expected --to FORMAT, or an --output that ends in .isolde; see \
                       `isolde formats`";
        return Err(Failure::Usage(message.into()));
    };
    output::refuse_input(arguments.output.as_deref(), &arguments.file)?;
    let (options, clock) = (arguments.clone(), arguments.limits.clock(None));
    let converted = limits::within(&clock, move || {
        let memory_max = options.limits.resources.memory_max();
        let (history, _) = input::read(&options.file, &options.input, memory_max)?;
        write(&history, &to, options.output.as_deref())
    });
    match converted {
        Ok(converted) => converted.map(|()| Status::Satisfied),
        Err(reached) => {
            output::forget_partial();
            limits::end(reached, &arguments.file, &arguments.limits.resources)
        }
    }
}

/// Cuts a history into parts.
fn split(arguments: &Arguments, count: usize, folder: &Path) -> Result<Status, Failure> {
    if count == 0 {
        return Err(Failure::Usage("--split: expected at least one part, found 0".into()));
    }
    refuse_filled(folder)?;
    output::refuse_input(Some(folder), &arguments.file)?;
    let (options, clock) = (arguments.clone(), arguments.limits.clock(None));
    let folder = folder.to_owned();
    let parts = limits::within(&clock, move || {
        let memory_max = options.limits.resources.memory_max();
        let (history, _) = input::read(&options.file, &options.input, memory_max)?;
        std::fs::create_dir_all(&folder)?;
        let lost = isolde_cluster::split(history, count, &folder);
        lost.map_err(|error| {
            // Empty unless something was written, and then it stays.
            let _ = std::fs::remove_dir(&folder);
            Failure::Usage(error.to_string())
        })
    });
    match parts {
        Ok(lost) => {
            for sentence in lost? {
                say(&format!("isolde: parts: lost: {sentence}"));
            }
            Ok(Status::Satisfied)
        }
        Err(reached) => limits::end(reached, &arguments.file, &arguments.limits.resources),
    }
}

/// A format that histories can be written in.
pub(crate) struct Target {
    name: &'static str,
    writer: Writer,
}

/// The format that was asked for, else the one that the name of the output tells, if it does.
pub(crate) fn target(to: Option<&str>, output: Option<&Path>) -> Result<Option<Target>, Failure> {
    let is_ours = output.and_then(Path::extension).is_some_and(|ending| ending == "isolde");
    to.or(is_ours.then_some("binary")).map(writable).transpose()
}

/// The same, which is text if nothing tells another.
pub(crate) fn target_or_text(to: Option<&str>, output: Option<&Path>) -> Result<Target, Failure> {
    target(to, output)?.map_or_else(|| writable("text"), Ok)
}

/// The format of this name, if it is written.
fn writable(name: &str) -> Result<Target, Failure> {
    let format = input::one_of(name, |format| format.write.is_some())?;
    match format.write {
        Some(writer) => Ok(Target { name: format.name, writer }),
        None => Err(Failure::Usage(format!("the format {} is read but not written", format.name))),
    }
}

/// Writes `history` to a path or to standard output, and says what was lost.
pub(crate) fn write(history: &History, to: &Target, output: Option<&Path>) -> Result<(), Failure> {
    let name = output.map_or("standard output".into(), |path| path.display().to_string());
    let failed = |error: WriteError| Failure::Write(name.clone(), error);
    let lost = match (to.writer, output) {
        (Writer::File(write), None) => {
            let mut stdout = BufWriter::new(io::stdout().lock());
            let lost = write(history, &mut stdout).map_err(failed)?;
            stdout.flush()?;
            lost
        }
        (Writer::File(write), Some(path)) => {
            filled_whole(path, |file| write(history, file)).map_err(failed)?
        }
        (Writer::Directory(_), None) => {
            let message = format!("the format {} is a directory: name it with --output", to.name);
            return Err(Failure::Usage(message));
        }
        (Writer::Directory(write), Some(path)) => {
            refuse_filled(path)?;
            std::fs::create_dir_all(path).map_err(|error| failed(error.into()))?;
            write(history, &mut OnDisk(path)).map_err(|error| {
                // Empty unless something was written, and then it stays.
                let _ = std::fs::remove_dir(path);
                failed(error)
            })?
        }
    };
    for sentence in lost {
        say(&format!("isolde: {}: lost: {sentence}", to.name));
    }
    Ok(())
}

/// What is there already would be read as part of this history.
fn refuse_filled(folder: &Path) -> Result<(), Failure> {
    if std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let name = folder.display();
        let found = format!("{name}: expected an empty or new directory, found files in it");
        return Err(Failure::Usage(found));
    }
    Ok(())
}

struct OnDisk<'a>(&'a Path);

impl Folder for OnDisk<'_> {
    fn create(&mut self, name: &str) -> io::Result<Box<dyn Write + '_>> {
        Ok(Box::new(BufWriter::new(File::create(self.0.join(name))?)))
    }
}
